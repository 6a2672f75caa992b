"""The saddle-point accountant (004): three approximations of the inverse transform at its saddle point.

Symbols: K of the composition, ``F(t) = K(t) - eps t - ln t - ln(1 + t)``; theta the saddle point, F'(theta) = 0
(equation 50); ``sigma^2 = K''(theta)``, ``gamma = (K'(theta) - eps) / sigma``, q the scaled normal tail of
`hockeystick.numerics.tilted_normal`.

    msd0   e^F / sqrt(2 pi F'')                                                                  (equation 60)
    msd1   msd0 (1 + F'''' / (8 F''^2) - 5 F'''^2 / (24 F''^3))                                   (equation 61)
    clt    e^{K - theta eps - gamma^2/2} (q(alpha) - q(beta)) / sqrt(2 pi)                         (equation 79)
           +- e^{K - theta eps} theta^theta / (1 + theta)^{1 + theta} 1.12 P / sigma^3               (equation 76)

P the sum of the tilted absolute third central moments. The mass of infinite losses is added to each. 004's Algorithm
1 has q(alpha)/alpha - q(beta)/beta in line 13 where Proposition 6 proves q(alpha) - q(beta): the latter is right, and
what the second form of equation (60) prints misses two squares (`docs/derivations/saddle-point.md`).

Guarantee: msd0 and msd1 are estimates; the stated error of msd0 is the correction that msd1 makes, that of msd1 its
square. clt is certified where K is bounded (`hockeystick.engines.moments.tilted_bounds`): Berry-Esseen holds at any
tilt. Cost: the same for any number of steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal, final

from hockeystick.accountants.base import Accountant, DirectedCurve, EngineCurve, Parts
from hockeystick.bound import Bound, Estimate
from hockeystick.engines.contour.aliasing import kernel_peak
from hockeystick.engines.moments.cumulant_curve import CumulantCurve
from hockeystick.engines.moments.tilted_bounds import TiltedBounds, tilted_bounds
from hockeystick.errors import PrecisionError, check_choice
from hockeystick.numerics.one_sided_root import crossings
from hockeystick.numerics.rounding import ELEMENTARY, U, down, exp_down, exp_up, up
from hockeystick.numerics.tilted_normal import tilted_normal
from hockeystick.transforms.cumulants import TiltedCumulants
from hockeystick.transforms.saddle import round_tilt

Variant = Literal["msd1", "msd0", "clt"]

_BERRY_ESSEEN = 1.12  # twice 0.56 (Shevtsova 2010): the kernel rises and falls, so each level set has two ends
_LARGEST_TILT = 2.0**39
_TILT_TOLERANCE = 1e-12  # relative: msd0 and msd1 are the formulas at the saddle point itself
_NO_VARIANCE = "the variance of the tilted loss is not known: the upper side is Chernoff's"
_NOT_CERTIFIED = "no certified bound of the moments is known for this pair: value and error are estimates"


@final
@dataclass(frozen=True)
class SaddlePoint(Accountant):
    """The saddle-point accountant.

    Parameters
    ----------
    variant : {"msd1", "msd0", "clt"}
        Steepest descent with or without its first correction (estimates), or the tilted central limit theorem with its
        error bound (certified).

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.Gaussian(1.0).poisson(0.01) * 2000
    >>> hs.account(run, accountant=SaddlePoint()).delta(epsilon=2.0).value
    0.0002578512...
    """

    variant: Variant = "msd1"

    def __post_init__(self) -> None:
        check_choice("variant", self.variant, ("msd1", "msd0", "clt"))

    def directed(self, parts: Parts) -> DirectedCurve:
        return EngineCurve(_TiltedNormalCurve(parts) if self.variant == "clt" else _DescentCurve(parts, self.variant))


def _saddle_excess(c: TiltedCumulants) -> float:
    """``K' - 1/theta - 1/(1 + theta)``: the epsilon whose saddle point the tilt is, increasing in it."""
    return c.mean - 1.0 / c.theta - 1.0 / (1.0 + c.theta)


