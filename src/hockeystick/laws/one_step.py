"""A single step: its hockey-stick curve from the tails window, with no lattice.

``delta(eps) = P(L > eps) - e^eps Q(L > eps)``. For any set S of outcomes ``P(S) - e^eps Q(S) <= delta(eps)``: a cut
that is off does no harm to the lower side. For the upper side let S be what a cut asked for at ``c <= eps - s``
leaves above it, s the slack *of that cut*. S holds every loss above eps and none below c - s, hence

    delta(eps) = int_S (dP - e^eps dQ)+ <= int_S (dP - e^{c - s} dQ)+ = P(S) - e^{c - s} Q(S).

The same S serves the lower side: what it holds between c - s and eps costs the square of that distance, or a
rounding of a kink's mass.

Guarantee: both sides certified. Cost: one or two evaluations of the tails.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from hockeystick.laws.base import CellMasses, CertifiedCurve, Pair, least_infinite
from hockeystick.numerics.columns import Array, Flags
from hockeystick.numerics.rounding import ELEMENTARY, U, downs, exp_up, exps_down, exps_up, ups

_TRIALS = 50  # each at least doubles the way back
_UNKNOWN = 600.0  # nats that a mass is off by: beyond, nothing is known of it
_BACK = 48.0  # roundings of epsilon: the slack of a sampled cut is mostly at most 36


class Tailed(Protocol):
    """What one step is read off: a pair, or several, each at cuts of its own (see `Pair`)."""

    @property
    def curve(self) -> CertifiedCurve | None:
        """The curve, where it is known by bounds on it."""

    @property
    def mass_at_infinity(self) -> float:
        """P(L = +inf), rounded up."""

    @property
    def loss_bounds(self) -> tuple[float, float]:
        """The smallest and the largest finite loss."""

    def cells(self, losses: Array) -> CellMasses:
        """The masses between losses."""

    def tails(self, cuts: Array) -> CellMasses | None:
        """The masses above cuts; None where cells give them."""


def one_step_delta(pair: Pair, epsilon: float) -> tuple[float, float]:
    """Certified ``(lower, upper)`` for delta(epsilon) of one step.

    Parameters
    ----------
    pair : Pair
        The dominating pair.
    epsilon : float
        Finite, any sign (nats).

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> lower, upper = one_step_delta(GaussianPair(1.0), 1.0)
    >>> lower <= 0.12693673750664397 <= upper, upper - lower < 1e-14
    (True, True)
    """
    below, above = one_step_deltas(pair, np.array([epsilon]))
    return float(below[0]), float(above[0])


def one_step_deltas(pair: Tailed, epsilon: Array, *, above: Tailed | None = None) -> tuple[Array, Array]:
    """Certified sides of delta at several epsilons, shape (E,), increasing.

    Of pairs that tell no tails what lies above a cut is then a sum of cells, and the bracket a few roundings wider than
    at one epsilon alone; of others any epsilons are answered as each is alone, to the bit. The upper sides are those of
    another pair next to it where one is given ``above``.
    """
    above = pair if above is None else above
    if pair.curve is not None:
        low, high = np.array([pair.curve.delta(at) for at in epsilon.tolist()]).T
        return low, high
    cells, cuts, reached = _reached(above, epsilon)
    lower = least_one_step_deltas(pair, epsilon, cells if above is pair else None)
    upper = _most(cells, cuts - cells.slack, beyond=cuts >= above.loss_bounds[1])
    if above.mass_at_infinity > 0.0:
        upper = ups(upper + above.mass_at_infinity)
    return lower, np.where(reached, np.minimum(upper, 1.0), 1.0)


def least_one_step_deltas(pair: Tailed, epsilon: Array, cells: CellMasses | None = None) -> Array:
    """Certified lower bounds on delta at several epsilons, increasing, of a pair that no curve is given of.

    From what lies above cuts next to each epsilon, where that is at hand.
    """
    lower = _least(_above(pair, epsilon)[0] if cells is None else cells, epsilon)
    if pair.mass_at_infinity > 0.0:
        lower = downs(lower + least_infinite(pair.mass_at_infinity))
    return np.minimum(np.maximum(lower, 0.0), 1.0)


def _reached(pair: Tailed, epsilon: Array) -> tuple[CellMasses, Array, Flags]:
    """What lies above cuts, and the cuts: each goes down until its own slack keeps it below epsilon, and which do."""
    back = _BACK * U * np.abs(epsilon)
    for _ in range(_TRIALS):
        cells, cuts = _above(pair, epsilon - back)
        far = cells.slack <= 0.75 * (epsilon - cuts)  # hence cut + slack <= epsilon, whatever the two roundings
        if far.all():
            break
        wider = np.maximum(2.0 * back, 2.0 * cells.slack + 4.0 * U * np.abs(epsilon))
        back = np.where(far, back, wider)
    return cells, cuts, far


def _above(pair: Tailed, cuts: Array) -> tuple[CellMasses, Array]:
    """The masses above each cut, and the cuts, from the masses between cuts where the pair tells no tails."""
    alone = pair.tails(cuts)
    if alone is not None:
        return alone, cuts
    cuts = np.minimum.accumulate(cuts[::-1])[::-1]  # in order, however near to each other
    cells = pair.cells(cuts)
    log_p, error_p = _tails(cells.log_p[1:], cells.error_p[1:])
    log_q, error_q = _tails(cells.log_q[1:], cells.error_q[1:])
    return CellMasses(log_p, log_q, error_p, error_q, cells.slack), cuts


def _tails(log: Array, error: Array) -> tuple[Array, Array]:
    """``ln`` of the sums of all masses from each on, and bounds on the errors.

    A sum errs by the mean of its terms' errors, weighted by mass; by 4 u for exp; by less than n u for the arguments of
    exp, since ``x e^-x < 1``; and by n u for the sums.
    """
    if log.size == 1:
        return log, error
    peak = np.maximum.accumulate(log[::-1])[::-1]
    base = np.where(np.isfinite(peak), peak, 0.0)
    later = np.arange(log.size) >= np.arange(log.size)[:, None]
    mass = np.where(later, np.exp(np.minimum(log - base[:, None], 0.0)), 0.0)
    total = np.maximum(mass.sum(axis=1), 1.0)
    off = (mass * np.expm1(np.minimum(np.where(np.isfinite(log), error, 0.0), _UNKNOWN))).sum(axis=1) / total
    found = base + np.log(total)
    rounding = 2.0 * (log.size + 4) * U + (4.0 + math.log(log.size)) * ELEMENTARY + 4.0 * U * np.abs(base)
    doubt = np.where(off < 0.25, 1.5 * off, np.inf) + rounding  # -ln(1 - r) <= 1.5 r up to 0.25
    empty = ~np.isfinite(peak)
    return np.where(empty, peak, found), np.where(empty, error, doubt)


def _least(cells: CellMasses, epsilon: Array) -> Array:
    """Lower bounds, at least 0, on ``P(S) - e^epsilon Q(S)``, S the outcomes above each cut."""
    log_p, ratio, error, rounding = _ratios(cells, epsilon)
    share = downs(-np.expm1(np.minimum(ratio + error, 0.0)), 2.0 * ELEMENTARY)
    known = np.isfinite(cells.log_p) & np.isfinite(cells.log_q)
    found = exps_down(log_p - rounding, np.maximum(share, 0.0))
    return np.where(known, found, 0.0)


def _most(cells: CellMasses, epsilon: Array, *, beyond: Flags) -> Array:
    """Upper bounds on the same; 0 where nothing is above a cut that is ``beyond`` all losses."""
    log_p, ratio, error, rounding = _ratios(cells, epsilon)
    share = np.minimum(ups(-np.expm1(np.minimum(ratio - error, 0.0)), 2.0 * ELEMENTARY), 1.0)
    share = np.where(np.isfinite(cells.log_q), share, 1.0)
    found = exps_up(np.minimum(log_p + rounding, 0.0), share)
    nothing = cells.log_p == -np.inf  # no mass, or none whose logarithm is a float
    return np.where(nothing, np.where(beyond, 0.0, exp_up(-math.inf)), found)


def _ratios(cells: CellMasses, epsilon: Array) -> tuple[Array, Array, Array, Array]:
    """``ln P``, ``ln e^epsilon Q / P`` and a bound on its error, and one on that of ``ln P``; 0 for ``ln 0``."""
    log_p, log_q = (np.where(np.isfinite(log), log, 0.0) for log in (cells.log_p, cells.log_q))
    rounding = cells.error_p + 4.0 * U * np.abs(log_p)
    error = cells.error_p + cells.error_q + 4.0 * U * (np.abs(log_p) + np.abs(log_q) + np.abs(epsilon))
    return log_p, log_q + epsilon - log_p, error, rounding
