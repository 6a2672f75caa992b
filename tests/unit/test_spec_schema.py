"""The published schema: complete, current, and of one mind with the reader."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hockeystick.app.cli.schema import EXAMPLE
from hockeystick.app.spec import SpecificationError, from_document, schema
from hockeystick.app.spec.registry import accountants, mechanisms, samplings

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "reference" / "spec.schema.json"


def valid(value: Any, rule: dict[str, Any]) -> bool:
    """A small JSON-schema checker: exactly the words the schema uses."""
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
    }
    known = {"$schema", "title", "description", "type", "additionalProperties", "required", "properties", "const"}
    known |= {"enum", "minItems", "items", "oneOf", "anyOf", "minimum", "maximum", "minLength", "pattern"}
    assert set(rule) <= known | {"exclusiveMinimum"}, set(rule) - known
    checks = [
        "const" not in rule or (value == rule["const"] and type(value) is type(rule["const"])),
        "enum" not in rule or value in rule["enum"],
        "oneOf" not in rule or sum(valid(value, one) for one in rule["oneOf"]) == 1,
        "anyOf" not in rule or any(valid(value, one) for one in rule["anyOf"]),
    ]
    if "type" in rule:
        names = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
        right = any(isinstance(value, kinds[name]) and isinstance(value, bool) == (name == "boolean") for name in names)
        checks.append(right)
    if isinstance(value, dict):
        inside = rule.get("properties", {})
        checks.append(all(key in value for key in rule.get("required", ())))
        checks.append(rule.get("additionalProperties", True) or set(value) <= set(inside))
        checks += [valid(value[key], inside[key]) for key in value if key in inside]
    if isinstance(value, list):
        checks.append(len(value) >= rule.get("minItems", 0))
        checks += [valid(item, rule["items"]) for item in value if "items" in rule]
    if isinstance(value, str):
        checks.append(len(value) >= rule.get("minLength", 0))
        checks.append("pattern" not in rule or re.search(rule["pattern"], value) is not None)
    if isinstance(value, int | float) and not isinstance(value, bool):
        checks.append(rule.get("minimum", value) <= value <= rule.get("maximum", value))
        checks.append("exclusiveMinimum" not in rule or value > rule["exclusiveMinimum"])
    return all(checks)


def accepted(document: Any) -> bool:
    try:
        from_document(document)
    except SpecificationError:
        return False
    return True


def test_published_schema_is_current() -> None:
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    assert published == schema(), "run: hockeystick schema > docs/reference/spec.schema.json"


def test_example_is_valid_and_read() -> None:
    document = tomllib.loads(EXAMPLE)
    assert valid(document, schema())
    assert accepted(document)


GAUSSIAN = {"mechanism": "gaussian", "noise_multiplier": 1.0}
CASES: list[Any] = [
    {},
    {"steps": []},
    {"steps": [GAUSSIAN]},
    {"steps": [GAUSSIAN | {"count": 0}]},
    {"steps": [GAUSSIAN | {"count": 1.5}]},
    {"steps": [GAUSSIAN | {"noise_multiplier": "1"}]},
    {"steps": [GAUSSIAN | {"noise_multiplier": True}]},
    {"steps": [GAUSSIAN | {"noise": 1}]},
    {"steps": [{"mechanism": "gaussian"}]},
    {"steps": [{"mechanism": "unknown"}]},
    {"steps": [GAUSSIAN | {"sampling": "none"}]},
    {"steps": [GAUSSIAN | {"sampling": {"scheme": "none"}}]},
    {"steps": [GAUSSIAN | {"sampling": "poisson"}]},
    {"steps": [GAUSSIAN | {"sampling": {"scheme": "poisson", "rate": 0.1}}]},
    {"steps": [GAUSSIAN | {"sampling": {"scheme": "poisson", "batch_size": 5, "population": 50}}]},
    {"steps": [GAUSSIAN | {"sampling": {"scheme": "poisson", "batch_size": 5}}]},
    {"steps": [GAUSSIAN], "guarantee": {"delta": 0.5, "epsilon": [0, 1, "inf"]}},
    {"steps": [GAUSSIAN], "guarantee": {"delta": []}},
    {"steps": [GAUSSIAN], "guarantee": {"delta": -1}},
    {"steps": [GAUSSIAN], "guarantee": {"delta": True}},
    {"steps": [GAUSSIAN], "guarantee": {"adjacency": "zero-out", "unit": "user"}},
    {"steps": [GAUSSIAN], "guarantee": {"adjacency": "zero"}},
    {"steps": [GAUSSIAN], "accountant": "automatic"},
    {"steps": [GAUSSIAN], "accountant": {"tolerance": 1e-3}},
    {"steps": [GAUSSIAN], "accountant": {"method": "automatic", "tolerance": "x"}},
    {"steps": [GAUSSIAN], "accountant": "unknown"},
    {"steps": [GAUSSIAN], "circumstances": {"batches": "shuffled", "tuning": "none", "adaptive": "yes"}},
    {"steps": [GAUSSIAN], "circumstances": {"clipping_norm": 0}},
    {"steps": [GAUSSIAN], "version": 1},
    {"steps": [GAUSSIAN], "version": 2},
    {"steps": [GAUSSIAN], "title": ""},
    {"steps": [GAUSSIAN], "extra": 1},
]


@pytest.mark.parametrize("document", CASES, ids=[json.dumps(case)[:70] for case in CASES])
def test_schema_and_reader_agree(document: Any) -> None:
    assert valid(document, schema()) == accepted(document)


def test_everything_public_is_nameable() -> None:
    assert {"gaussian", "laplace"} <= mechanisms().keys()
    assert "poisson" in samplings()
    assert "certified" in accountants()
    for entries in (mechanisms(), samplings(), accountants()):
        for entry in entries.values():
            assert entry.summary, f"{entry.name} has no first line of a docstring"


def test_what_a_mechanism_is_in_a_line_is_plain_words() -> None:
    # receipts, and answers on a terminal, show it as it is
    assert [entry.summary for entry in mechanisms().values() if set("*`_") & set(entry.summary)] == []


def test_the_reference_names_what_a_sampling_scheme_takes() -> None:
    text = (PUBLISHED.parent / "spec.md").read_text(encoding="utf-8")
    said = text[text.index("Sampling schemes: ") : text.index("`geometric`")]
    names = {one.name for scheme in samplings().values() for one in scheme.parameters} | set(samplings())
    assert sorted(name for name in names if f"`{name}`" not in said) == []
