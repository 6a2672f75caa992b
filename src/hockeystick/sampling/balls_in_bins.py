"""Balls in bins: every record is put into one of b bins once, and bin i is used in step i of every epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from hockeystick.composition import Direction, Step
from hockeystick.errors import UnknownPairError, check_count, check_fields
from hockeystick.laws.base import Pair
from hockeystick.sampling.base import Sampled
from hockeystick.sampling.random_allocation import allocated_pairs, attained_by, pair_with_ratio


@final
@dataclass(frozen=True)
class BallsInBins(Sampled):
    """A *whole run* on fixed bins: every record is put into one of b bins once, bin i is used in step i of every epoch.

    All results of all E epochs are released. Bins are not drawn again, so that epochs do not compose: what is learnt of
    a record's bin in one epoch holds in the next. The results of one bin are E steps on the same records; with (P, Q)
    the pair of these, under *remove*, the run has the pair of one round of random allocation on b steps (Chua et al.
    2025).

    Parameters
    ----------
    mechanism : Step
        What is applied to the records of a bin.
    bins : int
        b, at least 1: steps in an epoch.
    epochs : int
        E, at least 1. More than one: for Gaussian noise, where E steps on the same records are one with less noise.
    """

    batches: ClassVar[str] = "balls-in-bins"
    noun: ClassVar[str] = "bins that stay fixed for the whole run"
    manner: ClassVar[str] = "from bins that stay fixed for the whole run"
    not_covered: ClassVar[str] = (
        "bins of one size, as a shuffled dataset cut into equal batches has them: the guarantee is for records that are"
        " put into bins independently, nobody but the trainer knowing which. A second run draws bins of its own"
    )
    step_is_epoch: ClassVar[bool] = True
    step_is_run: ClassVar[bool] = True

    mechanism: Step
    bins: int
    epochs: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, bins=check_count, epochs=check_count)

    @classmethod
    def sentence(cls, unit: str, parameters: Mapping[str, float]) -> str:
        return (
            f"balls in bins: once, before the run, every {unit} is put into one of {parameters['bins']:,} bins,"
            f" uniformly and independently; in each of {parameters.get('epochs', 1):,} epochs every bin is used once,"
            " in the same order"
        )

    @property
    def releases(self) -> int:
        """Steps in the run."""
        return self.bins * self.epochs

    def pair(self, direction: Direction) -> Pair:
        return self._pairs(direction)[0]

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        return attained_by(self.mechanism, self._pairs(direction))

    def bracketed(self) -> tuple[str, ...]:
        note = (
            f"balls in bins, {self.bins} bins for {self.epochs} epochs: the bins are fixed for the whole run, which is"
            " one release and no composition of epochs"
        )
        return (note,)

    def _pairs(self, direction: Direction) -> tuple[Pair, Pair]:
        """Pairs above and below that of the run."""
        base = pair_with_ratio(self.mechanism, direction, "balls in bins")
        repeated = (base, base) if self.epochs == 1 else base.repeated(self.epochs)
        if repeated is None:
            raise UnknownPairError(
                f"several epochs on the same bins need noise of which {self.epochs} steps on the same records are one"
                f" pair: Gaussian noise has that, {self.mechanism!r} has not"
            )
        below, above = repeated
        return allocated_pairs(above, self.bins, direction)[0], allocated_pairs(below, self.bins, direction)[1]
