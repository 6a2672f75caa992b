"""Few steps of many atoms: the outcomes that matter to a question, one by one.

Discrete Gaussian noise has atoms without end, binomial noise many of next to no mass. Each step leaves out atoms of a
total mass far below the delta in question. Of the outcomes listed, those are left out that together are next to nothing
of the composition tilted to the question: with c(theta) the largest value of ``e^{-theta y} (1 - e^{-y})``, what they
would add is at most

    c(theta) sum p e^{theta (l - eps)}        over the outcomes left out.

The upper side adds both. Lists serve all deltas from one end of a *station* to the other. Stations are the same for
all compositions, and the question alone decides which one answers: kept lists make it faster, never different.

Guarantee: lower and upper are certified. Cost: lists for each station.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np

from hockeystick.bound import Bound
from hockeystick.engines.enumeration.counting import outcomes_but
from hockeystick.engines.enumeration.curve import EnumeratedCurve
from hockeystick.engines.enumeration.outcomes import Omission, Parts, halves, table
from hockeystick.engines.one_sided.terms import TILTS, Atoms
from hockeystick.errors import TooManyOutcomesError
from hockeystick.laws.base import Pair

_LEAST = -700.0  # ln of the least delta
_TRIES = 8
_KEPT = 1 << 23  # outcomes of lists, of some forty bytes each
_APART = 1.25  # standard deviations of a normal loss from one station to the next
_FIRST = 0.25  # of the first station
_MARGIN = 0.5  # of what may be left out
_NEAR = 0.5  # of the way to the next station's, that estimates of deltas may be off by
_ENOUGH = 1e-10  # of delta, that what is left out may be by plan
_ALLOWED = 5e-10  # and that it may be
_AIM = math.log(1e-3 * _ENOUGH)  # what lists are planned for, of about delta
_ABOVE = 3.0  # nats: how far Chernoff's bounds are above delta, about
_NO_MASS = -48.0  # its logarithm
_COARSEST = -20.0  # the largest: a list is never empty


@final
class HeaviestOutcomes:
    """The curve of one direction, where each half of the steps has few outcomes that matter.

    Parameters
    ----------
    parts : sequence of (Pair, int)
        Pairs of atoms.
    at_infinity : (float, float)
        Bounds on the mass at infinite loss.
    most : int
        Outcomes of half the steps that are listed.
    """

    def __init__(self, parts: Parts, at_infinity: tuple[float, float], most: int) -> None:
        self._parts, self._atoms, self._at_infinity, self._most = parts, Atoms(parts), at_infinity, most
        self._kept: dict[int, EnumeratedCurve] = {}

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon).

        Raises
        ------
        TooManyOutcomesError
            Where too many outcomes matter.
        """
        log_drop = next(self._atoms.classes(epsilon), None)
        bound = _LEAST if log_drop is None else self._atoms.terms(log_drop).log_bound(epsilon)
        number = round(_place_of(bound))
        for _ in range(_TRIES):
            curve = self._curve(number)
            found = curve.delta(epsilon)
            there = _place_of(_log(curve.about(epsilon) or float(found.upper)))
            if curve.left_out(epsilon) <= _ALLOWED * float(found.lower):
                return found
            number = round(there) if round(there) != number else number + 1
        raise TooManyOutcomesError(f"delta at epsilon {epsilon:g} is too small to be told what matters")

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``; raises as `delta`."""
        size = max(delta - self._at_infinity[1], 1e-320)
        first = round(_place_of(math.log(size)))
        for number in range(first, first + _TRIES):
            curve = self._curve(number)
            found = curve.epsilon(delta)
            if curve.left_out(float(found.lower)) <= _ALLOWED * size:
                return found
        raise TooManyOutcomesError(f"the epsilon of delta {delta:g} is too far from what was looked at")

    def _curve(self, number: int) -> EnumeratedCurve:
        """The lists of a station, which may be kept: they are the same whenever they are made."""
        found = self._kept.get(number)
        if found is None:
            found = self._made(number)
            kept = [*self._kept.items(), (number, found)]
            while len(kept) > 1 and sum(curve.size for _, curve in kept) > _KEPT:
                kept.pop(0)
            self._kept = dict(kept)
        return found

    def _made(self, number: int) -> EnumeratedCurve:
        """Lists for deltas from one end of a station to the other."""
        sizes = [math.exp(max(_log_size(number + shift), _LEAST)) for shift in (0.5, 0.0, -0.5)]
        terms = self._atoms.terms(self._atoms.log_drop(math.log(sizes[0])))
        epsilons = [terms.epsilon_bound(math.log(size) + _ABOVE) for size in sizes]
        made: dict[Omission, EnumeratedCurve] = {}
        for _ in range(_TRIES):
            omitted = self._omitted(epsilons, sizes)
            curve = made[omitted] = made.get(omitted) or EnumeratedCurve(self._parts, self._at_infinity, omitted)
            off = [_log(curve.about(at)) - math.log(size) for at, size in zip(epsilons, sizes, strict=True)]
            room = _NEAR * math.log(sizes[1] / sizes[0])
            if any(abs(one) > room and (at > 0.0 or one > 0.0) for at, one in zip(epsilons, off, strict=True)):
                epsilons = [curve.guess(size) for size in sizes]
            left_out = map(curve.left_out, epsilons)
            if all(out <= _MARGIN * _ENOUGH * size for out, size in zip(left_out, sizes, strict=True)):
                return curve
            epsilons = [curve.guess(size) for size in sizes]
        raise TooManyOutcomesError(f"what matters to a delta of {sizes[1]:g} is too far from what was looked at")

    def _omitted(self, epsilons: Sequence[float], sizes: Sequence[float]) -> Omission:
        """What lists for deltas of some sizes leave out, at about these epsilons."""
        log_drop = self._atoms.log_drop(math.log(sizes[0]))
        terms, both = self._atoms.terms(log_drop), halves(self._parts)
        # how far Chernoff's bound is above any of the deltas; beyond a jump of the loss, outcomes tilted weigh far more
        above = np.max(
            [terms.log_bounds(at)[0] - math.log(size) for at, size in zip(epsilons, sizes, strict=True)], axis=0
        )
        above = np.where(TILTS >= 0.0, above, math.inf)
        for tilt in (int(np.argmin(above)), int(np.argmin(np.abs(TILTS)))):
            log_share = min(_AIM - float(above[tilt]), _COARSEST)
            found = [outcomes_but(tuple(half), float(TILTS[tilt]), log_drop, log_share) for half in both]
            if max(number for _, number in found) <= self._most:
                return Omission(log_drop, float(TILTS[tilt]), min(log_least for log_least, _ in found))
        raise TooManyOutcomesError(f"more than {self._most} outcomes of half the steps matter at {sizes[0]:g}")


def atoms_that_count(pair: Pair) -> float:
    """How many atoms a step has but for next to no mass; infinite where they are not known."""
    atoms = table(pair, _NO_MASS)
    return math.inf if atoms is None else atoms.size


def _log_size(number: float) -> float:
    """``ln`` of the delta at a station, or between: of a normal loss, at epsilons as far apart as it spreads."""
    return -0.5 * (_APART * max(number, _FIRST)) ** 2


def _place_of(log_delta: float) -> float:
    """Where among the stations, the nearest of which answers."""
    return math.sqrt(-2.0 * min(log_delta, 0.0)) / _APART


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else 2.0 * _LEAST
