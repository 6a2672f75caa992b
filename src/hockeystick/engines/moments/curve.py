"""Chernoff's bound on the curve of a composition, with three kernels (004, section 3.2).

With K of the composition and ``f(x) = e^{-theta x} (1 - e^{-x})``, for every theta > 0

    delta(eps) <= delta_inf + e^{K(theta) - theta eps} B,

    classic    B = 1                                                                            (equation 40)
    tight      B = max f = theta^theta / (1 + theta)^{1 + theta}                                   (equation 43)
    quadratic  B = f(x0) + f'(x0) d + f''(x0) (K'' + d^2) / 2,   x0 = 3 ln((1 + theta) / theta),
               d = K' - eps - x0                                                                (equation 46 at d = 0)

The last is Taylor's parabola at x0, where f''' changes sign, so it lies above f_+ everywhere; 004 prints equation
(46) without the factor 1/2 of the last term (`docs/derivations/moments.md`). delta_inf is the mass of infinite
losses.

Guarantee: upper bounds, certified where K is bounded (`hockeystick.engines.moments.log_moment`), whatever theta; the
lower side is trivial. Elsewhere an estimate. Cost: a one-dimensional search, the same for any number of steps.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Literal, final

import numpy as np

from hockeystick.bound import Bound, Estimate
from hockeystick.engines.moments.cumulant_curve import CumulantCurve
from hockeystick.engines.moments.tilted_bounds import TiltedBounds, tilted_bounds
from hockeystick.errors import PrecisionError
from hockeystick.laws.base import Parts
from hockeystick.numerics.columns import Array
from hockeystick.numerics.one_sided_root import one_sided_root
from hockeystick.numerics.rounding import ELEMENTARY, U, down, exp_down, exp_up, up
from hockeystick.transforms.cumulants import TiltedCumulants
from hockeystick.transforms.saddle import round_tilt

Conversion = Literal["tight", "classic", "quadratic"]

_LARGEST_TILT = 2.0**39
_ABOVE = "moments bound from above alone"
_NOT_CERTIFIED = "no certified bound of the moments is known for this pair: an estimate of the bound"


def log_tight_kernel(theta: Array) -> Array:
    """``ln`` of the tight kernel ``theta^theta / (1 + theta)^{1 + theta}``, rounded up."""
    value = -theta * np.log1p(1.0 / theta) - np.log1p(theta)
    return value + 4.0 * ELEMENTARY * np.abs(value)


class MomentsCurve(CumulantCurve):
    """What the conversions share: what becomes of a bound that is not certified."""

    def delta_inside(self, epsilon: float) -> Bound | Estimate:
        low, high = self.infinity
        finite = exp_up(min(self._log_delta(epsilon), 0.0))
        upper = min(up(finite + high, 4.0 * ELEMENTARY), 1.0)
        if self.is_certified:
            return Bound(low, upper, self.method, (_ABOVE,))
        return Estimate(upper, math.nan, self.method, (_NOT_CERTIFIED,))

    def epsilon_inside(self, delta: float) -> Bound | Estimate:
        high = self.infinity[1]
        left = delta if high == 0.0 else max(down(delta - high, 2.0 * U), 0.0)
        known = max(self.largest_loss, 0.0) if delta >= high else math.inf  # proved without moments
        upper = min(self._epsilon(math.log(left)) if left > 0.0 else math.inf, known)
        if self.is_certified or upper == known:
            return Bound(0.0, max(upper, 0.0), self.method, (_ABOVE,))
        return Estimate(max(upper, 0.0), math.nan, self.method, (_NOT_CERTIFIED,))

    def _log_moment(self, theta: float) -> float:
        """Upper bound of K, or its estimate."""
        return self.log_moment_upper(theta) if self.is_certified else self.window.at(theta).log_moment

    @abstractmethod
    def _log_delta(self, epsilon: float) -> float:
        """``ln`` of the bound on the finite part of delta."""

    @abstractmethod
    def _epsilon(self, log_delta: float) -> float:
        """An epsilon at which the bound on the finite part is at most ``e^log_delta``."""


@final
class KernelCurve(MomentsCurve):
    """A kernel bounded by a function of theta alone: epsilon has a formula."""

    def __init__(self, parts: Parts, conversion: str) -> None:
        super().__init__(parts)
        self._tight = conversion == "tight"
        self.method = f"moments accountant ({conversion})"

    def _log_kernel(self, theta: float) -> float:
        """``ln B``, rounded up."""
        return float(log_tight_kernel(np.array(theta))) if self._tight else 0.0

    def _log_delta(self, epsilon: float) -> float:
        def excess(c: TiltedCumulants) -> float:
            return c.mean - epsilon - (math.log1p(1.0 / c.theta) if self._tight else 0.0)

        theta = round_tilt(self.window.tilt_where(excess))
        k, kernel = self._log_moment(theta), self._log_kernel(theta)
        rounding = 8.0 * U * (abs(k) + abs(theta * epsilon) + abs(kernel))
        return k - theta * epsilon + kernel + rounding if math.isfinite(k) else math.inf

    def _epsilon(self, log_delta: float) -> float:
        def excess(c: TiltedCumulants) -> float:  # the derivative of the bound on epsilon, times theta^2
            return c.theta * c.mean - c.log_moment + log_delta + (math.log1p(c.theta) if self._tight else 0.0)

        theta = round_tilt(self.window.tilt_where(excess))
        if theta > _LARGEST_TILT:
            return math.inf  # the largest loss is the answer
        k, kernel = self._log_moment(theta), self._log_kernel(theta)
        if not math.isfinite(k):
            return math.inf
        total = k + kernel - log_delta
        rounding = 8.0 * U * (abs(k) + abs(kernel) + abs(log_delta))
        return up((total + rounding) / theta, 2.0 * U)


@final
class QuadraticCurve(MomentsCurve):
    """The parabola above the kernel, which needs mean and variance of the tilted loss."""

    method = "moments accountant (quadratic)"

    def _bounds(self, theta: float) -> TiltedBounds | None:
        """Mean, variance and K, certified or estimated; None where they need too many nodes."""
        if not self.is_certified:
            return TiltedBounds.of_estimates(self.window.at(theta))
        try:
            return tilted_bounds(self.parts, theta)
        except PrecisionError:  # of the estimates that it starts from
            return None

    def _log_delta(self, epsilon: float) -> float:
        theta = self.window.tilt_where(lambda c: c.mean - epsilon - 3.0 * math.log1p(1.0 / c.theta))
        bounds = self._bounds(round_tilt(theta)) if theta < _LARGEST_TILT else None
        if bounds is None or not (math.isfinite(bounds.mean.radius) and math.isfinite(bounds.variance.upper)):
            return math.inf
        k = bounds.log_moment.upper
        log_kernel = _log_parabola(bounds, epsilon)
        rounding = 8.0 * U * (abs(k) + abs(bounds.theta * epsilon) + abs(log_kernel))
        return k - bounds.theta * epsilon + log_kernel + rounding

    def _epsilon(self, log_delta: float) -> float:
        target = exp_down(log_delta - ELEMENTARY * abs(log_delta))  # the logarithm was rounded
        if target == 0.0:
            return math.inf
        guess = KernelCurve(self.parts, "tight").epsilon(target)
        start = float(guess.sides[1])
        start = start if math.isfinite(start) else 1.0
        slope = max(self.window.tilt_where(lambda c: c.mean - start - math.log1p(1.0 / c.theta)), 1e-6)
        return one_sided_root(
            lambda eps: exp_up(min(self._log_delta(eps), 0.0)) if eps <= self.largest_loss else 0.0,
            target,
            guess=start,
            slope=min(slope, 1e9),
            step=1e-9 * max(start, 1e-3),
            above=True,
        )


def _log_parabola(bounds: TiltedBounds, epsilon: float) -> float:
    """``ln`` of an upper bound of the parabola's expectation.

    In units of ``e^{-theta x0}`` and with s = theta / (1 + theta): f = 1 - s^3, f' = -s (1 + s), f'' = s^2 / (1 - s).
    """
    theta = bounds.theta
    s, rest = theta / (1.0 + theta), 1.0 / (1.0 + theta)
    x0 = 3.0 * math.log1p(1.0 / theta)
    off = 4.0 * U * (abs(epsilon) + x0 + abs(bounds.mean.lower) + abs(bounds.mean.upper))
    # the expectation is convex in d: largest at an end
    ends = (bounds.mean.lower - epsilon - x0 - off, bounds.mean.upper - epsilon - x0 + off)
    value = max((1.0 - s**3) - s * (1.0 + s) * d + 0.5 * s * s / rest * (bounds.variance.upper + d * d) for d in ends)
    size = max(1.0 + 2.0 * abs(d) + s * s / rest * (bounds.variance.upper + d * d) for d in ends)
    return math.log(value + 32.0 * U * size) - theta * x0 * (1.0 - 4.0 * ELEMENTARY)
