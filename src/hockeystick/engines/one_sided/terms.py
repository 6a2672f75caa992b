"""A composition of atoms taken apart by how many of its losses are large: what each number of them weighs, tilted.

    delta(eps) = sum_r delta_r(eps),       delta_r: of outcomes with r losses above a threshold.

Where large losses are rare, no tilt tells outcomes that matter from those that do not: what adds up to epsilon by one
large loss weighs next to nothing beside many small losses, or a larger one. With their number known it weighs most.
With an infinite threshold all is one term, r = 0.

Chernoff's bounds say which terms matter, which tilt suits each, and how long a period has to be (section 3 of
`docs/derivations/one-sided-lines.md`).

Guarantee: all bounds are certified. Cost: an exponential for each atom and tilt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.enumeration.outcomes import Parts
from hockeystick.engines.one_sided.steps import NOTHING, OPPOSITE, SLACK, LineStep, step_of
from hockeystick.engines.one_sided.steps import TILTS as TILTS
from hockeystick.engines.one_sided.tilted import log_ways
from hockeystick.errors import TooManyOutcomesError
from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import ELEMENTARY, UNDERFLOW, U

_LOG_CONSTANT = log_constant(TILTS)
_MOST_LARGE = 24  # losses that are counted
_LOG_POWERS = np.linspace(0.0, 60.0, 31)  # of a number that stands for each large loss
_NEGLIGIBLE = 37.0  # nats below the largest term: left to its bound
_ALIASED = 28.0  # nats: how far below the largest term what a period brings back may be
_ALIKE = 2.5  # nats above the best tilt, up to which another may do
_LEAST_MASS = 1e-280  # of which products keep their digits
_MOST_ERROR = 0.1  # of a mass: beyond, errors of factors do not add up
_AS_GOOD = 0.3  # of the logarithm of what a line costs
_SHARE = math.log(1e-12)  # ln of the part of delta that atoms left out may be
_CLASS = 12.0  # nats between the classes of what is left out
_LEAST = -720.0  # ln of the least mass left out
_KEPT = 256  # terms, of some hundred kilobytes each, or less
_BEYOND = 1e10  # nats: more than such lines tell apart


@final
class Atoms:
    """The atoms of a composition, but for those that each step may leave out where delta is of a size.

    Parameters
    ----------
    parts : sequence of (Pair, int)
        Pairs of atoms, or of Laplace noise.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts, self._log_steps = parts, math.log(sum(count for _, count in parts))
        self._kept: dict[tuple[float, float], Terms] = {}

    def log_drop(self, log_delta: float) -> float:
        """``ln`` of the mass that each step may leave out, by classes."""
        return max(_CLASS * math.floor((log_delta + _SHARE - self._log_steps) / _CLASS), _LEAST)

    def terms(self, log_drop: float, threshold: float = math.inf) -> Terms:
        """Of the atoms that are left, which may be kept.

        Raises
        ------
        TooManyOutcomesError
            Where these are not known, or too many.
        """
        key = log_drop, threshold
        if key not in self._kept:
            steps = self._steps(log_drop) if threshold == math.inf else self.terms(log_drop).steps
            kept = [*self._kept.items()][-_KEPT:]
            self._kept = {**dict(kept), key: Terms(steps, threshold)}
        return self._kept[key]

    def _steps(self, log_drop: float) -> Sequence[tuple[LineStep, int]]:
        found = [(step_of(pair, log_drop), count) for pair, count in self._parts]
        steps = [(one, count) for one, count in found if one is not None]
        if len(steps) < len(found):
            raise TooManyOutcomesError(f"not all atoms that matter are known where e^{log_drop:g} is left out")
        return steps

    def classes(self, epsilon: float) -> Iterator[float]:
        """``log_drop`` of ever smaller deltas: the first that may be of one at epsilon, and all after."""
        log_drop = self.log_drop(0.0) if epsilon < _BEYOND else -math.inf
        while log_drop >= _LEAST:
            bound = np.logaddexp(self.terms(log_drop).log_bound(epsilon), log_drop + self._log_steps)
            wanted = self.log_drop(float(bound))
            if wanted >= log_drop:
                yield log_drop
            log_drop = min(wanted, log_drop - _CLASS)


