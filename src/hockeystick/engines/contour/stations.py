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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.laws.loss_sum import LikeSums, PairSum
from hockeystick.transforms.cumulants import Scan, scan
from hockeystick.transforms.rule import Array, Numbers, Sketch
from hockeystick.transforms.saddle import LossSum, Saddle, level_sketches, round_tilt

__all__ = ["Station", "Stations", "by_epsilon", "by_log_delta", "saddles_at", "scan_levels", "scan_towards"]

_APART = 1.5  # deviations of the tilted loss from one station to the next
_RUNGS = 41  # tilts scanned in the first level, each sqrt 2 above the one before
_MORE = 10  # in every further one, whose largest is eight times that of the one before
_LONG = (3.0, 6.0, 6.0)  # deviations from one tilt to the next that are too many, at each look
_DENSER = 1.5  # than stations, that an interval is cut: a second look seldom finds one too long
_PIECES = 18  # tilts added to an interval that is too long, at most
_LEAST = -760.0  # ln of the smallest delta looked for
_LEVELS = 4  # of ever larger tilts
_AT_ONCE = 4096  # nodes of coarse rules looked at together
_SCANNED = ("tilts", "value", "mean", "variance")
_NUMBERS = ("theta", "value", "mean", "variance", "top")


@final
@dataclass(frozen=True)
class Station:
    """The number of a station: its level, its place on the ladder, and ``ln`` of the mass that steps may leave out."""

    level: int
    place: int
    log_drop: float


@final
@dataclass(frozen=True, eq=False)
class _Rungs:
    """What a coarse scan finds at increasing tilts of R sums, shape (R, k); where one has fewer, its last repeats."""

    found: Scan

    @classmethod
    def of(cls, found: Scan) -> _Rungs:
        """A scan of shape (k, R)."""
        return cls(Scan(*(np.ascontiguousarray(getattr(found, name).T) for name in _SCANNED)))

    @cached_property
    def log_tilts(self) -> Array:
        return np.asarray(np.log(self.found.tilts))

    @cached_property
    def smooth(self) -> tuple[Array, Array]:
        """The epsilon whose saddle point each tilt is, increasing, and ``ln delta`` there, decreasing."""
        epsilon, log_delta = self.found.smooth_log_delta()
        return np.maximum.accumulate(epsilon, axis=1), np.minimum.accumulate(log_delta, axis=1)

    @cached_property
    def ladder(self) -> Array:
        """Deviations passed on the way up from the smallest tilt: the integral of the deviation over the tilt."""
        tilts = self.found.tilts
        deviation = np.sqrt(self.found.variance + 1.0 / np.square(tilts) + 1.0 / np.square(1.0 + tilts))
        speed = deviation * tilts  # over the logarithm of the tilt
        steps = 0.5 * (speed[:, 1:] + speed[:, :-1]) * np.diff(self.log_tilts)
        return np.concatenate((np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)), axis=1)

    def between(self, most: float) -> tuple[Array, NDArray[np.intp]]:
        """Tilts to look at as well, where ladders rise by more for deltas that float64 holds, and how many each."""
        rises = np.diff(self.ladder)
        long = (rises > most) & (self.smooth[1][:, :-1] > _LEAST)
        if not long.any():
            return self.found.tilts[:, :0], np.zeros(len(rises), dtype=np.intp)
        count = np.minimum(np.where(long, np.ceil(_DENSER * rises / _APART) - 1.0, 0.0), _PIECES).astype(np.intp)
        row, place = count.nonzero()
        each = count[row, place]
        size = count.sum(axis=1)
        number = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)  # of a tilt in its interval
        row, place, each = (np.repeat(one, each) for one in (row, place, each))
        own = np.arange(row.size) - (np.cumsum(size) - size)[row]  # and in its row
        found = np.repeat(self.found.tilts[:, -1:], int(size.max()), axis=1)
        gap = np.diff(self.log_tilts)[row, place]
        found[row, own] = np.exp(self.log_tilts[row, place] + gap * ((number + 1.0) / (each + 1.0)))
        return found, size

    def joined(self, more: _Rungs) -> _Rungs:
        """Both, by increasing tilt."""
        columns = [np.concatenate((getattr(self.found, name), getattr(more.found, name)), axis=1) for name in _SCANNED]
        order = np.argsort(columns[0], axis=1, kind="stable")
        row = np.arange(len(order))[:, None]
        return _Rungs(Scan(*(column[row, order] for column in columns)))

    def level(self, row: int, size: int, sketches: Sequence[Sketch]) -> Level:
        """Those of one sum."""
        epsilons, log_deltas = self.smooth
        columns = (self.found.tilts, self.log_tilts, epsilons, log_deltas, self.ladder)
        tilts, log_tilts, epsilon, log_delta, ladder = (column[row, :size] for column in columns)
        return Level(tilts, log_tilts, epsilon, log_delta, ladder, tuple(sketches))


