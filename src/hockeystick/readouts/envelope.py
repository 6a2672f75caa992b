"""A convex hockey-stick curve enclosed between lines, from certified values at finitely many points.

Symbols: (P, Q) is one ordered pair, ``h(a) = sup_S P(S) - a Q(S)`` its curve for a >= 0, *forward* the values
``h(e^eps)`` and *backward* those of (Q, P), each for eps >= 0; ``h(a) = 1 - a + a h_backward(1/a)`` joins them
at a = 1. ``l_i <= h(a_i) <= u_i`` are the certified values at ``a_i = e^eps_i``.

A test with false-positive rate ``alpha = Q(S)`` has a false-negative rate of at least

    f(alpha) = sup_a 1 - h(a) - a alpha = sup_b ((1 - alpha) - h_backward(b)) / b         (a = 1/b)

so every single ``u_i`` gives a valid line below f, and no control between the points is needed. Above f it is:
h is convex, hence in a cell [a_i, a_{i+1}] it lies above the line through its points on the left, carried on,
and above that through its points on the right. The enclosure takes the first up to a point of the cell and the
second beyond it; the supremum is then attained at finitely many *corners*. Cutting at the corner that decides,
again and again, is Kelley's method.

Guarantee: ``Enclosure.rates`` is certified on both sides where the values are, rounding included. Cost: a few
evaluations of the curve for each alpha; neighbouring alphas share them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hockeystick.numerics.rounding import UNDERFLOW, U

Array = NDArray[np.float64]

FARTHEST = 1e308
"""Where lines that fall too slowly to meet the floor in float64 are put down to it."""

_SLACK = 32.0 * U  # covers e^eps and the few operations of a line, whose terms are all of one sign
_LARGEST_EPSILON = 690.0  # e^epsilon and its products stay finite
_CUTS = 60  # evaluations for one alpha
_STALLED = 6  # cuts that together must halve the gap: beyond it the accountant's own width decides
_GROWTH = 1.6  # the furthest point is moved out by at least this factor
_NEIGHBOURS = 6  # points on each side through which lines are drawn


@final
@dataclass(frozen=True)
class Value:
    """Certified sides of a quantity (or one estimate, twice)."""

    lower: float
    upper: float


@final
@dataclass(frozen=True)
class Corners:
    """Where a piecewise linear function below the curve has its corners.

    Attributes
    ----------
    a : ndarray, shape (k,)
        Nondecreasing, at least 1, but that the last may be before the one before it.
    excess : ndarray, shape (k,)
        ``a - 1``, accurate relative to itself.
    lower : ndarray, shape (k,)
        The function there (it may be negative by a rounding error).
    sampled : ndarray of bool, shape (k,)
        Whether the curve has been evaluated there.
    """

    a: Array
    excess: Array
    lower: Array
    sampled: NDArray[np.bool_]

    def falling(self) -> tuple[Array, Array]:
        """``a - 1`` and the function at all corners but the last, none of them below the next: the curve falls.

        One rounded below it moves to the left, by more than its place is rounded: the line through it is higher there.
        """
        excess, lower = self.excess[:-1].copy(), self.lower[:-1].copy()
        moved = np.maximum(excess[1::2] - 64.0 * U * self.a[1:-1:2], excess[:-1:2])
        excess[1::2] = np.where(lower[1::2] < lower[2::2], moved, excess[1::2])
        lower[1::2] = np.maximum(lower[1::2], lower[2::2])
        return excess, lower


@final
@dataclass(frozen=True)
class Rates:
    """Both sides of the smallest false-negative rate and of the largest true-positive rate, for one alpha."""

    negative: Value
    positive: Value

    @property
    def gap(self) -> float:
        """The larger relative width of the two."""
        return max((rate.upper - rate.lower) / max(rate.upper, 1e-300) for rate in (self.negative, self.positive))


def worst(found: Sequence[Rates]) -> Rates:
    """The rates of the best of several attacks."""
    negative, positive = [one.negative for one in found], [one.positive for one in found]
    return Rates(
        Value(min(one.lower for one in negative), min(one.upper for one in negative)),
        Value(max(one.lower for one in positive), max(one.upper for one in positive)),
    )


@final
class Side:
    """Values of one curve at increasing epsilons, starting from 0.

    Parameters
    ----------
    evaluate : callable
        From epsilon (infinity included) to its `Value`.
    """

    def __init__(self, evaluate: Callable[[float], Value]) -> None:
        self._evaluate = evaluate
        limit = evaluate(math.inf)
        self.floor, self.ceiling = limit.lower, limit.upper  # of the mass of infinite losses, the curve's limit
        self.epsilon, self.lower, self.upper = np.empty(0), np.empty(0), np.empty(0)
        self.add(0.0)

    def add(self, *epsilons: float) -> None:
        """Evaluate at more epsilons, and keep the values nonincreasing (as the true ones are)."""
        values = [self._evaluate(epsilon) for epsilon in epsilons]
        together = np.append(self.epsilon, epsilons)
        order = np.argsort(together, kind="stable")
        lower = np.append(self.lower, [value.lower for value in values])[order]
        upper = np.append(self.upper, [value.upper for value in values])[order]
        # h falls: a lower bound holds at every smaller epsilon, an upper bound at every larger one
        self.epsilon = together[order]
        self.lower, self.upper = np.maximum.accumulate(lower[::-1])[::-1], np.minimum.accumulate(upper)

    def corners(self, other: Side) -> Corners:
        """The corners of the function below the curve on a >= 1; the other side is this curve below a = 1."""
        count = self.epsilon.size
        a, excess = np.exp(self.epsilon), np.expm1(self.epsilon)
        left, right = self.steepest(a, other), self.flattest(a)
        width = _spans(a, self.epsilon, 1)
        reach = self._reach(width, left[:-1], right)
        last, bottom = self._tail(float(a[-1]), float(left[-1]))
        points, values, above, sampled = (
            np.empty(2 * count),
            np.empty(2 * count),
            np.empty(2 * count),
            np.zeros(2 * count),
        )
        points[0::2], above[0::2], values[0::2], sampled[0::2] = a, excess, self.lower, 1.0
        points[1:-1:2] = inner = a[:-1] + reach
        above[1:-1:2] = inner - 1.0
        values[1:-1:2] = self._below_lines(inner, reach, width, left[:-1], right)
        points[-1], above[-1], values[-1] = last, last - 1.0, bottom
        return Corners(points, above, values, sampled > 0.0)

    def steepest(self, a: Array, other: Side) -> Array:
        """For each point a bound on how steeply the curve may fall beyond it: the flattest line from points before it.

        By convexity ``h(a) >= h_i - (h_j - h_i) (a - a_i) / (a_i - a_j)`` for j < i, at least the line with u_j
        and l_i.
        """
        low, high, epsilon = self.lower, self.upper, self.epsilon
        slope = np.full(a.size, np.inf)
        slope[0] = max(1.0 - low[0], 0.0)  # from h(0) = 1
        for step in range(1, min(_NEIGHBOURS, a.size - 1) + 1):
            rise = np.maximum(high[:-step] - low[step:], 0.0)
            slope[step:] = np.minimum(slope[step:], rise / _spans(a, epsilon, step))
        beyond = other.epsilon[1 : _NEIGHBOURS + 1]  # a = e^-eps, where h = 1 - a + a h_other
        if beyond.size:
            height = (-np.expm1(-beyond) + np.exp(-beyond) * other.upper[1 : _NEIGHBOURS + 1]) * (1.0 + _SLACK)
            for index in range(min(_NEIGHBOURS, a.size)):
                gap = a[index] * -np.expm1(-beyond - epsilon[index])
                rise = np.maximum(height - low[index], 0.0)
                steepest = np.divide(rise, gap, out=np.full_like(gap, np.inf), where=gap > 0.0)
                slope[index] = min(slope[index], float(steepest.min()))
        return slope * (1.0 + _SLACK) + UNDERFLOW  # of quotients below the normal range

    def flattest(self, a: Array) -> Array:
        """For each cell a bound on how fast the curve must rise to the left of its right end, from points beyond it."""
        low, high, epsilon = self.lower, self.upper, self.epsilon
        slope = np.zeros(max(a.size - 1, 0))
        for step in range(1, min(_NEIGHBOURS, a.size - 2) + 1):
            fall = np.maximum(low[1:-step] - high[1 + step :], 0.0)
            slope[:-step] = np.maximum(slope[:-step], fall / _spans(a[1:], epsilon[1:], step))
        return np.maximum(slope * (1.0 - _SLACK) - UNDERFLOW, 0.0)

    def _reach(self, width: Array, left: Array, right: Array) -> Array:
        """How far into each cell the two lines cross."""
        steeper = left - right
        fall = self.lower[:-1] - self.lower[1:] - right * width
        with np.errstate(over="ignore"):  # beyond the cell
            reach = np.divide(fall, steeper, out=width.copy(), where=steeper > 0.0)
        return np.clip(reach, 0.0, width)

    def _below_lines(self, point: Array, reach: Array, width: Array, left: Array, right: Array) -> Array:
        """A lower bound at a point of each cell on both lines: one is used up to it, the other beyond it."""
        low = self.lower
        off = 16.0 * U * point  # of the point's distance from either end
        fall = left * (reach + off) * (1.0 + _SLACK)
        rise = right * np.maximum(width - reach - off, 0.0) * (1.0 - _SLACK)
        return np.minimum(low[:-1] - fall, low[1:] + rise) - _SLACK * (low[:-1] + fall)

    def _tail(self, a: float, slope: float) -> tuple[float, float]:
        """Where the line beyond the last point meets the floor, and the lower bound there."""
        low = float(self.lower[-1])
        reach = min((low - self.floor) / slope, FARTHEST)
        fall = slope * (reach + 16.0 * U * (a + reach)) * (1.0 + _SLACK)
        return a + reach, min(low - fall - _SLACK * (low + fall), self.floor)

    def next_point(self, corner: float) -> float | None:
        """The epsilon at which to cut a corner; None where nothing new would be learnt."""
        epsilon = math.log(corner)
        last = float(self.epsilon[-1])
        if epsilon > last:
            epsilon = min(max(epsilon, _GROWTH * last, 0.05), max(2.0 * last, 1.0))
        if epsilon > _LARGEST_EPSILON:
            return None
        near = float(np.min(np.abs(self.epsilon - epsilon)))
        return epsilon if near > 1e-10 * max(epsilon, 1e-3) else None


@final
class Enclosure:
    """The trade-off function of one ordered pair, enclosed.

    Parameters
    ----------
    forward, backward : callable
        From epsilon (>= 0, infinity included) to the `Value` of ``H_{e^eps}(P || Q)`` and ``H_{e^eps}(Q || P)``; a
        curve that is its own reverse needs only the first.
    """

    def __init__(self, forward: Callable[[float], Value], backward: Callable[[float], Value] | None = None) -> None:
        self.forward = Side(forward)
        self.backward = self.forward if backward is None else Side(backward)
        self._corners: tuple[Corners, Corners] | None = None

    def corners(self) -> tuple[Corners, Corners]:
        """The corners of both sides."""
        if self._corners is None:
            self._corners = (self.forward.corners(self.backward), self.backward.corners(self.forward))
        return self._corners

    def add(self, side: Side, epsilon: float) -> None:
        """Evaluate one side at one more epsilon."""
        side.add(epsilon)
        self._corners = None

    def refined(self, alpha: float, tolerance: float) -> Rates:
        """The rates at one alpha, with cuts until they are known to this relative width or nothing more is learnt."""
        gaps: list[float] = []
        for _ in range(_CUTS):
            rates, cut = self.rates(alpha)
            gaps.append(rates.gap)
            stalled = len(gaps) > _STALLED and gaps[-1] > 0.5 * gaps[-1 - _STALLED] and gaps[-1] < 0.05
            if rates.gap <= tolerance or cut is None or stalled:
                return rates
            self.add(*cut)
        return self.rates(alpha)[0]

    def rates(self, alpha: float) -> tuple[Rates, tuple[Side, float] | None]:
        """The rates at one alpha as they are known, and where to cut next."""
        rest = 1.0 - alpha
        if alpha == 0.0:  # the best test answers "yes" only where it is certain
            low, high = self.forward.floor, min(self.forward.ceiling, float(self.forward.upper[-1]))
            missed = Value(max(1.0 - high - 4.0 * U, 0.0), min(1.0 - low + 4.0 * U, 1.0))
            return Rates(missed, Value(low, min(high, 1.0))), None
        negative_low, positive_high = _extremes(alpha, rest, _sampled(self.forward), _sampled(self.backward), -1.0)
        forward, backward = self.corners()
        negative_high, positive_low = _extremes(alpha, rest, forward, backward, 1.0)
        rates = Rates(
            Value(min(negative_low, rest), min(negative_high, rest * (1.0 + _SLACK), 1.0)),
            Value(max(positive_low, alpha), max(positive_high, alpha)),
        )
        return rates, self._cut(alpha, rest)

    def decides(self, alpha: float) -> tuple[float, float]:
        """The epsilons of both sides at which the lower values allow the least true-positive rate."""
        forward, backward = self.forward, self.backward
        found = np.argmin(forward.lower + np.exp(forward.epsilon) * alpha)
        turned = np.argmax((1.0 - alpha - backward.lower) * np.exp(-backward.epsilon))
        return float(forward.epsilon[found]), float(backward.epsilon[turned])

    def _cut(self, alpha: float, rest: float) -> tuple[Side, float] | None:
        """The corner that decides how large f may be, if it has not been evaluated."""
        forward, backward = self.corners()
        options = (
            (self.forward, forward, _forward(alpha, rest, forward)[0]),
            (self.backward, backward, _backward(alpha, rest, backward)[0]),
        )
        side, corners, values = max(options, key=lambda option: float(np.max(option[2])))
        index = int(np.argmax(values))
        if corners.sampled[index]:
            return None
        point = side.next_point(float(corners.a[index]))
        return None if point is None else (side, point)


def _spans(a: Array, epsilon: Array, step: int) -> Array:
    """``a_j - a_i``, j so many points beyond i: so written, a rounding of ``eps_j - eps_i`` costs one of the result."""
    return np.asarray(a[step:] * -np.expm1(epsilon[:-step] - epsilon[step:]))


def _sampled(side: Side) -> Corners:
    """The upper bounds of one side, as points."""
    return Corners(np.exp(side.epsilon), np.expm1(side.epsilon), side.upper, np.ones(side.epsilon.size, dtype=np.bool_))


def _forward(alpha: float, rest: float, at: Corners) -> tuple[Array, Array]:
    """``1 - h - a alpha`` and ``h + a alpha`` at points of the forward side."""
    return rest - (at.excess * alpha + at.lower), at.lower + at.a * alpha


def _backward(alpha: float, rest: float, at: Corners) -> tuple[Array, Array]:
    """``((1 - alpha) - h) / b`` and its complement at points of the backward side."""
    share = 1.0 / at.a
    return (rest - at.lower) * share, at.excess * share + (alpha + at.lower) * share


def _extremes(alpha: float, rest: float, forward: Corners, backward: Corners, sign: float) -> tuple[float, float]:
    """The largest false-negative and smallest true-positive rate over points, rounded by and against the sign.

    A difference from ``rest`` matters where it is positive: its terms are then at most ``rest``, and so is its
    rounding but for a factor of U. All else is relative to itself.
    """
    negatives, positives = [], []
    for rates, at in ((_forward, forward), (_backward, backward)):
        negative, positive = rates(alpha, rest, at)
        size = 8.0 * U * rest * (1.0 if rates is _forward else 1.0 / at.a)
        negatives.append(float(np.max(negative + sign * size)))
        positives.append(float(np.min(positive - sign * 4.0 * U * np.abs(at.lower))))
    room = sign * UNDERFLOW  # products too small to be rounded relative to themselves
    negative_rate, positive_rate = max(negatives) + room, min(positives) - room
    # b = inf, where h_backward / b is 0, is a point of either
    return max(negative_rate * (1.0 + sign * _SLACK), 0.0), min(max(positive_rate * (1.0 - sign * _SLACK), 0.0), 1.0)
