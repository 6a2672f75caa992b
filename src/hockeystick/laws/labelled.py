"""A labelled mixture of two pairs: a label that says nothing of the record, then the pair of that label.

With label A of probability t and label B of probability 1 - t under either measure, and the label released:

    h(a) = (1 - t) h_A(a) + t h_B(a),        every mass is (1 - t) times that of A plus t times that of B.

Here A is the usual pair, B the rare one, and t is a binomial tail, known to more digits than a float holds; its
rounding is in the stated errors of the masses, so that h is the curve of the exact t (docs/derivations/cut-batches.md).
Cost: that of both parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.laws.atom_rules import MOST_ATOMS, AtomSummand
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Array, CellMasses, Extreme, Measure, Nodes, Pair
from hockeystick.laws.labelled_rule import LabelledSummand
from hockeystick.numerics.binomial_tail import SEEN, BinomialTail
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.summand import Summand


@final
@dataclass(frozen=True)
class LabelledPair(Pair):
    """``usual`` with the probability below a binomial tail, ``rare`` with that of the tail, the label released.

    Parameters
    ----------
    usual, rare : Pair
        The pairs of the two labels.
    tail : BinomialTail
        Its probability is that of ``rare``.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> from hockeystick.laws.one_step import one_step_delta
    >>> pair = LabelledPair(GaussianPair(1.0), GaussianPair(1.0, 2.0), BinomialTail(1, 0.25, 1))
    >>> alone = [one_step_delta(part, 1.0)[0] for part in (pair.usual, pair.rare)]
    >>> bool(abs(one_step_delta(pair, 1.0)[0] - 0.75 * alone[0] - 0.25 * alone[1]) < 1e-14)
    True
    """

    usual: Pair
    rare: Pair
    tail: BinomialTail

    @property
    def _parts(self) -> tuple[tuple[Pair, float], tuple[Pair, float]]:
        """Both pairs with ``ln`` of their probabilities."""
        return (self.usual, self.tail.log_below), (self.rare, self.tail.log_above)

    @property
    def infimum(self) -> Extreme:
        ends = self.usual.infimum, self.rare.infimum
        return Extreme(min(end.value for end in ends), max(end.error for end in ends))

    @property
    def supremum(self) -> Extreme:
        ends = self.usual.supremum, self.rare.supremum
        return Extreme(max(end.value for end in ends), max(end.error for end in ends))

    @property
    def mass_at_infinity(self) -> float:
        return self._mixed(self.usual.mass_at_infinity, self.rare.mass_at_infinity)

    @property
    def reverse_mass_at_infinity(self) -> float:
        return self._mixed(self.usual.reverse_mass_at_infinity, self.rare.reverse_mass_at_infinity)

    def _mixed(self, usual: float, rare: float) -> float:
        """A mean of two masses, rounded up by far less than `INFINITE` more than they are."""
        if usual == rare == 0.0:
            return 0.0
        below, above = (Fraction(max(chance, SEEN)) for chance in (self.tail.below, self.tail.above))
        exact = below * Fraction(usual) + above * Fraction(rare)
        exact *= 1 + Fraction(Decimal("1e-29"))
        return min(math.nextafter(float(exact), math.inf), 1.0)

    @property
    def sampling_rate(self) -> float:
        return max(self.usual.sampling_rate, self.rare.sampling_rate)

    @property
    def is_discrete(self) -> bool:
        return self.usual.is_discrete and self.rare.is_discrete

    @property
    def anchors(self) -> tuple[float, ...]:
        return self.usual.anchors

    def cells(self, losses: Array) -> CellMasses:
        usual, rare = self.usual.cells(losses), self.rare.cells(losses)
        log_p, error_p = self._sum(usual.log_p, usual.error_p, rare.log_p, rare.error_p)
        log_q, error_q = self._sum(usual.log_q, usual.error_q, rare.log_q, rare.error_q)
        return CellMasses(log_p, log_q, error_p, error_q, np.maximum(usual.slack, rare.slack))

    def _sum(self, usual: Array, usual_error: Array, rare: Array, rare_error: Array) -> tuple[Array, Array]:
        """``ln`` of the sums of the masses of both parts, weighted, and bounds on their errors."""
        log_mass = np.logaddexp(self.tail.log_below + usual, self.tail.log_above + rare)
        size = np.where(np.isfinite(log_mass), np.abs(log_mass), 0.0)
        # A sum is off by a mean of what its terms are, weighted by mass: the error of a weight, the rounding of a
        # logarithm whose mean is at most 1 above ``size``; then exp, log1p and a last sum.
        rounding = self.tail.log_error + 3.0 * ELEMENTARY + 4.0 * U * (1.0 + size)
        return log_mass, np.maximum(usual_error, rare_error) + rounding

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        lows, highs = [], []
        log_below, log_above = min(log_below, -1.0), min(log_above, -1.0)  # so that a label of half the mass counts
        for pair, log_weight in self._parts:
            below, above = log_below - log_weight, log_above - log_weight
            if min(below, above) < -1e-3:  # else so rare a label does not count
                low, high = pair.loss_range(min(below, -1e-3), min(above, -1e-3), measure)
                lows.append(low)
                highs.append(high)
        return min(lows), max(highs)

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        rules = [(pair.nodes(log_tail, refine=refine), log_weight) for pair, log_weight in self._parts]
        loss = np.concatenate([rule.loss for rule, _ in rules])
        order = np.argsort(loss, kind="stable")
        return Nodes(
            loss[order],
            np.concatenate([rule.log_p + log_weight for rule, log_weight in rules])[order],
            np.concatenate([rule.log_q + log_weight for rule, log_weight in rules])[order],
        )

    @cached_property
    def atoms(self) -> AtomTable | None:
        return self._table(self.usual.atoms, self.rare.atoms)

    def atoms_but(self, log_drop: float) -> AtomTable | None:
        return self._table(self.usual.atoms_but(log_drop), self.rare.atoms_but(log_drop))

    def _table(self, usual: AtomTable | None, rare: AtomTable | None) -> AtomTable | None:
        if usual is None or rare is None:
            return None
        log_shares = self.tail.log_below, self.tail.log_above
        table = usual.beside(rare, log_shares, self.tail.log_error)
        return replace(table, infinite_p=self.mass_at_infinity, infinite_q=self.reverse_mass_at_infinity)

    def summand(self) -> Summand:
        if self.atoms is not None and 0 < self.atoms.size <= MOST_ATOMS:
            return AtomSummand(self.atoms)
        return LabelledSummand(self.usual.summand(), self.rare.summand(), self.tail)

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        loss = self.usual.sample(rng, size, measure)
        rare = rng.random(size) < float(self.tail.above)
        loss[rare] = self.rare.sample(rng, int(np.count_nonzero(rare)), measure)
        return loss
