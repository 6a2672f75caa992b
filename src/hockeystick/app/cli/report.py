"""Make a privacy receipt: HTML, Markdown, JSON; a sentence for a paper; a record for a registry.

Account a specification and write its privacy receipt: the guarantee in words, everything it rests on, and how to check
it.

  hockeystick report spec.toml -o receipt.html -o receipt.json
  hockeystick report spec.toml --format markdown > PRIVACY.md
  hockeystick report spec.toml --format latex
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hockeystick.app.cli.answer import opening, status_of
from hockeystick.app.cli.options import add_changes, add_specification, asked_specification, write_text
from hockeystick.app.cli.parsing import CommandError, Parser, Status
from hockeystick.app.report.content import Content
from hockeystick.app.report.deployments import deployment_record
from hockeystick.app.report.latex import latex
from hockeystick.app.report.markdown import markdown
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.progress import Progress

_FORMATS = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".json": "json",
    ".tex": "latex",
    ".yaml": "opendp",
    ".yml": "opendp",
}
_WRITERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "html": page,
    "markdown": markdown,
    "json": lambda made: json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
    "latex": latex,
    "opendp": deployment_record,
}


def add(parser: Parser) -> None:
    """Add the command's options."""
    add_specification(parser)
    add_changes(parser)
    words = "where to write: .html, .md, .json, .tex (for a paper), .yaml (OpenDP deployments registry); repeatable"
    parser.add_argument("-o", "--output", action="append", metavar="FILE", help=words)
    parser.add_argument("--format", choices=tuple(_WRITERS), help="format for stdout (default: markdown)")


def run(options: argparse.Namespace) -> Status:
    """Make the receipt and write it in every form asked for."""
    outputs = [(name, _format(name)) for name in options.output or []]
    specification = asked_specification(options)
    with Progress("making the receipt"):
        made = receipt(specification)
    for name, form in outputs:
        write_text(name, _WRITERS[form](made))
    if options.json or not outputs or options.format:
        print(_WRITERS["json" if options.json else options.format or "markdown"](made), end="")
    else:
        content = Content(made)
        figures = [content.figure(result) for result in content.results]
        print(opening(specification.broken) + "\n".join([*figures, f"wrote {', '.join(name for name, _ in outputs)}"]))
    return status_of(specification)


def _format(name: str) -> str:
    suffix = Path(name).suffix.lower()
    if suffix not in _FORMATS:
        raise CommandError(f"hockeystick report: error: -o must end in .html, .md, .json, .tex or .yaml, got {name!r}")
    return _FORMATS[suffix]
