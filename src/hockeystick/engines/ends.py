"""The ends of the range: the mass at infinite loss, the largest finite loss, and the chance of being drawn at all.

`Pair.loss_bounds` is a float near the end of the losses. What it is off by is rounding, but not always small beside the
loss: a sampled loss ``ln(1 - g + g e^l)`` loses ``|1 - 1/r|`` roundings where r is near 0, and the loss of two rational
masses one rounding of their ratio, however near that is to 1. A million steps multiply it.

Where nothing needs composing these answer, for every engine alike; between them an engine is asked.

Guarantee: the numbers are certified on the sides stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, final

import numpy as np

from hockeystick.bound import Bound, agreed, at_most
from hockeystick.laws.base import CertifiedCurve, Pair, Parts
from hockeystick.numerics.columns import Array, Columns, Flags, Places
from hockeystick.numerics.rounding import ELEMENTARY, U, down, exp_up, up

_TRIVIAL = "trivial"
_NOTHING_HIDDEN = "a step hides nothing: its loss is infinite with probability one, or next to it"
_NEXT_TO_INFINITY = "delta is the mass at infinite loss, to within rounding: epsilon may be infinite"
_LEFT = {
    "points": "what is not known between points of the curve",
    "merging": "how outcomes are merged",
    "band": "what the frequencies allowed do not tell",
}
_INSIDE = 1.0 - 1e-9  # far within what the rounding of a bound could decide
_LEAST = 1e-300  # a smaller delta is not asked to be relatively accurate


def largest_loss(parts: Iterable[tuple[Pair | CertifiedCurve, int]]) -> tuple[float, float]:
    """Lower and upper bound on the largest finite loss of a composition (nats); ``inf`` where there is none.

    Examples
    --------
    >>> from hockeystick.laws import LaplacePair
    >>> low, high = largest_loss([(LaplacePair(2.0), 10)])
    >>> low < 5.0 < high < 5.0 + 1e-13
    True
    """
    low, high = [], []
    for pair, count in parts:
        end = pair.supremum
        loss, error = end.value, end.error
        if math.isinf(loss):
            return loss, loss
        outward = error * (1.0 + 8.0 * U)
        low.append(down(float(count) * down(loss - outward), 2.0 * U))
        high.append(up(float(count) * up(loss + outward), 2.0 * U))
    return down(math.fsum(low)), up(math.fsum(high))


_LOST = 2.0**-1073  # two of the smallest numbers: what a rounding below the normal range can cost


def composed_infinity(parts: Iterable[tuple[Pair | CertifiedCurve, int]]) -> tuple[float, float]:
    """Lower and upper bound of the mass of infinite losses of a composition.

    Examples
    --------
    >>> from hockeystick.laws import DiscretePair
    >>> low, high = composed_infinity([(DiscretePair((0.25, 0.75), (0.0, 1.0)), 2)])
    >>> low < 0.4375 < high < 0.4375 + 1e-14
    True
    """
    found = [(pair.infinite_mass, count) for pair, count in parts]
    lost = [(loss, count) for loss, count in found if loss.high > 0.0]
    if not lost:
        return 0.0, 0.0
    if len(lost) == 1 and lost[0][1] == 1:
        return lost[0][0].low, lost[0][0].high
    # A product and the sum of all products, of one sign, are one rounding each: together within 4 u of the sum.
    least = math.fsum(count * (loss.log_low - _LOST) for loss, count in lost) * (1.0 + 4.0 * U)
    most = math.fsum(count * min(loss.log_high + _LOST, 0.0) for loss, count in lost) * (1.0 - 4.0 * U)
    room = _LOST * (len(lost) + 2)
    low = -math.expm1(most) * (1.0 - 2.0 * ELEMENTARY) - room
    high = -math.expm1(least) * (1.0 + 2.0 * ELEMENTARY) + room
    return max(low, 0.0), min(high, 1.0)


def ever_drawn(parts: Iterable[tuple[Pair, int]]) -> float:
    """Upper bound on the probability that any step draws the record: without it both datasets give the same."""
    logs = []
    for pair, count in parts:
        if pair.sampling_rate >= 1.0:
            return 1.0
        logs.append(count * math.log1p(-pair.sampling_rate))
    # the sum of one sign is rounded once, whatever its length: each logarithm errs by ELEMENTARY, each product by u,
    # and 1 - e^x by as much as x, relative to itself, besides its own ELEMENTARY
    return min(up(-math.expm1(math.fsum(logs)), 2.0 * ELEMENTARY + 4.0 * U), 1.0)


class Answerer(Protocol):
    """What answers between the ends of the range."""

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon), epsilon finite and at most the largest loss."""

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``, in (0, 1)."""


class Engine(Answerer, Protocol):
    """What alone answers there, and proves bounds on the other direction."""

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether ``delta(epsilon) <= delta`` is proved at once, for far less than an answer costs."""


