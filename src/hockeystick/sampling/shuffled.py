"""Shuffled batches: a pass over the data in a random order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from hockeystick.composition import Direction
from hockeystick.errors import UnknownPairError
from hockeystick.laws.base import Pair
from hockeystick.sampling.base import AS_REMOVE, InBatches, Samplable


@final
@dataclass(frozen=True)
class Shuffled(InBatches):
    """One *epoch* on shuffled batches: the records are permuted, cut into equal batches, and each batch is used once.

    This is not Poisson sampling and is never accounted as such: for small noise its delta is larger by orders of
    magnitude (Chua et al. 2024). What is proved:

    - upper: every record takes part exactly once an epoch; given the permutation only its batch depends on it, so an
      epoch is dominated by *one unsampled step*, without any amplification;
    - lower, for Gaussian noise: all other records have value -1, and only the largest of the batches' results is
      looked at, or all of them where their curve is known.

    Parameters
    ----------
    mechanism : Step
        What is applied to every batch.
    batch_size : int
        b, at least 1.
    population : int
        n, a multiple of b: an epoch has n / b batches.
    """

    batches: ClassVar[str] = "shuffled"
    noun: ClassVar[str] = "a shuffled pass over the data"
    manner: ClassVar[str] = "from a shuffled pass over the data"
    not_covered: ClassVar[str] = (
        "batches taken from the same order in every epoch: the guarantee is for a fresh order each"
    )
    step_is_epoch: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.population % self.batch_size:
            raise ValueError(
                f"population must be a multiple of batch_size, got {self.population} and {self.batch_size}; drop the"
                " records that fill no batch"
            )

    @classmethod
    def sentence(cls, unit: str, parameters: Mapping[str, float]) -> str:
        return (
            f"shuffled: each step is one epoch, in which all {parameters['population']:,} records are put in a fresh"
            f" random order and cut into batches of {parameters['batch_size']:,}; every {unit} is in one of them"
        )

    @property
    def releases(self) -> int:
        """Batches in one epoch."""
        return self.population // self.batch_size

    def pair(self, direction: Direction) -> Pair:
        if direction in {"add", "remove"}:
            raise UnknownPairError(
                f"a record more changes how all records fall into shuffled batches: no pair is proved under"
                f" {direction!r}; use adjacency 'zero-out' or 'substitute'"
            )
        return self.mechanism.pair(AS_REMOVE.get(direction, direction))

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        if self.releases == 1:
            return self.mechanism.attained(AS_REMOVE.get(direction, direction))
        return self.mechanism.shuffled_lower(direction, self.releases) if isinstance(self.mechanism, Samplable) else ()

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        if self.releases == 1:
            return self.mechanism.provenance(AS_REMOVE.get(direction, direction))
        return super().provenance(direction)

    def bracketed(self) -> tuple[str, ...]:
        above = f"{self.releases} an epoch: the upper bound has no amplification, one unsampled step an epoch"
        below = (
            "the lower bound is that of known datasets (Chua et al. 2024). Accounting such batches as Poisson samples"
            " would claim more privacy than there is"
        )
        return f"shuffled batches, {above}", below
