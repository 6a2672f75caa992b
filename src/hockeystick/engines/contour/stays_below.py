"""Which curves are proved at once to stay below a delta: by Chernoff's bound at a few tilts, with a rule and no line.

Like compositions share calls (`hockeystick.laws.loss_sum.LikeSums`), and nothing else: each finds what it finds alone.

Guarantee: what is said to stay below does, rounding included. Cost: a rule without frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.contour.line import ContourLine
from hockeystick.engines.contour.lines import Quantity
from hockeystick.engines.contour.placing import ContourRefusal, log_tail, normal_tilts
from hockeystick.engines.contour.planned import line_beside
from hockeystick.engines.contour.root_bracket import LogBracket
from hockeystick.engines.contour.search import targets_of
from hockeystick.engines.contour.standing import DEEPEST, StandingLines
from hockeystick.laws.loss_sum import LikeSums
from hockeystick.numerics.rounding import exp_up, up
from hockeystick.transforms.cumulants import scan
from hockeystick.transforms.rule import Array

__all__ = ["seems_far_below", "stay_below", "stays_below_beside"]

_SHORT = 512  # frequencies of a line whose plan is tried for other losses
_FEW = 4096  # nodes in the loss that it may take
_DOUBT = 1e-6  # of an estimate of ln of Chernoff's bound


def stay_below(curves: Sequence[StandingLines], epsilon: Array, delta: Array) -> NDArray[np.bool_]:
    """Whether Chernoff's bound proves ``delta(epsilon[i]) <= delta[i]`` of each curve.

    Parameters
    ----------
    curves : sequence of StandingLines
        The curves.
    epsilon, delta : ndarray, shape (n,)
        A point for each (nats).
    """
    found = np.zeros(epsilon.size, dtype=np.bool_)
    kinds: dict[str | int, list[int]] = {}
    for row in np.flatnonzero((epsilon > 0.0) & (delta > 0.0) & (delta < 1.0)).tolist():
        kinds.setdefault(curves[row].losses.kind or row, []).append(row)
    for own in kinds.values():
        sums = [curves[row].losses.dropping(DEEPEST) for row in own]
        losses = LikeSums.of(sums) if len(sums) > 1 else sums[0]
        goal = np.log(delta[own]) + _DOUBT
        logs = log_tail(losses, normal_tilts(epsilon[own], delta[own]), epsilon[own], goal=goal)
        for row, log in zip(own, logs.tolist(), strict=True):
            found[row] = up(curves[row].infinite_mass[1] + exp_up(min(log, 0.0))) <= delta[row]
    return found


def seems_far_below(other: StandingLines, epsilon: float, delta: float) -> bool:
    """Whether Chernoff's bound seems to prove ``delta(epsilon) <= delta`` of the reverse of another: an estimate.

    The losses of (Q, P) have ``K(-1 - t)`` where those of (P, Q) have ``K(t)``.
    """
    level = other.stations(DEEPEST).level(0)
    if level is None or not (epsilon > 0.0 and 0.0 < delta < 1.0):
        return True
    tilts = normal_tilts(np.array([epsilon]), np.array([delta]))[:, 0]
    value = scan(level.sketches, other.losses.gaussian_variance, -1.0 - tilts).value
    return bool((value - tilts * epsilon + log_constant(tilts)).min() <= math.log(delta))


def stays_below_beside(
    own: StandingLines, other: StandingLines, epsilon: float, delta: float, quantity: Quantity
) -> bool:
    """Whether the line by which another answers, its plan unchanged, proves ``delta(epsilon) <= delta``.

    For two directions of one run with nearly the same curve. Only a short line is worth the try.
    """
    try:
        if quantity == "delta":
            placed = other.near(epsilon=epsilon)
        else:
            placed = other.near(log_delta=targets_of(delta, *other.infinite_mass)[1])
        if placed is None or not isinstance(placed.line, ContourLine) or placed.line.frequencies.size > _SHORT:
            return False
        line = line_beside(own.losses.dropping(DEEPEST), placed.line, own.finest, nodes=_FEW)
    except ContourRefusal:
        return False
    curve = line.curve(np.array([epsilon]))
    return own.sides_of(LogBracket(curve.log_lower(), curve.log_upper()))[1] <= delta
