"""Reading a specification from TOML or JSON: all problems are collected and reported together, each with its line."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any, Literal

from hockeystick.app.spec.entries import Choice
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.parts import DocumentReader
from hockeystick.app.spec.positions import DuplicateKeyError, Lines, json_lines, toml_lines
from hockeystick.app.spec.problems import OutOfRangeError, Problem, SpecificationError, read_float
from hockeystick.errors import check_choice

Format = Literal["toml", "json"]


def load(path: str | FilePath) -> Specification:
    """The specification in a file; JSON where its name ends in ``.json``, else TOML.

    Raises
    ------
    SpecificationError
        Where its contents are wrong.
    OSError
        Where it cannot be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the path of a file, got {path!r}")
    path = FilePath(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecificationError(str(path), [Problem(1, f"not a text file in UTF-8: {error.reason}")]) from None
    return read(text, source=str(path), form="json" if path.suffix == ".json" else "toml")


def read(text: str, *, source: str = "specification", form: Format = "toml") -> Specification:
    """The specification in a text.

    Examples
    --------
    >>> text = '''
    ... [[steps]]
    ... mechanism = "gaussian"
    ... noise_multiplier = 1.0
    ... sampling = { scheme = "poisson", rate = 0.01 }
    ... count = 2000
    ... [guarantee]
    ... delta = 1e-5
    ... '''
    >>> read(text).composition.total_steps
    2000
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be the text of a specification, got {text!r}; load reads a file")
    document, lines = parsed(text, source, check_choice("form", form, ("toml", "json")))
    return from_document(document, source=source, lines=lines)


def parsed(text: str, source: str, form: str) -> tuple[object, Lines]:
    """What a text holds, and on which lines: every number one of float64's, and every key once.

    Raises
    ------
    SpecificationError
        Where it holds nothing of this form.
    """
    try:
        if form == "json":
            return json.loads(text, parse_float=read_float), json_lines(text)
        return tomllib.loads(text, parse_float=read_float), toml_lines(text)
    except (ValueError, RecursionError) as error:
        raise SpecificationError(source, [_unparsed(error, text)]) from None


def _unparsed(error: ValueError | RecursionError, text: str) -> Problem:
    """Why a text is no document, with the line."""
    if isinstance(error, RecursionError):  # what reads files goes as deep as they do
        return Problem(1, "nested too deeply")
    if isinstance(error, json.JSONDecodeError):
        return Problem(error.lineno, f"not valid JSON: {error.msg}")
    if isinstance(error, DuplicateKeyError):
        return Problem(error.line, str(error))
    if isinstance(error, OutOfRangeError):
        before = text.partition(str(error).partition(" ")[0])[0]
        return Problem(before.count("\n") + 1, str(error))
    if not isinstance(error, tomllib.TOMLDecodeError):  # Python reads no whole number of so many digits
        before = re.split(r"[0-9][0-9_]{4299}", text, maxsplit=1)[0]
        return Problem(before.count("\n") + 1, "a number of thousands of digits; the largest float64 is 1.8e308")
    said, _, place = str(error).rpartition(" (at ")  # of TOML: ``... (at line 3, column 5)``
    line = re.match(r"line (\d+)", place)
    return Problem(int(line[1]) if line else text.count("\n") + 1, f"not valid TOML: {said or error}")


def from_document(document: object, *, source: str = "specification", lines: Lines | None = None) -> Specification:
    """The specification in a parsed document.

    Raises
    ------
    SpecificationError
        With every problem found.
    """
    reader = DocumentReader({} if lines is None else lines)
    specification = reader.specification(document)
    if reader.problems or specification is None:
        raise SpecificationError(source, reader.problems)
    return specification


def accountant_of(text: str, source: str = "accountant") -> Choice:
    """The accountant a text names, with parameters after a colon.

    Examples
    --------
    >>> accountant_of("certified:tolerance=1e-5").text
    'certified(tolerance=1e-05)'
    """
    return _choice_of("method", text, source, DocumentReader.accountant)


def tuning_of(text: str, source: str = "tuning") -> Choice:
    """The law of the number of runs that a text names, with parameters after a colon.

    Examples
    --------
    >>> tuning_of("poisson:mean=10").text
    'poisson(mean=10)'
    """
    return _choice_of("runs", text, source, DocumentReader.tuning)


def _choice_of(key: str, text: str, source: str, read: Callable[[DocumentReader, object], Choice | None]) -> Choice:
    reader = DocumentReader({})
    choice = read(reader, _table(key, text))
    if choice is None or reader.problems:
        raise ValueError(f"{source}: {reader.problems[0].message}")
    return choice


def _table(key: str, text: str) -> dict[str, Any]:
    """``name:parameter=value,parameter=value`` as the table of a file."""
    name, _, parameters = text.partition(":")
    document: dict[str, Any] = {key: name.strip()}
    for item in filter(None, parameters.split(",")):
        parameter, _, value = item.partition("=")
        document[parameter.strip()] = _literal(value.strip())
    return document


def _literal(text: str) -> int | float | str:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
