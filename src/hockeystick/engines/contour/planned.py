"""Lines for many sums at once, as they are planned: each number is that of the sum alone, to the bit.

Sums whose rules have as many nodes share numpy calls, and so do lines of as many frequencies. See
`hockeystick.engines.contour.placing` for what a plan is.

Guarantee: every line proves what it says. Cost: that of its numbers; a thousand calls for each group of like sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from hockeystick.engines.contour.decay import Decay, RoughDecay, is_cut
from hockeystick.engines.contour.laid import FEWEST, TOO_LONG, Laid, Runs, TiltedRules, among, scalars
from hockeystick.engines.contour.line import ContourLine
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.contour.tilt_choice import BEST, LinePlan
from hockeystick.numerics.columns import Places, across
from hockeystick.transforms.rule import Array, Sketch, Window, few_bits_up
from hockeystick.transforms.saddle import LossSum

MOST_NODES = 1 << 20
"""Frequencies of a line, at most."""

MOST_WORK: Final = 250_000_000
"""Products of nodes in s and in the loss that a line may take: about half a second."""

_UNIT_GRID = np.linspace(0.0, 1.0, 16)
_SPARE = 2.0  # times the work allowed, that estimates may say
_LITTLE = 64.0  # nodes in the loss for each of which a line takes no longer than for its calls
_CELLS = 4  # between nodes, where a rule is cut off


def reach_of(decay: Decay, plan: LinePlan) -> Array:
    """The frequencies beyond which the bound leaves ``e^log_error``, shape (R,); infinite beyond a million scales."""
    low = high = np.log(1.0 / plan.deviation)
    beyond, row, theta = np.zeros(low.size, dtype=np.bool_), np.arange(low.size), across(plan.theta)
    for span in (15.4, 1.05):  # the second a little over the spacing of the first
        grid = np.exp(across(low) + span * _UNIT_GRID[:, None])
        rest = decay.log_bound(grid) + np.log(np.arctan(theta / grid) / (math.pi * theta))
        below = rest <= across(plan.log_error)
        beyond |= ~below.any(axis=0)
        index = below.argmax(axis=0)
        high = grid[index, row]
        low = np.log(grid[np.maximum(index - 1, 0), row])
    return np.where(beyond, np.inf, high)


def lines_for_epsilons(
    losses: LossSum,
    epsilon: Array,
    tolerance: Array,
    *,
    plan: LinePlan,
    sketches: Sequence[Sketch],
    work: Array,
    runs: Runs | None = None,
) -> list[ContourLine | ContourRefusal]:
    """Lines for R sums that are on no lattice, or why there is none, given coarse rules; arguments of shape (R,).

    With ``runs`` the sums are those planned for (`PairSum.planned`), and the lines those of the runs.
    """
    rough = RoughDecay.of(sketches, 1.0 + plan.theta, losses.gaussian_variance)
    cut = reach_of(rough.decay if runs is None else rough.decay.times(FEWEST), plan)
    slow = ContourRefusal("tail", "the transform decays too slowly for the tolerance: few steps, or atoms")
    long = ContourRefusal("length", TOO_LONG)
    served = np.isfinite(cut)
    refused = [long if one else slow for one in served.tolist()]
    found: list[ContourLine | ContourRefusal] = [*refused] if runs is None else [refused[row] for row in runs.rows]
    frequency = 1.02 * cut + 1.5 * 2.0 * math.pi / plan.period  # the last node lies within a step beyond the cut-off
    accuracy = accuracy_of(losses, plan, tolerance)
    with_cells = is_cut(sketches, epsilon.size)
    for cells, own in ((0, ~with_cells), (_CELLS, with_cells)):
        rows = (own & served).nonzero()[0]
        if rows.size == 0:
            continue
        nodes = cut[rows] * plan.period[rows] / (2.0 * math.pi)  # about: a rule that makes more work is not built
        window = Window.of(plan.exponents[:, rows], frequency[rows], accuracy[rows], cells)
        window = window.up_to(_SPARE * work[rows] / nodes)
        for part, some, share in losses.at(rows).alike(window):
            which = rows[part]
            own_plan = plan if epsilon.size == 1 else plan.at(which)
            columns = (epsilon[which], cut[which], work[which])
            places, own_runs = among(runs, which)
            asked = _Asked(some, own_plan, rough.at(which, epsilon.size), *columns, own_runs)
            for row, line in zip(places.tolist(), asked.lines(share), strict=True):
                found[row] = line
    return found


def accuracy_of(losses: LossSum, plan: LinePlan, tolerance: Array) -> Array:
    """``ln`` of the accuracy of rules, shape (R,).

    Errors of the identities sum q = sum p = 1 count with the exponents, all errors with the number of steps.
    """
    count = np.maximum(losses.total_count, 1.0) * (1.0 + 2.0 * plan.exponents.max(axis=0))
    return np.asarray(np.log(tolerance / 64.0) - np.log(count))


@final
@dataclass(frozen=True, eq=False)
class _Asked:
    """What is known of lines of R sums whose accurate rules have as many nodes."""

    losses: LossSum
    plan: LinePlan
    rough: RoughDecay
    epsilon: Array
    cut: Array
    work: Array
    runs: Runs | None

    @property
    def size(self) -> int:
        """How many lines."""
        return self.epsilon.size if self.runs is None else self.runs.rows.size

    def lines(self, window: Window) -> list[ContourLine | ContourRefusal]:
        """The lines, or why there is none."""
        runs = self.epsilon.size
        try:
            tilted = TiltedRules.of(self.losses, self.plan, window)
        except ContourRefusal as refusal:
            return [refusal] * self.size
        own_cut = is_cut(tilted.rules, runs)
        if not own_cut.any() or (window.cells > 0 and own_cut.all()):
            return self.of(tilted)
        # rules that are cut off bring their own cells; others need none, whoever shares a pass with them
        found: list[ContourLine | ContourRefusal] = [ContourRefusal("length", TOO_LONG)] * self.size
        for cells, own in ((0, ~own_cut), (_CELLS, own_cut)):
            rows = np.flatnonzero(own)
            if rows.size:
                places, some = self._at(rows, runs)
                share = replace(window if runs == 1 else window.at(rows), cells=cells)
                lines = some.of(TiltedRules.of(some.losses, some.plan, share))
                for row, line in zip(places.tolist(), lines, strict=True):
                    found[row] = line
        return found

    def _at(self, rows: Places, runs: int) -> tuple[Places, _Asked]:
        """Some of the plans, and whose they are."""
        places, own = among(self.runs, rows)
        columns = (self.epsilon[rows], self.cut[rows], self.work[rows], own)
        return places, _Asked(self.losses.at(rows), self.plan.at(rows), self.rough.at(rows, runs), *columns)

    def of(self, tilted: TiltedRules) -> list[ContourLine | ContourRefusal]:
        """The lines of tilted rules, or why there is none."""
        plan = self.plan
        decay = self.rough.measured(tilted.rules, tilted.moments)
        period = tilted.chernoff.period(self.epsilon, plan.log_error)
        known = np.isfinite(period)
        unbounded = ContourRefusal("aliasing", "no tilt bounds the aliasing")
        longest = max((rule.nodes for rule in tilted.rules), default=0)
        step, nodes = _grids(np.where(known, period, 1.0), self.cut, longest)
        size = sum(rule.nodes * (rule.size // self.epsilon.size) for rule in tilted.rules)
        fits = known & (nodes <= MOST_NODES) & (nodes * size <= self.work)
        why = [_refused(length) if one else unbounded for one, length in zip(known, nodes.tolist(), strict=True)]
        found: list[ContourLine | ContourRefusal] = [*why] if self.runs is None else [why[r] for r in self.runs.rows]
        laid = Laid(self.losses, tilted, decay, 1.0 + plan.theta, step, nodes, plan.log_error)
        for length in sorted(set(nodes[fits].tolist())):
            rows = (fits & (nodes == length)).nonzero()[0]
            places, lines = laid.lines(rows, int(length), self.runs)
            for row, line in zip(places, lines, strict=True):
                found[row] = line
        return found


def lines_beside(
    losses: LossSum, others: Sequence[ContourLine], tolerance: Array, *, count: int, nodes: int, runs: Runs | None
) -> list[ContourLine | None]:
    """The lines of runs at the tilts and steps of others, one for each of the R sums planned for, of so many nodes.

    By rules of at most ``nodes`` nodes; None where these are too few.
    """
    theta, step = np.array([(one.chernoff.theta, one.step) for one in others]).T
    reach = step * (count - 1.0)
    unknown = np.full_like(theta, np.nan)
    tilts = np.array([one.chernoff.tilts[BEST] for one in others]).T
    plan = LinePlan(theta, tilts, tilts[:0], log_error=unknown, deviation=unknown, period=unknown)
    window = Window.of(plan.exponents, reach, accuracy_of(losses, plan, tolerance), _CELLS)
    found: list[ContourLine | None] = [None] * (theta.size if runs is None else runs.rows.size)
    for rows, some, share in losses.alike(window.up_to(np.full_like(theta, nodes))):
        try:
            tilted = TiltedRules.of(some, plan.at(rows), share)
        except ContourRefusal:
            continue
        exponent = 1.0 + theta[rows]
        decay = Decay.of(tilted.rules, tilted.moments, scalars(exponent)[0], some.gaussian_variance)
        laid = Laid(some, tilted, decay, exponent, step[rows], np.full(rows.size, float(count)))
        which, own = among(runs, rows)
        places, lines = laid.lines(np.arange(rows.size), count, own)
        for row, line in zip(which[places].tolist(), lines, strict=True):
            found[row] = line
    return found


def _refused(nodes: float) -> ContourLine | ContourRefusal:
    return ContourRefusal("tail", f"{nodes:.0f} nodes would be needed: few steps, or atoms")


def _grids(period: Array, cut: Array, longest: int) -> tuple[Array, Array]:
    """Distances of nodes, of 21 bits, and their numbers, of few bits: many lines have as many nodes as others.

    The longest rule has so many nodes in the loss.
    """
    enough = np.ceil(cut / few_bit_steps(2.0 * math.pi / period))
    nodes = few_bits_up(enough + 1.0, longest / _LITTLE)
    # the reach stays, since the rules serve no more: nodes lie closer instead
    return few_bit_steps(2.0 * math.pi / period * (enough / (nodes - 1.0))), nodes


def few_bit_steps(exact: Array) -> Array:
    """Distances of nodes, of 21 bits."""
    unit = np.ldexp(1.0, np.frexp(exact)[1] - 21)
    return np.asarray(np.floor(exact / unit) * unit)
