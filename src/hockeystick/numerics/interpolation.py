"""Monotone cubic interpolation in a table of values and slopes: where to look, never a bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_STEEPEST = 3.0  # times the chord, up to which a cubic is monotone


def monotone_cubic(at: Array, x: Array, y: Array, slope: Array) -> Array:
    """Values at points of cubics through a table, both of its columns increasing; at an end for a point beyond it.

    Examples
    --------
    >>> x = np.linspace(1.0, 2.0, 5)
    >>> abs(monotone_cubic(np.array([1.3]), x, np.log(x), 1.0 / x) - np.log(1.3)).item() < 1e-4
    True
    """
    right = np.minimum(np.maximum(x.searchsorted(at), 1), x.size - 1)
    left = right - 1
    low, height = y[left], y[right] - y[left]
    width = np.maximum(x[right] - x[left], 1e-300)
    t = np.minimum(np.maximum((at - x[left]) / width, 0.0), 1.0)
    first, second = (np.minimum(slope[end] * width, _STEEPEST * height) for end in (left, right))
    rest = 1.0 - t
    return np.asarray(low + height * (t * t * (3.0 - 2.0 * t)) + t * rest * (first * rest - second * t))
