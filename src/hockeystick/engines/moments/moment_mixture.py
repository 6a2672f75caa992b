"""Certified ``K(theta)`` of Gaussian mixtures of one width: plain and subsampled Gaussians, and their reverses.

Symbols: in units of the width and with some centre of Q as origin, ``P = sum_k w_k N(c_k, 1)``, ``Q = sum_k v_k
N(c_k, 1)``; ``lambda_k = c_k (x - c_k / 2)``, so that ``p / phi = sum w_k e^{lambda_k}`` with phi the standard normal
density; ``a = 1 + theta``.

    M(theta) = int p^a q^{-theta},     M - 1 = int q ((p/q)^a - 1 - a (p/q - 1)) dx   since the weights sum to one.

The second integrand is of second order in the loss, so a rare record costs no accuracy. Both are summed by the
trapezoidal rule. On ``|Im x| <= b``, b times the spread of the centres below pi, ``|p| <= e^{b^2/2} p(Re x)`` and
``|q| >= e^{b^2/2} cos(b spread / 2) q(Re x)``, so that the rule of step eta errs by at most ``2 N / (e^{2 pi b / eta}
- 1)`` with ``N = e^{b^2/2} sec(b spread / 2)^theta M`` (plus ``e^{b^2/2} (a + theta)`` for the second). Beyond the
first and the last node the terms fall at least geometrically (`docs/derivations/moments.md`).

Guarantee: the bracket contains K(theta); strip error, tails and rounding are inside. Cost: one logarithm a node, one
exponential a node and tilt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.laws.base import Array
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import ELEMENTARY, U

__all__ = ["GaussianMixture", "mixture_log_moments"]

Weights = dict[Fraction, Fraction]
"""Centre (in units of the width) -> weight."""

_LOG_STRIP = 62.0  # -ln of the strip error aimed at
_REACH = 13.5  # standard deviations beyond the outermost peaks: e^-91 is left
_MOST_NODES = 1 << 21
_LARGE = 30.0  # losses from which 1 - g no longer matters and logarithms are summed
_SMALL = 0.5  # K up to which M - 1 is summed
_FRACTIONS = np.array([0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.88, 0.94, 0.97])
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@final
@dataclass(frozen=True)
class GaussianMixture:
    """Two mixtures of unit Gaussians with exact centres and weights.

    Attributes
    ----------
    p, q : tuple of (centre, weight)
        Fractions; centres increasing, weights above 0.
    """

    p: tuple[tuple[Fraction, Fraction], ...]
    q: tuple[tuple[Fraction, Fraction], ...]

    def reversed(self) -> GaussianMixture:
        """(Q, P)."""
        return GaussianMixture(self.q, self.p)

    def subsampled(self, rate: Fraction) -> GaussianMixture:
        """((1 - rate) Q + rate P, Q)."""
        weights: Weights = {}
        for share, side in ((1 - rate, self.q), (rate, self.p)):
            for centre, weight in side:
                weights[centre] = weights.get(centre, Fraction(0)) + share * weight
        return GaussianMixture(tuple(sorted((c, w) for c, w in weights.items() if w > 0)), self.q)

    @cached_property
    def single_shift(self) -> Fraction | None:
        """Distance of the two centres of a plain Gaussian pair; None for a proper mixture."""
        if len(self.p) > 1 or len(self.q) > 1 or self.p[0][1] != 1 or self.q[0][1] != 1:
            return None
        return abs(self.p[0][0] - self.q[0][0])


@final
@dataclass(frozen=True, eq=False)
class _Rule:
    """Nodes of the trapezoidal rule with everything that does not depend on the tilt, shape (n,).

    ``ratio`` is p/q - 1, ``loss`` its log1p, ``log_q`` the logarithm of the weight of Q; errors are absolute bounds.
    ``spread_p`` and ``spread_q`` are (smallest, largest) centre, ``mean_q`` Q's posterior mean of the centre at the
    first and the last node.
    """

    step: float
    x: Array
    loss: Array
    loss_error: Array
    ratio: Array
    ratio_error: Array
    log_q: Array
    log_q_error: Array
    spread_p: tuple[float, float]
    spread_q: tuple[float, float]
    mean_q: tuple[float, float]


def _step(spread: float, theta: float) -> float:
    """A step of few bits whose strip error is about ``e^-_LOG_STRIP`` at every tilt up to theta."""
    widest = min(0.999 * math.pi / spread, 24.0) if spread > 0.0 else 24.0
    b = widest * np.concatenate((_FRACTIONS**3, _FRACTIONS))
    decay = _LOG_STRIP + 0.5 * b * b - theta * np.log(np.cos(0.5 * b * spread))
    step = float((2.0 * math.pi * b / decay).max())
    unit = 2.0 ** (math.floor(math.log2(step)) - 11)
    return math.floor(step / unit) * unit


def _rule(mixture: GaussianMixture, theta: float) -> _Rule:
    """A rule that serves the tilts from 0 to ``theta``."""
    origin = mixture.q[0][0]
    weights_p, weights_q = dict(mixture.p), dict(mixture.q)
    centres = sorted(set(weights_p) | set(weights_q))
    c = np.array([float(centre - origin) for centre in centres])
    w = np.array([float(weights_p.get(centre, Fraction(0))) for centre in centres])
    v = np.array([float(weights_q.get(centre, Fraction(0))) for centre in centres])
    gain = np.array([float(weights_p.get(k, Fraction(0)) - weights_q.get(k, Fraction(0))) for k in centres])
    spread_p = float(c[w > 0.0].min()), float(c[w > 0.0].max())
    spread_q = float(c[v > 0.0].min()), float(c[v > 0.0].max())
    spread = max(spread_p[1] - spread_p[0], spread_q[1] - spread_q[0]) * (1.0 + 8.0 * U)
    step = _step(spread, theta)
    low, high = _outermost(theta, spread_p, spread_q, (c, v))
    first = math.floor((min(low, float(c[0])) - _REACH) / step)
    last = math.ceil((max(high, float(c[-1])) + _REACH) / step)
    if last - first > _MOST_NODES:
        raise PrecisionError(f"a tilt of {theta:.3g} needs {last - first} quadrature nodes")
    x: Array = np.arange(first, last + 1, dtype=np.float64) * step  # exact: the step has few bits
    loss, loss_error, ratio, ratio_error, log_q, log_q_error = _densities(x, step, (c, w, v, gain))
    mean_q = _posterior_mean(float(x[0]), c, v), _posterior_mean(float(x[-1]), c, v)
    return _Rule(step, x, loss, loss_error, ratio, ratio_error, log_q, log_q_error, spread_p, spread_q, mean_q)


def _posterior_mean(x: float, c: Array, weights: Array) -> float:
    """``E[c | x]`` under a mixture, nondecreasing in x; `_tails` bounds its error."""
    present = weights > 0.0
    exponent = np.log(weights[present]) + c[present] * (x - 0.5 * c[present])
    posterior = np.exp(exponent - exponent.max())
    return float(posterior @ c[present]) / float(posterior.sum())


def _outermost(
    theta: float, spread_p: tuple[float, float], spread_q: tuple[float, float], q: tuple[Array, Array]
) -> tuple[float, float]:
    """Where the integrand of the largest tilt begins and ceases to rise, or beyond.

    Its logarithm has slope ``-x + a E[c | x] - theta E[d | x]``; with the first mean replaced by an end of its range
    that decreases in x, since the second mean rises.
    """
    a = 1.0 + theta
    ends = []
    for centre in spread_p:
        low, high = a * centre - theta * spread_q[1], a * centre - theta * spread_q[0]
        ends.append(
            increasing_root(lambda x, top=a * centre: x - top + theta * _posterior_mean(x, *q), low, high, 0.1)  # type: ignore[misc]
            if high - low > 0.2
            else low
        )
    return min(ends[0], 0.0), max(ends[1], 0.0)


def _densities(
    x: Array, step: float, columns: tuple[Array, Array, Array, Array]
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Loss, ratio and logarithm of the weighted density of Q at the nodes, each with its error."""
    c, w, v, gain = (column[:, None] for column in columns)
    terms = float(c.size)
    exponent = c * (x - 0.5 * c)
    exponent_error = 6.0 * U * np.abs(c) * (np.abs(x) + np.abs(c))
    peak = np.maximum(exponent.max(axis=0), 0.0)
    scaled = np.exp(exponent - peak)
    scaled_error = exponent_error + ELEMENTARY + U * (np.abs(exponent) + peak)
    # p/q - 1 by differences of the weights, exact before their one rounding
    near = exponent.max(axis=0) < _LARGE
    inner = np.where(near, exponent, 0.0)
    grown = np.expm1(inner)
    numerator = (gain * grown).sum(axis=0)
    numerator_error = (np.abs(gain) * ((grown + 1.0) * exponent_error + (8.0 + terms) * U * np.abs(grown))).sum(axis=0)
    parts_q = v * np.exp(inner)  # not grown + 1, which loses all accuracy where the exponential is small
    q = parts_q.sum(axis=0)
    q_relative = 1.01 * (parts_q * exponent_error).sum(axis=0) / q + (8.0 + terms) * U
    ratio = numerator / q
    ratio_error = 1.01 * (numerator_error / q + np.abs(ratio) * (q_relative + U))
    # the same by logarithms of sums
    sum_p, sum_q = (w * scaled).sum(axis=0), (v * scaled).sum(axis=0)
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(sum_p), np.log(sum_q)
    if not np.isfinite(log_q).all() or not np.isfinite(log_p).all():
        log_p, log_q = _log_sums(exponent - peak, w), _log_sums(exponent - peak, v)
        sum_error = scaled_error.max(axis=0)
    else:
        sum_error = np.maximum(
            (w * scaled * scaled_error).sum(axis=0) / sum_p, (v * scaled * scaled_error).sum(axis=0) / sum_q
        )
    log_error = 1.01 * sum_error + (terms + 6.0) * U * (1.0 + np.abs(log_p) + np.abs(log_q))
    far_loss = log_p - log_q
    far_error = 2.02 * log_error + U * np.abs(far_loss)
    close = near & (ratio > -0.5)
    loss = np.where(close, np.log1p(np.maximum(ratio, -0.5)), far_loss)
    loss_error = np.where(
        close, ratio_error / (1.0 + np.maximum(ratio, -0.5)) * 1.01 + ELEMENTARY * np.abs(loss), far_error
    )
    ratio = np.where(near, ratio, np.expm1(np.minimum(far_loss, 600.0)))
    ratio_error = np.where(near, ratio_error, (ratio + 1.0) * (1.01 * far_error + ELEMENTARY))
    log_density = log_q + peak - 0.5 * x * x + (math.log(step) - _LOG_SQRT_2PI)
    log_density_error = log_error + U * (3.0 * (x * x + peak) + 2.0 * np.abs(log_q) + 16.0 + 4.0 * abs(math.log(step)))
    return loss, loss_error, ratio, ratio_error, log_density, log_density_error


