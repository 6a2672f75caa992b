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
from hockeystick.transforms.rule import Array, LossRule, NoQuadrature, RuleSource, Window
from hockeystick.transforms.summand import Summand

__all__ = ["MOST_ATOMS", "AtomSummand"]

_BATCH = 128  # laws in one rule
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

    @classmethod
    def sources(cls, group: Sequence[tuple[Summand, float]]) -> list[RuleSource]:
        """Batches of laws with one number of atoms."""
        sizes: dict[int, list[tuple[AtomTable, float]]] = {}
        for one, count in cast("Sequence[tuple[AtomSummand, float]]", group):
            sizes.setdefault(one.table.size, []).append((one.table, count))
        return [
            AtomBatch(tuple(table for table, _ in rows[i : i + _BATCH]), np.array([n for _, n in rows[i : i + _BATCH]]))
            for rows in sizes.values()
            for i in range(0, len(rows), _BATCH)
        ]


@final
@dataclass(frozen=True, eq=False)
class AtomBatch(RuleSource):
    """B laws with one number of atoms, stacked.

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

    @property
    def is_atomic(self) -> bool:
        """They are."""
        return True

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

        def stacked(name: str) -> Array:
            return np.array([getattr(table, name) for table in self.tables])

        return LossRule(
            stacked("loss"),
            stacked("loss_error"),
            stacked("log_q"),
            stacked("error"),
            stacked("infinite_p"),
            stacked("infinite_q"),
            self.counts,
            quadrature=NoQuadrature(len(self.tables)),
            cells=None,
            dropped=stacked("dropped"),
        )
