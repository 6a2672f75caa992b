"""The Gaussian pair: P = N(D, s^2), Q = N(0, s^2), with sensitivity D and standard deviation s.

In units of s, y = x / s and m = D / s: Q = N(0, 1), P = N(m, 1) and L(y) = m y - m^2 / 2, increasing.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import LEAST_RATIO, check_fields, check_positive, check_ratio
from hockeystick.laws.base import Array, CellMasses, Extreme, GaussianTail, Measure, Nodes, Pair
from hockeystick.laws.gaussian_summand import GaussianSummand
from hockeystick.numerics.normal import LOG_SQRT_2PI, normal_masses
from hockeystick.numerics.rounding import U, down, up
from hockeystick.transforms.summand import Summand

_FARTHEST = sys.float_info.max  # standard deviations at which a cut is seen
_MOST_NODES = 1 << 15  # where the noise is so small that nodes as dense as wanted would be far more


@final
@dataclass(frozen=True)
class GaussianPair(Pair):
    """P = N(sensitivity, sigma^2) against Q = N(0, sigma^2).

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, above 0.
    sensitivity : float
        Distance of the two means, above 0.

    Examples
    --------
    >>> GaussianPair(1.0).loss_range(-50.0, -50.0)
    (-9.5, 10.5)
    """

    sigma: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self, sigma=check_positive, sensitivity=check_positive)
        check_ratio(self.sensitivity, self.sigma)

    @property
    def shift(self) -> float:
        """m = sensitivity / sigma, rounded once."""
        return self.sensitivity / self.sigma

    infimum = Extreme(-math.inf)
    supremum = Extreme(math.inf)

    @cached_property
    def gaussian_mu(self) -> Fraction:
        return Fraction(self.sensitivity) / Fraction(self.sigma)

    @property
    def gaussian_tail(self) -> GaussianTail:
        return GaussianTail(up(self.shift, 2.0 * U), 0.0, attained=True, gaussian=True)

    def cells(self, losses: Array) -> CellMasses:
        return GaussianTails(np.array([self.shift])).cells(losses)

    def tails(self, cuts: Array, *, upper: bool = True) -> CellMasses:
        return GaussianTails(np.array([self.shift])).tails(cuts, upper=upper)

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        low, high = self.loss_ranges(np.array([log_below]), np.array([log_above]), measure)
        return low.item(), high.item()

    def loss_ranges(self, log_below: Array, log_above: Array, measure: Measure = "P") -> tuple[Array, Array]:
        m = self.shift
        mean = 0.5 * m * m if measure == "P" else -0.5 * m * m
        below, above = (np.sqrt(-2.0 * np.minimum(logs, -1e-3)) for logs in (log_below, log_above))
        return mean - m * below, mean + m * above

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        m = self.shift
        reach = math.sqrt(-2.0 * min(log_tail, -1.0))
        step = min(0.4, 0.55 / m) / refine  # also resolves the subsampled density, analytic for |Im y| < pi / m
        if m > 2.0 * reach:  # between the two there is no mass
            step = max(step, 4.0 * reach / _MOST_NODES)
            near = np.arange(-reach, reach + step, step)
            y = np.concatenate((near, near + m))
        else:
            y = np.arange(-reach, m + reach + step, step)
        scale = math.log(step) - LOG_SQRT_2PI
        return Nodes(m * y - 0.5 * m * m, scale - 0.5 * (y - m) ** 2, scale - 0.5 * y * y)

    def summand(self) -> Summand:
        return GaussianSummand(self.shift)

    def repeated(self, count: int) -> tuple[Pair, Pair]:
        # project on the direction of the means: noise smaller by the root of the count
        sigma = self.sigma / math.sqrt(count)
        return GaussianPair(up(sigma, 4.0 * U), self.sensitivity), GaussianPair(down(sigma, 4.0 * U), self.sensitivity)

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        m = self.shift
        return m * rng.standard_normal(size) + (0.5 * m * m if measure == "P" else -0.5 * m * m)


@final
@dataclass(frozen=True, eq=False)
class GaussianTails:
    """What lies above cuts under Gaussian pairs, each cut under a pair of its own, or all under one.

    Attributes
    ----------
    shift : ndarray, shape (n,) or (1,)
        m of each cut's pair, rounded once.
    """

    shift: Array

    curve = None
    mass_at_infinity = 0.0
    loss_bounds = (-math.inf, math.inf)

    def cells(self, losses: Array) -> CellMasses:
        """The masses between losses, of one pair."""
        y, slack = self._places(losses)
        return self._masses(np.append(-math.inf, y), np.append(y, math.inf), slack)

    def tails(self, cuts: Array, *, upper: bool = True) -> CellMasses:
        """The masses above each cut, or below it."""
        y, slack = self._places(cuts)
        end = np.full(y.size, math.inf if upper else -math.inf)
        return self._masses(y, end, slack) if upper else self._masses(end, y, slack)

    def _places(self, losses: Array) -> tuple[Array, Array]:
        """Where the losses are taken, and how far the losses there may lie from those asked for."""
        m = self.shift
        with np.errstate(over="ignore"):  # to an infinity, next to which the farthest float cuts as well
            y = np.clip((losses + 0.5 * m * m) / m, -_FARTHEST, _FARTHEST)
        slope, offset = m * y, 0.5 * m * m
        return y, np.abs((slope - offset) - losses) + 4.0 * U * (np.abs(slope) + offset)

    def _masses(self, left: Array, right: Array, slack: Array) -> CellMasses:
        centres = np.stack((self.shift, np.zeros_like(self.shift)))
        both = normal_masses(left, right, centres, U * centres)
        log_p, log_q = both.log_mass
        error_p, error_q = both.error
        return CellMasses(log_p, log_q, error_p, error_q, slack)


def shown_by_gaussian(mu: float) -> tuple[Pair, ...]:
    """The pair of two unit normals at distance mu, as what datasets show; none where mu is too small for a pair."""
    return (GaussianPair(1.0, mu),) if mu >= LEAST_RATIO else ()
