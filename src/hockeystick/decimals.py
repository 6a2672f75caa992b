"""Numbers in decimal, rounded outward, so that what is printed still holds.

A lower side is rounded down and an upper side up, from the exact value of the float; a decimal that is exact stays as
it is. Nothing printed is further than one unit of its last place from the float. Infinity is ``inf``.

All rounding is by contexts made here: the caller's (`decimal.getcontext`) changes nothing, whatever its precision, its
range and its traps.

Two ways: to a number of significant digits in the project's own notation (`rounded_up`, ``1e-6`` rather than
``1e-06``), and by a format specification, in Python's notation for floats (`formatted`).
"""

from __future__ import annotations

import math
import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Literal

Side = Literal["lower", "upper"]

_DIGITS = 5
_SHORTEST = 17  # significant digits that tell any two floats apart
_LONGEST = 16  # digits before the point, above which the default has an exponent
_EXACT = Context(prec=1200, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])  # holds any float
_ROUNDING = {"lower": ROUND_FLOOR, "upper": ROUND_CEILING}
_SPECIFICATION = re.compile(
    r"(?:(?P<fill>.)?(?P<align>[<>=^]))?(?P<sign>[-+ ])?(?P<z>z)?(?P<alternate>#)?(?P<zero>0)?(?P<width>\d+)?"
    r"(?P<group>[,_])?(?:\.(?P<precision>\d+))?(?P<kind>[a-zA-Z%])?",
    re.DOTALL,
)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if math.isinf(value) or math.isnan(value):
        return str(value)
    number = _to_significant(value, digits, rounding)
    if number == 0:
        return "0"
    if -5 < number.adjusted() < 7:
        return str(int(number)) if number == int(number) else f"{number:f}"
    mantissa, exponent = f"{number.normalize(_EXACT):e}".split("e")
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
    text = repr(float(value)).removesuffix(".0")
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa}e{int(exponent)}"
    return text


def formatted(value: float, specification: str, side: Side) -> str:
    """``format(value, specification)``, but rounded down for a lower side and up for an upper one.

    Parameters
    ----------
    value : float
        What is written; its exact value counts.
    specification : str
        As for a float, with the types ``e``, ``f``, ``g``, ``%`` or none. Where neither type nor precision is given,
        as many digits as tell floats apart.
    side : {"lower", "upper"}
        Which way to round.

    Raises
    ------
    ValueError
        Where ``format`` refuses the specification; for the type ``n``, whose text depends on the locale; and for a fill
        that would read as digits of the number.

    Examples
    --------
    >>> formatted(2.58401, ".3f", "upper"), formatted(2.58499, ".3f", "lower"), formatted(0.125, ".3f", "upper")
    ('2.585', '2.584', '0.125')
    >>> formatted(1234567.891, ">14,.2f", "lower")
    '  1,234,567.89'
    """
    format(0.0, specification)  # Python's own words for what no float can be formatted by
    parts = _SPECIFICATION.fullmatch(specification)
    if parts is None or parts["kind"] == "n":
        raise ValueError(f"a side of a bracket is formatted by e, f, g or %, got the format {specification!r}")
    number = "" if math.isfinite(value) else f"{abs(value):{parts['kind'] or ''}}"
    negative = math.copysign(1.0, value) < 0.0 and not math.isnan(value)
    if not number:
        rounding = ROUND_HALF_EVEN if value == 0.0 else _ROUNDING[side]
        number, vanished = _digits(abs(value), parts, _mirrored(rounding) if negative else rounding)
        negative = negative and not (vanished and parts["z"])
    sign = "-" if negative else (parts["sign"] or "").replace("-", "")
    return _padded(sign, number, parts)


def _mirrored(rounding: str) -> str:
    """The rounding of the absolute value of a number below 0."""
    return {ROUND_FLOOR: ROUND_CEILING, ROUND_CEILING: ROUND_FLOOR}.get(rounding, rounding)


