"""The privacy blanket: what n people's shuffled reports tell about one of them, from above.

Person 1 holds x or x'; every report comes from a matrix of chances R, rows the values, columns the reports. With
``m(w) = min_x R(x, w)``, each of the others reports by a law that does not depend on what it holds with probability
``sum m``. Whoever is told who did otherwise, and what these said, still has (Balle, Bell, Gascon and Nissim 2019, Lemma
5.3)

    delta(eps) <= E (T_1 + ... + T_n)_+ / n,    T = (R(x, w) - e^eps R(x', w)) / m(w)  with probability m(w), else 0,

T independent. For every theta > 0 and h > 0, phi(z) = E e^{zT}, the sum ``(h / 2 pi) sum_k phi(z_k)^n / z_k^2`` over
``z_k = theta + i k h`` is ``sum_j e^{theta j Lambda} E (S - j Lambda)_+``, Lambda = 2 pi / h, by Poisson summation:
never below the term j = 0. The terms left out, ``|k| >= N``, are at most ``phi(theta)^n / (pi h (N - 1))`` together.
Proof: docs/derivations/selection.md, section 6.

Guarantee: an upper bound for the shuffled reports, rounding included. Cost: about 10^5 sines and cosines a column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np

from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import Array, InfiniteMass, Pair
from hockeystick.laws.binomial import binomial_log_masses
from hockeystick.laws.extent import LEAST_DELTA, CertifiedCurve, undercut
from hockeystick.numerics.rationals import float_beside, log_of
from hockeystick.numerics.rounding import ELEMENTARY, U, down, exp_up, up

Column = tuple[Fraction, Fraction, Fraction]
"""Chances of one report given x, given x', and the least over all values."""

_NODES, _FEWER_NODES = 1 << 17, 1 << 14  # for one answer, and for each of many
_APART = 10  # knots between those at which the curve is bounded
_HALVINGS = 30  # of an interval, for a guess
_TILTS = 240
_REACH = 60.0  # theta Lambda at least, and beyond what the answer is small by
_SIDE = 14.0  # standard deviations in Lambda, at least
_LARGEST = 600.0  # epsilon whose exponential is taken
_SEEN = 2.0**-60  # chances of a blanket below which its report is taken to be seen: ratios to more are moderate
_LEAST = 1e-50  # delta of a report that is seen alone, from which on shuffling is looked at
_SMALLEST = 0.25  # phi(theta), from which on rounding leaves its logarithm


@final
@dataclass(frozen=True)
class BlanketCurve(CertifiedCurve):
    """What the reports of ``people`` tell, shuffled, one of whom holds x or x': the worst of some pairs of values.

    Both orders of every pair of values are there, so that the curve is its own reverse. Nothing is known below.

    Parameters
    ----------
    choices : tuple of tuple of Column
        For every pair of values, the columns in which they differ or are blanketed.
    people : int
        n, at least 1.
    """

    choices: tuple[tuple[Column, ...], ...]
    people: int

    @property
    def infinite_mass(self) -> InfiniteMass:
        """That of a single report: an outcome which x' never has. No datasets are known to have it."""
        high = max(
            float_beside(sum((a for a, b, _ in columns if b == 0), Fraction(0)), up=True) for columns in self.choices
        )
        return replace(InfiniteMass.rounded_up(high), low=0.0, log_high=0.0)

    def at(self, epsilon: float) -> tuple[float, float]:
        """0, and an upper bound on delta(epsilon), epsilon finite and at least 0 (nats)."""
        return 0.0, self._upper(epsilon, _NODES)

    def deltas(self, epsilons: Array, spacing: float) -> tuple[Array, Array]:
        """The same at many, from a tenth of them: between these, what holds at the one before (delta falls)."""
        index = np.unique(np.append(np.arange(0, epsilons.size, _APART), epsilons.size - 1))
        high = np.ones(index.size)
        for number, at in enumerate(index):
            high[number:] = self._upper(float(epsilons[at]), _FEWER_NODES)
            if high[number] <= max(LEAST_DELTA, self.infinite_mass.high):
                break
        return np.zeros(epsilons.size), high[np.searchsorted(index, np.arange(epsilons.size), side="right") - 1]

    def _upper(self, epsilon: float, nodes: int) -> float:
        return max(_stop_loss(columns, self.people, epsilon, nodes) for columns in self.choices)

    def guess(self, delta: float) -> float:
        return undercut(lambda epsilon: self._upper(epsilon, _FEWER_NODES), delta, _HALVINGS)

    def reversed(self) -> BlanketCurve:
        """The same: all pairs of values are there, both ways round."""
        return self


