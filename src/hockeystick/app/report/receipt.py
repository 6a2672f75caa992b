"""The privacy receipt: a guarantee with everything needed to check it, as one JSON document.

It holds the specification it was made from, so that `hockeystick.app.report.verification` can compute it again; a
checksum over all of it, so that a changed figure is seen at once; and the curve and the trade-off it is drawn with.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hockeystick.app.report.numbers import claimed, jsonable, result_document
from hockeystick.app.report.words import method_words, not_included, relation_words, statement
from hockeystick.app.spec.cautions import cautions
from hockeystick.app.spec.model import Specification
from hockeystick.bound import Bound, Estimate
from hockeystick.curve import PrivacyCurve
from hockeystick.readouts.outline import sampled
from hockeystick.readouts.trade_off import trade_off
from hockeystick.selfcheck import NoBallArithmeticError, quick_self_check
from hockeystick.together import worst

FORMAT = 2
"""Version of the receipt's format."""

_POINTS = 10
_ALPHAS = (0.001, 0.01, 0.1)
_NOWHERE = 10.0  # nats: where the pictures end if no epsilon is finite


def receipt(specification: Specification, *, created: str | None = None) -> dict[str, Any]:
    """The receipt of a specification: accounts it, reads its curve, and signs the contents with a checksum.

    Parameters
    ----------
    specification : Specification
        With at least one delta or epsilon.
    created : str, optional
        The date it carries; today's in UTC by default.

    Returns
    -------
    dict
        The receipt as JSON holds it.
    """
    if not specification.questions:
        raise ValueError("a receipt states a guarantee: give delta or epsilon in the specification")
    curve = specification.curve
    results = [_result(specification, curve, *asked) for asked in specification.questions]
    points = _curve(specification, curve)
    contents = {
        "receipt": FORMAT,
        "created": today() if created is None else created,
        **said_of_run(specification),
        "results": results,
        "curve": points,
        "drawn": _drawn(results, points, curve),
        "tradeoff": _tradeoff(specification, curve),
        "software": dict(software()),
        "selfcheck": recorded_self_check(),
    }
    document: dict[str, Any] = jsonable(contents)
    return document | {"checksum": checksum(document)}


def said_of_run(specification: Specification) -> dict[str, Any]:
    """What a receipt says of a run apart from its figures."""
    return {
        "specification": specification.document(),
        "relation": relation_words(specification),
        "cautions": [{"name": c.name, "broken": c.broken, "text": c.text} for c in cautions(specification)],
        "not_included": list(not_included(specification)),
    }


def checksum(document: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the checksum itself, in one fixed spelling.

    It shows that a receipt was changed by accident or in haste. It is no signature: who changes a receipt can also
    compute its checksum anew, which is why verification computes every number again.
    """
    contents = {key: value for key, value in document.items() if key != "checksum"}
    text = json.dumps(contents, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def recorded_self_check() -> dict[str, Any] | None:
    """What the quick self-check measured where the receipt is made; None where it cannot be run."""
    try:
        return quick_self_check().document()
    except NoBallArithmeticError:
        return None


@functools.cache
def software() -> Mapping[str, str]:
    """The versions that made a receipt."""
    from importlib.metadata import version  # needed here only, and slow to import

    return {
        "hockeystick": version("hockeystick"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": version("scipy"),
        "machine": platform.machine(),
    }


def today() -> str:
    """The date in UTC; that of SOURCE_DATE_EPOCH where it is set, for reproducible builds."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = dt.datetime.fromtimestamp(int(epoch), dt.UTC) if epoch else dt.datetime.now(dt.UTC)
    return moment.date().isoformat()


def _result(specification: Specification, curve: PrivacyCurve, quantity: str, level: float) -> dict[str, Any]:
    at = "delta" if quantity == "epsilon" else "epsilon"
    by_direction = curve.by_direction(lambda directed: getattr(directed, quantity)(level))
    result = worst(by_direction, curve.composition.notes)
    return {
        "quantity": quantity,
        "at": {at: level},
        **stated(specification, quantity, level, result),
        "directions": {direction: _sides(found) for direction, found in by_direction.items()},
    }


def stated(specification: Specification, quantity: str, level: float, result: Bound | Estimate) -> dict[str, Any]:
    """A result with the words that are said of it, as a receipt holds them."""
    words = {"guarantee": method_words(result), "statement": statement(specification, quantity, level, result)}
    return result_document(result) | words


def _sides(result: Bound | Estimate) -> dict[str, float]:
    if isinstance(result, Bound):
        return {"lower": float(result.lower), "upper": float(result.upper)}
    return {"value": float(result.value)}


def _curve(specification: Specification, curve: PrivacyCurve) -> list[dict[str, float]]:
    """Epsilon at powers of ten, from 0.1 to well below the smallest delta asked for."""
    least = min((level for level in specification.deltas if level > 0.0), default=1e-6)
    least = min(least, *(float(curve.delta(level).sides[1]) or 1.0 for level in specification.epsilons), 1e-6)
    last = min(round(4.0 - math.log10(least)), 300)
    levels = [float(f"1e-{power}") for power in range(1, last + 1, -(-last // _POINTS))]
    found = curve.epsilon(np.array(levels))
    names = ("lower", "upper") if isinstance(found, Bound) else ("value",)
    columns = [np.asarray(side).tolist() for side in found.sides[: len(names)]]
    return [dict(zip(("delta", *names), row, strict=True)) for row in zip(levels, *columns, strict=True)]


def _drawn(results: list[dict[str, Any]], points: list[dict[str, float]], curve: PrivacyCurve) -> dict[str, Any]:
    """What the pictures are drawn from: delta in each direction, as far as the curve and what is claimed reach."""
    ends = [result["at"].get("epsilon", claimed(result)) for result in results] + [*map(claimed, points)]
    reached = max((end for end in ends if 0.0 < end < math.inf), default=_NOWHERE)
    least = points[-1]["delta"]
    return {"least": least, **sampled(curve, reached, least=least).document}


def _tradeoff(specification: Specification, curve: PrivacyCurve) -> dict[str, Any] | None:
    """What the attack of a receipt misses; None where it states none."""
    told = attack(specification)
    if told is None:
        return None
    rates = missed_by(curve, told["direction"], _ALPHAS)
    sides = (np.asarray(side, dtype=np.float64).tolist() for side in rates.sides)
    return {
        "certified": rates.certified,
        **told,
        "false_negative": [{"lower": low, "upper": high} for low, high in zip(*sides, strict=True)],
    }


def missed_by(
    curve: PrivacyCurve, direction: str, rates: float | Sequence[float], *, sharper: float = 1.0
) -> Bound | Estimate:
    """The false-negative rates of an attack at false-positive rates; sharper: how much narrower than a receipt's."""
    return trade_off(curve, rates, direction=direction, tolerance=0.02 * sharper).false_negative_rate


def attack(specification: Specification) -> dict[str, Any] | None:
    """The attack that a receipt speaks of, which claims a record was there: that of the direction that removes it.

    None under the relations of one direction only: of them nothing follows about the other, nor about an attack.
    """
    removes = {"add-remove": "remove", "zero-out": "zero-out", "substitute": "substitute"}
    direction = removes.get(specification.adjacency)
    return None if direction is None else {"direction": direction, "false_positive": list(_ALPHAS)}
