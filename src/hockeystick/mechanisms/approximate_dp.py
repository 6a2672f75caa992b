"""A generic (epsilon, delta)-DP mechanism: nothing is known of it but its guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import set_fields
from hockeystick.laws.base import Pair
from hockeystick.laws.discrete_laplace import DiscreteLaplacePair
from hockeystick.laws.worst_case import WorstCasePair
from hockeystick.mechanisms.base import Mechanism
from hockeystick.numerics.rationals import float_beside
from hockeystick.numerics.rounding import up

_LARGEST_EXPONENT = 700.0
_KNOWN = (1e-100, 1e100)  # an epsilon whose inverse is the scale of a noise that is accounted for
_ROUNDING = 1e-9  # far above that of two expm1, of a quotient, and of size * epsilon up to 700


@final
@dataclass(frozen=True)
class ApproximateDP(Mechanism):
    """Any mechanism that is (epsilon, delta)-DP under the neighbouring relation it is accounted for.

    Its worst pair is known and has four outcomes (Kairouz, Oh and Viswanath 2015). On a Poisson sample the guarantee
    must hold under add-remove, on a batch of fixed size under substitution, on a cut one under both. With delta 0 this
    is pure DP, and compositions lie on an exact lattice.

    Parameters
    ----------
    epsilon : float
        At least 0, at most 1e300 (nats).
    delta : float
        In [0, 1].

    Examples
    --------
    >>> ApproximateDP(1.0, 1e-6).pair("remove")
    WorstCasePair(epsilon=1.0, delta=1e-06)
    """

    adds_noise = False

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        pair = WorstCasePair(self.epsilon, self.delta)
        set_fields(self, epsilon=pair.epsilon, delta=pair.delta)

    def pair(self, direction: Direction) -> Pair:
        return WorstCasePair(self.epsilon, self.delta)

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        """``size * epsilon`` and ``delta (1 + e^epsilon + ... + e^{(size-1) epsilon})``, rounded up; see groups.md."""
        shown = self._noise(size, up=False)
        if self.delta == 0.0 and shown:
            return shown[0]
        epsilon = float_beside(size * Fraction(self.epsilon), up=True)
        if self.delta == 0.0 or self.epsilon == 0.0:
            return WorstCasePair(epsilon, min(1.0, float_beside(size * Fraction(self.delta), up=True)))
        growth = math.inf if epsilon > _LARGEST_EXPONENT else math.expm1(epsilon) / math.expm1(self.epsilon)
        return WorstCasePair(epsilon, min(1.0, up(self.delta * growth, _ROUNDING)))

    def attained_by_group(self, direction: Direction, size: int) -> tuple[Pair, ...] | None:
        return self._noise(size, up=True)

    def _noise(self, size: int, *, up: bool) -> tuple[Pair, ...]:
        """Discrete Laplace noise of this epsilon, or beside it, on a sum that moves by the size."""
        if not _KNOWN[0] <= self.epsilon <= _KNOWN[1]:
            return ()
        return (DiscreteLaplacePair(float_beside(1 / Fraction(self.epsilon), up=up), size),)
