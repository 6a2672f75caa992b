"""Outlines of pictures: broken lines proved to lie below and above a curve, between its points as well as at them.

A line drawn straight from point to point says something of all that lies between, and of a convex curve it says too
much: the trade-off function lies below such a line, and delta, on a logarithmic scale, mostly above it. With h, P and
Q as in `envelope`, and finitely many certified values of h at ``a = e^eps``:

- h lies below the chords of its upper values, and above the corners of `Side.corners`;
- the trade-off function is ``f(alpha) = sup_a 1 - h(a) - a alpha``, so that each upper value of h is a line below f
  and their maximum a broken line, drawn exactly from vertex to vertex. Linear between its corners, the lower side of h
  has its supremum at one of them: the maximum of their lines lies above f.

On a logarithmic scale ``ln(c - s e^eps)`` is concave in epsilon: what is drawn straight between two points of a line
in a lies below that line, as it should for the lower side; the upper side is drawn along the two tangents at the
ends of each chord, which lie above it.

Guarantee: certified where the values are; lines are moved outward by more than the rounding of these few operations.
Cost: up to 65 values of each direction, put where the two sides are seen apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.bound import Bound, Estimate
from hockeystick.readouts.directions import OPPOSITE, Asked
from hockeystick.readouts.envelope import Corners, Enclosure, Side, Value
from hockeystick.readouts.one_test import KnownTests, of_several, smallest
from hockeystick.together import Curve, passed_together

if TYPE_CHECKING:
    from hockeystick.curve import PrivacyCurve

Array = NDArray[np.float64]
Line = tuple[Array, Array]

LARGEST_EPSILON = 690.0
"""Nats: e^epsilon and its products stay finite."""

_SEEN = 1e-2  # of the axis: a band no wider than the line that is drawn
_FIRST, _MOST = 9, 65  # values of each direction, at first and at most
_SLACK = 1e-12
_ALONE = 6  # one of so many that a pass does not answer
_OUTWARD = 1e-12  # of 1, epsilon and ln delta: far above the rounding of the few operations here, far below a pixel


@final
@dataclass(frozen=True)
class Lines:
    """Vertices of the broken line below a curve and of that above it; straight between them on the picture's axes."""

    below: Line
    above: Line


