"""Where every key of a TOML or JSON document stands, so that an error can point at its line.

The standard parsers give values without positions. These scanners walk a text that has already been parsed, hence is
valid, and only note where keys and list items begin.
"""

from __future__ import annotations

import bisect
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]
"""Keys and list indices from the top of a document."""

Lines = dict[Path, int]
"""The line, from 1, on which each path begins."""


class DuplicateKeyError(ValueError):
    """A key that stands twice in one JSON object.

    Attributes
    ----------
    line : int
        Where it stands the second time.
    """

    def __init__(self, key: str, line: int) -> None:
        super().__init__(f"the key {key!r} stands twice")
        self.line = line


def toml_lines(text: str) -> Lines:
    r"""The lines of a valid TOML document.

    Examples
    --------
    >>> toml_lines('a = 1\n[[b]]\nc.d = [1,\n2]')[("b", 0, "c", "d", 1)]
    4
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


def json_lines(text: str) -> Lines:
    r"""The lines of a valid JSON document.

    Raises
    ------
    DuplicateKeyError
        Where a key stands twice in one object, which the standard parser accepts in silence.

    Examples
    --------
    >>> json_lines('{"a": [1,\n {"b": 2}]}')[("a", 1, "b")]
    2
    """
    scanner = _Scanner(text, is_json=True)
    scanner.skip(_BLANK)
    scanner.value(())
    return scanner.lines


def line_of(lines: Lines, path: Path) -> int:
    """The line of a path, or of the nearest thing that holds it; 1 where nothing does."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


_BLANK = r"(?:[ \t\r\n]|#[^\n]*)*"
_STRING = "|".join(
    (
        r'"""(?:[^"\\]|\\[\s\S]|"(?!""))*"{3,5}',
        r"'''(?:[^']|'(?!''))*'{3,5}",
        r'"(?:[^"\\\n]|\\.)*"',
        r"'[^'\n]*'",
    )
)


@dataclass
class _Scanner:
    """Walks a text: JSON is read as the value of one TOML key, with colons for equals signs."""

    text: str
    is_json: bool = field(default=False, kw_only=True)
    at: int = 0
    lines: Lines = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ends = [match.start() for match in re.finditer("\n", self.text)]

    def line(self) -> int:
        return bisect.bisect_left(self._ends, self.at) + 1

    def note(self, path: Path) -> None:
        self.lines.setdefault(path, self.line())

    def skip(self, pattern: str) -> str:
        match = re.compile(pattern).match(self.text, self.at)
        found = match[0] if match else ""
        self.at += len(found)
        return found

    def sees(self, *starts: str) -> bool:
        return self.text.startswith(starts, self.at)

    def items(self, close: str, item: Callable[[int], Any]) -> None:
        """The items between an opening mark, which is next, and a closing one, parted by commas."""
        self.at += 1
        for index in itertools.count():
            self.skip(_BLANK)
            if self.sees(close):
                self.at += 1
                return
            item(index)
            self.skip(_BLANK)
            self.skip(",")

    def document(self) -> None:
        table: Path = ()
        counts: dict[Path, int] = {}
        self.skip(_BLANK)
        while self.at < len(self.text):
            if self.sees("["):
                table = self.header(counts)
            else:
                self.assignment(table)
            self.skip(_BLANK)

    def header(self, counts: dict[Path, int]) -> Path:
        """The table a ``[header]`` or ``[[header]]`` opens; a name that is a list of tables means its last one."""
        many = self.sees("[[")
        self.at += 2 if many else 1
        keys = self.key()
        path: Path = ()
        for number, key in enumerate(keys, 1):
            path = (*path, key)
            if many and number == len(keys):
                counts[path] = counts.get(path, 0) + 1
            if path in counts:
                self.note(path)
                path = (*path, counts[path] - 1)
        self.note(path)
        self.skip(r"[ \t]*\]+")
        return path

    def assignment(self, table: Path) -> None:
        path = table
        for key in self.key():
            path = (*path, key)
            if self.is_json and path in self.lines:
                raise DuplicateKeyError(key, self.line())
            self.note(path)
        self.skip(r"\s*[=:]\s*")
        self.value(path)

    def key(self) -> list[str]:
        keys: list[str] = []
        while True:
            self.skip(r"[ \t]*")
            written = self.skip(_STRING) or self.skip(r"[A-Za-z0-9_-]+")
            bare = written[1:-1] if written.startswith(('"', "'")) else written
            keys.append(json.loads(written) if self.is_json else bare)
            self.skip(r"[ \t]*")
            if not self.skip(r"\."):
                return keys

    def value(self, path: Path) -> None:
        self.note(path)
        if self.sees("["):
            self.items("]", lambda index: self.value((*path, index)))
        elif self.sees("{"):
            self.items("}", lambda _: self.assignment(path))
        elif not self.skip(_STRING):
            self.skip(r"[^,\]}#\n]+")
