"""Outside `laws` no code asks which class of law it was given: the law answers for itself.

Seen are ``isinstance`` and ``issubclass``, comparisons of ``type(...)``, ``case`` patterns and the registrations of
``functools.singledispatch``.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator

import hockeystick.laws
from hockeystick.laws.base import Pair
from tests.architecture.imports import module_name, source_files

MAY_ASK = {
    "hockeystick.laws": "the laws themselves",
    "hockeystick.exact": "the independent truth: it has an exact twin for each class, and shares no code with it",
}


def law_names() -> set[str]:
    """The names of all classes derived from `Pair`."""
    for module in pkgutil.iter_modules(hockeystick.laws.__path__, "hockeystick.laws."):
        importlib.import_module(module.name)

    def below(kind: type) -> Iterator[str]:
        for derived in kind.__subclasses__():
            yield derived.__name__
            yield from below(derived)

    return set(below(Pair))


def _named(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | {
        part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)
    }


def _asked_of(node: ast.AST) -> set[str]:
    """The classes by which a piece of code chooses what to do."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
            return _named(kinds)
        case ast.Compare(left=ast.Call(func=ast.Name(id="type")), comparators=others):
            return set().union(*map(_named, others))
        case ast.MatchClass(cls=kind):
            return _named(kind)
        case ast.FunctionDef(decorator_list=decorators, args=ast.arguments(args=[first, *_])):
            registers = [d for d in decorators if "register" in _named(d)]
            by_annotation = _named(first.annotation) if registers and first.annotation is not None else set()
            return by_annotation.union(*map(_named, registers))
    return set()


def ladders(code: str, laws: set[str]) -> list[str]:
    """Where a source text asks for a class of law."""
    return [
        f"line {node.lineno}: {', '.join(sorted(found))}"  # type: ignore[attr-defined]
        for node in ast.walk(ast.parse(code))
        if (found := _asked_of(node) & laws)
    ]


def test_only_laws_know_their_classes() -> None:
    laws = law_names()
    assert len(laws) >= 10, "hardly a law found: the test looks in the wrong place"
    seen = {
        module: found
        for path in source_files()
        if not (module := module_name(path)).startswith(tuple(MAY_ASK))
        if (found := ladders(path.read_text("utf-8"), laws))
    }
    assert not seen, f"ask the law, not its class: {seen}"


def test_every_ladder_is_seen() -> None:
    laws = {"GaussianPair"}
    for code in (
        "isinstance(pair, GaussianPair)",
        "isinstance(pair, laws.GaussianPair | int)",
        "type(pair) is GaussianPair",
        "match pair:\n    case GaussianPair(sigma=s): pass",
        "@f.register\ndef _(pair: GaussianPair): pass",
        "@f.register(GaussianPair)\ndef _(pair): pass",
    ):
        assert ladders(code, laws), code
    assert not ladders("isinstance(pair, Pair)\nGaussianPair(1.0)", laws)
