"""Lists of outcomes by loss, and what is lost beyond a number: the parts of a certified sum over two lists.

Guarantee: every error stored bounds the true one, roundings included. Cost: sorting a list, once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self, final

import numpy as np

from hockeystick.engines.enumeration.outcomes import Outcomes
from hockeystick.errors import PrecisionError
from hockeystick.numerics.columns import Array, Columns, Places
from hockeystick.numerics.rounding import ELEMENTARY, U, gamma

LOST: Final = 2.0**-1068
"""What a term may lose where numbers are too small for a relative error: a few dozen of the least."""

_WIDEST = 600.0  # nats between losses, whose exponentials float64 holds
_CARRIED = 1000.0  # half of twice that and of the most that anything is left of, 750 nats
_UNKNOWN = 100.0  # nats that a logarithm of a mass may be off by: beyond, nothing is known of the mass
_FEW = 1 << 10  # terms that are added up without an error
_ROW = 64  # terms that are added up one after another, before their sums are


@final
@dataclass(frozen=True, eq=False)
class Listed(Columns):
    """Outcomes by loss, arrays of shape (n,).

    Attributes
    ----------
    loss : ndarray
        Upper ends of the losses, nondecreasing (nats).
    spread : ndarray
        The lower ends are no further below (nats).
    mass, error : ndarray
        Masses, and bounds on their relative errors; besides, each may be off by half of `LOST`.
    """

    loss: Array
    spread: Array
    mass: Array
    error: Array

    @classmethod
    def of(cls, found: Outcomes) -> Self:
        """The outcomes of a composition; `PrecisionError` where nothing is known of their masses."""
        exact = found.loss_error == 0.0
        loss = np.where(exact, found.loss, np.nextafter(found.loss + found.loss_error, np.inf))
        order = np.argsort(loss)
        spread = 2.0 * found.loss_error + np.where(exact, 0.0, 4.0 * U * np.abs(loss) + LOST)
        slack = found.error + 2.0 * U * np.abs(found.log_p) + 2.0 * ELEMENTARY
        if not slack.max() <= _UNKNOWN:
            raise PrecisionError(
                f"float64 does not tell the masses of outcomes whose losses are up to {float(np.abs(loss).max()):.3g}"
                " nats: epsilon is enormous; use more noise"
            )
        error = np.expm1(slack) * (1.0 + 4.0 * ELEMENTARY)
        return cls(loss[order], spread[order], np.exp(found.log_p[order]), error[order])

    @property
    def most(self) -> float:
        """The largest relative error of a mass."""
        return float(self.error.max())

    @property
    def size(self) -> int:
        """n, the number of outcomes."""
        return int(self.loss.size)

    def beyond(self, epsilon: float, least: float) -> int:
        """The first outcome whose loss is above ``epsilon + least``, or one a few roundings before."""
        edge = epsilon + least
        return int(np.searchsorted(self.loss, edge - 8.0 * U * (abs(epsilon) + abs(least))))

    def grouped(self, most: int) -> Listed:
        """Outcomes of about the same loss together, where there are more than so many: an estimate."""
        if self.size <= most:
            return self
        starts = np.unique(np.searchsorted(self.loss, np.linspace(self.loss[0], self.loss[-1], most)))
        mass = np.add.reduceat(self.mass, starts)
        sums = np.add.reduceat(self.mass * self.loss, starts)
        loss = np.maximum.accumulate(np.divide(sums, mass, out=self.loss[starts], where=mass > 0.0))
        return Listed(loss, np.zeros_like(loss), mass, np.zeros_like(loss))


@final
@dataclass(frozen=True, eq=False)
class Excess:
    """``h(y) = sum_{l > y} p (1 - e^{y - l})`` of a list, by sums of positive terms alone.

    From the largest loss on, with ``W_k = sum_{j <= k} p_j e^{l_k - l_j}`` and ``H_k = h(l_k)``, the sum of
    ``W_j (1 - e^{l_{j+1} - l_j})`` over j < k,

        h(y) = H_k + W_k (1 - e^{y - l_k}),        l_{k+1} < y <= l_k,

    and for any other k the right side, the sum over j <= k, is smaller or the same.

    Attributes
    ----------
    negative, height, weight : ndarray, shape (n,)
        ``-l_k``, which do not fall, ``H_k`` and ``W_k``.
    spread : ndarray, shape (n,)
        Mean over j <= k, weighted as in ``W_k``, of how far the lower ends of the losses lie below.
    widest : float
        The largest of these distances.
    error : float
        Bound on the relative error of ``H_k`` and ``W_k``, that of masses and of one exponential included.
    ranks : ndarray, shape (n,)
        0, 1, 2, ...
    """

    negative: Array
    height: Array
    weight: Array
    spread: Array
    widest: float
    error: float
    ranks: Array

    @classmethod
    def of(cls, listed: Listed) -> Self:
        """Of the outcomes of a list."""
        loss, mass, spread = (np.ascontiguousarray(one[::-1]) for one in (listed.loss, listed.mass, listed.spread))
        starts = _blocks(-loss)
        weight, moved = (_grown(loss, terms, starts) for terms in (mass, mass * spread))
        height = np.append(0.0, _cumulated(weight[:-1] * -np.expm1(np.diff(loss))))
        widest = 1.01 * float(spread.max())
        mean = np.full(loss.size, widest)
        mean = np.minimum(mean, np.divide(1.01 * moved, weight, out=mean.copy(), where=weight > 0.0))
        # of each block two exponentials, and a third of what is carried over: beyond the third nothing is left of it
        reach, blocks = min(float(loss[0] - loss[-1]), _CARRIED), min(len(starts) - 1, 3)
        rounded = blocks * (4.0 * ELEMENTARY + 2.0 * U * reach + 2.0 * gamma(_additions(loss.size)) + 8.0 * U)
        error = 1.01 * rounded * (1.0 + listed.most) + listed.most
        return cls(-loss, height, weight, mean, widest, error, np.arange(float(loss.size)))

    def crossings(self, values: Array) -> tuple[Array, Array]:
        """About the y of ``h(y) = value``, for values of at least 0, and about ``-h'`` there."""
        k = np.maximum(np.searchsorted(self.height, values) - 1, 0)
        share = np.minimum((values - self.height[k]) / np.maximum(self.weight[k], 1e-300), 1.0 - U)
        return np.log1p(-share) - self.negative[k], self.weight[k] * (1.0 - share)

    def at(self, beyond: Array) -> tuple[Array, Array, Array]:
        """``h(y)``, ``-h'(y)`` and the spread, for numbers -y, best in rising order; the slope rounded up."""
        place = self.places(beyond)
        short = np.expm1(np.minimum(self.negative[place] - beyond, 0.0))
        weight = self.weight[place]
        fall = weight * short
        return self.height[place] - fall, weight * (1.0 + 8.0 * U) + fall, self.spread[place]

    def places(self, beyond: Array) -> Places:
        """The last k with ``-l_k <= beyond``, or 0, of rising numbers.

        Interpolation walks along both lists and is nearly always right; what is not, as comparisons tell, is searched.
        """
        last = self.negative.size - 1
        with np.errstate(over="ignore", invalid="ignore"):  # between losses whose distance is below the normal range
            along = np.interp(beyond, self.negative, self.ranks)
        found = np.fmax(np.fmin(along, last), 0.0).astype(np.intp)
        after = self.negative[np.minimum(found + 1, last)]
        wrong = np.flatnonzero((self.negative[found] > beyond) | ((after <= beyond) & (found < last)))
        found[wrong] = np.maximum(np.searchsorted(self.negative, beyond[wrong], side="right") - 1, 0)
        return found


