"""One round of random allocation with Gaussian noise, in ball arithmetic: E (k - S)+ on a line, the rest by parity.

Symbols: ``W = e^{mx - m^2/2}``, x ~ N(0, 1); S the sum of t independent W; ``p(k) = E (k - S)+``, so that
``E (S - k)+ = p(k) + t - k``; phi(z) = E e^{-zW}, analytic for Re z > 0. No W is left out and no positive tilt is
needed: that, and the path below, is what the engine in floats does otherwise.

*Line.* For c > 0 and Lambda = 2 pi / h, by Poisson summation,

    (h / 2 pi) sum_n e^{z_n k} phi(z_n)^t / z_n^2 = sum_j e^{-j c Lambda} p(k + j Lambda),    z_n = c + i n h,

all terms at least 0; ``p(y) <= y`` above, ``p(y) <= phi(b)^t e^{by} / (e b)``, b > c, or 0 for y <= 0, below.

*Transform.* On the path ``Im x = -v``, ``0 < 2 v m <= pi / 2``, the trapezoidal rule of step eta errs by at most ``(1 +
e^{2 v^2}) / (e^{2 pi v / eta} - 1)``: on the strip of half-width v about it ``Re(z W) >= 0`` for every z of the first
quadrant. Terms left out are below normal tails.

*Decay.* Turned by a, ``|phi(c + is)| <= e^{a^2 / 2 m^2} phi(c cos a + s sin a)`` for 0 <= a <= pi / 2, falling with s.

Guarantee: enclosures. Proof: docs/derivations/exact.md, section 12. Cost: N points of the line are products of two
matrices of sqrt(N) rows: a tenth of a second for hundreds, some seconds for ten thousands.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

from flint import acb, acb_mat, arb

from hockeystick.errors import PrecisionError, UnknownPairError
from hockeystick.exact.aliasing import dyadic
from hockeystick.exact.balls import LOW_BITS, ball, precision, working_bits
from hockeystick.exact.curve import Curve, relative_digits
from hockeystick.exact.enclosure import Enclosure
from hockeystick.exact.exponent import Epsilon, nats
from hockeystick.exact.gaussian import normal_tail
from hockeystick.exact.shapes import AllocationShape, shape_of
from hockeystick.exact.transform import POWERS, half_sum, powers_of
from hockeystick.laws.allocated import AllocatedCurve
from hockeystick.laws.curve import ChordPair, SupportPair

_MOST_NODES = 400_000
_MOST_ENTRIES = 2_000_000  # of a matrix of balls: a gigabyte or so
_ZERO = Fraction(0)
_ANGLES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.55, 0.8, 1.1, 1.4, 1.55)
_FIRST, _LAST = 30.0, 1200.0  # nats of absolute accuracy, over t
_FARTHEST = 600.0  # epsilon, either way: plans are made in floats, which hold its exponential


@shape_of.register(ChordPair)
@shape_of.register(SupportPair)
def _(pair: ChordPair | SupportPair) -> AllocationShape:
    known = pair.known
    if not isinstance(known, AllocatedCurve) or known.base.gaussian_mu is None:
        raise UnknownPairError(
            "no exact transform is known of a pair given by its curve, but of rounds of Gaussian noise"
        )
    return AllocationShape(known.base.gaussian_mu, known.steps, known.mirrored)


@final
@dataclass(frozen=True)
class _Plan:
    """c, h, the number of points, b, and the bits to work with."""

    tilt: Fraction
    step: Fraction
    nodes: int
    below: Fraction
    bits: int


@final
class _Path:
    """phi at the working precision, by one rule for the whole quadrant."""

    def __init__(self, shift: Fraction, least: Fraction) -> None:
        bits = working_bits()
        goal = (bits + 8) * math.log(2.0)
        height = dyadic(min(0.78 / float(shift), 3.0))  # 2 v m <= 1.56 < pi / 2
        self.room = 2.0 * float(height) ** 2
        step = dyadic(2.0 * math.pi * float(height) / (goal + self.room))
        v, eta = ball(height), ball(step)
        reach = math.sqrt(2.0 * (goal + 0.5 * float(height) ** 2))
        first = -math.ceil(reach / float(step))
        turned = float(least) * math.cos(float(shift * height))
        highest = (math.log(2.0 * goal / turned) + 0.5 * float(shift) ** 2) / float(shift)
        last = math.ceil(min(reach, max(highest, 1.0)) / float(step))
        weight, ratio = [], []
        with precision(bits + POWERS):
            m = ball(shift)
            for j in range(first, last + 1):
                x = acb(eta * j, -v)
                weight.append(eta * (-x * x / 2).exp() / (2 * arb.pi()).sqrt())
                ratio.append((m * x - m * m / 2).exp())
        self.weight, self.ratio = weight, ratio
        beyond = ((-ball(least) * (m * v).cos() * abs(ratio[-1])).exp() * _tail(eta * last, eta)).upper()
        beyond = (v * v / 2).exp() * (_tail(-eta * first, eta) + beyond)
        rule = (1 + (2 * v * v).exp()) / ((2 * arb.pi() * v / eta).exp() - 1)
        self.error = (beyond + rule).upper()

    def real(self, z: arb) -> arb:
        """phi at a real point, at least ``least``."""
        total = sum((w * (-z * r).exp() for w, r in zip(self.weight, self.ratio, strict=True)), acb(0))
        return total.real + arb(0, self.error)

    def line(self, tilt: Fraction, step: Fraction, count: int) -> list[acb]:
        """phi at ``tilt + i n step``, n from 0 to count - 1."""
        inner = math.isqrt(count - 1) + 1
        if inner * len(self.weight) > _MOST_ENTRIES:
            raise PrecisionError("the transform of a round would take more memory than it may: ask for fewer digits")
        with precision(working_bits() + POWERS):
            c, turn, coarse, fine = ball(tilt), acb(0, -ball(step)), [], []
            for w, r in zip(self.weight, self.ratio, strict=True):
                start, angle = w * (-c * r).exp(), turn * r
                coarse.append([start * power for power in powers_of((angle * inner).exp(), inner)])
                fine.append(powers_of(angle.exp(), inner))
        found = (acb_mat(coarse).transpose() * acb_mat(fine)).entries()[:count]
        doubt = acb(arb(0, self.error), arb(0, self.error))
        return [value + doubt for value in found]


def _tail(x: arb, eta: arb) -> arb:
    """At least the sum of ``eta N`` over a lattice from x > 0 outwards."""
    return normal_tail(x) + eta * (-x * x / 2).exp()


@final
@dataclass(frozen=True)
class _Line:
    """The line of one plan."""

    shape: AllocationShape
    plan: _Plan

    @cached_property
    def _path(self) -> _Path:
        return _Path(self.shape.shift, self.plan.tilt)

    @cached_property
    def _values(self) -> list[acb]:
        """``phi(z_n)^t / z_n^2``."""
        plan = self.plan
        with precision(plan.bits):
            found = self._path.line(plan.tilt, plan.step, plan.nodes)
            c, h = ball(plan.tilt), ball(plan.step)
            return [value**self.shape.steps / acb(c, h * n) ** 2 for n, value in enumerate(found)]

    @cached_property
    def _decay(self) -> arb:
        """At least ``|phi|^t`` beyond the last point."""
        plan, best = self.plan, arb(1)
        with precision(plan.bits):
            c, s, m = ball(plan.tilt), ball(plan.step * (plan.nodes - 1)), ball(self.shape.shift)
            for angle in map(arb, _ANGLES):
                z = c * angle.cos() + s * angle.sin()
                if z > c:
                    best = best.min(((angle / m) ** 2 / 2).exp() * self._path.real(z))
            return (best**self.shape.steps).upper()

    @cached_property
    def _below(self) -> arb:
        """``phi(b)^t / (e b)``."""
        with precision(self.plan.bits):
            b = ball(self.plan.below)
            return self._path.real(b) ** self.shape.steps / (arb(1).exp() * b)

    def put(self, k: arb) -> arb:
        """Enclosure of E (k - S)+."""
        plan = self.plan
        c, h = ball(plan.tilt), ball(plan.step)
        turn = (c * k).exp()
        total = half_sum(self._values, h * k) * (h / arb.pi() * turn)
        cut = (self._decay * turn / (arb.pi() * h * (plan.nodes - 1))).upper()
        return total + arb(0, cut) - arb(0).union(self._aliasing(k))

    def _aliasing(self, k: arb) -> arb:
        plan = self.plan
        c, period = ball(plan.tilt), 2 * arb.pi() / ball(plan.step)
        q = (-c * period).exp()
        bound = (k + period / (1 - q)) * q / (1 - q)
        if not period > k:
            b = ball(plan.below)
            ratio = ((c - b) * period).exp()
            bound += self._below * (b * k).exp() * ratio / (1 - ratio)
        return bound.upper()


@final
class AllocationCurve(Curve):
    """The curve of one round, or of its reverse, for one question: the lines it lays serve the next epsilons."""

    def __init__(self, shape: AllocationShape) -> None:
        self._shape = shape
        self._lines: list[_Line] = []

    def infinite_fraction(self) -> Fraction | None:
        """None at all."""
        return _ZERO

    def delta(self, epsilon: Epsilon, digits: int, *, floor: Fraction = _ZERO) -> arb:
        """Enclosure of delta to so many digits."""
        best = arb(0, 1)
        for line in reversed(self._lines):
            value = self._on(line, epsilon)
            best = value if value.rad() < best.rad() else best
            if self._will_do(best, digits, floor):
                return best
        with precision(LOW_BITS):
            at = float(nats(epsilon))
        if not abs(at) <= _FARTHEST:
            raise PrecisionError(
                f"the curve of a round is enclosed at epsilons up to {_FARTHEST:g}, got {at!r}; use the accountant"
                " Certified, the default"
            )
        nats_below = -float(best.abs_lower().log()) if best > 0 else _FIRST
        while nats_below < _LAST:
            line = _Line(self._shape, _planned(self._shape, at, nats_below + (digits + 2) * math.log(10.0)))
            value = self._on(line, epsilon)
            best = value if value.rad() < best.rad() else best
            if self._will_do(best, digits, floor):
                self._lines = [*self._lines[-3:], line]
                return best
            if best > 0:
                nats_below = max(nats_below + 4.0, -float(best.abs_lower().log()))
            else:
                nats_below = 2.0 * nats_below
        found = Enclosure.of_ball(best)
        raise PrecisionError(f"delta could not be enclosed to {digits} digits; best so far {found}", best=found)

    @staticmethod
    def _will_do(value: arb, digits: int, floor: Fraction) -> bool:
        return relative_digits(value) >= digits or bool(value < ball(floor / 2))

    def _on(self, line: _Line, epsilon: Epsilon) -> arb:
        """delta by one line."""
        with precision(line.plan.bits + POWERS):
            a, t = nats(epsilon).exp(), self._shape.steps
            if self._shape.mirrored:
                return a / t * line.put(t / a)
            return (line.put(t * a) + t - t * a) / t


def _planned(shape: AllocationShape, epsilon: float, accuracy: float) -> _Plan:
    """The line of fewest points that is wrong by at most ``e^-accuracy`` of delta; estimates, which prove nothing."""
    m, t = float(shape.shift), shape.steps
    k = t * math.exp(-epsilon if shape.mirrored else epsilon)
    wanted = math.log(k if shape.mirrored else t) - accuracy
    x = [-12.0 + 0.15 * j for j in range(161)]
    mass = [0.15 * math.exp(-0.5 * each * each) / math.sqrt(2.0 * math.pi) for each in x]
    w = [math.exp(min(m * each - 0.5 * m * m, 690.0)) for each in x]

    def log_phi(c: float) -> float:
        total = sum(p * math.exp(-c * r) for p, r in zip(mass, w, strict=True))
        return math.log(total) if total > 0.0 else -1e300

    ladder = [2.0**i / k for i in range(-4, 24)]
    heights = [t * log_phi(c) + c * k for c in ladder]
    best: tuple[float, _Plan] | None = None
    for i, c in enumerate(ladder[:-3]):
        left = (math.log(k) + 3.0 - wanted) / c
        right, j = min(
            ((heights[j] - 1.0 - math.log(ladder[j]) - wanted) / (ladder[j] - c), j) for j in range(i + 1, i + 4)
        )
        period = max(left, min(right, 1.001 * k))
        lead = max(heights[i] - 2.0 * math.log(c) - wanted, 0.0)
        reach = _reach(log_phi, m, t, c, wanted - c * k)
        nodes = math.ceil(reach * period / (2.0 * math.pi)) + 3
        cost = (nodes + 20.0 * math.sqrt(nodes)) * (1.0 + lead / 60.0) ** 2.5
        if best is None or cost < best[0]:
            bits = math.ceil((lead + 12.0) / math.log(2.0)) + t.bit_length() + 24
            best = (
                cost,
                _Plan(dyadic(c), dyadic(2.0 * math.pi / period), math.ceil(1.01 * nodes), dyadic(ladder[j]), bits),
            )
        if heights[i] > 4.0 * accuracy + 100.0:
            break
    if best is None or best[1].nodes > _MOST_NODES:
        raise PrecisionError(
            "the transform decays too slowly for the points that a line may have: too little noise, or an epsilon too"
            " far out"
        )
    return best[1]


def _reach(log_phi: Callable[[float], float], m: float, t: int, c: float, room: float) -> float:
    """Where the integrand is as small as it has to be: by one of the angles, at each of which it falls with s."""
    rungs = [0.25 * c]
    while rungs[-1] < 1e12 * c:
        rungs.append(1.3 * rungs[-1])
    found = len(rungs) - 1
    for a in reversed(_ANGLES):

        def small(s: float, a: float = a) -> bool:
            log_d = 0.5 * (a / m) ** 2 + log_phi(c * math.cos(a) + s * math.sin(a))
            return t * min(log_d, 0.0) <= room + math.log(math.pi * s)

        if found and small(rungs[found - 1]):
            found = bisect_left(rungs, x=True, hi=found - 1, key=small)
    return rungs[found]
