"""Where lines of rare large losses stand, so that many runs of one law share them.

A line's pieces and transforms know nothing of the number of steps. So that an answer depends on the question alone,
lines stand at stations: one for all numbers of steps from a power of four to the next (of two, or of its root, where
several steps draw the record), and for deltas between two whole powers of e. A line is planned for the largest epsilon
that it serves. Those of several laws serve one run alone, for deltas within a factor of e^2, and only the last is kept.

Estimates only: a line proves what it says wherever it stands. Cost: 4 ms a line for each law.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.rare.line import RareLine, rare_line
from hockeystick.engines.rare.losses import Array, RareSum

SHARE: Final = 0.1
"""Of the tolerance, that a line is planned for."""

SEVERAL_DEPTHS: Final = 2
"""Whole powers of e of delta that a line of several laws serves: for 4 one answer takes up to half as long again."""

_MOST_ERROR = 1e-2  # relative to delta
_LEAST_ERROR = 1e-9
_SPARE = 0.03  # of ln of the error
_ABOVE, _BELOW = 1.05, 0.97  # times the guesses of the largest epsilon and of the smallest
_POINTS = np.geomspace(1e-7, 300.0, 24)  # epsilons looked at
_MANY = np.append(_POINTS, np.geomspace(350.0, 1e5, 36))  # the same where losses are large
_CLOSER = np.geomspace(0.5, 1.6, 14)  # of the one found there

Station = tuple[float, float, int]
"""``log2`` of the most steps and of what is less than the fewest; ``-ln`` of the smallest delta."""


@final
@dataclass(eq=False)
class StandingRareLines:
    """The lines of one law, placed when first asked for.

    Attributes
    ----------
    losses : RareSum
        The law, of which the number of steps does not count; or several.
    tolerance : float
        Width of the epsilon bracket asked for (nats).
    """

    losses: RareSum
    tolerance: float
    _lines: dict[Station, RareLine | None] = field(default_factory=dict, repr=False)

    def at(self, station: Station) -> RareLine | None:
        """The line at a station; None where none serves."""
        with suppress(KeyError):
            return self._lines[station]
        try:
            line: RareLine | None = self._placed(*station)
        except ContourRefusal:
            line = None
        if len(self.losses.laws) > 1:  # those of hundreds of laws take hundreds of megabytes each
            self._lines.clear()
        self._lines[station] = line
        return line

    def _placed(self, power: float, least_power: float, depth: int) -> RareLine:
        most, fewest, shallowest = self.losses.steps, self.losses.steps, float(SEVERAL_DEPTHS - depth)
        if len(self.losses.laws) == 1:
            shallowest = 1.0 - depth
            most = min(math.floor(2.0**power), math.ceil(self.losses.most_drawn / self.losses.rate))
            fewest = 2.0**least_power
        losses = self.losses.of(most)
        largest, smallest = epsilons_near(losses, np.array([-float(depth), shallowest])).tolist()
        epsilon = _ABOVE * largest
        # of fewer runs none is far from those that the line is planned for, where it is as wide as that allows
        share = SHARE * min(0.25 + 0.375 * (power - least_power), 1.0)
        log_error = (1.0 + _SPARE) * (log_error_for(losses, share * self.tolerance, epsilon) - depth)
        least_of_all = epsilon_near(losses.of(fewest), shallowest)
        least = [(1.0, _BELOW * smallest / epsilon), (fewest / most, _BELOW * least_of_all / epsilon)]
        return rare_line(losses, epsilon, log_error, least=least)


def epsilon_near(losses: RareSum, log_delta: float) -> float:
    """About the epsilon of a delta, within a tenth or so."""
    return float(epsilons_near(losses, np.array([log_delta]))[0])


def epsilons_near(losses: RareSum, log_deltas: Array) -> Array:
    """The same of several deltas, that of the first within a factor of two of the others'."""
    points = _MANY if losses.are_large else _POINTS
    for _ in range(2):
        logs = np.minimum.accumulate(np.log(np.maximum(losses.about_delta(points), 1e-300)))
        found = np.exp(np.interp(-log_deltas, -logs, np.log(points)))
        points = found[0] * _CLOSER
    return found


def log_error_for(losses: RareSum, share: float, epsilon: float) -> float:
    """``ln`` of the relative error of delta that moves epsilon by about ``share``."""
    near, far = np.maximum(losses.about_delta(epsilon * np.array([1.0, 1.05])), 1e-300).tolist()
    slope = max(math.log(near / far) / (0.05 * epsilon), 0.0 if losses.are_large else 1.0)
    return math.log(min(max(share * slope, _LEAST_ERROR), _MOST_ERROR))
