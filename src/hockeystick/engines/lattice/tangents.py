"""The tangent lower bound of a pair on a lattice.

The tangent of the hockey-stick curve h at a cut c is ``t(a) = P(L > c) - a Q(L > c)``. One cut lies between each two
lattice points l_i, mostly midway, so that each cell holds one. With a_i = e^{l_i}, p_i and q_i the masses of
the cell around l_i and t_i the tangent at its lower cut, the lower bound is the function f that is linear between the
a_i with ``f(a_i) = min(t_i(a_i), t_{i+1}(a_i))``: between neighbouring points both ends lie under one tangent, hence
f <= h.

In masses. With D_i = p_i - a_i q_i = A_i - B_i, A_i = max(D_i, 0), B_i = max(-D_i, 0), the Q-mass of f at a_i is

    q_i + B_i / (a_{i+1} - a_i) + A_i / (a_i - a_{i-1}) - A_{i+1} / (a_{i+1} - a_i) - B_{i-1} / (a_i - a_{i-1}),

the P-mass a_i times that: each cell corrects itself and takes from one neighbour; there is no difference of curve
values. Only where the density changes abruptly can a mass turn negative; then f is not convex there and its lower
convex hull is taken (`hull.py`).

Where the mean loss of a cell misses its point, mass comes from a neighbour so that the mean stays: an error of higher
order. Only the ends differ. Below the lowest point there is nothing to take from, so that a mean loss above the point
is lowered to it, a loss of first order in D, which many steps would multiply; merging the cell into the next one
costs the second order instead (merging outcomes is data processing). Likewise the highest cell must not have its mean
below its point.

Guarantee: lower. Every line P(S) - a Q(S), S any set of outcomes, lies below h, so that it does not matter where
exactly the cuts are. The curve of the masses at a_k is the sum over i > k of (q_i (a_i - a_k) + A_i - B_i), less B_k,
so that p may be rounded down and q up: all that is used is that A_i - B_i is at most the true D_i. Where an atom sits
on the highest point, all points are lowered by its rounding error, which the slack reports. The mass at infinity is
kept apart. It replaces 000's Algorithm 2 (`algorithm2.py`). Cost: one evaluation of the tails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from hockeystick.engines.lattice.grid import Grid
from hockeystick.engines.lattice.hull import log_down, spread_negative_masses
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.laws.base import CellMasses, Pair, least_infinite
from hockeystick.numerics.columns import Array, Indices
from hockeystick.numerics.rounding import ELEMENTARY, U, log_sums

_STEEPEST = 300.0  # nats by which the units of neighbouring masses may differ
_STEEP = 0.5  # of the distance from a cell's cut to its point: where its mean lies, or below
_WITHIN = 0.9  # of that distance, so that the mean comes to lie above the point
_HEAVY = 0.02  # mass of a cell that the points are moved for
_A_LITTLE = 0.5  # of a cell, that points may move
_NOTHING = 1e-9  # of a cell: not worth a move
_ON_POINT = 1e-13  # of a loss: how near an atom counts as on a point
_ATOM = 0.01  # of the rest of its cell: what an atom has at least
_FAINT = 1e-280  # of a unit: so small a mass is rounded by as much
_LEAST_LOG = -1e9  # ln of a mass that is still told from others


def tangents(pair: Pair, grid: Grid, *, tilt: float = 1.0) -> LatticePLD:
    """The tangent lattice PLD: a lower bound on the points of the grid.

    Parameters
    ----------
    pair : Pair
        The pair.
    grid : Grid
        The lattice points.
    tilt : float
        The theta at which it will be used: it weighs the two losses at the lower end.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> pld = tangents(GaussianPair(1.0), Grid.covering(-8.0, 8.0, 0.25))
    >>> 0.0 <= 1.0 - pld.total_mass < 1e-12
    True
    """
    cells = _told(pair.cells(_cuts(pair, grid.points)))
    infinity = least_infinite(pair.mass_at_infinity)
    tried = [_built(cells, grid, tilt, infinity)]
    if tried[0].index[0] > grid.index[int(np.argmax(cells.log_p > -math.inf))]:  # the lowest cell was merged upwards
        tried.append(_built(cells, grid, 0.0, infinity))
    settled = _settled(grid, cells)
    if settled is not grid:
        tried.append(_built(cells, settled, tilt, infinity))
    return max(tried, key=lambda pld: _weight(pld, tilt))


def _told(cells: CellMasses) -> CellMasses:
    """The cells without those of so little mass that logarithms hold no ratios of it: fewer outcomes, a lower curve."""
    nothing = cells.log_p - cells.error_p < _LEAST_LOG
    empty = {"log_p": -math.inf, "log_q": -math.inf, "error_p": 0.0, "error_q": 0.0}
    return replace(cells, **{name: np.where(nothing, value, getattr(cells, name)) for name, value in empty.items()})


def _weight(pld: LatticePLD, tilt: float) -> float:
    """``K`` at the tilt, about: of two lower bounds the larger is the better one."""
    return float(log_sums(pld.log_mass + tilt * pld.losses))


def _built(cells: CellMasses, grid: Grid, tilt: float, infinity: float) -> LatticePLD:
    """The lower bound on these points, from the masses of these cells; where ``tilt`` is 0 none is merged upwards."""
    points = grid.points
    lift = 0  # how many more cells at the top to merge, where the hull would have nothing to hold it up
    while (merged := _merged(cells, points, tilt, lift)) is not None:
        kept = _near_masses(merged.log_p)
        index, merged = grid.index[merged.first + kept], merged.of(kept)
        log_ratio = _log_ratio(merged, points[merged.first + kept])
        if index.size == 1 and log_ratio[0] > 0.0:
            return _one_point(merged, grid, float(log_ratio[0]), infinity)
        deviation = _deviation(log_ratio)
        log_mass = _masses(merged.log_p - merged.error_p, deviation, np.asarray(index * grid.spacing, dtype=np.float64))
        if log_mass is not None:
            slack = grid.rounding + merged.lowered
            return LatticePLD("lower", grid.spacing, index, grid.offset, log_mass, infinity, slack)
        lift = 2 * lift + 1
    nothing = np.array([-math.inf])
    return LatticePLD("lower", grid.spacing, grid.index[:1], grid.offset, nothing, infinity, 0.0)


def _cuts(pair: Pair, points: Array) -> Array:
    """Midway between the points, with two exceptions.

    Just below the largest loss where an atom sits there, on a point: together with what lies below it the atom's cell
    would have its mean below its point. And nearer to the point above where the density falls within much less than
    a cell: else the mean of each cell would lie far below its point, and there would be no convex curve through them.
    """
    cuts = _raised(pair, 0.5 * (points[:-1] + points[1:]), points)
    top = pair.loss_bounds[1]
    index = int(np.searchsorted(points, top - _ON_POINT * (1.0 + abs(top)))) if math.isfinite(top) else points.size
    if 0 < index < points.size and abs(points[index] - top) <= _ON_POINT * (1.0 + abs(top)):
        below = top - 4.0 * _ON_POINT * (1.0 + abs(top))
        if cuts[index - 1] < below:
            masses = pair.cells(np.array([cuts[index - 1], below])).log_p
            if masses[2] > masses[1] + math.log(_ATOM):
                cuts[index - 1] = below
    return cuts


def _raised(pair: Pair, cuts: Array, points: Array) -> Array:
    """The cuts, raised where the density is steep: a cell's mean lies as far above its cut as the density is long."""
    if pair.is_discrete:
        return cuts
    cells = pair.cells(cuts)
    with np.errstate(invalid="ignore"):
        length = (cells.log_p - cells.log_q)[1:] - cuts
    steep = length < _STEEP * (points[1:] - cuts)
    return np.where(steep, points[1:] - _WITHIN * np.maximum(length, 0.0), cuts)


