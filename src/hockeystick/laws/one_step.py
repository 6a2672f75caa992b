"""A single step: its hockey-stick curve from the tails window, with no lattice.

``delta(eps) = P(L > eps) - e^eps Q(L > eps)``. For any set S of outcomes ``P(S) - e^eps Q(S) <= delta(eps)``: a cut
that is off does no harm to the lower side. For the upper side let S be what a cut asked for at ``c <= eps - s``
leaves above it, s the slack *of that cut*. S holds every loss above eps and none below c - s, hence

    delta(eps) = int_S (dP - e^eps dQ)+ <= int_S (dP - e^{c - s} dQ)+ = P(S) - e^{c - s} Q(S).

Guarantee: both sides certified. Cost: two or three evaluations of the tails.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hockeystick.laws.base import CellMasses, Pair, least_infinite
from hockeystick.numerics.rounding import ELEMENTARY, U, down, exp_down, exp_up, up

__all__ = ["one_step_delta", "one_step_deltas"]

Array = NDArray[np.float64]

_TRIALS = 50  # each at least doubles the way back


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
    known = _known(pair, epsilon)
    if known is not None:
        return known
    below, above = one_step_deltas(pair, np.array([epsilon]))
    return float(below[0]), float(above[0])


def one_step_deltas(pair: Pair, epsilon: Array, *, above: Pair | None = None) -> tuple[Array, Array]:
    """Certified sides of delta at several epsilons, shape (E,), increasing.

    What lies above a cut is then a sum of cells, and the bracket a few roundings wider than at one epsilon alone. The
    upper sides are those of another pair next to it where one is given ``above``.
    """
    above = pair if above is None else above
    known = [sides for at in epsilon.tolist() if (sides := _known(pair, at)) is not None]
    if len(known) == epsilon.size:
        return np.array([low for low, _ in known]), np.array([high for _, high in known])
    here = _above_cuts(pair.cells(epsilon))
    lower = [_difference(here, at, index)[0] for index, at in enumerate(epsilon.tolist())]
    upper = _uppers(above, epsilon, here.slack)  # a slack to begin with: the cuts' own is what counts
    if pair.mass_at_infinity > 0.0:
        lower = [down(side + least_infinite(pair.mass_at_infinity)) for side in lower]
        upper = [up(side + above.mass_at_infinity) for side in upper]
    return np.clip(lower, 0.0, 1.0), np.minimum(upper, 1.0)


def _known(pair: Pair, epsilon: float) -> tuple[float, float] | None:
    """Bounds on delta where the pair itself knows its curve."""
    return None if pair.curve is None else pair.curve.delta(epsilon)


def _uppers(pair: Pair, epsilon: Array, slack: Array) -> list[float]:
    """Upper bounds on the finite part of delta: each cut goes down until its own slack keeps it below epsilon."""
    back = 2.0 * slack + 4.0 * U * np.abs(epsilon)
    largest = pair.loss_bounds[1]
    for _ in range(_TRIALS):
        cuts = np.minimum.accumulate((epsilon - back)[::-1])[::-1]  # in order, however near to each other
        cells = _above_cuts(pair.cells(cuts))
        far = cells.slack <= 0.75 * (epsilon - cuts)  # hence cut + slack <= epsilon, whatever the two roundings
        if far.all():
            below = (cuts - cells.slack).tolist()
            beyond = (cuts >= largest).tolist()
            return [_difference(cells, at, k, beyond=beyond[k])[1] for k, at in enumerate(below)]
        wider = np.maximum(2.0 * back, 2.0 * cells.slack + 4.0 * U * np.abs(epsilon))
        back = np.where(far, back, wider)
    return [1.0] * epsilon.size


def _above_cuts(cells: CellMasses) -> CellMasses:
    """The masses above each cut, from those between cuts."""
    log_p, error_p = _tails(cells.log_p[1:], cells.error_p[1:])
    log_q, error_q = _tails(cells.log_q[1:], cells.error_q[1:])
    return CellMasses(log_p, log_q, error_p, error_q, cells.slack)


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
    off = (mass * np.expm1(np.minimum(np.where(np.isfinite(log), error, 0.0), 1.0))).sum(axis=1) / total
    found = base + np.log(total)
    rounding = 2.0 * (log.size + 4) * U + (4.0 + math.log(log.size)) * ELEMENTARY + 4.0 * U * np.abs(base)
    doubt = np.where(off < 0.25, 1.5 * off, np.inf) + rounding  # -ln(1 - r) <= 1.5 r up to 0.25
    empty = ~np.isfinite(peak)
    return np.where(empty, peak, found), np.where(empty, error, doubt)


def _difference(cells: CellMasses, epsilon: float, index: int, *, beyond: bool = False) -> tuple[float, float]:
    """Bounds, at least 0, on ``P(S) - e^epsilon Q(S)``, S the outcomes above a cut; none where it is beyond."""
    log_p, log_q = float(cells.log_p[index]), float(cells.log_q[index])
    if log_p == -math.inf:  # no mass, or none whose logarithm is a float
        return 0.0, 0.0 if beyond else exp_up(log_p)
    error = float(cells.error_p[index] + cells.error_q[index]) + 4.0 * U * (abs(log_p) + abs(log_q) + abs(epsilon))
    ratio = log_q + epsilon - log_p  # ln of e^eps Q / P
    rounding = float(cells.error_p[index]) + 4.0 * U * abs(log_p)
    least = max(down(-math.expm1(min(ratio + error, 0.0)), 2.0 * ELEMENTARY), 0.0)
    most = min(up(-math.expm1(min(ratio - error, 0.0)), 2.0 * ELEMENTARY), 1.0)
    return exp_down(log_p - rounding, least), exp_up(min(log_p + rounding, 0.0), most)
