"""Certified tilted mean, variance and absolute third moment, from nothing but certified values of K and the tails.

Symbols: c a number near the tilted mean, ``G(s) = E~ e^{s (L - c)} = e^{K(theta + s) - K(theta) - s c}``, ``d = K' -
c``, ``V = E~ (L - c)^2``, ``D(h) = (G(h) + G(-h) - 2) / h^2``. Since G is convex and all its even derivatives are
positive,

    (1 - G(-h)) / h <= d <= (G(h) - 1) / h,
    (4 D(h) - D(2h)) / 3 <= V <= (64 D(h) - 20 D(2h) + D(4h)) / 45,

whatever h: by the Taylor series of D term by term, the terms beyond the first are then all of one sign. Hence ``K'' = V
- d^2``. The absolute third moment is bounded about c (`hockeystick.engines.moments.absolute_third`), and moved to K' by
Minkowski (`docs/derivations/saddle-point.md`).

Guarantee: every bracket is certified. Cost: K at nine tilts and the tails at a few thousand cuts for each pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.engines.moments.absolute_third import absolute_third_upper
from hockeystick.engines.moments.cumulants import CumulantWindow
from hockeystick.engines.moments.log_moment import MomentBracket, log_moment_bounds
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import U
from hockeystick.transforms.cumulants import TiltedCumulants

_BITS = 30  # steps are at least theta 2^-30, and 2^-50: added to an order of a rounded tilt they are exact


@final
@dataclass(frozen=True)
class Interval:
    """``lower <= value <= upper``."""

    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """Half way."""
        return 0.5 * (self.lower + self.upper)

    @property
    def radius(self) -> float:
        """Half the width, rounded up."""
        return 0.5 * (self.upper - self.lower) * (1.0 + 4.0 * U) + 2.0 * U * max(abs(self.lower), abs(self.upper))


@final
@dataclass(frozen=True)
class TiltedBounds:
    """Certified bounds of a composition tilted by theta.

    Attributes
    ----------
    theta : float
        The tilt.
    log_moment, mean, variance : Interval
        K, K' and K'' (nats, nats, nats^2).
    absolute_third : float
        Upper bound of the sum over steps of ``E~|L - K'|^3`` (nats^3); infinite where nothing is known.
    """

    theta: float
    log_moment: Interval
    mean: Interval
    variance: Interval
    absolute_third: float

    @classmethod
    def of_estimates(cls, c: TiltedCumulants) -> TiltedBounds:
        """Estimates in the place of bounds: what is made of them is an estimate."""
        return cls(
            c.theta,
            Interval(c.log_moment, c.log_moment),
            Interval(c.mean, c.mean),
            Interval(c.variance, c.variance),
            c.absolute_third,
        )

    @property
    def is_known(self) -> bool:
        """Whether all bounds are finite and the variance is known to be above 0."""
        values = (
            self.log_moment.lower,
            self.log_moment.upper,
            self.mean.radius,
            self.variance.upper,
            self.absolute_third,
        )
        return all(math.isfinite(value) for value in values) and self.variance.lower > 0.0


def tilted_bounds(parts: Sequence[tuple[Pair, int]], theta: float) -> TiltedBounds:
    """Certified bounds of a composition at a tilt above 0 that `round_tilt` leaves as it is."""
    steps = [(_step_bounds(pair, theta), count) for pair, count in parts]

    def total(lows: list[float], highs: list[float]) -> Interval:
        counts = [count for _, count in steps]
        low = [count * value for count, value in zip(counts, lows, strict=True)]
        high = [count * value for count, value in zip(counts, highs, strict=True)]
        if not all(math.isfinite(value) for value in (*low, *high)):
            return Interval(-math.inf, math.inf)
        size = math.fsum(max(abs(a), abs(b)) for a, b in zip(low, high, strict=True))
        return Interval(math.fsum(low) - 3.0 * U * size, math.fsum(high) + 3.0 * U * size)

    def gathered(field: str) -> Interval:
        intervals: list[Interval] = [getattr(step, field) for step, _ in steps]
        return total([interval.lower for interval in intervals], [interval.upper for interval in intervals])

    third = [step.absolute_third for step, _ in steps]
    return TiltedBounds(
        theta, gathered("log_moment"), gathered("mean"), gathered("variance"), total(third, third).upper
    )


def _power_of_two(value: float) -> float:
    return 2.0 ** math.floor(math.log2(value))


def _step_bounds(pair: Pair, theta: float) -> TiltedBounds:
    """Bounds of one step of one pair."""
    guess = CumulantWindow([(pair, 1)]).at(theta)
    first = log_moment_bounds([(pair, 1)], np.array([1.0 + theta]))
    doubt = float(first.upper[0] - first.lower[0])
    nothing = Interval(-math.inf, math.inf)
    if not (math.isfinite(doubt) and guess.variance > 0.0):
        return TiltedBounds(theta, nothing, nothing, nothing, math.inf)
    kurtosis = max(guess.fourth / guess.variance + 3.0 * guess.variance, guess.variance)
    reach = math.sqrt(kurtosis)  # where the fourth moment has its mass: its quotient by the variance, which may be tiny
    least = max(theta * 2.0**-_BITS, 2.0**-50)
    near = _power_of_two(min(max(math.sqrt(doubt / guess.variance), least), theta / 4.0))
    wide = _power_of_two(min(max(0.12 / reach, 2.0 * least), theta / 8.0))
    shifts = np.array([-near, near, -wide, wide, -2.0 * wide, 2.0 * wide, -4.0 * wide, 4.0 * wide])
    bracket = log_moment_bounds([(pair, 1)], 1.0 + theta + shifts)
    centre = guess.mean
    mean, variance = _mean_and_variance(bracket, first, shifts, centre)
    log_moment = Interval(float(first.lower[0]), float(first.upper[0]))
    if not math.isfinite(mean.radius):
        return TiltedBounds(theta, log_moment, mean, variance, math.inf)
    third = absolute_third_upper(pair, theta, centre, log_moment.lower)
    off = max(abs(mean.lower - centre), abs(mean.upper - centre)) * (1.0 + 4.0 * U)
    root = third ** (1.0 / 3.0) * (1.0 + 1e-14) + off  # its cube may be beyond float64: infinite, as products are
    return TiltedBounds(theta, log_moment, mean, variance, root * root * root * (1.0 + 1e-14))


def _mean_and_variance(
    bracket: MomentBracket, first: MomentBracket, shifts: Array, centre: float
) -> tuple[Interval, Interval]:
    drift = shifts * centre
    size = (
        np.abs(bracket.upper) + np.abs(bracket.lower) + np.abs(first.upper[0]) + np.abs(first.lower[0]) + np.abs(drift)
    )
    rounding = 4.0 * U * size
    with np.errstate(over="ignore", invalid="ignore"):
        high = np.expm1((bracket.upper - first.lower[0]) - drift + rounding)  # G - 1
        low = np.expm1((bracket.lower - first.upper[0]) - drift - rounding)
        high, low = high + 8.0 * U * np.abs(high), low - 8.0 * U * np.abs(low)
    if not (np.isfinite(high).all() and np.isfinite(low).all()):
        nothing = Interval(-math.inf, math.inf)
        return nothing, nothing
    near, wide = float(shifts[1]), float(shifts[3])
    d_low, d_high = -float(high[0]) / near, float(high[1]) / near
    mean_rounding = 4.0 * U * (abs(centre) + abs(d_low) + abs(d_high))
    mean = Interval(centre + d_low - mean_rounding, centre + d_high + mean_rounding)
    square = wide * wide
    (d1_low, d2_low, _), (d1_high, d2_high, d4_high) = (
        [float(g[2 * k] + g[2 * k + 1]) / (4.0 ** (k - 1) * square) for k in (1, 2, 3)] for g in (low, high)
    )
    lower = (4.0 * d1_low - d2_high) / 3.0
    upper = min((64.0 * d1_high - 20.0 * d2_low + d4_high) / 45.0, d1_high)
    square_low = 0.0 if d_low <= 0.0 <= d_high else min(d_low * d_low, d_high * d_high)
    square_high = max(d_low * d_low, d_high * d_high)
    size = float(np.abs(high[2:]).sum()) + float(np.abs(low[2:]).sum())
    slack = 16.0 * U * size / square + 8.0 * U * square_high
    return mean, Interval(lower - square_high - slack, upper - square_low + slack)
