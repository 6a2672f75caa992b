"""What a trapezoidal rule on a vertical line adds to delta, bounded; and the tilt at which that costs least.

A rule of period Lambda in epsilon (``2 pi`` over its step) returns, instead of ``delta_fin(eps)``,

    sum_j e^{j theta Lambda} delta_fin(eps + j Lambda),    j over all integers.

The terms j != 0 are at least 0. Those of j < 0 are at most ``e^{-|j| theta Lambda}``; those of j > 0 are below
Chernoff's bound ``delta_fin(y) <= c(t) M(t) e^{-t y}``, ``c(t) = t^t / (1+t)^{1+t}``, at a tilt t > theta, and vanish
beyond the largest loss. Both sums are geometric. Proof: docs/derivations/exact.md, section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

from flint import arb

from hockeystick.errors import PrecisionError
from hockeystick.exact.balls import LOW_BITS, ball, precision
from hockeystick.exact.composite import Composite

_RUNG = 1.12
_BELOW, _ABOVE = 16, 9  # rungs tried on either side of the saddle point
_LARGEST_TILT = 1e7


def dyadic(value: float, bits: int = 20) -> Fraction:
    """``value`` rounded down to a few bits, so that products with integers stay exact."""
    scale = Fraction(2) ** (math.floor(math.log2(value)) - bits)
    return math.floor(Fraction(value) / scale) * scale


@final
@dataclass(frozen=True)
class Aliasing:
    """The bound of the module header for one line; ``tilts`` are candidates for t."""

    composite: Composite
    theta: Fraction
    tilts: tuple[Fraction, ...]
    period: arb

    @cached_property
    def _chernoff(self) -> tuple[tuple[arb, arb, arb], ...]:
        """``(t, ln(c(t) M(t)), ratio of the series)`` for each tilt."""
        result = []
        with precision(LOW_BITS):
            for tilt in self.tilts:
                t = ball(tilt)
                constant = self.composite.log_moment(tilt) + t * t.log() - (1 + t) * (1 + t).log()
                result.append((t, constant, (-(t - ball(self.theta)) * self.period).exp()))
        return tuple(result)

    def bound(self, epsilon: arb) -> arb:
        """An upper bound on the aliasing at one epsilon."""
        with precision(LOW_BITS):
            fall = (-ball(self.theta) * self.period).exp()
            left = fall / (1 - fall)
            limit = self.composite.loss_limit()
            if limit is not None and limit < epsilon + self.period:
                return left.upper()
            right = arb.pos_inf()
            for tilt, constant, ratio in self._chernoff:
                value = (constant - tilt * epsilon).exp() * ratio / (1 - ratio)
                right = right.min(value.upper()) if ratio < 1 and value.is_finite() else right
            return (left + right).upper()


@final
@dataclass(frozen=True)
class Choice:
    """A tilt, its period, the tilt of Chernoff's bound, and how far the integrand's peak is above delta (nats)."""

    theta: float
    period: float
    tilt: float
    lead: float

    @property
    def tilts(self) -> tuple[Fraction, ...]:
        """Candidates for the tilt of Chernoff's bound."""
        theta = float(dyadic(self.theta))
        return tuple(dyadic(theta + (self.tilt - theta) * share) for share in (0.9, 1.0))

    def bits(self, composite: Composite, digits: int, spare: int) -> int:
        """The working precision for so many digits of delta."""
        lost = digits * math.log2(10.0) + self.lead / math.log(2.0)
        return math.ceil(lost) + composite.count.bit_length() + spare


def choose(composite: Composite, epsilon: float, digits: int) -> Choice:
    """The tilt whose aliasing is within ``digits`` digits of delta at the smallest period (estimates)."""
    saddle = composite.saddle(epsilon)
    log_delta = composite.log_delta(saddle, epsilon)
    log_error = log_delta - digits * math.log(10.0) - 1.0
    limit = composite.loss_limit()
    reach = 1.01 * (float(limit) - epsilon) if limit is not None else math.inf

    def exponent(tilt: float) -> float:
        return composite.sketch(tilt).log_moment - tilt * epsilon

    ladder = [saddle * _RUNG**i for i in range(-_BELOW, _ABOVE)]
    heights = [exponent(tilt) for tilt in ladder]
    while heights[-1] - log_error < 12.0 * (2.0 - log_error) and ladder[-1] < _LARGEST_TILT:
        ladder.append(ladder[-1] * _RUNG)
        heights.append(exponent(ladder[-1]))
    best: tuple[float, Choice] | None = None
    for i, theta in enumerate(ladder[:-1][: _BELOW + _ABOVE]):
        right, tilt = min(
            ((heights[j] - math.log1p(ladder[j]) - log_error) / (ladder[j] - theta), ladder[j])
            for j in range(i + 1, len(ladder))
        )
        period = max(-log_error / theta, min(right, reach), 1e-6 * (1.0 + abs(epsilon)))
        lead = max(0.0, heights[i] - log_delta)
        cost = period * (1.0 + lead / (30.0 + 2.0 * digits))
        if best is None or cost < best[0]:
            best = cost, Choice(theta, period, tilt, lead)
    if best is None or not math.isfinite(best[0]):
        raise PrecisionError(f"no line was found for epsilon {epsilon!r}")
    return best[1]
