"""Privacy buckets: every loss of a pair rounded to a lattice point, up or down (000, sections 4.1 and 5.2; 002's grid).

A cell (l0, l1] with mass p under P becomes the mass p at l1 (up) or at l0 (down). What is below the lattice moves up
to its first point, or is dropped; what is above moves to infinity, or down to the last point.

Guarantee: upper and lower. delta(eps) is the mean of ``(1 - e^{eps - L})_+``, which grows with L, and so does that of
a composition, whose loss is a sum. A cut that is off by s leaves losses within s of the cell: the slack. Each step is
off by up to a whole cell, so that T steps are off by T cells, where connect-the-dots is off by the square of a cell:
buckets are here to compare with. Cost: one pass over the cells.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.pld import LatticePLD, Side
from hockeystick.laws.base import Array, Pair, least_infinite
from hockeystick.numerics.rounding import ELEMENTARY, U, exp_up, up


def bucket_cells(pair: Pair, grid: Grid, side: Side) -> GridCells:
    """The cells to make buckets of: atoms are cut a rounding error beyond the points, so that those on them stay."""
    if not pair.is_discrete:
        return GridCells.of(pair, grid)
    margin = 4.0 * float(pair.cells(grid.points[:1]).slack.max()) + 4.0 * U * float(np.abs(grid.points).max())
    cells = pair.cells(grid.points + (margin if side == "upper" else -margin))
    return GridCells(
        grid, replace(cells, slack=cells.slack + margin * (1.0 + 4.0 * U)), pair.mass_at_infinity, math.inf
    )


def buckets_up(on: GridCells) -> LatticePLD:
    """The pair with every loss rounded up to a point of the grid: an upper bound.

    Examples
    --------
    >>> from hockeystick.engines.lattice.grid import Grid, GridCells
    >>> from hockeystick.laws import GaussianPair
    >>> pld = buckets_up(GridCells.of(GaussianPair(1.0), Grid.covering(-8.0, 8.0, 0.25)))
    >>> pld.hockey_stick(1.0) > 0.12693673750664397
    True
    """
    log_p = on.cells.log_p + on.cells.error_p
    log_mass = _outward(np.append(log_p[:-1], -math.inf)[: on.grid.index.size], 1.0)
    log_beyond = float(log_p[-1])
    beyond = exp_up(log_beyond + 4.0 * U * abs(log_beyond)) if log_beyond > -math.inf else 0.0
    infinity = min(up(beyond + on.mass_at_infinity, 2.0 * U), 1.0) if beyond + on.mass_at_infinity > 0.0 else 0.0
    return LatticePLD("upper", on.grid.spacing, on.grid.index, on.grid.offset, log_mass, infinity, on.slack)


def buckets_down(on: GridCells) -> LatticePLD:
    """The pair with every loss rounded down to a point of the grid: a lower bound.

    Examples
    --------
    >>> from hockeystick.engines.lattice.grid import Grid, GridCells
    >>> from hockeystick.laws import GaussianPair
    >>> pld = buckets_down(GridCells.of(GaussianPair(1.0), Grid.covering(-8.0, 8.0, 0.25)))
    >>> 0.0 < pld.hockey_stick(1.0) < 0.12693673750664397
    True
    """
    log_mass = _outward((on.cells.log_p - on.cells.error_p)[1:], -1.0)
    infinity = least_infinite(on.mass_at_infinity)
    return LatticePLD("lower", on.grid.spacing, on.grid.index, on.grid.offset, log_mass, infinity, on.slack)


def _outward(log_mass: Array, sign: float) -> Array:
    """``log_mass`` moved outward by the rounding of one exponential of it."""
    return np.asarray(
        log_mass + sign * (2.0 * ELEMENTARY + 2.0 * U * np.abs(np.where(np.isfinite(log_mass), log_mass, 0.0)))
    )
