"""Epsilon as an exact number: a rational, or the logarithm of one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from hockeystick.errors import set_fields
from hockeystick.exact.balls import ball


@final
@dataclass(frozen=True)
class Log:
    """``ln(order)``, exactly: the epsilon at which ``delta`` is the hockey-stick divergence of that order.

    Examples
    --------
    >>> Log(Fraction(4, 3)).order
    Fraction(4, 3)
    """

    order: Fraction

    def __post_init__(self) -> None:
        set_fields(self, order=Fraction(self.order))
        if not self.order > 0:
            raise ValueError(f"order must be above 0, got {self.order}")


Epsilon = Fraction | Log
"""An exact epsilon (nats)."""


def exact_epsilon_of(value: Fraction | float | Log) -> Epsilon:
    """``value`` as an exact epsilon: floats and fractions stand for themselves.

    Raises
    ------
    TypeError, ValueError
        For what is not a finite real number.
    """
    if isinstance(value, Log | Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"epsilon must be a float, a Fraction or a Log, got {value!r} of type {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"epsilon must be finite, got {value!r}")
    return Fraction(value)


def nats(epsilon: Epsilon) -> arb:
    """The ball of an exact epsilon at the working precision."""
    return ball(epsilon.order).log() if isinstance(epsilon, Log) else ball(epsilon)
