"""How far brackets are proved: the most steps, the largest loss of one, and where tables of curves end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hockeystick.errors import PrecisionError, shown
from hockeystick.laws.base import Pair
from hockeystick.laws.extent import LEAST_DELTA

MOST_STEPS: Final = 1 << 40
"""Steps that brackets are proved for: counts are exact floats with room for their roundings."""

MOST_LOSS: Final = 1e7
"""Nats of one step: beyond, float64 does not tell losses apart."""


MOST_FAINT: Final = 1e14
"""Nats of a loss that next to nothing has: beyond, float64 does not tell the logarithm of its mass."""

_BESIDE = 1e6  # times what is beyond the tables of curves


def check_reach(parts: Sequence[tuple[Pair, int]]) -> None:
    """Refuse what no engine can serve: more steps, or larger losses, than float64 tells apart."""
    steps = sum(count for _, count in parts)
    if steps > MOST_STEPS:
        raise PrecisionError(f"{steps} steps are more than the 2^40 that brackets are proved for")
    for pair, _ in parts:
        ends = [abs(end) for end in pair.loss_bounds if math.isfinite(end)]
        for reach, most in ((pair.reach, MOST_LOSS), (max(ends, default=0.0), MOST_FAINT)):
            if reach > most:
                raise PrecisionError(
                    f"one step of {shown(pair)} has losses of up to {reach:.3g} nats, more than the {most:g}"
                    " that brackets are computed for: epsilon is enormous; use more noise"
                )


def least_told(parts: Sequence[tuple[Pair, int]]) -> float:
    """The deltas beside which what lies beyond tables of curves is negligible; 0 where none ends at `LEAST_DELTA`."""
    ends = any(pair.with_tails is not pair for pair, _ in parts)
    return _BESIDE * LEAST_DELTA * sum(count for _, count in parts) if ends else 0.0


def is_on_knots(parts: Sequence[tuple[Pair, int]], few: int) -> bool:
    """Whether steps known by curves with knots on one lattice are alone, or beside a few steps that are not smooth.

    There the contour would try in vain for as long as lattices take; beside Gaussian noise it takes a quarter of that.
    """
    known = sum(pair.curve is not None for pair, _ in parts)
    if known == 0 or any(not pair.is_discrete and pair.laplace_loss is None for pair, _ in parts):
        return False
    return known == len(parts) or sum(count for _, count in parts) <= few
