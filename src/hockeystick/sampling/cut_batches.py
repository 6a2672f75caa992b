"""Poisson samples cut to a largest batch: what is drawn beyond it is dropped at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, final

from hockeystick.composition import Direction, Step
from hockeystick.decimals import plain
from hockeystick.errors import LEAST_RATE, UnknownPairError, check_rate, set_fields
from hockeystick.laws.base import Pair
from hockeystick.numerics.binomial_tail import SEEN, TAIL, BinomialTail
from hockeystick.numerics.rationals import float_beside
from hockeystick.sampling.base import Sampled, check_part
from hockeystick.sampling.poisson import Poisson


@final
@dataclass(frozen=True)
class CutBatches(Sampled):
    """A step on a Poisson sample, cut to a largest batch: of a larger sample a uniformly random part is kept.

    Whether at least B of the *other* n - 1 records are drawn, of probability t, does not depend on the record. If they
    are not, nothing is cut: the Poisson pair of rate g. If they are, the record is in the batch with the probability
    ``g' = B Pr[Bin(n, g) > B] / (n t)`` and pushes another one out: the pair of batches of fixed size, of rate g'.
    Under *remove* the pair is the labelled mixture of the two, under *add* its reverse
    (docs/derivations/cut-batches.md). No datasets are known to attain it; the lower side is that of other records with
    value 0, a Poisson sample of rate ``(1 - t) g + t g'``.

    Parameters
    ----------
    mechanism : Step
        What is applied to the batch.
    rate : float
        Probability g of being drawn, in (0, 1), or 1 where nothing can be cut.
    largest_batch : int
        B, at least 1 and at most ``population``.
    population : int
        n, the number of records; of two neighbours the larger has n records.
    """

    of_stated_population = True

    batches: ClassVar[str] = "cut-poisson"
    noun: ClassVar[str] = "Poisson sampling cut to a largest batch"
    manner: ClassVar[str] = "by Poisson sampling cut to a largest batch"
    not_covered: ClassVar[str] = (
        "batches cut by order instead of at random, or filled up: the guarantee is for Poisson samples of which a"
        " uniformly random part is kept"
    )

    mechanism: Step
    rate: float
    largest_batch: int
    population: int

    def __post_init__(self) -> None:
        super().__post_init__()
        rate = check_rate("rate", self.rate)
        most, records = check_part(largest_batch=self.largest_batch, population=self.population).values()
        if rate == 1.0 and most < records:
            raise ValueError(
                f"rate must be below 1 where batches are cut, got {self.rate!r}: all records cut to {most} are"
                " batches of fixed size, without_replacement"
            )
        set_fields(self, rate=rate, largest_batch=most, population=records)

    @classmethod
    def sentence(cls, unit: str, parameters: Mapping[str, float]) -> str:
        return (
            f"cut Poisson: every {unit} of {parameters['population']:,} joins each batch independently, with"
            f" probability {plain(parameters['rate'])}; of more than {parameters['largest_batch']:,} a uniformly random"
            f" {parameters['largest_batch']:,} are kept; of two neighbours the larger has {parameters['population']:,}"
        )

    @cached_property
    def _tail(self) -> BinomialTail | None:
        """The probability that at least B others are drawn; None where it is 0."""
        if self.largest_batch == self.population:
            return None
        return BinomialTail(self.population - 1, self.rate, self.largest_batch)

    def pair(self, direction: Direction) -> Pair:
        if self._tail is None:
            return Poisson(self.mechanism, self.rate).pair(direction)
        if direction not in {"remove", "add"}:
            raise UnknownPairError(
                f"no dominating pair is proved for Poisson samples cut to a largest batch under {direction!r}; use"
                " adjacency 'add-remove', or a largest batch that is the population"
            )
        from hockeystick.laws.labelled import LabelledPair  # loaded where batches may be cut

        # the curve grows with the rate
        share = float_beside(Fraction(self.rate) * Fraction(self._tail.mean_share) * (1 + _SLIP), up=True)
        rare = self.mechanism.pair("substitute").subsampled(max(share, LEAST_RATE))
        often = self.mechanism.to_sample(direction).pair("remove").subsampled(self.rate)
        return LabelledPair(often, rare, self._tail).under(direction)

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        if self._tail is None:
            return Poisson(self.mechanism, self.rate).attained(direction)
        if not self.mechanism.adds_noise:
            return ()
        tail = self._tail
        # a chance of 1e-1000000 has as many digits as a fraction: to leave it out lowers the rate
        below, above = (Fraction(chance) if chance > SEEN else Fraction(0) for chance in (tail.below, tail.above))
        drawn = below + above * Fraction(tail.mean_share)
        rate = float_beside(Fraction(self.rate) * drawn * (1 - 2 * _SLIP), up=False)
        if rate < LEAST_RATE:
            return ()
        sample = Poisson(self.mechanism, rate)
        known = sample.attained(direction)
        return (sample.pair(direction),) if known is None else known

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        if self._tail is None:
            return Poisson(self.mechanism, self.rate).provenance(direction)
        return super().provenance(direction)

    def bracketed(self) -> tuple[str, ...]:
        above = (
            f"Poisson samples cut to {self.largest_batch} of {self.population}: the upper bound takes it as released"
            " whether a batch was full without the record, which no datasets are known to attain"
        )
        return above, "the lower bound is that of a record beside others with value 0"


_SLIP = 2 * Fraction(TAIL)
