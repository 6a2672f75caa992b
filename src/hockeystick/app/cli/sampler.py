"""The options of a run that say how batches are drawn and how long it is, and the step they describe."""

from __future__ import annotations

import argparse
import math
from fractions import Fraction
from typing import Any

from hockeystick.app.cli.parsing import count, option, positive, rate
from hockeystick.app.spec.entries import Choice, StepEntry
from hockeystick.app.spec.registry import samplings, schemes
from hockeystick.sampling.epochs import batches_in_epoch

IN_ROUNDS = ("random-allocation", "balls-in-bins")
"""The schemes of which every record takes part in one step of a pass, written by the steps of a pass."""

OF_ONE_SCHEME = ("largest_batch", "micro_batches")
"""What a scheme alone asks for beside a rate."""

_SHUFFLED = (
    "each step is an epoch of shuffled batches, with every example in one of them: it counts as one unsampled release"
    " an epoch, since nothing proves that its place in the order hides an example"
)


def add_sampler(to: argparse._ActionsContainer) -> None:
    """Add the options that say how batches are sampled."""
    known = tuple(schemes())
    how = (
        f"how batches are drawn: {', '.join(known)} (default: {known[0]}). shuffled is what most data loaders do: every"
        " example once an epoch, so that sampling hides nothing and epsilon is far larger"
    )
    in_rounds = (
        f"steps in a round, or bins, of which each example takes part in one; for {' and '.join(IN_ROUNDS)}, instead of"
        " --batch-size and --population"
    )
    selected = (
        "steps of a round that each example takes part in, for random-allocation with --round-steps and --steps"
        " (default: 1)"
    )
    summed = "samples that are summed in a step, for micro-batches; the rate is that of one of them"
    option(to, "--rate", rate, "Q", "probability that an example joins a batch: batch size over number of examples")
    option(to, "--batch-size", count, "B", "(expected) batch size, instead of --rate")
    option(to, "--population", count, "N", "number of examples in the data", "--examples")
    to.add_argument("--sampling", choices=known, metavar="SCHEME", help=how)
    option(to, "--round-steps", count, "R", in_rounds)
    option(to, "--selected", count, "K", selected)
    option(to, "--largest-batch", count, "B", "largest batch, for cut-batches")
    option(to, "--micro-batches", count, "M", summed)


def add_length(to: argparse._ActionsContainer) -> None:
    """Add ``--steps`` and ``--epochs``."""
    option(to, "--steps", count, "T", "number of steps, such as 2000 or 1e6")
    words = "passes over the data, instead of --steps: each has examples over batch size steps, rounded up"
    option(to, "--epochs", positive, "E", words)


def entry_of(options: argparse.Namespace, mechanism: Choice) -> StepEntry:
    """The step that the options describe, as often as they say; once where they say nothing.

    30 epochs of 60,000 examples in batches of 256 are 30 x 235 = 7,050 steps at rate 256/60,000: a data loader keeps
    the last, short batch, and whoever drops it (7,031 or 7,020 steps) spends no more than that.
    """
    if options.steps is not None and options.epochs is not None:
        options.parser.error("give either --steps or --epochs, not both")
    name = options.sampling or next(iter(schemes()))
    if options.round_steps is not None and name not in IN_ROUNDS:
        options.parser.error(f"--round-steps is for --sampling {' or '.join(IN_ROUNDS)}")
    _check_sizes(options, name)
    _check_selected(options, name)
    sampling = _rounds(options, name) if name in IN_ROUNDS else _batches(options, name)
    if schemes()[name].step_is_epoch:
        return _in_passes(options, mechanism, sampling)
    if options.epochs is None:
        return StepEntry(mechanism, sampling, options.steps or 1)
    batches = batches_of(sampling)
    sizes: dict[str, Any] = sampling.mapping
    said = f"{options.epochs:g} epochs of {batches} batches"
    if "batch_size" in sizes and sizes["population"] % sizes["batch_size"]:
        said += ", the last one short and counted; dropping it spends no more"
    return StepEntry(mechanism, sampling, math.ceil(Fraction(options.epochs) * batches), note=said)