def _log_sums(exponents: Array, weights: Array) -> Array:
    """``ln sum_k weights_k e^{exponents_k}`` where the plain sum underflows."""
    present = weights[:, 0] > 0.0
    return np.asarray(np.logaddexp.reduce(exponents[present] + np.log(weights[present]), axis=0))


def mixture_log_moments(mixture: GaussianMixture, tilts: Array) -> tuple[Array, Array]:
    """Certified lower and upper bounds of K at tilts of at least 0, shape (k,) each."""
    largest = float(tilts.max())
    rule = _rule(mixture, largest)
    bounds = [_log_moment(rule, float(theta)) for theta in tilts]
    return np.array([low for low, _ in bounds]), np.array([high for _, high in bounds])


def _log_moment(rule: _Rule, theta: float) -> tuple[float, float]:
    a = 1.0 + theta
    x = a * rule.loss
    exponents = rule.log_q + x
    peak = float(exponents.max())
    terms = np.exp(exponents - peak)
    total = float(terms.sum())
    each = rule.log_q_error + a * rule.loss_error + U * (4.0 * np.abs(x) + 2.0 * np.abs(rule.log_q) + 4.0)
    relative = float(terms @ each) / total * 1.01 + 2.0 * ELEMENTARY + x.size * U
    strip = _strip(rule, theta)
    relative += 1.01 * (strip + _tails(rule, a, peak, total))
    if not relative < 0.5:
        return -math.inf, math.inf
    value = peak + math.log(total)
    error = -math.log1p(-relative) + 4.0 * U * (abs(peak) + abs(value) + 1.0)
    low, high = value - error, value + error
    if high > _SMALL or float(x.max()) > 600.0:
        return low, high
    near_low, near_high = _near_one(rule, theta, strip)
    return max(low, near_low), min(high, near_high)


