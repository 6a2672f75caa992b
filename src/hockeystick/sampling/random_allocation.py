"""Random allocation: every record takes part in exactly one of the steps of a round, afresh in each round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from hockeystick.composition import Direction, Step
from hockeystick.errors import UnknownPairError, set_fields
from hockeystick.laws.base import Pair
from hockeystick.sampling.base import Samplable, Sampled, check_part

_MOST_STEPS = 2**40  # more than any lattice holds, and whose products are floats


def allocated_pairs(base: Pair, steps: int, direction: Direction) -> tuple[Pair, Pair]:
    """Pairs above and below that of one round, base being the pair of a step under *remove*."""
    from hockeystick.laws.allocated import AllocatedCurve  # with all that plans it: only rounds need it
    from hockeystick.laws.allocated_atoms import AllocatedAtomsPair
    from hockeystick.laws.curve import ChordPair, SupportPair

    if steps > _MOST_STEPS:
        raise UnknownPairError(f"a round is accounted up to {_MOST_STEPS:g} steps a selected one, got {steps:g}")
    above: Pair
    below: Pair
    if steps == 1:
        above = below = base
    elif AllocatedAtomsPair.serves(base, steps):
        above = below = AllocatedAtomsPair(base, steps)
    else:
        curve = AllocatedCurve(base, steps)
        above, below = ChordPair(curve), SupportPair(curve)
    return above.under(direction), below.under(direction)


@final
@dataclass(frozen=True)
class RandomAllocation(Sampled):
    """One *round* of t steps: every record takes part in k of them, uniformly at random, records apart.

    All t results are released. The next round allocates afresh: rounds compose. With k = 1 the pair of a round under
    *remove* is the mixture of the t products in which one step has P and all others Q, against the product of t Q
    (Feldman and Shenfeld 2025); under *add* its reverse; zero-out and zero-in are the same. Datasets attain it. With k
    = t nothing is sampled: t steps. Between these two what is proved is a bracket: above, k rounds of one of t / k
    steps each; below, for Gaussian noise, the sum of all results.

    Parameters
    ----------
    mechanism : Step
        What is applied to the records of a step.
    steps : int
        t, at least 1.
    selected : int
        k, from 1 to ``steps``.
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
    selected: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, **check_part(selected=self.selected, steps=self.steps))

    @classmethod
    def sentence(cls, unit: str, parameters: Mapping[str, float]) -> str:
        selected = parameters.get("selected", 1)
        return (
            f"random allocation: each round has {parameters['steps']:,} steps, and every {unit} takes part in exactly"
            f" {'one' if selected == 1 else f'{selected:,}'} of them, chosen uniformly and independently, anew in each"
            " round"
        )

    @property
    def releases(self) -> int:
        """Steps in one round."""
        return self.steps

    def pair(self, direction: Direction) -> Pair:
        if self.selected > 1:
            raise UnknownPairError(
                f"no single pair is known for {self.selected} of {self.steps} steps: `account` bounds it by rounds of"
                " one step each"
            )
        return self._pairs(direction)[0]

    def pairs(self, direction: Direction) -> tuple[tuple[Pair, int], ...]:
        k = self.selected
        if k == 1:
            return super().pairs(direction)
        if k == self.steps:
            return ((self.mechanism.pair(direction), k),)
        base = self._base(direction)
        if base.mass_at_infinity > 0.0:
            raise UnknownPairError(
                "several steps of a round are accounted for noise without outcomes that only one dataset has; use"
                " selected=1"
            )
        block = self.steps // k
        sizes = ((block + 1, self.steps % k), (block, k - self.steps % k))
        return tuple((allocated_pairs(base, size, direction)[0], count) for size, count in sizes if count)

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        if self.selected == self.steps:
            return self.mechanism.attained(direction)
        if self.selected > 1:
            noise = self.mechanism
            return noise.summed_lower(self.selected, self.steps) if isinstance(noise, Samplable) else ()
        return attained_by(self.mechanism, self._pairs(direction))

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        if self.selected == self.steps:
            return self.mechanism.provenance(direction)
        return super().provenance(direction)

    def bracketed(self) -> tuple[str, ...]:
        if self.selected > 1:
            above = (
                f"random allocation, {self.selected} of {self.steps} steps a round: the upper bound is that of"
                f" {self.selected} rounds of one step each, which no datasets are known to attain"
            )
            return above, "the lower bound is that of the sum of all results"
        return (
            f"random allocation, {self.steps} steps a round, afresh in every round: the curve of one pair, certified",
            "datasets attain that pair, whose curve is certified from below, too",
        )

    def _pairs(self, direction: Direction) -> tuple[Pair, Pair]:
        return allocated_pairs(self._base(direction), self.steps, direction)

    def _base(self, direction: Direction) -> Pair:
        """The pair of a step under remove."""
        return pair_with_ratio(self.mechanism, direction, "random allocation")


def attained_by(mechanism: Step, pairs: tuple[Pair, Pair]) -> tuple[Pair, ...] | None:
    """What datasets show of a step on a random batch, given the pairs above and below; None where both are one."""
    if mechanism.attained("remove") is not None:
        return ()  # what dominates one step says nothing of what datasets show
    above, below = pairs
    return None if above == below else (below,)


def pair_with_ratio(mechanism: Step, direction: Direction, scheme: str) -> Pair:
    """The mechanism's pair, as one under remove, if it has likelihood ratios and the scheme a pair in the direction."""
    if direction == "substitute":
        raise UnknownPairError(
            f"no dominating pair is proved for {scheme} under 'substitute'; use adjacency 'add-remove' or 'zero-out'"
        )
    pair = mechanism.to_sample(direction).pair("remove")
    if pair.is_known_by_moments_alone:
        raise UnknownPairError(
            f"a round needs the likelihood ratio of a step; of {mechanism!r} only moments are known: state its noise"
        )
    return pair
