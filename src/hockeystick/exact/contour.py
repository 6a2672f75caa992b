"""The composition curve by the trapezoidal rule on a vertical line, every error enclosed.

    delta(eps) = delta_inf + (h / 2 pi) sum_m M(z_m) e^{-z_m eps} / (z_m (1 + z_m)) - aliasing,   z_m = theta + i m h,
    aliasing = sum_{j != 0} e^{j theta Lambda} delta_fin(eps + j Lambda),   Lambda = 2 pi / h,

(004, equation 28, and Poisson summation; docs/derivations/exact.md, section 2). The aliasing is at least 0; for j < 0
it is at most ``M(0) e^{-|j| theta Lambda}``, for j > 0 Chernoff's bound at a larger tilt sums to a geometric series.
The sum is cut off at ``|m| = N``; what is left out is at most

    M(theta) e^{-theta eps} D(N h) arctan(theta / (N h)) / (pi theta),    D(s) >= sup_{t >= s} |phi(t)|.

Guarantee: enclosures. Cost: that of M(z) at N + 1 points; every further epsilon on the same line is almost free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

from flint import acb, arb

from hockeystick.errors import PrecisionError
from hockeystick.exact.balls import ball, precision
from hockeystick.exact.composite import Composite, CompositeDecay
from hockeystick.exact.exponent import Epsilon, nats
from hockeystick.exact.transform import Line

__all__ = ["Contour", "Plan", "plan_contour"]

_LOW_BITS = 64
_MOST_NODES = 400_000


@final
@dataclass(frozen=True)
class Plan:
    """What was chosen for one epsilon: the line, and the tilts of Chernoff's bound on the aliasing."""

    line: Line
    tilts: tuple[Fraction, ...]
    bits: int


def _dyadic(value: float, bits: int = 20) -> Fraction:
    """``value`` rounded down to a few bits, so that products with integers stay exact."""
    scale = Fraction(2) ** (math.floor(math.log2(value)) - bits)
    return math.floor(Fraction(value) / scale) * scale


@final
@dataclass(frozen=True)
class _Choice:
    """A tilt, its period, the tilt of Chernoff's bound, and how far the integrand's peak is above delta (nats)."""

    theta: float
    period: float
    tilt: float
    lead: float


def _choose(composite: Composite, epsilon: float, digits: int) -> _Choice:
    """The tilt whose aliasing is within ``digits`` digits of delta at the smallest period (estimates)."""
    saddle = composite.saddle(epsilon)
    log_delta = composite.log_delta(saddle, epsilon)
    log_error = log_delta - digits * math.log(10.0) - 1.0
    limit = composite.loss_limit()
    reach = float(limit) - epsilon if limit is not None else math.inf

    def exponent(tilt: float) -> float:
        return composite.sketch(tilt).log_moment - tilt * epsilon

    ladder = [saddle * 1.12**i for i in range(-16, 9)]
    heights = [exponent(tilt) for tilt in ladder]
    while heights[-1] - log_error < 12.0 * (2.0 - log_error) and ladder[-1] < 1e7:
        ladder.append(ladder[-1] * 1.12)
        heights.append(exponent(ladder[-1]))
    best: tuple[float, _Choice] | None = None
    for i, theta in enumerate(ladder[:-1][:25]):
        right, tilt = min(
            ((heights[j] - math.log1p(ladder[j]) - log_error) / (ladder[j] - theta), ladder[j])
            for j in range(i + 1, len(ladder))
        )
        period = max(-log_error / theta, min(right, 1.01 * reach), 1e-6 * (1.0 + abs(epsilon)))
        lead = max(0.0, heights[i] - log_delta)
        cost = period * (1.0 + lead / (30.0 + 2.0 * digits))
        if best is None or cost < best[0]:
            best = cost, _Choice(theta, period, tilt, lead)
    if best is None:
        raise PrecisionError("no tilt was found for the contour")
    return best[1]


