"""The catalogue: the changes, read from ``catalogue/*.toml``.

Each change has a name, the function it is made in, the expression or statement that is replaced and what takes its
place, the claim that this breaks, and the tests that should notice. A change that cannot matter has a reason instead.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import final

__all__ = ["Change", "harmless", "load"]

ROOM = Path(__file__).with_name("catalogue")
_HARMLESS = "cannot-matter.toml"


@final
@dataclass(frozen=True)
class Change:
    """One change of the code under test.

    Parameters
    ----------
    name
        Its name in the catalogue.
    where
        Qualified name of the function (``Class.method``), or the name of a constant of a module. Where several modules
        have both that name and the old code, ``module:`` in front says which, by the end of its dotted name.
    old, new
        The expression or statement replaced, and what takes its place.
    claim
        What is no longer true (or, of a change that cannot matter, why it cannot).
    tests
        Node ids of the tests that should notice; empty for a change that cannot matter.
    """

    name: str
    where: str
    old: str
    new: str
    claim: str
    tests: tuple[str, ...]


def load(room: Path = ROOM) -> tuple[Change, ...]:
    """Every change that a test should notice, in the order of the files."""
    return tuple(change for path in sorted(room.glob("*.toml")) if path.name != _HARMLESS for change in _read(path))


def harmless(room: Path = ROOM) -> tuple[Change, ...]:
    """The changes that cannot matter, each with its reason."""
    return tuple(_read(room / _HARMLESS))


def _read(path: Path) -> list[Change]:
    needs = {"name", "where", "old", "new"} | ({"reason"} if path.name == _HARMLESS else {"claim", "tests"})
    found = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("change", []):
        if set(entry) != needs:
            raise ValueError(f"{path.name}: {entry.get('name')!r} has {sorted(entry)}, a change has {sorted(needs)}")
        claim = entry["reason" if "reason" in needs else "claim"]
        tests = tuple(entry.get("tests", ()))
        found.append(Change(entry["name"], entry["where"], entry["old"].strip(), entry["new"].strip(), claim, tests))
    return found
