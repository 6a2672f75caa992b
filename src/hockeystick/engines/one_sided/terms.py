"""A composition of atoms taken apart by how many of its losses are large: what each number of them weighs, tilted.

    delta(eps) = sum_r delta_r(eps),       delta_r: of outcomes with r losses above a threshold.

Where large losses are rare, no tilt tells outcomes that matter from those that do not: what adds up to epsilon by one
large loss weighs next to nothing beside many small losses, or a larger one. With their number known it weighs most.
With an infinite threshold all is one term, r = 0.

Chernoff's bounds say which terms matter, which tilt suits each, and how long a period has to be (section 3 of
`docs/derivations/one-sided-lines.md`).

Guarantee: all bounds are certified. Cost: an exponential for each atom and tilt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Final, final

import numpy as np

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.enumeration.outcomes import Parts, TooManyOutcomesError, table
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Array
from hockeystick.numerics.rounding import ELEMENTARY, U

Steps = Sequence[tuple[AtomTable, int]]

_OPPOSITE = 17  # tilts from -1 to 0
TILTS: Final = np.concatenate(
    (np.linspace(-1.0, 0.0, _OPPOSITE), 2.0 ** np.arange(-12.0, 23.0, 0.0625), 2.0 ** np.arange(23.0, 43.0, 0.25))
)
"""What is looked at: a twentieth from one to the next, as much as matters where losses spread 20 times as far."""

_MOST_LARGE = 24  # losses that are counted
_NEGLIGIBLE = 37.0  # nats below the largest term: left to its bound
_ALIASED = 28.0  # nats: how far below the largest term what a period brings back may be
_ALIKE = 2.5  # nats above the best tilt, up to which another may do
PRICE: Final = 1.0
"""Of the logarithm of a period, that a nat of a bound is worth."""

_NOTHING = -1e300  # for the logarithm of 0, which no product makes a NaN of
_SLACK = 1e-9  # of a logarithm, for the roundings of its sums

_SHARE = math.log(1e-12)  # ln of the part of delta that atoms left out may be
_CLASS = 12.0  # nats between the classes of what is left out
_LEAST = -720.0  # ln of the least mass left out


@final
class Atoms:
    """The atoms of a composition, but for those that each step may leave out where delta is of a size.

    Parameters
    ----------
    parts : sequence of (Pair, int)
        Pairs of atoms.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts, self._log_steps = parts, math.log(sum(count for _, count in parts))
        self._kept: dict[tuple[float, float], Terms] = {}

    def log_drop(self, log_delta: float) -> float:
        """``ln`` of the mass that each step may leave out, by classes."""
        return max(_CLASS * math.floor((log_delta + _SHARE - self._log_steps) / _CLASS), _LEAST)

    def terms(self, log_drop: float, threshold: float = math.inf) -> Terms:
        """Of the atoms that are left, which may be kept.

        Raises
        ------
        TooManyOutcomesError
            Where these are not known, or too many.
        """
        key = log_drop, threshold
        if key not in self._kept:
            found = [(table(pair, log_drop), count) for pair, count in self._parts]
            steps = [(one, count) for one, count in found if one is not None]
            if len(steps) < len(found):
                raise TooManyOutcomesError(f"not all atoms that matter are known where e^{log_drop:g} is left out")
            self._kept = {**self._kept, key: Terms(steps, threshold)}
        return self._kept[key]

    def looked_at(self, epsilon: float) -> Iterator[tuple[float, Terms]]:
        """Classes and their terms, of ever smaller deltas: the first that may be of a delta at epsilon, and all after."""
        log_drop = self.log_drop(0.0)
        while log_drop >= _LEAST:
            terms = self.terms(log_drop)
            wanted = self.log_drop(float(np.logaddexp(terms.log_bound(epsilon), log_drop + self._log_steps)))
            if wanted >= log_drop:
                yield log_drop, terms
            log_drop = min(wanted, log_drop - _CLASS)


