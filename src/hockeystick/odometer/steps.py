"""Steps as plain data and back: the names of their classes and their parameters, exactly.

A float is written in hexadecimal, a fraction as "numerator/denominator", so that what is read is what was written,
bit for bit. Only classes of `hockeystick.mechanisms` and `hockeystick.sampling` are read: nothing in a file can name
any other code.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

from hockeystick import mechanisms, sampling
from hockeystick.composition import Step
from hockeystick.state import decode_float, encode_float


def encode_step(step: Step) -> dict[str, Any]:
    """A step as a dictionary of plain data.

    Raises
    ------
    TypeError
        Where the step is of a class that cannot be read back.
    """
    if type(step).__name__ not in _CLASSES or _CLASSES[type(step).__name__] is not type(step):
        raise TypeError(
            "odometers and ledgers take the mechanisms and sampling schemes of hockeystick, got"
            f" {type(step).__name__}: it could not be read back; account such a run as a whole, by hockeystick.account"
        )
    fields = {field.name: _encode(getattr(step, field.name)) for field in dataclasses.fields(step)}  # type: ignore[arg-type]  # all are dataclasses
    return {"type": type(step).__name__, **fields}


def decode_step(data: Any) -> Step:
    """The step written by `encode_step`.

    Raises
    ------
    ValueError
        Where the data are no such step.
    """
    if not isinstance(data, dict) or data.get("type") not in _CLASSES:
        name = data.get("type") if isinstance(data, dict) else data
        raise ValueError(f"{name!r} is not a step that this version knows; known are {', '.join(sorted(_CLASSES))}")
    kind = _CLASSES[data["type"]]
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    given = set(data) - {"type"}
    if known != given:
        raise ValueError(f"a {data['type']} has the parameters {sorted(known)}, found {sorted(given)}")
    try:
        return kind(**{name: _decode(data[name]) for name in known})
    except TypeError as error:
        raise ValueError(f"a {data['type']} cannot be made of {data!r}: {error}") from error


def _encode(value: Any) -> Any:
    match value:
        case Step():
            return encode_step(value)
        case bool() | None:
            raise TypeError(f"a parameter {value!r} cannot be saved")
        case int():
            return value
        case float():
            return encode_float(value)
        case Fraction():
            return {"fraction": f"{value.numerator}/{value.denominator}"}
        case str():
            return {"text": value}
        case tuple():
            return [_encode(entry) for entry in value]
        case _:
            raise TypeError(
                f"a parameter {value!r} of type {type(value).__name__} cannot be saved, so that odometers and ledgers"
                " do not take it: account such a run as a whole, by hockeystick.account"
            )


def _decode(data: Any) -> Any:
    match data:
        case int() if not isinstance(data, bool):
            return data
        case str():
            return decode_float(data)
        case list():
            return tuple(_decode(entry) for entry in data)
        case {"fraction": str(text), **rest} if not rest:
            return Fraction(text)
        case {"text": str(text), **rest} if not rest:
            return text
        case {"type": _}:
            return decode_step(data)
        case _:
            raise ValueError(f"a number, text, list or step was expected, found {data!r}")


def _readable() -> dict[str, type[Step]]:
    """The step classes of the two rooms, by name."""
    found: dict[str, type[Step]] = {}
    for room in (mechanisms, sampling):
        for name in room.__all__:
            kind: Any = getattr(room, name)
            if isinstance(kind, type) and issubclass(kind, Step) and hasattr(kind, "__dataclass_fields__"):
                found[name] = kind
    return found


_CLASSES = _readable()
