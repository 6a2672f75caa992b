"""The certified curve of many outcomes, by adding up what each of them contributes.

    delta(eps) = P(L = inf) + sum_{l > eps} p (1 - e^{eps - l})

over the outcomes of the composition (`hockeystick.engines.enumeration.outcomes`), all or those that matter. No lattice,
no tilt: what remains is rounding, also beside an atom and where only the largest loss is left. Where they are too many
for one list, half of the steps are listed, and the other half: with h the same sum over the second list
(`hockeystick.engines.enumeration.excess`),

    delta(eps) = P(L = inf) + sum_i p_i h(eps - l_i)        over the first list.

Losses are taken at the upper ends of their errors, masses as they are computed. With the computed places k(i) in the
second list kept, what the sum loses where losses are moved to their lower ends is a sum of the same terms, so that one
pass gives both sides.

Guarantee: lower and upper are certified, rounding included. Cost: an exponential for each outcome of the first list and
question, and the place of a number in the second, which both lists, sorted, give by walking along them together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.ends import composed_infinity
from hockeystick.engines.enumeration.excess import LOST, Excess, Listed, sum_error, sum_of
from hockeystick.engines.enumeration.outcomes import (
    NONE,
    Omission,
    Outcomes,
    dropped_mass,
    halves,
    number_of_outcomes,
    outcomes_of_all,
)
from hockeystick.engines.enumeration.sides import OutcomeSides
from hockeystick.laws.base import Pair
from hockeystick.numerics.one_sided_root import crossings_of
from hockeystick.numerics.roots import newton_root
from hockeystick.numerics.rounding import U, down, exp_up, gamma, up

_METHOD = "enumeration"
_FEW = 1 << 14  # outcomes of one list
_BLOCK = 1 << 14  # of them at once: arrays that stay near
_ROUGH = 1 << 12  # groups of outcomes: a guess is good to a millionth of a nat
_NEAR = 1e-6  # of the largest loss: how good a guess is looked for


@final
@dataclass(frozen=True)
class _Sum:
    """``sum_i p_i h(eps - l_i)``: bounds on it, a value between, and how fast it falls in epsilon."""

    lower: float
    upper: float
    value: float
    slope: float

    @classmethod
    def of(cls, first: Listed, second: Excess, epsilon: float) -> Self:
        """The sum at epsilon."""
        least = float(second.negative[0])
        start = first.beyond(epsilon, least)
        blocks = [_block(first.at(slice(at, at + _BLOCK)), second, epsilon) for at in range(start, first.size, _BLOCK)]
        value, slope, doubt, moved = (math.fsum(column) for column in zip((0.0,) * 4, *blocks, strict=True))
        error = second.error + (1.0 + second.error) * (gamma(12) + sum_error(min(first.size, _BLOCK)))
        both = 1.01 * (1.0 + first.most) * (1.0 + second.error)
        # below the largest loss, also where all terms are too small to be told from 0
        lost = LOST * (first.size - start + second.negative.size) if epsilon <= float(first.loss[-1]) - least else 0.0
        lower = value * (1.0 - error) - both * (doubt + moved) - lost
        return cls(max(lower, 0.0), value * (1.0 + error) + both * doubt + lost, value, slope)


def _block(first: Listed, second: Excess, epsilon: float) -> tuple[float, float, float, float]:
    """Sums over some of the first list: the value, its slope, what masses and what losses may be off by."""
    beyond = first.loss - epsilon
    size = np.abs(beyond)
    beyond += 3.0 * U * size  # upward by more than the rounding
    height, weight, own = second.at(beyond)
    terms, weight = first.mass * height, first.mass * weight
    # from the upper ends of losses to the lower ones: e^s - 1 <= s (e^most - 1) / most for all s up to most
    spread = first.spread + own + 8.0 * U * size
    most = float((first.spread + 8.0 * U * size).max()) + second.widest
    moved = sum_of(weight * spread) * (math.expm1(most) / most if most > 0.0 else 1.0)
    return sum_of(terms), sum_of(weight), sum_of(terms * first.error), moved


@final
@dataclass(frozen=True, eq=False)
class _Halves:
    """Two lists, and the largest loss of both together."""

    first: Listed
    second: Excess
    largest: float

    @classmethod
    def of(cls, own: Outcomes, other: Outcomes) -> Self:
        """Of the outcomes of both."""
        first = Listed.of(own)
        rest = first if other is own else Listed.of(other)
        return cls(first, Excess.of(rest), float(max(first.loss[-1] + rest.loss[-1], 0.0)))

    def at(self, epsilon: float) -> _Sum:
        """The sum at epsilon."""
        return _Sum.of(self.first, self.second, epsilon)


@final
class EnumeratedCurve:
    """The curve of one direction.

    Parameters
    ----------
    parts : sequence of (Pair, int)
        Pairs of known atoms.
    at_infinity : (float, float)
        Bounds on the mass at infinite loss.
    omitted : Omission
        What lists may leave out: the upper side adds it.
    """

    def __init__(
        self, parts: Sequence[tuple[Pair, int]], at_infinity: tuple[float, float], omitted: Omission = NONE
    ) -> None:
        few = number_of_outcomes(parts, _FEW) is not None
        first, second = (parts, ()) if few else halves(parts)
        own = outcomes_of_all(first, omitted)
        other = own if second == first else outcomes_of_all(second, omitted)
        self._halves = _Halves.of(own, other)
        self._dropped = dropped_mass(parts, omitted.log_drop) if omitted.log_drop > -math.inf else 0.0
        self._theta, self._log_omitted = omitted.theta, own.weights_beside(other)[1]
        self._at_infinity = at_infinity

    @property
    def size(self) -> int:
        """How many outcomes are kept."""
        return self._halves.first.size + self._halves.second.ranks.size

    @staticmethod
    def serves(parts: Sequence[tuple[Pair, int]], most: int) -> bool:
        """Whether a composition has at most so many outcomes, all known."""
        return number_of_outcomes(parts, most) is not None

    @staticmethod
    def serves_in_halves(parts: Sequence[tuple[Pair, int]], most: int) -> bool:
        """Whether either half of its steps has at most so many."""
        return all(number_of_outcomes(half, most) is not None for half in halves(parts))

    @staticmethod
    def sides_of(parts: Sequence[tuple[Pair, int]]) -> OutcomeSides:
        """The sides of the curve of few outcomes, off one list of them all."""
        return OutcomeSides(outcomes_of_all(parts), composed_infinity(parts), _METHOD)

    def left_out(self, epsilon: float) -> float:
        """Bound on what outcomes left out add to delta(epsilon)."""
        if self._log_omitted == -math.inf:
            return self._dropped
        # of each, p (1 - e^{eps - l}) is at most c(theta) p e^{theta (l - eps)}
        log_most = float(log_constant(np.array(self._theta))) + self._log_omitted - self._theta * epsilon
        size = abs(self._log_omitted) + self._theta * abs(epsilon) + 1.0
        return up(self._dropped + exp_up(min(log_most + 8.0 * U * size, 0.0)))

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        return self._bound(*self._sides(epsilon))

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        finite = max(delta - self._at_infinity[1], 1e-320)
        guess, slope = self._guessed(finite)
        slope *= finite / delta
        return self._bound(*crossings_of(self._sides, delta, guess=guess, slope=slope, step=2e-15 * max(1.0, guess)))

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether ``delta(epsilon) <= delta``: proving that takes one evaluation."""
        return self._sides(epsilon)[1] <= delta

    def _sides(self, epsilon: float) -> tuple[float, float]:
        """Lower and upper bound of delta."""
        found = self._halves.at(epsilon)
        least, most = self._at_infinity
        left_out = self.left_out(epsilon)
        most = up(most + left_out) if left_out else most
        return max(down(found.lower + least), 0.0), min(up(found.upper + most), 1.0)

    def about(self, epsilon: float) -> float:
        """About delta, but for the mass at infinite loss."""
        return self._about(epsilon).value

    def guess(self, finite: float) -> float:
        """About the epsilon at which so much of delta is left, but for the mass at infinite loss.

        Good to a millionth of the largest loss.
        """

        def excess(at: float) -> tuple[float, float]:
            here = self._about(at)
            return math.log(finite / max(here.value, 1e-320)), here.slope / here.value if here.value > 0.0 else 0.0

        largest = self._halves.largest
        return newton_root(excess, 0.0, largest, _NEAR * largest)

    def _guessed(self, finite: float) -> tuple[float, float]:
        """A better guess, and ``-d ln(delta) / d epsilon`` there, of that part of delta."""
        halves = self._halves
        guess = self.guess(finite)
        here = halves.at(guess)
        if not (here.slope > 0.0 and here.value > 0.0):
            return guess, 1.0
        slope = here.slope / here.value
        nearer = guess + math.log(here.value / finite) / slope
        return (nearer, slope) if 0.0 <= nearer <= halves.largest else (guess, 1.0)

    def _about(self, epsilon: float) -> _Sum:
        return _Sum.of(self._rough, self._halves.second, epsilon)

    @cached_property
    def _rough(self) -> Listed:
        """The first list with neighbours together, for guesses."""
        return self._halves.first.grouped(_ROUGH)

    def _bound(self, lower: float, upper: float) -> Bound:
        return from_sides(lower, upper, _METHOD, errors={"rounding": upper - lower})
