"""The reverse (Q, P) of a pair: the *add* direction of a mechanism whose *remove* pair is (P, Q)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.laws.base import Array, CellMasses, LossQuantum, Measure, Nodes, Pair

__all__ = ["ReversedPair"]


@final
@dataclass(frozen=True)
class ReversedPair(Pair):
    """(Q, P) for a base pair (P, Q): losses change sign, the two measures trade places.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> GaussianPair(2.0).reversed().reversed() == GaussianPair(2.0)
    True
    """

    base: Pair

    @property
    def loss_bounds(self) -> tuple[float, float]:
        low, high = self.base.loss_bounds
        return -high, -low

    @property
    def mass_at_infinity(self) -> float:
        return self.base.reverse_mass_at_infinity

    @property
    def reverse_mass_at_infinity(self) -> float:
        return self.base.mass_at_infinity

    @property
    def is_discrete(self) -> bool:
        return self.base.is_discrete

    @property
    def anchors(self) -> tuple[float, ...]:
        return tuple(-loss for loss in reversed(self.base.anchors))

    @property
    def loss_quantum(self) -> LossQuantum | None:
        return self.base.loss_quantum

    def cells(self, losses: Array) -> CellMasses:
        return self.base.cells(-losses[::-1]).reversed()

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        low, high = self.base.loss_range(log_above, log_below, "Q" if measure == "P" else "P")
        return -high, -low

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        base = self.base.nodes(log_tail, refine=refine)
        return Nodes(-base.loss, base.log_q, base.log_p)

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        return -self.base.sample(rng, size, "Q" if measure == "P" else "P")

    def reversed(self) -> Pair:
        return self.base
