"""By how much the argument of r turns where the line of the base loss is moved into the complex plane.

``r = 1 - g + g e^u`` has no zero but at ``ln((1 - g)/g) + i pi`` and its like: a piece of losses that keeps to one side
of that may be moved up as far as its own law allows, another by less than pi.

Guarantee: bounds (`docs/derivations/rare-losses.md`, section 3). Cost: an arctangent a point.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hockeystick.laws.gaussian_strip import record_argument
from hockeystick.numerics.columns import Array

NEAR: Final = 0.5 * math.pi
"""Heights up to which r has a positive real part, or turns by less than that, wherever the record may be."""

STEEPER: Final = 1.25
"""Times the slope of the argument on the line, that it may have beyond."""

CLEAR: Final = 0.1
"""Of the posterior, or of what it lacks of 1: on the whole of a piece that may be moved up by more."""


def least_turn(posterior: Array, height: Array) -> Array:
    """A lower bound of the argument of ``1 - q + q e^{iy}`` for posteriors of q and more.

    Beyond ``NEAR`` it is y less what the other term may turn back, where q is next to 1; elsewhere nothing is known.
    """
    off = 1.01 * (1.0 - posterior) / np.maximum(posterior, 1.0 - CLEAR)
    beyond = np.where(posterior >= 1.0 - CLEAR, height - off, -np.inf)
    return np.where(height <= NEAR, record_argument(posterior, np.minimum(height, NEAR)), beyond)


def most_turn(least: Array, most: Array, height: Array) -> Array:
    """An upper bound of its size for posteriors between two; infinite beyond ``NEAR`` if these are next to no end."""
    above = height + 1.01 * (1.0 - least) / np.maximum(least, 1.0 - CLEAR)
    below = np.where(most <= CLEAR, 1.01 * most / (1.0 - np.minimum(most, CLEAR)), np.inf)
    beyond = np.where(least >= 1.0 - CLEAR, above, below)
    return np.where(height <= NEAR, record_argument(most, np.minimum(height, NEAR)), beyond)
