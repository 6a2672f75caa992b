"""Sides of delta from those of its finite part, and whether they are as narrow as they should be.

Guarantee: `sides` rounds outwards.
"""

from __future__ import annotations

import numpy as np

from hockeystick.numerics.columns import Flags
from hockeystick.numerics.rounding import exps_down, exps_up
from hockeystick.transforms.rule import Array, Numbers

_LEAST = 1e-300  # a smaller delta is not asked to be relatively accurate


def width_asked(lower: Array, upper: Array, tolerance: Numbers, enough: Numbers) -> Array:
    """The relative width that lines are asked for, by their brackets at their own epsilons; infinite if none."""
    loose = np.where(is_narrow(lower, upper, enough), enough, np.inf)
    return np.where(is_narrow(lower, upper, tolerance), tolerance, loose)


def is_narrow(lower: Array, upper: Array, tolerance: Numbers) -> Flags:
    """Which brackets of delta are as narrow as they should be."""
    return np.asarray((upper - lower <= tolerance * lower) | (upper <= _LEAST))


def sides(log_lower: Array, log_upper: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Certified sides of delta from ``ln`` of those of its finite part, and those of the mass at infinity."""
    lower = exps_down(np.minimum(log_lower, 0.0)) + low
    upper = exps_up(np.minimum(log_upper, 0.0)) + high
    return np.maximum(np.nextafter(lower, -np.inf), 0.0), np.minimum(np.nextafter(upper, np.inf), 1.0)