def _settled(grid: Grid, cells: CellMasses) -> Grid:
    """The points moved by a part of a cell, so that the point of the heaviest cell lies at its mean loss.

    A mean that misses its point is made good by a neighbour; a heavy cell with little beside it would ask too much.
    """
    heaviest = int(np.argmax(cells.log_p))
    if not cells.log_p[heaviest] > math.log(_HEAVY):
        return grid
    above = float(cells.log_p[heaviest] - cells.log_q[heaviest] - grid.points[heaviest])
    width = float(grid.widths[min(heaviest, grid.index.size - 2)])
    if not _NOTHING * width < abs(above) < _A_LITTLE * width:
        return grid
    return Grid(grid.spacing, grid.index, grid.offset + above)


def _one_point(merged: _Merged, grid: Grid, log_ratio: float, infinity: float) -> LatticePLD:
    """All mass on the next lattice point below the mean loss: lowering losses lowers the curve."""
    down_by = math.ceil(log_ratio / grid.spacing * (1.0 + 1e-12)) + 1
    index = grid.index[merged.first : merged.first + 1] - down_by
    slack = grid.rounding + 4.0 * U * down_by * grid.spacing
    return LatticePLD("lower", grid.spacing, index, grid.offset, merged.log_p - merged.error_p, infinity, slack)


