"""Where a lattice lies, and a pair's cells on it.

A ``Grid`` is the set of lattice points that one pair uses; ``GridCells`` are the pair's masses between them, from
which every kind of lattice PLD is built. Cells need not be equally wide: their ends are lattice points, that is all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.engines.ends import largest_loss
from hockeystick.errors import PrecisionError
from hockeystick.laws.base import CellMasses, Pair
from hockeystick.numerics.columns import Array, Indices
from hockeystick.numerics.rounding import U

_MOST = 1 << 27  # points: a gigabyte for each array of them
_FARTHEST = 2.0**50  # indices below it: their multiples of a spacing of few bits are exact


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """Lattice points ``offset + index * spacing``.

    Attributes
    ----------
    spacing : float
        Nats, above 0.
    index : ndarray of int64, shape (m,)
        Increasing.
    offset : float
        Where index 0 lies (nats).
    """

    spacing: float
    index: Indices
    offset: float = 0.0

    def __post_init__(self) -> None:
        if self.index.size < 2 or (np.diff(self.index) <= 0).any():
            raise ValueError("a grid needs at least two points, with increasing indices")

    @classmethod
    def covering(cls, low: float, high: float, spacing: float, *, offset: float = 0.0) -> Grid:
        """The smallest grid of equal cells whose ends lie at or beyond ``low`` and ``high`` (nats)."""
        if (high - low) / spacing > _MOST:
            raise PrecisionError(
                f"spacing {spacing!r} makes {(high - low) / spacing:.2g} points over {high - low:.3g} nats, more than"
                f" {_MOST}: use a larger spacing, or accountants.Certified"
            )
        if max(abs(low - offset), abs(high - offset)) / spacing > _FARTHEST:
            raise PrecisionError(
                f"spacing {spacing!r} is finer than float64 tells losses of {max(-low, high):.3g} nats apart: use a"
                " larger spacing, or accountants.Certified"
            )
        first, last = math.floor((low - offset) / spacing), math.ceil((high - offset) / spacing)
        return cls(spacing, np.arange(first, max(last, first + 1) + 1), offset)

    @cached_property
    def points(self) -> Array:
        """The points (nats), shape (m,)."""
        return np.asarray(self.offset + self.index * self.spacing)

    @cached_property
    def widths(self) -> Array:
        """Widths of the m - 1 cells (nats)."""
        return np.asarray(np.diff(self.index) * self.spacing)

    @property
    def rounding(self) -> float:
        """How far (nats) a computed point may lie from the true one; 0 where all is dyadic."""
        reach = float(np.abs(self.index).max()) + 1.0
        if math.frexp(self.spacing)[0] * 8.0 % 1.0 == 0.0 and self.offset == 0.0 and reach <= _FARTHEST:
            return 0.0  # of at most three bits
        return 2.0 * U * (reach * self.spacing + abs(self.offset))


@final
@dataclass(frozen=True, eq=False)
class GridCells:
    """The masses of a pair in the cells of a grid.

    Attributes
    ----------
    grid : Grid
        With m points.
    cells : CellMasses
        Shape (m + 1,): the tail below, the cells, the tail above.
    mass_at_infinity : float
        P(L = +inf), rounded up.
    largest_loss : float
        No finite loss is larger (nats).
    """

    grid: Grid
    cells: CellMasses
    mass_at_infinity: float
    largest_loss: float

    @classmethod
    def of(cls, pair: Pair, grid: Grid) -> GridCells:
        """Look at ``pair`` through its tails window."""
        return cls(grid, pair.cells(grid.points), pair.mass_at_infinity, largest_loss(((pair, 1),))[1])

    @cached_property
    def slack(self) -> float:
        """How far (nats) a loss may lie beyond the ends of its cell."""
        return float(self.cells.slack.max()) + self.grid.rounding

    @cached_property
    def mean_loss(self) -> Array:
        """``ln (P(cell) / Q(cell))`` less the lower end of the cell (nats), shape (m - 1,): between 0 and its width."""
        with np.errstate(invalid="ignore"):
            gap = self.cells.log_p[1:-1] - self.cells.log_q[1:-1] - self.grid.points[:-1]
        return np.where(np.isnan(gap), 0.0, gap)

    @cached_property
    def mean_error(self) -> Array:
        """Bound on the absolute error of ``mean_loss``, rounding of its differences included, shape (m - 1,)."""
        inner = slice(1, -1)
        size = np.abs(self.cells.log_p[inner]) + np.abs(self.cells.log_q[inner]) + np.abs(self.grid.points[:-1])
        size = np.where(np.isfinite(size), size, 0.0)
        return self.cells.error_p[inner] + self.cells.error_q[inner] + 4.0 * U * size
