"""The sides of delta of one list of outcomes, at any epsilons at once.

    delta(eps) = P(L = inf) + h(eps),      h(eps) = sum_{l > eps} p (1 - e^{eps - l}),

between two losses a straight line in ``e^eps`` (`hockeystick.engines.enumeration.excess`), off which epsilon is read.

Guarantee: lower and upper are certified, rounding included. Cost: sorting the list, once.
"""

from __future__ import annotations

import math
from typing import Self, final

import numpy as np

from hockeystick.engines.contour.root_bracket import Beginnings
from hockeystick.engines.enumeration.excess import LOST, Excess, Listed
from hockeystick.engines.enumeration.outcomes import Outcomes
from hockeystick.errors import PrecisionError
from hockeystick.laws.base import Array, Pair, least_infinite
from hockeystick.numerics.rounding import downs, gamma, ups

_MOST_ATOMS = 1 << 22  # of one step
_WIDEST = 1e7  # nats from its least loss to its largest, which are gone through block by block


@final
class OutcomeSides:
    """Sides of the curve.

    Parameters
    ----------
    outcomes : Outcomes
        Of all steps.
    at_infinity : (float, float)
        Bounds on the mass at infinite loss.
    method : str
        What the answers say of where they are from.
    """

    error = "rounding"
    step = 1e-13
    tells = is_joint = True

    def __init__(self, outcomes: Outcomes, at_infinity: tuple[float, float], method: str) -> None:
        self._excess, self._at_infinity, self.method = Excess.of(Listed.of(outcomes)), at_infinity, method
        self._largest = -float(self._excess.negative[0])

    @classmethod
    def of_step(cls, pair: Pair) -> Self | None:
        """Those of one step; None where its atoms are not known, or too many, and where a curve is given of it."""
        atoms = pair.atoms if pair.curve is None else None
        if atoms is None or atoms.dropped > 0.0 or not 0 < atoms.size <= _MOST_ATOMS:
            return None
        if not float(atoms.loss[-1] - atoms.loss[0]) <= _WIDEST or not np.isfinite(atoms.loss_error).all():
            return None
        most = pair.mass_at_infinity
        outcomes = Outcomes(atoms.loss, atoms.loss_error, atoms.log_p, atoms.error)
        try:
            return cls(outcomes, (least_infinite(most) if most else 0.0, most), pair.method)
        except PrecisionError:  # of masses that float64 does not tell
            return None

    def guesses(self, deltas: Array) -> Array:
        """The largest finite loss, or 0."""
        return np.full(deltas.size, max(self._largest, 0.0))

    def sides(self, epsilons: Array) -> tuple[Array, Array]:
        """Certified sides of delta."""
        excess, (least, most) = self._excess, self._at_infinity
        found, slope, spread = excess.at(-epsilons)
        error = excess.error + (1.0 + excess.error) * gamma(12)
        # from the upper ends of losses to the lower ones: e^s - 1 <= s (e^most - 1) / most for all s up to most
        moved = slope * spread * (math.expm1(excess.widest) / excess.widest if excess.widest > 0.0 else 1.0)
        lost = np.where(epsilons <= self._largest, LOST * excess.negative.size, 0.0)
        lower = found * (1.0 - error) - 1.01 * (1.0 + excess.error) * moved - lost
        upper = found * (1.0 + error) + lost
        return np.maximum(downs(np.maximum(lower, 0.0) + least), 0.0), np.minimum(ups(upper + most), 1.0)

    def beginnings(self, deltas: Array, guesses: Array) -> Beginnings:
        """On the line between two losses."""
        start, slope = self._excess.crossings(np.maximum(deltas - self._at_infinity[0], 0.0))
        at_zero = start <= 0.0
        rows = np.flatnonzero((deltas > self._at_infinity[1]) & (deltas >= 1e-300) & ~at_zero)
        return Beginnings(at_zero, rows, start[rows], np.zeros(rows.size), slope[rows] / deltas[rows], guesses[rows])
