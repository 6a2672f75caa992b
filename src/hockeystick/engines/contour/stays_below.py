"""Which curves are proved at once to stay below a delta.

By Chernoff's bound at one of a few tilts, with a rule and no line; or by a line that needs no plan of its own.

Like compositions share calls (`hockeystick.laws.loss_sum.LikeSums`), and nothing else: each finds what it finds alone.

Guarantee: what is said to stay below does, rounding included. Cost: a rule without frequencies, or one line.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.contour.line import ContourLine
from hockeystick.engines.contour.lines import Lines, Quantity
from hockeystick.engines.contour.placing import ContourRefusal, log_tail
from hockeystick.engines.contour.planned import lines_beside
from hockeystick.engines.contour.search import targets_of
from hockeystick.engines.contour.standing import DEEPEST, StandingLines, sides
from hockeystick.laws.loss_sum import LikeSums
from hockeystick.numerics.rounding import exp_up, up
from hockeystick.transforms.rule import Array
from hockeystick.transforms.saddle import SMALLEST_TILT, LossSum, round_tilts

__all__ = ["stay_below", "stay_below_beside"]

Flags = NDArray[np.bool_]

_ABOUT = np.array([0.25, 0.5, 0.7, 1.0, 1.4, 2.0])  # times a tilt, where the best one may be
_SHORT = 512  # frequencies of a line whose plan is tried for other losses
_FEW = 4096  # nodes in the loss that it may take
_DOUBT = 1e-6  # of an estimate of ln of Chernoff's bound


def stay_below(curves: Sequence[StandingLines], epsilon: Array, delta: Array) -> Flags:
    """Whether Chernoff's bound proves ``delta(epsilon[i]) <= delta[i]`` of each curve.

    Parameters
    ----------
    curves : sequence of StandingLines
        The curves.
    epsilon, delta : ndarray, shape (n,)
        A point for each (nats).
    """
    found = np.zeros(epsilon.size, dtype=np.bool_)
    kinds: dict[Hashable, list[int]] = {}
    for row in np.flatnonzero((epsilon > 0.0) & (delta > 0.0) & (delta < 1.0)).tolist():
        kinds.setdefault(curves[row].losses.kind or row, []).append(row)
    for own in kinds.values():
        goal = np.log(delta[own]) + _DOUBT
        tilts = _tilts(epsilon[own], delta[own])
        logs = log_tail(_together([curves[row] for row in own]), tilts, epsilon[own], goal=goal)
        for row, log in zip(own, logs.tolist(), strict=True):
            found[row] = up(curves[row].infinite_mass[1] + exp_up(min(log, 0.0))) <= delta[row]
    return found


def stay_below_beside(
    curves: Sequence[StandingLines], others: Sequence[StandingLines], epsilon: Array, delta: Array, quantity: Quantity
) -> Flags:
    """Whether the lines by which others answer, their plans unchanged, prove ``delta(epsilon[i]) <= delta[i]``.

    For two directions of one run with nearly the same curve, of which the other was asked for the quantity. Only short
    lines are worth the try.
    """
    alike: dict[Hashable, list[tuple[int, ContourLine]]] = {}
    for row, point in enumerate(zip(epsilon.tolist(), delta.tolist(), strict=True)):
        line = _short_line(others[row], *point, quantity)
        if line is not None:
            alike.setdefault((curves[row].losses.kind or row, line.frequencies.size), []).append((row, line))
    rows: list[int] = []
    lines: list[ContourLine] = []
    for own in alike.values():
        asked = [curves[row] for row, _ in own]
        finest = np.array([curve.finest for curve in asked])
        placed = lines_beside(_together(asked), [line for _, line in own], finest, nodes=_FEW)
        for (row, _), one in zip(own, placed, strict=True):
            if one is not None:
                rows.append(row)
                lines.append(one)
    found = np.zeros(epsilon.size, dtype=np.bool_)
    if rows:
        curve = Lines(lines).curve(np.arange(len(rows)), epsilon[rows, None])
        low, high = np.array([curves[row].infinite_mass for row in rows]).T
        found[rows] = sides(curve.log_lower()[:, 0], curve.log_upper()[:, 0], low, high)[1] <= delta[rows]
    return found


def _short_line(curve: StandingLines, epsilon: float, delta: float, quantity: Quantity) -> ContourLine | None:
    """The line by which a curve answers there, if it is short."""
    try:
        if quantity == "delta":
            placed = curve.near(epsilon=epsilon)
        else:
            placed = curve.near(log_delta=targets_of(delta, *curve.infinite_mass)[1])
    except ContourRefusal:
        return None
    if placed is None or not isinstance(placed.line, ContourLine) or placed.line.frequencies.size > _SHORT:
        return None
    return placed.line


def _together(curves: Sequence[StandingLines]) -> LossSum:
    """The losses of like curves."""
    sums = [curve.losses.dropping(DEEPEST) for curve in curves]
    return LikeSums.of(sums) if len(sums) > 1 else sums[0]


def _tilts(epsilon: Array, delta: Array) -> Array:
    """About the saddle point of a normal loss whose curve passes there, shape (k, n)."""
    depth = np.sqrt(-2.0 * np.log(delta))
    mu = np.sqrt(depth * depth + 2.0 * epsilon) - depth
    saddle = np.maximum(epsilon / (mu * mu) - 0.5, SMALLEST_TILT)
    return np.ascontiguousarray(round_tilts(saddle[:, None] * _ABOUT).T)
