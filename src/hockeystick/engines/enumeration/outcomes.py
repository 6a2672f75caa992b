"""The outcomes of a discrete pair, and of compositions of discrete pairs: losses and masses with their errors.

A pair of n atoms composed T times has as many outcomes as there are ways to share T among n: atom i comes up k_i
times, with loss ``sum k_i l_i`` and mass ``T! prod p_i^{k_i} / k_i!``. Parts are combined outcome by outcome. Where
these are too many, half of the steps are listed, and the other half.

Guarantee: every error stored bounds the true one. Cost: one row an outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

__all__ = ["Outcomes", "halves", "number_of_outcomes", "outcomes_of_all"]

Parts = Sequence[tuple[Pair, int]]

_MOST_ATOMS = 512
_MOST_CELLS = 1 << 23  # of the table that says how often each atom comes up in each outcome
_MANY = 40  # steps, whose table is too large only where outcomes are more than a million
_WIDEST = 600.0  # nats between losses, whose exponentials float64 holds


@final
@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of finite loss, arrays of shape (n,).

    Attributes
    ----------
    loss, loss_error : ndarray
        Losses (nats) and bounds on their errors.
    log_p, error : ndarray
        ``ln`` of the masses under P and bounds on their absolute errors.
    """

    loss: Array
    loss_error: Array
    log_p: Array
    error: Array

    def beside(self, other: Outcomes) -> Outcomes:
        """All pairs of an outcome of this and one of the other, independent."""
        loss, log_p = np.add.outer(self.loss, other.loss).ravel(), np.add.outer(self.log_p, other.log_p).ravel()
        loss_error = np.add.outer(self.loss_error, other.loss_error).ravel()
        error = np.add.outer(self.error, other.error).ravel()
        return Outcomes(
            loss, loss_error * (1.0 + 4.0 * U) + U * np.abs(loss), log_p, error * (1.0 + 4.0 * U) + U * np.abs(log_p)
        )


_NOTHING = Outcomes(*np.zeros((4, 1)))


def _table(pair: Pair) -> AtomTable | None:
    """The atoms of one step; None where they are not known, or too many."""
    atoms = pair.atoms
    if atoms is None or not 0 < atoms.size <= _MOST_ATOMS or atoms.dropped > 0.0:
        return None
    return atoms if np.isfinite(atoms.loss_error).all() else None


def number_of_outcomes(parts: Parts, most: int) -> int | None:
    """How many outcomes a composition has; None where that is above ``most``, or not known."""
    total = 1
    for pair, count in parts:
        found = _table(pair)
        if found is None or count > most:
            return None
        total *= _rows(count, found.size)
        if total > most:
            return None
    return total


def _rows(count: int, atoms: int) -> int:
    """How many outcomes are listed of so many steps: ways to share, or pairs of those of its halves."""
    ways = math.comb(count + atoms - 1, count)
    if ways * atoms <= _MOST_CELLS or count == 1 or count > _MANY:
        return ways
    return _rows(count // 2, atoms) * _rows(count - count // 2, atoms)


def halves(parts: Parts, most: int) -> tuple[Parts, Parts] | None:
    """About half of the steps, and the other ones; None where either has more outcomes than ``most``.

    None as well where atoms are too many or not known, or losses too far apart.
    """
    first: list[tuple[Pair, int]] = []
    second: list[tuple[Pair, int]] = []
    width = 0.0
    for place, (pair, count) in enumerate(parts):
        found, larger = _table(pair), count - count // 2
        if found is None:
            return None
        first.append((pair, count - larger if place % 2 else larger))
        second.append((pair, count - first[-1][1]))
        width += count * float(np.ptp(found.loss))
    both = [(pair, own) for pair, own in first if own], [(pair, own) for pair, own in second if own]
    served = width <= _WIDEST and all(number_of_outcomes(half, most) is not None for half in both)
    return both if served else None


def outcomes_of_all(parts: Parts) -> Outcomes:
    """The outcomes of a composition, all of whose pairs have known atoms; of no steps, loss 0."""
    found = []
    for pair, count in parts:
        atoms = _table(pair)
        if atoms is None:
            raise ValueError(f"the outcomes of {pair!r} are not known")
        found.append(_repeated(Outcomes(atoms.loss, atoms.loss_error, atoms.log_p, atoms.error), count))
    while len(found) > 1:  # the two shortest first: few long lists are made
        found.sort(key=lambda one: one.loss.size, reverse=True)
        found.append(found.pop().beside(found.pop()))
    return found[0] if found else _NOTHING


def _repeated(one: Outcomes, count: int) -> Outcomes:
    if count == 1:
        return one
    if _rows(count, one.loss.size) != math.comb(count + one.loss.size - 1, count):
        return _repeated(one, count // 2).beside(_repeated(one, count - count // 2))
    often = _shares(count, one.loss.size).astype(np.float64)
    orders = _log_factorials(count)
    log_orders = orders[count] - orders[often.astype(np.int64)].sum(axis=1)
    size = orders[count] + orders[often.astype(np.int64)].sum(axis=1)
    terms = (often.shape[1] + 2) * U
    return Outcomes(
        often @ one.loss,
        (often @ one.loss_error + terms * (often @ np.abs(one.loss))) * (1.0 + terms),
        log_orders + often @ one.log_p,
        (often @ one.error + (2.0 * ELEMENTARY + terms) * size + terms * (often @ np.abs(one.log_p))) * (1.0 + terms),
    )


def _shares(count: int, atoms: int) -> NDArray[np.int64]:
    """All ways to share ``count`` among so many atoms, a row each."""
    rows, left = np.zeros((1, 0), dtype=np.int64), np.array([count])
    for _ in range(atoms - 1):
        repeats = left + 1
        starts = np.cumsum(repeats) - repeats
        taken = np.arange(int(repeats.sum())) - np.repeat(starts, repeats)
        rows = np.column_stack((np.repeat(rows, repeats, axis=0), taken))
        left = np.repeat(left, repeats) - taken
    return np.column_stack((rows, left))


@lru_cache(maxsize=64)
def _log_factorials(count: int) -> Array:
    """``ln k!`` for k = 0 .. count, to ``2 ELEMENTARY`` relative: logarithms, added up with what each sum loses."""
    found = np.zeros(count + 1)
    total, rest = 0.0, 0.0
    for k in range(2, count + 1):
        term = math.log(k) + rest
        new = total + term
        rest = term - (new - total)  # what the sum lost
        total = new
        found[k] = total + rest
    found.setflags(write=False)
    return found
