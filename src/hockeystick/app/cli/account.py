"""``hockeystick account``: the guarantee of a specification."""

from __future__ import annotations

import argparse

from hockeystick.app.cli.answer import answers, print_answers
from hockeystick.app.cli.files import add_changes, add_specification, asked_specification
from hockeystick.app.cli.options import add_json
from hockeystick.app.cli.parsing import Parser
from hockeystick.app.cli.status import Status
from hockeystick.progress import Progress

HELP = "the guarantee of a specification file"
DESCRIPTION = "Epsilon at the deltas of a specification file, and delta at its epsilons."
EXAMPLES = """examples:
  hockeystick account spec.toml
  hockeystick account spec.toml --delta 1e-5,1e-6 --adjacency remove --json
"""


def add(parser: Parser) -> None:
    """Add the command's options."""
    add_specification(parser)
    add_changes(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> Status:
    """Account the specification and print the answer."""
    specification = asked_specification(options)
    with Progress("accounting"):
        found = answers(specification, specification.curve)
    return print_answers(specification, found, as_json=options.json)
