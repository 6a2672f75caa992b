"""Exact rational numbers: what a probability vector stands for, and logarithms of ratios of integers.

Floats that are meant to sum to one miss it by a rounding or two. What such a vector *is*, is said here and nowhere
else: its entries as exact numbers, divided by their exact sum. It then sums to one exactly, and nothing that is
computed from it has to ask where the rest went; with millions of steps, two answers to that would exclude each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from typing import Any

from hockeystick.numerics.rounding import U

Probability = float | Fraction
"""An exact probability."""

LOG_RATIO = 12.0 * U
"""Bound on the relative error of `log_ratio` and `log_of`."""

_PLACES = 1074  # of a float64, behind the point
_MASS_TOLERANCE = Fraction(1, 10**9)  # how far given probabilities may sum away from one
_WRITTEN_OUT = 2000  # bits of a whole number that Python writes, however its limit is set
_TWENTY = Context(prec=20, Emax=MAX_EMAX, Emin=MIN_EMIN)


def exact_probabilities(name: str, entries: Sequence[Probability]) -> tuple[Probability, ...]:
    """The entries as exact numbers, divided by their exact sum; as they are where that is one.

    Parameters
    ----------
    name : str
        What to call the entries where they are refused.
    entries : sequence of float or Fraction
        Each in [0, 1], with a sum within 1e-9 of one.

    Raises
    ------
    ValueError
        For another sum.

    Examples
    --------
    >>> exact_probabilities("p", (0.25, 0.75))
    (0.25, 0.75)
    >>> sum(exact_probabilities("p", (0.1, 0.2, 0.7))) == 1  # the floats themselves miss one by 3e-17
    True
    """
    ratios = [entry.as_integer_ratio() for entry in entries]
    common = math.lcm(*(denominator for _, denominator in ratios))
    whole = [numerator * (common // denominator) for numerator, denominator in ratios]
    total = sum(whole)
    if total == common:
        return tuple(entries)
    if not abs(total - common) <= _MASS_TOLERANCE * common:
        raise ValueError(f"{name} must sum to 1, got {total / common!r}; divide by the sum, or use fractions")
    return tuple(Fraction(numerator, total) for numerator in whole)


def spelled(record: Any) -> str:
    """The repr of a dataclass that holds exact numbers: those that Python would not write, to twenty digits."""
    shown = (f"{field.name}={_spelled(getattr(record, field.name))}" for field in fields(record))
    return f"{type(record).__name__}({', '.join(shown)})"


def _spelled(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_spelled, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, Fraction) and value.denominator.bit_length() > _WRITTEN_OUT:
        return f"about {_TWENTY.divide(Decimal(value.numerator), Decimal(value.denominator))}"
    return repr(value)


def product_up(first: float | Fraction, second: float) -> float:
    """The smallest float of at least the product of two."""
    return float_beside(Fraction(first) * Fraction(second), up=True) if first and second else 0.0


def float_beside(value: Fraction, *, up: bool) -> float:
    """The float next to an exact number on one side, the number itself where it is one."""
    try:
        nearest = float(value)
    except OverflowError:  # it lies between the largest float and infinity
        nearest = math.inf if value > 0 else -math.inf
    if up:
        return math.nextafter(nearest, math.inf) if nearest < value else nearest
    return math.nextafter(nearest, -math.inf) if nearest > value else nearest


def root_beside(square: Fraction, *, up: bool) -> float:
    """The float next to the root of an exact number of at least 0 on one side, the root itself where it is one."""
    scaled = square * 4**_PLACES  # whose root is whole for every square of a float
    whole = math.isqrt(math.ceil(scaled) - 1) + 1 if up and scaled else math.isqrt(math.floor(scaled))
    return float_beside(Fraction(whole, 2**_PLACES), up=up)


def log_of(value: Probability) -> float:
    """``ln`` of an exact number above 0, to `LOG_RATIO` relative (or 2^-1074, where that is more)."""
    return log_ratio(*value.as_integer_ratio())


def log_ratio(numerator: int, denominator: int) -> float:
    """``ln`` of a ratio of integers above 0, to `LOG_RATIO` relative (or 2^-1074, where that is more).

    Near one: the quotient of integers ``x - 1`` is rounded once, which ``ln`` magnifies by at most 1.45, and log1p
    errs by 4 u. Elsewhere ``|ln x| >= ln 2``, and ``x = s 2^e`` with s in (1/2, 2): one rounding of s, the error of its
    logarithm, two roundings of ``e ln 2`` and one of the sum are ``(3.8 + 1.1 |e| + |ln x|) u <= 9.7 u |ln x|``.
    """
    if denominator < 2 * numerator and numerator < 2 * denominator:
        return math.log1p((numerator - denominator) / denominator)
    exponent = numerator.bit_length() - denominator.bit_length()
    scaled = (numerator << max(-exponent, 0)) / (denominator << max(exponent, 0))  # in (1/2, 2)
    return math.log(scaled) + exponent * math.log(2.0)
