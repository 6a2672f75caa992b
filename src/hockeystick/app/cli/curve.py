"""The privacy curve as a table and a picture.

The privacy curve of a specification: epsilon at the deltas given, or at 1e-1 to 1e-30.

  hockeystick curve spec.toml
  hockeystick curve spec.toml --delta 1e-3,1e-6,1e-9 --plot curve.png
  hockeystick curve spec.toml --epsilon 0.5,1,2,4 --json
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hockeystick.app.cli.answer import Answer, answers, table, told
from hockeystick.app.cli.options import add_changes, add_specification, specification_of
from hockeystick.app.cli.parsing import Parser, Status
from hockeystick.app.cli.picture import DELTAS, certified, check_picture, draw
from hockeystick.app.report.numbers import nearest, plain, result_document, rounded_down, rounded_up
from hockeystick.app.report.words import IF_HELD
from hockeystick.bound import Bound
from hockeystick.progress import Progress


def add(parser: Parser) -> None:
    """Add the command's options."""
    add_specification(parser)
    add_changes(parser)
    parser.add_argument("--plot", metavar="FILE", help="draw the curve: .svg, or .png and .pdf with matplotlib")


def run(options: argparse.Namespace) -> Status:
    """Read the curve at every point asked for."""
    check_picture(options)
    asked = specification_of(options)
    by_itself = options.delta is None and options.epsilon is None
    specification = replace(asked, deltas=DELTAS, epsilons=()) if by_itself else asked
    with Progress("reading the curve") as progress:
        curve = specification.curve
        found = answers(specification, curve, progress.each)
    if options.plot:  # first: who reads the table may have seen enough of it
        draw(options, asked, found, curve)
    document = {"specification": specification.document(), "points": list(map(_document, found))}
    return told(asked, document, _tables(found, IF_HELD if asked.broken else "certified"), as_json=options.json)


def _document(answer: Answer) -> dict[str, Any]:
    return {"quantity": answer.quantity, answer.other: answer.given, **result_document(answer.result)}


def _tables(found: Sequence[Answer], worth: str) -> str:
    tables = []
    for quantity, other in (("epsilon", "delta"), ("delta", "epsilon")):
        answered = [answer for answer in found if answer.quantity == quantity]
        if answered:
            most = f"{quantity} at most" if certified(answered) else f"{quantity} at most, or about"
            rows = [_row(answer, worth) for answer in answered]
            tables.append(table((other, f"{quantity} at least", most, "worth"), rows, right=(1, 2)))
    return "\n".join(tables)


def _row(answer: Answer, worth: str) -> tuple[str, ...]:
    if isinstance(answer.result, Bound):
        low, high = map(float, answer.result.sides)
        return plain(answer.given), rounded_down(low, 6), rounded_up(high, 6), worth
    return plain(answer.given), "", f"about {nearest(float(answer.result.value), 6)}", "estimate"
