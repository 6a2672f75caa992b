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

from hockeystick.laws.base import CellMasses, Pair, least_infinite
from hockeystick.numerics.rounding import ELEMENTARY, U, down, exp_down, exp_up, up

__all__ = ["one_step_delta"]

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
    if pair.curve is not None:
        return pair.curve.delta(epsilon)
    here = pair.cells(np.array([epsilon]))
    lower, _ = _difference(here, epsilon)
    upper = _upper(pair, epsilon, float(here.slack[0]))
    if pair.mass_at_infinity > 0.0:
        lower, upper = down(lower + least_infinite(pair.mass_at_infinity)), up(upper + pair.mass_at_infinity)
    return min(max(lower, 0.0), 1.0), min(upper, 1.0)


def _upper(pair: Pair, epsilon: float, slack: float) -> float:
    """Upper bound on the finite part of delta: the cut goes down until its own slack keeps it below epsilon."""
    back = 2.0 * slack + 4.0 * U * abs(epsilon)
    for _ in range(_TRIALS):
        cut = epsilon - back
        cells = pair.cells(np.array([cut]))
        slack = float(cells.slack[0])
        if slack <= 0.75 * (epsilon - cut):  # hence cut + slack <= epsilon, whatever the two roundings
            return _difference(cells, cut - slack, beyond=cut >= pair.loss_bounds[1])[1]
        back = max(2.0 * back, 2.0 * slack + 4.0 * U * abs(epsilon))
    return 1.0


def _difference(cells: CellMasses, epsilon: float, *, beyond: bool = False) -> tuple[float, float]:
    """Bounds, at least 0, on ``P(S) - e^epsilon Q(S)``, S the outcomes above the only cut; none where it is beyond."""
    log_p, log_q = float(cells.log_p[1]), float(cells.log_q[1])
    if log_p == -math.inf:  # no mass, or none whose logarithm is a float
        return 0.0, 0.0 if beyond else exp_up(log_p)
    error = float(cells.error_p[1] + cells.error_q[1]) + 4.0 * U * (abs(log_p) + abs(log_q) + abs(epsilon))
    ratio = log_q + epsilon - log_p  # ln of e^eps Q / P
    rounding = float(cells.error_p[1]) + 4.0 * U * abs(log_p)
    least = max(down(-math.expm1(min(ratio + error, 0.0)), 2.0 * ELEMENTARY), 0.0)
    most = min(up(-math.expm1(min(ratio - error, 0.0)), 2.0 * ELEMENTARY), 1.0)
    return exp_down(log_p - rounding, least), exp_up(min(log_p + rounding, 0.0), most)
