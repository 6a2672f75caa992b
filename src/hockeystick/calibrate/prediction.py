"""Where estimates put the answer: the root of an estimated excess along an axis.

The excess grows along the axis by assumption. It may be cut off where it is far from 0, and be off in its last
digits: only its sign is used far out, and its size near the root. Nothing certified rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

from hockeystick.calibrate.axis import Axis

_MOST = 40  # estimates in an interval
_SECANTS = 12  # of them near the root: then their last digits are noise
_APART = 2e-3  # between places from which a slope is taken, and between which no jump is resolved
_NEARBY = 0.2  # the same: a slope from further away is asked once more
_FIRST = 0.25  # step to take for each unit of excess
_BEYOND, _SHORTEST = 2.0, 0.1  # times the step that a straight line needs; a step, at least
_LINEAR = 3.0  # excess within which a straight line is followed
_BEND = 4.0  # relative change of the slope along a unit of the axis that is allowed for
_LEAST_SLOPE = 1e-3
_INSIDE = 0.03  # of the interval: how near to its ends a place is tried
_FLAT = 0.6  # of the width, or of the excess: an estimate that leaves more of both makes the next one halve


@final
@dataclass(frozen=True)
class Prediction:
    """Where the excess is expected to vanish, or an end of the axis; how fast it grows, and what is left there."""

    place: float
    slope: float
    left: float = 0.0


@final
@dataclass
class _Estimates:
    """Estimates so far."""

    axis: Axis
    excess: Callable[[float], float]
    known: dict[float, float] = field(default_factory=dict)

    def at(self, place: float) -> float:
        """The excess at a place, estimated once."""
        if place not in self.known:
            self.known[place] = self.excess(place)
        return self.known[place]

    @property
    def near(self) -> float:
        """The place with the least excess."""
        return min(self.known, key=lambda place: abs(self.known[place]))

    def slope(self, near: float) -> tuple[float, float]:
        """The slope at a place, from another that is not too near to it, and their distance."""
        others = [place for place in self.known if abs(place - near) > _APART]
        others = others or [place for place in self.known if place != near]
        if not others:
            return 1.0, math.inf
        other = min(others, key=lambda place: abs(place - near))
        slope = (self.known[near] - self.known[other]) / (near - other)
        return max(slope, _LEAST_SLOPE), abs(near - other)


def predicted(excess: Callable[[float], float], axis: Axis, guess: float, step: float) -> Prediction:
    """The root of the excess, sought outward from a guess in steps that up to double, then ever nearer.

    Examples
    --------
    >>> found = predicted(lambda place: 3.0 * (place - 0.7), Axis(1e-6, 1e9, False, 1, 1e-4), 1.0, 0.5)
    >>> round(found.place, 6), round(found.slope, 6)
    (0.7, 3.0)
    """
    estimates = _Estimates(axis, excess)
    ends = axis.place(axis.start), axis.place(axis.end)
    at = min(max(axis.place(guess), ends[0]), ends[1])
    first = estimates.at(at)
    above = first > 0.0
    step = min(step, max(_FIRST * abs(first), 2.0 * _APART))  # a good guess needs no long step
    while True:
        inner, at = at, min(max(at - step if above else at + step, ends[0]), ends[1])
        if at == inner:
            return Prediction(at, estimates.slope(at)[0], estimates.known[at])
        if (estimates.at(at) > 0.0) != above:
            break
        step = _outward(abs(estimates.known[inner]), abs(estimates.known[at]), abs(at - inner))
    return _narrowed(estimates, min(inner, at), max(inner, at))


def _outward(before: float, now: float, step: float) -> float:
    """The next step away from a guess: twice the last one, or less where the excess then vanishes well before."""
    lost = before - now
    return 2.0 * step if lost <= 0.0 else min(2.0 * step, max(_BEYOND * now * step / lost, _SHORTEST))


def _narrowed(estimates: _Estimates, low: float, high: float) -> Prediction:
    """The root between two places, as near as makes a difference."""
    axis, halve, secants = estimates.axis, False, 0
    for _ in range(_MOST):
        near = estimates.near
        least, width = abs(estimates.known[near]), high - low
        slope, apart = estimates.slope(near)
        if slope <= _LEAST_SLOPE:  # noise: across the interval it grows
            slope = (estimates.known[high] - estimates.known[low]) / width
        root = near - estimates.known[near] / slope
        linear = least <= _LINEAR and low <= root <= high
        fine = apart <= _NEARBY and abs(root - near) * _BEND * apart <= axis.fineness(near)
        if linear and (fine or secants == _SECANTS):
            return Prediction(root, slope)
        if not linear and width < _APART:  # the estimates jump across 0
            return Prediction(0.5 * (low + high), slope)
        secants += linear
        if halve:
            root = 0.5 * (low + high)
        elif not linear or root in estimates.known:
            root = _compressed(low, estimates.known[low], high, estimates.known[high])
        if axis.whole:
            root = axis.place(axis.value(root))
        if not low < root < high or root in estimates.known:
            return Prediction(near, slope)
        value = estimates.at(root)
        low, high = (low, root) if value > 0.0 else (root, high)
        halve = not halve and high - low > _FLAT * width and abs(value) > _FLAT * least
    return Prediction(estimates.near, slope)


def _compressed(low: float, at_low: float, high: float, at_high: float) -> float:
    """Where a line vanishes through the excesses at two places, large ones compressed."""
    below, above = math.asinh(at_low), math.asinh(at_high)
    share = below / (below - above)
    return low + min(max(share, _INSIDE), 1.0 - _INSIDE) * (high - low)