def _blocks(negative: Array) -> list[int]:
    """Where blocks of losses within `_WIDEST` of one another begin, and where the last one ends."""
    starts = [0]
    while starts[-1] < negative.size:
        starts.append(int(np.searchsorted(negative, negative[starts[-1]] + _WIDEST, side="right")))
    return starts


def _grown(loss: Array, terms: Array, starts: Sequence[int]) -> Array:
    """``sum_{j <= k} terms_j e^{l_k - l_j}`` for falling losses: block by block, of which the sums are carried over."""
    found = np.empty(loss.size)
    for first, last in pairwise(starts):
        below = loss[first] - loss[first:last]
        scaled = terms[first:last] * np.exp(below)
        if first:
            scaled[0] += found[first - 1] * math.exp(loss[first] - loss[first - 1])
        found[first:last] = np.exp(-below) * _cumulated(scaled)
    return found


def _additions(size: int) -> int:
    """Most roundings of a term in `_cumulated`."""
    return size if size <= _ROW else _ROW + 1 + _additions(-(-size // _ROW))


def _cumulated(terms: Array) -> Array:
    """Cumulated sums, by rows whose sums are cumulated the same way: few roundings each."""
    if terms.size <= _ROW:
        return np.cumsum(terms)
    table = np.cumsum(np.append(terms, np.zeros(-terms.size % _ROW)).reshape(-1, _ROW), axis=1)
    table[1:] += _cumulated(table[:-1, -1])[:, None]
    return np.asarray(table.ravel()[: terms.size])


def sum_of(terms: Array) -> float:
    """The sum of terms of one sign, rounded once where they are few."""
    if terms.size <= _FEW:
        return math.fsum(terms.tolist())
    whole = terms.size - terms.size % _ROW
    return math.fsum([*terms[:whole].reshape(_ROW, -1).sum(axis=0).tolist(), *terms[whole:].tolist()])


def sum_error(size: int) -> float:
    """Bound on the relative error of `sum_of` for so many terms or fewer, beyond one rounding."""
    return 0.0 if size <= _FEW else gamma(_ROW)