@final
@dataclass(frozen=True)
class Samples:
    """Values of delta in each direction at the same epsilons, from which pictures are drawn.

    Attributes
    ----------
    epsilon : tuple of float
        Increasing from 0; infinity comes last.
    values : mapping of str to tuple of Value
        For each direction the values at these epsilons.
    certified : bool
        Whether all of them are proved.
    several : bool
        Whether lower sides at different epsilons may be those of different datasets.
    """

    epsilon: tuple[float, ...]
    values: Mapping[str, tuple[Value, ...]]
    certified: bool
    several: bool = False

    @staticmethod
    def of(document: Mapping[str, Any]) -> Samples:
        """The same from what `document` made of it."""
        values = {
            name: tuple(Value(float(low), float(high)) for low, high in zip(*sides, strict=True))
            for name, sides in document["directions"].items()
        }
        several = bool(document.get("several", False))
        return Samples(tuple(map(float, document["epsilon"])), values, bool(document["certified"]), several)

    @property
    def document(self) -> dict[str, Any]:
        """The values as JSON holds them, but for infinity: in each direction the lower sides and the upper ones."""
        sides = {
            name: [[value.lower for value in found], [value.upper for value in found]]
            for name, found in self.values.items()
        }
        said = {"certified": self.certified, "several": self.several}
        return {**said, "epsilon": list(self.epsilon), "directions": sides}

    @property
    def estimate(self) -> tuple[Array, Array]:
        """Epsilon and the worst delta, one point a value: all there is to draw where nothing is proved."""
        return np.array(self.epsilon[:-1]), np.array([value.upper for value in self.worst[:-1]])

    @property
    def worst(self) -> tuple[Value, ...]:
        """The largest value of any direction."""
        columns = zip(*self.values.values(), strict=True)
        return tuple(Value(max(v.lower for v in each), max(v.upper for v in each)) for each in columns)

    def enclosure(self, direction: str = "worst") -> Enclosure:
        """The curve of one direction, or the worst of all, with that of the opposite direction for its other side."""
        forward = self.worst if direction == "worst" else self.values[direction]
        if all(OPPOSITE[name] in self.values for name in self.values):
            opposite = OPPOSITE.get(direction, direction)
            backward = None if opposite == direction else self._table(self.values[opposite])
            return Enclosure(self._table(forward), backward)
        nothing = (Value(0.0, 1.0),) * len(self.epsilon)
        return Enclosure(self._table(forward), self._table(nothing))

    def privacy(self, least: float) -> Lines:
        """Outline of the worst delta against epsilon, delta on a logarithmic scale, down to ``least``."""
        enclosure = self._filled("worst")
        side, (excess, lower) = enclosure.forward, enclosure.corners()[0].falling()
        below = _falling_to(np.log1p(excess), lower, least)
        above = _along_tangents(side.epsilon, np.maximum(side.upper, 0.1 * least))
        outward = math.exp(_OUTWARD * (1.0 - math.log(least)))
        above = above[0] * (1.0 + _OUTWARD), above[1] * outward
        return Lines((below[0] * (1.0 - _OUTWARD), below[1] / outward), _cropped(*above, least))

    def trade_off(self, direction: str = "worst") -> Lines:
        """Outline of the smallest false-negative rate against the false-positive rate, both scales linear."""
        if direction == "worst":
            each = [self.trade_off(name) for name in self.values]
            return Lines(smallest(one.below for one in each), smallest(one.above for one in each))
        enclosure = self._filled(direction)
        sides = (enclosure.forward, enclosure.backward)
        points = ((np.exp(side.epsilon), side.upper) for side in sides)
        corners = ((side.a, side.lower) for side in enclosure.corners())
        above = smallest(KnownTests.of(enclosure).lines()) if self.several else _conjugate(*corners)
        floor = sides[0].floor  # of the mass at infinite loss: what is found without a false alarm
        start = np.minimum(above[1] + _OUTWARD, 1.0 - max(floor - _OUTWARD, 0.0))
        return Lines(_conjugate(*points, shift=-_OUTWARD), (above[0], start))

    def _filled(self, direction: str) -> Enclosure:
        enclosure = self.enclosure(direction)
        for side in {id(side): side for side in (enclosure.forward, enclosure.backward)}.values():
            side.add(*self.epsilon[1:-1])
        return enclosure

    def _table(self, values: Iterable[Value]) -> Any:
        return dict(zip(self.epsilon, values, strict=True)).__getitem__

    def cuts(self, end: float, least: float, seen: float) -> list[float]:
        """Where the two sides are seen apart, on either picture: epsilons where a value would help, most first."""
        found: dict[float, float] = {}
        for direction in dict.fromkeys(("worst", *self.values)):
            enclosure = self._filled(direction)
            # the other directions are seen on the trade-off alone
            floor = least if direction == "worst" else 1.0
            found |= _apart(enclosure.forward, enclosure.corners()[0], end, floor, seen)
        return sorted(found.keys() - set(self.epsilon), key=lambda epsilon: -found[epsilon])


def sampled(
    curve: Curve, end: float, *, least: float, names: Iterable[str] = (), seen: float = _SEEN, first: int = _FIRST
) -> Samples:
    """Values of a curve, enough of them for pictures whose two sides are seen as one line, where that can be.

    Parameters
    ----------
    curve : PrivacyCurve
        Whose directions are asked for.
    end : float
        The largest epsilon, above 0 (nats).
    least : float
        The smallest delta that is told apart from 0; 1 for a trade-off alone.
    names : iterable of str
        The directions; those of the relation by default.
    seen : float
        Of the axis: sides closer together than this look like one line; four times closer takes twice as many values.
        Where it is infinite, the first values are all: they are asked in one pass.
    first : int
        How many epsilons are asked at first, besides one beyond the end and infinity.
    """
    most = math.ceil(_MOST * math.sqrt(_SEEN / seen))
    ask = Asked(curve)
    kinds = {name: ask.kind(name) for name in names or curve.directed}
    distinct = {kind: name for name, kind in kinds.items()}  # once where a pair is its own reverse
    known: dict[float, dict[Any, Value]] = {}
    end = min(end, LARGEST_EPSILON)
    # a value beyond the end tells how steep the curve is there
    wanted = [*np.linspace(0.0, end, first).tolist(), min((1.0 + 0.25 / first) * end, LARGEST_EPSILON), math.inf]
    while True:
        found = ask.each(list(distinct.values()), wanted)
        known |= {
            epsilon: {kind: found[name][at] for kind, name in distinct.items()} for at, epsilon in enumerate(wanted)
        }
        epsilons = tuple(sorted(known))
        values = {name: tuple(known[epsilon][kind] for epsilon in epsilons) for name, kind in kinds.items()}
        samples = Samples(epsilons, values, ask.certified, of_several(curve))
        wanted = samples.cuts(end, least, seen)[: max(most - len(known), 0)] if seen < math.inf else []
        if not wanted:
            return samples


