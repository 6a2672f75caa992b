"""The staircase pair: noise with steps of height e^{-eps} moved by an integer D, against the noise.

The noise (Geng and Viswanath 2016) has the density ``a e^{-n eps}`` at x, ``n = floor(|x| + 1 - gamma)``,

    a = (1 - e^{-eps}) / (2 (gamma + e^{-eps} (1 - gamma))),

so that the loss at x is ``(n(x) - n(x - D)) eps``: a multiple of eps, D eps from x = D on, -D eps up to x = 0. Between,
at x = j + u, 0 <= j < D and 0 < u < 1, with s = min(gamma, 1 - gamma):

    u < s:          n(x) = j,              k = 2j - D        Q-mass a s e^{-j eps}
    1 - s < u:      n(x) = j + 1,          k = 2j - D + 2    Q-mass a s e^{-(j + 1) eps}
    the rest:       n(x) = j + [gamma < 1/2],  k = 2j - D + 1    Q-mass a |1 - 2 gamma| e^{-n eps}

where k eps is the loss. The half-lines have the Q-masses 1/2 and e^{-D eps} / 2. P is Q mirrored about D/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from hockeystick.errors import check_count, check_fields, check_inside, check_positive
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import LossQuantum, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

_LARGEST_EPSILON = 700.0  # e^{-epsilon} is a normal float64


@final
@dataclass(frozen=True)
class StaircasePair(AtomicPair):
    """Staircase noise moved by ``sensitivity``, against the noise.

    Parameters
    ----------
    epsilon : float
        Above 0, at most 700 (nats): what the loss falls or rises by at a step.
    gamma : float
        Above 0 and below 1: where in each interval of length 1 the density steps down.
    sensitivity : int
        D, at least 1: the shift, in lengths of a step.

    Examples
    --------
    >>> StaircasePair(0.5, 0.25).loss_bounds
    (-0.5, 0.5)
    """

    epsilon: float
    gamma: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_fields(self, epsilon=check_positive, gamma=check_inside, sensitivity=check_count)
        if self.epsilon > _LARGEST_EPSILON:
            raise ValueError(
                f"epsilon must be at most {_LARGEST_EPSILON}, got {self.epsilon!r}: beyond that nothing is hidden"
            )

    def make_table(self) -> AtomTable:
        epsilon, gamma, shift = self.epsilon, self.gamma, self.sensitivity
        log_rise = math.log(-math.expm1(-epsilon))
        log_a = log_rise - math.log(2.0 * (gamma + math.exp(-epsilon) * (1.0 - gamma)))
        narrow, wide = math.log(min(gamma, 1.0 - gamma)), abs(1.0 - 2.0 * gamma)
        end = math.log(0.5 + math.exp(log_a + narrow))
        log_q = {2 * j - shift: math.log(2.0) + log_a + narrow - j * epsilon for j in range(1, shift)}
        log_q |= {-shift: end, shift: end - shift * epsilon}
        if wide > 0.0:
            step = 1 if gamma < 0.5 else 0
            log_q |= {2 * j - shift + 1: log_a + math.log(wide) - (j + step) * epsilon for j in range(shift)}
        index = np.array(sorted(log_q))
        logs = np.array([log_q[k] for k in index])
        # each is a sum of a few of these terms, all logarithms of numbers that are a few roundings off
        size = 2.0 + abs(log_rise) + abs(log_a) + abs(narrow) + abs(math.log(wide or 1.0)) + shift * epsilon
        loss = index * epsilon
        return AtomTable(
            loss,
            np.where(np.abs(index) > 2, U * np.abs(loss), 0.0),  # a float64 doubles exactly
            logs[::-1].copy(),
            logs,
            np.full(loss.size, 8.0 * ELEMENTARY * size),
            exact_losses=lambda: tuple(int(k) * Fraction(epsilon) for k in index),
        )

    @property
    def loss_quantum(self) -> LossQuantum | None:
        return LossQuantum(self.epsilon, 2.0 * U * self.sensitivity * self.epsilon)

    def reversed(self) -> Pair:
        return self  # mirror the line about D/2
