"""Pairs in normal form: whatever was reversed or subsampled, three shapes remain.

Every shape is closed under reversal, (P, Q) -> (Q, P), and under Poisson subsampling, (P, Q) -> ((1-g) Q + g P, Q):

- ``MixtureShape``: two mixtures of Gaussians of one width, centres in units of it;
- ``LaplaceTransform``: ``P = (1-a) Q0 + a P0``, ``Q = (1-b) Q0 + b P0`` for one Laplace pair (P0, Q0);
- ``Atoms``: finitely many outcomes.

All numbers are fractions: the floats of a pair stand for themselves, and nothing is rounded here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import final

from hockeystick.errors import UnknownPairError
from hockeystick.exact.atoms import (
    Atoms,
    BinomialSource,
    LaplaceSource,
    MirroredBinomialSource,
    RationalSource,
    UnmergedSource,
    WorstCaseSource,
)
from hockeystick.exact.laplace import LaplaceTransform
from hockeystick.laws import (
    BinomialPair,
    DiscreteLaplacePair,
    DiscretePair,
    GaussianMixturePair,
    GaussianPair,
    LaplacePair,
    Pair,
    ReversedPair,
    SubsampledPair,
    WorstCasePair,
)
from hockeystick.laws.either_way import EitherWayBinomialPair
from hockeystick.laws.unmerged import UnmergedPair

Mixture = tuple[tuple[Fraction, Fraction], ...]
"""``(centre, weight)``, centres increasing and distinct, weights above 0."""


def _blend(parts: tuple[tuple[Fraction, Mixture], ...]) -> Mixture:
    """The mixture of mixtures."""
    weights: dict[Fraction, Fraction] = {}
    for share, mixture in parts:
        for centre, weight in mixture:
            weights[centre] = weights.get(centre, Fraction(0)) + share * weight
    return tuple(sorted((c, w) for c, w in weights.items() if w > 0))


@final
@dataclass(frozen=True)
class MixtureShape:
    """Two Gaussian mixtures of unit width."""

    p: Mixture
    q: Mixture

    def reversed(self) -> MixtureShape:
        """(Q, P)."""
        return MixtureShape(self.q, self.p)

    def subsampled(self, rate: Fraction) -> MixtureShape:
        """((1 - rate) Q + rate P, Q)."""
        return MixtureShape(_blend(((1 - rate, self.q), (rate, self.p))), self.q)

    @property
    def shift_squared(self) -> Fraction | None:
        """mu^2 of a plain Gaussian pair, None for a proper mixture."""
        if len(self.p) > 1 or len(self.q) > 1 or self.p[0][1] != 1 or self.q[0][1] != 1:
            return None
        return (self.p[0][0] - self.q[0][0]) ** 2


def rational_atoms(pairs: Iterable[tuple[Fraction, Fraction]]) -> Atoms:
    """Two rational vectors; outcomes of equal likelihood ratio are merged, those of no mass left out."""
    merged: dict[Fraction | None, tuple[Fraction, Fraction]] = {}
    for p, q in pairs:
        if p or q:
            ratio = p / q if q else None
            before = merged.get(ratio, (Fraction(0), Fraction(0)))
            merged[ratio] = (before[0] + p, before[1] + q)
    return Atoms(RationalSource(tuple(merged.values())))


@final
@dataclass(frozen=True)
class AllocationShape:
    """One round of random allocation over ``steps`` steps of Gaussian noise, shift m: a pair that stands alone."""

    shift: Fraction
    steps: int
    mirrored: bool

    def reversed(self) -> AllocationShape:
        """(Q, P)."""
        return AllocationShape(self.shift, self.steps, not self.mirrored)

    def subsampled(self, rate: Fraction) -> Shape:
        """Not known."""
        raise UnknownPairError(f"no exact transform is known of a round that is itself sampled (rate {float(rate)!r})")


Shape = MixtureShape | LaplaceTransform | Atoms | AllocationShape


@singledispatch
def shape_of(pair: Pair) -> Shape:
    """The normal form of a pair.

    Raises
    ------
    UnknownPairError
        For a class of pairs that has no normal form here.
    """
    raise UnknownPairError(
        f"no exact transform is known for {type(pair).__name__}; "
        f"known are Gaussian, Laplace and discrete pairs, Gaussian mixtures, and these reversed or subsampled"
    )


@shape_of.register
def _(pair: GaussianPair) -> Shape:
    shift = Fraction(pair.sensitivity) / Fraction(pair.sigma)
    return MixtureShape(((shift, Fraction(1)),), ((Fraction(0), Fraction(1)),))


@shape_of.register
def _(pair: LaplacePair) -> Shape:
    return LaplaceTransform(Fraction(pair.sensitivity) / Fraction(pair.scale), Fraction(1), Fraction(0))


@shape_of.register
def _(pair: GaussianMixturePair) -> Shape:
    sides = ((pair.p_weights, pair.p_centres), (pair.q_weights, pair.q_centres))
    sigma = Fraction(pair.sigma)
    p, q = (
        _blend(tuple((Fraction(w), ((Fraction(c) / sigma, Fraction(1)),)) for w, c in zip(*side, strict=True)))
        for side in sides
    )
    return MixtureShape(p, q) if p != q else rational_atoms(((Fraction(1), Fraction(1)),))


@shape_of.register
def _(pair: DiscretePair) -> Shape:
    return rational_atoms((Fraction(p), Fraction(q)) for p, q in zip(pair.p, pair.q, strict=True))


@shape_of.register
def _(pair: DiscreteLaplacePair) -> Shape:
    return Atoms(LaplaceSource(Fraction(pair.scale), pair.sensitivity))


@shape_of.register
def _(pair: BinomialPair) -> Shape:
    return Atoms(BinomialSource(pair.trials, Fraction(pair.probability), pair.sensitivity))


@shape_of.register
def _(pair: EitherWayBinomialPair) -> Shape:
    return Atoms(MirroredBinomialSource(pair.base.trials, pair.base.sensitivity, Fraction(pair.rate)))


@shape_of.register
def _(pair: UnmergedPair) -> Shape:
    noise = shape_of(pair.base)
    if not (isinstance(noise, Atoms) and isinstance(noise.source, LaplaceSource)):
        raise UnknownPairError(
            "no exact transform is known of Laplace noise on a Poisson sample under substitution; of discrete Laplace"
            " noise it is"
        )
    return Atoms(UnmergedSource(noise.source, Fraction(pair.rate)))


@shape_of.register
def _(pair: WorstCasePair) -> Shape:
    lost = Fraction(pair.delta)
    if pair.epsilon == 0:
        return rational_atoms(((lost, Fraction(0)), (1 - lost, 1 - lost), (Fraction(0), lost)))
    return Atoms(WorstCaseSource(Fraction(pair.epsilon), lost))


@shape_of.register
def _(pair: ReversedPair) -> Shape:
    return shape_of(pair.base).reversed()


@shape_of.register
def _(pair: SubsampledPair) -> Shape:
    return shape_of(pair.base).subsampled(Fraction(pair.rate))