def crossings(
    curve: PrivacyCurve, deltas: Iterable[float], needed: Iterable[float] = ()
) -> dict[float, Bound | Estimate]:
    """The worst epsilons at deltas, as far as one pass finds them.

    Of those that it does not find, the needed ones are asked alone, and every sixth other one, from the smallest on.
    """
    needed = set(needed)
    values = sorted({*deltas, *needed}, reverse=True)
    passed = passed_together([curve], np.zeros(len(values), dtype=np.intp), np.array(values), "epsilon")
    found = dict(zip(values, passed, strict=True))
    others = [delta for delta, answer in found.items() if answer is None and delta not in needed]
    alone = needed.union(others[-1 - _ALONE // 2 :: -_ALONE])
    answers = ((delta, curve.epsilon(delta) if one is None and delta in alone else one) for delta, one in found.items())
    return {delta: answer for delta, answer in answers if answer is not None}


def crossed(curve: PrivacyCurve, found: Mapping[float, Bound | Estimate]) -> Samples:
    """The worst curve from where it crosses deltas (`crossings`), largest first, and from its value at infinity.

    A bracket [low, high] of epsilon at d says ``h(low) >= d >= h(high)``. To the left a convex h rises by no more than
    1 for every 1 in e^eps: ``h(0) <= d + e^high - 1``. To the right of a point it falls no faster than along the chord
    to its left: ``h(high) >= d - (c - d) (e^high - e^low) / (e^low - e^before)``, c the delta crossed before, or the
    most that h(0) may be.

    The answers of an accountant that estimates make estimates.
    """
    sides = {delta: tuple(float(side) for side in bound.sides) for delta, bound in found.items()}
    inside = [(delta, low, high) for delta, (low, high) in sides.items() if 0.0 < low <= high <= LARGEST_EPSILON]
    most = [delta + math.expm1(high) for delta, _, high in inside]
    most += [delta for delta, (_, high) in sides.items() if high == 0.0]
    before, above = 0.0, min([1.0, *(value * (1.0 + _SLACK) for value in most)])
    points = {0.0: Value(inside[0][0] if inside else 0.0, above)}
    for delta, low, high in inside:
        if not before < low or delta >= above:
            continue
        # differences of two floats are rounded once: a few roundings in all, far below the slack
        steepest = (above - delta) / (math.exp(before) * math.expm1(low - before))
        fall = steepest * math.exp(low) * math.expm1(high - low) * (1.0 + _SLACK)
        points[high] = Value(max(delta - fall, 0.0) * (1.0 - _SLACK), delta)
        before, above = high, delta
    end = curve.delta(math.inf)
    points[math.inf] = Value(*(float(side) for side in end.sides))
    several = of_several(curve) or len({id(one) for one in curve.directed.values()}) > 1
    values = dict.fromkeys(curve.directed, tuple(points.values()))
    certified = all(isinstance(answer, Bound) for answer in (end, *found.values()))
    return Samples(tuple(points), values, certified, several)


def _apart(side: Side, corners: Corners, end: float, least: float, seen: float) -> dict[float, float]:
    """Where, cell by cell, the chord above lies visibly higher than the corner below, and how far.

    The ends' own widths are left out: another value does not help there.
    """
    excess, lower, epsilon = corners.excess[1:-1:2], corners.lower[1:-1:2], side.epsilon
    a, width = np.expm1(epsilon), np.diff(epsilon)
    chord = side.upper[:-1] + np.diff(side.upper) * np.clip((excess - a[:-1]) / np.diff(a), 0.0, 1.0)

    def bulge(low: Array, high: Array, low_ends: Array, high_ends: Array) -> Array:
        ends = high_ends - low_ends
        found: Array = high - low - np.maximum(ends[:-1], ends[1:])
        return found

    apart = bulge(lower, chord, side.lower, side.upper)
    if least < 1.0:
        low, high, *ends = (np.log(np.maximum(values, least)) for values in (lower, chord, side.lower, side.upper))
        apart = np.maximum(apart, np.minimum(bulge(low, high, *ends) / -math.log(least), width / end))
    apart[epsilon[:-1] >= end] = 0.0  # beyond the picture
    cuts: dict[float, float] = {}
    for start, corner, size, far in zip(epsilon[:-1], np.log1p(excess), width, apart, strict=True):
        if far > seen:  # halves bring the sides closer four times, thirds nine times
            middle = min(max(corner, start + 0.4 * size), start + 0.6 * size)
            thirds = (start + size / 3.0, start + 2.0 * size / 3.0)
            cuts |= dict.fromkeys((float(f"{cut:.6g}") for cut in (thirds if far > 4.0 * seen else [middle])), far)
    return cuts


def _along_tangents(epsilon: Array, delta: Array) -> Line:
    """Above the chords of delta in e^epsilon: along their tangents at both ends, on a logarithmic scale."""
    width = np.diff(epsilon)
    fall, height = delta[:-1] - delta[1:], np.log(delta)
    rise = -np.expm1(-width)
    first, last = -fall / delta[:-1] * np.exp(-width) / rise, -fall / delta[1:] / rise
    steeper = first - last
    meet = np.divide(np.diff(height) - last * width, steeper, out=0.5 * width, where=steeper > 0.0)
    meet = np.clip(meet, 0.0, width)
    top = height[:-1] + first * meet
    x, y = np.empty(2 * epsilon.size - 1), np.empty(2 * epsilon.size - 1)
    x[0::2], x[1::2], y[0::2], y[1::2] = epsilon, epsilon[:-1] + meet, height, np.maximum(top, height[1:])
    return x, np.exp(y)


def _falling_to(epsilon: Array, delta: Array, least: float) -> Line:
    """The broken line in e^epsilon as far as it is above ``least``, which is met where it is in truth."""
    count = int(np.searchsorted(-delta, -least))  # delta falls
    if count == 0:
        return epsilon[:1], np.array([least])
    if count == delta.size:
        return epsilon, delta
    start, high, low = epsilon[count - 1], delta[count - 1], max(delta[count], 0.0)
    share = (high - least) / (high - low)
    end = start + math.log1p(share * math.expm1(epsilon[count] - start))
    return np.append(epsilon[:count], end), np.append(delta[:count], least)


def _cropped(epsilon: Array, delta: Array, least: float) -> Line:
    """A line that is straight on a logarithmic scale, as far as it is above ``least``."""
    count = int(np.searchsorted(-delta, -least))
    if count in {0, delta.size}:
        return epsilon, np.maximum(delta, least)
    share = math.log(delta[count - 1] / least) / math.log(delta[count - 1] / delta[count])
    end = epsilon[count - 1] + share * (epsilon[count] - epsilon[count - 1])
    return np.append(epsilon[:count], end), np.append(delta[:count], least)


def _conjugate(forward: Line, backward: Line, *, shift: float = 0.0) -> Line:
    """Vertices of ``max over points (a, h) of 1 - h - a alpha + shift``, and of 0, for alpha in [0, 1].

    A point (b, h) of the opposite curve is the point (1/b, 1 - (1 - h)/b) of this one.
    """
    slopes = np.concatenate((forward[0], 1.0 / backward[0], [0.0]))
    heights = np.concatenate((1.0 - forward[1] + shift, (1.0 - backward[1]) / backward[0] + shift, [0.0]))
    order = np.lexsort((-heights, -slopes))  # the steepest line is the largest at alpha = 0, if any is
    kept: list[tuple[float, float, float]] = []  # slope, height, and from which alpha on the line is the largest
    for slope, height in zip(slopes[order].tolist(), heights[order].tolist(), strict=True):
        start = 0.0
        while kept:
            steeper, higher, begin = kept[-1]
            start = (higher - height) / (steeper - slope) if steeper > slope else math.inf
            if start > begin:
                break
            kept.pop()
            start = 0.0
        if start < 1.0:
            kept.append((slope, height, start))
    alpha = np.array([begin for _, _, begin in kept] + [1.0])
    rate = np.array([height - slope * begin for slope, height, begin in kept] + [kept[-1][1] - kept[-1][0]])
    return alpha, np.clip(rate, 0.0, 1.0)
