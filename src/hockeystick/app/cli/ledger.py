"""What has been spent on data sets, and whether the next release may run.

A ledger of privacy budgets in a database. Exit status 1: a release does not fit, or the ledger does not verify.

  export HOCKEYSTICK_LEDGER=sqlite:///ledger.db
  hockeystick ledger init
  hockeystick ledger add-dataset census --epsilon 1 --delta 1e-6 --unit person
  hockeystick ledger would-fit census table3.toml
  hockeystick ledger spend census table3.toml --why "Table 3, ages by county"
  hockeystick ledger total census
  hockeystick ledger verify
  hockeystick ledger report census -o census.html
  hockeystick ledger export census --format opendp > census.yaml
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from hockeystick import ledger
from hockeystick.app.cli.answer import opening, print_json, table
from hockeystick.app.cli.options import add_specification, in_file, write_text
from hockeystick.app.cli.parsing import CommandError, Parser, Status, add_json, count, delta, option, positive
from hockeystick.app.report.data_set import Account, data_set_json, data_set_page, data_set_record
from hockeystick.app.report.numbers import number_of, plain, rounded_down, rounded_up
from hockeystick.app.report.words import IF_HELD
from hockeystick.app.spec.model import Specification
from hockeystick.composition import ADJACENCIES
from hockeystick.errors import one_line
from hockeystick.ledger.records import PERIODS
from hockeystick.ledger.rules import RULES
from hockeystick.progress import Progress

_VARIABLE = "HOCKEYSTICK_LEDGER"


def add(parser: Parser) -> None:
    """Add the command's own commands."""
    actions = parser.add_subparsers(title="commands", metavar="ACTION", dest="action", required=True)
    _add_administration(actions)
    _add_releases(actions)
    _add_questions(actions)


def run(options: argparse.Namespace) -> Status:
    """Open the ledger and do what was asked."""
    url = options.ledger or os.environ.get(_VARIABLE)
    if not url:
        raise CommandError(f"hockeystick ledger: error: which ledger? give --ledger URL, or set {_VARIABLE}")
    try:
        return Status(options.act(options, url) or Status.OK)
    except ledger.OverBudgetError as error:
        raise CommandError(f"hockeystick ledger: {error}", Status.REFUTED) from None
    except (ledger.LedgerError, ModuleNotFoundError) as error:
        raise CommandError(f"hockeystick ledger: error: {one_line(error)}") from None


def _action(actions: Any, name: str, act: Any, words: str, *, datasets: str | None = None) -> Parser:
    """A command about so many data sets: one, or as argparse says it; "" for a command about the ledger."""
    parser: Parser = actions.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
    parser.add_argument("--ledger", metavar="URL", help=f"such as sqlite:///ledger.db (default: ${_VARIABLE})")
    parser.set_defaults(act=act)
    if datasets != "":
        parser.add_argument("dataset", metavar="NAME", nargs=datasets)
    return parser


def _add_administration(actions: Any) -> None:
    _action(actions, "init", _init, "make a new, empty ledger", datasets="")
    _action(actions, "migrate", _migrate, "bring a ledger of an older version to this one", datasets="")
    parser = _action(actions, "add-dataset", _add_dataset, "open a data set with its budget")
    option(parser, "--epsilon", positive, "E", "budget, with --delta")
    option(parser, "--delta", delta, "D")
    option(parser, "--mu", positive, "MU", "budget of Gaussian DP instead")
    parser.add_argument("--unit", default="example", metavar="NOUN", help="what one record is (default: %(default)s)")
    parser.add_argument("--adjacency", choices=tuple(ADJACENCIES), default="add-remove", metavar="R")
    words = (
        "in-advance: every release is fixed before any result is seen; the others admit adaptive ones, through a filter"
    )
    parser.add_argument("--rule", choices=RULES, default=RULES[0], help=words)
    parser.add_argument("--period", choices=[name for name in PERIODS if name], default="", help="a budget for each")


