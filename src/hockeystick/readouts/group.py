"""What the curve of one record says of a group of records, whatever the mechanism: an upper bound.

Let D_0, ..., D_k be datasets of which each two in a row are neighbours. If every step of the chain changes the
probability of an event by a factor of e^eps and an additive delta(eps) at most, all k together change it by e^{k eps}
and ``delta(eps) (1 + e^eps + ... + e^{(k-1) eps})``. So the epsilon of a group of k at delta is at most ``k eps`` for
any eps with

    ln delta(eps) + ln((e^{k eps} - 1) / (e^eps - 1)) <= ln delta.

Guarantee: upper, from the curve's certified upper side; the lower side is that of one record, which is a group as well.
Cost: some forty answers of the curve. Where a pair is proved for groups, `Step.for_group` is tighter
(docs/derivations/groups.md).
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from typing import Protocol

from numpy.typing import ArrayLike

from hockeystick.bound import Bound, Estimate, from_sides
from hockeystick.errors import PrecisionError, UnknownPairError, check_count, check_probability, public_door
from hockeystick.numerics.rationals import float_beside
from hockeystick.together import Curve

_MOST = 750.0  # e to minus this is below the least float: a delta above 0 times more is above one
_HALVINGS = 40
_NARROW = 1e-4
_SLACK = 1e-9  # far above the rounding of the logarithms below
_NOTE = "above, k times an epsilon of one record, by a chain of k neighbours; below, the epsilon of one record"


class _Answering(Curve, Protocol):
    """A privacy curve that is asked for itself, not direction by direction."""

    @property
    def adjacency(self) -> str: ...

    def epsilon(self, delta: ArrayLike) -> Bound | Estimate: ...

    def delta(self, epsilon: ArrayLike) -> Bound | Estimate: ...


@public_door
def group_epsilon(curve: _Answering, delta: float, *, size: int) -> Bound:
    """Bounds on the epsilon (nats) of a group of up to ``size`` records at a delta, from the curve of one record.

    Parameters
    ----------
    curve : PrivacyCurve
        By a certified accountant.
    delta : float
        In [0, 1].
    size : int
        Records in the group, at least 1; groups, where the curve is already one of groups.

    Raises
    ------
    TypeError
        Where the curve is an estimate.
    UnknownPairError
        Where the curve is that of a stated number of records, and neighbours have another number.
    """
    level, members = check_probability("delta", delta), check_count("size", size)
    one = _certified(curve.epsilon(level))
    if members == 1 or level == 1.0:
        return one
    if curve.adjacency != "substitute" and any(step.of_stated_population for step, _ in curve.composition.steps):
        raise UnknownPairError(
            f"a group's datasets differ in their number of records, and this run is accounted for one number of them;"
            f" use adjacency 'substitute', or Poisson sampling, for a group of {members}"
        )
    found = _least(curve, level, members)
    upper = float_beside(members * Fraction(found), up=True) if math.isfinite(found) else math.inf
    return from_sides(float(one.lower), upper, f"group of {members}, {one.method}", notes=(*one.notes, _NOTE))


def _certified(found: Bound | Estimate) -> Bound:
    """An answer; estimates, between answers at the ends of the range that are certified whoever gives them, refused."""
    if not isinstance(found, Bound):
        raise TypeError("the epsilon of a group needs a certified accountant: this curve is an estimate")
    return found


def _least(curve: _Answering, level: float, size: int) -> float:
    """About the least epsilon of one record that serves, itself proved to serve: the largest loss always does."""

    def serves(epsilon: float) -> bool:
        found = float(_certified(curve.delta(epsilon)).upper)
        if found == 0.0 or level == 0.0:
            return found == 0.0
        growth = (size - 1) * epsilon + math.log(math.expm1(-size * epsilon) / math.expm1(-epsilon))
        return math.log(found) + growth + _SLACK <= math.log(level)

    largest = math.inf
    with suppress(PrecisionError):  # an accountant that does not know the largest loss
        largest = float(_certified(curve.epsilon(0.0)).upper)
    low, high = 0.0, min(max(float(curve.epsilon(level / size).sides[1]), 1e-12), largest)
    while high < largest and not serves(high):
        low, high = high, min(1.5 * high, largest)
        if (size - 1) * high > _MOST:
            return largest
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if high - low <= _NARROW * high or middle == low:
            break
        low, high = (low, middle) if serves(middle) else (middle, high)
    return high
