"""What a mechanism is: a step that can also be applied to a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args, overload

from hockeystick.composition import Direction
from hockeystick.errors import check_choice, check_count, check_fields
from hockeystick.laws.base import Pair
from hockeystick.sampling import (
    BallsInBins,
    CutBatches,
    MicroBatches,
    Poisson,
    RandomAllocation,
    Samplable,
    Shuffled,
    WithoutReplacement,
)

Values = Literal["signed", "counts"]
"""Where integer values lie: in -sensitivity..sensitivity, or in 0..sensitivity."""

VALUES: tuple[str, ...] = get_args(Values)


class Mechanism(Samplable):
    """An unsampled mechanism: builds a dominating pair for a direction, nothing else."""

    @overload
    def poisson(
        self, rate: float | None = None, *, batch_size: int | None = None, population: int | None = None
    ) -> Poisson: ...
    @overload
    def poisson(
        self,
        rate: float | None = None,
        *,
        batch_size: int | None = None,
        population: int | None = None,
        micro_batches: int,
    ) -> MicroBatches: ...
    @overload
    def poisson(
        self,
        rate: float | None = None,
        *,
        batch_size: int | None = None,
        population: int | None = None,
        largest_batch: int,
    ) -> CutBatches: ...
    def poisson(
        self,
        rate: float | None = None,
        *,
        batch_size: int | None = None,
        population: int | None = None,
        micro_batches: int | None = None,
        largest_batch: int | None = None,
    ) -> Poisson | MicroBatches | CutBatches:
        """The mechanism on a Poisson sample of the records, on the sum of several, or on one that is cut.

        Parameters
        ----------
        rate : float, optional
            Probability that a record takes part, in (0, 1]; or, instead:
        batch_size, population : int, optional
            Expected records in a batch, and records in all: their quotient is the rate.
        micro_batches : int, optional
            How many samples of this rate are drawn apart and summed before noise is added once.
        largest_batch : int, optional
            Most records that a batch may hold, a surplus being dropped at random; it needs ``population``, too.
        """
        if largest_batch is not None and micro_batches is not None:
            raise ValueError("micro_batches and largest_batch exclude each other: no pair is proved for both at once")
        if largest_batch is not None and population is None:
            raise TypeError("largest_batch needs population: give both")
        if batch_size is not None and population is not None and rate is None:
            whole = Poisson.by_size(self, batch_size=batch_size, population=population)
        elif rate is None or batch_size is not None or (population is not None and largest_batch is None):
            raise TypeError("give either rate, or batch_size and population")
        else:
            whole = Poisson(self, rate)
        if largest_batch is not None and population is not None:
            return CutBatches(self, whole.rate, largest_batch, population)
        return whole if micro_batches is None else MicroBatches(self, whole.rate, micro_batches)

    def without_replacement(self, *, batch_size: int, population: int) -> WithoutReplacement:
        """The mechanism on a batch of fixed size, all batches of that size being equally likely.

        Parameters
        ----------
        batch_size : int
            Records in a batch, at least 1.
        population : int
            Records in all, at least ``batch_size``.
        """
        return WithoutReplacement(self, batch_size, population)

    def shuffled(self, *, batch_size: int, population: int) -> Shuffled:
        """One epoch of this mechanism on shuffled batches, each used once.

        Parameters
        ----------
        batch_size : int
            Records in a batch, at least 1.
        population : int
            Records in all, a multiple of ``batch_size``.
        """
        return Shuffled(self, batch_size, population)

    def random_allocation(self, *, steps: int, selected: int = 1) -> RandomAllocation:
        """One round of random allocation: every record takes part in so many of the steps, uniformly at random.

        Every round allocates afresh: ``mechanism.random_allocation(steps=100) * 20`` is twenty rounds. Where records
        keep their place through the run it is `balls_in_bins`.

        Parameters
        ----------
        steps : int
            Steps in a round, at least 1.
        selected : int
            In how many of them a record takes part, from 1 to ``steps``. Between these two the answer is a bracket
            that does not close: rounds of fewer steps above, known datasets below.
        """
        return RandomAllocation(self, steps, selected)

    def balls_in_bins(self, *, bins: int, epochs: int = 1) -> BallsInBins:
        """A whole run on bins that stay fixed: bin i is used in step i of every epoch.

        Where every epoch allocates afresh it is `random_allocation`, which reveals far less.

        Parameters
        ----------
        bins : int
            Steps in an epoch, at least 1.
        epochs : int
            How often every bin is used, at least 1.
        """
        return BallsInBins(self, bins, epochs)


class IntegerSum(Mechanism):
    """Noise on a sum of integers, a frozen dataclass; log-concave noise, so that the largest shift dominates."""

    holds_under_all = True

    sensitivity: int
    values: Values

    def __post_init__(self) -> None:
        check_fields(self, sensitivity=check_count)
        check_choice("values", self.values, VALUES)

    @property
    def contribution(self) -> tuple[str, str]:
        size = self.sensitivity
        if self.values == "counts":
            return "0 or 1" if size == 1 else f"an integer between 0 and {size}", f"{size}"
        return f"an integer between -{size} and {size}", f"{2 * size}"

    def shift(self, direction: Direction) -> int:
        """By how much a record moves the sum: replacing a signed value moves it twice as far, a count no further."""
        return self.sensitivity * (2 if direction == "substitute" and self.values == "signed" else 1)

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        # a group's values add up to one of that size
        group: IntegerSum = replace(self, sensitivity=size * self.sensitivity)  # type: ignore[type-var]  # a dataclass
        return group.pair(direction)
