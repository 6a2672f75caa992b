"""A rule for the transform of two Gaussian mixtures of one width: group privacy, Poisson sampling under substitution.

In units t of the width, ``P / N = sum_k w_k e^{g_k}`` and ``Q / N = sum_k v_k e^{g_k}`` with N the standard density and
``g_k = c_k t - c_k^2 / 2`` over all centres. Either set of weights sums to one, so that their difference is ``sum_k
(w_k - v_k) (e^{g_k} - 1)`` and the loss ``ln(1 + (P - Q) / Q)`` accurate relative to itself where it is small.

Guarantee: every error stored bounds the true one (`docs/derivations/contour.md`, section 3). Cost: an exponential a
node and centre.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.numerics.rationals import LOG_RATIO, log_of
from hockeystick.numerics.rounding import ELEMENTARY, SUBNORMAL, TINY, U
from hockeystick.transforms.rule import Array, Cells, LossRule, Window, reversed_nodes
from hockeystick.transforms.strip import Ends, MixtureStrip, Strip, choose_strip, cross_distance, few_bits, half_widths
from hockeystick.transforms.summand import Order, Summand

_WIDEST_STEP = 1.5
_MOST_NODES = 1 << 18
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_OUT = 1e-9
_STEEP = 1e5  # exponents ``c t``, up to which six roundings of them move a posterior mean by less than `_OUT`
_FAR = 600.0  # nats between P and Q, from which their difference is P


@final
@dataclass(frozen=True, eq=False)
class _Weights:
    """Exact numbers as ``value e^log``, shape (k, 1): value is one rounding off, log 0 but for those below `TINY`."""

    value: Array
    log: Array

    @classmethod
    def of(cls, weights: Sequence[Fraction]) -> _Weights:
        """Of numbers of either sign: those below `TINY` are told by the logarithm of their size."""
        told = [
            (math.copysign(1.0, each), log_of(abs(each))) if 0 < abs(each) < TINY else (float(each), 0.0)
            for each in weights
        ]
        return cls(*np.array(told).T[:, :, None].copy())

    @property
    def log_error(self) -> Array:
        """Bound on what the logarithms are off by, where a sum of one and an exponent is rounded."""
        return (LOG_RATIO + U) * np.abs(self.log)


@final
@dataclass(frozen=True, eq=False)
class _Sides:
    """Both mixtures on their common centres, shape (k,), each one rounding from the exact number.

    ``gaps`` are the differences of the weights.
    """

    centres: Array
    p: _Weights
    q: _Weights
    gaps: _Weights

    @property
    def used_p(self) -> Array:
        """The centres of P."""
        return self.centres[self.p.value[:, 0] > 0.0]

    @property
    def used_q(self) -> Array:
        """The centres of Q."""
        return self.centres[self.q.value[:, 0] > 0.0]


@final
@dataclass(frozen=True, eq=False)
class _Looks:
    """Both mixtures at several points, shape (n,)."""

    loss: Array
    loss_error: Array
    log_q: Array  # ln(Q / N)
    log_q_error: Array
    mean_p: Array  # posterior means of the centre
    mean_q: Array


Component = tuple[float, Fraction, Fraction]
"""A centre in units of sigma, and its weights in P and in Q."""


@final
@dataclass(frozen=True)
class MixtureSummand(Summand):
    """A pair of mixtures (P, Q), or its reverse: samples of either are mixtures again.

    Attributes
    ----------
    components : tuple of Component
        (P, Q), by increasing centre.
    order : {"forward", "reversed"}
        The pair itself, or its reverse.
    """

    components: tuple[Component, ...]
    order: Order = "forward"

    def reversed(self) -> MixtureSummand:
        """The other order."""
        return MixtureSummand(self.components, "reversed" if self.order == "forward" else "forward")

    def subsampled(self, rate: Fraction) -> MixtureSummand:
        """((1 - g) Q + g P, Q), or (P, (1 - g) P + g Q) in the other order: p / q still does not fall."""
        rest, forward = 1 - rate, self.order == "forward"
        mixed = ((c, rest * q + rate * p, q) if forward else (c, p, rest * p + rate * q) for c, p, q in self.components)
        return MixtureSummand(tuple(mixed), self.order)

    @property
    def scale(self) -> float:
        """Distance of the outermost centres."""
        return float(np.ptp(self._sides.centres))

    @cached_property
    def _sides(self) -> _Sides:
        """All centres, with their weights in P and in Q."""
        centres, p, q = zip(*self.components, strict=True)
        gaps = [a - b for a, b in zip(p, q, strict=True)]
        return _Sides(np.array(centres), *map(_Weights.of, (p, q, gaps)))

    def rule(self, window: Window, count: float) -> LossRule | None:
        """A rule that serves the window; None where it would be too long."""
        exponents = np.array([0.0, 1.0, *window.exponents])
        own = exponents if self.order == "forward" else 1.0 - exponents
        rough_p, rough_q = _whole(self._sides.used_p), _whole(self._sides.used_q)
        cross = cross_distance(rough_p, rough_q)[:, None]
        b = half_widths(rough_p.spread, rough_q.spread)
        strip = choose_strip(
            b,
            own,
            window.log_accuracy,
            spread_p=rough_p.spread,
            spread_q=rough_q.spread,
            growth=np.array([0.5]),
            log_turn=window.frequency * cross * b,
        )
        step = few_bits(np.minimum(strip.step, _WIDEST_STEP))
        reach = math.sqrt(-2.0 * window.log_accuracy) + 0.5
        low, high = self._hull(own)
        if max(-low, high) * float(np.abs(self._sides.centres).max()) > _STEEP:
            return None
        first, last = math.floor((low - reach) / step[0]), math.ceil((high + reach) / step[0])
        if last - first > _MOST_NODES / max(window.cells / 4.0, 1.0):
            return None
        t = np.arange(first, last + 1.0) * step[0]
        cells = self._cells(t, float(step[0]), window.cells) if window.cells else None
        return self._assembled(t, step, strip, cells, count)

    def _hull(self, own: Array) -> tuple[float, float]:
        """An interval of t that holds all maxima of the integrand at powers e of P: ``t = e m_p + (1 - e) m_q``."""
        centres = self._sides.centres
        ends = []
        for power in (float(own.min()), 0.0, 1.0, float(own.max())):
            size = (abs(power) + abs(1.0 - power)) * float(np.abs(centres).max())
            low, high = -size, size
            for _ in range(5):  # posterior means rise with t
                looks = self._look(np.array([low, high]))
                p, q = power * looks.mean_p, (1.0 - power) * looks.mean_q
                low, high = float(p.min() + q.min()), float(p.max() + q.max())
            ends += [low, high]
        return min(ends), max(ends)

    def _look(self, t: Array) -> _Looks:
        centres, weights = self._sides.centres, (self._sides.p, self._sides.q)
        g = centres[:, None] * t - 0.5 * np.square(centres)[:, None]
        g_error = 6.0 * U * (np.abs(centres[:, None] * t) + np.square(centres)[:, None])
        # each side by its own largest term: far out, that of the other may be too large for float64
        peaks = [np.where(each.value > 0.0, g + each.log, -np.inf).max(axis=0) for each in weights]
        gaps = [np.minimum(g + each.log - peak, 0.0) for each, peak in zip(weights, peaks, strict=True)]
        sides = [each.value * np.exp(gap) for each, gap in zip(weights, gaps, strict=True)]
        sums = [side.sum(axis=0) for side in sides]
        spread = (ELEMENTARY + (4.0 + centres.size) * U) * np.ones_like(t)
        slips = [
            (side * (g_error + each.log_error + U * np.abs(gap))).sum(axis=0) / total
            for each, side, gap, total in zip(weights, sides, gaps, sums, strict=True)
        ]
        logs = [np.log(total) for total in sums]
        apart = peaks[0] - peaks[1]
        far = logs[0] - logs[1] + apart
        far_error = 2.0 * spread + slips[0] + slips[1] + ELEMENTARY * (np.abs(logs[0]) + np.abs(logs[1]))
        far_error = far_error + 2.0 * U * (np.abs(apart) + np.abs(far))
        ratio, ratio_error = self._difference(g, g_error, peaks[1], sums[1], spread + slips[1])
        inner = np.clip(ratio, -0.5, 0.5)
        close = np.log1p(inner)
        close_error = 1.01 * ratio_error / (1.0 + inner) + ELEMENTARY * np.abs(close)
        near = (np.abs(ratio) < 0.5) & (close_error <= far_error)  # the difference may be lost beside tiny P and Q
        loss, loss_error = np.where(near, close, far), np.where(near, close_error, far_error)
        log_q = peaks[1] + logs[1]
        return _Looks(
            loss=loss,
            loss_error=loss_error,
            log_q=log_q,
            log_q_error=spread + slips[1] + ELEMENTARY * np.abs(logs[1]) + U * np.abs(log_q) + g_error.max(axis=0),
            mean_p=(sides[0] * centres[:, None]).sum(axis=0) / sums[0],
            mean_q=(sides[1] * centres[:, None]).sum(axis=0) / sums[1],
        )

    def _difference(
        self, g: Array, g_error: Array, peak_q: Array, total_q: Array, total_q_error: Array
    ) -> tuple[Array, Array]:
        """``(P - Q) / Q`` and a bound on its error; Q is ``total_q e^peak_q``."""
        gaps = self._sides.gaps
        peak, scaled = g.max(axis=0), np.exp(gaps.log)
        small = np.abs(peak) <= 1.0  # then e^g - 1 everywhere; else the terms as they are, beside the largest
        apart = g + gaps.log - peak
        terms = gaps.value * np.where(small, scaled * np.expm1(np.minimum(g, 1.0)), np.exp(apart))
        size = np.abs(terms).sum(axis=0)
        numerator = terms.sum(axis=0)
        slope = np.abs(gaps.value) * np.where(small, scaled * np.exp(np.minimum(g, 1.0)), np.exp(apart))
        error = (slope * (g_error + gaps.log_error + U * np.abs(apart))).sum(axis=0)
        error = error + (6.0 + gaps.value.size) * U * size + 4.0 * gaps.value.size * SUBNORMAL
        exponent = np.where(small, 0.0, peak) - peak_q
        doubt = total_q_error + 2.0 * ELEMENTARY + U * np.abs(exponent)
        with np.errstate(over="ignore", invalid="ignore"):  # beside a tiny Q: no ratio that is used
            scale = np.exp(np.minimum(exponent, _FAR)) / total_q
            ratio = numerator * scale
            ratio_error = 1.01 * (error * scale + np.abs(ratio) * doubt) + SUBNORMAL
        return np.where(exponent < _FAR, ratio, np.inf), ratio_error

    def _assembled(self, t: Array, step: Array, strip: Strip, cells: Cells | None, count: float) -> LossRule:
        looks = self._look(t)
        forward = self.order == "forward"
        constant = math.log(float(step[0])) - _LOG_SQRT_2PI
        log_weight = constant - 0.5 * t * t + looks.log_q
        weight_error = looks.log_q_error + U * (2.0 * t * t + 4.0 * np.abs(log_weight) + 4.0 * abs(constant) + 8.0)
        nodes: tuple[Array, ...] = looks.loss, looks.loss_error, log_weight, weight_error
        nodes = nodes if forward else reversed_nodes(*nodes)
        ends_p, ends_q = _ends(self._sides.used_p, looks.mean_p), _ends(self._sides.used_q, looks.mean_q)
        quadrature = MixtureStrip(
            step=step,
            low=t[:1],
            high=t[-1:],
            strip=strip,
            p=ends_p if forward else ends_q,
            q=ends_q if forward else ends_p,
            loss=nodes[0][None],
            log_weight=nodes[2][None],
            growth=np.array([0.5]),
            fall=np.zeros(1),
        )
        return LossRule.of_pair(*nodes, count=count, quadrature=quadrature, cells=cells)

    def _cells(self, t: Array, step: float, between: int) -> Cells:
        """The density of the loss, ``between`` cells to a step."""
        length = step / between
        fine = t[0] + np.arange((t.size - 1) * between + 1) * length
        looks = self._look(fine)
        centres, used_p, used_q = self._sides.centres, self._sides.used_p, self._sides.used_q
        spread = float(centres[-1] - centres[0])
        slope = np.maximum(looks.mean_p - looks.mean_q, 0.0)
        ends = np.maximum(slope[1:], slope[:-1]) + 1e-12 * spread
        # the slope changes by at most spread^2 / 4 a unit; by a factor e^{spread} a unit where no centre of P is
        # below Q's
        steepest = ends + 0.125 * spread * spread * length
        if used_p.min() >= used_q.max():
            steepest = np.minimum(steepest, ends * math.exp(0.5 * spread * length))
        with np.errstate(divide="ignore"):  # equal mixtures: every loss is 0
            log_slope = np.log(steepest)
        log_density = looks.log_q - 0.5 * fine * fine - _LOG_SQRT_2PI
        bends = [0.25 * np.array([np.ptp(used) ** 2]) * (1.0 + _OUT) for used in (used_p, used_q)]
        cells = Cells(
            loss=looks.loss[None],
            log_density=log_density[None],
            log_slope=log_slope[None],
            curvature=-np.ones(1),
            curvature_p=bends[0],
            curvature_q=bends[1],
            square=np.array([length * length]),
        )
        return cells if self.order == "forward" else cells.reversed()


def _whole(centres: Array) -> Ends:
    """All that is known before nodes are placed."""
    low, high = centres[:1], centres[-1:]
    return Ends(low, low, high, high)


def _ends(centres: Array, means: Array) -> Ends:
    """Posterior means beyond the nodes, rounded outwards; a single centre is its own mean."""
    low, high = centres[:1], centres[-1:]
    room = _OUT * (high - low)
    return Ends(low, np.minimum(means[:1] + room, high), np.maximum(means[-1:] - room, low), high)
