"""Upper bound on the absolute third moment of a tilted loss, from its cells.

Over a cell ``|L - c|^3 e^{theta L}`` is at most what it is at the cell's ends. Losses below the first cut add ``mass
sup_y e^{-theta y} (d + y)^3``; those beyond the last at most what Chernoff's bound at a larger tilt allows
(`docs/derivations/saddle-point.md`).

Guarantee: upper, the errors of the masses and the slack of the cuts inside. Cost: the tails at a few thousand cuts.
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.engines.moments.cumulants import CumulantWindow, covering_losses
from hockeystick.engines.moments.log_moment import log_moment_bounds
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import U
from hockeystick.transforms.saddle import round_tilt

_CELLS_A_NODE = 64
_HIGHEST = 600.0  # exponent of a cell, whose mass and moment float64 then holds


def absolute_third_upper(pair: Pair, theta: float, centre: float, log_moment: float) -> float:
    """Upper bound on ``E~|L - centre|^3`` under the tilt, from a lower bound of K(theta)."""
    losses = _cuts(pair, theta)
    inner = _inside(pair, theta, centre, losses=losses, log_moment=log_moment)
    if math.isfinite(pair.loss_bounds[1]):
        return inner  # no loss lies beyond the last cut
    # beyond it e^{theta L} (L - c)^3 is at most its largest ratio to e^{(theta + eta) L} there
    last = float(losses[-1])
    distance = max(last - centre, 0.0)
    # where the larger tilt has its mean at the last cut, Chernoff's bound is best
    at_last = CumulantWindow([(pair, 1)]).tilt_where(lambda c: c.mean - last)
    larger = round_tilt(max(at_last, theta + max(1.0 / max(distance, 1e-300), theta * 2.0**-18)))
    eta = larger - theta
    peak = max(3.0 / eta, distance)
    log_larger = float(log_moment_bounds([(pair, 1)], np.array([1.0 + larger])).upper[0])
    exponent = log_larger - log_moment - eta * (last + peak - distance)
    rounding = 8.0 * U * (abs(log_larger) + abs(log_moment) + eta * (abs(last) + peak))
    rest = math.exp(min(exponent + rounding, _HIGHEST)) * peak**3 if math.isfinite(log_larger) else math.inf
    return inner + rest * (1.0 + 1e-12)


def _cuts(pair: Pair, theta: float) -> Array:
    """Increasing cuts (nats): dense where the tilted loss has its mass, and on both sides of each atom."""
    atoms = pair.atoms  # all of them: the loss of one left out would count as the largest
    losses = covering_losses(pair, theta, refine=_CELLS_A_NODE) if atoms is None or not atoms.size else atoms.loss
    margin = 1e-13 * (1.0 + float(np.abs(losses).max()))
    largest = pair.loss_bounds[1]
    top = [losses[-1] + margin] + ([largest + margin] if math.isfinite(largest) else [])
    inner = np.concatenate((losses - margin, losses + margin)) if pair.is_discrete else losses
    return np.unique(np.concatenate(([losses[0] - margin], inner, top)))


def _inside(pair: Pair, theta: float, centre: float, *, losses: Array, log_moment: float) -> float:
    """The bound, but for the losses above the last cut."""
    cells = pair.cells(losses)
    low = np.concatenate(([losses[0] - cells.slack[0]], losses[:-1] - cells.slack[:-1]))
    high = losses + cells.slack
    log_p = (cells.log_p + cells.error_p)[:-1]
    exponent = log_p + theta * high - log_moment
    exponent = exponent + 8.0 * U * (
        np.abs(np.where(np.isfinite(log_p), log_p, 0.0)) + theta * np.abs(high) + abs(log_moment)
    )
    if not float(exponent.max()) < _HIGHEST:  # of large tilts rounding leaves nothing
        return math.inf
    distance = np.maximum(np.abs(low - centre), np.abs(high - centre)) * (1.0 + 4.0 * U)
    distance[0] = max(abs(float(high[0]) - centre), 0.0)
    inner = float(np.exp(exponent) @ distance**3)
    return (inner + _below(float(exponent[0]), theta, float(distance[0]))) * (1.0 + 1e-9)


def _below(log_mass: float, theta: float, distance: float) -> float:
    """What losses below the first cut add to their cell: ``mass sup_y e^{-theta y} (d + y)^3 - d^3``, y the depth."""
    if log_mass == -math.inf:
        return 0.0
    # e^{-theta y} (d + y)^3 is largest where d + y = 3 / theta, or at y = 0
    peak = max(3.0 / theta, distance)
    return math.exp(log_mass) * (math.exp(-theta * (peak - distance)) * peak**3 - distance**3 + 8.0 * U * peak**3)
