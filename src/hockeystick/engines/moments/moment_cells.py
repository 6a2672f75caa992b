"""Certified ``K(theta)`` and absolute third moments from the tails window alone, for any pair.

A cell ``(l0, l1]`` with masses p and q determines the mean of ``e^{-L}`` in it, and ``e^{theta L}`` is a convex
function of ``e^{-L}``: its expectation lies between Jensen's bound ``p (p/q)^theta`` and the chord's ``u e^{theta l0}
+ v e^{theta l1}`` with ``u + v = p``, ``u e^{-l0} + v e^{-l1} = q``. They differ by a relative ``theta (1 + theta)
w^2 / 12`` for cells of width w.

Guarantee: both sides certified, the errors of the masses and the slack of the cuts inside. The upper bound of K is
infinite for a pair with unbounded losses; a class of pairs that has a better rule has it in
`hockeystick.engines.moments.moment_bounds`. Cost: the tails at some 2^15 cuts, once a pair, and two exponentials a cut
and tilt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.laws.base import Array, CellMasses, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

__all__ = ["LossCells", "absolute_third_upper"]

_CUTS = 1 << 15
_OVERFLOW = 700.0  # e^700 is finite


@final
@dataclass(frozen=True, eq=False)
class LossCells:
    """A pair cut into cells fine enough for tilts of moderate size.

    Attributes
    ----------
    losses : ndarray, shape (m,)
        The cuts (nats).
    cells : CellMasses
        Shape (m + 1,).
    """

    losses: Array
    cells: CellMasses

    @classmethod
    def of(cls, pair: Pair) -> LossCells:
        """Equal cells over the range of the losses, wide ones at the ends where that is unbounded."""
        low, high = pair.loss_bounds
        near_low, near_high = pair.loss_range(-700.0, -700.0)
        low, high = max(low, near_low), min(high, near_high)
        margin = 4e-14 * (1.0 + max(abs(low), abs(high)))  # a guide: mass beyond the last cut makes the bound infinite
        losses = np.unique(np.linspace(low - margin, high + margin, _CUTS))
        return cls(losses, pair.cells(losses))

    def log_moments(self, tilts: Array) -> tuple[Array, Array]:
        """Certified lower and upper bounds of K at tilts of at least 0, shape (k,) each."""
        bounds = [self._log_moment(float(theta)) for theta in tilts]
        return np.array([low for low, _ in bounds]), np.array([high for _, high in bounds])

    def _log_moment(self, theta: float) -> tuple[float, float]:
        cells = self.cells
        both = np.isfinite(cells.log_p) & np.isfinite(cells.log_q)
        log_p, log_q = cells.log_p[both], cells.log_q[both]
        size = np.abs(log_p) + np.abs(log_q)
        error = (
            (1.0 + theta) * cells.error_p[both] + theta * cells.error_q[both] + 8.0 * U * (1.0 + theta) * (1.0 + size)
        )
        jensen = (1.0 + theta) * log_p - theta * log_q - error
        return _log_sum(jensen, -1.0), _log_sum(self._chords(theta), 1.0)

    def _chords(self, theta: float) -> Array:
        """``ln`` of the upper bounds of all cells."""
        cells, losses, slack = self.cells, self.losses, self.cells.slack
        log_p = cells.log_p + cells.error_p
        top = losses + slack
        result = np.full(log_p.size, -math.inf)
        result[0] = log_p[0] + theta * top[0]  # below the cuts: up to the first
        result[-1] = math.inf if log_p[-1] > -math.inf else -math.inf
        present = np.isfinite(log_p[1:-1])
        p, q = log_p[1:-1][present], cells.log_q[1:-1][present]
        q_error = cells.error_q[1:-1][present] + cells.error_p[1:-1][present] * 2.0
        base = (losses[:-1] - slack[:-1])[present]
        width = top[1:][present] - base
        width = width + 4.0 * U * (np.abs(base) + width)
        rise = p - q + q_error + 4.0 * U * (np.abs(p) + np.abs(q) + np.abs(base)) - base
        rise = np.clip(rise, 0.0, width)  # mean loss of the cell, rounded up
        share = np.minimum(np.expm1(-rise) / np.expm1(-width) * (1.0 + 4.0 * ELEMENTARY), 1.0)
        grown = np.log1p(share * np.expm1(np.minimum(theta * width, 700.0)))  # (1 - share) + share e^{theta w}
        grown = np.where(theta * width < 700.0, grown, theta * width)
        exponent = p + theta * base + grown
        rounding = 8.0 * U * (np.abs(p) + theta * np.abs(base) + grown + 1.0) + 4.0 * ELEMENTARY * (1.0 + grown)
        result[1:-1][present] = exponent + rounding
        return result


def _log_sum(logs: Array, sign: float) -> float:
    """``ln sum exp(logs)``, its own rounding added with this sign."""
    peak = float(logs.max(initial=-math.inf))
    if math.isinf(peak):
        return peak
    gap = logs[logs > -math.inf] - peak
    total = math.fsum(np.exp(gap))
    # each exponential errs by its own rounding and that of its exponent, where it matters
    relative = 2.0 * ELEMENTARY + U * (2.0 + math.fsum(np.exp(gap) * -gap) / total) * 1.01
    value = peak + math.log(total)
    return value + sign * (relative + 4.0 * U * (abs(peak) + abs(value)))


def absolute_third_upper(pair: Pair, theta: float, centre: float, *, losses: Array, log_moment: float) -> float:
    """Upper bound on ``E~|L - centre|^3`` under the tilt, but for the losses above the last cut.

    Parameters
    ----------
    pair : Pair
        The pair.
    theta, centre : float
        The tilt, and the number (nats) from which the distances are taken.
    losses : ndarray, shape (m,)
        Increasing cuts (nats): the finer, the sharper.
    log_moment : float
        A lower bound of K(theta).
    """
    cells = pair.cells(losses)
    low = np.concatenate(([losses[0] - cells.slack[0]], losses[:-1] - cells.slack[:-1]))
    high = losses + cells.slack
    log_p = (cells.log_p + cells.error_p)[:-1]
    exponent = log_p + theta * high - log_moment
    exponent = exponent + 8.0 * U * (
        np.abs(np.where(np.isfinite(log_p), log_p, 0.0)) + theta * np.abs(high) + abs(log_moment)
    )
    if float(exponent.max()) > _OVERFLOW:
        return math.inf
    distance = np.maximum(np.abs(low - centre), np.abs(high - centre)) * (1.0 + 4.0 * U)
    distance[0] = max(abs(float(high[0]) - centre), 0.0)
    inner = float(np.exp(exponent) @ distance**3)
    return (inner + _below(float(exponent[0]), theta, float(distance[0]))) * (1.0 + 1e-9)


def _below(log_mass: float, theta: float, distance: float) -> float:
    """What losses below the first cut add to their cell: ``mass sup_y e^{-theta y} (d + y)^3 - d^3``, y the depth."""
    if log_mass == -math.inf:
        return 0.0
    if theta <= 0.0:
        return math.inf
    # e^{-theta y} (d + y)^3 is largest where d + y = 3 / theta, or at y = 0
    peak = max(3.0 / theta, distance)
    return math.exp(log_mass) * (math.exp(-theta * (peak - distance)) * peak**3 - distance**3 + 8.0 * U * peak**3)
