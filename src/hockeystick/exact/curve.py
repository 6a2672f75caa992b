"""The curve delta(epsilon) of a composition: how each kind of composition is evaluated, and to any precision."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from flint import arb

from hockeystick.errors import PrecisionError
from hockeystick.exact.balls import LOW_BITS, ball, precision
from hockeystick.exact.composite import Composite
from hockeystick.exact.enclosure import Enclosure
from hockeystick.exact.exponent import Epsilon, nats

_MOST_BITS = 60_000
_ZERO_BITS = 4_000
_LINES = 32  # of one composition that are kept
_TOGETHER = 3  # digits: lines are planned for a multiple of so many
_ZERO = Fraction(0)


def relative_digits(value: arb) -> float:
    """Decimal digits known of a ball: ``inf`` for an exact one, 0 where its sign is not known."""
    if not value.is_finite():
        return 0.0
    if value.is_exact():
        return math.inf
    size = value.abs_lower()
    if not size > 0:
        return 0.0
    with precision(LOW_BITS):
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

    def infinite(self) -> arb:
        """The limit of delta as epsilon grows: the mass of infinite losses; none, unless a subclass says so."""
        return arb(0)

    def infinite_fraction(self) -> Fraction | None:
        """The same, exactly, where it is a fraction."""
        return None

    def loss_limit(self) -> arb | None:
        """The largest finite loss, beyond which delta is constant; None where unbounded, as it is unless said."""
        return None

    def guess(self, delta: Fraction) -> tuple[float, float]:
        """About where the curve has this value, and about ``-d ln delta / d epsilon`` there: by bisection."""

        def log_delta(epsilon: float) -> float:
            value = self.delta(Fraction(epsilon), 4, floor=delta)
            return float(value.log()) if value > 0 else -math.inf

        with precision(LOW_BITS):
            target = float(ball(delta).log())
            low, high = 0.0, 1.0
            while log_delta(high) > target and high < 1e300:
                low, high = high, 2.0 * high
            for _ in range(30):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if log_delta(middle) > target else (low, middle)
            slope = (log_delta(low) - log_delta(high)) / (high - low)
        return 0.5 * (low + high), max(1e-3, slope) if math.isfinite(slope) else 1.0


def _possible(value: arb) -> arb:
    """The ball, or what any delta lies in where that says more."""
    return value if abs(value) < 2 else arb(0, 1)


def _out_of_reach(digits: int, value: arb, reason: str) -> PrecisionError:
    best = Enclosure.of_ball(_possible(value))
    return PrecisionError(f"delta could not be enclosed to {digits} digits ({reason}); best so far {best}", best=best)


class ClosedCurve(Curve):
    """A curve with a formula: more bits until the digits are there."""

    @abstractmethod
    def formula(self, epsilon: arb) -> arb:
        """Delta at the working precision."""

    @property
    def spare_bits(self) -> int:
        """Bits that the formula is known to lose."""
        return 0

    def delta(self, epsilon: Epsilon, digits: int, *, floor: Fraction = _ZERO) -> arb:
        """Enclosure of delta to so many digits."""
        bits = math.ceil(digits * math.log2(10.0)) + 32 + self.spare_bits
        while True:
            with precision(bits):
                value = self.formula(nats(epsilon))
                known = relative_digits(value)
                if known >= digits or value < ball(floor / 2):
                    return value
                if bits > _ZERO_BITS and value.contains(0):
                    return _possible(value)  # cannot be told from zero
                if bits > _MOST_BITS:
                    raise _out_of_reach(digits, value, f"{bits} bits are not enough")
            bits += math.ceil((digits - known) * 3.4) + 8 if known > 0.0 else bits


class OfComposite(Curve):
    """The curve of a composition: the ends that any way of computing it has."""

    def __init__(self, composite: Composite) -> None:
        self.composite = composite

    def infinite(self) -> arb:
        """The mass of infinite losses."""
        return self.composite.infinite()

    def infinite_fraction(self) -> Fraction | None:
        """The mass of infinite losses, exactly."""
        return self.composite.infinite_fraction()

    def loss_limit(self) -> arb | None:
        """The largest finite loss."""
        return self.composite.loss_limit()

    def guess(self, delta: Fraction) -> tuple[float, float]:
        """By the saddle-point formula on the finite losses."""
        with precision(LOW_BITS):
            rest = (ball(delta) - self.infinite()).max(ball(delta) * arb(2) ** -40)
            theta, epsilon = self.composite.saddle_of_delta(float(rest.log()))
        return epsilon, theta


class CompositeCurve(OfComposite, ClosedCurve):
    """A formula for a composition that need not be of one kind."""


class LineCurve(OfComposite):
    """A composition by quadrature on lines.

    A line stands where all epsilons of a range ask for it, so that an answer does not depend on what was asked before.
    """

    def __init__(self, composite: Composite) -> None:
        super().__init__(composite)
        self._line = lru_cache(maxsize=_LINES)(self.new_line)

    @abstractmethod
    def new_line(self, estimate: float, digits: int) -> Callable[[Epsilon], arb]:
        """From epsilon to an enclosure of delta, narrow near the one epsilon that a line is planned for."""

    def _near_total(self, epsilon: Epsilon, digits: int) -> arb | None:
        """Delta where it is its largest value but for less than the digits asked for, by Chernoff's bound."""
        at_zero = self.composite.sketch(0.0)
        with precision(LOW_BITS):
            point = float(nats(epsilon))
        if not point < at_zero.mean or not at_zero.variance > 0.0:
            return None
        tilt = max(-0.999, (point - at_zero.mean) / at_zero.variance)
        theta = Fraction(tilt)
        with precision(math.ceil(digits * math.log2(10.0)) + 64):
            gap = (self.composite.log_moment(theta) - ball(theta) * nats(epsilon)).exp().upper()
            value = 1 - arb(0).union(gap)
            return value if relative_digits(value) >= digits else None

    def delta(self, epsilon: Epsilon, digits: int, *, floor: Fraction = _ZERO) -> arb:
        """Enclosure of delta to so many digits."""
        with precision(math.ceil(digits * math.log2(10.0)) + LOW_BITS):
            limit, point = self.loss_limit(), nats(epsilon)
            estimate = float(point)
            if limit is not None and limit <= point and relative_digits(self.infinite()) >= digits:
                return self.infinite()
        value = self._near_total(epsilon, digits)
        if value is not None:
            return value
        wanted, value = _TOGETHER * math.ceil((digits + 2) / _TOGETHER), arb(0)
        for place in (self._place(estimate), *[estimate] * 7):
            value = self._line(place, wanted)(epsilon)
            known = relative_digits(value)
            if known >= digits or value < ball(floor / 2):
                return value
            wanted += max(2, math.ceil(digits - known) + 1)
        raise _out_of_reach(digits, value, f"a line planned for {wanted} digits does not give them")

    def _place(self, estimate: float) -> float:
        """The epsilon that a line near this one is planned for: a multiple of about three deviations."""
        theta, limit = self.composite.saddle(estimate), self.loss_limit()
        variance = self.composite.sketch(theta).variance
        if not 0.0 <= variance < math.inf:
            return estimate
        deviation = math.sqrt(variance + theta**-2.0 + (1.0 + theta) ** -2.0)
        apart = 2.0 ** math.floor(math.log2(4.0 * deviation))
        place = apart * round(estimate / apart)
        return place if limit is None or limit > place else estimate
