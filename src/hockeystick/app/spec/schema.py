"""The JSON schema of a specification, generated from what the library can name.

A TOML file holds the same document, so the schema serves editors for both.
"""

from __future__ import annotations

from typing import Any

from hockeystick.app.spec.circumstances import COUNT, GUARANTEE, STATED, TEXT, Kinds
from hockeystick.app.spec.registry import AUTOMATIC_ENTRY, Entry, Parameter, accountants, counts, mechanisms, samplings

_NUMBER = {"type": ["number", "string"], "pattern": "^[0-9]+(/[0-9]+)?$"}
_DELTA = {"type": "number", "minimum": 0, "maximum": 1}
_EPSILON = {"anyOf": [{"type": "number", "minimum": 0}, {"const": "inf"}]}


def schema() -> dict[str, Any]:
    """The schema, as JSON holds it (JSON Schema, draft 2020-12)."""
    once = [entry for name, entry in mechanisms().items() if name == entry.name]  # each under its first name
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hockeystick specification, version 1",
        "description": "A run of differentially private mechanisms and the guarantee asked for.",
        "type": "object",
        "additionalProperties": False,
        "required": ["steps"],
        "properties": {
            "version": {"const": 1, "description": "Version of this format."},
            "title": TEXT.schema | {"description": "What the run is called."},
            "steps": {
                "description": "What is released; the order does not matter.",
                "type": "array",
                "minItems": 1,
                "items": {"oneOf": [_step(way) for entry in once for way in (entry, *entry.others)]},
            },
            "tuning": {
                "description": "The steps are run a random number of times, and the best run alone is released.",
                "oneOf": [_object("runs", entry) for entry in counts().values()],
            },
            "guarantee": _guarantee(),
            "accountant": _accountant(),
            "circumstances": _circumstances(),
        },
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {
        "number": {"anyOf": [{"type": "number"}, {"const": "inf"}]},
        "integer": {"type": "integer"},
        "string": {"enum": list(parameter.choices)} if parameter.choices else {"type": "string"},
        "boolean": {"type": "boolean"},
        "numbers": {"type": "array", "items": _NUMBER},
    }
    return kinds[parameter.kind] | ({"description": parameter.summary} if parameter.summary else {})


def _table(description: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A table that holds these keys and no others."""
    return {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        **more,
        "properties": properties,
    }


def _object(key: str, entry: Entry, *, more: dict[str, Any] | None = None, optional_key: str = "") -> dict[str, Any]:
    """A table that names an entry under ``key`` and holds its parameters."""
    properties = {key: _names(entry)} | {parameter.name: _parameter(parameter) for parameter in entry.parameters}
    required = [*([] if key == optional_key else [key]), *entry.required]
    return _table(entry.summary, properties | (more or {}), required=required)


def _names(entry: Entry) -> dict[str, Any]:
    """What may stand for an entry: its name, and its aliases."""
    aliases = [name for name, known in mechanisms().items() if known.build is entry.build or entry in known.others]
    return {"enum": aliases} if len(aliases) > 1 else {"const": entry.name}


def _step(entry: Entry) -> dict[str, Any]:
    unsampled = {"properties": {"scheme": {"const": "none"}}, "required": ["scheme"], "additionalProperties": False}
    sampling: list[dict[str, Any]] = [{"const": "none"}, {"type": "object", **unsampled}]
    sampling += [_object("scheme", way) for scheme in samplings().values() for way in (scheme, *scheme.others)]
    more = {
        "sampling": {"description": "How the records of each step are chosen.", "oneOf": sampling},
        "count": COUNT.schema | {"description": "How often this step is applied (default 1)."},
        "name": TEXT.schema | {"description": "What the step is called: Table 3, ages by county."},
        "note": TEXT.schema | {"description": "What a reader must know of the step."},
    }
    return _object("mechanism", entry, more=more)


def _kinds(kinds: Kinds) -> dict[str, Any]:
    return {name: kind.schema | {"description": words} for name, (kind, words) in kinds.items()}


def _levels(level: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "anyOf": [level, {"type": "array", "minItems": 1, "items": level}]}


def _guarantee() -> dict[str, Any]:
    levels = {
        "delta": _levels(_DELTA, "Report epsilon at this delta, or at each of these."),
        "epsilon": _levels(_EPSILON, "Report delta at this epsilon (nats), or at each of these."),
    }
    return _table("What is claimed, and of whom.", _kinds(GUARANTEE) | levels)


def _accountant() -> dict[str, Any]:
    tables = [_object("method", AUTOMATIC_ENTRY, optional_key="method")]
    tables += [_object("method", entry) for entry in accountants().values()]
    names = [AUTOMATIC_ENTRY.name]
    names += [entry.name for entry in accountants().values() if not entry.required]
    return {"description": "The method of accounting.", "oneOf": [{"enum": names}, *tables]}


def _circumstances() -> dict[str, Any]:
    words = "What accounting cannot see but a reader must know; receipts warn where it breaks a guarantee."
    return _table(words, _kinds(STATED))
