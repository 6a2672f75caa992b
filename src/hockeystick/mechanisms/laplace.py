"""The Laplace mechanism: a sum of values in [-1, 1], plus Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import check_fields, check_positive
from hockeystick.laws.base import Pair
from hockeystick.laws.laplace import LaplacePair
from hockeystick.laws.unmerged import laplace_on_poisson
from hockeystick.mechanisms.base import Mechanism


@final
@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise on a sum of numbers in [-1, 1].

    Under *remove* the pair is Lap(1, b) against Lap(0, b); under *substitute* the sensitivity doubles.

    Parameters
    ----------
    scale : float
        Scale b of the noise, in units of the add/remove sensitivity; above 0, and the sensitivity over it from
        1e-140 to 1e140.

    Examples
    --------
    >>> Laplace(scale=2.0).pair("remove")
    LaplacePair(scale=2.0, sensitivity=1.0)
    """

    contribution = "a number between -C and C", "2 C"
    holds_under_all = True

    scale: float

    def __post_init__(self) -> None:
        check_fields(self, scale=check_positive)

    def pair(self, direction: Direction) -> Pair:
        return self.pair_of_group(direction, 1)

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        return LaplacePair(self.scale, float(2 * size if direction == "substitute" else size))

    def substitution_on_poisson(self, rate: float) -> tuple[Pair, tuple[Pair, ...] | None]:
        """Without the record the density is a multiple of the smaller one with it (docs/derivations/fixed-size.md)."""
        found = laplace_on_poisson(self.pair("substitute"), 1.0 / self.scale, rate)
        return super().substitution_on_poisson(rate) if found is None else (found[0], found[1:])
