"""Where a pair's losses end or may lie, what lies at infinity, and curves given by bounds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import ELEMENTARY, U, down, up

INFINITE = 32.0 * U
"""How far `Pair.mass_at_infinity` may exceed the true mass, relative to it: an exact number rounded once and one float
up (3 u), and as much for each sampling around it, of which there are a few."""

LEAST_DELTA = 1e-45
"""Where tables of a curve end."""

_HALVINGS = 60  # of an interval, for a guess


@final
@dataclass(frozen=True)
class Extreme:
    """An end of the finite losses: a float near it (nats), and a bound on the float's error."""

    value: float
    error: float = 0.0

    def __neg__(self) -> Extreme:
        return Extreme(-self.value, self.error)


@final
@dataclass(frozen=True)
class LossQuantum:
    """A number of which every finite loss is an integer multiple.

    Attributes
    ----------
    value : float
        The number (nats), above 0.
    slack : float
        Bound on the distance (nats) of any finite loss from the multiple of ``value`` nearest to it.
    """

    value: float
    slack: float


@final
@dataclass(frozen=True)
class LaplaceLoss:
    """A loss whose density grows as ``e^{l / 2}`` from its least value -m to m, in P: that of Laplace noise.

    Attributes
    ----------
    largest : Fraction
        m (nats).
    has_atoms : bool
        Whether it is m with probability 1/2, and -m with ``e^{-m} / 2``, as for plain Laplace noise.
    """

    largest: Fraction
    has_atoms: bool


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


class CertifiedCurve(ABC):
    """Certified bounds on the curve of one pair: hashable, equal where it is the same curve."""

    @abstractmethod
    def at(self, epsilon: float) -> tuple[float, float]:
        """Lower and upper bound on delta(epsilon), epsilon finite and at least 0 (nats)."""

    @abstractmethod
    def deltas(self, epsilons: Array, spacing: float) -> tuple[Array, Array]:
        """The same for increasing epsilons of at least 0, as accurate as chords ``spacing`` wide are (nats)."""

    @abstractmethod
    def reversed(self) -> CertifiedCurve:
        """The curve of the reversed pair."""

    @property
    def with_tails(self) -> CertifiedCurve:
        """The same curve, of which tables do not end at `LEAST_DELTA`; itself where they must."""
        return self

    @property
    @abstractmethod
    def infinite_mass(self) -> InfiniteMass:
        """The pair's mass of losses of +inf."""

    @property
    def supremum(self) -> Extreme:
        """The pair's largest finite loss: none, unless a subclass knows one."""
        return Extreme(math.inf)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """The same at an epsilon of any sign, below 0 as the reverse says."""
        return self.at(epsilon) if epsilon >= 0.0 else _of_reverse(epsilon, *self.reversed().delta(-epsilon))

    def guess(self, delta: float) -> float:
        """About the epsilon at this delta: no bound."""
        return undercut(lambda epsilon: self.at(epsilon)[1], delta, _HALVINGS)

    def one_by_one(self, epsilons: Array, least: float) -> tuple[Array, Array]:
        """The bounds at increasing epsilons of at least 0, until the upper one is next to nothing, or at the least."""
        low, high = np.zeros(epsilons.size), np.ones(epsilons.size)
        for number, epsilon in enumerate(epsilons.tolist()):
            low[number], high[number:] = self.at(epsilon)  # delta falls
            if high[number] <= max(LEAST_DELTA, least):
                low[number:] = self.infinite_mass.low
                break
        return low, high


def undercut(upper: Callable[[float], float], delta: float, halvings: int) -> float:
    """About where an upper bound on a curve falls to delta (nats), found so accurately."""
    low, high = 0.0, 1.0
    while upper(high) > delta and high < 512.0:
        low, high = high, 2.0 * high
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if upper(middle) > delta else (low, middle)
    return high


def _of_reverse(epsilon: float, low: float, high: float) -> tuple[float, float]:
    """Bounds at epsilon < 0 from those of the reverse at -epsilon: ``h(a) = 1 - a + a h_reverse(1 / a)``."""
    rest, a = -math.expm1(epsilon), math.exp(epsilon)
    return down(rest + a * low, 4.0 * ELEMENTARY), min(up(rest + a * high, 4.0 * ELEMENTARY), 1.0)
