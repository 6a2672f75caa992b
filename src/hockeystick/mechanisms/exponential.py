"""The exponential mechanism: one of many candidates, the better ones exponentially more likely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import set_fields
from hockeystick.laws.base import Pair
from hockeystick.laws.bounded_range import BoundedRangePair, two_outcomes_family
from hockeystick.mechanisms.base import Mechanism


@final
@dataclass(frozen=True)
class ExponentialMechanism(Mechanism):
    """A choice among candidates, each with a probability proportional to e^(epsilon score / (2 sensitivity)).

    Equally the candidate of the largest score after Gumbel noise of scale 2 sensitivity / epsilon. Its losses lie in
    an interval of length epsilon (*bounded range*), which composes better than pure epsilon-DP: the pair is the
    joined worst curve of all such intervals, and every step is (epsilon^2 / 8)-concentrated (docs/derivations/
    selection.md). Any other mechanism of bounded range may stand here; where all scores move in one direction
    (*monotone*), epsilon / sensitivity in the exponent gives the same. On a Poisson sample the range must hold under
    add-remove, on a batch of fixed size under substitution, on a cut one under both.

    Steps beside each other may be chosen adaptively, by what earlier ones released: of a run of them alone, up to 128,
    both sides are those of the worst such choices.

    Parameters
    ----------
    epsilon : float
        The range (nats) under the neighbouring relation it is accounted for; from 1e-150 to 700.

    Examples
    --------
    >>> ExponentialMechanism(0.1).pair("remove")
    BoundedRangePair(epsilon=0.1)
    """

    adds_noise = False
    origin = (
        "losses of bounded range: the upper bound holds for candidates chosen adaptively; the lower bound is attained"
        " by two candidates, whose losses are the same in all steps"
    )

    epsilon: float

    def __post_init__(self) -> None:
        set_fields(self, epsilon=BoundedRangePair(self.epsilon).epsilon)

    def pair(self, direction: Direction) -> Pair:
        return BoundedRangePair(self.epsilon)

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        return two_outcomes_family(self.epsilon)
