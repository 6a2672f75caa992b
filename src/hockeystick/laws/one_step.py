"""A single step: its hockey-stick curve from the tails window, with no lattice.

``delta(eps) = P(L > eps) - e^eps Q(L > eps)``. A cut that is off by at most s is read where it must lie on the far side
of epsilon: at a cut asked for s above epsilon the true difference is a lower bound after the slack, below it an upper.

Guarantee: both sides certified. Cost: two or three evaluations of the tails.
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.laws.base import Pair
from hockeystick.numerics.rounding import ELEMENTARY, U, exp_down, exp_up, up

__all__ = ["one_step_delta"]


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
    infinity = pair.mass_at_infinity
    slack = 2.0 * float(pair.cells(np.array([epsilon])).slack[0]) + 4.0 * U * abs(epsilon)
    lower, _ = _difference(pair, epsilon, epsilon)
    # h falls: h(eps) is at most h at the true cut of a point surely below eps
    _, upper = _difference(pair, epsilon - slack, epsilon - 2.0 * slack)
    lower, upper = lower + infinity * (1.0 - 8.0 * U), upper + infinity
    return min(max(lower * (1.0 - 4.0 * U), 0.0), 1.0), min(max(up(upper, 4.0 * U), 0.0), 1.0)


def _difference(pair: Pair, cut: float, epsilon: float) -> tuple[float, float]:
    """Bounds on ``P(L > c) - e^epsilon Q(L > c)``, c the true cut that is asked for as ``cut``."""
    cells = pair.cells(np.array([cut]))
    log_p, log_q = float(cells.log_p[1]), float(cells.log_q[1])
    if log_p == -math.inf:
        return 0.0, 0.0
    error = float(cells.error_p[1] + cells.error_q[1]) + 4.0 * U * (abs(log_p) + abs(log_q) + abs(epsilon))
    ratio = log_q + epsilon - log_p  # ln of e^eps Q / P
    rounding = float(cells.error_p[1]) + 4.0 * U * abs(log_p) + 4.0 * ELEMENTARY
    low = -math.expm1(min(ratio + error, 0.0)) * exp_down(log_p - rounding)
    high = -math.expm1(min(ratio - error, 0.0)) * exp_up(min(log_p + rounding, 0.0))
    return low * (1.0 - 4.0 * ELEMENTARY), up(high, 4.0 * ELEMENTARY)
