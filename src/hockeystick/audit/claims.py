"""What is claimed of a run, as an audit asks it: how many false alarms a share of hits must cost.

A trade-off function f says that a test with false-positive rate alpha has a true-positive rate of at most
``1 - f(alpha)``. Its inverse, the smallest false-positive rate at which a true-positive rate is possible, is what an
audit compares with. Every claim here is symmetric: it holds with the two datasets exchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from hockeystick.bound import Bound
from hockeystick.curve import PrivacyCurve
from hockeystick.readouts.directions import Asked

_POINTS = 129
_FAR = 1e-12  # delta up to whose epsilon a curve is asked: beyond it a claim says nothing that an audit could see


class Claim(Protocol):
    """A symmetric trade-off function, or one below it."""

    def cost(self, hits: float) -> float:
        """The smallest false-positive rate with which a true-positive rate of ``hits`` is possible."""


@final
@dataclass(frozen=True)
class Gaussian:
    """mu-Gaussian DP."""

    mu: float

    def cost(self, hits: float) -> float:
        """The claim's own, in closed form."""
        return float(ndtr(ndtri(hits) - self.mu))


@final
@dataclass(frozen=True)
class Approximate:
    """(epsilon, delta)-DP."""

    epsilon: float
    delta: float

    def cost(self, hits: float) -> float:
        """The larger of what its two lines ask for."""
        far = math.exp(-self.epsilon) * (hits - self.delta)
        near = 1.0 - self.delta - math.exp(min(self.epsilon, 700.0)) * (1.0 - hits)
        return max(far, near, 0.0)


@final
@dataclass(frozen=True, eq=False)
class Lines:
    """A certified privacy curve: ``delta(epsilon_i) <= delta_i``, each of which is a claim by itself."""

    factor: NDArray[np.float64]
    delta: NDArray[np.float64]

    def cost(self, hits: float) -> float:
        """The largest that any line or its mirror asks for."""
        far = float(np.max((hits - self.delta) / self.factor))
        near = float(np.max(1.0 - self.delta - self.factor * (1.0 - hits)))
        return max(far, near, 0.0)


def claim_of(curve: PrivacyCurve) -> Lines:
    """The claim that a certified curve makes, through points of it: at most what the curve says."""
    if not isinstance(curve, PrivacyCurve):
        raise TypeError(f"claim must be a privacy curve, such as hockeystick.account(run), got {curve!r}")
    ask = Asked(curve)
    delta = ask.both_ways()
    last = 1.0
    while last < 512.0 and delta(last).upper > _FAR:
        last *= 2.0
    epsilons = last * np.linspace(0.0, 1.0, _POINTS) ** 2
    deltas = np.array([delta(float(epsilon)).upper for epsilon in epsilons])
    if not ask.certified:
        raise TypeError(
            f"an audit needs a proved claim, and {curve.accountant!r} estimates: "
            f"account the run by one that returns a {Bound.__name__}"
        )
    return Lines(np.exp(epsilons), deltas)