def _digits(size: float, parts: re.Match[str], rounding: str) -> tuple[str, bool]:
    """The number without its sign, and whether it was rounded to 0."""
    kind = (parts["kind"] or "").lower()
    precision = None if parts["precision"] is None else int(parts["precision"])
    if kind in {"f", "%"}:
        exact = _EXACT.create_decimal_from_float(size)
        exact = _EXACT.multiply(exact, 100) if kind == "%" else exact
        places = 6 if precision is None else precision
        rounded = _quantized(exact, -places, rounding)
        text = f"{rounded:.{places}f}"
    else:
        significant = _significant(kind, precision)
        rounded = _to_significant(size, significant, rounding)
        if kind == "e":
            text = _scientific(rounded, significant)
        else:
            text = _shortest(size, rounding) if not kind and precision is None else ""
            text = text or _general(rounded, significant, parts)
    if parts["alternate"] and "." not in text:
        mantissa, e, exponent = text.partition("e")
        text = f"{mantissa}.{e}{exponent}"
    text += "%" * (kind == "%")
    return text.upper() if (parts["kind"] or "").isupper() else text, rounded == 0


def _significant(kind: str, precision: int | None) -> int:
    """How many significant digits a scientific or general format has."""
    if kind == "e":
        return 7 if precision is None else precision + 1
    if precision is None:
        return 6 if kind else _SHORTEST
    return max(precision, 1)


def own_context(digits: int, rounding: str = ROUND_HALF_EVEN) -> Context:
    """Arithmetic of so many digits that raises nothing, whatever the caller's."""
    return Context(prec=max(digits, 1), rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _quantized(exact: Decimal, exponent: int, rounding: str) -> Decimal:
    digits = max(exact.adjusted() - exponent + 2, 1)
    return exact.quantize(Decimal((0, (1,), exponent)), context=own_context(digits, rounding))


def _to_significant(value: float, digits: int, rounding: str) -> Decimal:
    return own_context(digits, rounding).create_decimal_from_float(value)


def _scientific(rounded: Decimal, significant: int) -> str:
    mantissa, exponent = f"{rounded:.{significant - 1}e}".split("e")
    return f"{mantissa}e{int(exponent) if rounded else 0:+03d}"


def _shortest(size: float, rounding: str) -> str:
    """The shortest text that reads back to the number, where that is on the right side; else nothing."""
    text, exact = Decimal(repr(size)), _EXACT.create_decimal_from_float(size)
    return repr(size) if text == exact or (text > exact) == (rounding == ROUND_CEILING) else ""


def _general(rounded: Decimal, significant: int, parts: re.Match[str]) -> str:
    """The types ``g`` and none: without an exponent where that is short, and without zeros at the end."""
    power = rounded.adjusted() if rounded else 0
    if parts["kind"]:
        fixed = -4 <= power < significant
    else:
        fixed = -4 <= power < (_LONGEST if parts["precision"] is None else significant - 1)
    text = f"{rounded:.{max(significant - 1 - power, 0)}f}" if fixed else _scientific(rounded, significant)
    mantissa, e, exponent = text.partition("e")
    if "." in mantissa and not parts["alternate"]:
        mantissa = mantissa.rstrip("0").rstrip(".")
    if not parts["kind"] and fixed and "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}{e}{exponent}"


def _padded(sign: str, number: str, parts: re.Match[str]) -> str:
    """Sign, digits, separators of thousands and the width."""
    width = int(parts["width"] or 0)
    fill, align = parts["fill"] or " ", parts["align"] or ">"
    if parts["zero"] and parts["align"] is None:
        fill, align = "0", "="
    elif parts["zero"] and parts["fill"] is None:
        fill = "0"
    if fill.isdigit() and (fill != "0" or align not in "=>"):
        raise ValueError(f"a fill of {fill!r} aligned by {align!r} would read as digits of the number: use another one")
    match = re.match(r"\d+", number)
    if parts["group"] and match:
        whole, rest = match[0], number[match.end() :]
        zeros = align == "=" and fill == "0"
        while len(sign) + len(grouped := f"{_grouped(whole, parts['group'])}{rest}") < width and zeros:
            whole = "0" + whole
        number = grouped
    if align == "=":
        return sign + number.rjust(width - len(sign), fill)
    return f"{sign + number:{fill}{align}{width}}"


def _grouped(whole: str, mark: str) -> str:
    return re.sub(r"\B(?=(?:\d{3})+$)", mark, whole)
