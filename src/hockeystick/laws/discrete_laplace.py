"""The discrete Laplace (two-sided geometric) pair: masses (1-r)/(1+r) r^|x| on the integers, r = e^{-1/b}, moved by D.

The loss at x is ``(|x| - |x - D|) / b``: -D/b for x <= 0, (2x - D)/b between, D/b for x >= D. Finitely many losses, all
multiples of 1/b: D + 1 atoms with Q-masses 1/(1+r), (1-r)/(1+r) r^x for 0 < x < D, and r^D/(1+r).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import check_count, check_fields, check_positive, check_ratio
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import LossQuantum, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

_LARGEST_SENSITIVITY = 10**7  # as many losses


@final
@dataclass(frozen=True)
class DiscreteLaplacePair(AtomicPair):
    """Discrete Laplace noise moved by ``sensitivity``, against the noise.

    Parameters
    ----------
    scale : float
        b > 0; the mass at x is proportional to e^{-|x|/b}.
    sensitivity : int
        D, at least 1 and at most 1e7.

    Examples
    --------
    >>> DiscreteLaplacePair(2.0).loss_bounds
    (-0.5, 0.5)
    """

    scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_fields(self, scale=check_positive, sensitivity=check_count)
        if self.sensitivity > _LARGEST_SENSITIVITY:
            raise ValueError(
                f"sensitivity must be at most {_LARGEST_SENSITIVITY:,}, got {self.sensitivity:,}; count in larger units"
            )
        check_ratio(self.sensitivity, self.scale)

    def make_table(self) -> AtomTable:
        b, shift = self.scale, self.sensitivity
        x = np.arange(shift + 1)
        loss = np.asarray((2.0 * x - shift) / b, dtype=np.float64)
        log_end = -math.log1p(math.exp(-1.0 / b))  # ln 1/(1+r)
        with np.errstate(divide="ignore"):
            log_inside = math.log(-math.expm1(-1.0 / b)) + log_end  # ln (1-r)/(1+r)
        log_q = log_inside - x / b
        log_q[0], log_q[-1] = log_end, log_end - shift / b
        log_p = log_q[::-1].copy()
        size = 1.0 + abs(log_inside) + shift / b
        one, scale = np.ones(loss.size), Fraction(b)
        error, slack = 8.0 * ELEMENTARY + 8.0 * U * size, 2.0 * U * shift / b
        return AtomTable(
            loss,
            slack * one,
            log_p,
            log_q,
            error * one,
            exact_losses=lambda: tuple((2 * k - shift) / scale for k in range(shift + 1)),
        )

    @cached_property
    def loss_quantum(self) -> LossQuantum | None:
        steps = 2.0 if self.sensitivity % 2 == 0 else 1.0
        # k (1/b) against k / b: two roundings of a number of that size
        return LossQuantum(steps / self.scale, 4.0 * U * self.sensitivity / self.scale)

    def reversed(self) -> Pair:
        return self  # mirror the line about D/2
