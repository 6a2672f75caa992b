"""The values a calibration may take, on an axis along which privacy gets worse.

A value x sits at ``v = ln x`` where larger values are less safe, at ``v = -ln x`` where smaller ones are: the
sought value is always the largest v that is safe.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

_NEAR = 4.0e-16


@final
@dataclass(frozen=True)
class Axis:
    """Positive real or integer values between two limits.

    Attributes
    ----------
    low, high : float
        The limits of the values.
    whole : bool
        Whether only integers count.
    sign : int
        1 where larger values are less safe, -1 where smaller ones are.
    precision : float
        Relative distance at which two real values count as neighbours.
    """

    low: float
    high: float
    whole: bool
    sign: int
    precision: float

    @property
    def start(self) -> float:
        """The safest value."""
        return self.value(-math.inf)

    @property
    def end(self) -> float:
        """The least safe value."""
        return self.value(math.inf)

    def place(self, value: float) -> float:
        """Where a value sits."""
        return self.sign * math.log(value)

    def value(self, place: float) -> float:
        """The value at a place, within the limits; an integer is rounded to the safe side."""
        at = self.sign * place
        if at <= math.log(self.low) or at >= math.log(self.high):  # the limits themselves, not rounded
            raw = self.low if at <= math.log(self.low) else self.high
        else:
            raw = math.exp(at)
        if self.whole:
            # a place computed from an integer may come back a rounding error below it
            raw = math.floor(raw * (1.0 + _NEAR)) if self.sign > 0 else math.ceil(raw * (1.0 - _NEAR))
            return int(min(max(raw, self.low), self.high))
        return min(max(raw, self.low), self.high)

    def beyond(self, value: float) -> float:
        """The nearest value less safe: one step of the precision, or the next integer."""
        if self.whole:
            return int(min(max(value + self.sign, self.low), self.high))
        return min(max(value * (1.0 + self.sign * self.precision), self.low), self.high)

    def fineness(self, place: float) -> float:
        """How well a place need be known, to tell safe from unsafe to the precision."""
        return 0.25 * math.exp(-self.sign * place) if self.whole else 0.1 * self.precision

    def close(self, safe: float, unsafe: float) -> bool:
        """Whether nothing worth asking lies between a safe and an unsafe value."""
        if self.whole:
            return abs(unsafe - safe) <= 1
        return abs(unsafe - safe) <= self.precision * safe
