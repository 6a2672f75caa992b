"""Certified ``K(theta)`` of pairs that are finite sums: probability vectors and stated atoms.

    M = sum_i p_i e^{theta l_i},        M - 1 = sum_i p_i (e^{theta l_i} - 1) - p_inf

Guarantee: the stated errors bound the rounding, that of the losses and masses included. Cost: one exponential an atom
and tilt; rational probabilities are turned into floats once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from hockeystick.laws.atom_table import AtomTable as LawTable
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

__all__ = ["AtomTable", "atom_table"]

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


@lru_cache(maxsize=32)
def atom_table(pair: Pair) -> AtomTable | None:
    """The atoms of a pair; None where it has a density, or atoms without end."""
    return None if pair.atoms is None else _of_atoms(pair.atoms)


def _of_atoms(atoms: LawTable) -> AtomTable:
    missing = atoms.infinite_p
    return AtomTable(atoms.loss, atoms.log_p, atoms.loss_error, atoms.error, missing, 16.0 * U * missing)
