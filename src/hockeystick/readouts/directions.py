"""The directions of a privacy curve, asked one by one or the worst of several.

What is read off a curve knows it as a `Curve`: what was composed, by which accountant, and the curve of each direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast, final

import numpy as np

from hockeystick.accountants.attained import AttainedCurve, Sources
from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Bound, Estimate
from hockeystick.composition import Composition, Direction
from hockeystick.errors import HockeystickError
from hockeystick.readouts.envelope import Value
from hockeystick.together import Curve, asked_together, each_together

if TYPE_CHECKING:
    from hockeystick.engines.together import Quantity

OPPOSITE: Mapping[str, Direction] = {
    "add": "remove",
    "remove": "add",
    "zero-in": "zero-out",
    "zero-out": "zero-in",
    "substitute": "substitute",
}
"""The direction with the two datasets exchanged."""


def ways(curve: Curve) -> tuple[Direction, ...]:
    """The directions of a curve and their opposites, each once."""
    names = cast("tuple[Direction, ...]", tuple(curve.directed))
    return tuple(dict.fromkeys([*names, *(OPPOSITE[name] for name in names)]))


@final
@dataclass(eq=False)
class _OneWay:
    """One direction of a curve, as a curve to be asked together with others."""

    composition: Composition
    accountant: Accountant
    directed: Mapping[str, DirectedCurve]

    def one(self, value: float, quantity: Quantity) -> Bound | Estimate:
        (curve,) = self.directed.values()
        return curve.delta(value) if quantity == "delta" else curve.epsilon(value)


def each_delta(curve: Curve, name: str, epsilons: Sequence[float]) -> list[Bound | Estimate]:
    """delta of one direction of a curve at several epsilons, asked in one pass, every answer by itself."""
    one_way = _OneWay(curve.composition, curve.accountant, {name: curve.directed[name]})
    found: list[Bound | Estimate] = []
    for answer in each_together([one_way], np.zeros(len(epsilons), np.intp), np.asarray(epsilons), "delta"):
        if isinstance(answer, HockeystickError):
            raise answer
        found.append(answer)
    return found


class WorstOf(Protocol):
    """The largest delta over some directions, as a function of epsilon."""

    def __call__(self, epsilon: float, least: float = 0.0) -> Value:
        """Its value; a lower side of ``least`` or less is as good as none."""


@final
class Asked:
    """The values of a curve's directions, remembering whether all of them were certified.

    Parameters
    ----------
    curve : PrivacyCurve
        Whose directions are asked for.
    """

    def __init__(self, curve: Curve) -> None:
        self._curve = curve
        self.certified = True

    def __call__(self, *names: str) -> WorstOf:
        """The largest delta over some directions, as a function of epsilon."""
        distinct = {self.kind(name): name for name in names}  # a pair may be its own reverse
        return self._largest([self._directed(name) for name in distinct.values()])

    def _largest(self, curves: Sequence[DirectedCurve]) -> WorstOf:
        def evaluate(epsilon: float, least: float = 0.0) -> Value:
            answers = [curve.delta_above(epsilon, least) for curve in curves]
            self.certified = self.certified and all(isinstance(answer, Bound) for answer in answers)
            values = [Value(*map(float, answer.sides)) for answer in answers]
            return self._value(max(value.lower for value in values), max(value.upper for value in values), epsilon)

        return evaluate

    def shown_at(self, name: str, epsilon: float) -> Parts | None:
        """What known datasets that by estimate show most at an epsilon show of all steps; None where that is no law."""
        curve = self._directed(name)
        own = self._curve.composition.pairs(cast("Direction", name))
        parts = curve.shown_at(epsilon) if isinstance(curve, AttainedCurve) else own
        return None if any(pair.curve or pair.selection for pair, _ in parts) else parts or None

    def of_parts(self, parts: Parts) -> Callable[[float], Value]:
        """delta of pairs, as a function of epsilon."""
        return self._largest([self._curve.accountant.directed(parts)])

    def kind(self, name: str) -> Hashable:
        """What tells the curve of a direction from that of another: what dominates, and what datasets show."""
        return Sources.of(self._curve.composition, cast("Direction", name))[:2]

    def each(self, names: Sequence[str], epsilons: Sequence[float]) -> dict[str, list[Value]]:
        """delta of each direction at several epsilons, asked in one pass; the directions are of different kinds."""
        one_way = [
            _OneWay(self._curve.composition, self._curve.accountant, {name: self._directed(name)}) for name in names
        ]
        asked, count = np.tile(np.asarray(epsilons), len(names)), len(epsilons)
        answers = asked_together(one_way, np.repeat(np.arange(len(names)), count), asked, "delta")
        self.certified = self.certified and isinstance(answers, Bound)
        lower, upper = (np.asarray(side).tolist() for side in answers.sides)
        values = list(map(self._value, lower, upper, asked.tolist()))
        return {name: values[place * count : (place + 1) * count] for place, name in enumerate(names)}

    def _value(self, lower: float, upper: float, epsilon: float) -> Value:
        if math.isnan(lower) or math.isnan(upper):
            raise ValueError(f"{self._curve.accountant!r} has no delta at epsilon {epsilon}")
        return Value(max(lower, 0.0), min(upper, 1.0))

    def both_ways(self) -> WorstOf:
        """The largest delta over the directions of the relation and their opposites."""
        return self(*ways(self._curve))

    def _directed(self, name: str) -> DirectedCurve:
        """The curve of a direction; for a one-sided relation also that of the other side, which the pairs define."""
        known = self._curve.directed.get(name)
        if known is not None:
            return known
        return Sources.of(self._curve.composition, cast("Direction", name)).curve(self._curve.accountant)
