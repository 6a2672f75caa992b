"""The binomial mechanism: an integer sum plus binomial noise (002, section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import UnknownPairError, set_fields
from hockeystick.laws.base import Pair
from hockeystick.laws.binomial import BinomialPair
from hockeystick.laws.either_way import EitherWayBinomialPair
from hockeystick.mechanisms.base import IntegerSum, Values


@final
@dataclass(frozen=True)
class Binomial(IntegerSum):
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
        set_fields(self, trials=pair.trials, probability=pair.probability)
        super().__post_init__()

    @property
    def contribution(self) -> tuple[str, str]:
        if self.probability != 0.5:  # skewed noise hides counts alone
            return replace(self, probability=0.5, values="counts").contribution
        return super().contribution

    def pair(self, direction: Direction) -> Pair:
        if direction == "substitute":
            if self.probability != 0.5:
                raise UnknownPairError(
                    f"no single pair dominates {self!r} under 'substitute': the noise is skewed, so shifts up and down"
                    " differ; use probability 0.5, or adjacency 'add-remove'"
                )
            return BinomialPair(self.trials, self.probability, self.shift(direction))
        return BinomialPair(self.trials, self.probability, self.sensitivity).under(direction)

    def substitution_on_poisson(self, rate: float) -> tuple[Pair, tuple[Pair, ...] | None]:
        """Of signed values the noise moved either way (docs/derivations/fixed-size.md, section 4)."""
        if self.values == "counts" or self.probability != 0.5:
            return super().substitution_on_poisson(rate)
        return EitherWayBinomialPair(BinomialPair(self.trials, 0.5, self.sensitivity), rate), None
