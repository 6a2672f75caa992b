"""The Gaussian pair in closed form: L ~ N(mu^2/2, mu^2) under P, with mu = sensitivity / sigma.

    K(z) = mu^2 z (1 + z) / 2        |phi(s)| = e^{-mu^2 s^2 / 2}
    delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)

A composition of Gaussian pairs is the Gaussian pair with mu^2 = sum_j T_j mu_j^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import acb, arb

from hockeystick.exact.balls import ball
from hockeystick.exact.curve import ClosedCurve
from hockeystick.exact.transform import Decay, Line, Sketch, Transform


def normal_tail(x: arb) -> arb:
    """``P(N(0, 1) > x)``."""
    return (x / arb(2).sqrt()).erfc() / 2


def gaussian_delta(mu_squared: Fraction, epsilon: arb) -> arb:
    """The curve of a Gaussian pair at one epsilon (nats)."""
    mu = ball(mu_squared).sqrt()
    return normal_tail(epsilon / mu - mu / 2) - epsilon.exp() * normal_tail(epsilon / mu + mu / 2)


@final
@dataclass(frozen=True)
class _GaussianDecay(Decay):
    mu_squared: Fraction

    def bound(self, s: arb) -> arb:
        """``e^{-mu^2 s^2 / 2}``."""
        return (-ball(self.mu_squared) * s * s / 2).exp()


@final
@dataclass(frozen=True)
class GaussianTransform(Transform):
    """``K(z) = mu^2 z (1 + z) / 2``, with the exact ``mu^2``."""

    mu_squared: Fraction

    def sketch(self, theta: float) -> Sketch:
        """Estimates at one tilt."""
        v = float(self.mu_squared)
        return Sketch(0.5 * v * theta * (1.0 + theta), v * (theta + 0.5), v)

    def log_moment(self, theta: Fraction) -> arb:
        """Enclosure of ``K(theta)``."""
        return ball(self.mu_squared * theta * (1 + theta) / 2)

    def on_line(self, line: Line) -> list[acb]:
        """Enclosures of ``M(z)``."""
        return self.powers(line, 1)

    def powers(self, line: Line, count: int) -> list[acb]:
        """Enclosures of ``M(z)^count``."""
        scale = ball(self.mu_squared) * count / 2
        return [(scale * z * (1 + z)).exp() for z in line.points()]

    def decay(self, theta: Fraction) -> Decay:
        """The Gaussian characteristic function itself."""
        return _GaussianDecay(self.mu_squared)


@final
class GaussianCurve(ClosedCurve):
    """Gaussian pairs alone: one Gaussian pair."""

    def __init__(self, mu_squared: Fraction) -> None:
        self._mu_squared = mu_squared

    def formula(self, epsilon: arb) -> arb:
        """Delta in terms of the normal tail."""
        return gaussian_delta(self._mu_squared, epsilon)
