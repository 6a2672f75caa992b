"""Numbers as a reader sees them: rounded outward, so that what is printed still holds.

An upper side is rounded up and a lower side down, in decimal, from the exact value of the float. Infinity is ``inf``.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import numpy as np

from hockeystick.bound import Bound, Estimate

__all__ = [
    "bracket",
    "count_text",
    "jsonable",
    "nearest",
    "number",
    "plain",
    "result_document",
    "rounded_down",
    "rounded_up",
]

_DIGITS = 5


def _rounded(value: float, digits: int, rounding: str) -> str:
    if math.isinf(value) or math.isnan(value):
        return str(value)
    number = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    if number == 0:
        return "0"
    if -5 < number.adjusted() < 7:
        return f"{number.quantize(Decimal(1)) if number == number.to_integral_value() else number:f}"
    mantissa, exponent = f"{number.normalize():e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def rounded_up(value: float, digits: int = _DIGITS) -> str:
    """A decimal that is at least ``value``, to ``digits`` significant digits.

    Examples
    --------
    >>> rounded_up(2.58401), rounded_up(1.00001e-30), rounded_up(0.0)
    ('2.5841', '1.0001e-30', '0')
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = _DIGITS) -> str:
    """A decimal that is at most ``value``, to ``digits`` significant digits.

    Examples
    --------
    >>> rounded_down(2.58369), rounded_down(float("inf"))
    ('2.5836', 'inf')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def nearest(value: float, digits: int = _DIGITS) -> str:
    """The nearest decimal: for estimates and for sizes no guarantee rests on."""
    return _rounded(value, digits, ROUND_HALF_EVEN)


def plain(value: float | int | str) -> str:
    """A parameter as it was given: the shortest text that reads back to the same number.

    Examples
    --------
    >>> plain(1e-05), plain(0.01), plain(1.0), plain(2000)
    ('1e-5', '0.01', '1', '2000')
    """
    if not isinstance(value, float):
        return str(value)
    text = repr(value).removesuffix(".0")
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa}e{int(exponent)}"
    return text


def count_text(value: int) -> str:
    """An integer with its thousands set apart."""
    return f"{value:,}"


def bracket(result: Bound, digits: int = _DIGITS) -> str:
    """A bracket, both sides rounded outward."""
    return f"[{rounded_down(float(result.lower), digits)}, {rounded_up(float(result.upper), digits)}]"


def jsonable(value: Any) -> Any:
    """The value with infinities and NaN as the strings ``"inf"``, ``"-inf"``, ``"nan"``, which JSON cannot hold.

    Examples
    --------
    >>> jsonable({"upper": float("inf"), "points": (1, 2.0)})
    {'upper': 'inf', 'points': [1, 2.0]}
    """
    if isinstance(value, dict):
        return {str(key): jsonable(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(inside) for inside in value]
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def number(value: object) -> float:
    """A number as JSON holds it, where infinities are texts; NaN for anything else."""
    try:
        return float(value) if isinstance(value, int | float | str) else math.nan
    except ValueError:
        return math.nan


def result_document(result: Bound | Estimate) -> dict[str, Any]:
    """A scalar result as JSON holds it (before `jsonable`)."""
    document: dict[str, Any] = {"certified": result.certified}
    if isinstance(result, Bound):
        document |= {"lower": result.lower, "upper": result.upper, "width": result.width}
        document |= {"errors": dict(result.errors)}
    else:
        document |= {"value": result.value, "error": result.error}
    return document | {"method": result.method, "notes": list(result.notes)}
