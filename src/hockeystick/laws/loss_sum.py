"""A composition of dominating pairs as a sum of independent losses with certified transforms.

Every pair is brought to a normal form ``base, rate, direction``: a reversed pair of a reversed pair is itself, and the
Gaussian and Laplace pairs are their own reversals (their losses have one law under either order). Gaussian pairs add up
to one normal loss; the others are grouped into batches of like pairs.

Guarantee: the rules built here carry bounds on all their errors. Pairs without a certified transform raise
`UnknownPairError`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, final

import numpy as np

from hockeystick.errors import UnknownPairError
from hockeystick.laws.atom_rules import (
    AtomBatch,
    DiscreteGaussianRule,
    FiniteAtoms,
    atoms_of,
)
from hockeystick.laws.base import Pair
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.laws.gaussian_rule import SubsampledGaussians
from hockeystick.laws.laplace import LaplacePair
from hockeystick.laws.laplace_rule import LaplaceRule
from hockeystick.laws.mixture import GaussianMixturePair
from hockeystick.laws.mixture_rule import MixtureRule
from hockeystick.laws.reversed import ReversedPair
from hockeystick.laws.subsampled import SubsampledPair
from hockeystick.laws.vectors import DiscretePair
from hockeystick.numerics.rounding import U, down, up
from hockeystick.transforms.lattice import SharedLattice, shared_lattice
from hockeystick.transforms.rule import LossRule, RuleSource, Sketch, Window
from hockeystick.transforms.saddle import LossSum

__all__ = ["PairSum"]

_BATCH = 128  # pairs in one rule
_MOST_STEPS = 2.0**40

Direction = Literal["remove", "add"]


@final
@dataclass(frozen=True)
class _Form:
    """``((1 - rate) B + rate A, B)`` for the base (A, B), or its reverse."""

    base: Pair
    rate: float
    direction: Direction


def _form(pair: Pair) -> _Form:
    """The normal form of a pair."""
    direction: Direction = "remove"
    rate = Fraction(1)
    while True:
        if isinstance(pair, ReversedPair) and rate == 1:
            direction = "add" if direction == "remove" else "remove"
            pair = pair.base
        elif isinstance(pair, ReversedPair) and isinstance(pair.base, GaussianPair | LaplacePair):
            pair = pair.base
        elif isinstance(pair, SubsampledPair) and isinstance(pair.base, DiscretePair):
            pair = pair.base.subsampled(pair.rate)  # exactly
        elif isinstance(pair, SubsampledPair):
            rate *= Fraction(pair.rate)
            pair = pair.base
        else:
            break
    if Fraction(float(rate)) != rate:
        raise UnknownPairError(f"the product of the rates of nested sampling is not a float: {rate}")
    return _Form(pair, float(rate), direction)


@final
class PairSum(LossSum):
    """The privacy loss of a composition in one direction.

    Parameters
    ----------
    parts : iterable of (Pair, int)
        Pairs and how often each is composed.

    Raises
    ------
    UnknownPairError
        For a pair without a certified transform, or more than 2^40 steps.
    """

    def __init__(self, parts: Iterable[tuple[Pair, int]]) -> None:
        self.parts = tuple(parts)
        self.log_drop = -math.inf
        forms: dict[_Form, int] = {}
        for pair, count in self.parts:
            form = _form(pair)
            forms[form] = forms.get(form, 0) + count
        if sum(forms.values()) > _MOST_STEPS:
            raise UnknownPairError("the transform of more than 2^40 steps is not certified")
        normal: list[float] = []
        self._sources: list[RuleSource] = []
        subsampled: dict[Direction, list[tuple[float, float, float]]] = {"remove": [], "add": []}
        atoms: dict[int, list[tuple[FiniteAtoms, float]]] = {}
        for form, total in forms.items():
            steps = float(total)
            if isinstance(form.base, GaussianPair) and form.rate == 1.0:
                normal.append(form.base.shift * form.base.shift * steps)
            elif isinstance(form.base, GaussianPair):
                subsampled[form.direction].append((form.base.shift, form.rate, steps))
            elif (own := _atoms(form)) is not None:
                atoms.setdefault(own.loss.size, []).append((own, steps))
            else:
                self._sources.append(_single(form, steps))
        self._variance = math.fsum(normal)
        for direction, rows in subsampled.items():
            self._sources += _gaussian_batches(rows, direction)
        for group in atoms.values():
            self._sources += _atom_batches(group)

    @property
    def gaussian_variance(self) -> float:
        """Sum of the squared shifts of the Gaussian pairs: a few roundings of each."""
        return self._variance

    @cached_property
    def infinite_mass(self) -> tuple[float, float]:
        """Bounds on the probability that some loss is infinite."""
        log_finite = math.fsum(source.log_finite for source in self._sources)
        if log_finite == 0.0:
            return 0.0, 0.0
        mass = -math.expm1(log_finite)  # of terms of one sign
        return max(down(mass, 64.0 * U), 0.0), min(up(mass, 64.0 * U), 1.0)

    @cached_property
    def mass_defect(self) -> float:
        """Bound on how far the mass of the composition of the P's is from one."""
        total = math.fsum(source.mass_defect for source in self._sources) * (1.0 + 8.0 * U)
        return up(math.expm1(2.0 * total), 8.0 * U) if total > 0.0 else 0.0

    @cached_property
    def largest_loss(self) -> float:
        """The largest finite loss of the sum, rounded up (nats)."""
        if self._variance > 0.0:
            return math.inf
        tops = [source.largest_loss for source in self._sources]
        return math.fsum(tops) + 4.0 * U * math.fsum(map(abs, tops))

    @cached_property
    def total_count(self) -> float:
        """Steps that are not plain Gaussian."""
        return math.fsum(source.steps for source in self._sources)

    @cached_property
    def typical_shift(self) -> float:
        """The largest scale of a part."""
        return max((source.scale for source in self._sources), default=1.0)

    def dropping(self, log_drop: float) -> PairSum:
        """The same sum, each of whose steps may leave out ``e^log_drop`` of its mass where its loss is largest."""
        other = copy.copy(self)
        other.log_drop = log_drop
        return other

    def rules(self, window: Window) -> Sequence[LossRule] | None:
        """Rules for everything but the normal part; None where one would be too long."""
        window = replace(window, log_drop=self.log_drop)
        found = [source.rule(window) for source in self._sources]
        rules = [rule for rule in found if rule is not None]
        return rules if len(rules) == len(found) else None

    def sketches(self, window: Window) -> Sequence[Sketch] | None:
        """The same without errors."""
        window = replace(window, log_drop=self.log_drop)
        found = [source.sketch(window) for source in self._sources]
        sketches = [sketch for sketch in found if sketch is not None]
        return sketches if len(sketches) == len(found) else None

    @property
    def on_lattice(self) -> bool:
        """Whether all pairs are discrete."""
        return self._variance == 0.0 and all(source.is_atomic for source in self._sources)

    def lattice(self, rules: Sequence[LossRule]) -> SharedLattice | None:
        """The lattice of discrete pairs, if they share one."""
        rows: list[tuple[Sequence[Fraction], float]] = []
        for source, rule in zip(self._sources, rules, strict=True):
            if not isinstance(source, AtomBatch | DiscreteGaussianRule):
                return None
            rows += source.precise(rule)
        return shared_lattice(rows)


