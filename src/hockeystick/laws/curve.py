"""A pair given by its certified curve: chords above, lines of support below, both as laws of finitely many atoms.

A *curve* answers with certified bounds on delta for every epsilon, and knows its reverse. The hockey-stick function h
is convex; hence, with knots ``a_i = e^{l_i}``,

- *above*: any chord between upper bounds lies above h: the convex hull of the upper bounds is the curve of a pair;
- *below*: on ``[a_i, a_{i+1}]`` h lies above the chords of both neighbouring intervals, prolonged. The line with the
  slope of the own chord through the point where these two meet lies below the larger of them; of two such lines each
  knot takes the smaller value, and the hull of these is the curve of a pair.

Beyond the last knot the upper bound stays what it is there, a mass at infinity, and the lower one is the least mass at
infinity. Knots below a = 1 are those of the reverse: with ``a h(1/a) + 1 - a`` lines stay lines, and masses small.

The knots are multiples of one dyadic number, so that lattices of compositions add no error of their own; they lie far
apart only where there is next to no mass.

Guarantee: the curve of `ChordPair` lies above that of the pair, the curve of `SupportPair` below. Proof:
docs/derivations/random-allocation.md, section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import CertifiedCurve, LossQuantum, Pair
from hockeystick.numerics.columns import Array, Indices
from hockeystick.numerics.rounding import ELEMENTARY, U, dyadic_below

_FINE = 100.0  # knots for a loss of about delta(0)
_DENSE = 20.0  # times delta(0): up to there knots are next to one another
_FINER, _ROUGH = 2.0**-30, 10.0  # nearer knots only where delta(0) would have fewer: roundings count for each
_FINEST = 2.0**-50  # knots are numbered by int64
_LEAST = 1e-280  # of delta over e^epsilon: masses of Q are floats
_FARTHEST = 256.0  # nats
_LIFT = 1e-6  # relative: what upper bounds are raised by where they would not be convex at a = 1
_STRAIGHT = 1e-9  # relative change of slope that is none: rounding could turn it round
_BELOW = 1e-12  # relative: what knots of the lower curve are lowered by, so that rounding cannot lift its hull


@dataclass(frozen=True)
class _OnKnots(AtomicPair):
    """A law on the knots of a curve; one step alone is read off the curve itself.

    Parameters
    ----------
    known : CertifiedCurve
        What is known of the pair.
    """

    known: CertifiedCurve

    @property
    def curve(self) -> CertifiedCurve:
        return self.known

    @property
    def with_tails(self) -> Pair:
        known = self.known.with_tails
        return self if known is self.known else replace(self, known=known)

    def reversed(self) -> Pair:
        return self if self.known.reversed() == self.known else super().reversed()

    method = "curve known at points"

    @property
    def loss_quantum(self) -> LossQuantum:
        return LossQuantum(_spacing(self.known), 0.0)


@final
@dataclass(frozen=True)
class ChordPair(_OnKnots):
    """A law whose curve lies above a certified one."""

    def make_table(self) -> AtomTable:
        return _table(*_above(self.known), _spacing(self.known))


@final
@dataclass(frozen=True)
class SupportPair(_OnKnots):
    """A law whose curve lies below a certified one."""

    def make_table(self) -> AtomTable:
        return _table(*_below(self.known), _spacing(self.known))


@lru_cache(maxsize=256)
def _spacing(curve: CertifiedCurve) -> float:
    """The lattice of the knots: about a hundredth of delta(0), which is near the loss's mean distance from 0."""
    high = max(curve.delta(0.0)[1], curve.reversed().delta(0.0)[1])
    return dyadic_below(max(min(high, 1.0) / _FINE, min(_FINER, high / _ROUGH), _FINEST))


def _knots(spacing: float) -> Indices:
    """Multiples of the spacing from 0 on: all of them at first, then ever fewer."""
    dense = int(_DENSE * _FINE)
    runs, start, step = [np.arange(dense)], dense, 1
    while start * spacing < _FARTHEST:
        step *= 2
        runs.append(np.arange(start, 2 * start, step))
        start *= 2
    return np.concatenate(runs)


@final
@dataclass(frozen=True, eq=False)
class _Values:
    """Bounds on delta at knots from epsilon 0 upward, as far as there is anything to tell; shape (n,)."""

    index: Indices
    low: Array
    high: Array


@final
@dataclass(frozen=True, eq=False)
class _Side:
    """A convex, decreasing, piecewise linear curve in a, from a = 1 upward, constant from its last knot on."""

    index: Indices
    value: Array


