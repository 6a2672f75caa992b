"""The JSON schema of specification files, or an example of one.

Print the JSON schema of specification files, for editors and checkers.

  hockeystick schema > spec.schema.json
  hockeystick schema --example > spec.toml
"""

from __future__ import annotations

import argparse

from hockeystick.app.cli.answer import print_json
from hockeystick.app.cli.parsing import Parser, Status
from hockeystick.app.spec.schema import schema

EXAMPLE = """\
title = "CIFAR-10, DP-SGD"

[[steps]]                       # one table for each kind of step
mechanism = "gaussian"
noise_multiplier = 1.0
sampling = { scheme = "poisson", batch_size = 500, population = 50_000 }
count = 2000

[guarantee]
adjacency = "add-remove"
unit = "example"
delta = 1e-5                    # or a list; or epsilon

[accountant]
method = "automatic"
tolerance = 1e-3

[circumstances]                 # what accounting cannot see
examples = 50_000
batches = "poisson"             # how they are drawn: fixed-size, shuffled, ...
clipping_norm = 1.0
tuning = "none"                 # none, on-public-data, counted, not-counted
adaptive = "no"
"""
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
