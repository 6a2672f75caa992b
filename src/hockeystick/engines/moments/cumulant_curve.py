"""What curves from the cumulants of a composition share: their window, and the ends of the range.

Guarantee: brackets at the ends are certified. Cost: none beyond the masses at infinity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from hockeystick.bound import Bound, Estimate
from hockeystick.engines.ends import composed_infinity, largest_loss
from hockeystick.engines.moments.cumulants import CumulantWindow
from hockeystick.engines.moments.log_moment import log_moment_bounds
from hockeystick.laws.base import Parts


class CumulantCurve(ABC):
    """One direction; a subclass names its method, and answers between the ends of the range."""

    method: str

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.window = CumulantWindow(parts)
        self.infinity = composed_infinity(parts)

    @cached_property
    def largest_loss(self) -> float:
        """The largest finite loss of the composition, rounded up."""
        return largest_loss(self.parts)[1]

    def log_moment_upper(self, theta: float) -> float:
        """Upper bound of K; infinite where nothing is known."""
        return float(log_moment_bounds(self.parts, np.array([1.0 + theta])).upper[0])

    @cached_property
    def is_certified(self) -> bool:
        """Whether K is bounded for these pairs."""
        return math.isfinite(self.log_moment_upper(1.0))

    def delta(self, epsilon: float) -> Bound | Estimate:
        """delta(epsilon), for an epsilon of at least 0 (nats)."""
        if epsilon >= self.largest_loss:
            return Bound(*self.infinity, self.method, ("epsilon is beyond the largest loss",))
        return self.delta_inside(epsilon)

    def epsilon(self, delta: float) -> Bound | Estimate:
        """Epsilon at ``delta``, in [0, 1] (nats)."""
        if delta >= 1.0:
            return Bound(0.0, 0.0, self.method)
        if delta < self.infinity[0]:
            return Bound(math.inf, math.inf, self.method, ("delta is below the mass at infinite loss",))
        return self.epsilon_inside(delta)

    @abstractmethod
    def delta_inside(self, epsilon: float) -> Bound | Estimate:
        """Delta where some finite loss lies above epsilon."""

    @abstractmethod
    def epsilon_inside(self, delta: float) -> Bound | Estimate:
        """Epsilon for a delta below 1, and not below the mass of infinite losses."""
