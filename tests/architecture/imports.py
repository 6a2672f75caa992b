"""Every import statement under ``src/hockeystick``, read from the source with ``ast``.

An `Import` names the module that imports, the dotted module it asks for, and when that happens: at import of the
module, when a function is called, or for type checking only. Names taken from a package (``from a.b import c``) are
resolved to the submodule ``a.b.c`` if there is such a file, so that a room is seen however it is spelled.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
PACKAGE = "hockeystick"


class When(StrEnum):
    """When an import statement runs."""

    AT_IMPORT = "at import"
    IN_FUNCTION = "in a function"
    TYPE_CHECKING = "type checking"


@dataclass(frozen=True)
class Import:
    """One imported module: ``importer`` asks for ``target`` on line ``line``."""

    importer: str
    target: str
    when: When
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target} ({self.when})"


def source_files() -> list[Path]:
    """All Python files of the package."""
    return sorted((SOURCE / PACKAGE).rglob("*.py"))


def module_name(path: Path) -> str:
    """Dotted name of a source file; a package is named without ``__init__``."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(dotted: str) -> bool:
    """Whether the dotted name is a file or a package of ours."""
    path = SOURCE.joinpath(*dotted.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def read_imports(importer: str, code: str, when: When = When.AT_IMPORT) -> list[Import]:
    """All imports of one module, given its dotted name and its source text, or that of its stub."""
    collector = _Collector(importer, when)
    collector.visit(ast.parse(code))
    return collector.found


@functools.cache
def all_imports() -> tuple[Import, ...]:
    """All imports of the package, read once."""
    read = dict.fromkeys(source_files(), When.AT_IMPORT)
    read |= dict.fromkeys(sorted((SOURCE / PACKAGE).rglob("*.pyi")), When.TYPE_CHECKING)
    return tuple(
        found for path, when in read.items() for found in read_imports(module_name(path), path.read_text("utf-8"), when)
    )


class _Collector(ast.NodeVisitor):
    def __init__(self, importer: str, when: When) -> None:
        self.importer = importer
        self.when = when
        self.found: list[Import] = []

    def _add(self, target: str, line: int) -> None:
        self.found.append(Import(self.importer, target, self.when, line))

    def _nested(self, body: list[ast.stmt], when: When) -> None:
        outer, self.when = self.when, when
        for statement in body:
            self.visit(statement)
        self.when = outer

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level:
            raise AssertionError(f"{self.importer}:{node.lineno}: relative import; spell the whole module name")
        assert node.module is not None
        for alias in node.names:
            submodule = f"{node.module}.{alias.name}"
            own = node.module.split(".")[0] == PACKAGE
            # `from scipy import stats` asks for scipy.stats; `from scipy.fft import rfft` for scipy.fft.
            taken = is_module(submodule) if own else node.module == "scipy"
            self._add(submodule if taken else node.module, node.lineno)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._nested(node.body, When.IN_FUNCTION)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._nested(node.body, When.IN_FUNCTION)

    def visit_If(self, node: ast.If) -> None:
        typing_only = ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
        self._nested(node.body, When.TYPE_CHECKING if typing_only else self.when)
        self._nested(node.orelse, self.when)
