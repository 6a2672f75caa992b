"""The transform of a dominating pair's loss, M(z) = E_P[e^{zL}; L < inf], in ball arithmetic: what a pair must offer.

Symbols: L the privacy loss, z = theta + i s with tilt theta > 0, K = ln M, phi(s) = M(theta + i s) / M(theta).
Guarantee: everything named *enclosure* is proved; a ``Sketch`` is a float estimate, used only to choose parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import acb, arb


@final
@dataclass(frozen=True)
class Sketch:
    """Float estimates of ``K``, ``K'`` and ``K''`` at one tilt: choices rest on them, proofs do not."""

    log_moment: float
    mean: float
    variance: float


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


class Decay(ABC):
    """A nonincreasing upper bound on ``|phi(s)|``, at one tilt."""

    @abstractmethod
    def bound(self, s: arb) -> arb:
        """At least the supremum of ``|phi(t)|`` over ``t >= s`` (upper ends are what is meant)."""


@final
class NoDecay(Decay):
    """``|phi| <= 1``, all that is known of a loss with large atoms."""

    def bound(self, s: arb) -> arb:
        """One."""
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
    def log_moment(self, theta: Fraction) -> arb:
        """Enclosure of ``K(theta)``, for real ``theta > -1``."""

    @abstractmethod
    def powers(self, line: Line, count: int) -> list[acb]:
        """Enclosures of ``M(z)^count`` at the points of a line."""

    @abstractmethod
    def decay(self, theta: Fraction) -> Decay:
        """A bound on ``|phi|`` at one tilt."""


def integer_power(base: acb, count: int) -> acb:
    """Enclosure of ``base^count``; the branch of the logarithm does not matter, count being an integer."""
    if base.abs_lower() > 0:
        return (base.log() * count).exp()
    radius = (base.abs_upper().log() * count).exp().upper()
    return acb(arb(0, radius), arb(0, radius))
