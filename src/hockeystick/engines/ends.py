"""The ends of the losses: the largest finite one of a composition, and the mass at infinity.

`Pair.loss_bounds` is a float near the end of the losses. What it is off by is rounding, but not always small beside the
loss: a sampled loss ``ln(1 - g + g e^l)`` loses ``|1 - 1/r|`` roundings where r is near 0, and the loss of two rational
masses one rounding of their ratio, however near that is to 1. A million steps multiply it.

Guarantee: what is meant lies between the two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from hockeystick.laws.base import Pair
from hockeystick.numerics.rounding import ELEMENTARY, U, down, up

__all__ = ["composed_infinity", "largest_loss"]


def largest_loss(parts: Iterable[tuple[Pair, int]]) -> tuple[float, float]:
    """Lower and upper bound on the largest finite loss of a composition (nats); ``inf`` where there is none.

    Examples
    --------
    >>> from hockeystick.laws import LaplacePair
    >>> low, high = largest_loss([(LaplacePair(2.0), 10)])
    >>> low < 5.0 < high < 5.0 + 1e-13
    True
    """
    low, high = [], []
    for pair, count in parts:
        loss, error = pair.supremum.value, pair.supremum.error
        if math.isinf(loss):
            return loss, loss
        outward = error * (1.0 + 8.0 * U)
        low.append(down(float(count) * down(loss - outward), 2.0 * U))
        high.append(up(float(count) * up(loss + outward), 2.0 * U))
    return down(math.fsum(low)), up(math.fsum(high))


_LOST = 2.0**-1073  # two of the smallest numbers: what a rounding below the normal range can cost


def composed_infinity(parts: Iterable[tuple[Pair, int]]) -> tuple[float, float]:
    """Lower and upper bound of the mass of infinite losses of a composition.

    Examples
    --------
    >>> from hockeystick.laws import DiscretePair
    >>> low, high = composed_infinity([(DiscretePair((0.25, 0.75), (0.0, 1.0)), 2)])
    >>> low < 0.4375 < high < 0.4375 + 1e-14
    True
    """
    found = [(pair.infinite_mass, count) for pair, count in parts]
    lost = [(loss, count) for loss, count in found if loss.high > 0.0]
    if not lost:
        return 0.0, 0.0
    if len(lost) == 1 and lost[0][1] == 1:
        return lost[0][0].low, lost[0][0].high
    # A product and the sum of all products, of one sign, are one rounding each: together within 4 u of the sum.
    least = math.fsum(count * (loss.log_low - _LOST) for loss, count in lost) * (1.0 + 4.0 * U)
    most = math.fsum(count * min(loss.log_high + _LOST, 0.0) for loss, count in lost) * (1.0 - 4.0 * U)
    room = _LOST * (len(lost) + 2)
    low = -math.expm1(most) * (1.0 - 2.0 * ELEMENTARY) - room
    high = -math.expm1(least) * (1.0 + 2.0 * ELEMENTARY) + room
    return max(low, 0.0), min(high, 1.0)