def batches_of(sampling: Choice) -> int:
    """Steps in a pass over the data, the last, short one counted."""
    sizes: dict[str, Any] = sampling.mapping  # all are numbers
    if sampling.name in IN_ROUNDS:
        return int(sizes.get("steps", sizes.get("bins", 1)))
    names = ("rate",) if "rate" in sizes else ("batch_size", "population")
    batches = batches_in_epoch(**{name: sizes[name] for name in names})
    return -(-batches // int(sizes.get("micro_batches", 1)))


def _check_sizes(options: argparse.Namespace, name: str) -> None:
    size, records = options.batch_size, options.population
    if size is None:
        return
    if options.rate is not None:
        options.parser.error("give either --rate or --batch-size with --population, not both")
    if records is None:
        options.parser.error("--batch-size needs --population, the number of examples in the data")
    if size > records:
        options.parser.error(f"--batch-size is {size} but --population is only {records}")
    if schemes()[name].step_is_epoch and records % size:
        used = f"give --population {records - records % size}, the examples that are used"
        options.parser.error(f"--sampling {name} needs full batches: {used}")


def _check_selected(options: argparse.Namespace, name: str) -> None:
    if options.selected is None:
        return
    if name != IN_ROUNDS[0] or options.round_steps is None:
        options.parser.error(f"--selected is for --sampling {IN_ROUNDS[0]} with --round-steps")
    if options.selected > options.round_steps:
        options.parser.error(f"--selected is {options.selected} but --round-steps is only {options.round_steps}")
    if options.epochs is not None or getattr(options, "by_epoch", False):
        why = "a round in which each example takes part more than once is no epoch"
        options.parser.error(f"--selected needs --steps: {why}")


def _rounds(options: argparse.Namespace, name: str) -> Choice:
    """Random allocation, or fixed bins for one epoch."""
    for own in OF_ONE_SCHEME:
        if getattr(options, own) is not None:
            options.parser.error(f"--{own.replace('_', '-')} is not for {name} sampling")
    if options.rate is not None:
        options.parser.error(f"--sampling {name} takes --round-steps instead of --rate")
    if (options.round_steps is None) == (options.batch_size is None):
        options.parser.error(f"--sampling {name} needs either --round-steps, the steps of a round, or --batch-size")
    steps = options.round_steps or options.population // options.batch_size
    if name != IN_ROUNDS[0]:
        return Choice.of(name, bins=steps, epochs=1)
    selected = {} if options.selected is None else {"selected": options.selected}
    return Choice.of(name, steps=steps, **selected)


def _in_passes(options: argparse.Namespace, mechanism: Choice, sampling: Choice) -> StepEntry:
    """Whole passes over the data: each is one step of the accounting, or all are."""
    batches = batches_of(sampling)
    passes = Fraction(options.epochs or 1) if options.steps is None else Fraction(options.steps, batches)
    if passes.denominator != 1:
        given = f"--epochs is {options.epochs:g}" if options.steps is None else f"--steps is {options.steps}"
        needed = f"needs whole passes over the data, of {batches} steps each"
        options.parser.error(f"--sampling {sampling.name} {needed}; {given}")
    if schemes()[sampling.name].step_is_run:
        return StepEntry(mechanism, sampling.but(epochs=int(passes)))
    return StepEntry(mechanism, sampling, int(passes), note=_SHUFFLED if sampling.name == "shuffled" else "")


def _batches(options: argparse.Namespace, name: str) -> Choice:
    """A scheme that draws batches, by a rate or by two sizes."""
    if options.batch_size is None and options.rate is None:
        options.parser.error("give --rate, or --batch-size with --population")
    known = {"rate": options.rate, "batch_size": options.batch_size, "population": options.population}
    known = {parameter: value for parameter, value in known.items() if value is not None}
    allowed = {parameter.name for parameter in samplings()[name].parameters}
    for own in OF_ONE_SCHEME:  # beside it stands the rate, in place of two sizes
        value, flag = getattr(options, own), f"--{own.replace('_', '-')}"
        if own in allowed and value is None:
            options.parser.error(f"--sampling {name} needs {flag}")
        if own not in allowed and value is not None:
            options.parser.error(f"{flag} is not for {name} sampling")
        if value is not None:
            chance = options.rate if options.batch_size is None else options.batch_size / options.population
            known |= {own: value, "rate": chance}
    needed = samplings()[name].written_with(known).required
    missing = [parameter for parameter in needed if parameter not in known]
    if missing:
        sizes = "--population" if missing == ["population"] else "--batch-size and --population"
        options.parser.error(f"--sampling {name} needs {sizes}")
    return Choice(name, tuple((parameter, known[parameter]) for parameter in needed))
