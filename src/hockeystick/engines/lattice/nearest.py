"""Mean-preserving rounding: losses go to the nearest point of a grid, which is shifted so that the mean stays.

Source: Gopi, Lee and Wutschitz 2021, "Numerical composition of differential privacy", section 4.

The cells are centred on the points ``i h``; the points carry the cells' masses and lie at ``i h + m``, m the mean of
what rounding took off. The mean of a cell is not among the masses, but it is enclosed by them: given P(cell) and
Q(cell), the loss has its least mean where it is constant and its largest where it sits on the ends of the cell
(Jensen's inequality for the convex ``-ln``, in the variable e^{-L}). The cells are split in four for that.

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
from hockeystick.numerics.rounding import ELEMENTARY, U, up

_SPLIT = 4  # parts of a cell; even, so that its middle is a cut


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
    half = _SPLIT // 2
    grid = Grid(h / _SPLIT, np.arange(_SPLIT * first - half, _SPLIT * last + half + 1))
    on = GridCells.of(pair, grid)
    p = np.exp(on.cells.log_p)
    inner = p[1:-1]
    step = h / _SPLIT
    # distance of the low end of every part from the point it is rounded to: -h/2, -h/4, 0, h/4, over and over
    low_end = np.tile((np.arange(_SPLIT) - half) * step, last - first + 1)
    least = np.clip(on.mean_loss, 0.0, step)
    most = step * np.minimum(np.expm1(-least) / math.expm1(-step), 1.0)
    total = math.fsum(inner)
    if total == 0.0:
        raise PrecisionError(f"no loss of {shown(pair)} is finite and keeps its mass: use accountants.Certified")
    errors = on.mean_error + on.slack
    mean_low = math.fsum(inner * (low_end + np.clip(least - errors, 0.0, None))) / total
    mean_high = math.fsum(inner * (low_end + np.clip(most + 2.0 * errors * math.exp(step), 0.0, step))) / total
    mass_error = float(
        (on.cells.error_p + U * np.abs(np.where(np.isfinite(on.cells.log_p), on.cells.log_p, 0.0)))[1:-1].max()
    )
    mass_error += ELEMENTARY + 4.0 * U
    offset = 0.5 * (mean_low + mean_high)
    uncertain = 0.5 * (mean_high - mean_low) + h * (mass_error + 8.0 * U) + on.slack
    with np.errstate(divide="ignore"):
        log_mass = np.log(inner.reshape(-1, _SPLIT).sum(axis=1))
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
    return NearestLattice(pld, up(uncertain, 4.0 * U), mass_error + 4.0 * U, up(outside))
