"""Poisson samples under substitution: a curve from the pairs of one record, there or not, and of one for another.

Let C be what a step shows without the record, A with it, B with another in its place, drawn with probability g. For
a >= 1 and any l in [0, 1], for every event E

    X(E) - a Y(E) = g A(E) - (a - 1) (1 - g) C(E) - a g B(E) <= g (l H_c(A || C) + (1 - l) H_d(A || B)),
    X = (1 - g) C + g A,    Y = (1 - g) C + g B,    c = (a - 1) (1 - g) / (g l),    d = a / (1 - l).

A and C are bounded by the pair under remove, A and B by that under substitute. The best l has ``A(E)`` the same for the
best events of both.

Guarantee: the upper side is certified, whatever l is taken; nothing is known below. Proof:
docs/derivations/fixed-size.md, section 4. Cost: some sixty looks at the tails of both pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, final

import numpy as np

from hockeystick.laws.base import Array, InfiniteMass, Pair
from hockeystick.laws.extent import CertifiedCurve, Extreme
from hockeystick.laws.one_step import one_step_deltas
from hockeystick.numerics.rationals import product_up
from hockeystick.numerics.rounding import ELEMENTARY, UNDERFLOW, exps_up, ups

_HALVINGS = 60  # of the logit of l, which float64 then tells no further
_LARGEST: Final = 745.0  # logit
_SAME = 30.0  # nats, from which e^epsilon - 1 is taken as e^epsilon times what is left
_FARTHEST = 1e100  # nats: a cut beyond all losses
_AT_ONCE = 64  # cuts: of atoms, what lies above each takes as long as all of them
_DEEP = -745.0  # ln of the mass that nodes reach to


@final
@dataclass(frozen=True)
class SubstitutedCurve(CertifiedCurve):
    """The curve of a Poisson sample under substitution; it is its own reverse, since the relation is symmetric.

    Parameters
    ----------
    remove, substitute : Pair
        The pairs of the step without sampling: with the record and without, and with another in its place.
    rate : float
        g, in (0, 1).

    Examples
    --------
    >>> from hockeystick.laws import LaplacePair
    >>> _, upper = SubstitutedCurve(LaplacePair(1.0), LaplacePair(1.0, 2.0), 0.1).delta(0.1)
    >>> f"{upper:.6f}"
    '0.029446'
    """

    remove: Pair
    substitute: Pair
    rate: float

    def reversed(self) -> SubstitutedCurve:
        return self

    @property
    def infinite_mass(self) -> InfiniteMass:
        masses = self.remove.mass_at_infinity, self.substitute.mass_at_infinity
        return InfiniteMass.between(0.0, product_up(self.rate, min(masses)))

    @property
    def supremum(self) -> Extreme:
        """Where (6) of the proof is 0 at ``c = e^R`` and ``d = e^S``, the largest losses of both pairs."""
        r, s = self.remove.supremum, self.substitute.supremum
        if math.isinf(r.value + s.value) or self.infinite_mass.high > 0.0:
            return Extreme(math.inf)
        drawn, rest = math.log(self.rate), math.log1p(-self.rate) + (s.value - r.value)
        value = float(np.logaddexp(drawn + s.value, rest) - np.logaddexp(drawn, rest))
        size = 1.0 - drawn + abs(math.log1p(-self.rate)) + abs(r.value) + abs(s.value)
        return Extreme(value, 1.01 * (r.error + s.error) + 16.0 * ELEMENTARY * size)

    def at(self, epsilon: float) -> tuple[float, float]:
        low, high = self.deltas(np.array([epsilon]), 0.0)
        return float(low[0]), float(high[0])

    def deltas(self, epsilons: Array, spacing: float) -> tuple[Array, Array]:
        """The bounds at many epsilons, whatever the spacing."""
        low, high = np.full(epsilons.size, -_LARGEST), np.full(epsilons.size, _LARGEST)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            rare, often = self._cuts(epsilons, middle)
            enough = self._shown_by_remove(rare) > self._shown_by_substitute(often)
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.zeros(epsilons.size), np.minimum(*(self._above(epsilons, logit) for logit in (low, high)))

    @cached_property
    def _shown_by_remove(self) -> Callable[[Array], Array]:
        return _shown(self.remove)

    @cached_property
    def _shown_by_substitute(self) -> Callable[[Array], Array]:
        return _shown(self.substitute)

    def _cuts(self, epsilons: Array, logit: Array) -> tuple[Array, Array]:
        """``ln c`` and ``ln d``, rounded down."""
        with np.errstate(divide="ignore"):  # ln(e^epsilon - 1), of any size
            far = epsilons + np.log1p(-np.exp(-np.maximum(epsilons, _SAME)))
            risen = np.where(epsilons > _SAME, far, np.log(np.expm1(np.minimum(epsilons, _SAME))))
        kept, drawn, share = math.log1p(-self.rate), math.log(self.rate), -np.logaddexp(0.0, -logit)
        rest = -np.logaddexp(0.0, logit)
        size = np.abs(np.maximum(risen, -_FARTHEST)) - kept - drawn - share
        remove = risen + kept - drawn - share - 8.0 * ELEMENTARY * size
        substitute = epsilons - rest - 8.0 * ELEMENTARY * (epsilons - rest)
        return np.maximum(remove, -_FARTHEST), substitute

    def _above(self, epsilons: Array, logit: Array) -> Array:
        """The bound for one choice of l at each epsilon."""
        cuts = self._cuts(epsilons, logit)
        most, nothing = np.zeros(epsilons.size), np.ones(epsilons.size, dtype=bool)
        for pair, cut, sign in zip((self.remove, self.substitute), cuts, (-1.0, 1.0), strict=True):
            log_share = -np.logaddexp(0.0, sign * logit) * (1.0 - 2.0 * ELEMENTARY)
            found = _in_order(partial(_most, pair), cut)
            most, nothing = most + exps_up(log_share) * found, nothing & (found == 0.0)
        return np.where(nothing, 0.0, np.minimum(ups(self.rate * most, 8.0 * ELEMENTARY) + UNDERFLOW, 1.0))


def _shown(pair: Pair) -> Callable[[Array], Array]:
    """About P(L > cut), at cuts in any order: a guide."""
    infinite = pair.mass_at_infinity
    if pair.tails(np.zeros(1)) is not None:

        def by_tails(cuts: Array) -> Array:
            tails = pair.tails(cuts)
            return np.exp(tails.log_p) + infinite if tails is not None else cuts

        return by_tails
    nodes = pair.nodes(_DEEP)
    order = np.argsort(nodes.loss, kind="stable")
    loss = nodes.loss[order]
    above = np.append(np.cumsum(np.exp(nodes.log_p[order])[::-1])[::-1], 0.0) + infinite
    return lambda cuts: above[np.searchsorted(loss, cuts, side="right")]


def _most(pair: Pair, cuts: Array) -> Array:
    return one_step_deltas(pair, cuts)[1]


def _in_order(ask: Callable[[Array], Array], cuts: Array) -> Array:
    """What is asked at cuts in increasing order, in their own."""
    order, found = np.argsort(cuts, kind="stable"), np.empty_like(cuts)
    for first in range(0, cuts.size, _AT_ONCE):
        own = order[first : first + _AT_ONCE]
        found[own] = ask(cuts[own])
    return found
