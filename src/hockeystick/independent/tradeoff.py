"""The trade-off function: ``f(alpha) = max over a >= 0 of phi(a) = 1 - h(a) - a alpha``, h(a) = delta(ln a).

phi is concave, so that chords bound it. With a_-2 < ... < a_2, phi(a_-1) <= phi(a_0) and phi(a_1) <= phi(a_0), phi is
at most phi(a_0) outside [a_-1, a_1]; in [a_0, a_1] it is below the line through a_-1 and a_0, which rises, and below
that through a_1 and a_2, which falls; in [a_-1, a_0] likewise. Also f <= 1 - alpha and f >= 0.
f(0) is 1 less the mass at loss infinity, the limit of phi.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from hockeystick.independent.balls import UnreachedError, real
from hockeystick.independent.run import Run

_SPACINGS = tuple(Fraction(1, 4**power) for power in range(1, 6))  # of ln a
_REACH = 40


@final
class TradeOff:
    """The trade-off function of one run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._deltas = lru_cache(None)(self._delta)

    def _delta(self, epsilon: Fraction) -> Any:
        finite, infinite = self.run.delta(epsilon, 34 if epsilon.denominator <= 16 else 66, -20.0)
        return finite + real(infinite)

    def _phi(self, epsilon: Fraction, alpha: Fraction) -> Any:
        return 1 - self._deltas(epsilon) - real(epsilon).exp() * real(alpha)

    def _best(self, alpha: Fraction, spacing: Fraction, start: int) -> int:
        """The grid point where phi is about largest."""
        k, low, high = start, -round(_REACH / spacing), round(_REACH / spacing)

        def value(k: int) -> float:
            return float(self._phi(k * spacing, alpha).mid())

        while k < high and value(k + 1) > value(k):
            k += 1
        while k > low and value(k - 1) > value(k):
            k -= 1
        return k

    def holds(self, alpha: Fraction, claimed: Fraction, *, upper: bool) -> bool:
        """Whether the side claimed is proved; else it is proved that the true value lies beyond it."""
        if (upper and claimed >= 1 - alpha) or (not upper and claimed <= 0):
            return True
        if alpha == 0:
            return self._holds_at_zero(claimed, upper=upper)
        k, most = 0, real(claimed)
        for number, spacing in enumerate(_SPACINGS):
            k = self._best(alpha, spacing, 4 * k if number else 0)
            at = [(k + j) * spacing for j in range(-2, 3)]
            phi = [self._phi(epsilon, alpha) for epsilon in at]
            reached = phi[2] if phi[2] > 0 else real(0)
            if reached > most or (reached >= most and not upper):
                return not upper
            bound = self._chords(at, phi).max(real(0))
            if bound < most or (bound <= most and upper):
                return upper
        reach = f"f({float(alpha)}) was enclosed to [{float(reached.lower()):.9f}, {float(bound.upper()):.9f}] only"
        raise UnreachedError(reach)

    def _holds_at_zero(self, claimed: Fraction, *, upper: bool) -> bool:
        infinite = self.run.infinite()
        over = 1 - infinite - claimed if isinstance(infinite, Fraction) else 1 - infinite - real(claimed)
        if over > 0 or (over >= 0 and not upper):
            return not upper
        if over < 0 or (over <= 0 and upper):
            return upper
        raise UnreachedError("the mass at infinity is too near to the value claimed")

    @staticmethod
    def _chords(epsilons: list[Fraction], phi: list[Any]) -> Any:
        """The bound of the header."""
        a = [real(epsilon).exp() for epsilon in epsilons]
        if not (phi[1] <= phi[2] and phi[3] <= phi[2]):
            return real(math.inf)

        def line(i: int, at: int) -> Any:
            return phi[i] + (phi[i + 1] - phi[i]) / (a[i + 1] - a[i]) * (a[at] - a[i])

        above = line(1, 3).min(line(3, 2))
        below = line(2, 1).min(line(0, 2))
        return phi[2].max(above).max(below)
