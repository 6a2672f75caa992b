"""The exact accountant: the composition curve in ball arithmetic, to as many digits as asked for.

It is the truth that other accountants are tested against, and shares no numerical code with them (`hockeystick.exact`;
docs/derivations/exact.md). Slower than `Contour` by a factor of ten to a hundred, and never wrong in any digit.

Guarantee: lower and upper are certified, every error inside. Where the digits cannot be had the bracket is the widest
that was proved, or a `PrecisionError` says what is in the way.
Needs python-flint, the extra ``exact``. Cost: 10 ms to a second; the same for a thousand steps and a billion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, final

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Bound, from_sides
from hockeystick.decimals import own_context
from hockeystick.errors import check_count, check_fields, require_ball_arithmetic

if TYPE_CHECKING:
    from hockeystick.exact import Enclosure

_METHOD = "exact"
_MOST_DIGITS = 10_000
_OF_FLOATS = 15  # decimal digits that every float64 holds


@final
@dataclass(frozen=True)
class Exact(Accountant):
    """Enclosures in ball arithmetic.

    Parameters
    ----------
    digits : int
        Relative decimal digits of delta and of epsilon, 1 to 10,000. The sides of a `Bound` are float64s, so from 16
        digits on they are neighbouring floats; all of the digits are in its ``decimals``.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair, SubsampledPair
    >>> curve = Exact().directed(((SubsampledPair(GaussianPair(1.0), 0.01), 2000),))
    >>> print(f"{curve.delta(2.0):.9e}")
    [2.549593193e-04, 2.549593194e-04]
    >>> Exact(digits=30).directed(((GaussianPair(1.0), 1),)).delta(1.0).decimals[0]
    Decimal('0.1269367375066439458008296247577')
    """

    digits: int = 15

    def __post_init__(self) -> None:
        check_fields(self, digits=check_count)
        if self.digits > _MOST_DIGITS:
            raise ValueError(f"digits must be at most {_MOST_DIGITS:,}, got {self.digits:,}")

    def directed(self, parts: Parts) -> DirectedCurve:
        require_ball_arithmetic("the accountant Exact")
        return _ExactCurve(parts, self.digits)


@final
@dataclass(frozen=True)
class _ExactCurve(DirectedCurve):
    """The curve of one direction; `hockeystick.exact` keeps lines that serve many questions."""

    parts: Parts
    digits: int

    def delta(self, epsilon: float) -> Bound:
        from hockeystick.exact import exact_delta, exact_infinite_mass

        if math.isinf(epsilon):
            return self._bound(exact_infinite_mass(self.parts, digits=self.digits), largest=1.0)
        return self._bound(exact_delta(self.parts, epsilon, digits=self.digits), largest=1.0)

    def epsilon(self, delta: float) -> Bound:
        from hockeystick.exact import exact_epsilon

        return self._bound(exact_epsilon(self.parts, delta, digits=self.digits))

    def _bound(self, enclosure: Enclosure, largest: float = math.inf) -> Bound:
        lower, upper = max(enclosure.lower, 0.0), min(enclosure.upper, largest)
        width = 0.0 if lower == upper else math.nextafter(upper - lower, math.inf)
        decimals = None
        if self.digits > _OF_FLOATS and math.isfinite(upper):
            shown = self.digits + 1
            sides = enclosure.at_least(0) if largest > 1.0 else enclosure.at_least(0).at_most(1)
            decimals = _decimal(sides.low, shown, ROUND_FLOOR), _decimal(sides.high, shown, ROUND_CEILING)
        return from_sides(lower, upper, _METHOD, errors={"ball": width}, decimals=decimals)


def _decimal(value: Fraction | float, digits: int, rounding: str) -> Decimal:
    """A fraction as a decimal, rounded the way that is asked for."""
    exact = Fraction(value)
    with localcontext(own_context(digits, rounding)):
        return Decimal(exact.numerator) / Decimal(exact.denominator)
