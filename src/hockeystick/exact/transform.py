"""The transform of a dominating pair's loss, M(z) = E_P[e^{zL}; L < inf], in ball arithmetic: what a pair must offer.

Symbols: L the privacy loss, z = theta + i s with tilt theta > 0, K = ln M, phi(s) = M(theta + i s) / M(theta).
Guarantee: everything named *enclosure* is proved; a ``Sketch`` is a float estimate, used only to choose parameters.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import acb, acb_mat, arb

from hockeystick.exact.balls import ball

_BLOCK = 32  # points of a line that one row of a product answers
POWERS = 16
"""Bits that powers of up to 2^30 lose by being turned, box by box, and more."""


@final
@dataclass(frozen=True)
class Sketch:
    """Float estimates of ``K``, ``K'`` and ``K''`` at one tilt: choices rest on them, proofs do not."""

    log_moment: float
    mean: float
    variance: float

    @classmethod
    def of(cls, points: Sequence[tuple[float, float]], weight: float = 1.0) -> Sketch:
        """Of a sum of terms: the logarithm and the loss of each, and what weighs all of them."""
        peak = max(log for log, _ in points)
        terms = [(math.exp(log - peak), loss) for log, loss in points]
        mass = math.fsum(term for term, _ in terms)
        mean = math.fsum(term * loss for term, loss in terms) / mass
        variance = math.fsum(term * (loss - mean) ** 2 for term, loss in terms) / mass
        return cls(peak + math.log(mass * weight), mean, variance)


@final
@dataclass(frozen=True)
class Line:
    """The points ``theta + i m step``, m = 0, ..., nodes: ``theta`` and ``step`` are exact numbers."""

    theta: Fraction
    step: Fraction
    nodes: int

    @property
    def reach(self) -> Fraction:
        """Imaginary part of the last point."""
        return self.step * self.nodes

    def points(self) -> list[acb]:
        """The points, at the working precision."""
        theta, step = ball(self.theta), ball(self.step)
        return [acb(theta, step * m) for m in range(self.nodes + 1)]


class Decay:
    """A nonincreasing upper bound on ``|phi(s)|``, at one tilt."""

    def bound(self, s: arb) -> arb:
        """At least the supremum of ``|phi(t)|`` over ``t >= s`` (upper ends are meant): one, where no more is known."""
        return arb(1)


class Transform(ABC):
    """One dominating pair seen through ``M(z)``. Balls are computed at the working precision of the moment."""

    def infinite_mass(self) -> arb:
        """P(L = +inf); exactly zero where there is none."""
        return arb(0)

    def infinite_fraction(self) -> Fraction | None:
        """P(L = inf) as a fraction, None where it is not known to be rational."""
        return Fraction(0)

    def loss_limit(self) -> arb | None:
        """The largest finite loss, None where losses are unbounded."""
        return None

    @abstractmethod
    def sketch(self, theta: float) -> Sketch:
        """Estimates at one tilt."""

    @abstractmethod
    def on_line(self, line: Line) -> list[acb]:
        """Enclosures of ``M(z)`` at the points of a line."""

    def log_moment(self, theta: Fraction) -> arb:
        """Enclosure of ``K(theta)``, for real ``theta > -1``."""
        return self.on_line(Line(theta, Fraction(1), 0))[0].real.log()

    def powers(self, line: Line, count: int) -> list[acb]:
        """Enclosures of ``M(z)^count`` at the points of a line."""
        return [integer_power(value, count) for value in self.on_line(line)]

    def decay(self, theta: Fraction) -> Decay:
        """A bound on ``|phi|`` at one tilt; of a loss with large atoms none but one is known."""
        return Decay()


def turned(values: Sequence[acb | arb], losses: Sequence[acb], line: Line) -> list[acb]:
    """Enclosures of ``sum_j values_j e^{m step losses_j}`` at the points m >= 1 of a line, losses times i.

    Narrow where the working precision has ``POWERS`` bits to spare.
    """
    if not line.nodes:
        return []
    step, rows = ball(line.step), -(-line.nodes // _BLOCK)
    starts, turns = [], []
    for value, loss in zip(values, losses, strict=True):
        angle = loss * step
        starts.append([power * value for power in powers_of((angle * _BLOCK).exp(), rows)])
        turns.append(powers_of(angle.exp(), min(_BLOCK, line.nodes) + 1)[1:])
    return (acb_mat(starts).transpose() * acb_mat(turns)).entries()[: line.nodes]


def powers_of(base: acb, count: int) -> list[acb]:
    """The powers of exponents 0 to ``count - 1``, each of two of half its exponent: boxes are turned few times."""
    found = [acb(1), base]
    for m in range(2, count):
        found.append(found[m // 2] * found[m - m // 2])
    return found[:count]


def half_sum(values: Sequence[acb], angle: arb) -> arb:
    """Enclosure of the real part of ``values_0 / 2 + sum_m values_m e^{i m angle}``, narrow as ``turned`` is."""
    powers = powers_of(acb(0, angle).exp(), len(values))
    turned_on = ((value * power).real for value, power in zip(values[1:], powers[1:], strict=True))
    return sum(turned_on, values[0].real / 2)


def integer_power(base: acb, count: int) -> acb:
    """Enclosure of ``base^count``; the branch of the logarithm does not matter, count being an integer."""
    if base.abs_lower() > 0:
        return (base.log() * count).exp()
    radius = (base.abs_upper().log() * count).exp().upper()
    return acb(arb(0, radius), arb(0, radius))
