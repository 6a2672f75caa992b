"""Rules of laws made of atoms: finite sums, many laws of one number of atoms at once.

Losses of all laws that are, to within rounding, ``o_k + d n`` with integers n share the lattice d: then one period of
the transform is the whole of it (`hockeystick.transforms.lattice`).

Guarantee: every error stored bounds the true one (`docs/derivations/contour.md`, section 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast, final

import numpy as np

from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.kept_atoms import kept_atoms, may_be_cut
from hockeystick.transforms.rule import Array, LossRule, NoQuadrature, Quadrature, RuleSource, Window
from hockeystick.transforms.summand import Summand

_BATCH = 128  # laws in one rule
_FEW = 8  # of them, of many atoms: their arrays stay in the processor's cache
MOST_ATOMS = 1 << 16
"""Of one law; lattices do not mind how many."""


@final
@dataclass(frozen=True)
class AtomSummand(Summand):
    """The table of a law made of atoms, as a summand."""

    table: AtomTable

    def reversed(self) -> AtomSummand:
        """The table of (Q, P)."""
        return AtomSummand(self.table.reversed())

    def subsampled(self, rate: Fraction) -> AtomSummand:
        """The table of the sample."""
        return AtomSummand(self.table.subsampled(rate))

    def joined(self, rate: Fraction) -> Summand:
        """The table of the joined pair, where its mass at loss 0 is known well."""
        table = self.table.joined(rate)
        return super().joined(rate) if table is None else AtomSummand(table)

    @classmethod
    def sources(cls, group: Sequence[tuple[Summand, float]]) -> list[RuleSource]:
        """Batches of laws with one number of atoms, or with so many that few are kept."""
        sizes: dict[int, list[tuple[AtomTable, float]]] = {}
        for one, count in cast("Sequence[tuple[AtomSummand, float]]", group):
            sizes.setdefault(0 if may_be_cut(one.table) else one.table.size, []).append((one.table, count))
        for rows in sizes.values():
            rows.sort(key=lambda row: row[0].size)
        return [
            AtomBatch(tuple(table for table, _ in own), np.array([count for _, count in own]))
            for size, rows in sizes.items()
            for own in _pieces(rows, _BATCH if size else _FEW)
        ]


def _pieces(rows: list[tuple[AtomTable, float]], most: int) -> list[list[tuple[AtomTable, float]]]:
    return [rows[first : first + most] for first in range(0, len(rows), most)]


@final
@dataclass(frozen=True, eq=False)
class AtomBatch(RuleSource):
    """B laws with one number of atoms, stacked; or with many, of which those that matter to a window are.

    Attributes
    ----------
    tables : tuple of AtomTable
        B of them.
    counts : ndarray, shape (B,)
        How often each is composed.
    """

    tables: tuple[AtomTable, ...]
    counts: Array

    @property
    def steps(self) -> float:
        """Sum of the counts."""
        return float(self.counts.sum())

    @property
    def scale(self) -> float:
        """The largest size of a loss."""
        return max(float(np.abs(table.loss).max()) for table in self.tables)

    is_atomic = True

    @property
    def leaves_out(self) -> bool:
        """Where a table does."""
        return any(table.dropped > 0.0 for table in self.tables)

    def precise(self, rule: LossRule) -> Sequence[tuple[Sequence[Fraction], float]] | None:
        """The losses of each law, where all are known so well, and its count."""
        rows: list[tuple[Sequence[Fraction], float]] = []
        for table, count in zip(self.tables, self.counts, strict=True):
            if table.precise is None:
                return None
            rows.append((table.precise, float(count)))
        return rows

    def rule(self, window: Window) -> LossRule:
        """The finite sums."""
        tables: Sequence[AtomTable] = self.tables
        quadrature: Quadrature = NoQuadrature(len(tables))
        if may_be_cut(tables[0]):
            tables, quadrature = kept_atoms(tables, window)

        names = ("loss", "loss_error", "log_q", "error", "infinite_p", "infinite_q", "dropped")
        loss, loss_error, log_q, error, p, q, dropped = (
            np.array([getattr(one, name) for one in tables]) for name in names
        )
        nodes = loss, loss_error, log_q, error, p, q
        return LossRule(*nodes, self.counts, quadrature=quadrature, cells=None, dropped=dropped)
