"""The error of the trapezoidal rule on the line for Gaussian mixtures of one width.

In units of the width, ``P = sum_k w_k N(c_k, 1)`` and ``Q = sum_k v_k N(d_k, 1)``; the integrand of M(z) is
``p(t)^{1+z} q(t)^{-z}``. On ``|Im t| < b`` with ``b max(spread_p, spread_q) < pi`` it is analytic, and its size is at
most that of the real integrand at Re z times

    kappa = e^{b^2/2 + |Im z| b cross} sec(b spread_p / 2)^{(-a)+} sec(b spread_q / 2)^{(a-1)+},       a = 1 + Re z,

with spread_p and spread_q the widths of the sets of centres and cross the largest distance of a c from a d. So the
rule of step eta errs by at most ``2 kappa / (e^{2 pi b / eta} - 1)`` relative to M(Re z), for every such b. The nodes
left out beyond either end fall at least geometrically (`docs/derivations/contour.md`, section 3).

Guarantee: upper bounds. Cost: a few dozen exponentials a rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.numerics.contour_rule import Array, Quadrature

__all__ = ["Ends", "MixtureStrip", "cross_distance", "few_bits", "half_widths", "strip_step"]

_OUT = 1.0 + 2.0**-40  # outward factor on the parameters, which are a few roundings off
_FRACTIONS = np.array([0.02, 0.06, 0.12, 0.2, 0.33, 0.55, 0.8, 0.97])  # of the widest strip


def _log_kappa(
    b: Array, negative_p: Array, negative_q: Array, spread_p: Array, spread_q: Array, *, growth: Array
) -> Array:
    """``ln kappa`` at frequency 0, with the arguments broadcast together; ``growth`` is 1/2 but for a cut-off."""
    secant_p, secant_q = -np.log(np.cos(0.5 * b * spread_p)), -np.log(np.cos(0.5 * b * spread_q))
    return growth * b * b + negative_p * secant_p + negative_q * secant_q


def half_widths(spread_p: Array, spread_q: Array) -> Array:
    """Half-widths b of the strips tried, below pi / spread, shape (B, 8)."""
    spread = np.maximum(spread_p, spread_q)
    widest = np.minimum(60.0, 0.999 * math.pi / np.maximum(spread, 1e-3))  # 60 where nothing limits it
    return np.asarray(widest[:, None] * _FRACTIONS)


def strip_step(
    exponents: Array, log_accuracy: float, *, spread_p: Array, spread_q: Array, growth: Array, log_turn: Array
) -> Array:
    """Steps (in units of the width) whose strip error is about ``e^log_accuracy`` at every exponent, shape (B,).

    ``log_turn``, shape (B, 8), is ``ln`` of about how much the frequency adds to the integrand on each strip.
    """
    b = half_widths(spread_p, spread_q)
    negative_p, negative_q = np.maximum(-exponents.min(), 0.0), np.maximum(exponents.max() - 1.0, 0.0)
    column = growth[:, None]
    worst = _log_kappa(b, negative_p, negative_q, spread_p[:, None], spread_q[:, None], growth=column)
    worst = worst + log_turn
    return np.asarray(np.max(2.0 * math.pi * b / (worst + math.log(2.0) - log_accuracy), axis=1))


@final
@dataclass(frozen=True, eq=False)
class Ends:
    """What is known of one of the two measures beyond the first and the last node, shape (B,) each.

    The posterior mean of the centre is nondecreasing in t: it lies in ``[lowest, at_low]`` below the first node and in
    ``[at_high, highest]`` above the last. Lengths in units of the width.
    """

    lowest: Array
    at_low: Array
    at_high: Array
    highest: Array

    @property
    def spread(self) -> Array:
        """Width of the set of centres, rounded outwards."""
        return (self.highest - self.lowest) * _OUT

    def pull_up(self, power: Array) -> Array:
        """Largest ``power * mean`` above the last node, shape (K, B) for powers (K, 1)."""
        return np.maximum(power * self.at_high, power * self.highest)

    def pull_down(self, power: Array) -> Array:
        """Smallest ``power * mean`` below the first node."""
        return np.minimum(power * self.lowest, power * self.at_low)


@dataclass(frozen=True, eq=False)
class MixtureStrip(Quadrature):
    """The quadrature error of a batch of mixture rules; lengths in units of the width.

    Attributes
    ----------
    step, low, high : ndarray, shape (B,)
        Step of the rule, position of its first and of its last node.
    p, q : Ends
        The two measures.
    loss, log_weight : ndarray, shape (B, n)
        The rule, whose first and last nodes bound what lies beyond.
    growth : ndarray, shape (B,)
        The integrand grows by at most ``e^{growth b^2}`` at distance b from the line, but for the powers of p and q.
    fall : ndarray, shape (B,)
        How much faster than P and Q alone the integrand falls beyond the last node.
    """

    step: Array
    low: Array
    high: Array
    p: Ends
    q: Ends
    loss: Array
    log_weight: Array
    growth: Array
    fall: Array

    def error(self, exponents: Array, frequency: float) -> Array:
        """Strip error and tails, shape (K, B)."""
        strip = self.strip_error(exponents, frequency)
        return strip + self._tails(exponents) * (1.0 + np.minimum(strip, 1.0))

    def log_turn(self, exponents: Array, frequency: float, b: Array) -> Array:
        """Upper bounds on ``ln`` of the tilted mean of ``e^{|Im z| |arg p - arg q|}`` at height b, shape (K, B, 8)."""
        return np.asarray((frequency * cross_distance(self.p, self.q)[:, None] * b)[None])

    def strip_error(self, exponents: Array, frequency: float) -> Array:
        """The error of the infinite rule, relative to the moment, shape (K, B)."""
        spread_p, spread_q = self.p.spread[:, None], self.q.spread[:, None]
        step = self.step[:, None] * _OUT
        b = half_widths(self.p.spread, self.q.spread)
        a = exponents[:, None, None]
        negative_p, negative_q = np.maximum(-a, 0.0), np.maximum(a - 1.0, 0.0)
        log_kappa = _log_kappa(b, negative_p, negative_q, spread_p, spread_q, growth=self.growth[:, None])
        decay = 2.0 * math.pi * b / step
        log_error = log_kappa - decay - np.log(-np.expm1(-decay))
        if frequency > 0.0:
            log_error = log_error + self.log_turn(exponents, frequency, b)
        smallest = np.min(log_error, axis=2)
        return np.asarray(2.0 * _OUT * np.exp(np.minimum(smallest + 1e-9 * (1.0 + np.abs(smallest)), 300.0)))

    def end_rates(self, exponents: Array) -> tuple[Array, Array]:
        """How fast ``ln`` of the integrand falls below the first and above the last node, at least, shape (K, B)."""
        a = exponents[:, None]
        below = self.p.pull_down(a) + self.q.pull_down(1.0 - a) - self.low
        above = self.high + self.fall - self.p.pull_up(a) - self.q.pull_up(1.0 - a)
        return below - 1e-9 * (1.0 + np.abs(below)), above - 1e-9 * (1.0 + np.abs(above))

    def _tails(self, exponents: Array) -> Array:
        """Terms beyond both ends relative to the largest, over which the moment lies but for the strip error."""
        a = exponents[:, None]
        largest = np.max(self.log_weight + exponents[:, None, None] * self.loss, axis=2)
        below, above = self.end_rates(exponents)
        last = self.log_weight[:, -1] + a * self.loss[:, -1] - largest
        first = self.log_weight[:, 0] + a * self.loss[:, 0] - largest
        return _geometric(last, above, self.step) + _geometric(first, below, self.step)


def cross_distance(p: Ends, q: Ends) -> Array:
    """Largest distance of a centre of one measure from one of the other, rounded outwards, shape (B,)."""
    return np.maximum(p.highest - q.lowest, q.highest - p.lowest) * _OUT


def _geometric(log_end: Array, rate: Array, step: Array) -> Array:
    """``e^log_end (rho + rho^2 + ...)`` with ``rho = e^{-step rate}``; infinite unless the rate is above 0."""
    fall = np.where(rate > 0.0, np.minimum(step * rate, 700.0), 1.0)
    total = 1.001 * np.exp(log_end + 1e-9 * np.abs(log_end)) / np.expm1(fall)
    return np.where(rate > 0.0, total, np.inf)


def few_bits(step: Array) -> Array:
    """Steps rounded down to 12 bits, so that small multiples are exact."""
    unit = np.exp2(np.floor(np.log2(step)) - 11.0)
    return np.asarray(np.floor(step / unit) * unit)
