"""The certified curve of Laplace steps, and of atoms too many to be listed, by lines of limited band.

Coarse lines first tell what is asked: about how large delta is, or where it is as large as that; how dense losses are
at epsilon; and how many frequencies make the bracket as narrow as is wanted. The widths of the lines of several terms
are shared out so that frequencies are fewest. The question alone decides which lines answer: kept ones make it faster,
never different.

Guarantee: lower and upper are certified, rounding included; what lines, terms and periods are chosen proves nothing
(sections 3 and 5 of `docs/derivations/one-sided-lines.md`). Cost: 0.05 microseconds for each of 1e4 to 1e7 frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.enumeration.outcomes import Parts
from hockeystick.engines.one_sided.kernels import COARSEST
from hockeystick.engines.one_sided.line import OneSidedLine
from hockeystick.engines.one_sided.terms import Atoms, Placed, Plan, Terms
from hockeystick.numerics.one_sided_root import crossings
from hockeystick.numerics.rounding import down, exp_up, up

_METHOD = "contour"
_COARSE = 1 << 13  # frequencies of a coarse line, or more
_LONG = 250.0  # periods over tilts, beyond which large losses are counted
_POOR = 6.0  # nats, by which a bound may be above delta: beyond, they are, too
_OCTAVES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)  # below epsilon, for their threshold
_MORE_OCTAVES = tuple(0.25 * k for k in range(24))  # where a bound is much farther above delta
_LOOKS = 16
_NEAR = 0.3  # nats of delta: how good a guess is looked for
_ROUNDS = 4
_ROOM = 0.9  # of the width wanted, but for roundings, for what the band leaves
_LEAST_ROOM = 0.3  # of the width wanted, or of what roundings leave
_POOREST = 1e-3  # nats, or a share of delta, beyond which a bracket is left to other engines
_SMALLEST = 1e-300  # deltas too small for that
_FARTHEST = 1e300
_AIM = 0.8  # of the width of epsilon wanted
_FAR = 10.0  # widths of a bracket from a guess, beyond which lines are chosen once more
_NOTHING = 1e-18  # of a sum: far below its roundings
_STEP = 5e-2  # over a tilt, for a slope
_PART = 1e-2  # of the width wanted, that roots need not be nearer to
_KEPT = 1 << 22  # frequencies of lines, of 32 bytes each, or less


@final
@dataclass(frozen=True)
class _Look:
    """About ``ln delta``; as shares of delta, how far the sums of each line are apart, and all roundings."""

    log_delta: float
    gaps: Sequence[float]
    rounded: float


@final
@dataclass(frozen=True)
class _Lines:
    """Lines of all terms that matter."""

    terms: Terms
    lines: tuple[OneSidedLine, ...]
    at_infinity: tuple[float, float]

    @property
    def nodes(self) -> int:
        """Frequencies of all lines."""
        return sum(line.nodes for line in self.lines)

    def lower(self, epsilon: float) -> float:
        """At most delta."""
        return max(down(math.fsum(line.lower(epsilon) for line in self.lines) + self.at_infinity[0], 1e-15), 0.0)

    def upper(self, epsilon: float) -> float:
        """At least delta."""
        others = exp_up(min(self.terms.log_bound(epsilon, [line.placed.number for line in self.lines]), 0.0))
        dropped = math.fsum(step.dropped * count for step, count in self.terms.steps)
        finite = math.fsum(line.upper(epsilon) for line in self.lines) + others + up(dropped, 1e-9)
        return min(up(finite + self.at_infinity[1], 1e-15), 1.0)

    def looked_at(self, epsilon: float) -> _Look:
        """About how large delta is, and what of it the sides are apart by."""
        scales = np.array([line.log_scale_at(epsilon) for line in self.lines])
        values = np.array([[line.value(side, epsilon) for side in (0, 1)] for line in self.lines])
        brought = np.array([self.terms.aliasing(line.placed, epsilon).lower for line in self.lines])
        with np.errstate(divide="ignore"):
            about = np.maximum(values.mean(axis=1) - np.exp(np.log(brought) - scales), _NOTHING)
        log_delta = float(np.logaddexp.reduce(scales + np.log(about)))
        shares = np.exp(np.minimum(scales - log_delta, 700.0))
        rounded = [line.rounded(epsilon, float(both.mean())) for line, both in zip(self.lines, values, strict=True)]
        return _Look(log_delta, (shares * np.diff(values)[:, 0]).tolist(), float(shares @ rounded))

    def slope(self, epsilon: float) -> float:
        """About ``-d ln(delta) / d epsilon``."""
        step = _STEP / max(line.placed.theta for line in self.lines)
        return max((self.looked_at(epsilon).log_delta - self.looked_at(epsilon + step).log_delta) / step, 1e-12)


@final
class OneSidedCurve:
    """The curve of one direction.

    Parameters
    ----------
    parts : sequence of (Pair, int)
        Pairs of atoms, or of Laplace noise.
    at_infinity : (float, float)
        Bounds on the mass at infinite loss.
    width : float
        Wanted of epsilon (nats), and of delta as a share.
    most : int
        Frequencies of the lines of an answer.
    """

    def __init__(self, parts: Parts, at_infinity: tuple[float, float], *, width: float, most: int) -> None:
        self._atoms, self._at_infinity, self._width, self._most = Atoms(parts), at_infinity, width, most
        self._kept: dict[tuple[Terms, Placed, int], OneSidedLine] = {}

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon).

        Raises
        ------
        ContourRefusal, TooManyOutcomesError
            Where no lines tell it.
        """
        lines = self._lines(epsilon, self._width)
        found = self._bound(lines, epsilon, lines.lower(epsilon), lines.upper(epsilon))
        if float(found.width) > max(_POOREST * float(found.lower), _SMALLEST):
            raise ContourRefusal("width", f"delta at epsilon {epsilon:g} was not told from what is left", found)
        return found

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``; raises as `delta`."""
        log_delta = math.log(max(delta - self._at_infinity[1], 1e-320))
        guess, width = self._guess(log_delta), _AIM * self._width
        lines, nodes = self._coarse(guess), 0
        for tried in range(_ROUNDS):
            slope = lines.slope(guess)
            try:
                lines = self._lines(guess, min(width * slope, 1e-3))
            except ContourRefusal:  # a bracket so wide that its middle is beyond all losses
                if tried == 0:
                    raise
                break
            off = lines.looked_at(guess).log_delta - log_delta
            at = max(guess + off / slope, 0.0) if abs(off) <= _NEAR else guess
            step = min(_PART * self._width, _NEAR / slope)  # lines serve no more of a cliff
            lower, upper = crossings(lines.lower, lines.upper, delta, guess=at, slope=slope, step=step)
            if upper - lower <= self._width or upper == math.inf:
                break
            middle = 0.5 * (lower + upper)
            if abs(middle - guess) <= _FAR * (upper - lower):  # what is wide is not due to the guess
                if lines.nodes >= self._most or lines.nodes == nodes:  # no more would be taken
                    break
                width *= 0.5 * self._width / (upper - lower)
                nodes = lines.nodes
            guess = middle
        found = self._bound(lines, lower, lower, upper)
        if upper - lower > _POOREST:
            raise ContourRefusal("width", f"the crossing near epsilon {guess:g} was not told from what is left", found)
        return found

    def _guess(self, log_delta: float) -> float:
        """About the epsilon at which so much of delta is left."""
        point = self._atoms.terms(self._atoms.log_drop(log_delta)).epsilon_bound(log_delta)
        low, high = 0.0, math.inf
        for _ in range(_LOOKS):
            try:
                lines = self._coarse(point)
            except ContourRefusal:  # beyond all losses, where there is nothing to tell
                high = point
            else:
                off = lines.looked_at(point).log_delta - log_delta
                if abs(off) <= _NEAR or (off < 0.0 and point == 0.0):
                    return point
                low, high = (point, high) if off > 0.0 else (low, point)
                point += off / lines.slope(point)
            if not low < point < high:
                point = 0.5 * (low + high) if high < math.inf else 2.0 * low
        return low  # before a cliff, where all that matters beyond matters, too

    def _lines(self, epsilon: float, width: float) -> _Lines:
        """Lines whose sums are no further apart, as a share of delta, than wanted, or as the work allows."""
        found = self._coarse(epsilon)
        for _ in range(_ROUNDS):
            look = found.looked_at(epsilon)
            room = max(_ROOM * (width - look.rounded), _LEAST_ROOM * max(width, look.rounded))
            if found.nodes >= self._most or sum(look.gaps) <= room:
                break
            finer = _spacings(found.lines, look.gaps, room)
            wanted = [_rounded(line.placed.period / w) for line, w in zip(found.lines, finer, strict=True)]
            share = min(self._most / sum(wanted), 1.0)
            rows = zip(found.lines, wanted, strict=True)
            made = (self._line(found.terms, line.placed, max(int(share * n), line.nodes)) for line, n in rows)
            found = replace(found, lines=tuple(made))
        return found

    def _coarse(self, epsilon: float) -> _Lines:
        """Coarse lines of all that matters at an epsilon."""
        for log_drop in self._atoms.classes(epsilon):
            terms = self._atoms.terms(log_drop)
            plan = terms.plan(epsilon)
            if plan is None:
                continue
            lines = self._planned(terms, plan) if plan.length <= _LONG else None
            if lines is None or plan.log_bound - lines.looked_at(epsilon).log_delta > _POOR:
                terms, plan = self._apart(log_drop, epsilon, _OCTAVES)
                lines = self._planned(terms, plan)
                if plan.log_bound - lines.looked_at(epsilon).log_delta > 2.0 * _POOR:
                    lines = self._planned(*self._apart(log_drop, epsilon, _MORE_OCTAVES))
            if self._atoms.log_drop(lines.looked_at(epsilon).log_delta) >= log_drop:
                return lines
        raise ContourRefusal("atoms", f"no tilt tells what matters at epsilon {epsilon:g}")

    def _apart(self, log_drop: float, epsilon: float, octaves: Sequence[float]) -> tuple[Terms, Plan]:
        """The terms with as many large losses apart as make bounds small, and periods short."""
        thresholds = [math.inf]
        if epsilon > 0.0:
            first = 0.5 * math.floor(2.0 * math.log2(epsilon))
            thresholds += [2.0 ** (first - below) for below in octaves]
        every = [self._atoms.terms(log_drop, threshold) for threshold in thresholds]
        found = [(terms, plan) for terms in every if (plan := terms.plan(epsilon)) is not None]
        return min(found, key=lambda one: one[1].cost)

    def _planned(self, terms: Terms, plan: Plan) -> _Lines:
        fewest = [max(float(_COARSE), 1.1 * (1.0 + one.theta) * one.period / COARSEST) for one in plan.placed]
        if (nodes := sum(fewest)) > self._most:
            raise ContourRefusal("width", f"{nodes:.2g} frequencies are needed, and {self._most} allowed")
        made = [self._line(terms, one, _rounded(nodes)) for one, nodes in zip(plan.placed, fewest, strict=True)]
        return _Lines(terms, tuple(made), self._at_infinity)

    def _line(self, terms: Terms, placed: Placed, nodes: int) -> OneSidedLine:
        """A line, which may be kept: it is the same whenever it is made."""
        key = terms, placed, nodes
        found = self._kept.get(key)
        if found is None:
            found = OneSidedLine.of(*key)
            kept = [*self._kept.items(), (key, found)]
            while len(kept) > 1 and sum(line.sums[0].size for _, line in kept) > _KEPT:
                kept.pop(0)
            self._kept = dict(kept)
        return found

    def _bound(self, lines: _Lines, epsilon: float, lower: float, upper: float) -> Bound:
        """Both sides, and by which parts they are apart as sums are at an epsilon."""
        look, apart = lines.looked_at(epsilon), upper - lower
        share = look.rounded / (look.rounded + math.fsum(look.gaps)) if look.rounded < math.inf else 1.0
        rounding = share * min(apart, _FARTHEST)
        return from_sides(lower, upper, _METHOD, errors={"band": apart - rounding, "rounding": rounding})


def _rounded(nodes: float) -> int:
    """Up to the next half of an octave, so that questions next to each other have the same lines."""
    return math.ceil(math.exp2(0.5 * math.ceil(2.0 * math.log2(nodes))))


def _spacings(lines: Sequence[OneSidedLine], gaps: Sequence[float], width: float) -> list[float]:
    """Those at which gaps, which go as their squares, are so wide together, and frequencies fewest."""
    bends = [max(gap, 1e-3 * width) / line.spacing**2 for line, gap in zip(lines, gaps, strict=True)]
    shares = [(line.placed.period / bend) ** (1.0 / 3.0) for line, bend in zip(lines, bends, strict=True)]
    whole = math.fsum(bend * share * share for bend, share in zip(bends, shares, strict=True))
    return [share * math.sqrt(width / whole) for share in shares]
