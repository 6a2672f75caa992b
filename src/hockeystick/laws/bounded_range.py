"""The joined pair of all pairs whose losses lie in an interval of length eps: the exponential mechanism's worst curve.

Among the pairs with losses in ``[t - eps, t]`` the two points t - eps and t are the worst, ``delta_t(x) = (e^eps - e^t)
(1 - e^{x - t}) / (e^eps - 1)``. The largest over t, at ``t = (x + eps) / 2``, is

    delta(x) = (1 - e^{(x - eps)/2})^2 / (1 - e^{-eps}),    |x| <= eps,

a convex curve in e^x, hence that of a pair: the loss has the density ``e^{(x - eps)/2} / (2 (1 - e^{-eps}))`` on [-eps,
eps] under P, and under Q its mirror image. This is a Laplace pair between its two atoms. Proof:
docs/derivations/selection.md, section 1.

Guarantee: the pair dominates every pair of bounded range. Composed it is not attained: neighbours attain each
`two_outcomes`, and several steps have a curve of their own (`bounded_range_run`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np

from hockeystick.errors import check_fields, check_positive
from hockeystick.laws.atom_table import precise_log
from hockeystick.laws.base import Array, CellMasses, Extreme, Measure, Nodes, Pair, Parts
from hockeystick.laws.bounded_range_run import BoundedRangeRun
from hockeystick.laws.curve import ChordPair
from hockeystick.laws.extent import LaplaceLoss
from hockeystick.laws.laplace_rule import LaplaceSummand
from hockeystick.laws.vectors import DiscretePair
from hockeystick.numerics.gauss_legendre import gauss_legendre
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.summand import Summand

LEAST_RANGE, LARGEST_RANGE = 1e-150, 700.0
"""Between these, e^-epsilon and the widths of cells are normal float64."""

_INWARD = Fraction(1, 2**60)  # of a probability: what keeps the range of rounded outcomes below epsilon
_FAMILY, _MOST_APART = 64, 30.0
_ROOM = Fraction(1, 2**100)  # of epsilon: far more than what 70 digits leave open


@final
@dataclass(frozen=True)
class BoundedRangePair(Pair):
    """The worst curve of losses in any interval of length ``epsilon``.

    Parameters
    ----------
    epsilon : float
        The length (nats), above 1e-150, at most 700.

    Examples
    --------
    >>> BoundedRangePair(0.5).loss_bounds
    (-0.5, 0.5)
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_fields(self, epsilon=check_positive)
        if not LEAST_RANGE <= self.epsilon <= LARGEST_RANGE:
            raise ValueError(f"epsilon must be from {LEAST_RANGE:g} to {LARGEST_RANGE:g}, got {self.epsilon!r}")

    @property
    def infimum(self) -> Extreme:
        return Extreme(-self.epsilon)

    @property
    def supremum(self) -> Extreme:
        return Extreme(self.epsilon)

    @property
    def laplace_loss(self) -> LaplaceLoss:
        return LaplaceLoss(Fraction(self.epsilon), has_atoms=False)

    @property
    def anchors(self) -> tuple[float, ...]:
        return self.epsilon, -self.epsilon

    def cells(self, losses: Array) -> CellMasses:
        end = self.epsilon
        edges = np.concatenate(([-end], np.clip(losses, -end, end), [end]))
        left, right = edges[:-1], edges[1:]
        with np.errstate(divide="ignore"):
            log_share = np.log(-np.expm1(-0.5 * (right - left)))
        log_all = math.log(-math.expm1(-end))
        log_p = log_share - 0.5 * (end - right) - log_all
        log_q = log_share - 0.5 * (left + end) - log_all
        # expm1 and the width are relative to the share; the logarithms and the sums to the largest term of each
        size = np.where(left < right, np.abs(log_share), 0.0) + abs(log_all) + end
        error = np.where(left < right, 2.0 * ELEMENTARY * (4.0 + size), 0.0)
        return CellMasses(log_p, log_q, error, error, np.zeros(losses.size))

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        return self.loss_bounds

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        end = self.epsilon
        panels = max(1, math.ceil(end / 2.0)) * refine
        x, w = gauss_legendre()
        half = end / panels
        loss = (half * (2.0 * np.arange(panels)[:, None] + 1.0 - panels + x)).ravel()
        log_w = np.log(np.tile(0.5 * half * w, panels)) - math.log(-math.expm1(-end))
        return Nodes(loss, log_w - 0.5 * (end - loss), log_w - 0.5 * (loss + end))

    def summand(self) -> Summand:
        return LaplaceSummand(self.epsilon, "between the atoms")

    def composed(self, count: int) -> Parts:
        """Runs of about the same length."""
        most = BoundedRangeRun.longest(self.epsilon)
        if min(count, most) <= 1:
            return ((self, count),)
        runs = -(-count // most)
        steps, longer = divmod(count, runs)
        lengths = (steps, runs - longer), (steps + 1, longer)
        return tuple((ChordPair(BoundedRangeRun(self.epsilon, own)), times) for own, times in lengths if times)

    def attains_together(self, count: int) -> bool:
        ((pair, times), *others) = self.composed(count)
        return times == 1 and not others and pair != self

    def moment_guarantee(self, orders: Array) -> Array:
        """The largest K over t, or Hoeffding's bound ``theta (1 + theta) eps^2 / 8``, whichever rounds smaller."""
        end, theta = self.epsilon, orders - 1.0
        hoeffding = 0.125 * end * end * theta * orders * (1.0 + 8.0 * U)
        log_all = end + math.log(-math.expm1(-end))
        log_wide, log_narrow = end + np.log(-np.expm1(-orders * end)), np.log(-np.expm1(-theta * end))
        terms = np.array([-theta * np.log1p(1.0 / theta), -np.log1p(theta), orders * log_wide, -theta * log_narrow])
        # the largest t is e^t = theta A / ((1 + theta) B); every term a few roundings off, those of the logarithms
        # relative to them, those within them to the factor in front
        size = np.abs(terms).sum(axis=0) + abs(log_all) + (1.0 + end) * orders
        return np.asarray(np.minimum(hoeffding, terms.sum(axis=0) - log_all + 8.0 * ELEMENTARY * size))

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        loss = self.epsilon + 2.0 * np.log1p(rng.random(size) * math.expm1(-self.epsilon))
        return np.clip(loss if measure == "P" else -loss, -self.epsilon, self.epsilon)

    def reversed(self) -> Pair:
        return self  # mirror the line


@lru_cache(maxsize=1024)
def two_outcomes(epsilon: float, largest: float) -> DiscretePair:
    """Two outcomes with losses next to ``largest`` and ``largest - epsilon``, and no further apart than epsilon.

    The probabilities are floats near ``p = (e^eps - e^t) / (e^eps - 1)``, ``q = p e^-t``, then moved towards each other
    until the range, in 70 digits, is at most epsilon.

    Parameters
    ----------
    epsilon : float
        Range (nats).
    largest : float
        t, above 0 and below epsilon.

    Examples
    --------
    >>> from hockeystick.numerics.rationals import log_ratio
    >>> low, high = two_outcomes(1.0, 0.5).loss_bounds
    >>> 0.0 <= 1.0 - (high - low) < 1e-15
    True
    """
    # p = (1 - e^{t - eps}) / (1 - e^{-eps}) without cancellation
    p = Fraction(math.expm1(largest - epsilon) / math.expm1(-epsilon))
    q = Fraction(float(p) * math.exp(-largest))
    inward, most = _INWARD, Fraction(epsilon) * (1 - _ROOM)
    while precise_log(p * (1 - q) / ((1 - p) * q)) > most:
        p, q = p * (1 - inward), q * (1 + inward)
        inward *= 2
    return DiscretePair((p, 1 - p), (q, 1 - q))


def two_outcomes_family(epsilon: float) -> tuple[DiscretePair, ...]:
    """`two_outcomes` of ever larger t, at least three; where epsilon is large, only t that leave room for both."""
    widest = min(epsilon, _MOST_APART)
    steps = [widest * (k / _FAMILY) for k in range(1, _FAMILY)]
    largest = [epsilon - t for t in reversed(steps)] if epsilon > widest else steps
    return tuple(two_outcomes(epsilon, t) for t in largest)
