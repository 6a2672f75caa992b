"""Certified brackets of ``K(alpha - 1) = ln E_P[e^{(alpha - 1) L}; L finite]``, ``alpha - 1`` times a Renyi divergence.

Read off the pairs' rules (`hockeystick.transforms.log_moments`). A pair without a rule, or of too long a one, is put
between two lattices: with ``theta = alpha - 1`` and the curve ``h(a) = E_P (1 - a e^{-L})_+`` of any measure,

    E_P[e^{theta L}; L finite] = theta (1 + theta) int_0^inf a^{theta - 1} (h(a) - h(inf)) da,

so that a curve above gives a moment above (`docs/derivations/moments.md`, section 2).

Guarantee: every bracket contains the value for the stated pairs, rounding included; the upper side is infinite where
there is no rule and the losses are unbounded above. Cost: about half a millisecond for a pair, whatever the counts, and
a tenth of it where like pairs share a batch of rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from hockeystick.engines.ends import largest_loss
from hockeystick.engines.lattice.compose import log_moment
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.engines.lattice.tangents import tangents
from hockeystick.errors import UnknownPairError
from hockeystick.laws.base import Array, Pair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.numerics.rounding import ELEMENTARY, UNDERFLOW, U, up
from hockeystick.transforms.log_moments import log_moments
from hockeystick.transforms.rule import LossRule, Window
from hockeystick.transforms.summand import Summand

_LOG_ACCURACY = -62.0  # of a moment: K as small as 1e-13 keeps all its digits
_LONGEST = 1 << 18  # nodes of a rule
_NODES_AT_ONCE = 1 << 18  # of all orders evaluated together
_CELLS = 1 << 15  # of a lattice


@final
@dataclass(frozen=True)
class MomentBracket:
    """``lower <= K(alpha - 1) <= upper`` at each of k orders (nats), ``-inf`` or ``inf`` where nothing is known."""

    lower: Array
    upper: Array


def log_moment_bounds(parts: Sequence[tuple[Pair, int]], orders: Array) -> MomentBracket:
    """Certified bracket of K of a composition.

    Parameters
    ----------
    parts : sequence of (Pair, int)
        The composition, one direction.
    orders : ndarray, shape (k,)
        alpha, above 1, each an exact number.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> bracket = log_moment_bounds([(GaussianPair(1.0).subsampled(0.01), 1)], np.array([2.0]))
    >>> exact = math.log1p(1e-4 * math.expm1(1.0))
    >>> bool(bracket.lower[0] <= exact <= bracket.upper[0]), bool(bracket.upper[0] < exact * (1.0 + 1e-12))
    (True, True)
    """
    with np.errstate(over="ignore", invalid="ignore"):  # where a product is no float64 nothing is known
        steps = _steps(parts, orders)
        sides = []
        for name, outward in (("lower", -1.0), ("upper", 1.0)):
            # a product too small to be rounded relative to itself is off by far less than UNDERFLOW
            terms = [count * (np.asarray(getattr(step, name)) + outward * UNDERFLOW) for step, count in steps]
            rounding = (len(terms) + 2.0) * U * sum(np.abs(term) for term in terms)
            found = np.asarray(sum(terms) + outward * rounding)
            sides.append(np.where(np.isfinite(found), found, outward * math.inf))
    return MomentBracket(*sides)


def _steps(parts: Sequence[tuple[Pair, int]], orders: Array) -> list[tuple[MomentBracket, float]]:
    """The bracket of each kind of step, and how often it is composed; in an order of their own."""
    alike: dict[type[Summand], list[tuple[Pair, int]]] = {}
    alone: list[tuple[Pair, int]] = []
    for pair, count in parts:
        kind = _kind(pair, orders) if len(parts) > 1 else None
        (alone if kind is None else alike.setdefault(kind, [])).append((pair, count))
    steps: list[tuple[MomentBracket, float]] = []
    for own in alike.values():
        found = _of_batches(tuple((pair.same_summand, float(count)) for pair, count in own), orders)
        alone += own if found is None else ()
        steps += found or ()
    return steps + [(_one_step(pair, orders), float(count)) for pair, count in alone]


def _kind(pair: Pair, orders: Array) -> type[Summand] | None:
    """The class of a pair that others can share rules with; None where it is looked at alone."""
    if pair.moment_guarantee(orders) is not None:
        return None
    try:
        summand = pair.same_summand
    except UnknownPairError:
        return None
    return None if summand.normal_variance or summand.lattice_normal is not None else type(summand)


def _of_batches(group: Sequence[tuple[Summand, float]], orders: Array) -> list[tuple[MomentBracket, float]] | None:
    """Brackets of like pairs, a batch of rules at a time; None where each has its own, or one of them none."""
    tops = np.exp2(np.ceil(np.log2(orders)))
    every = [(np.flatnonzero(tops == top), _batches(group, float(top))) for top in np.unique(tops)]
    if any(batches is None for _, batches in every):
        return None
    sides = np.empty((2, orders.size, len(group)))
    counts = np.empty(len(group))
    for chosen, batches in every:
        last = 0
        for rule in batches or ():
            first, last = last, last + rule.size
            size = max(_NODES_AT_ONCE // (rule.nodes * rule.size), 1)
            for some in np.split(chosen, range(size, chosen.size, size)):
                found = log_moments(rule, orders[some])
                error = found.total_error + U * np.abs(found.value)
                sides[:, some, first:last] = found.value - error, found.value + error
            counts[first:last] = rule.counts
    brackets = [MomentBracket(*sides[:, :, place]) for place in range(len(group))]
    return list(zip(brackets, counts.tolist(), strict=True))


@lru_cache(maxsize=4)
def _batches(group: tuple[tuple[Summand, float], ...], top: float) -> tuple[LossRule, ...] | None:
    """Rules of like pairs that serve orders up to ``top``, their rows in the same order whatever the orders."""
    sources = type(group[0][0]).sources(group)
    if len(sources) == len(group):
        return None
    found = [source.rule(Window((1.0, top), 0.0, _LOG_ACCURACY, longest=_LONGEST)) for source in sources]
    rules = tuple(rule for rule in found if rule is not None)
    return rules if len(rules) == len(found) else None


def _one_step(pair: Pair, orders: Array) -> MomentBracket:
    """The bracket of one pair, or of all that it stands for where something better is proved of these."""
    told = pair.moment_guarantee(orders)
    if pair.is_known_by_moments_alone and told is not None:
        return MomentBracket(np.zeros_like(orders), told)
    own = moments_of_pair(pair, orders)
    return own if told is None else MomentBracket(np.zeros_like(orders), np.minimum(own.upper, told))


def moments_of_pair(pair: Pair, orders: Array) -> MomentBracket:
    """The bracket of a pair itself, whatever is proved of the steps that it stands for.

    The rule used at an order depends on nothing but the power of two above it.
    """
    lower, upper = np.empty_like(orders), np.empty_like(orders)
    tops = np.exp2(np.ceil(np.log2(orders)))
    for top in np.unique(tops):
        rules = _rules(pair, float(top))
        chosen = np.flatnonzero(tops == top)
        size = max(_NODES_AT_ONCE // max((rule.nodes for rule in rules or ()), default=1), 1)
        for some in np.split(chosen, range(size, chosen.size, size)):
            found = _of_lattices(pair, orders[some]) if rules is None else _of_rules(pair, rules, orders[some])
            lower[some], upper[some] = found.lower, found.upper
    return MomentBracket(lower, upper)


@lru_cache(maxsize=64)
def _rules(pair: Pair, top: float) -> tuple[LossRule, ...] | None:
    """The rules of a pair that serve orders up to ``top``; None where there are none."""
    try:
        found = PairSum(((pair, 1),)).rules(Window((1.0, top), 0.0, _LOG_ACCURACY, longest=_LONGEST))
    except UnknownPairError:
        return None
    return None if found is None else tuple(found)


def _of_rules(pair: Pair, rules: Sequence[LossRule], orders: Array) -> MomentBracket:
    value = 0.5 * PairSum(((pair, 1),)).gaussian_variance * (orders - 1.0) * orders
    error = 24.0 * U * value  # the variance to 16 u
    for rule in rules:
        found = log_moments(rule, orders)
        value = value + found.value[:, 0]
        error = error + found.total_error[:, 0] + U * np.abs(value)
    return MomentBracket(value - error, value + error)


# -------------------------------------------------------------------------------------------------- between lattices


@lru_cache(maxsize=16)
def _lattices(pair: Pair) -> tuple[LatticePLD, ...]:
    """A lattice below the pair's curve, and one above where no loss lies beyond it."""
    bottom, top = pair.loss_bounds
    low, high = pair.loss_range(-700.0, -700.0)
    low, high = max(low, bottom), top if math.isfinite(top) else high
    grid = Grid.covering(low, high, max((high - low) / _CELLS, 1e-9), offset=high)
    below = tangents(pair, grid)
    return (below, connect_the_dots(GridCells.of(pair, grid))) if math.isfinite(top) else (below,)


