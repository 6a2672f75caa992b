"""Exact numbers and balls: python-flint at a chosen working precision.

Every ball of this package is an ``arb`` or ``acb``: a midpoint and a radius that is proved to hold the number meant.
Parameters are kept as fractions and turned into balls at the precision of the moment, so a higher precision narrows
everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import wraps
from threading import RLock
from typing import ParamSpec, TypeVar

from flint import arb, ctx, fmpq

LOW_BITS = 64
"""The precision of bounds and choices."""

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
_ALONE = RLock()


def one_at_a_time(question: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """The question, asked by one thread at a time: flint's precision is that of the whole process."""

    @wraps(question)
    def asked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Found:
        with _ALONE:
            return question(*args, **kwargs)

    return asked


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
