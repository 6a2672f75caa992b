"""A bound on the tilted transform that falls with the frequency, from rectangles under the density of the loss.

Symbols: ``phi(s) = M(theta + i s) / M(theta)``. If the tilted law has density at least ``sum_k (m_k / w_k) 1_{I_k}``
for intervals I_k of length w_k, then

    |phi(s)| <= 1 - sum_k m_k (1 - |sinc(s w_k / 2)|),      sinc x = sin x / x,

and ``|sinc x| <= S(x)``, S the larger of ``e^{-x^2/6}`` and 0.21724 up to 1 / 0.21724 and ``1/x`` beyond. S does not
increase, so the bound at s holds for all larger s. The rectangles are the level sets of the largest unimodal step
function below lower bounds of the density in small cells, then those of what is left over
(`docs/derivations/contour.md`, section 5).

Guarantee: upper bounds. Cost: a sort of the cells and one exponential for each rectangle and s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from hockeystick.numerics.columns import Columns, Flags, across, column
from hockeystick.numerics.rounding import U, log_sums
from hockeystick.transforms.log_moments import LogMoments
from hockeystick.transforms.rule import Array, Cells, LossRule, Numbers, Rows, Sketch, by_run

_SAFE = 1.0 - 2.0**-30  # inward factor on masses and widths, far above their roundings
_RIPPLE = 0.21724  # above the largest |sinc x| beyond pi: 0.217233..., where tan x = x
_HIGHEST = 600.0  # e^600 is finite, and so are its products with widths
_DOUBT = 2.0**-44  # of a loss relative to itself, far above its rounding
_PEELS = 2
_LITTLE = 0.03  # mass that is not worth a peel
_TOGETHER = 4  # rectangles merged
_MOST_LEVELS = 2048


@final
@dataclass(frozen=True, eq=False)
class Rectangles(Columns):
    """Uniform parts of the tilted law of each rule: masses and lengths (nats), shape (B, peels, k)."""

    mass: Array
    width: Array

    def weighted(self, factor: Array) -> Rectangles:
        """The same with masses times factors, shape (B,), rounded down."""
        return Rectangles(self.mass * column(column(factor * _SAFE)), self.width)

    def log_bound(self, frequencies: Array) -> Array:
        """At least ``ln |phi(t)|`` for all ``t >= s``, for frequencies s of shape (F,) or (F, R); shape (F, B)."""
        x = 0.5 * frequencies.reshape(len(frequencies), -1, 1, 1) * self.width
        near = np.minimum(x, 1.0 / _RIPPLE)
        # one less S, relative to itself: many steps multiply it where it is small
        rest = np.where(
            x * _RIPPLE < 1.0, np.minimum(-np.expm1(near * near / -6.0), 1.0 - _RIPPLE), 1.0 - 1.0 / np.maximum(x, 1.0)
        )
        lost = (self.mass * rest).sum(axis=-1).sum(axis=-1)
        return np.asarray(np.log1p(-np.minimum(lost * _SAFE, 1.0 - 2.0**-40)))


def rectangles(cells: Cells, exponent: Numbers, log_moment: Array) -> Rectangles:
    """Rectangles under the density of the tilted loss, given upper bounds on ``K(exponent - 1)``, shape (B,)."""
    grown = column(exponent) * cells.loss
    logs = cells.log_density + grown - column(log_moment)
    doubt = _DOUBT * (10.0 + np.abs(logs)) + 32.0 * U * (np.abs(grown) + np.abs(cells.log_density))
    logs = logs - doubt
    log_height = np.minimum(logs[:, 1:], logs[:, :-1]) - cells.log_slope - column(cells.sag(exponent))
    height = np.exp(np.minimum(log_height, _HIGHEST))  # a lower density is under it, too
    size = np.abs(cells.loss)
    width = np.abs(cells.loss[:, 1:] - cells.loss[:, :-1]) - _DOUBT * np.maximum(size[:, 1:], size[:, :-1])
    masses, widths = [], []
    for _ in range(_PEELS):
        profile = _unimodal_minorant(height)
        mass, length = _level_sets(profile, np.maximum(width, 0.0))
        masses.append(mass)
        widths.append(length)
        rest = np.maximum(height - profile, 0.0) * _SAFE
        worth = (rest * width).sum(axis=1) > _LITTLE
        if not worth.any():
            break
        height = np.where(worth[:, None], rest, 0.0)  # no rectangles for a rule that others share the peel with
    mass, length = (np.concatenate([one[:, None] for one in part], axis=1) * _SAFE for part in (masses, widths))
    return Rectangles(mass, length)


def _unimodal_minorant(density: Array) -> Array:
    """The largest function below ``density`` that falls away from its highest cell, row by row."""
    top = column(density.argmax(axis=1))
    index = np.arange(density.shape[1])
    rising = np.minimum.accumulate(np.where(index >= top, density, np.inf), axis=1)
    falling = np.minimum.accumulate(np.where(index <= top, density, np.inf)[:, ::-1], axis=1)[:, ::-1]
    return np.where(index >= top, rising, falling)


def _level_sets(profile: Array, width: Array) -> tuple[Array, Array]:
    """Masses and lengths of the rectangles between consecutive levels of unimodal step functions, a few at a time.

    A few rectangles of like lengths count as one of the least length, which can only weaken the bound.
    """
    order = (-profile).argsort(axis=1, kind="stable")
    row = np.arange(order.shape[0])[:, None]
    level = profile[row, order]
    length = width[row, order].cumsum(axis=1)
    drop = level - np.concatenate((level[:, 1:], np.zeros((level.shape[0], 1))), axis=1)
    together = max(_TOGETHER, length.shape[1] // _MOST_LEVELS)
    starts = np.arange(0, length.shape[1], together)
    return np.add.reduceat(drop * length, starts, axis=1), length[:, starts]


@final
@dataclass(frozen=True, eq=False)
class Decay:
    """Bound on ``ln prod |phi_k(t)|^{T_k}`` for all t at and above a frequency."""

    parts: Sequence[tuple[Any, Array]]
    gaussian_variance: Numbers

    @classmethod
    def of(
        cls, rules: Sequence[LossRule], moments: Sequence[LogMoments], exponent: Numbers, gaussian_variance: Numbers
    ) -> Decay:
        """That of accurate rules by their own cells, given their moments at the exponent, the first of theirs."""
        parts = [
            (_rectangles(rule.cells, exponent, moment.value[0] + moment.total_error[0]), rule.counts)
            for rule, moment in zip(rules, moments, strict=True)
        ]
        return cls(parts, gaussian_variance)

    def times(self, factor: float) -> Decay:
        """The same of so many times as many steps."""
        return Decay([(part, counts * factor) for part, counts in self.parts], self.gaussian_variance)

    def of_runs(self, rows: Rows, counts: Array, gaussian_variance: Numbers) -> Decay:
        """That of runs with rules of their own, by the rows of these and how often they are composed."""
        return Decay([(part.at(rows), counts) for part, _ in self.parts], gaussian_variance)

    def log_bound(self, frequencies: Array) -> Array:
        """At each frequency, shape (F,), or (F, R) for those of R runs."""
        each = frequencies.reshape(len(frequencies), -1)
        total = -0.5 * across(self.gaussian_variance) * each * each
        for part, counts in self.parts:
            total = total + by_run(part.log_bound(each) * across(counts), each.shape[1])
        return np.asarray(total * (1.0 - 1e-9)).reshape(frequencies.shape)


@final
@dataclass(frozen=True, eq=False)
class RoughDecay:
    """Rectangles of coarse rules, to be measured by the accurate moments once these are known."""

    exponent: Numbers
    sketches: Sequence[Sketch]
    log_moments: Sequence[Array]  # taken to be K of each rule
    decay: Decay

    @classmethod
    def of(cls, sketches: Sequence[Sketch], exponent: Numbers, gaussian_variance: Numbers) -> RoughDecay:
        """At one plus the tilt."""
        moments = [log_sums(rough.log_weight + column(exponent) * rough.loss) for rough in sketches]
        parts = [
            (_rectangles(rough.cells, exponent, moment), rough.counts)
            for rough, moment in zip(sketches, moments, strict=True)
        ]
        return cls(exponent, sketches, moments, Decay(parts, gaussian_variance))

    def at(self, rows: Rows, runs: int) -> RoughDecay:
        """That of some of R runs."""
        if runs == 1:
            return self
        parts = [(found.at(rows), counts[rows]) for found, counts in self.decay.parts]
        variance = np.asarray(self.decay.gaussian_variance)[rows]
        sketches, moments = [rough.at(rows) for rough in self.sketches], [one[rows] for one in self.log_moments]
        return RoughDecay(np.asarray(self.exponent)[rows], sketches, moments, Decay(parts, variance))

    def measured(self, rules: Sequence[LossRule], moments: Sequence[LogMoments]) -> Decay:
        """The bound for accurate rules, given their moments at the exponent, the first of theirs.

        A rectangle lies below the density of the coarse rule, which is that of the accurate rule where this one leaves
        nothing out, or less. A batch of which a rule is cut off itself brings its own cells.
        """
        parts = []
        for rough, guess, rule, moment, (found, _) in zip(
            self.sketches, self.log_moments, rules, moments, self.decay.parts, strict=True
        ):
            highest = moment.value[0] + moment.total_error[0]
            if not rule.dropped.any():
                log_factor = guess - highest
                doubt = 4.0 * U * (np.abs(guess) + np.abs(highest))
                parts.append((found.weighted(np.exp(np.minimum(log_factor, 1.0) - doubt)), rough.counts))
            else:
                parts.append((_rectangles(rule.cells, self.exponent, highest), rule.counts))
        return Decay(parts, self.decay.gaussian_variance)


def is_cut(rules: Sequence[LossRule | Sketch], runs: int) -> Flags:
    """In which runs some losses are left out, shape (R,)."""
    cut = np.zeros(runs, dtype=np.bool_)
    for rule in rules:
        cut |= by_run(rule.dropped, runs) > 0.0
    return cut


def _rectangles(cells: Cells | None, exponent: Numbers, log_moment: Array) -> Rectangles:
    """The rectangles of cells; none where nothing is known."""
    nothing = np.zeros((log_moment.size, 1, 1))
    return Rectangles(nothing, nothing) if cells is None else rectangles(cells, exponent, log_moment)
