"""The form of a receipt: the JSON or the page that it stands in, and what is said in it of where it was made.

No computation confirms a date, a version or what was measured elsewhere; but each is of its kind, or words that nobody
checks could stand there.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from hockeystick.app.report.numbers import is_number
from hockeystick.app.report.receipt import FORMAT, checksum, software
from hockeystick.app.spec.problems import OutOfRangeError, read_float
from hockeystick.errors import HockeystickError

_MOST_DIGITS = 300  # of a whole number that is a float64, too
_EMBEDDED = re.compile(r'<script type="application/json" id="receipt">(.*?)</script>', re.DOTALL)
_TAG = re.compile(r"\S{0,100}")  # a version or a platform: no sentence fits in
_OF_A_LEDGER = "that of a data set is proved by its ledger: `hockeystick ledger verify`"
_MEASURED = {"passed", "points", "platform", "processor_features", "worst"}


class NoReceiptError(HockeystickError):
    """A file that is no receipt, or one of a format this version does not read."""


def open_receipt(text: str) -> dict[str, Any]:
    """The receipt in a JSON file, or inside an HTML page."""
    embedded = _EMBEDDED.search(text)  # in JSON itself every quote of such a line is escaped: no match
    inside = embedded.group(1) if embedded else text
    try:
        document = json.loads(inside, parse_int=_whole, parse_float=read_float, object_pairs_hook=_table)
    except OutOfRangeError as error:
        raise NoReceiptError(f"not a receipt: {error}") from None
    except json.JSONDecodeError as error:
        raise NoReceiptError(
            f"not a receipt: neither JSON nor a receipt's page (line {error.lineno}: {error.msg}); of a receipt in"
            f" Markdown, verify the page or the JSON made with it; {_OF_A_LEDGER}"
        ) from None
    if not isinstance(document, dict) or "receipt" not in document or "specification" not in document:
        raise NoReceiptError(
            "not a receipt: 'receipt' and 'specification' are missing; make one with `hockeystick report`;"
            f" {_OF_A_LEDGER}"
        )
    if document["receipt"] != FORMAT:
        raise NoReceiptError(f"a receipt of format {document['receipt']!r}; this version reads format {FORMAT}")
    return document


def _whole(digits: str) -> int | float:
    """A whole number; infinite where it is beyond float64, which no receipt holds."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table each of whose keys stands once: of two, a person reads the first and a parser takes the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NoReceiptError(f"not a receipt: the key {twice!r} stands twice, and which of the two counts is not known")
    return found


def is_page(text: str) -> bool:
    """Whether a text is a receipt's HTML page."""
    return _EMBEDDED.search(text) is not None


def has_checksum(document: Mapping[str, Any]) -> bool:
    """Whether the contents are those the checksum was taken of."""
    try:
        return document.get("checksum") == checksum(document)
    except ValueError:  # NaN or infinity, which no receipt holds
        return False


def misfits(document: Mapping[str, Any]) -> Iterator[str]:
    """What is said of where and when a receipt was made, and is nothing of the kind."""
    created, made, measured = (document.get(name) for name in ("created", "software", "selfcheck"))
    if not _is_date(created):
        yield f"created: not a date, got {created!r}"
    if not isinstance(made, dict) or made.keys() != software().keys() or not all(map(_is_tag, made.values())):
        yield "software: not the versions of what makes receipts"
    if measured is not None and not _is_self_check(measured):
        yield "self-check: not what one records"


def _is_date(value: object) -> bool:
    try:
        return isinstance(value, str) and dt.date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _is_tag(value: object) -> bool:
    return isinstance(value, str) and _TAG.fullmatch(value) is not None


def _is_self_check(measured: object) -> bool:
    return (
        isinstance(measured, dict)
        and measured.keys() == _MEASURED
        and isinstance(measured["passed"], bool)
        and _is_tag(measured["platform"])
        and isinstance(measured["worst"], dict)
        and all(is_number(share) and share >= 0 for share in measured["worst"].values())
    )
