"""Pictures that commands write: a curve as far as the points that were read."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from hockeystick.app.cli.answer import Answer
from hockeystick.app.cli.options import failed, write_text
from hockeystick.app.cli.parsing import CommandError, Status
from hockeystick.app.spec.cautions import verdict
from hockeystick.app.spec.model import Specification
from hockeystick.bound import Bound
from hockeystick.curve import PrivacyCurve
from hockeystick.state import write_whole

_FORMATS = (".svg", ".png", ".pdf")
DELTAS = tuple(float(f"1e-{power}") for power in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30))
"""From 1e-1 to 1e-30."""


def check_picture(options: argparse.Namespace) -> None:
    """Refuse a picture of another kind before anything is computed."""
    if options.plot and Path(options.plot).suffix.lower() not in _FORMATS:
        raise CommandError(f"{options.parser.prog}: error: --plot must end in .svg, .png or .pdf, got {options.plot!r}")


def draw(
    options: argparse.Namespace, specification: Specification, found: Sequence[Answer], curve: PrivacyCurve
) -> None:
    """Draw the curve as far as the points that were read: SVG by ourselves, anything else by matplotlib."""
    from hockeystick.app.plots import privacy_curve  # pictures need more than answers do
    from hockeystick.app.report.figures import privacy_chart, standalone
    from hockeystick.app.report.markup import Markup
    from hockeystick.readouts.outline import sampled

    name, program = options.plot, options.parser.prog
    places = [place for place in map(_place, found) if 0.0 < place[0] < math.inf and place[1] > 0.0]
    if not places:
        raise CommandError(
            f"{program}: error: --plot needs a point with a finite epsilon and a delta, both above 0", Status.NO_ANSWER
        )
    end, least = max(epsilon for epsilon, _ in places), 0.5 * min(delta for _, delta in places)
    said = verdict(specification.broken)
    title = said or ("Privacy curve" if certified(found) else "Privacy curve, estimated: not proved")
    if Path(name).suffix.lower() == ".svg":
        drawn = privacy_chart(sampled(curve, end, least=least), least, places, title=title)
        write_text(name, standalone(drawn or Markup(""), said))
    else:
        make = partial(privacy_curve, curve, end=end, least=least, title=title)
        write_figure(name, make, program, "; .svg needs nothing")


def write_figure(name: str, make: Callable[[], Any], program: str, instead: str = "") -> None:
    """Draw by matplotlib, into a file."""
    drawn = BytesIO()
    try:
        make().savefig(drawn, format=Path(name).suffix.lower().removeprefix("."))
        write_whole(name, drawn.getvalue())
    except ModuleNotFoundError as error:
        raise CommandError(f"{program}: error: {error}{instead}") from None
    except OSError as error:
        raise failed("write", name, error, program) from None


def _place(answer: Answer) -> tuple[float, float]:
    """Epsilon and delta of a point, the side of each that is safe."""
    safe = float(answer.result.sides[1])
    return (safe, answer.given) if answer.quantity == "epsilon" else (answer.given, safe)


def certified(found: Sequence[Answer]) -> bool:
    """Whether all answers are proved."""
    return all(isinstance(answer.result, Bound) for answer in found)
