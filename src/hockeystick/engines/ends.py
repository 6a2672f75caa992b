"""The ends of the losses: the largest finite one of a composition, and the mass at infinity.

`Pair.loss_bounds` is a float near the end of the losses. What it is off by is rounding, but not always small beside the
loss: a sampled loss ``ln(1 - g + g e^l)`` loses ``|1 - 1/r|`` roundings where r is near 0, and the loss of two rational
masses one rounding of their ratio, however near that is to 1. A million steps multiply it.

Guarantee: what is meant lies between the two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hockeystick.errors import UnknownPairError
from hockeystick.laws.atom_rules import atoms_of
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import Pair
from hockeystick.laws.joined import JoinedPair
from hockeystick.laws.laplace import LaplacePair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.laws.reversed import ReversedPair
from hockeystick.laws.subsampled import SubsampledPair
from hockeystick.laws.vectors import DiscretePair
from hockeystick.numerics.rounding import ELEMENTARY, U, down, up

__all__ = ["infinite_mass", "largest_loss"]

_STATED = 1e-13  # of a loss, or of 1 where that is larger: for pairs that state their bounds


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
        loss, error = _end(pair, 1)
        if math.isinf(loss):
            return loss, loss
        outward = error * (1.0 + 8.0 * U)
        low.append(down(float(count) * down(loss - outward), 2.0 * U))
        high.append(up(float(count) * up(loss + outward), 2.0 * U))
    return down(math.fsum(low)), up(math.fsum(high))


def _end(pair: Pair, top: int) -> tuple[float, float]:
    """The largest (``top`` 1) or smallest (0) finite loss, and a bound on its error."""
    loss = pair.loss_bounds[top]
    size = abs(loss)
    if math.isinf(loss):
        return loss, 0.0
    if isinstance(pair, ReversedPair):
        value, error = _end(pair.base, 1 - top)
        return -value, error
    known = atoms_of(pair) if isinstance(pair, DiscretePair) else None
    if known is not None:
        return float(known.loss[-top]), float(known.loss_error[-top])
    error = _STATED * max(size, 1.0)
    if isinstance(pair, LaplacePair):
        error = 2.0 * U * size
    elif isinstance(pair, DiscretePair):
        error = 8.0 * ELEMENTARY * max(size, 1.0)
    elif isinstance(pair, AtomicPair):
        error = pair.atoms.slack + 2.0 * U * size
    elif isinstance(pair, SubsampledPair):
        error = _sampled_error(pair, top, loss)
    elif isinstance(pair, JoinedPair):  # of one of its sampled sides
        error = max(_end(side, 1)[1] for side in (pair.above, pair.below))
    return loss, error


def _sampled_error(pair: SubsampledPair, top: int, loss: float) -> float:
    inner, carried = _end(pair.base, top)
    far = inner if 1.0 < inner < math.inf else 0.0  # l + ln(g + (1 - g) e^-l) where l is large
    lost = 8.0 * U * (math.expm1(min(-loss, 700.0)) if loss < 0.0 else 1.0)
    # ln r moves by at most as much as l does
    return carried + lost + (2.0 * ELEMENTARY + 8.0 * U) * (abs(loss) + far + abs(math.log(pair.rate)) * (far > 0.0))


def infinite_mass(parts: Sequence[tuple[Pair, int]]) -> tuple[float, float]:
    """Lower and upper bound of the mass of infinite losses of a composition.

    Probability vectors count with the mass they have, which need not be exactly one.
    """
    if not any(pair.mass_at_infinity for pair, _ in parts):
        return 0.0, 0.0
    logs, log_total = [0.0, 0.0], 0.0
    for pair, count in parts:
        *bounds, defect = _infinite(pair)
        for side, mass in enumerate(bounds):
            logs[side] += count * (math.log1p(-mass) if mass < 1.0 else -math.inf)
        log_total += count * defect
    relative = math.expm1(min(2.0 * log_total, 700.0)) + 1e-14 + 1e-15 * len(parts)
    low, high = (-math.expm1(log) for log in logs)
    return (max(down(low, relative), 0.0), min(up(high, relative), 1.0)) if high > 0.0 else (0.0, 0.0)


def _infinite(pair: Pair) -> tuple[float, float, float]:
    """Bounds of the mass of one step, and how far its total mass may be from one."""
    try:
        known = PairSum(((pair, 1),))
    except UnknownPairError:
        return max(down(pair.mass_at_infinity, 8.0 * U), 0.0), pair.mass_at_infinity, 0.0
    return *known.infinite_mass, known.mass_defect
