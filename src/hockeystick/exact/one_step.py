"""One step of a Gaussian mixture pair in closed form: the loss is monotone in x, so delta is two normal tails apart.

``delta(eps) = P(x > t) - e^eps Q(x > t)`` with ``L(t) = eps``, for losses increasing in x; x < t where they decrease.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from flint import arb

from hockeystick.exact.balls import ball, working_bits
from hockeystick.exact.curve import ClosedCurve
from hockeystick.exact.gaussian import normal_tail
from hockeystick.exact.logsum import LogSum, Terms
from hockeystick.exact.mixture import MixtureTransform

_Function = Callable[[arb], arb]


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

    low = high = None
    reach = arb(1)
    for _ in range(80):
        low = -reach if low is None and excess(-reach) < 0 else low
        high = reach if high is None and excess(reach) > 0 else high
        if low is not None and high is not None:
            return _narrow(pair, (p, q), excess, low, high)
        reach *= 2
    return None


def _narrow(pair: MixtureTransform, terms: tuple[Terms, Terms], excess: _Function, low: arb, high: arb) -> arb:
    """Newton's method inside a bracket, then the bracket drawn tight around where it settles."""
    p, q = terms
    bits = working_bits()
    x = (low + high).mid() / 2
    for _ in range(20 * bits):
        value = excess(x)
        if value > 0:
            high = x
        elif value < 0:
            low = x
        else:
            break
        slope = pair.direction * (pair.p.slope(p, x) - pair.q.slope(q, x))
        step = (value / slope).mid() if not slope.contains(0) else arb.nan()
        trial = (x - step).mid()
        if abs(step) < (1 + abs(x)) * arb(2) ** (8 - bits):
            break
        x = trial if low < trial < high else ((low + high) / 2).mid()
    radius = (1 + abs(x)).mid() * arb(2) ** (12 - bits)
    while True:
        left, right = (x - radius).mid(), (x + radius).mid()
        inside_left, inside_right = left > low, right < high
        done_left, done_right = not inside_left or excess(left) < 0, not inside_right or excess(right) > 0
        low = left if inside_left and done_left else low
        high = right if inside_right and done_right else high
        if done_left and done_right:
            return low.union(high)
        radius *= 256
