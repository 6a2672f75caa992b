"""The discrete Gaussian mechanism: an integer sum plus discrete Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import check_choice, check_count
from hockeystick.laws.base import Pair
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.mechanisms.base import VALUES, Mechanism, Values, contribution


@final
@dataclass(frozen=True)
class DiscreteGaussian(Mechanism):
    """Discrete Gaussian noise on a sum of integers.

    The noise is log-concave, so the largest shift dominates all smaller ones. Under *substitute* the shift doubles,
    unless values are counts: two counts in 0..sensitivity differ by no more than one of them.

    Parameters
    ----------
    sigma : float
        Parameter of the noise, whose masses are proportional to e^{-x^2 / 2 sigma^2}; above 0.
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
        pair = DiscreteGaussianPair(self.sigma, self.sensitivity)
        object.__setattr__(self, "sigma", pair.sigma)
        object.__setattr__(self, "sensitivity", check_count("sensitivity", self.sensitivity))
        check_choice("values", self.values, VALUES)

    @property
    def contribution(self) -> tuple[str, str]:
        return contribution(self.values, self.sensitivity)

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        # a group's values add up to one of that size
        return replace(self, sensitivity=size * self.sensitivity).pair(direction)

    def pair(self, direction: Direction) -> Pair:
        return DiscreteGaussianPair(
            self.sigma, self.sensitivity * (2 if direction == "substitute" and self.values == "signed" else 1)
        )