@lru_cache(maxsize=64)
def _values(curve: CertifiedCurve) -> _Values:
    spacing = _spacing(curve)
    index = _knots(spacing)
    low, high = curve.deltas(np.asarray(index * spacing), spacing)
    high = np.minimum.accumulate(high)  # delta never rises
    low = np.maximum.accumulate(low[::-1])[::-1]
    changing = np.flatnonzero(high > high[-1] * (1.0 + 1e-3))
    told = int((high >= _LEAST * np.exp(index * spacing)).sum())
    last = min(int(changing[-1]) + 3 if changing.size else 0, told + 2)
    last = max(min(last, index.size), 4)
    return _Values(index[:last], low[:last], high[:last])


def _both(curve: CertifiedCurve) -> tuple[_Values, _Values]:
    """The values of the curve and of its reverse, which are the same at epsilon 0."""
    up, down = _values(curve), _values(curve.reversed())
    low, high = max(up.low[0], down.low[0]), min(up.high[0], down.high[0])
    return tuple(  # type: ignore[return-value]  # of two
        _Values(own.index, np.append(low, own.low[1:]), np.append(high, own.high[1:])) for own in (up, down)
    )


def _above(curve: CertifiedCurve) -> tuple[_Side, _Side]:
    """Hulls of the upper bounds, of the curve and of its reverse, which together are convex at a = 1."""
    spacing = _spacing(curve)
    both = _both(curve)
    up, down = (_hull(own.index, own.high, spacing, _STRAIGHT) for own in both)
    across, middle = _across(up, down, spacing), float(up.value[0])
    if across < middle * (1.0 + _STRAIGHT):  # chords past a = 1 bound it, too; all others then lie strictly above these
        up, down = (_hull(own.index, _lifted(own, min(across, middle)), spacing, _STRAIGHT) for own in both)
    return up, down


def _lifted(own: _Values, middle: float) -> Array:
    """The upper bounds, raised beside a = 1: the last knot but one, where they may have ended, by its neighbour."""
    lifted = np.append(middle, own.high[1:] * (1.0 + _LIFT))
    lifted[-2] += _LIFT * lifted[-3]
    return lifted


def _across(up: _Side, down: _Side, spacing: float) -> float:
    """The least chord at a = 1 from a knot before to a knot after it, rounded up; infinite where there is none.

    Both sides are convex: a chord that is the least of all from either of its ends lies below both, and is the least.
    """
    if min(up.index.size, down.index.size) < 2:
        return math.inf
    right, left = np.expm1(up.index[1:] * spacing), -np.expm1(-down.index[1:] * spacing)
    after, before = up.value[1:], left + (1.0 - left) * down.value[1:]
    least, own = math.inf, 0
    while True:
        other = int(((before[own] * right + after * left[own]) / (right + left[own])).argmin())
        heights = (before * right[other] + after[other] * left) / (right[other] + left)
        own = int(heights.argmin())
        if not heights[own] < least:
            return least * (1.0 + 16.0 * ELEMENTARY)
        least = float(heights[own])


def _below(curve: CertifiedCurve) -> tuple[_Side, _Side]:
    """Hulls of lines of support, of the curve and of its reverse."""
    spacing = _spacing(curve)
    both = forward, backward = _both(curve)
    ends = curve.infinite_mass.low, curve.reversed().infinite_mass.low
    up = _supported(forward, backward, spacing, ends[0])
    down = _supported(backward, forward, spacing, ends[1])
    up[0] = down[0] = min(up[0], down[0])

    def hulls() -> tuple[_Side, _Side]:
        lowered = (np.minimum.accumulate(np.maximum(values * (1.0 - _BELOW), 0.0)) for values in (up, down))
        above, below = (_hull(own.index, values, spacing) for own, values in zip(both, lowered, strict=True))
        return above, below

    # chords past a = 1 bound the hull, too; what lies lower by far more than rounding has a bend there that is known
    up[0] = down[0] = min(up[0], _across(*hulls(), spacing)) * (1.0 - _STRAIGHT)
    return hulls()


