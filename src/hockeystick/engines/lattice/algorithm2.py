"""The optimistic lattice of 000, Algorithm 2 and Theorem 5.4: tangents at the lattice points, then the convex hull.

The candidate at a_i = e^{l_i} is the value there of the tangent of the hockey-stick curve h at the neighbour on the
far side of 1: ``t_{i-1}(a_i)`` up to i*, where a_{i*} = 1, and ``t_{i+1}(a_i)`` from there on, t_i(a) = P(L > l_i) -
a Q(L > l_i). The first point takes the tangent at a = 0, the last one 0, i* the smaller of both; the lower convex
hull of the candidates is the bound.

In masses, without differences of h: a cell (l0, l1] below 1, with masses p and q, is *extrapolated* to the next two
points a_1 and a_2 on the side of 1 so that both masses stay, with -d at a_2 and q + d at a_1, d = (a_1 q - p) / (a_2
- a_1) >= 0 (Q-masses; the P-mass is a times that); above 1 likewise to the two points below the cell. The two cells
around 1 are one cell around its point, with A = (p - q)_+ taken from the point below and B = (q - p)_+ from the one
above. Connect-the-dots interpolates where this extrapolates. The hull (`hull.py`) then removes the negative masses.

Guarantee: lower. P may be rounded down and Q up, since the curve of the masses at a_i is a sum of terms p - a_i q. A
cut that is off by s leaves losses within s of the cell: all losses lowered by s (the slack) and q raised by e^{2s}
put them on the right side of its ends. 000 sets f(inf) = 0; here the mass at infinity is split off first and kept
(000, section 5.2). `tangents.py` is a better lower bound and the default. Cost: one pass over the cells.
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.engines.lattice.grid import GridCells
from hockeystick.engines.lattice.hull import log_down, spread_negative_masses
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.laws.base import least_infinite
from hockeystick.numerics.columns import Array, Indices
from hockeystick.numerics.rounding import ELEMENTARY, U


def algorithm_2(on: GridCells) -> LatticePLD:
    """000's optimistic lattice PLD: a lower bound on the points of the grid, which must hold 0 inside.

    Raises
    ------
    ValueError
        Where loss 0 is not an inner point of the grid (000, Assumption 5.2).

    Examples
    --------
    >>> from hockeystick.engines.lattice.grid import Grid, GridCells
    >>> from hockeystick.laws import GaussianPair
    >>> pld = algorithm_2(GridCells.of(GaussianPair(1.0), Grid.covering(-8.0, 8.0, 0.25)))
    >>> 0.11 < pld.hockey_stick(1.0) < 0.12693673750664397
    True
    """
    centre = int(np.searchsorted(on.grid.index, 0))
    if on.grid.offset != 0.0 or not 0 < centre < on.grid.index.size - 1 or on.grid.index[centre] != 0:
        raise ValueError(
            "Algorithm 2 needs loss 0 as an inner point of its lattice: use a grid without offset that covers 0"
        )
    positions = np.asarray(on.grid.index * on.grid.spacing)
    gain, loss, scale = _candidates(on, positions, centre)
    finite = np.where(np.isfinite(scale), scale, 0.0)
    rounding = 16.0 * ELEMENTARY + 8.0 * U * (
        np.abs(finite) + 4.0 * np.abs(positions) + abs(math.log(on.grid.spacing)) + 4.0
    )
    masses = gain * (1.0 - rounding) - loss * (1.0 + rounding)
    hull = spread_negative_masses(masses, finite, positions) if (masses < 0.0).any() else (masses, finite)
    if hull is None:
        log_mass = _one_outcome(on, positions)
    else:
        log_mass = log_down(*hull)
    infinity = least_infinite(on.mass_at_infinity)
    return LatticePLD("lower", on.grid.spacing, on.grid.index, 0.0, log_mass, infinity, on.slack)


def _one_outcome(on: GridCells, positions: Array) -> Array:
    """All finite losses merged into one outcome: what is left where the hull lies on the axis beyond 1."""
    log_p, log_q = (float(np.logaddexp.reduce(logs)) for logs in _pessimistic(on, positions))
    rounding = 4.0 * ELEMENTARY + U * positions.size
    log_mass = np.full(positions.size, -math.inf)
    below = np.flatnonzero(positions <= log_p - log_q - 2.0 * rounding - 2.0 * U * float(np.abs(positions).max()))
    if below.size:
        log_mass[below[-1]] = log_p - rounding
    return log_mass


def _candidates(on: GridCells, positions: Array, centre: int) -> tuple[Array, Array, Array]:
    """Masses received and taken at the points, in units of ``exp(scale)``, and that scale."""
    log_p, log_q = _pessimistic(on, positions)
    given: list[tuple[Indices, Array]] = []  # (point, ln of mass) received
    taken: list[tuple[Indices, Array]] = []
    # cells 0 .. centre - 1 end at points 0 .. centre - 1: extrapolate up
    cells = np.arange(centre)
    excess = _log_extrapolated(log_p[cells], log_q[cells], positions[cells], positions[cells + 1])
    size = np.logaddexp(log_q[cells], excess)
    given.append((cells, size + positions[cells]))
    taken.append((cells + 1, excess + positions[cells + 1]))
    # cells centre + 2 .. m begin at points centre + 1 .. m - 1: extrapolate down
    cells = np.arange(centre + 2, log_p.size)
    excess = _log_extrapolated(log_p[cells], log_q[cells], positions[cells - 1], positions[cells - 2])
    given.append((cells - 1, excess + positions[cells - 1]))
    with np.errstate(invalid="ignore"):
        rest = _log_difference(excess, log_q[cells])
    taken.append((cells - 2, rest + positions[cells - 2]))
    # the two cells around 1
    p, q = np.logaddexp(*log_p[centre : centre + 2]), np.logaddexp(*log_q[centre : centre + 2])
    log_a, log_b = _log_difference(np.array([p, q]), np.array([q, p]))
    up_gap, down_gap = _log_expm1(positions[centre + 1 :][:1])[0], math.log(-math.expm1(positions[centre - 1]))
    given.append(
        (
            np.array([centre] * 3),
            np.array(
                [
                    q,
                    log_b - up_gap,
                    log_a - down_gap,
                ]
            ),
        )
    )
    taken.append(
        (
            np.array([centre - 1, centre + 1]),
            np.array(
                [
                    log_a - down_gap + positions[centre - 1],
                    log_b - up_gap + positions[centre + 1],
                ]
            ),
        )
    )
    scale = np.full(positions.size, -math.inf)
    for points, logs in (*given, *taken):
        np.maximum.at(scale, points, logs)
    return _summed(given, scale, 0.0), _summed(taken, scale, 1e-300), scale


def _pessimistic(on: GridCells, positions: Array) -> tuple[Array, Array]:
    """``ln`` of the masses of the cells, P rounded down and Q up."""
    reach = np.concatenate(
        (np.abs(positions[:1]), np.maximum(np.abs(positions[1:]), np.abs(positions[:-1])), np.abs(positions[-1:]))
    )
    log_p = on.cells.log_p - on.cells.error_p
    log_q = on.cells.log_q + on.cells.error_q + 2.0 * on.slack + 8.0 * U * reach
    sizes = [U * np.abs(np.where(np.isfinite(logs), logs, 0.0)) for logs in (log_p, log_q)]
    return np.asarray(log_p - 4.0 * sizes[0] - ELEMENTARY), np.asarray(log_q + 4.0 * sizes[1] + ELEMENTARY)


def _log_extrapolated(log_p: Array, log_q: Array, near: Array, far: Array) -> Array:
    """``ln`` of ``|p - a q| / |e^far - e^near|``, a the lower one for cells above 1 (q + d), the upper below (d)."""
    below = far > near
    at = np.where(below, near, far)
    with np.errstate(invalid="ignore"):
        numerator = np.where(below, _log_difference(at + log_q, log_p), _log_difference(log_p, at + log_q))
    return np.asarray(numerator - np.where(below, near, far) - _log_expm1(np.abs(far - near)))


def _log_expm1(gap: Array) -> Array:
    """``ln(e^gap - 1)``, gap above 0, also where the exponential is beyond float64."""
    return np.asarray(gap + np.log(-np.expm1(-gap)))


def _log_difference(a: Array, b: Array) -> Array:
    """``ln(e^a - e^b)`` where a > b, ``-inf`` elsewhere."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a > b, a + np.log(-np.expm1(np.where(a > b, b - a, -1.0))), -math.inf)


def _summed(parts: list[tuple[Indices, Array]], scale: Array, least: float) -> Array:
    """Sums of ``exp(logs - scale)``, each at least ``least``, over the points."""
    total = np.zeros(scale.size)
    for points, logs in parts:
        with np.errstate(invalid="ignore"):
            np.add.at(total, points, np.where(logs > -math.inf, np.maximum(np.exp(logs - scale[points]), least), 0.0))
    return total
