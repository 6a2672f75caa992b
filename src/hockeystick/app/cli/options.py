"""Options that several commands share."""

from __future__ import annotations

import argparse

from hockeystick.app.cli.parsing import Parser, count, positive, rate
from hockeystick.app.spec.model import Choice
from hockeystick.app.spec.registry import samplings
from hockeystick.composition import ADJACENCIES

__all__ = ["ADJACENCY", "UNIT", "add_adjacency", "add_json", "add_sampler", "add_tolerance", "add_unit", "sampler_of"]


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


def add_tolerance(parser: Parser) -> None:
    """Add ``--tolerance``."""
    parser.add_argument(
        "--tolerance",
        type=positive("--tolerance"),
        default=1e-3,
        metavar="W",
        help="width of the bracket asked for: of epsilon, or of delta relative to itself (default: %(default)s)",
    )


def add_json(parser: Parser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_sampler(parser: Parser, group: argparse._ArgumentGroup | None = None) -> None:
    """Add the options that say how batches are sampled, to a group of the parser where one is given."""
    to = parser if group is None else group
    to.add_argument(
        "--rate",
        type=rate("--rate"),
        metavar="Q",
        help="probability that an example joins a batch: batch size over number of examples",
    )
    to.add_argument(
        "--batch-size", type=count("--batch-size"), metavar="B", help="(expected) batch size, instead of --rate"
    )
    to.add_argument("--examples", type=count("--examples"), metavar="N", help="number of examples in the data")
    schemes = tuple(scheme for scheme in ("poisson", "without-replacement") if scheme in samplings())
    to.add_argument(
        "--sampling",
        choices=schemes,
        metavar="SCHEME",
        help=f"how batches are drawn: {', '.join(schemes)} (default: poisson)",
    )


def sampler_of(options: argparse.Namespace) -> Choice:
    """The sampling scheme the options describe."""
    parser: Parser = options.parser
    by_size = options.batch_size is not None
    if by_size and options.rate is not None:
        parser.error("give either --rate or --batch-size with --examples, not both")
    if by_size and options.examples is None:
        parser.error("--batch-size needs --examples, the number of examples in the data")
    if not by_size and options.rate is None:
        parser.error("give --rate, or --batch-size with --examples")
    if by_size and options.batch_size > options.examples:
        parser.error(f"--batch-size is {options.batch_size} but --examples is only {options.examples}")
    if options.sampling == "without-replacement":
        if not by_size:
            parser.error("--sampling without-replacement needs --batch-size and --examples")
        return Choice.of("without-replacement", batch_size=options.batch_size, population=options.examples)
    if by_size:
        return Choice.of("poisson", batch_size=options.batch_size, examples=options.examples)
    return Choice.of("poisson", rate=options.rate)
