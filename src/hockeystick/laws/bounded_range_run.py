"""Adaptive runs of steps whose losses lie in an interval of length eps each: the curve of the worst choices.

Two outcomes are the worst of a step (`bounded_range`): loss t with probability ``p_t = (e^eps - e^t) / (e^eps - 1)``,
else t - eps. Whoever chooses t in [0, eps] by what earlier steps released reaches, with so many steps left,

    V_0(x) = (1 - e^x)+,      V_k(x) = max_t p_t V_{k-1}(x - t) + (1 - p_t) V_{k-1}(x - t + eps),

and nothing reaches more. On the points ``x_i = i eps / m`` the choices ``t_j = j eps / m`` lead from point to point:
their best is attained. Between two of them V is below its chords in a = e^x, and the sum above is at most

    eta (1 + eta) (e^eps D_1 - D_2) / (4 (e^eps - 1)),      eta = e^{eps/m} - 1,

above the larger of its values at the two, D_1 and D_2 the falls of V over the two intervals that x - t and x - t + eps
run through. Derived in docs/derivations/selection.md, section 1.

Guarantee: both sides certified, rounding included. Cost: 0.1 s, once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from hockeystick.laws.extent import CertifiedCurve, Extreme, InfiniteMass
from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import ELEMENTARY, SUBNORMAL, U, downs, ups

_MOST, _MOST_SPREAD = 128, 100.0  # steps of a run, and its epsilon^2: delta(0) is below 1 by far
_LEAST_EPSILON = 1e-6  # whose runs a table of knots shows

_INTERVALS = 3072  # of losses above 0


@final
@dataclass(frozen=True)
class BoundedRangeRun(CertifiedCurve):
    """The curve of a run. Its lower side is what adaptive choices of finitely many t attain.

    Parameters
    ----------
    epsilon : float
        The range of each step (nats).
    count : int
        The number of steps, at most 128.

    Examples
    --------
    >>> low, high = BoundedRangeRun(0.5, 2).delta(0.4)
    >>> round(low, 3), round(high, 3)
    (0.038, 0.038)
    """

    epsilon: float
    count: int

    def at(self, epsilon: float) -> tuple[float, float]:
        low, high = self.deltas(np.array([epsilon]), 0.0)
        return float(low[0]), float(high[0])

    def deltas(self, epsilons: Array, spacing: float) -> tuple[Array, Array]:
        """The bounds at many epsilons of at least 0, whatever the spacing."""
        at, low, high = _points(self.epsilon, self.count)
        before, after = at * (1.0 - 4.0 * U), at * (1.0 + 4.0 * U)  # points of the two sides: the curve falls
        i = np.clip(np.searchsorted(after, epsilons, side="right") - 1, 0, at.size - 2)
        share = np.clip(np.expm1(epsilons - after[i + 1]) / np.expm1(after[i] - after[i + 1]), 0.0, 1.0)
        above = (high[i + 1] + share * (high[i] - high[i + 1])) * (1.0 + 8.0 * ELEMENTARY)
        # below: the next point, or the line through it and an upper one beyond, prolonged
        i = np.clip(np.searchsorted(before, epsilons), 0, at.size - 2)
        share = np.expm1(epsilons - before[i]) / np.expm1(after[i + 1] - before[i])  # at most 0
        below = (low[i] - share * np.maximum(low[i] - high[i + 1], 0.0)) * (1.0 - 8.0 * ELEMENTARY)
        end = epsilons >= after[-1]
        return np.where(end, 0.0, np.maximum(below, 0.0)), np.where(end, 0.0, np.minimum(above, 1.0))

    def reversed(self) -> BoundedRangeRun:
        """The same curve."""
        return self

    @classmethod
    def longest(cls, epsilon: float) -> int:
        """The number of steps that one run serves among others."""
        return min(_MOST, int(_MOST_SPREAD / epsilon**2)) if epsilon >= _LEAST_EPSILON else 1

    @property
    def supremum(self) -> Extreme:
        """The losses of all steps together."""
        return Extreme(self.count * self.epsilon * (1.0 + 2.0 * U))

    infinite_mass = InfiniteMass.between(0.0, 0.0)


@lru_cache(maxsize=32)
def _points(epsilon: float, count: int) -> tuple[Array, Array, Array]:
    """Points from 0 to the largest loss, and bounds of V there."""
    m = _INTERVALS // count
    size = m * count + 1
    t = np.arange(m + 1) * (epsilon / m)
    p, rest = np.expm1(-t[::-1]) / math.expm1(-epsilon), np.expm1(t) / math.expm1(epsilon)  # nothing cancels
    eta, grown = math.expm1(epsilon / m), math.exp(epsilon)
    share, error = eta * (1.0 + eta) / (4.0 * math.expm1(epsilon)), (64.0 + 16.0 * epsilon) * U
    # with k steps done, V_k from -(count - k) epsilon to k epsilon, where it is 0
    best: Array = -np.expm1(np.arange(1 - size, 1) * (epsilon / m))
    most = best
    for _ in range(count):
        low, high = (np.append(side, np.zeros(2 * m)) for side in (best, most))
        falls = high[:-1] - high[1:]
        bend = np.maximum(grown * falls[: size + m - 1] - falls[m:], 0.0)
        bend = share * (bend + error * (grown + 1.0) * high[: size + m - 1])
        best, most, last = np.zeros(size), np.zeros(size), np.zeros(size)
        for j in range(m + 1):
            left, right = slice(m - j, m - j + size), slice(2 * m - j, 2 * m - j + size)
            np.maximum(best, p[j] * low[left] + rest[j] * low[right], out=best)
            value = p[j] * high[left] + rest[j] * high[right]
            if j:
                np.maximum(most, np.maximum(last, value) + bend[left], out=most)
            last = value
        # V falls: what bounds it at one point does so at all on one side
        best = np.maximum.accumulate(np.maximum(downs(best, error) - SUBNORMAL, 0.0)[::-1])[::-1]
        most = np.minimum.accumulate(np.minimum(ups(most, error) + SUBNORMAL, 1.0))
    return np.arange(size, dtype=np.float64) * (epsilon / m), best, most
