"""Measure on this machine the error bounds that certified numbers assume.

Measure the functions, sums and transforms that every certified number rests on against ball arithmetic. Exit status 0:
every assumed bound was kept; 1: one was exceeded.

  hockeystick selfcheck
  hockeystick selfcheck --quick --json
"""

from __future__ import annotations

import argparse
from typing import Any

from hockeystick.app.cli.answer import print_json, table
from hockeystick.app.cli.parsing import Parser, Status
from hockeystick.progress import Progress
from hockeystick.selfcheck import Measurement, SelfCheck, self_check

_HEADS = ("primitive", "assumed", "worst seen", "")
_KEPT = {True: "within", False: "EXCEEDED"}


def add(parser: Parser) -> None:
    """Add the command's options."""
    parser.add_argument("--quick", action="store_true", help="fewer points: what a receipt records")


def run(options: argparse.Namespace) -> Status:
    """Measure and print."""
    with Progress("measuring"):
        found = self_check("quick" if options.quick else "full")
    rows = [_row(one) for one in found.measurements]
    if options.json:
        print_json(found.document() | {"primitives": rows})
    else:
        print(_text(found, rows))
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


def _text(found: SelfCheck, rows: list[dict[str, Any]]) -> str:
    cells = [
        (row["primitive"], f"{row['assumed']:.4g} {row['unit']}", f"{row['worst']:.3g}", _KEPT[row["holds"]])
        for row in rows
    ]
    verdict = f"every assumed bound was kept: {len(rows)} primitives, about {found.points} points each"
    if not found.passed:
        verdict = f"EXCEEDED: {', '.join(found.failures)}; what is certified on this machine is not proved"
    return f"{table(_HEADS, cells, right=(2,))}\n\n{verdict} (u = 2^-53)"
