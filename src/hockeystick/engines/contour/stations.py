"""Where lines stand: a fixed ladder of tilts for each composition, so that an answer depends on the question alone.

A line through one tilt serves every epsilon within a deviation or so of its own. If each question placed a line of its
own, a curve would cost a line a point; if it took the nearest line that an earlier question left, its last digits would
depend on what was asked before. So lines stand on stations, 1.5 deviations of the tilted loss apart, that depend on
the composition alone: a question goes to the nearest one, and a thousand questions share a few dozen lines.

Estimates only: a line proves what it says wherever it stands. Cost: one coarse scan of K for each level; those of many
compositions share calls, never numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np

from hockeystick.engines.contour.rungs import Level, Rungs
from hockeystick.laws.loss_sum import PairSum, together
from hockeystick.transforms.cumulants import scan
from hockeystick.transforms.rule import Array, Numbers, Sketch
from hockeystick.transforms.saddle import Saddle, level_sketches

_RUNGS = 41  # tilts scanned in the first level, each sqrt 2 above the one before
_MORE = 10  # in every further one, whose largest is eight times that of the one before
_LONG = (3.0, 6.0, 6.0)  # deviations from one tilt to the next that are too many, at each look
_LEVELS = 4  # of ever larger tilts
_AT_ONCE = 1 << 14  # nodes of coarse rules looked at together
_NUMBERS = ("theta", "value", "mean", "variance", "top")


class Station(NamedTuple):
    """The number of a station: its level, its place on the ladder, and ``ln`` of the mass that steps may leave out.

    Where its line does not say enough of epsilons at its ends, a sharper one stands there, too.
    """

    level: int
    place: int
    log_drop: float
    is_sharper: bool = False

    @property
    def sharper(self) -> Station:
        """The same with its sharper line."""
        return self._replace(is_sharper=True)

    def beside(self, step: int) -> Station | None:
        """A neighbour on its ladder."""
        return self._replace(place=self.place + step) if self.place + step >= 0 else None


def sizes_of(sketches: Sequence[Sketch]) -> tuple[int, ...]:
    """How many nodes and points of cells rules have."""
    cells = [0 if rough.cells is None else rough.cells.loss.shape[1] for rough in sketches]
    return (*(rough.loss.shape[1] for rough in sketches), *cells)


Along = Callable[[Level], Array]


def by_epsilon(level: Level) -> Array:
    """What increases along a level where stations are looked for by epsilon."""
    return level.epsilons


def by_log_delta(level: Level) -> Array:
    """The same where they are looked for by ``-ln delta``."""
    return -level.log_deltas


@final
class Stations:
    """The stations of one composition: those of what is planned for it.

    Parameters
    ----------
    losses, planned : PairSum
        The composition, and what lines are planned for (`PairSum.planned`).
    ratio : float
        Of their numbers of steps.
    log_drop : float
        ``ln`` of the mass that each step may leave out.
    """

    def __init__(self, losses: PairSum, planned: PairSum, ratio: float, log_drop: float) -> None:
        self.losses, self.planned, self.ratio = losses, planned.dropping(log_drop), ratio
        self._log_drop = log_drop
        self._levels: dict[int, Level | None] = {}

    def found(self, values: Array, along: Along) -> list[Station | None]:
        """The stations where what increases along a level takes the values, shape (E,); None where none is near."""
        found: list[Station | None] = [None] * values.size
        left = np.arange(values.size)
        for number in range(_LEVELS):
            level = self.level(number) if left.size else None
            if level is None:
                break
            line = along(level)
            here = values[left]
            own = left[(line[0] <= here) & (here <= line[-1])]
            if own.size:
                places = level.places(np.interp(values[own], line, level.log_tilts))
                stations = {place: Station(number, place, self._log_drop) for place in set(places)}
                for row, place in zip(own.tolist(), places, strict=True):
                    found[row] = stations[place]
            left = left[here > line[-1]]
        return found

    def leaves_out(self, station: Station | None) -> bool:
        """Whether some losses are left out at a station."""
        level = None if station is None else self.level(station.level)
        return level is not None and any(bool(rough.dropped.any()) for rough in level.sketches)

    def saddle(self, station: Station) -> Saddle | None:
        """The saddle point at a station."""
        level = self.level(station.level)
        if level is None:
            return None
        saddle = _saddles([level], np.array([level.tilt(station.place)]), self.planned.gaussian_variance)
        numbers: dict[str, Any] = {name: float(getattr(saddle, name)[0]) for name in _NUMBERS}
        return replace(saddle, **numbers)

    def level(self, number: int) -> Level | None:
        """A level; None where no rule serves it."""
        if number not in self._levels:
            scan_levels([self], number)
        return self._levels[number]

    def scanned(self, number: int, level: Level | None) -> None:
        """Keep a level."""
        self._levels[number] = level

    def lacks(self, number: int) -> bool:
        """Whether a level has not been scanned."""
        return number not in self._levels


def scan_towards(asked: Sequence[tuple[Stations, Array]], along: Along) -> None:
    """Scan as many levels of several ladders as the questions asked of each need; see `Stations.found`."""
    left = list(asked)
    for number in range(_LEVELS):
        scan_levels([one for one, _ in left], number)
        beyond: list[tuple[Stations, Array]] = []
        for one, values in left:
            level = one.level(number)
            if level is not None:
                line = along(level)
                rest = values[values > line[-1]]
                beyond += [(one, rest)] if rest.size else []
        left = beyond
        if not left:
            break


def scan_levels(several: Sequence[Stations], number: int) -> None:
    """Have a level of several ladders, those of like compositions in one pass.

    K of one step is looked at once for all runs of a law, and where their ladders need it for all of one plan.
    """
    kinds: dict[str, dict[Hashable, dict[Hashable, list[Stations]]]] = {}
    for one in several:
        if one.lacks(number):
            kind = one.losses.kind
            if kind is None:
                one.scanned(number, _alone(one.planned, number))
            else:
                laws = kinds.setdefault(kind, {}).setdefault(one.planned.look, {})
                laws.setdefault(one.planned.key, []).append(one)
    for like in kinds.values():
        plans = [list(own.values()) for own in like.values()]
        losses = together([own[0][0].planned for own in plans])
        served: set[int] = set()
        for rows, tops, sketches in level_sketches(losses, number):
            if sketches is not None:
                served.update(rows.tolist())
                _scan(sketches, _tilts(tops, number), [plans[row] for row in rows.tolist()], number)
        for own in (own for row, own in enumerate(plans) if row not in served):
            for one in (one for runs in own for one in runs):
                one.scanned(number, None)


def _tilts(tops: Array, number: int) -> Array:
    """The tilts of a level that are looked at first, shape (k, R)."""
    count = _MORE if number else _RUNGS
    return tops * math.sqrt(2.0) ** np.arange(1.0 - count, 1.0)[:, None]


def _alone(losses: PairSum, number: int) -> Level | None:
    """A level of a composition of no kind."""
    for _, tops, sketches in level_sketches(losses, number):
        if sketches is None:
            break
        rungs = Rungs.of(scan(sketches, losses.gaussian_variance, _tilts(tops, number)))
        for most in _LONG:
            between, _ = rungs.between(most)
            if between.shape[1] == 0:
                break
            rungs = rungs.joined(Rungs.of(scan(sketches, losses.gaussian_variance, np.ascontiguousarray(between.T))))
        return rungs.level(0, rungs, 0, rungs.found.tilts.shape[1], sketches)
    return None


def _scan(sketches: Sequence[Sketch], tilts: Array, laws: Sequence[Sequence[Sequence[Stations]]], number: int) -> None:
    """Levels of the runs of each plan of some laws, given rules of one length of the laws, a row for each."""
    single = [replace(rough, counts=np.ones_like(rough.counts)) for rough in sketches]
    plans = [(row, runs) for row, own in enumerate(laws) for runs in own]
    places = np.array([row for row, _ in plans], dtype=np.intp)
    steps, variance = np.array([_numbers(runs[0].planned) for _, runs in plans]).T
    step = Rungs.of(scan(single, 0.0, tilts)).at(places)
    size = np.full(places.size, len(tilts))
    planned = step.composed(steps, variance)
    for most in _LONG:
        between, count = planned.between(most)
        if between.shape[1] == 0:
            break
        need = np.flatnonzero(count)
        rules = [rough.at(places[need]) for rough in single]
        step = step.joined(step.filled(need, Rungs.of(scan(rules, 0.0, np.ascontiguousarray(between[need].T)))))
        size += count
        planned = step.composed(steps, variance)
    every = [(plan, one) for plan, (_, runs) in enumerate(plans) for one in runs]
    rows = np.array([plan for plan, _ in every], dtype=np.intp)
    own = step.at(rows).composed(*np.array([_numbers(one.losses) for _, one in every]).T)
    parts = [
        [replace(rough.at(slice(row, row + 1)), counts=steps[plan : plan + 1]) for rough in sketches]
        for plan, (row, _) in enumerate(plans)
    ]
    for row, (plan, one) in enumerate(every):
        one.scanned(number, planned.level(plan, own, row, int(size[plan]), parts[plan]))


def _numbers(losses: PairSum) -> tuple[float, float]:
    """The number of steps, and the variance of the normal part."""
    return losses.total_count, float(losses.gaussian_variance)


def saddles_at(asked: Sequence[tuple[Stations, Station]]) -> Iterator[tuple[list[int], Saddle]]:
    """The saddle points at stations of like compositions that have one: which, and several at a time."""
    levels = [one.level(station.level) for one, station in asked]
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, level in enumerate(levels):
        if level is not None:
            alike.setdefault(sizes_of(level.sketches), []).append(place)
    for sizes, every in alike.items():
        most = max(_AT_ONCE // sizes[0], 1)
        for first in range(0, len(every), most):
            own = every[first : first + most]
            rows = [level for level in (levels[place] for place in own) if level is not None]
            tilts = np.array([row.tilt(asked[place][1].place) for row, place in zip(rows, own, strict=True)])
            variance = np.array([asked[place][0].losses.gaussian_variance for place in own])
            yield own, _saddles(rows, tilts, variance)


def _saddles(levels: Sequence[Level], tilts: Array, variance: Numbers) -> Saddle:
    """Saddle points at one tilt of each level, `Saddle.stacked`."""
    sketches = tuple(Sketch.joined(own) for own in zip(*(level.sketches for level in levels), strict=True))
    here = scan(sketches, variance, tilts[None])
    tops = np.array([level.tilts[-1] for level in levels])
    return Saddle(tilts, here.value[0], here.mean[0], here.variance[0], sketches, tops)
