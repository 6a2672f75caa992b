"""``hockeystick curve``: the privacy curve as a table, and as a picture."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hockeystick.app.cli.answer import Answer, answers, print_json
from hockeystick.app.cli.files import add_changes, add_specification, specification_of, write_text
from hockeystick.app.cli.options import add_json
from hockeystick.app.cli.parsing import Parser
from hockeystick.app.cli.status import CommandError, Status
from hockeystick.app.cli.table import table
from hockeystick.app.report.figures import drawable, privacy_chart, standalone
from hockeystick.app.report.numbers import nearest, plain, result_document, rounded_down, rounded_up
from hockeystick.app.report.picture import picture
from hockeystick.app.spec.model import Specification
from hockeystick.bound import Bound, Estimate
from hockeystick.progress import Progress

__all__ = ["add", "run"]

_EXAMPLES = """examples:
  hockeystick curve spec.toml
  hockeystick curve spec.toml --delta 1e-3,1e-6,1e-9 --plot curve.png
  hockeystick curve spec.toml --epsilon 0.5,1,2,4 --json
"""

_FORMATS = (".svg", ".png", ".pdf")
_DELTAS = tuple(float(f"1e-{power}") for power in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30))


def add(commands: Any) -> None:
    """Add the command."""
    parser: Parser = commands.add_parser(
        "curve",
        help="the privacy curve as a table and a picture",
        description="The privacy curve of a specification: epsilon at the deltas given, or at 1e-1 to 1e-30.",
        epilog=_EXAMPLES,
    )
    add_specification(parser)
    add_changes(parser)
    parser.add_argument("--plot", metavar="FILE", help="draw the curve: .svg, or .png and .pdf with matplotlib")
    add_json(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> Status:
    """Read the curve at every point asked for."""
    if options.plot and Path(options.plot).suffix.lower() not in _FORMATS:
        raise CommandError(f"hockeystick curve: error: --plot must end in .svg, .png or .pdf, got {options.plot!r}")
    specification = specification_of(options)
    if options.delta is None and options.epsilon is None:
        specification = replace(specification, deltas=_DELTAS, epsilons=())
    with Progress("reading the curve") as progress:
        curve = specification.curve
        found = [answer for one in progress.each(_each(specification)) for answer in answers(one, curve)]
    if options.json:
        print_json({"specification": specification.document(), "points": [_document(answer) for answer in found]})
    else:
        _print_tables(found)
    if options.plot:
        _plot(options.plot, found)
    return Status.OK


def _each(specification: Specification) -> list[Specification]:
    one_by_one = [replace(specification, deltas=(level,), epsilons=()) for level in specification.deltas]
    return one_by_one + [replace(specification, deltas=(), epsilons=(level,)) for level in specification.epsilons]


def _document(answer: Answer) -> dict[str, Any]:
    other = "delta" if answer.quantity == "epsilon" else "epsilon"
    return {"quantity": answer.quantity, other: answer.given, **result_document(answer.result)}


def _print_tables(found: Sequence[Answer]) -> None:
    for quantity, other in (("epsilon", "delta"), ("delta", "epsilon")):
        answered = [answer for answer in found if answer.quantity == quantity]
        if answered:
            most = f"{quantity} at most" if _certified(answered) else f"{quantity} at most, or about"
            rows = [_row(answer) for answer in answered]
            print(table((other, f"{quantity} at least", most, "worth"), rows, right=(1, 2)))


def _certified(found: Sequence[Answer]) -> bool:
    return all(isinstance(answer.result, Bound) for answer in found)


def _row(answer: Answer) -> tuple[str, ...]:
    if isinstance(answer.result, Bound):
        low, high = float(answer.result.lower), float(answer.result.upper)
        return plain(answer.given), rounded_down(low, 6), rounded_up(high, 6), "certified"
    return plain(answer.given), "", f"about {nearest(float(answer.result.value), 6)}", "estimate"


def _plot(name: str, found: Sequence[Answer]) -> None:
    """Draw the points that were read: SVG by ourselves, anything else by matplotlib."""
    points = drawable(sorted(map(_place, found), key=lambda point: -point["delta"]))
    if points is None:
        raise CommandError("hockeystick curve: error: --plot needs two points with a finite epsilon", Status.NO_ANSWER)
    title = "Privacy curve" if _certified(found) else "Privacy curve, estimated: not proved"
    if Path(name).suffix.lower() == ".svg":
        write_text(name, standalone(privacy_chart(points, title=title)))
        return
    try:
        picture(points, Path(name), title=title)
    except ModuleNotFoundError:
        raise CommandError(
            "hockeystick curve: error: this needs matplotlib (pip install matplotlib); .svg needs nothing"
        ) from None
    except OSError as error:
        raise CommandError(f"hockeystick curve: error: cannot write {name}: {error.strerror}") from None


def _place(answer: Answer) -> dict[str, float]:
    """A point as receipts hold it: epsilon, from and to, at a delta; both from the side that is safe."""
    if answer.quantity == "epsilon" and isinstance(answer.result, Bound):
        return {"delta": answer.given, "lower": float(answer.result.lower), "upper": float(answer.result.upper)}
    if answer.quantity == "epsilon" and isinstance(answer.result, Estimate):
        return {"delta": answer.given, "value": float(answer.result.value)}
    return {"delta": float(answer.result.sides[1]), "value": answer.given}
