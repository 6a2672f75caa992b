"""Quadrature nodes of pairs for their cumulants at any tilt: as far out and as fine as the tilt needs, many at once.

The nodes are the pairs' own, which converge geometrically for analytic densities. Rules of one length make a batch, so
that a thousand distinct steps cost little more than one.

Guarantee: estimates. Cost: one exponential a node and tilt, two where K is small, whatever the counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError, shown
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.columns import Places
from hockeystick.transforms.cumulants import StepCumulants, tilted_cumulants

COVERED = 42.0
"""Nats by which the integrand must have fallen at the ends of the nodes."""

_FIRST_TAIL = -80.0  # ln of the tails that the first nodes cover
_DEEPER, _DEPTHS = 1.3, 70  # ratio and number of the tail masses looked at for a second peak
_LOGS: Array = _FIRST_TAIL * _DEEPER ** np.arange(_DEPTHS, dtype=np.float64)
_TAILS = np.array(  # the nodes used: their tails are deeper by powers of four
    [_FIRST_TAIL * 4.0 ** max(math.ceil(math.log(log / _FIRST_TAIL, 4.0) - 1e-9), 0) for log in _LOGS.tolist()]
)
_AFTER = np.arange(1, _DEPTHS)
_BEYOND = -1e140  # a loss that no tilt raises: no product with one overflows
_LEAST = math.exp(-COVERED)
_MOST_NODES = 1 << 21
_SMALL = 0.1  # moments nearer to one than this are summed as their difference from one
_HIGHEST = 600.0  # exponents of what is summed so
_AT_ONCE = 1 << 15  # nodes of a batch: its arrays stay in the processor's cache
_KEPT = 4  # batches of all pairs, for different tilts


@final
class Quadrature:
    """The nodes of one pair."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._rules: dict[tuple[float, int], tuple[Array, Array]] = {}

    @cached_property
    def tails(self) -> Array:
        """The losses that ever deeper tails of P begin at, as long as these grow; then `_BEYOND`."""
        losses = self.pair.loss_ranges(np.full_like(_LOGS, -1.0), _LOGS)[1]
        grow = max(int(np.argmax(losses == losses[-1])), 1) + 1
        return np.where(np.arange(_DEPTHS) < grow, losses, _BEYOND)

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """How many nodes cover the first tail, and one four times as deep."""
        return self.rule(_FIRST_TAIL, 1)[0].size, self.pair.nodes(4.0 * _FIRST_TAIL).loss.size

    def rule(self, log_tail: float, refine: int) -> tuple[Array, Array]:
        """Losses and ``ln`` of their weights."""
        key = (log_tail, refine)
        if key not in self._rules:
            nodes = self.pair.nodes(log_tail, refine=refine)
            self._rules[key] = (nodes.loss, nodes.log_p)
        return self._rules[key]


@lru_cache(maxsize=32)
def _quadrature_of(pair: Pair) -> Quadrature:
    """The rules of a pair, kept: they depend on nothing else."""
    if pair.mass_at_infinity >= 1.0:
        raise PrecisionError(f"{shown(pair)} hides nothing: no loss is finite, and neither is epsilon; use more noise")
    return Quadrature(pair)


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """Pairs, by their places among all, with n nodes each: losses and ``ln`` of weights, shape (b, n)."""

    rows: Places
    loss: Array
    log_p: Array
    pairs: Sequence[Pair]

    def at(self, own: Places) -> Batch:
        """Some of the pairs."""
        return Batch(self.rows[own], self.loss[own], self.log_p[own], [self.pairs[one] for one in own.tolist()])

    @cached_property
    def _weight(self) -> Array:
        return np.exp(self.log_p)

    @cached_property
    def _missing(self) -> Array:
        """What the mass under P lacks of one; a rule for a density has mass one up to its error, better not added."""
        each = zip(self.pairs, self._weight, strict=True)
        return np.array([1.0 - math.fsum(own) if one.is_discrete else one.mass_at_infinity for one, own in each])

    @cached_property
    def _reach(self) -> Array:
        return np.asarray(np.abs(self.loss).max(axis=1))

    def accurate(self, theta: float, log_moment: Array) -> Array:
        """K, without cancellation where it is small, shape (b,)."""
        near = np.flatnonzero((np.abs(log_moment) <= _SMALL) & (abs(theta) * self._reach <= _HIGHEST))
        if near.size == 0:
            return log_moment
        own = slice(None) if near.size == len(self.rows) else near
        found = log_moment.copy()
        grown = (self._weight[own] * np.expm1(theta * self.loss[own])).sum(axis=1)
        found[own] = np.log1p(grown - self._missing[own])
        return found


