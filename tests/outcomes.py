"""Exact curves of runs of few outcomes: every way to share the steps among them, in numbers of 120 digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath

from tests.mechanism_truths import Curve, Vectors

mp = mpmath.mp.clone()  # of its own: what other tests ask of mpmath needs other digits
mp.dps = 120
mpf = mp.mpf


class ListedCurve(Curve):
    """The same at any epsilon."""

    def delta(self, epsilon: float) -> Any:
        return self.at(mp.exp(mpf(epsilon)))


def every_way(steps: Sequence[tuple[Vectors, int]]) -> ListedCurve:
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
    return ListedCurve(total)


def _exact(value: Any) -> Any:
    return mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else mpf(value)
