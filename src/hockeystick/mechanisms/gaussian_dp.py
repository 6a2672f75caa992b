"""A generic mu-Gaussian DP mechanism: nothing is known of it but its guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import LEAST_RATIO, MOST_RATIO, check_fields, check_positive
from hockeystick.laws.base import Pair
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.mechanisms.base import Mechanism
from hockeystick.numerics.rationals import float_beside


@final
@dataclass(frozen=True)
class GaussianDP(Mechanism):
    """Any mechanism that is mu-GDP under the neighbouring relation it is accounted for.

    Its outputs are no easier to tell apart than two unit normals at distance mu. On a Poisson sample the guarantee
    must hold under add-remove, on a batch of fixed size under substitution, on a cut one under both (Dong, Roth and Su
    2019).

    Parameters
    ----------
    mu : float
        Distance of the means of two unit normals, from 1e-140 to 1e140.

    Examples
    --------
    >>> GaussianDP(0.5).pair("remove")
    GaussianPair(sigma=1.0, sensitivity=0.5)
    """

    adds_noise = False

    mu: float

    def __post_init__(self) -> None:
        check_fields(self, mu=check_positive)
        if not LEAST_RATIO <= self.mu <= MOST_RATIO:
            raise ValueError(
                f"mu must be between {LEAST_RATIO:g} and {MOST_RATIO:g}, got {self.mu!r}: beyond, everything is hidden"
                " or nothing"
            )

    def pair(self, direction: Direction) -> Pair:
        return GaussianPair(1.0, self.mu)

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        return GaussianPair(1.0, float_beside(size * Fraction(self.mu), up=True))

    def attained_by_group(self, direction: Direction, size: int) -> tuple[Pair, ...] | None:
        return (GaussianPair(1.0, float_beside(size * Fraction(self.mu), up=False)),)
