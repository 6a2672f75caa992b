"""Exact curves of runs of few outcomes: every way to share the steps among them, in numbers of 120 digits."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

import mpmath

from tests.mechanism_truths import Vectors

mp = mpmath.mp.clone()  # of its own: what other tests ask of mpmath needs other digits
mp.dps = 120
mpf = mp.mpf


class Curve:
    """delta at any epsilon: sums over outcomes, from the largest loss down, where they hold more than e^epsilon."""

    def __init__(self, outcomes: Iterable[tuple[Any, Any]]) -> None:
        rising = sorted((-p / q if q > 0 else -mp.inf, p, q) for p, q in outcomes if p > 0)
        self._less, *sides = zip(*rising, strict=True)
        self._p, self._q = (list(accumulate(side, initial=mpf(0))) for side in sides)

    def delta(self, epsilon: float) -> Any:
        ratio = mp.exp(mpf(epsilon))
        above = bisect_left(self._less, -ratio)
        return self._p[above] - ratio * self._q[above]

    @cached_property
    def losses(self) -> list[float]:
        """All that are finite, from the largest down."""
        return [float(mp.log(-less)) for less in self._less if less > -mp.inf]


def every_way(steps: Sequence[tuple[Vectors, int]]) -> Curve:
    """From the masses of all ways to share the steps."""
    total = [(mpf(1), mpf(1))]
    for pairs, count in steps:
        ways = [(count, mpf(1), mpf(1))]
        for place, (p, q) in enumerate(pairs):
            powers = [(_exact(p) ** k, _exact(q) ** k) for k in range(count + 1)]
            last = place == len(pairs) - 1
            ways = [
                (left - k, a * math.comb(left, k) * powers[k][0], b * math.comb(left, k) * powers[k][1])
                for left, a, b in ways
                for k in ([left] if last else range(left + 1))
            ]
        total = [(a * p, b * q) for a, b in total for _, p, q in ways]
    return Curve(total)


def _exact(value: Any) -> Any:
    return mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else mpf(value)
