"""A mechanism given by its certified curve: anything of which bounds on delta are known, and no pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from hockeystick.composition import Direction, Step
from hockeystick.errors import UnknownPairError, check_fields, check_probability
from hockeystick.laws.base import Pair
from hockeystick.laws.curve import ChordPair, SupportPair
from hockeystick.laws.stated_curve import StatedCurve

Bounds = Callable[[float], tuple[float, float]]


@final
@dataclass(frozen=True)
class UserDefinedCurve(Step):
    """A mechanism of which the caller states bounds on delta as a function of epsilon.

    Each function takes one epsilon of at least 0 and returns a lower and an upper bound on delta, both of *one*
    dominating pair and of its reverse. The lower side of a composition is that of this pair.

    Parameters
    ----------
    remove : callable
        Bounds for (M(D + x), M(D)).
    add : callable, optional
        For (M(D), M(D + x)); by default those of ``remove``, for a pair that is its own reverse.
    infinite : float
        Lower bound on delta at infinite epsilon, in both directions.

    Examples
    --------
    >>> import math
    >>> import hockeystick as hs
    >>> def laplace(epsilon):  # noise of scale 2: 1 - e^((epsilon - 1/2) / 2), to within rounding
    ...     delta = -math.expm1(min(epsilon - 0.5, 0.0) / 2)
    ...     return delta * (1 - 1e-14), delta * (1 + 1e-14)
    >>> found = hs.account(hs.UserDefinedCurve(laplace) * 4).delta(epsilon=0.5)
    >>> truth = hs.account(hs.Laplace(2.0) * 4).delta(epsilon=0.5)
    >>> found.lower <= truth.upper, truth.lower <= found.upper, found.width < 1e-4
    (True, True, True)
    """

    stated_by_caller = True
    origin = "a pair given by bounds on its curve: chords above, lines of support below"

    remove: Bounds
    add: Bounds | None = None
    infinite: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("remove", "add"):
            bounds = getattr(self, name)
            if not callable(bounds) and (bounds is not None or name == "remove"):
                raise TypeError(f"{name} must be a function from epsilon to two bounds on delta, got {bounds!r}")
        check_fields(self, infinite=check_probability)

    def _curve(self, direction: Direction) -> StatedCurve:
        if direction == "substitute":
            raise UnknownPairError("no curve is stated under 'substitute'; use adjacency 'add-remove'")
        curve = StatedCurve(self.remove, self.remove if self.add is None else self.add, self.infinite, self.infinite)
        return curve if direction in {"remove", "zero-out"} else curve.reversed()

    def pair(self, direction: Direction) -> Pair:
        return ChordPair(self._curve(direction))

    def attained(self, direction: Direction) -> tuple[Pair, ...]:
        return (SupportPair(self._curve(direction)),)
