"""What a coarse scan of K finds at increasing tilts, and where stations stand between them.

Estimates only. Cost: that of the scans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

import numpy as np

from hockeystick.numerics.columns import Flags, Places
from hockeystick.numerics.interpolation import monotone_cubic
from hockeystick.transforms.cumulants import Scan
from hockeystick.transforms.rule import Array, Sketch
from hockeystick.transforms.saddle import round_tilt

APART: Final = 2.0
"""Deviations of the tilted loss from one station to the next: 1.5 have a curve of many points take a seventh longer."""

_DEEP = 25.0  # of ln delta, from one station to the next at most
_LONG = 6.0  # deviations from one tilt to the next that are too many
_LEAST = -760.0  # ln of the smallest delta looked for


@final
@dataclass(frozen=True, eq=False)
class Levels:
    """Tilts up to a largest one for each of R sums, and what a coarse scan finds there; arrays of shape (R, k).

    Attributes
    ----------
    rules : callable
        From a row to the coarse rules used.
    tops : ndarray, shape (R,)
        The largest tilts that they serve.
    tilts : ndarray
        Increasing along a row.
    epsilons, log_deltas : ndarray
        The epsilon whose saddle point each tilt is, increasing, and ``ln delta`` there, decreasing.
    curvature : ndarray
        By how much that epsilon grows with the tilt.
    ladder, deviation, variance : ndarray
        Of what lines are planned for: deviations passed on the way up from the smallest tilt, each of these, and K''.
    """

    rules: Callable[[int], Sequence[Sketch]]
    tops: Array
    tilts: Array
    epsilons: Array
    log_deltas: Array
    curvature: Array
    ladder: Array
    deviation: Array
    variance: Array

    @classmethod
    def of(cls, both: Scan, rules: Callable[[int], Sequence[Sketch]], tops: Array, first: Sequence[float]) -> Levels:
        """Those of R sums, given what is found of what is planned for each, and then of each itself, shape (k, 2 R).

        Ladders go on from the values given.
        """
        epsilons, log_deltas = both.smooth_log_delta()
        epsilons, log_deltas = np.maximum.accumulate(epsilons), np.minimum.accumulate(log_deltas)
        planned, own = slice(len(first)), slice(len(first), None)
        tilts, deviation = both.tilts[:, planned], np.sqrt(both.curvature[:, planned])
        ladder = _ladder(tilts, log_deltas[:, planned], deviation) + first
        of_own = (one[:, own] for one in (epsilons, log_deltas, both.curvature))
        of_all = tilts, *of_own, ladder, deviation, both.variance[:, planned]
        return cls(rules, tops, *(np.ascontiguousarray(one.T) for one in of_all))

    @cached_property
    def is_long(self) -> Flags:
        """Between which tilts there are too many deviations, for deltas that float64 holds, shape (R, k - 1)."""
        return np.asarray((self.ladder[:, 1:] - self.ladder[:, :-1] > _LONG) & (self.log_deltas[:, :-1] > _LEAST))


@final
@dataclass(frozen=True, eq=False)
class Level:
    """That of one sum: a row of several."""

    levels: Levels
    row: int

    @cached_property
    def sketches(self) -> Sequence[Sketch]:
        """The coarse rules used."""
        return self.levels.rules(self.row)

    @property
    def top(self) -> float:
        """The largest tilt that they serve."""
        return float(self.levels.tops[self.row])

    @property
    def tilts(self) -> Array:
        """Increasing, shape (k,)."""
        return np.asarray(self.levels.tilts[self.row])

    @property
    def ladder(self) -> Array:
        """Deviations passed on the way up, shape (k,)."""
        return np.asarray(self.levels.ladder[self.row])

    def spread(self, tilt: float) -> float:
        """About K'' at a tilt."""
        return float(np.interp(tilt, self.tilts, self.levels.variance[self.row]))

    def tilt(self, place: int) -> float:
        """The tilt of a station, of few bits."""
        at, slope = np.array([place * APART]), 1.0 / (self.tilts * self.levels.deviation[self.row])
        return round_tilt(float(np.exp(monotone_cubic(at, self.ladder, np.log(self.tilts), slope)[0])))


Along = Callable[[Levels, Places], tuple[Array, Array]]
"""From some rows of levels to what increases along them, where stations are looked for, and how fast the ladder rises
with that."""


def by_epsilon(levels: Levels, rows: Places) -> tuple[Array, Array]:
    """Epsilon itself."""
    return levels.epsilons[rows], levels.deviation[rows] / levels.curvature[rows]


def by_log_delta(levels: Levels, rows: Places) -> tuple[Array, Array]:
    """``-ln delta``, which grows by the tilt for each nat of epsilon."""
    return -levels.log_deltas[rows], levels.deviation[rows] / (levels.tilts[rows] * levels.curvature[rows])


def _ladder(tilts: Array, log_deltas: Array, deviation: Array) -> Array:
    """Deviations passed on the way up from the smallest tilt: the integral of the deviation over the tilt.

    More where ``ln delta`` falls faster. Just above a cliff of K the loss has two modes far apart, and a deviation that
    says nothing of either: there one line would stand for all deltas between those of the modes.
    """
    speed = deviation * tilts  # over the logarithm of the tilt
    deep = np.maximum(log_deltas, _LEAST)
    steps = np.zeros(speed.shape)
    steps[1:] = 0.5 * (speed[1:] + speed[:-1]) * np.log(tilts[1:] / tilts[:-1])
    steps[1:] = np.maximum(steps[1:], (APART / _DEEP) * (deep[:-1] - deep[1:]))
    return steps.cumsum(axis=0)
