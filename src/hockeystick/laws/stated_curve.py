"""A curve that the caller states: bounds on delta as a function of epsilon, in both directions.

Guarantee: certified if the functions' answers are bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.errors import check_probability, shown
from hockeystick.laws.base import Array, InfiniteMass
from hockeystick.laws.extent import CertifiedCurve

Bounds = Callable[[float], tuple[float, float]]


@final
@dataclass(frozen=True)
class StatedCurve(CertifiedCurve):
    """Bounds on delta(epsilon) for epsilon of at least 0. Equality and hash go by the functions' identity.

    Parameters
    ----------
    forward, backward : callable
        From epsilon to a lower and an upper bound on delta: of (P, Q) and of (Q, P).
    infinite, infinite_backward : float
        Lower bounds on delta at infinite epsilon.
    """

    forward: Bounds
    backward: Bounds
    infinite: float = 0.0
    infinite_backward: float = 0.0

    def reversed(self) -> StatedCurve:
        return StatedCurve(self.backward, self.forward, self.infinite_backward, self.infinite)

    def at(self, epsilon: float) -> tuple[float, float]:
        found: object = self.forward(epsilon)
        bounds = tuple(found) if np.iterable(found) else ()
        if len(bounds) != 2:
            raise TypeError(f"a curve must return a lower and an upper bound on delta, got {shown(found)}")
        low, high = (check_probability("a bound on delta", bound) for bound in bounds)
        if max(low, self.infinite) > high:
            raise ValueError(
                f"a curve must return a lower and an upper bound on delta, the upper one at least the lower one and"
                f" infinite, {self.infinite!r}; got {low!r} and {high!r} at epsilon {epsilon!r}"
            )
        return low, high

    def deltas(self, epsilons: Array, spacing: float) -> tuple[Array, Array]:
        """The bounds at many epsilons, whatever the spacing."""
        return self.one_by_one(epsilons, self.infinite)

    @property
    def infinite_mass(self) -> InfiniteMass:
        """What is stated below; above, what is left at an epsilon where nothing else can be."""
        return InfiniteMass.between(self.infinite, max(self.delta(700.0)[1], self.infinite))
