"""The curve delta(epsilon) of a composition: how each kind of composition is evaluated, and to any precision."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import final

from flint import arb

from hockeystick.errors import PrecisionError
from hockeystick.exact.balls import ball, precision
from hockeystick.exact.composite import Composite
from hockeystick.exact.contour import Contour, plan_contour
from hockeystick.exact.enclosure import Enclosure
from hockeystick.exact.exponent import Epsilon, nats
from hockeystick.exact.gaussian import gaussian_delta

__all__ = ["ClosedCurve", "ContourCurve", "Curve", "GaussianCurve", "relative_digits"]

_MOST_BITS = 60_000
_LOW_BITS = 64
_ZERO = Fraction(0)


def relative_digits(value: arb) -> float:
    """Decimal digits known of a ball: ``inf`` for an exact one, 0 where its sign is not known."""
    if value.is_exact():
        return math.inf
    size = value.abs_lower()
    if not size > 0:
        return 0.0
    with precision(_LOW_BITS):
        return -float((2 * value.rad() / size).log()) / math.log(10.0)


class Curve(ABC):
    """delta as a function of epsilon, and where it ends."""

    @abstractmethod
    def delta(self, epsilon: Epsilon, digits: int, *, floor: Fraction = _ZERO) -> arb:
        """Enclosure of delta to so many digits; less will do where it is proved to be below half of ``floor``.

        Raises
        ------
        PrecisionError
            Where they cannot be had; its ``best`` is the narrowest enclosure found.
        """

    @abstractmethod
    def infinite(self) -> arb:
        """The limit of delta as epsilon grows: the mass of infinite losses."""

    @abstractmethod
    def loss_limit(self) -> arb | None:
        """The largest finite loss, beyond which delta is constant; None where unbounded."""

    @abstractmethod
    def guess(self, delta: Fraction) -> tuple[float, float]:
        """About where the curve has this value, and about ``-d ln delta / d epsilon`` there (estimates)."""


def _out_of_reach(digits: int, value: arb, reason: str) -> PrecisionError:
    best = Enclosure.of_ball(value)
    return PrecisionError(f"delta could not be enclosed to {digits} digits ({reason}); best so far {best}", best=best)


class ClosedCurve(Curve):
    """A curve with a formula: more bits until the digits are there."""

    @abstractmethod
    def formula(self, epsilon: arb) -> arb:
        """Delta at the working precision."""

    def delta(self, epsilon: Epsilon, digits: int, *, floor: Fraction = _ZERO) -> arb:
        """Enclosure of delta to so many digits."""
        bits = math.ceil(digits * math.log2(10.0)) + 32
        while True:
            with precision(bits):
                value = self.formula(nats(epsilon))
                known = relative_digits(value)
                if known >= digits or value < ball(floor / 2):
                    return value
                if bits > _MOST_BITS:
                    raise _out_of_reach(digits, value, f"{bits} bits are not enough; it may be exactly zero")
            bits += math.ceil((digits - known) * 3.4) + 8 if known > 0.0 else bits

    def infinite(self) -> arb:
        """No mass at infinity, unless a subclass says so."""
        return arb(0)

    def loss_limit(self) -> arb | None:
        """Unbounded, unless a subclass says otherwise."""
        return None

    def guess(self, delta: Fraction) -> tuple[float, float]:
        """By bisection on the formula, at low precision."""

        def log_delta(epsilon: float) -> float:
            value = self.delta(Fraction(epsilon), 4)
            return float(value.log()) if value > 0 else -math.inf

        with precision(_LOW_BITS):
            target = float(ball(delta).log())
            low, high = 0.0, 1.0
            while log_delta(high) > target and high < 1e300:
                low, high = high, 2.0 * high
            for _ in range(30):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if log_delta(middle) > target else (low, middle)
            slope = (log_delta(low) - log_delta(high)) / (high - low)
        return 0.5 * (low + high), max(1e-3, slope) if math.isfinite(slope) else 1.0


@final
class GaussianCurve(ClosedCurve):
    """Gaussian pairs alone: one Gaussian pair."""

    def __init__(self, mu_squared: Fraction) -> None:
        self._mu_squared = mu_squared

    def formula(self, epsilon: arb) -> arb:
        """Delta in terms of the normal tail."""
        return gaussian_delta(self._mu_squared, epsilon)


@final
class ContourCurve(Curve):
    """A composition by the trapezoidal rule on a line; a line once computed serves every epsilon it is good for."""

    def __init__(self, composite: Composite) -> None:
        self._composite = composite
        self._contours: list[Contour] = []

    def infinite(self) -> arb:
        """The mass of infinite losses."""
        return self._composite.infinite()

    def loss_limit(self) -> arb | None:
        """The largest finite loss."""
        return self._composite.loss_limit()

    def guess(self, delta: Fraction) -> tuple[float, float]:
        """By the saddle-point formula."""
        with precision(_LOW_BITS):
            theta, epsilon = self._composite.saddle_of_delta(float(ball(delta).log()))
        return epsilon, theta

    def _near_total(self, epsilon: Epsilon, digits: int) -> arb | None:
        """Delta where it is its largest value but for less than the digits asked for, by Chernoff's bound."""
        at_zero = self._composite.sketch(0.0)
        with precision(_LOW_BITS):
            point = float(nats(epsilon))
        tilt = max(-0.999, (point - at_zero.mean) / at_zero.variance)
        if tilt > -1e-12:
            return None
        theta = Fraction(tilt)
        with precision(math.ceil(digits * math.log2(10.0)) + 64):
            gap = (self._composite.log_moment(theta) - ball(theta) * nats(epsilon)).exp().upper()
            total = self._composite.finite_mass() + self._composite.infinite()
            value = total - arb(0).union(gap)
            return value if relative_digits(value) >= digits else None

    def delta(self, epsilon: Epsilon, digits: int, *, floor: Fraction = _ZERO) -> arb:
        """Enclosure of delta to so many digits."""
        limit = self.loss_limit()
        with precision(_LOW_BITS):
            estimate = float(nats(epsilon))
            if limit is not None and limit <= nats(epsilon):
                return self.infinite()
        value = self._near_total(epsilon, digits)
        if value is not None:
            return value
        for contour in reversed(self._contours):
            value = contour.delta(epsilon)
            if relative_digits(value) >= digits or value < ball(floor / 2):
                return value
        return self._new_line(epsilon, estimate, digits)

    def _new_line(self, epsilon: Epsilon, estimate: float, digits: int) -> arb:
        wanted, value = digits + 2, arb(0)
        for _ in range(8):
            contour = Contour(self._composite, plan_contour(self._composite, estimate, digits=wanted))
            value = contour.delta(epsilon)
            known = relative_digits(value)
            if known >= digits:
                self._contours.append(contour)
                return value
            wanted += max(2, math.ceil(digits - known) + 1)
        raise _out_of_reach(digits, value, f"a line planned for {wanted} digits does not give them")
