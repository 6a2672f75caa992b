"""The binomial pair: noise N ~ Bin(n, p) moved by D, against the noise (002, section 5.3).

With f the mass function, ``L(x) = ln f(x - D) - ln f(x) = sum_{j<D} ln((x-j) / (n-x+j+1)) + D ln((1-p)/p)``, increasing
in x. P has mass where Q has none (x > n), and Q where P has none (x < D): losses of +-inf.

Coefficients are computed as exact integers, one after the other. Cost: n multiplications of integers of n bits, once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np

from hockeystick.errors import check_count, check_fields, check_probability
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U, up

_LARGEST_TRIALS = 100_000


@final
@dataclass(frozen=True)
class BinomialPair(AtomicPair):
    """Bin(trials, probability) + sensitivity against Bin(trials, probability).

    Parameters
    ----------
    trials : int
        n, from 1 to 100,000.
    probability : float
        p, above 0 and below 1.
    sensitivity : int
        D, at least 1; from n + 1 on nothing is hidden.

    Examples
    --------
    >>> pair = BinomialPair(10, 0.5, 1)
    >>> pair.mass_at_infinity <= 1.0000001 / 1024
    True
    """

    trials: int
    probability: float = 0.5
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_fields(self, trials=check_count, probability=check_probability, sensitivity=check_count)
        if self.trials > _LARGEST_TRIALS:
            raise ValueError(
                f"trials must be at most {_LARGEST_TRIALS}, got {self.trials}; beyond that use DiscreteGaussian"
            )
        if not 0.0 < self.probability < 1.0:
            raise ValueError(
                f"probability must be above 0 and below 1, got {self.probability!r}: otherwise there is no noise"
            )

    def reversed(self) -> Pair:
        # even noise: mirror the line about (n + D) / 2
        return self if self.probability == 0.5 else super().reversed()

    def make_table(self) -> AtomTable:
        n, p, shift = self.trials, self.probability, self.sensitivity
        lost_p, lost_q = self._exact_tail(Fraction(p)), self._exact_tail(1 - Fraction(p))
        if shift > n:
            return AtomTable.without_atoms(lost_p, lost_q)
        x = np.arange(1, n + 1)
        logs = np.log(x / (n - x + 1.0))
        sums, sizes = (np.lib.stride_tricks.sliding_window_view(each, shift).sum(axis=1) for each in (logs, abs(logs)))
        loss = sums + shift * (math.log1p(-p) - math.log(p))
        # a rounding of each quotient and its logarithm, and of sums
        terms = sizes + shift * (abs(math.log1p(-p)) + abs(math.log(p)))
        slack = 1.01 * U * (shift + (shift + 8.0) * terms)
        size = n * (math.log(2.0) + abs(math.log(p)) + abs(math.log1p(-p))) + 1.0
        log_f, one = binomial_log_masses(n, math.log(p), math.log1p(-p)), np.ones(loss.size)
        error = 3.0 * ELEMENTARY * size
        return AtomTable(
            loss,
            slack,
            log_f[: n - shift + 1],
            log_f[shift:],
            error * one,
            infinite_p=lost_p,
            infinite_q=lost_q,
        )

    def _exact_tail(self, probability: Fraction) -> float:
        """Sum of f over the last ``sensitivity`` values of x for this success probability, rounded up."""
        n, p = self.trials, probability
        if self.sensitivity > n:
            return 1.0
        a, b, d = p.numerator, p.denominator - p.numerator, p.denominator
        total, term = 0, 1  # over a power of a, the sum and its next term: that many fewer than n successes
        for missing in range(self.sensitivity):
            total, term = total * a + term, term * b * (n - missing) // (missing + 1)
        return min(up(total * a ** (n - self.sensitivity + 1) / d**n), 1.0)  # a quotient of integers is rounded once


@lru_cache(maxsize=64)
def binomial_log_masses(trials: int, log_p: float, log_rest: float) -> Array:
    """``ln f(x)`` of Bin(n, p) for x in 0..n, given ``ln p`` and ``ln (1 - p)``."""
    n, half = trials, [0.0]
    coefficient = 1
    for x in range(1, n // 2 + 1):
        coefficient = coefficient * (n - x + 1) // x
        half.append(math.log(coefficient))
    logs = np.array(half + half[: n - n // 2][::-1])
    successes = np.arange(n + 1)
    masses = np.asarray(logs + successes * log_p + (n - successes) * log_rest)
    masses.setflags(write=False)
    return masses
