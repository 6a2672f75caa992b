"""Lines through saddle points of what is planned for many runs, and how narrow they are there.

Guarantee: every line proves what it says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from hockeystick.engines.contour.laid import Runs
from hockeystick.engines.contour.lines import Lines
from hockeystick.engines.contour.placing import ContourRefusal
from hockeystick.engines.contour.planned import lines_for_epsilons
from hockeystick.engines.contour.search import HERE, PlacedLine
from hockeystick.engines.contour.tilt_choice import plan_lines
from hockeystick.engines.contour.widths import sides, width_asked
from hockeystick.numerics.columns import Array, Places
from hockeystick.transforms.saddle import LossSum, Saddle

SMALLEST: Final = -740.0
"""``ln`` of what float64 still tells from 0."""


@final
@dataclass(frozen=True, eq=False)
class PlannedRuns:
    """Which plan each run has, increasing, shape (L,), and its numbers, shape (7, L).

    Steps, how many times those planned for; the variance of the normal part; the relative widths of delta asked for,
    and that with which a line stays; bounds on the mass at infinity.
    """

    rows: Places
    numbers: Array


def lines_through(
    losses: LossSum, saddle: Saddle, runs: PlannedRuns, *, finest: Array, work: Array
) -> list[PlacedLine | ContourRefusal | None]:
    """The lines of runs, or why there is none; None where delta there is too small for float64.

    Parameters
    ----------
    losses : LossSum
        What is planned for.
    saddle : Saddle
        Saddle points of it, `Saddle.stacked`.
    runs : PlannedRuns
        Whose lines are wanted.
    finest, work : ndarray, shape (R,)
        The relative widths that lines are planned for, and what they may take.
    """
    rows, (counts, ratio, variance, *_) = runs.rows, runs.numbers
    own = saddle.times(rows, ratio, variance)
    shared, at, epsilon = Runs(rows, counts, variance), saddle.epsilon, own.epsilon
    plan = plan_lines(losses, saddle, at, tolerance=finest)
    asked: dict[str, Any] = {"plan": plan, "sketches": saddle.sketches, "work": work, "runs": shared}
    lines = lines_for_epsilons(losses, at, finest, **asked)
    # next to a cliff of K lines stand far below saddle points
    near, far = plan.theta**-2.0, (1.0 + plan.theta) ** -2.0
    spread = (plan.deviation**2 - near - far)[rows]
    there = ratio * (spread - variance) + variance + near[rows] + far[rows]
    deviation = np.sqrt(np.maximum(own.curvature, there))
    held = own.log_delta(epsilon) >= SMALLEST
    found: list[PlacedLine | ContourRefusal | None] = [None] * rows.size
    standing: list[int] = []
    placed: list[PlacedLine] = []
    for row in held.nonzero()[0].tolist():
        line = lines[row]
        if isinstance(line, ContourRefusal):
            found[row] = line
        else:
            standing.append(row)
            placed.append(PlacedLine(line, float(epsilon[row]), float(deviation[row])))
    if standing:
        for row, one in zip(standing, _looked_at(placed, runs.numbers[:, standing]), strict=True):
            found[row] = one
    return found


def _looked_at(placed: Sequence[PlacedLine], numbers: Array) -> list[PlacedLine | ContourRefusal]:
    """Lines with what they say where they are looked at first, asked for the width that they reach there."""
    *_, tolerance, enough, low, high = numbers
    curves = Lines([one.line for one in placed]).curve(np.arange(len(placed)), np.array([one.asked for one in placed]))
    lower, upper = curves.log_lower(), curves.log_upper()
    seen = [one.sees(*logs) for one, *logs in zip(placed, lower, upper, strict=True)]
    widths = width_asked(*sides(lower[:, HERE], upper[:, HERE], low, high), tolerance, enough).tolist()
    return [one.asked_for(w) if math.isfinite(w) else too_wide() for one, w in zip(seen, widths, strict=True)]


def too_wide() -> ContourRefusal:
    """Why no line stays."""
    return ContourRefusal("width", "no line at this tilt is narrow enough")
