"""Mean-preserving rounding: losses go to the nearest point of a grid, which is shifted so that the mean stays.

Source: Gopi, Lee and Wutschitz 2021, "Numerical composition of differential privacy", section 4.

The cells are centred on the points ``i h``; the points carry the cells' masses and lie at ``i h + m``, m the mean of
what rounding took off. The mean of a cell is not among the masses, but it is enclosed by them: given P(cell) and
Q(cell), the loss has its least mean where it is constant and its largest where it sits on the ends of the cell
(Jensen's inequality for the convex ``-ln``, in the variable e^{-L}). Cells are split in parts for that, the finer the
more mass there is.

Guarantee: none as a bound on the curve; what the rounding errors of a composition may do is bounded by Hoeffding's
inequality (`accountants/prv.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.errors import PrecisionError, shown
from hockeystick.laws.base import Pair
from hockeystick.numerics.columns import Indices
from hockeystick.numerics.rounding import ELEMENTARY, U, up
from hockeystick.transforms.node_sums import additions, node_sum

_FINEST, _UNIFORM = 8, 4
_PARTS = ((2e-3, 2), (2e-2, _FINEST))  # parts of a cell, but for those with so much of the mass on either side


@final
@dataclass(frozen=True)
class NearestLattice:
    """A mean-preserving lattice PLD with what is known about it.

    Attributes
    ----------
    pld : LatticePLD
        Masses of the cells, at the shifted points; the mass at infinity is the pair's, rounded up.
    mean_error : float
        Bound (nats) on the distance of the mean of a rounding error from 0.
    mass_error : float
        Bound on the error of the ln of every mass.
    mass_outside : float
        Finite losses beyond the ends of the grid: a bound on their mass under P, which the lattice leaves out.
    """

    pld: LatticePLD
    mean_error: float
    mass_error: float
    mass_outside: float


def nearest_points(pair: Pair, low: float, high: float, spacing: float) -> NearestLattice:
    """The pair on the points of a grid over [low, high], mean preserved.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> lattice = nearest_points(GaussianPair(1.0), -8.0, 9.0, 0.1)
    >>> abs(lattice.pld.offset) <= 0.05, lattice.mean_error < 1e-4
    (True, True)
    """
    h = spacing
    first, last = math.floor(low / h), max(math.ceil(high / h), math.floor(low / h) + 1)
    index, cell = _cuts(pair, first, last, h)
    grid = Grid(h / _FINEST, index)
    on = GridCells.of(pair, grid)
    p = np.exp(on.cells.log_p)
    inner = p[1:-1]
    width = grid.widths
    low_end = (index[:-1] - _FINEST * (first + cell)) * grid.spacing  # of every part, from the point it is rounded to
    least = np.clip(on.mean_loss, 0.0, width)
    most = width * np.minimum(np.expm1(-least) / np.expm1(-width), 1.0)
    total = float(node_sum(inner))
    if total == 0.0:
        raise PrecisionError(f"no loss of {shown(pair)} is finite and keeps its mass: use accountants.Certified")
    errors = on.mean_error + on.slack
    mean_low = float(node_sum(inner * (low_end + np.clip(least - errors, 0.0, None)))) / total
    with np.errstate(over="ignore"):  # where nothing is known of a mean
        most = np.clip(most + 2.0 * errors * np.exp(width), 0.0, width)
    mean_high = float(node_sum(inner * (low_end + most))) / total
    mass_error = float(
        (on.cells.error_p + U * np.abs(np.where(np.isfinite(on.cells.log_p), on.cells.log_p, 0.0)))[1:-1].max()
    )
    mass_error += ELEMENTARY + 4.0 * U
    offset = 0.5 * (mean_low + mean_high)
    # every distance is at most h / 2, so that sums of theirs and of masses are off by half of it for each addition
    sums = additions(inner.size) * U
    uncertain = 0.5 * (mean_high - mean_low) + h * (mass_error + 8.0 * U + sums) + on.slack
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    with np.errstate(divide="ignore"):
        log_mass = np.log(np.add.reduceat(inner, starts))
    mass_error += (4.0 + _FINEST) * U + ELEMENTARY * float(np.abs(log_mass[np.isfinite(log_mass)]).max())
    outside = float((p[[0, -1]] * np.exp(on.cells.error_p[[0, -1]])).sum()) * (1.0 + 1e-12)
    pld = LatticePLD(
        "upper",
        h,
        np.arange(first, last + 1),
        offset,
        log_mass,
        min(pair.mass_at_infinity, 1.0),
        on.slack,
    )
    return NearestLattice(pld, up(uncertain, 4.0 * U), mass_error, up(outside))


def _cuts(pair: Pair, first: int, last: int, spacing: float) -> tuple[Indices, Indices]:
    """The cuts that make the parts of the cells, in units of a finest part; and the cell of each part, from 0.

    Where a part has its mass inside is known to an eighth of its squared length, on average: as well, all in all, as
    from `_UNIFORM` parts of every cell, where those with next to no mass, of which there are many more, have fewer.
    """
    half = _FINEST // 2
    parts = np.ones(last - first + 1, dtype=np.int64)
    for share, number in _PARTS:
        ends = pair.loss_range(math.log(share), math.log(share))
        low, high = (min(max(round(end / spacing), first), last) - first for end in ends)
        parts[low : high + 1] = number
    if parts.sum() > _UNIFORM * parts.size:
        parts[:] = _UNIFORM
    cell = np.repeat(np.arange(parts.size), parts)
    within = np.arange(cell.size) - np.repeat(np.cumsum(parts) - parts, parts)
    cuts = _FINEST * (first + cell) - half + within * (_FINEST // parts[cell])
    return np.append(cuts, _FINEST * last + half), cell
