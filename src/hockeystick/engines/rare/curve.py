"""The curve of rarely sampled Gaussian steps, some hundreds or thousands of them, where large losses are rare.

There the law of the loss is a spike, as wide as the rate is small, with a broad tail; the contour would need a node for
every width of the spike, and a lattice a point. Here the two are taken apart.

Guarantee: both sides certified. Cost: 5 to 10 ms an answer for each law, or 0.6 where many runs of one law, or deltas
of one run, are asked together.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.contour.root_bracket import RootBracket, Targets, root_brackets
from hockeystick.engines.contour.search import targets_of
from hockeystick.engines.rare.losses import METHOD, MOST_DRAWN, MOST_OF_LARGE, Array, RareLosses, RareSum
from hockeystick.laws.base import Parts
from hockeystick.numerics.columns import Places

if TYPE_CHECKING:  # lines that few answers need load late
    from hockeystick.engines.rare.line import RareLine
    from hockeystick.engines.rare.runs import RareRuns
    from hockeystick.engines.rare.standing import StandingRareLines, Station

_MOST_RATE, _MOST_RATE_OF_LARGE = 0.1, 0.5
_LEAST_SHIFT, _MOST_SHIFT = 0.05, 100.0
_ROUNDS = 4
_LESS = 0.8  # of the width before, that another round must reach
_APART = 2.0 ** (1.0 / 16.0)  # from one epsilon to the next at which a line for deltas stands: it has digits to spare
_APART_OF_SEVERAL = 2.0**0.25  # the same of several laws, whose lines take as long for each
_LEAST = 1e-250
_MOST = 1e7  # nats: beyond, float64 does not tell losses apart
_FEW_DRAWN = 4.0  # steps on average, of the most that a line serves: more make a line long that serves fewer, too
_AT_ONCE = 64  # runs whose powers are held at once
_SHARES = np.geomspace(0.38, 1.1, 12)  # of the epsilon of a line that stands, that are looked at
_SPAN = np.geomspace(1.0 / 1.4, 1.4, 24)  # the same, of a line of a question's own
_OFF = 4e-3  # of an epsilon, that a guess between these is off
_ONLY = np.zeros(1, dtype=np.intp)  # the only question is of the only curve


@final
class RareCurve:
    """The curve of a composition of rarely sampled Gaussian pairs.

    Parameters
    ----------
    losses : RareSum
        The laws.
    tolerance : float
        Width of the epsilon bracket asked for (nats), and relative width of the delta bracket.
    """

    infinite_mass: ClassVar[tuple[float, float]] = (0.0, 0.0)

    def __init__(self, losses: RareSum, tolerance: float) -> None:
        self.losses, self.tolerance = losses, tolerance

    @classmethod
    def of(cls, parts: Parts, tolerance: float) -> RareCurve | None:
        """The curve, where large losses may be rare."""
        if math.fsum(pair.sampling_rate * count for pair, count in parts) > max(MOST_DRAWN, MOST_OF_LARGE):
            return None
        laws = []
        for pair, count in parts:
            known = pair.sampled_gaussian
            if known is None:
                return None
            laws.append(RareLosses(float(known[0]), known[1], float(count)))
        losses = RareSum(tuple(laws))
        if losses.steps < 2 or not losses.drawn <= losses.most_drawn:
            return None
        if len(laws) > 1 and any(law.are_large for law in laws):
            return None
        most_rate = _MOST_RATE_OF_LARGE if losses.are_large else _MOST_RATE
        served = all(law.rate <= most_rate and _LEAST_SHIFT <= law.shift <= _MOST_SHIFT for law in laws)
        return cls(losses, tolerance) if served else None

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        (lower,), (upper,) = (side.tolist() for side in deltas([self], _ONLY, np.array([epsilon])))
        best = from_sides(lower, upper, METHOD) if math.isfinite(upper) else None
        if best is None or not self.is_narrow(lower, upper):
            raise _refused(best)
        return best

    def is_narrow(self, lower: float, upper: float) -> bool:
        """Whether a bracket of delta is as narrow as asked for."""
        return 0.0 < upper - lower <= self.tolerance * lower

    @property
    def apart(self) -> float:
        """From one epsilon to the next at which a line for deltas stands."""
        return _APART_OF_SEVERAL if len(self.losses.laws) > 1 else _APART

    def run_at(self, place: int) -> RareRuns:
        """The run on the line that stands at a place, for all epsilons from the place below up to its own."""
        from hockeystick.engines.rare.standing import SHARE

        epsilon = self.apart**place
        guess = self.losses.least_delta(epsilon)
        if guess < _LEAST:
            raise _refused(None)
        # where losses are large tilts are steep, and where lines stand far apart epsilon may be far below
        lowest = 1.0 / self.apart if self.losses.are_large or self.apart > _APART else 1.0
        for _ in range(_ROUNDS):
            run = self._run(epsilon, math.log(SHARE * self.tolerance * guess), lowest)
            lower, upper = (float(side[0, 0]) for side in run.sides(_ONLY, np.array([[epsilon]])))
            if self.is_narrow(lower, upper):
                break
            guess = max(0.5 * (lower + upper), 1e-3 * guess)
        return run

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        if delta < _LEAST:
            raise _refused(None)
        exceeded, undercut = targets_of(delta, *self.infinite_mass)
        targets = Targets(np.array([exceeded]), np.array([undercut]))
        (lower,), (upper,) = (side.tolist() for side in epsilons([self], _ONLY, targets))
        return from_sides(lower, upper, METHOD) if upper - lower <= self.tolerance else self._fresh_epsilon(targets)

    def _fresh_epsilon(self, targets: Targets) -> Bound:
        """By lines of its own."""
        from hockeystick.engines.rare.standing import SHARE, epsilon_near, log_error_for

        log_delta = float(targets.undercut[0])
        point = epsilon_near(self.losses, log_delta)
        share, best = SHARE * self.tolerance, None
        for _ in range(_ROUNDS):
            run = self._run(point, log_delta + log_error_for(self.losses, share, point))
            point = float(run.epsilons(targets.undercut, _SPAN)[0])
            found = _crossing(run, targets, np.array([point]))
            lower, upper = float(found.lower[0]), float(found.upper[0])
            width = upper - lower
            if math.isfinite(width):
                if best is not None and width > _LESS * float(best.width):
                    break  # it is rounding that keeps it wide
                best = from_sides(max(lower, 0.0), upper, METHOD)
                if width <= self.tolerance:
                    return best
                share *= min(0.5 * self.tolerance / width, 0.5)
        raise _refused(best)

    def _run(self, epsilon: float, log_error: float, lowest: float = 1.0) -> RareRuns:
        """The run on a line planned for an epsilon, and down to a share of it."""
        from hockeystick.engines.rare.line import rare_line
        from hockeystick.engines.rare.runs import RareRuns

        line = rare_line(self.losses, epsilon, log_error, least=[(1.0, lowest)])
        return RareRuns(line, self.losses.counts[None])

    @cached_property
    def standing(self) -> StandingRareLines:
        """The lines of the law."""
        from hockeystick.engines.rare.standing import StandingRareLines

        return StandingRareLines(self.losses, self.tolerance)

    @property
    def law(self) -> Hashable:
        """What these depend on: curves of one law share them; of several, those of equal runs."""
        first, *others = self.losses.laws
        return (self.losses if others else (first.shift, first.rate)), self.tolerance

    def station(self, log_delta: float) -> Station:
        """Where the line for the epsilon of a delta stands."""
        from hockeystick.engines.rare.standing import SEVERAL_DEPTHS

        steps, depth = int(self.losses.steps), math.ceil(-log_delta)
        if len(self.losses.laws) > 1:
            return math.log2(steps), math.log2(steps), depth + -depth % SEVERAL_DEPTHS
        power = (steps - 1).bit_length()
        for octaves, most in ((2.0, float(power + power % 2)), (1.0, float(power))):
            if self.losses.rate * 2.0**most <= _FEW_DRAWN:
                return most, most - octaves, depth
        most = power - 0.5 * (2 * steps * steps <= 1 << 2 * power)
        return most, most - 0.5, depth


def deltas(curves: Sequence[RareCurve], owners: Places, epsilon: Array) -> tuple[Array, Array]:
    """Certified sides of delta of ``curves[owners[i]]`` at each epsilon, off lines that stand; 0 and infinity for none.

    Questions share lines and calls, never numbers: each finds the same alone.
    """
    lower, upper = np.zeros(owners.size), np.full(owners.size, np.inf)
    asked: dict[tuple[int, int], list[int]] = {}
    for row in np.flatnonzero((epsilon > 0.0) & (epsilon < _MOST)).tolist():
        place = math.ceil(math.log(epsilon[row]) / math.log(curves[owners[row]].apart))
        asked.setdefault((int(owners[row]), place), []).append(row)
    for (owner, place), rows in asked.items():
        try:
            run = curves[owner].run_at(place)
        except ContourRefusal:
            continue
        for first in range(0, len(rows), _AT_ONCE):
            own = np.array(rows[first : first + _AT_ONCE], dtype=np.intp)
            low, high = (side[:, 0] for side in run.sides(np.zeros_like(own), epsilon[own, None]))
            lower[own] = np.where(np.isfinite(high), np.maximum(low, 0.0), 0.0)
            upper[own] = np.where(np.isfinite(high), np.minimum(high, 1.0), np.inf)
    return lower, upper


def epsilons(curves: Sequence[RareCurve], owners: Places, targets: Targets) -> tuple[Array, Array]:
    """Certified sides of the epsilon of ``curves[owners[i]]`` at each delta, off lines that stand.

    The lower side is at least 0; the upper one is infinite where there is no such line. Runs of one law share lines and
    calls, never numbers: each finds the same alone.
    """
    from hockeystick.engines.rare.runs import RareRuns

    lower, upper = np.zeros(owners.size), np.full(owners.size, np.inf)
    for line, rows in _lines(curves, owners, targets.undercut):
        for first in range(0, rows.size, _AT_ONCE):
            own = rows[first : first + _AT_ONCE]
            runs = RareRuns(line, np.array([curves[owner].losses.counts for owner in owners[own].tolist()]))
            some = targets.at(own)
            found = _crossing(runs, some, runs.epsilons(some.undercut, _SHARES))
            tolerance = np.array([curves[owner].tolerance for owner in owners[own].tolist()])
            known = found.upper - np.maximum(found.lower, 0.0) <= tolerance
            lower[own] = np.where(known, np.maximum(found.lower, 0.0), 0.0)
            upper[own] = np.where(known, found.upper, np.inf)
    return lower, upper


def _lines(curves: Sequence[RareCurve], owners: Places, log_delta: Array) -> Iterator[tuple[RareLine, Places]]:
    """The lines that stand for questions, with those that each serves."""
    laws: dict[Hashable, StandingRareLines] = {}
    asked: dict[tuple[StandingRareLines, Station], list[int]] = {}
    for row, (owner, log) in enumerate(zip(owners.tolist(), log_delta.tolist(), strict=True)):
        curve = curves[owner]
        standing = laws.get(curve.law)
        if standing is None:
            standing = laws[curve.law] = curve.standing
        if log >= math.log(_LEAST):
            asked.setdefault((standing, curve.station(log)), []).append(row)
    for (standing, station), rows in asked.items():
        line = standing.at(station)
        if line is not None:
            yield line, np.array(rows, dtype=np.intp)


def _crossing(runs: RareRuns, targets: Targets, guess: Array) -> RootBracket:
    """Where the sides of each run cross a delta."""
    return root_brackets(runs.bracket, targets, start=guess, spread=_OFF * guess, slope=1.0 / guess, reach=0.1 * guess)


def _refused(best: Bound | None) -> ContourRefusal:
    return ContourRefusal("width", "no line of rare large losses was narrow enough", best)
