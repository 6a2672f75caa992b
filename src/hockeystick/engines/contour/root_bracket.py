"""A bracket of where a falling curve takes a value, with both sides verified.

The curve is known through brackets of its logarithm, cheaply at many points at once. From a guess, inverse
interpolation of their middles on five points about where the slope leads finds the crossing to all digits; where that
fails, a secant iteration does. Then points a little to either side are tried, ever farther, until the bracket itself
says on which side of the crossing each lies.

Guarantee: ``lower`` is a point where the curve is proved at least the value (or the start of the range), ``upper`` one
where it is proved at most the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.transforms.rule import Array

__all__ = ["LogBracket", "RootBracket", "root_bracket"]

_STEPS = 30
_FIVE = np.array([-1.0, -0.45, 0.0, 0.45, 1.0])
_WITHIN = 0.2  # of the first move, that the slope may mislead by
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
        return float(self.middles[0])

    @property
    def middles(self) -> Array:
        """The middles of the brackets; 1 below the upper side where there is no lower one."""
        return np.where(np.isinf(self.lower), self.upper - 1.0, 0.5 * (self.lower + self.upper))


@final
@dataclass(frozen=True)
class RootBracket:
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


def root_bracket(
    curve: Callable[[Array], LogBracket], targets: tuple[float, float], *, start: float, slope: float, reach: float
) -> RootBracket:
    """The bracket of the point where ``ln`` of a decreasing curve crosses a value.

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
    close = _interpolated(curve, goal, (start, gap, slope), reach)
    if close is not None:
        answer = _verified(curve, targets, *close)
        if math.isfinite(answer.upper - answer.lower):
            return answer
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
    here = curve(np.array([point]))
    doubt = 0.55 * float(here.upper[0] - here.lower[0]) + abs(here.middle - goal)
    return _verified(curve, targets, point, slope, doubt)


def _interpolated(
    curve: Callable[[Array], LogBracket], goal: float, known: tuple[float, float, float], reach: float
) -> tuple[float, float, float] | None:
    """The crossing by inverse interpolation, the slope there and a doubt in nats; None where five points do not tell.

    ``known`` is a point, how far ``ln`` of the curve lies above the goal there, and its slope.
    """
    start, gap, slope = known
    if not (slope > 0.0 and math.isfinite(gap)) or abs(gap) > 0.9 * reach * slope:
        return None
    move = gap / slope
    points = start + move + max(_WITHIN * abs(move), 1e-9 * reach) * _FIVE
    found = curve(points)
    values = found.middles - goal
    if not (np.isfinite(values).all() and (np.diff(values) < 0.0).all() and values[0] > 0.0 > values[-1]):
        return None
    differences = values[:, None] - values
    np.fill_diagonal(differences, 1.0)
    ratios = -values / differences
    np.fill_diagonal(ratios, 1.0)
    point = float(points[2] + (points - points[2]) @ ratios.prod(axis=1))
    if not points[0] <= point <= points[-1]:
        return None
    doubt = 0.55 * float((found.upper - found.lower).max())
    return point, float((values[0] - values[-1]) / (points[-1] - points[0])), doubt


def _verified(
    curve: Callable[[Array], LogBracket], targets: tuple[float, float], point: float, slope: float, doubt: float
) -> RootBracket:
    """The nearest points to either side that are proved; the curve is asked at the point itself first."""
    if not (math.isfinite(doubt) and slope > 0.0):
        return RootBracket(point, -math.inf, math.inf)
    offset = max(doubt / slope, 2.0**-52 * abs(point)) * _SPREAD
    every = np.concatenate(([point], point - offset, point + offset))
    found = curve(every)
    below = np.flatnonzero(found.lower[1 : 1 + offset.size] >= targets[0])
    above = np.flatnonzero(found.upper[1 + offset.size :] <= targets[1])
    return RootBracket(
        point,
        float(every[1 + below[0]]) if below.size else -math.inf,
        float(every[1 + offset.size + above[0]]) if above.size else math.inf,
    )
