"""What a calibration aims at: one quantity of the curve, and the most it may be.

Every target is a quantity that grows as privacy gets worse, so "the certified upper bound meets the target" is
``upper <= most`` and "proved to miss it" is ``lower > most``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from hockeystick.accountants.base import DirectedCurve
from hockeystick.bound import Bound, Estimate
from hockeystick.curve import PrivacyCurve, worst
from hockeystick.decimals import plain
from hockeystick.errors import check_inside, check_positive, check_probability
from hockeystick.readouts.summary import smallest_mu
from hockeystick.readouts.trade_off import trade_off

__all__ = ["DeltaAt", "DirectedTarget", "EpsilonAt", "Mu", "Target", "TruePositiveRate", "target_of"]


class Target(ABC):
    """One quantity of a privacy curve and the most it may be."""

    @property
    @abstractmethod
    def most(self) -> float:
        """The largest value allowed."""

    @property
    @abstractmethod
    def quantity(self) -> str:
        """What `measure` measures, in words."""

    @abstractmethod
    def measure(self, curve: PrivacyCurve, tolerance: float) -> Bound | Estimate:
        """The quantity, to about a relative tolerance where the method has a choice."""

    @abstractmethod
    def __str__(self) -> str:
        """In words."""


class DirectedTarget(Target):
    """A quantity that is the largest over the directions of the relation."""

    @abstractmethod
    def measure_direction(self, curve: DirectedCurve) -> Bound | Estimate:
        """The quantity of one direction."""

    def measure(self, curve: PrivacyCurve, tolerance: float) -> Bound | Estimate:
        answers = {name: self.measure_direction(directed) for name, directed in curve.directed.items()}
        return worst(answers, curve.composition.notes)


@final
@dataclass(frozen=True)
class DeltaAt(DirectedTarget):
    """delta at an epsilon."""

    epsilon: float
    delta: float

    @property
    def most(self) -> float:
        return self.delta

    @property
    def quantity(self) -> str:
        return "the advantage" if self.epsilon == 0.0 else f"delta at epsilon {plain(self.epsilon)}"

    def measure_direction(self, curve: DirectedCurve) -> Bound | Estimate:
        return curve.delta(self.epsilon)

    def __str__(self) -> str:
        if self.epsilon == 0.0:
            return f"advantage {plain(self.delta)}"
        return f"epsilon {plain(self.epsilon)} at delta {plain(self.delta)}"


@final
@dataclass(frozen=True)
class EpsilonAt(DirectedTarget):
    """Pure differential privacy: epsilon at delta 0."""

    epsilon: float

    @property
    def most(self) -> float:
        return self.epsilon

    @property
    def quantity(self) -> str:
        return "epsilon at delta 0"

    def measure_direction(self, curve: DirectedCurve) -> Bound | Estimate:
        return curve.epsilon(0.0)

    def __str__(self) -> str:
        return f"epsilon {plain(self.epsilon)} at delta 0"


@final
@dataclass(frozen=True)
class Mu(Target):
    """mu of Gaussian DP, for the part of the curve above a floor."""

    mu: float
    floor: float

    @property
    def most(self) -> float:
        return self.mu

    @property
    def quantity(self) -> str:
        return "mu" + self._above

    def measure(self, curve: PrivacyCurve, tolerance: float) -> Bound | Estimate:
        return smallest_mu(curve, floor=self.floor, tolerance=tolerance)

    def __str__(self) -> str:
        return f"mu {plain(self.mu)}{self._above}"

    @property
    def _above(self) -> str:
        return f" above delta {plain(self.floor)}" if self.floor else ""


@final
@dataclass(frozen=True)
class TruePositiveRate(Target):
    """The largest true-positive rate of an attack at a false-positive rate."""

    true_positive_rate: float
    false_positive_rate: float

    @property
    def most(self) -> float:
        return self.true_positive_rate

    @property
    def quantity(self) -> str:
        return f"the true-positive rate at false-positive rate {plain(self.false_positive_rate)}"

    def measure(self, curve: PrivacyCurve, tolerance: float) -> Bound | Estimate:
        found = trade_off(curve, self.false_positive_rate, tolerance=tolerance)
        return found.true_positive_rate

    def __str__(self) -> str:
        rates = plain(self.true_positive_rate), plain(self.false_positive_rate)
        return f"true-positive rate {rates[0]} at false-positive rate {rates[1]}"


def target_of(
    *,
    epsilon: float | None,
    delta: float | None,
    mu: float | None,
    floor: float,
    true_positive_rate: float | None,
    false_positive_rate: float | None,
    advantage: float | None,
) -> Target:
    """The one target that was given."""
    given = {
        "epsilon and delta": epsilon is not None or delta is not None,
        "mu": mu is not None,
        "true_positive_rate and false_positive_rate": true_positive_rate is not None or false_positive_rate is not None,
        "advantage": advantage is not None,
    }
    named = [name for name, present in given.items() if present]
    if len(named) != 1:
        raise TypeError(
            f"give one target ({'; or '.join(given)}), got {' as well as '.join(named) if named else 'none'}"
        )
    if mu is not None:
        return Mu(check_positive("mu", mu), check_probability("floor", floor))
    if floor != 0.0:
        raise TypeError("floor belongs to the target mu")
    if advantage is not None:
        return DeltaAt(0.0, check_inside("advantage", advantage))
    if true_positive_rate is not None or false_positive_rate is not None:
        return _attack(true_positive_rate, false_positive_rate)
    return _epsilon_delta(epsilon, delta)


def _epsilon_delta(epsilon: float | None, delta: float | None) -> Target:
    if epsilon is None or delta is None:
        raise TypeError("epsilon and delta go together: give both")
    smallest = check_probability("delta", delta)
    if smallest == 1.0:
        raise ValueError("delta must be below 1: every run meets it")
    if smallest == 0.0:
        return EpsilonAt(check_positive("epsilon", epsilon, hint="with delta 0 no run that reveals anything meets it"))
    largest = 0.0 if epsilon == 0.0 else check_positive("epsilon", epsilon)
    return DeltaAt(largest, smallest)


def _attack(true_positive_rate: float | None, false_positive_rate: float | None) -> Target:
    if true_positive_rate is None or false_positive_rate is None:
        raise TypeError("true_positive_rate and false_positive_rate go together: give both")
    most, alpha = (
        check_inside("true_positive_rate", true_positive_rate),
        check_probability("false_positive_rate", false_positive_rate),
    )
    if not alpha < most:
        raise ValueError(
            f"true_positive_rate must be above false_positive_rate, which guessing reaches: got {most!r} at {alpha!r}"
        )
    return TruePositiveRate(most, alpha)