@final
@dataclass(frozen=True)
class _Merged:
    """Cells with both ends merged inwards.

    ``first`` is the index of the lowest point in use, ``lowered`` by how much (nats) all points are to be lowered.
    """

    first: int
    lowered: float
    log_p: Array
    log_q: Array
    error_p: Array
    error_q: Array

    def of(self, kept: Indices) -> _Merged:
        """Some of the cells; the others are empty, and go to the next one above."""
        log_p, log_q, error_p, error_q = (a[kept] for a in (self.log_p, self.log_q, self.error_p, self.error_q))
        return _Merged(self.first, self.lowered, log_p, log_q, error_p, error_q)


def _near_masses(log_p: Array) -> Indices:
    """Which cells hold mass or lie beside one that does: between others far apart no point is needed."""
    occupied = log_p > -math.inf
    occupied[1:] |= log_p[:-1] > -math.inf
    occupied[:-1] |= log_p[1:] > -math.inf
    return np.flatnonzero(occupied)


def _merged(cells: CellMasses, points: Array, tilt: float, lift: int) -> _Merged | None:
    """The cells with their ends merged, ``lift`` more at the top than seems needed; None where none is left."""
    occupied = np.flatnonzero(cells.log_p > -math.inf)
    if occupied.size <= lift:
        return None
    low, high = int(occupied[0]), int(occupied[-1])
    log_p, log_q, error_p, error_q = (a.copy() for a in (cells.log_p, cells.log_q, cells.error_p, cells.error_q))
    masses = ((log_p, error_p), (log_q, error_q))

    def log_ratio(index: int) -> float:
        """ln(a q / p): above 0 where the mean loss of the cell lies below its point."""
        return float(points[index] + log_q[index] - log_p[index])

    def move(start: int, stop: int) -> None:
        for logs, errors in masses:
            logs[stop] = np.logaddexp(logs[start], logs[stop])
            errors[stop] = max(errors[start], errors[stop]) + 2.0 * ELEMENTARY + 2.0 * U * abs(logs[stop])

    holding = _top_that_holds(points[: high + 1], log_p[: high + 1], log_q[: high + 1])
    holding = int(occupied[max(int(np.searchsorted(occupied, holding)) - lift, 0)])

    def rounding(index: int) -> float:
        size = abs(float(points[index])) + 2.0 * abs(float(log_p[index]))
        return float(error_p[index] + error_q[index]) + 4.0 * U * (size + 4.0)

    while high > low and (high > holding or log_ratio(high) > 2.0 * rounding(high)):
        move(high, high - 1)
        high -= 1
    if low < high and log_ratio(low) > float(points[low + 1] - points[low]):
        low += 1  # the tail below a range that was cut short: leaving it out takes (p - a q)_+ >= 0 from the curve
        while log_p[low] == -math.inf:  # and so does going on to the next atom
            low += 1
    # merged upwards, the lowest point must stay where the tangent there is above zero
    mean = float(np.logaddexp.reduce(log_p[low : high + 1]) - np.logaddexp.reduce(log_q[low : high + 1]))
    while (
        low < high
        and tilt > 0.0
        and points[low + 1] < mean
        and -math.expm1(min(log_ratio(low), 1.0)) > tilt * float(points[low + 1] - points[low]) ** 2
    ):
        move(low, low + 1)
        low += 1
    keep = slice(low, high + 1)
    lowered = max(log_ratio(high) + 2.0 * rounding(high), 0.0)
    return _Merged(
        low, lowered if lowered <= 4.0 * rounding(high) else 0.0, log_p[keep], log_q[keep], error_p[keep], error_q[keep]
    )


def _log_ratio(merged: _Merged, points: Array) -> Array:
    """``ln(a q / p)``, rounded up; 0 where a cell is empty."""
    with np.errstate(invalid="ignore"):
        log_ratio = points - merged.lowered + merged.log_q - merged.log_p
    size = np.abs(points) + 2.0 * np.where(np.isfinite(merged.log_p), np.abs(merged.log_p), 0.0)
    log_ratio = log_ratio + (merged.error_p + merged.error_q + 4.0 * U * size)  # q up
    return np.where(np.isnan(log_ratio), 0.0, log_ratio)


