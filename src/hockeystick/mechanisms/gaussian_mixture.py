"""A mixture of Gaussians of given sensitivities: group privacy of DP-SGD."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from hockeystick.composition import Direction, Grouped, Step
from hockeystick.errors import (
    UnknownPairError,
    check_count,
    check_fields,
    check_finite,
    check_positive,
    check_rate,
    check_sequence,
    set_fields,
)
from hockeystick.laws.base import Pair
from hockeystick.laws.mixture import GaussianMixturePair
from hockeystick.mechanisms.gaussian import Gaussian, chances_of_draws
from hockeystick.numerics.rationals import Probability, spelled

_LARGEST_GROUP = 1000  # whose exact weights take 15 s


@final
@dataclass(frozen=True)
class GaussianMixture(Step):
    """A sum that moves by a random amount, plus Gaussian noise.

    Under *remove* the pair is sum_k w_k N(d_k, s^2) against N(0, s^2).

    A group of records in a batch is of this kind: the shift is the number of them that are drawn (`poisson_group`), or
    twice that number for batches of fixed size (`fixed_size_group`). Given how many are drawn, an event of probability
    Phi(-t) without the group has at most Phi(d - t) with it, and half-lines attain that for all shifts at once: the
    pair dominates, in any dimension (Ganesh 2024). It is sampled already.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation s of the noise, in units of the clipping norm; above 0.
    sensitivities : tuple of float
        The shifts d_k, distinct, at least 0.
    probabilities : tuple of float or Fraction
        Their probabilities w_k, summing to 1 within 1e-9: exact numbers, of which the pair has each divided by
        the exact sum.

    Examples
    --------
    >>> import hockeystick as hs
    >>> group = GaussianMixture.poisson_group(1.0, rate=0.01, size=3)
    >>> group.sensitivities
    (0.0, 1.0, 2.0, 3.0)
    """

    noise_multiplier: float
    sensitivities: tuple[float, ...]
    probabilities: tuple[Probability, ...] = field(kw_only=True)

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=check_positive)
        check_fields(self, sensitivities=check_sequence, probabilities=check_sequence)
        if any(check_finite("sensitivities", shift) < 0.0 for shift in self.sensitivities):
            raise ValueError(
                f"sensitivities must be at least 0, got {self.sensitivities!r}; turn negative shifts around"
            )
        set_fields(self, sensitivities=self._pair().p_centres)
        given = (weight if isinstance(weight, Fraction) else float(weight) for weight in self.probabilities)
        set_fields(self, probabilities=tuple(given))

    def __repr__(self) -> str:
        return spelled(self)

    def _pair(self) -> GaussianMixturePair:
        return GaussianMixturePair(
            self.noise_multiplier, self.probabilities, self.sensitivities, (Fraction(1),), (0.0,)
        )

    @classmethod
    def poisson_group(cls, noise_multiplier: float, *, rate: float, size: int) -> GaussianMixture:
        """A group of records on a Poisson sample: a binomial number of them takes part.

        Parameters
        ----------
        noise_multiplier : float
            Above 0.
        rate : float
            Probability that a record takes part, in (0, 1].
        size : int
            Records in the group, at least 1 and at most 1,000.
        """
        g, k = Fraction(check_rate("rate", rate)), check_count("size", size)
        if k > _LARGEST_GROUP:
            raise ValueError(f"size must be at most {_LARGEST_GROUP:,}, got {k:,}")
        return cls(noise_multiplier, tuple(map(float, range(k + 1))), probabilities=chances_of_draws(g, k))

    @staticmethod
    def fixed_size_group(noise_multiplier: float, *, batch_size: int, population: int, size: int) -> Grouped:
        """A group of records and batches of fixed size: `Gaussian.without_replacement` as it counts for the group.

        A hypergeometric number of the group takes part. Each one that does pushes another record out of the batch, so
        the shifts are 0, 2, 4, ... A null record pushes others out as well: under *zero-out* no pair is proved.

        Parameters
        ----------
        noise_multiplier : float
            Above 0.
        batch_size, population : int
            Records in a batch, and in all, the group included; without the group a batch must still be filled.
        size : int
            Records in the group, at least 1; of them and of a batch, one at most 1,000.
        """
        step = Gaussian(noise_multiplier).without_replacement(batch_size=batch_size, population=population)
        group = Grouped(step, check_count("size", size))
        group.pair("remove")  # refuses what fills no batch
        return group

    def pair(self, direction: Direction) -> Pair:
        if direction == "substitute":
            raise UnknownPairError(
                "no dominating pair is proved for a group of records under 'substitute'; use adjacency 'add-remove'"
            )
        return self._pair().under(direction)
