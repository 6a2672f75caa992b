"""Roots of monotone functions of one variable, safely."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hockeystick.numerics.columns import Array

_NEWTON = 60  # steps at most
_SHRINKS = 0.5  # times the value before: where a step leaves more, the next one halves the interval
_FAN = 25  # points asked at once
_ROUNDS = 2


def increasing_root(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """A root of a nondecreasing function in [low, high], to within ``tolerance``, or two neighbouring floats.

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
    while high - low > tolerance and low < 0.5 * (low + high) < high:
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


def newton_root(function: Callable[[float], tuple[float, float]], low: float, high: float, tolerance: float) -> float:
    """About a root in [low, high] of a nondecreasing function, given by its values and slopes.

    Newton's steps from the lower end until one is as short as the tolerance, with a bisection where one leads out of
    the interval or hardly nearer. Where the function does not change sign, the lower end, or about the upper one.

    Examples
    --------
    >>> abs(newton_root(lambda x: (x**3 - 2.0, 3.0 * x**2), 0.0, 2.0, 1e-6) - 2.0 ** (1 / 3)) < 1e-6
    True
    """
    at, before = low, math.inf
    for _ in range(_NEWTON):
        value, slope = function(at)
        if value >= 0.0 and at == low:
            return at
        low, high = (at, high) if value < 0.0 else (low, at)
        ahead = at - value / slope if slope > 0.0 else math.nan
        if abs(ahead - at) <= tolerance or high - low <= tolerance:
            return min(max(ahead, low), high) if slope > 0.0 else at
        nearer = low < ahead < high and abs(value) <= _SHRINKS * before
        at, before = (ahead, abs(value)) if nearer else (0.5 * (low + high), math.inf)
    return at


def fan_root(function: Callable[[Array], Array], low: float, high: float) -> float:
    """About a root in [low, high] of a nondecreasing, smooth function that is cheap at many points at once.

    To within some 1e-6 of the interval, by two fans of points and a straight line. An end of the interval is returned
    where the function does not change sign.

    Examples
    --------
    >>> abs(fan_root(lambda x: x**3 - 2.0, 0.0, 2.0) - 2.0 ** (1 / 3)) < 1e-5
    True
    """
    for _ in range(_ROUNDS):
        points = np.linspace(low, high, _FAN)
        values = function(points)
        if values[0] >= 0.0:
            return low
        if values[-1] <= 0.0:
            return high
        after = max(int(np.argmax(values > 0.0)), 1)
        low, high = float(points[after - 1]), float(points[after])
        below, above = float(values[after - 1]), float(values[after])
    share = below / (below - above) if np.isfinite(above - below) else 0.5
    return low + share * (high - low)