def _deviation(log_ratio: Array) -> Array:
    """``D / p``, rounded down.

    Where a mean lies 700 nats below its point, a p that f can hold is too small to be told from nothing, however deep.
    """
    deviation = -np.expm1(np.minimum(log_ratio, 700.0))
    return np.asarray(deviation - ELEMENTARY * np.abs(deviation))


def _top_that_holds(points: Array, log_p: Array, log_q: Array) -> int:
    """The highest cell below which f stays above zero (an estimate: what follows is sound for any choice)."""
    above_p = np.append(np.logaddexp.accumulate(log_p[::-1])[::-1][1:], -math.inf)
    above_q = np.append(np.logaddexp.accumulate(log_q[::-1])[::-1][1:], -math.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        tail = np.exp(above_p - log_p) - np.exp(points + above_q - log_p)  # t_{i+1}(a_i) / p_i
        drop = np.maximum(np.expm1(np.minimum(points + log_q - log_p, 700.0)), 0.0)  # B_i / p_i
    sinking = np.flatnonzero((log_p > -math.inf) & (tail < 1.01 * drop))
    sinking = sinking[sinking > int(log_p.argmax())]
    return int(sinking[0]) if sinking.size else points.size - 1


def _masses(log_p: Array, deviation: Array, positions: Array) -> Array | None:
    """``ln`` of the P-masses at the points, rounded down, of the lower hull; None where it lies on the axis."""
    if deviation[-1] < 0.0:
        return None  # the highest mean loss must not lie below its point
    gaps = np.diff(positions)
    # a_i / (a_{i+1} - a_i); nothing lies above the last point
    up_gap = np.append(np.exp(-gaps) / -np.expm1(-gaps), 0.0)
    down_gap = np.append(1.0, -1.0 / np.expm1(-gaps))  # a_i / (a_i - a_{i-1}); below the first lies a = 0
    scale = _units(_filled(log_p))
    share = np.exp(log_p - scale)  # p in its unit
    above = share * np.maximum(deviation, 0.0)  # A
    below = share * np.maximum(-deviation, 0.0)  # B
    below = np.where((deviation < 0.0) & (share < _FAINT), below + _FAINT, below)  # up: a lower D is a lower bound
    gain = share * (1.0 - deviation) + below * up_gap + above * down_gap
    loss = np.zeros_like(gain)
    taken_up = above[1:] * np.exp(scale[1:] - scale[:-1]) * up_gap[:-1]
    taken_down = below[:-1] * np.exp(scale[:-1] - scale[1:]) * down_gap[1:]
    loss[:-1] += np.where(above[1:] > 0.0, np.maximum(taken_up, _FAINT), 0.0)  # what is taken must not underflow
    loss[1:] += np.where(below[:-1] > 0.0, np.maximum(taken_down, _FAINT), 0.0)
    steepest = float(np.max(np.abs(np.diff(scale)), initial=0.0))
    rounding = 8.0 * ELEMENTARY + U * (steepest + float(np.max(np.where(share > 0.0, scale - log_p, 0.0), initial=0.0)))
    masses = gain * (1.0 - rounding) - loss * (1.0 + rounding)
    if (masses < 0.0).any():
        hull = spread_negative_masses(masses, scale, positions)
        if hull is None:
            return None
        masses, scale = hull
    return log_down(masses, scale)


def _units(log_p: Array) -> Array:
    """The least logs of at least ``log_p`` that change by at most `_STEEPEST` from point to point."""
    ramp = _STEEPEST * np.arange(log_p.size)
    rising = np.maximum.accumulate(log_p + ramp) - ramp
    falling = (np.maximum.accumulate((log_p - ramp)[::-1]))[::-1] + ramp
    raised = np.maximum(rising, falling)
    return np.where(raised > log_p + 1e-6 * _STEEPEST, raised, log_p)  # as it was, but for rounding


def _filled(log_p: Array) -> Array:
    """``log_p`` with the entries of empty cells replaced by those of the next occupied cell above."""
    index = np.where(log_p > -math.inf, np.arange(log_p.size), log_p.size)
    return np.asarray(log_p[np.minimum.accumulate(index[::-1])[::-1]])
