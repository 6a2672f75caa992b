"""Runs of the same laws on one line: all that depends on how often steps are composed, computed for several at once.

Every number is computed row by row, so that it is the same to the bit whatever is asked beside it.

Guarantee: both sides certified, rounding included (`docs/derivations/rare-losses.md`). Cost: a few dozen elementary
functions for each run and frequency, and a sine and a cosine for each epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.contour.root_bracket import LogBracket
from hockeystick.engines.rare.excess import log_excess
from hockeystick.engines.rare.line import RareLine, turn
from hockeystick.engines.rare.losses import LEAST, RISEN, raised
from hockeystick.engines.rare.powers import composed, difference, log_difference, moved
from hockeystick.numerics.columns import Array, Complex, Places
from hockeystick.numerics.products import SMALL
from hockeystick.numerics.rounding import U

_TINY = 1e-300  # covers a Q(H) below that range
_MOST_EXPONENT = 600.0


@final
@dataclass(frozen=True, eq=False)
class RareRuns:
    """R runs on a line, which brackets the delta of each wherever it is asked.

    Attributes
    ----------
    line : RareLine
        The line.
    counts : ndarray, shape (R, K)
        How often each composes every law: whole numbers.
    """

    line: RareLine
    counts: Array

    def bracket(self, rows: Places, epsilon: Array) -> LogBracket:
        """``ln`` of the sides of delta of some runs, at epsilons of shape (n, P)."""
        lower, upper = self.sides(rows, epsilon)
        with np.errstate(divide="ignore"):
            low, high = np.log(np.maximum(lower, 0.0)), np.log(np.maximum(upper, 0.0))
        return LogBracket(low - _log_error(low), high + _log_error(high))

    def epsilons(self, log_delta: Array, shares: Array) -> Array:
        """About the epsilon of a delta of each run, by those at shares of the line's own, increasing."""
        points, rows = self.line.planned * shares[None], np.arange(len(self.counts))
        with np.errstate(over="ignore", invalid="ignore"):
            value = self._sum(rows, points)[0] + self._largest(rows, points)[0]
            logs = np.minimum.accumulate(np.log(np.maximum(value, LEAST)), axis=1)
        found = [np.interp(-goal, -own, points[0]) for goal, own in zip(log_delta.tolist(), logs, strict=True)]
        return np.array(found)

    def sides(self, rows: Places, epsilon: Array) -> tuple[Array, Array]:
        """Certified sides of delta of some runs, at epsilons of shape (n, P)."""
        with np.errstate(over="ignore", invalid="ignore"):
            lower, upper = self._sides(rows, epsilon)
        held = self.line.found.tilt * epsilon < _MOST_EXPONENT  # beyond, factors of what is small would be 0
        return (
            np.where(held & np.isfinite(lower), lower, -np.inf),
            np.where(held & np.isfinite(upper), upper, np.inf),
        )

    def _sides(self, rows: Places, epsilon: Array) -> tuple[Array, Array]:
        found = self.line.found
        value, error = self._sum(rows, epsilon)
        least, most = self._largest(rows, epsilon)
        right = raised(self._log_above[rows, None] - found.above * epsilon)
        left = self._below[rows, None]
        smallest = raised(self._log_smallest[rows, None] - found.dropping * epsilon)
        rest = smallest + self._lost[rows, None]
        beyond = self._beyond[rows, None] * np.exp(-found.tilt * epsilon) * RISEN
        slack = 8.0 * U * (np.abs(value) + np.abs(least) + np.abs(most))
        lower = least + value - (error + beyond + right + left) * RISEN - slack
        return lower, most + value + (error + beyond + rest) * RISEN + slack

    def _largest(self, rows: Places, epsilon: Array) -> tuple[Array, Array]:
        """Sides of what is added where the upper cut takes a step away: ``P(H) - e^eps Q(H)`` and the excess.

        It is at least 0 and at most P(H), all that is known where Q(H) or e^eps is beyond float64.
        """
        p, p_error, q, q_error = (one[rows, None] for one in self._chances)
        grown = np.exp(epsilon)
        own = p_error + (q_error + 8.0 * U * q + _TINY) * grown
        excess = raised(self._log_excess[rows, None] + self.line.found.power * epsilon) * RISEN
        return np.fmax(p - grown * q - own, 0.0), np.fmin(p - grown * q + own + excess, p + p_error)

    @cached_property
    def _chances(self) -> tuple[Array, ...]:
        """P(H) and Q(H), each followed by its error."""
        found: list[Array] = []
        laws = self.line.losses.laws
        of_laws = [law.cut_off(cut) for law, cut in zip(laws, self.line.found.high, strict=True)]
        for both in zip(*of_laws, strict=True):
            masses, errors = np.array(both).T
            chance = -np.expm1(composed(np.log1p(-masses), self.counts))
            found += [chance, 1.02 * (errors.max() + (15.0 + len(laws)) * U) * chance]
        return tuple(found)

    @cached_property
    def _log_excess(self) -> Array:
        """``ln`` of bounds on the excess at epsilon 0."""
        line = self.line
        return log_excess(line.losses, line.found.high, np.array([line.found.power]), times=self.counts)

    @cached_property
    def _lost(self) -> Array:
        """Upper bounds on the mass of the runs with a step beyond the ends of its piece."""
        return composed(np.array([step.lost for step in self.line.steps]), self.counts) * RISEN

    @cached_property
    def _log_smallest(self) -> Array:
        """``ln`` of bounds on delta of the runs in which no step is above the lower cut, at epsilon 0."""
        logs = np.log([step.moment_dropping for step in self.line.steps])
        log = composed(logs, self.counts) + _log_constant(self.line.found.dropping)
        return np.asarray(log + 1e-9 * (1.0 + np.abs(log) + composed(np.abs(logs), self.counts)))

    @cached_property
    def _log_above(self) -> Array:
        """``ln`` of upper bounds on what the periods above add, at epsilon 0."""
        small, large = np.array([step.moments_above for step in self.line.steps]).T
        log = log_difference(small, large, self.counts) + _log_constant(self.line.found.above)
        apart = (self.line.found.above - self.line.found.tilt) * self._period
        if apart <= 0.0:  # nothing is proved
            return np.full(len(self.counts), np.inf)
        return np.asarray(log - apart - math.log(-math.expm1(-apart)) + 1e-9 * (1.0 + np.abs(log) + apart))

    @cached_property
    def _below(self) -> Array:
        """Upper bounds on what the periods below add."""
        laws = zip(self.line.losses.laws, self.line.found.low, strict=True)
        masses, errors = np.array([law.cut_off(cut)[0] for law, cut in laws]).T
        known = (masses < 0.5).all()
        logs = np.log1p(-np.where(known, masses, 0.5) * (1.0 + errors))
        chance = -np.expm1(composed(logs, self.counts)) if known else np.ones(len(self.counts))
        apart = self.line.found.tilt * self._period
        return np.asarray(chance * (math.exp(-apart) / -math.expm1(-apart)) * RISEN)

    @property
    def _period(self) -> float:
        return 2.0 * math.pi / self.line.step * (1.0 - 4.0 * U)

    @cached_property
    def _beyond(self) -> Array:
        """Upper bounds on the terms beyond the last frequency, over ``e^{-theta eps}``."""
        tilt, last = self.line.found.tilt, self.line.step * (self.line.frequencies - 1)
        faded = np.array([step.faded for step in self.line.steps])
        moments = np.log([sum(step.moments) for step in self.line.steps])
        log = np.log(composed(faded * np.exp(-moments), self.counts)) + composed(moments, self.counts)
        size = composed(np.abs(moments), self.counts)
        return raised(log + 1e-9 * size + math.log(float(np.arctan2(tilt, last)) / (math.pi * tilt)))

    @cached_property
    def _terms(self) -> tuple[Complex, Array, Array]:
        """``D(z) / (z (1 + z))``, halved at 0, shape (R, blocks, length), with zeros at the end.

        And bounds on the sums of the errors and of ``s |term|``.
        """
        line, tilt = self.line, self.line.found.tilt
        laws = [step.transforms for step in line.steps]
        value, rounding = difference(laws, self.counts)
        s = self._frequencies
        z = tilt + 1j * s
        half = np.where(s > 0.0, 1.0, 0.5)
        size = half / np.sqrt((tilt * tilt + s * s) * ((1.0 + tilt) ** 2 + s * s))
        term = half * value * np.reciprocal(z * (1.0 + z))
        error = size * (moved(laws, self.counts) + rounding + 64.0 * U * np.abs(value))
        own = np.abs(term)
        fixed = error.sum(axis=1) + (line.frequencies + 24) * U * own.sum(axis=1)
        turning = (s * own).sum(axis=1) * RISEN
        near, far = self._tables
        blocks = np.zeros((len(self.counts), far.size, near.size), dtype=np.complex128)
        blocks.reshape(len(self.counts), -1)[:, : line.frequencies] = term
        return blocks, fixed * RISEN, turning

    @cached_property
    def _frequencies(self) -> Array:
        return np.asarray(self.line.step * np.arange(float(self.line.frequencies)))

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        """The first frequencies, and by how much those of each block are larger: their sums are all frequencies."""
        length = math.isqrt(self.line.frequencies - 1) + 1
        return self._frequencies[:length], self._frequencies[::length]

    def _sum(self, rows: Places, epsilon: Array) -> tuple[Array, Array]:
        """The sum on the line, and a bound on the errors of its terms."""
        terms, fixed, turning = self._terms
        tilt = self.line.found.tilt
        near, far = (turn(-epsilon[..., None] * part) for part in self._tables)
        # 14 u for two entries of tables and a product; 3 u for each term of a block, and one for each block added
        found = (_by_block(terms[rows], near) * far).sum(axis=-1).real
        scale = self.line.step / math.pi * np.exp(-tilt * epsilon)
        value = scale * found
        own = scale * (fixed[rows, None] + 2.0 * U * np.abs(epsilon) * turning[rows, None]) * RISEN
        return value, own + U * (16.0 + 3.0 * tilt * np.abs(epsilon)) * np.abs(value)


def _by_block(terms: Complex, near: Complex) -> Complex:
    """The sum over each block of terms (R, blocks, length) at points (R, P, length): (R, P, blocks)."""
    most = max(SMALL // (terms.shape[1] * terms.shape[2]), 1)
    parts = [near[:, first : first + most].transpose(0, 2, 1) for first in range(0, near.shape[1], most)]
    return np.concatenate([np.matmul(terms, part) for part in parts], axis=2).transpose(0, 2, 1)


def _log_error(log: Array) -> Array:
    """What a logarithm and a sum lose."""
    return np.asarray(8.0 * U * (1.0 + np.where(np.isfinite(log), np.abs(log), 0.0)))


def _log_constant(tilt: float) -> float:
    return float(log_constant(np.array(tilt)))
