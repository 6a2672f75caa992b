"""Rules for discrete pairs: finite sums, every atom with the errors of its loss and mass; and the lattice they share.

A rational pair is evaluated in exact arithmetic up to one rounding of each ratio; other atomic pairs bring their own
error bounds. The discrete Gaussian has infinitely many atoms: those left out beyond either end fall at least
geometrically, since

    q_x e^{a l_x} = e^{-(x - aD)^2 / 2 s^2} * const.

Losses of all pairs that are, to within rounding, ``o_k + d n`` with integers n share the lattice d: then one period
of the transform is the whole of it (`hockeystick.engines.contour.lattice_line`).

Guarantee: every error stored bounds the true one (`docs/derivations/contour.md`, section 8).
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np

from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import Pair
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.laws.discrete_laplace import DiscreteLaplacePair
from hockeystick.laws.vectors import DiscretePair
from hockeystick.laws.worst_case import WorstCasePair
from hockeystick.numerics.rounding import ELEMENTARY, U, up
from hockeystick.transforms.rule import Array, LossRule, NoQuadrature, Quadrature, RuleSource, Window

__all__ = ["AtomBatch", "DiscreteGaussianRule", "FiniteAtoms", "atoms_of"]

_MOST_INTEGERS = 1 << 16


@final
@dataclass(frozen=True, eq=False)
class FiniteAtoms:
    """Outcomes of finite loss of one pair, arrays of shape (n,), losses increasing.

    Attributes
    ----------
    loss, loss_error : ndarray
        Losses (nats) and bounds on their errors.
    log_q, error : ndarray
        ``ln`` of the masses under Q and bounds on their absolute errors.
    precise : tuple of Fraction
        The losses to within `PRECISE`, so that a lattice is known better than its points are in float64.
    missing_p, missing_q : float
        One minus the finite masses, to one rounding.
    log_finite_p, log_finite_q : float
        ``ln P(L < inf)`` and ``ln Q(L > -inf)``, to 16 u relative.
    defect_p, defect_q : float
        How far the masses of P and of Q are from one, rounded up.
    """

    loss: Array
    loss_error: Array
    log_q: Array
    error: Array
    precise: tuple[Fraction, ...]
    missing_p: float = 0.0
    missing_q: float = 0.0
    log_finite_p: float = 0.0
    log_finite_q: float = 0.0
    defect_p: float = 0.0
    defect_q: float = 0.0

    def reversed(self) -> FiniteAtoms:
        """The same of (Q, P)."""
        log_p = self.log_q + self.loss
        error = self.error + self.loss_error + U * np.abs(log_p)
        return FiniteAtoms(
            -self.loss[::-1],
            self.loss_error[::-1],
            log_p[::-1],
            error[::-1],
            tuple(-loss for loss in reversed(self.precise)),
            missing_p=self.missing_q,
            missing_q=self.missing_p,
            log_finite_p=self.log_finite_q,
            log_finite_q=self.log_finite_p,
            defect_p=self.defect_q,
            defect_q=self.defect_p,
        )


@lru_cache(maxsize=4096)
def atoms_of(pair: Pair) -> FiniteAtoms | None:
    """The atoms of a discrete pair; None where they are not known well enough, very many, or without finite losses."""
    found = None
    if isinstance(pair, AtomicPair) and not 0 < pair.atoms.loss.size <= _MOST_INTEGERS:
        return None  # lattices do not mind how many
    if isinstance(pair, DiscretePair):
        if not any(a > 0 and b > 0 for a, b in zip(pair.p, pair.q, strict=True)):
            return None
        found = _rational(pair)
    elif isinstance(pair, WorstCasePair):
        delta = pair.delta  # at infinite loss, under either measure
        loss = Fraction(pair.epsilon)
        found = _stated(pair, delta, (-loss, loss) if pair.epsilon > 0.0 else (loss,))
    elif isinstance(pair, DiscreteLaplacePair):
        shift, scale = pair.sensitivity, Fraction(pair.scale)
        found = _stated(pair, 0.0, tuple((2 * x - shift) / scale for x in range(shift + 1)))
    return found


def _rational(pair: DiscretePair) -> FiniteAtoms:
    masses = [(Fraction(a), Fraction(b)) for a, b in zip(pair.p, pair.q, strict=True)]
    both = sorted((a / b, b) for a, b in masses if a > 0 and b > 0)
    losses, logs = [_log(ratio) for ratio, _ in both], [_log(mass) for _, mass in both]
    return FiniteAtoms(
        loss=np.array([value for value, _ in losses]),
        loss_error=np.array([error for _, error in losses]),
        log_q=np.array([value for value, _ in logs]),
        error=np.array([error for _, error in logs]),
        precise=tuple(_precise_log(ratio) for ratio, _ in both),
        missing_p=float(1 - sum(a for a, b in masses if b > 0)),
        missing_q=float(1 - sum(b for a, b in masses if a > 0)),
        log_finite_p=_log(Fraction(1 - sum(a for a, b in masses if b == 0)))[0],
        log_finite_q=_log(Fraction(1 - sum(b for a, b in masses if a == 0)))[0],
        defect_p=up(abs(float(1 - sum(a for a, _ in masses)))),
        defect_q=up(abs(float(1 - sum(b for _, b in masses)))),
    )


def _log(value: Fraction) -> tuple[float, float]:
    """``ln`` of a positive fraction and a bound on its error, relative to itself near 1."""
    if Fraction(1, 2) < value < 2:
        log = math.log1p(float(value - 1))
        return log, 8.0 * U * abs(log)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    log = math.log(float(value / Fraction(2) ** exponent)) + exponent * math.log(2.0)
    return log, 8.0 * U * (abs(log) + abs(exponent) + 1.0)


def _precise_log(value: Fraction) -> Fraction:
    """``ln`` of a positive fraction, to within `PRECISE`."""
    with decimal.localcontext(prec=70):
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def _stated(pair: AtomicPair, missing: float, precise: tuple[Fraction, ...]) -> FiniteAtoms:
    atoms = pair.atoms
    one = np.ones(atoms.loss.size)
    return FiniteAtoms(
        atoms.loss,
        atoms.slack * one,
        atoms.log_q,
        atoms.error * one,
        precise,
        missing_p=missing,
        missing_q=missing,
        log_finite_p=math.log1p(-missing),
        log_finite_q=math.log1p(-missing),
    )


@final
@dataclass(frozen=True, eq=False)
class AtomBatch(RuleSource):
    """Pairs with one number of atoms, stacked.

    Attributes
    ----------
    atoms : tuple of FiniteAtoms
        B of them.
    counts : ndarray, shape (B,)
        How often each is composed.
    """

    atoms: tuple[FiniteAtoms, ...]
    counts: Array

    @property
    def steps(self) -> float:
        """Sum of the counts."""
        return float(self.counts.sum())

    @property
    def scale(self) -> float:
        """The largest size of a loss."""
        return max(float(np.abs(atoms.loss).max()) for atoms in self.atoms)

    @property
    def largest_loss(self) -> float:
        """The sum of the largest losses, rounded up."""
        tops = [float(c * (a.loss[-1] + a.loss_error[-1])) for a, c in zip(self.atoms, self.counts, strict=True)]
        return math.fsum(tops) + 8.0 * U * math.fsum(map(abs, tops))

    @property
    def is_atomic(self) -> bool:
        """They are."""
        return True

    def precise(self, rule: LossRule) -> Sequence[tuple[Sequence[Fraction], float]]:
        """The losses of each pair to within `PRECISE`, and its count."""
        return [(atoms.precise, float(count)) for atoms, count in zip(self.atoms, self.counts, strict=True)]

    @property
    def log_finite(self) -> float:
        """``sum T ln(1 - p_inf)``."""
        return math.fsum(float(c) * a.log_finite_p for a, c in zip(self.atoms, self.counts, strict=True))

    @property
    def mass_defect(self) -> float:
        """``sum T |1 - sum p|``."""
        return math.fsum(float(c) * a.defect_p for a, c in zip(self.atoms, self.counts, strict=True)) * (1.0 + 8.0 * U)

    def rule(self, window: Window) -> LossRule:
        """The finite sums."""

        def stacked(name: str) -> Array:
            return np.array([getattr(atoms, name) for atoms in self.atoms])

        return LossRule(
            stacked("loss"),
            stacked("loss_error"),
            stacked("log_q"),
            stacked("error"),
            stacked("missing_p"),
            stacked("missing_q"),
            self.counts,
            quadrature=NoQuadrature(len(self.atoms)),
            cells=None,
            dropped=np.zeros(len(self.atoms)),
        )


@final
@dataclass(frozen=True, eq=False)
class _AtomTails(Quadrature):
    """What is left out of a discrete Gaussian beyond its first and last integer, relative to its largest term."""

    first: float
    last: float
    sigma: float
    shift: float
    log_weight: Array
    loss: Array

    def error(self, exponents: Array) -> Array:
        """The terms fall by ``e^{-(2 |x - a D| + 1) / 2 s^2}`` and more from one integer to the next, shape (K, 1)."""
        logs = self.log_weight + exponents[:, None] * self.loss
        largest = logs.max(axis=1)
        two = 2.0 * self.sigma * self.sigma
        total = np.zeros(exponents.size)
        for index, distance in ((-1, self.last - exponents * self.shift), (0, exponents * self.shift - self.first)):
            fall = (2.0 * distance + 1.0) / two * (1.0 - 1e-9)
            tail = 1.001 * np.exp(logs[:, index] - largest) / np.expm1(np.clip(fall, 1e-300, 700.0))
            total += np.where(fall > 0.0, tail, np.inf)
        return total[:, None]

    def error_up_to(self, frequency: float, exponent: float, error: Array) -> Array:
        """The same: no term is larger than on the real axis."""
        return error


@final
@dataclass(frozen=True, eq=False)
class DiscreteGaussianRule(RuleSource):
    """One discrete Gaussian pair and how often it is composed; the pair is its own reverse."""

    pair: DiscreteGaussianPair
    count: float

    @property
    def steps(self) -> float:
        """The count."""
        return self.count

    @property
    def scale(self) -> float:
        """Sensitivity over sigma."""
        return self.pair.sensitivity / self.pair.sigma

    @property
    def largest_loss(self) -> float:
        """There is none."""
        return math.inf

    @property
    def is_atomic(self) -> bool:
        """It is."""
        return True

    def precise(self, rule: LossRule) -> Sequence[tuple[Sequence[Fraction], float]]:
        """The losses of a rule, exact, and the count."""
        unit = Fraction(self.pair.sensitivity) / (2 * Fraction(self.pair.sigma) ** 2)
        first = round(float(rule.loss[0, 0]) / float(unit))
        return [([unit * (first + 2 * k) for k in range(rule.nodes)], self.count)]

    def rule(self, window: Window) -> LossRule | None:
        """A rule on the integers that matter; None where they are too many."""
        s, shift = self.pair.sigma, float(self.pair.sensitivity)
        reach = s * (math.sqrt(-2.0 * window.log_accuracy) + 1.0) + 2.0
        first = math.floor(min(0.0, *window.exponents) * shift - reach)
        last = math.ceil(max(1.0, *window.exponents) * shift + reach)
        if last - first > _MOST_INTEGERS:
            return None
        x = np.arange(first, last + 1.0)
        loss = shift / (2.0 * s * s) * (2.0 * x - shift)
        log_normaliser, normaliser_error = _log_normaliser(s)
        log_q = -x * x / (2.0 * s * s) - log_normaliser
        error = U * (6.0 * x * x / (2.0 * s * s) + 2.0 * np.abs(log_q)) + normaliser_error
        zero = np.zeros(1)
        return LossRule(
            loss[None],
            4.0 * U * np.abs(loss[None]),
            log_q[None],
            error[None],
            zero,
            zero,
            np.array([self.count]),
            quadrature=_AtomTails(first, last, s, shift, log_q, loss),
            cells=None,
            dropped=zero,
        )


def _log_normaliser(s: float) -> tuple[float, float]:
    """``ln sum_x e^{-x^2/2s^2}`` and a bound on its error; from s = 1 on by Poisson summation."""
    if s >= 1.0:
        # s sqrt(2 pi) (1 + 2 e^{-2 pi^2 s^2} + 2 e^{-8 pi^2 s^2} + ...): the third term is below 1e-34
        value = math.log(s) + 0.5 * math.log(2.0 * math.pi) + math.log1p(2.0 * math.exp(-2.0 * (math.pi * s) ** 2))
    else:
        value = math.log1p(2.0 * math.fsum(math.exp(-0.5 * (x / s) ** 2) for x in range(1, 41)))
    return value, 8.0 * ELEMENTARY * (1.0 + abs(value))
