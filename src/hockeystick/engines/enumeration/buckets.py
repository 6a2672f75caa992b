"""Buckets of losses for merging outcomes: narrow where that matters to a question.

Merging the outcomes of a bucket of width w widens the answer by about ``w^2 / 8`` times the density, at the bucket, of
outcomes that all the other steps complete to a loss of epsilon. Of so many buckets that is least where widths go as
the inverse third root of this density, which histograms and their sums tell well enough.

Guarantee: that every loss is given to the bucket whose edges it lies between; how good the choice is, is an estimate.
Cost: a few convolutions of some thousand cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.laws.base import Array

Indices = NDArray[np.intp]

_CELLS = 1 << 13  # of which buckets are made, or half as many
_TOGETHER = 2  # of them, for which densities are one number
_FINEST = 16  # times that a cell may be halved
_NARROWEST = 1e-9  # of all buckets together, and of the losses: far beyond roundings
_NOTHING = 1e-150  # of the largest: products of more keep their digits, and are made fast
_LIGHT = 46.0  # nats below the heaviest
_LOOKS = 8  # at ever fewer losses, in ever narrower cells
_PART = 0.125  # of the cells, that a question is beyond


@final
@dataclass(frozen=True, eq=False)
class Weights:
    """Losses of some steps and about their masses, arrays of shape (n,); composed so many times."""

    loss: Array
    weight: Array
    count: int = 1

    @classmethod
    def of(cls, loss: Array, log_p: Array, count: int = 1) -> Self:
        """Of losses and masses, but for those far below 0 that are next to nothing: cells are for what is beyond."""
        low = log_p[loss <= 0.0].max(initial=-math.inf)
        kept = (loss > 0.0) | (log_p >= low - _LIGHT)
        return cls(loss, np.where(kept, np.exp(log_p - log_p.max()), 0.0), count)

    @property
    def least(self) -> float:
        """The least loss of a step that weighs something."""
        return float(self.loss[self.weight > 0.0].min())

    def histogram(self, cell: float, size: int) -> Array:
        """Of one step, in so many cells from `least` on: each loss between two of them, those beyond in the last."""
        at = np.clip((self.loss - self.least) / cell, 0.0, size - 1.0)
        low = np.floor(at).astype(np.intp)
        part = self.weight * (at - low)
        found = np.bincount(low, self.weight - part, size) + np.bincount(low + 1, part, size + 1)[:size]
        return np.asarray(found / found.max())


@final
@dataclass(frozen=True, eq=False)
class Asked:
    """Epsilons from the least to the largest, how fast ``ln delta`` falls there, and all steps but those listed."""

    epsilons: tuple[float, float]
    theta: float
    rest: Sequence[Weights]

    def density(self, loss: Array, cell: float) -> Array:
        """About the masses of what completes losses to epsilons, in parts of delta there, by cells so wide or wider."""
        (epsilon, largest), least = self.epsilons, _least(self.rest)
        cell = max(cell, (largest - float(loss.min()) - least) / _CELLS)
        place = np.floor((largest - loss - least) / cell).astype(np.intp)
        size = max(int(place.max()) + 2, 1)
        several = min(int((largest - epsilon) / cell) + 1, size)
        beyond = np.minimum(cell * np.arange(float(size)), 600.0)
        completing = _density(self.rest, cell, size)
        # at a loss of about epsilon curves bend; beyond, mean losses stand for means of x
        found = cell * np.exp(beyond) * np.cumsum((completing * np.exp(-beyond))[::-1])[::-1]
        kernel = np.exp(-self.theta * cell * np.arange(several + 1.0)) / (several + 1)
        found += np.convolve(completing, kernel)[:size]
        found = np.maximum(found, np.append(0.0, found[:-1]))
        return np.where(place >= 0, found[np.maximum(place, 0)], 0.0)

    def matter(self, one: Weights) -> Array:
        """How much each outcome of one more step matters, beside the one that matters most."""
        width = self.epsilons[1] - _least(self.rest) - one.least
        found = one.weight * self.density(one.loss, max(width, _NARROWEST) / (_CELLS // _TOGETHER))
        return np.asarray(found / max(float(found.max()), 1e-300))


@final
@dataclass(frozen=True, eq=False)
class Buckets:
    """Cells of one width, each of them cut into buckets: a power of 2 of these.

    Attributes
    ----------
    start : float
        Where the first begins (nats).
    cell : float
        Width of a cell, a power of 2.
    number : ndarray
        Of the buckets of each cell.
    first : ndarray of int
        The first of them.
    edges : ndarray, shape (n + 1,)
        Where buckets begin and end, from ``start`` on: exact.
    """

    start: float
    cell: float
    number: Array
    first: Indices
    edges: Array

    @classmethod
    def between(cls, ends: tuple[float, float], most: int, listed: Sequence[Weights], asked: Asked) -> Self:
        """About so many, for outcomes of some steps that the rest complete to what is asked for."""
        width = max(ends[1] - ends[0], _NARROWEST, _NARROWEST * abs(ends[0]), _NARROWEST * abs(ends[1]))
        cell = 2.0 ** math.ceil(math.log2(width / (_CELLS - 4)))
        start = (math.floor(ends[0] / cell) - 1.0) * cell
        several, wide = -(-_CELLS // _TOGETHER), cell * _TOGETHER
        own = _density(listed, wide, several, _least(listed) - start)
        share = (own * asked.density(start + wide * np.arange(float(several)), wide)) ** (1.0 / 3.0)
        share = np.maximum(share, np.maximum(np.append(0.0, share[:-1]), np.append(share[1:], 0.0)))
        share = np.repeat(share, _TOGETHER)[:_CELLS]
        number = most * share / max(float(share.sum()), 1e-300)
        number = 2.0 ** np.clip(np.rint(np.log2(np.maximum(number, 1.0))), 0, _FINEST)
        return cls._cut(start, cell, number)

    @classmethod
    def _cut(cls, start: float, cell: float, number: Array) -> Self:
        """Cells, each cut into a number of buckets."""
        widths = np.repeat(1.0 / number, number.astype(np.intp))
        ends_of_cells = np.cumsum(number).astype(np.intp)
        # sums of powers of 2 from 2^-16 to 2^13: exact
        return cls(start, cell, number, np.append(0, ends_of_cells[:-1]), np.append(0.0, np.cumsum(widths)) * cell)

    def coarser(self) -> Self:
        """Any two of a cell together, and one cell more: losses may lie at the last edge, too."""
        return self._cut(self.start, self.cell, np.append(np.maximum(0.5 * self.number, 1.0), 1.0))

    def places_of(self, beyond: Array) -> tuple[Indices, Array]:
        """The bucket of each loss, from ``start`` on, and how far inside, in parts of its width."""
        # exact: products with powers of 2, and what is left of a number without its whole part
        part = beyond * (1.0 / self.cell)
        cells = part.astype(np.intp)
        part -= cells
        part *= self.number.take(cells)
        places = part.astype(np.intp)
        part -= places
        places += self.first.take(cells)
        return places, part


def _least(steps: Sequence[Weights]) -> float:
    return sum(one.count * one.least for one in steps)


def _density(steps: Sequence[Weights], cell: float, size: int, before: float = 0.0) -> Array:
    """About the weights of a sum, by so many cells from some nats before its least loss; what is beyond is in the last.

    By sums of positive products: what matters may weigh next to nothing beside the rest, which transforms would hide.
    """
    total = np.zeros(size)
    total[min(round(before / cell), size - 1)] = 1.0
    for one in steps:
        own = power = one.histogram(cell, size)
        for bit in f"{one.count:b}"[1:]:
            power = _both(power, power)
            power = _both(power, own) if bit == "1" else power
        total = _both(total, power)
    return total


def _both(first: Array, second: Array) -> Array:
    """A sum of two, by as many cells, the heaviest of which weighs 1."""
    found = np.zeros_like(first)
    one, other = (np.trim_zeros(np.where(one > _NOTHING, one, 0.0), "b") for one in (first, second))
    both = np.convolve(one, other)
    found[: both.size] = both[: found.size]
    found[-1] += both[found.size :].sum()
    return np.asarray(found / found.max())


def about_epsilons(steps: Sequence[Weights], sizes: Sequence[float]) -> list[float]:
    """About where delta falls to each size, given the masses of all steps."""
    under_q = [replace(one, weight=one.weight * np.exp(np.minimum(one.least - one.loss, 0.0))) for one in steps]
    least, size = _least(steps), _CELLS // _TOGETHER
    log_ratio = sum(p.count * math.log(q.weight.sum() / p.weight.sum()) for p, q in zip(steps, under_q, strict=True))
    width = sum(one.count * float(one.loss.max()) for one in steps) - least
    found = [0.0]
    for _ in range(_LOOKS):
        cell = max(width, _NARROWEST * max(abs(least), 1.0)) / (size - 4)
        p, q = (_density(one, cell, size) for one in (steps, under_q))
        # from the largest loss on, so that nothing is lost beside what is larger
        loss, mass = least + cell * np.arange(float(size))[::-1], p[::-1] / p.sum()
        weight = mass * np.exp(loss[0] - loss)
        weight[0] = q[-1] / q.sum() * math.exp(log_ratio + loss[0] - least)  # of all that is beyond
        logs = np.log(np.maximum(np.cumsum(mass) - np.exp(loss - loss[0]) * np.cumsum(weight), 1e-320))
        found = [float(np.interp(math.log(one), np.maximum.accumulate(logs), loss)) for one in sizes]
        if max(found) - least > _PART * width:
            break
        width = max(0.5 * (max(found) - least) / _PART, _PART * width)
    return [max(one, 0.0) for one in found]
