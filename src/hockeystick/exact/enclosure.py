"""An interval that is proved to hold a number, as exact rationals, with outward-rounded floats beside them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from flint import arb

End = Fraction | float
"""An end of an interval: a fraction, or ``math.inf``."""

_FINEST = 1 << 20
"""Bits after the point that an end may have: numbers below 1e-315,652 are told from 0 no more."""


@final
@dataclass(frozen=True)
class Enclosure:
    """A proved interval ``[low, high]`` around a true value.

    Attributes
    ----------
    low, high : Fraction, or ``math.inf`` (a float) where the value is infinite
        The exact ends.

    Guarantee
    ---------
    ``low <= true value <= high``; ``lower`` and ``upper`` are the same, rounded outwards to float64.

    Examples
    --------
    >>> third = Enclosure(Fraction(333, 1000), Fraction(334, 1000))
    >>> third.lower <= 1 / 3 <= third.upper, third.contains(Fraction(1, 3)), third.digits
    (True, True, 2)
    """

    low: End
    high: End

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"low must be at most high, got {self.low!r} and {self.high!r}")

    @property
    def lower(self) -> float:
        """The largest float64 that is at most ``low``."""
        return float_down(self.low)

    @property
    def upper(self) -> float:
        """The smallest float64 that is at least ``high``."""
        return float_up(self.high)

    @property
    def digits(self) -> int | float:
        """Decimal digits to which the two ends agree, relatively: ``floor(-log10(width / high))``; ``inf`` if equal."""
        if self.low == self.high:
            return math.inf
        if isinstance(self.low, float) or isinstance(self.high, float):
            return 0
        size = max(abs(self.low), abs(self.high))
        return max(0, math.floor(-_log10((self.high - self.low) / size)))

    def contains(self, value: Fraction | float) -> bool:
        """Whether the interval contains ``value``, an exact number."""
        return self.low <= value <= self.high

    def overlaps(self, other: Enclosure) -> bool:
        """Whether two intervals have a point in common, as two enclosures of one number must."""
        return self.low <= other.high and other.low <= self.high

    def decimal(self, digits: int = 15) -> str:
        """The middle of the interval in scientific notation."""
        if isinstance(self.low, float) or isinstance(self.high, float):
            return "inf"
        middle = (self.low + self.high) / 2
        if middle == 0:
            return "0"
        exponent = math.floor(_log10(abs(middle)))
        mantissa = round(middle * Fraction(10) ** (digits - 1 - exponent))
        if abs(mantissa) >= 10**digits:
            mantissa, exponent = round(Fraction(mantissa, 10)), exponent + 1
        text = f"{abs(mantissa):0{digits}d}"
        return f"{'-' if mantissa < 0 else ''}{text[0]}.{text[1:]}e{exponent}"

    def __str__(self) -> str:
        digits = self.digits
        return self.decimal(min(50, max(1, int(digits) if math.isfinite(digits) else 17)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"  # the ends may have more digits than Python writes

    def at_least(self, floor: int) -> Enclosure:
        """The part of the interval that is at least ``floor``, which the value is known to be."""
        return Enclosure(max(self.low, Fraction(floor)), max(self.high, Fraction(floor)))

    def at_most(self, ceiling: int) -> Enclosure:
        """The part of the interval that is at most ``ceiling``, which the value is known to be."""
        return Enclosure(min(self.low, Fraction(ceiling)), min(self.high, Fraction(ceiling)))

    @classmethod
    def of_ball(cls, ball: arb) -> Enclosure:
        """The interval of an ``arb``, which must be finite."""
        (low, high), (_, radius) = _rational(ball.mid()), _rational(ball.rad())  # at any working precision
        return cls(low - radius, high + radius)


def _rational(point: arb) -> tuple[Fraction, Fraction]:
    """A ball of radius zero between two fractions: itself, unless it has more than ``_FINEST`` bits after the point."""
    parts = point.man_exp()
    mantissa, exponent = int(parts[0]), int(parts[1])
    if exponent >= 0:
        return (Fraction(mantissa << exponent),) * 2
    places = min(-exponent, _FINEST)
    lost = -exponent - places
    return Fraction(mantissa >> lost, 1 << places), Fraction(-(-mantissa >> lost), 1 << places)


def _log10(value: Fraction) -> float:
    """log10 of a positive fraction of any size (an estimate, for formatting)."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    scaled = value / Fraction(2) ** shift
    return shift * math.log10(2.0) + math.log10(float(scaled))


def float_down(value: End) -> float:
    """The largest float64 that is at most ``value``."""
    if isinstance(value, float):
        return value
    near = _nearest(value)
    return near if math.isinf(near) is False and Fraction(near) <= value else math.nextafter(near, -math.inf)


def float_up(value: End) -> float:
    """The smallest float64 that is at least ``value``."""
    if isinstance(value, float):
        return value
    return 0.0 - float_down(-value)  # never -0.0


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
