"""Random allocation: every record takes part in exactly one of the steps of a round, afresh in each round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from hockeystick.composition import Direction, Step
from hockeystick.errors import UnknownPairError, check_count
from hockeystick.laws.allocated import AllocatedCurve
from hockeystick.laws.allocated_atoms import AllocatedAtomsPair
from hockeystick.laws.base import Pair
from hockeystick.laws.curve import ChordPair, SupportPair
from hockeystick.sampling.base import AS_REMOVE, Sampled

__all__ = ["RandomAllocation", "allocated_pairs", "pair_with_ratio"]


def allocated_pairs(base: Pair, steps: int, direction: Direction) -> tuple[Pair, Pair]:
    """Pairs above and below that of one round, base being the pair of a step under *remove*."""
    above: Pair
    below: Pair
    if steps == 1:
        above = below = base
    elif AllocatedAtomsPair.serves(base, steps):
        above = below = AllocatedAtomsPair(base, steps)
    else:
        curve = AllocatedCurve(base, steps)
        above, below = ChordPair(curve), SupportPair(curve)
    return (above, below) if direction == "remove" else (above.reversed(), below.reversed())


@final
@dataclass(frozen=True)
class RandomAllocation(Sampled):
    """One *round* of t steps: every record takes part in exactly one of them, uniformly at random, records apart.

    All t results are released. The next round allocates afresh: rounds compose. Under *remove* the pair of a round is
    the mixture of the t products in which one step has P and all others Q, against the product of t Q (Feldman and
    Shenfeld 2025); under *add* its reverse; zero-out and zero-in are the same. Datasets attain it.

    Parameters
    ----------
    mechanism : Step
        What is applied to the records of a step.
    steps : int
        t, at least 1.
    """

    batches: ClassVar[str] = "random-allocation"
    noun: ClassVar[str] = "random allocation, afresh in every round"
    manner: ClassVar[str] = "by random allocation, afresh in every round"
    not_covered: ClassVar[str] = (
        "records that keep their place from round to round, or batches cut to one size: the guarantee is for records"
        " that choose their step independently, anew in each round, nobody but the trainer knowing which"
    )
    step_is_epoch: ClassVar[bool] = True

    mechanism: Step
    steps: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", check_count("steps", self.steps))

    @classmethod
    def sentence(cls, unit: str, parameters: Mapping[str, float]) -> str:
        return (
            f"random allocation: each round has {parameters['steps']:,} steps, and every {unit} takes part in exactly"
            " one of them, chosen uniformly and independently, anew in each round"
        )

    @property
    def releases(self) -> int:
        """Steps in one round."""
        return self.steps

    def pair(self, direction: Direction) -> Pair:
        return self._pairs(direction)[0]

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        above, below = self._pairs(direction)
        if self.mechanism.attained("remove") is not None:
            return ()  # what dominates one step says nothing of what datasets show
        return None if above == below else (below,)

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        if self.attained(direction) is None:
            return ()
        note = (
            f"random allocation, {self.steps} steps a round: one pair that datasets attain, its curve certified from"
            " above and from below; every round allocates afresh"
        )
        return (note,)

    def _pairs(self, direction: Direction) -> tuple[Pair, Pair]:
        if direction == "substitute":
            raise UnknownPairError(
                "no dominating pair is proved for random allocation under 'substitute'; use adjacency 'add-remove' or"
                " 'zero-out'"
            )
        return allocated_pairs(pair_with_ratio(self.mechanism), self.steps, AS_REMOVE.get(direction, direction))


def pair_with_ratio(mechanism: Step) -> Pair:
    """The mechanism's pair under remove, if it has a likelihood ratio."""
    pair = mechanism.pair("remove")
    if pair.is_known_by_moments_alone:
        raise UnknownPairError(
            f"a round needs the likelihood ratio of a step; of {mechanism!r} only moments are known: state its noise"
        )
    return pair
