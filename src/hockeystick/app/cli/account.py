"""The guarantee of a specification file.

Epsilon at the deltas of a specification file, and delta at its epsilons.

  hockeystick account spec.toml
  hockeystick account spec.toml --delta 1e-5,1e-6 --adjacency remove --json
"""

from __future__ import annotations

import argparse
import textwrap

from hockeystick.app.cli.answer import answer_document, answer_text, answers, told
from hockeystick.app.cli.options import add_changes, add_specification, asked_specification
from hockeystick.app.cli.parsing import WIDTH, Parser, Status
from hockeystick.progress import Progress


def add(parser: Parser) -> None:
    """Add the command's options."""
    add_specification(parser)
    add_changes(parser)


def run(options: argparse.Namespace) -> Status:
    """Account the specification and print the answer."""
    specification = asked_specification(options)
    with Progress("accounting"):
        found = answers(specification, specification.curve)
    title = f"{textwrap.fill(specification.title, WIDTH)}\n\n" if specification.title else ""
    text = title + answer_text(specification, found)
    return told(specification, answer_document(specification, found), text, as_json=options.json)
