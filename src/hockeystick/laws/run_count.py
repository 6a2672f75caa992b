"""How often a run is repeated before the best is released: random numbers K with a known generating function f.

``f(x) = E x^K``; its slope f' increases. The functions take the *rest* ``s = 1 - x``, so that nothing cancels where x
is near 1: ``slope(s) = f'(1 - s)`` and ``chance(p, s) = f(1 - s) - f(1 - s - p)``, the chance that the best run lands
in an event of probability p, where better outputs have probability s.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.errors import check_fields, check_finite, check_inside, check_positive
from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import U

__all__ = ["NegativeBinomialCount", "PoissonCount", "RunCount"]  # what a specification can name

_MOST = 1e6


class RunCount(ABC):
    """A law of the number of runs: frozen, hashable."""

    @property
    @abstractmethod
    def error(self) -> float:
        """Bound on the relative errors of `chance` and of ``exp(log_slope)``, a rounding of the rest included."""

    @abstractmethod
    def log_slope(self, rest: Array) -> Array:
        """``ln f'(1 - s)`` at rests s in [0, 1]."""

    @abstractmethod
    def chance(self, part: Array, rest: Array) -> Array:
        """``f(1 - s) - f(1 - s - p)`` for p, s and p + s in [0, 1]."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The law in a sentence."""


@final
@dataclass(frozen=True)
class PoissonCount(RunCount):
    """A Poisson number of runs; none at all with probability e^-mean, and then nothing is released.

    Parameters
    ----------
    mean : float
        Above 0, at most a million.

    Examples
    --------
    >>> round(float(PoissonCount(10.0).chance(np.array(0.1), np.array(0.0))), 3)
    0.632
    """

    mean: float

    def __post_init__(self) -> None:
        check_fields(self, mean=check_positive)
        if self.mean > _MOST:
            raise ValueError(f"mean must be at most {_MOST:g}, got {self.mean!r}")

    @property
    def error(self) -> float:
        return 32.0 * U * (4.0 + self.mean)

    def log_slope(self, rest: Array) -> Array:
        return math.log(self.mean) - self.mean * rest

    def chance(self, part: Array, rest: Array) -> Array:
        return -np.expm1(-self.mean * part) * np.exp(-self.mean * rest)

    @property
    def words(self) -> str:
        return f"a Poisson number of runs, {self.mean:g} on average"


@final
@dataclass(frozen=True)
class NegativeBinomialCount(RunCount):
    """A truncated negative binomial number of runs (Papernot and Steinke 2022): at least one.

    ``Pr(K = k)`` is proportional to ``(1 - stopping)^k`` times the product of ``(shape + l) / (l + 1)`` over l < k.
    With shape 1 it is geometric: after every run, stop with probability ``stopping``. With shape 0 it is logarithmic.

    Parameters
    ----------
    stopping : float
        gamma, at least 1e-6 and below 1.
    shape : float
        eta, above -1, at most 1000, and ``-shape ln(stopping)`` at most 600.

    Examples
    --------
    >>> NegativeBinomialCount(0.1).mean
    10.00000000000000...
    """

    stopping: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self, stopping=check_inside, shape=check_finite)
        stopping, shape = self.stopping, self.shape
        if stopping < 1.0 / _MOST:
            raise ValueError(f"stopping must be at least {1.0 / _MOST:g}, got {stopping!r}")
        if not -1.0 < shape <= 1000.0:
            raise ValueError(f"shape must be above -1 and at most 1000, got {shape!r}")
        if shape * -math.log(stopping) > 600.0:
            raise ValueError(f"a shape of {shape!r} and a stopping of {stopping!r} make more runs than float64 counts")

    @property
    def mean(self) -> float:
        """The mean number of runs."""
        return math.exp(float(self.log_slope(np.zeros(1))[0]))

    @property
    def error(self) -> float:
        # 3 - ln gamma, where roundings take 2: the rest is for a gamma that is off (docs/derivations/events.md)
        return 64.0 * U * (4.0 + (2.0 + abs(self.shape)) * (3.0 - math.log(self.stopping)))

    @property
    def _ratio(self) -> float:
        return (1.0 - self.stopping) / self.stopping

    @property
    def _all(self) -> float:
        """``L (1 - e^{-eta L}) / (eta L)`` at ``L = -ln gamma``."""
        whole = -math.log(self.stopping)
        return whole * float(_average(np.array(self.shape * whole)))

    def log_slope(self, rest: Array) -> Array:
        return math.log(self._ratio / self._all) - (1.0 + self.shape) * np.log1p(self._ratio * rest)

    def chance(self, part: Array, rest: Array) -> Array:
        better = 1.0 + self._ratio * rest
        log = np.log1p(self._ratio * part / better)
        return np.exp(-self.shape * np.log(better)) * log * _average(self.shape * log) / self._all

    @property
    def words(self) -> str:
        return (
            f"a truncated negative binomial number of runs, {self.mean:.6g} on average (stopping {self.stopping:g},"
            f" shape {self.shape:g})"
        )


def _average(y: Array) -> Array:
    """``(1 - e^-y) / y``, 1 at 0."""
    size = np.where(y == 0.0, 1.0, y)
    return np.where(y == 0.0, 1.0, -np.expm1(-size) / size)
