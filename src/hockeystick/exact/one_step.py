"""One step of a Gaussian mixture pair in closed form: the loss is monotone in x, so delta is two normal tails apart.

``delta(eps) = P(x > t) - e^eps Q(x > t)`` with ``L(t) = eps``, for losses increasing in x; x < t where they decrease.
"""

from __future__ import annotations

from typing import final

from flint import arb

from hockeystick.exact.balls import ball
from hockeystick.exact.curve import ClosedCurve
from hockeystick.exact.gaussian import normal_tail
from hockeystick.exact.logsum import LogSum
from hockeystick.exact.mixture import MixtureTransform

_FARTHEST = 2**80


@final
class OneStepCurve(ClosedCurve):
    """The curve of a single Gaussian mixture pair."""

    def __init__(self, transform: MixtureTransform) -> None:
        self._transform = transform

    def loss_limit(self) -> arb | None:
        """The supremum of the loss."""
        return self._transform.loss_limit()

    def formula(self, epsilon: arb) -> arb:
        """Delta from the point where the loss is epsilon."""
        pair = self._transform
        p, q, order = pair.p, pair.q, epsilon.exp()
        whole = 1 - order
        low, high = pair.reversed_loss_limit(), pair.loss_limit()
        if low is not None and -low >= epsilon:
            return whole
        if high is not None and high <= epsilon:
            return arb(0)
        x = _threshold(pair, epsilon)
        if x is None:
            return whole.union(arb(0)).union(arb(1))
        return _mass_beyond(p, x, pair.direction) - order * _mass_beyond(q, x, pair.direction)


def _mass_beyond(side: LogSum, x: arb, direction: int) -> arb:
    """Mass of the mixture above x (below it for direction -1)."""
    parts = zip(side.weights, side.centres, strict=True)
    return sum((ball(w) * normal_tail(direction * (x - ball(c))) for w, c in parts), arb(0))


def _threshold(pair: MixtureTransform, epsilon: arb) -> arb | None:
    """Enclosure of the point where the loss is epsilon, None where the precision is too low to bracket it."""
    p, q, sign = pair.p.terms(), pair.q.terms(), pair.direction

    def excess(x: arb) -> arb:
        return sign * (pair.p.value(p, x) - pair.q.value(q, x) - epsilon)

    reach = arb(1)
    while not (excess(-reach) < 0 and excess(reach) > 0):
        reach *= 2
        if reach > _FARTHEST:
            return None
    low, high = -reach, reach
    while True:  # a bracket is cut where no simple number lies: at a root no sign is known
        x = ((4 * low + 3 * high) / 7).mid()
        value = excess(x)
        if value.contains(0) or not low < x < high:
            return low.union(high)
        low, high = (low, x) if value > 0 else (x, high)
