"""epsilon(delta) of a curve: the secant method finds it, two signs prove it.

delta is nonincreasing in epsilon, so ``delta(low) > delta* >= delta(high)`` encloses
``inf {eps >= 0: delta(eps) <= delta*}`` between low and high.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import final

from flint import arb

from hockeystick.errors import PrecisionError
from hockeystick.exact.balls import LOW_BITS, ball, precision
from hockeystick.exact.curve import Curve
from hockeystick.exact.enclosure import Enclosure

_MOST_STEPS = 200
_SECANTS = 30  # steps that are all secants
_ROUGH = 6  # digits of the first steps


@final
class _Search:
    """Signs of ``ln delta(eps) - ln delta*`` and what they prove so far."""

    def __init__(self, curve: Curve, delta: Fraction, digits: int) -> None:
        self._curve, self._delta, self._digits = curve, delta, digits
        self.low: Fraction = Fraction(0)
        self.high: Fraction | None = None
        self._looked_at_zero = False

    def excess(self, epsilon: Fraction, digits: int) -> arb:
        """``ln delta(epsilon) - ln delta*``, minus infinity where delta may be 0; what its sign proves is kept."""
        with precision(math.ceil(digits * math.log2(10.0)) + LOW_BITS):
            value = self._curve.delta(epsilon, digits, floor=self._delta)
            gap = value / ball(self._delta) - 1
            if gap > 0:
                self.low = max(self.low, epsilon)
            elif gap <= 0:
                self.high = epsilon if self.high is None else min(self.high, epsilon)
            return gap.log1p() if gap > -1 else arb.neg_inf()

    def inside(self, epsilon: Fraction) -> Fraction:
        """``epsilon``, or a point that halves or doubles what is left if it falls outside."""
        if epsilon <= 0 and not self._looked_at_zero:
            self._looked_at_zero = True
            return Fraction(0)
        if self.low < epsilon and (self.high is None or epsilon < self.high):
            return epsilon
        return (self.low + self.high) / 2 if self.high is not None else 2 * self.low + 1

    @property
    def narrow(self) -> bool:
        """Whether what is proved is as narrow as the digits ask."""
        return (self.high is not None and (self.high - self.low) * 10**self._digits <= self.low) or self.high == 0


def _rounded(value: Fraction, digits: int) -> Fraction:
    scale = 2 ** max(0, math.ceil(digits * math.log2(10.0)) + 16 - _log2(value))
    return Fraction(round(value * scale), scale)


def _log2(value: Fraction) -> int:
    return abs(value).numerator.bit_length() - value.denominator.bit_length() if value else 0


def epsilon_of(curve: Curve, delta: Fraction, *, digits: int) -> Enclosure:
    """Enclosure of ``inf {eps >= 0: delta(eps) <= delta*}`` (nats) to so many relative digits.

    Raises
    ------
    PrecisionError
        Where they cannot be had; its ``best`` is the narrowest enclosure found.
    """
    if delta >= 1:
        return Enclosure(Fraction(0), Fraction(0))
    infinite = curve.infinite_fraction()
    if delta in {0, infinite}:
        return _end(curve, delta, digits)
    with precision(LOW_BITS):
        if ball(delta) < curve.infinite() or (infinite is not None and delta < infinite):
            return Enclosure(math.inf, math.inf)
    search = _Search(curve, delta, digits)
    _iterate(search, curve.guess(delta), digits)
    if search.high == 0:
        return Enclosure(Fraction(0), Fraction(0))
    if search.high is None:
        raise PrecisionError(f"epsilon was not found within {_MOST_STEPS} steps; it is at least {float(search.low)}")
    result = Enclosure(search.low, search.high)
    if not search.narrow:
        raise PrecisionError(f"epsilon could not be enclosed to {digits} digits; best so far {result}", best=result)
    return result


def _iterate(search: _Search, start: tuple[float, float], digits: int) -> None:
    """Secant steps, a few digits at first, then a proof on either side of where they settle."""
    point, slope = search.inside(Fraction(start[0])), start[1]
    full = digits + 3 + max(0, math.ceil(-math.log10(max(1e-12, slope * float(point)))))
    before: tuple[Fraction, float] | None = None
    accuracy = min(full, _ROUGH)
    for number in range(_MOST_STEPS):
        accuracy = max(accuracy, full) if number >= _SECANTS else accuracy
        value = search.excess(point, accuracy)
        if search.narrow:
            break
        if not value.is_finite():  # beyond the largest loss, or nearly: there is no slope to follow
            point = search.inside(search.low)
            continue
        step = _step(value, slope)
        allowed = point * Fraction(4, 10 ** (digits + 1))
        if accuracy < full:
            accuracy = full if abs(step) * 10 ** (_ROUGH - 2) < point else accuracy
        elif abs(step) < allowed:
            centre = _rounded(point + step, digits + 2)
            for side in (centre - allowed, centre + allowed):
                search.excess(max(Fraction(0), side), accuracy)
            accuracy += 3
        mantissa = float(value.mid())
        if before is not None and point != before[0] and mantissa != before[1]:
            trial = -(mantissa - before[1]) / float(point - before[0])
            slope = trial if trial > 0.0 else slope
            step = _step(value, slope)
        before = (point, mantissa)
        halved = number >= _SECANTS and number % 2  # where delta is next to flat, secants lead nowhere
        point = search.inside(search.low if halved else _rounded(point + step, digits + 4))


def _step(value: arb, slope: float) -> Fraction:
    """Newton's step with this slope, from a ball of any size."""
    mantissa, exponent = value.mid().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent) / Fraction(slope)


def _end(curve: Curve, delta: Fraction, digits: int) -> Enclosure:
    """The largest finite loss, where delta is no more than what is lost at infinity."""
    with precision(math.ceil(digits * math.log2(10.0)) + LOW_BITS):
        limit = curve.loss_limit()
        if limit is None or (delta == 0 and curve.infinite() > 0):
            return Enclosure(math.inf, math.inf)
        return Enclosure.of_ball(limit.max(arb(0)))
