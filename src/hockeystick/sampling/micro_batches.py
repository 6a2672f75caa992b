"""Micro-batches: Poisson samples drawn apart, summed before noise is added once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from hockeystick.composition import Direction, Step
from hockeystick.decimals import plain
from hockeystick.errors import UnknownPairError, check_count, check_fields, check_rate
from hockeystick.laws.base import Pair
from hockeystick.sampling.base import Samplable, Sampled
from hockeystick.sampling.poisson import Poisson


@final
@dataclass(frozen=True)
class MicroBatches(Sampled):
    """A step on the sum of m micro-batches, each a Poisson sample of its own: gradient accumulation, parallel workers.

    Noise is added once, to the sum. The record is in a binomial number of the micro-batches and moves the sum by that
    number: under *remove* the pair is a mixture of shifts, for Gaussian noise alone (docs/derivations/cut-batches.md,
    section 3). One micro-batch is a Poisson sample.

    Parameters
    ----------
    mechanism : Step
        What is applied to the sum.
    rate : float
        Probability g that a record is in a micro-batch, in (0, 1].
    micro_batches : int
        m, at least 1 and at most 256.
    """

    batches: ClassVar[str] = "micro-batches"
    noun: ClassVar[str] = "a fresh Poisson sample for every micro-batch"
    manner: ClassVar[str] = "as a fresh Poisson sample for every micro-batch"
    not_covered: ClassVar[str] = (
        "one sample split into micro-batches, which is a Poisson sample, and noise added to every micro-batch"
    )

    mechanism: Step
    rate: float
    micro_batches: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, rate=check_rate, micro_batches=check_count)
        if self.micro_batches > _MOST:
            raise ValueError(f"micro_batches must be at most {_MOST}, got {self.micro_batches}")

    @classmethod
    def sentence(cls, unit: str, parameters: Mapping[str, float]) -> str:
        return (
            f"micro-batches: every {unit} joins each of the {parameters['micro_batches']:,} micro-batches of a step"
            f" independently, with probability {plain(parameters['rate'])}, and is clipped in each"
        )

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        """A member is drawn from every micro-batch: as many draws as members times micro-batches."""
        return Poisson(self.mechanism, self.rate).pair_of_group(direction, size * self.micro_batches)

    def attained_by_group(self, direction: Direction, size: int) -> tuple[Pair, ...] | None:
        return Poisson(self.mechanism, self.rate).attained_by_group(direction, size * self.micro_batches)

    def pair(self, direction: Direction) -> Pair:
        if self.micro_batches == 1:
            return Poisson(self.mechanism, self.rate).pair(direction)
        if direction != "substitute" and isinstance(self.mechanism, Samplable):
            return self.mechanism.drawn_repeatedly(self.rate, self.micro_batches).under(direction)
        raise UnknownPairError(
            f"no dominating pair is proved for micro-batches of {self.mechanism!r} under {direction!r}; use Gaussian"
            " noise and adjacency 'add-remove' or 'zero-out', or one micro-batch"
        )

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        # Gaussian noise alone is drawn repeatedly, and attained; one micro-batch is a Poisson sample of anything
        return Poisson(self.mechanism, self.rate).attained(direction) if self.micro_batches == 1 else None

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        return Poisson(self.mechanism, self.rate).provenance(direction) if self.micro_batches == 1 else ()


_MOST = 256  # terms of a mixture
