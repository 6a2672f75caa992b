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
from collections.abc import Callable, Sequence
from typing import final

import numpy as np

from hockeystick.bound import Bound
from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.contour.placing import ContourRefusal, saddle_of_delta, saddle_of_epsilon
from hockeystick.engines.enumeration.buckets import Weights, about_epsilons
from hockeystick.engines.enumeration.counting import log_weight, outcomes_but
from hockeystick.engines.enumeration.curve import EnumeratedCurve
from hockeystick.engines.enumeration.merging import Merging
from hockeystick.engines.enumeration.outcomes import Omission, TooManyOutcomesError, halves, table
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.saddle import Saddle

_SHARE = math.log(1e-12)  # ln of the part of delta that atoms left out may be
_CLASS = 12.0  # nats between the classes
_LEAST = -700.0  # ln of the least mass left out
_TRIES = 8
_PATIENCE = 3  # of these, for lists where epsilons are
_KEPT = 1 << 23  # outcomes of lists, of some forty bytes each
_APART = 1.25  # standard deviations of a normal loss from one station to the next
_FIRST = 0.25  # of the first station
_MARGIN = 0.5  # of what may be left out
_BESIDE = 0.25  # of a station, that a question may lie beyond its ends
_NEAR = 0.5  # of the way to the next station's, that estimates of deltas may be off by
_TILTS = (0.0, -0.5, -1.0)  # powers of 2 times one near the saddle point
_ENOUGH = 1e-10  # of delta, that what is left out may be
_AIM = math.log(0.02 * _ENOUGH)  # what lists are planned for, of about delta
_COARSEST = -20.0  # the largest: a list is never empty
_MOST_STEPS = 1 << 10  # of which outcomes are counted


