"""The running products of an odometer as plain data, and back: base64 of little-endian float64 pairs.

What is read is checked; that the products agree with the counts, to within the rounding of their multiplications, is
checked where they are restored.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.lattice.streaming import Magnitudes
from hockeystick.engines.lattice.streaming_plan import Plan, Progress
from hockeystick.state import StateError, decode_float, encode_float, field


def encode_progress(progress: Progress) -> dict[str, Any]:
    """Plan, products and magnitudes as plain data."""
    return {
        "plan": _encode_fields(progress.plan),
        "products": [_encode_product(product) for product in progress.products],
        "magnitudes": [None if held is None else _encode_fields(held) for held in progress.magnitudes],
    }


def decode_progress(data: dict[str, Any]) -> Progress:
    """The progress written by `encode_progress`."""
    plan = _decode_plan(field(data, "plan", dict))
    products = [_decode_product(text) for text in field(data, "products", list)]
    magnitudes = [
        None if entry is None else _decode_fields(Magnitudes, entry) for entry in field(data, "magnitudes", list)
    ]
    if len(products) != 2 or len(magnitudes) != 2:
        raise StateError("this odometer state is damaged: a direction has an upper and a lower product")
    return Progress(plan, (products[0], products[1]), (magnitudes[0], magnitudes[1]))


def _encode_fields(held: Plan | Magnitudes) -> dict[str, Any]:
    kinds = get_type_hints(type(held))
    return {name: encode_float(value) if kinds[name] is float else value for name, value in vars(held).items()}


def _decode_fields(held: type, data: Any) -> Any:
    def read(name: str, kind: type) -> Any:
        return decode_float(field(data, name, str)) if kind is float else field(data, name, int)

    return held(**{name: read(name, kind) for name, kind in get_type_hints(held).items()})


def _decode_plan(data: dict[str, Any]) -> Plan:
    if set(data) != set(get_type_hints(Plan)):
        raise StateError(f"this odometer state is damaged: its plan has the fields {sorted(data)}")
    plan: Plan = _decode_fields(Plan, data)
    if not 0 < plan.kept <= plan.length // 2 + 1 or plan.spacing <= 0.0 or plan.theta <= 0.0 or plan.low >= plan.high:
        raise StateError("this odometer state is damaged: its plan makes no sense")
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
        raise StateError(f"this odometer state is damaged: a product cannot be read ({error})") from error
