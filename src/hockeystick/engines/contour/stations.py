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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.contour.rungs import Level, Rungs
from hockeystick.laws.loss_sum import PairSum, like_sums
from hockeystick.transforms.cumulants import scan
from hockeystick.transforms.rule import Array, Numbers, Sketch
from hockeystick.transforms.saddle import LossSum, Saddle, level_sketches

__all__ = ["Station", "Stations", "by_epsilon", "by_log_delta", "saddles_at", "scan_levels", "scan_towards", "sizes_of"]

_APART = 1.5  # deviations of the tilted loss from one station to the next
_RUNGS = 41  # tilts scanned in the first level, each sqrt 2 above the one before
_MORE = 10  # in every further one, whose largest is eight times that of the one before
_LONG = (3.0, 6.0, 6.0)  # deviations from one tilt to the next that are too many, at each look
_LEVELS = 4  # of ever larger tilts
_AT_ONCE = 4096  # nodes of coarse rules looked at together
_NUMBERS = ("theta", "value", "mean", "variance", "top")


@final
@dataclass(frozen=True)
class Station:
    """The number of a station: its level, its place on the ladder, and ``ln`` of the mass that steps may leave out."""

    level: int
    place: int
    log_drop: float

    def beside(self, step: int) -> Station | None:
        """A neighbour on its ladder."""
        return replace(self, place=self.place + step) if self.place + step >= 0 else None


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

    def of_epsilons(self, epsilon: Array) -> list[Station | None]:
        """The stations for delta at epsilons (nats), shape (E,); None where none is near."""
        return self.found(epsilon, by_epsilon)

    def of_log_deltas(self, log_delta: Array) -> list[Station | None]:
        """The stations for the epsilons at ``ln delta``, shape (E,); None where none is near."""
        return self.found(-log_delta, by_log_delta)

    def found(self, values: Array, along: Along) -> list[Station | None]:
        """The stations where what increases along a level takes the values."""
        found: list[Station | None] = [None] * values.size
        left = np.arange(values.size)
        for number in range(_LEVELS):
            level = self.level(number) if left.size else None
            if level is None:
                break
            line = along(level)
            left = left[values[left] >= line[0]]
            own = left[values[left] <= line[-1]]
            places = level.places(np.interp(values[own], line, level.log_tilts))
            stations = {place: Station(number, place, self._log_drop) for place in set(places)}
            for row, place in zip(own.tolist(), places, strict=True):
                found[row] = stations[place]
            left = left[values[left] > line[-1]]
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
    """Scan as many levels of several ladders as the questions asked of each need; see `Stations.of_epsilons`."""
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

    K is looked at once for all that have one plan; their own is so many times as much.
    """
    kinds: dict[str, dict[Hashable, list[Stations]]] = {}
    for one in several:
        if one.lacks(number):
            kind = one.losses.kind
            if kind is None:
                found = next(_scanned(one.planned, number, 1), None)
                one.scanned(number, None if found is None else found.level(0, found.rungs, 0))
            else:
                kinds.setdefault(kind, {}).setdefault((one.planned.key, one.planned.log_drop), []).append(one)
    for like in kinds.values():
        every = list(like.values())
        losses = like_sums([own[0].planned for own in every])
        without = set(range(len(every)))
        for scanned in _scanned(losses, number, len(every)):
            without -= set(scanned.rows.tolist())
            own = [(place, one) for place, row in enumerate(scanned.rows.tolist()) for one in every[row]]
            places = np.array([place for place, _ in own], dtype=np.intp)
            ratio, variance = np.array([(one.ratio, one.losses.gaussian_variance) for _, one in own]).T
            rungs = scanned.rungs.times(places, ratio, variance)
            for row, (place, one) in enumerate(own):
                one.scanned(number, scanned.level(place, rungs, row))
        for row in without:
            for one in every[row]:
                one.scanned(number, None)


@final
@dataclass(frozen=True, eq=False)
class _Scanned:
    """Levels of some of R sums: which, what is found there and at how many tilts each, and the rules looked at."""

    rows: NDArray[np.intp]
    rungs: Rungs
    sizes: NDArray[np.intp]
    sketches: Sequence[Sketch]
    whole: bool

    def level(self, place: int, own: Rungs, row: int) -> Level:
        """The level planned at a place, with what a row of others says of its deltas."""
        size = int(self.sizes[place])
        planned = (self.rungs.found.tilts, self.rungs.log_tilts, self.rungs.ladder)
        tilts, log_tilts, ladder = (column[place, :size] for column in planned)
        epsilon, log_delta = (column[row, :size] for column in own.smooth)
        return Level(tilts, log_tilts, epsilon, log_delta, ladder, self._parts[place])

    @cached_property
    def _parts(self) -> list[tuple[Sketch, ...]]:
        """The rules of each sum."""
        if self.whole:
            return [tuple(self.sketches)]
        return [tuple(rough.at(slice(row, row + 1)) for rough in self.sketches) for row in range(self.rows.size)]


def _scanned(losses: LossSum, number: int, runs: int) -> Iterator[_Scanned]:
    """The levels of R sums, but those that no rule serves."""
    for rows, tops, sketches in level_sketches(losses, number):
        if sketches is None:
            continue
        every: Any = losses.gaussian_variance
        variance = every[rows] if np.ndim(every) else every
        rung_count = _MORE if number else _RUNGS
        tilts = tops * math.sqrt(2.0) ** np.arange(1.0 - rung_count, 1.0)[:, None]
        rungs = Rungs.of(scan(sketches, variance, tilts))
        size = np.full(rows.size, rung_count)
        for most in _LONG:
            between, count = rungs.between(most)
            if between.shape[1] == 0:
                break
            rungs = rungs.joined(Rungs.of(scan(sketches, variance, np.ascontiguousarray(between.T))))
            size += count
        yield _Scanned(rows, rungs, size, sketches, runs == 1)


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
    sketches = tuple(Sketch.stacked(own) for own in zip(*(level.sketches for level in levels), strict=True))
    here = scan(sketches, variance, tilts[None])
    tops = np.array([level.tilts[-1] for level in levels])
    return Saddle(tilts, here.value[0], here.mean[0], here.variance[0], sketches, tops)
