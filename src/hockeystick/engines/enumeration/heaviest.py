"""Few steps of many atoms: the outcomes that matter to a question, one by one.

Discrete Gaussian noise has atoms without end, binomial noise many of next to no mass. Each step leaves out atoms of a
total mass far below the delta in question. Of the outcomes listed, those are left out that together are next to nothing
of the composition tilted to the question: with c(theta) the largest value of ``e^{-theta y} (1 - e^{-y})``, what they
would add is at most

    c(theta) sum p e^{theta (l - eps)}        over the outcomes left out.

The upper side adds both. How much is left out, and the tilt, are of few classes that the question alone decides.

Guarantee: lower and upper are certified. Cost: a list for each class.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import numpy as np

from hockeystick.bound import Bound
from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.contour.placing import ContourRefusal, saddle_of_delta, saddle_of_epsilon
from hockeystick.engines.enumeration.buckets import CLASSES
from hockeystick.engines.enumeration.counting import log_weight, outcomes_but
from hockeystick.engines.enumeration.curve import EnumeratedCurve
from hockeystick.engines.enumeration.merging import Merging
from hockeystick.engines.enumeration.outcomes import Omission, TooManyOutcomesError, halves
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.saddle import Saddle

_SHARE = math.log(1e-12)  # ln of the part of delta that atoms left out may be
_CLASS = 12.0  # nats between the classes
_LEAST = -700.0  # ln of the least mass left out
_TRIES = 8
_ROUGH = 1 << 13  # buckets that tell what matters
_KEPT = 8  # lists, half of them short
_TILTS = (0.0, -0.5, -1.0)  # powers of 2 times one near the saddle point
_ENOUGH = 1e-10  # of delta, that what is left out may be
_AIM = math.log(0.25 * _ENOUGH)  # what lists are planned for, of about delta
_FINE = 6.0  # nats between the classes of shares of outcomes left out
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
        self._kept: dict[tuple[Omission, Merging | None], EnumeratedCurve] = {}

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon).

        Raises
        ------
        TooManyOutcomesError
            Where too many outcomes matter.
        """
        return self._answer_at(epsilon)[0]

    def _answer_at(self, epsilon: float) -> tuple[Bound, EnumeratedCurve]:
        theta, saddle = _tilt(lambda: saddle_of_epsilon(self._losses, epsilon))
        size = 1.0 if saddle is None else math.exp(min(float(saddle.log_delta(epsilon)), 0.0))
        most = min(_ROUGH, self._buckets)
        for _ in range(_TRIES):
            curve = self._curve(theta, epsilon, size, most)
            found = curve.delta(epsilon)
            if curve.left_out(epsilon) > _ENOUGH * float(found.lower):
                size = min(float(found.lower) or float(found.upper), 0.125 * size)
            elif most == self._buckets or not curve.is_merged:
                return found, curve
            else:
                most = self._buckets  # what matters is known
        raise TooManyOutcomesError(f"delta at epsilon {epsilon:g} is too small to be told what matters")

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``; raises as `delta`."""
        size = max(delta - self._at_infinity[1], 1e-320)
        theta, saddle = _tilt(lambda: saddle_of_delta(self._losses, math.log(size)))
        point, most = 0.0 if saddle is None else max(float(saddle.epsilon), 0.0), min(_ROUGH, self._buckets)
        for _ in range(_TRIES):
            curve = self._curve(theta, point, size, most)
            found = curve.epsilon(delta)
            point = float(found.lower)
            if curve.left_out(point) <= _ENOUGH * size:
                if most == self._buckets or not curve.is_merged:
                    return found
                most = self._buckets
        raise TooManyOutcomesError(f"the epsilon of delta {delta:g} is too far from what was looked at")

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether ``delta(epsilon) <= delta``: proving that takes one evaluation; raises as `delta`."""
        return self._answer_at(epsilon)[1].is_below(epsilon, delta)

    def _curve(self, theta: float, epsilon: float, size: float, buckets: int) -> EnumeratedCurve:
        """The list for deltas of a size at about an epsilon."""
        log_size = math.log(size) if size > 0.0 else -math.inf
        log_drop = _CLASS * float(np.floor((log_size + _SHARE - math.log(self._steps)) / _CLASS))
        both = halves(self._parts, log_drop) if log_drop >= _LEAST and self._steps <= _MOST_STEPS else None
        if both is None:
            raise TooManyOutcomesError(f"not all outcomes that matter at {size:g} are known")

        def log_whole(tilt: float) -> float:
            return log_weight(self._parts, tilt, log_drop) - tilt * epsilon + float(log_constant(np.array(tilt)))

        # tilted beyond a jump of the loss, outcomes weigh far more than delta
        best = min((theta * 2.0**power for power in _TILTS), key=log_whole)
        shares: dict[float, float] = {}
        for tilt in (best, 0.0):
            log_share = _FINE * math.floor(min(log_size + _AIM - log_whole(tilt), _COARSEST) / _FINE)
            found = [outcomes_but(tuple(half), tilt, log_drop, log_share) for half in both]
            if max(number for _, number in found) <= self._most:
                return self._listed(Omission(log_drop, tilt, min(log_least for log_least, _ in found)), None)
            shares[tilt] = log_share
        if not self._buckets:
            raise TooManyOutcomesError(f"more than {self._most} outcomes of half the steps matter at {size:g}")
        near = round(CLASSES * best * epsilon) / (CLASSES * best) if best > 0.0 else epsilon
        return self._listed(Omission(log_drop, best, shares[best]), Merging(buckets, near))

    def _listed(self, omitted: Omission, merging: Merging | None) -> EnumeratedCurve:
        curve = self._kept.get((omitted, merging))
        if curve is None:
            curve = EnumeratedCurve(self._parts, self._at_infinity, omitted, merging)
            self._kept = dict([*self._kept.items(), ((omitted, merging), curve)][-_KEPT:])  # lists are long
        return curve


def _tilt(find: Callable[[], Saddle]) -> tuple[float, Saddle | None]:
    """A tilt of few classes near the saddle point; 0 where there is none."""
    try:
        saddle = find()
    except ContourRefusal:
        return 0.0, None
    return 2.0 ** (0.5 * round(2.0 * math.log2(float(saddle.theta)))), saddle
