"""The atoms of a law that matter to the tilts of a window.

Tilted by an exponent e, the share of a law beyond a loss grows with e, and that below a loss falls. So what is left out
beyond both ends is, at all exponents between a smallest and a largest one, at most the share above at the largest and
the share below at the smallest.

Guarantee: the shares stored bound the true ones, rounding included. Cost: two products for each atom and window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from hockeystick.laws.atom_table import AtomTable
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.rule import Array, Quadrature, Window, few_bits_up

_MANY = 512  # atoms, of which those that matter are kept
_DOUBT = 1e-3  # of the logarithms of terms, within which shares are told
_COLUMNS = ("loss", "loss_error", "log_p", "log_q", "error")


@final
@dataclass(frozen=True, eq=False)
class KeptTails(Quadrature):
    """What is left out beyond the atoms kept, relative to the whole.

    Attributes
    ----------
    lowest, highest : float
        The exponents between which it is known.
    share : ndarray, shape (B,)
        Bound on it.
    """

    lowest: float
    highest: float
    share: Array

    def error(self, exponents: Array) -> Array:
        """The bound between the ends, shape (K, B)."""
        known = (exponents >= self.lowest) & (exponents <= self.highest)
        return np.where(known[:, None], self.share, np.inf)


def may_be_cut(table: AtomTable) -> bool:
    """Whether the atoms are many, and not wanted for a shared lattice."""
    return table.size >= _MANY and table.exact_losses is None


def kept_atoms(tables: Sequence[AtomTable], window: Window) -> tuple[list[AtomTable], KeptTails]:
    """As many atoms of each table, those that matter to a window among them, and what is left out."""
    exponents = (0.0, 1.0, *np.ravel(window.exponents).tolist())
    lowest, highest = min(exponents), max(exponents)
    share = math.exp(window.log_accuracy)
    found = [(_first_above(one.reversed(), 1.0 - lowest, share), _first_above(one, highest, share)) for one in tables]
    ends = [(one.size - below[0], above[0]) for one, (below, above) in zip(tables, found, strict=True)]
    enough = int(few_bits_up(np.array([max(last - first for first, last in ends)]))[0])
    size = min(enough, max(one.size for one in tables))
    kept = [_widened(one, first, last, size) for one, (first, last) in zip(tables, ends, strict=True)]
    return kept, KeptTails(lowest, highest, np.array([below[1] + above[1] for below, above in found]))


def _first_above(table: AtomTable, exponent: float, share: float) -> tuple[int, float]:
    """From which atom on the tilted law has at most the share asked for, and a bound on it: none where in doubt."""
    size, log_q = table.size, table.log_q
    most = max(-float(log_q.min()), 0.0) + abs(exponent) * max(-float(table.loss[0]), float(table.loss[-1]))
    doubt = float(table.error.max()) + abs(exponent) * float(table.loss_error.max()) + 4.0 * U * most
    if not doubt <= _DOUBT:
        return size, 0.0
    logs = log_q + exponent * table.loss
    most = float(logs.max())
    # beyond these are fewer than n terms, each at most that part of the largest one
    first = int(np.argmax(logs > most + math.log(share / size)))
    last = size - int(np.argmax(logs[::-1] > most + math.log(share / size)))
    terms = np.exp(logs[first:last] - most)
    beyond = np.cumsum(terms[::-1])
    last -= int(np.searchsorted(beyond, share * float(beyond[-1])))
    return last, 2.0 * share * (1.0 + 4.0 * _DOUBT) if last < size else 0.0


def _widened(table: AtomTable, first: int, last: int, size: int) -> AtomTable:
    """Atoms around some of a table, so many of them: where it has fewer, its last one comes in equal parts."""
    missing = max(size - table.size, 0)
    first = max(min(first - (size - (last - first)) // 2, table.size - size), 0)
    columns = {name: getattr(table, name)[first : first + size] for name in _COLUMNS}
    if missing:
        parts = math.log(missing + 1.0)
        columns = {name: np.append(column, np.full(missing, column[-1])) for name, column in columns.items()}
        divided = np.arange(size) >= size - missing - 1
        for name in ("log_p", "log_q"):
            columns[name] = columns[name] - parts * divided
        rounded = ELEMENTARY * parts + U * np.maximum(np.abs(columns["log_p"]), np.abs(columns["log_q"]))
        columns["error"] = columns["error"] + 1.01 * rounded * divided
    return replace(table, **columns)
