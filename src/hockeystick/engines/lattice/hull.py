"""The lower convex hull of a piecewise linear curve, in terms of its masses.

A negative mass at a lattice point is a kink where the curve is concave. Taking that point out of the hull replaces
the curve there by the chord between its neighbours, which lies below: the mass is handed to the neighbours so that
total P-mass and total Q-mass stay. Repeat until no mass is negative. The order does not matter: the hull is unique.

Cost: one step for each point taken out; none where the curve is convex.
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import ELEMENTARY, U

_FARTHEST = 300.0  # nats that a mass may exceed the taker's unit by
_LEAST = 1e-300  # more than a product that underflows to 0 can be
_SAFETY = 16.0 * ELEMENTARY  # relative rounding of one hand-over, all of it taken from the mass received


def spread_negative_masses(masses: Array, log_scale: Array, positions: Array) -> tuple[Array, Array] | None:
    """Masses of the lower hull, none negative, rounded down, and the logs of their units.

    Parameters
    ----------
    masses : ndarray, shape (n,)
        P-masses in units of ``exp(log_scale)``.
    log_scale : ndarray, shape (n,)
        Finite.
    positions : ndarray, shape (n,)
        Losses of the points, increasing (nats).

    Returns
    -------
    (ndarray, ndarray), each of shape (n,), or None
        The masses, 0 at the points taken out, and the units. None where nothing at the top holds the curve above zero.
    """
    found, units, n = masses.copy(), log_scale.copy(), masses.size
    hull, scale, losses = _seen(found), _seen(units), _seen(positions)
    before, after = np.arange(-1, n - 1).data, np.arange(1, n + 1).data
    pending = np.flatnonzero(found < 0.0).tolist()
    while pending:
        i = pending.pop()
        if not hull[i] < 0.0:
            continue
        left, right = before[i], after[i]
        if right == n:
            return None
        mass, hull[i] = hull[i], 0.0
        x = losses[right] - losses[i]
        if left >= 0:
            y = losses[i] - losses[left]
            share = math.expm1(-y) / math.expm1(-(x + y))  # P-mass that goes up; the rest goes down
            _hand(hull, scale, i, left, mass * math.exp(-y) * math.expm1(-x) / math.expm1(-(x + y)))
            after[left] = right
            if hull[left] < 0.0:
                pending.append(left)
        else:
            share = 1.0  # below the first point lies a = 0, where P has no mass
        before[right] = left
        _hand(hull, scale, i, right, mass * share)
        if hull[right] < 0.0:
            pending.append(right)
    return found, units


def _seen(values: Array) -> memoryview[float]:
    """The same numbers, to be looked at and set one at a time: in half of the time that an array takes."""
    return np.ascontiguousarray(values).data.cast("B").cast("d")


def log_down(masses: Array, log_scale: Array) -> Array:
    """``ln`` of masses in units of ``exp(log_scale)``, rounded down: the logarithm, and two sums."""
    with np.errstate(divide="ignore"):
        log = np.log(masses)
    size = np.where(np.isfinite(log), np.abs(log), 0.0)
    return np.asarray(log_scale + log - ((ELEMENTARY + 2.0 * U) * size + 2.0 * U * np.abs(log_scale)))


def _hand(hull: memoryview[float], scale: memoryview[float], giver: int, taker: int, mass: float) -> None:
    """Add a negative mass, in the giver's units, to the taker, whose unit becomes larger where it is far too small."""
    gap = scale[giver] - scale[taker]
    if gap > 0.0 and gap + math.log(max(abs(mass), 1.0)) > _FARTHEST:
        shrunk = hull[taker] * math.exp(-gap)
        hull[taker] = shrunk - abs(shrunk) * (_SAFETY + 2.0 * U * gap) - (_LEAST if shrunk <= 0.0 else 0.0)
        scale[taker], gap = scale[giver], 0.0
    change = mass * math.exp(gap) - _LEAST
    hull[taker] += change
    hull[taker] -= (_SAFETY + 2.0 * U * abs(gap)) * abs(change) + 2.0 * U * abs(hull[taker])