def plan_contour(composite: Composite, epsilon: float, *, digits: int) -> Plan:
    """Choose the line for about ``digits`` correct digits of delta at ``epsilon``.

    Raises
    ------
    PrecisionError
        Where the transform decays too slowly along the line for any practicable number of points.
    """
    choice = _choose(composite, epsilon, digits)
    theta = _dyadic(choice.theta)
    step = _dyadic(2.0 * math.pi / (1.02 * choice.period))
    bits = math.ceil(digits * math.log2(10.0) + choice.lead / math.log(2.0)) + composite.count.bit_length() + 24
    nodes = _nodes(composite.decay(theta), float(theta), float(step), -choice.lead - digits * math.log(10.0) - 1.0)
    tilts = tuple(_dyadic(float(theta) + (choice.tilt - float(theta)) * f) for f in (0.9, 1.0))
    return Plan(Line(theta, step, nodes), tilts, bits)


def _nodes(decay: CompositeDecay, theta: float, step: float, room: float) -> int:
    """How many points leave out less than ``e^room`` of the integrand's peak."""

    def missing(s: float) -> float:
        with precision(_LOW_BITS):
            bound = decay.bound(arb(s))
            tail = math.log(math.atan(theta / s) / (math.pi * theta))
            return (-math.inf if not bound > 0 else float(bound.log())) + tail - room

    low, high = step, step
    while missing(high) > 0.0:
        low, high = high, 1.5 * high
        if high > _MOST_NODES * step:
            raise PrecisionError(
                f"the transform decays too slowly for a line of {_MOST_NODES} points: too few steps, or large atoms"
            )
    for _ in range(6):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if missing(middle) > 0.0 else (low, middle)
    return max(2, math.ceil(high / step))


@final
@dataclass(frozen=True)
class Contour:
    """The curve of a composition near one epsilon, from the transform at the points of one line."""

    composite: Composite
    plan: Plan

    @cached_property
    def _values(self) -> tuple[acb, ...]:
        """``M(z_m) / (z_m (1 + z_m))``."""
        line = self.plan.line
        with precision(self.plan.bits):
            theta, step = ball(line.theta), ball(line.step)
            moments = self.composite.on_line(line)
            points = (acb(theta, step * m) for m in range(line.nodes + 1))
            return tuple(value / (z * (1 + z)) for value, z in zip(moments, points, strict=True))

    @cached_property
    def _cut(self) -> arb:
        """Bound on what lies beyond the last point, without its factor ``e^{-theta eps}``."""
        line = self.plan.line
        with precision(_LOW_BITS):
            theta, reach = ball(line.theta), ball(line.reach)
            decay = self.composite.decay(line.theta).bound(reach)
            return self.composite.log_moment(line.theta).exp() * decay * (theta / reach).atan() / (arb.pi() * theta)

    @cached_property
    def _chernoff(self) -> tuple[tuple[arb, arb, arb], ...]:
        """``(tilt, constant, ratio)`` of each bound on the aliasing from above."""
        line = self.plan.line
        result = []
        with precision(_LOW_BITS):
            period = 2 * arb.pi() / ball(line.step)
            for tilt in self.plan.tilts:
                t = ball(tilt)
                constant = self.composite.log_moment(tilt) + t * t.log() - (1 + t) * (1 + t).log()
                result.append((t, constant, (-(t - ball(line.theta)) * period).exp()))
        return tuple(result)

    def _aliasing(self, epsilon: arb) -> arb:
        """An upper bound on the aliasing (it is at least 0)."""
        line = self.plan.line
        with precision(_LOW_BITS):
            period = 2 * arb.pi() / ball(line.step)
            fall = (-ball(line.theta) * period).exp()
            left = self.composite.finite_mass() * fall / (1 - fall)
            limit = self.composite.loss_limit()
            if limit is not None and limit < epsilon + period:
                return left.upper()
            right = arb.pos_inf()
            for tilt, constant, ratio in self._chernoff:
                bound = (constant - tilt * epsilon).exp() * ratio / (1 - ratio)
                right = right.min(bound.upper())
            return (left + right).upper()

    def delta(self, epsilon: Epsilon) -> arb:
        """Enclosure of delta at one epsilon."""
        line = self.plan.line
        with precision(self.plan.bits):
            point = nats(epsilon)
            angle = -ball(line.step) * point
            total = self._values[0].real / 2
            for m, value in enumerate(self._values[1:], start=1):
                total += (value * acb(0, angle * m).exp()).real
            scale = (-ball(line.theta) * point).exp()
            total *= ball(line.step) / arb.pi() * scale
            cut = (self._cut * scale).upper()
            finite = total + arb(0, cut) - arb(0).union(self._aliasing(point))
            return finite + self.composite.infinite()
