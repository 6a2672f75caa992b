"""Lines for many sums at once, as they are planned: each number is that of the sum alone, to the bit.

Sums whose rules have as many nodes share numpy calls, and so do lines of as many frequencies. See
`hockeystick.engines.contour.placing` for what a plan is.

Guarantee: every line proves what it says. Cost: that of its numbers; a thousand calls for each group of like sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.contour.aliasing import Chernoff, chernoff
from hockeystick.engines.contour.decay import Decay, RoughDecay, is_cut
from hockeystick.engines.contour.line import LONGEST, ContourLine, line_parts, summed_line
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.contour.tilt_choice import BEST, LinePlan, plan_lines
from hockeystick.transforms.log_moments import LogMoments, TiltedRule, log_moments, tilt
from hockeystick.transforms.rule import Array, LossRule, Window, few_bits_up
from hockeystick.transforms.saddle import LossSum, Saddle

__all__ = [
    "MOST_NODES",
    "MOST_WORK",
    "TiltedRules",
    "accuracy_of",
    "few_bit_steps",
    "lines_beside",
    "lines_for_epsilons",
    "reach_of",
    "rules_for",
]

MOST_NODES = 1 << 20
"""Frequencies of a line, at most."""

MOST_WORK: Final = 250_000_000
"""Products of nodes in s and in the loss that a line may take: about half a second."""

_TOO_LONG = "a rule would need too many nodes at the frequencies and tilts asked for"
_AT_ONCE = 64  # lines summed at a time
_UNIT_GRID = np.linspace(0.0, 1.0, 16)
_SPARE = 2.0  # times the work allowed, that estimates may say
_CELLS = 4  # between nodes, where a rule is cut off


class Falling(Protocol):
    """A bound on transforms that falls with the frequency."""

    def log_bound(self, frequencies: Array) -> Array:
        """At each frequency, shape (F, R)."""


def reach_of(decay: Falling, plan: LinePlan) -> Array:
    """The frequencies beyond which the bound leaves ``e^log_error``, shape (R,); infinite beyond a million scales."""
    low = high = np.log(1.0 / plan.deviation)
    beyond, row = np.zeros(low.size, dtype=np.bool_), np.arange(low.size)
    for span in (15.4, 1.05):  # the second a little over the spacing of the first
        grid = np.exp(low + span * _UNIT_GRID[:, None])
        rest = decay.log_bound(grid) + np.log(np.arctan(plan.theta / grid) / (math.pi * plan.theta))
        below = rest <= plan.log_error
        beyond |= ~below.any(axis=0)
        index = np.argmax(below, axis=0)
        high = grid[index, row]
        low = np.log(grid[np.maximum(index - 1, 0), row])
    return np.where(beyond, np.inf, high)


def lines_for_epsilons(
    losses: LossSum,
    epsilon: Array,
    tolerance: Array,
    *,
    saddle: Saddle,
    log_delta: Array | None = None,
    work: Array,
) -> list[ContourLine | ContourRefusal]:
    """Lines for R sums that are on no lattice, or why there is none; arguments as for one, of shape (R,)."""
    plan = plan_lines(losses, saddle, epsilon, tolerance=tolerance, log_delta=log_delta)
    rough = RoughDecay.of(saddle.sketches, 1.0 + plan.theta, losses.gaussian_variance)
    cut = reach_of(rough.decay, plan)
    slow = ContourRefusal("tail", "the transform decays too slowly for the tolerance: few steps, or atoms")
    long = ContourRefusal("length", _TOO_LONG)
    found: list[ContourLine | ContourRefusal] = [long if np.isfinite(one) else slow for one in cut.tolist()]
    frequency = 1.02 * cut + 1.5 * 2.0 * math.pi / plan.period  # the last node lies within a step beyond the cut-off
    accuracy = accuracy_of(losses, plan, tolerance)
    with_cells = rough.is_cut(epsilon.size)
    for cells, own in ((0, ~with_cells), (_CELLS, with_cells)):
        rows = np.flatnonzero(own & np.isfinite(cut))
        if rows.size == 0:
            continue
        nodes = cut[rows] * plan.period[rows] / (2.0 * math.pi)  # about: a rule that makes more work is not built
        window = Window.of(plan.exponents[:, rows], frequency[rows], accuracy[rows], cells)
        window = window.up_to(_SPARE * work[rows] / nodes)
        for part, some, share in losses.at(rows).alike(window):
            which = rows[part]
            asked = _Asked(some, plan.at(which), rough.at(which, epsilon.size), epsilon[which], cut[which], work[which])
            for row, line in zip(which.tolist(), asked.lines(share), strict=True):
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

    def lines(self, window: Window) -> list[ContourLine | ContourRefusal]:
        """The lines, or why there is none."""
        runs = self.epsilon.size
        try:
            tilted = TiltedRules.of(self.losses, self.plan, window)
        except ContourRefusal as refusal:
            return [refusal] * runs
        own_cut = is_cut(tilted.rules, runs)
        if window.cells > 0 or not own_cut.any():
            return self.of(tilted)
        # rules that are cut off, where the coarse ones are not, bring their own cells
        found: list[ContourLine | ContourRefusal] = [ContourRefusal("length", _TOO_LONG)] * runs
        for cells, own in ((0, ~own_cut), (_CELLS, own_cut)):
            rows = np.flatnonzero(own)
            if rows.size:
                some = self._at(rows, runs)
                share = replace(window if runs == 1 else window.at(rows), cells=cells)
                for row, line in zip(
                    rows.tolist(), some.of(TiltedRules.of(some.losses, some.plan, share)), strict=True
                ):
                    found[row] = line
        return found

    def _at(self, rows: NDArray[np.intp], runs: int) -> _Asked:
        columns = (self.epsilon[rows], self.cut[rows], self.work[rows])
        return _Asked(self.losses.at(rows), self.plan.at(rows), self.rough.at(rows, runs), *columns)

    def of(self, tilted: TiltedRules) -> list[ContourLine | ContourRefusal]:
        """The lines of tilted rules, or why there is none."""
        plan, runs, chernoff = self.plan, self.epsilon.size, tilted.chernoff
        decay = self.rough.measured(tilted.rules, tilted.moments)
        period = chernoff.period(self.epsilon, plan.log_error)
        known = np.isfinite(period)
        unbounded = ContourRefusal("aliasing", "no tilt bounds the aliasing")
        step, nodes = _grids(np.where(known, period, 1.0), self.cut)
        log_tail = decay.log_bound((step * (nodes - 1.0))[None])[0]
        parts = line_parts(tilted.rules, tilted.tilted, *_scalars(1.0 + plan.theta, step * (nodes - 1.0)))
        size = sum(rule.nodes * (rule.size // runs) for rule in tilted.rules)
        fits = (nodes <= MOST_NODES) & (nodes * size <= self.work)
        variance: Any = self.losses.gaussian_variance
        found = [_refused(length) if one else unbounded for one, length in zip(known, nodes.tolist(), strict=True)]
        for length in sorted(set(nodes[known & fits].tolist())):
            rows = np.flatnonzero(known & fits & (nodes == length))
            for first in range(0, rows.size, _AT_ONCE if length <= LONGEST else 1):
                own = rows[first : first + _AT_ONCE] if length <= LONGEST else rows[first : first + 1]
                several = summed_line(
                    parts if runs == 1 else [part.at(own) for part in parts],
                    variance[own] if np.ndim(variance) else variance,
                    chernoff=chernoff.rows(own),
                    step=step[own],
                    nodes=int(length),
                    log_tail=log_tail[own],
                )
                for place, row in enumerate(own.tolist()):
                    found[row] = _with_replicas(self.losses, several.rows(place))
        return found


def lines_beside(
    losses: LossSum, others: Sequence[ContourLine], tolerance: Array, *, nodes: int
) -> list[ContourLine | None]:
    """The lines of R sums at the tilts and frequencies of others', which are as many for each.

    By rules of at most so many nodes; None where these are too few.
    """
    theta, reach, step = np.array([(one.chernoff.theta, one.frequencies[-1], one.step) for one in others]).T
    unknown = np.full_like(theta, np.nan)
    tilts = np.array([one.chernoff.tilts[BEST] for one in others])
    plan = LinePlan(theta, tilts, log_error=unknown, deviation=unknown, period=unknown)
    window = Window.of(plan.exponents, reach, accuracy_of(losses, plan, tolerance), _CELLS)
    found: list[ContourLine | None] = [None] * theta.size
    for rows, some, share in losses.alike(window.up_to(np.full_like(theta, nodes))):
        try:
            tilted = TiltedRules.of(some, plan.at(rows), share)
        except ContourRefusal:
            continue
        exponent, last = _scalars(1.0 + theta[rows], reach[rows])
        decay = Decay.of(tilted.rules, tilted.moments, exponent, some.gaussian_variance)
        several = summed_line(
            line_parts(tilted.rules, tilted.tilted, exponent, last),
            np.broadcast_to(some.gaussian_variance, rows.size),
            chernoff=tilted.chernoff,
            step=step[rows],
            nodes=others[0].frequencies.size,
            log_tail=decay.log_bound(reach[None, rows])[0],
        )
        for place, row in enumerate(rows.tolist()):
            found[row] = _with_replicas(some, several.rows(place))
    return found


def _with_replicas(losses: LossSum, line: ContourLine) -> ContourLine:
    """The line, with what replicas of losses that count as normal may add."""
    replicas = losses.replicas
    if replicas is None:
        return line
    more = replicas.bound(float(line.chernoff.theta), float(line.step), float(line.frequencies[-1]))
    return replace(line, left_out=line.left_out + more)


def _scalars(*numbers: Array) -> Sequence[Any]:
    """Numbers of R runs; of one run as floats, which every law's rules take."""
    return [float(one[0]) if one.size == 1 else one for one in numbers]


