"""Options that several commands share."""

from __future__ import annotations

import argparse

from hockeystick.app.cli.parsing import Parser, count, positive, rate
from hockeystick.app.spec.model import Choice
from hockeystick.app.spec.registry import samplings, schemes
from hockeystick.composition import ADJACENCIES

__all__ = [
    "ADJACENCY",
    "UNIT",
    "add_adjacency",
    "add_json",
    "add_sampler",
    "add_tolerance",
    "add_unit",
    "sampled_of",
    "sampler_of",
]


_IN_ROUNDS = ("random-allocation", "balls-in-bins")

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


def add_sampler(parser: Parser, group: argparse._ArgumentGroup | None = None, *, by_rounds: bool = False) -> None:
    """Add the options that say how batches are sampled, to a group of the parser where one is given.

    ``by_rounds``: also the schemes that are accounted by the round, and how many steps one has.
    """
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
    by_batch = tuple(name for name, scheme in schemes().items() if not scheme.step_is_epoch)
    known = (*by_batch, *(_IN_ROUNDS if by_rounds else ()))
    to.add_argument(
        "--sampling",
        choices=known,
        metavar="SCHEME",
        help=f"how batches are drawn: {', '.join(known)} (default: {by_batch[0]})",
    )
    if by_rounds:
        to.add_argument(
            "--round-steps",
            type=count("--round-steps"),
            metavar="R",
            help=f"steps in a round, or bins, of which each example takes part in one; for {' and '.join(_IN_ROUNDS)}",
        )


def sampled_of(options: argparse.Namespace, steps: int) -> tuple[Choice, int]:
    """The sampling scheme the options describe, and how many of its steps ``steps`` batches are."""
    parser: Parser = options.parser
    if options.sampling not in _IN_ROUNDS:
        if options.round_steps is not None:
            parser.error(f"--round-steps is for --sampling {' or '.join(_IN_ROUNDS)}")
        return sampler_of(options), steps
    if options.rate is not None or options.batch_size is not None:
        parser.error(f"--sampling {options.sampling} takes --round-steps instead of --rate or --batch-size")
    if options.round_steps is None:
        parser.error(f"--sampling {options.sampling} needs --round-steps, the steps of a round")
    rounds, rest = divmod(steps, options.round_steps)
    if rest:
        parser.error(f"--steps must be whole rounds: {steps} is no multiple of --round-steps, {options.round_steps}")
    if options.sampling == _IN_ROUNDS[0]:
        return Choice(options.sampling, (("steps", options.round_steps),)), rounds
    return Choice(options.sampling, (("bins", options.round_steps), ("epochs", rounds))), 1


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
    name = options.sampling or next(iter(samplings()))
    known = {"rate": options.rate, "batch_size": options.batch_size}
    known |= {"examples": options.examples, "population": options.examples}
    known = {parameter: value for parameter, value in known.items() if value is not None}
    needed = samplings()[name].written_with(known).required
    if not set(needed) <= known.keys():
        parser.error(f"--sampling {name} needs --batch-size and --examples")
    return Choice(name, tuple((parameter, known[parameter]) for parameter in needed))
