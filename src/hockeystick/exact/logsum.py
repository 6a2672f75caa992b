"""``g(x) = ln sum_k w_k e^{c_k x - c_k^2/2}``: the log-density of a Gaussian mixture over that of N(0, 1).

It is convex, with a slope between the smallest and the largest centre, and without zeros of its exponential in the
strip ``|Im x| < pi / (spread of the centres)``.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import final

from flint import acb, arb

from hockeystick.exact.balls import ball

Terms = list[tuple[arb, arb]]
"""``(slope, offset)`` of the exponents ``c x + (ln w - c^2/2)``, as balls of the working precision."""


@final
@dataclass(frozen=True)
class LogSum:
    """The function of the module header; centres in units of the common width, all numbers exact."""

    weights: tuple[Fraction, ...]
    centres: tuple[Fraction, ...]

    @cached_property
    def low(self) -> Fraction:
        """Smallest centre."""
        return min(self.centres)

    @cached_property
    def high(self) -> Fraction:
        """Largest centre."""
        return max(self.centres)

    @cached_property
    def spread(self) -> Fraction:
        """Distance of the outermost centres."""
        return self.high - self.low

    def weight_at(self, centre: Fraction) -> Fraction:
        """Weight of a centre, zero where there is none."""
        return dict(zip(self.centres, self.weights, strict=True)).get(centre, Fraction(0))

    def terms(self) -> Terms:
        """The exponents at the working precision."""
        return [(ball(c), ball(w).log() - ball(c * c) / 2) for w, c in zip(self.weights, self.centres, strict=True)]

    def value(self, terms: Terms, x: arb) -> arb:
        """``g(x)``."""
        if len(terms) == 1:
            return terms[0][0] * x + terms[0][1]
        return sum(((slope * x + offset).exp() for slope, offset in terms), arb(0)).log()

    def value_at(self, terms: Terms, x: acb) -> acb:
        """``g(x)`` for complex x in the strip, continued from the real line: the phase of the sum is below pi."""
        slope, offset = terms[0]
        if len(terms) == 1:
            return x * slope + offset
        total = acb(1)
        for other, shift in terms[1:]:
            total += (x * (other - slope) + (shift - offset)).exp()
        return x * slope + offset + total.log()

    def slope(self, terms: Terms, x: arb) -> arb:
        """``g'(x)``."""
        if len(terms) == 1:
            return terms[0][0]
        total, moment = arb(0), arb(0)
        for slope, offset in terms:
            term = (slope * x + offset).exp()
            total += term
            moment += slope * term
        return moment / total

    def lifted(self, terms: Terms, x: arb, y: arb) -> tuple[arb, arb]:
        """``(|e^{g(x+iy)}| / e^{g(x)}, arg e^{g(x+iy)})`` for real x and y, relative to the lowest centre's phase.

        The phase lies in ``[0, spread * y]`` and the ratio is at least ``cos(spread * y / 2)``; x may be a wide ball.
        For two centres, c apart, the ratio squared is ``1 - sin^2(c y / 2) / cosh^2(u / 2)``, u the logarithm of the
        ratio of the two terms.
        """
        if len(terms) == 1:
            return arb(1), arb(0)
        base_slope, base_offset = terms[0]
        total, real = acb(1), arb(1)
        for slope, offset in terms[1:]:
            size = ((slope - base_slope) * x + offset - base_offset).exp()
            total += acb(0, (slope - base_slope) * y).exp() * size
            real += size
        if len(terms) > 2:
            return self._within(abs(total) / real, total.arg(), y)
        gap = terms[1][0] - base_slope
        part = (gap * y / 2).sin() / ((gap * x + terms[1][1] - base_offset) / 2).cosh()
        return self._within((1 - part * part).sqrt(), total.arg(), y)

    def lifted_beyond(self, terms: Terms, x: arb, y: arb, side: int) -> tuple[arb, arb]:
        """Enclosures of the same at every point from x outwards; ``side`` is -1 or 1.

        Outwards the outermost centre gains on the others: with S the sum of their terms over its own at x, the phase is
        within ``arcsin S`` of its own and the ratio at least ``(1 - S) / (1 + S)``.
        """
        if len(terms) == 1:
            return arb(1), arb(0)
        end = 0 if side < 0 else -1
        others = terms[1:] if side < 0 else terms[:-1]
        rest = sum((((s - terms[end][0]) * x + o - terms[end][1]).exp() for s, o in others), arb(0)).upper()
        own = arb(0) if side < 0 else ball(self.spread) * y
        turn = rest.asin().upper() if rest < 1 else arb.pi().upper()
        return self._within(((1 - rest) / (1 + rest)).union(arb(1)), own + arb(0, turn), y)

    def _within(self, ratio: arb, phase: arb, y: arb) -> tuple[arb, arb]:
        """Both cut to where they must lie, also where a ball was too wide to tell."""
        most = ball(self.spread) * y
        ratio = ratio.max((most / 2).cos()).min(arb(1)) if ratio.is_finite() else (most / 2).cos().union(arb(1))
        return ratio, phase.max(arb(0)).min(most) if phase.is_finite() else arb(0).union(most)

    # ------------------------------------------------------------------------------------------------------- estimates

    @cached_property
    def _floats(self) -> tuple[tuple[float, float], ...]:
        return tuple(
            (float(c), math.log(w.numerator) - math.log(w.denominator) - 0.5 * float(c) ** 2)
            for w, c in zip(self.weights, self.centres, strict=True)
        )

    @cached_property
    def balances(self) -> tuple[tuple[float, float], ...]:
        """Points where neighbouring terms are equal, and the length over which that changes (estimates)."""
        return tuple(((b[1] - a[1]) / (a[0] - b[0]), 1.0 / (b[0] - a[0])) for a, b in pairwise(self._floats))

    def estimate(self, x: float) -> float:
        """``g(x)`` in floats."""
        floats = self._floats
        if len(floats) == 1:
            ((slope, offset),) = floats
            return slope * x + offset
        if len(floats) == 2:  # by far the most frequent
            (slope, offset), (other, shift) = floats
            one, two = slope * x + offset, other * x + shift
            return one + math.log(1.0 + math.exp(two - one)) if one > two else two + math.log(math.exp(one - two) + 1.0)
        top, sizes = self._sizes(x)
        return top + math.log(sum(sizes))

    def _sizes(self, x: float) -> tuple[float, list[float]]:
        """``ln`` of the largest term, and all terms over it."""
        floats = self._floats
        if len(floats) == 2:
            (slope, offset), (other, shift) = floats
            one, two = slope * x + offset, other * x + shift
            return (one, [1.0, math.exp(two - one)]) if one > two else (two, [math.exp(one - two), 1.0])
        exponents = [slope * x + offset for slope, offset in floats]
        top = max(exponents)
        return top, [math.exp(e - top) for e in exponents]

    def rest_estimate(self, x: float, side: int) -> float:
        """The other terms over that of the outermost centre on one side, each at most 1, in floats."""
        end = self._floats[0 if side < 0 else -1]
        others = self._floats[1:] if side < 0 else self._floats[:-1]
        return sum(math.exp(min(0.0, (f[0] - end[0]) * x + f[1] - end[1])) for f in others) if others else 0.0

    def bend_estimate(self, x: float) -> float:
        """``g''(x)`` in floats: the variance of the centre."""
        _, sizes = self._sizes(x)
        total = sum(sizes)
        mean = sum(size * f[0] for size, f in zip(sizes, self._floats, strict=True)) / total
        return sum(size * (f[0] - mean) ** 2 for size, f in zip(sizes, self._floats, strict=True)) / total

    def slope_estimate(self, x: float) -> float:
        """``g'(x)`` in floats."""
        _, sizes = self._sizes(x)
        return sum(size * f[0] for size, f in zip(sizes, self._floats, strict=True)) / sum(sizes)

    def lifted_estimate(self, x: float, y: float) -> tuple[float, float]:
        """``(ln of the ratio, phase)`` as in ``lifted``, in floats."""
        floats = self._floats
        if len(floats) == 1:
            return 0.0, 0.0
        (_, sizes), low = self._sizes(x), floats[0][0]
        if len(floats) == 2:
            (first, second), angle = sizes, (floats[1][0] - low) * y
            both = complex(first + second * math.cos(angle), 0.0 + second * math.sin(angle))  # no -0
            return math.log(max(1e-300, abs(both)) / (first + second)), cmath.phase(both)
        total = sum(size * cmath.rect(1.0, (f[0] - low) * y) for size, f in zip(sizes, floats, strict=True))
        return math.log(max(1e-300, abs(total)) / sum(sizes)), cmath.phase(total)
