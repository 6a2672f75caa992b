"""Few steps of many atoms: the outcomes that matter to a question, one by one.

Discrete Gaussian noise has atoms without end, binomial noise many of next to no mass. Each step leaves out atoms of a
total mass far below the delta in question, which the upper side adds. How much is left out is one of few classes that
the question alone decides.

Guarantee: lower and upper are certified. Cost: a list for each class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

from hockeystick.bound import Bound
from hockeystick.engines.enumeration.curve import EnumeratedCurve
from hockeystick.errors import PrecisionError
from hockeystick.laws.base import Pair

__all__ = ["HeaviestOutcomes", "TooManyOutcomesError"]

_SHARE = math.log(1e-12)  # ln of the part of delta that may be left out
_CLASS = 6.0  # nats between the classes
_LEAST = -700.0  # ln of the least mass left out
_TRIES = 8
_KEPT = 4  # lists
_ENOUGH = 1e-10  # of delta, that what is left out may be


class TooManyOutcomesError(PrecisionError):
    """Too many outcomes matter to a question."""


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

    def __init__(self, parts: Sequence[tuple[Pair, int]], at_infinity: tuple[float, float], most: int) -> None:
        self._parts, self._at_infinity, self._most = parts, at_infinity, most
        self._steps = sum(count for _, count in parts)
        self._kept: dict[float, EnumeratedCurve] = {}

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon).

        Raises
        ------
        TooManyOutcomesError
            Where too many outcomes matter.
        """
        size = 1.0
        for _ in range(_TRIES):
            curve = self._curve(size)
            found = curve.delta(epsilon)
            if curve.left_out <= _ENOUGH * float(found.lower):
                return found
            size = float(found.lower) or float(found.upper)
        raise TooManyOutcomesError(f"delta at epsilon {epsilon:g} is too small to be told what matters")

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``; raises as `delta`."""
        return self._curve(delta).epsilon(delta)

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether ``delta(epsilon) <= delta``: proving that takes one evaluation; raises as `delta`."""
        return self._curve(delta).is_below(epsilon, delta)

    def _curve(self, delta: float) -> EnumeratedCurve:
        """The list for deltas of a size."""
        log_drop = _CLASS * math.floor((math.log(delta) + _SHARE - math.log(self._steps)) / _CLASS)
        found = self._kept.get(log_drop)
        if found is None:
            if log_drop < _LEAST or not EnumeratedCurve.serves_in_halves(self._parts, self._most, log_drop):
                raise TooManyOutcomesError(f"more than {self._most} outcomes of half the steps matter at {delta:g}")
            found = EnumeratedCurve(self._parts, self._at_infinity, log_drop)
            self._kept = dict([*self._kept.items(), (log_drop, found)][-_KEPT:])  # lists are long
        return found
