"""The certified curve of few outcomes, by adding up what each of them contributes.

    delta(eps) = P(L = inf) + sum_{l > eps} p (1 - e^{eps - l})

over the outcomes of the composition (`hockeystick.engines.enumeration.outcomes`). No lattice, no tilt: what remains is
rounding, also beside an atom and where only the largest loss is left.

Guarantee: lower and upper are certified, rounding included. Cost: one exponential an outcome and question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.enumeration.outcomes import number_of_outcomes, outcomes_of_all
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.one_sided_root import one_sided_root
from hockeystick.numerics.rounding import ELEMENTARY, U, down, gamma, up

__all__ = ["EnumeratedCurve"]

_METHOD = "enumeration"
_FEW = 1 << 14  # terms that are added up without an error
_LOST = 2.0**-1070  # a few units of the numbers too small for a relative error


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
        found = outcomes_of_all(parts)
        order = np.argsort(found.loss, kind="stable")
        loss, loss_error = found.loss[order], found.loss_error[order]
        log_p, error = found.log_p[order], found.error[order]
        exact = loss_error == 0.0
        self._losses = tuple(
            np.where(exact, loss, np.nextafter(loss + sign * loss_error, sign * np.inf)) for sign in (-1.0, 1.0)
        )
        slack = error + 2.0 * U * np.abs(log_p) + 2.0 * ELEMENTARY
        self._masses = np.maximum(np.exp(log_p - slack) - _LOST, 0.0), np.exp(np.minimum(log_p + slack, 0.0)) + _LOST
        self._at_infinity = at_infinity

    @staticmethod
    def serves(parts: Sequence[tuple[Pair, int]], most: int) -> bool:
        """Whether a composition has at most so many outcomes, all known."""
        return number_of_outcomes(parts, most) is not None

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        lower, upper = self._side(epsilon, 0), self._side(epsilon, 1)
        return from_sides(lower, upper, _METHOD, errors={"rounding": upper - lower})

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        guess = self._guess(delta)
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
        gap = self._losses[side] - epsilon
        above = gap > 0.0
        gap, masses = gap[above], self._masses[side][above]
        doubt = 2.0 * U * gap  # the difference is one rounding off
        if side:
            terms = masses * -np.expm1(-(gap + doubt))
            total = _sum(terms) * (1.0 + 2.0 * ELEMENTARY + gamma(4) + _sum_error(terms)) + _LOST * terms.size
            return min(up(total + self._at_infinity[1]), 1.0)
        terms = masses * -np.expm1(-(gap - doubt))
        total = _sum(terms) * (1.0 - 2.0 * ELEMENTARY - gamma(4) - _sum_error(terms)) - _LOST * terms.size
        return max(down(max(total, 0.0) + self._at_infinity[0]), 0.0)

    def _guess(self, delta: float) -> float:
        """About epsilon: between which losses it lies, and there the line's own root."""
        loss = self._losses[1][::-1]
        mass = np.cumsum(self._masses[1][::-1]) + self._at_infinity[1]
        scaled = np.cumsum(self._masses[1][::-1] * np.exp(np.minimum(loss[-1] - loss, 0.0)))  # e^{least loss} Q
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            values = mass - scaled * np.exp(np.minimum(loss - loss[-1], 700.0))  # delta at each loss
            index = int(np.argmax(values > delta)) if (values > delta).any() else loss.size
            index = max(index - 1, 0)
            root = loss[-1] + np.log((mass[index] - delta) / scaled[index])
        return float(root) if math.isfinite(root) and root > 0.0 else max(float(loss[index]), 0.0)


def _sum(terms: Array) -> float:
    """The sum of terms of one sign, rounded once where they are few."""
    return math.fsum(terms.tolist()) if terms.size <= _FEW else float(terms.sum())


def _sum_error(terms: Array) -> float:
    """Bound on the relative error of `_sum`, beyond one rounding."""
    return 0.0 if terms.size <= _FEW else gamma(terms.size)
