"""Random allocation of a step with few outcomes: how often each occurs in a round, listed.

With outcomes of likelihood ratios w_1 .. w_m and Q-masses q_1 .. q_m, a round of t steps is told by how often each
occurs: n_j times, of Q-mass ``t! / (n_1! .. n_m!) prod q_j^{n_j}`` and likelihood ratio ``sum_j n_j w_j / t``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Final, final

import numpy as np

from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

_MOST: Final = 1 << 12  # rows that are listed


@final
@dataclass(frozen=True)
class AllocatedAtomsPair(AtomicPair):
    """One round of t steps whose pair has few atoms.

    Parameters
    ----------
    base : Pair
        (P, Q) of one step, with a table of atoms.
    steps : int
        t, at least 1.

    Examples
    --------
    >>> from hockeystick.laws import DiscretePair
    >>> AllocatedAtomsPair(DiscretePair((0.75, 0.25), (0.25, 0.75)), 10).atoms.size
    11
    """

    base: Pair
    steps: int

    @staticmethod
    def serves(base: Pair, steps: int) -> bool:
        """Whether the outcomes can be listed, and Q has no mass where P has none."""
        atoms = base.atoms
        if atoms is None or atoms.size == 0 or atoms.infinite_q > 0.0 or atoms.dropped > 0.0:
            return False
        return math.comb(steps + min(atoms.size, 64) - 1, min(atoms.size, 64) - 1) <= _MOST

    def make_table(self) -> AtomTable:
        atoms, t = self.base.atoms, self.steps
        if atoms is None:
            raise TypeError(f"{self.base!r} has no table of atoms")
        m = atoms.size
        rows = list(combinations(range(t + m - 1), m - 1))
        bars = np.array(rows, dtype=np.int64).reshape(len(rows), m - 1)
        ends = np.full((bars.shape[0], 1), -1), np.full((bars.shape[0], 1), t + m - 1)
        counts = np.diff(np.concatenate((ends[0], bars, ends[1]), axis=1), axis=1) - 1
        log_ways = np.array([math.log(_ways([int(n) for n in row])) for row in counts])
        log_masses = counts @ atoms.log_q
        most = np.where(counts > 0, atoms.loss, -np.inf).max(axis=1)
        apart = np.exp(np.minimum(atoms.loss - most[:, None], 0.0))
        loss = most + np.log((counts * apart).sum(axis=1) / t)
        log_q = log_ways + log_masses
        # a mean of positive numbers, each an exponential of a loss that is off; the logarithm, and what the differences
        # are off by in that mean, are relative to how far it lies below the largest
        loss_error = float(atoms.loss_error.max()) + 2.0 * ELEMENTARY + (m + 4.0) * U
        loss_error = loss_error + 1.5 * ELEMENTARY * (np.abs(loss) + np.abs(most))
        size = np.abs(log_ways) + counts @ np.abs(atoms.log_q)
        error = t * float(atoms.error.max()) + (ELEMENTARY + (m + 4.0) * U) * size + loss_error + U * np.abs(loss)
        order = np.argsort(loss, kind="stable")
        log_p = log_q + loss
        return AtomTable(
            loss[order],
            loss_error[order],
            log_p[order],
            log_q[order],
            error[order] + 2.0 * U * np.abs(log_p[order]),
            infinite_p=atoms.infinite_p,
        )


def _ways(counts: list[int]) -> int:
    """The multinomial coefficient, exactly."""
    total, ways = 0, 1
    for n in counts:
        total += n
        ways *= math.comb(total, n)
    return ways
