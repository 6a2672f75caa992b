"""Ball arithmetic: numbers as balls, integrals with proved errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from flint import acb, arb, ctx, fmpq

_MOST_BITS = 10**6


class UnreachedError(Exception):
    """Why a number cannot be proved here."""


def real(x: Any) -> Any:
    """A real number as a ball."""
    return arb(fmpq(x.numerator, x.denominator)) if isinstance(x, Fraction) else arb(x)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at so many bits, then as before."""
    if bits > _MOST_BITS:
        raise UnreachedError("it takes too many digits")
    before, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = before


def integral(f: Callable[[Any, bool], Any], low: Any, high: Any, size: Any = 1) -> Any:
    """An enclosure of an integral, to about an ulp of ``size``; ``f`` takes a point and whether it must be analytic."""
    return acb.integral(f, low, high, abs_tol=arb(2) ** -ctx.prec * size, rel_tol=arb(2) ** -ctx.prec)


def normal_tail(x: Any) -> Any:
    """The mass of N(0, 1) above x."""
    return (x / real(2).sqrt()).erfc() / 2


def coarse_integral(f: Callable[[Any, bool], Any], low: Any, high: Any) -> Any:
    """An enclosure that need be good to three digits only."""
    return acb.integral(f, low, high, rel_tol=arb(2) ** -9, abs_tol=arb(2) ** -100)


def disc(radius: Any) -> Any:
    """All complex numbers of at most this size."""
    return acb(arb(0, radius.upper()), arb(0, radius.upper()))
