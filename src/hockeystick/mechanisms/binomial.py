"""The binomial mechanism: an integer sum plus binomial noise (002, section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import UnknownPairError, check_choice, check_count
from hockeystick.laws.base import Pair
from hockeystick.laws.binomial import BinomialPair
from hockeystick.mechanisms.base import VALUES, Mechanism, Values, contribution


@final
@dataclass(frozen=True)
class Binomial(Mechanism):
    """Bin(trials, probability) noise on an integer sum.

    The noise is log-concave, so the largest shift in either direction dominates the smaller ones. With probability 1/2
    the noise is symmetric: values lie in -sensitivity..sensitivity, and *substitute* doubles the shift. With any other
    probability the sign of a shift matters: values must lie in 0..sensitivity, *remove* has the shift upwards, and
    under *substitute*, where shifts of either sign occur, no single pair dominates. Losses are infinite where the
    noise ends.

    Parameters
    ----------
    trials : int
        From 1 to 100,000.
    probability : float
        Above 0 and below 1.
    sensitivity : int
        Largest size of a record's value, at least 1.
    values : {"signed", "counts"}
        With probability 1/2, where values lie: in -sensitivity..sensitivity, or in 0..sensitivity, so that *substitute*
        does not double the shift.

    Examples
    --------
    >>> Binomial(1000).pair("substitute")
    BinomialPair(trials=1000, probability=0.5, sensitivity=2)
    """

    trials: int
    probability: float = 0.5
    sensitivity: int = field(default=1, kw_only=True)
    values: Values = field(default="signed", kw_only=True)

    def __post_init__(self) -> None:
        pair = BinomialPair(self.trials, self.probability, self.sensitivity)
        object.__setattr__(self, "trials", pair.trials)
        object.__setattr__(self, "probability", pair.probability)
        object.__setattr__(self, "sensitivity", check_count("sensitivity", self.sensitivity))
        check_choice("values", self.values, VALUES)

    @property
    def contribution(self) -> tuple[str, str]:
        counts = self.probability != 0.5 or self.values == "counts"
        return contribution("counts" if counts else "signed", self.sensitivity)

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        # a group's values add up to one of that size
        return replace(self, sensitivity=size * self.sensitivity).pair(direction)

    def pair(self, direction: Direction) -> Pair:
        if direction == "substitute":
            if self.probability != 0.5:
                raise UnknownPairError(
                    f"no single pair dominates {self!r} under 'substitute': the noise is skewed, so shifts up and down"
                    " differ; use probability 0.5, or adjacency 'add-remove'"
                )
            shift = self.sensitivity * (2 if self.values == "signed" else 1)
            return BinomialPair(self.trials, self.probability, shift)
        pair = BinomialPair(self.trials, self.probability, self.sensitivity)
        return pair if direction in {"remove", "zero-out"} else pair.reversed()
