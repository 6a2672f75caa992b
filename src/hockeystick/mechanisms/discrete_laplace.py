"""The discrete Laplace (geometric) mechanism: an integer sum plus discrete Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import check_count
from hockeystick.laws.base import Pair
from hockeystick.laws.discrete_laplace import DiscreteLaplacePair
from hockeystick.mechanisms.base import Mechanism

__all__ = ["DiscreteLaplace"]


@final
@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Discrete Laplace noise on a sum of integers in -sensitivity..sensitivity.

    The noise is log-concave, so the largest shift dominates all smaller ones. Under *substitute* the shift doubles.
    All losses are multiples of 1 / scale, so that compositions lie on an exact lattice.

    Parameters
    ----------
    scale : float
        Parameter of the noise, whose masses are proportional to ``e^{-|x| / scale}``; above 0.
    sensitivity : int
        Largest size of a record's value, at least 1.

    Examples
    --------
    >>> DiscreteLaplace(2.0).pair("remove")
    DiscreteLaplacePair(scale=2.0, sensitivity=1)
    """

    scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        pair = DiscreteLaplacePair(self.scale, self.sensitivity)
        object.__setattr__(self, "scale", pair.scale)
        object.__setattr__(self, "sensitivity", check_count("sensitivity", self.sensitivity))

    def pair(self, direction: Direction) -> Pair:
        return DiscreteLaplacePair(self.scale, self.sensitivity * (2 if direction == "substitute" else 1))
