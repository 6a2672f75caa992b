"""How far brackets are proved: the most steps, and the largest loss of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hockeystick.errors import PrecisionError, shown
from hockeystick.laws.base import Pair

MOST_STEPS: Final = 1 << 40
"""Steps that brackets are proved for: counts are exact floats with room for their roundings."""

MOST_LOSS: Final = 1e7
"""Nats of one step: beyond, float64 does not tell losses apart."""


def check_reach(parts: Sequence[tuple[Pair, int]]) -> None:
    """Refuse what no engine can serve: more steps, or larger losses, than float64 tells apart."""
    steps = sum(count for _, count in parts)
    if steps > MOST_STEPS:
        raise PrecisionError(f"{steps} steps are more than the 2^40 that brackets are proved for")
    for pair, _ in parts:
        if pair.reach > MOST_LOSS:
            raise PrecisionError(
                f"one step of {shown(pair)} has losses of up to {pair.reach:.3g} nats, more than the {MOST_LOSS:g}"
                " that brackets are computed for: epsilon is enormous; use more noise"
            )
