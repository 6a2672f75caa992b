"""Pairs whose finite losses are finitely many atoms: the windows of a table."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import lru_cache

import numpy as np

from hockeystick.errors import UnknownPairError
from hockeystick.laws.atom_rules import MOST_ATOMS, AtomSummand
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import CellMasses, Extreme, Measure, Nodes, Pair
from hockeystick.numerics.columns import Array, Places
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.summand import Summand


@lru_cache(maxsize=4096)
def _table_of(pair: AtomicPair) -> AtomTable:
    """The table of a pair, made once for all equal ones."""
    return pair.make_table()


class AtomicPair(Pair):
    """A pair whose finite losses are finitely many atoms: a subclass makes their table, the windows are here."""

    is_discrete = True

    @abstractmethod
    def make_table(self) -> AtomTable:
        """The outcomes of finite loss."""

    @property
    def atoms(self) -> AtomTable:
        """The table, kept."""
        return _table_of(self)

    @property
    def mass_at_infinity(self) -> float:
        return self.atoms.infinite_p

    @property
    def reverse_mass_at_infinity(self) -> float:
        return self.atoms.infinite_q

    @property
    def infimum(self) -> Extreme:
        return self._end(0)

    @property
    def supremum(self) -> Extreme:
        return self._end(-1)

    def _end(self, index: int) -> Extreme:
        atoms = self.atoms
        return Extreme(float(atoms.loss[index]), float(atoms.loss_error[index])) if atoms.size else Extreme(0.0)

    @property
    def anchors(self) -> tuple[float, ...]:
        heaviest = np.argsort(-self.atoms.log_p, kind="stable")[:2]
        return tuple(float(loss) for loss in sorted(set(self.atoms.loss[heaviest]), reverse=True))

    def cells(self, losses: Array) -> CellMasses:
        atoms = self.atoms
        index = np.searchsorted(losses, atoms.loss, side="left")
        log_p, log_q = (_grouped(logs, index, losses.size + 1) for logs in (atoms.log_p, atoms.log_q))
        most = int(np.bincount(index, minlength=1).max()) if index.size else 1
        # summing n positive terms, each known to a relative error: n additions in the logarithm
        size = max(1.0, *(float(np.abs(logs).max(initial=0.0)) for logs in (atoms.log_p, atoms.log_q)))
        rounding = 0.0 if most <= 1 else most * (2.0 * ELEMENTARY + 4.0 * U * size)
        error = np.full(losses.size + 1, float(atoms.error.max(initial=0.0)) + rounding)
        slack = np.full(losses.size, float(atoms.loss_error.max(initial=0.0)))
        return CellMasses(log_p, log_q, error, error, slack)

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

    def summand(self) -> Summand:
        if not 0 < self.atoms.size <= MOST_ATOMS:
            raise UnknownPairError(
                f"no certified transform is known for {self!r}, of no finite loss or very many: use the certified"
                " lattice accountant"
            )
        return AtomSummand(self.atoms)

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        atoms = self.atoms
        logs, infinite = (atoms.log_p, atoms.infinite_p) if measure == "P" else (atoms.log_q, atoms.infinite_q)
        loss = np.append(atoms.loss, math.inf if measure == "P" else -math.inf)
        masses = np.append(np.exp(logs), infinite)
        return loss[rng.choice(loss.size, size=size, p=masses / masses.sum())]


def _grouped(logs: Array, index: Places, size: int) -> Array:
    """``ln`` of the sums of ``exp(logs)`` over equal, sorted indices."""
    out = np.full(size, -math.inf)
    if logs.size:
        starts = np.flatnonzero(np.diff(index, prepend=-1))
        lengths = np.diff(np.append(starts, logs.size))
        peaks = np.maximum.reduceat(logs, starts)
        sums = np.add.reduceat(np.exp(logs - np.repeat(peaks, lengths)), starts)
        out[index[starts]] = np.where(lengths == 1, logs[starts], peaks + np.log(sums))
    return out
