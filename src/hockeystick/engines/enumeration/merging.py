"""Lists of outcomes whose neighbours are merged while they are built, in two sides that hold the truth between them.

With x = e^{-l}, what an outcome of loss l adds to delta, whatever the other steps do, is a mean of ``(1 - a x)_+``:
convex in x. So one outcome at the mean of x in place of all those of a bucket makes delta smaller (Jensen), and two,
at the edges of the bucket, of the same mass and mean of x, make it larger. Steps are added one at a time, to a list of
either kind, and what each merge makes smaller or larger stays so, as the next list is made of the former.

For a bucket of mass P, mean loss m and width w, the mean of x is that of the loss ``m - w^2 / 8`` or a larger one
(Hoeffding's lemma), and the upper edge, with a the lower one, gets a share of ``(1 - e^{a - m}) / (1 - e^{-w})`` of the
mass or less (the share of an outcome is concave in its loss). See `docs/derivations/merged-lists.md`.

Guarantee: both sides, rounding included. Cost: some ten nanoseconds for each outcome of a list and atom of a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from hockeystick.engines.enumeration.buckets import Buckets, Weights
from hockeystick.engines.enumeration.counting import outcomes_but
from hockeystick.engines.enumeration.outcomes import (
    SLACK,
    Omission,
    Outcomes,
    Parts,
    TooManyOutcomesError,
    added,
    log_weights,
    outcomes_of_all,
    table,
)
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

_BLOCK = 1 << 15  # outcomes at once: arrays that stay near
_SMALLEST = -640.0  # ln of the mass of an outcome that is merged: products keep their digits
_HEAVY = 1e-6  # of the heaviest: atoms that most of the work is for
_ROWS = 128  # of them, one for each step: of more, buckets are fewer
_FEWEST = 1 << 13
_LOOSE = 16.0  # times what each pair may weigh for all of them to weigh enough: most weigh far less


@final
@dataclass(frozen=True)
class Merging:
    """How lists are merged: into how many buckets, and about the epsilon that is asked for."""

    buckets: int
    epsilon: float


@final
@dataclass(frozen=True, eq=False)
class _Side:
    """Outcomes by loss, taken as exact: the truth is below or above them.

    Attributes
    ----------
    loss, mass : ndarray, shape (n,)
        Losses, nondecreasing (nats), and masses under P.
    shift, error : float
        The truth is below, or above, with every loss and every logarithm of a mass moved by so much outwards.
    log_omitted : float
        ``ln`` of a bound on the weight of outcomes not listed; see `Omission`.
    """

    loss: Array
    mass: Array
    shift: float
    error: float
    log_omitted: float

    @classmethod
    def of(cls, found: Outcomes) -> Self:
        """All outcomes of a list, as they are."""
        order = np.argsort(found.loss)
        shift, error = float(found.loss_error.max()), _error_of_masses(found)
        return cls(found.loss[order], np.exp(found.log_p[order]), shift, error, found.log_omitted)

    def outcomes(self) -> Outcomes:
        """The same as a list."""
        log_p = np.log(self.mass)
        error = self.error + 2.0 * ELEMENTARY * (1.0 + np.abs(log_p))
        return Outcomes(self.loss, np.full(self.loss.size, self.shift), log_p, error, log_omitted=self.log_omitted)

    def weighed(self, theta: float) -> Outcomes:
        """The same, with the weight of all of it."""
        found = self.outcomes()
        return replace(found, log_weight=added(self.log_omitted, log_weights(found, theta)))


@final
class _Sums:
    """What buckets hold: masses, their products with losses from the start of the buckets on, and numbers of terms."""

    def __init__(self, buckets: Buckets) -> None:
        self.buckets = buckets
        self.mass, self.moment, self.terms = np.zeros((3, buckets.edges.size - 1))

    def add(self, loss: Array, mass: Array) -> None:
        """Outcomes from the start of the buckets on, by loss."""
        for at in range(0, loss.size, _BLOCK):
            some = slice(at, at + _BLOCK)
            places = self.buckets.places_of(loss[some])
            here = slice(places[0], places[-1] + 1)
            places -= places[0]
            self.mass[here] += np.bincount(places, mass[some])
            self.moment[here] += np.bincount(places, mass[some] * loss[some])
            self.terms[here] += np.bincount(places)

    def means(self) -> tuple[Array, Array, Array]:
        """Mean losses, bounds on their errors, and those of masses relative to these."""
        low, high = self.buckets.edges[:-1], self.buckets.edges[1:]
        mean = np.clip(np.divide(self.moment, self.mass, out=low.copy(), where=self.mass > 0.0), low, high)
        # of n terms: two products each, n additions, and as many of blocks at most
        relative = 1.01 * U * (2.0 * self.terms + 8.0)
        return mean, 2.0 * relative * high, relative

    def below(self) -> tuple[Array, Array]:
        """Losses and masses of one outcome a bucket, at its mean or before it."""
        (mean, doubt, relative), edges = self.means(), self.buckets.edges
        loss = mean - doubt - 0.125 * (1.0 + 4.0 * U) * np.diff(edges) ** 2
        return np.maximum(loss, edges[:-1]), self.mass * (1.0 - relative)

    def above(self) -> tuple[Array, Array]:
        """Losses and masses of outcomes at the edges, of the same means or larger ones."""
        (mean, doubt, relative), edges = self.means(), self.buckets.edges
        mean = np.minimum(mean + doubt, edges[1:])
        # rounded up: what goes to the upper edge makes delta larger
        share = np.expm1(edges[:-1] - mean) / np.expm1(-np.diff(edges)) * (1.0 + 4.0 * ELEMENTARY)
        whole = self.mass * (1.0 + relative)
        upwards = whole * np.minimum(share, 1.0)
        return edges, (np.append(whole - upwards, 0.0) + np.append(0.0, upwards)) * (1.0 + 8.0 * U)


@final
@dataclass(frozen=True)
class _Making:
    """How lists of one side are made.

    Attributes
    ----------
    omitted, merging : Omission, Merging
        What may be left out, and merged.
    rest : tuple of Weights
        The steps that are not in a list.
    above : bool
        Which side.
    """

    omitted: Omission
    merging: Merging
    rest: tuple[Weights, ...]
    above: bool

    def one_more(self, side: _Side, step: AtomTable) -> _Side:
        """A list with one more step."""
        if float(side.mass.min()) < math.exp(min(_SMALLEST - float(step.log_p.min()), 0.0)):
            raise TooManyOutcomesError("many outcomes of next to no mass matter")
        listed = self._weights(side.loss, np.log(side.mass)), self._weights(step.loss, step.log_p)
        ends = float(side.loss[0] + step.loss[0]), float(side.loss[-1] + step.loss[-1])
        buckets, epsilon = self.merging.buckets, self.merging.epsilon
        sums = _Sums(Buckets.between(ends, buckets, listed, self.rest, epsilon, self.omitted.theta))
        log_light = self._add_all(sums, side, step)
        loss, mass = sums.above() if self.above else sums.below()
        kept = mass > 0.0
        # losses are moved by the start of the buckets, added, and moved back
        start, width = sums.buckets.start, float(sums.buckets.edges[-1])
        size = float(np.abs(step.loss).max()) + 2.0 * abs(start) + 4.0 * width
        shift = side.shift + float(step.loss_error.max()) + 2.0 * U * size
        error = side.error + _error_of_masses(step) + 8.0 * U
        return _Side(loss[kept] + start, mass[kept], shift * (1.0 + 4.0 * U), error, log_light)

    def _weights(self, loss: Array, log_p: Array) -> Weights:
        return Weights.of(loss, log_p, self.omitted.theta, self.merging.epsilon)

    def _add_all(self, sums: _Sums, side: _Side, step: AtomTable) -> float:
        """Add all pairs of an outcome and an atom that weigh enough; ``ln`` of what all others weigh."""
        logs, steps = log_weights(side.outcomes(), self.omitted.theta), log_weights(step, self.omitted.theta)
        own = np.exp(logs - logs.max())
        before, after = (np.append(0.0, np.cumsum(one)) for one in (own, own[::-1]))
        # from the first to the last that weigh enough beside an atom
        rising, falling = np.maximum.accumulate(own), np.maximum.accumulate(own[::-1])
        all_steps = float(np.logaddexp.reduce(steps))
        least = self.omitted.log_least + math.log(_LOOSE * before[-1] / (own.size * steps.size)) + all_steps
        light = 1e-300  # of what is too small for float64
        for loss, log_p, weight in zip(step.loss, step.log_p, steps, strict=True):
            edge = math.exp(min(least - weight, 1.0))
            first, last = int(np.searchsorted(rising, edge)), own.size - int(np.searchsorted(falling, edge))
            if first < last:
                sums.add(side.loss[first:last] + (loss - sums.buckets.start), side.mass[first:last] * math.exp(log_p))
            light += math.exp(weight - steps.max()) * (before[min(first, last)] + after[own.size - last])
        log_light = math.log(light) + float(logs.max() + steps.max()) + SLACK
        return float(np.logaddexp(log_light, side.log_omitted + all_steps + SLACK)) + SLACK


def _error_of_masses(one: Outcomes | AtomTable) -> float:
    """Bound on the relative errors of exponentials of ``log_p``."""
    return float(np.max(one.error + 2.0 * ELEMENTARY + 2.0 * U * np.abs(one.log_p)))


def merged_sides(parts: Parts, beside: Parts, omitted: Omission, merging: Merging) -> tuple[Outcomes, Outcomes]:
    """Lists below and above the outcomes of a composition, which others go with.

    Raises
    ------
    TooManyOutcomesError
        Where masses are too small.
    """
    if not parts:
        return (outcomes_of_all(()),) * 2
    tables = {pair: _table(pair, omitted) for pair, _ in (*parts, *beside)}
    weights = {pair: Weights.of(one.loss, one.log_p, omitted.theta, merging.epsilon) for pair, one in tables.items()}
    (pair, count), *others = sorted(parts, key=lambda part: -tables[part[0]].size)
    few, log_least = _listed_at_once(pair, count, omitted, merging)
    found = outcomes_of_all([(pair, few)], replace(omitted, log_least=log_least))
    left = [(pair, count - few), *others] if few < count else others
    if not left:
        return found, found
    rows = sum(number * int(np.count_nonzero(weights[own].weight > _HEAVY)) for own, number in left)
    merging = replace(merging, buckets=min(merging.buckets, max(merging.buckets * _ROWS // max(rows, 1), _FEWEST)))
    sides = (_Side.of(found),) * 2
    while left:
        (pair, count), *others = left
        left = [(pair, count - 1), *others] if count > 1 else others
        rest = tuple(replace(weights[own], count=number) for own, number in (*left, *beside))
        sides = (
            _Making(omitted, merging, rest, above=False).one_more(sides[0], tables[pair]),
            _Making(omitted, merging, rest, above=True).one_more(sides[1], tables[pair]),
        )
    return sides[0].weighed(omitted.theta), sides[1].weighed(omitted.theta)


def _table(pair: Pair, omitted: Omission) -> AtomTable:
    found = table(pair, omitted.log_drop)
    if found is None:
        raise ValueError(f"the outcomes of {pair!r} are not known")
    return found


def _listed_at_once(pair: Pair, count: int, omitted: Omission, merging: Merging) -> tuple[int, float]:
    """Of how many steps the outcomes that matter are few enough to start from, and how light the others are."""
    for steps in range(count, 1, -1):
        part = ((pair, steps),)
        log_least, number = outcomes_but(part, omitted.theta, omitted.log_drop, omitted.log_least)
        if number <= merging.buckets:
            return steps, log_least
    return 1, -math.inf