@final
@dataclass(frozen=True)
class Plan:
    """Which terms matter at an epsilon, each with its tilt and its period (nats), and ``ln`` of a bound on delta."""

    numbers: tuple[int, ...]
    tilts: tuple[int, ...]
    periods: tuple[float, ...]
    log_bound: float

    @property
    def cost(self) -> float:
        """The logarithm of the periods, and what the bound is worth."""
        return math.log(math.fsum(self.periods)) + PRICE * self.log_bound

    @property
    def length(self) -> float:
        """About how many times as long as losses over a tilt all periods are."""
        return math.fsum(own * (1.0 + TILTS[tilt]) for own, tilt in zip(self.periods, self.tilts, strict=True))


@final
@dataclass(frozen=True)
class Aliasing:
    """Bounds on ``sum_{j != 0} e^{j theta W} delta_r(eps + j W)``, which a period W brings back."""

    lower: float
    upper: float


@final
@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a composition.

    Attributes
    ----------
    steps : sequence of (AtomTable, int)
        Atoms and counts.
    threshold : float
        Losses above it are large (nats).
    """

    steps: Steps
    threshold: float = math.inf

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """The first large atom of each table."""
        return tuple(int(np.searchsorted(table.loss, self.threshold, side="right")) for table, _ in self.steps)

    @cached_property
    def log_moments(self) -> Array:
        """``ln sum p e^{tl}`` over the outcomes of each term at `TILTS`; last those of all other terms together."""
        parts = [(*_log_moments(table, cut), count) for (table, count), cut in zip(self.steps, self.cuts, strict=True)]
        most = _MOST_LARGE if self.threshold < math.inf else 1
        found = np.zeros((1, TILTS.size))
        for small, large, count in parts:
            own = [log_ways(count, k) + (count - k) * small + k * large for k in range(min(count + 1, most))]
            size = min(len(found) + len(own) - 1, most)
            sums = [
                [found[j] + own[k - j] for j in range(k + 1) if j < len(found) and k - j < len(own)]
                for k in range(size)
            ]
            found = np.array([np.logaddexp.reduce(one) for one in sums])
        others = np.full(TILTS.size, _NOTHING)
        if self.threshold < math.inf:  # s^-R prod (X + s Y)^n, s >= 1, is at least all terms of R large losses or more
            others = np.min(
                [
                    sum(count * np.logaddexp(small, log_s + large) for small, large, count in parts)
                    - len(found) * log_s
                    for log_s in np.linspace(0.0, 60.0, 31)
                ],
                axis=0,
            )
        return np.append(found, others[None], axis=0) + _SLACK

    @cached_property
    def masses(self) -> tuple[Array, float]:
        """Of the terms, and a bound on their relative errors."""
        found, errors = [np.ones(1)], []
        for (atoms, count), cut in zip(self.steps, self.cuts, strict=True):
            p = np.exp(atoms.log_p)
            own = float(p @ (atoms.error + U * np.abs(atoms.log_p))) / float(p.sum())
            errors.append(count * (1.1 * own + U * (atoms.size + 8) + ELEMENTARY))
            both = float(p[:cut].sum()), float(p[cut:].sum())
            found.append(
                np.array([math.comb(count, k) * both[0] ** (count - k) * both[1] ** k for k in range(count + 1)])
            )
        return np.asarray(reduce(np.convolve, found)), 1.1 * math.fsum(errors) + 64.0 * len(errors) * U

    def log_bounds(self, epsilon: float) -> Array:
        """``ln`` of Chernoff's bounds on each term at `TILTS`: on its delta, or from 0 on down on what delta lacks."""
        moved = TILTS * epsilon
        size = np.abs(self.log_moments) + np.abs(moved)
        return np.asarray(self.log_moments - moved + log_constant(TILTS) + 16.0 * U * size)

    def log_rest(self, numbers: Sequence[int], epsilon: float) -> float:
        """``ln`` of a bound on the delta of all terms but some."""
        best = np.delete(self.log_bounds(epsilon)[:, _OPPOSITE:].min(axis=1), numbers)
        return float(np.logaddexp.reduce(best)) + _SLACK

    def log_bound(self, epsilon: float) -> float:
        """``ln`` of a bound on delta."""
        return self.log_rest([], epsilon)

    def epsilon_bound(self, log_delta: float) -> float:
        """About a bound on the epsilon of a delta, of all as one term."""
        logs, tilts = self.log_bounds(0.0)[0, _OPPOSITE:], TILTS[_OPPOSITE:]
        return max(float(((logs - log_delta) / tilts).min()), 0.0)

    def plan(self, epsilon: float) -> Plan | None:
        """What matters at an epsilon; None where more large losses do than are counted, or a step has no small ones."""
        logs = self.log_bounds(epsilon)
        best = logs[:, _OPPOSITE:].min(axis=1)
        whole = float(np.logaddexp.reduce(best))
        matter = best > whole - _NEGLIGIBLE
        if matter[-1] or 0 in self.cuts:
            return None
        numbers = np.flatnonzero(matter).tolist()
        chosen = [_tilt(logs[r], best[r], whole - _ALIASED) for r in numbers]
        if not all(math.isfinite(period) for _, period in chosen):
            return None
        return Plan(tuple(numbers), tuple(tilt for tilt, _ in chosen), tuple(period for _, period in chosen), whole)

    def aliasing(self, number: int, tilt: int, period: float, epsilon: float) -> Aliasing:
        """Of a term tilted, by geometric series: of Chernoff's bounds, or to the left of its mass less what that lacks."""
        apart = np.abs(TILTS - TILTS[tilt]) * period
        with np.errstate(divide="ignore"):
            series = np.exp(
                np.minimum(self.log_bounds(epsilon)[number] - apart - np.log(-np.expm1(-apart)) + _SLACK, 700.0)
            )
        masses, error = self.masses
        whole = masses[number] * math.exp(-float(TILTS[tilt]) * period) / -math.expm1(-float(TILTS[tilt]) * period)
        error += 8.0 * ELEMENTARY + 4.0 * U * float(TILTS[tilt]) * period
        left = min(float(series[_OPPOSITE:tilt].min(initial=math.inf)), whole * (1.0 + error))
        right = float(series[tilt + 1 :].min(initial=math.inf))
        return Aliasing(max(whole * (1.0 - error) - float(series[:_OPPOSITE].min()), 0.0), left + right)


