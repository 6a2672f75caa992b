"""A generic (epsilon, delta)-DP mechanism: nothing is known of it but its guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.composition import Direction
from hockeystick.laws.base import Pair
from hockeystick.laws.worst_case import WorstCasePair
from hockeystick.mechanisms.base import Mechanism

__all__ = ["ApproximateDP"]


@final
@dataclass(frozen=True)
class ApproximateDP(Mechanism):
    """Any mechanism that is (epsilon, delta)-DP under the neighbouring relation it is accounted for.

    Its worst pair is known and has four outcomes (Kairouz, Oh and Viswanath 2015). On a Poisson sample the guarantee
    must hold under add-remove, on a batch of fixed size under substitution. With delta 0 this is pure DP, and
    compositions lie on an exact lattice.

    Parameters
    ----------
    epsilon : float
        At least 0 (nats).
    delta : float
        In [0, 1].

    Examples
    --------
    >>> ApproximateDP(1.0, 1e-6).pair("remove")
    WorstCasePair(epsilon=1.0, delta=1e-06)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        pair = WorstCasePair(self.epsilon, self.delta)
        object.__setattr__(self, "epsilon", pair.epsilon)
        object.__setattr__(self, "delta", pair.delta)

    @property
    def adds_noise(self) -> bool:
        return False

    def pair(self, direction: Direction) -> Pair:
        return WorstCasePair(self.epsilon, self.delta)
