"""Rules for the transform of discrete Gaussian pairs, Poisson-subsampled or not, both orders.

The masses of the noise at x fall by ``e^{-(2x + 1) / 2 s^2}`` from one integer to the next, and ``r = 1 - g + g e^u``,
u = D (2x - D) / 2 s^2, grows by at most ``e^{D / s^2}``: so the terms ``q_x r^e`` of a transform fall at least
geometrically beyond the integers kept. Without sampling the integrand is a discrete Gaussian moved by e D,

    q_x e^{e u_x} = e^{-(x - eD)^2 / 2 s^2} * const,

and its transform that of a normal loss with replicas (`hockeystick.transforms.replicas`): among many lattices, or on a
very fine one, it counts as normal.

The pair of fixed-size sampling under substitution has the positive losses of one order, the negative ones of the other
(the line mirrored), and at loss 0 what is left of Q: ``(1 - g) Q(-D/2 < x <= D/2)``, since P(x > D/2) = Q(x > -D/2),
and for even D the mass at D/2 besides (`docs/derivations/fixed-size.md`).

Guarantee: every error stored bounds the true one (`docs/derivations/contour.md`, section 8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast, final

import numpy as np

from hockeystick.laws.sampled_loss import sampled_loss_error, sampled_losses
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.replicas import LatticeNormal
from hockeystick.transforms.rule import Array, LossRule, Quadrature, Window, reversed_nodes
from hockeystick.transforms.summand import SampledSummand, Summand

_MOST_INTEGERS = 1 << 16
_FINE = 4.0  # sigma, in integers, from which replicas of the transform lie 25 of its deviations apart


@final
@dataclass(frozen=True)
class DiscreteGaussianSummand(SampledSummand):
    """Discrete Gaussian noise of parameter sigma, moved by an integer sensitivity, sampled or not."""

    is_atomic = True

    sigma: float
    sensitivity: int

    @property
    def lattice_normal(self) -> LatticeNormal | None:
        """The loss ``D (2x - D) / 2 s^2`` of unsampled noise, D / s^2 apart; None where atoms are few."""
        if self.rate < 1.0 or self.sigma < _FINE:
            return None
        shift = self.sensitivity / self.sigma
        return LatticeNormal(shift * shift, 2.0 * math.pi * self.sigma / shift)

    def joined(self, rate: Fraction) -> Summand:
        """That of both orders joined at loss 0."""
        if self.rate < 1.0:
            return super().joined(rate)
        return JoinedDiscreteGaussianSummand(self.subsampled(rate))

    @property
    def scale(self) -> float:
        """Sensitivity over sigma."""
        return self.sensitivity / self.sigma

    def precise(self, rule: LossRule) -> Sequence[Fraction] | None:
        """Exact; not known so well where records are sampled."""
        if self.rate < 1.0:
            return None
        unit = Fraction(self.sensitivity) / (2 * Fraction(self.sigma) ** 2)
        first = round(float(rule.loss[0, 0]) / float(unit))
        return [unit * (first + 2 * k) for k in range(rule.nodes)]

    def half(self, window: Window, count: float) -> tuple[LossRule, _IntegerTails] | None:
        """The integers beyond D/2 of a rule, and what is left out beyond the last of them."""
        rule = self.rule(window, count)
        if rule is None:
            return None
        tails = cast("_IntegerTails", rule.quadrature)
        kept = tails.first + np.arange(rule.nodes) > 0.5 * self.sensitivity
        columns = {name: getattr(rule, name)[:, kept] for name in ("loss", "loss_error", "log_weight", "weight_error")}
        half = replace(rule, **columns)
        return half, replace(tails, first=-math.inf, log_weight=half.log_weight, loss=half.loss)

    def rule(self, window: Window, count: float) -> LossRule | None:
        """A rule on the integers that matter; None where they are too many."""
        s, shift, g = self.sigma, float(self.sensitivity), self.rate
        forward = self.order == "forward"
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
        nodes: tuple[Array, ...] = loss, loss_error, log_weight, error
        nodes = nodes if forward else reversed_nodes(*nodes)
        tails = _IntegerTails(first, last, self, nodes[2], nodes[0])
        return LossRule.of_pair(*nodes, count=count, quadrature=tails)


@final
@dataclass(frozen=True)
class JoinedDiscreteGaussianSummand(Summand):
    """The positive losses of a sampled pair, the negative ones of its reverse, and the rest at loss 0."""

    is_atomic = True

    above: DiscreteGaussianSummand

    def reversed(self) -> JoinedDiscreteGaussianSummand:
        """Itself: the line mirrored."""
        return self

    @property
    def scale(self) -> float:
        """That of one order."""
        return self.above.scale

    def rule(self, window: Window, count: float) -> LossRule | None:
        """The integers beyond D/2 of both orders, and the rest of Q at loss 0; None where they are too many."""
        halves = [one.half(window, count) for one in (self.above.reversed(), self.above)]
        if halves[0] is None or halves[1] is None:
            return None
        (low, low_tails), (high, high_tails) = halves[0], halves[1]
        log_rest, rest_error = self._rest()

        def joined(name: str, rest: float) -> Array:
            return np.concatenate((getattr(low, name), [[rest]], getattr(high, name)), axis=1)

        return replace(
            low,
            loss=joined("loss", 0.0),
            loss_error=joined("loss_error", 0.0),
            log_weight=joined("log_weight", log_rest),
            weight_error=joined("weight_error", rest_error),
            quadrature=_BothTails((low_tails, high_tails)),
        )

    def _rest(self) -> tuple[float, float]:
        """``ln`` of the mass at loss 0 and a bound on its error."""
        of = self.above
        s, shift = of.sigma, of.sensitivity
        log_z, z_error = log_normaliser(s)
        x = np.arange(-((shift - 1) // 2), shift // 2 + 1.0)  # -D/2 < x <= D/2
        log_q = -x * x / (2.0 * s * s) - log_z
        share = np.full(x.size, 1.0 - of.rate)
        if shift % 2 == 0:
            share[-1] = 2.0 - of.rate  # loss 0 itself
        # 1 - g is exact or one rounding off; each term is off by what its exponent is, and the exponential
        error = U * (6.0 * (shift / s) ** 2 + 2.0 * float(np.abs(log_q).max()) + x.size + 4.0) + z_error
        value = math.log(float((share * np.exp(log_q)).sum()))
        return value, error + 3.0 * ELEMENTARY + ELEMENTARY * abs(value)


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


@final
@dataclass(frozen=True, eq=False)
class _BothTails(Quadrature):
    """What is left out beyond the last integers of the two halves, relative to the largest term of either."""

    halves: tuple[_IntegerTails, _IntegerTails]

    def error(self, exponents: Array) -> Array:
        """Their sum, shape (K, 1)."""
        return self.halves[0].error(exponents) + self.halves[1].error(exponents)


def log_normaliser(s: float) -> tuple[float, float]:
    """``ln sum_x e^{-x^2/2s^2}`` and a bound on its error; from s = 1 on by Poisson summation."""
    if s >= 1.0:
        # s sqrt(2 pi) (1 + 2 e^{-2 pi^2 s^2} + 2 e^{-8 pi^2 s^2} + ...): the third term is below 1e-34
        value = math.log(s) + 0.5 * math.log(2.0 * math.pi) + math.log1p(2.0 * math.exp(-2.0 * (math.pi * s) ** 2))
    else:
        value = math.log1p(2.0 * math.fsum(math.exp(-0.5 * (x / s) ** 2) for x in range(1, 41)))
    return value, 8.0 * ELEMENTARY * (1.0 + abs(value))