@final
@dataclass(frozen=True, eq=False)
class Ends(Columns):
    """The ends of the ranges of the curves that questions are asked of, and the tolerances: arrays of shape (E,)."""

    largest: Array
    low: Array
    high: Array
    ever: Array
    tolerance: Array

    @classmethod
    def of(cls, curves: Sequence[BoundedCurve], owners: Places) -> Ends:
        """Those of ``curves[owners[i]]``."""
        return cls(*np.array([curve.ends for curve in curves])[owners].T)

    def asks_delta(self, epsilon: Array) -> Flags:
        """At which epsilons delta is what the engine says, if `keeps_delta`."""
        finite = np.isfinite(epsilon)
        value = np.where(finite, epsilon, 0.0)
        away = self.largest - value > 1e-9 * (1.0 + value)
        return np.asarray(finite & away & (self.high < 1.0))

    def keeps_delta(self, epsilon: Array, lower: Array, upper: Array) -> Flags:
        """Which of the engine's brackets are what `delta` answers: narrow, and within what is known besides."""
        narrow = (upper - lower <= 0.999 * self.tolerance * lower) | (upper <= _LEAST)
        most = self.high - np.expm1(np.minimum(epsilon - self.largest, 0.0))
        most = np.minimum(most * _INSIDE, self.ever)
        return np.asarray(narrow & (upper <= most) & (upper >= self.low))

    def asks_epsilon(self, delta: Array) -> Flags:
        """At which deltas epsilon is what the engine says, if `keeps_epsilon`."""
        return np.asarray((delta > self.high) & (delta < np.minimum(self.ever, 1.0)))

    def keeps_epsilon(self, lower: Array, upper: Array) -> Flags:
        """Which of the engine's brackets are what `epsilon` answers."""
        return np.asarray((upper - lower <= self.tolerance) & (upper <= np.maximum(self.largest, 0.0)))


