"""The reverse (Q, P) of a pair: the *add* direction of a mechanism whose *remove* pair is (P, Q)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import (
    Array,
    CellMasses,
    CertifiedCurve,
    Extreme,
    GaussianTail,
    LossQuantum,
    Measure,
    Nodes,
    Pair,
    derives,
)
from hockeystick.transforms.summand import Summand


@derives("reversed")
@final
@dataclass(frozen=True)
class ReversedPair(Pair):
    """(Q, P) for a base pair (P, Q): losses change sign, the two measures trade places.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> GaussianPair(2.0).reversed().reversed() == GaussianPair(2.0)
    True
    """

    base: Pair

    @cached_property
    def infimum(self) -> Extreme:
        return -self.base.supremum

    @cached_property
    def supremum(self) -> Extreme:
        return -self.base.infimum

    @cached_property
    def sampling_rate(self) -> float:
        return self.base.sampling_rate

    @cached_property
    def gaussian_mu(self) -> Fraction | None:
        return self.base.gaussian_mu  # mirror the line

    @property
    def gaussian_tail(self) -> GaussianTail | None:
        return self.base.gaussian_tail

    @property
    def with_tails(self) -> Pair:
        tails = self.base.with_tails
        return self if tails is self.base else tails.reversed()

    @property
    def mass_at_infinity(self) -> float:
        return self.base.reverse_mass_at_infinity

    @property
    def reverse_mass_at_infinity(self) -> float:
        return self.base.mass_at_infinity

    @property
    def is_discrete(self) -> bool:
        return self.base.is_discrete

    @property
    def is_merged(self) -> bool:
        return self.base.is_merged

    @property
    def anchors(self) -> tuple[float, ...]:
        return tuple(-loss for loss in reversed(self.base.anchors))

    @property
    def loss_quantum(self) -> LossQuantum | None:
        return self.base.loss_quantum

    @property
    def curve(self) -> CertifiedCurve | None:
        curve = self.base.curve
        return None if curve is None else curve.reversed()

    @cached_property
    def atoms(self) -> AtomTable | None:
        atoms = self.base.atoms
        return None if atoms is None else atoms.reversed()

    def atoms_but(self, log_drop: float) -> AtomTable | None:
        atoms = self.base.atoms_but(log_drop)
        return None if atoms is None else atoms.reversed()

    def cells(self, losses: Array) -> CellMasses:
        return self.base.cells(-losses[::-1]).reversed()

    def tails(self, cuts: Array, *, upper: bool = True) -> CellMasses | None:
        found = self.base.tails(-cuts, upper=not upper)
        if found is None:
            return None
        return CellMasses(found.log_q, found.log_p, found.error_q, found.error_p, found.slack)

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        low, high = self.base.loss_range(log_above, log_below, "Q" if measure == "P" else "P")
        return -high, -low

    def loss_ranges(self, log_below: Array, log_above: Array, measure: Measure = "P") -> tuple[Array, Array]:
        low, high = self.base.loss_ranges(log_above, log_below, "Q" if measure == "P" else "P")
        return -high, -low

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        base = self.base.nodes(log_tail, refine=refine)
        return Nodes(-base.loss, base.log_q, base.log_p)

    def summand(self) -> Summand:
        return self.base.summand().reversed()

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        return -self.base.sample(rng, size, "Q" if measure == "P" else "P")

    def reversed(self) -> Pair:
        return self.base
