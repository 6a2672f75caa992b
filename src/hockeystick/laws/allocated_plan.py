"""How finely, and where, a sum of t likelihood ratios is looked at about one point: nothing here is proved.

Symbols: W the likelihood ratio of one step under Q, b the largest W that is not counted apart, theta the saddle point
of the sum of t such W for the point k, ``t K'(theta) = k + 2 / theta`` with K the logarithm of E[e^{theta W}; W <= b].
For sums from below everything is mirrored: -W, -k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.numerics.lattice_sum import PointMasses, SumWindow
from hockeystick.numerics.rounding import dyadic_below

_LOG_OUTSIDE = -42.0  # ln of the tilted mass that may lie outside the window on either side
_LARGEST = 1e150  # its square, and what that is multiplied by, is a float64
_MOST_EXPONENT = 500.0  # of a tilt over one term
_COARSE_POINTS = 2048
_NARROWEST = 1e-5  # deviation of one term, over the largest, that a plan is made for
# of the saddle point: below it single large terms weigh less, the window is shorter
_TILTS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
_GIVEN_UP = 3.5  # nats of the errors' size that a shorter window may cost
_SHARES = tuple(0.05 * 1.5**k for k in range(16))  # tilts beside theta, in units of 1 / standard deviation


@final
class _TiltedTerms:
    """ln E e^{theta X}, and the tilted mean and variance, of nodes without errors."""

    def __init__(self, masses: PointMasses) -> None:
        points, present = np.asarray(masses.index * masses.spacing), masses.mass > 0.0
        if not present.any():
            raise PrecisionError("the terms of the sum are too rare for float64 there")
        self.points, self._log_mass = points[present], np.log(masses.mass[present])
        self.reach = float(np.abs(points).max())  # of all points: a finer lattice may have mass further out
        if self.reach > _LARGEST:
            raise PrecisionError(f"terms of the sum of up to {self.reach:.3g} have no squares in float64")
        self._least = (_NARROWEST * self.reach) ** 2

    def __call__(self, theta: float) -> tuple[float, float, float]:
        exponents = self._log_mass + theta * self.points
        peak = float(exponents.max())
        weights = np.exp(exponents - peak)
        total = float(weights.sum())
        mean = float(weights @ self.points) / total
        return peak + math.log(total), mean, max(float(weights @ (self.points - mean) ** 2) / total, self._least)


def plan_sum(masses: PointMasses, count: int, k: float) -> tuple[SumWindow, float, float]:
    """A window for E (S - k)+, a spacing that is coarse but does not drown the sum in noise, and a guide of its size.

    The last is ``ln`` of Chernoff's bound, for the masses as they are.

    Parameters
    ----------
    masses : PointMasses
        Of one term, roughly; mirrored for sums from below, as k is.
    count : int
        t.
    k : float
        The point.
    """
    terms = _TiltedTerms(masses)
    best = _saddle(terms, count, k)
    sketches = [_around(terms, count, share * best) for share in _TILTS]
    least = sketches[0].log_scale(count, k)
    fair = [sketch for sketch in sketches if sketch.log_scale(count, k) <= least + _GIVEN_UP]
    found = min(fair, key=lambda sketch: sketch.high - sketch.low)
    theta, low, high = found.theta, found.low, found.high
    least, most = (count * float(end) * masses.spacing for end in (masses.index[0], masses.index[-1]))
    low, high = max(low, least), min(high, most)
    coarse = min((high - low) / _COARSE_POINTS, 0.25 * found.deviation / math.sqrt(count))
    low, high = min(low, k - 0.1 / theta), max(high, k + 0.1 / theta)
    window = SumWindow(theta, found.theta_below, found.theta_above, low, high)
    return window, dyadic_below(coarse), found.log_most(count, k)


@final
@dataclass(frozen=True)
class _Tilt:
    """A tilt with ``ln`` of its moment, the deviation of the tilted sum, and the window that holds nearly all of it."""

    theta: float
    log_moment: float
    deviation: float
    low: float
    theta_below: float
    high: float
    theta_above: float

    def log_most(self, count: int, k: float) -> float:
        """``ln`` of Chernoff's bound on the answer, the kernel's peak included."""
        return count * self.log_moment - self.theta * k - math.log(self.theta) - 1.0

    def log_scale(self, count: int, k: float) -> float:
        """``ln`` of what errors are relative to."""
        return count * self.log_moment - self.theta * k - 2.0 * math.log(self.theta)


def _around(terms: _TiltedTerms, count: int, theta: float) -> _Tilt:
    """What a tilt needs."""
    log_moment, _, variance = terms(theta)
    deviation = math.sqrt(count * variance)
    if not deviation > 0.0:
        raise PrecisionError(f"a tilt of {theta!r} leaves all of the sum's mass on one point")

    def edge(side: float) -> tuple[float, float]:
        """Where Chernoff leaves little of the tilted mass beyond, on one side, and the tilt that shows it."""
        best, tilt = math.inf, theta + side * 1e-3 / deviation
        for share in _SHARES:
            other = theta + side * share / deviation
            if abs(other) > _MOST_EXPONENT / terms.reach:
                break
            found = (count * (terms(other)[0] - log_moment) - _LOG_OUTSIDE) / (share / deviation)
            if found < best:
                best, tilt = found, other
        return side * best, tilt

    return _Tilt(theta, log_moment, deviation, *edge(-1.0), *edge(1.0))


def _saddle(terms: _TiltedTerms, count: int, k: float) -> float:
    """theta > 0 with ``count K'(theta) = k + 2 / theta``, by bisection of its logarithm."""
    low, high = math.log(1e-9 / (max(terms.reach, abs(k)) * count)), math.log(_MOST_EXPONENT / terms.reach)
    for _ in range(50):
        middle = 0.5 * (low + high)
        theta = math.exp(middle)
        if count * terms(theta)[1] > k + 2.0 / theta:
            high = middle
        else:
            low = middle
    return math.exp(0.5 * (low + high))
