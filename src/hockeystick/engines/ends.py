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
from hockeystick.numerics.rounding import U, down, up

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


def composed_infinity(parts: Iterable[tuple[Pair, int]]) -> tuple[float, float]:
    """Lower and upper bound of the mass of infinite losses of a composition."""
    masses = [(pair.mass_at_infinity, count) for pair, count in parts if pair.mass_at_infinity > 0.0]
    if len(masses) == 1 and masses[0][1] == 1 and masses[0][0] < 1.0:
        return max(down(masses[0][0], 1e-13), 0.0), masses[0][0]  # as it is: rounded up where it is not exact
    if any(mass >= 1.0 for mass, _ in masses):
        return 1.0 - 1e-12, 1.0
    mass = -math.expm1(math.fsum(count * math.log1p(-mass) for mass, count in masses))
    return (max(down(mass, 1e-13), 0.0), min(up(mass, 1e-13), 1.0)) if mass > 0.0 else (0.0, 0.0)
