"""Certified ``K(theta)`` of pairs that are finite sums: probability vectors and stated atoms.

    M = sum_i p_i e^{theta l_i},        M - 1 = sum_i p_i (e^{theta l_i} - 1) - p_inf

Guarantee: the stated errors bound the rounding, that of the losses and masses included. Cost: one exponential an atom
and tilt; rational probabilities are turned into floats once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import final

import numpy as np

from hockeystick.laws.atom_table import AtomTable as LawTable
from hockeystick.laws.base import Array, Pair
from hockeystick.laws.reversed import ReversedPair
from hockeystick.laws.subsampled import SubsampledPair
from hockeystick.laws.vectors import DiscretePair
from hockeystick.numerics.rounding import ELEMENTARY, U, down, up

__all__ = ["AtomTable", "atom_table", "composed_infinity"]

_OVERFLOW = 600.0
_TINY = 1e-300  # absolute, what numbers below the normal range can lose


@final
@dataclass(frozen=True, eq=False)
class AtomTable:
    """The outcomes of finite loss under P.

    Attributes
    ----------
    loss, log_p : ndarray, shape (n,)
        Losses (nats) and ``ln`` of the masses.
    loss_error, log_error : ndarray, shape (n,)
        Bounds on their absolute errors.
    missing, missing_error : float
        One minus the sum of the masses, and a bound on its error.
    """

    loss: Array
    log_p: Array
    loss_error: Array
    log_error: Array
    missing: float
    missing_error: float

    def log_moments(self, tilts: Array) -> tuple[Array, Array]:
        """Certified lower and upper bounds of K at tilts of at least 0, shape (k,) each."""
        results = [self._log_moment(float(theta)) for theta in tilts]
        value, error = np.array([v for v, _ in results]), np.array([e for _, e in results])
        return value - error, value + error

    def _log_moment(self, theta: float) -> tuple[float, float]:
        """K and a bound on its error."""
        if self.loss.size == 0:
            return -math.inf, 0.0
        x = theta * self.loss
        if float(x.max()) < _OVERFLOW:
            value, error = self._near_one(theta, x)
            if error < 0.5:
                return value, error
        exponents = self.log_p + x
        peak = float(exponents.max())
        terms = np.exp(exponents - peak)
        total = math.fsum(terms)
        value = peak + math.log(total)
        each = self.log_error + theta * self.loss_error + U * (2.0 * np.abs(x) + 2.0 * np.abs(self.log_p) + 4.0)
        error = 1.01 * float(terms @ each) / total + 4.0 * ELEMENTARY + 4.0 * U * (abs(peak) + abs(value))
        return value, error

    def _near_one(self, theta: float, x: Array) -> tuple[float, float]:
        """K by the sum of M - 1."""
        p, grown = np.exp(self.log_p), np.expm1(x)
        terms = p * grown
        total = math.fsum(terms) - self.missing
        error = float((p * (grown + 1.0)) @ (theta * self.loss_error + 2.0 * U * np.abs(x)))
        error += float(np.abs(terms) @ (self.log_error + (2.0 * np.abs(self.log_p) + 16.0) * U))
        error = 1.01 * error + 4.0 * U * (abs(total) + abs(self.missing)) + self.missing_error + _TINY * (1.0 + theta)
        if not total - error > -0.5:
            return 0.0, math.inf
        value = math.log1p(total)
        return value, error / (1.0 + total - error) + 2.0 * ELEMENTARY * abs(value)


@singledispatch
def _vectors(pair: Pair) -> DiscretePair | None:  # noqa: ARG001 - the dispatch looks at it
    """The pair as two probability vectors; None where it is no such pair."""
    return None


@_vectors.register
def _(pair: DiscretePair) -> DiscretePair:
    return pair


@_vectors.register
def _(pair: SubsampledPair) -> DiscretePair | None:
    base = _vectors(pair.base)
    if base is None:
        return None
    g = Fraction(pair.rate)
    mixed = tuple((1 - g) * Fraction(q) + g * Fraction(p) for p, q in zip(base.p, base.q, strict=True))
    return DiscretePair(mixed, base.q)


@_vectors.register
def _(pair: ReversedPair) -> DiscretePair | None:
    base = _vectors(pair.base)
    return None if base is None else DiscretePair(base.q, base.p)


@lru_cache(maxsize=32)
def atom_table(pair: Pair) -> AtomTable | None:
    """The atoms of a pair; None where it has a density, or atoms without end."""
    vectors = _vectors(pair)
    if vectors is not None:
        return _of_vectors(vectors)
    return None if pair.atoms is None else _of_atoms(pair.atoms)


def _of_vectors(pair: DiscretePair) -> AtomTable:
    both = [(Fraction(p), Fraction(q)) for p, q in zip(pair.p, pair.q, strict=True) if p > 0 and q > 0]
    loss = np.array([_log_ratio(p, q) for p, q in both])
    log_p = np.array([_log_ratio(p, Fraction(1)) for p, _ in both])
    missing = float(1 - sum((p for p, _ in both), Fraction(0)))
    errors = 8.0 * U * np.abs(loss) + _TINY, 8.0 * U * np.abs(log_p) + _TINY
    return AtomTable(loss, log_p, *errors, missing, U * abs(missing))


def _of_atoms(atoms: LawTable) -> AtomTable:
    missing = atoms.infinite_p
    return AtomTable(atoms.loss, atoms.log_p, atoms.loss_error, atoms.error, missing, 16.0 * U * missing)


def _log_ratio(p: Fraction, q: Fraction) -> float:
    """``ln(p / q)`` to a relative error of 8 u, also where the ratio is near one."""
    ratio = p / q
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    if Fraction(1, 2**1000) < ratio < 2**1000:
        return math.log(float(ratio))
    return math.log(ratio.numerator) - math.log(ratio.denominator)


# ------------------------------------------------------------------------------------------------- infinite losses


def composed_infinity(parts: Sequence[tuple[Pair, int]]) -> tuple[float, float]:
    """Lower and upper bound of the mass of infinite losses of a composition.

    Probability vectors count with the mass they have, which need not be exactly one.
    """
    if not any(pair.mass_at_infinity for pair, _ in parts):
        return 0.0, 0.0
    log_total, log_finite = 0.0, 0.0
    for pair, count in parts:
        vectors = _vectors(pair)
        total, infinite = Fraction(1), Fraction(pair.mass_at_infinity)
        if vectors is not None:
            total = sum((Fraction(p) for p in vectors.p), Fraction(0))
            infinite = sum((Fraction(p) for p, q in zip(vectors.p, vectors.q, strict=True) if q == 0), Fraction(0))
        log_total += count * math.log1p(float(total - 1))
        log_finite += count * (math.log1p(-float(infinite / total)) if infinite < total else -math.inf)
    mass = -math.expm1(log_finite) * math.exp(log_total)
    relative = 1e-14 * (1.0 + abs(log_total)) + 1e-15 * len(parts)
    return (max(down(mass, relative), 0.0), min(up(mass, relative), 1.0)) if mass > 0.0 else (0.0, 0.0)
