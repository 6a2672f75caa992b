"""The error of the trapezoidal rule on the line for Gaussian mixtures of one width.

In units of the width, ``P = sum_k w_k N(c_k, 1)`` and ``Q = sum_k v_k N(d_k, 1)``; the integrand of M(z) is
``p(t)^{1+z} q(t)^{-z}``. On ``|Im t| < b`` with ``b max(spread_p, spread_q) < pi`` it is analytic, and its size is at
most that of the real integrand at Re z times

    kappa = e^{b^2/2 + |Im z| b cross} sec(b spread_p / 2)^{(-a)+} sec(b spread_q / 2)^{(a-1)+},       a = 1 + Re z,

with spread_p and spread_q the widths of the sets of centres and cross the largest distance of a c from a d. So the
rule of step eta errs by at most ``2 kappa / (e^{2 pi b / eta} - 1)`` relative to M(Re z), for every such b: the one
that allows the largest step is kept. The nodes left out beyond either end fall at least geometrically
(`docs/derivations/contour.md`, section 3).

Guarantee: upper bounds. Cost: a few dozen exponentials a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.numerics.columns import across, column
from hockeystick.transforms.rule import Array, Numbers, Quadrature

_OUT = 1.0 + 2.0**-40  # outward factor on the parameters, which are a few roundings off
_LOG_TWO = math.log(2.0)
_NEARLY = 3.0  # of ln of an error, that makes no difference
_FRACTIONS = np.array([[0.02, 0.06, 0.12, 0.2, 0.33, 0.55, 0.8, 0.97]])  # of the widest strip


def half_widths(spread_p: Array, spread_q: Array) -> Array:
    """Half-widths b of the strips tried, below pi / spread, shape (B, 8)."""
    spread = np.maximum(spread_p, spread_q)
    widest = np.minimum(60.0, 0.999 * math.pi / np.maximum(spread, 1e-3))  # 60 where nothing limits it
    return np.asarray(column(widest) * _FRACTIONS)


@final
@dataclass(frozen=True, eq=False)
class Strip:
    """Strips to sum over: the step allowed, in units of the width, and half-widths that may allow it.

    Attributes
    ----------
    step : ndarray, shape (B,)
        The largest step.
    half_widths : ndarray, shape (B, 8)
        The best first.
    log_accuracy : float or ndarray, shape (R,)
        ``ln`` of the error meant.
    """

    step: Array
    half_widths: Array
    log_accuracy: Numbers


def choose_strip(
    b: Array,
    exponents: Array,
    log_accuracy: Numbers,
    *,
    spread_p: Array,
    spread_q: Array,
    growth: Array,
    log_turn: Array,
) -> Strip:
    """The strips of the largest steps whose error is about ``e^log_accuracy`` at every exponent, shape (K,) or (K, R).

    Those tried are `half_widths`. ``log_turn``, of their shape, is ``ln`` of about how much the frequency adds to the
    integrand on each.
    """
    log_kappa = column(growth) * b * b + log_turn
    every = exponents.reshape(len(exponents), -1)
    for power, spread in ((-every.min(axis=0), spread_p), (every.max(axis=0) - 1.0, spread_q)):
        if spread.any() and power.max() > 0.0:
            log_kappa = log_kappa - column(np.maximum(power, 0.0)) * np.log(np.cos(0.5 * b * column(spread)))
    step = 2.0 * math.pi * b / (log_kappa + (_LOG_TWO - column(log_accuracy)))
    row, order = np.arange(len(step))[:, None], (-step).argsort(axis=1)
    return Strip(step.max(axis=1), b[row, order], log_accuracy)


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
        """Largest ``power * mean`` above the last node, shape (K, B) for powers (K, R)."""
        return np.maximum(power * across(self.at_high), power * across(self.highest))

    def pull_down(self, power: Array) -> Array:
        """Smallest ``power * mean`` below the first node."""
        return np.minimum(power * across(self.lowest), power * across(self.at_low))


@dataclass(frozen=True, eq=False)
class MixtureStrip(Quadrature):
    """The quadrature error of a batch of mixture rules; lengths in units of the width.

    Attributes
    ----------
    step, low, high : ndarray, shape (B,)
        Step of the rule, position of its first and of its last node.
    strip : Strip
        Half-widths b, below pi over the spread.
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
    strip: Strip
    p: Ends
    q: Ends
    loss: Array
    log_weight: Array
    growth: Array
    fall: Array

    def error(self, exponents: Array) -> Array:
        """Strip error and tails, shape (K, B)."""
        strip = _risen(self._log_strip_error(exponents, self.strip.half_widths[:, 0]))
        return strip + self._tails(exponents) * (1.0 + np.minimum(strip, 1.0))

    def error_up_to(self, frequency: Numbers, exponent: Numbers, error: Array) -> Array:
        """The strip error grows with the frequency, the tails do not."""
        turns = self.log_turns(exponent, frequency, error)
        widths = self.strip.half_widths.T
        least = self._log_strip_error(np.array([exponent]), widths)
        best = least[0] + turns(widths[0])
        # the first is nearly always good enough, and what others find is no less than at frequency 0
        worth = (best > self.strip.log_accuracy + _NEARLY) & (least < best)
        for row in (1 + worth[1:].any(axis=1).nonzero()[0]).tolist():
            best = np.where(worth[row], np.minimum(best, least[row] + turns(widths[row])), best)  # as other rows need
        return _risen(best) + 2.0 * error

    def log_turns(self, exponent: Numbers, frequency: Numbers, error: Array) -> Callable[[Array], Array]:
        """From half-widths to bounds on ``ln`` of the tilted mean of ``e^{|Im z| |arg p - arg q|}`` there, shape (B,).

        ``error``, shape (B,), is that of the rule at frequency 0.
        """
        rate = frequency * cross_distance(self.p, self.q)
        return lambda b: rate * b

    def _log_strip_error(self, exponents: Array, b: Array) -> Array:
        """``ln`` of half the error of the infinite rule at frequency 0, relative to the moment, shape (K, B)."""
        a = exponents.reshape(len(exponents), -1)
        b = across(b)
        decay = 2.0 * math.pi * b / across(self.step * _OUT)
        log_error = across(self.growth) * b * b - decay - np.log(-np.expm1(-decay)) + 0.0 * a
        for power, side in ((-a, self.p), (a - 1.0, self.q)):
            spread = side.spread
            if spread.any() and power.max() > 0.0:
                log_error = log_error - np.maximum(power, 0.0) * np.log(np.cos(0.5 * b * across(spread)))
        return log_error

    def end_rates(self, exponents: Array) -> tuple[Array, Array]:
        """How fast ``ln`` of the integrand falls below the first and above the last node, at least, shape (K, B)."""
        a = exponents.reshape(len(exponents), -1)
        rest = 1.0 - a
        below = self.p.pull_down(a) + self.q.pull_down(rest) - across(self.low)
        above = across(self.high + self.fall) - self.p.pull_up(a) - self.q.pull_up(rest)
        return below - 1e-9 * (1.0 + np.abs(below)), above - 1e-9 * (1.0 + np.abs(above))

    def _tails(self, exponents: Array) -> Array:
        """Terms beyond both ends relative to the largest, over which the moment lies but for the strip error."""
        logs = self.log_weight + exponents.reshape(len(exponents), -1, 1) * self.loss
        ends = logs.take((0, -1), axis=2) - logs.max(axis=2, keepdims=True)
        fall = np.empty(ends.shape)
        fall[..., 0], fall[..., 1] = self.end_rates(exponents)
        fall *= column(self.step)
        falls = fall > 0.0
        # e^end (rho + rho^2 + ...) with rho = e^{-fall}; infinite unless the rate is above 0
        total = 1.001 * np.exp(ends + 1e-9 * np.abs(ends)) / np.expm1(np.where(falls, np.minimum(fall, 700.0), 1.0))
        return np.asarray(np.where(falls, total, np.inf).sum(axis=2))


def _risen(log_error: Array) -> Array:
    """``2 e^log_error``, rounded up; large beyond e^300."""
    return 2.0 * _OUT * np.exp(np.minimum(log_error + 1e-9 * (1.0 + np.abs(log_error)), 300.0))


def cross_distance(p: Ends, q: Ends) -> Array:
    """Largest distance of a centre of one measure from one of the other, rounded outwards, shape (B,)."""
    return np.maximum(p.highest - q.lowest, q.highest - p.lowest) * _OUT


def few_bits(step: Array) -> Array:
    """Steps rounded down to 12 bits, so that small multiples are exact."""
    unit = np.ldexp(1.0, np.frexp(step)[1] - 12)
    return np.asarray(np.floor(step / unit) * unit)
