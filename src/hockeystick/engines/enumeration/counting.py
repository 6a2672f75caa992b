"""How many outcomes matter, counted by the size of their weight: an estimate, nothing certified rests on it.

Weights are ``T! prod w_i^{k_i} / k_i!`` with the w_i of a tilted law. Ways to share steps are counted atom by atom, in
bins of the logarithm. Cost: a few sums of tables for each atom, of steps times bins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hockeystick.engines.enumeration.outcomes import known_table, log_weights
from hockeystick.laws.base import Array, Parts

_BIN = 0.25  # nats
_DEEPER = 32.0  # nats below the share left out: lighter outcomes are not counted


@lru_cache(maxsize=64)
def outcomes_but(parts: Parts, theta: float, log_drop: float, log_share: float) -> tuple[float, float]:
    """``ln`` of the part of the weight that an outcome must have for the others to be of a share, and how many do."""
    log_orders = math.fsum(math.lgamma(count + 1.0) for _, count in parts)
    depth = math.ceil((log_orders + _DEEPER - min(log_share, 0.0)) / _BIN)
    number = np.zeros(depth)
    number[0] = 1.0
    for pair, count in parts:
        logs = log_weights(known_table(pair, log_drop), theta)
        number = _shared_out(number, (np.logaddexp.reduce(logs) - np.sort(logs)[::-1]).tolist(), count)
    shares = log_orders - _BIN * np.arange(float(depth))
    lighter = np.cumsum((np.exp(shares) * number)[::-1])[::-1]
    enough = lighter <= math.exp(log_share)
    cut = int(np.argmax(enough)) if enough.any() else depth - 1
    return float(shares[cut]), float(number[:cut].sum())


def _shared_out(number: Array, sizes: Sequence[float], count: int) -> Array:
    """The numbers after so many more steps, shared among atoms of weights ``e^{-size}``, without ``ln T!``."""
    depth = number.size
    ways = np.zeros((count + 1, depth))  # by the steps shared out so far
    ways[0] = number
    for size in sizes:
        before = ways.copy()
        for taken in range(1, count + 1):
            bins = round((taken * size + math.lgamma(taken + 1.0)) / _BIN)
            if bins >= depth:
                break
            ways[taken:, bins:] += before[: count + 1 - taken, : depth - bins]
    return np.asarray(ways[count])
