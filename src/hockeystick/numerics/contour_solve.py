"""Where a falling curve takes a value, with both sides verified.

The curve is known through brackets of its logarithm. A secant iteration on their middle finds the crossing; then
points a little to either side are tried, ever farther, until the bracket itself says on which side of the crossing
each lies.

Guarantee: ``lower`` is a point where the curve is proved at least the value (or the start of the range), ``upper`` one
where it is proved at most the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.numerics.contour_rule import Array

__all__ = ["Crossing", "LogBracket", "crossing"]

_STEPS = 30
_SPREAD = np.array([1.0, 1.5, 2.5, 5.0, 15.0, 100.0, 1e4, 1e6])  # of the expected doubt, tried in turn


@final
@dataclass(frozen=True, eq=False)
class LogBracket:
    """Lower and upper bounds on ``ln`` of a curve at several points."""

    lower: Array
    upper: Array

    @property
    def middle(self) -> float:
        """The middle of the first bracket."""
        lower, upper = float(self.lower[0]), float(self.upper[0])
        return upper - 1.0 if math.isinf(lower) else 0.5 * (lower + upper)


@final
@dataclass(frozen=True)
class Crossing:
    """Where the curve crosses the value.

    Attributes
    ----------
    point : float
        The best guess.
    lower, upper : float
        Proved sides; ``-inf`` or ``inf`` for one that could not be verified.
    """

    point: float
    lower: float
    upper: float


def crossing(
    curve: Callable[[Array], LogBracket], targets: tuple[float, float], *, start: float, slope: float, reach: float
) -> Crossing:
    """The point where ``ln`` of a decreasing curve crosses a value.

    Parameters
    ----------
    curve : callable
        From points to brackets of ``ln`` of the curve.
    targets : (float, float)
        ``ln`` of the value as it must be exceeded (for ``lower``) and undercut (for ``upper``).
    start, slope : float
        A guess, and a guess of ``-d ln curve / d point`` there.
    reach : float
        How far from the guess the curve is worth asking.
    """
    goal = 0.5 * (targets[0] + targets[1])
    point = start
    gap = curve(np.array([point])).middle - goal
    for _ in range(_STEPS):
        if slope <= 0.0 or not math.isfinite(gap):
            break
        move = gap / slope
        new = min(max(point + move, start - reach), start + reach)
        found = curve(np.array([new]))
        new_gap = found.middle - goal
        if new_gap != gap and new != point:
            slope = max((gap - new_gap) / (new - point), 0.2 * slope)
        point, gap = new, new_gap
        doubt = float(found.upper[0] - found.lower[0])
        if abs(gap) <= 0.05 * doubt or abs(move) <= 4e-16 * abs(point) or abs(new - start) >= reach:
            break
    return _verified(curve, targets, point, slope)


def _verified(
    curve: Callable[[Array], LogBracket], targets: tuple[float, float], point: float, slope: float
) -> Crossing:
    here = curve(np.array([point]))
    doubt = 0.55 * float(here.upper[0] - here.lower[0]) + abs(here.middle - 0.5 * (targets[0] + targets[1]))
    if not (math.isfinite(doubt) and slope > 0.0):
        return Crossing(point, -math.inf, math.inf)
    offset = max(doubt / slope, 2.0**-52 * abs(point)) * _SPREAD
    below, above = point - offset, point + offset
    proved_below = np.flatnonzero(curve(below).lower >= targets[0])
    proved_above = np.flatnonzero(curve(above).upper <= targets[1])
    return Crossing(
        point,
        float(below[proved_below[0]]) if proved_below.size else -math.inf,
        float(above[proved_above[0]]) if proved_above.size else math.inf,
    )
