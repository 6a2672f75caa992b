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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from hockeystick.engines.enumeration.buckets import Asked, Buckets, Indices, Weights
from hockeystick.engines.enumeration.counting import outcomes_but
from hockeystick.engines.enumeration.outcomes import (
    SLACK,
    Omission,
    Outcomes,
    Parts,
    TooManyOutcomesError,
    added,
    known_table,
    log_weights,
    outcomes_of_all,
)
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U, up

_BLOCK = 1 << 15  # outcomes at once: arrays that stay near
_SMALLEST = -640.0  # ln of the mass of an outcome that is merged: products keep their digits
_NOTHING = 1e-300  # masses too small for float64 are smaller
_ROWS = 104  # atoms, one for each step, in lists as fine as they need: of more, buckets are fewer
_FEWEST = 1 << 13
_LEVELS = 6  # of coarser lists
_LOOSE = 16.0  # times what each pair may weigh for all of them to weigh enough: most weigh far less


@final
@dataclass(frozen=True)
class Merging:
    """How lists are merged.

    Attributes
    ----------
    buckets : int
        Into how many.
    least, largest : float
        The epsilons asked for.
    theta : float
        About how fast ``ln delta`` falls from the one to the other.
    """

    buckets: int
    least: float
    largest: float
    theta: float