def _supported(own: _Values, other: _Values, spacing: float, end: float) -> Array:
    """At every knot the lower of the two lines that belong to the intervals beside it."""
    loss = own.index * spacing
    # one more knot on the left: a = e^{-l}, where h(a) = 1 - a + a h_reverse(1 / a)
    left = float(other.index[1]) * spacing
    before = -math.expm1(-left) + math.exp(-left) * float(other.high[1])
    a = np.exp(loss)
    gap = a[:-1] * np.expm1(np.diff(loss))
    low, high = own.low, own.high
    # h' at most this on the left of the interval, at least that on its right; both falling
    left_high, left_gap = np.append(before * (1.0 + 8.0 * U), high[:-2]), np.append(-math.expm1(-left), gap[:-1])
    steep = (low[:-1] - left_high) / left_gap
    flat = np.append((high[2:] - low[1:-1]) / gap[1:], 0.0)
    chord = (low[1:] - low[:-1]) / gap
    # lines in units of the distance from the left end: low + steep x, and low' + flat (x - gap)
    with np.errstate(invalid="ignore", divide="ignore"):
        x = (low[1:] - low[:-1] - flat * gap) / (steep - flat)
    ordered = (steep <= chord) & (chord <= flat) & (x >= 0.0) & (x <= gap)
    at_left = np.where(ordered, low[:-1] + (steep - chord) * x, low[:-1])
    slope = np.where(ordered, chord, steep)
    # of what is added and taken away above, a few dozen roundings
    rounding = 64.0 * U * (low[:-1] + left_high * np.maximum(gap / left_gap, 1.0))
    at_left, at_right = at_left - rounding, at_left + slope * gap - rounding
    at_right[-1] = -1.0  # the last interval has no neighbour on the right: the least mass at infinity
    gone = at_right < end
    at_left, at_right = np.where(gone, end, at_left), np.where(gone, end, at_right)
    return np.asarray(np.minimum(np.append(at_left, end), np.append(math.inf, at_right)))


def _hull(index: Indices, value: Array, spacing: float, straight: float = 0.0) -> _Side:
    """The lower convex hull of points over ``a = e^{index h}``; which points are left out is not critical.

    Above: the chord of any two upper bounds lies above a convex curve, and points where it bends by less than
    ``straight`` are left out. Below: see `_BELOW`.
    """
    kept: list[int] = []
    a = np.exp(np.minimum(index * spacing, 700.0))
    for i in range(int((value > value[-1]).sum()) + 1):  # decreasing: the first of the last, equal ones ends it
        while len(kept) > 1:
            last, before = kept[-1], kept[-2]
            rise = (value[last] - value[before]) * (a[i] - a[last])
            if rise < (1.0 + straight) * (value[i] - value[last]) * (a[last] - a[before]):
                break
            kept.pop()
        kept.append(i)
    chosen = np.array(kept)
    return _Side(index[chosen], value[chosen])


def _table(up: _Side, down: _Side, spacing: float) -> AtomTable:
    """The law whose curve has these two sides: kinks are masses."""
    slopes_up, q, error_q = _kinks(up, spacing)
    slopes_down, p, error_p = _kinks(down, spacing)
    middle = 1.0 - float(up.value[0]) - slopes_up - slopes_down
    # a handful of roundings of numbers of at most 1
    error_middle = 64.0 * U / middle if middle > 0.0 else math.inf
    if not error_middle < 1e-3:
        raise PrecisionError("the curve is not known well enough about epsilon 0 to be composed")
    loss_up, loss_down = up.index[1:] * spacing, down.index[1:] * spacing
    log_q, log_p = np.log(q), np.log(p)
    log_middle = math.log(middle)
    loss = np.concatenate((-loss_down[::-1], [0.0], loss_up))
    logs_p = np.concatenate((log_p[::-1], [log_middle], log_q + loss_up))
    logs_q = np.concatenate(((log_p + loss_down)[::-1], [log_middle], log_q))
    error = np.concatenate((error_p[::-1], [error_middle], error_q))
    error += 2.0 * ELEMENTARY * (1.0 + np.abs(logs_p) + np.abs(logs_q)) + 2.0 * U * np.abs(loss)
    return AtomTable(
        loss,
        np.zeros(loss.size),
        logs_p,
        logs_q,
        error,
        infinite_p=abs(float(up.value[-1])),
        infinite_q=abs(float(down.value[-1])),
        exact_losses=lambda: tuple(Fraction(float(each)) for each in loss),
    )


def _kinks(side: _Side, spacing: float) -> tuple[float, Array, Array]:
    """The first slope, the changes of slope at all knots but the first, and bounds on their relative errors."""
    loss = side.index * spacing
    slopes = (side.value[:-1] - side.value[1:]) / (np.exp(loss[:-1]) * np.expm1(np.diff(loss)))
    changes = slopes - np.append(slopes[1:], 0.0)
    if not (changes > 0.0).all():
        raise PrecisionError("the curve is not known well enough to be composed")
    # a slope: one difference, two exponentials (of a rounded difference of exact numbers), two products
    own = (4.0 * ELEMENTARY) * (slopes + np.append(slopes[1:], 0.0)) / changes
    first = float(slopes[0]) if slopes.size else 0.0  # constant from a = 1 on
    return first, changes, -np.log1p(-np.minimum(own, 0.5))
