"""The catalogue of changes applies to the code as it is, and the runner tells what is noticed from what is not."""

from __future__ import annotations

import ast
import functools
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from mutants.__main__ import TREE, main, stale
from mutants.catalogue import Change, harmless, load
from mutants.source import CannotApplyError, Sources

EVERY = load()
HARMLESS = harmless()


@functools.cache
def sources() -> Sources:
    return Sources(TREE / "src")


@functools.cache
def named_in(path: str) -> set[str]:
    tree = ast.parse((TREE / path).read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def test_each_change_applies_to_exactly_one_place() -> None:
    assert not stale(sources(), (*EVERY, *HARMLESS))


def test_the_tests_named_exist() -> None:
    named = [(change, *test.partition("::")[::2]) for change in EVERY for test in change.tests]
    assert all(change.tests for change in EVERY)
    missing = [
        f"{change.name}: {path}::{name}"
        for change, path, name in named
        if not (TREE / path).is_file() or (name and name.partition("[")[0] not in named_in(path))
    ]
    assert not missing


def test_names_are_distinct_and_the_catalogue_is_not_small() -> None:
    names = [change.name for change in (*EVERY, *HARMLESS)]
    assert len(set(names)) == len(names)
    assert len(EVERY) >= 120


@pytest.mark.torture
def test_a_random_tenth_of_the_changes_is_noticed() -> None:
    assert main(["--sample", str(-(-len(EVERY) // 10))]) == 0


CATALOGUE = """
[[change]]
name = "noticed"
where = "rounded_up"
old = "math.ceil"
new = "math.floor"
claim = "an upper side is rounded up"
tests = ["tests/test_decimals.py"]

[[change]]
name = "nobody-looks"
where = "weighted"
old = "factor * 2.0"
new = "2.5 * factor"
claim = "weights are scaled"
tests = ["tests/test_decimals.py"]

[[change]]
name = "no-code"
where = "rounded_down"
old = "math.floor"
new = "no_such_name"
claim = "a change must run to be noticed"
tests = ["tests/test_decimals.py"]
"""

# the small tree needs no plugins, which take most of the time that a run of its tests takes
WITHOUT = [word for plugin in entry_points(group="pytest11") for word in ("-p", f"no:{plugin.name}")]
SMALL = {  # a tree as small as one can be, with the package and tests in the places of ours
    "pyproject.toml": f"[tool.pytest.ini_options]\naddopts = {['-ra', *WITHOUT]}\n",
    "src/hockeystick/__init__.py": "",
    "src/hockeystick/decimals.py": """
import math


def rounded_up(x):
    return math.ceil(x)


def rounded_down(x):
    return math.floor(x)


def weighted(factor):
    return factor * 2.0
""",
    "tests/test_decimals.py": """
from hockeystick.decimals import rounded_down, rounded_up


def test_sides():
    assert (rounded_down(0.5), rounded_up(0.5)) == (0, 1)
""",
}


def test_what_nobody_notices_and_what_does_not_run_fail_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, catalogue = tmp_path / "tree", tmp_path / "catalogue"
    for name, text in SMALL.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    catalogue.mkdir()
    (catalogue / "some.toml").write_text(CATALOGUE)
    (catalogue / "cannot-matter.toml").write_text("")
    monkeypatch.setattr("mutants.__main__.TREE", tree)
    assert main(["--catalogue", str(catalogue), "--workers", "1"]) == 1
    said = capsys.readouterr()
    assert "1 of 3 changes noticed" in said.out
    assert "survived: nobody-looks (weights are scaled)" in said.err
    assert "invalid: no-code" in said.err


@pytest.mark.parametrize(
    ("where", "old", "new", "why"),
    [
        ("rounded_up", "ROUND_FLOOR", "ROUND_CEILING", "found 0 times"),
        ("no_such_function", "x", "y", "found 0 times"),
        ("rounded_up", "ROUND_CEILING", "(ROUND_CEILING)", "the same code"),
        ("rounded_up", "a = 1; b = 2", "c = 3", "not one"),
        ("_digits", "rounding", "0", "found 3 times"),
    ],
)
def test_a_change_that_does_not_fit_is_refused(where: str, old: str, new: str, why: str) -> None:
    change = Change("tried", where, old, new, "", ())
    with pytest.raises(CannotApplyError, match=why):
        sources().place(change)


def test_a_change_is_found_however_the_code_is_laid_out(tmp_path: Path) -> None:
    (tmp_path / "moved.py").write_text(
        "class A:\n    def f(self, x):\n        return ((x  +  # why\n            1.0)) * 2\n"
    )
    changed = Sources(tmp_path).changed(Change("tried", "A.f", "x + 1.0", "x", "", ()))
    assert changed.text == "class A:\n\n    def f(self, x):\n        return x * 2\n"
