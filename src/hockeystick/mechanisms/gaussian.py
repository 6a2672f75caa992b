"""The Gaussian mechanism: a sum of values in a ball of radius 1, plus Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from hockeystick.composition import Direction
from hockeystick.decimals import plain
from hockeystick.errors import UnknownPairError, check_fields, check_positive
from hockeystick.laws.base import Pair
from hockeystick.laws.gaussian import GaussianPair, shown_by_gaussian
from hockeystick.mechanisms.base import Mechanism
from hockeystick.numerics.rounding import U, down

_MOST_DRAWS, _MOST_TOGETHER = 256, 1000  # terms of a mixture
_LITTLE, _FEW = 2.0, 20  # noise and batches below which the largest result tells nearly as much as all


@final
@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Gaussian noise on a sum of vectors of norm at most 1.

    Under *remove* the pair is N(1, s^2) against N(0, s^2), s the noise multiplier; under *substitute* the sensitivity
    doubles; a null record (*zero-out*) has value 0.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise, in units of the clipping norm; above 0, and the sensitivity over it from 1e-140
        to 1e140.

    Examples
    --------
    >>> Gaussian(noise_multiplier=2.0).pair("substitute")
    GaussianPair(sigma=2.0, sensitivity=2.0)
    """

    contribution = "a vector of norm at most C", "2 C"

    noise_multiplier: float

    def __post_init__(self) -> None:
        check_fields(self, noise_multiplier=check_positive)

    @property
    def words(self) -> str:
        return (
            f"Gaussian noise of standard deviation {plain(self.noise_multiplier)} x clipping norm, added to the sum"
            " (not the mean) of the clipped contributions, such as gradients"
        )

    def pair(self, direction: Direction) -> Pair:
        return self.pair_of_group(direction, 1)

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        # N(d, s^2) against N(0, s^2) is its own reverse: mirror the line
        return GaussianPair(self.noise_multiplier, float(2 * size if direction == "substitute" else size))

    def substitution_on_poisson(self, rate: float) -> tuple[Pair, None]:
        """(1-g) N(0) + g N(1) against (1-g) N(0) + g N(-1): 003, Proposition 13 (docs/derivations/fixed-size.md)."""
        from hockeystick.laws.mixture import GaussianMixturePair  # mixtures are loaded where they are made

        g = Fraction(rate)
        return GaussianMixturePair(self.noise_multiplier, (1 - g, g), (0.0, 1.0), (1 - g, g), (0.0, -1.0)), None

    def drawn_repeatedly(self, rate: float, times: int) -> Pair:
        """sum_j w_j N(j) against N(0), w binomial: docs/derivations/cut-batches.md, section 3."""
        if times > _MOST_DRAWS:
            raise UnknownPairError(
                f"at most {_MOST_DRAWS} draws that meet in a batch are accounted for, got {times}: a group's size times"
                " the micro-batches; account for one record: curve.group_epsilon(delta, size=) then bounds a group's"
                " epsilon from above"
            )
        return self._moved(chances_of_draws(Fraction(rate), times), 1.0)

    def drawn_together(self, *, batch_size: int, population: int, size: int) -> Pair:
        """sum_j w_j N(2j) against N(0), w hypergeometric: docs/derivations/fixed-size.md, section 5."""
        b, others = batch_size, max(population - size, 0)
        if b > others:
            raise ValueError(f"without the group of {size} there are {others} records, which fill no batch of {b}")
        few, many = sorted((b, size))  # of two random sets it does not matter which is drawn first: the smaller one
        if few > _MOST_TOGETHER:
            raise UnknownPairError(
                f"at most {_MOST_TOGETHER:,} records of a group are accounted for in one batch, got a group of"
                f" {size:,} in batches of {b:,}; account for a smaller group"
            )
        ways = [math.comb(few, j) * math.perm(many, j) * math.perm(population - many, few - j) for j in range(few + 1)]
        return self._moved(tuple(Fraction(way, math.perm(population, few)) for way in ways), 2.0)

    def _moved(self, weights: tuple[Fraction, ...], shift: float) -> Pair:
        """Moved by so many shifts, with these chances, against unmoved."""
        from hockeystick.laws.mixture import GaussianMixturePair

        centres = tuple(shift * j for j in range(len(weights)))
        return GaussianMixturePair(self.noise_multiplier, weights, centres, (Fraction(1),), (0.0,))

    def summed_lower(self, taking_part: int, releases: int) -> tuple[Pair, ...]:
        """N(k, t s^2) against N(0, t s^2), its own reverse: docs/derivations/random-allocation.md, section 7."""
        return shown_by_gaussian(down(taking_part / (self.noise_multiplier * math.sqrt(releases)), 8.0 * U))

    def shuffled_lower(self, direction: Direction, batches: int) -> tuple[Pair, ...]:
        """Known datasets: docs/derivations/shuffling.md.

        The other records have value -1, this one 1 against null, or against -1: a shift of 2 against 1, or 0. The
        latter is random allocation, whose curve is known; so is that of 1 against null beside null records. With little
        noise the largest result tells nearly as much.
        """
        from hockeystick.laws.allocated import AllocatedCurve  # with all that plans it: only shuffling needs it
        from hockeystick.laws.curve import SupportPair
        from hockeystick.laws.largest_result import LargestResultPair

        other, known = (0.0, 2.0) if direction == "substitute" else (1.0, 1.0)
        largest: Pair = LargestResultPair(self.noise_multiplier, batches, 2.0, other)
        if self.noise_multiplier < _LITTLE or batches < _FEW:
            return (largest, largest.reversed()) if direction == "substitute" else (largest.under(direction),)
        allocated = SupportPair(AllocatedCurve(GaussianPair(self.noise_multiplier, known), batches))
        if direction == "substitute":
            return allocated, allocated.reversed()
        return largest.under(direction), allocated.under(direction)


def chances_of_draws(rate: Fraction, times: int) -> tuple[Fraction, ...]:
    """The chances of 0, 1, ... draws out of so many, each of the rate."""
    return tuple(math.comb(times, j) * rate**j * (1 - rate) ** (times - j) for j in range(times + 1))
