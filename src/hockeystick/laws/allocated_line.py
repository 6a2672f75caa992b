"""The stop-loss transform of a sum of t lognormal likelihood ratios, by the trapezoidal rule on a vertical line.

Symbols: S the sum of t independent W of a Gaussian step, V = W / e^l, so that the line is about k = t e^l, X the sum of
all V - 1, g(y) = E[(X - y)+; all V <= b], psi the transform of one term (`laws/lognormal_panels.py`), z_n = theta + i n
h, Lambda = 2 pi / h. By Poisson summation

    (h / 2 pi) sum_n e^{-z_n y} psi(z_n)^t / z_n^2 = sum_j e^{j theta Lambda} g(y + j Lambda),

every term at least 0. *Aliasing*: ``g(y - j Lambda) <= g(y) + j Lambda``, g(y) at most the left side; the terms above
obey Chernoff's bound ``g(y) <= psi(t')^t e^{-t'y} / (e t')`` at one tilt t' > theta, and vanish where ``y + Lambda >= t
(b - 1)``. *Tail*: with ``|psi| <= D`` beyond the last node, at s, it is at most ``D^t e^{-theta y} / (pi s)``. Terms
above b are counted apart, in closed form (`numerics/stop_loss.py`). For E (k - S)+ the same with -X and -y: then the
terms above vanish where ``Lambda - y >= t``.

Guarantee: both sides certified, rounding included. Proof: docs/derivations/random-allocation.md, section 6. Cost: some
hundred nodes of some hundred sines, however little the likelihood ratios vary; every further k near the reference costs
one row of cosines.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.laws.allocated_line_plan import LinePlan
from hockeystick.laws.lognormal_panels import LognormalPanels
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.normal import normal_intervals
from hockeystick.numerics.products import product
from hockeystick.numerics.rounding import ELEMENTARY, TRIGONOMETRIC, U, gamma
from hockeystick.numerics.stop_loss import RareTerms, lognormal_square


@final
class StopLossLine:
    """Certified bounds on ``E (S - k)+``, or on ``E (k - S)+``, of a sum of ``count`` independent lognormal W.

    Parameters
    ----------
    plan : LinePlan
        The line and the panels.
    shift : float
        m, within u of itself.
    count : int
        t, at least 2.
    reference : float
        l: answers are wanted about k = t e^l.
    below : bool
        Whether ``E (k - S)+`` is meant.
    """

    def __init__(self, plan: LinePlan, shift: float, count: int, *, reference: float, below: bool) -> None:
        self._plan, self._count, self._below, self._reference = plan, count, below, reference
        self._panels = LognormalPanels(shift, reference, plan.low, plan.top, plan.theta + plan.reach)
        self._rare = self._beyond_top(shift)
        self._nodes()
        self.steepness = plan.theta * count  # how fast the errors fall with ln k, about the reference: nats a nat

    def _beyond_top(self, shift: float) -> RareTerms:
        """What lies above b."""
        edges = np.array([self._plan.top, math.inf])
        centres = np.array([[0.0], [shift]])
        both = normal_intervals(edges, centres, U * centres)
        slope, offset = shift * self._plan.top, 0.5 * shift * shift
        last = math.exp(slope - offset) * (1.0 - 8.0 * U * (abs(slope) + offset) - 8.0 * ELEMENTARY)
        log_q, log_p = both.log_mass[:, 0].tolist()
        return RareTerms(
            log_q,
            log_p,
            float(both.error.sum()),
            last,
            mean=1.0,
            count=self._count,
            below=self._below,
            square=lognormal_square(shift),
        )

    def _nodes(self) -> None:
        """The integrand at the nodes without its factor ``e^{-zk}``, over its scale, and what it errs by."""
        plan, t = self._plan, self._count
        found = self._panels.line(plan.theta, plan.step, plan.count, mirrored=self._below)
        n = np.arange(plan.count)
        z = plan.theta + 1j * (plan.step * n)
        weight = np.where(n == 0, 0.5, 1.0) / np.abs(z) ** 2
        log, log_error = _log_one_plus(found.value)
        with np.errstate(under="ignore"):
            power = np.exp(np.maximum(t * log, -700.0))
            self._values = weight * power * np.exp(-2j * np.angle(z))
            modulus = np.abs(power) * (1.0 + 1e-6)
            # near 1 the logarithm of a rounded sum would be off by too much, t times over
            rise = np.where(
                log.real > -1.0,
                log.real + log_error + found.error * np.exp(-np.maximum(log.real, -1.0)),
                np.log(np.exp(log.real) + found.error),
            )
            grown = np.exp(np.minimum((t - 1.0) * rise, 700.0)) * (1.0 + 1e-6)
            own = np.expm1(np.minimum(t * log_error + U * t * np.abs(log) + 12.0 * TRIGONOMETRIC, 700.0)) * modulus
        self._error = float((weight * (t * found.error * grown + own)).sum())
        self._phase = float((weight * modulus * np.abs(z)).sum())  # what a point that is off costs
        self._size = float((weight * modulus).sum())
        log_far = math.log(self._panels.beyond(plan.theta, plan.reach, mirrored=self._below)) - found.log_scale
        log_far += found.log_scale_error + 8.0 * ELEMENTARY * (abs(log_far) + abs(found.log_scale))
        self._tail = 1.001 * math.exp(max(min(t * log_far, 700.0), -700.0)) / (plan.step * plan.reach)  # over h / pi
        self._log_scale = t * found.log_scale
        self._scale_error = t * found.log_scale_error * (1.0 + 1e-9) + 2.0 * U * abs(self._log_scale)
        self._centre = t * found.centre
        if not (math.isfinite(self._error + self._tail + self._log_scale) and self._scale_error < 0.01):
            raise PrecisionError("the transform of the sum is not known well enough")

    def bounds(self, losses: Array) -> tuple[Array, Array]:
        """Lower and upper bounds at every ``k = t e^loss``, arrays of the shape of ``losses``, at least 0."""
        losses = np.asarray(losses, dtype=np.float64)
        low, high = self._sides(losses)
        rare_low, rare_high = self._rare.bounds(self._count * np.exp(losses))
        return (low + rare_low) * (1.0 - 4.0 * U), (high + rare_high) * (1.0 + 4.0 * U)

    def _sides(self, losses: Array) -> tuple[Array, Array]:
        """Bounds on the restricted transform."""
        plan, sign = self._plan, -1.0 if self._below else 1.0
        away = losses - self._reference
        point = self._count * np.expm1(away)
        off = (12.0 + 2.0 * np.abs(away)) * U * np.abs(point)
        value = _summed(self._values, plan.step, sign * (point - self._centre))
        fixed = (
            self._error + self._tail + (gamma(6.0 * math.sqrt(plan.count) + 64.0) + 8.0 * TRIGONOMETRIC) * self._size
        )
        error = fixed + (off + 4.0 * U * (np.abs(point) + abs(self._centre))) * self._phase
        exponent = self._log_scale - sign * plan.theta * point + self._reference
        room = self._scale_error + plan.theta * (off + 4.0 * U * np.abs(point)) + 8.0 * U
        room = room + 4.0 * U * (np.abs(exponent) + abs(self._log_scale) + abs(self._reference))
        with np.errstate(over="ignore", under="ignore"):
            factor = np.exp(exponent) * (plan.step / math.pi)
            low = np.maximum(value - error, 0.0) * factor * (1.0 - room - 2.0 * ELEMENTARY)
            high = np.maximum(value + error, 0.0) * factor * (1.0 + 1.01 * room + 2.0 * ELEMENTARY) + 1e-300
        usable = np.isfinite(high) & (room < 0.01)
        low = np.where(usable, np.maximum(low - self._aliasing(point, high), 0.0), 0.0)
        return np.where(low > 1e-290, low * (1.0 - 4.0 * U), 0.0), np.where(usable, high, math.inf)

    def _aliasing(self, point: Array, high: Array) -> Array:
        """Upper bound on what the rule adds to what is at most ``high``."""
        plan, t, sign = self._plan, self._count, -1.0 if self._below else 1.0
        period, unit = 2.0 * math.pi / plan.step, math.exp(self._reference) * (1.0 + 1e-12)
        fall = plan.theta * period * (1.0 - 1e-12)
        ratio, rest = math.exp(-fall), -math.expm1(-fall)
        most = 0.0 - t if self._below else t * self._panels.top_excess  # the sum's end, for a sum from below with -1
        ended = period * (1.0 - 1e-12) >= sign * (most - point) + 1e-9 * (abs(most) + np.abs(point))
        far = self._log_far - sign * plan.tilt_above * point
        apart = (plan.tilt_above - plan.theta) * period * (1.0 - 1e-9)
        room = 1e-9 + 1e-12 * (abs(self._log_far) + plan.tilt_above * np.abs(point))
        # the factors alone may overflow, or be 0, where their product does not
        with np.errstate(over="ignore", invalid="ignore"):
            left = (high + unit * period / rest) * ratio / rest * (1.0 + 1e-9)
            right = np.exp(far + room - apart + self._reference) / -math.expm1(-apart) / (math.e * plan.tilt_above)
        return np.asarray(left + np.where(ended, 0.0, 1.001 * right))

    @cached_property
    def _log_far(self) -> float:
        """``ln psi(t')^t`` at the tilt t' above, rounded up."""
        tilt = self._plan.tilt_above
        value, error = self._panels.at(-tilt if self._below else tilt)
        log = self._count * math.log(value + error)
        return log + 4.0 * ELEMENTARY * abs(log)


def _summed(values: Complex, step: float, point: Array) -> Array:
    """The real part of ``sum values_n e^{-i n step point}``; with n = q B + r the exponential is a product."""
    inner = math.isqrt(values.size - 1) + 1
    rows = np.zeros((inner, inner), dtype=np.complex128)
    rows.ravel()[: values.size] = values
    fine = np.multiply.outer(point, step * np.arange(inner))
    coarse = np.multiply.outer(point, step * inner * np.arange(inner))
    turned = product(np.cos(fine) - 1j * np.sin(fine), rows.T)
    return np.asarray((turned.real * np.cos(coarse) + turned.imag * np.sin(coarse)).sum(axis=-1))


def _log_one_plus(
    value: Complex,
) -> tuple[Complex, Array]:
    """``ln(1 + value)`` and bounds on its absolute errors: large where 1 + value is lost."""
    real, imaginary = value.real, value.imag
    size = real * real + imaginary * imaginary
    square = np.maximum(2.0 * real + size, 4.0 * U - 1.0)  # of the modulus, less one
    log = 0.5 * np.log1p(square) + 1j * np.arctan2(imaginary, 1.0 + real)
    off = 4.0 * U * (2.0 * np.abs(real) + size + np.abs(imaginary)) / (1.0 + square)
    lost = np.where(off > 0.05, 2.0 + off, 1.1 * off)
    return log, lost + 2.0 * (ELEMENTARY + TRIGONOMETRIC) * np.abs(log)