def _atoms(form: _Form) -> FiniteAtoms | None:
    """The atoms of a discrete pair; None for other pairs."""
    atoms = atoms_of(form.base) if form.rate == 1.0 else None
    return atoms if atoms is None or form.direction == "remove" else atoms.reversed()


def _single(form: _Form, count: float) -> RuleSource:
    """The source of a pair that is not batched with others."""
    if isinstance(form.base, LaplacePair):
        return LaplaceRule(form.base.shift, form.rate, count, form.direction)
    if isinstance(form.base, GaussianMixturePair) and form.rate == 1.0:
        return MixtureRule(form.base, count, form.direction)
    if isinstance(form.base, DiscreteGaussianPair) and form.rate == 1.0:
        return DiscreteGaussianRule(form.base, count)
    sampled = "" if form.rate == 1.0 else f" sampled at rate {form.rate:g}"
    raise UnknownPairError(
        f"no certified transform is known for {form.base!r}{sampled}: use the certified lattice accountant"
    )


def _gaussian_batches(rows: list[tuple[float, float, float]], direction: Direction) -> list[RuleSource]:
    ordered = sorted(rows)  # like shifts need rules of like length
    chunks = [np.array(ordered[i : i + _BATCH]).T for i in range(0, len(ordered), _BATCH)]
    return [SubsampledGaussians(shift, rate, count, direction) for shift, rate, count in chunks]


def _atom_batches(group: list[tuple[FiniteAtoms, float]]) -> list[RuleSource]:
    chunks = [group[i : i + _BATCH] for i in range(0, len(group), _BATCH)]
    return [AtomBatch(tuple(a for a, _ in chunk), np.array([c for _, c in chunk])) for chunk in chunks]