class _SaddleCurve(CumulantCurve):
    """What the variants share: the ends of the range."""

    def epsilon(self, delta: float) -> Bound | Estimate:
        """The same; up to the mass of infinite losses, or 0, from that alone."""
        high = self.infinity[1]
        if self.infinity[0] <= delta <= high and delta < 1.0:
            return Bound(0.0, max(self.largest_loss, 0.0) if delta == high else math.inf, self.method)
        return super().epsilon(delta)


@final
class _DescentCurve(_SaddleCurve):
    """Steepest descent, of order 0 or 1."""

    def __init__(self, parts: Parts, variant: str) -> None:
        super().__init__(parts)
        self._first_order = variant == "msd1"
        self.method = f"saddle point ({variant})"

    def _log_delta(self, c: TiltedCumulants, epsilon: float) -> tuple[float, float]:
        """``ln`` of the estimate of the finite part, and the correction of first order."""
        t = c.theta
        second = c.variance + t**-2.0 + (1.0 + t) ** -2.0
        third = c.third - 2.0 * t**-3.0 - 2.0 * (1.0 + t) ** -3.0
        fourth = c.fourth + 6.0 * t**-4.0 + 6.0 * (1.0 + t) ** -4.0
        exponent = c.log_moment - t * epsilon - math.log(t) - math.log1p(t)
        value = exponent - 0.5 * math.log(2.0 * math.pi * second)
        correction = (fourth / second / 8.0 - 5.0 * (third / second) * (third / second) / 24.0) / second
        if self._first_order and abs(correction) < 1.0:
            value += math.log1p(correction)
        return value, correction

    def _relative_error(self, c: TiltedCumulants, correction: float) -> float:
        """Estimated relative error: the next correction, and what the quadrature does."""
        series = correction * correction if self._first_order else abs(correction)
        return series + c.error * max(abs(c.log_moment), c.theta**2 * c.variance, 1.0)

    def _notes(self, correction: float) -> tuple[str, ...]:
        if abs(correction) < 0.5:
            return ()
        left_out = ", and it is left out" if self._first_order and abs(correction) >= 1.0 else ""
        return (f"the correction of first order is {correction:.2g}: too few steps for this approximation{left_out}",)

    def delta_inside(self, epsilon: float) -> Bound | Estimate:
        theta = self.window.tilt_where(lambda c: _saddle_excess(c) - epsilon, tolerance=_TILT_TOLERANCE)
        c = self.window.checked(min(theta, _LARGEST_TILT))
        log_value, correction = self._log_delta(c, epsilon)
        finite = math.exp(min(log_value, 0.0))
        value = min(self.infinity[1] + finite, 1.0)
        error = min(finite * self._relative_error(c, correction), 1.0)
        return Estimate(value, error, self.method, self._notes(correction))

    def epsilon_inside(self, delta: float) -> Bound | Estimate:
        log_delta = math.log(delta - self.infinity[1])
        # along the curve (epsilon, delta) both depend on the tilt alone: one root, none inside it
        theta = self.window.tilt_where(
            lambda c: log_delta - self._log_delta(c, _saddle_excess(c))[0], tolerance=_TILT_TOLERANCE
        )
        c = self.window.checked(min(theta, _LARGEST_TILT))
        epsilon = _saddle_excess(c)
        log_value, correction = self._log_delta(c, epsilon)
        epsilon += (log_value - log_delta) / c.theta  # a Newton step for what the root left
        error = self._relative_error(c, correction) / c.theta
        return Estimate(max(epsilon, 0.0), error, self.method, self._notes(correction))


