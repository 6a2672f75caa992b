"""What a sampling scheme is: a step on a sample of the records, with its parameters and its words."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from hockeystick.composition import Direction, Grouped, Step
from hockeystick.errors import UnknownPairError, check_count, set_fields
from hockeystick.laws.base import Pair

AS_REMOVE: Mapping[str, Direction] = {"zero-out": "remove", "zero-in": "add"}
"""The direction with the same pair, where a null record is as good as none."""


def check_part(**sizes: int) -> dict[str, int]:
    """Two whole numbers by their names, of which the first counts a part of what the second counts."""
    found = {name: check_count(name, size) for name, size in sizes.items()}
    (part, size), (whole, most) = found.items()
    if size > most:
        raise ValueError(f"{part} must be at most {whole}, got {size} of {most}")
    return found


class Samplable(Step):
    """A step that can be applied to a sample of the records."""

    holds_under_all: ClassVar[bool] = False
    """Whether the pairs under remove and under substitute hold of one mechanism at once.

    Else they are one guarantee, under whichever relation it was proved for.
    """

    def substitution_on_poisson(self, rate: float) -> tuple[Pair, tuple[Pair, ...] | None]:
        """The pair of a Poisson sample under substitution, and those of known datasets; None where it is attained.

        By default from the pairs under remove and substitute together (docs/derivations/fixed-size.md, section 4).

        Raises
        ------
        UnknownPairError
            Where one of them is not known.
        """
        other = self.pair("substitute")
        if not self.holds_under_all:
            raise UnknownPairError(
                f"no dominating pair is proved for {self!r} on a Poisson sample (rate {rate!r}) under 'substitute':"
                " that takes a pair under remove and one under substitute, and this is one guarantee, for one of them;"
                " use adjacency 'add-remove' or 'zero-out', or state both with UserDefined"
            )
        without = self.to_sample("remove").pair("remove")
        shown = without.subsampled(rate)
        known = () if self.stated_by_caller else (shown, shown.reversed())
        # of one lopsided pair for both, the other record against none is bounded by it, and not by its reverse
        if without == other and other.is_symmetric:
            return other.joined(rate), known
        from hockeystick.laws.curve import ChordPair  # loaded where both relations are asked for
        from hockeystick.laws.substituted import SubstitutedCurve

        return ChordPair(SubstitutedCurve(without, other, rate)), known

    def drawn_repeatedly(self, rate: float, times: int) -> Pair:
        """The pair under remove where the record is drawn that many times, or that many are, and each draw counts.

        Raises
        ------
        UnknownPairError
            Where none is proved for this mechanism.
        """
        raise UnknownPairError(
            f"no dominating pair is proved for {self!r} where up to {times} records of a group, or draws of one record,"
            f" meet in a batch (rate {rate!r}); use Gaussian noise, or account for one record in one micro-batch:"
            " curve.group_epsilon(delta, size=) then bounds a group's epsilon from above"
        )

    def drawn_together(self, *, batch_size: int, population: int, size: int) -> Pair:
        """The pair under remove of a group in batches of fixed size.

        Raises
        ------
        UnknownPairError
            Where none is proved for this mechanism.
        """
        raise UnknownPairError(
            f"no dominating pair is proved for {self!r} and a group of {size} in batches of {batch_size} out of"
            f" {population}; use Gaussian noise, or account for one record: curve.group_epsilon(delta, size={size})"
            " then bounds a group's epsilon from above"
        )

    def summed_lower(self, taking_part: int, releases: int) -> tuple[Pair, ...]:
        """A pair below that of a record in so many of so many releases, from their sum; none by default."""
        return ()

    def shuffled_lower(self, direction: Direction, batches: int) -> tuple[Pair, ...]:
        """Pairs below those of known datasets for one epoch of shuffled batches; none by default."""
        return ()


class Sampled(Step):
    """A step on a sample of the records: frozen, its first field the ``mechanism`` applied to the sample.

    A scheme is written in a file by the name of its class and by its other fields, or by the arguments of a classmethod
    named in ``written_as``.

    Attributes
    ----------
    batches : str
        What a data loader must draw for the accounting to hold, in a word.
    noun, manner : str
        The same in a sentence: "the accounting assumes <noun>", "batches are drawn <manner>".
    not_covered : str
        Batches that are often drawn instead, and that the guarantee is not for.
    step_is_epoch : bool
        Whether one step is a pass over all records, or several, not one batch.
    step_is_run : bool
        Whether one step is a whole run, so that several are several runs, each with draws of its own.
    written_as : tuple of str
        Classmethods that make the scheme from a mechanism and other parameters than its fields.
    """

    batches: ClassVar[str]
    noun: ClassVar[str]
    manner: ClassVar[str]
    not_covered: ClassVar[str]
    step_is_epoch: ClassVar[bool] = False
    step_is_run: ClassVar[bool] = False
    written_as: ClassVar[tuple[str, ...]] = ()

    mechanism: Step

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Step):
            raise TypeError(f"a sampling scheme takes a step, got {self.mechanism!r}")
        if self.mechanism.of_stated_population:
            raise ValueError(
                f"{self.mechanism!r} is for a stated number of records, which a sample of them does not have; state one"
                " scheme, with the number of records it draws from"
            )
        if isinstance(self.mechanism, Grouped):
            raise ValueError(
                f"{self.mechanism!r} is for a group, whose records a sample takes one by one; state the sampled step,"
                " and then for_group of it, or group_size"
            )

    @classmethod
    @abstractmethod
    def sentence(cls, unit: str, parameters: Mapping[str, float]) -> str:
        """How the records of a step are chosen, as the accounting assumes it.

        Parameters
        ----------
        unit : str
            What one record is.
        parameters : mapping
            As they were written: the fields, or the arguments of a method of ``written_as``.
        """

    def to_sample(self, direction: Direction) -> Step:
        """The same scheme on what the mechanism's samples are made of."""
        return replace(self, mechanism=self.mechanism.to_sample(direction))  # type: ignore[type-var]  # a dataclass

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        shown = self.attained(direction)
        note = "" if shown is None else "; ".join(self.bracketed()[: 2 if shown else 1])
        return (note,) if note else ()

    def bracketed(self) -> tuple[str, ...]:
        """What is proved above, where `pair` is an upper bound only, and what datasets show; by default nothing."""
        return ()

    @property
    def adds_noise(self) -> bool:
        return self.mechanism.adds_noise

    @property
    def contribution(self) -> tuple[str, str]:
        return self.mechanism.contribution

    @property
    def stated_by_caller(self) -> bool:
        return self.mechanism.stated_by_caller


@dataclass(frozen=True)
class InBatches(Sampled):
    """A step on batches of one size: what the schemes of that kind share."""

    of_stated_population = True

    mechanism: Step
    batch_size: int
    population: int

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, **check_part(batch_size=self.batch_size, population=self.population))
