"""Brackets of the finite part of delta at several epsilons, as a line proves them, and what their widths are made of.

Guarantee: logarithms are rounded outwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final, final

import numpy as np

from hockeystick.numerics.columns import Array, Columns
from hockeystick.numerics.rounding import U

_LEAST = 1e-300  # a lower bound below it counts as none, an upper bound is rounded up to it


@final
@dataclass(frozen=True, eq=False)
class Curve(Columns):
    """Brackets of delta_fin at several epsilons, and where their widths come from.

    Arrays of shape (E,), or (R, E) for R lines.

    Attributes
    ----------
    log_scale : ndarray
        ``ln E``, so that values too small for float64 can still be compared.
    lower, upper : ndarray
        Brackets of ``delta_fin / E``.
    log_scale_error : ndarray
        Bound on the error of ``log_scale``.
    rounding, truncation, aliasing : ndarray
        The parts of the width, relative to E.
    """

    log_scale: Array
    lower: Array
    upper: Array
    log_scale_error: Array
    rounding: Array
    truncation: Array
    aliasing: Array

    def reshaped(self, shape: tuple[int, ...]) -> Curve:
        """The same in another shape."""
        return self.of_all([self], lambda own: own[0].reshape(shape))

    def log_lower(self) -> Array:
        """``ln`` of the lower bounds, rounded down; ``-inf`` where they are not above 0."""
        log_lower = np.log(np.maximum(self.lower, _LEAST))
        value = self.log_scale - self.log_scale_error + log_lower
        return np.where(self.lower > _LEAST, value - self._rounding(log_lower), -np.inf)

    def log_upper(self) -> Array:
        """``ln`` of the upper bounds, rounded up."""
        log_upper = np.log(np.maximum(self.upper, _LEAST))
        return self.log_scale + self.log_scale_error + log_upper + self._rounding(log_upper)

    def _rounding(self, log: Array) -> Array:
        """What ``log_scale + log``, logarithm and two or three sums, may lose: the two may cancel."""
        return 8.0 * U * (1.0 + np.abs(self.log_scale) + self.log_scale_error + np.abs(log))

    def guess(self) -> float:
        """``ln`` of about the first value, of the right order where the bracket is wide."""
        lower, upper = float(self.lower[0]), float(self.upper[0])
        return float(self.log_scale[0]) + math.log(max(0.5 * (lower + upper) if lower > 0.0 else 1e-3 * upper, 1e-300))


COLUMNS: Final = tuple(column.name for column in fields(Curve))
