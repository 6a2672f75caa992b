"""``hockeystick curve``: the privacy curve as a table, and as a picture."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hockeystick.app.cli.answer import Answer, answers, opening, print_json, status_of
from hockeystick.app.cli.files import add_changes, add_specification, specification_of
from hockeystick.app.cli.options import add_json
from hockeystick.app.cli.parsing import Parser
from hockeystick.app.cli.picture import DELTAS, certified, check_picture, draw
from hockeystick.app.cli.status import Status
from hockeystick.app.cli.table import table
from hockeystick.app.report.cautions import broken
from hockeystick.app.report.numbers import nearest, plain, result_document, rounded_down, rounded_up
from hockeystick.app.report.words import IF_HELD
from hockeystick.bound import Bound
from hockeystick.progress import Progress

HELP = "the privacy curve as a table and a picture"
DESCRIPTION = "The privacy curve of a specification: epsilon at the deltas given, or at 1e-1 to 1e-30."
EXAMPLES = """examples:
  hockeystick curve spec.toml
  hockeystick curve spec.toml --delta 1e-3,1e-6,1e-9 --plot curve.png
  hockeystick curve spec.toml --epsilon 0.5,1,2,4 --json
"""


def add(parser: Parser) -> None:
    """Add the command's options."""
    add_specification(parser)
    add_changes(parser)
    parser.add_argument("--plot", metavar="FILE", help="draw the curve: .svg, or .png and .pdf with matplotlib")
    add_json(parser)


def run(options: argparse.Namespace) -> Status:
    """Read the curve at every point asked for."""
    check_picture(options)
    specification = specification_of(options)
    asked = specification
    if options.delta is None and options.epsilon is None:
        specification = replace(specification, deltas=DELTAS, epsilons=())
    with Progress("reading the curve") as progress:
        curve = specification.curve
        found = answers(specification, curve, progress.each)
    if options.plot:  # first: who reads the table may have seen enough of it
        draw(options.plot, asked, found, curve)
    if options.json:
        points = [_document(answer) for answer in found]
        assumptions = {"broken_assumptions": list(broken(asked))}
        print_json({**assumptions, "specification": specification.document(), "points": points})
    else:
        print(opening(asked), end="")
        _print_tables(found, IF_HELD if broken(asked) else "certified")
    return status_of(asked)


def _document(answer: Answer) -> dict[str, Any]:
    return {"quantity": answer.quantity, answer.other: answer.given, **result_document(answer.result)}


def _print_tables(found: Sequence[Answer], worth: str) -> None:
    for quantity, other in (("epsilon", "delta"), ("delta", "epsilon")):
        answered = [answer for answer in found if answer.quantity == quantity]
        if answered:
            most = f"{quantity} at most" if certified(answered) else f"{quantity} at most, or about"
            rows = [_row(answer, worth) for answer in answered]
            print(table((other, f"{quantity} at least", most, "worth"), rows, right=(1, 2)))


def _row(answer: Answer, worth: str) -> tuple[str, ...]:
    if isinstance(answer.result, Bound):
        low, high = float(answer.result.lower), float(answer.result.upper)
        return plain(answer.given), rounded_down(low, 6), rounded_up(high, 6), worth
    return plain(answer.given), "", f"about {nearest(float(answer.result.value), 6)}", "estimate"
