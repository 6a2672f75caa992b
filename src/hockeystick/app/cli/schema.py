"""The JSON schema of specification files, or an example of one.

Print the JSON schema of specification files, for editors and checkers.

  hockeystick schema > spec.schema.json
  hockeystick schema --example > spec.toml
"""

from __future__ import annotations

import argparse

from hockeystick.app.assets import asset
from hockeystick.app.cli.answer import print_json
from hockeystick.app.cli.parsing import Parser, Status
from hockeystick.app.spec.schema import schema

EXAMPLE = asset("cli/example.toml")
"""A specification that uses every part."""


def add(parser: Parser) -> None:
    """Add the command's options."""
    parser.add_argument("--example", action="store_true", help="print an example specification instead")
    parser.add_argument("--json", action="store_true", help="print the example as JSON; the schema always is JSON")


def run(options: argparse.Namespace) -> Status:
    """Print the schema or the example."""
    if options.example and options.json:
        from hockeystick.app.spec.reader import read  # loaded where something is read

        print_json(read(EXAMPLE).document())
    elif options.example:
        print(EXAMPLE, end="")
    else:
        print_json(schema())
    return Status.OK