@final
class Quadratures:
    """The nodes of several pairs.

    Parameters
    ----------
    pairs : sequence of Pair
        B of them.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._each = [_quadrature_of(pair) for pair in pairs]
        self._stacked: dict[tuple[int, bytes, bytes], list[Batch]] = {}

    @cached_property
    def _sizes(self) -> Places:
        return np.array([one.sizes for one in self._each], dtype=np.intp).reshape(-1, 2)

    @cached_property
    def _endless(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether deeper tails need more nodes."""
        return np.asarray(self._sizes[:, 0] != self._sizes[:, 1])

    @cached_property
    def _discrete(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.array([one.pair.is_discrete for one in self._each], dtype=np.bool_)

    @cached_property
    def _ends(self) -> Array:
        """`Quadrature.tails` of the endless pairs, a row each."""
        return np.array([one.tails for one, endless in zip(self._each, self._endless, strict=True) if endless])

    def _needed(self, theta: float) -> Array:
        """``ln`` of the tails that the nodes must cover at this tilt, shape (B,).

        Rare large losses (a record that takes part with a small probability) give the tilted density a second peak far
        out, which the nodes around the first do not see.
        """
        needed = np.full(len(self._each), _FIRST_TAIL)
        if self._ends.size:
            tilted = theta * self._ends
            peak = np.maximum((_LOGS + tilted).max(axis=1, keepdims=True), 0.0)
            seen = _LOGS[:-1] + tilted[:, 1:] >= peak - COVERED  # at least the largest between two depths
            needed[self._endless] = _TAILS[(seen * _AFTER).max(axis=1)]
        return needed

    def _batches(self, rows: Places, tails: Array, refine: int, theta: float) -> list[Batch]:
        """Pairs with their nodes, those of one length together."""
        key = (refine, rows.tobytes(), tails.tobytes())
        if (kept := self._stacked.get(key)) is not None:
            return kept
        finer = np.where(self._discrete[rows], 1, refine)  # atoms stay as they are
        most = self._sizes[rows, 1] * finer * np.sqrt(np.maximum(tails / _FIRST_TAIL, 1.0))
        for place in np.flatnonzero(most > _MOST_NODES).tolist():
            pair = self._each[rows[place]].pair
            raise PrecisionError(
                f"a tilt of {theta:.3g} needs more than {_MOST_NODES} quadrature nodes for {shown(pair)}"
            )
        found = list(self._stack(rows, tails, refine))
        if len(self._stacked) >= _KEPT:
            self._stacked.clear()
        self._stacked[key] = found
        return found

    def _stack(self, rows: Places, tails: Array, refine: int) -> Iterator[Batch]:
        lengths: dict[int, list[tuple[int, Array, Array]]] = {}
        for row, log_tail in zip(rows.tolist(), tails.tolist(), strict=True):
            loss, log_p = self._each[row].rule(log_tail, refine)
            lengths.setdefault(loss.size, []).append((row, loss, log_p))
        for size, group in lengths.items():
            most = max(_AT_ONCE // max(size, 1), 1)
            for first in range(0, len(group), most):
                own, loss, log_p = zip(*group[first : first + most], strict=True)
                yield Batch(np.array(own), np.array(loss), np.array(log_p), [self._each[row].pair for row in own])

    def tilted(self, theta: float, refine: int) -> Iterator[tuple[Batch, StepCumulants]]:
        """The pairs, a few at a time, with their cumulants on nodes that reach as far as the tilt needs."""
        rows, tails = np.arange(len(self._each)), self._needed(theta)
        before = np.full((rows.size, 2), math.nan)  # the outermost losses of nodes that did not reach
        while rows.size:
            more = [rows[:0]]
            for batch in self._batches(rows, tails[rows], refine, theta):
                found, ends = tilted_cumulants(batch.loss, batch.log_p, theta)
                reached = ends < _LEAST
                if not reached.all():
                    outermost = batch.loss[:, [0, -1]]
                    no_further = (outermost == before[batch.rows]).all(axis=1)  # whatever the tail
                    reached |= no_further | ~self._endless[batch.rows]
                    before[batch.rows] = outermost
                if reached.all():
                    yield batch, found
                    continue
                own = np.flatnonzero(reached)
                if own.size:
                    yield batch.at(own), found.at(own)
                more.append(batch.rows[~reached])
            rows = np.sort(np.concatenate(more))
            tails[rows] *= 4.0  # twice as far for a Gaussian tail

    def cumulants(self, theta: float, refine: int) -> StepCumulants:
        """Cumulants of one step of each pair, shape (B,)."""
        parts = [
            (batch.rows, replace(found, log_moment=batch.accurate(theta, found.log_moment)))
            for batch, found in self.tilted(theta, refine)
        ]
        if len(parts) == 1:
            return parts[0][1]
        if not parts:
            return StepCumulants(*np.empty((6, 0)))
        places = np.argsort(np.concatenate([rows for rows, _ in parts]))
        return StepCumulants.joined([found for _, found in parts]).at(places)