def _tilt(logs: Array, best: float, goal: float) -> tuple[int, float]:
    """A good tilt, and the shortest period that leaves ``e^goal`` on either side; rounded up to a quarter of an octave."""
    near = _OPPOSITE + np.flatnonzero(logs[_OPPOSITE:] <= best + _ALIKE)
    apart = TILTS - TILTS[near][:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = (logs - goal) / np.abs(apart)
    sides = (np.where(side, needed, math.inf).min(axis=1) for side in (apart < 0.0, apart > 0.0))
    period = np.maximum(np.maximum(*sides), 1.0 / TILTS[near])
    tilt = int(np.argmin(np.log(period) + PRICE * logs[near]))
    if not math.isfinite(period[tilt]):
        return int(near[tilt]), math.inf
    return int(near[tilt]), float(2.0 ** (math.ceil(4.0 * math.log2(period[tilt])) / 4.0))


def _log_moments(table: AtomTable, cut: int) -> tuple[Array, Array]:
    """``ln`` of the moments of the small atoms of a step at `TILTS`, and of the large ones."""
    rounded = 16.0 * U
    logs = np.multiply.outer(TILTS, table.loss)
    logs += np.multiply.outer(np.abs(TILTS), table.loss_error + rounded * np.abs(table.loss))
    logs += table.log_p + table.error + rounded * np.abs(table.log_p) + _SLACK
    return _log_sum(logs[:, :cut]), _log_sum(logs[:, cut:])


def log_ways(count: int, k: int) -> float:
    """``ln`` of how many ways there are to choose k of so many."""
    return math.log(math.comb(count, k))


def _log_sum(logs: Array) -> Array:
    """``ln sum exp`` over the last axis."""
    if logs.shape[-1] == 0:
        return np.full(logs.shape[:-1], _NOTHING)
    peak = logs.max(axis=-1)
    return np.asarray(peak + np.log(np.exp(logs - peak[..., None]).sum(axis=-1)))
