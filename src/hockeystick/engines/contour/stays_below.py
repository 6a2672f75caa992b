"""Which curves are proved at once to stay below a delta.

By Chernoff's bound at one of a few tilts, with a rule and no line; or by a line that needs no plan of its own.

Like compositions share calls (`hockeystick.laws.loss_sum.together`), and nothing else: each finds what it finds alone.

Guarantee: what is said to stay below does, rounding included. Cost: a rule without frequencies, or one line.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.contour.laid import Runs
from hockeystick.engines.contour.line import ContourLine
from hockeystick.engines.contour.lines import Lines, Quantity
from hockeystick.engines.contour.looking import look_for
from hockeystick.engines.contour.placing import ContourRefusal, log_tail
from hockeystick.engines.contour.planned import lines_beside
from hockeystick.engines.contour.search import targets_of
from hockeystick.engines.contour.standing import DEEPEST, StandingLines
from hockeystick.engines.contour.widths import sides
from hockeystick.laws.loss_sum import together
from hockeystick.numerics.columns import Flags
from hockeystick.numerics.rounding import exp_up, up
from hockeystick.transforms.cumulants import scan
from hockeystick.transforms.reversed_rule import ReversedSum
from hockeystick.transforms.rule import Array, few_bits_up
from hockeystick.transforms.saddle import normal_tilts

_SHORT = 512  # frequencies of a line whose plan is tried for other losses
_FEW = 4096  # nodes in the loss that it may take
_ABOUT = np.array([0.25, 0.5, 0.7, 1.0, 1.4, 2.0])[:, None]  # times a tilt, where the best one may be
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
        tilts = normal_tilts(epsilon[own], np.log(delta[own]), _ABOUT)
        logs = log_tail(together([curves[row].losses.dropping(DEEPEST) for row in own]), tilts, epsilon[own], goal=goal)
        for row, log in zip(own, logs.tolist(), strict=True):
            found[row] = up(curves[row].infinite_mass[1] + exp_up(min(log, 0.0))) <= delta[row]
    return found


def seems_far_below(other: StandingLines, epsilon: float, delta: float) -> bool:
    """Whether Chernoff's bound seems to prove ``delta(epsilon) <= delta`` of the reverse of another.

    An estimate by a coarse rule, since the losses of (Q, P) have ``K(-1 - t)`` where those of (P, Q) have ``K(t)``; so
    where it is not known.
    """
    level = other.ladder(DEEPEST).level((0,))
    if level is None or not (epsilon > 0.0 and 0.0 < delta < 1.0):
        return True
    tilts = normal_tilts(np.array([epsilon]), np.array([math.log(delta)]), _ABOUT)[:, 0]
    logs = scan(level.sketches, other.losses.gaussian_variance, -1.0 - tilts).value - tilts * epsilon
    return bool((logs + log_constant(tilts)).min() <= math.log(delta))


def log_reverses(others: Sequence[StandingLines], epsilon: Array, delta: Array, quantity: Quantity) -> Array:
    """Upper bounds on ``ln delta_fin(epsilon[i])`` of the reverse of other curves; infinite where no line stands.

    By Chernoff's bound, at tilts of the line by which the other answers when asked for the quantity.
    """
    found = np.full_like(epsilon, np.inf)
    for row, line in enumerate(_lines_of(others, epsilon, delta, quantity)):
        if line is not None and line.dropped == 0.0:
            found[row] = line.chernoff.log_reverse_bound(float(epsilon[row]))
    return found


def log_reverse_beside(other: StandingLines, epsilon: float, delta: float, quantity: Quantity) -> float:
    """The same by a line where the other's stands, by the rule of that, which serves both; infinite if several do."""
    at = np.array([epsilon])
    (line,) = _lines_of([other], at, np.array([delta]), quantity)
    if line is None or [rule.size for rule in line.rules] != [1] or line.dropped > 0.0:
        return math.inf
    (rule,), nodes = line.rules, line.frequencies.size
    level = other.ladder(DEEPEST).level((0,))
    cells = None if level is None or len(level.sketches) != 1 else level.sketches[0].cells
    if cells is None or nodes > _SHORT or rule.nodes > _FEW:
        return math.inf
    variance = other.losses.gaussian_variance
    runs = Runs(np.zeros(1, dtype=np.intp), np.array([other.losses.total_count]), np.array([variance]))
    losses = ReversedSum(rule, cells, variance, other.losses.replicas)
    (found,) = lines_beside(losses, [line], np.array([other.finest]), count=nodes, nodes=_FEW, runs=runs)
    return math.inf if found is None else float(found.curve(at).log_upper()[0])