@final
class BoundedCurve:
    """The curve of one direction: its ends, and between them an engine.

    Parameters
    ----------
    parts : tuple of (Pair, int)
        Dominating pairs with their counts.
    make_engine : callable
        From an upper bound on the largest finite loss to what answers in between; called when first needed.
    tolerance : float
        Width of the epsilon bracket asked for (nats), and relative width of the delta bracket.
    """

    def __init__(self, parts: Parts, make_engine: Callable[[float], Engine], tolerance: float) -> None:
        self._make_engine, self._tolerance, self._parts = make_engine, tolerance, parts
        # a pair given by its curve: the ends are the pair's own, not those of the laws about it
        own = tuple((pair.curve or pair, count) for pair, count in parts)
        self._least_largest, self._largest_loss = largest_loss(own)
        self._about = any(pair.curve is not None for pair, _ in parts)
        self._at_infinity = composed_infinity(own)
        self._ever = ever_drawn(parts)

    @cached_property
    def engine(self) -> Engine:
        """What answers between the ends."""
        return self._make_engine(math.inf if self._about else self._largest_loss)

    @property
    def ends(self) -> tuple[float, ...]:
        """The numbers that `Ends` holds."""
        return self._largest_loss, *self._at_infinity, self._ever, self._tolerance

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon), epsilon at least 0 and possibly infinite (nats)."""
        if epsilon > self._largest_loss:
            return Bound(*self._at_infinity, _TRIVIAL, notes=("epsilon is beyond the largest loss",))
        if math.isinf(epsilon):
            return Bound(*self._at_infinity, _TRIVIAL)
        if self._at_infinity[1] >= 1.0:
            return Bound(*self._at_infinity, _TRIVIAL, notes=(_NOTHING_HIDDEN,))
        bound = self.engine.delta(epsilon)
        # E (1 - e^{eps - L})+ is at most what it is where every finite loss is the largest
        # (a difference, expm1 and a sum of two terms of one sign: below 7 u)
        most = up(self._at_infinity[1] - math.expm1(epsilon - self._largest_loss), 8.0 * U)
        note = "the upper side: no loss is larger than the largest"
        if self._ever < most:
            most, note = self._ever, "the upper side: the probability that the record is ever drawn"
        if self._about:  # the law about a curve may be above the curve's own ends, or below: no contradiction
            sides = min(float(bound.lower), most), max(float(bound.upper), self._at_infinity[0])
            bound = replace(bound, lower=sides[0], upper=sides[1])
        agreed(bound, Bound(self._at_infinity[0], 1.0, "the mass at infinite loss"))
        bound = _below(bound, most, note)
        return _explained(bound, _relative_width(bound), self._tolerance, "a relative width")

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``, in [0, 1]."""
        low, high = self._at_infinity
        largest = max(self._largest_loss, 0.0)
        if delta >= 1.0:
            return Bound(0.0, 0.0, _TRIVIAL)
        if delta < low:
            return Bound(math.inf, math.inf, _TRIVIAL, notes=("delta is below the mass at infinite loss",))
        if self._at_infinity[1] >= 1.0:
            return Bound(0.0, math.inf, _TRIVIAL, notes=(_NOTHING_HIDDEN,))
        if delta >= self._ever:
            note = "delta is at least the probability that the record is ever drawn"
            return Bound(0.0, 0.0, _TRIVIAL, notes=(note,))
        if delta == 0.0:
            lower = max(self._least_largest, 0.0)
            upper = largest if high == 0.0 else math.inf
            return Bound(lower, upper, _TRIVIAL, notes=("delta 0: the largest loss",))
        bound = self.engine.epsilon(delta)
        if delta < high:  # it may be below the mass at infinity, or not
            lower = min(float(bound.lower), largest)  # no contradiction: epsilon may be infinite
            return Bound(lower, math.inf, bound.method, (*bound.notes, _NEXT_TO_INFINITY), bound.errors)
        # beyond the largest loss only the mass at infinity is left
        # at delta == low, too: every epsilon out there has it, and the largest loss is the smallest of them
        if delta == low or self._about:
            bound = replace(bound, lower=min(float(bound.lower), largest))
        bound = at_most(bound, largest, "the largest loss")
        return _explained(bound, float(bound.width), self._tolerance, "a width")

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether ``delta(epsilon) <= delta`` is proved at once, for far less than an answer costs."""
        known = self.ends_below(epsilon, delta)
        return self.engine.is_below(epsilon, delta) if known is None else known

    def is_reverse_of(self, other: BoundedCurve) -> bool:
        """Whether the pairs are those of the other with P and Q exchanged, and their own ends those of the engine."""
        return not self._about and self._parts == tuple((pair.reversed(), count) for pair, count in other._parts)

    def is_below_if(self, log_finite: float, delta: float) -> bool:
        """Whether delta of the finite losses of at most ``e^log_finite`` proves ``delta(epsilon) <= delta``."""
        return up(self._at_infinity[1] + exp_up(min(log_finite, 0.0))) <= delta

    def ends_below(self, epsilon: float, delta: float) -> bool | None:
        """The same where the ends of the range tell; None where the engine is to be asked."""
        if epsilon > self._largest_loss:
            return self._at_infinity[1] <= delta
        if self._ever <= delta or self._at_infinity[1] > delta:
            return self._ever <= delta
        return None


def _relative_width(bound: Bound) -> float:
    """Width over the lower side; 0 where delta is too small to be asked for accurately."""
    lower, upper = float(bound.lower), float(bound.upper)
    return 0.0 if upper <= _LEAST else (upper - lower) / lower if lower > 0.0 else math.inf


def _explained(bound: Bound, found: float, tolerance: float, width: str) -> Bound:
    """A bracket; where it is wider than asked for, with the reason."""
    if not found > tolerance:
        return bound
    largest = max(bound.errors, key=lambda name: bound.errors[name], default="")
    reason = f"what is left is {_LEFT.get(largest, 'rounding')}; allow a larger tolerance"
    if "lattice" in bound.method:
        reason = (
            "a finer lattice does not fit the memory allowed or the rounding errors dominate; allow more points or a"
            " larger tolerance"
        )
    note = f"{width} of {tolerance:g} was asked for and {found:.3g} reached: {reason}"
    return replace(bound, notes=(*bound.notes, note))


def _below(bound: Bound, most: float, note: str) -> Bound:
    """A bracket of what another proof puts at ``most`` or less; the note says where that is the upper side."""
    known = at_most(bound, most, note)
    return replace(known, notes=(*known.notes, note)) if float(bound.upper) > most else bound
