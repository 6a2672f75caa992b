"""The worst pair of a generic (epsilon, delta)-DP mechanism, on four outcomes (Kairouz, Oh and Viswanath 2015).

    P = (delta, (1-delta) e^eps / (1 + e^eps), (1-delta) / (1 + e^eps), 0),    Q = P backwards,

with losses +inf, eps, -eps, -inf. Every pair of an (epsilon, delta)-DP mechanism is a post-processing of it, if the
guarantee holds in both orders.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from hockeystick.errors import check_fields, check_finite, check_probability
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import LossQuantum, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

LARGEST_EPSILON = 1e300


@final
@dataclass(frozen=True)
class WorstCasePair(AtomicPair):
    """The pair that dominates every (epsilon, delta)-DP mechanism.

    Parameters
    ----------
    epsilon : float
        At least 0 (nats).
    delta : float
        In [0, 1].

    Examples
    --------
    >>> WorstCasePair(1.0, 0.0).loss_bounds
    (-1.0, 1.0)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, epsilon=check_finite, delta=check_probability)
        if not 0.0 <= self.epsilon <= LARGEST_EPSILON:
            raise ValueError(f"epsilon must be at least 0 and at most {LARGEST_EPSILON:g}, got {self.epsilon!r}")

    def make_table(self) -> AtomTable:
        if self.delta == 1.0:
            return AtomTable.without_atoms(self.delta, self.delta)
        losses = (-self.epsilon, self.epsilon) if self.epsilon > 0.0 else (0.0,)
        top = math.log1p(-self.delta) - math.log1p(math.exp(-self.epsilon))
        error = 2.0 * ELEMENTARY * (1.0 + abs(top)) + 4.0 * U * (self.epsilon + abs(math.log1p(-self.delta)))
        log_p = np.array([top - self.epsilon, top] if self.epsilon > 0.0 else [math.log1p(-self.delta)])
        return AtomTable(
            np.array(losses),
            np.zeros(log_p.size),
            log_p,
            log_p[::-1],
            np.full(log_p.size, error),
            exact_losses=lambda: tuple(Fraction(loss) for loss in losses),
            infinite_p=self.delta,
            infinite_q=self.delta,
        )

    @property
    def loss_quantum(self) -> LossQuantum | None:
        return LossQuantum(self.epsilon if self.epsilon > 0.0 else 1.0, 0.0)

    def reversed(self) -> Pair:
        return self
