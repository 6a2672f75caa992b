"""The outcomes of a discrete pair, and of compositions of discrete pairs: losses and masses with their errors.

A pair of n atoms composed T times has as many outcomes as there are ways to share T among n: atom i comes up k_i
times, with loss ``sum k_i l_i`` and mass ``T! prod p_i^{k_i} / k_i!``. Parts are combined outcome by outcome. Where
these are too many, half of the steps are listed, and the other half; where most of them matter little, those that do.

Guarantee: every error stored bounds the true one. Cost: one row an outcome.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, final

import numpy as np

from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Pair
from hockeystick.numerics.columns import Array, Places
from hockeystick.numerics.rounding import ELEMENTARY, UNDERFLOW, U, up

Parts = Sequence[tuple[Pair, int]]

_MOST_ATOMS = 1 << 12
SLACK = 1e-9  # of a logarithm of a weight, for its roundings


@final
@dataclass(frozen=True)
class Omission:
    """What may be left out of a list: atoms of one step, and outcomes of all steps listed.

    Outcomes are weighed by ``p e^{theta l}``. Where k_i of T steps have been given to each of some atoms of weights
    w_i, and r are left for the others, whose weights sum to R, all the ways to go on together weigh, by the multinomial
    theorem, ``T! / (prod k_i! r!) prod w_i^{k_i} R^r``.

    Attributes
    ----------
    log_drop : float
        ``ln`` of the mass of the atoms that each step may leave out.
    theta : float
        The tilt, at least 0.
    log_least : float
        ``ln`` of the part of the weight of the whole below which an outcome, or all ways to go on, may be left out.
    """

    log_drop: float = -math.inf
    theta: float = 0.0
    log_least: float = -math.inf


NONE: Final = Omission()
"""Nothing is left out."""


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
    log_weight : float
        ``ln`` of a bound on the sum of ``p e^{theta l}`` over all outcomes, listed or not.
    log_omitted : float
        The same over those that are not listed.
    """

    loss: Array
    loss_error: Array
    log_p: Array
    error: Array
    log_weight: float = 0.0
    log_omitted: float = -math.inf

    def beside(self, other: Outcomes, omitted: Omission = NONE) -> Outcomes:
        """All pairs of an outcome of this and one of the other, independent, that weigh enough."""
        log_weight, log_omitted = self.weights_beside(other)
        if omitted.log_least == -math.inf:
            first, second = (np.indices((self.loss.size, other.loss.size), sparse=True)[axis] for axis in (0, 1))
        else:
            first, second, light = self._pairs(other, omitted)
            log_omitted = added(log_omitted, light)
        loss, log_p = self.loss[first] + other.loss[second], self.log_p[first] + other.log_p[second]
        loss_error = (self.loss_error[first] + other.loss_error[second]) * (1.0 + 4.0 * U) + U * np.abs(loss)
        error = (self.error[first] + other.error[second]) * (1.0 + 4.0 * U) + U * np.abs(log_p)
        return Outcomes(
            loss.ravel(),
            loss_error.ravel(),
            log_p.ravel(),
            error.ravel(),
            log_weight=log_weight,
            log_omitted=log_omitted,
        )

    def _pairs(self, other: Outcomes, omitted: Omission) -> tuple[Places, Places, Array]:
        """Places of the pairs that weigh enough, and ``ln`` of what all others weigh, for each outcome of this."""
        own, logs = log_weights(self, omitted.theta), log_weights(other, omitted.theta)
        falling = np.argsort(-logs, kind="stable")
        logs = logs[falling]
        number = np.searchsorted(-logs, own - (omitted.log_least + self.log_weight + other.log_weight), side="right")
        rest = np.append(np.logaddexp.accumulate(logs[::-1])[::-1] + SLACK, -math.inf)  # of each and those after it
        first = np.repeat(np.arange(number.size), number)
        second = falling[np.arange(first.size) - np.repeat(np.cumsum(number) - number, number)]
        return first, second, (own + rest[number])[number < logs.size]

    def weights_beside(self, other: Outcomes) -> tuple[float, float]:
        """``ln`` of the weights of all pairs of outcomes, and of those with one that is not listed."""
        left_out = np.logaddexp(self.log_omitted + other.log_weight, self.log_weight + other.log_omitted)
        return self.log_weight + other.log_weight, float(left_out)

    def but(self, omitted: Omission) -> Outcomes:
        """Those that weigh enough."""
        if omitted.log_least == -math.inf:
            return self
        logs = log_weights(self, omitted.theta)
        kept = logs >= omitted.log_least + self.log_weight
        loss, loss_error, log_p, error = (one[kept] for one in (self.loss, self.loss_error, self.log_p, self.error))
        return Outcomes(loss, loss_error, log_p, error, self.log_weight, added(self.log_omitted, logs[~kept]))


def log_weights(one: Outcomes | AtomTable, theta: float) -> Array:
    """``ln (p e^{theta l})`` of outcomes or atoms, at least; some roundings and `SLACK` above."""
    size = np.abs(one.log_p) + theta * np.abs(one.loss)
    return np.asarray(one.log_p + one.error + theta * (one.loss + one.loss_error) + (SLACK + 16.0 * U * size))


