"""What a call returns: a certified ``Bound`` or an ``Estimate``, two types that no code can confuse."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Number
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from hockeystick import notebook
from hockeystick.decimals import formatted
from hockeystick.errors import ContradictionError

Real = float | NDArray[np.float64]
"""A scalar, or an array where arrays were asked for."""


def _frozen(value: Real) -> Real:
    if isinstance(value, np.ndarray) and value.ndim > 0:
        value = np.asarray(value, dtype=np.float64) + 0.0  # a copy, in which -0 is 0
        value.setflags(write=False)
        return value
    return float(value) + 0.0


class _Answer:
    """What `Bound` and `Estimate` share: they hold two numbers, so that comparing one with a number says too little."""

    __array_ufunc__ = None  # numpy leaves comparisons to the methods below
    _take: ClassVar[str]

    def _ambiguous(self, other: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be compared with {other!r}: take {self._take}")

    __lt__ = __le__ = __gt__ = __ge__ = _ambiguous

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Number | np.ndarray):
            self._ambiguous(other)
        return self is other

    __hash__ = object.__hash__


@final
@dataclass(frozen=True, eq=False)
class Bound(_Answer):
    """A bracket that is proved to hold: ``lower <= true value <= upper``.

    Attributes
    ----------
    lower, upper : float or ndarray
        The two sides, of one shape. Epsilon is in nats.
    method : str
        What computed it.
    notes : tuple of str
        What a reader must know: where each side comes from, or why the bracket is wider than asked for.
    errors : mapping of str to float
        The size of each error source that is inside the bracket, in the unit of the bound (an upper bound
        on each; for arrays the largest).
    decimals : (Decimal, Decimal) or None
        The two sides, proved as well, where an accountant was asked for more digits than a float64 has:
        ``Exact(digits=50)``.

    Guarantee
    ---------
    Both sides are certified: every error is inside, rounding included. Two things are taken for granted. The functions
    of numpy, scipy and the C library err by no more than `docs/concepts/assumptions.md` assumes, which ``hockeystick
    selfcheck`` measures on the machine at hand. And noise is ideal: it is drawn from exactly the distribution stated,
    which no generator of floats does. Of a pair that the caller states (`UserDefined`, `DiscretePair`), the bounds hold
    for that pair; that it dominates the mechanism is the caller's word, as the notes say.

    Each bracket is proved by itself. Where the true value falls (delta in epsilon, say) the lower side of the later
    bracket is at most the upper side of the earlier one; the sides themselves fall only to within the bracket's width.

    Examples
    --------
    >>> bound = Bound(1.0, 1.25, method="example")
    >>> float(bound), bound.width, bound.contains(1.1)
    (1.25, 0.25, True)
    >>> f"{Bound(2.58368, 2.58372, method='example'):.3f}"  # rounded outward: what is printed holds, too
    '[2.583, 2.584]'
    """

    _take: ClassVar[str] = ".upper, the safe side, or .lower"

    lower: Real
    upper: Real
    method: str
    notes: tuple[str, ...] = ()
    errors: Mapping[str, float] = field(default_factory=dict)
    decimals: tuple[Decimal, Decimal] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lower", _frozen(self.lower))
        object.__setattr__(self, "upper", _frozen(self.upper))
        object.__setattr__(self, "errors", MappingProxyType(dict(self.errors)))
        several = isinstance(self.lower, np.ndarray) or isinstance(self.upper, np.ndarray)
        if several and np.shape(self.lower) != np.shape(self.upper):
            raise ValueError(f"lower has shape {np.shape(self.lower)} but upper has {np.shape(self.upper)}")
        ordered = self.lower <= self.upper  # also false for NaN
        if not (np.all(ordered) if several else ordered):
            raise ValueError(f"lower must be at most upper, got {self.lower!r} and {self.upper!r}")
        if self.decimals is not None and not self._rounds_decimals():
            raise ValueError(f"lower and upper must be decimals rounded outward, got {self.decimals!r}")

    def _rounds_decimals(self) -> bool:
        """Whether the sides are within a unit in the last place of the decimals: those of another bracket are not."""
        if self.decimals is None or isinstance(self.lower, np.ndarray) or isinstance(self.upper, np.ndarray):
            return False
        exact = Decimal.from_float  # compared with a float itself, a decimal may raise: the caller's context decides
        return all(
            exact(math.nextafter(side, -math.inf)) <= d <= exact(math.nextafter(side, math.inf))
            for side, d in zip((self.lower, self.upper), self.decimals, strict=True)
        )

    def __reduce__(self) -> tuple[object, ...]:
        # a read-only mapping cannot be pickled nor copied: it is made anew
        return Bound, (self.lower, self.upper, self.method, self.notes, dict(self.errors), self.decimals)

    @property
    def certified(self) -> bool:
        """Always True: an uncertified number is an ``Estimate``."""
        return True

    @property
    def sides(self) -> tuple[Real, Real]:
        """``(lower, upper)``, as an `Estimate` has its value for both."""
        return self.lower, self.upper

    @property
    def estimate(self) -> Estimate:
        """The safe side with the width for its error, where it must stand beside estimates."""
        return Estimate(self.upper, self.width, self.method, self.notes)

    @property
    def width(self) -> Real:
        """``upper - lower``, zero where both are the same infinity."""
        if isinstance(self.lower, float) and isinstance(self.upper, float):
            return 0.0 if self.lower == self.upper else self.upper - self.lower
        lower, upper = np.asarray(self.lower), np.asarray(self.upper)
        gap = np.subtract(upper, lower, out=np.zeros(lower.shape), where=lower != upper)
        return _frozen(np.asarray(gap))

    def contains(self, value: float) -> bool:
        """Whether every bracket contains ``value``, with no slack."""
        return bool(np.all((np.asarray(self.lower) <= value) & (value <= np.asarray(self.upper))))

    def __float__(self) -> float:
        """The safe side: ``upper``."""
        if isinstance(self.upper, np.ndarray):
            raise TypeError("this Bound holds an array: take .upper, or index it first")
        return self.upper

    def __bool__(self) -> bool:
        """Always True: a bracket is an answer, whatever its values."""
        return True

    def __len__(self) -> int:
        if not isinstance(self.upper, np.ndarray):
            raise TypeError("this Bound holds one value and has no length")
        return len(self.upper)

    def __getitem__(self, index: int | slice | tuple[int, ...]) -> Bound:
        if not isinstance(self.upper, np.ndarray) or not isinstance(self.lower, np.ndarray):
            raise TypeError("this Bound holds one value and cannot be indexed")
        return replace(self, lower=self.lower[index], upper=self.upper[index])

    def __format__(self, spec: str) -> str:
        """The bracket in decimal, each side by ``spec`` and rounded outward (`hockeystick.decimals.formatted`).

        No specification gives ``repr``, whose floats read back as they are.
        """
        if not spec:
            return repr(self)
        if isinstance(self.lower, np.ndarray) or isinstance(self.upper, np.ndarray):
            raise TypeError("this Bound holds an array: format one bracket at a time, such as f'{bound[0]:.3f}'")
        return f"[{formatted(self.lower, spec, 'lower')}, {formatted(self.upper, spec, 'upper')}]"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = [("at least, at most", notebook.bracket(self.lower, self.upper)), ("method", self.method)]
        return notebook.table("Certified bracket", [*rows, *(("note", note) for note in self.notes)])

    def to_pandas(self) -> Any:
        """A data frame with the columns ``lower`` and ``upper``, one row a value; needs pandas."""
        return notebook.frame({"lower": np.ravel(self.lower), "upper": np.ravel(self.upper)})


@final
@dataclass(frozen=True, eq=False)
class Estimate(_Answer):
    """A number with an error estimate that is *not* proved to be a bound.

    Attributes
    ----------
    value : float or ndarray
        The estimate (epsilon in nats).
    error : float or ndarray
        The estimated absolute error; ``nan`` where none is known.
    method : str
        What computed it.
    notes : tuple of str
        What a reader must know.
    """

    _take: ClassVar[str] = ".value, which is not proved to be a bound"

    value: Real
    error: Real
    method: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _frozen(self.value))
        object.__setattr__(self, "error", _frozen(self.error))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = [("about", notebook.values(self.value)), ("estimated error", notebook.values(self.error))]
        rows += [("method", self.method), *(("note", note) for note in self.notes)]
        return notebook.table("Estimate, not proved", rows)

    def to_pandas(self) -> Any:
        """A data frame with the columns ``value`` and ``error``, one row a value; needs pandas."""
        return notebook.frame({"value": np.ravel(self.value), "error": np.ravel(self.error)})

    @property
    def sides(self) -> tuple[Real, Real]:
        """The value twice, where a `Bound` has its two sides."""
        return self.value, self.value

    @property
    def estimate(self) -> Estimate:
        """Itself, as a `Bound` has one too."""
        return self

    @property
    def certified(self) -> bool:
        """Always False: a proved bracket is a ``Bound``."""
        return False


# ------------------------------------------------------------------------------------------------ several proofs


def agreed(first: Bound, *others: Bound) -> Bound:
    """What several certified brackets of one number prove together, with the notes of the first.

    Raises
    ------
    ContradictionError
        Where two of them exclude each other.

    Examples
    --------
    >>> both = agreed(Bound(1.0, 2.0, "one way"), Bound(1.5, 3.0, "another"))
    >>> both.lower, both.upper
    (1.5, 2.0)
    """
    every = (first, *others)
    below, above = max(every, key=lambda bound: float(bound.lower)), min(every, key=lambda bound: float(bound.upper))
    lower, upper = float(below.lower), float(above.upper)
    if lower > upper:
        raise ContradictionError(
            f"two certified answers exclude each other: {_stated(below)} and {_stated(above)}. One of the two proofs is"
            " wrong: please report this, with the question",
            (below, above),
        )
    source = min(every, key=lambda bound: float(bound.width))
    return Bound(lower, upper, source.method, first.notes, source.errors)


def at_most(bound: Bound, upper: float, source: str) -> Bound:
    """The bracket of a number of at least 0, where another proof puts that at most at ``upper``.

    Raises
    ------
    ContradictionError
        Where the bracket lies above.
    """
    if bound.upper <= max(upper, 0.0):
        return bound
    both = agreed(bound, Bound(0.0, max(upper, 0.0), source))
    return replace(bound, upper=both.upper, decimals=None if both.upper < bound.upper else bound.decimals)


def from_sides(
    lower: float,
    upper: float,
    method: str,
    notes: tuple[str, ...] = (),
    errors: Mapping[str, float] | None = None,
    decimals: tuple[Decimal, Decimal] | None = None,
) -> Bound:
    """A bracket of a number of at least 0 whose two sides were proved apart.

    Raises
    ------
    ContradictionError
        Where they exclude each other.
    """
    least, most = max(lower, 0.0), max(upper, 0.0)
    if not least <= most:  # says which two
        agreed(Bound(0.0, most, f"{method}, upper side"), Bound(least, np.inf, f"{method}, lower side"))
    return Bound(least, most, method, notes, errors or {}, decimals)


def _stated(bound: Bound) -> str:
    return f"[{bound.lower!r}, {bound.upper!r}] ({bound.method})"
