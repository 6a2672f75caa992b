"""The certified curve of few outcomes, by adding up what each of them contributes.

    delta(eps) = P(L = inf) + sum_{l > eps} p (1 - e^{eps - l})

over the outcomes of the composition (`hockeystick.engines.enumeration.outcomes`). No lattice, no tilt: what remains is
rounding, also beside an atom and where only the largest loss is left. Where outcomes are many, half of the steps are
listed, and the other half: with h the same sum over the second list,

    delta(eps) = P(L = inf) + sum_i p_i h(eps - l_i)        over the first list.

Guarantee: lower and upper are certified, rounding included. Cost: one exponential for each outcome of the first list
and question, and the place of a number in the second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.enumeration.outcomes import Outcomes, halves, number_of_outcomes, outcomes_of_all
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.one_sided_root import one_sided_root
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import ELEMENTARY, U, down, gamma, up

__all__ = ["EnumeratedCurve"]

_METHOD = "enumeration"
_FEW = 1 << 14  # terms that are added up without an error
_MOST = 1 << 20  # outcomes of half the steps
_NEAR = 1e-3  # of the largest loss: how good a guess is
_LOST = 2.0**-1070  # a few units of the numbers too small for a relative error


@final
@dataclass(frozen=True, eq=False)
class _Excess:
    """``h(y) = sum_{l > y} p (1 - e^{y - l})`` of a list, by sums of positive terms alone.

    From the largest loss on, with ``W_k = sum_{j <= k} p_j e^{l_k - l_j}`` and ``H_k = h(l_k)``, the sum of
    ``W_j (1 - e^{l_{j+1} - l_j})`` over j < k,

        h(y) = H_k + W_k (1 - e^{y - l_k}),        l_{k+1} <= y < l_k.

    Attributes
    ----------
    negative, height, weight : ndarray, shape (n,)
        ``-l_k``, which rise, ``H_k`` and ``W_k``.
    error : float
        Bound on the relative error of h.
    """

    negative: Array
    height: Array
    weight: Array
    error: float

    @classmethod
    def of(cls, loss: Array, mass: Array) -> Self:
        """Of exact losses and masses."""
        order = np.argsort(-loss, kind="stable")
        loss, mass = loss[order], mass[order]
        below = loss[0] - loss
        weight = np.exp(-below) * _cumulated(mass * np.exp(below))
        height = np.append(0.0, _cumulated(weight[:-1] * -np.expm1(np.diff(loss))))
        sums = 2.0 * gamma(4.0 * math.isqrt(loss.size) + 8.0)
        return cls(-loss, height, weight, 1.01 * (4.0 * ELEMENTARY + 2.0 * U * float(below[-1]) + sums + 8.0 * U))

    @property
    def largest(self) -> float:
        """``l_1``."""
        return -float(self.negative[0])

    def at(self, y: Array) -> Array:
        """h at numbers."""
        place = np.searchsorted(self.negative, -y, side="left")  # so many losses are above
        last = np.maximum(place - 1, 0)
        grown = self.height[last] + self.weight[last] * -np.expm1(np.minimum(y + self.negative[last], 0.0))
        return np.where(place > 0, grown, 0.0)


@final
class EnumeratedCurve:
    """The curve of one direction.

    Parameters
    ----------
    parts : sequence of (Pair, int)
        Pairs of known atoms.
    at_infinity : (float, float)
        Bounds on the mass at infinite loss.
    """

    def __init__(self, parts: Sequence[tuple[Pair, int]], at_infinity: tuple[float, float]) -> None:
        several = None if self.serves(parts, _FEW) else halves(parts, _MOST)
        first, second = (_sides(outcomes_of_all(half)) for half in several or (parts, ()))
        self._first, self._second = first, [_Excess.of(*side) for side in second]
        self._largest = float(max(first[1][0].max() + self._second[1].largest, 0.0))
        self._at_infinity = at_infinity

    @staticmethod
    def serves(parts: Sequence[tuple[Pair, int]], most: int) -> bool:
        """Whether a composition has at most so many outcomes, all known."""
        return number_of_outcomes(parts, most) is not None

    @staticmethod
    def serves_in_halves(parts: Sequence[tuple[Pair, int]], most: int) -> bool:
        """Whether either half of its steps has at most so many."""
        return halves(parts, most) is not None

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        lower, upper = self._side(epsilon, 0), self._side(epsilon, 1)
        return from_sides(lower, upper, _METHOD, errors={"rounding": upper - lower})

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        guess = increasing_root(
            lambda point: math.log(delta / max(self._side(point, 1), 1e-320)), 0.0, self._largest, _NEAR * self._largest
        )
        step = 1e-13 * max(1.0, guess)

        def beyond(side: int) -> float:
            return one_sided_root(
                lambda point: self._side(point, side), delta, guess=guess, slope=1.0, step=step, above=side == 1
            )

        lower, upper = beyond(0), beyond(1)
        return from_sides(lower, upper, _METHOD, errors={"rounding": upper - lower})

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether ``delta(epsilon) <= delta``: proving that takes one evaluation."""
        return self._side(epsilon, 1) <= delta

    def _side(self, epsilon: float, side: int) -> float:
        """Lower (0) or upper (1) bound of delta."""
        (losses, masses), second = self._first[side], self._second[side]
        y = epsilon - losses
        y = y + (3.0 if side == 0 else -3.0) * U * np.abs(y)  # outwards by more than both roundings: h falls
        above = y < second.largest
        terms = masses[above] * second.at(y[above])
        error = second.error + gamma(4) + _sum_error(terms)
        lost = _LOST * (terms.size + second.negative.size) if terms.size else 0.0
        if side:
            return min(up(_sum(terms) * (1.0 + error) + lost + self._at_infinity[1]), 1.0)
        return max(down(max(_sum(terms) * (1.0 - error) - lost, 0.0) + self._at_infinity[0]), 0.0)


def _sides(found: Outcomes) -> list[tuple[Array, Array]]:
    """Losses and masses from below and from above."""
    order = np.argsort(found.loss, kind="stable")
    loss, loss_error, log_p, error = (
        column[order] for column in (found.loss, found.loss_error, found.log_p, found.error)
    )
    exact = loss_error == 0.0
    losses = (np.where(exact, loss, np.nextafter(loss + sign * loss_error, sign * np.inf)) for sign in (-1.0, 1.0))
    slack = error + 2.0 * U * np.abs(log_p) + 2.0 * ELEMENTARY
    masses = np.maximum(np.exp(log_p - slack) - _LOST, 0.0), np.exp(np.minimum(log_p + slack, 0.0)) + _LOST
    return list(zip(losses, masses, strict=True))


def _cumulated(terms: Array) -> Array:
    """Cumulated sums, by rows of about as many as there are rows: few roundings each."""
    length = math.isqrt(terms.size) + 1
    table = np.cumsum(np.append(terms, np.zeros(-terms.size % length)).reshape(-1, length), axis=1)
    before = np.append(0.0, np.cumsum(table[:-1, -1]))
    return np.asarray((table + before[:, None]).ravel()[: terms.size])


def _sum(terms: Array) -> float:
    """The sum of terms of one sign, rounded once where they are few."""
    return math.fsum(terms.tolist()) if terms.size <= _FEW else float(terms.sum())


def _sum_error(terms: Array) -> float:
    """Bound on the relative error of `_sum`, beyond one rounding."""
    return 0.0 if terms.size <= _FEW else gamma(terms.size)
