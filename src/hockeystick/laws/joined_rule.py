"""Rules for the transform of the joined pair of Gaussian and of Laplace noise: panels on both sides of loss 0.

In the base loss u the density of Q is, for u > 0, ``f(u) = f(0) e^{-u/2 - k u^2 / 2}``: k = 1 / m^2 for Gaussian noise
(m = sensitivity / noise), k = 0 up to an atom at m for Laplace noise. With ``r(u) = 1 - g + g e^u`` the pair has

- the positive losses ``ln r(u)`` with masses f of Q and f r of P,
- the negative losses ``-ln r(u)`` with masses f r of Q and f of P, the reverse of the positive ones,
- loss 0 with mass ``(1 - g) (P(u > 0) - Q(u > 0))``,

so that both sides are integrals of ``f r^e``, at the powers e = 1 + z and e = -z. They are integrated by Gauss-Legendre
rules on panels that are shorter where the integrand turns or falls faster.

Guarantee: every error stored bounds the true one (`docs/derivations/contour.md`, section 3.6). Cost: a few
exponentials and logarithms a node.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import erf

from hockeystick.laws.gaussian_strip import record_argument
from hockeystick.laws.sampled_loss import sampled_loss_error, sampled_losses
from hockeystick.numerics.columns import column
from hockeystick.numerics.gauss_legendre import NODE_ERROR, ORDER, WEIGHT_ERROR, gauss_legendre
from hockeystick.numerics.rounding import ELEMENTARY, ERF, U, log_sums
from hockeystick.transforms.rule import Array, Cells, LossRule, Quadrature, Window, reversed_nodes
from hockeystick.transforms.summand import Summand

_MOST_PANELS = 1 << 11
_PLACES = np.linspace(0.0, 1.0, 97)  # where the length that a panel may have is looked at
_SPARE = 1.1  # times as many panels as these lengths ask for
_HIGHEST_ELLIPSE = 1.5  # in u; below pi / 2, up to where the argument of r grows with the height
_CELLS = 8.0  # to a unit of the noise
_MOST_CELLS = 1 << 15
_RHO = np.array([1.6, 2.0, 2.6, 3.4, 4.5, 6.0, 9.0, 14.0, 24.0])
_WIDE, _HIGH = 0.5 * (_RHO + 1.0 / _RHO), 0.5 * (_RHO - 1.0 / _RHO)  # semi-axes of the ellipses
_LOG_RATE = 2.0 * ORDER * np.log(_RHO) + np.log1p(-(_RHO**-2.0)) - math.log(64.0 / 15.0)
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class JoinedSummand(Summand):
    """The joined pair of a symmetric noise and the same moved by ``shift`` units, in batches of rate g below 1.

    Attributes
    ----------
    shift : float
        m, one rounding off.
    rate : float
        g.
    """

    shift: float
    rate: float

    @property
    @abstractmethod
    def bend(self) -> float:
        """k, to 4 u relative."""

    @property
    @abstractmethod
    def log_start(self) -> tuple[float, float]:
        """``ln f(0)`` and a bound on its error."""

    @property
    @abstractmethod
    def log_decided(self) -> tuple[float, float]:
        """``ln (P(u > 0) - Q(u > 0))`` and a bound on its error."""

    @abstractmethod
    def extent(self, powers: Array, window: Window) -> tuple[float, bool]:
        """Where the panels end, and whether mass beyond is left out."""

    def atom(self) -> tuple[Array, ...]:
        """Base loss of the largest atom, its error, ``ln`` of its mass under Q and the error of that: none or one."""
        return (np.zeros(0),) * 4

    def reversed(self) -> JoinedSummand:
        """Itself: P and Q trade places, and so do the sides."""
        return self

    @property
    def scale(self) -> float:
        """The shift."""
        return self.shift

    def rule(self, window: Window, count: float) -> LossRule | None:
        """The panels of both sides about loss 0; None where they would be too many."""
        exponents = np.array([*window.exponents, 0.0, 1.0])
        top, is_cut = self.extent(np.concatenate((exponents, 1.0 - exponents)), window)
        with np.errstate(over="ignore", invalid="ignore"):  # far out there is no rule
            edges = self._edges(exponents, top, window)
        if edges is None:
            return None
        above = self._side(edges)
        parts = zip(reversed_nodes(*above), self.middle(), above, strict=True)
        nodes = [np.concatenate((below[::-1], rest, side)) for below, rest, side in parts]
        quadrature = _JoinedPanels(self, edges, self.bend > 0.0 and not is_cut, nodes[0], nodes[2])
        cells = self._cells(top, window.cells) if window.cells else None
        found = LossRule.of_pair(*nodes, count=count, quadrature=quadrature, cells=cells)
        if not is_cut:
            return found
        dropped = np.exp(np.array([float(np.max(window.log_drop))])) * (1.0 + 1e-9) + 1e-300
        return replace(found, dropped=dropped)

    def middle(self) -> tuple[Array, ...]:
        """Loss 0 with its mass, as `atom`."""
        log_decided, decided_error = self.log_decided
        log_rest = math.log1p(-self.rate) + log_decided
        rest_error = decided_error + ELEMENTARY * abs(math.log1p(-self.rate)) + U * abs(log_rest)
        return tuple(np.array([number]) for number in (0.0, 0.0, log_rest, rest_error))

    def posterior(self, base: Array) -> Array:
        """``d ln r / du``, the weight of the record, increasing in u."""
        return np.exp(math.log(self.rate) + base - sampled_losses(base, self.rate))

    def log_density(self, base: Array) -> Array:
        """``ln f``."""
        return self.log_start[0] - 0.5 * base * (1.0 + self.bend * base)

    def _side(self, edges: Array) -> tuple[Array, ...]:
        """Losses above 0 and ``ln`` of their masses under Q, each with its errors."""
        nodes, weights = gauss_legendre()
        half, ends = 0.5 * np.diff(edges), np.repeat(edges[1:], ORDER)
        base = (column(0.5 * (edges[1:] + edges[:-1])) + column(half) * nodes).ravel()
        base_error = (8.0 * U + NODE_ERROR) * ends
        log_length = np.log((column(half) * weights).ravel())
        falls = 0.5 * base * (1.0 + self.bend * base)
        log_start, start_error = self.log_start
        log_q = log_length + log_start - falls
        error = start_error + base_error * (0.5 + self.bend * base) + 10.0 * U * falls
        error += WEIGHT_ERROR + 3.0 * U + ELEMENTARY * np.abs(log_length) + 2.0 * U * (np.abs(log_q) + falls)
        parts = zip((base, base_error, log_q, error), self.atom(), strict=True)
        base, base_error, log_q, error = (np.concatenate(both) for both in parts)
        loss = sampled_losses(base, self.rate)
        return loss, sampled_loss_error(loss, base, self.rate, base_error), log_q, error

    def _edges(self, exponents: Array, top: float, window: Window) -> Array | None:
        """The ends of panels short enough for the window, by what its integrands do near some places (a guide)."""
        u = top * _PLACES
        powers = column(np.concatenate((exponents, 1.0 - exponents)))
        frequency = np.zeros((2, exponents.size))
        frequency[:, 0] = window.frequency
        loss, q = sampled_losses(u, self.rate), self.posterior(u)
        logs = self.log_density(u) + powers * loss
        wanted = np.maximum(logs - column(logs.max(axis=1)) - max(float(np.max(window.log_accuracy)), -60.0), 0.0)
        slope = np.abs(powers * q - 0.5 - self.bend * u)
        turn = column(frequency.ravel()) * q
        curvature = self.bend + np.abs(powers) * q * (1.0 - q) + 1e-300
        spare = _LOG_RATE[:, None, None] - wanted
        wide, high = _WIDE[:, None, None], _HIGH[:, None, None]
        by_slope = 0.5 * spare / (wide * slope + high * turn + 1e-300)
        by_curvature = np.sqrt(0.5 * np.maximum(spare, 0.0) / curvature) / wide
        half = np.minimum(np.minimum(by_slope, by_curvature), _HIGHEST_ELLIPSE / high).max(axis=0).min(axis=0)
        density = 0.5 / np.maximum(half, 1e-9 * top)
        passed = np.concatenate(([0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(u))))
        if not passed[-1] <= _MOST_PANELS / _SPARE:
            return None
        panels = math.ceil(_SPARE * float(passed[-1])) + 1
        return np.interp(np.linspace(0.0, passed[-1], panels + 1), passed, u)

    def _cells(self, top: float, between: int) -> Cells:
        """The density of the losses below 0, then of those above, in cells of u."""
        count = min(math.ceil(_CELLS * top / self.shift) * between, _MOST_CELLS)
        u = top / count * np.arange(count + 1.0)
        loss, log_density = sampled_losses(u, self.rate), self.log_density(u)
        log_slope = math.log(self.rate) + u[1:] - loss[1:]  # ln(dl / du), increasing in u
        bends = np.array([0.25])  # of ln r at most
        return Cells(
            loss=np.concatenate((-loss[:0:-1], loss))[None],
            log_density=np.concatenate(((log_density + loss)[:0:-1], log_density))[None],
            log_slope=np.concatenate((log_slope[::-1], log_slope))[None],
            curvature=np.array([-self.bend]),
            curvature_p=bends,
            curvature_q=bends,
            square=np.array([(top / count) ** 2]),
        )


@final
@dataclass(frozen=True)
class JoinedGaussianSummand(JoinedSummand):
    """That of Gaussian noise."""

    leaves_out = True

    @property
    def bend(self) -> float:
        return 1.0 / (self.shift * self.shift)

    @property
    def log_start(self) -> tuple[float, float]:
        eighth, log_shift = 0.125 * self.shift * self.shift, math.log(self.shift)
        value = -eighth - log_shift - _LOG_SQRT_2PI
        return value, 5.0 * U * eighth + ELEMENTARY * abs(log_shift) + 2.0 * U * (2.0 + abs(log_shift) + abs(value))

    @property
    def log_decided(self) -> tuple[float, float]:
        value = math.log(float(erf(self.shift / math.sqrt(8.0))))
        return value, ERF + 4.0 * U + ELEMENTARY * abs(value)

    def extent(self, powers: Array, window: Window) -> tuple[float, bool]:
        """Beyond the tails of the integrands at all powers, or of P where these reach far beyond."""
        m = self.shift
        reach = m * float(powers.max()) + math.sqrt(-2.0 * float(np.min(window.log_accuracy))) + 0.5
        depth = math.sqrt(-2.0 * float(np.max(window.log_drop)))
        is_cut = m + depth < reach
        place = (m + depth) * (1.0 + 1e-9) if is_cut else reach
        return m * (place - 0.5 * m), is_cut


@dataclass(frozen=True)
class JoinedLaplaceSummand(JoinedSummand):
    """That of Laplace noise."""

    bend = 0.0

    @property
    def log_start(self) -> tuple[float, float]:
        value = -0.5 * self.shift - math.log(4.0)
        return value, U * self.shift + 2.0 * U * (2.0 + abs(value))

    @property
    def log_decided(self) -> tuple[float, float]:
        value = math.log(-math.expm1(-0.5 * self.shift))
        return value, 2.0 * ELEMENTARY + ELEMENTARY * abs(value)

    def extent(self, powers: Array, window: Window) -> tuple[float, bool]:
        """To the largest loss."""
        return self.shift, False

    def atom(self) -> tuple[Array, ...]:
        """At m."""
        log_q = -self.shift - math.log(2.0)
        places = self.shift, U * self.shift, log_q, U * self.shift + 2.0 * U * (1.0 + abs(log_q))
        return tuple(np.array([number]) for number in places)


@final
@dataclass(frozen=True, eq=False)
class _JoinedPanels(Quadrature):
    """The errors of the Gauss-Legendre rules of both sides, and what lies beyond the last panel.

    Attributes
    ----------
    of : JoinedSummand
        The law.
    edges : ndarray, shape (p + 1,)
        Ends of the panels in u.
    has_tail : bool
        Whether mass beyond the last panel is in the transform.
    loss, log_weight : ndarray, shape (n,)
        The rule.
    """

    of: JoinedSummand
    edges: Array
    has_tail: bool
    loss: Array
    log_weight: Array

    def error(self, exponents: Array) -> Array:
        """The sum over panels, each at the best of a few ellipses, shape (K, 1)."""
        return self._error(exponents, 0.0)

    def error_up_to(self, frequency: float, exponent: float, error: Array) -> Array:
        """The same at one exponent."""
        return np.asarray(self._error(np.array([exponent]), frequency)[0])

    def _error(self, exponents: Array, frequency: float) -> Array:
        whole = log_sums(self.log_weight + exponents[:, None] * self.loss)
        lost = np.logaddexp(self._log_lost(exponents, frequency), self._log_lost(1.0 - exponents, frequency))
        size = np.abs(self.log_weight).max() + np.abs(exponents) * np.abs(self.loss).max()  # of what may cancel
        share = np.exp(np.minimum(lost - whole + 1e-9 * (1.0 + np.abs(lost)) + 1e-12 * size, 0.0))
        # the moment is at least the sum of the rule less what is lost
        return np.where(share < 0.5, share / (1.0 - np.minimum(share, 0.5)), np.inf)[:, None]

    def _log_lost(self, powers: Array, frequency: float) -> Array:
        """``ln`` of a bound on the error of one side, shape (K,)."""
        at = self._panels
        e = powers[:, None, None]
        turning = np.maximum(e * at.least_posterior, e * at.most_posterior)
        rising = np.maximum(turning - 0.5 - self.of.bend * at.low, 0.0)
        turning = np.minimum(e * at.least_posterior, e * at.most_posterior)
        falling = np.maximum(0.5 + self.of.bend * at.high - turning, 0.0)
        largest = at.log_density + e * at.loss + at.reach * np.maximum(rising, falling)
        off = largest + np.maximum(-e, 0.0) * at.log_secant + frequency * at.argument + at.log_factor
        logs = off.min(axis=2)
        if self.has_tail:
            top = self.edges[-1:]
            fall = (0.5 + self.of.bend * top) * (1.0 - 1e-9) - np.maximum(powers, 0.0)  # the difference may cancel
            log_tail = self.of.log_density(top) + powers * sampled_losses(top, self.of.rate)
            with np.errstate(divide="ignore"):
                tail = np.where(fall > 0.0, log_tail - np.log(np.maximum(fall, 0.0)), np.inf)
            logs = np.append(logs, tail[:, None], axis=1)
        return log_sums(logs)

    @cached_property
    def _panels(self) -> _Ellipses:
        return _Ellipses.about(self.of, self.edges)


@final
@dataclass(frozen=True, eq=False)
class _Ellipses:
    """Ellipses about panels, rho along the last axis: what bounds the integrand there."""

    low: Array  # the ends in u, and how far they are from the centres
    high: Array
    reach: Array
    least_posterior: Array  # at these ends
    most_posterior: Array
    log_density: Array  # at the centres
    loss: Array
    log_secant: Array  # at most ``-ln (|r(u + iv)| / r(u))``
    argument: Array  # at most that of r
    log_factor: Array  # all that depends on no power

    @classmethod
    def about(cls, of: JoinedSummand, edges: Array) -> _Ellipses:
        """Those of all panels."""
        centre, half = 0.5 * (edges[1:] + edges[:-1])[:, None], 0.5 * np.diff(edges)[:, None]
        reach, height = half * _WIDE, half * _HIGH
        low, high = centre - reach, centre + reach
        is_high = height > _HIGHEST_ELLIPSE
        angle = np.minimum(height, _HIGHEST_ELLIPSE)
        most = np.minimum(of.posterior(high) * (1.0 + 1e-9), 1.0)
        log_factor = np.log(half) + 0.5 * of.bend * height * height - _LOG_RATE
        return cls(
            low,
            high,
            reach,
            of.posterior(low) * (1.0 - 1e-9),
            most,
            of.log_density(centre),
            sampled_losses(centre, of.rate),
            -np.log(np.cos(0.5 * angle)),
            record_argument(most, angle),
            np.where(is_high, np.inf, log_factor),
        )