def _refused(nodes: float) -> ContourLine | ContourRefusal:
    return ContourRefusal("tail", f"{nodes:.0f} nodes would be needed: few steps, or atoms")


@final
@dataclass(frozen=True, eq=False)
class TiltedRules:
    """Accurate rules, the same tilted, and K at all tilts of plans, `Chernoff.stacked`."""

    rules: Sequence[LossRule]
    moments: Sequence[LogMoments]
    tilted: Sequence[TiltedRule]
    chernoff: Chernoff
    tilts: Array

    @classmethod
    def of(cls, losses: LossSum, plan: LinePlan, window: Window) -> TiltedRules:
        rules = rules_for(losses, window)
        exponents, tilts = np.ascontiguousarray(plan.exponents), np.ascontiguousarray(plan.every)
        several = [log_moments(rule, exponents if len(plan.theta) > 1 else exponents[:, 0]) for rule in rules]
        known = chernoff(rules, several, losses.gaussian_variance, tilts)
        tilted = [tilt(rule, exponents[0], m) for rule, m in zip(rules, several, strict=True)]
        return cls(rules, several, tilted, known, tilts)

    def chernoff_with(self, variance: float) -> Chernoff:
        """K of the first sum at the same tilts with a normal part of that variance."""
        return chernoff(self.rules, self.moments, variance, self.tilts[:, 0])

    def period(self, epsilon: float, log_error: float) -> float:
        """Lambda of the first sum for which the aliasing falls below ``e^log_error``."""
        period = float(self.chernoff.rows(0).period(epsilon, log_error))
        if not math.isfinite(period):
            raise ContourRefusal("aliasing", "no tilt bounds the aliasing")
        return period


def _grids(period: Array, cut: Array) -> tuple[Array, Array]:
    """Distances of nodes, of 21 bits, and their numbers, of few bits: many lines have as many nodes as others."""
    enough = np.ceil(cut / few_bit_steps(2.0 * math.pi / period))
    nodes = few_bits_up(enough + 1.0)
    # the reach stays, since the rules serve no more: nodes lie closer instead
    return few_bit_steps(2.0 * math.pi / period * (enough / (nodes - 1.0))), nodes


def few_bit_steps(exact: Array) -> Array:
    """Distances of nodes, of 21 bits."""
    unit = np.exp2(np.floor(np.log2(exact)) - 20.0)
    return np.asarray(np.floor(exact / unit) * unit)


def rules_for(losses: LossSum, window: Window) -> Sequence[LossRule]:
    """Rules that serve a window.

    Raises
    ------
    ContourRefusal
        Where one would be too long.
    """
    rules = losses.rules(window)
    if rules is None:
        raise ContourRefusal("length", _TOO_LONG)
    return rules