def _near_one(rule: _Rule, theta: float, strip: float) -> tuple[float, float]:
    """K by the sum of M - 1, where K is at most about a half."""
    a = 1.0 + theta
    x = a * rule.loss
    weight = np.exp(rule.log_q)
    grown = np.expm1(x)
    bracket = grown - a * rule.ratio
    error = (grown + 1.0) * (1.01 * a * rule.loss_error + 3.0 * U * np.abs(x)) + ELEMENTARY * np.abs(grown)
    error = error + a * (rule.ratio_error + 4.0 * U * np.abs(rule.ratio)) + U * np.abs(bracket)
    size = np.abs(bracket)
    total = float(weight @ bracket)
    absolute = float(weight @ (1.01 * error + size * (1.01 * rule.log_q_error + ELEMENTARY)))
    absolute += x.size * U * float(weight @ size)
    # the strip error of each of the three terms, and what lies beyond the ends
    absolute += 4.0 * strip * (1.0 + a + theta)
    for power, factor in ((a, 1.0), (0.0, theta), (1.0, a)):
        peak = float((rule.log_q + power * rule.loss).max())
        absolute += 2.0 * factor * _tails(rule, power, peak, 1.0) * math.exp(min(peak, 600.0))
    absolute += 8.0 * U * abs(total)
    absolute += 1e-40 * (1.0 + a)  # weights that underflow
    if not total - absolute > -1.0:
        return -math.inf, math.inf
    low, high = math.log1p(total - absolute), math.log1p(total + absolute)
    return low - 2.0 * ELEMENTARY * abs(low), high + 2.0 * ELEMENTARY * abs(high)


