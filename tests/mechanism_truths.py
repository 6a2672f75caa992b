"""Privacy curves of one and two steps, written from the definitions and sharing no code with the library.

A step is a pair of laws. On the line a law is a list of ``(weight, centre)`` of one noise; where the likelihood ratio
does not fall, ``H_a = P(x > t) - a Q(x > t)`` with t the last point of ratio at most a, and for two steps ``H_a(P x P
|| Q x Q) = integral of p(x) H_{a / r(x)}(P || Q) dx``, r = p / q. On the integers both are sums.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import mpmath
import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray
from scipy.special import ndtr

mp = mpmath.mp.clone()  # of its own: what other tests ask of mpmath needs other digits
mp.dps = 60
mpf = mp.mpf

Array = NDArray[np.float64]
Law = tuple[tuple[Fraction, float], ...]
"""(weight, centre) of every component."""

LINE_ERROR = 1e-11
"""Relative error of the curves on the line: double precision quadrature; far below the width of the brackets tested."""


@dataclass(frozen=True)
class Noise:
    """A noise on the line: density and tail at a distance from its centre, twice, and where it is not smooth."""

    density: Callable[[Array], Array]
    tail: Callable[[Array], Array]
    exact_density: Callable[[arb], arb]
    exact_tail: Callable[[arb], arb]
    reach: float
    kinks: tuple[float, ...]


@functools.cache
def gaussian_noise(sigma: float) -> Noise:
    return Noise(
        lambda x: np.exp(-0.5 * (x / sigma) ** 2) / (sigma * math.sqrt(2.0 * math.pi)),
        lambda x: ndtr(-x / sigma),
        lambda x: (-((x / sigma) ** 2) / 2).exp() / (sigma * (2 * arb.pi()).sqrt()),
        lambda x: (x / sigma / arb(2).sqrt()).erfc() / 2,
        25.0 * sigma,
        (),
    )


@functools.cache
def laplace_noise(scale: float) -> Noise:
    return Noise(
        lambda x: np.exp(-np.abs(x) / scale) / (2.0 * scale),
        lambda x: np.where(x > 0.0, 0.5 * np.exp(-np.abs(x) / scale), 1.0 - 0.5 * np.exp(-np.abs(x) / scale)),
        lambda x: (-abs(x) / scale).exp() / (2 * scale),
        lambda x: (-x / scale).exp() / 2 if x > 0 else 1 - (x / scale).exp() / 2,
        40.0 * scale,
        (0.0,),
    )


@dataclass(frozen=True)
class LinePair:
    """P against Q on the line, mixtures of one noise, the ratio nondecreasing in x."""

    noise: Noise
    p: Law
    q: Law

    def _mix(self, law: Law, function: Callable[[Array], Array], x: Array) -> Array:
        return np.asarray(sum(float(weight) * function(x - centre) for weight, centre in law))

    def _exact(self, law: Law, function: Callable[[arb], arb], x: arb) -> arb:
        return sum((arb(w.numerator) / w.denominator * function(x - centre) for w, centre in law), arb(0))

    def once(self, a: mpf) -> mpf:
        """H_a(P || Q) to some forty digits."""
        with ctx.workdps(mp.dps):
            return mpf(self._once(arb(a)))

    def _once(self, a: arb) -> arb:
        low, high = (arb(20 * end) for end in self.ends)

        def ratio(x: arb) -> arb:
            return self._exact(self.p, self.noise.exact_density, x) / self._exact(self.q, self.noise.exact_density, x)

        if ratio(low) > a:
            return (1 - a).max(arb(0))
        if ratio(high) <= a:
            return arb(0)
        for _ in range(110):  # to 1e-29 of a point at which the value is stationary
            middle = ((low + high) / 2).mid()
            low, high = (middle, high) if ratio(middle) <= a else (low, middle)
        return self._exact(self.p, self.noise.exact_tail, low) - a * self._exact(self.q, self.noise.exact_tail, low)

    def ratio(self, x: Array) -> Array:
        return self._mix(self.p, self.noise.density, x) / self._mix(self.q, self.noise.density, x)

    @property
    def ends(self) -> tuple[float, float]:
        centres = [centre for _, centre in self.p + self.q]
        return min(centres) - self.noise.reach, max(centres) + self.noise.reach

    def hockey_stick(self, a: Array) -> Array:
        """H_a(P || Q)."""
        low, high = (np.full(a.shape, end) for end in self.ends)
        whole = self.ratio(low) > a  # every point
        for _ in range(64):  # from at most 160 wide to below the spacing of float64 at 1
            middle = 0.5 * (low + high)
            below = self.ratio(middle) <= a
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        cut = np.where(whole, -np.inf, np.where(self.ratio(high) <= a, np.inf, low))
        finite = np.where(np.isfinite(cut), cut, 0.0)
        value = self._mix(self.p, self.noise.tail, finite) - a * self._mix(self.q, self.noise.tail, finite)
        return np.maximum(np.where(whole, 1.0 - a, np.where(np.isposinf(cut), 0.0, value)), 0.0)

    def last_at_most(self, level: float) -> float:
        """The last point of ratio at most ``level``, an end of the line where there is none."""
        return float(self._last_at_most(np.array([level]))[0])

    def _last_at_most(self, levels: Array) -> Array:
        low, high = (np.full(levels.shape, end) for end in self.ends)
        for _ in range(100):
            middle = 0.5 * (low + high)
            below = self.ratio(middle) <= levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return low

    def panels(self, levels: Sequence[float]) -> tuple[Array, Array]:
        """Gauss-Legendre points and weights, panels ending where the densities are not smooth and at these ratios."""
        low, high = self.ends
        kinks = {low, high}
        kinks |= {centre + kink for _, centre in self.p + self.q for kink in self.noise.kinks}
        kinks |= set(self._last_at_most(np.array(levels)).tolist())
        edges = np.array(sorted(kinks))
        fine = np.unique(np.concatenate([np.linspace(l, h, 251) for l, h in pairwise(edges)]))
        x, w = np.polynomial.legendre.leggauss(20)
        half = 0.5 * np.diff(fine)[:, None]
        middle = 0.5 * (fine[1:] + fine[:-1])[:, None]
        return (middle + half * x).ravel(), (half * w).ravel()

    def twice(self, a: float, other: LinePair | None = None) -> float:
        """H_a of this pair and another one (itself by default), independent."""
        second = other or self
        ends = second.ratio(np.array(second.ends))
        # rare records: all but few of the other's losses are next to 0, and its curve bends within a hundredth of it
        x, w = self.panels([*(a / float(end) for end in ends), 0.9 * a, 1.1 * a])
        p = self._mix(self.p, self.noise.density, x)
        return float((w * p * second.hockey_stick(a / self.ratio(x))).sum())

    def density_p(self, x: Array) -> Array:
        return self._mix(self.p, self.noise.density, x)


def joined_once(above: LinePair, below: LinePair, a: Array) -> Array:
    """h(a): one curve from a = 1 on, the other before."""
    return np.where(a >= 1.0, above.hockey_stick(np.maximum(a, 1.0)), below.hockey_stick(np.minimum(a, 1.0)))


def joined_twice(above: LinePair, below: LinePair, a: float) -> float:
    """Two steps of the pair whose curve is joined: positive losses are those of ``above``, others those of ``below``.

    ``H_a = integral of h(a / r) dP(r)``, the mass that is left over lying at r = 1.
    """
    total, mass = 0.0, 0.0
    for pair, positive in ((above, True), (below, False)):
        ends = [float(end) for other in (above, below) for end in other.ratio(np.array(other.ends))]
        x, w = pair.panels([1.0, 0.9 * a, a, 1.1 * a, *(a / end for end in ends)])
        one_side = (x > pair.last_at_most(1.0)) == positive
        x, weights = x[one_side], (w * pair.density_p(x))[one_side]
        total += float((weights * joined_once(above, below, a / pair.ratio(x))).sum())
        mass += float(weights.sum())
    return total + (1.0 - mass) * float(joined_once(above, below, np.array([a]))[0])


# ------------------------------------------------------------------------------------------------------------- integers

Vectors = tuple[tuple[Any, Any], ...]
"""(p, q) of every outcome: fractions or mpmath numbers."""


def mixed(pairs: Vectors, rate: Any) -> Vectors:
    """((1 - g) Q + g P, Q)."""
    return tuple(((1 - rate) * q + rate * p, q) for p, q in pairs)


def turned(pairs: Vectors) -> Vectors:
    """(Q, P)."""
    return tuple((q, p) for p, q in pairs)


def joined_vectors(pairs: Vectors, rate: Any) -> Vectors:
    """Outcomes of the joined curve: ((1-g) Q + g P, Q) where p > q, (P, (1-g) P + g Q) elsewhere; the rest at 1."""
    kept = [((1 - rate) * q + rate * p, q) if p > q else (p, (1 - rate) * p + rate * q) for p, q in pairs]
    return (*kept, (1 - sum(p for p, _ in kept), 1 - sum(q for _, q in kept)))


def as_mpf(value: Any) -> mpf:
    if isinstance(value, mpf):
        return value
    return mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else mpf(value)


class Curve:
    """H_a(P || Q) at any a: both laws summed over outcomes from the largest ratio down to a, in the digits given."""

    def __init__(self, outcomes: Iterable[tuple[mpf, mpf]]) -> None:
        rising = sorted((-p / q if q > 0 else -mp.inf, p, q) for p, q in outcomes if p > 0)
        self._less, *sides = zip(*rising, strict=True)
        self._p, self._q = ([0, *accumulate(side)] for side in sides)

    def at(self, a: mpf) -> mpf:
        above = bisect_left(self._less, -a)
        return self._p[above] - a * self._q[above]


def hockey_stick(pairs: Vectors, a: mpf, other: Vectors | None = None) -> mpf:
    """H_a(P || Q), or of two independent pairs."""
    first = [(as_mpf(p), as_mpf(q)) for p, q in pairs]
    if other is None:
        return mp.fsum(max(p - a * q, mpf(0)) for p, q in first)
    second = Curve((as_mpf(p), as_mpf(q)) for p, q in other)
    return mp.fsum(p * second.at(a * q / p) for p, q in first if p > 0)


def shifted(masses: dict[int, Any], shift: int) -> Vectors:
    """Noise moved by ``shift`` against the noise."""
    support = set(masses) | {x + shift for x in masses}
    zero = Fraction(0)
    return tuple((masses.get(x - shift, zero), masses.get(x, zero)) for x in sorted(support))


def discrete_gaussian(sigma: float) -> dict[int, mpf]:
    reach = math.ceil(30 * sigma) + 2  # what is left out is below 1e-190
    weights = {x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma) ** 2)) for x in range(-reach, reach + 1)}
    total = mp.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


def shifted_discrete_laplace(scale: float, shift: int) -> Vectors:
    """Outcomes up to 0, from ``shift`` on, and each between: geometric sums, the noise moved against the noise."""
    r = mp.exp(-1 / mpf(scale))
    ends = 1 / (1 + r)
    q = [ends, *((1 - r) / (1 + r) * r**x for x in range(1, shift)), ends * r**shift]
    return tuple(zip(reversed(q), q, strict=True))


def binomial(trials: int, probability: float) -> dict[int, Fraction]:
    p = Fraction(probability)
    return {x: math.comb(trials, x) * p**x * (1 - p) ** (trials - x) for x in range(trials + 1)}


def merged(pairs: Vectors) -> Vectors:
    """Outcomes of equal ratio merged, for exact fractions: the same curve, fewer outcomes."""
    groups: dict[Any, tuple[Any, Any]] = {}
    for p, q in pairs:
        ratio = p / q if q else None
        before = groups.get(ratio, (0, 0))
        groups[ratio] = (before[0] + p, before[1] + q)
    return tuple(groups.values())