@final
@dataclass(frozen=True, eq=False)
class Level:
    """Tilts up to a largest one, and what a coarse scan finds there.

    Attributes
    ----------
    tilts, log_tilts : ndarray, shape (k,)
        Increasing.
    epsilons, log_deltas : ndarray
        The epsilon whose saddle point each tilt is, and ``ln delta`` there, by the saddle-point formula.
    ladder : ndarray
        Deviations passed on the way up from the smallest tilt.
    sketches : tuple of Sketch
        The coarse rules used.
    """

    tilts: Array
    log_tilts: Array
    epsilons: Array
    log_deltas: Array
    ladder: Array
    sketches: tuple[Sketch, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes and points of cells the rules have."""
        return tuple(
            size
            for rough in self.sketches
            for size in (rough.loss.shape[1], 0 if rough.cells is None else rough.cells.loss.shape[1])
        )

    def places(self, log_tilts: Array) -> list[int]:
        """The nearest stations."""
        found: list[int] = np.rint(np.interp(log_tilts, self.log_tilts, self.ladder) / _APART).astype(int).tolist()
        return found

    def tilt(self, place: int) -> float:
        """The tilt of a station, of few bits."""
        return round_tilt(math.exp(float(np.interp(place * _APART, self.ladder, self.log_tilts))))


Along = Callable[[Level], Array]


def by_epsilon(level: Level) -> Array:
    """What increases along a level where stations are looked for by epsilon."""
    return level.epsilons


def by_log_delta(level: Level) -> Array:
    """The same where they are looked for by ``-ln delta``."""
    return -level.log_deltas


@final
class Stations:
    """The stations of one composition.

    Parameters
    ----------
    losses : PairSum
        The composition, each of whose steps may leave out ``e^log_drop`` of its mass.
    log_drop : float
        What `Station` says of it.
    """

    def __init__(self, losses: PairSum, log_drop: float) -> None:
        self.losses, self._log_drop = losses, log_drop
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
        saddle = _saddles([level], np.array([level.tilt(station.place)]), self.losses.gaussian_variance)
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
    """Have a level of several ladders, those of like compositions in one pass."""
    kinds: dict[str, list[Stations]] = {}
    for one in several:
        if not one.lacks(number):
            continue
        kind = one.losses.kind if len(several) > 1 else None
        if kind is None:
            one.scanned(number, _scanned(one.losses, number, 1)[0])
        elif not any(one is other for other in kinds.setdefault(kind, [])[-1:]):
            kinds[kind].append(one)
    for like in kinds.values():
        losses = LikeSums.of([one.losses for one in like])
        for one, level in zip(like, _scanned(losses, number, len(like)), strict=True):
            one.scanned(number, level)


def _scanned(losses: LossSum, number: int, runs: int) -> list[Level | None]:
    """The levels of R sums; None where no rule serves."""
    found: list[Level | None] = [None] * runs
    for rows, tops, sketches in level_sketches(losses, number):
        if sketches is None:
            continue
        every: Any = losses.gaussian_variance
        variance = every[rows] if np.ndim(every) else every
        rung_count = _MORE if number else _RUNGS
        tilts = tops * math.sqrt(2.0) ** np.arange(1.0 - rung_count, 1.0)[:, None]
        rungs = _Rungs.of(scan(sketches, variance, tilts))
        size = np.full(rows.size, rung_count)
        for most in _LONG:
            between, count = rungs.between(most)
            if between.shape[1] == 0:
                break
            rungs = rungs.joined(_Rungs.of(scan(sketches, variance, np.ascontiguousarray(between.T))))
            size += count
        for place, (row, length) in enumerate(zip(rows.tolist(), size.tolist(), strict=True)):
            whole = sketches if runs == 1 else [rough.at(slice(place, place + 1)) for rough in sketches]
            found[row] = rungs.level(place, length, whole)
    return found


def saddles_at(asked: Sequence[tuple[Stations, Station]]) -> Iterator[tuple[list[int], Saddle]]:
    """The saddle points at stations of like compositions that have one: which, and several at a time."""
    levels = [one.level(station.level) for one, station in asked]
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, level in enumerate(levels):
        if level is not None:
            alike.setdefault(level.sizes, []).append(place)
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