def _stop_loss(columns: Iterable[Column], people: int, epsilon: float, nodes: int) -> float:
    """Upper bound of ``E (T_1 + ... + T_n)_+ / n``, never above what a report tells that is seen alone."""
    scale = Fraction(down(math.exp(min(epsilon, _LARGEST)), ELEMENTARY + U))  # delta falls with epsilon: rounded down
    kept = [(m, a - scale * b) for a, b, m in columns if m >= _SEEN]
    seen = sum((max(a - scale * b, Fraction(0)) for a, b, m in columns if m < _SEEN), Fraction(0))
    alone = float_beside(seen + sum((max(gain, Fraction(0)) for _, gain in kept), Fraction(0)), up=True)
    value = np.array([float_beside(gain / m, up=True) for m, gain in kept])
    if alone < _LEAST or not kept or value.max() <= 0.0:
        return alone
    log_sum = _log_positive_part(np.array([float(m) for m, _ in kept]), value, float(people), nodes)
    shuffled = exp_up(min(log_sum, 1.0 + math.log(people))) / people + float_beside(seen, up=True)
    return min(up(shuffled, 8.0 * U), alone)


def _log_positive_part(mass: Array, value: Array, n: float, nodes: int) -> float:
    """Upper bound of ``ln E (T_1 + ... + T_n)_+``; infinite where rounding leaves none.

    ``mass`` is a rounding off, ``value`` exact; at most 1 in all.
    """
    top = float(np.abs(value).max())

    grid = 2.0 ** np.linspace(-30.0, 9.0, _TILTS) / top
    change: dict[float, float] = {t: float(mass @ np.expm1(t * value)) for t in grid.tolist()}
    usable = [t for t in change if 1.0 + change[t] >= _SMALLEST]  # the first at least
    theta = min(usable, key=lambda t: n * math.log1p(change[t]) - 2.0 * math.log(t))
    total = 1.0 + change[theta]
    k = n * math.log(total)
    tilted = mass * np.exp(theta * value)
    spread = math.sqrt(n * float(tilted @ value**2) / total)
    h = 2.0 * math.pi / max(_SIDE * spread, (_REACH + max(-k, 0.0)) / theta)
    y = h * np.arange(nodes)
    angle = np.outer(value, y)
    real = (1.0 - float(mass.sum())) + tilted @ np.cos(angle)
    imaginary = tilted @ np.sin(angle)
    with np.errstate(divide="ignore"):
        radius = np.exp(0.5 * n * np.log((real * real + imaginary * imaginary) / (total * total)))
    size = theta * theta + y * y
    told = radius > 0.0  # the first of all; the terms of the others are 0
    turn, at = n * np.arctan2(imaginary[told], real[told]), y[told]
    terms = np.cos(turn) * (theta * theta - at * at) + np.sin(turn) * (2.0 * theta * at)
    terms = radius[told] * terms / (size[told] * size[told])
    # phi is off by a few u (1 + |z| max|T|) of phi(theta), and by u a column; its power by n times that, each term as
    # much of 1/|z|^2
    relative = U * n * (16.0 * np.sqrt(size) * top + (512.0 + value.size))
    if float(relative.max()) > 0.1:
        return math.inf
    rounding = (1.0 + 1e-6) * float((relative / size).sum()) * h / math.pi
    beyond = (1.0 + 1e-6) / (math.pi * h * (nodes - 1))
    inside = h / (2.0 * math.pi) * (2.0 * math.fsum(terms.tolist()) - float(terms[0]))
    room = U * n * (64.0 * (1.0 + theta * top + abs(k)) + value.size)
    return k + room + math.log(inside + rounding + beyond) + 1e-12


@final
@dataclass(frozen=True)
class CountedReports(AtomicPair):
    """How many of the shuffled reports are w, where all others hold a value that says w with probability ``other``.

    The count is Bin(people - 1, other) and one report more with probability ``first`` against ``other``. Data
    processing of what neighbouring datasets show: a lower bound.
    """

    people: int
    first: Fraction
    other: Fraction

    def make_table(self) -> AtomTable:
        n = self.people - 1
        p, q, rest_p, rest_q = (log_of(x) for x in (self.first, self.other, 1 - self.first, 1 - self.other))
        below = binomial_log_masses(n, q, rest_q)
        before, here = np.append(-np.inf, below), np.append(below, -np.inf)
        log_p = np.logaddexp(p + before, rest_p + here)
        log_q = np.logaddexp(q + before, rest_q + here)
        # ln of T(c - 1) / T(c), in which nothing large is left
        count = np.arange(1, n + 1, dtype=np.float64)
        ratio = np.log(count / (n - count + 1.0)) + (rest_q - q)
        above, under = (np.logaddexp(s + ratio, r) for s, r in ((p, rest_p), (q, rest_q)))
        loss = np.concatenate(([rest_p - rest_q], above - under, [p - q]))
        logs = abs(q) + abs(rest_q) + abs(p) + abs(rest_p) + 1.0
        slack = 16.0 * ELEMENTARY * (logs + math.log(n + 2.0))
        error = 16.0 * ELEMENTARY * (n + 2.0) * (logs + 1.0)
        one = np.ones(loss.size)
        return AtomTable(loss, slack * one, log_p, log_q, error * one)

    def reversed(self) -> Pair:
        return self if self.people == 1 and self.first + self.other == 1 else super().reversed()
