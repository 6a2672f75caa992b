"""Where lines stand: a fixed ladder of tilts for each composition, so that an answer depends on the question alone.

A line through one tilt serves every epsilon within a deviation or so of its own. If each question placed a line of its
own, a curve would cost a line a point; if it took the nearest line that an earlier question left, its last digits would
depend on what was asked before. So lines stand on stations, 1.5 deviations of the tilted loss apart, that depend on
the composition alone: a question goes to the nearest one, and a thousand questions share a few dozen lines.

Estimates only: a line proves what it says wherever it stands. Cost: one coarse scan of K for each level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.transforms.cumulants import Scan, scan
from hockeystick.transforms.rule import Array, Sketch
from hockeystick.transforms.saddle import LossSum, Saddle, coarse_sketches, round_tilt

__all__ = ["Station", "Stations"]

_APART = 1.5  # deviations of the tilted loss from one station to the next
_RUNGS = 41  # tilts scanned in a level, each sqrt 2 above the one before
_PIECES = 6.0  # of an interval that is too long
_REFINEMENTS = 3
_LEAST = -760.0  # ln of the smallest delta looked for
_LEVELS = 4  # of ever larger tilts


@final
@dataclass(frozen=True)
class Station:
    """The number of a station: its level, its place on the ladder, and ``ln`` of the mass that steps may leave out."""

    level: int
    place: int
    log_drop: float


@final
@dataclass(frozen=True, eq=False)
class _Level:
    """Tilts up to a largest one, and what a coarse scan finds there.

    Attributes
    ----------
    found : Scan
        K, K' and K'' at increasing tilts.
    sketches : tuple of Sketch
        The coarse rules used.
    """

    found: Scan
    sketches: tuple[Sketch, ...]

    @cached_property
    def log_tilts(self) -> Array:
        return np.asarray(np.log(self.found.tilts))

    @cached_property
    def epsilons(self) -> Array:
        """The epsilon whose saddle point each tilt is; increasing."""
        return np.asarray(np.maximum.accumulate(self.found.smooth_log_delta()[0]))

    @cached_property
    def log_deltas(self) -> Array:
        """``ln delta`` there, by the saddle-point formula; decreasing."""
        return np.asarray(np.minimum.accumulate(self.found.smooth_log_delta()[1]))

    @cached_property
    def ladder(self) -> Array:
        """Deviations passed on the way up from the smallest tilt: the integral of the deviation over the tilt."""
        tilts = self.found.tilts
        deviation = np.sqrt(self.found.variance + tilts**-2.0 + (1.0 + tilts) ** -2.0)
        speed = deviation * tilts  # over the logarithm of the tilt
        steps = 0.5 * (speed[1:] + speed[:-1]) * np.diff(self.log_tilts)
        return np.concatenate(([0.0], np.cumsum(steps)))

    def between(self) -> Array:
        """Tilts to look at as well, where the ladder is too coarse for deltas that float64 holds."""
        rises = np.diff(self.ladder)
        long = np.flatnonzero((rises > _APART) & (self.log_deltas[:-1] > _LEAST))
        shares = np.arange(1.0, _PIECES) / _PIECES
        return np.exp(self.log_tilts[long, None] + np.diff(self.log_tilts)[long, None] * shares).ravel()

    def places(self, log_tilts: Array) -> list[int]:
        """The nearest stations."""
        found: list[int] = np.rint(np.interp(log_tilts, self.log_tilts, self.ladder) / _APART).astype(int).tolist()
        return found

    def tilt(self, place: int) -> float:
        """The tilt of a station, of few bits."""
        return round_tilt(math.exp(float(np.interp(place * _APART, self.ladder, self.log_tilts))))


@final
class Stations:
    """The stations of one composition.

    Parameters
    ----------
    losses : LossSum
        The composition, each of whose steps may leave out ``e^log_drop`` of its mass.
    log_drop : float
        What `Station` says of it.
    """

    def __init__(self, losses: LossSum, log_drop: float) -> None:
        self._losses, self._log_drop = losses, log_drop
        self._levels: dict[int, _Level | None] = {}

    def of_epsilons(self, epsilon: Array) -> list[Station | None]:
        """The stations for delta at epsilons (nats), shape (E,); None where none is near."""
        return self._found(epsilon, lambda level: level.epsilons)

    def of_log_deltas(self, log_delta: Array) -> list[Station | None]:
        """The stations for the epsilons at ``ln delta``, shape (E,); None where none is near."""
        return self._found(-log_delta, lambda level: -level.log_deltas)

    def _found(self, values: Array, along: Callable[[_Level], Array]) -> list[Station | None]:
        """The stations where what increases along a level takes the values."""
        found: list[Station | None] = [None] * values.size
        left = np.arange(values.size)
        for number in range(_LEVELS):
            level = self._level(number) if left.size else None
            if level is None:
                break
            line = along(level)
            left = left[values[left] >= line[0]]
            own = left[values[left] <= line[-1]]
            places = level.places(np.interp(values[own], line, level.log_tilts))
            for row, place in zip(own.tolist(), places, strict=True):
                found[row] = Station(number, place, self._log_drop)
            left = left[values[left] > line[-1]]
        return found

    def leaves_out(self, station: Station | None) -> bool:
        """Whether some losses are left out at a station."""
        level = None if station is None else self._level(station.level)
        return level is not None and any(bool(rough.dropped.any()) for rough in level.sketches)

    def saddle(self, station: Station) -> Saddle | None:
        """The saddle point at a station."""
        level = self._level(station.level)
        if level is None:
            return None
        theta = level.tilt(station.place)
        here = scan(level.sketches, self._losses.gaussian_variance, np.array([theta]))
        top = float(level.found.tilts[-1])
        value, mean, variance = (float(column[0]) for column in (here.value, here.mean, here.variance))
        return Saddle(theta, value, mean, variance, level.sketches, top)

    def _level(self, number: int) -> _Level | None:
        if number not in self._levels:
            self._levels[number] = self._scanned(number)
        return self._levels[number]

    def _scanned(self, number: int) -> _Level | None:
        losses = self._losses
        top, sketches = coarse_sketches(losses, number)
        if sketches is None:
            return None
        tilts = top * math.sqrt(2.0) ** np.arange(1.0 - _RUNGS, 1.0)
        found = scan(sketches, losses.gaussian_variance, tilts)
        for _ in range(_REFINEMENTS):
            between = _Level(found, ()).between()
            if between.size == 0:
                break
            found = found.joined(scan(sketches, losses.gaussian_variance, between))
        return _Level(found, tuple(sketches))
