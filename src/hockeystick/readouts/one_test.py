"""What is known of a trade-off where values at different epsilons may be of different datasets: one test at a time.

Lower values of several pairs of datasets bound the largest of their curves, whose trade-off function is the convex hull
of theirs: no attack on one of the pairs reaches it. A single value ``h(a) >= l`` is of one pair, of which some test S
has ``P(S) = l + a q``, where q = Q(S) and -q is a slope of its curve there. That curve is below the upper values on
either side, which encloses q in [r, s]; and the pair's trade-off is convex, so that it is below the lines from (0, 1)
to (q, 1 - P(S)) and on to (1, 0). The former is the flattest at q = s, the latter the highest at q = r:

    f(alpha) <= max(1 - (1 + x) alpha, (1 - y)(1 - alpha)),    x = l / s + a - 1,    y = (l + (a - 1) r) / (1 - r).

A test of the reversed pair is the same with the two rates exchanged.

Besides, the datasets that by estimate show most at one epsilon are *one* pair for all epsilons, whose whole curve is
known: every attack on it is one that somebody has (`of_one_pair`).

Guarantee: every test is above the trade-off function of some pair, where the values are certified, rounding included.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import cast, final

import numpy as np

from hockeystick.accountants.base import Parts
from hockeystick.composition import Direction
from hockeystick.errors import PrecisionError
from hockeystick.numerics.rounding import UNDERFLOW, U
from hockeystick.readouts.directions import OPPOSITE, Asked
from hockeystick.readouts.envelope import FARTHEST, Array, Enclosure, Rates, Side, Value
from hockeystick.together import Curve

_SLACK = 64.0 * U  # of a few operations on terms of one sign, and of e^epsilon
_MOST = 0.999  # of r: smaller ones hold as well


def of_several(curve: Curve) -> bool:
    """Whether the lower sides of a curve at different epsilons may be those of different datasets.

    Also where a caller states the two orders of two datasets apart, or one pair for both orders of two records.
    """
    composition, names = curve.composition, cast("tuple[Direction, ...]", tuple(curve.directed))
    shown = (composition.attained(name) for name in names)
    stated = [step for step, _ in composition.steps if step.stated_by_caller]
    return any(len(pairs) > 1 for groups in shown for pairs, _ in groups or ()) or not all(
        back == pair.reversed() or (back == pair and pair.is_symmetric)
        for step in stated
        for name in names
        for (pair, _), (back, _) in zip(step.pairs(name), step.pairs(OPPOSITE[name]), strict=True)
    )


@final
@dataclass(frozen=True)
class KnownTests:
    """One test each, as the two lines that meet in it.

    Attributes
    ----------
    steep : ndarray
        The line from (0, 1) is ``1 - steep alpha``; infinite where all that is found is found without a false alarm.
    missed, found : ndarray
        The line to (1, 0) is ``missed (1 - alpha)``, and ``found`` what is not missed at alpha = 0.
    """

    steep: Array
    missed: Array
    found: Array

    @staticmethod
    def of(enclosure: Enclosure) -> KnownTests:
        """The tests of both sides of an enclosure."""
        steep, missed, found = _of(enclosure.forward, enclosure.backward)
        other_steep, other_missed, _ = _of(enclosure.backward, enclosure.forward)
        with np.errstate(divide="ignore"):
            turned, left = (1.0 - _SLACK) / other_missed, np.minimum((1.0 + _SLACK) / other_steep, 1.0)
        return KnownTests(np.append(steep, turned), np.append(missed, left), np.append(found, 1.0 - left))

    def rates(self, alpha: float, known: Rates) -> Rates:
        """The rates at one alpha, of which ``known`` has the sides that hold for all datasets."""
        rest = 1.0 - alpha
        missing = float(np.maximum(1.0 - alpha * self.steep, self.missed * rest).min()) * (1.0 + _SLACK) + 4.0 * U
        finding = float(np.minimum(alpha * self.steep, self.found + (1.0 - self.found) * alpha).max()) * (1.0 - _SLACK)
        return Rates(
            Value(known.negative.lower, min(missing, rest * (1.0 + _SLACK), 1.0)),
            Value(max(finding - UNDERFLOW, alpha), known.positive.upper),
        )

    def lines(self) -> list[tuple[Array, Array]]:
        """The vertices of each test's broken line."""
        shared, apart = 1.0 - self.missed, self.steep - self.missed
        at = np.minimum(np.divide(shared, apart, out=np.zeros_like(apart), where=shared > 0.0), 1.0)
        corners = zip(at.tolist(), (self.missed * (1.0 - at)).tolist(), strict=True)
        return [
            (np.array([0.0, x, 1.0][x == 0.0 :]), np.array([1.0, y, 0.0][x == 0.0 :]))  # no edge straight up
            for x, y in corners
        ]


