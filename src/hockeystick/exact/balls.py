"""Exact numbers and balls: python-flint at a chosen working precision.

Every ball of this package is an ``arb`` or ``acb``: a midpoint and a radius that is proved to hold the number meant.
Parameters are kept as fractions and turned into balls at the precision of the moment, so a higher precision narrows
everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq

LOW_BITS = 64
"""The precision of bounds and choices."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at ``bits`` bits, then as before."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def working_bits() -> int:
    """The precision of the moment."""
    return int(ctx.prec)


def ball(value: Fraction | int) -> arb:
    """An exact number as a ball: of radius zero where it fits the working precision, else of half an ulp."""
    return arb(fmpq(value.numerator, value.denominator))
