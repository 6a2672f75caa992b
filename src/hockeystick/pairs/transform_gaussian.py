"""Rules for the transform of Poisson-subsampled Gaussian pairs, both directions, many at once.

In the base loss ``u = m x / s - m^2 / 2`` (m = sensitivity / noise), Q is N(-m^2/2, m^2) and the subsampled loss is
``l = ln r(u)``, ``r(u) = 1 - g + g e^u``. The nodes are equally spaced in u, each an exact float, so the losses carry
only the rounding of ``ln r``. In units ``t = u / m + m / 2`` of the noise, P is the mixture of N(0, 1) and N(m, 1)
with weights 1 - g and g, and Q = N(0, 1): the strip bound of `hockeystick.numerics.contour_strip` applies. The
reversed pair has ``M_rev(z) = M(-1 - z)``: losses change sign and P and Q trade places.

Guarantee: every error stored bounds the true one (`docs/derivations/contour.md`, section 3). Cost: a few exponentials
and logarithms a node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import erfcx

from hockeystick.numerics.contour_rule import Array, Cells, LossRule, RuleSource, Window
from hockeystick.numerics.contour_strip import Ends, MixtureStrip, few_bits, half_widths, strip_step
from hockeystick.numerics.rounding import ELEMENTARY, ERFCX, U

__all__ = ["SubsampledGaussians"]

_WIDEST_STEP = 1.5  # in units of the noise; beyond it nothing is gained
_MOST_NODES = 1 << 20  # in a batch
_LONGEST = 1 << 14  # nodes of one pair
_MOST_CELLS = 1 << 16  # of one pair, where it has fewer nodes
_LARGE = 30.0  # base losses from which ln r is taken as u + ln(g + (1 - g) e^-u)
_BULK = np.arange(-9.0, 9.0, 0.5)[None, :]
_BEYOND = np.linspace(0.0, 1.0, 49)[None, :]
_OUTSIDE = np.concatenate((np.arange(0.0, 12.0, 0.4), 12.0 * 1.08 ** np.arange(40.0)))  # beyond the last node
_CUT_WIDTHS = (1.5, 0.8, 0.5, 0.3)  # in units of the noise; the widest that serves is taken
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@final
@dataclass(frozen=True, eq=False)
class SubsampledGaussians(RuleSource):
    """B pairs of one direction.

    Attributes
    ----------
    shift, rate, counts : ndarray, shape (B,)
        m (one rounding off), g, and how often each pair is composed.
    direction : {"remove", "add"}
        The mixture against the Gaussian, or the reverse.
    """

    shift: Array
    rate: Array
    counts: Array
    direction: str

    @property
    def steps(self) -> float:
        """Sum of the counts."""
        return float(self.counts.sum())

    @property
    def scale(self) -> float:
        """The largest shift."""
        return float(self.shift.max())

    @property
    def largest_loss(self) -> float:
        """``-sum T ln(1 - g)`` for the reversed pairs."""
        if self.direction == "remove":
            return math.inf
        return math.fsum(-self.counts * np.log1p(-self.rate)) * (1.0 + 16.0 * U)

    def rule(self, window: Window) -> LossRule | None:
        """Rules that serve the window; None where they would be too long."""
        m = self.shift
        exponents = np.array([0.0, 1.0, *window.exponents])
        own = exponents if self.direction == "remove" else 1.0 - exponents  # powers of r
        cut = self._cut(own, window)
        zero = np.zeros_like(m)
        turn = self._turn(float(own[2]), window.frequency, cut) if window.frequency > 0.0 else zero[:, None]
        step = strip_step(own, window.log_accuracy, spread_p=m, spread_q=zero, growth=cut.growth, log_turn=turn)
        step = few_bits(np.minimum(step, _WIDEST_STEP) * m)
        u = self._nodes(own, step, window.log_accuracy, cut)
        if u is None:
            return None
        between = min(window.cells, max(_MOST_CELLS // u.shape[1], 1))
        cells = self._cells(u, step, between, cut) if between else None
        return self._assembled(u, step, cut, cells)

    def _cut(self, own: Array, window: Window) -> _Cut:
        """Cut-offs far above all losses that matter, for the pairs where a large tilt would reach beyond them."""
        m = self.shift
        nowhere = _Cut(np.full_like(m, np.inf), np.ones_like(m), np.zeros_like(m))
        if self.direction == "add" or window.log_drop < -1e8:
            return nowhere
        largest = max(float(own.max()), 1.0)
        depth = math.sqrt(-2.0 * window.log_drop)
        natural = largest * m + math.sqrt(-2.0 * window.log_accuracy)
        if not (m + depth < natural).any():
            return nowhere
        width, place = np.full_like(m, np.nan), np.full_like(m, np.nan)
        for candidate in _CUT_WIDTHS:
            edge = m + math.sqrt(1.0 + 0.5 * candidate**2) * (1.0 + 1e-9) * depth
            open_still = np.isnan(width) & ((candidate == _CUT_WIDTHS[-1]) | self._is_tamed(largest, edge, candidate))
            width, place = np.where(open_still, candidate, width), np.where(open_still, edge, place)
        useful = place + 4.0 * width < natural
        dropped = math.exp(window.log_drop) * (1.0 + 1e-9) + 1e-300
        return _Cut(np.where(useful, place, np.inf), np.where(useful, width, 1.0), np.where(useful, dropped, 0.0))

    def _is_tamed(self, power: float, place: Array, width: float) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether the integrand at a power of r stays small beyond a cut-off (a guide)."""
        m = self.shift[:, None]
        weight = 2.0 / width**2
        peak = (power * m + weight * place[:, None]) / (1.0 + weight)
        t = place[:, None] + np.maximum(peak + 5.0 - place[:, None], 1.0) * np.linspace(0.1, 1.0, 64)
        loss, _ = self._loss(m * t - 0.5 * m * m)
        beyond = power * loss - 0.5 * t * t - np.square(t - place[:, None]) / width**2
        return np.asarray(beyond.max(axis=1) < -30.0)

    def _turn(self, power: float, frequency: float, cut: _Cut) -> Array:
        """About ``ln`` of the tilted mean of ``e^{s |arg r|}`` on every strip: what `_SampledStrip` will find."""
        m = self.shift
        b = half_widths(m, np.zeros_like(m))
        if frequency * float(m.max()) < 3.0:
            return frequency * m[:, None] * b
        high = cut.highest(np.maximum(power, 1.0) * m)[:, None] + 30.0
        t = np.concatenate((_BULK + np.zeros_like(high), 9.0 + np.maximum(high - 9.0, 1e-3) * _BEYOND), axis=1)
        loss, _ = self._loss(m[:, None] * t - 0.5 * (m * m)[:, None])
        logs = power * loss - 0.5 * t * t + np.log(np.gradient(t, axis=1))
        if cut.is_used:
            logs = logs + cut.log_factor(t, m[:, None])[0]
        logs = logs - np.logaddexp.reduce(logs, axis=1)[:, None]
        posterior = np.exp(np.log(self.rate)[:, None] + m[:, None] * t - 0.5 * (m * m)[:, None] - loss)
        turned = frequency * _argument(posterior[:, None], (m[:, None] * b)[:, :, None])
        return np.asarray(np.logaddexp.reduce(logs[:, None] + turned, axis=2))

    def _nodes(self, own: Array, step: Array, log_accuracy: float, cut: _Cut) -> Array | None:
        """Equally spaced base losses that cover the integrand at every power of r, shape (B, n); None if very many."""
        m, g = self.shift, self.rate
        reach = math.sqrt(-2.0 * log_accuracy) + 0.5
        # the integrand at power e is largest at t = e m q(u), q the posterior weight of the record: in [0, e m] for e
        # >= 0, in [e m g, 0] for e < 0
        low = np.minimum(own.min(), 0.0) * m * g - reach
        high = cut.highest(np.maximum(own.max(), 1.0) * m) + reach
        first = np.floor((m * low - 0.5 * m * m) / step)
        last = np.ceil((m * high - 0.5 * m * m) / step)
        size = float((last - first).max()) + 1.0
        if not (size * m.size <= _MOST_NODES and size <= _LONGEST):
            return None
        return np.asarray((first[:, None] + np.arange(size)) * step[:, None])

    def _loss(self, u: Array) -> tuple[Array, Array]:
        """``ln(1 - g + g e^u)`` and bounds on its error."""
        g = self.rate[:, None]
        inner = np.minimum(u, _LARGE)
        moved = g * np.expm1(inner)
        near = moved >= -0.5
        loss = np.log1p(np.maximum(moved, -0.5))
        error = 5.1 * U * np.abs(moved) / (1.0 + np.maximum(moved, -0.5)) + ELEMENTARY * np.abs(loss)
        if not near.all():  # only for g above a half, whose complement is exact
            far = np.log((1.0 - g) + g * np.exp(inner))
            loss = np.where(near, loss, far)
            error = np.where(near, error, 6.1 * U + ELEMENTARY * np.abs(far))
        large = u > _LARGE
        if large.any():
            rest = np.log(g + (1.0 - g) * np.exp(-np.maximum(u, _LARGE)))
            loss = np.where(large, u + rest, loss)
            error = np.where(large, 7.1 * U + ELEMENTARY * np.abs(rest) + U * np.abs(u + rest), error)
        return loss, error

    def _log_weight(self, u: Array, step: Array, cut: _Cut) -> tuple[Array, Array]:
        """``ln`` of step times the density of Q at u, cut off, and bounds on its error."""
        m = self.shift[:, None]
        t = u / m + 0.5 * m
        constant = np.log(step / self.shift)[:, None] - _LOG_SQRT_2PI
        value = constant - 0.5 * t * t
        error = U * (12.0 * t * t + 8.0 * np.abs(t) * m + 8.0 * (2.0 + np.abs(constant)) + 2.0 * np.abs(value))
        if cut.is_used:
            factor, factor_error = cut.log_factor(t, m)
            value = value + factor
            error = error + factor_error + U * np.abs(value)
        return value, error

    def _assembled(self, u: Array, step: Array, cut: _Cut, cells: Cells | None) -> LossRule:
        m = self.shift
        remove = self.direction == "remove"
        value, value_error = self._loss(u)
        log_weight, weight_error = self._log_weight(u, step, cut)
        log_posterior = np.log(self.rate)[:, None] + u - value  # ln(dl / du), increasing in u
        zero = np.zeros_like(m)
        ends = m * np.exp(log_posterior[:, [0, -1]].T) * np.array([[1.0 + 1e-9], [1.0 - 1e-9]])
        mixture = Ends(lowest=zero, at_low=np.minimum(ends[0], m), at_high=np.minimum(ends[1], m), highest=m)
        single = Ends(zero, zero, zero, zero)
        if not remove:
            log_weight, weight_error = log_weight + value, weight_error + value_error + U * np.abs(log_weight + value)
            value = -value
        low, high = u[:, 0] / m + 0.5 * m, u[:, -1] / m + 0.5 * m
        strip = _SampledStrip(
            step=step / m,
            low=low,
            high=high,
            p=mixture if remove else single,
            q=single if remove else mixture,
            loss=value,
            log_weight=log_weight,
            growth=cut.growth,
            fall=cut.fall(high),
            shift=m,
            posterior=np.exp(log_posterior),
            is_reversed=not remove,
        )
        return LossRule(
            value,
            value_error,
            log_weight,
            weight_error,
            zero,
            zero,
            self.counts,
            quadrature=strip,
            cells=cells,
            dropped=cut.dropped,
        )

    def _cells(self, u: Array, step: Array, between: int, cut: _Cut) -> Cells:
        """The density of the loss, ``between`` cells to a step."""
        m = self.shift
        remove = self.direction == "remove"
        length = step / between
        fine = u[:, :1] + np.arange((u.shape[1] - 1) * between + 1) * length[:, None]
        loss, _ = self._loss(fine)
        t = fine / m[:, None] + 0.5 * m[:, None]
        log_density = -0.5 * t * t - (np.log(m) + _LOG_SQRT_2PI)[:, None]
        if cut.is_used:
            log_density = log_density + cut.log_factor(t, m[:, None])[0]  # log-concave: it bends down only
        log_slope = np.log(self.rate)[:, None] + fine - loss  # ln(dl / du), increasing in u
        quarter, zero = np.full_like(m, 0.25), np.zeros_like(m)  # ln r bends by at most a quarter
        return Cells(
            loss=loss if remove else -loss,
            log_density=log_density if remove else log_density + loss,
            log_slope=log_slope[:, 1:],
            curvature=-1.0 / (m * m),
            curvature_p=quarter if remove else zero,
            curvature_q=zero if remove else quarter,
            square=length * length,
        )


