"""Second- and third-order remainders of exp and sin, without cancellation.

    exponential_residual(x) = e^x - 1 - x            sine_residual(x) = x - sin x

A transform of a small privacy loss is one plus terms of second order in the loss: its first order cancels exactly, so
it is never computed. Below `SWITCH` a Taylor polynomial is used, above it the difference, whose cancellation is
bounded there.

Guarantee (`docs/derivations/contour.md`, section 7; tests check it against ball arithmetic), u the unit roundoff:

- ``|computed - true| <= EXPONENTIAL_RESIDUAL * min(x^2, |x|) e^max(x, 0)``, for x up to 700,
- ``|computed - true| <= SINE_RESIDUAL * x^2``, for every x, given a sine within `TRIGONOMETRIC`.
"""

from __future__ import annotations

from math import factorial
from typing import Final

import numpy as np

from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import U

SWITCH: Final = 0.25
"""Size of the argument up to which the Taylor polynomial of exp is used."""

_SINE_SWITCH: Final = 0.5

# Above its switch: 4 u from expm1 and u from the difference, times (e^x - 1) / x^2 <= 4.6.
EXPONENTIAL_RESIDUAL: Final = 32.0 * U
# Above its switch: 4 u |x| from the sine, at most 8 u x^2, and u from the difference, below x^2 / 2.
SINE_RESIDUAL: Final = 10.0 * U

# (e^x - 1 - x) / x^2 = sum_k x^k / (k + 2)!; the first term left out, 0.25^11 / 13!, is below u / 2.
_EXPONENTIAL: Final = tuple(1.0 / factorial(k + 2) for k in range(11))
# (x - sin x) / x^3 = sum_k (-x^2)^k / (2k + 3)!; the first term left out, over x^2: 0.5^13 / 15! < u.
_SINE: Final = tuple((-1.0) ** k / factorial(2 * k + 3) for k in range(6))


def _horner(coefficients: tuple[float, ...], x: Array) -> Array:
    total = coefficients[-1] * x
    total += coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        total *= x
        total += coefficient
    return total


def exponential_residual(x: Array) -> Array:
    """``e^x - 1 - x``, never negative in exact arithmetic; any shape, x at most 700."""
    small = np.minimum(np.maximum(x, -SWITCH), SWITCH)
    series = small * small * _horner(_EXPONENTIAL, small)
    return np.where(np.abs(x) <= SWITCH, series, np.expm1(x) - x)


def sine_residual(x: Array, sine: Array) -> Array:
    """``x - sin x``, given ``sine``, the computed ``sin x``; any shape."""
    found = x - sine
    small = np.abs(x) <= _SINE_SWITCH
    near = x[small]
    square = near * near
    series = _horner(_SINE, square)
    series *= square
    series *= near
    found[small] = series
    return np.asarray(found)
