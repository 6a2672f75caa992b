"""The state of an odometer as a file: what is written, and the refusal of anything else.

The format is docs/reference/odometer-state.md: JSON, floats in hexadecimal, the running products as base64 of
little-endian float64 pairs, and a SHA-256 checksum of all of it. A version number says which layout it is. What is
read is checked: kind, version, checksum, every field, and that the products agree with the counts to within the
rounding of their multiplications.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import json
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.lattice.streaming import Magnitudes
from hockeystick.engines.lattice.streaming_plan import Plan, Progress
from hockeystick.errors import HockeystickError
from hockeystick.odometer.steps import decode_float, encode_float

__all__ = [
    "FORMAT",
    "VERSION",
    "OdometerStateError",
    "decode_progress",
    "encode_progress",
    "field",
    "parse",
    "render",
]

FORMAT = "hockeystick odometer"
VERSION = 1

_PLAN_TYPES = get_type_hints(Plan)


class OdometerStateError(HockeystickError):
    """A file is no state of an odometer, or a damaged one."""


def render(content: dict[str, Any]) -> str:
    """The text of a state file."""
    body = {"format": FORMAT, "version": VERSION, **content}
    return json.dumps({**body, "checksum": _checksum(body)}, indent=1) + "\n"


def parse(text: str) -> dict[str, Any]:
    """The content of a state file, its kind, version and checksum verified."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise OdometerStateError(f"this is no odometer state: it is not JSON ({error})") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        kind = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise OdometerStateError(f"this is no odometer state: its format is {kind!r}, not {FORMAT!r}")
    if data.get("version") != VERSION:
        raise OdometerStateError(
            f"this odometer state has version {data.get('version')!r}; this release reads version {VERSION}: use the"
            " release that wrote it"
        )
    body = {key: value for key, value in data.items() if key != "checksum"}
    if data.get("checksum") != _checksum(body):
        raise OdometerStateError("this odometer state is damaged: its checksum does not match its content")
    return body


def field(data: Any, name: str, kind: type) -> Any:
    """One field of a dictionary, of the kind expected."""
    value = data.get(name) if isinstance(data, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise OdometerStateError(f"this odometer state is damaged: {name!r} should be {kind.__name__}, found {value!r}")
    return value


def encode_progress(progress: Progress) -> dict[str, Any]:
    """Plan, products and magnitudes as plain data."""
    plan = {entry.name: getattr(progress.plan, entry.name) for entry in dataclasses.fields(Plan)}
    return {
        "plan": {name: encode_float(value) if _PLAN_TYPES[name] is float else value for name, value in plan.items()},
        "products": [_encode_product(product) for product in progress.products],
        "magnitudes": [
            None
            if m is None
            else {"steps": m.steps, "product": encode_float(m.product), "floor": encode_float(m.floor)}
            for m in progress.magnitudes
        ],
    }


def decode_progress(data: dict[str, Any]) -> Progress:
    """The progress written by `encode_progress`."""
    plan = _decode_plan(field(data, "plan", dict))
    products = [_decode_product(text) for text in field(data, "products", list)]
    magnitudes = [None if entry is None else _decode_magnitudes(entry) for entry in field(data, "magnitudes", list)]
    if len(products) != 2 or len(magnitudes) != 2:
        raise OdometerStateError("this odometer state is damaged: a direction has an upper and a lower product")
    return Progress(plan, (products[0], products[1]), (magnitudes[0], magnitudes[1]))


def _decode_magnitudes(data: Any) -> Magnitudes:
    product, floor = (decode_float(field(data, name, str)) for name in ("product", "floor"))
    return Magnitudes(field(data, "steps", int), product, floor)


def _decode_plan(data: dict[str, Any]) -> Plan:
    if set(data) != set(_PLAN_TYPES):
        raise OdometerStateError(f"this odometer state is damaged: its plan has the fields {sorted(data)}")
    values: dict[str, Any] = {}
    for name, kind in _PLAN_TYPES.items():
        values[name] = decode_float(field(data, name, str)) if kind is float else field(data, name, int)
    plan = Plan(**values)
    if not 0 < plan.kept <= plan.length // 2 + 1 or plan.spacing <= 0.0 or plan.theta <= 0.0 or plan.low >= plan.high:
        raise OdometerStateError("this odometer state is damaged: its plan makes no sense")
    return plan


def _encode_product(product: NDArray[np.complex128]) -> str:
    """Complex numbers as base64 of their little-endian parts."""
    return base64.b64encode(product.astype("<c16").tobytes()).decode("ascii")


def _decode_product(text: str) -> NDArray[np.complex128]:
    """The numbers written by `_encode_product`."""
    try:
        raw = base64.b64decode(text, validate=True)
        return np.frombuffer(raw, dtype="<c16").astype(np.complex128)
    except (binascii.Error, ValueError) as error:
        raise OdometerStateError(f"this odometer state is damaged: a product cannot be read ({error})") from error


def _checksum(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()
