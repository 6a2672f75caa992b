"""Options that several commands share."""

from __future__ import annotations

import argparse
from typing import Any

from hockeystick.app.cli.parsing import Parser, count, option, positive
from hockeystick.app.cli.status import CommandError
from hockeystick.app.spec.model import Choice, Circumstances, Specification, StepEntry
from hockeystick.composition import ADJACENCIES

ADJACENCY, UNIT = "add-remove", "example"
"""What is meant where nothing is said."""


def add_adjacency(parser: Parser) -> None:
    """Add ``--adjacency``: None where it is not given, as a specification may say it."""
    parser.add_argument(
        "--adjacency",
        choices=tuple(ADJACENCIES),
        metavar="R",
        help=f"which datasets are neighbours: {', '.join(ADJACENCIES)} (default: {ADJACENCY})",
    )


def add_unit(parser: Parser) -> None:
    """Add ``--unit``: None where it is not given, as a specification may say it."""
    parser.add_argument("--unit", metavar="NOUN", help=f"what one record is, for the wording (default: {UNIT})")


def add_group_size(parser: Parser | argparse._ArgumentGroup) -> None:
    """Add ``--group-size``: None where it is not given, as a specification may say it."""
    option(parser, "--group-size", count, "K", "records that change at once, such as a household of 5 (default: 1)")


def add_tolerance(parser: Parser) -> None:
    """Add ``--tolerance``."""
    option(
        parser,
        "--tolerance",
        positive,
        "W",
        "width of the bracket asked for: in epsilon, or relative to delta (default: %(default)s)",
        default=1e-3,
    )


def add_of_run(parser: Parser) -> None:
    """Add what is said of a whole run, and what `run_of` reads."""
    parser.add_argument(
        "--tuning",
        type=_tuning,
        metavar="RUNS",
        help="the whole run is made a random number of times and the best one alone is released: poisson:mean=10, or"
        " negative-binomial:stopping=0.1,shape=1",
    )
    parser.add_argument("--save", metavar="FILE", help="write the run as a specification, for account and report")
    add_adjacency(parser)
    add_unit(parser)
    add_group_size(parser)


def _tuning(text: str) -> Choice:
    from hockeystick.app.spec.reader import tuning_of  # loaded where something is read

    try:
        return tuning_of(text, "--tuning")
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run_of(options: argparse.Namespace, entry: StepEntry, **asked: Any) -> Specification:
    """The run of one kind of step that the options describe, under the relation asked for or its scheme's usual one."""
    return Specification(
        (entry,),
        options.adjacency or ("zero-out" if options.sampling == "shuffled" else ADJACENCY),
        options.unit or UNIT,
        circumstances=Circumstances(examples=options.population),
        group_size=options.group_size or 1,
        tuning=options.tuning,
        **asked,
    )


def save_as(options: argparse.Namespace, specification: Specification) -> None:
    """Write the specification where ``--save`` says."""
    if options.save:
        from hockeystick.app.spec.write import save  # loaded where something is written

        try:
            save(specification, options.save)
        except OSError as error:
            raise CommandError(f"hockeystick: error: cannot write {options.save}: {error.strerror}") from None


def add_json(parser: Parser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
