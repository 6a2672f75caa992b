"""Options that several commands share."""

from __future__ import annotations

import argparse
from fractions import Fraction

from hockeystick.app.cli.parsing import Parser, count, positive, rate
from hockeystick.app.cli.status import CommandError
from hockeystick.app.spec.model import Choice, Specification, StepEntry
from hockeystick.app.spec.reader import tuning_of
from hockeystick.app.spec.registry import samplings, schemes
from hockeystick.app.spec.write import save
from hockeystick.composition import ADJACENCIES
from hockeystick.sampling.epochs import batches_in_epoch, steps_in

__all__ = [
    "ADJACENCY",
    "UNIT",
    "add_adjacency",
    "add_json",
    "add_length",
    "add_sampler",
    "add_save",
    "add_tolerance",
    "add_tuning",
    "add_unit",
    "relation_of",
    "repeated",
    "repeated_in_rounds",
    "sampler_of",
    "save_as",
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


def add_tuning(parser: Parser) -> None:
    """Add ``--tuning``."""
    parser.add_argument(
        "--tuning",
        type=_tuning,
        metavar="RUNS",
        help="the whole run is made a random number of times and the best alone released: poisson:mean=10, or"
        " negative-binomial:stopping=0.1,shape=1",
    )


def _tuning(text: str) -> Choice:
    try:
        return tuning_of(text, "--tuning")
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def relation_of(options: argparse.Namespace) -> str:
    """The relation asked for, or the usual one of the sampling scheme."""
    return options.adjacency or ("zero-out" if options.sampling == "shuffled" else ADJACENCY)


def add_save(parser: Parser) -> None:
    """Add ``--save``."""
    parser.add_argument("--save", metavar="FILE", help="write the run as a specification, for account and report")


def save_as(options: argparse.Namespace, specification: Specification) -> None:
    """Write the specification where ``--save`` says."""
    if options.save:
        try:
            save(specification, options.save)
        except OSError as error:
            raise CommandError(f"hockeystick: error: cannot write {options.save}: {error.strerror}") from None


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
    to.add_argument(
        "--population",
        "--examples",
        type=count("--population"),
        metavar="N",
        help="number of examples in the data",
    )
    to.add_argument(
        "--largest-batch", type=count("--largest-batch"), metavar="B", help="most examples in a batch, for cut-batches"
    )
    to.add_argument(
        "--micro-batches",
        type=count("--micro-batches"),
        metavar="M",
        help="samples that are summed in a step, for micro-batches; the rate is that of one of them",
    )
    known = tuple(name for name in schemes() if by_rounds or name not in _IN_ROUNDS)
    to.add_argument(
        "--sampling",
        choices=known,
        metavar="SCHEME",
        help=f"how batches are drawn: {', '.join(known)} (default: {known[0]}). shuffled is what most data loaders do:"
        " every example once an epoch, so that sampling hides nothing and epsilon is far larger",
    )
    if by_rounds:
        to.add_argument(
            "--round-steps",
            type=count("--round-steps"),
            metavar="R",
            help=f"steps in a round, or bins, of which each example takes part in one; for {' and '.join(_IN_ROUNDS)}",
        )


def repeated_in_rounds(options: argparse.Namespace, mechanism: Choice) -> StepEntry | None:
    """The rounds, or the bins with their epochs, that the options describe; None for another scheme."""
    parser: Parser = options.parser
    if options.sampling not in _IN_ROUNDS:
        if options.round_steps is not None:
            parser.error(f"--round-steps is for --sampling {' or '.join(_IN_ROUNDS)}")
        return None
    if options.rate is not None or options.batch_size is not None:
        parser.error(f"--sampling {options.sampling} takes --round-steps instead of --rate or --batch-size")
    if options.round_steps is None:
        parser.error(f"--sampling {options.sampling} needs --round-steps, the steps of a round")
    steps = options.steps if options.epochs is None else Fraction(options.epochs) * options.round_steps
    rounds = Fraction(steps, options.round_steps)
    if rounds.denominator != 1:
        parser.error(f"--steps must be whole rounds: {steps} is no multiple of --round-steps, {options.round_steps}")
    if options.sampling == _IN_ROUNDS[0]:
        return StepEntry(mechanism, Choice(options.sampling, (("steps", options.round_steps),)), int(rounds))
    bins = Choice(options.sampling, (("bins", options.round_steps), ("epochs", int(rounds))))
    return StepEntry(mechanism, bins)


def add_length(to: argparse._ActionsContainer) -> None:
    """Add ``--steps`` and ``--epochs``."""
    to.add_argument("--steps", type=count("--steps"), metavar="T", help="number of steps, such as 2000 or 1e6")
    to.add_argument(
        "--epochs",
        type=positive("--epochs"),
        metavar="E",
        help="passes over the data, instead of --steps: each has examples over batch size steps, rounded up",
    )


def repeated(options: argparse.Namespace, mechanism: Choice, sampling: Choice) -> StepEntry:
    """The step as often as the options say, and in words what that means where it is not plain.

    30 epochs of 60,000 examples in batches of 256 are 30 x 235 = 7,050 steps at rate 256/60,000: a data loader keeps
    the last, short batch, and whoever drops it (7,031 or 7,020 steps) spends no more than that.
    """
    parser: Parser = options.parser
    if options.steps is not None and options.epochs is not None:
        parser.error("give either --steps or --epochs, not both")
    sizes = {name: value for name, value in sampling.mapping.items() if name not in _OF_ONE_SCHEME}
    if "rate" in sizes:
        sizes.pop("population", None)
    if options.epochs is not None and "micro_batches" in sampling.mapping:
        parser.error(f"--sampling {sampling.name} needs --steps instead of --epochs")
    batches = batches_in_epoch(**sizes)  # type: ignore[arg-type]  # a rate, or two sizes
    epochs = None if options.epochs is None else Fraction(options.epochs)
    if schemes()[sampling.name].step_is_epoch:
        epochs = Fraction(options.steps or 1, batches) if epochs is None else epochs
        if epochs.denominator != 1:
            parser.error(f"--sampling {sampling.name} needs whole epochs, of {batches} steps each")
        return StepEntry(mechanism, sampling, int(epochs), note=_SHUFFLED)
    if epochs is None:
        return StepEntry(mechanism, sampling, options.steps or 1)
    steps = steps_in(float(epochs), **sizes)
    said = f"{float(epochs):g} epochs of {batches} batches"
    if "population" in sizes and int(sizes["population"]) % int(sizes["batch_size"]):  # type: ignore[arg-type]  # numbers
        said += ", the last one short and counted; dropping it spends no more"
    return StepEntry(mechanism, sampling, steps, note=said)


_OF_ONE_SCHEME = ("largest_batch", "micro_batches")

_SHUFFLED = (
    "each step is an epoch of shuffled batches, every example in one of them: one unsampled release an epoch, as its"
    " place in the order is not proved to hide it"
)


def _of_one_scheme(options: argparse.Namespace, name: str) -> dict[str, float]:
    """What a scheme alone asks for, and then the rate, which it takes in place of two sizes."""
    parser: Parser = options.parser
    allowed = {parameter.name for parameter in samplings()[name].parameters}
    found: dict[str, float] = {}
    for own in _OF_ONE_SCHEME:
        value, flag = getattr(options, own), f"--{own.replace('_', '-')}"
        if (value is not None) != (own in allowed):
            parser.error(f"--sampling {name} needs {flag}" if own in allowed else f"{flag} is not for {name} sampling")
        if value is not None:
            chance = options.rate if options.batch_size is None else options.batch_size / options.population
            found |= {own: value, "rate": chance}
    return found


def sampler_of(options: argparse.Namespace) -> Choice:
    """The sampling scheme the options describe."""
    parser: Parser = options.parser
    by_size = options.batch_size is not None
    if by_size and options.rate is not None:
        parser.error("give either --rate or --batch-size with --population, not both")
    if by_size and options.population is None:
        parser.error("--batch-size needs --population, the number of examples in the data")
    if not by_size and options.rate is None:
        parser.error("give --rate, or --batch-size with --population")
    if by_size and options.batch_size > options.population:
        parser.error(f"--batch-size is {options.batch_size} but --population is only {options.population}")
    if by_size and options.sampling == "shuffled" and options.population % options.batch_size:
        whole = options.population - options.population % options.batch_size
        parser.error(f"--sampling shuffled needs full batches: give --population {whole}, the examples that are used")
    name = options.sampling or next(iter(samplings()))
    known = {"rate": options.rate, "batch_size": options.batch_size, "population": options.population}
    known = {parameter: value for parameter, value in known.items() if value is not None}
    known |= _of_one_scheme(options, name)
    needed = samplings()[name].written_with(known).required
    missing = [parameter for parameter in needed if parameter not in known]
    if missing == ["population"]:
        parser.error(f"--sampling {name} needs --population")
    if missing:
        parser.error(f"--sampling {name} needs --batch-size and --population")
    return Choice(name, tuple((parameter, known[parameter]) for parameter in needed))