def _add_releases(actions: Any) -> None:
    for name, words in (
        ("spend", "admit and record a release that takes place now"),
        ("reserve", "admit a release that is about to take place"),
    ):
        parser = _add_release(_action(actions, name, _admit, words))
        parser.add_argument("--why", required=True, metavar="TEXT", help="for what")
        parser.add_argument("--adaptively", action="store_true", help="it was chosen after seeing results")
    for name, words in (
        ("commit", "say that a reserved release took place"),
        ("release", "give a reservation back: the run did not touch the data"),
    ):
        parser = _add_number(_action(actions, name, _settle, words), "of the reservation")
        parser.add_argument("--why", default="done" if name == "commit" else None, required=name == "release")
    parser = _add_number(_action(actions, "correct", _correct, "correct an entry by a later one"), "of the entry")
    parser.add_argument("specification", nargs="?", metavar="SPEC", help="what took place instead, if anything")
    parser.add_argument("--why", required=True, metavar="TEXT")


def _add_questions(actions: Any) -> None:
    _add_release(_action(actions, "would-fit", _would_fit, "whether a release would be admitted now"))
    _add_release(_action(actions, "remaining", _remaining, "how many more such releases fit"))
    parser = _action(actions, "total", _total, "what has been spent on a data set")
    option(parser, "--delta", delta, "D", "where epsilon is read")
    _add_account(parser)
    add_json(parser)
    add_json(_action(actions, "history", _history, "the entries of a data set"))
    _action(actions, "verify", _verify, "replay the chain and recompute every total", datasets="?")
    words = "everything as JSON lines, or a data set as a draft record for the OpenDP registry"
    parser = _action(actions, "export", _export, words, datasets="?")
    parser.add_argument("--format", choices=("json-lines", "opendp"), default="json-lines")
    parser = _action(actions, "report", _report, "the receipt of a data set, with its history drawn")
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="where to write: .html or .json")
    _add_account(parser)


def _add_account(parser: Parser) -> None:
    parser.add_argument("--period", metavar="P", help="such as 2026, where budgets are by period")
    words = "of the data (default: the one that spent most)"
    parser.add_argument("--partition", default="", metavar="PART", help=words)


def _add_release(parser: Parser) -> Parser:
    add_specification(parser)
    parser.add_argument("--partition", default="", metavar="PART", help="the part of the data that it looks at")
    return parser


def _add_number(parser: Parser, words: str) -> Parser:
    parser.add_argument("number", type=count("NUMBER", 0), metavar="NUMBER", help=words)
    return parser


def _init(_: argparse.Namespace, url: str) -> None:
    ledger.Ledger.create(url)
    print(f"a new ledger: {url}")


def _migrate(_: argparse.Namespace, url: str) -> None:
    print(f"was of version {ledger.Ledger.migrate(url)}")


def _add_dataset(options: argparse.Namespace, url: str) -> None:
    budget = ledger.Budget(epsilon=options.epsilon, delta=options.delta, mu=options.mu)
    dataset = ledger.DataSet(
        options.dataset, budget, options.unit, options.adjacency, rule=options.rule, period=options.period
    )
    ledger.Ledger(url).add_dataset(dataset)
    lasts = f", each {dataset.period} alone" if dataset.period else ""
    print(f"{dataset.name}: {budget} for each {dataset.unit}{lasts}, {dataset.adjacency}, rule {dataset.rule}")


def _admit(options: argparse.Namespace, url: str) -> Status:
    book = ledger.Ledger(url)
    release, status = _stated_release(options, book)
    made = getattr(book, options.action)(
        options.dataset,
        release,
        why=options.why,
        chosen="adaptively" if options.adaptively else "in-advance",
        partition=options.partition,
    )
    print(f"entry {made.number}: {'recorded' if options.action == 'spend' else 'reserved'}")
    if options.action == "reserve":
        print(f"afterwards: hockeystick ledger commit {options.dataset} {made.number}")
    return status


def _stated_release(options: argparse.Namespace, book: ledger.Ledger) -> tuple[Specification, Status]:
    """The release in a file; what it, or one that counts, says is not as accounted is printed before any answer."""
    release = in_file(options.specification)
    broken = book.broken(options.dataset, partition=options.partition, release=release)
    print(opening(broken), end="")
    return release, Status.NOT_CERTIFIED if broken else Status.OK


