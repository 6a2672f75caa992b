"""The composition curve by the trapezoidal rule on a vertical line, every error enclosed.

    delta(eps) = delta_inf + (h / 2 pi) sum_m M(z_m) e^{-z_m eps} / (z_m (1 + z_m)) - aliasing,   z_m = theta + i m h

(004, equation 28, and Poisson summation; docs/derivations/exact.md, section 2); the aliasing has period ``2 pi / h``.
The sum is cut off at ``|m| = N``; what is left out is at most

    M(theta) e^{-theta eps} D(N h) arctan(theta / (N h)) / (pi theta),    D(s) >= sup_{t >= s} |phi(t)|.

Guarantee: enclosures. Cost: that of M(z) at N + 1 points; every further epsilon on the same line is almost free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

from flint import acb, arb

from hockeystick.errors import PrecisionError
from hockeystick.exact.aliasing import Aliasing, choose, dyadic
from hockeystick.exact.balls import LOW_BITS, ball, precision
from hockeystick.exact.composite import Composite, CompositeDecay
from hockeystick.exact.curve import Curve, LineCurve
from hockeystick.exact.exponent import Epsilon, nats
from hockeystick.exact.transform import POWERS, Line, half_sum

_MOST_NODES = 400_000
_ZERO = Fraction(0)


@final
@dataclass(frozen=True)
class Plan:
    """What was chosen for one epsilon: the line, the tilts of Chernoff's bound on the aliasing, the precision."""

    line: Line
    tilts: tuple[Fraction, ...]
    bits: int


def plan_contour(composite: Composite, epsilon: float, *, digits: int) -> Plan:
    """Choose the line for about ``digits`` correct digits of delta at ``epsilon``.

    Raises
    ------
    PrecisionError
        Where the transform decays too slowly along the line for any practicable number of points.
    """
    choice = choose(composite, epsilon, digits)
    theta = dyadic(choice.theta)
    step = dyadic(2.0 * math.pi / (1.02 * choice.period))
    nodes = _nodes(composite.decay(theta), float(theta), float(step), -choice.lead - digits * math.log(10.0) - 1.0)
    return Plan(Line(theta, step, nodes), choice.tilts, choice.bits(composite, digits, 24))


def _nodes(decay: CompositeDecay, theta: float, step: float, room: float) -> int:
    """How many points leave out less than ``e^room`` of the integrand's peak."""

    def missing(s: float) -> float:
        with precision(LOW_BITS):
            bound = decay.bound(arb(s))
            tail = math.log(math.atan(theta / s) / (math.pi * theta))
            return (-math.inf if not bound > 0 else float(bound.log())) + tail - room

    low, high = step, step
    while missing(high) > 0.0:
        low, high = high, 1.5 * high
        if high > _MOST_NODES * step:
            raise PrecisionError(
                f"the transform decays too slowly for a line of {_MOST_NODES} points: too few steps, or large atoms;"
                " use the accountant Certified, the default, whose bracket needs no such line"
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
            moments = self.composite.on_line(line)
            return tuple(value / (z * (1 + z)) for value, z in zip(moments, line.points(), strict=True))

    @cached_property
    def _cut(self) -> arb:
        """Bound on what lies beyond the last point, without its factor ``e^{-theta eps}``."""
        line = self.plan.line
        with precision(LOW_BITS):
            theta, reach = ball(line.theta), ball(line.reach)
            decay = self.composite.decay(line.theta).bound(reach)
            return self.composite.log_moment(line.theta).exp() * decay * (theta / reach).atan() / (arb.pi() * theta)

    @cached_property
    def _aliasing(self) -> Aliasing:
        with precision(LOW_BITS):
            period = 2 * arb.pi() / ball(self.plan.line.step)
        return Aliasing(self.composite, self.plan.line.theta, self.plan.tilts, period)

    def delta(self, epsilon: Epsilon) -> arb:
        """Enclosure of delta at one epsilon."""
        line = self.plan.line
        with precision(self.plan.bits + POWERS):
            point = nats(epsilon)
            scale = (-ball(line.theta) * point).exp()
            total = half_sum(self._values, -ball(line.step) * point) * (ball(line.step) / arb.pi() * scale)
            cut = (self._cut * scale).upper()
            finite = total + arb(0, cut) - arb(0).union(self._aliasing.bound(point))
            return finite + self.composite.infinite()


@final
class ContourCurve(LineCurve):
    """A composition by the trapezoidal rule on a line; where that cannot give the digits, in another way."""

    def __init__(self, composite: Composite, otherwise: Curve | None = None) -> None:
        super().__init__(composite)
        self._otherwise = otherwise

    def new_line(self, estimate: float, digits: int) -> Callable[[Epsilon], arb]:
        """A contour planned for one epsilon."""
        return Contour(self.composite, plan_contour(self.composite, estimate, digits=digits)).delta

    def delta(self, epsilon: Epsilon, digits: int, *, floor: Fraction = _ZERO) -> arb:
        """Enclosure of delta to so many digits."""
        try:
            return super().delta(epsilon, digits, floor=floor)
        except PrecisionError:
            if self._otherwise is None:
                raise
            return self._otherwise.delta(epsilon, digits, floor=floor)
