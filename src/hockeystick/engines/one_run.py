"""One of many runs: its curve, and the masses of its largest losses as differences of that.

Guarantee: masses are certified where the curve is. Cost: some hundreds of deltas, once; three more for each mass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, final

import numpy as np

from hockeystick.bound import Bound
from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import U

_DEEPEST = (1e-30, 1e-20, 1e-12, 1e-6)  # of the deltas that are looked at, the first that has an epsilon
_FIRST = 24

Event = tuple[tuple[float, float], tuple[float, float]]
"""The mass of some outputs and of the rest, under P from below and under Q from above: lower and upper bounds of these.

Neither is computed from the other where it is small: one less a small number is rounded.
"""

ALL: Final[Event] = (1.0, 0.0), (1.0, 0.0)
"""All outputs."""


@final
class OneRun:
    """The curve of one run, and its values at some epsilons, which are kept.

    Parameters
    ----------
    deltas : callable
        Certified sides of delta, from epsilons of at least 0, infinity included.
    epsilon : callable
        Certified epsilon, from delta: how far to look.
    tolerance : float
        About how accurate an epsilon by chords between the values is to be (nats).
    """

    def __init__(
        self,
        deltas: Callable[[Array], tuple[Array, Array]],
        epsilon: Callable[[float], Bound],
        tolerance: float = 1e-3,
    ) -> None:
        self.deltas, self._epsilon = deltas, epsilon
        self._masses: dict[tuple[float, float], tuple[float, float, float] | None] = {}
        self._fall = min(max(math.sqrt(40.0 * tolerance), 0.2), 1.0)

    @cached_property
    def nodes(self) -> tuple[Array, Array]:
        """Epsilons from 0 on between which delta falls by about the same factor, and upper bounds of it."""
        reach = next((e for e in (float(self._epsilon(delta).upper) for delta in _DEEPEST) if math.isfinite(e)), 1.0)
        first = np.linspace(0.0, max(min(reach, 600.0), 1e-6), _FIRST)
        logs = np.log(np.maximum(self.deltas(first)[1], 1e-40))
        epsilons = [first[:1]]
        for left, right, fall in zip(first[:-1], first[1:], logs[:-1] - logs[1:], strict=True):
            epsilons.append(np.linspace(left, right, min(max(math.ceil(fall / self._fall), 1), 64) + 1)[1:])
        x = np.concatenate(epsilons)
        return x, np.minimum.accumulate(self.deltas(x)[1])  # delta falls: a bound holds at every larger epsilon

    @cached_property
    def about(self) -> tuple[Array, Array, Array]:
        """The epsilons, and about the masses of larger losses under P and under Q: a guide."""
        x, high = self.nodes
        with np.errstate(over="ignore"):  # of products of e^x: slopes of about 0
            q = np.clip(-np.gradient(high, np.exp(x)), 0.0, 1.0)
        return x, np.minimum(high + np.exp(x) * q, 1.0), q

    def masses(self, points: Sequence[tuple[float, float]]) -> list[tuple[float, float, float] | None]:
        """P(L > x) from below, Q(L > x) from below and from above, for an x next to each; None where unknown.

        Each by what it is and how far apart the epsilons are that tell.
        """
        missing = [point for point in dict.fromkeys(points) if point not in self._masses]
        if missing:
            at, apart = np.array(missing).T
            x = np.maximum(at, 2.0 * apart)
            sides = (side.reshape(3, -1).T for side in self.deltas(np.concatenate((x - apart, x, x + apart))))
            for point, one, gap, low, high in zip(missing, x.tolist(), apart.tolist(), *sides, strict=True):
                self._masses[point] = _masses(one, gap, float(low[1]), float(high[0]), float(high[2]))
        return [self._masses[point] for point in points]


def _masses(x: float, apart: float, low: float, before: float, after: float) -> tuple[float, float, float] | None:
    """The same from a lower side of delta at x, and upper ones to either side."""
    a = math.exp(x)
    # Q(L > x) = -h'(a) lies between the slopes of the chords on either side
    most = (before - low) / (a - math.exp(x - apart)) * (1.0 + 1e-9)
    least = (low - after) / (math.exp(x + apart) - a) * (1.0 - 1e-9)
    if not 0.0 <= least <= most:
        return None
    return min((low + a * least) * (1.0 - 32.0 * U), 1.0), least, min(most, 1.0)


def losses_above(masses: tuple[float, float, float]) -> Event:
    """The losses above an x, by `OneRun.masses`."""
    least, _, most = masses
    return (least, 1.0 - least), (most, 1.0 - most)


def losses_not_below(masses: tuple[float, float, float]) -> Event:
    """All but those whose reverse is: what is small is not computed from the rest, one less a small number rounded."""
    p, q = losses_above(masses)
    return q[::-1], p[::-1]