def _settle(options: argparse.Namespace, url: str) -> None:
    entry = ledger.Ledger(url).settle(options.dataset, options.number, action=options.action, why=options.why)
    print(f"entry {entry.number}: {options.action} of entry {options.number}")


def _correct(options: argparse.Namespace, url: str) -> None:
    instead = in_file(options.specification) if options.specification else None
    entry = ledger.Ledger(url).correct(options.dataset, options.number, why=options.why, release=instead)
    print(f"entry {entry.number}: corrects entry {options.number}")


def _would_fit(options: argparse.Namespace, url: str) -> Status:
    book = ledger.Ledger(url)
    release, status = _stated_release(options, book)
    fits = book.would_fit(options.dataset, release, partition=options.partition)
    print("fits" if fits else "does not fit")
    return status if fits else Status.REFUTED


def _remaining(options: argparse.Namespace, url: str) -> Status:
    book = ledger.Ledger(url)
    release, status = _stated_release(options, book)
    print(book.remaining(options.dataset, release, partition=options.partition))
    return status


def _total(options: argparse.Namespace, url: str) -> Status:
    found = ledger.Ledger(url).total(
        options.dataset, delta=options.delta, period=options.period, partition=options.partition
    )
    low, high = found.epsilon.sides
    if options.json:
        document = {"broken_assumptions": found.broken, "delta": found.delta, "lower": float(low)}
        document |= {"upper": float(high), "releases": found.releases}
        print_json(document | {"statement": found.statement, "within_budget": found.within_budget})
    else:
        print(opening(found.broken), end="")
        figure = f"epsilon between {rounded_down(float(low), 6)} and {rounded_up(float(high), 6)}"
        print(f"{IF_HELD}, {figure}" if found.broken else figure, end=" ")
        print(f"at delta {plain(found.delta)}, {number_of(found.releases, 'release')}")
        print(found.statement)
    return _status(found)


def _status(found: ledger.Total) -> Status:
    """Of an answer about a total."""
    if not found.within_budget:
        return Status.REFUTED
    return Status.NOT_CERTIFIED if found.broken else Status.OK


def _history(options: argparse.Namespace, url: str) -> None:
    entries = ledger.Ledger(url).history(options.dataset)
    if options.json:
        print_json([{"number": entry.number, **json.loads(entry.content)} for entry in entries])
        return
    rows = []
    for entry in entries:
        said = (entry.when[:19], entry.who, entry.action, _times(entry), entry.account.strip("/"), entry.why)
        rows.append((str(entry.number), *said))
    print(table(("", "when (UTC)", "who", "action", "releases", "account", "why"), rows, right=(0, 4)))


def _times(entry: ledger.Entry) -> str:
    return str(sum(entry.runs.values())) if entry.runs else f"of {entry.refers}" if entry.refers is not None else ""


def _verify(options: argparse.Namespace, url: str) -> Status:
    findings = ledger.Ledger(url).verify(options.dataset)
    for finding in findings:
        print(finding)
    if not findings:
        print("every entry agrees with its hash, every total with the entries")
    return Status.REFUTED if findings else Status.OK


def _report(options: argparse.Namespace, url: str) -> Status:
    suffix = ".html" if options.output == "-" else Path(options.output).suffix.lower()
    if suffix not in {".html", ".htm", ".json"}:
        options.parser.error(f"-o must end in .html or .json, got {options.output!r}")
    write = data_set_json if suffix == ".json" else data_set_page
    with Progress("reading the ledger"):
        account = Account(ledger.Ledger(url), options.dataset, period=options.period, partition=options.partition)
    write_text(options.output, write(account))
    if options.output != "-":
        print(f"{opening(account.total.broken)}wrote {options.output}")
    return _status(account.total)


def _export(options: argparse.Namespace, url: str) -> None:
    if options.format == "opendp":
        if options.dataset is None:
            raise ledger.LedgerError("a record for the registry is about one data set: name it")
        print(data_set_record(Account(ledger.Ledger(url), options.dataset)), end="")
        return
    for record in ledger.Ledger(url).export(options.dataset):
        print(json.dumps(record))