@final
class _Sums:
    """What buckets hold: masses, their products with how far inside losses are (in widths), and numbers of terms."""

    def __init__(self, buckets: Buckets) -> None:
        self.buckets = buckets
        self.mass, self.moment, self.terms = np.zeros((3, buckets.edges.size - 1))

    def add(self, loss: Array, mass: Array) -> None:
        """Outcomes from the start of the buckets on, by loss."""
        for at in range(0, loss.size, _BLOCK):
            some = slice(at, at + _BLOCK)
            places, beyond = self.buckets.places_of(loss[some])
            here = slice(places[0], places[-1] + 1)
            places -= places[0]
            self.mass[here] += np.bincount(places, mass[some])
            self.moment[here] += np.bincount(places, mass[some] * beyond)
            self.terms[here] += np.bincount(places)

    def means(self) -> tuple[Array, Array, Array]:
        """Mean parts of the widths, bounds on their errors, and those of masses relative to these."""
        mean = np.minimum(np.divide(self.moment, self.mass, out=np.zeros_like(self.mass), where=self.mass > 0.0), 1.0)
        # of n terms: two products each, n additions, and as many of blocks at most
        relative = 1.01 * U * (2.0 * self.terms + 8.0)
        return mean, 2.0 * relative * mean, relative

    def below(self) -> tuple[Array, Array]:
        """Losses and masses of one outcome a bucket, at its mean or before it."""
        (mean, doubt, relative), low, width = self.means(), self.buckets.edges[:-1], np.diff(self.buckets.edges)
        loss = low + width * ((mean - doubt) - 0.125 * (1.0 + 4.0 * U) * width)
        return np.maximum(loss, low), self.mass * (1.0 - relative)

    def above(self) -> tuple[Array, Array]:
        """Losses and masses of outcomes at the edges, of the same means or larger ones."""
        (mean, doubt, relative), edges = self.means(), self.buckets.edges
        width = np.diff(edges)
        # rounded up: what goes to the upper edge makes delta larger; of outcomes at the lower one nothing does
        share = np.expm1(-width * (mean + doubt)) / np.expm1(-width) * (1.0 + 4.0 * ELEMENTARY)
        whole = self.mass * (1.0 + relative)
        upwards = whole * np.minimum(share, 1.0)
        return edges, (np.append(whole - upwards, 0.0) + np.append(0.0, upwards)) * (1.0 + 8.0 * U)


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
    dropped : float
        Bound on the mass of others that are not listed either.
    buckets : Buckets
        Of one outcome each, or a few.
    """

    loss: Array
    mass: Array
    shift: float
    error: float
    log_omitted: float
    dropped: float
    buckets: Buckets

    @classmethod
    def of(cls, found: Outcomes, buckets: Buckets) -> Self:
        """All outcomes of a list, as they are."""
        order = np.argsort(found.loss)
        shift, error = float(found.loss_error.max()), _error_of_masses(found)
        return cls(found.loss[order], np.exp(found.log_p[order]), shift, error, found.log_omitted, 0.0, buckets)

    @classmethod
    def merged(cls, sums: _Sums, known: _Known, *, above: bool) -> Self:
        """What buckets hold, in one outcome each or at their edges, given what is known of what went in."""
        loss, mass = sums.above() if above else sums.below()
        kept = mass > 0.0
        # losses are moved by the start of the buckets, added, and moved back; means are added to edges
        start, width = sums.buckets.start, float(sums.buckets.edges[-1])
        shift = known.shift + 2.0 * U * (known.size + 2.0 * abs(start) + 8.0 * width)
        shift *= 1.0 + 4.0 * U
        error, log_omitted, dropped = known.error, known.log_omitted, known.dropped
        return cls(loss[kept] + start, mass[kept], shift, error, log_omitted, dropped, sums.buckets)

    def coarser(self, *, above: bool) -> Self:
        """The same with those of any two buckets merged."""
        sums = _Sums(self.buckets.coarser())
        sums.add(self.loss - sums.buckets.start, self.mass)
        return self.merged(sums, _Known(self.shift, self.error, self.log_omitted, self.dropped), above=above)

    def with_digits(self, step: AtomTable) -> Self:
        """The same without masses so small that their products with one of a step would lose digits.

        Raises
        ------
        TooManyOutcomesError
            Where all are.
        """
        kept = self.mass >= math.exp(min(_SMALLEST - float(step.log_p.min()), 0.0))
        if kept.all():
            return self
        if not kept.any():
            raise TooManyOutcomesError("outcomes of next to no mass matter")
        # n roundings of n of them are far less than a hundredth
        lost = 1.01 * math.exp(self.error) * float(np.maximum(self.mass[~kept], _NOTHING).sum())
        return replace(self, loss=self.loss[kept], mass=self.mass[kept], dropped=up(self.dropped + lost))

    def outcomes(self) -> Outcomes:
        """The same as a list."""
        log_p = np.log(self.mass)
        error = self.error + 2.0 * ELEMENTARY * (1.0 + np.abs(log_p))
        return Outcomes(self.loss, np.full(self.loss.size, self.shift), log_p, error, log_omitted=self.log_omitted)

    def weighed(self, theta: float) -> Outcomes:
        """The same, with the weight of all of it."""
        found = self.outcomes()
        return replace(found, log_weight=added(self.log_omitted, log_weights(found, theta)), dropped=self.dropped)


@final
@dataclass(frozen=True)
class _Known:
    """Of outcomes that are added up: as of a `_Side`, and the size of losses that they are sums with."""

    shift: float
    error: float
    log_omitted: float
    dropped: float
    size: float = 0.0


@final
class _Lightness:
    """How much weighs before and after each outcome of a list, by the same unit as in others."""

    def __init__(self, side: _Side, theta: float, log_unit: float | None = None) -> None:
        logs = log_weights(side.outcomes(), theta)
        self.side, self.log_unit = side, float(logs.max()) if log_unit is None else log_unit
        own = np.exp(logs - self.log_unit)
        self.before, self.after = (np.append(0.0, np.cumsum(one)) for one in (own, own[::-1]))
        self._rising, self._falling = np.maximum.accumulate(own), np.maximum.accumulate(own[::-1])

    def but(self, part: float) -> tuple[slice, float]:
        """From the first to the last outcome that weighs so large a part of the mean, and what all others weigh."""
        size = self.side.loss.size
        least = part * self.before[-1] / size
        first, last = int(np.searchsorted(self._rising, least)), size - int(np.searchsorted(self._falling, least))
        return slice(first, last), float(self.before[min(first, last)] + self.after[size - last])


@final
@dataclass(frozen=True)
class _Making:
    """How lists are made: what may be left out, and merged."""

    omitted: Omission
    merging: Merging

    def asked(self, rest: Sequence[Weights]) -> Asked:
        """Of steps in no list yet."""
        return Asked((self.merging.least, self.merging.largest), self.merging.theta, rest)

    def first(self, found: Outcomes, rest: Sequence[Weights]) -> _Side:
        """All outcomes of a list, as they are."""
        ends = float(found.loss.min()), float(found.loss.max())
        listed = [Weights.of(found.loss, found.log_p)]
        buckets = Buckets.between(ends, self.merging.buckets, listed, self.asked(rest))
        return _Side.of(found, buckets)

    def one_more(self, sides: tuple[_Side, _Side], step: AtomTable, rest: Sequence[Weights]) -> tuple[_Side, _Side]:
        """Lists with one more step, in the same buckets."""
        # each coarser list may begin at the start of a cell, and end a cell later
        starts = [side.loss[0] - side.buckets.cell for side in sides]
        stops = [side.loss[-1] + _LEVELS * side.buckets.cell for side in sides]
        ends = float(min(starts) + step.loss[0]), float(max(stops) + step.loss[-1])
        below, above = sides
        listed = Weights.of(above.loss, np.log(np.maximum(above.mass, _NOTHING)))
        atoms = Weights.of(step.loss, step.log_p)
        buckets = Buckets.between(ends, self.merging.buckets, [listed, atoms], self.asked(rest))
        # atoms that matter little need no fine list
        halvings = -np.log2(np.maximum(self.asked([listed, *rest]).matter(atoms), 1e-300)) / 3.0
        levels = np.minimum(halvings, _LEVELS).astype(np.intp)
        return (
            self._one_more(below, step, buckets, levels, above=False),
            self._one_more(above, step, buckets, levels, above=True),
        )

    def _one_more(self, side: _Side, step: AtomTable, buckets: Buckets, levels: Indices, *, above: bool) -> _Side:
        sums, side = _Sums(buckets), side.with_digits(step)
        return _Side.merged(sums, self._add_all(sums, side, step, levels, above=above), above=above)

    def _add_all(self, sums: _Sums, side: _Side, step: AtomTable, levels: Indices, *, above: bool) -> _Known:
        """Add all pairs of an outcome and an atom that weigh enough."""
        lists, steps = [_Lightness(side, self.omitted.theta)], log_weights(step, self.omitted.theta)
        log_unit, all_steps = lists[0].log_unit, float(np.logaddexp.reduce(steps))
        least = self.omitted.log_least + math.log(_LOOSE / steps.size) + all_steps
        light = 1e-300  # of what is too small for float64
        for loss, log_p, weight, level in zip(step.loss, step.log_p, steps, levels, strict=True):
            while len(lists) <= level:
                coarse = lists[-1].side.coarser(above=above).with_digits(step)
                lists.append(_Lightness(coarse, self.omitted.theta, log_unit))
            one = lists[level].side
            some, others = lists[level].but(math.exp(min(least - weight, 100.0)))
            if some.start < some.stop:
                sums.add(one.loss[some] + (loss - sums.buckets.start), one.mass[some] * math.exp(log_p))
            light += math.exp(weight - steps.max()) * others
        log_light = math.log(light) + float(log_unit + steps.max()) + SLACK
        log_omitted = float(np.logaddexp(log_light, side.log_omitted + all_steps + SLACK)) + SLACK
        # the coarsest list is moved most, and lacks most; the masses of a step are 1 together
        shift, dropped = lists[-1].side.shift + float(step.loss_error.max()), up(lists[-1].side.dropped, 1e-6)
        error = side.error + _error_of_masses(step) + 8.0 * U
        return _Known(shift, error, log_omitted, dropped, float(np.abs(step.loss).max()))


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
    tables = {pair: known_table(pair, omitted.log_drop) for pair, _ in (*parts, *beside)}
    making = _Making(omitted, merging)
    weights = {pair: Weights.of(one.loss, one.log_p) for pair, one in tables.items()}
    (pair, count), *others = sorted(parts, key=lambda part: -tables[part[0]].size)
    few, log_least = _listed_at_once(pair, count, omitted, merging)
    found = outcomes_of_all([(pair, few)], replace(omitted, log_least=log_least))
    left = [(pair, count - few), *others] if few < count else others
    if not left:
        return found, found
    every = [replace(weights[own], count=number) for own, number in (*parts, *beside)]
    rows = sum(number * float((making.asked(every).matter(weights[own]) ** (1.0 / 3.0)).sum()) for own, number in left)
    buckets = min(merging.buckets, max(int(merging.buckets * _ROWS / max(rows, 1.0)), _FEWEST))
    making = _Making(omitted, replace(merging, buckets=buckets))

    def rest() -> list[Weights]:
        return [replace(weights[own], count=number) for own, number in (*left, *beside)]

    sides = (making.first(found, rest()),) * 2
    while left:
        (pair, count), *others = left
        left = [(pair, count - 1), *others] if count > 1 else others
        sides = making.one_more(sides, tables[pair], rest())
    return sides[0].weighed(omitted.theta), sides[1].weighed(omitted.theta)


def _listed_at_once(pair: Pair, count: int, omitted: Omission, merging: Merging) -> tuple[int, float]:
    """Of how many steps the outcomes that matter are few enough to start from, and how light the others are."""
    for steps in range(count, 1, -1):
        part = ((pair, steps),)
        log_least, number = outcomes_but(part, omitted.theta, omitted.log_drop, omitted.log_least)
        if number <= merging.buckets:
            return steps, log_least
    return 1, -math.inf
