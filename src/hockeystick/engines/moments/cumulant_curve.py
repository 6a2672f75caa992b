"""What curves from the cumulants of a composition share: their window, and the ends of the range.

Guarantee: brackets at the ends are certified. Cost: none beyond the masses at infinity.
"""

from __future__ import annotations

import math
from functools import cached_property

from hockeystick.bound import Bound
from hockeystick.engines.ends import composed_infinity, largest_loss
from hockeystick.engines.moments.cumulants import CumulantWindow
from hockeystick.laws.base import Pair

Parts = tuple[tuple[Pair, int], ...]


class CumulantCurve:
    """One direction; a subclass names its method."""

    method: str

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.window = CumulantWindow(parts)
        self.infinity = composed_infinity(parts)

    @cached_property
    def largest_loss(self) -> float:
        """The largest finite loss of the composition, rounded up."""
        return largest_loss(self.parts)[1]

    def trivial_delta(self, epsilon: float) -> Bound | None:
        """Delta where no finite loss lies above epsilon."""
        if epsilon < self.largest_loss:
            return None
        return Bound(*self.infinity, self.method, ("epsilon is beyond the largest loss",))

    def trivial_epsilon(self, delta: float) -> Bound | None:
        """Epsilon for delta 1, and below the mass of infinite losses."""
        if delta >= 1.0:
            return Bound(0.0, 0.0, self.method)
        if delta < self.infinity[0]:
            return Bound(math.inf, math.inf, self.method, ("delta is below the mass at infinite loss",))
        return None
