"""Lines at their places, and where to place the next one in search of the epsilon of a delta.

Guarantee: what is searched for is a pair of logarithms rounded outwards; where to look is an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.engines.contour.root_bracket import LogBracket
from hockeystick.laws.loss_sum import PairSum
from hockeystick.numerics.columns import Array, Flags, Places, column
from hockeystick.numerics.rounding import U, down, up
from hockeystick.transforms.saddle import normal_epsilon

if TYPE_CHECKING:
    from hockeystick.engines.contour.lines import Line

REACH: Final = 2.5
"""Standard deviations from its own epsilon within which a line is asked."""

HERE: Final = 6
"""Which of the epsilons looked at is the line's own."""

_MOST = 0.9  # of that, where the epsilon of a delta is looked for
_NEAR = 1.2  # deviations within which the curve is known by a polynomial: a little more than half way to the next
_NODES = -np.cos(math.pi * np.arange(9.0) / 8.0)
_NODES[4] = 0.0
_POINTS = np.linspace(-1.0, 1.0, 129)  # at which the polynomial is known, linear between
_SPREAD = np.vander(_POINTS, _NODES.size) @ np.linalg.inv(np.vander(_NODES))  # from values at the nodes to those there


@final
@dataclass(frozen=True)
class PlacedLine:
    """A line, the epsilon and deviation (nats) it was planned for, and the relative width of delta it is asked for."""

    line: Line
    epsilon: float
    deviation: float
    width: float = math.inf

    @property
    def asked(self) -> Array:
        """Epsilons to look at before others: the ends of what the line serves, and points near the middle."""
        reach = _MOST * REACH * self.deviation
        ends = [max(self.epsilon - reach, 0.0), max(self.epsilon + reach, 0.0)]
        return np.concatenate((ends, self.epsilon + _NEAR * self.deviation * _NODES))

    @cached_property
    def seen(self) -> LogBracket:
        """What the line says there."""
        curve = self.line.curve(self.asked)
        return LogBracket(curve.log_lower(), curve.log_upper())

    def sees(self, lower: Array, upper: Array) -> PlacedLine:
        """The same, of which that is known."""
        self.__dict__["seen"] = LogBracket(lower, upper)
        return self

    def asked_for(self, width: float) -> PlacedLine:
        """The same, asked for a relative width of delta."""
        return replace(self, width=width).sees(self.seen.lower, self.seen.upper)

    @property
    def here(self) -> LogBracket:
        """The part of it at the line's own epsilon, shape (1,)."""
        return LogBracket(self.seen.lower[HERE : HERE + 1], self.seen.upper[HERE : HERE + 1])


@final
@dataclass(frozen=True, eq=False)
class Ranges:
    """What several lines serve, and what their curves are there.

    Attributes
    ----------
    most, least : ndarray, shape (L,)
        ``ln delta_fin`` is at least the one at the lower end, or at epsilon 0, and at most the other at the upper end.
    epsilon, half : ndarray, shape (L,)
        Middle of the range near the line's own epsilon, and half its length (nats).
    values : ndarray, shape (L, k)
        About ``ln delta_fin`` at points over that range, by a polynomial; nan where it is not known.
    """

    most: Array
    least: Array
    epsilon: Array
    half: Array
    values: Array

    def reaches(self, which: Places, log_delta: Array) -> Flags:
        """Whether a line is worth asking for the epsilon of a delta."""
        return (self.most[which] >= log_delta) & (log_delta >= self.least[which])

    def guess(self, which: Places, log_delta: Array) -> tuple[Array, Array]:
        """About the epsilon of each delta (nats), linear between the points, and the slope there; 0 if unknown."""
        values = self.values[which]
        place = np.minimum(np.maximum((values > column(log_delta)).sum(axis=1), 1), _POINTS.size - 1)
        row = np.arange(place.size)
        above, below = values[row, place - 1], values[row, place]
        falls = above > below
        share = (above - log_delta) / np.where(falls, above - below, 1.0)
        x = _POINTS[place - 1] + (_POINTS[1] - _POINTS[0]) * np.minimum(np.maximum(share, 0.0), 1.0)
        half = self.half[which]
        slope = np.where(falls, above - below, 0.0) / ((_POINTS[1] - _POINTS[0]) * half)
        return self.epsilon[which] + half * np.where(falls, x, 0.0), slope


def ranges_of(placed: Sequence[PlacedLine]) -> Ranges:
    """What lines serve."""
    lower, upper = np.array([one.seen.lower for one in placed]), np.array([one.seen.upper for one in placed])
    middles = LogBracket(lower, upper).middles[:, 2:]
    falls = np.isfinite(middles).all(axis=1, keepdims=True)
    values = (_SPREAD * np.where(falls, middles, np.nan)[:, None]).sum(axis=2)
    epsilon, deviation = np.array([(one.epsilon, one.deviation) for one in placed]).T
    return Ranges(lower[:, 0], upper[:, 1], epsilon, _NEAR * deviation, values)


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
        here = placed.line.curve(np.array([placed.epsilon, point]))
        if not np.isfinite(here.log_lower()).any() and (log_delta is not None or here.log_upper()[0] > 0.0):
            # planned for deltas far above what it is there: as next to a cliff of K, where large losses of small mass
            # make estimates too large
            self.high = placed.epsilon
            return self._between(placed), None
        move = abs(point - placed.epsilon)
        if move < 0.999 * REACH * placed.deviation:
            again = log_delta is not None and move <= 1e-6 * placed.deviation
            return None if again else (max(point, 0.0), self.log_delta)
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


def targets_of(delta: float, low: float, high: float) -> tuple[float, float]:
    """``ln`` of what is left of delta without the mass at infinity, which is between low and high.

    As it must be exceeded and undercut: rounded up and down.
    """
    most = up(delta - low) if low > 0.0 else delta
    least = down(delta - high) if high > 0.0 else delta
    return _log(most, math.inf), _log(least, -math.inf)


def _log(value: float, toward: float) -> float:
    """``ln value``, rounded towards an infinity; ``-inf`` where nothing is left."""
    if value <= 0.0:
        return -math.inf
    log = math.log(value)
    return math.nextafter(log + math.copysign(8.0 * U * abs(log), toward), toward)
