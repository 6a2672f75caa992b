"""Random probability vectors whose floats do not sum to one, and the exact curve of those with two finite losses."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx, fmpq

from hockeystick.accountants.base import Parts
from hockeystick.laws import DiscretePair, Pair

Vector = tuple[float, ...]

_BITS = (256, 1024)
_PRECISE = 4096  # bits for where a loss lies
_GUARD = 220  # bits after which a series is cut off
_ENOUGH = 1e-30  # relative radius of a truth


@dataclass(frozen=True)
class Case:
    """Two vectors as a user would give them, how often, and which way round."""

    p: Vector
    q: Vector
    steps: int
    reverse: bool

    @property
    def parts(self) -> Parts:
        pair: Pair = DiscretePair(self.p, self.q)
        return ((pair.reversed() if self.reverse else pair, self.steps),)

    @property
    def vectors(self) -> list[tuple[Fraction, Fraction]]:
        """The pair that is meant, by its definition: each vector over its exact sum."""
        p, q = [Fraction(x) for x in self.p], [Fraction(x) for x in self.q]
        both = [(a / sum(p), b / sum(q)) for a, b in zip(p, q, strict=True)]
        return [(b, a) for a, b in both] if self.reverse else both

    def epsilons(self, rng: random.Random) -> list[float]:
        """Where to ask: about the bulk of the loss, in its tails, at 0 and beyond the largest loss."""
        finite = [(float(a), math.log(a / b) if a / b < 10**300 else 700.0) for a, b in self.vectors if a and b]
        mass = math.fsum(a for a, _ in finite) or 1.0
        mean = math.fsum(a * loss for a, loss in finite) / mass
        sigma = math.sqrt(self.steps * math.fsum(a * (loss - mean) ** 2 for a, loss in finite) / mass)
        bulk = self.steps * mean + sigma * rng.uniform(-6.0, 12.0)
        largest = max((loss for _, loss in finite), default=0.0) * self.steps
        return [max(bulk, 0.0), rng.choice([0.0, math.inf, max(largest, 0.0) * rng.uniform(0.5, 1.5)])]


def seeded(seed: int) -> random.Random:
    """A generator for one case."""
    return random.Random(seed)  # noqa: S311 - to be repeated, not to be secret


def random_case(rng: random.Random) -> Case:
    """Two or three outcomes, zeros, tiny entries and entries near one, sums off by an ulp or by up to 1e-9."""
    size = rng.choice([2, 2, 3, 3, 3])
    p, q = _vector(rng, size), _vector(rng, size)
    if size == 3 and rng.random() < 0.7:
        (p if rng.random() < 0.5 else q)[rng.randrange(size)] = 0.0
    return Case(_nudged(rng, p), _nudged(rng, q), math.ceil(10.0 ** rng.uniform(0.0, 7.0)), rng.random() < 0.5)


def _vector(rng: random.Random, size: int) -> list[float]:
    values = [rng.random() for _ in range(size)]
    style = rng.choice(["decimal", "tiny", "near one", "plain", "close"])
    if style == "decimal":
        values = [math.ceil(100.0 * value) / 100.0 for value in values]
    elif style == "tiny":
        values[rng.randrange(size)] = 10.0 ** rng.uniform(-200.0, -2.0)
    elif style == "near one":
        values = [10.0 ** rng.uniform(-16.0, -3.0) for _ in values]
        values[rng.randrange(size)] = 1.0
    elif style == "close":
        values = [1.0 + 1e-3 * value for value in values]
    return values


def _nudged(rng: random.Random, values: list[float]) -> Vector:
    total = math.fsum(values) or 1.0
    off = rng.choice([0.0, 0.0, rng.uniform(-9.9e-10, 9.9e-10)])
    result = [min(value / total * (1.0 + off), 1.0) for value in values]
    if rng.random() < 0.5:
        index = rng.randrange(len(result))
        if result[index] > 0.0:
            result[index] = min(math.nextafter(result[index], rng.choice([0.0, 1.0])), 1.0)
    if not abs(math.fsum(result) - 1.0) < 1e-9:  # a cut at one, or nothing left
        result = [1.0] + [0.0] * (len(result) - 1)
    return tuple(result)


def exact_delta(case: Case, epsilon: float) -> arb | None:
    """delta(epsilon) by binomial tails, for at most two outcomes of finite loss; None for more.

    With masses ``p_1, p_0`` and ``q_1, q_0`` of the two, the first of the larger loss, and k of T steps showing it,

        delta = 1 - (p_1 + p_0)^T + sum_{k >= m} C(T, k) (p_1^k p_0^{T-k} - e^eps q_1^k q_0^{T-k}),

    m the first k of composed loss above epsilon: two binomial tails.
    """
    finite = sorted(((a, b) for a, b in case.vectors if a and b), key=lambda masses: masses[0] / masses[1])
    if len(finite) > 2:
        return None
    before = ctx.prec
    try:
        for bits in _BITS:
            ctx.prec = bits + 2 * case.steps.bit_length()
            value = _delta(finite, case.steps, epsilon)
            if value.is_exact() or (value > 0 and float(value.rad() / value.abs_lower()) < _ENOUGH):
                break
        return value
    finally:
        ctx.prec = before


def _delta(finite: list[tuple[Fraction, Fraction]], steps: int, epsilon: float) -> arb:
    lost = 1 - ball(sum((a for a, _ in finite), Fraction(0))) ** steps if finite else arb(1)
    if not finite or math.isinf(epsilon):
        return lost
    order = arb(epsilon).exp()
    (p0, q0), (p1, q1) = finite[0], finite[-1]
    if p0 / q0 == p1 / q1:
        p, q = ball(p0 + (p1 if len(finite) > 1 else 0)) ** steps, ball(q0 + (q1 if len(finite) > 1 else 0)) ** steps
        return lost + max(p - order * q, arb(0))
    m = _first_above(p0 / q0, p1 / q1, steps, epsilon)
    return lost + _tail(p0, p1, steps, m) - order * _tail(q0, q1, steps, m)


def _first_above(low: Fraction, high: Fraction, steps: int, epsilon: float) -> int:
    """The first k with ``(T - k) ln low + k ln high`` above epsilon."""
    before = ctx.prec
    try:
        ctx.prec = _PRECISE
        low_loss, high_loss, point = ball(low).log(), ball(high).log(), arb(epsilon)
        m = math.floor(float(((point - low_loss * steps) / (high_loss - low_loss)).mid())) + 1
        m = min(max(m, 0), steps + 1)
        while m > 0 and low_loss * (steps - m + 1) + high_loss * (m - 1) > point:
            m -= 1
        while m <= steps and not low_loss * (steps - m) + high_loss * m > point:
            m += 1
        return m
    finally:
        ctx.prec = before


def _tail(zero: Fraction, one: Fraction, steps: int, m: int) -> arb:
    """``sum_{k >= m} C(T, k) one^k zero^{T-k}``: term by term, from whichever side of m is the lighter."""
    if m == 0 or m > steps:
        return ball(zero + one) ** steps if m == 0 else arb(0)
    if m <= (steps + 1) * one / (zero + one):
        return ball(zero + one) ** steps - _falling(one, zero, steps, steps - m + 1)
    return _falling(zero, one, steps, m)


def _falling(zero: Fraction, one: Fraction, steps: int, m: int) -> arb:
    """The same, where the terms fall from m on: what is left out is below a geometric series."""
    log_ways = arb(steps + 1).lgamma() - arb(m + 1).lgamma() - arb(steps - m + 1).lgamma()
    term = (log_ways + ball(one).log() * m + ball(zero).log() * (steps - m)).exp()
    odds, total = ball(one / zero), arb(0)
    for k in range(m, steps + 1):
        total += term
        ratio = odds * (steps - k) / (k + 1)
        if k % 64 == 0 and ratio < 1:
            rest = term * ratio / (1 - ratio)
            if rest < total * arb(2) ** -_GUARD:
                return total + arb(0).union(rest)
        term *= ratio
    return total


def ball(value: Fraction) -> arb:
    """A fraction at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))
