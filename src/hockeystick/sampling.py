"""Sampling: how the records of one step are chosen, and what that does to its dominating pair.

For a base mechanism whose pair under *remove* is (P, Q), and (P_s, Q_s) under *substitute*, with rate g:

================  ======================  ======================  =======================  =========================
sampling          remove                  add                     substitute               zero-out, zero-in
================  ======================  ======================  =======================  =========================
none              (P, Q)                  (Q, P)                  (P_s, Q_s)               as remove, add
Poisson           ((1-g)Q + gP, Q)        its reverse             the mechanism's own      as remove, add
fixed size b/n    ((1-g)Q_s + gP_s, Q_s)  its reverse             joined (`pairs.joined`)  refused
shuffled batches  refused                 refused                 (P_s, Q_s) an epoch      (P, Q), (Q, P) an epoch
================  ======================  ======================  =======================  =========================

Sources: Poisson and fixed size under add and remove, 003's Theorem 10 (Zhu, Dong and Wang 2022, Theorem 11); under
substitute, 003's Proposition 13 and Theorem 15; shuffled batches, Chua et al. 2024. Derived anew in
docs/derivations/fixed-size.md and docs/derivations/shuffling.md; in words in docs/concepts/sampling.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from hockeystick.composition import Direction, Step
from hockeystick.errors import UnknownPairError, check_count, check_rate
from hockeystick.laws.base import Pair

__all__ = ["Poisson", "Samplable", "Shuffled", "WithoutReplacement"]

_AS_REMOVE: dict[str, Direction] = {"zero-out": "remove", "zero-in": "add"}


class Samplable(Step):
    """A step that can be applied to a sample of the records."""

    def substitution_on_poisson(self, rate: float) -> Pair:
        """The pair of a Poisson sample under substitution, where one is proved for this mechanism.

        Raises
        ------
        UnknownPairError
            Where none is.
        """
        raise UnknownPairError(
            f"no dominating pair is proved for {self!r} on a Poisson sample (rate {rate!r}) under 'substitute'; use"
            " adjacency 'add-remove' or 'zero-out', or Gaussian noise"
        )

    def shuffled_lower(self, direction: Direction, batches: int) -> tuple[Pair, ...]:
        """Pairs below those of known datasets for one epoch of shuffled batches; none by default."""
        return ()


@final
@dataclass(frozen=True)
class Poisson(Step):
    """A step on a Poisson sample: every record takes part independently with the same probability.

    Under *remove* the pair is ((1-g)Q + gP, Q), under *add* its reverse (003, Theorem 10); zero-out and zero-in are
    the same. Under *substitute* a pair is proved for Gaussian noise only (003, Proposition 13).

    Parameters
    ----------
    mechanism : Step
        What is applied to the sample.
    rate : float
        Probability g of taking part, in (0, 1].
    """

    mechanism: Step
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check_rate("rate", self.rate))

    @property
    def stated_by_caller(self) -> bool:
        return self.mechanism.stated_by_caller

    def pair(self, direction: Direction) -> Pair:
        direction = _AS_REMOVE.get(direction, direction)
        if direction == "remove":
            return self.mechanism.pair("remove").subsampled(self.rate)
        if direction == "add":
            return self.mechanism.pair("remove").subsampled(self.rate).reversed()
        if self.rate == 1.0:
            return self.mechanism.pair(direction)
        if isinstance(self.mechanism, Samplable):
            return self.mechanism.substitution_on_poisson(self.rate)
        raise UnknownPairError(f"no dominating pair is known for {self!r} under {direction!r}; use 'add-remove'")


@final
@dataclass(frozen=True)
class WithoutReplacement(Step):
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

    mechanism: Step
    batch_size: int
    population: int

    def __post_init__(self) -> None:
        _check_sizes(self)

    @property
    def rate(self) -> Fraction:
        """The rate g = batch_size / population, exactly."""
        return Fraction(self.batch_size, self.population)

    @property
    def stated_by_caller(self) -> bool:
        return self.mechanism.stated_by_caller

    def pair(self, direction: Direction) -> Pair:
        # where b / n is no float64 it is rounded up: the curve grows with the rate
        return self._pairs(direction, _rounded(self.rate, up=True))[0]

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        upper, lower = (self._pairs(direction, _rounded(self.rate, up=side)) for side in (True, False))
        return None if len(upper) == 1 and upper == lower else lower[-2:]

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        batches = f"fixed-size batches, {self.batch_size} of {self.population}"
        if direction == "substitute" and self.rate < 1:
            above = (
                "the upper bound joins the curves of both directions (Lebeda et al., 'Avoiding Pitfalls for Privacy"
                " Accounting of Subsampled Mechanisms under Composition'), which no datasets are known to attain"
            )
            return (f"{batches}: {above}; the lower bound is attained by datasets (their section 7)",)
        if self.attained(direction) is None:
            return ()
        return (f"{batches}: the rate is no float64; it is rounded up for the upper bound, down for the lower",)

    def _pairs(self, direction: Direction, rate: float) -> tuple[Pair, ...]:
        """The dominating pair, then, where it is not attained, those of datasets that are."""
        if direction in _AS_REMOVE:
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
        return (mixture if direction == "remove" else mixture.reversed(),)


@final
@dataclass(frozen=True)
class Shuffled(Step):
    """One *epoch* on shuffled batches: the records are permuted, cut into equal batches, and each batch is used once.

    This is not Poisson sampling and is never accounted as such: for small noise its delta is larger by orders of
    magnitude (Chua et al. 2024). What is proved:

    - upper: every record takes part exactly once an epoch; given the permutation only its batch depends on it, so an
      epoch is dominated by *one unsampled step*, without any amplification;
    - lower, for Gaussian noise: all other records have value -1, and only the largest of the batches' results is
      looked at.

    Parameters
    ----------
    mechanism : Step
        What is applied to every batch.
    batch_size : int
        b, at least 1.
    population : int
        n, a multiple of b: an epoch has n / b batches.
    """

    mechanism: Step
    batch_size: int
    population: int

    def __post_init__(self) -> None:
        _check_sizes(self)
        if self.population % self.batch_size:
            raise ValueError(
                f"population must be a multiple of batch_size, got {self.population} and {self.batch_size}; drop the"
                " records that fill no batch"
            )

    @property
    def batches(self) -> int:
        """Batches in one epoch."""
        return self.population // self.batch_size

    @property
    def stated_by_caller(self) -> bool:
        return self.mechanism.stated_by_caller

    def pair(self, direction: Direction) -> Pair:
        if direction in {"add", "remove"}:
            raise UnknownPairError(
                f"a record more changes how all records fall into shuffled batches: no pair is proved under"
                f" {direction!r}; use adjacency 'zero-out' or 'substitute'"
            )
        return self.mechanism.pair(_AS_REMOVE.get(direction, direction))

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        if self.batches == 1:
            return None
        return self.mechanism.shuffled_lower(direction, self.batches) if isinstance(self.mechanism, Samplable) else ()

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        if self.attained(direction) is None:
            return ()
        note = (
            f"shuffled batches, {self.batches} an epoch: the upper bound has no amplification, one unsampled step an"
            " epoch; the lower bound looks at the largest batch result of known datasets (Chua et al. 2024). Accounting"
            " such batches as Poisson samples would claim more privacy than there is"
        )
        return (note,)


def _check_sizes(step: WithoutReplacement | Shuffled) -> None:
    batch_size = check_count("batch_size", step.batch_size)
    population = check_count("population", step.population)
    if batch_size > population:
        raise ValueError(f"batch_size must be at most population, got {batch_size} of {population}")
    object.__setattr__(step, "batch_size", batch_size)
    object.__setattr__(step, "population", population)


def _rounded(rate: Fraction, *, up: bool) -> float:
    """The float64 next to the rate on one side, the rate itself where it is one."""
    nearest = float(rate)
    if up:
        return math.nextafter(nearest, 1.0) if Fraction(nearest) < rate else nearest
    return math.nextafter(nearest, 0.0) if Fraction(nearest) > rate else nearest
