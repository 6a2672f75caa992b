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

_BLOCK = 32  # points of a line that one row of a product answers: neighbours are one turn away, not many


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
    """Enclosures of ``sum_j values_j e^{m step losses_j}`` at the points m >= 1 of a line, losses times i."""
    angles = [loss * ball(line.step) for loss in losses]
    starts = [
        [(angle * m).exp() * value for angle, value in zip(angles, values, strict=True)]
        for m in range(0, line.nodes, _BLOCK)
    ]
    turns = [[(angle * m).exp() for m in range(1, min(_BLOCK, line.nodes) + 1)] for angle in angles]
    return (acb_mat(starts) * acb_mat(turns)).entries()[: line.nodes] if line.nodes else []


def half_sum(values: Sequence[acb], angle: arb) -> arb:
    """Enclosure of the real part of ``values_0 / 2 + sum_m values_m e^{i m angle}``."""
    turned_on = ((value * acb(0, angle * m).exp()).real for m, value in enumerate(values[1:], start=1))
    return sum(turned_on, values[0].real / 2)


def integer_power(base: acb, count: int) -> acb:
    """Enclosure of ``base^count``; the branch of the logarithm does not matter, count being an integer."""
    if base.abs_lower() > 0:
        return (base.log() * count).exp()
    radius = (base.abs_upper().log() * count).exp().upper()
    return acb(arb(0, radius), arb(0, radius))
