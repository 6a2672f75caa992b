"""Lines at their places, and where to place the next one in search of the epsilon of a delta.

Guarantee: what is searched for is a pair of logarithms rounded outwards; where to look is an estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.engines.contour.lattice_line import LatticeLine
from hockeystick.engines.contour.line import ContourLine
from hockeystick.engines.contour.smoothed_line import SmoothedLine
from hockeystick.laws.loss_sum import PairSum
from hockeystick.numerics.rounding import U, down, up
from hockeystick.transforms.saddle import normal_epsilon

__all__ = ["REACH", "EpsilonSearch", "PlacedLine", "Targets"]

REACH = 2.5
"""Standard deviations from its own epsilon within which a line is asked."""


@final
@dataclass(frozen=True)
class PlacedLine:
    """A line, and the epsilon and deviation (nats) it was planned for."""

    line: ContourLine | LatticeLine | SmoothedLine
    epsilon: float
    deviation: float

    def serves(self, epsilon: float) -> bool:
        """Whether the line is worth asking."""
        return abs(epsilon - self.epsilon) <= REACH * self.deviation

    def reaches(self, log_delta: float) -> bool:
        """Whether the line is worth asking for the epsilon of a delta."""
        ends = self.epsilon + REACH * self.deviation * np.array([-0.9, 0.9])
        found = self.line.curve(np.maximum(ends, 0.0))
        return bool(found.log_lower()[0] >= log_delta >= found.log_upper()[1])


@final
@dataclass
class EpsilonSearch:
    """Where to place the next line in search of the epsilon of a delta: estimates, nothing proved."""

    losses: PairSum
    log_delta: float
    low: float = 0.0  # where delta seems larger than the one searched for
    high: float = math.inf  # and where it seems smaller

    def after(self, placed: PlacedLine, point: float, log_delta: float | None) -> tuple[float, float | None] | None:
        """The next epsilon, with ``ln delta`` there if known; None where the same line would come again."""
        move = abs(point - placed.epsilon)
        if move < 0.999 * REACH * placed.deviation:
            again = log_delta is not None and move <= 1e-6 * placed.deviation
            return None if again else (max(point, 0.0), self.log_delta)
        here = placed.line.curve(np.array([placed.epsilon]))
        guess = here.guess()
        decided = here.log_upper()[0] < self.log_delta or here.log_lower()[0] > self.log_delta
        if not decided and (log_delta is None or abs(guess - log_delta) > 1.0):
            return placed.epsilon, guess  # the line was planned for another size of delta
        if guess > self.log_delta:
            self.low = placed.epsilon
        else:
            self.high = placed.epsilon
        return self._between(placed), None

    def _between(self, placed: PlacedLine) -> float:
        """As if the loss were normal, if that lies between; else halfway."""
        normal = normal_epsilon(self.losses, self.log_delta)
        if self.low < normal < self.high:
            return normal
        return 0.5 * (self.low + self.high) if math.isfinite(self.high) else self.low + 4.0 * placed.deviation


@final
@dataclass(frozen=True)
class Targets:
    """``ln`` of the finite part of delta, as it must be exceeded and undercut: rounded up and down."""

    exceeded: float
    undercut: float

    @classmethod
    def of(cls, delta: float, low: float, high: float) -> Targets:
        """What is left of delta without the mass at infinity, which is between low and high."""
        most = up(delta - low) if low > 0.0 else delta
        least = down(delta - high) if high > 0.0 else delta
        return cls(_log(most, math.inf), _log(least, -math.inf))


def _log(value: float, toward: float) -> float:
    """``ln value``, rounded towards an infinity; ``-inf`` where nothing is left."""
    if value <= 0.0:
        return -math.inf
    log = math.log(value)
    return math.nextafter(log + math.copysign(8.0 * U * abs(log), toward), toward)
