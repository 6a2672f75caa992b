"""Compute a receipt again and say whether it holds.

Compute every figure of a privacy receipt again, from the specification inside it, and compare. Exit status 0: it holds;
1: it does not.

  hockeystick verify receipt.json
  hockeystick verify receipt.html --json
  hockeystick verify --independent receipt.json
"""

from __future__ import annotations

import argparse
from typing import Any

from hockeystick.app.cli.answer import print_json, told
from hockeystick.app.cli.options import read_text
from hockeystick.app.cli.parsing import CommandError, Parser, Status, wrapped
from hockeystick.app.report import verification
from hockeystick.app.report.content import Content
from hockeystick.app.spec.reader import from_document
from hockeystick.errors import require_ball_arithmetic
from hockeystick.progress import Progress

_FEW = 8


def add(parser: Parser) -> None:
    """Add the command's options."""
    parser.add_argument("receipt", metavar="RECEIPT", help="a receipt, JSON or HTML; - reads stdin")
    words = (
        "prove both sides of every number again in ball arithmetic, by code that shares nothing with the accountants:"
        " status 0 if all are proved, 1 if one is wrong, 3 if one is out of reach. What is said of them must follow"
        " from them; method, notes and sizes of errors are not looked at. Needs python-flint, and may take minutes"
    )
    parser.add_argument("--independent", action="store_true", help=words)


def run(options: argparse.Namespace) -> Status:
    """Compute the receipt again and print what came of it."""
    try:
        given = read_text(options.receipt)
        document = verification.open_receipt(given)
    except verification.NoReceiptError as error:
        raise CommandError(f"{options.receipt}: error: {error}") from None
    except RecursionError:
        raise CommandError(f"{options.receipt}: error: nested too deeply") from None
    shown = given if verification.is_page(given) else None
    if options.independent:
        return _prove_again(options, document, shown)
    with Progress("computing the receipt again"):
        found = verification.verify(document, shown=shown)
    remarks = [f"({remark})" for remark in found.remarks]
    if found.holds:
        content = Content(document)
        first = f"{options.receipt} holds: {found.checked} figures and texts agree when computed again"
        figures = [f"{content.figure(result)}, {content.worth(result)}" for result in content.results]
        return told(content.specification, vars(found), _text(first, *figures, *remarks), as_json=options.json)
    first, *others = found.findings  # what differs first stands in the one line that scripts keep
    if options.json:
        print_json({"broken_assumptions": [], **vars(found)})
    else:
        print(_text(f"{options.receipt} does NOT hold: {first}", *others, *remarks))
    return Status.REFUTED


def _text(first: str, *others: str) -> str:
    """A line as it is, and others under it."""
    return "\n".join([first, *(wrapped(other, "  ", "    ") for other in others)])


def _first_few(places: list[str]) -> str:
    """The places of some numbers: the questions asked come first."""
    more = len(places) - _FEW
    return "; ".join(places[:_FEW]) + (f"; and {more} more" if more > 0 else "")


def _prove_again(options: argparse.Namespace, document: dict[str, Any], shown: str | None) -> Status:
    """Prove every number of a receipt by the independent checker, and say for each that was not why.

    What is said of the numbers is compared with what is said here of them.
    """
    require_ball_arithmetic("verify --independent")
    from hockeystick.independent import CONTRADICTED, NOT_REACHED, PROVED, check

    if not verification.has_checksum(document):
        raise CommandError(f"{options.receipt}: error: the contents are not those of its checksum", Status.REFUTED)
    specification = from_document(document["specification"], source="specification")
    try:
        with Progress("proving the receipt again"):
            found = check({**document, "specification": specification.document()})
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
        raise CommandError(f"{options.receipt}: error: its figures are not of this kind", Status.REFUTED) from None
    words = verification.words_that_differ(document, specification, shown=shown)
    verdicts = {verdict: sum(f.verdict == verdict for f in found) for verdict in (PROVED, NOT_REACHED, CONTRADICTED)}
    first = f"{options.receipt}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}"
    wrong = [str(one) for one in found if one.verdict == CONTRADICTED]
    places: dict[str, list[str]] = {}
    for one in found:
        if one.verdict == NOT_REACHED:
            places.setdefault(f"{NOT_REACHED}: {one.reason}", []).append(one.where)
    text = _text(first, *wrong, *(f"{why}: {_first_few(where)}" for why, where in places.items()), *words)
    told_of = {"numbers": verdicts, "words": words, "findings": [vars(one) for one in found]}
    status = told(specification, told_of, text, as_json=options.json)
    if verdicts[CONTRADICTED] or words:
        return Status.REFUTED
    return Status.NO_ANSWER if verdicts[NOT_REACHED] else status
