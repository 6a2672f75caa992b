r"""The privacy of a DP-SGD run, from its hyperparameters.

The privacy of one DP-SGD run: epsilon at a delta, or delta at an epsilon.

  hockeystick dpsgd --noise-multiplier 1 --rate 0.01 --steps 2000 --delta 1e-5
  hockeystick dpsgd --noise-multiplier 1 --rate 1/235 --steps 7050 --epsilon 2
  hockeystick dpsgd --noise-multiplier 1 --batch-size 256 --population 60000 \
      --epochs 30 --delta 1e-5 --by-epoch --plot epochs.png --save run.toml
  hockeystick dpsgd --noise-multiplier 1 --sampling random-allocation \
      --round-steps 100 --steps 2000 --delta 1e-5
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from typing import Any

from hockeystick.app.cli.answer import answer_document, answer_text, answers, table, told
from hockeystick.app.cli.options import add_of_run, add_tolerance, run_of, save_as
from hockeystick.app.cli.parsing import Parser, Status, delta, epsilon, listed, option, positive
from hockeystick.app.cli.picture import DELTAS, check_picture, draw, write_figure
from hockeystick.app.cli.sampler import add_length, add_sampler, batches_of, entry_of
from hockeystick.app.report.numbers import count_text, plain, rounded_up
from hockeystick.app.spec.cautions import verdict
from hockeystick.app.spec.entries import Choice
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.registry import AUTOMATIC, schemes
from hockeystick.progress import Progress

_ROWS = 40
_WIDE = 2  # deltas side by side in a table


def add(parser: Parser) -> None:
    """Add the command's options."""
    words = "standard deviation of the noise on the summed gradients, in units of the clipping norm"
    option(parser, "--noise-multiplier", positive, "S", words, required=True)
    add_sampler(parser)
    add_length(parser.add_mutually_exclusive_group(required=True))
    asked = parser.add_mutually_exclusive_group(required=True)
    option(asked, "--delta", listed(delta), "D[,D]", "report epsilon at these deltas, in [0, 1]")
    option(asked, "--epsilon", listed(epsilon), "E[,E]", "report delta at these epsilons")
    parser.add_argument("--by-epoch", action="store_true", help="add a table of epsilon by epoch; needs --delta")
    words = "draw the privacy curve, or with --by-epoch epsilon by epoch: .svg, .png, .pdf"
    parser.add_argument("--plot", metavar="FILE", help=words)
    add_of_run(parser)
    add_tolerance(parser)


def run(options: argparse.Namespace) -> Status:
    """Account the run and print the answer."""
    check_picture(options)
    if options.by_epoch and options.delta is None:
        options.parser.error("--by-epoch shows epsilon: give --delta")
    if options.by_epoch and options.tuning is not None:
        options.parser.error("--by-epoch is about one run: give it without --tuning")
    specification = run_of(
        options,
        entry_of(options, Choice.of("gaussian", noise_multiplier=options.noise_multiplier)),
        deltas=options.delta or (),
        epsilons=options.epsilon or (),
        accountant=Choice.of(AUTOMATIC, tolerance=options.tolerance),
    )
    with Progress(f"accounting {_total(specification)} steps") as progress:
        curve = specification.curve
        found = answers(specification, curve)
        epochs = _epochs(specification, progress) if options.by_epoch else []
        if options.plot and not epochs:
            points = answers(replace(specification, deltas=DELTAS, epsilons=()), curve)
            draw(options, specification, points, curve)
    if options.plot and epochs:
        _draw_epochs(options, specification)
    save_as(options, specification)
    document = answer_document(specification, found)
    text = answer_text(specification, found)
    if epochs:
        document["by_epoch"] = epochs
        text += f"\n\n{_epoch_tables(specification, epochs)}"
    return told(specification, document, text, as_json=options.json)


def _total(specification: Specification) -> int:
    (entry,) = specification.steps
    return entry.count * entry.step.releases


def _marks(specification: Specification) -> tuple[int, list[int]]:
    """Steps in an epoch, and the numbers of steps after each; after some of them where they are many."""
    (entry,) = specification.steps
    batches = 1 if entry.sampling is None else batches_of(entry.sampling)
    total = _total(specification)
    stride = batches * -(-total // (batches * _ROWS))
    return batches, [*range(stride, total, stride), total]


def _after(specification: Specification, steps: int) -> Specification:
    """The run, stopped after so many of its steps."""
    (entry,) = specification.steps
    if entry.sampling is not None and schemes()[entry.sampling.name].step_is_run:
        part = replace(entry, sampling=entry.sampling.but(epochs=steps // batches_of(entry.sampling)))
    else:
        part = replace(entry, count=steps // entry.step.releases)
    return replace(specification, steps=(part,))


def _epochs(specification: Specification, progress: Progress) -> list[dict[str, Any]]:
    batches, marks = _marks(specification)
    rows: list[dict[str, Any]] = []
    for steps in progress.each(marks):
        curve = _after(specification, steps).curve
        known = []
        for level in specification.deltas:
            lower, upper = curve.epsilon(level).sides
            known.append({"delta": level, "lower": lower, "upper": upper})
        rows.append({"epoch": steps / batches, "steps": steps, "epsilon": known})
    return rows


def _epoch_tables(specification: Specification, rows: list[dict[str, Any]]) -> str:
    """A table for every two deltas: more are too many for one."""
    levels = [plain(level) for level in specification.deltas]
    tables = []
    for part in (slice(start, start + _WIDE) for start in range(0, len(levels), _WIDE)):
        heads = ("epoch", "steps", *(f"epsilon at delta {level}" for level in levels[part]))
        lines = []
        for row in rows:
            most = (rounded_up(one["upper"], 5) for one in row["epsilon"][part])
            lines.append((f"{row['epoch']:.4g}", count_text(row["steps"]), *most))
        tables.append(table(heads, lines, right=range(len(heads))))
    return "\n\n".join(tables)


def _draw_epochs(options: argparse.Namespace, specification: Specification) -> None:
    from hockeystick.app import plots  # matplotlib, only where a picture is asked for

    make = partial(
        plots.epsilon_against_steps,
        lambda steps: _after(specification, steps).composition,
        _marks(specification)[1],
        delta=specification.deltas[0],
        adjacency=specification.adjacency,
        title=verdict(specification.broken) or None,
    )
    write_figure(options.plot, make, options.parser.prog)
