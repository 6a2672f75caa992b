"""The public surface: documented, keyword-only after two arguments, no bare booleans."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick import accountants
from hockeystick.integrations import FRAMEWORKS
from tests.architecture.imports import PACKAGE, SOURCE

RESULTS = {
    "Bound",
    "Estimate",
    "PrivacyCurve",
}  # values a call returns; a reader takes them apart and seldom builds one

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"
ABSTRACT = {
    "accountants.Accountant",
    "accountants.DirectedCurve",
    "accountants.renyi",
    "filters.Filter",
}  # or named above


def public_callables() -> Iterator[tuple[str, Any]]:
    """Functions and classes of the public names, and the public methods of those classes."""
    for room in (hs, accountants):
        for name in room.__all__:
            thing = getattr(room, name)
            if not callable(thing):
                continue
            yield name, thing
            if inspect.isclass(thing):
                own = vars(thing).items()
                yield from ((f"{name}.{key}", m) for key, m in own if inspect.isfunction(m) and key[0] != "_")


def parameters(thing: Any) -> list[inspect.Parameter]:
    """Parameters a caller gives; none for what has no signature, such as an exception type."""
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return []
    return [parameter for name, parameter in signature.parameters.items() if name != "self"]


PUBLIC = dict(public_callables())


def test_arguments_after_two_are_keyword_only() -> None:
    positional = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    by_position = {
        name: [parameter.name for parameter in parameters(thing) if parameter.kind in positional]
        for name, thing in PUBLIC.items()
        if name not in RESULTS
    }
    assert len(by_position) > 100
    assert not {name: taken for name, taken in by_position.items() if len(taken) > 2}, "taken by position"


def test_no_argument_is_a_bare_boolean() -> None:
    booleans = {
        name: [p.name for p in parameters(thing) if isinstance(p.default, bool)] for name, thing in PUBLIC.items()
    }
    assert not {name: taken for name, taken in booleans.items() if taken}, "a string or an enum says what it means"


def undocumented(module_name: str) -> list[str]:
    """Public functions, classes and methods of a module with no docstring of their own or from what they override."""
    module = importlib.import_module(module_name)
    missing = [] if module.__doc__ else [module_name]
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", None) != module_name:
            continue
        if inspect.isclass(thing):
            members = [(key, member) for key, member in vars(thing).items() if not key.startswith("_")]
            methods = [(key, m) for key, m in members if inspect.isfunction(m) or isinstance(m, property)]
            missing += [f"{name}.{key}" for key, _ in methods if not inspect.getdoc(getattr(thing, key))]
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and not inspect.getdoc(thing):
            missing.append(name)
    return missing


LAZY = sorted((SOURCE / PACKAGE).rglob("__init__.pyi"))


@pytest.mark.parametrize("stub", LAZY, ids=lambda stub: stub.parent.name)
def test_names_that_are_loaded_on_demand_are_those_that_type_checkers_see(stub: Path) -> None:
    package = importlib.import_module(".".join(stub.parent.relative_to(SOURCE).parts))
    imports = (node for node in ast.walk(ast.parse(stub.read_text("utf-8"))) if isinstance(node, ast.ImportFrom))
    # only what is imported as itself is public for type checkers
    named = sorted(alias.name for node in imports for alias in node.names if alias.asname == alias.name)
    assert named == sorted(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)


def test_every_public_name_is_in_the_reference() -> None:
    listed = set(re.findall(r"^   ([\w.]+)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE))
    for room in (hs.accountants, hs.audit, hs.dpsgd, hs.filters, hs.ledger, hs):
        prefix = "" if room is hs else room.__name__.removeprefix(f"{PACKAGE}.") + "."
        public = {prefix + name for name in room.__all__ if callable(getattr(room, name))}
        assert not public - listed - ABSTRACT


ABSENT = {  # their frameworks are not installed here; `make test-integrations` looks at them
    f"{PACKAGE}.integrations.{module}"
    for module, framework in FRAMEWORKS.items()
    if importlib.util.find_spec(framework) is None
}
MODULES = [
    module.name
    for module in pkgutil.walk_packages(hs.__path__, f"{PACKAGE}.")
    if "__main__" not in module.name and module.name not in ABSENT
]


def test_everything_public_is_documented() -> None:
    assert len(MODULES) > 300
    assert not {module: missing for module in MODULES if (missing := undocumented(module))}
