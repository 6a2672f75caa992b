"""``hockeystick selfcheck``: measure here what every certified number assumes of numpy, scipy and the C library."""

from __future__ import annotations

import argparse
from typing import Any

from hockeystick.app.cli.answer import print_json
from hockeystick.app.cli.options import add_json
from hockeystick.app.cli.parsing import Parser
from hockeystick.app.cli.status import Status
from hockeystick.app.cli.table import table
from hockeystick.progress import Progress
from hockeystick.selfcheck import Measurement, SelfCheck, self_check

HELP = "measure on this machine the error bounds that certified numbers assume"
DESCRIPTION = """Measure the functions, sums and transforms that every certified number rests on against ball
arithmetic. Exit status 0: every assumed bound was kept; 1: one was exceeded."""
EXAMPLES = """examples:
  hockeystick selfcheck
  hockeystick selfcheck --quick --json
"""

_HEADS = ("primitive", "assumed", "worst seen", "")


def add(parser: Parser) -> None:
    """Add the command's options."""
    parser.add_argument("--quick", action="store_true", help="fewer points: what a receipt records")
    add_json(parser)


def run(options: argparse.Namespace) -> Status:
    """Measure and print."""
    with Progress("measuring"):
        found = self_check("quick" if options.quick else "full")
    if options.json:
        print_json(found.document() | {"primitives": [_row(one) for one in found.measurements]})
    else:
        print(_text(found))
    return Status.OK if found.passed else Status.REFUTED


def _row(found: Measurement) -> dict[str, Any]:
    assumed = found.assumption
    return {
        "primitive": assumed.name,
        "range": assumed.domain,
        "constant": assumed.constant,
        "unit": assumed.unit[0],
        "assumed": assumed.bound / assumed.unit[1],
        "worst": found.worst / assumed.unit[1],
        "holds": found.holds,
    }


def _text(found: SelfCheck) -> str:
    rows = []
    for one in found.measurements:
        assumed, (unit, size) = one.assumption, one.assumption.unit
        rows.append(
            (
                assumed.name,
                f"{assumed.bound / size:.4g} {unit}",
                f"{one.worst / size:.3g}",
                "within" if one.holds else "EXCEEDED",
            )
        )
    verdict = (
        f"every assumed bound was kept: {len(rows)} primitives, about {found.points} points each"
        if found.passed
        else f"EXCEEDED: {', '.join(found.failures)}; what is certified on this machine is not proved"
    )
    return f"{table(_HEADS, rows, right=(2,))}\n\n{verdict} (u = 2^-53)"
