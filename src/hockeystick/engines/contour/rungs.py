"""The rungs of a ladder: what a coarse scan of K finds at increasing tilts, and where stations stand between them.

Estimates only. Cost: that of the scans.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.transforms.cumulants import Scan
from hockeystick.transforms.rule import Array, Sketch
from hockeystick.transforms.saddle import round_tilt

APART: Final = 1.5
"""Deviations of the tilted loss from one station to the next."""

_DEEP = 20.0  # of ln delta, from one station to the next at most
_DEEPEST = -100.0  # ln delta down to which that matters
_DENSER = 1.5  # than stations, that an interval is cut: a second look seldom finds one too long
_PIECES = 18  # tilts added to an interval that is too long, at most
_LEAST = -760.0  # ln of the smallest delta looked for


@final
@dataclass(frozen=True, eq=False)
class Rungs:
    """What a coarse scan finds at increasing tilts of R sums, shape (R, k); where one has fewer, its last repeats."""

    found: Scan

    @classmethod
    def of(cls, found: Scan) -> Rungs:
        """A scan of shape (k, R)."""
        return cls(Scan.of_all([found], lambda own: np.ascontiguousarray(own[0].T)))

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
        """Deviations passed on the way up from the smallest tilt: the integral of the deviation over the tilt.

        More where ``ln delta`` falls faster. Just above a cliff of K the loss has two modes far apart, and a deviation
        that says nothing of either: there one line would stand for all deltas between those of the modes.
        """
        tilts = self.found.tilts
        deviation = np.sqrt(self.found.variance + 1.0 / np.square(tilts) + 1.0 / np.square(1.0 + tilts))
        speed = deviation * tilts  # over the logarithm of the tilt
        steps = 0.5 * (speed[:, 1:] + speed[:, :-1]) * _gaps(self.log_tilts)
        deep = _gaps(np.maximum(self.smooth[1], _DEEPEST))
        steps = np.maximum(steps, APART / _DEEP * -deep)
        return np.concatenate((np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)), axis=1)

    def between(self, most: float) -> tuple[Array, NDArray[np.intp]]:
        """Tilts to look at as well, where ladders rise by more for deltas that float64 holds, and how many each."""
        rises = _gaps(self.ladder)
        long = (rises > most) & (self.smooth[1][:, :-1] > _LEAST)
        if not long.any():
            return self.found.tilts[:, :0], np.zeros(len(rises), dtype=np.intp)
        count = np.minimum(np.where(long, np.ceil(_DENSER * rises / APART) - 1.0, 0.0), _PIECES).astype(np.intp)
        row, place = count.nonzero()
        each = count[row, place]
        size = count.sum(axis=1)
        number = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)  # of a tilt in its interval
        row, place, each = (np.repeat(one, each) for one in (row, place, each))
        own = np.arange(row.size) - (np.cumsum(size) - size)[row]  # and in its row
        found = np.repeat(self.found.tilts[:, -1:], int(size.max()), axis=1)
        gap = _gaps(self.log_tilts)[row, place]
        found[row, own] = np.exp(self.log_tilts[row, place] + gap * ((number + 1.0) / (each + 1.0)))
        return found, size

    def joined(self, more: Rungs) -> Rungs:
        """Both, by increasing tilt."""
        both = Scan.joined([self.found, more.found], axis=1)
        order = np.argsort(both.tilts, axis=1, kind="stable")
        return Rungs(both.at((np.arange(len(order))[:, None], order)))

    def at(self, rows: NDArray[np.intp]) -> Rungs:
        """Those of some of the sums, each as often as it is named."""
        if rows.size == len(self.found.tilts) == 1:
            return self
        return Rungs(self.found.at(rows))

    def filled(self, rows: NDArray[np.intp], some: Rungs) -> Rungs:
        """Those of some of the sums; of the others the last rung, repeated."""
        if rows.size == len(self.found.tilts):
            return some

        def repeated(both: list[Array]) -> Array:
            last, own = both
            column = np.repeat(last[:, -1:], own.shape[1], axis=1)
            column[rows] = own
            return column

        return Rungs(Scan.of_all([self.found, some.found], repeated))

    def composed(self, steps: Array, variance: Array) -> Rungs:
        """Those of so many steps each, given those of one, with normal parts of these variances."""
        return Rungs(self.found.composed(steps[:, None], variance[:, None]))

    def level(self, place: int, own: Rungs, row: int, size: int, sketches: Sequence[Sketch]) -> Level:
        """The level planned at a place, with what a row of others says of its deltas."""
        tilts, log_tilts, ladder = (column[place, :size] for column in (self.found.tilts, self.log_tilts, self.ladder))
        epsilon, log_delta = (column[row, :size] for column in own.smooth)
        return Level(tilts, log_tilts, epsilon, log_delta, ladder, tuple(sketches))


def _gaps(columns: Array) -> Array:
    """From each column to the next."""
    return np.asarray(columns[:, 1:] - columns[:, :-1])


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

    def places(self, log_tilts: Array) -> list[int]:
        """The nearest stations."""
        found: list[int] = np.rint(np.interp(log_tilts, self.log_tilts, self.ladder) / APART).astype(int).tolist()
        return found

    def tilt(self, place: int) -> float:
        """The tilt of a station, of few bits."""
        return round_tilt(math.exp(float(np.interp(place * APART, self.ladder, self.log_tilts))))
