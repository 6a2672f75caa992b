"""The staircase mechanism: a sum of numbers plus the noise of least expected size that gives pure DP.

Proof that the largest shift D dominates every smaller one d. The density f is symmetric and does not rise with |x|.
Under f(. - d) against f, with y = x - d the noise, ``H_a = integral of (f(y) - a f(y + d))_+ dy``. For a >= 1 the
integrand is above 0 only where f(y + d) < f(y), hence y + d > |y|, and from there on f(y + d) does not rise with d: the
integrand does not fall, at any y. For a < 1, ``H_a(P || Q) = 1 - a + a H_{1/a}(Q || P)``, and mirroring the line about
d/2 turns (Q, P) into (P, Q). The same mirror image takes care of shifts by -d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast, final

from hockeystick.composition import Direction
from hockeystick.errors import check_positive, set_fields
from hockeystick.laws.base import Pair
from hockeystick.laws.staircase import StaircasePair
from hockeystick.mechanisms.base import Mechanism


@final
@dataclass(frozen=True)
class Staircase(Mechanism):
    """Staircase noise on a sum of numbers in [-1, 1].

    One step is epsilon-DP under *remove*, and with the default gamma no noise that makes it so has a smaller expected
    size (Geng and Viswanath 2016). Under *substitute* the shift doubles, and so does the largest loss. All losses are
    multiples of epsilon, so that compositions lie on an exact lattice.

    Parameters
    ----------
    epsilon : float
        Above 0, at most 700 (nats).
    gamma : float, optional
        Where in each interval of length 1 the density steps down; above 0 and below 1. By default the float64 next to
        1 / (1 + e^{epsilon / 2}), which has the least expected size; what is accounted is the number itself.

    Examples
    --------
    >>> Staircase(1.0, 0.25).pair("remove")
    StaircasePair(epsilon=1.0, gamma=0.25, sensitivity=1)
    """

    contribution = "a number between -C and C", "2 C"
    holds_under_all = True

    epsilon: float
    gamma: float | None = None

    def __post_init__(self) -> None:
        epsilon = check_positive("epsilon", self.epsilon)
        fall = math.exp(-0.5 * epsilon)
        pair = StaircasePair(epsilon, fall / (1.0 + fall) if self.gamma is None else self.gamma)
        set_fields(self, epsilon=pair.epsilon, gamma=pair.gamma)

    def pair(self, direction: Direction) -> Pair:
        return self.pair_of_group(direction, 1)

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        return StaircasePair(self.epsilon, cast("float", self.gamma), 2 * size if direction == "substitute" else size)
