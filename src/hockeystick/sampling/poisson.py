"""Poisson sampling: every record joins each batch independently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from hockeystick.composition import Direction, Step
from hockeystick.decimals import plain
from hockeystick.errors import UnknownPairError, check_fields, check_rate
from hockeystick.laws.base import Pair
from hockeystick.sampling.base import AS_REMOVE, Samplable, Sampled, check_part

_BOTH_PAIRS = (
    "Poisson samples: the upper bound takes the pairs under remove and under substitute together, which no datasets are"
    " known to attain; the lower bound is that of a record that becomes as good as none, where one is known"
)

_ATTAINED = "Poisson samples: datasets attain the pair, of which a rate is rounded up above and down below"


@final
@dataclass(frozen=True)
class Poisson(Sampled):
    """A step on a Poisson sample: every record takes part independently with the same probability.

    Under *remove* the pair is ((1-g)Q + gP, Q), under *add* its reverse (003, Theorem 10); zero-out and zero-in are
    the same, a null record being as good as none. Under *substitute* noise on a sum is moved up where one record is
    drawn and down where the other is (003, Proposition 13, for Gaussian noise); other steps have bounds that their
    pairs under remove and substitute prove together (docs/derivations/fixed-size.md, section 4).

    Parameters
    ----------
    mechanism : Step
        What is applied to the sample.
    rate : float
        Probability g of taking part, in (0, 1].
    """

    batches: ClassVar[str] = "poisson"
    noun: ClassVar[str] = "Poisson sampling"
    manner: ClassVar[str] = "by Poisson sampling"
    not_covered: ClassVar[str] = (
        "batches taken from a shuffled dataset or of a fixed size: the guarantee is for Poisson sampling"
    )
    written_as: ClassVar[tuple[str, ...]] = ("by_size",)

    mechanism: Step
    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, rate=check_rate)

    @classmethod
    def by_size(cls, mechanism: Step, *, batch_size: int, population: int) -> Poisson:
        """Poisson sampling, its rate given as an expected batch size over a number of records, known to all.

        Neighbours of another number of records have the same rate: what is accounted is the quotient.

        Parameters
        ----------
        mechanism : Step
            What is applied to the sample.
        batch_size : int
            Expected size of a batch, at least 1.
        population : int
            Records in all, at least ``batch_size``.
        """
        size, records = check_part(batch_size=batch_size, population=population).values()
        return cls(mechanism, size / records)

    @classmethod
    def sentence(cls, unit: str, parameters: Mapping[str, float]) -> str:
        if "rate" in parameters:
            rate = plain(parameters["rate"])
        else:
            size, records = parameters["batch_size"], parameters["population"]
            rate = f"{plain(float(f'{size / records:.5g}'))} ({size:,} of {records:,} expected)"
        return f"Poisson: every {unit} joins each batch independently, with probability {rate}"

    def pair(self, direction: Direction) -> Pair:
        if direction != "substitute":
            return self.mechanism.to_sample(direction).pair("remove").subsampled(self.rate).under(direction)
        if self.rate == 1.0:
            return self.mechanism.pair(direction)
        if isinstance(self.mechanism, Samplable):
            return self.mechanism.substitution_on_poisson(self.rate)[0]
        raise UnknownPairError(f"no dominating pair is known for {self!r} under {direction!r}; use 'add-remove'")

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        """A binomial number of the group is drawn, as of a record that is drawn from many micro-batches."""
        direction = AS_REMOVE.get(direction, direction)
        if self.rate == 1.0:
            return self.mechanism.pair_of_group(direction, size)
        if direction in {"remove", "add"} and isinstance(self.mechanism, Samplable):
            return self.mechanism.drawn_repeatedly(self.rate, size).under(direction)
        return super().pair_of_group(direction, size)

    def attained_by_group(self, direction: Direction, size: int) -> tuple[Pair, ...] | None:
        return self.mechanism.attained_by_group(direction, size) if self.rate == 1.0 else None

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        if direction == "substitute":
            if self.rate == 1.0:
                return self.mechanism.attained(direction)
            sampled = self.mechanism
            return sampled.substitution_on_poisson(self.rate)[1] if isinstance(sampled, Samplable) else None
        known = self.mechanism.to_sample(direction).attained("remove")
        return None if known is None else tuple(pair.subsampled(self.rate).under(direction) for pair in known)

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        if direction == "substitute" and self.rate < 1.0 and isinstance(self.mechanism, Samplable):
            shown = self.mechanism.substitution_on_poisson(self.rate)[1]
            return () if shown is None else (_ATTAINED if len(shown) == 1 else _BOTH_PAIRS,)
        return self.mechanism.provenance(AS_REMOVE.get(direction, direction))
