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

from hockeystick.numerics.contour_rule import Array, Cells, LossRule, RuleSource, Window
from hockeystick.numerics.contour_strip import Ends, MixtureStrip, few_bits, strip_step
from hockeystick.numerics.rounding import ELEMENTARY, U

__all__ = ["SubsampledGaussians"]

_WIDEST_STEP = 1.5  # in units of the noise; beyond it nothing is gained
_MOST_NODES = 1 << 20  # in a batch
_LARGE = 30.0  # base losses from which ln r is taken as u + ln(g + (1 - g) e^-u)
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
        step = strip_step(own, window.frequency, window.log_accuracy, spread_p=m, spread_q=np.zeros_like(m), cross=m)
        step = few_bits(np.minimum(step, _WIDEST_STEP) * m)
        u = self._nodes(own, step, window.log_accuracy)
        if u is None:
            return None
        loss, loss_error = self._loss(u)
        log_weight, weight_error = self._log_weight(u, step)
        cells = self._cells(u, step, window.cells) if window.cells else None
        return self._assembled(u, step, (loss, loss_error), (log_weight, weight_error), cells)

    def _nodes(self, own: Array, step: Array, log_accuracy: float) -> Array | None:
        """Equally spaced base losses that cover the integrand at every power of r, shape (B, n); None if very many."""
        m, g = self.shift, self.rate
        reach = math.sqrt(-2.0 * log_accuracy) + 0.5
        # the integrand at power e is largest at t = e m q(u), q the posterior weight of the record: in [0, e m] for e
        # >= 0, in [e m g, 0] for e < 0
        low = np.minimum(own.min(), 0.0) * m * g - reach
        high = np.maximum(own.max(), 1.0) * m + reach
        first = np.floor((m * low - 0.5 * m * m) / step)
        last = np.ceil((m * high - 0.5 * m * m) / step)
        size = float((last - first).max()) + 1.0
        if not size * m.size <= _MOST_NODES:
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

    def _log_weight(self, u: Array, step: Array) -> tuple[Array, Array]:
        """``ln`` of step times the density of Q at u, and bounds on its error."""
        m = self.shift[:, None]
        t = u / m + 0.5 * m
        constant = np.log(step / self.shift)[:, None] - _LOG_SQRT_2PI
        value = constant - 0.5 * t * t
        error = U * (12.0 * t * t + 8.0 * np.abs(t) * m + 8.0 * (2.0 + np.abs(constant)) + 2.0 * np.abs(value))
        return value, error

    def _assembled(
        self, u: Array, step: Array, loss: tuple[Array, Array], weight: tuple[Array, Array], cells: Cells | None
    ) -> LossRule:
        m, g = self.shift, self.rate
        remove = self.direction == "remove"
        value, value_error = loss
        log_weight, weight_error = weight
        log_posterior = np.log(g)[:, None] + u - value  # ln(dl / du), increasing in u
        zero = np.zeros_like(m)
        ends = m * np.exp(log_posterior[:, [0, -1]].T) * np.array([[1.0 + 1e-9], [1.0 - 1e-9]])
        mixture = Ends(lowest=zero, at_low=np.minimum(ends[0], m), at_high=np.minimum(ends[1], m), highest=m)
        single = Ends(zero, zero, zero, zero)
        if not remove:
            log_weight, weight_error = log_weight + value, weight_error + value_error + U * np.abs(log_weight + value)
            value = -value
        strip = MixtureStrip(
            step=step / m,
            low=u[:, 0] / m + 0.5 * m,
            high=u[:, -1] / m + 0.5 * m,
            p=mixture if remove else single,
            q=single if remove else mixture,
            loss=value,
            log_weight=log_weight,
        )
        return LossRule(
            value, value_error, log_weight, weight_error, zero, zero, self.counts, quadrature=strip, cells=cells
        )

    def _cells(self, u: Array, step: Array, between: int) -> Cells:
        """The density of the loss, ``between`` cells to a step."""
        m = self.shift
        remove = self.direction == "remove"
        length = step / between
        fine = u[:, :1] + np.arange((u.shape[1] - 1) * between + 1) * length[:, None]
        loss, _ = self._loss(fine)
        log_density = -0.5 * np.square(fine / m[:, None] + 0.5 * m[:, None]) - (np.log(m) + _LOG_SQRT_2PI)[:, None]
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
