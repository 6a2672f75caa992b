"""Report noisy max and permute-and-flip: the candidate of the largest score after noise.

Every score moves by at most the sensitivity. With Gumbel noise this is the exponential mechanism, of bounded range.
With exponential noise it is permute-and-flip (Ding et al. 2021), and neither that nor Laplace noise is of bounded range
epsilon: two candidates give losses of both signs (docs/derivations/selection.md, section 2). They are epsilon-DP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

from hockeystick.composition import Direction
from hockeystick.errors import check_choice, check_fields, check_positive, set_fields
from hockeystick.laws.base import Pair
from hockeystick.laws.vectors import DiscretePair
from hockeystick.laws.worst_case import WorstCasePair
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.exponential import ExponentialMechanism
from hockeystick.numerics.rounding import ELEMENTARY, up

Noise = Literal["gumbel", "exponential", "laplace"]

_TWO_CANDIDATES = (
    "the upper bound is that of pure DP, which no candidates are known to attain; the lower bound is attained by two"
    " candidates"
)


@final
@dataclass(frozen=True)
class ReportNoisyMax(Mechanism):
    """The candidate of the largest score, after noise of scale 2 sensitivity / epsilon on every score.

    Parameters
    ----------
    epsilon : float
        The pure-DP guarantee (nats) under the neighbouring relation it is accounted for (on a batch of fixed size:
        under substitution; on a cut one: under add-remove, too), above 0, at most 1e300; with Gumbel noise from 1e-150
        to 700.
    noise : {"gumbel", "exponential", "laplace"}
        Gumbel noise makes it the exponential mechanism, which composes best; exponential noise permute-and-flip.

    Examples
    --------
    >>> ReportNoisyMax(0.5, noise="gumbel").pair("remove")
    BoundedRangePair(epsilon=0.5)
    >>> ReportNoisyMax(0.5, noise="laplace").pair("remove")
    WorstCasePair(epsilon=0.5, delta=0.0)
    """

    adds_noise = False

    epsilon: float
    noise: Noise

    def __post_init__(self) -> None:
        check_choice("noise", self.noise, ("gumbel", "exponential", "laplace"))
        if self.noise == "gumbel":
            set_fields(self, epsilon=ExponentialMechanism(self.epsilon).epsilon)
        else:
            check_fields(self, epsilon=check_positive)

    def pair(self, direction: Direction) -> Pair:
        if self.noise == "gumbel":
            return ExponentialMechanism(self.epsilon).pair(direction)
        return WorstCasePair(self.epsilon)

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        if self.noise == "gumbel":
            return ExponentialMechanism(self.epsilon).attained(direction)
        return _exponential_noise(self.epsilon) if self.noise == "exponential" else (_laplace_noise(self.epsilon),)

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        if self.noise == "gumbel":
            return ExponentialMechanism(self.epsilon).provenance(direction)
        return (f"report noisy max, {self.noise} noise: {_TWO_CANDIDATES}",)


@final
@dataclass(frozen=True)
class PermuteAndFlip(Mechanism):
    """Candidates in random order, each taken with probability e^(epsilon (score - best) / (2 sensitivity)).

    The same choice as report noisy max with exponential noise (McKenna and Sheldon 2020; Ding et al. 2021). It is not
    of bounded range epsilon, and is accounted as pure epsilon-DP.

    Parameters
    ----------
    epsilon : float
        The pure-DP guarantee (nats) under the neighbouring relation it is accounted for (on a batch of fixed size:
        under substitution; on a cut one: under add-remove, too), above 0, at most 1e300.

    Examples
    --------
    >>> PermuteAndFlip(0.5).pair("remove")
    WorstCasePair(epsilon=0.5, delta=0.0)
    """

    adds_noise = False
    origin = f"permute-and-flip: {_TWO_CANDIDATES}"

    epsilon: float

    def __post_init__(self) -> None:
        check_fields(self, epsilon=check_positive)

    def pair(self, direction: Direction) -> Pair:
        return WorstCasePair(self.epsilon)

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        return _exponential_noise(self.epsilon)


def _exponential_noise(epsilon: float) -> tuple[Pair, ...]:
    """Two candidates: the lower one of a gap x, in units of the noise, wins with probability ``e^-x / 2``.

    The gap moves by up to epsilon: from -epsilon / 2 to epsilon / 2, or from 0 to epsilon, either way round.
    """
    lopsided = DiscretePair((0.5, 0.5), _chances(0.5 * math.exp(-epsilon)))
    turned = _chances(0.5 * math.exp(-0.5 * epsilon))
    return DiscretePair(turned[::-1], turned), lopsided, lopsided.reversed()


def _laplace_noise(epsilon: float) -> Pair:
    """Two candidates: the difference of two Laplace numbers exceeds x with probability ``e^-x (2 + x) / 4``."""
    turned = _chances(0.25 * math.exp(-0.5 * epsilon) * (2.0 + 0.5 * epsilon))
    return DiscretePair(turned[::-1], turned)


def _chances(loser: float) -> tuple[Fraction, Fraction]:
    """Chances of the two candidates, that of the loser rounded up: closer to even, and harder to tell apart."""
    chance = min(Fraction(up(loser, 4.0 * ELEMENTARY)), Fraction(1, 2))
    return 1 - chance, chance
