"""A dominating pair (P, Q) and the windows through which accountants look at it.

Symbols: the privacy loss is ``L = ln dP/dQ``; under P it may be ``+inf`` (where Q has no mass), under Q ``-inf``. The
hockey-stick curve is ``h(a) = P(L > ln a) - a Q(L > ln a)``, and delta(epsilon) is ``h(e^epsilon)``.

Windows: *tails* is ``Pair.cells`` and ``Pair.tails``; *cumulants* is ``Pair.nodes``; *transforms* is ``Pair.summand``;
*samples* is ``Pair.sample``. Accountants know pairs only through them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, final

import numpy as np

from hockeystick.errors import UnknownPairError
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.extent import INFINITE as INFINITE
from hockeystick.laws.extent import CertifiedCurve as CertifiedCurve
from hockeystick.laws.extent import Extreme as Extreme
from hockeystick.laws.extent import InfiniteMass as InfiniteMass
from hockeystick.laws.extent import LaplaceLoss as LaplaceLoss
from hockeystick.laws.extent import LossQuantum as LossQuantum
from hockeystick.laws.extent import least_infinite as least_infinite
from hockeystick.numerics.columns import Array as Array
from hockeystick.numerics.rounding import U, up
from hockeystick.transforms.nodes import Nodes as Nodes
from hockeystick.transforms.summand import Summand

if TYPE_CHECKING:
    from hockeystick.laws.run_count import RunCount

Measure = Literal["P", "Q"]
"""Which of the two distributions."""


@final
@dataclass(frozen=True)
class CellMasses:
    """Masses of the loss cells cut by m increasing losses ``l_0 < ... < l_{m-1}``: the *tails* window.

    There are m + 1 cells: below ``l_0``, the m - 1 between, and above ``l_{m-1}`` (``L = +-inf`` excluded).

    Attributes
    ----------
    log_p, log_q : ndarray, shape (m + 1,)
        ``ln`` of the mass of each cell under P and under Q; ``-inf`` for an empty cell.
    error_p, error_q : ndarray, shape (m + 1,)
        Bounds on the absolute error of each entry, that is on the relative error of the mass.
    slack : ndarray, shape (m,)
        How far (nats) the true cuts may lie from the ones asked for: the losses in the cell between cuts i - 1
        and i lie in ``[l_{i-1} - slack_{i-1}, l_i + slack_i]``.
    """

    log_p: Array
    log_q: Array
    error_p: Array
    error_q: Array
    slack: Array

    def reversed(self) -> CellMasses:
        """The cells of the pair (Q, P), whose losses are the negatives, in increasing order."""
        return CellMasses(self.log_q[::-1], self.log_p[::-1], self.error_q[::-1], self.error_p[::-1], self.slack[::-1])


@final
@dataclass(frozen=True)
class GaussianTail:
    """A pair's curve lies below that of a Gaussian pair followed by a bounded part: ``h(a) <= H_mu(a e^-epsilon)``.

    Attributes
    ----------
    mu : float
        Of the Gaussian part, rounded up; 0 where there is none.
    epsilon : float
        The bounded part (nats), rounded up.
    attained : bool
        Whether the tail in one direction decays no faster than the Gaussian part's.
    gaussian : bool
        Whether the pair is the Gaussian pair itself.
    """

    mu: float
    epsilon: float
    attained: bool
    gaussian: bool = False


@final
@dataclass(frozen=True)
class Selection:
    """The best of many runs (`laws.selected`): the pairs of one with their counts, how many, which order of outputs."""

    parts: Parts
    count: RunCount
    share: float | None = None


class Pair(ABC):
    """A dominating pair (P, Q): frozen, hashable, equal where its parameters are equal.

    A subclass with the methods below works with every accountant: a frozen dataclass, whose parameters are exact.
    """

    @property
    @abstractmethod
    def infimum(self) -> Extreme:
        """The smallest finite loss (nats), ``-inf`` where there is none."""

    @property
    @abstractmethod
    def supremum(self) -> Extreme:
        """The largest finite loss (nats), ``inf`` where there is none."""

    @property
    def loss_bounds(self) -> tuple[float, float]:
        """Smallest and largest finite loss (nats), to within the errors that `infimum` and `supremum` state."""
        return self.infimum.value, self.supremum.value

    @property
    def mass_at_infinity(self) -> float:
        """P(L = +inf), rounded up by at most `INFINITE` relative; 0 where P is absolutely continuous."""
        return 0.0

    @cached_property
    def infinite_mass(self) -> InfiniteMass:
        """Both sides of `mass_at_infinity`."""
        return InfiniteMass.rounded_up(self.mass_at_infinity)

    @property
    def reverse_mass_at_infinity(self) -> float:
        """Q(L = -inf), rounded up: the mass at infinity of the reversed pair."""
        return 0.0

    @property
    def sampling_rate(self) -> float:
        """Upper bound on the probability that the step draws the record at all; 1 without sampling."""
        return 1.0

    @property
    def gaussian_mu(self) -> Fraction | None:
        """mu where the pair is N(mu, 1) against N(0, 1), exactly; None for every other pair."""
        return None

    @property
    def laplace_loss(self) -> LaplaceLoss | None:
        """The loss where it has the density of Laplace noise between its ends; None for every other pair."""
        return None

    @property
    def sampled_gaussian(self) -> tuple[Fraction, float] | None:
        """mu and g where the pair is (1 - g) N(0, 1) + g N(mu, 1) against N(0, 1), g < 1; None for every other."""
        return None

    @property
    def gaussian_tail(self) -> GaussianTail | None:
        """The Gaussian tail of the pair and of its reverse; None where none is known."""
        # a pair whose losses are bounded by e is an e-DP one
        largest = max(abs(end.value) + end.error for end in (self.infimum, self.supremum))
        if math.isinf(largest) or self.mass_at_infinity or self.reverse_mass_at_infinity:
            return None
        return GaussianTail(0.0, up(largest, 2.0 * U), attained=False)

    @property
    def is_discrete(self) -> bool:
        """Whether all mass sits on atoms: no density, however small, between them."""
        return False

    @property
    def is_merged(self) -> bool:
        """Whether outcomes of a law are merged in it: many digits of its curve say little of that law."""
        return False

    @property
    def anchors(self) -> tuple[float, ...]:
        """Finite losses where mass concentrates (atoms, ends of the range), the most important first; nats.

        Lattices are laid through the first one or two: a guide, like `loss_range`.
        """
        return ()

    @property
    def loss_quantum(self) -> LossQuantum | None:
        """The number of which every finite loss is a multiple; None where there is none."""
        return None

    @property
    def is_known_by_moments_alone(self) -> bool:
        """Whether nothing is known but `moment_guarantee`: no window shows anything."""
        return False

    def moment_guarantee(self, orders: Array) -> Array | None:
        """Upper bounds of ``ln E_P[e^{(alpha - 1) L}]`` for every step that this pair stands for, at orders above 1.

        None where no better one is proved than the pair's own.
        """
        return None

    @property
    def method(self) -> str:
        """What answers of one such step alone."""
        return "closed form of one step"

    def composed(self, count: int) -> Parts:
        """Pairs, with their counts, that dominate so many of the steps that this pair stands for, one after another."""
        return ((self, count),)

    def attains_together(self, count: int) -> bool:
        """Whether `composed` is one pair whose curve so many of these steps attain at every epsilon."""
        return False

    @property
    def selection(self) -> Selection | None:
        """The run of which this is the best of many; None for every other pair."""
        return None

    @property
    def curve(self) -> CertifiedCurve | None:
        """The curve of one step, where the pair is known by bounds on it; None where masses of cells give it."""
        return None

    @property
    def atoms(self) -> AtomTable | None:
        """The finite losses as one table; None where there is a density, or atoms without end."""
        return None

    def atoms_but(self, log_drop: float) -> AtomTable | None:
        """The same but for ``e^log_drop`` of the mass under either measure; None where there is a density."""
        return self.atoms

    @abstractmethod
    def cells(self, losses: Array) -> CellMasses:
        """Masses of the cells cut by ``losses`` (increasing, finite, shape (m,)), with certified errors."""

    def tails(self, cuts: Array, *, upper: bool = True) -> CellMasses | None:
        """Masses above (or below) each of any finite cuts, to the bit as of it alone; None where only cells tell."""
        return None

    @abstractmethod
    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        """Losses ``(low, high)``, finite, with about ``e^log_below`` of the measure below and ``e^log_above`` above.

        A guide for choosing lattices, not a bound; never beyond ``loss_bounds``.
        """

    def loss_ranges(self, log_below: Array, log_above: Array, measure: Measure = "P") -> tuple[Array, Array]:
        """`loss_range` at many tails, shape (k,)."""
        ends = [self.loss_range(*logs, measure) for logs in zip(log_below.tolist(), log_above.tolist(), strict=True)]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    @abstractmethod
    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        """A quadrature rule that covers both distributions up to tails of about ``e^log_tail``.

        ``refine`` divides the step: comparing a rule with a finer one measures its error.
        """

    def summand(self) -> Summand:
        """The loss as a summand of a composed one, with its certified rules: the *transforms* window.

        Raises
        ------
        UnknownPairError
            Where no certified transform is known.
        """
        raise UnknownPairError(f"no certified transform is known for {self!r}: use the certified lattice accountant")

    @cached_property
    def same_summand(self) -> Summand:
        """`summand`, the same object whenever it is asked."""
        return self.summand()

    @cached_property
    def reach(self) -> float:
        """The size of the losses (nats) beyond which there is next to no mass: a guide, like `loss_range`."""
        low, high = self.loss_range(-60.0, -60.0)  # ln of the mass beyond
        return max(-low, high)

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        """Independent draws of L (nats) under the measure, shape (size,); ``+-inf`` where it is."""

    takes_fractions: ClassVar[bool] = False
    """Whether `subsampled` and `joined` take any fraction as it is; others round it to a float64."""

    def repeated(self, count: int) -> tuple[Pair, Pair] | None:
        """Pairs just below and just above that of ``count`` steps composed; None where no single pair is known."""
        return None

    @property
    def with_tails(self) -> Pair:
        """The same pair, with a table that does not end at `LEAST_DELTA`; itself where it has none, or must."""
        return self

    def reversed(self) -> Pair:
        """The pair (Q, P)."""
        return _DERIVED["reversed"](self)

    @property
    def is_symmetric(self) -> bool:
        """Whether (Q, P) is known to have the same curve."""
        return self.gaussian_mu is not None or self.laplace_loss is not None or self.reversed() == self

    def under(self, direction: str) -> Pair:
        """Of the pair under remove (zero-out) the pair under it, or under add (zero-in), its reverse."""
        return self if direction in {"remove", "zero-out"} else self.reversed()

    def subsampled(self, rate: float | Fraction) -> Pair:
        """The pair ((1 - rate) Q + rate P, Q): the record takes part with probability ``rate``."""
        return self if rate == 1 else _DERIVED["subsampled"](self, float(rate))

    def joined(self, rate: float | Fraction) -> Pair:
        """The pair of batches of fixed size under substitution, (P, Q) being that without sampling."""
        return self if rate == 1 else _DERIVED["joined"](self, float(rate))

    def __getstate__(self) -> dict[str, Any]:
        # what is kept of answers is made anew from the parameters, and may hold functions that no pickle can
        kept = {name for name in vars(self) if isinstance(getattr(type(self), name, None), cached_property)}
        return {name: value for name, value in vars(self).items() if name not in kept}


Parts = tuple[tuple[Pair, int], ...]  # of one direction: dominating pairs with their counts


def any_guarantee(parts: Iterable[tuple[Pair, int]]) -> bool:
    """Whether more is proved of some step by its moments than by its pair: the two sides then never meet."""
    return any(pair.moment_guarantee(np.array([2.0])) is not None for pair, _ in parts)


_DERIVED: dict[str, Callable[..., Pair]] = {}

_Law = TypeVar("_Law", bound=type[Pair])


def derives(name: str) -> Callable[[_Law], _Law]:
    """Declare a class of pairs to be what ``Pair.<name>`` makes: every law has one, and none need know its class."""

    def declared(law: _Law) -> _Law:
        _DERIVED[name] = law
        return law

    return declared
