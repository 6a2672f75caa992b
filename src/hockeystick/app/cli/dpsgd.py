"""``hockeystick dpsgd``: the privacy of one DP-SGD run, from its hyperparameters alone."""

from __future__ import annotations

import argparse
from typing import Any

from hockeystick.app.cli.answer import answers, print_answers
from hockeystick.app.cli.options import (
    ADJACENCY,
    UNIT,
    add_adjacency,
    add_json,
    add_sampler,
    add_tolerance,
    add_unit,
    sampled_of,
)
from hockeystick.app.cli.parsing import Parser, count, delta, epsilon, positive
from hockeystick.app.cli.progress import Progress
from hockeystick.app.cli.status import Status
from hockeystick.app.spec.model import Choice, Circumstances, Specification, StepEntry
from hockeystick.app.spec.registry import AUTOMATIC

__all__ = ["add", "run"]

_EXAMPLES = """examples:
  hockeystick dpsgd --noise-multiplier 1.0 --rate 0.01 --steps 2000 --delta 1e-5
  hockeystick dpsgd --noise-multiplier 1.0 --batch-size 500 --examples 50000 --steps 2000 --delta 1e-5
  hockeystick dpsgd --noise-multiplier 1.0 --rate 0.01 --steps 2000 --epsilon 2 --json
  hockeystick dpsgd --noise-multiplier 1.0 --sampling random-allocation --round-steps 100 --steps 2000 --delta 1e-5
"""


def add(commands: Any) -> None:
    """Add the command."""
    parser: Parser = commands.add_parser(
        "dpsgd",
        help="the privacy of a DP-SGD run, from its hyperparameters",
        description="The privacy of one DP-SGD run: epsilon at a delta, or delta at an epsilon.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "--noise-multiplier",
        type=positive("--noise-multiplier"),
        required=True,
        metavar="S",
        help="standard deviation of the noise on the summed gradients, in units of the clipping norm",
    )
    add_sampler(parser, by_rounds=True)
    parser.add_argument(
        "--steps", type=count("--steps"), required=True, metavar="T", help="number of steps, such as 2000 or 1e6"
    )
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--delta", type=delta("--delta"), metavar="D", help="report epsilon at this delta, in [0, 1]")
    asked.add_argument("--epsilon", type=epsilon("--epsilon"), metavar="E", help="report delta at this epsilon")
    add_adjacency(parser)
    add_unit(parser)
    add_tolerance(parser)
    add_json(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> Status:
    """Account the run and print the answer."""
    sampling, own = sampled_of(options, options.steps)
    specification = Specification(
        steps=(StepEntry(Choice.of("gaussian", noise_multiplier=options.noise_multiplier), sampling, own),),
        adjacency=options.adjacency or ADJACENCY,
        unit=options.unit or UNIT,
        deltas=() if options.delta is None else (options.delta,),
        epsilons=() if options.epsilon is None else (options.epsilon,),
        accountant=Choice.of(AUTOMATIC, tolerance=options.tolerance),
        circumstances=Circumstances(examples=options.examples),
    )
    with Progress(f"accounting {options.steps} steps"):
        found = answers(specification, specification.curve)
    print_answers(specification, found, as_json=options.json)
    return Status.OK