def added(log_sum: float, logs: Array) -> float:
    """``ln`` of a sum and some more, at least."""
    return float(np.logaddexp(log_sum, np.logaddexp.reduce(logs) + SLACK)) if logs.size else log_sum


_NOTHING = Outcomes(*np.zeros((4, 1)))


def table(pair: Pair, log_drop: float = -math.inf) -> AtomTable | None:
    """The atoms of one step, but for some of a total mass of ``e^log_drop``; None where unknown, or too many."""
    atoms = pair.atoms if log_drop == -math.inf else _heaviest(pair.atoms_but(log_drop), log_drop)
    if atoms is None or not 0 < atoms.size <= _MOST_ATOMS or (atoms.dropped > 0.0 and log_drop == -math.inf):
        return None
    return atoms if np.isfinite(atoms.loss_error).all() else None


def known_table(pair: Pair, log_drop: float) -> AtomTable:
    """The same of a pair whose atoms are known."""
    atoms = table(pair, log_drop)
    if atoms is None:
        raise ValueError(f"the outcomes of {pair!r} are not known")
    return atoms


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
    found = [(table(pair, log_drop), count) for pair, count in parts]
    return up(math.fsum(atoms.dropped * count for atoms, count in found if atoms is not None), 1e-9)


def number_of_outcomes(parts: Parts, most: int) -> int | None:
    """How many outcomes a composition has; None where that is above ``most``, or not known."""
    total = 1
    for pair, count in parts:
        found = table(pair)
        if found is None or count > most:
            return None
        total *= math.comb(count + found.size - 1, count)  # ways to share
        if total > most:
            return None
    return total


def halves(parts: Parts) -> tuple[Parts, Parts]:
    """About half of the steps, and the other ones."""
    first = [(pair, (count + 1 - place % 2) // 2) for place, (pair, count) in enumerate(parts)]
    second = [(pair, count - own) for (pair, own), (_, count) in zip(first, parts, strict=True)]
    return [(pair, own) for pair, own in first if own], [(pair, own) for pair, own in second if own]


def outcomes_of_all(parts: Parts, omitted: Omission = NONE) -> Outcomes:
    """The outcomes of a composition, all of whose pairs have known atoms; of no steps, loss 0."""
    found = []
    for pair, count in parts:
        atoms = known_table(pair, omitted.log_drop)
        weight = float(np.logaddexp.reduce(log_weights(atoms, omitted.theta))) + SLACK
        one = Outcomes(atoms.loss, atoms.loss_error, atoms.log_p, atoms.error, weight)
        found.append(_repeated(one, count, omitted) if count > 1 else one)
    while len(found) > 1:  # the two shortest first: few long lists are made
        found.sort(key=lambda one: one.loss.size, reverse=True)
        found.append(found.pop().beside(found.pop(), omitted))
    return found[0] if found else _NOTHING


def _repeated(one: Outcomes, count: int, omitted: Omission) -> Outcomes:
    """All ways to share so many steps among the atoms, atom by atom, but for those that weigh too little."""
    orders, terms = _log_factorials(count), (min(one.loss.size, count) + 2) * U
    logs = log_weights(one, omitted.theta)
    heaviest_first = np.argsort(-logs, kind="stable")
    rest = np.logaddexp.accumulate(logs[heaviest_first][::-1])[::-1] + SLACK  # of an atom and those after it
    log_weight, log_omitted = count * one.log_weight, -math.inf
    columns = (one.loss, one.loss_error + terms * np.abs(one.loss), one.log_p, one.error + terms * np.abs(one.log_p))
    atoms = np.stack((*columns, np.zeros_like(one.loss)), axis=1)[heaviest_first]
    found, left, sums = [], np.array([count]), np.zeros((1, atoms.shape[1]))  # the last sum is of ln k!
    for atom, log_rest in zip(atoms, rest, strict=True):
        if omitted.log_least > -math.inf:
            so_far = Outcomes(*sums.T[:4])
            ways = orders[count] - orders[left] - sums[:, 4]
            all_ways = log_weights(so_far, omitted.theta) + ways + left * log_rest
            kept = all_ways >= omitted.log_least + log_weight
            log_omitted = added(log_omitted, all_ways[~kept])
            left, sums = left[kept], sums[kept]
        found.append(sums + left[:, None] * atom)  # all that are left are this atom's
        found[-1][:, 4] += orders[left]
        if len(found) == len(atoms):
            break
        place, most = np.repeat(np.arange(left.size), left), left
        taken = np.arange(place.size) - np.repeat(np.cumsum(most) - most, most)
        left, sums = left[place] - taken, sums[place] + taken[:, None] * atom
        sums[:, 4] += orders[taken]
    loss, loss_error, log_p, error, lost = np.concatenate(found).T
    log_orders, size = orders[count] - lost, orders[count] + lost
    doubt = (2.0 * ELEMENTARY + terms) * size
    error = (error + doubt) * (1.0 + terms)
    every = Outcomes(loss, loss_error * (1.0 + terms), log_orders + log_p, error, log_weight, log_omitted)
    return every.but(omitted)


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