@final
class HeaviestOutcomes:
    """The curve of one direction, where each half of the steps has few outcomes that matter.

    Parameters
    ----------
    losses : PairSum
        A composition of pairs of atoms.
    at_infinity : (float, float)
        Bounds on the mass at infinite loss.
    most : int
        Outcomes of half the steps that are listed.
    buckets : int
        Of losses, in which more outcomes are merged; by default none are.
    """

    def __init__(self, losses: PairSum, at_infinity: tuple[float, float], most: int, *, buckets: int = 0) -> None:
        self._losses, self._parts, self._at_infinity, self._most = losses, losses.parts, at_infinity, most
        self._buckets = buckets
        self._steps = sum(count for _, count in self._parts)
        self._kept: dict[int, EnumeratedCurve] = {}

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon).

        Raises
        ------
        TooManyOutcomesError
            Where too many outcomes matter.
        """
        return self._answer_at(epsilon)[0]

    def _answer_at(self, epsilon: float) -> tuple[Bound, EnumeratedCurve]:
        saddle = _saddle(saddle_of_epsilon, self._losses, epsilon)
        number = 0 if saddle is None else round(_place_of(float(saddle.log_delta(epsilon))))
        for tried in range(_TRIES):
            curve = self._curve(number)
            found = curve.delta(epsilon)
            there = _place_of(_log(curve.about(epsilon) or float(found.upper)))
            enough = curve.left_out(epsilon) <= _ENOUGH * float(found.lower)
            if enough and (tried or not curve.is_merged or abs(there - number) <= 0.5 + _BESIDE):
                return found, curve
            number = round(there) if round(there) != number else number + 1
        raise TooManyOutcomesError(f"delta at epsilon {epsilon:g} is too small to be told what matters")

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``; raises as `delta`."""
        size = max(delta - self._at_infinity[1], 1e-320)
        first = round(_place_of(math.log(size)))
        for number in range(first, first + _TRIES):
            curve = self._curve(number)
            found = curve.epsilon(delta)
            if curve.left_out(float(found.lower)) <= _ENOUGH * size:
                return found
        raise TooManyOutcomesError(f"the epsilon of delta {delta:g} is too far from what was looked at")

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether ``delta(epsilon) <= delta``: proving that takes one evaluation; raises as `delta`."""
        return self._answer_at(epsilon)[1].is_below(epsilon, delta)

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
        saddles = (_saddle(saddle_of_delta, self._losses, math.log(size)) for size in sizes[1:])
        saddle = next((one for one in saddles if one is not None), None)
        theta, middle = (0.0, 0.0) if saddle is None else (float(saddle.theta), max(float(saddle.epsilon), 0.0))
        epsilons = [max(middle + math.log(sizes[1] / size) / theta, 0.0) if theta > 0.0 else middle for size in sizes]
        epsilons = self._about(self._omitted(theta, epsilons, sizes)[0], sizes)
        made: dict[tuple[Omission, Merging | None], EnumeratedCurve] = {}
        for tried in range(_TRIES):
            omitted, is_merged = self._omitted(theta, epsilons, sizes)
            merging = Merging(self._buckets, epsilons[2], epsilons[0], _fall(epsilons, sizes, theta))
            plan = omitted, merging if is_merged else None
            curve = made.get(plan) or EnumeratedCurve(self._parts, self._at_infinity, *plan)
            made[plan] = curve
            enough = all(
                curve.left_out(at) <= _MARGIN * _ENOUGH * size for at, size in zip(epsilons, sizes, strict=True)
            )
            off = [_log(curve.about(at)) - math.log(size) for at, size in zip(epsilons, sizes, strict=True)]
            room = _NEAR * math.log(sizes[1] / sizes[0])
            near = all(abs(one) <= room or (at == 0.0 and one < 0.0) for at, one in zip(epsilons, off, strict=True))
            if enough and (near or tried >= _PATIENCE):
                return curve
            epsilons = [curve.guess(size) for size in sizes]
        raise TooManyOutcomesError(f"what matters to a delta of {sizes[1]:g} is too far from what was looked at")

    def _about(self, omitted: Omission, sizes: Sequence[float]) -> list[float]:
        """About the epsilons of some deltas, that much better than a saddle point tells where losses are rare."""
        tables = [(table(pair, omitted.log_drop), count) for pair, count in self._parts]
        steps = [Weights.of(one.loss, one.log_p, count) for one, count in tables if one is not None]
        return about_epsilons(steps, sizes)

    def _omitted(self, theta: float, epsilons: Sequence[float], sizes: Sequence[float]) -> tuple[Omission, bool]:
        """What lists for deltas of some sizes leave out, at about these epsilons, and whether others are merged."""
        log_drop = _CLASS * float(np.floor((math.log(sizes[0]) + _SHARE - math.log(self._steps)) / _CLASS))
        both = halves(self._parts, log_drop) if log_drop >= _LEAST and self._steps <= _MOST_STEPS else None
        if both is None:
            raise TooManyOutcomesError(f"not all outcomes that matter at {sizes[0]:g} are known")

        def log_part(tilt: float) -> float:
            """``ln`` of the least part of the weight that any of the deltas is."""
            whole = log_weight(self._parts, tilt, log_drop) + float(log_constant(np.array(tilt)))
            return min(math.log(size) + tilt * at for at, size in zip(epsilons, sizes, strict=True)) - whole

        # tilted beyond a jump of the loss, outcomes weigh far more than delta
        best = max(*(theta * 2.0**power for power in _TILTS), _fall(epsilons, sizes, theta), key=log_part)
        shares: dict[float, float] = {}
        for tilt in (best, 0.0):
            log_share = min(log_part(tilt) + _AIM, _COARSEST)
            found = [outcomes_but(tuple(half), tilt, log_drop, log_share) for half in both]
            if max(number for _, number in found) <= self._most:
                return Omission(log_drop, tilt, min(log_least for log_least, _ in found)), False
            shares[tilt] = log_share
        if not self._buckets:
            raise TooManyOutcomesError(f"more than {self._most} outcomes of half the steps matter at {sizes[0]:g}")
        return Omission(log_drop, best, shares[best]), True


def _log_size(number: float) -> float:
    """``ln`` of the delta at a station, or between: of a normal loss, at epsilons as far apart as it spreads."""
    return -0.5 * (_APART * max(number, _FIRST)) ** 2


def _place_of(log_delta: float) -> float:
    """Where among the stations, the nearest of which answers."""
    return math.sqrt(-2.0 * min(log_delta, 0.0)) / _APART


def _fall(epsilons: Sequence[float], sizes: Sequence[float], theta: float) -> float:
    """How fast ``ln delta`` falls over epsilons above 0, the largest first; as told where these are one."""
    above = [(at, size) for at, size in zip(epsilons, sizes, strict=True) if at > 0.0] or [(0.0, 1.0)]
    (far, least), (near, most) = above[0], above[-1]
    return math.log(most / least) / (far - near) if far > near else theta


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else 2.0 * _LEAST


def _saddle(find: Callable[[PairSum, float], Saddle], losses: PairSum, value: float) -> Saddle | None:
    """The saddle point, where there is one."""
    try:
        return find(losses, value)
    except ContourRefusal:
        return None
