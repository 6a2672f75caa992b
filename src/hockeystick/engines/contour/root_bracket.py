"""Brackets of where falling curves take their values, many questions at once, with both sides verified.

Each curve is known through brackets of its logarithm, cheaply at many points at once. From a guess, inverse
interpolation of their middles on five points finds the crossing to all digits; where that fails, five points about
where the slope leads, and then a secant iteration. Then points a little to either side are tried, ever farther, until
the bracket itself says on which side of the crossing each lies. Questions share calls, never numbers: each gets the
same answer alone.

Guarantee: ``lower`` is a point where the curve is proved at least the value (or the start of the range), ``upper`` one
where it is proved at most the value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from hockeystick.numerics.columns import Array, Columns, Flags, Places, column

_STEPS = 30
_DONE = 0.05  # of the width: how near a middle is to the value where no step goes nearer
_FIVE = np.array([[-1.0, -0.45, 0.0, 0.45, 1.0]])
_ROUNDS = 5  # of interpolation, each from where the last one led
_AT_ONCE = 8.0  # times half a width: a bracket so wide was found at the first tries
_ASIDE = 0.5  # of half a width, that the middle may be off the value: more is for another round
_WITHIN = 0.2  # of the first move, that the slope may mislead by
_NEAR = np.array([[1.02, 1.1, 1.3, 1.7]])  # of half a width, tried in turn
_FAR = np.array([[5.0, 15.0, 100.0, 1e4, 1e6]])


@final
@dataclass(frozen=True, eq=False)
class LogBracket:
    """Lower and upper bounds on ``ln`` of curves at several points each, shape (n, P)."""

    lower: Array
    upper: Array

    @property
    def middles(self) -> Array:
        """The middles of the brackets; 1 below the upper side where there is no lower one."""
        nothing = np.isinf(self.lower)
        return np.where(nothing, self.upper - 1.0, 0.5 * (np.where(nothing, self.upper, self.lower) + self.upper))


@final
@dataclass(frozen=True, eq=False)
class Targets(Columns):
    """``ln`` of each value as it must be exceeded (for ``lower``) and undercut (for ``upper``), shape (E,)."""

    exceeded: Array
    undercut: Array


@final
@dataclass(frozen=True, eq=False)
class RootBracket:
    """Where each curve crosses its value, shape (E,).

    Attributes
    ----------
    point : ndarray
        The best guess.
    lower, upper : ndarray
        Proved sides; ``-inf`` or ``inf`` for one that could not be verified.
    """

    point: Array
    lower: Array
    upper: Array


class Beginnings(NamedTuple):
    """About where a curve takes values, for those of the values asked for of which this tells (`rows`).

    Attributes
    ----------
    at_zero : ndarray of bool, shape (all,)
        Whether delta(0) may be no more than the value.
    rows, start, spread, slope, reach : ndarray, shape (n,)
        The values told of; about where; how far off; about ``-d ln(delta) / d epsilon`` there; how far that leads.
    """

    at_zero: Flags
    rows: Places
    start: Array
    spread: Array
    slope: Array
    reach: Array


Ask = Callable[[Places, Array], LogBracket]
"""From the questions meant, shape (n,), and points of each, shape (n, P), to brackets of ``ln`` of their curves."""


def root_brackets(
    curve: Ask, targets: Targets, *, start: Array, spread: Array, slope: Array, reach: Array
) -> RootBracket:
    """The bracket of the point where ``ln`` of each decreasing curve crosses its value.

    Parameters
    ----------
    curve : callable
        See `Ask`.
    targets : Targets
        The values.
    start, spread : ndarray, shape (E,)
        A guess, and how far it may be off; 0 where the curve has kinks, and the guess is as good as any.
    slope : ndarray, shape (E,)
        A guess of ``-d ln curve / d point`` there.
    reach : ndarray, shape (E,)
        How far from the guess the curve is worth asking.
    """
    search = _Search(curve, targets, start, slope, reach)
    rows = spread.nonzero()[0]
    search.spread[:] = spread
    for _ in range(1 + _ROUNDS):
        if rows.size == 0:
            break
        rows = np.sort(search.interpolate(rows))
    rows = (~(np.isfinite(search.upper - search.lower) | search.done)).nonzero()[0]
    if rows.size:
        search.iterate(rows)
    return RootBracket(search.point, search.lower, search.upper)


class _Search:
    """What is known of every question so far."""

    def __init__(self, curve: Ask, targets: Targets, start: Array, slope: Array, reach: Array) -> None:
        self._curve, self._targets = curve, targets
        self._start, self._slope, self._reach = start, slope, reach
        self._goal = 0.5 * (targets.exceeded + targets.undercut)
        self.point = start.copy()
        self.slope = slope.copy()
        self.spread = np.zeros(start.size)
        self.lower, self.upper = self.spread - np.inf, self.spread + np.inf
        self.done = np.zeros(start.size, dtype=np.bool_)

    def interpolate(self, rows: Places) -> Places:
        """A round of interpolation and proof; what is left for another round."""
        points = column(self.point[rows]) + column(self.spread[rows]) * _FIVE
        found = self._curve(rows, points)
        values = found.middles - column(self._goal[rows])
        with np.errstate(invalid="ignore"):
            falls = np.isfinite(values).all(axis=1) & (values[:, 1:] < values[:, :-1]).all(axis=1)
            steep = (values[:, 0] - values[:, -1]) / (points[:, -1] - points[:, 0])
        self.slope[rows] = np.where(falls, steep, self.slope[rows])
        falls &= (values[:, 0] > 0.0) & (values[:, -1] < 0.0)
        crossing = inverse_interpolated(points[falls], values[falls])
        inside = (points[falls, 0] <= crossing) & (crossing <= points[falls, -1])
        good = falls.nonzero()[0][inside]
        left = [self._moved(rows[~falls], values[~falls, 2])]
        slope = steep[good]
        doubt = 0.5 * (found.upper - found.lower)[good].max(axis=1)
        kept = rows[good]
        self.point[kept] = crossing[inside]
        gap = self._prove(kept, slope, doubt)
        width = self.upper[kept] - self.lower[kept]
        unit = np.maximum(doubt / slope, 2.0**-52 * np.abs(self.point[kept]))
        self.done[kept] = (width <= _AT_ONCE * unit) & (np.abs(gap) <= _ASIDE * unit * slope)
        again = ~self.done[kept]
        left.append(self._moved(kept[again], gap[again]))
        return np.concatenate(left)

    def _moved(self, rows: Places, gap: Array) -> Places:
        """Where the slope leads from the points, ``gap`` above the goal; those for which it leads anywhere."""
        if rows.size == 0:
            return rows
        slope = self.slope[rows]
        with np.errstate(invalid="ignore"):
            useful = (slope > 0.0) & np.isfinite(gap) & (np.abs(gap) <= 0.9 * self._reach[rows] * slope)
        rows, move = rows[useful], gap[useful] / slope[useful]
        self.point[rows] += move
        self.spread[rows] = np.maximum(_WITHIN * np.abs(move), 1e-9 * self._reach[rows])
        return rows

    def _prove(self, rows: Places, slope: Array, doubt: Array) -> Array:
        """The nearest points to either side that are proved; how far the curve lies above the goal at the points."""
        if rows.size == 0:
            return np.zeros(0)
        point = self.point[rows]
        exceeded, undercut = self._targets.exceeded[rows], self._targets.undercut[rows]
        with np.errstate(invalid="ignore", divide="ignore"):
            unit = np.maximum(doubt / slope, 2.0**-52 * np.abs(point))
        usable = np.isfinite(doubt) & (slope > 0.0)
        unit = np.where(usable, unit, 0.0)
        left, height = np.arange(rows.size), np.zeros(rows.size)
        for spread in (_NEAR, _FAR):
            size = spread.size
            offset, here = column(unit[left]) * spread, column(point[left])
            every = np.concatenate((point[left, None], here - offset, here + offset), axis=1)
            found = self._curve(rows[left], every)
            below = (found.lower[:, 1 : 1 + size] >= column(exceeded[left])) & usable[left, None]
            above = (found.upper[:, 1 + size :] <= column(undercut[left])) & usable[left, None]
            own = rows[left]
            self.lower[own] = np.maximum(self.lower[own], _first(every[:, 1 : 1 + size], below, -np.inf))
            self.upper[own] = np.minimum(self.upper[own], _first(every[:, 1 + size :], above, np.inf))
            height[left] = found.middles[:, 0]
            left = left[~np.isfinite(self.upper[own] - self.lower[own])]
            if left.size == 0:
                break
        return height - self._goal[rows]

    def iterate(self, rows: Places) -> None:
        """The secant method, and a proof where it ends."""
        every = rows
        self.point[rows], self.slope[rows] = self._start[rows], self._slope[rows]
        gap, doubt = np.full((2, self.point.size), np.nan)
        gap[rows], doubt[rows] = self._gap(rows)
        for _ in range(_STEPS):
            rows = rows[(self.slope[rows] > 0.0) & np.isfinite(gap[rows]) & (np.abs(gap[rows]) > _DONE * doubt[rows])]
            if rows.size == 0:
                break
            start, reach, point = self._start[rows], self._reach[rows], self.point[rows]
            move = gap[rows] / self.slope[rows]
            new = np.minimum(np.maximum(point + move, start - reach), start + reach)
            self.point[rows] = new
            new_gap, doubt[rows] = self._gap(rows)
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = np.maximum((gap[rows] - new_gap) / (new - point), 0.2 * self.slope[rows])
            self.slope[rows] = np.where((new_gap != gap[rows]) & (new != point), slope, self.slope[rows])
            gap[rows] = new_gap
            ends = (np.abs(move) <= 4e-16 * np.abs(new)) | (np.abs(new - start) >= reach)
            rows = rows[~ends]
        self._prove(every, self.slope[every], 0.55 * doubt[every] + np.abs(gap[every]))

    def _gap(self, rows: Places) -> tuple[Array, Array]:
        """How far the middles lie above the goals, and the widths."""
        found = self._curve(rows, self.point[rows, None])
        return found.middles[:, 0] - self._goal[rows], (found.upper - found.lower)[:, 0]


def inverse_interpolated(points: Array, values: Array) -> Array:
    """Where the polynomial through values, decreasing along the last axis, that gives the points back takes 0.

    NaN where two values are equal, as on a curve that is flat to rounding.
    """
    place = np.arange(points.shape[-1])
    own = place[:, None] == place
    differences = np.where(own, 1.0, values[..., :, None] - values[..., None, :])
    middle = points[..., place.size // 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(own, 1.0, -values[..., None, :] / differences).prod(axis=-1)
        return np.asarray(middle + ((points - middle[..., None]) * weights).sum(axis=-1))


def _first(points: Array, proved: Flags, otherwise: float) -> Array:
    """The first point of each row that is proved."""
    index = proved.argmax(axis=1)
    return np.where(proved.any(axis=1), points[np.arange(index.size), index], otherwise)
