r"""A grid of DP-SGD plans in one table, or the best noise for each.

Epsilon of every combination of noise multiplier, rate and number of steps, all with commas for several; or, without
noise multipliers, the smallest one that meets each target.

  hockeystick sweep --noise-multiplier 0.8,1,1.5 --rate 0.005,0.01 \
      --steps 1000,2000 --delta 1e-5
  hockeystick sweep --epsilon 1,2,4 --delta 1e-6 --rate 0.001,0.01 --steps 10000
  hockeystick sweep --noise-multiplier 0.8,1 --rate 0.01 --steps 1e4,1e5 \
      --delta 1e-5 --workers 2 --file rows.csv
  hockeystick sweep --noise-multiplier 1 --sampling poisson,random-allocation \
      --batch-size 600 --population 60000 --steps 2000 --delta 1e-5
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from itertools import compress
from typing import Any

from hockeystick import dpsgd
from hockeystick.app.cli.answer import opening, print_json, table
from hockeystick.app.cli.options import ADJACENCY, UNIT, add_adjacency, usual_adjacency
from hockeystick.app.cli.parsing import (
    CommandError,
    Parser,
    Status,
    count,
    delta,
    epsilon,
    listed,
    option,
    positive,
    rate,
)
from hockeystick.app.report.numbers import plain, rounded_down, rounded_up
from hockeystick.app.report.words import IF_HELD
from hockeystick.app.spec.cautions import not_below_one_over
from hockeystick.app.spec.registry import schemes
from hockeystick.sweep import INTERRUPTED, Sweep, sweep

_DIGITS = 6
_BY_SIZES = tuple(name for name in schemes() if name not in {"cut-batches", "micro-batches"})
"""The schemes that two sizes describe."""


def add(parser: Parser) -> None:
    """Add the command's options."""
    for name, read, letter, words in (
        ("--noise-multiplier", positive, "S", "noise over clipping norm; if left out, the noise is found"),
        ("--rate", rate, "Q", "Poisson sampling rates, in (0, 1]; or, instead:"),
        ("--batch-size", count, "B", "(expected) batch sizes, with --population"),
        ("--steps", count, "T", "numbers of steps"),
        ("--delta", delta, "D", "deltas"),
        ("--epsilon", epsilon, "E", "epsilons to meet, where the noise is found"),
    ):
        needed = name in {"--steps", "--delta"}
        option(parser, name, listed(read), f"{letter}[,{letter}]", words, required=needed)
    option(parser, "--population", count, "N", "number of examples in the data")
    words = f"how batches of such sizes are drawn: {', '.join(_BY_SIZES)} (default: {_BY_SIZES[0]})"
    option(parser, "--sampling", listed(lambda _: _scheme), "SCHEME[,SCHEME]", words)
    add_adjacency(parser, "; with shuffled in --sampling, zero-out for all")
    words = "width of the bracket asked for: in epsilon, or relative to the noise that is found (default: 0.001; 1e-05)"
    option(parser, "--tolerance", positive, "W", words)
    option(parser, "--workers", count, "N", "processes (default: 1)", default=1)
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument("--file", metavar="FILE", help="write rows as they come, to FILE.csv or FILE.parquet")
    kept.add_argument("--resume", metavar="FILE", help="the same, continuing with the rows already there")


def run(options: argparse.Namespace) -> Status:
    """Answer the grid and print its table; the status says whether every plan has an answer."""
    if (options.noise_multiplier is None) == (options.epsilon is None):
        options.parser.error("give either --noise-multiplier, or --epsilon to find it")
    grid = {**_sampler(options), "steps": options.steps, "delta": options.delta}
    if options.epsilon is None:
        grid = {"noise_multiplier": options.noise_multiplier, **grid, "tolerance": options.tolerance or 1e-3}
    else:
        settings = {"safe": "larger", "precision": options.tolerance or 1e-5}
        grid |= {"find": "noise_multiplier", "epsilon": options.epsilon, "settings": settings}
    grid["adjacency"] = options.adjacency or usual_adjacency(*options.sampling or ())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "interrupted: ", RuntimeWarning)  # is said below, by the command
        try:
            found = sweep(dpsgd.run, **grid, workers=options.workers, file=options.file, resume=options.resume)
        except FileExistsError:
            words = f"{options.file} is there already: --resume {options.file} goes on with it"
            raise CommandError(f"hockeystick: error: {words}") from None
    asked = [row.refused != INTERRUPTED for row in found.rows]
    broken = [not_below_one_over(options.population, (level,), UNIT) for level in found.to_table()["delta"]]
    if options.json:
        columns = found.to_table() | {"broken_assumptions": broken}
        print_json({name: list(compress(column, asked)) for name, column in columns.items()})
    else:
        said = dict.fromkeys(text for texts in compress(broken, asked) for text in texts)
        print(opening(list(said)) + _shown(found, asked, broken))
    if not all(asked):
        print(_interrupted(options, asked.count(False), len(asked)), file=sys.stderr)
        return Status.INTERRUPTED
    if any(broken):
        return Status.NOT_CERTIFIED
    return Status.OK if found.complete else Status.NO_ANSWER


def _scheme(text: str) -> str:
    if text not in _BY_SIZES:
        raise argparse.ArgumentTypeError(f"--sampling must be one of {', '.join(_BY_SIZES)}, got {text!r}")
    return text


def _sampler(options: argparse.Namespace) -> dict[str, Any]:
    """What says how batches are drawn."""
    sizes = {"batch_size": options.batch_size, "population": options.population}
    if (options.rate is None) == (None in sizes.values()) or (options.rate is not None and any(sizes.values())):
        options.parser.error("give either --rate, or --batch-size with --population")
    if options.rate is not None:
        if options.sampling is not None:
            options.parser.error("--sampling needs --batch-size and --population instead of --rate")
        return {"rate": options.rate}
    return {"sampling": options.sampling or _BY_SIZES[:1], **sizes}


def _interrupted(options: argparse.Namespace, left: int, plans: int) -> str:
    """How many plans were not asked, and how to go on."""
    file = options.resume or options.file
    how = f"--resume {file} goes on" if file else "rows kept with --file can be gone on with, by --resume"
    return f"hockeystick: interrupted: {left} of {plans} plans were not asked; {how}"


def _shown(found: Sweep, asked: Sequence[bool], broken: Sequence[Sequence[str]]) -> str:
    """A line a plan that was asked: its arguments, both sides rounded outward, and why they are not certified."""
    names = [*found.grid.axes, *["adjacency"] * (found.grid.fixed["adjacency"] != ADJACENCY)]
    heads = [*names, f"{found.quantity} from", "to", ""]
    lines = []
    for point, row, texts in compress(zip(found.grid.points(), found.rows, broken, strict=True), asked):
        worth = row.refused or (IF_HELD if texts else "")
        given = [point[name] if isinstance(point[name], str) else plain(point[name]) for name in names]
        lines.append([*given, rounded_down(row.lower, _DIGITS), rounded_up(row.upper, _DIGITS), worth])
    return table([head.replace("_", " ") for head in heads], lines, right=range(len(heads) - 1))
