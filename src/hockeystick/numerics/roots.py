"""Roots of monotone functions of one variable, safely."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["increasing_root"]


def increasing_root(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """A root of a nondecreasing function in [low, high], to within ``tolerance``.

    An end of the interval is returned where the function does not change sign. The Illinois variant of regula falsi,
    with a bisection whenever a step does not halve the bracket.

    Examples
    --------
    >>> abs(increasing_root(lambda x: x**3 - 2.0, 0.0, 2.0, 1e-12) - 2.0 ** (1 / 3)) < 1e-12
    True
    """
    f_low = function(low)
    if f_low >= 0.0:
        return low
    f_high = function(high)
    if f_high <= 0.0:
        return high
    while high - low > tolerance:
        width = high - low
        point = high - f_high * width / (f_high - f_low)
        if not low + 0.01 * width < point < high - 0.01 * width:
            point = 0.5 * (low + high)
        value = function(point)
        if value == 0.0:
            return point
        if value < 0.0:
            low, f_low, f_high = point, value, 0.5 * f_high
        else:
            high, f_high, f_low = point, value, 0.5 * f_low
        if high - low > 0.5 * width:
            middle = 0.5 * (low + high)
            value = function(middle)
            if value < 0.0:
                low, f_low = middle, value
            else:
                high, f_high = middle, value
    return 0.5 * (low + high)
