"""Rules tilted for lines, where the nodes of these lie, and the lines; those of runs that share rules at once.

Guarantee: every line proves what it says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from hockeystick.engines.contour.aliasing import Chernoff, chernoff
from hockeystick.engines.contour.decay import Decay
from hockeystick.engines.contour.line import LONGEST, ContourLine, line_parts, summed_line
from hockeystick.engines.contour.line_part import LinePart
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.contour.tilt_choice import LinePlan
from hockeystick.numerics.columns import Places
from hockeystick.transforms.log_moments import LogMoments, TiltedRule, log_moments, tilt
from hockeystick.transforms.rule import Array, LossRule, Numbers, Window
from hockeystick.transforms.saddle import LossSum

TOO_LONG: Final = "a rule would need too many nodes at the frequencies and tilts asked for"
FEWEST: Final = math.sqrt(0.5)
"""Of the number of steps that lines are planned for (`PairSum.planned`): what their runs have, at least."""

_TRUE, _ONLY = np.ones(1, dtype=np.bool_), np.zeros(1, dtype=np.intp)
_AT_ONCE = 64  # lines summed at a time


@final
@dataclass(frozen=True, eq=False)
class Runs:
    """Runs whose lines share plans and rules: those of one law and of nearly as many steps.

    Attributes
    ----------
    rows : ndarray of int, shape (L,)
        Whose plan each has, increasing.
    counts, gaussian_variance : ndarray, shape (L,)
        Numbers of steps, and variances of the normal parts.
    """

    rows: Places
    counts: Array
    gaussian_variance: Array

    def among(self, own: Places) -> tuple[Places, Runs]:
        """Those with some of the plans, which are numbered anew."""
        if self.rows.size == own.size == 1 and self.rows[0] == own[0] == 0:
            return _ONLY, self
        place = np.minimum(np.searchsorted(own, self.rows), own.size - 1)
        which = np.flatnonzero(own[place] == self.rows)
        return which, self.of(which, place[which])

    def of(self, which: Places | slice, rows: Places) -> Runs:
        """Some of them, whose plans are numbered anew."""
        return Runs(rows, self.counts[which], self.gaussian_variance[which])


def among(runs: Runs | None, own: Places) -> tuple[Places, Runs | None]:
    """Whose plans some are; every run has its own where none are shared."""
    return (own, None) if runs is None else runs.among(own)


@final
@dataclass(frozen=True, eq=False)
class TiltedRules:
    """Accurate rules, their moments, and the same tilted, for plans and the variances of the normal parts."""

    rules: Sequence[LossRule]
    moments: Sequence[LogMoments]
    tilted: Sequence[TiltedRule]
    tilts: Array
    gaussian_variance: Numbers

    @classmethod
    def of(cls, losses: LossSum, plan: LinePlan, window: Window) -> TiltedRules:
        rules = rules_for(losses, window)
        exponents = 1.0 + plan.every
        several = [log_moments(rule, exponents if len(plan.theta) > 1 else exponents[:, 0], fine=1) for rule in rules]
        tilted = [tilt(rule, exponents[0], m) for rule, m in zip(rules, several, strict=True)]
        return cls(rules, several, tilted, plan.every, losses.gaussian_variance)

    @cached_property
    def chernoff(self) -> Chernoff:
        """K at all tilts of the plans, `Chernoff.stacked`."""
        return chernoff([rule.counts for rule in self.rules], self.moments, self.gaussian_variance, self.tilts)

    def chernoff_with(self, variance: float) -> Chernoff:
        """K of the first sum at the same tilts with a normal part of that variance."""
        return chernoff([rule.counts for rule in self.rules], self.moments, variance, self.tilts[:, 0])

    def chernoff_of(self, rows: Places, counts: Array, variance: Array) -> Chernoff:
        """K of runs that share the only rules of sums, by the rows of these."""
        alone = rows.size == self.tilts.shape[1] == 1
        moments = self.moments if alone else [moment.at(rows) for moment in self.moments]
        return chernoff([counts], moments, variance, self.tilts if alone else np.ascontiguousarray(self.tilts[:, rows]))

    def period(self, epsilon: float, log_error: float) -> float:
        """Lambda of the first sum for which the aliasing falls below ``e^log_error``."""
        period = float(self.chernoff.at(0).period(epsilon, log_error))
        if not math.isfinite(period):
            raise ContourRefusal("aliasing", "no tilt bounds the aliasing")
        return period


def rules_for(losses: LossSum, window: Window) -> Sequence[LossRule]:
    """Rules that serve a window.

    Raises
    ------
    ContourRefusal
        Where one would be too long.
    """
    rules = losses.rules(window)
    if rules is None:
        raise ContourRefusal("length", TOO_LONG)
    return rules


@final
@dataclass(frozen=True, eq=False)
class Laid:
    """Where the nodes of lines of R sums lie, and what is known of the rules; steps and numbers have the shape (R,)."""

    losses: LossSum
    tilted: TiltedRules
    decay: Decay
    exponent: Array
    step: Array
    nodes: Array
    log_error: Array | None = None

    @cached_property
    def parts(self) -> Sequence[LinePart]:
        return line_parts(self.tilted.rules, self.tilted.tilted, *scalars(self.exponent, self.last))

    def lines(self, rows: Places, length: int, runs: Runs | None) -> tuple[list[int], list[ContourLine]]:
        """The lines of so many nodes of the sums meant, and which of the runs' they are."""
        every, own_runs = among(runs, rows)
        places, found = every.tolist(), []
        own_rows = np.arange(rows.size) if own_runs is None else own_runs.rows
        most = _AT_ONCE if length <= LONGEST else 1
        for first in range(0, own_rows.size, most):
            part = own_rows[first : first + most]
            starts = np.concatenate((_TRUE, part[1:] > part[:-1]))
            own, place = part[starts], starts.cumsum() - 1
            some = None if own_runs is None else own_runs.of(slice(first, first + most), place)
            several, sizes = self._several(rows[own], length, some)
            rules = self.tilted.rules if len(sizes) == self.step.size == 1 else ()
            cut = [several.part(row, size, rules) for row, size in enumerate(sizes)]
            found += [_with_replicas(self.losses, line) for line in cut]
        return places, found

    def _several(self, own: Places, length: int, runs: Runs | None) -> tuple[ContourLine, list[int]]:
        """Lines that share calls, and how many of their nodes matter; of a long one, it alone."""
        parts = self.parts if self.step.size == 1 else [part.at(own) for part in self.parts]
        variance: Any
        if runs is None:
            every: Any = self.losses.gaussian_variance
            variance = every[own] if np.ndim(every) else every
            known, log_tail = self.tilted.chernoff.at(own), self.decay.log_bound(self.last[None])[0, own]
            sizes = [length] * own.size
        else:
            rows, variance = own[runs.rows], runs.gaussian_variance
            known = self.tilted.chernoff_of(rows, runs.counts, variance)
            sizes, log_tail = self._enough(rows, length, runs)
            parts = [part.of_runs(runs.rows, runs.counts) for part in parts]
        where: dict[str, Any] = {"step": self.step[own], "nodes": length, "most": max(sizes)}
        return summed_line(parts, variance, chernoff=known, log_tail=log_tail, **where), sizes

    @cached_property
    def last(self) -> Array:
        """The last frequencies."""
        return self.step * (self.nodes - 1.0)

    def _enough(self, rows: Places, length: int, runs: Runs) -> tuple[list[int], Array]:
        """How many nodes are enough for runs of more steps than the fewest, and ``ln`` of the transform beyond."""
        decay, last = self.decay.of_runs(rows, runs.counts, runs.gaussian_variance), self.last[rows]
        good, tail, sizes = np.zeros(rows.size, dtype=np.bool_), np.zeros(rows.size), np.full(rows.size, length)
        if self.log_error is not None and length <= LONGEST:
            planned = (self.losses.total_count + 0.0 * self.step)[rows]
            unit = 2.0 ** max(math.floor(math.log2(length)) - 4, 0)
            least = np.ceil((length - 1.0) * np.sqrt(FEWEST * planned / runs.counts)) + 1.0
            less = np.minimum(np.ceil(least / unit) * unit, length)
            theta, edge = self.exponent[rows] - 1.0, self.step[rows] * (less - 1.0)
            tail = decay.log_bound(edge[None])[0]
            good = tail + np.log(np.arctan(theta / edge) / (math.pi * theta)) <= self.log_error[rows]
            sizes = np.where(good, less, length).astype(np.intp)
        log_tail = tail if good.all() else np.where(good, tail, decay.log_bound(last[None])[0])
        found: list[int] = sizes.tolist()
        return found, log_tail


def _with_replicas(losses: LossSum, line: ContourLine) -> ContourLine:
    """The line, with what replicas of losses that count as normal may add."""
    replicas = losses.replicas
    if replicas is None:
        return line
    more = replicas.bound(float(line.chernoff.theta), float(line.step), float(line.frequencies[-1]))
    return replace(line, left_out=line.left_out + more)


def scalars(*numbers: Array) -> Sequence[Any]:
    """Numbers of R runs; of one run as floats, which every law's rules take."""
    return [float(one[0]) if one.size == 1 else one for one in numbers]