def _strip(rule: _Rule, theta: float) -> float:
    """Bound on the strip error relative to M(theta)."""
    out = 1.0 + 2.0**-40  # outward: the parameters are a few roundings off
    width_p, width_q = rule.spread_p[1] - rule.spread_p[0], rule.spread_q[1] - rule.spread_q[0]
    spread = max(width_p, width_q) * out
    widest = min(0.999 * math.pi / spread, 24.0) if spread > 0.0 else 24.0
    b = widest * np.concatenate((_FRACTIONS**3, _FRACTIONS))
    decay = 2.0 * math.pi * b / (rule.step * out)
    log_error = 0.5 * b * b - theta * np.log(np.cos(0.5 * b * width_q * out)) - decay - np.log(-np.expm1(-decay))
    smallest = float(log_error.min())
    return 2.0 * out * math.exp(min(smallest + 1e-9 * (1.0 + abs(smallest)), 300.0))


def _tails(rule: _Rule, power: float, peak: float, total: float) -> float:
    """Bound on the terms ``p^power q^{1 - power}`` beyond both ends, relative to ``e^peak total``.

    The logarithm has slope ``-x + power E[c | x] + (1 - power) E[d | x]``, with posterior means inside the spreads.
    """
    (p_low, p_high), (q_low, q_high) = rule.spread_p, rule.spread_q
    rest = 1.0 - power
    # a negative share of Q's mean, which beyond the last node is at least what it is there, before the first at most
    # weights off by a factor e^{+-r} move a mean by at most 2 r times the spread: r is at most six roundings of an
    # exponent c (x - c / 2), and 4 u of a logarithm of at most 745 with the sums, below 5e-13
    c = max(abs(q_low), abs(q_high))
    off = (1e-11 + 16.0 * U * c * (abs(rule.x[0]) + abs(rule.x[-1]) + c)) * (q_high - q_low)
    highest = power * p_high + (rest * q_high if rest > 0.0 else rest * (rule.mean_q[1] - off))
    lowest = power * p_low + (rest * q_low if rest > 0.0 else rest * (rule.mean_q[0] + off))
    result = 0.0
    for index, fall in ((-1, rule.x[-1] - highest), (0, lowest - rule.x[0])):
        rate = float(fall) * (1.0 - 1e-9) - 1e-9
        if rate <= 0.0:
            return math.inf
        log_end = float(rule.log_q[index] + power * rule.loss[index]) - peak
        result += 1.001 * math.exp(min(log_end + 1e-6, 300.0)) / (total * math.expm1(min(rate * rule.step, 600.0)))
    return result
