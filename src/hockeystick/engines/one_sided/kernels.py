"""Functions of limited band below and above what a loss adds to delta.

Tilted by theta, a loss y nats above epsilon adds ``f(y) = e^{-theta y} - e^{-(1 + theta) y}``, one below nothing. With
w a spacing, two entire functions of exponential type 2 pi / w lie on either side of f at every real y. Both meet f to
first order at points w apart: the lower one at ``w n``, so at the kink of f, the upper one at ``w (n + alpha)``, with
the kink about half way between two of them. What they add up to differs by about ``w^2 / 8`` times the density of
losses at epsilon: no functions of that type do better. Their transforms vanish beyond the frequency 2 pi / w, and are
geometric series before it; with ``t = w s`` for the frequency s,

    G^(t) = zeta D [ (1 - t / 2 pi) (a_0 + a_1 q) - (i / 2 pi) (b_0 + b_1 q) ] - (i / 2 pi) r,

    q = e^{-it},   zeta = e^{-i alpha t},   1 / D = (1 - e^{-a} q) (1 - e^{-b} q),   a = theta w,   b = a + w.

Source: the method of Graham and Vaaler 1981; `docs/derivations/one-sided-lines.md` proves sides (section 1) and errors
(section 4). Guarantee: errors are at most ``(1 + 50 / theta W) KERNEL`` times the sizes returned, for a period W. Cost:
40 nanoseconds a frequency.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np

from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.rounding import U

KERNEL: Final = 1000.0 * U
"""Part of a bound on the error of a transform relative to the sizes of its terms (section 4 of the derivation)."""

COARSEST: Final = 0.03125
"""The largest ``(1 + theta) w``: series of a few terms tell alpha and r to rounding."""

_TURN = 2.0 * math.pi


@final
@dataclass(frozen=True)
class _Side:
    """The numbers alpha, a_0, a_1, b_0, -b_1 and r of one side."""

    alpha: float
    values: tuple[float, float]
    slopes: tuple[float, float]
    rest: float

    @classmethod
    def of(cls, a: float, w: float, alpha: float, rest: float) -> Self:
        """Of the function that meets f at ``n + alpha``; nothing here cancels."""
        b, before, after = a + w, -math.expm1(-w * alpha), -math.expm1(-w * (1.0 - alpha))
        first, second = math.exp(-a * alpha), math.exp(-a - b * alpha)
        return cls(alpha, (first * before, second * after), (first * (w - b * before), second * (w + a * after)), rest)

    @classmethod
    def below(cls, a: float, w: float) -> Self:
        """r is ``g(-a) - g(-b) - w``, ``g(-x) = x / (e^x - 1)``, by its series."""
        b = a + w
        rest = -0.5 - (a + b) / 12.0 + (a + b) * (a * a + b * b) / 720.0 - _powers(a, b) / 30240.0
        return cls.of(a, w, 0.0, rest * w)

    @classmethod
    def above(cls, a: float, w: float) -> Self:
        """alpha is ``1 / 2 - (c(b) - c(a)) / w``, ``c(x) = ln(sinh(x / 2) / (x / 2))``, by its series."""
        b = a + w
        lacking = (a + b) / 24.0 - (a + b) * (a * a + b * b) / 2880.0 + _powers(a, b) / 181440.0
        return cls.of(a, w, 0.5 - lacking, 0.0)

    def at(self, q: Complex, inverse: Complex, left: Array) -> Complex:
        """The transform, but for zeta; ``left`` is ``1 - t / 2 pi``."""
        (a_0, a_1), (b_0, b_1) = self.values, self.slopes
        found = np.empty_like(q)
        found.real, found.imag = a_1 * left, b_1 / _TURN
        found *= q
        found.real += a_0 * left
        found.imag -= b_0 / _TURN
        found *= inverse
        found.imag -= self.rest / _TURN
        return found

    def size(self, inverse: Array, left: Array) -> Array:
        """The sum of the sizes of its terms."""
        return inverse * (sum(self.values) * left + sum(self.slopes) / _TURN) + abs(self.rest) / _TURN


@final
@dataclass(frozen=True)
class Kernels:
    """Both sides for a tilt and a spacing w, at the frequencies ``2 pi m / (points w)``.

    Attributes
    ----------
    theta : float
        The tilt, above 0.
    points : float
        A whole number and a half: how many spacings make a period.
    spacing : float
        w (nats), ``(1 + theta) w`` at most `COARSEST`.
    """

    theta: float
    points: float
    spacing: float

    def at(self, far: Array, near: Array) -> tuple[tuple[Complex, Complex], Array]:
        """The transforms below and above, in units of w, and the sizes of their terms, at ``m = far + near``.

        Arrays of shape (rows, columns), for far of shape (rows,), from 0 on, and near of shape (columns,), which is no
        further from 0 than half of what is between rows; m is below ``points``.
        """
        a, w = self.theta * self.spacing, self.spacing
        below, above = _Side.below(a, w), _Side.above(a, w)
        unit = _TURN / self.points
        # 1 - q of a sum from those of both, of which the first is the larger: relative to the whole nothing is lost
        first, second = self._lacking(far), self._lacking(near)
        lacking = (1.0 - first)[:, None] * second
        lacking += first[:, None]
        q = 1.0 - lacking
        product = -math.expm1(-a) + math.exp(-a) * lacking
        product *= -math.expm1(-a - w) + math.exp(-a - w) * lacking
        size = 1.0 / np.abs(product)
        inverse = np.conj(product, out=product)
        inverse *= size * size
        left = (self.points - np.add.outer(far, near)) / self.points
        lower, upper = below.at(q, inverse, left), above.at(q, inverse, left)
        turn = -1j * above.alpha * unit
        upper *= np.multiply.outer(np.exp(turn * far), np.exp(turn * near))
        return (lower, upper), np.maximum(below.size(size, left), above.size(size, left))

    def largest(self, first: float, last: float) -> float:
        """A bound on the size of either transform from one m above 0 to another."""
        a, w = self.theta * self.spacing, self.spacing
        # |1 - e^{-a} q| >= e^{-a} |1 - q|
        sine = min(math.sin(first * math.pi / self.points), math.sin((self.points - last) * math.pi / self.points))
        inverse, whole = np.array(1.001 * math.exp(2.0 * (a + w)) / (4.0 * sine * sine)), np.ones(())
        return max(float(side.size(inverse, whole)) for side in (_Side.below(a, w), _Side.above(a, w)))

    def _lacking(self, m: Array) -> Complex:
        """``1 - e^{-it}``, accurate relative to itself, also where t is next to 2 pi."""
        left = self.points - m
        nearer = np.where(np.abs(m) <= left, m, -left) * (math.pi / self.points)
        sine, cosine = np.sin(nearer), np.cos(nearer)
        return np.asarray(2.0 * sine * (sine + 1j * cosine))


def _powers(a: float, b: float) -> float:
    """``(b^6 - a^6) / (b - a)``."""
    return math.fsum(a**k * b ** (5 - k) for k in range(6))
