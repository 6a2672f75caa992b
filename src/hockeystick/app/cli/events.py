"""Make a specification from an event of dp-accounting.

Read an event of dp-accounting, as JSON with class_name and fields (its named tuple, written out), and print the
specification of what it releases.

  hockeystick import event.json --delta 1e-5 > spec.json
  hockeystick report spec.json -o receipt.html
"""

from __future__ import annotations

import argparse
import json

from hockeystick.app.cli.options import ADJACENCY, UNIT, add_adjacency, add_unit, read_text
from hockeystick.app.cli.parsing import Parser, Status, delta, listed, option
from hockeystick.app.spec.reader import parsed
from hockeystick.app.spec.write import from_event


def add(parser: Parser) -> None:
    """Add the command's options."""
    parser.add_argument("event", metavar="EVENT", help="the event, JSON; - reads stdin")
    add_adjacency(parser)
    add_unit(parser)
    option(parser, "--delta", listed(delta), "D[,D]", "report epsilon at these", default=())


def run(options: argparse.Namespace) -> Status:
    """Print the specification, as JSON in any case."""
    event, _ = parsed(read_text(options.event), options.event, "json")
    made = from_event(event, options.adjacency or ADJACENCY, delta=options.delta, unit=options.unit or UNIT)
    print(json.dumps(made.document(), indent=2, ensure_ascii=False, allow_nan=False))
    return Status.OK
