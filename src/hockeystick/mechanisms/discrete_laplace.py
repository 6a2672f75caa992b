"""The discrete Laplace (geometric) mechanism: an integer sum plus discrete Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

from hockeystick.composition import Direction
from hockeystick.errors import check_count, check_positive, set_fields
from hockeystick.laws.base import Pair
from hockeystick.laws.discrete_laplace import DiscreteLaplacePair
from hockeystick.laws.unmerged import laplace_on_poisson
from hockeystick.mechanisms.base import IntegerSum, Values
from hockeystick.numerics.rationals import float_beside


@final
@dataclass(frozen=True)
class DiscreteLaplace(IntegerSum):
    """Discrete Laplace noise on a sum of integers.

    The noise is log-concave, so the largest shift dominates all smaller ones. Under *substitute* the shift doubles,
    unless values are counts: two counts in 0..sensitivity differ by no more than one of them.
    All losses are multiples of 1 / scale, so that compositions lie on an exact lattice.

    Parameters
    ----------
    scale : float
        Parameter of the noise, whose masses are proportional to ``e^{-|x| / scale}``; above 0, and the
        sensitivity over it from 1e-140 to 1e140.
    sensitivity : int
        Largest size of a record's value, at least 1 and at most 1e7.
    values : {"signed", "counts"}
        Where values lie: in -sensitivity..sensitivity, or in 0..sensitivity.

    Examples
    --------
    >>> DiscreteLaplace(2.0).pair("remove")
    DiscreteLaplacePair(scale=2.0, sensitivity=1)
    """

    written_as: ClassVar[tuple[str, ...]] = ("by_epsilon",)

    scale: float
    sensitivity: int = 1
    values: Values = field(default="signed", kw_only=True)

    def __post_init__(self) -> None:
        set_fields(self, scale=DiscreteLaplacePair(self.scale, self.sensitivity).scale)
        super().__post_init__()

    @classmethod
    def by_epsilon(cls, epsilon: float, sensitivity: int = 1) -> DiscreteLaplace:
        """Discrete Laplace noise of the smallest float64 scale that is proved to be epsilon-DP under add or remove.

        Parameters
        ----------
        epsilon : float
            Above 0 (nats): the scale is sensitivity / epsilon, rounded up.
        sensitivity : int
            Largest size of a record's value, at least 1.

        Examples
        --------
        >>> DiscreteLaplace.by_epsilon(0.5, sensitivity=3).scale
        6.0
        """
        size, wanted = check_count("sensitivity", sensitivity), check_positive("epsilon", epsilon)
        return cls(float_beside(Fraction(size) / Fraction(wanted), up=True), size)  # up: noise only grows

    def pair(self, direction: Direction) -> Pair:
        return DiscreteLaplacePair(self.scale, self.shift(direction))

    def substitution_on_poisson(self, rate: float) -> tuple[Pair, tuple[Pair, ...] | None]:
        """Of signed values as for Laplace noise (docs/derivations/fixed-size.md)."""
        found = None
        if self.values == "signed":
            found = laplace_on_poisson(self.pair("substitute"), self.sensitivity / self.scale, rate)
        return super().substitution_on_poisson(rate) if found is None else (found[0], found[1:])


Geometric = DiscreteLaplace
"""The other name the field has for it. A second name of a class is an alias: it is read wherever the first one is."""
