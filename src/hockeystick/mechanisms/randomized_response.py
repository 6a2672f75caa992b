"""Randomised response: the true category with some probability, else one of the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from hockeystick.composition import Composition, Direction
from hockeystick.errors import check_count, check_fields, check_finite, check_probability, set_fields
from hockeystick.laws.base import Pair
from hockeystick.laws.vectors import DiscretePair
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.shuffled_reports import ShuffledReports
from hockeystick.numerics.rationals import Probability, float_beside
from hockeystick.numerics.rounding import ELEMENTARY

_LEAST_EPSILON, _MOST_EPSILON = 1e-12, 36.0


@final
@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """The true one of k categories with probability p, each of the others with probability (1 - p) / (k - 1).

    The record decides which category is the true one. Under *substitute* another record may make it any other
    category; under *remove* and *zero-out* the category without the record may be any other (003, section 5: 1 if the
    record is there, 0 if not). Either way two distinct categories are told apart, so that all directions have the same
    pair: categories have no size, and nothing doubles.

    Parameters
    ----------
    probability : float or Fraction
        p, in [0, 1].
    categories : int
        k, at least 2.

    Examples
    --------
    >>> RandomizedResponse(0.75).pair("remove").p
    (Fraction(3, 4), Fraction(1, 4))
    """

    adds_noise = False
    holds_under_all = True

    written_as: ClassVar[tuple[str, ...]] = ("by_epsilon",)

    probability: Probability = 0.75
    categories: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.probability, Fraction):
            check_fields(self, probability=check_probability)
        elif not 0 <= self.probability <= 1:
            raise ValueError(f"probability must be in [0, 1], got {self.probability!r}")
        set_fields(self, categories=check_count("categories", self.categories, minimum=2))

    @classmethod
    def by_epsilon(cls, epsilon: float, categories: int = 2) -> RandomizedResponse:
        """Randomised response that is epsilon-DP: its probability is e^epsilon / (e^epsilon + k - 1), rounded down.

        Parameters
        ----------
        epsilon : float
            From 1e-12 to 36 (nats): beyond, float64 holds no probability below 1 that tells more.
        categories : int
            k, at least 2.

        Examples
        --------
        >>> f"{float(RandomizedResponse.by_epsilon(1.0).probability):.6f}"
        '0.731059'
        """
        others = check_count("categories", categories, minimum=2) - 1
        if not _LEAST_EPSILON <= check_finite("epsilon", epsilon) <= _MOST_EPSILON:
            raise ValueError(f"epsilon must be between {_LEAST_EPSILON:g} and {_MOST_EPSILON:g}, got {epsilon!r}")
        odds = Fraction(math.exp(epsilon) * (1.0 - 2.0 * ELEMENTARY))  # below e^epsilon: less is told
        return cls(float_beside(odds / (odds + others), up=False), categories)

    def shuffled_reports(self, *, people: int) -> ShuffledReports:
        """The shuffle model: the reports of many people, each through this mechanism, shuffled.

        Parameters
        ----------
        people : int
            How many report, from 1 to 100,000.
        """
        true = Fraction(self.probability)
        other = (1 - true) / (self.categories - 1)
        values = range(self.categories)
        return ShuffledReports(tuple(tuple(true if w == x else other for w in values) for x in values), people)

    def for_group(self, size: int) -> Composition:
        """Every member of a group gives a report of its own: as many reports as members."""
        return self * check_count("size", size)

    def pair(self, direction: Direction) -> Pair:
        true = Fraction(self.probability)
        other = (1 - true) / (self.categories - 1)
        if self.categories == 2:
            return DiscretePair((true, other), (other, true))
        rest = other * (self.categories - 2)  # all other categories together: none of them tells the two records apart
        return DiscretePair((true, other, rest), (other, true, rest))