def _of_lattices(pair: Pair, orders: Array) -> MomentBracket:
    upper = np.full_like(orders, math.inf)
    lower = -upper
    for pld in _lattices(pair):
        side = upper if pld.side == "upper" else lower
        side[:] = [_of_lattice(pair, pld, float(order) - 1.0) for order in orders]
    return MomentBracket(lower, upper)


def _of_lattice(pair: Pair, pld: LatticePLD, theta: float) -> float:
    """The bound from one lattice: its losses moved outward, and its mass at infinity made that of the pair."""
    outward = 1.0 if pld.side == "upper" else -1.0
    value, error = log_moment(pld, theta)
    value += outward * (error + theta * pld.slack * (1.0 + 4.0 * U) + 2.0 * U * abs(value))
    infinite = pair.infinite_mass
    off = pld.mass_at_infinity - infinite.low if outward > 0.0 else infinite.high - pld.mass_at_infinity
    if not (off > 0.0 and value > -math.inf):
        return value
    # theta (1 + theta) int_0^top a^{theta - 1} off da = (1 + theta) off top^theta
    top = max(float(pld.losses[-1]), largest_loss(((pair, 1),))[1]) + max(pld.slack, 0.0)
    log_off = math.log(off) + math.log1p(theta) + theta * top
    log_off += 8.0 * U * (abs(math.log(off)) + abs(theta * top) + abs(value)) + 4.0 * ELEMENTARY
    if outward > 0.0:
        return up(float(np.logaddexp(value, log_off)), 8.0 * ELEMENTARY) + 4.0 * U
    if log_off >= value:
        return -math.inf
    return value + math.log(-math.expm1(log_off - value)) * (1.0 + 8.0 * ELEMENTARY) - 4.0 * U * (1.0 + abs(value))