def _argument(posterior: Array, angle: Array) -> Array:
    """The argument of ``1 - q + q e^{iv}``, between 0 and v < pi, increasing in q."""
    return np.arctan2(posterior * np.sin(angle), 1.0 - posterior + posterior * np.cos(angle))


@final
@dataclass(frozen=True, eq=False)
class _SampledStrip(MixtureStrip):
    """The strip of subsampled Gaussians, where the argument of r is small as long as the record is unlikely.

    At height v in u, ``arg r = arg(1 - q + q e^{iv})`` with q the posterior weight of the record, which increases in u.
    So the tilted mean of ``e^{s arg r}`` is at most the sum over cells of its value at the right end times the cell's
    mass, and that is at most its length times the larger density at its ends times ``e^{c eta^2 / 8}``, ``-c`` a lower
    bound on the second derivative of the log density. Beyond the last node the density falls.

    Attributes
    ----------
    shift : ndarray, shape (B,)
        m.
    posterior : ndarray, shape (B, n)
        q at the nodes.
    is_reversed : bool
        Whether the losses are those of the reversed pairs.
    """

    shift: Array
    posterior: Array
    is_reversed: bool

    def log_turn(self, exponents: Array, frequency: float, b: Array) -> Array:
        """As in the class's description, or ``s m b`` where that is less, shape (K, B, 8)."""
        simple = frequency * self.shift[:, None] * b * (1.0 + 1e-9)
        if float(simple.max()) < 3.0:
            return simple[None]
        angle = (self.shift[:, None] * b)[:, :, None]
        turned = frequency * (1.0 + 1e-9) * _argument(np.minimum(self.posterior * (1.0 + 1e-9), 1.0)[:, None], angle)
        outside = frequency * (1.0 + 1e-9) * _argument(self._posterior_outside()[:, None], angle)
        below, above = self.end_rates(exponents)
        plain = self.strip_error(exponents, 0.0)
        found = np.empty((exponents.size, *b.shape))
        for k, exponent in enumerate(exponents.tolist()):
            logs = self.log_weight + exponent * self.loss
            power = exponent if not self.is_reversed else 1.0 - exponent
            bend = 2.0 * self.growth + max(-power, 0.0) * self.shift * self.shift / 4.0
            cells = np.maximum(logs[:, 1:], logs[:, :-1]) + (bend * self.step * self.step / 8.0)[:, None]
            right = logs[:, -1:] + self._log_outside(power, above[k])
            with np.errstate(divide="ignore", invalid="ignore"):
                left = logs[:, 0] + np.where(below[k] > 0.0, -np.log(self.step * below[k]), np.inf)
            parts = (
                cells[:, None] + turned[:, :, 1:],
                left[:, None, None] + turned[:, :, :1],
                right[:, None, :-1] + outside[:, :, 1:],
                right[:, None, -1:] + simple[:, :, None],
            )
            doubt = 1e-9 * (1.0 + np.abs(logs).max(axis=1))[:, None]
            # the moment is at least the sum of the rule over one plus the strip error at frequency 0
            whole = np.logaddexp.reduce(logs, axis=1)[:, None] - np.log1p(plain[k])[:, None]
            found[k] = np.logaddexp.reduce(np.concatenate(parts, axis=2), axis=2) - whole + doubt
        return np.minimum(found, simple[None])

    def _posterior_outside(self) -> Array:
        """The posterior weight of the record at `_OUTSIDE` beyond the last node, rounded up, shape (B, x)."""
        last = np.minimum(self.posterior[:, -1:] * (1.0 + 1e-9), 1.0)
        odds = np.minimum(self.shift[:, None] * _OUTSIDE, 600.0)
        grown = last * np.exp(odds) * (1.0 + 1e-9)
        return np.asarray(np.where(self.shift[:, None] * _OUTSIDE > 600.0, 1.0, grown / (grown + (1.0 - last))))

    def _log_outside(self, power: float, rate: Array) -> Array:
        """``ln`` of the masses between the points of `_OUTSIDE`, and beyond, over the last weight, shape (B, x).

        It falls there, so that its value at the left end bounds each; ``r(u + mx) = r(u) (1 - q + q e^{mx})``.
        """
        last = np.clip(self.posterior[:, -1:] * (1.0 + math.copysign(1e-9, power)), 1e-300, 1.0)
        odds = self.shift[:, None] * _OUTSIDE
        beyond = odds + np.log(last) if power < 0.0 else odds  # on the safe side of ln(1 - q + q e^{mx})
        grown = np.where(odds < 600.0, np.log1p(last * np.expm1(np.minimum(odds, 600.0))), beyond)
        drop = (self.high + self.fall)[:, None] * _OUTSIDE + self.growth[:, None] * _OUTSIDE * _OUTSIDE
        inside = power * grown - drop * (1.0 - 1e-9)
        extent = np.empty_like(inside)
        extent[:, :-1] = np.diff(_OUTSIDE)
        with np.errstate(divide="ignore", invalid="ignore"):
            extent[:, -1] = 1.0 / rate
            return np.where(rate[:, None] > 0.0, inside + np.log(extent) - np.log(self.step)[:, None], np.inf)


