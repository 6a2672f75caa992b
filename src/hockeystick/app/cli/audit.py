r"""Lower bounds on epsilon from what an attack saw, and whether they refute a claim.

From an attack on canaries (planted records), a lower bound on epsilon and mu at a stated confidence, and whether it
refutes a specification. Exit status 1: the claim is refuted.

  hockeystick audit --true-positives 90 --positives 100 \
      --false-positives 5 --negatives 100
  hockeystick audit --canaries 900 --guesses 200 --correct 180 --claim a.toml
  hockeystick audit --scores attack.csv --guesses 200 --delta 1e-5,1e-6
  hockeystick audit --scores attack.csv --claim run.toml --plot seen.svg
"""

from __future__ import annotations

import argparse
import csv
import io
import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn

from hockeystick import audit
from hockeystick.app.cli.answer import opening, print_json, status_of, table
from hockeystick.app.cli.options import in_file, read_text
from hockeystick.app.cli.parsing import CommandError, Parser, Status, count, delta, inside, listed, option, wrapped
from hockeystick.app.cli.picture import check_picture, write_figure
from hockeystick.app.report.numbers import plain, rounded_down
from hockeystick.app.report.words import change_words
from hockeystick.audit.base import Audit

_MANY = ("true_positives", "positives", "false_positives", "negatives")
_ONE = ("canaries", "guesses", "correct")


def add(parser: Parser) -> None:
    """Add the command's options."""
    any_count = partial(count, minimum=0)
    many = parser.add_argument_group("one canary a run, many runs: counts of independent outcomes")
    option(many, "--true-positives", any_count, "N", 'said "in", and was in')
    option(many, "--positives", count, "N", "canaries that were in")
    option(many, "--false-positives", any_count, "N", 'said "in", was out')
    option(many, "--negatives", count, "N", "canaries that were out")
    one = parser.add_argument_group("many canaries in one run, each in or out by a fair coin flip")
    option(one, "--canaries", count, "M", "how many were planted")
    option(one, "--guesses", count, "C", "about how many the attack guessed")
    option(one, "--correct", any_count, "V", "how many guesses were right")
    words = "CSV with columns score and member (1 or 0), or -; with --guesses: one run, else independent canaries"
    parser.add_argument("--scores", metavar="FILE", help=words)
    parser.add_argument("--claim", metavar="SPEC", help="the specification claimed, TOML or JSON")
    option(parser, "--confidence", inside, "P", "above 0 and below 1 (default: %(default)s)", default=0.95)
    option(parser, "--delta", listed(delta), "D[,D]", "default: 0,1e-5", default=(0.0, 1e-5))
    words = "draw what is claimed at most and seen at least: .svg, .png, .pdf"
    parser.add_argument("--plot", metavar="FILE", help=words)


def run(options: argparse.Namespace) -> Status:
    """Bound, compare and print."""
    check_picture(options)
    seen = _audit(options)
    claims = [] if options.claim is None else [in_file(options.claim)]
    claim = claims[0].curve if claims else None
    verdict = None if claim is None else seen.verdict(claim)
    if options.plot:
        from hockeystick.app import plots  # matplotlib, only where a picture is asked for

        write_figure(options.plot, lambda: plots.audit(seen, claim), options.parser.prog)
    epsilons = {level: seen.epsilon(level) for level in options.delta}
    if options.json:
        found = {
            "confidence": seen.confidence,
            "epsilon_at_least": [{"delta": level, "epsilon": epsilon} for level, epsilon in epsilons.items()],
            "mu_at_least": seen.mu(),
        }
        for one in claims:
            found |= {"broken_assumptions": list(one.broken), "neighbours": change_words(one)}
        print_json(found if verdict is None else found | {"refuted": verdict.refuted, "p_value": verdict.p_value})
    else:
        print("".join(opening(one.broken) for one in claims), end="")
        rows = [(plain(level), rounded_down(epsilon, 4)) for level, epsilon in epsilons.items()]
        print(table(("delta", "epsilon at least"), rows, right=(1,)))
        print(f"\nmu at least {rounded_down(seen.mu(), 4)}; all at confidence {plain(seen.confidence)}")
        if verdict is not None:
            print(f"{options.claim}: {verdict}")
        for one in claims:
            print(wrapped(f"if canaries, in and out, are neighbours as claimed: {change_words(one)}", "  ", "  "))
    return Status.REFUTED if verdict is not None and verdict.refuted else status_of(*claims)


def _audit(options: argparse.Namespace) -> Audit:
    """The audit that the options describe, in one of three ways."""
    given = {name for name in (*_MANY, *_ONE, "scores") if getattr(options, name) is not None}
    if given in ({"scores"}, {"scores", "guesses"}):
        scores = _scores(options.scores)
        if options.guesses is None:
            return audit.scores(*scores, confidence=options.confidence)
        return audit.one_run_scores(*scores, guesses=options.guesses, confidence=options.confidence)
    counts = {name: getattr(options, name) for name in given}
    if given == set(_MANY):
        return audit.counts(**counts, confidence=options.confidence)
    if given == set(_ONE):
        return audit.one_run(**counts, confidence=options.confidence)
    return _refused(options.parser)


def _refused(parser: Parser) -> NoReturn:
    ways = [" ".join(f"--{name.replace('_', '-')}" for name in names) for names in (_MANY, _ONE)]
    parser.error(f"give {ways[0]}; or {ways[1]}; or --scores, and --guesses for one run")


def _scores(name: str) -> tuple[list[float], list[float]]:
    """Scores of members and of the others."""
    scores: dict[str, list[float]] = {"1": [], "0": []}
    rows = csv.DictReader(io.StringIO(read_text(name)))
    try:
        if not {"score", "member"} <= set(heads := rows.fieldnames or ()):
            named = "the first line must name the columns score and member, with a comma between"
            raise CommandError(f"{name}: error: {named}, got {','.join(heads)!r}")
        for row in rows:
            _check_cells(row, f"{name}:{rows.line_num}")
            into = scores.get(str(row["member"]).strip())
            if into is None:
                raise CommandError(f"{name}:{rows.line_num}: error: member must be 1 or 0, got {row['member']!r}")
            into.append(_score(row["score"], f"{name}:{rows.line_num}"))
    except csv.Error as error:
        raise CommandError(f"{name}:{rows.line_num}: error: score must be a number ({error})") from None
    return scores["1"], scores["0"]


def _check_cells(row: Mapping[str | None, Any], line: str) -> None:
    """Refuse a line with more or fewer cells than there are columns: one of them is read as another."""
    beyond, named = row.get(None, ()), sum(head is not None for head in row)
    cells = sum(cell is not None for head, cell in row.items() if head is not None) + len(beyond)
    if cells != named:
        hint = "; is 0.1 written 0,1?" if beyond else ""
        raise CommandError(f"{line}: error: {cells} cells, but {named} columns are named{hint}")


def _score(text: str, line: str) -> float:
    """A score: it may be infinite."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise CommandError(f"{line}: error: score must be a number, got {text!r}")
    return score
