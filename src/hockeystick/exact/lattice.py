"""Discrete compositions on a lattice: the trapezoidal rule over one period of the transform, which is all there is.

All losses lie on ``O + k D``, k integer. With ``y = x - eps``, x the first lattice point at or above epsilon,

    g(z) = 1 / (1 - e^{-zD}) - e^{-y} / (1 - e^{-(1+z)D}),
    delta_fin(eps) = (D / 2 pi) integral over |s| <= pi / D of M(z) e^{-zx} g(z) ds,     z = theta + i s:

g is the sum of ``(1 - e^{eps - x'}) e^{-z (x' - x)}`` over the points x' from x on. The rule with N points has the
aliasing of period ``N D``. Points beyond which |phi| is proved to be small are left out: their sum is at most
``M(theta) e^{-theta x} D(s) 2 / (1 - e^{-theta D})``.

Guarantee: enclosures. Cost: at most the spread of the composition in units of D; 20 to 100 points where the losses of
each step spread over many lattice points.
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
from hockeystick.exact.atomic import AtomicTransform
from hockeystick.exact.balls import LOW_BITS, ball, precision
from hockeystick.exact.composite import Composite, CompositeDecay
from hockeystick.exact.curve import LineCurve
from hockeystick.exact.exponent import Epsilon, nats
from hockeystick.exact.layers import rectangles
from hockeystick.exact.quantum import Lattice, Quantum
from hockeystick.exact.transform import Decay, integer_power

_MOST_POINTS = 2_000_000
_MOST_PERIOD = 1e300  # points of a period: a number of them is a float
_Parts = list[tuple[AtomicTransform, int, tuple[int, ...]]]


@final
@dataclass(frozen=True)
class _Kernel(Decay):
    """Dirichlet kernels: runs of consecutive lattice points under the tilted law of one step, ``(mass, length)``."""

    runs: tuple[tuple[float, int], ...]

    def bound(self, s: arb) -> arb:
        """At least ``|phi|`` at every angle from this one to pi (radians a lattice point)."""
        total = arb(1)
        for mass, length in self.runs:
            total -= arb(mass) * (1 - _dirichlet(s, length))
        return total.upper()


def _dirichlet(angle: arb, length: int) -> arb:
    """At least ``sup |sin(n t/2) / (n sin(t/2))|`` over t from ``angle`` to pi."""
    if length == 1:
        return arb(1)
    half = (angle / 2).lower()
    if length == 2:
        return half.cos()
    beyond = 1 / (length * half.sin())  # falls on (0, pi)
    if not length * half < 3:
        return beyond.min(arb(1))
    # the kernel falls up to its zero at n t/2 = pi; from n t/2 = 3 on it is below the bound just used
    return ((length * half).sin() * beyond).max(1 / (length * (arb(3) / length).sin())).min(arb(1))


@final
@dataclass(frozen=True)
class _Plan:
    """Tilt, number of points in a period (even), how many on one side are used, Chernoff's tilts, precision."""

    theta: Fraction
    period: int
    nodes: int
    tilts: tuple[Fraction, ...]
    bits: int


@final
@dataclass(frozen=True, eq=False)
class LatticeLine:
    """The curve near one epsilon, from the transform at points of one period."""

    composite: Composite
    parts: _Parts
    quantum: Quantum
    plan: _Plan

    @cached_property
    def _terms(self) -> tuple[tuple[acb, acb, acb], ...]:
        """At every point: ``M(z) e^{-zO}``, O the smallest loss, and the two fractions of g."""
        plan, result = self.plan, []
        with precision(plan.bits):
            theta, spacing = ball(plan.theta), self.quantum.value()
            weights = [
                (
                    [(p * (theta * spacing * k).exp(), k) for (p, _), k in zip(part.finite(), indices, strict=True)],
                    count,
                )
                for part, count, indices in self.parts
            ]
            fall, fall_more = (-theta * spacing).exp(), (-(1 + theta) * spacing).exp()
            for m in range(plan.nodes + 1):
                moment = acb(1)
                for masses, count in weights:
                    value = sum((self._turn(m * k) * mass for mass, k in masses), acb(0))
                    moment *= integer_power(value, count)
                back = self._turn(-m)
                result.append((moment, 1 / (1 - back * fall), 1 / (1 - back * fall_more)))
        return tuple(result)

    def _turn(self, index: int) -> acb:
        """``e^{2 pi i index / N}``."""
        return acb(arb(2 * (index % self.plan.period)) / self.plan.period).exp_pi_i()

    @cached_property
    def _aliasing(self) -> Aliasing:
        with precision(LOW_BITS):
            period = self.quantum.value() * self.plan.period
        return Aliasing(self.composite, self.plan.theta, self.plan.tilts, period)

    @cached_property
    def _cut(self) -> arb:
        """Bound on the points left out, without the factor ``e^{-theta x}``; zero where all are used."""
        plan = self.plan
        if 2 * plan.nodes >= plan.period:
            return arb(0)
        with precision(LOW_BITS):
            decay = _decay(self.parts, plan.theta, self.quantum, arb.pi() * 2 * plan.nodes / plan.period)
            moment = self.composite.log_moment(plan.theta).exp()
            return moment * decay * 2 / (1 - (-ball(plan.theta) * self.quantum.value()).exp())

    def delta(self, epsilon: Epsilon) -> arb:
        """Enclosure of delta at one epsilon."""
        plan = self.plan
        with precision(plan.bits):
            point, spacing = nats(epsilon), self.quantum.value()
            offset = sum((part.loss_floor() * count for part, count, _ in self.parts), arb(0))
            first = math.ceil(float((point - offset) / spacing))
            first += 1 if offset + spacing * first < point else 0
            first -= 0 if offset + spacing * (first - 1) < point else 1
            y = offset + spacing * first - point
            total, shrink = arb(0), (-y).exp()
            for m, (moment, near, far) in enumerate(self._terms):
                value = (moment * self._turn(-m * first) * (near - far * shrink)).real
                total += value if m == 0 or 2 * m == plan.period else 2 * value
            scale = (-ball(plan.theta) * spacing * first).exp()
            finite = total * scale / plan.period
            # points on the wrong side of epsilon, to a rounding: of their masses and those of their copies, each times
            # e^{theta x}, the moment holds all
            doubt = max((-y).upper(), (y - spacing).upper(), arb(0)).expm1()
            doubt *= self._terms[0][0].real * scale * (ball(plan.theta) * y.max(arb(0))).exp()
            cut = self._cut * scale * (-ball(plan.theta) * offset).exp()
            return (
                finite
                + arb(0, (cut + doubt).upper())
                - arb(0).union(self._aliasing.bound(point))
                + (self.composite.infinite())
            )


