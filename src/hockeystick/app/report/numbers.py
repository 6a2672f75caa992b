"""Numbers as a reader sees them: rounded outward, so that what is printed still holds.

The rounding itself is in `hockeystick.decimals`; here are the parts of a page that are made of numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy as np

from hockeystick.bound import Bound, Estimate
from hockeystick.decimals import nearest as nearest
from hockeystick.decimals import plain as plain
from hockeystick.decimals import rounded_down as rounded_down
from hockeystick.decimals import rounded_up as rounded_up

_NOT_ALIKE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


def count_text(value: int) -> str:
    """An integer with its thousands set apart."""
    return f"{value:,}"


def plural(noun: str) -> str:
    """Several of a noun, by the rules of English spelling and the one exception that is common here.

    Examples
    --------
    >>> plural("user"), plural("person"), plural("household diary"), plural("box")
    ('users', 'people', 'household diaries', 'boxes')
    >>> plural("member of a household")
    'members of a household'
    """
    noun, of, whole = noun.partition(" of ")
    if of:
        return plural(noun) + of + whole
    if noun == "person" or noun.endswith(" person"):
        return f"{noun[:-6]}people"
    if noun.endswith("y") and noun[-2:-1] not in {"a", "e", "o", "u"}:
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


def number_of(count: int, noun: str) -> str:
    """So many of a noun."""
    return f"{count_text(count)} {noun if count == 1 else plural(noun)}"


def bracket(result: Bound, digits: int = 5) -> str:
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


def in_quotes(words: str) -> str:
    r"""A text as JSON, TOML and YAML alike read it; what JSON takes as it is and another does not is escaped.

    Examples
    --------
    >>> in_quotes('a "b"\x7f')
    '"a \\"b\\"\\u007f"'
    """
    return _NOT_ALIKE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(words, ensure_ascii=False))


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: object) -> float:
    """A number as JSON holds it, where infinities are texts; NaN for anything else."""
    return float(value) if is_number(value) or value in ("inf", "-inf") else math.nan


def asked(result: Mapping[str, Any]) -> tuple[str, float]:
    """What a result in JSON is at: ``("delta", 1e-5)``."""
    ((given, level),) = result["at"].items()
    return given, number(level)


def claimed(found: Mapping[str, Any]) -> float:
    """The side of a result in JSON that may be claimed; of an estimate its value."""
    return number(found["upper"] if "upper" in found else found["value"])


def is_pure(result: Mapping[str, Any]) -> bool:
    """Whether a result in JSON is a guarantee of pure differential privacy: a finite epsilon at delta 0."""
    return asked(result) == ("delta", 0.0) and math.isfinite(claimed(result))


def quoted(found: Mapping[str, Any], digits: int = 5) -> str:
    """The same in decimal, rounded outward; of an estimate the nearest."""
    rounded = rounded_up if "upper" in found else nearest
    return rounded(claimed(found), digits)


def result_document(result: Bound | Estimate) -> dict[str, Any]:
    """A scalar result as JSON holds it (before `jsonable`)."""
    document: dict[str, Any] = {"certified": result.certified}
    if isinstance(result, Bound):
        document |= {"lower": result.lower, "upper": result.upper, "width": result.width, "errors": dict(result.errors)}
    else:
        document |= {"value": result.value, "error": result.error}
    return document | {"method": result.method, "notes": list(result.notes)}
