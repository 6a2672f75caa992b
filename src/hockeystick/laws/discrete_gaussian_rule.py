"""Rules for the transform of discrete Gaussian pairs, Poisson-subsampled or not, both orders.

The masses of the noise at x fall by ``e^{-(2x + 1) / 2 s^2}`` from one integer to the next, and ``r = 1 - g + g e^u``,
u = D (2x - D) / 2 s^2, grows by at most ``e^{D / s^2}``: so the terms ``q_x r^e`` of a transform fall at least
geometrically beyond the integers kept. Without sampling the integrand is a discrete Gaussian moved by e D,

    q_x e^{e u_x} = e^{-(x - eD)^2 / 2 s^2} * const.

Guarantee: every error stored bounds the true one (`docs/derivations/contour.md`, section 8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast, final

import numpy as np

from hockeystick.laws.sampled_loss import sampled_loss_error, sampled_losses
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.rule import Array, LossRule, Quadrature, RuleSource, Window
from hockeystick.transforms.summand import SampledSummand, Summand

__all__ = ["DiscreteGaussianSummand", "log_normaliser"]

_MOST_INTEGERS = 1 << 16


@final
@dataclass(frozen=True)
class DiscreteGaussianSummand(SampledSummand):
    """Discrete Gaussian noise of parameter sigma, moved by an integer sensitivity, sampled or not."""

    sigma: float
    sensitivity: int

    @classmethod
    def sources(cls, group: Sequence[tuple[Summand, float]]) -> list[RuleSource]:
        """One source a pair."""
        return [_Rules(one, count) for one, count in cast("Sequence[tuple[DiscreteGaussianSummand, float]]", group)]


@final
@dataclass(frozen=True, eq=False)
class _IntegerTails(Quadrature):
    """What is left out beyond the first and the last integer, relative to the largest term.

    Attributes
    ----------
    first, last : float
        The integers kept.
    of : DiscreteGaussianSummand
        Noise, sensitivity, rate and order.
    log_weight, loss : ndarray, shape (n,)
        The rule.
    """

    first: float
    last: float
    of: DiscreteGaussianSummand
    log_weight: Array
    loss: Array

    def error(self, exponents: Array) -> Array:
        """Geometric series at both ends, shape (K, 1)."""
        logs = self.log_weight + exponents[:, None] * self.loss
        largest = logs.max(axis=1)
        power = exponents if self.of.order == "forward" else 1.0 - exponents
        shift, two = float(self.of.sensitivity), 2.0 * self.of.sigma * self.of.sigma
        # a sample of the records flattens r on the one side, and may not lower it on the other
        above, below = (power, power) if self.of.rate == 1.0 else (np.maximum(power, 0.0), np.minimum(power, 0.0))
        total = np.zeros(exponents.size)
        for index, distance in ((-1, self.last - above * shift), (0, below * shift - self.first)):
            fall = (2.0 * distance + 1.0) / two * (1.0 - 1e-9)
            tail = 1.001 * np.exp(logs[:, index] - largest) / np.expm1(np.clip(fall, 1e-300, 700.0))
            total += np.where(fall > 0.0, tail, np.inf)
        return total[:, None]

    def error_up_to(self, frequency: float, exponent: float, error: Array) -> Array:
        """The same: no term is larger than on the real axis."""
        return error


@final
@dataclass(frozen=True, eq=False)
class _Rules(RuleSource):
    """One pair and how often it is composed."""

    of: DiscreteGaussianSummand
    count: float

    @property
    def steps(self) -> float:
        """The count."""
        return self.count

    @property
    def scale(self) -> float:
        """Sensitivity over sigma."""
        return self.of.sensitivity / self.of.sigma

    @property
    def is_atomic(self) -> bool:
        """It is."""
        return True

    def precise(self, rule: LossRule) -> Sequence[tuple[Sequence[Fraction], float]] | None:
        """The losses of a rule, exact, and the count; not known so well where records are sampled."""
        if self.of.rate < 1.0:
            return None
        unit = Fraction(self.of.sensitivity) / (2 * Fraction(self.of.sigma) ** 2)
        first = round(float(rule.loss[0, 0]) / float(unit))
        return [([unit * (first + 2 * k) for k in range(rule.nodes)], self.count)]

    def rule(self, window: Window) -> LossRule | None:
        """A rule on the integers that matter; None where they are too many."""
        s, shift, g = self.of.sigma, float(self.of.sensitivity), self.of.rate
        forward = self.of.order == "forward"
        powers = [e if forward else 1.0 - e for e in (0.0, 1.0, *window.exponents)]
        reach = s * (math.sqrt(-2.0 * window.log_accuracy) + 1.0) + 2.0
        first = math.floor(min(powers) * shift - reach)
        last = math.ceil(max(powers) * shift + reach)
        if last - first > _MOST_INTEGERS:
            return None
        x = np.arange(first, last + 1.0)
        base = shift / (2.0 * s * s) * (2.0 * x - shift)
        base_error = 4.0 * U * np.abs(base)
        loss = sampled_losses(base, g)
        loss_error = sampled_loss_error(loss, base, g, base_error) if g < 1.0 else base_error
        log_z, z_error = log_normaliser(s)
        log_weight = -x * x / (2.0 * s * s) - log_z
        error = U * (6.0 * x * x / (2.0 * s * s) + 2.0 * np.abs(log_weight)) + z_error
        if not forward:
            log_weight = log_weight + loss
            error = error + loss_error + U * np.abs(log_weight)
            loss = -loss
        zero = np.zeros(1)
        return LossRule(
            loss[None],
            loss_error[None],
            log_weight[None],
            error[None],
            zero,
            zero,
            np.array([self.count]),
            quadrature=_IntegerTails(first, last, self.of, log_weight, loss),
            cells=None,
            dropped=zero,
        )


def log_normaliser(s: float) -> tuple[float, float]:
    """``ln sum_x e^{-x^2/2s^2}`` and a bound on its error; from s = 1 on by Poisson summation."""
    if s >= 1.0:
        # s sqrt(2 pi) (1 + 2 e^{-2 pi^2 s^2} + 2 e^{-8 pi^2 s^2} + ...): the third term is below 1e-34
        value = math.log(s) + 0.5 * math.log(2.0 * math.pi) + math.log1p(2.0 * math.exp(-2.0 * (math.pi * s) ** 2))
    else:
        value = math.log1p(2.0 * math.fsum(math.exp(-0.5 * (x / s) ** 2) for x in range(1, 41)))
    return value, 8.0 * ELEMENTARY * (1.0 + abs(value))
