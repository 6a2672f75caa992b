"""Buckets of losses for merging outcomes: narrow where that matters to a question.

Merging the outcomes of a bucket of width w widens the answer by about ``w^2 / 8`` times the density, at the bucket, of
outcomes that all the other steps complete to a loss of epsilon. Of so many buckets that is least where widths go as
the inverse third root of this density, which a histogram and its Fourier transforms tell well enough.

Guarantee: that every loss is given to the bucket whose edges it lies between; how good the choice is, is an estimate.
Cost: a few transforms of some ten thousand points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.laws.base import Array

Indices = NDArray[np.intp]

_CELLS = 1 << 13  # of the histogram, or half as many
_PERIOD = 4 * _CELLS  # of the transforms: what lies farther away is taken for nearer
_FINEST = 16  # times that a cell may be halved
_NARROWEST = 1e-9  # of all buckets together, and of the losses: far beyond roundings
_BEYOND = 4.0  # nats of the tilt
_NOISE = 1e-15  # of the largest density, that transforms may be off by


@final
@dataclass(frozen=True, eq=False)
class Weights:
    """Losses of some steps and about their weights in the tilted law, arrays of shape (n,); composed so many times."""

    loss: Array
    weight: Array
    count: int = 1

    @classmethod
    def of(cls, loss: Array, log_p: Array, theta: float, epsilon: float, count: int = 1) -> Self:
        """Of losses and masses; those far beyond every epsilon, whose weight may be all there is, are tilted less."""
        logs = log_p + theta * np.minimum(loss, epsilon + _BEYOND / max(theta, 1e-9))
        return cls(loss, np.exp(logs - logs.max()), count)

    def transform(self, cell: float, start: float = 0.0) -> NDArray[np.complex128]:
        """Of their histogram, normalised: each between two cells, so that means are kept."""
        at = (self.loss - start) / cell
        low = np.floor(at).astype(np.intp)
        part = self.weight * (at - low)
        counts = (np.bincount(low % _PERIOD, self.weight - part, _PERIOD), np.bincount(low % _PERIOD, part, _PERIOD))
        found = np.fft.rfft(counts[0] + np.roll(counts[1], 1))
        return np.asarray((found / abs(found[0])) ** self.count)


@final
@dataclass(frozen=True, eq=False)
class Asked:
    """Epsilons from the least to the largest, and all steps but those that are listed, in the law tilted by theta."""

    epsilons: tuple[float, float]
    theta: float
    rest: Sequence[Weights]

    def density(self, loss: Array, cell: float) -> Array:
        """About the weights of what completes losses to these epsilons, by cells of some width."""
        least, largest = self.epsilons
        # at a loss of about epsilon curves bend; beyond, mean losses stand for means of x
        kernel = cell * np.exp(-(1.0 + self.theta) * cell * np.arange(float(_PERIOD)))
        several = min(int((largest - least) / cell) + 1, _CELLS // 2)
        kernel[np.arange(-several, 1)] += 1.0 / (several + 1)
        transforms = [one.transform(cell) for one in self.rest]
        found = _density([*transforms, np.fft.rfft(kernel[-np.arange(_PERIOD)])])
        found = np.maximum(found, np.roll(found, 1)) + _NOISE * found.max()
        left = largest - loss
        near = np.maximum(left, -_BEYOND / max(self.theta, 1e-9))  # farther beyond weights are no longer tilted
        return np.asarray(np.exp(left - near) * found[np.floor(near / cell).astype(np.intp) % _PERIOD])


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
        own = _density([one.transform(cell, start if place == 0 else 0.0) for place, one in enumerate(listed)])[:_CELLS]
        share = (own * asked.density(start + cell * np.arange(float(_CELLS)), cell)) ** (1.0 / 3.0)
        share = np.maximum(share, np.maximum(np.append(0.0, share[:-1]), np.append(share[1:], 0.0)))
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


def _density(transforms: Sequence[NDArray[np.complex128]]) -> Array:
    """About the weights of a sum by cells, from the transforms of its terms."""
    product = np.ones(_PERIOD // 2 + 1, dtype=np.complex128)
    for one in transforms:
        product *= one
    return np.maximum(np.fft.irfft(product, _PERIOD), 0.0)


def about_epsilons(steps: Sequence[Weights], log_whole: float, theta: float, sizes: Sequence[float]) -> list[float]:
    """About where delta falls to each size, given the weights of all steps, of a whole of ``e^log_whole``."""
    least, most = (sum(one.count * float(end(one.loss)) for one in steps) for end in (np.min, np.max))
    cell = max(most - least, _NARROWEST * max(abs(least), abs(most), 1.0)) / (_PERIOD - 4)
    start = math.floor(least / cell) - 1
    shares = np.roll(_density([one.transform(cell) for one in steps]), -start)
    loss = cell * (start + np.arange(float(_PERIOD)))
    # from the largest loss on, so that nothing is lost beside what is larger
    loss, mass = (
        loss[::-1],
        np.exp(np.minimum(np.log(np.maximum(shares, 1e-300)) + log_whole - theta * loss, 0.0))[::-1],
    )
    delta = np.maximum.accumulate(np.cumsum(mass) - np.exp(loss - loss[0]) * np.cumsum(mass * np.exp(loss[0] - loss)))
    return [max(float(np.interp(size, delta, loss)), 0.0) for size in sizes]
