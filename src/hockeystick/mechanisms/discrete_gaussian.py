"""The discrete Gaussian mechanism: an integer sum plus discrete Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import set_fields
from hockeystick.laws.base import Pair
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.laws.either_way import EitherWayDiscreteGaussianPair
from hockeystick.mechanisms.base import IntegerSum, Values


@final
@dataclass(frozen=True)
class DiscreteGaussian(IntegerSum):
    """Discrete Gaussian noise on a sum of integers.

    The noise is log-concave, so the largest shift dominates all smaller ones. Under *substitute* the shift doubles,
    unless values are counts: two counts in 0..sensitivity differ by no more than one of them. A larger sigma is not
    always more private: at one epsilon, delta of few steps goes up and down where losses pass it.

    Parameters
    ----------
    sigma : float
        Parameter of the noise, whose masses are proportional to e^{-x^2 / 2 sigma^2}; above 0, at most 1e6, and
        the sensitivity over it at most 1e140.
    sensitivity : int
        Largest size of a record's value, at least 1.
    values : {"signed", "counts"}
        Where values lie: in -sensitivity..sensitivity, or in 0..sensitivity.

    Examples
    --------
    >>> DiscreteGaussian(3.0).pair("substitute")
    DiscreteGaussianPair(sigma=3.0, sensitivity=2)
    """

    sigma: float
    sensitivity: int = 1
    values: Values = field(default="signed", kw_only=True)

    def __post_init__(self) -> None:
        set_fields(self, sigma=DiscreteGaussianPair(self.sigma, self.sensitivity).sigma)
        super().__post_init__()

    def pair(self, direction: Direction) -> Pair:
        return DiscreteGaussianPair(self.sigma, self.shift(direction))

    def substitution_on_poisson(self, rate: float) -> tuple[Pair, tuple[Pair, ...] | None]:
        """Of signed values the noise moved either way (docs/derivations/fixed-size.md, section 4)."""
        if self.values == "counts":
            return super().substitution_on_poisson(rate)
        return EitherWayDiscreteGaussianPair(DiscreteGaussianPair(self.sigma, self.sensitivity), rate), None