@final
@dataclass(frozen=True)
class Placed:
    """Where a line of a term lies: how many losses are large, which of `TILTS`, and the period W (nats)."""

    number: int
    tilt: int
    period: float

    @property
    def theta(self) -> float:
        """The tilt."""
        return float(TILTS[self.tilt])


@final
@dataclass(frozen=True)
class Plan:
    """Lines of all terms that matter at an epsilon, and ``ln`` of a bound on delta."""

    placed: tuple[Placed, ...]
    log_bound: float

    @property
    def cost(self) -> float:
        """The logarithm of the periods, and of how far beyond delta what is summed may be."""
        return math.log(math.fsum(one.period for one in self.placed)) + self.log_bound

    @property
    def length(self) -> float:
        """About how many times as long as losses over a tilt all periods are."""
        return math.fsum(one.period * (1.0 + one.theta) for one in self.placed)


@final
@dataclass(frozen=True)
class Aliasing:
    """Bounds on ``sum_{j != 0} e^{j theta W} delta_r(eps + j W)``, which a period W brings back."""

    lower: float
    upper: float


@final
@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a composition.

    Attributes
    ----------
    steps : sequence of (LineStep, int)
        Steps and counts.
    threshold : float
        Losses above it are large (nats).
    """

    steps: Sequence[tuple[LineStep, int]]
    threshold: float = math.inf

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """The first large atom of each step."""
        return tuple(step.cut(self.threshold) for step, _ in self.steps)

    @cached_property
    def log_moments(self) -> Array:
        """``ln sum p e^{tl}`` over the outcomes of each term at `TILTS`; last those of all other terms together."""
        parts = [(*step.log_moments(cut), count) for (step, count), cut in zip(self.steps, self.cuts, strict=True)]
        most = _MOST_LARGE if any(large[0] > NOTHING for _, large, _ in parts) else 1
        sizes = [n * np.where(y > NOTHING, np.maximum(np.abs(x), np.abs(y)), np.abs(x)) for x, y, n in parts]
        slack = SLACK + 128.0 * U * len(parts) * np.sum(sizes, axis=0)
        found = np.zeros((1, TILTS.size))
        for small, large, count in parts:
            own = [log_ways(count, k) + (count - k) * small + k * large for k in range(min(count + 1, most))]
            pairs: list[list[Array]] = [[] for _ in range(min(len(found) + len(own) - 1, most))]
            for j, one in enumerate(found):
                for two, both in zip(own, pairs[j:], strict=False):
                    both.append(one + two)
            found = np.array([np.logaddexp.reduce(both) for both in pairs])
        every = [np.full(TILTS.size, NOTHING)]
        if most > 1:  # s^-R prod (X + s Y)^n, s >= 1, is at least all terms of R large losses or more
            several = ((log_s, len(found) * log_s) for log_s in _LOG_POWERS)
            every = [sum(n * np.logaddexp(x, log_s + y) for x, y, n in parts) - less for log_s, less in several]
        return np.asarray(np.append(found, np.min(every, axis=0)[None], axis=0) + slack)

    @cached_property
    def masses(self) -> tuple[Array, float]:
        """Of the terms, and a bound on their relative errors."""
        found, error = np.ones(1), 8.0 * U
        for (step, count), cut in zip(self.steps, self.cuts, strict=True):
            both = step.masses(cut)
            if min(mass for mass, _ in both) == 0.0:  # it underflows
                return np.zeros(_MOST_LARGE), math.inf
            small, large = math.log(both[0][0]), math.log(both[-1][0])
            numbers = range(min(count + 1, _MOST_LARGE) if len(both) > 1 else 1)
            logs = [(log_ways(count, r), (count - r) * small, r * large) for r in numbers]
            found = np.convolve(found, [math.exp(math.fsum(each)) for each in logs])[:_MOST_LARGE]
            own = max(doubt / mass for mass, doubt in both)
            error += count * (1.1 * own + ELEMENTARY)
            error += 2.0 * (U * _MOST_LARGE + ELEMENTARY * (1.0 + max(sum(map(abs, each)) for each in logs)))
        return found, error

    def log_bounds(self, epsilon: float) -> Array:
        """``ln`` of Chernoff's bounds on each term at `TILTS`: on its delta, or from 0 on down on what delta lacks."""
        moved = TILTS * epsilon
        size = np.abs(self.log_moments) + np.abs(moved)
        return np.asarray(self.log_moments - moved + _LOG_CONSTANT + 64.0 * U * size)

    def log_bound(self, epsilon: float, but: Sequence[int] = ()) -> float:
        """``ln`` of a bound on delta, or on that of all terms but some."""
        best = np.delete(self.log_bounds(epsilon)[:, OPPOSITE:].min(axis=1), but)
        return float(np.logaddexp.reduce(best)) + SLACK

    def epsilon_bound(self, log_delta: float) -> float:
        """About a bound on the epsilon of a delta, of all as one term."""
        logs, tilts = self.log_bounds(0.0)[0, OPPOSITE:], TILTS[OPPOSITE:]
        return max(float(((logs - log_delta) / tilts).min()), 0.0)

    def plan(self, epsilon: float) -> Plan | None:
        """What matters at an epsilon; None where more large losses do than are counted, or a step has no small ones."""
        logs = self.log_bounds(epsilon)
        best = logs[:, OPPOSITE:].min(axis=1)
        whole = float(np.logaddexp.reduce(best))
        matter = best >= whole - _NEGLIGIBLE
        if matter[-1] or 0 in self.cuts:
            return None
        placed = [_placed(int(r), logs[r], whole - _ALIASED) for r in np.flatnonzero(matter)]
        return Plan(tuple(placed), whole) if all(math.isfinite(one.period) for one in placed) else None

    def aliasing(self, placed: Placed, epsilon: float) -> Aliasing:
        """Of a term tilted: geometric series of Chernoff's bounds, or to the left of its mass less what delta lacks."""
        turn, (masses, error) = placed.theta * placed.period, self.masses
        apart = np.abs(TILTS - placed.theta) * placed.period
        with np.errstate(divide="ignore", over="ignore"):
            logs = self.log_bounds(epsilon)[placed.number] - apart - np.log(-np.expm1(-apart)) + SLACK
            series = np.exp(logs) + UNDERFLOW
        error += 8.0 * ELEMENTARY + 4.0 * U * turn
        whole = float(masses[placed.number]) * math.exp(-turn) / -math.expm1(-turn)
        known = whole > _LEAST_MASS and error < _MOST_ERROR
        least, most = (whole * (1.0 - error), whole * (1.0 + error)) if known else (0.0, math.inf)
        sides = series[OPPOSITE : placed.tilt], series[placed.tilt + 1 :]
        left, right = (float(one.min(initial=math.inf)) for one in sides)
        return Aliasing(max(least - float(series[:OPPOSITE].min()), 0.0), min(left, most) + right)


def _placed(number: int, logs: Array, goal: float) -> Placed:
    """A good tilt, and the shortest period that leaves ``e^goal`` on either side, up to the quarter of an octave."""
    above = logs[OPPOSITE:]
    near = OPPOSITE + np.flatnonzero(above <= above.min() + _ALIKE)
    apart = TILTS - TILTS[near][:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = (logs - goal) / np.abs(apart)
    sides = [np.where(side, needed, math.inf).min(axis=1) for side in (apart < 0.0, apart > 0.0)]
    periods = np.maximum(np.maximum(*sides), 1.0 / TILTS[near])
    costs = np.log(periods) + logs[near]
    # of those nearly as good as the best the one that most twos divide: questions near each other have the same lines
    costs += np.where(costs <= costs.min() + _AS_GOOD, -1e3 * (near & -near), 0.0)
    best = int(np.argmin(costs))
    return Placed(number, int(near[best]), float(2.0 ** (np.ceil(4.0 * np.log2(periods[best])) / 4.0)))
