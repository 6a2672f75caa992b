"""``hockeystick report`` and ``hockeystick verify``: make a privacy receipt, and check one."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hockeystick.app.cli.answer import opening, print_json, status_of
from hockeystick.app.cli.files import add_changes, add_specification, asked_specification, read_text, write_text
from hockeystick.app.cli.options import add_json
from hockeystick.app.cli.parsing import WIDTH, Parser
from hockeystick.app.cli.status import CommandError, Status
from hockeystick.app.report.cautions import broken
from hockeystick.app.report.content import Content
from hockeystick.app.report.deployments import deployment_record
from hockeystick.app.report.latex import latex
from hockeystick.app.report.markdown import markdown
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import receipt
from hockeystick.app.report.verification import NoReceiptError, has_checksum, is_page, open_receipt, verify
from hockeystick.app.spec.reader import from_document
from hockeystick.errors import require_ball_arithmetic
from hockeystick.independent import CONTRADICTED, NOT_REACHED, PROVED, check
from hockeystick.progress import Progress

_REPORT_EXAMPLES = """examples:
  hockeystick report spec.toml -o receipt.html -o receipt.json
  hockeystick report spec.toml --format markdown > PRIVACY.md
  hockeystick report spec.toml --format latex
"""

_VERIFY_EXAMPLES = """examples:
  hockeystick verify receipt.json
  hockeystick verify receipt.html --json
  hockeystick verify --independent receipt.json
"""

_FORMATS = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".json": "json",
    ".tex": "latex",
    ".yaml": "opendp",
    ".yml": "opendp",
}
_WRITERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "html": page,
    "markdown": markdown,
    "json": lambda made: json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
    "latex": latex,
    "opendp": deployment_record,
}


def add(commands: Any) -> None:
    """Add both commands."""
    parser: Parser = commands.add_parser(
        "report",
        help="make a privacy receipt: HTML, Markdown, JSON; a sentence for a paper; a record for a registry",
        description="Account a specification and write its privacy receipt: the guarantee in words, everything it rests"
        " on, and how to check it.",
        epilog=_REPORT_EXAMPLES,
    )
    add_specification(parser)
    add_changes(parser)
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        metavar="FILE",
        help="where to write: .html, .md, .json, .tex (for a paper), .yaml (OpenDP deployments registry); repeatable",
    )
    parser.add_argument("--format", choices=tuple(_WRITERS), help="format for stdout (default: markdown)")
    add_json(parser)
    checker: Parser = commands.add_parser(
        "verify",
        help="compute a receipt again and say whether it holds",
        description="Compute every figure of a privacy receipt again, from the specification inside it, and compare."
        " Exit status 0: it holds; 1: it does not.",
        epilog=_VERIFY_EXAMPLES,
    )
    checker.add_argument("receipt", metavar="RECEIPT", help="a receipt, JSON or HTML; - reads stdin")
    checker.add_argument(
        "--independent",
        action="store_true",
        help="prove every number again in ball arithmetic, by code that shares nothing with the accountants: status 0"
        " if all are proved, 1 if one is wrong, 3 if one is out of reach; needs python-flint, and may take minutes",
    )
    add_json(checker)


def run(options: argparse.Namespace) -> Status:
    """Make a receipt, or check one."""
    return _report(options) if options.command == "report" else _verify(options)


def _report(options: argparse.Namespace) -> Status:
    """Make the receipt and write it in every form asked for."""
    outputs = [(name, _format(name)) for name in options.output or []]
    specification = asked_specification(options)
    with Progress("making the receipt"):
        made = receipt(specification)
    for name, form in outputs:
        write_text(name, _WRITERS[form](made))
    if options.json or not outputs or options.format:
        print(_WRITERS["json" if options.json else options.format or "markdown"](made), end="")
    else:
        content = Content(made)
        print(opening(specification), end="")
        for result in content.results:
            print(content.figure(result))
        print(f"wrote {', '.join(name for name, _ in outputs)}")
    return status_of(specification)


def _format(name: str) -> str:
    suffix = Path(name).suffix.lower()
    if suffix not in _FORMATS:
        raise CommandError(f"hockeystick report: error: -o must end in .html, .md, .json, .tex or .yaml, got {name!r}")
    return _FORMATS[suffix]


def _verify(options: argparse.Namespace) -> Status:
    """Compute the receipt again and print what came of it."""
    try:
        given = read_text(options.receipt)
        document = open_receipt(given)
    except NoReceiptError as error:
        raise CommandError(f"{options.receipt}: error: {error}") from None
    if options.independent:
        return _prove_again(options, document)
    with Progress("computing the receipt again"):
        found = verify(document, shown=given if is_page(given) else None)
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


def _prove_again(options: argparse.Namespace, document: dict[str, Any]) -> Status:
    """Prove every number of a receipt by the independent checker, and say for each that was not why."""
    require_ball_arithmetic("verify --independent")
    if not has_checksum(document):
        raise CommandError(f"{options.receipt}: error: the contents are not those of its checksum", Status.REFUTED)
    specification = from_document(document["specification"], source="specification")
    with Progress("proving the receipt again"):
        found = check({**document, "specification": specification.document()})
    verdicts = {verdict: sum(f.verdict == verdict for f in found) for verdict in (PROVED, NOT_REACHED, CONTRADICTED)}
    if options.json:
        broken_ones = {"broken_assumptions": list(broken(specification))}
        print_json({**broken_ones, "numbers": verdicts, "findings": [vars(one) for one in found]})
    else:
        print(opening(specification), end="")
        print(f"{options.receipt}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}")
        for one in found:
            if one.verdict != PROVED:
                print(_under(str(one)))
    if verdicts[CONTRADICTED]:
        return Status.REFUTED
    return Status.NO_ANSWER if verdicts[NOT_REACHED] else status_of(specification)
