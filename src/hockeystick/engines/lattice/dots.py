"""Connect the dots: the least upper bound of a pair on a lattice (000, Algorithm 1 and Lemma 4.1).

Cell by cell. A cell (l0, l1] with masses p under P and q under Q becomes a mass v at l1 and u at l0 that keep both:
``u + v = p`` and ``u e^{-l0} + v e^{-l1} = q``. With the mean loss r = ln(p/q) of the cell,

    v / p = (1 - e^{-(r - l0)}) / (1 - e^{-(l1 - l0)}),        u = p - v,

which needs no second differences of the curve.

Guarantee: upper. Rounding p up and q down raises the chord that replaces the cell's part of the curve. Where a cut is
off by s, points just below l0 - s may belong to the cell: raising their loss to l0 means lowering q by a factor of at
most e^{-2s}, and then every loss is at most s above the lattice, which is the slack. Where the largest loss is that of
the last point but for a rounding, the rounding is slack too. Cost: one pass over the cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.engines.lattice.grid import GridCells
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.numerics.rounding import ELEMENTARY, U, up

_ON_POINT = 1e-13  # of a loss: how near an atom counts as on a point


def connect_the_dots(on: GridCells) -> LatticePLD:
    """The connect-the-dots lattice PLD: the best upper bound on these lattice points.

    Examples
    --------
    >>> from hockeystick.engines.lattice.grid import Grid, GridCells
    >>> from hockeystick.laws import GaussianPair
    >>> pld = connect_the_dots(GridCells.of(GaussianPair(1.0), Grid.covering(-8.0, 8.0, 0.25)))
    >>> 0.0 <= pld.total_mass - 1.0 < 1e-12
    True
    """
    width = on.grid.widths
    log_p = on.cells.log_p + on.cells.error_p  # p up
    rise = np.clip(on.mean_loss + (on.mean_error + 2.0 * on.slack), 0.0, width)  # q down
    # two expm1 and a quotient; too much for the top is too little for the bottom, which only raises losses
    to_top = np.minimum(np.expm1(-rise) / np.expm1(-width) * (1.0 + 3.0 * ELEMENTARY), 1.0)
    to_bottom = (1.0 - to_top) * (1.0 + 2.0 * U)
    n = on.grid.index.size
    from_below, from_above = np.full(n, -math.inf), np.full(n, -math.inf)
    with np.errstate(divide="ignore"):
        from_below[1:] = log_p[1:-1] + np.log(to_top) * (1.0 - ELEMENTARY)  # up: logarithms of shares are below 0
        from_above[:-1] = log_p[1:-1] + np.log(to_bottom) * (1.0 - ELEMENTARY)
    from_below[0] = log_p[0]  # everything below the lattice moves up to its first point
    top = _above(on, float(log_p[-1]))
    from_above[-1] = top.log_mass
    log_mass = np.logaddexp(from_below, from_above)
    # up: the sums before, of a mean size of at most one more than the result's, and that of the two masses
    log_mass += 2.0 * ELEMENTARY + 2.0 * U * np.abs(np.where(np.isfinite(log_mass), log_mass, 0.0))
    return LatticePLD("upper", on.grid.spacing, on.grid.index, on.grid.offset, log_mass, top.at_infinity, top.slack)


@final
@dataclass(frozen=True)
class _Top:
    """What lies above the last point: ``ln`` of the mass for it, the mass at infinity, and the slack of all points."""

    log_mass: float
    at_infinity: float
    slack: float


def _above(on: GridCells, log_p: float) -> _Top:
    """h(e^{l_max}) goes to infinity, the rest down; an atom a rounding above the last point stays on it."""
    infinity = on.mass_at_infinity
    if log_p == -math.inf:
        return _Top(-math.inf, min(infinity, 1.0), on.slack)
    top = float(on.grid.points[-1])
    beyond = (on.largest_loss - top) * (1.0 + 4.0 * U) + 2.0 * U * abs(top)
    if beyond <= _ON_POINT * (1.0 + abs(top)):
        return _Top(log_p, min(infinity, 1.0), max(on.slack, on.slack + beyond))
    rounding = float(on.cells.error_q[-1]) + 2.0 * on.slack + 4.0 * U * (abs(top) + abs(log_p)) + ELEMENTARY
    log_kept = min(float(on.cells.log_q[-1]) + top - rounding, log_p)  # e^{l_max} q, down
    lost = max(-math.expm1(log_kept - log_p), 0.0) + 4.0 * ELEMENTARY
    mass = up(math.exp(log_p + 4.0 * U * abs(log_p)) * min(lost, 1.0), 4.0 * ELEMENTARY)
    return _Top(log_kept, min(up(mass + infinity) if mass + infinity > 0.0 else 0.0, 1.0), on.slack)