@final
class _TiltedNormalCurve(_SaddleCurve):
    """The tilted loss taken as normal, with the Berry-Esseen bound on what that costs."""

    method = "saddle point (clt)"

    def delta_inside(self, epsilon: float) -> Bound | Estimate:
        theta = round_tilt(min(self.window.tilt_where(lambda c: _saddle_excess(c) - epsilon), _LARGEST_TILT))
        if not self.is_certified:
            low, high = _bracket(TiltedBounds.of_estimates(self.window.checked(theta)), epsilon)
            value = 0.5 * (low + high) + self.infinity[1]
            return Estimate(min(value, 1.0), 0.5 * (high - low), self.method, (_NOT_CERTIFIED,))
        try:
            bounds = tilted_bounds(self.parts, theta)
        except PrecisionError as failure:
            return Bound(self.infinity[0], 1.0, self.method, (f"trivial: {failure}",))
        low, high = _bracket(bounds, epsilon)
        low = max(down(low + self.infinity[0], 4.0 * U), self.infinity[0])
        high = min(up(high + self.infinity[1], 4.0 * U), 1.0)
        notes = () if bounds.is_known else (_NO_VARIANCE,)
        return Bound(min(low, high), high, self.method, notes, {"berry-esseen": 0.5 * (high - low)})

    def epsilon_inside(self, delta: float) -> Bound | Estimate:
        start = _DescentCurve(self.parts, "msd0").epsilon(delta)
        guess = float(start.sides[1])
        slope = max(self.window.tilt_where(lambda c: _saddle_excess(c) - guess), 1e-6)
        sides = partial(self._side, above=False), partial(self._side, above=True)
        low, high = crossings(*sides, delta, guess=guess, slope=min(slope, 1e9), step=1e-7 * max(guess, 1e-2))
        if delta > self.infinity[1]:
            high = min(high, max(self.largest_loss, 0.0))
        low = min(low, high)
        if self.is_certified:
            errors = {"berry-esseen": 0.5 * (high - low)} if math.isfinite(high) else {}
            return Bound(low, high, self.method, errors=errors)
        return Estimate(0.5 * (low + high), 0.5 * (high - low), self.method, (_NOT_CERTIFIED,))

    def _side(self, epsilon: float, *, above: bool) -> float:
        """One side of the bracket of delta."""
        answer = self.delta(epsilon)
        if isinstance(answer, Bound):
            return float(answer.upper if above else answer.lower)
        return max(float(answer.value) + (1.0 if above else -1.0) * float(answer.error), 0.0)


def _bracket(bounds: TiltedBounds, epsilon: float) -> tuple[float, float]:
    """Bounds on the finite part of delta: the normal value, plus and minus all that it errs by.

    Moving mean and variance of a normal distribution moves expectations of a function in [0, B] by at most B times
    their total variation, ``|dm| / (sigma sqrt(2 pi)) + 0.4839.. |d ln sigma|``.
    """
    theta = bounds.theta
    peak = kernel_peak(theta)
    if not bounds.is_known:
        return 0.0, _scaled(peak, bounds.log_moment.upper, theta, epsilon, sign=1.0)
    sigma = math.sqrt(bounds.variance.middle)
    gamma = (bounds.mean.middle - epsilon) / sigma
    normal = tilted_normal(theta, gamma, sigma)
    off = bounds.mean.radius + 8.0 * U * (abs(bounds.mean.middle) + abs(epsilon))
    lowest = bounds.variance.lower
    moved = 0.4 * off / math.sqrt(lowest) + 0.25 * bounds.variance.radius / lowest * (1.0 + 1e-9) + 8.0 * U
    esseen = _BERRY_ESSEEN * (bounds.absolute_third / lowest) / math.sqrt(lowest)
    scale = math.exp(normal.log_scale)
    error = peak * min(moved + esseen, 1.0) * (1.0 + 16.0 * ELEMENTARY) + scale * normal.error
    middle = scale * normal.value
    error += 8.0 * U * (middle + error)
    return (
        _scaled(middle - error, bounds.log_moment.lower, theta, epsilon, sign=-1.0),
        _scaled(middle + error, bounds.log_moment.upper, theta, epsilon, sign=1.0),
    )


def _scaled(value: float, log_moment: float, theta: float, epsilon: float, *, sign: float) -> float:
    """``value e^{K - theta eps}``, rounded outward; 0 below and 1 above what makes sense."""
    if value <= 0.0:
        return 0.0
    log_value = math.log(value)
    exponent = log_moment - theta * epsilon + log_value
    rounding = 8.0 * U * (abs(log_moment) + abs(theta * epsilon) + abs(log_value)) + 4.0 * ELEMENTARY
    exponent += sign * rounding
    if exponent >= 0.0:
        return 1.0
    return exp_up(exponent) if sign > 0.0 else exp_down(exponent)
