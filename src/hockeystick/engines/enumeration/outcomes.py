"""The outcomes of a discrete pair, and of compositions of discrete pairs: losses and masses with their errors.

A pair of n atoms composed T times has as many outcomes as there are ways to share T among n: atom i comes up k_i
times, with loss ``sum k_i l_i`` and mass ``T! prod p_i^{k_i} / k_i!``. Parts are combined outcome by outcome. Where
these are too many, half of the steps are listed, and the other half.

Guarantee: every error stored bounds the true one. Cost: one row an outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import final

import numpy as np

from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import ELEMENTARY, UNDERFLOW, U, up

__all__ = ["Outcomes", "dropped_mass", "halves", "number_of_outcomes", "outcomes_of_all"]

Parts = Sequence[tuple[Pair, int]]

_MOST_ATOMS = 512
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


def _table(pair: Pair, log_drop: float = -math.inf) -> AtomTable | None:
    """The atoms of one step, but for some of a total mass of ``e^log_drop``; None where unknown, or too many."""
    atoms = pair.atoms if log_drop == -math.inf else _heaviest(pair.atoms_but(log_drop), log_drop)
    if atoms is None or not 0 < atoms.size <= _MOST_ATOMS or (atoms.dropped > 0.0 and log_drop == -math.inf):
        return None
    return atoms if np.isfinite(atoms.loss_error).all() else None


def _heaviest(atoms: AtomTable | None, log_drop: float) -> AtomTable | None:
    """A table without its lightest atoms under P, which are counted as dropped."""
    if atoms is None or atoms.size == 0:
        return atoms
    heavy = atoms.log_p >= log_drop - math.log(atoms.size)
    light = np.exp(atoms.log_p[~heavy] + atoms.error[~heavy]) + UNDERFLOW
    columns = {name: getattr(atoms, name)[heavy] for name in ("loss", "loss_error", "log_p", "log_q", "error")}
    return replace(atoms, **columns, dropped=up(atoms.dropped + float(light.sum()), 1e-9), exact_losses=None)


def dropped_mass(parts: Parts, log_drop: float) -> float:
    """Bound on the mass under P of all outcomes that are not listed where each step leaves out ``e^log_drop``."""
    tables = [(_table(pair, log_drop), count) for pair, count in parts]
    return up(math.fsum(table.dropped * count for table, count in tables if table is not None), 1e-9)


def number_of_outcomes(parts: Parts, most: int, log_drop: float = -math.inf) -> int | None:
    """How many outcomes a composition has; None where that is above ``most``, or not known."""
    total = 1
    for pair, count in parts:
        found = _table(pair, log_drop)
        if found is None or count > most:
            return None
        total *= math.comb(count + found.size - 1, count)  # ways to share
        if total > most:
            return None
    return total


def halves(parts: Parts, most: int, log_drop: float = -math.inf) -> tuple[Parts, Parts] | None:
    """About half of the steps, and the other ones; None where either has more outcomes than ``most``.

    None as well where atoms are too many or not known, or losses too far apart.
    """
    first: list[tuple[Pair, int]] = []
    second: list[tuple[Pair, int]] = []
    width = 0.0
    for place, (pair, count) in enumerate(parts):
        found, larger = _table(pair, log_drop), count - count // 2
        if found is None:
            return None
        first.append((pair, count - larger if place % 2 else larger))
        second.append((pair, count - first[-1][1]))
        width += count * float(np.ptp(found.loss))
    both = [(pair, own) for pair, own in first if own], [(pair, own) for pair, own in second if own]
    served = width <= _WIDEST and all(number_of_outcomes(half, most, log_drop) is not None for half in both)
    return both if served else None


def outcomes_of_all(parts: Parts, log_drop: float = -math.inf) -> Outcomes:
    """The outcomes of a composition, all of whose pairs have known atoms; of no steps, loss 0."""
    found = []
    for pair, count in parts:
        atoms = _table(pair, log_drop)
        if atoms is None:
            raise ValueError(f"the outcomes of {pair!r} are not known")
        found.append(_repeated(Outcomes(atoms.loss, atoms.loss_error, atoms.log_p, atoms.error), count))
    while len(found) > 1:  # the two shortest first: few long lists are made
        found.sort(key=lambda one: one.loss.size, reverse=True)
        found.append(found.pop().beside(found.pop()))
    return found[0] if found else _NOTHING


def _repeated(one: Outcomes, count: int) -> Outcomes:
    """All ways to share so many steps among the atoms, atom by atom."""
    if count == 1:
        return one
    orders, terms = _log_factorials(count), (one.loss.size + 2) * U
    each = (one.loss, one.loss_error + terms * np.abs(one.loss), one.log_p, one.error + terms * np.abs(one.log_p))
    left, sums, lost = np.array([count]), np.zeros((len(each), 1)), np.zeros(1)
    for place, atom in enumerate(np.array(each).T):
        taken = left
        if place < one.loss.size - 1:
            repeats = left + 1
            starts = np.cumsum(repeats) - repeats
            taken = np.arange(int(repeats.sum())) - np.repeat(starts, repeats)
            left, sums, lost = np.repeat(left, repeats), np.repeat(sums, repeats, axis=1), np.repeat(lost, repeats)
        sums += atom[:, None] * taken
        lost += orders[taken]
        left = left - taken
    loss, loss_error, log_p, error = sums
    log_orders, size = orders[count] - lost, orders[count] + lost
    doubt = (2.0 * ELEMENTARY + terms) * size
    return Outcomes(loss, loss_error * (1.0 + terms), log_orders + log_p, (error + doubt) * (1.0 + terms))


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