@final
@dataclass(frozen=True, eq=False)
class _Cut:
    """Smooth cut-offs ``erfc((t - t_0) / w) / 2`` in units of the noise; t_0 infinite for none.

    Under N(0, 1) and N(m, 1) the cut-off leaves out a normal tail beyond t_0 - m of variance 1 + w^2 / 2. On
    ``|Im t| <= b`` it is at most ``e^{b^2/w^2}`` times its value on the line, and it is log-concave.

    Attributes
    ----------
    place, width : ndarray, shape (B,)
        t_0 and w.
    dropped : ndarray, shape (B,)
        Bounds on the mass left out, under P and under Q.
    """

    place: Array
    width: Array
    dropped: Array

    @property
    def is_used(self) -> bool:
        """Whether there is any."""
        return bool(np.isfinite(self.place).any())

    @property
    def growth(self) -> Array:
        """Half, and one over w^2 for the cut-off."""
        return np.where(np.isfinite(self.place), 0.5 + (1.0 + 1e-9) / self.width**2, 0.5)

    def highest(self, peak: Array) -> Array:
        """Where the integrand is largest, given where it would be without the cut-off."""
        weight = 2.0 / self.width**2
        place = np.where(np.isfinite(self.place), self.place, peak)
        return np.where(place < peak, (peak + weight * place) / (1.0 + weight), peak)

    def fall(self, high: Array) -> Array:
        """``-d ln / dt`` of the cut-off at and beyond a point, rounded down: at least 2 (t - t_0) / w^2."""
        return np.maximum(2.0 * (high - self.place) / self.width**2, 0.0) * (1.0 - 1e-9)

    def log_factor(self, t: Array, m: Array) -> tuple[Array, Array]:
        """``ln`` of the cut-off and a bound on its error; t carries three roundings of terms of its size and m's."""
        used = np.isfinite(self.place)[:, None]
        width = self.width[:, None]
        x = np.where(used, (t - np.where(used, self.place[:, None], 0.0)) / width, -30.0)
        size = np.abs(x)
        scaled = 0.5 * erfcx(size)
        beyond = np.log(scaled) - size * size
        before = np.log1p(-scaled * np.exp(-size * size))
        value = np.where(x > 0.0, beyond, before)
        slip = U * ((6.0 * np.abs(t) + 4.0 * m) / width + 4.0 * size)
        above = slip * (2.0 * size + 1.2) + ERFCX + ELEMENTARY * (1.0 + np.abs(np.log(scaled))) + 4.0 * U * size * size
        below = 1.2 * np.exp(-size * size) * (slip + ERFCX + 2.0 * ELEMENTARY + 4.0 * U * size * size)
        error = np.where(x > 0.0, above, below) + (ELEMENTARY + U) * np.abs(value)
        return value, np.where(used, error, 0.0)
