"""``hockeystick verify``: check a privacy receipt."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from hockeystick.app.cli.answer import opening, print_json, status_of
from hockeystick.app.cli.files import read_text
from hockeystick.app.cli.options import add_json
from hockeystick.app.cli.parsing import WIDTH, Parser
from hockeystick.app.cli.status import CommandError, Status
from hockeystick.app.report.cautions import broken
from hockeystick.app.report.content import Content
from hockeystick.app.report.verification import (
    NoReceiptError,
    has_checksum,
    is_page,
    open_receipt,
    verify,
    words_that_differ,
)
from hockeystick.app.spec.reader import from_document
from hockeystick.errors import require_ball_arithmetic
from hockeystick.progress import Progress

HELP = "compute a receipt again and say whether it holds"
DESCRIPTION = """Compute every figure of a privacy receipt again, from the specification inside it, and compare. Exit
status 0: it holds; 1: it does not."""
EXAMPLES = """examples:
  hockeystick verify receipt.json
  hockeystick verify receipt.html --json
  hockeystick verify --independent receipt.json
"""


def add(parser: Parser) -> None:
    """Add the command's options."""
    parser.add_argument("receipt", metavar="RECEIPT", help="a receipt, JSON or HTML; - reads stdin")
    parser.add_argument(
        "--independent",
        action="store_true",
        help="prove every number again in ball arithmetic, by code that shares nothing with the accountants: status 0"
        " if all are proved, 1 if one is wrong, 3 if one is out of reach; needs python-flint, and may take minutes",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> Status:
    """Compute the receipt again and print what came of it."""
    try:
        given = read_text(options.receipt)
        document = open_receipt(given)
    except NoReceiptError as error:
        raise CommandError(f"{options.receipt}: error: {error}") from None
    shown = given if is_page(given) else None
    if options.independent:
        return _prove_again(options, document, shown)
    with Progress("computing the receipt again"):
        found = verify(document, shown=shown)
    if options.json:
        texts = broken(from_document(document["specification"])) if found.holds else ()
        print_json({"broken_assumptions": list(texts), **vars(found)})
    elif found.holds:
        content = Content(document)
        print(opening(content.specification), end="")
        print(f"{options.receipt} holds: {found.checked} figures and texts agree when computed again")
        for result in content.results:
            print(_under(f"{content.figure(result)}, {content.worth(result)}"))
    else:
        first, *others = found.findings  # what differs first stands in the one line that scripts keep
        print(f"{options.receipt} does NOT hold: {first}")
        for finding in others:
            print(_under(str(finding)))
    if not options.json:
        for remark in found.remarks:
            print(_under(f"({remark})"))
    return status_of(from_document(document["specification"])) if found.holds else Status.REFUTED


def _under(text: str) -> str:
    """Under the first line."""
    return textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def _prove_again(options: argparse.Namespace, document: dict[str, Any], shown: str | None) -> Status:
    """Prove every number of a receipt by the independent checker, and say for each that was not why.

    What is said of the numbers is compared with what is said here of them.
    """
    require_ball_arithmetic("verify --independent")
    from hockeystick.independent import CONTRADICTED, NOT_REACHED, PROVED, check

    if not has_checksum(document):
        raise CommandError(f"{options.receipt}: error: the contents are not those of its checksum", Status.REFUTED)
    specification = from_document(document["specification"], source="specification")
    try:
        with Progress("proving the receipt again"):
            found = check({**document, "specification": specification.document()})
    except (AttributeError, KeyError, OverflowError):
        raise CommandError(f"{options.receipt}: error: its figures are not of this kind", Status.REFUTED) from None
    words = words_that_differ(document, specification, shown=shown)
    verdicts = {verdict: sum(f.verdict == verdict for f in found) for verdict in (PROVED, NOT_REACHED, CONTRADICTED)}
    if options.json:
        broken_ones = {"broken_assumptions": list(broken(specification))}
        print_json({**broken_ones, "numbers": verdicts, "words": words, "findings": [vars(one) for one in found]})
    else:
        print(opening(specification), end="")
        print(f"{options.receipt}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}")
        for one in found:
            if one.verdict != PROVED:
                print(_under(str(one)))
        for text in words:
            print(_under(text))
    if verdicts[CONTRADICTED] or words:
        return Status.REFUTED
    return Status.NO_ANSWER if verdicts[NOT_REACHED] else status_of(specification)
