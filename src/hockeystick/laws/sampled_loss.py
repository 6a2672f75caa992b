"""The privacy loss of a sampled record, ``ln(1 - g + g e^u)`` for a base loss u and the rate g, with its error.

With ``r = 1 - g + g e^u`` the logarithm is taken of ``1 + g (e^u - 1)`` where r is above a half, of the sum as it
stands below (only rates above a half, whose complement is exact, take r there), and as ``u + ln(g + (1 - g) e^-u)``
for large u, so that nothing overflows or cancels.

Guarantee: ``error`` bounds the distance from the true loss. Cost: one exponential and one logarithm a loss.
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import ELEMENTARY, U

_LARGE = 30.0  # base losses from which the large form is used


def sampled_losses(base: Array, rate: Array | float) -> Array:
    """``ln(1 - g + g e^u)`` for base losses of any size, infinite ones included; shapes broadcast."""
    rates = np.asarray(rate)
    highest = rates.max()
    if highest == 1.0 and rates.min() == 1.0:
        return np.asarray(base)
    inner = np.minimum(base, _LARGE)
    moved = rate * np.expm1(inner)
    if highest <= 0.5:
        loss = np.log1p(moved)
    else:
        with np.errstate(divide="ignore"):
            sums = np.log((1.0 - rate) + rate * np.exp(inner))
        loss = np.where(moved >= -0.5, np.log1p(np.maximum(moved, -0.5)), sums)
    large = base > _LARGE
    if large.any():
        loss = np.where(large, base + np.log(rate + (1.0 - rate) * np.exp(-np.maximum(base, _LARGE))), loss)
    return np.asarray(loss)


def sampled_loss_error(loss: Array, base: Array, rate: Array | float, base_error: Array | float = 0.0) -> Array:
    """Bounds on the errors of `sampled_losses`, finite losses of bases in error by at most ``base_error``."""
    # five roundings of g e^u - g, over r at most |1 - 1/r|; six of r where it is summed, of two terms of at least 0
    error = 6.2 * U * np.minimum(np.abs(np.expm1(-loss)), 1.0) + ELEMENTARY * np.abs(loss)
    large = base > _LARGE
    if large.any():  # u plus what is at most 0 and at least ln g
        error = np.where(large, 7.1 * U - ELEMENTARY * np.log(rate) + U * np.abs(loss), error)
    if np.ndim(base_error) == 0 and base_error == 0.0:
        return np.asarray(error)
    # the slope is the posterior weight of the record, which errs by a few u and by as much as the loss does; over so
    # short a way it does not grow by a hundredth
    slope = 1.0 - (1.0 - np.asarray(rate)) * np.exp(-loss)
    return np.asarray(error + 1.01 * base_error * np.clip(slope + 8.0 * U + error + base_error, 0.0, 1.0))


def base_losses(loss: Array, rate: float) -> Array:
    """The base losses that map to ``loss``, to within rounding; ``-inf`` at and below the smallest."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        small = np.log1p(np.maximum(np.expm1(np.minimum(loss, _LARGE)) / rate, -1.0))
        large = loss - math.log(rate) + np.log1p(-(1.0 - rate) * np.exp(-np.maximum(loss, 1.0)))
    return np.where((loss <= _LARGE) & (small < np.inf), small, large)  # a quotient by a tiny rate may overflow
