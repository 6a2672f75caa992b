"""Chernoff bounds on the losses of a composition of lattice PLDs: ``P(X >= x) <= e^{K(t) - t x}`` for every t > 0.

K is the sum of the log moment generating functions of the PLDs, each a finite sum (002, equations 5.2 and 5.3). Any t
gives a bound: a search on few points of each step finds a good one, and only what is found there is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np

from hockeystick.engines.lattice.compose import Parts, log_moment
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.cumulants import Cumulants

_LOG_GOLDEN = 0.6180339887498949
_STEPS = 24
_TABLE = np.exp(np.linspace(math.log(1e-3), math.log(1e4), 120))
_TILTS = math.log(1e-4), math.log(1e5)
_SKETCH = 1024  # blocks of a step, by whose ends tilts are chosen
_DEEPEST = 700.0  # nats below the heaviest point of its block to which a mass is told apart
_BLOCK = 0.01  # nats: width of a block for one step; many steps take it by its root
_BLOCKS = 2048  # of a step, at least


def log_tail(parts: Parts, tilt: float, edge: float) -> float:
    """``ln`` of the Chernoff bound on the mass at or above ``edge`` (tilt > 0) or at or below it (tilt < 0)."""
    total, size = -tilt * edge, abs(tilt * edge)
    for pld, count in parts:
        log_sum, error = log_moment(pld, tilt)
        total += count * (log_sum + error)
        size += count * abs(log_sum)
    return total + (len(parts) + 8.0) * U * size + ELEMENTARY


def least_log_tails(parts: Parts, end: float) -> tuple[float, float]:
    """``ln`` of about the best Chernoff bounds on the mass at or above ``end``, and on that at or below ``-end``."""
    few = [(_on_block_ends(pld, -(-pld.size // _SKETCH)), count) for pld, count in parts]  # as far out as all points
    cumulants = Cumulants(few, -math.inf)

    def exponent(sign: float, log_size: float) -> float:
        tilt = math.exp(log_size)
        return cumulants.log_moment(sign * tilt) - tilt * end

    tilts = [sign * math.exp(_valley(partial(exponent, sign), *_TILTS)) for sign in (1.0, -1.0)]
    return log_tail(parts, tilts[0], end), log_tail(parts, tilts[1], -end)


@final
@dataclass(frozen=True, eq=False)
class TailTable:
    """Log moments of a composition at fixed tilts: Chernoff's bound at one more edge costs next to nothing.

    Attributes
    ----------
    tilts : ndarray, shape (k,)
        Above 0.
    moments : ndarray, shape (k,)
        K there, rounded up.
    sizes : ndarray, shape (k,)
        Sums of the sizes of what was added, for the rounding of what follows.
    """

    tilts: Array
    moments: Array
    sizes: Array

    @classmethod
    def of(cls, parts: Parts) -> TailTable:
        """The table of a composition of lattice PLDs."""
        parts = _coarse(parts)
        found = np.array([[log_moment(pld, tilt) for pld, _ in parts] for tilt in _TABLE.tolist()])
        counts = np.array([float(count) for _, count in parts])
        sizes = np.abs(found[:, :, 0]) @ counts
        moments = found.sum(axis=2) @ counts + (len(parts) + 8.0) * U * sizes
        return cls(_TABLE, np.asarray(moments), np.asarray(sizes))

    def log_tail(self, edge: float) -> float:
        """``ln`` of the best of the bounds on the mass at or above ``edge``."""
        logs = self.moments - self.tilts * edge + 8.0 * U * (self.sizes + np.abs(self.tilts * edge)) + ELEMENTARY
        return float(logs.min())


def _coarse(parts: Parts) -> Parts:
    """The same masses on fewer points, every moment rounded up: a fine lattice would make the search slow.

    The masses of a block go to its two ends so that sum and mean stay; as the exponential is convex, its mean grows.
    """
    steps = sum(count for _, count in parts)
    widest = int(_BLOCK / (parts[0][0].spacing * math.sqrt(steps)))
    blocks = [min(widest, pld.size // _BLOCKS) for pld, _ in parts]  # where all losses are small, so are blocks
    return [
        (pld if block < 4 else _on_block_ends(pld, block), count)
        for (pld, count), block in zip(parts, blocks, strict=True)
    ]


def _on_block_ends(pld: LatticePLD, block: int) -> LatticePLD:
    first = np.arange(0, max(pld.size - 1, 1), block)  # the last block holds at least two points
    last = np.append(first[1:] - 1, pld.size - 1)
    lengths = last - first + 1
    peaks = np.maximum.reduceat(pld.log_mass, first)
    scale = np.where(np.isfinite(peaks), peaks, 0.0)
    depths = pld.log_mass - np.repeat(scale, lengths)
    masses = np.exp(np.where(depths > -math.inf, np.maximum(depths, -_DEEPEST), depths))  # up, where it would underflow
    width = np.maximum(pld.index[last] - pld.index[first], 1)
    share = (pld.index - np.repeat(pld.index[first], lengths)) / np.repeat(width, lengths)
    to_last = np.add.reduceat(masses * share, first)
    to_first = np.add.reduceat(masses * (1.0 - share), first)
    with np.errstate(divide="ignore"):
        log_mass = np.log(np.column_stack((to_first, to_last))).ravel() + np.repeat(scale, 2)
    # of each exponential the rounding of its exponent; of its share of two ends, and of sums over the block
    rounding = (_DEEPEST + 4.0 * min(block, pld.size) + 16.0) * U + 2.0 * ELEMENTARY
    log_mass = log_mass + rounding + 2.0 * U * np.abs(np.repeat(scale, 2))
    index = np.column_stack((pld.index[first], pld.index[last])).ravel()
    return replace(pld, side="upper", index=index, log_mass=log_mass)


def _valley(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is about least, by golden sections."""
    left, right = high - _LOG_GOLDEN * (high - low), low + _LOG_GOLDEN * (high - low)
    f_left, f_right = function(left), function(right)
    for _ in range(_STEPS):
        if f_left <= f_right:
            high, right, f_right = right, left, f_left
            left = high - _LOG_GOLDEN * (high - low)
            f_left = function(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + _LOG_GOLDEN * (high - low)
            f_right = function(right)
    return left if f_left <= f_right else right
