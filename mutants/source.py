"""Finding the place of a change in the code, and making it.

Both sides are compared as syntax trees, so that layout, comments, quotes and needless parentheses do not matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

from mutants.catalogue import Change

__all__ = ["CannotApplyError", "Sources"]

_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


class CannotApplyError(Exception):
    """The code a change names is not there, or there more than once."""


@final
@dataclass(frozen=True)
class Changed:
    """A file as a change makes it: its path and its whole text."""

    path: Path
    text: str


@final
class Sources:
    """The modules below a directory.

    Parameters
    ----------
    root
        A directory of Python packages.
    """

    def __init__(self, root: Path) -> None:
        self._module: dict[Path, str] = {}
        self._places: dict[str, list[tuple[Path, _Scope]]] = {}
        for path in sorted(root.rglob("*.py")):
            self._module[path] = ".".join(path.relative_to(root).with_suffix("").parts)
            for name, scope in _scopes(ast.parse(path.read_text(encoding="utf-8"))):
                self._places.setdefault(name, []).append((path, scope))

    def place(self, change: Change) -> Path:
        """The file that `change` changes; raises `CannotApplyError` when it does not fit exactly one place."""
        hint, _, name = change.where.rpartition(":")
        parsed = _parsed(change.old)
        kind, old, new = type(parsed), _key(parsed), _key(_parsed(change.new))
        if old == new:
            raise CannotApplyError(f"{change.name}: old and new are the same code")
        found: list[Path] = []
        for path, scope in self._places.get(name, []):
            if not hint or f".{self._module[path]}".endswith(f".{hint}"):
                found += [path for node in ast.walk(scope) if isinstance(node, kind) and _key(node) == old]
        if len(found) != 1:
            raise CannotApplyError(f"{change.name}: {change.old!r} is found {len(found)} times in {change.where}")
        return found[0]

    def changed(self, change: Change) -> Changed:
        """The file that `change` changes, as it is then."""
        path = self.place(change)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        replacer = _Replacer(_parsed(change.old), _parsed(change.new))
        for name, scope in _scopes(tree):
            if name == change.where.rpartition(":")[2]:
                replacer.visit(scope)
        return Changed(path, ast.unparse(ast.fix_missing_locations(tree)) + "\n")


def _scopes(tree: ast.Module) -> Iterator[tuple[str, _Scope]]:
    """Functions and classes by qualified name, and constants of the module by name."""

    def inside(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, _Scope]]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield prefix + node.name, node
                yield from inside(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                yield prefix + node.targets[0].id, node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield prefix + node.target.id, node

    return inside(tree.body, "")


def _parsed(code: str) -> ast.expr | ast.stmt:
    """The one expression or statement that `code` is."""
    body = ast.parse(code).body
    if len(body) != 1:
        raise CannotApplyError(f"not one expression or statement: {code!r}")
    return body[0].value if isinstance(body[0], ast.Expr) else body[0]


def _key(node: ast.AST) -> str:
    """What two pieces of code share when they mean the same; whether a name is read or written shows around it."""
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()")


@final
class _Replacer(ast.NodeTransformer):
    """Puts one piece of code in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = _key(old), new

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr | ast.stmt) and _key(node) == self._old:
            return self._new
        return self.generic_visit(node)
