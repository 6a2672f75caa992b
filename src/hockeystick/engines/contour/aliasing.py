"""The two sides of the aliasing, by Chernoff's bound at a few tilts.

With ``D(y) = e^{theta y} delta(y)`` the trapezoidal rule of step h returns ``sum_j D(eps + j Lambda)``, Lambda = 2 pi
/ h. Relative to ``e^{K(theta) - theta eps}``, the terms j > 0 sum to at most, for every t > theta,

    c(t) e^{k(t)} / (e^{(t - theta) Lambda} - 1),   k(t) = K(t) - K(theta) - (t - theta) eps,  c(t) = t^t / (1+t)^{1+t},

because ``(1 - e^{-y})+ <= c(t) e^{ty}``. The terms j < 0 sum to at most the same with theta - t for every t in (0,
theta), and lie within ``e^{k(t)} / (e^{(theta - t) Lambda} - 1)`` below ``e^{k(0)} / (e^{theta Lambda} - 1)`` for
every t in [-1, 0], because ``1 - delta(y) = E min(1, e^{y - L}) <= e^{K(t) - ty}``. The best tilt of each side counts
(`docs/derivations/contour.md`, section 4).

Guarantee: bounds. Cost: that of K at eight tilts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.numerics.columns import Columns, Flags, across, column
from hockeystick.numerics.rounding import ELEMENTARY, TINY, U, exp_up
from hockeystick.transforms.log_moments import LogMoments
from hockeystick.transforms.rule import Array, Numbers, by_run


@final
@dataclass(frozen=True, eq=False)
class Aliasing:
    """What the terms j > 0 and j < 0 add, relative to ``e^{K(theta) - theta eps}``; arrays of the shape of epsilon.

    Attributes
    ----------
    right : ndarray
        Upper bounds on the terms j > 0; their lower bounds are 0.
    left_lower, left_upper : ndarray
        Bounds on the terms j < 0.
    """

    right: Array
    left_lower: Array
    left_upper: Array


@final
@dataclass(frozen=True, eq=False)
class Chernoff(Columns):
    """K of a sum of losses at theta and at a few more tilts, with errors.

    Attributes
    ----------
    theta : float
        The tilt of the line.
    value, error : float
        ``K(theta)`` (nats) and a bound on its error.
    tilts, values, errors : ndarray, shape (k,)
        The other tilts, 0 among them, and K there; those below -1 tell of the reverse alone.

    Several are one whose fields have a leading axis (`stacked`).
    """

    theta: float
    value: float
    error: float
    tilts: Array
    values: Array
    errors: Array

    def log_bounds(self, epsilon: Array) -> Array:
        """Upper bounds on ``k(t) + ln c(t)``, shape (..., E, k)."""
        moved = self._gap[..., None, :] * epsilon[..., None]
        return np.asarray(self._fixed[..., None, :] - moved + 8.0 * U * np.abs(moved))

    @cached_property
    def _gap(self) -> Array:
        return np.asarray(self.tilts - column(self.theta))

    @cached_property
    def _fixed(self) -> Array:
        """What `log_bounds` holds for every epsilon."""
        value, error = column(self.value), column(self.error)
        slack = self.errors + error + 10.0 * U * (np.abs(self.values) + np.abs(value))
        return np.asarray(self.values - value + slack + log_constant(self.tilts))

    def period(self, epsilon: Array | float, log_error: Array | float) -> Array:
        """Lambda for which the bounds leave about ``e^log_error`` on either side at one epsilon (no bound itself)."""
        bounds = self.log_bounds(np.asarray(epsilon)[..., None])[..., 0, :]
        needed = np.logaddexp(0.0, bounds - column(log_error)) / np.abs(self._gap)
        above = self._gap > 0.0
        return np.maximum(_least(needed, above), _least(needed, ~above & (self.tilts >= -1.0)))

    def aliasing(self, epsilon: Array, period: Array | float) -> Aliasing:
        """Both sides, for a period that is Lambda or less by at most 8 u; broadcast against epsilon."""
        return self.copies(period).at(epsilon)

    def copies(self, period: Array | float) -> Copies:
        """The same for any epsilons."""
        gap = np.abs(self._gap)[..., None, :] * column(period)
        spread = np.log(-np.expm1(-gap * (1.0 - 4.0 * U)))  # far below 0 where the gap is small
        # By how much the logarithm of the series of tilt 0 may exceed that of e^{k(0)} / (e^{theta Lambda} - 1): twice
        # the errors of K; at most 28 u of each K, of theta eps and of theta Lambda; 15 u of ln(1 - e^{-theta Lambda}),
        # which is large where theta Lambda is small; and 34 u for expm1, exp, a product and the difference below, and
        # for the rounding of x = theta Lambda, since d ln(1 - e^{-x}) / d ln x <= 1.
        turn = column(self.theta) * np.asarray(period)
        size, error = self._of_both
        doubt = 2.0 * error + 40.0 * U * (1.0 + size + turn + np.abs(np.log(-np.expm1(-turn))))
        return Copies(self, gap, spread, 1.0 + gap + np.abs(spread), doubt)

    @cached_property
    def sides(self) -> Flags:
        """Which tilts bound the terms j > 0; which is 0; which bound the terms j < 0, and what they lie above."""
        above = self._gap > 0.0
        below = (self.tilts >= -1.0) & (self.tilts <= 0.0)
        sides = (above, self.tilts == 0.0, (self.tilts >= 0.0) & ~above, below)
        return np.array(sides)[..., None, :]

    @cached_property
    def _of_both(self) -> tuple[Array, Array]:
        """Sums of the sizes of K at theta and at tilt 0, and of their errors."""
        zero = self.tilts == 0.0
        sizes, errors = (np.where(zero, part, 0.0).max(axis=-1) for part in (np.abs(self.values), self.errors))
        return column(np.abs(self.value) + sizes), column(errors + self.error)

    def log_delta_bound(self, epsilon: Array) -> Array:
        """Upper bounds on ``ln delta_fin(epsilon)`` by Chernoff's bound at theta and the other positive tilts.

        Of several (`stacked`), each at an epsilon of its own.
        """
        pairs = ((self.theta, self.tilts), (self.value, self.values), (self.error, self.errors))
        tilts, values, errors = (np.concatenate((np.reshape(one, (-1, 1)), more), axis=1) for one, more in pairs)
        moved = tilts * column(epsilon)
        logs = values + errors - moved + 8.0 * U * (np.abs(values) + np.abs(moved)) + log_constant(tilts)
        return _least(logs, tilts > 0.0)

    def log_reverse_bound(self, epsilon: float) -> float:
        """Upper bound on ``ln delta_fin(epsilon)`` of the reverse, K of which at t is that at -1 - t; of one line."""
        tilts = -1.0 - self.tilts
        moved = tilts * epsilon
        logs = self.values + self.errors - moved + 8.0 * U * (np.abs(self.values) + np.abs(moved)) + log_constant(tilts)
        return float(_least(logs, tilts > 0.0))


@final
@dataclass(frozen=True, eq=False)
class Copies:
    """What the terms j != 0 add at any epsilons, for one period; `Chernoff.copies`.

    Attributes
    ----------
    chernoff : Chernoff
        K around the line.
    gap, spread : ndarray, shape (..., 1, k)
        ``|t - theta| Lambda``, and ``ln`` of one minus its exponential.
    size : ndarray
        What the rounding of the series grows with.
    doubt : ndarray, shape (..., 1)
        By how much the logarithm of the series of tilt 0 may be off, but for what grows with epsilon.
    """

    chernoff: Chernoff
    gap: Array
    spread: Array
    size: Array
    doubt: Array

    def at(self, epsilon: Array) -> Aliasing:
        """Both sides."""
        series, sides = self._series(epsilon), self.chernoff.sides
        right, whole, direct, gap = _least(series, sides[:, None] if sides.ndim == series.ndim else sides)  # c(0) = 1
        doubt = self.doubt + 40.0 * U * column(self.chernoff.theta) * np.abs(epsilon)
        below = whole * np.exp(-1.01 * doubt) - gap
        return Aliasing(right, np.minimum(np.maximum(below, 0.0), direct), np.minimum(direct, whole))

    def _series(self, epsilon: Array) -> Array:
        """The geometric series of each tilt, rounded up, shape (..., E, k)."""
        log_sum = self.chernoff.log_bounds(epsilon) - self.gap - self.spread
        return np.exp(np.minimum(log_sum + 8.0 * U * (np.abs(log_sum) + self.size), 700.0))


def _least(values: Array, chosen: Flags) -> Array:
    """The smallest of the chosen along the last axis; infinite where there are none."""
    return np.asarray(np.where(chosen, values, np.inf).min(axis=-1))


def log_constant(tilts: Array) -> Array:
    """``ln c(t)``, rounded up; 0 for tilts of at most 0.

    ``c(t) = t^t / (1 + t)^{1 + t}`` is the largest value of ``e^{-ty} (1 - e^{-y})`` over y >= 0. With ``log1p(1 / t)``
    for the logarithm of ``(1 + t) / t`` nothing cancels, not even at large tilts: both terms are negative, and each is
    off by at most 4 u (log1p) + 2 u (quotient, product) of itself, their sum by one rounding more.
    """
    t = np.maximum(tilts, 0.0)
    return np.asarray((-t * np.log1p(1.0 / np.maximum(t, TINY)) - np.log1p(t)) * (1.0 - 3.0 * ELEMENTARY))


def kernel_peak(theta: float) -> float:
    """``c(theta)``, rounded up: the largest value of ``e^{-theta y} (1 - e^{-y})`` over y >= 0."""
    return exp_up(float(log_constant(np.array(theta))))


def chernoff(
    counts: Sequence[Array],
    moments: Sequence[LogMoments],
    gaussian_variance: Numbers,
    tilts: Sequence[float] | Array,
) -> Chernoff:
    """K of the sum, given how often rules are composed and their moments at ``1 + tilts``; the first tilt is theta.

    Of R sums: tilts of shape (K, R), variances of shape (R,).
    """
    every = np.asarray(tilts).reshape(len(tilts), -1)
    runs = every.shape[1]
    terms: list[Array] = []
    errors: list[Array] = []
    if np.ndim(gaussian_variance) or gaussian_variance or not counts:
        normal = 0.5 * across(gaussian_variance) * every * (1.0 + every)
        terms, errors = [normal], [24.0 * U * np.abs(normal)]
    for each, moment in zip(counts, moments, strict=True):
        own = across(each)
        product = moment.value * own
        terms.append(by_run(product, runs))
        errors.append(1.001 * by_run(moment.total_error * own, runs))
        errors.append((each.size // runs + 2) * U * by_run(np.abs(product), runs))
    total = _rounded_sum(terms)
    doubt = 1.001 * sum(errors[1:], errors[0]) + U * np.abs(total)
    known = (every, total, doubt)
    whole = Chernoff(*(one[0] for one in known), *(one[1:].T.copy() for one in known))
    return whole if np.ndim(tilts) > 1 else whole.at(0)


def _rounded_sum(terms: Sequence[Array]) -> Array:
    """The sum of arrays of one shape, each number rounded once."""
    if len(terms) <= 2:
        return np.asarray(sum(terms[1:], terms[0]))
    flat = np.array([math.fsum(column) for column in np.array([term.ravel() for term in terms]).T])
    return flat.reshape(terms[0].shape)
