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
from typing import TYPE_CHECKING, final

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Bound, from_sides
from hockeystick.errors import check_count, require_ball_arithmetic

if TYPE_CHECKING:
    from hockeystick.exact import Enclosure

__all__ = ["Exact"]

_METHOD = "exact"


@final
@dataclass(frozen=True)
class Exact(Accountant):
    """Enclosures in ball arithmetic.

    Parameters
    ----------
    digits : int
        Relative decimal digits of delta and of epsilon, at least 1. A `Bound` is made of float64s, so from 16 digits on
        its ends are neighbouring floats; `hockeystick.exact.exact_delta` returns all of the digits.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair, SubsampledPair
    >>> curve = Exact().directed(((SubsampledPair(GaussianPair(1.0), 0.01), 2000),))
    >>> print(f"{curve.delta(2.0):.9e}")
    [2.549593193e-04, 2.549593194e-04]
    """

    digits: int = 15

    def __post_init__(self) -> None:
        object.__setattr__(self, "digits", check_count("digits", self.digits))

    def directed(self, parts: Parts) -> DirectedCurve:
        require_ball_arithmetic("the accountant Exact")
        return _ExactCurve(parts, self.digits)


@final
@dataclass(frozen=True)
class _ExactCurve(DirectedCurve):
    """The curve of one direction; `hockeystick.exact` keeps the lines it has computed."""

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
        return from_sides(lower, upper, _METHOD, errors={"ball": width})
