"""The contour for losses on a lattice ``origin + d n``: one period of the transform is the whole of it.

The transform of such a loss has the period 2 pi i / d in z (but for a phase), so the terms of the infinite sum over m
gather into those of one period. With N odd, Lambda = N d and s_m = 2 pi m / Lambda,

    delta(eps) = e^{K - theta x} (1 / N) sum_{|m| < N/2} phi(s_m) D(z_m) - aliasing,

    D(z) = sum_{k>=0} e^{-z k d} (1 - e^{-(y + k d)}) = (alpha + beta e^{-zd}) / ((1 - e^{-zd}) (1 - e^{-(1+z)d})),

x the first lattice point at or above epsilon, y = x - eps, alpha = 1 - e^{-y}, beta = e^{-y} - e^{-d}: a sum of two
terms of one sign. Nothing is truncated, or what is left out falls under a bound on |phi| from runs of neighbouring
atoms.

The losses lie on the lattice only to within rounding: if the sum of losses is within ``slack`` of a sum on the
lattice, then delta(eps) lies between the lattice's curve at eps + slack and at eps - slack
(`docs/derivations/contour.md`, section 8).

Guarantee: both sides certified.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np

from hockeystick.engines.contour.aliasing import Chernoff
from hockeystick.engines.contour.line_curve import Curve
from hockeystick.engines.contour.line_sum import LineSum, line_sum
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.lattice import SharedLattice
from hockeystick.transforms.log_moments import TiltedRule
from hockeystick.transforms.rule import Array, LossRule

_SAFE = 1.0 - 2.0**-30
_FAR = 300.0


@final
@dataclass(frozen=True, eq=False)
class Runs:
    """Parts of a tilted law that are uniform on runs of neighbouring lattice points.

    A run of k points has ``|sin(k x) / (k sin x)|`` at x = s d / 2; on (0, pi / 2] that is at most the nonincreasing
    ``max(e^{-(k^2 - 1) x^2 / 6}, v)``, v = 1 / (k sin(pi / k)), up to pi / k, and ``1 / (k sin x)`` beyond. Where
    masses are too large by e in all, runs under them leave at most 2 e more than they say, e of them and e of the rest.
    """

    mass: Array
    length: Array
    spacing: float
    doubt: float = 0.0

    def log_bound(self, frequencies: Array) -> Array:
        """At least ``ln |phi(t)|`` for t from s to pi / d, for F frequencies s, shape (F, 1)."""
        x = 0.5 * self.spacing * frequencies.reshape(-1, 1)
        k = np.maximum(self.length, 2.0)
        near = np.minimum(x, math.pi / k)
        # one less the majorant, relative to itself: many steps multiply it where it is small
        early = np.minimum(-np.expm1((1.0 - k * k) * near * near / 6.0), 1.0 - 1.0 / (k * np.sin(math.pi / k)))
        late = 1.0 - 1.0 / (k * np.sin(np.clip(x, 1e-300, 0.5 * math.pi)))
        rest = np.maximum(np.where(x * k < math.pi, early, late), 0.0)
        lost = np.where(self.length >= 2.0, self.mass * rest, 0.0).sum(axis=1, keepdims=True) * _SAFE - 2.0 * self.doubt
        return np.asarray(np.log1p(-np.clip(lost, 0.0, 1.0 - 2.0**-40)))


def runs(
    weight: Array, index: np.ndarray[tuple[int, ...], np.dtype[np.int64]], spacing: float, doubt: float = 0.0
) -> Runs:
    """The level sets of the largest unimodal function below the masses of one tilted law, off by ``doubt`` in all."""
    mass = np.bincount(index - index.min(), weights=weight * _SAFE)
    top = int(np.argmax(mass))
    profile = np.concatenate((np.minimum.accumulate(mass[top::-1])[::-1], np.minimum.accumulate(mass[top:])[1:]))
    level = -np.sort(-profile)
    length = np.arange(1.0, level.size + 1.0)
    return Runs((level - np.append(level[1:], 0.0)) * length, length, spacing, doubt)


@final
@dataclass(frozen=True, eq=False)
class LatticeLine:
    """A line at theta with M of the (N + 1) / 2 nodes of a period at and above the real axis.

    Attributes
    ----------
    chernoff : Chernoff
        K of the lattice's loss at theta and around it.
    lattice : SharedLattice
        Spacing, origin and slack.
    size : int
        N, odd.
    total : LineSum
        ``sum T ln phi`` about the centres, at s_0 .. s_{M-1}.
    centre : Fraction
        ``sum T c``, exact.
    log_tail : float
        Upper bound on ``ln prod |phi|^T`` beyond the last node, ``-inf`` where there is none.
    dropped : float
        Bound on the tilted probability of a loss that has no node.
    """

    chernoff: Chernoff
    lattice: SharedLattice
    size: int
    total: LineSum
    centre: Fraction
    log_tail: float
    dropped: float

    def curve(self, epsilon: Array) -> Curve:
        """Brackets of delta_fin(epsilon), epsilon of shape (E,)."""
        slack = Fraction(self.lattice.slack)
        above = Curve.stacked([self._at(Fraction(float(e)) - slack) for e in epsilon])
        below = Curve.stacked([self._at(Fraction(float(e)) + slack) for e in epsilon])
        error = self.chernoff.error + 4.0 * U * (abs(self.chernoff.value) + above.log_scale_error)
        shift = np.array([math.exp(min(moved, 0.0)) for moved in (below.log_scale - above.log_scale).tolist()])
        known = below.lower > 0.0
        sizes = np.where(known, below.log_scale_error, 0.0)  # then it is finite
        scale = np.where(known, shift * (1.0 - 8.0 * U * (1.0 + abs(self.chernoff.value) + sizes)), 1.0)
        lower = below.lower * scale
        return replace(above, lower=lower - 8.0 * U * np.abs(lower), log_scale_error=error)

    def _at(self, epsilon: Fraction) -> Curve:
        """The lattice's own curve at one epsilon, relative to ``e^{K - theta x}``; its error, the size of theta x."""
        d = self.lattice.exact_spacing
        steps = -((self.lattice.origin - epsilon) // d)  # ceil((eps - origin) / d)
        point = self.lattice.origin + steps * d
        y, theta = float(point - epsilon), self.chernoff.theta
        value, rounding, edge = self._sum(y, float(self.centre - point))
        tail = edge * math.exp(min(self.log_tail, 0.0)) * (1.0 + 1e-9)
        at = np.array([float(epsilon)])
        period = self.size * self.lattice.spacing
        turned = min(theta * y, _FAR)
        growth = math.exp(turned) * float(1.0 + 1e-12 * (1.0 + turned))  # from e^{K - theta eps} to e^{K - theta x}
        aliasing = self.chernoff.aliasing(at, period * (1.0 - 4.0 * U))
        right, left_high = growth * float(aliasing.right[0]), growth * float(aliasing.left_upper[0])
        if theta * y > _FAR or math.isinf(right + left_high):  # a line so far from its own epsilon says nothing
            nothing: Any = (
                self.chernoff.value - theta * float(point),
                0.0,
                math.inf,
                math.inf,
                math.inf,
                tail,
                math.inf,
            )
            return Curve(*nothing)
        left_low = float(aliasing.left_lower[0]) * (1.0 - 4e-12 * (1.0 + theta * y)) * growth
        slack = 4.0 * U * (abs(value) + rounding + tail + right + left_high)
        x = float(point)
        # a loss without a node adds at most e^{-theta eps} E[e^{theta L}; such a loss]
        dropped = growth * self.dropped
        found: dict[str, Any] = {
            "log_scale": self.chernoff.value - theta * x,
            "lower": value - rounding - tail - right - left_high - slack,
            "upper": value + rounding + tail + dropped - left_low + slack,
            "log_scale_error": abs(theta * x),
            "rounding": rounding + slack,
            "truncation": tail + dropped,
            "aliasing": right + left_high - left_low,
        }
        return Curve(**found)

    def _sum(self, y: float, gap: float) -> tuple[float, float, float]:
        """The sum, a bound on its rounding error, and one on what each unit of |phi| beyond the last node adds."""
        theta, d, total = self.chernoff.theta, self.lattice.spacing, self.total
        s = 2.0 * math.pi / (self.size * d) * np.arange(float(total.log_size.size))
        alpha, beta = -math.expm1(-y), math.exp(-y) * -math.expm1(-max(d - y, 0.0))
        turn = np.exp(-theta * d) * (np.cos(s * d) - 1j * np.sin(s * d))
        first, second = _one_minus(theta, s, d), _one_minus(1.0 + theta, s, d)
        size = (alpha + beta * math.exp(-theta * d)) / (np.abs(first) * np.abs(second))
        kernel = (alpha + beta * turn) / (first * second)
        kernel[0] *= 0.5
        phase = s * gap + total.argument
        modulus = np.exp(np.minimum(total.log_size, 1.0))  # at most one, but for its error
        terms = modulus * (np.cos(phase) * kernel.real - np.sin(phase) * kernel.imag)
        doubt = total.error + U * (12.0 * np.abs(s * gap) + 2.0 * np.abs(total.argument) + 2.0 * np.abs(phase))
        doubt = doubt + 2.0 * ELEMENTARY + 100.0 * U + U * np.abs(total.log_size)
        bound = np.exp(np.minimum(total.log_size_bound, 0.0)) * (1.0 + 1e-9)
        error = size * np.where(doubt < 1.0, modulus * np.expm1(np.minimum(doubt, 1.0)), modulus + bound)
        # If x is how far a loss is off the lattice, |x| <= X, then |e^{zx} - 1| <= |z| X e^{theta X} for the
        # transform and the same with theta for the moment it is divided by: together at most (2 theta + s) X e^{theta
        # X}.
        off = self.lattice.slack * math.exp(min(theta * self.lattice.slack, _FAR)) * (1.0 + 1e-9)
        error = error + size * (off * (2.0 * theta + s))
        rounding = 2.0 / self.size * (error.sum() + (s.size + 8) * U * (size * modulus).sum()) * (1.0 + 1e-6)
        return 2.0 / self.size * float(terms.sum()), float(rounding), float(size[-1]) * (1.0 + 1e-9)


def _one_minus(theta: float, s: Array, d: float) -> np.ndarray[tuple[int, ...], np.dtype[np.complex128]]:
    """``1 - e^{-(theta + i s) d}`` without cancellation."""
    size = math.exp(-theta * d)
    half = np.sin(0.5 * s * d)
    return np.asarray((-math.expm1(-theta * d) + 2.0 * size * half * half) + 1j * (size * np.sin(s * d)))


def prepare_lattice_line(
    rules: Sequence[LossRule],
    tilted: Sequence[TiltedRule],
    lattice: SharedLattice,
    *,
    chernoff: Chernoff,
    size: int,
    nodes: int,
    log_tail: float,
) -> LatticeLine:
    """The line through ``chernoff.theta``, K given for the losses as they are; ``nodes`` at most (size + 1) / 2."""
    theta = chernoff.theta
    step = 2.0 * math.pi / (size * lattice.spacing)
    reach = step * (nodes - 1)
    totals, dropped, centre = [], 0.0, Fraction(0)
    for rule, part in zip(rules, tilted, strict=True):
        quadrature = rule.quadrature.error_up_to(reach, 1.0 + theta, part.quadrature)
        dropped += float(quadrature @ rule.counts)
        # the nodes are four roundings off, and so is phi, in proportion to its change
        moved = 8.0 * U * (reach * reach * part.spread + reach * np.abs(part.drift))
        totals.append(line_sum(part, rule.counts, step, nodes, 2.02 * quadrature + moved))
        exact = (Fraction(float(c)) * Fraction(float(t)) for c, t in zip(part.centre, rule.counts, strict=True))
        centre += sum(exact, Fraction(0))
    moved_chernoff = replace(
        chernoff,
        error=chernoff.error + 1.01 * theta * lattice.slack,
        errors=chernoff.errors + 1.01 * np.abs(chernoff.tilts) * lattice.slack,
    )
    total = functools.reduce(operator.add, totals)
    return LatticeLine(moved_chernoff, lattice, size, total, centre, log_tail, dropped * (1.0 + 1e-9))
