"""Exact curves of runs of few outcomes: every way to share the steps among them, in ball arithmetic of 120 digits."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

import mpmath
from flint import arb, ctx

from tests.mechanism_truths import Vectors

DIGITS = 120
mp = mpmath.mp.clone()  # of its own: what other tests ask of mpmath needs other digits
mp.dps = DIGITS
mpf = mp.mpf


class ListedCurve:
    """H_a(P || Q) at any epsilon: both laws summed over outcomes from the largest ratio down to e^epsilon."""

    def __init__(self, outcomes: Sequence[tuple[arb, arb]]) -> None:
        with ctx.workdps(DIGITS):
            rising = sorted(((-p / q).mid() if q > 0 else arb("-inf"), p, q) for p, q in outcomes if p > 0)
            self._less, *sides = zip(*rising, strict=True)
            self._p, self._q = ([arb(0), *accumulate(side)] for side in sides)

    def delta(self, epsilon: float) -> Any:
        with ctx.workdps(DIGITS):
            a = arb(epsilon).exp()
            above = bisect_left(self._less, -a.mid())
            return mpf(self._p[above] - a * self._q[above])

    @cached_property
    def losses(self) -> list[float]:
        """All that are finite, from the largest down."""
        with ctx.workdps(DIGITS):
            return [float((-less).log()) for less in self._less if less.is_finite()]


def every_way(steps: Sequence[tuple[Vectors, int]]) -> ListedCurve:
    """From the masses of all ways to share the steps."""
    with ctx.workdps(DIGITS):
        total = [(arb(1), arb(1))]
        for pairs, count in steps:
            ways = [(count, arb(1), arb(1))]
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


def _exact(value: Any) -> arb:
    return arb(value.numerator) / value.denominator if isinstance(value, Fraction) else arb(mpf(value))
