"""A composition of transforms: the product of their powers, and float estimates for choosing a contour.

Symbols: ``M(z) = prod_j M_j(z)^{T_j}``, ``K = ln M``; the saddle point of epsilon solves
``K'(theta) = eps + 1/theta + 1/(1 + theta)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

from flint import acb, arb

from hockeystick.exact.balls import LOW_BITS, precision
from hockeystick.exact.transform import Decay, Line, Sketch, Transform

_MOST_POWERS = 2000


def bisect(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """A bracket, narrow in the logarithm, of the zero of an increasing function of a positive number (estimate)."""
    while high > low * (1.0 + 1e-3):
        middle = math.sqrt(low * high)
        if function(middle) < 0.0:
            low = middle
        else:
            high = middle
    return low, high


@final
@dataclass(frozen=True)
class CompositeDecay:
    """``prod_j |phi_j|^{T_j}``, bounded factor by factor."""

    factors: tuple[tuple[Decay, int], ...]

    def bound(self, s: arb) -> arb:
        """At least the supremum over ``t >= s``."""
        total = arb(1)
        for decay, count in self.factors:
            value = decay.bound(s).upper()
            if not value.is_finite() or value >= 1:
                continue  # nothing is known: |phi| <= 1
            if value <= 0:
                return arb(0)
            total *= (value.log() * count).exp()
        return total


@final
@dataclass(frozen=True)
class Composite:
    """Transforms and how often each is composed."""

    parts: tuple[tuple[Transform, int], ...]

    @property
    def count(self) -> int:
        """Number of steps."""
        return sum(count for _, count in self.parts)

    def infinite(self) -> arb:
        """The mass of the outcomes in which some step has an infinite loss."""
        log_finite = arb(0)
        for part, count in self.parts:
            infinite = part.infinite_mass()
            if infinite == 1:
                return arb(1)
            if infinite.contains(1):  # too few digits to tell what is left: other steps only add to it
                return infinite.lower().union(arb(1))
            if not infinite.is_zero():
                log_finite += (-infinite).log1p() * count
        return -log_finite.expm1()

    def infinite_fraction(self) -> Fraction | None:
        """``infinite`` as a fraction, None where it is not rational or has very many digits."""
        if self.count > _MOST_POWERS:
            return None
        finite = Fraction(1)
        for part, count in self.parts:
            mass = part.infinite_fraction()
            if mass is None:
                return None
            finite *= (1 - mass) ** count
        return 1 - finite

    def loss_limit(self) -> arb | None:
        """The largest finite loss of the composition, None where unbounded."""
        total = arb(0)
        for part, count in self.parts:
            limit = part.loss_limit()
            if limit is None:
                return None
            total += limit * count
        return total

    # --------------------------------------------------------------------------------------------------------- sketches

    def sketch(self, theta: float) -> Sketch:
        """Estimates of K, K', K'' at one tilt."""
        sketches = [(part.sketch(theta), count) for part, count in self.parts]
        return Sketch(
            math.fsum(count * s.log_moment for s, count in sketches),
            math.fsum(count * s.mean for s, count in sketches),
            math.fsum(count * s.variance for s, count in sketches),
        )

    def saddle(self, epsilon: float) -> float:
        """The tilt at the saddle point of one epsilon (an estimate)."""
        # below it K is tame, above it there may be a cliff
        return _tilts(lambda theta: self._epsilon_at(theta) - epsilon)[0]

    def _epsilon_at(self, theta: float) -> float:
        """The epsilon whose saddle point a tilt is."""
        return self.sketch(theta).mean - 1.0 / theta - 1.0 / (1.0 + theta)

    def log_delta(self, theta: float, epsilon: float) -> float:
        """``ln delta_finite`` by the saddle-point formula at its tilt (an estimate)."""
        s = self.sketch(theta)
        curvature = s.variance + 1.0 / theta**2 + 1.0 / (1.0 + theta) ** 2
        pole = math.log(theta * (1.0 + theta)) + 0.5 * math.log(2.0 * math.pi * curvature)
        return s.log_moment - theta * epsilon - pole

    def saddle_of_delta(self, log_delta: float) -> tuple[float, float]:
        """``(theta, epsilon)`` where the saddle-point formula gives this delta (an estimate)."""
        low, _ = _tilts(lambda theta: log_delta - self.log_delta(theta, self._epsilon_at(theta)))
        epsilon = self._epsilon_at(low)
        return low, epsilon + (self.log_delta(low, epsilon) - log_delta) / low  # delta falls like e^{-theta eps} there

    # ------------------------------------------------------------------------------------------------------- enclosures

    @lru_cache(maxsize=64)  # noqa: B019 - frozen and hashable; asked for by plan and bound alike
    def log_moment(self, theta: Fraction) -> arb:
        """Enclosure of ``K(theta)``, to a precision that does for bounds."""
        with precision(LOW_BITS + self.count.bit_length()):
            return sum((part.log_moment(theta) * count for part, count in self.parts), arb(0))

    def on_line(self, line: Line) -> list[acb]:
        """Enclosures of ``M(z)`` at the points of a line."""
        result = [acb(1)] * (line.nodes + 1)
        for part, count in self.parts:
            result = [a * b for a, b in zip(result, part.powers(line, count), strict=True)]
        return result

    @lru_cache(maxsize=16)  # noqa: B019 - as above
    def decay(self, theta: Fraction) -> CompositeDecay:
        """A bound on ``|M(theta + i s)| / M(theta)``."""
        with precision(LOW_BITS):  # whatever the caller works at: the answer is kept
            return CompositeDecay(tuple((part.decay(theta), count) for part, count in self.parts))


def _tilts(excess: Callable[[float], float]) -> tuple[float, float]:
    """Two tilts next to each other between which a function grows through 0."""
    low, high = 1e-6, 1.0
    while excess(high) < 0.0 and high < 1e7:
        low, high = high, 4.0 * high
    return bisect(excess, low, high)
