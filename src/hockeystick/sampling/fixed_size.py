"""Batches of a fixed size, drawn without replacement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from hockeystick.composition import Direction
from hockeystick.errors import UnknownPairError
from hockeystick.laws.base import Pair
from hockeystick.numerics.rationals import float_beside
from hockeystick.sampling.base import AS_REMOVE, InBatches, Samplable

_LOPSIDED = "the pair stated for an exchange is not known to be symmetric: no datasets are known to attain it"


@final
@dataclass(frozen=True)
class WithoutReplacement(InBatches):
    """A step on a batch of fixed size, drawn without replacement: all batches are equally likely.

    When the record is in the batch it pushes another one out, so that the base mechanism's substitution pair counts, of
    twice the add/remove sensitivity for a sum. With g = batch_size / population:

    - *remove*: ((1-g)Q_s + gP_s, Q_s), *add*: its reverse (003, Theorem 10), attained by datasets;
    - *substitute*: two curves joined at a = 1 (003, Theorem 15), an upper bound. The lower bound is the best way to
      give some steps one direction and the others the other (003, section 7).

    Parameters
    ----------
    mechanism : Step
        What is applied to the batch.
    batch_size : int
        b, at least 1.
    population : int
        n, the number of records, at least b; of two neighbours under add-remove the larger has n records.
    """

    batches: ClassVar[str] = "fixed-size"
    noun: ClassVar[str] = "random sets of fixed size"
    manner: ClassVar[str] = "as random sets of fixed size"
    not_covered: ClassVar[str] = "batches taken from a shuffled dataset: the guarantee is for fresh sets at every step"

    @classmethod
    def sentence(cls, unit: str, parameters: Mapping[str, float]) -> str:
        return (
            f"fixed size: every batch is a uniformly random set of {parameters['batch_size']:,} out of"
            f" {parameters['population']:,}, drawn afresh for each step; every {unit} is as likely to be in it"
        )

    @property
    def rate(self) -> Fraction:
        """The rate g = batch_size / population, exactly."""
        return Fraction(self.batch_size, self.population)

    def pair(self, direction: Direction) -> Pair:
        # where b / n is no float64 it is rounded up: the curve grows with the rate
        return self._pairs(direction, float_beside(self.rate, up=True))[0]

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        """A hypergeometric number of the group is drawn, and each of them pushes another record out."""
        if direction in {"remove", "add"} and isinstance(self.mechanism, Samplable):
            pair = self.mechanism.drawn_together(batch_size=self.batch_size, population=self.population, size=size)
            return pair.under(direction)
        return super().pair_of_group(direction, size)

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        if not self._is_shown or self._is_lopsided:
            return ()
        upper, lower = (self._pairs(direction, float_beside(self.rate, up=side)) for side in (True, False))
        return None if len(upper) == 1 and upper == lower else lower[-2:]

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        if not self._is_shown:
            return self.mechanism.provenance("substitute")
        batches = f"fixed-size batches, {self.batch_size} of {self.population}"
        if direction == "substitute" and self.rate < 1:
            above = (
                "the upper bound joins the curves of both directions (Lebeda et al., 'Avoiding Pitfalls for Privacy"
                " Accounting of Subsampled Mechanisms under Composition'), which no datasets are known to attain"
            )
            below = _LOPSIDED if self._is_lopsided else "the lower bound is attained by datasets (their section 7)"
            return (f"{batches}: {above}; {below}",)
        if self._is_lopsided:
            return (f"{batches}: {_LOPSIDED}",)
        if self.attained(direction) is None:
            return ()
        return (f"{batches}: the rate is no exact float64: it is rounded up for the upper bound, down for the lower",)

    @property
    def _is_shown(self) -> bool:
        """Whether datasets show the mechanism's pair in every batch: on a sample of a batch none are known to."""
        return isinstance(self.mechanism, Samplable) and self.mechanism.attained("substitute") is None

    @property
    def _is_lopsided(self) -> bool:
        """Whether the caller states a pair that datasets may not attain: two records may be exchanged either way."""
        return self.stated_by_caller and self.rate < 1 and not self.mechanism.pair("substitute").is_symmetric

    def _pairs(self, direction: Direction, rate: float) -> tuple[Pair, ...]:
        """The dominating pair, then, where it is not attained, those of datasets that are."""
        if direction in AS_REMOVE:
            raise UnknownPairError(
                f"no dominating pair is stated for fixed-size batches under {direction!r}; use 'substitute', whose"
                " upper bound covers it, since a null record is one with value 0"
            )
        base = self.mechanism.pair("substitute")
        taken = self.rate if base.takes_fractions else rate
        mixture = base.subsampled(taken)
        if direction == "substitute":
            if self.rate == 1:
                return (base,)
            return base.joined(taken), mixture, mixture.reversed()
        if self.rate == 1:
            raise UnknownPairError(
                f"the smaller of two neighbouring datasets has {self.population - 1} records and no batch of"
                f" {self.batch_size}; use adjacency 'substitute', or a population that counts one more record"
            )
        return (mixture.under(direction),)