def _of(side: Side, other: Side) -> tuple[Array, Array, Array]:
    """The tests of one side, and that of the mass at infinity, with the lines moved outward."""
    a, excess, low = np.exp(side.epsilon), np.expm1(side.epsilon), side.lower
    most = np.minimum(side.steepest(a, other), (1.0 - low + 4.0 * U) / a * (1.0 + _SLACK))
    least = np.minimum(np.append(0.0, side.flattest(a)), np.minimum(most, _MOST))
    with np.errstate(over="ignore"):  # a line less steep holds as well
        ratio = np.minimum(low / most, FARTHEST)
    steep = np.append((ratio + a) * (1.0 - _SLACK), np.inf)
    found = np.append((low + excess * least) / (1.0 - least) * (1.0 - _SLACK), side.floor)
    missed = np.append(((1.0 - low) - a * least) / (1.0 - least), 1.0 - side.floor) + _SLACK
    return steep, np.clip(missed, 0.0, 1.0), found


@final
@dataclass(frozen=True)
class KnownAttacks:
    """What attacks reach of which several pairs of datasets are known.

    Attributes
    ----------
    ask : Asked
        What answers.
    name : str
        The direction attacked.
    all : Enclosure
        Its values, of whichever datasets show most at each epsilon.
    """

    ask: Asked
    name: str
    all: Enclosure
    _alone: dict[Parts, Enclosure] = field(default_factory=dict)

    def rates(self, alpha: float, width: float) -> Rates:
        """The rates at one alpha: of no attack above the sides that hold for all, of some attack on the others."""
        known = self.all.refined(alpha, width)
        if alpha == 0.0:
            return known
        missed, found = [], []
        for rates in (KnownTests.of(self.all).rates(alpha, known), *self._of_one_pair(alpha, width)):
            missed.append(rates.negative.upper)
            found.append(rates.positive.lower)
        return Rates(Value(known.negative.lower, min(missed)), Value(max(found), known.positive.upper))

    def _of_one_pair(self, alpha: float, width: float) -> Iterable[Rates]:
        """The rates of the pairs of datasets that show most where those of all are decided."""
        first, second = self.all.decides(alpha)
        for order, name, epsilon in ((1, self.name, first), (-1, OPPOSITE[self.name], second)):
            parts = self.ask.shown_at(name, epsilon)
            if parts is None:
                continue
            turned = tuple((pair.reversed(), count) for pair, count in parts)
            forward, backward = (parts, turned)[::order]
            with suppress(PrecisionError):  # the other tests stand without it
                if forward not in self._alone:
                    both = None if forward == backward else self.ask.of_parts(backward)
                    self._alone[forward] = Enclosure(self.ask.of_parts(forward), both)
                yield self._alone[forward].refined(alpha, width)


def smallest(lines: Iterable[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The smallest of broken lines over [0, 1]."""
    return reduce(_smaller, lines)


def _smaller(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    """The smaller of two broken lines, with a vertex where they cross."""
    x = np.union1d(one[0], other[0])
    apart = np.interp(x, *one) - np.interp(x, *other)
    before = np.flatnonzero(apart[:-1] * apart[1:] < 0.0)
    x = np.union1d(x, x[before] + np.diff(x)[before] * apart[before] / (apart[before] - apart[before + 1]))
    return x, np.minimum(np.interp(x, *one), np.interp(x, *other))