def _kernel(part: AtomicTransform, indices: tuple[int, ...], theta: Fraction, quantum: Quantum) -> _Kernel:
    """The runs of one step's tilted law, masses from below."""
    with precision(LOW_BITS):
        tilt, spacing, scale = ball(theta), quantum.value(), (-part.log_moment(theta)).exp()
        low = part.loss_floor()
        heights = [0.0] * (max(indices) + 1)
        for (p, _), k in zip(part.finite(), indices, strict=True):
            mass = (p * (tilt * (low + spacing * k)).exp() * scale).lower()
            heights[k] = max(0.0, float(mass)) * (1.0 - 2.0**-50)
    edges = [float(k) for k in range(len(heights) + 1)]
    runs = ((height * width * (1.0 - 2.0**-40), round(width)) for height, width in rectangles(edges, heights))
    return _Kernel(tuple(run for run in runs if run[1] > 1))


def _decay(parts: _Parts, theta: Fraction, quantum: Quantum, angle: arb) -> arb:
    """At least ``|M(theta + i s)| / M(theta)`` from this angle (s times the spacing) to pi."""
    kernels = ((_kernel(part, indices, theta, quantum), count) for part, count, indices in parts)
    return CompositeDecay(tuple(kernels)).bound(angle)


@final
class LatticeCurve(LineCurve):
    """A discrete composition whose losses lie on a lattice."""

    def __init__(self, composite: Composite, lattice: Lattice) -> None:
        super().__init__(composite)
        self._quantum = lattice.quantum
        self._parts: _Parts = [
            (part, count, indices)
            for (part, count), indices in zip(composite.parts, lattice.indices, strict=True)
            if isinstance(part, AtomicTransform)
        ]

    def new_line(self, estimate: float, digits: int) -> Callable[[Epsilon], arb]:
        """A line planned for one epsilon.

        Raises
        ------
        PrecisionError
            Where a period has too many points.
        """
        choice = choose(self.composite, estimate, digits)
        with precision(LOW_BITS):
            spacing = float(self._quantum.value())
        if not choice.period < _MOST_PERIOD * spacing:
            raise PrecisionError("the lattice of losses is too fine: float64 does not hold the points of a period")
        period = 2 * math.ceil(0.51 * choice.period / spacing) + 2
        theta = dyadic(choice.theta)
        room = -choice.lead - digits * math.log(10.0) - 1.0 + math.log(-math.expm1(-choice.theta * spacing)) - 0.7
        nodes = self._enough(theta, period, room)
        plan = _Plan(theta, period, nodes, choice.tilts, choice.bits(self.composite, digits, 40))
        return LatticeLine(self.composite, self._parts, self._quantum, plan).delta

    def _enough(self, theta: Fraction, period: int, room: float) -> int:
        """How many points leave out less than ``e^room`` of the integrand's peak."""
        nodes = 2
        while 2 * nodes < period:
            with precision(LOW_BITS):
                bound = _decay(self._parts, theta, self._quantum, arb.pi() * 2 * nodes / period)
                if not bound > 0 or float(bound.log()) < room:
                    break
            nodes = math.ceil(1.25 * nodes)
        nodes = min(nodes, period // 2)
        if nodes > _MOST_POINTS:
            raise PrecisionError(f"the lattice needs {nodes} points; at most {_MOST_POINTS} are practicable")
        return nodes
