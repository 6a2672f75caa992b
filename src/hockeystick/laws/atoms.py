"""Pairs made of finitely many atoms, given by their losses and log masses with stated errors.

For noise on the integers whose masses are not rational. A subclass computes its ``Atoms`` once; the windows are here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.laws.base import Array, CellMasses, LossQuantum, Measure, Nodes, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

__all__ = ["AtomicPair", "Atoms"]


@final
@dataclass(frozen=True, eq=False)
class Atoms:
    """Outcomes of finite loss.

    Attributes
    ----------
    loss : ndarray, shape (n,)
        Nondecreasing (nats).
    log_p, log_q : ndarray, shape (n,)
        ``ln`` of their masses; finite.
    error : float
        Bound on the absolute error of every log mass.
    slack : float
        Bound on the error of every loss (nats).
    """

    loss: Array
    log_p: Array
    log_q: Array
    error: float
    slack: float


class AtomicPair(Pair):
    """A pair whose finite losses are the atoms that a subclass states."""

    @property
    @abstractmethod
    def atoms(self) -> Atoms:
        """The outcomes of finite loss."""

    @property
    def is_discrete(self) -> bool:
        return True

    @property
    def loss_bounds(self) -> tuple[float, float]:
        loss = self.atoms.loss
        return (float(loss[0]), float(loss[-1])) if loss.size else (0.0, 0.0)

    @cached_property
    def anchors(self) -> tuple[float, ...]:
        heaviest = np.argsort(-self.atoms.log_p, kind="stable")[:2]
        return tuple(float(loss) for loss in sorted(set(self.atoms.loss[heaviest]), reverse=True))

    @property
    def loss_quantum(self) -> LossQuantum | None:
        return None

    def cells(self, losses: Array) -> CellMasses:
        atoms = self.atoms
        index = np.searchsorted(losses, atoms.loss, side="left")
        log_p, log_q = (_grouped(logs, index, losses.size + 1) for logs in (atoms.log_p, atoms.log_q))
        largest = int(np.bincount(index, minlength=1).max()) if index.size else 1
        # summing n positive terms, each known to a relative error: n additions in the logarithm
        size = max(1.0, *(float(np.abs(logs).max(initial=0.0)) for logs in (atoms.log_p, atoms.log_q)))
        rounding = 0.0 if largest <= 1 else math.ceil(largest) * (2.0 * ELEMENTARY) + 4.0 * U * size * largest
        error = np.full(losses.size + 1, atoms.error + rounding)
        return CellMasses(log_p, log_q, error, error, np.full(losses.size, atoms.slack))

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        logs = self.atoms.log_p if measure == "P" else self.atoms.log_q
        if logs.size == 0:
            return self.loss_bounds
        low = int(np.searchsorted(np.logaddexp.accumulate(logs), log_below))
        high = logs.size - 1 - int(np.searchsorted(np.logaddexp.accumulate(logs[::-1]), log_above))
        low, high = min(low, logs.size - 1), max(high, 0)
        return float(self.atoms.loss[min(low, high)]), float(self.atoms.loss[max(low, high)])

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        return Nodes(self.atoms.loss, self.atoms.log_p, self.atoms.log_q)

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        logs, infinite = (
            (self.atoms.log_p, self.mass_at_infinity)
            if measure == "P"
            else (self.atoms.log_q, self.reverse_mass_at_infinity)
        )
        loss = np.append(self.atoms.loss, math.inf if measure == "P" else -math.inf)
        masses = np.append(np.exp(logs), infinite)
        return loss[rng.choice(loss.size, size=size, p=masses / masses.sum())]


def _grouped(logs: Array, index: np.ndarray[tuple[int], np.dtype[np.intp]], size: int) -> Array:
    """``ln`` of the sums of ``exp(logs)`` over equal, sorted indices."""
    out = np.full(size, -math.inf)
    if logs.size:
        starts = np.flatnonzero(np.diff(index, prepend=-1))
        lengths = np.diff(np.append(starts, logs.size))
        peaks = np.maximum.reduceat(logs, starts)
        sums = np.add.reduceat(np.exp(logs - np.repeat(peaks, lengths)), starts)
        out[index[starts]] = np.where(lengths == 1, logs[starts], peaks + np.log(sums))
    return out
