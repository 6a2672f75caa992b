"""Chernoff bounds on the losses of a composition of lattice PLDs: ``P(X >= x) <= e^{K(t) - t x}`` for every t > 0.

K is the sum of the log moment generating functions of the PLDs, each a finite sum (002, equations 5.2 and 5.3). Any t
gives a bound; the best of a search is taken, and only its value is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hockeystick.lattice.compose import log_moment
from hockeystick.lattice.pld import LatticePLD
from hockeystick.numerics.rounding import ELEMENTARY, U

__all__ = ["least_log_tail", "log_tail"]

Parts = Sequence[tuple[LatticePLD, int]]

_LOG_GOLDEN = 0.6180339887498949
_STEPS = 24
_MOVED = 0.02  # how far (nats) coarsening may move the composed loss


def log_tail(parts: Parts, tilt: float, edge: float) -> float:
    """``ln`` of the Chernoff bound on the mass at or above ``edge`` (tilt > 0) or at or below it (tilt < 0)."""
    total, size = -tilt * edge, abs(tilt * edge)
    for pld, count in parts:
        log_sum, error = log_moment(pld, tilt)
        total += count * (log_sum + error)
        size += count * abs(log_sum)
    return total + (len(parts) + 8.0) * U * size + ELEMENTARY


def least_log_tail(parts: Parts, edge: float, *, above: bool) -> float:
    """``ln`` of the best Chernoff bound found on the mass at or beyond ``edge``."""
    sign = 1.0 if above else -1.0
    parts = _coarse(parts, above=above)
    return _least(lambda log_size: log_tail(parts, sign * math.exp(log_size), edge), math.log(1e-4), math.log(1e5))


def _coarse(parts: Parts, *, above: bool) -> Parts:
    """The same masses on fewer points, moved towards the edge: a fine lattice would make the search slow."""
    block = int(_MOVED / (parts[0][0].spacing * sum(count for _, count in parts)))
    if block < 2:
        return parts
    coarse = []
    for pld, count in parts:
        first = np.arange(0, pld.size, block)
        index = pld.index[np.minimum(first + block - 1, pld.size - 1)] if above else pld.index[first]
        log_mass = np.logaddexp.reduceat(pld.log_mass, first) + block * ELEMENTARY
        size = np.where(np.isfinite(log_mass), np.abs(log_mass), 0.0)
        moved = replace(pld, index=index, log_mass=log_mass + block * U * size, excess=pld.excess + block * 800.0 * U)
        coarse.append((moved, count))
    return coarse


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """The least value found by golden sections of a function with one valley."""
    left, right = high - _LOG_GOLDEN * (high - low), low + _LOG_GOLDEN * (high - low)
    f_left, f_right = function(left), function(right)
    best = min(f_left, f_right)
    for _ in range(_STEPS):
        if f_left <= f_right:
            high, right, f_right = right, left, f_left
            left = high - _LOG_GOLDEN * (high - low)
            f_left = function(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + _LOG_GOLDEN * (high - low)
            f_right = function(right)
        best = min(best, f_left, f_right)
    return best
