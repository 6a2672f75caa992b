"""The lattice that discrete losses share: spacing, origin, and how far the losses lie off it.

Losses that are, to within rounding, ``o_k + d n`` with integers n share the lattice d, whichever pair they belong to.
They are given as fractions, so that the lattice is known better than its points are in float64.

Guarantee: ``slack`` bounds the distance of every sum of losses from its point. Cost: one pass of Euclid's algorithm
over the gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import U

_MOST_CELLS = 1 << 20
_SAME = 64.0 * U  # of the largest loss: how near a multiple of the lattice a loss must lie

PRECISE = 1e-60
"""Bound on the absolute error (nats) of a loss held as a fraction."""


@final
@dataclass(frozen=True, eq=False)
class SharedLattice:
    """Where all losses of a composition lie.

    Attributes
    ----------
    exact_spacing : Fraction
        d (nats).
    origin : Fraction
        The sum of the losses with index 0.
    slack : float
        Bound on the distance of any sum of losses from its point of the lattice (nats).
    indices : tuple of ndarray of int
        The index of every loss of every pair, in the order of the pairs.
    """

    exact_spacing: Fraction
    origin: Fraction
    slack: float
    indices: tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], ...]

    @cached_property
    def spacing(self) -> float:
        """d, rounded."""
        return float(self.exact_spacing)


def shared_lattice(losses: Sequence[tuple[Sequence[Fraction], float]]) -> SharedLattice | None:
    """The lattice on which all losses lie, to within rounding; None where there is none.

    Parameters
    ----------
    losses : sequence of (fractions, float)
        The losses of every pair, to within `PRECISE`, and how often it is composed.
    """
    rows = [np.array([float(loss - row[0]) for loss in row]) for row, _ in losses]
    size = max(float(np.abs(row).max()) for row in rows)
    gaps = np.unique(np.abs(np.concatenate(rows)))
    rough = _common_divisor(gaps[gaps > _SAME * size], _SAME * size)
    if rough is None:
        return None
    indices = [np.rint(row / rough).astype(np.int64) for row in rows]
    if any(float(np.ptp(index)) > _MOST_CELLS for index in indices):
        return None
    spacing = _spacing([row for row, _ in losses], indices, rough)
    slack, origin = 0.0, Fraction(0)
    for (row, count), index in zip(losses, indices, strict=True):
        off = max(abs(loss - row[0] - spacing * int(n)) for loss, n in zip(row, index, strict=True))
        slack += count * (float(off) + 2.0 * PRECISE) * (1.0 + 1e-12)
        origin += Fraction(count) * row[0]
    return SharedLattice(spacing, origin, slack, tuple(indices))


def _spacing(
    rows: Sequence[Sequence[Fraction]], indices: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.int64]]], rough: float
) -> Fraction:
    """The spacing from the two losses farthest apart, exact where the losses are."""
    ends = [(int(index.max() - index.min()), row, index) for row, index in zip(rows, indices, strict=True)]
    span, row, index = max(ends, key=lambda item: item[0])
    return (row[int(index.argmax())] - row[int(index.argmin())]) / span if span else Fraction(rough)


def _common_divisor(gaps: Array, tolerance: float) -> float | None:
    """The largest number of which all gaps are multiples within the tolerance, by Euclid; 1 where there is no gap."""
    if gaps.size == 0:
        return 1.0
    spacing = float(gaps.min())
    while True:
        rest = np.abs(gaps - np.rint(gaps / spacing) * spacing)
        rest = rest[rest > 4.0 * tolerance]
        if rest.size == 0:
            break
        spacing = float(rest.min())
        if spacing * _MOST_CELLS < float(gaps.max()):
            return None
    index = np.rint(gaps / spacing)
    return float((index @ gaps) / (index @ index))
