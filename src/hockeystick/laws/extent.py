"""Where a pair's losses end, and what lies at infinity: bounds that are kept accurate, and curves given by bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final

from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import ELEMENTARY, U, down

INFINITE = 32.0 * U
"""How far `Pair.mass_at_infinity` may exceed the true mass, relative to it: an exact number rounded once and one float
up (3 u), and as much for each sampling around it, of which there are a few."""


@final
@dataclass(frozen=True)
class Extreme:
    """An end of the finite losses: a float near it (nats), and a bound on the float's error."""

    value: float
    error: float = 0.0

    def __neg__(self) -> Extreme:
        return Extreme(-self.value, self.error)


def least_infinite(mass: float) -> float:
    """The true mass at infinity, rounded down, given a pair's `mass_at_infinity`."""
    return max(down(mass, INFINITE) - 2.0**-1072, 0.0)  # also of numbers below the normal range


@final
@dataclass(frozen=True)
class InfiniteMass:
    """The mass m of losses of +inf, and ``ln(1 - m)``: bounds on either.

    Attributes
    ----------
    low, high : float
        ``low <= m <= high``.
    log_low, log_high : float
        ``log_low <= ln(1 - m) <= log_high``, accurate relative to themselves however often they are multiplied.
    """

    low: float
    high: float
    log_low: float
    log_high: float

    @classmethod
    def rounded_up(cls, high: float) -> InfiniteMass:
        """From a float that is at most `INFINITE` relative too large."""
        if high == 0.0:
            return cls(0.0, 0.0, 0.0, 0.0)
        return cls.between(least_infinite(high), high)

    @classmethod
    def between(cls, low: float, high: float) -> InfiniteMass:
        """From bounds on the mass."""
        outward = ELEMENTARY + 2.0 * U  # a product besides
        log_low = math.log1p(-high) * (1.0 + outward) if high < 1.0 else -math.inf
        log_high = math.log1p(-low) * (1.0 - outward) if low < 1.0 else -math.inf
        return cls(low, high, log_low, log_high)


class CertifiedCurve(Protocol):
    """Certified bounds on the curve of one pair: equal, and of equal hash, where it is the same curve."""

    def __hash__(self) -> int:
        """Curves are kept by their parameters."""

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Lower and upper bound on delta(epsilon), epsilon finite and of any sign (nats)."""

    def deltas(self, epsilons: Array, spacing: float) -> tuple[Array, Array]:
        """The same for increasing epsilons of at least 0, as accurate as chords ``spacing`` wide are (nats)."""

    def reversed(self) -> CertifiedCurve:
        """The curve of the reversed pair."""

    def guess(self, delta: float) -> float:
        """About the epsilon at this delta: no bound."""

    @property
    def supremum(self) -> Extreme:
        """The pair's largest finite loss, ``inf`` where there is none."""

    @property
    def infinite_mass(self) -> InfiniteMass:
        """The pair's mass of losses of +inf."""
