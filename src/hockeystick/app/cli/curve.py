"""``hockeystick curve``: the privacy curve as a table, and as a picture."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hockeystick.app.cli.answer import Answer, answers, opening, print_json, status_of
from hockeystick.app.cli.files import add_changes, add_specification, specification_of, write_text
from hockeystick.app.cli.options import add_json
from hockeystick.app.cli.parsing import Parser
from hockeystick.app.cli.status import CommandError, Status
from hockeystick.app.cli.table import table
from hockeystick.app.plots import privacy_curve
from hockeystick.app.report.cautions import broken
from hockeystick.app.report.figures import privacy_chart, standalone
from hockeystick.app.report.markup import Markup
from hockeystick.app.report.numbers import nearest, plain, result_document, rounded_down, rounded_up
from hockeystick.app.report.words import IF_HELD
from hockeystick.app.spec.model import Specification
from hockeystick.bound import Bound
from hockeystick.curve import PrivacyCurve
from hockeystick.progress import Progress
from hockeystick.readouts.outline import sampled

__all__ = ["add", "check_picture", "draw", "points", "run"]

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
    check_picture(options)
    specification = specification_of(options)
    asked = specification
    if options.delta is None and options.epsilon is None:
        specification = replace(specification, deltas=_DELTAS, epsilons=())
    with Progress("reading the curve") as progress:
        curve = specification.curve
        found = [answer for one in progress.each(_each(specification)) for answer in answers(one, curve)]
    if options.plot:  # first: who reads the table may have seen enough of it
        draw(options.plot, found, curve)
    if options.json:
        points = [_document(answer) for answer in found]
        assumptions = {"broken_assumptions": list(broken(asked))}
        print_json({**assumptions, "specification": specification.document(), "points": points})
    else:
        print(opening(asked), end="")
        _print_tables(found, IF_HELD if broken(asked) else "certified")
    return status_of(asked)


def _each(specification: Specification) -> list[Specification]:
    one_by_one = [replace(specification, deltas=(level,), epsilons=()) for level in specification.deltas]
    return one_by_one + [replace(specification, deltas=(), epsilons=(level,)) for level in specification.epsilons]


def _document(answer: Answer) -> dict[str, Any]:
    other = "delta" if answer.quantity == "epsilon" else "epsilon"
    return {"quantity": answer.quantity, other: answer.given, **result_document(answer.result)}


def _print_tables(found: Sequence[Answer], worth: str) -> None:
    for quantity, other in (("epsilon", "delta"), ("delta", "epsilon")):
        answered = [answer for answer in found if answer.quantity == quantity]
        if answered:
            most = f"{quantity} at most" if _certified(answered) else f"{quantity} at most, or about"
            rows = [_row(answer, worth) for answer in answered]
            print(table((other, f"{quantity} at least", most, "worth"), rows, right=(1, 2)))


def _certified(found: Sequence[Answer]) -> bool:
    return all(isinstance(answer.result, Bound) for answer in found)


def _row(answer: Answer, worth: str) -> tuple[str, ...]:
    if isinstance(answer.result, Bound):
        low, high = float(answer.result.lower), float(answer.result.upper)
        return plain(answer.given), rounded_down(low, 6), rounded_up(high, 6), worth
    return plain(answer.given), "", f"about {nearest(float(answer.result.value), 6)}", "estimate"


def check_picture(options: argparse.Namespace) -> None:
    """Refuse a picture of another kind before anything is computed."""
    if options.plot and Path(options.plot).suffix.lower() not in _FORMATS:
        raise CommandError(f"{options.parser.prog}: error: --plot must end in .svg, .png or .pdf, got {options.plot!r}")


def points(specification: Specification, curve: PrivacyCurve) -> list[Answer]:
    """The curve from 1e-1 to 1e-30."""
    return answers(replace(specification, deltas=_DELTAS, epsilons=()), curve)


def draw(name: str, found: Sequence[Answer], curve: PrivacyCurve) -> None:
    """Draw the curve as far as the points that were read: SVG by ourselves, anything else by matplotlib."""
    places = [place for place in map(_place, found) if 0.0 < place[0] < math.inf and place[1] > 0.0]
    if not places:
        raise CommandError("hockeystick curve: error: --plot needs a point with a finite epsilon", Status.NO_ANSWER)
    end, least = max(epsilon for epsilon, _ in places), min(delta for _, delta in places)
    title = "Privacy curve" if _certified(found) else "Privacy curve, estimated: not proved"
    if Path(name).suffix.lower() == ".svg":
        drawn = privacy_chart(sampled(curve, end, least=0.5 * least), 0.5 * least, places, title=title)
        write_text(name, standalone(drawn or Markup("")))
        return
    try:
        privacy_curve(curve, end=end, least=0.5 * least, title=title).savefig(name)
    except ModuleNotFoundError as error:
        raise CommandError(f"hockeystick curve: error: {error}; .svg needs nothing") from None
    except OSError as error:
        raise CommandError(f"hockeystick curve: error: cannot write {name}: {error.strerror}") from None


def _place(answer: Answer) -> tuple[float, float]:
    """Epsilon and delta of a point, the side of each that is safe."""
    safe = float(answer.result.sides[1])
    return (safe, answer.given) if answer.quantity == "epsilon" else (answer.given, safe)
