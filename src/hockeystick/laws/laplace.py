"""The Laplace pair: P = Lap(D, b), Q = Lap(0, b), with sensitivity D and scale b.

In units of b, y = x / b and m = D / b: L(y) = |y| - |y - m|, which is -m for y <= 0, m for y >= m and
2y - m between: two atoms and a density.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from hockeystick.errors import check_fields, check_positive, check_ratio
from hockeystick.laws.base import Array, CellMasses, Extreme, Measure, Nodes, Pair
from hockeystick.laws.extent import LaplaceLoss
from hockeystick.laws.laplace_rule import LaplaceSummand
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.summand import Summand

_LOG_2 = math.log(2.0)


@final
@dataclass(frozen=True)
class LaplacePair(Pair):
    """P = Lap(sensitivity, scale) against Q = Lap(0, scale).

    Parameters
    ----------
    scale : float
        Scale b of the noise (its density is e^{-|x|/b} / 2b), above 0.
    sensitivity : float
        Distance of the two centres, above 0.

    Examples
    --------
    >>> LaplacePair(2.0).loss_bounds
    (-0.5, 0.5)
    """

    scale: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self, scale=check_positive, sensitivity=check_positive)
        check_ratio(self.sensitivity, self.scale)

    @property
    def shift(self) -> float:
        """m = sensitivity / scale, rounded once."""
        return self.sensitivity / self.scale

    @property
    def infimum(self) -> Extreme:
        return -self.supremum

    @property
    def supremum(self) -> Extreme:
        return Extreme(self.shift, 2.0 * U * self.shift)

    @property
    def laplace_loss(self) -> LaplaceLoss:
        return LaplaceLoss(Fraction(self.sensitivity) / Fraction(self.scale), has_atoms=True)

    @property
    def anchors(self) -> tuple[float, ...]:
        return self.shift, -self.shift

    def cells(self, losses: Array) -> CellMasses:
        y, slack = self._places(losses)
        return self._masses(np.append(-math.inf, y), np.append(y, math.inf), slack)

    def tails(self, cuts: Array, *, upper: bool = True) -> CellMasses:
        y, slack = self._places(cuts)
        end = np.full(y.size, math.inf if upper else -math.inf)
        return self._masses(y, end, slack) if upper else self._masses(end, y, slack)

    def _places(self, losses: Array) -> tuple[Array, Array]:
        """Where the losses are taken, and how far the losses there may lie from those asked for."""
        m = self.shift
        # A cut at or above the largest loss has every point below it, and so on; at the ends the decision is
        # made with m, which is one rounding off.
        inside = (losses >= -m) & (losses < m)
        y = np.where(losses < -m, -math.inf, np.where(inside, 0.5 * (losses + m), math.inf))
        forward = np.where(inside, 2.0 * y - m, losses)
        return y, np.abs(forward - losses) + 4.0 * U * m

    def _masses(self, left: Array, right: Array, slack: Array) -> CellMasses:
        log_q, error_q = _laplace_intervals(left, right, 0.0)
        log_p, error_p = _laplace_intervals(left, right, self.shift)
        return CellMasses(log_p, log_q, error_p, error_q, slack)

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        return self.loss_bounds

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        m = self.shift
        panels = max(1, math.ceil(m / 4.0)) * refine
        x, w = np.polynomial.legendre.leggauss(32)
        ends = np.arange(float(min(math.ceil(-log_tail * panels / m) + 1, panels)))
        places = np.union1d(ends, float(panels - 1) - ends) * (m / panels)
        starts = places[np.minimum(places, m - places - m / panels) <= -log_tail]  # between these neither has mass
        y = (starts[:, None] + 0.5 * (m / panels) * (x + 1.0)).ravel()
        log_w = np.log(np.tile(0.5 * (m / panels) * w, starts.size)) - _LOG_2
        loss = np.concatenate(([-m], 2.0 * y - m, [m]))
        log_p = np.concatenate(([-m - _LOG_2], log_w - (m - y), [-_LOG_2]))
        return Nodes(loss, log_p, np.concatenate(([-_LOG_2], log_w - y, [-m - _LOG_2])))

    def summand(self) -> Summand:
        return LaplaceSummand(self.shift)

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        y = rng.laplace(self.shift if measure == "P" else 0.0, 1.0, size)
        return np.abs(y) - np.abs(y - self.shift)


def _laplace_intervals(left: Array, right: Array, centre: float) -> tuple[Array, Array]:
    """``ln`` masses of intervals under Lap(centre, 1), by their ends, and bounds on their absolute errors.

    ``centre`` is one rounding away from the true centre; the ends are exact.
    """
    empty = left == right
    with np.errstate(invalid="ignore"):
        a, b = np.where(empty, 0.0, left - centre), np.where(empty, 0.0, right - centre)
        width = np.where(empty, 0.0, right - left)  # exact but for one rounding, whatever the centre
    straddling = (a < 0.0) & (b > 0.0)
    near = np.where(straddling, 0.0, np.minimum(np.abs(a), np.abs(b)))
    with np.errstate(divide="ignore"):
        one_sided = np.log(-np.expm1(-width)) - near
        two_sided = np.log(-np.expm1(np.where(straddling, a, -1.0)) - np.expm1(np.where(straddling, -b, -1.0)))
    log_mass = np.where(straddling, two_sided, one_sided) - _LOG_2
    log_mass[empty] = -math.inf
    # a shift of the centre by s changes every mass by a factor within e^{+-s}
    size = np.where(np.isfinite(log_mass), np.abs(log_mass), 0.0)
    error = 3.0 * ELEMENTARY + U * (6.0 + 4.0 * abs(centre) + 4.0 * near + 4.0 * size)
    return log_mass, np.where(empty, 0.0, error)
