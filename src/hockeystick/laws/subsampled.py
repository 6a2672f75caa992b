"""The Poisson-subsampled pair ((1 - g) Q + g P, Q) of any base pair (P, Q), g the sampling rate.

Its loss is ``l' = ln(1 - g + g e^l)``, increasing in the base's loss l, so every window is the base's window with
the losses mapped and the masses mixed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.errors import check_rate
from hockeystick.laws.base import Array, CellMasses, Measure, Nodes, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U, up

__all__ = ["SubsampledPair"]


@final
@dataclass(frozen=True)
class SubsampledPair(Pair):
    """((1 - rate) Q + rate P, Q) for a base pair (P, Q).

    Parameters
    ----------
    base : Pair
        The pair (P, Q): with and without the record.
    rate : float
        Probability that the record takes part, in (0, 1].

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> low, high = SubsampledPair(GaussianPair(1.0), 0.5).loss_bounds
    >>> round(low, 6), high
    (-0.693147, inf)
    """

    base: Pair
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check_rate("rate", self.rate))

    @property
    def loss_bounds(self) -> tuple[float, float]:
        low, high = self.sampled_losses(np.array([self._lowest(self.base.loss_bounds[0]), self.base.loss_bounds[1]]))
        return float(low), float(high)

    def _lowest(self, low: float) -> float:
        """The lowest base loss: ``-inf`` where Q has mass that P has not, which the mixture sees at ln(1 - g)."""
        return -math.inf if self.base.reverse_mass_at_infinity > 0.0 and self.rate < 1.0 else low

    @property
    def is_discrete(self) -> bool:
        return self.base.is_discrete

    @property
    def anchors(self) -> tuple[float, ...]:
        anchors = tuple(float(loss) for loss in self.sampled_losses(np.array(self.base.anchors)))
        return anchors or ((math.log1p(-self.rate),) if self.rate < 1.0 else ())  # where a rare record leaves the loss

    @property
    def mass_at_infinity(self) -> float:
        mass = self.base.mass_at_infinity
        return 0.0 if mass == 0.0 else up(self.rate * mass, 4.0 * U)

    @property
    def reverse_mass_at_infinity(self) -> float:
        # where P has no mass the mixture still has (1 - rate) of Q's, unless the rate is one
        return self.base.reverse_mass_at_infinity if self.rate == 1.0 else 0.0

    def sampled_losses(self, loss: Array) -> Array:
        """ln(1 - g + g e^loss), for any loss, without overflow or cancellation."""
        g = self.rate
        if g == 1.0:
            return np.asarray(loss)
        with np.errstate(over="ignore", divide="ignore"):
            small = np.log1p(g * np.expm1(np.minimum(loss, 30.0)))
            large = loss + math.log(g) + np.log1p((1.0 - g) / g * np.exp(-np.maximum(loss, 30.0)))
        return np.where(loss <= 30.0, small, large)

    def _unmixed(self, loss: Array) -> Array:
        """The base loss that maps to ``loss``; ``-inf`` at and below the smallest loss."""
        g = self.rate
        if g == 1.0:
            return np.asarray(loss)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            small = np.log1p(np.maximum(np.expm1(np.minimum(loss, 30.0)) / g, -1.0))
            large = loss - math.log(g) + np.log1p(-(1.0 - g) * np.exp(-np.maximum(loss, 30.0)))
        return np.where(loss <= 30.0, small, large)

    def cells(self, losses: Array) -> CellMasses:
        if self.rate == 1.0:
            return self.base.cells(losses)
        g = self.rate
        cuts = self._unmixed(losses)
        inside = np.isfinite(cuts)
        base = self.base.cells(cuts[inside])
        slack = self._slack(losses, cuts, inside, base.slack)
        with np.errstate(divide="ignore"):
            log_rest = math.log1p(-g) if g < 1.0 else -math.inf
        log_p = np.logaddexp(log_rest + base.log_q, math.log(g) + base.log_p)
        size = np.maximum(np.where(np.isfinite(log_p), np.abs(log_p), 0.0), -math.log(g))
        error_p = np.maximum(base.error_p, base.error_q) + 3.0 * ELEMENTARY + 4.0 * U * (1.0 + size)
        # Q's mass where P has none: at base loss -inf, which the mixture sees at ln(1 - g)
        log_q, error_q, log_p, error_p = self._with_bottom(base.log_q, base.error_q, log_p, error_p)
        missing = int(losses.size - np.count_nonzero(inside))
        return CellMasses(
            _padded(log_p, missing, -math.inf),
            _padded(log_q, missing, -math.inf),
            _padded(error_p, missing, 0.0),
            _padded(error_q, missing, 0.0),
            slack,
        )

    def _with_bottom(self, log_q: Array, error_q: Array, log_p: Array, error_p: Array) -> tuple[Array, ...]:
        """Put the mass of Q at base loss -inf into the lowest cell, for both measures."""
        mass = self.base.reverse_mass_at_infinity
        if mass == 0.0 or self.rate == 1.0:
            return log_q, error_q, log_p, error_p
        log_q, log_p, error_q, error_p = log_q.copy(), log_p.copy(), error_q.copy(), error_p.copy()
        log_q[0] = np.logaddexp(log_q[0], math.log(mass))
        log_p[0] = np.logaddexp(log_p[0], math.log(mass) + math.log1p(-self.rate))
        rounding = 3.0 * ELEMENTARY + 8.0 * U * (1.0 + abs(math.log(mass)))
        error_q[0] += rounding
        error_p[0] += rounding
        return log_q, error_q, log_p, error_p

    def _slack(
        self, losses: Array, cuts: Array, inside: np.ndarray[tuple[int], np.dtype[np.bool_]], base: Array
    ) -> Array:
        """How far the mapped cuts lie from those asked for: the map's own rounding and the base's slack."""
        g = self.rate
        slack = 4.0 * U * (np.abs(losses) + g / max(1.0 - g, U))  # the decision that a cut lies below all losses
        forward = self.sampled_losses(cuts[inside])
        moved = g * np.expm1(np.minimum(cuts[inside], 30.0))
        slope = np.where(cuts[inside] <= 30.0, (moved + g) / (1.0 + moved), 1.0)  # d l' / d l <= 1
        rounding = (
            4.0 * U * (np.abs(forward) + np.minimum(np.abs(moved), 1.0) / np.maximum(1.0 + np.minimum(moved, 0.0), U))
        )
        rounding = rounding + np.where(cuts[inside] > 30.0, 4.0 * U * (np.abs(cuts[inside]) - math.log(g)), 0.0)
        slack[inside] = np.abs(forward - losses[inside]) + 2.0 * rounding + 1.01 * slope * base
        return slack

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        g = self.rate
        low_q, high_q = self.base.loss_range(log_below, log_above, "Q")
        low, high = low_q, high_q
        if measure == "P":
            # P' = (1-g) Q + g P: its upper tail is the larger of Q's and g times P's
            _, high_p = self.base.loss_range(log_below, min(log_above - math.log(g), -1e-3), "P")
            high = max(high_q, high_p)
        low_mapped, high_mapped = self.sampled_losses(np.array([self._lowest(low), high]))
        return float(low_mapped), float(high_mapped)

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        g = self.rate
        base = self.base.nodes(log_tail, refine=refine)
        log_rest = math.log1p(-g) if g < 1.0 else -math.inf
        loss, log_q = self.sampled_losses(base.loss), base.log_q
        log_p = np.logaddexp(log_rest + base.log_q, math.log(g) + base.log_p)
        mass = self.base.reverse_mass_at_infinity
        if mass > 0.0 and g < 1.0:
            loss = np.append(loss, math.log1p(-g))
            log_q = np.append(log_q, math.log(mass))
            log_p = np.append(log_p, math.log(mass) + math.log1p(-g))
        finite = np.isfinite(loss)
        return Nodes(loss[finite], log_p[finite], log_q[finite])

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        loss = self.base.sample(rng, size, "Q")
        if measure == "P":
            takes_part = rng.random(size) < self.rate
            loss[takes_part] = self.base.sample(rng, int(np.count_nonzero(takes_part)), "P")
        return self.sampled_losses(loss)


def _padded(values: Array, missing: int, fill: float) -> Array:
    """``values`` with ``missing`` empty cells in front: cuts below every loss."""
    return np.concatenate((np.full(missing, fill), values)) if missing else values