def stay_below_beside(
    curves: Sequence[StandingLines], others: Sequence[StandingLines], epsilon: Array, delta: Array, quantity: Quantity
) -> Flags:
    """Whether the lines by which others answer, their plans unchanged, prove ``delta(epsilon[i]) <= delta[i]``.

    For two directions of one run with nearly the same curve, of which the other was asked for the quantity. Only short
    lines are worth the try.
    """
    alike: dict[tuple[Hashable, int], list[tuple[int, ContourLine]]] = {}
    for row, line in enumerate(_lines_of(others, epsilon, delta, quantity)):
        if line is not None and line.frequencies.size <= _SHORT:
            # few-bit numbers: those of one plan end where their own steps allow
            count = int(few_bits_up(np.array(float(line.frequencies.size))))
            alike.setdefault((curves[row].losses.kind or row, count), []).append((row, line))
    rows: list[int] = []
    lines: list[ContourLine] = []
    for (_, count), own in alike.items():
        beside = _beside([(curves[row], line) for row, line in own], count)
        for (row, _), one in zip(own, beside, strict=True):
            if one is not None:
                rows.append(row)
                lines.append(one)
    found = np.zeros(epsilon.size, dtype=np.bool_)
    if rows:
        curve = Lines(lines).curve(np.arange(len(rows)), epsilon[rows, None])
        low, high = np.array([curves[row].infinite_mass for row in rows]).T
        found[rows] = sides(curve.log_lower()[:, 0], curve.log_upper()[:, 0], low, high)[1] <= delta[rows]
    return found


def _beside(asked: Sequence[tuple[StandingLines, ContourLine]], count: int) -> list[ContourLine | None]:
    """Lines of like curves where others' stand, of so many nodes each; None where rules are too long."""
    plans: dict[Hashable, list[int]] = {}
    for place, (curve, line) in enumerate(asked):
        known = line.chernoff
        where = float(known.theta), float(line.step), known.tilts.tobytes()
        plans.setdefault((curve.plan if curve.losses.kind else place, where), []).append(place)
    order = [place for own in plans.values() for place in own]
    first = [asked[own[0]] for own in plans.values()]
    losses = together([curve.planned.dropping(DEEPEST) for curve, _ in first])
    runs: Runs | None = None
    if first[0][0].losses.kind:
        counts, _, variance, *_ = np.array([asked[place][0].numbers for place in order]).T
        runs = Runs(np.repeat(np.arange(len(plans)), [len(own) for own in plans.values()]), counts, variance)
    finest = np.array([curve.finest for curve, _ in first])
    found = lines_beside(losses, [line for _, line in first], finest, count=count, nodes=_FEW, runs=runs)
    return [found[place] for place in np.argsort(order)]


def _lines_of(
    curves: Sequence[StandingLines], epsilon: Array, delta: Array, quantity: Quantity
) -> list[ContourLine | None]:
    """The lines by which curves answer there, each at a point of its own."""
    values = epsilon
    if quantity == "epsilon":
        asked = zip(curves, delta.tolist(), strict=True)
        values = np.array([targets_of(value, *curve.infinite_mass)[1] for curve, value in asked])
    found: list[ContourLine | None] = []
    for curve, station in zip(curves, look_for(curves, np.arange(values.size), values, quantity), strict=True):
        try:
            placed = curve.at(station)
        except ContourRefusal:
            placed = None
        found.append(placed.line if placed is not None and isinstance(placed.line, ContourLine) else None)
    return found
