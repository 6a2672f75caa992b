"""Monotone cubic interpolation in a table of values and slopes: where to look, never a bound."""

from __future__ import annotations

import numpy as np

from hockeystick.numerics.columns import Array, Places

_STEEPEST = 3.0  # times the chord, up to which a cubic is monotone


def number_below(at: Array, x: Array, rows: Places) -> Places:
    """How many entries of increasing rows, shape (R, k), lie below each point; ``rows`` are those of the points."""
    return np.asarray(x[0].searchsorted(at) if len(x) == 1 else (x[rows] < at[:, None]).sum(axis=1))


def monotone_cubic(at: Array, x: Array, y: Array, slope: Array, rows: Places | None = None) -> Array:
    """Values at points of cubics through a table, both of its columns increasing; at an end for a point beyond it.

    Of tables of shape (R, k), which of them each point is looked up in are the ``rows``.

    Examples
    --------
    >>> x = np.linspace(1.0, 2.0, 5)
    >>> abs(monotone_cubic(np.array([1.3]), x, np.log(x), 1.0 / x) - np.log(1.3)).item() < 1e-4
    True
    """
    found = x.searchsorted(at) if rows is None else number_below(at, x, rows)
    right = np.minimum(np.maximum(found, 1), x.shape[-1] - 1)
    if rows is not None:
        right, x, y, slope = right + rows * x.shape[1], x.ravel(), y.ravel(), slope.ravel()
    left = right - 1
    low, height = y[left], y[right] - y[left]
    width = np.maximum(x[right] - x[left], 1e-300)
    t = np.minimum(np.maximum((at - x[left]) / width, 0.0), 1.0)
    first, second = (np.minimum(slope[end] * width, _STEEPEST * height) for end in (left, right))
    rest = 1.0 - t
    return np.asarray(low + height * (t * t * (3.0 - 2.0 * t)) + t * rest * (first * rest - second * t))
