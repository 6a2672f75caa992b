"""The form of a receipt: every key once, nothing beside what it holds, and no sentence where a version stands."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import checksum, receipt
from hockeystick.app.report.verification import NoReceiptError, open_receipt, verify, words_that_differ
from hockeystick.app.spec import from_document

Keys = tuple[str | int, ...]

STEPS = [{"mechanism": "gaussian", "noise_multiplier": 2.0}]


def edited(document: dict[str, Any], path: Keys, value: Any) -> dict[str, Any]:
    """The same with another value in one place, signed anew."""
    changed = copy.deepcopy(document)
    holder: Any = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return changed | {"checksum": checksum(changed)}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return receipt(from_document({"steps": STEPS, "guarantee": {"delta": 1e-5}}), created="2030-01-02")


@pytest.fixture(scope="module")
def foreign(made: dict[str, Any]) -> dict[str, Any]:
    """Made with other versions."""
    return edited(made, ("software", "numpy"), "0.0")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("created",), "2030-01-02, certified by an office: epsilon = 0.1"),
        (("created",), "20300102"),
        (("software", "hockeystick"), "9.9, whose epsilon is 0.1"),
        (("software", "remark"), "0.1"),
        (("software",), "unknown"),
        (("selfcheck", "platform"), "Linux. The true epsilon is 0.1"),
        (("selfcheck", "remark"), "epsilon is 0.1"),
        (("selfcheck", "worst", "numpy.exp"), True),
        (("selfcheck", "passed"), None),
        (("selfcheck",), []),
    ],
)
def test_what_says_where_a_receipt_was_made_is_of_its_kind(made: dict[str, Any], path: Keys, value: Any) -> None:
    changed = edited(made, path, value)
    assert not verify(changed).holds
    assert words_that_differ(changed, from_document(changed["specification"]))


@pytest.mark.parametrize(
    "path",
    [
        ("remark",),
        ("results", 0, "remark"),
        ("results", 0, "directions", "add", "value"),
        ("curve", 2, "value"),
        ("drawn", "remark"),
        ("tradeoff", "remark"),
        ("tradeoff", "false_negative", 1, "value"),
    ],
)
def test_nothing_stands_beside_what_a_receipt_holds(foreign: dict[str, Any], path: Keys) -> None:
    changed = edited(foreign, path, 0.1)
    assert not verify(changed).holds
    assert words_that_differ(changed, from_document(changed["specification"]))


@pytest.mark.parametrize("junk", ["small", [], True, "0.1"])
def test_an_error_of_other_versions_is_a_number(foreign: dict[str, Any], junk: Any) -> None:
    name = next(iter(foreign["results"][0]["errors"]))
    assert not verify(edited(foreign, ("results", 0, "errors", name), junk)).holds


def test_what_other_versions_say_of_their_method_is_told_apart(foreign: dict[str, Any]) -> None:
    assert not any("is not checked" in remark for remark in verify(foreign).remarks)
    found = verify(edited(foreign, ("results", 0, "notes"), ["the true epsilon is 0.1"]))
    assert found.holds
    assert any("'the true epsilon is 0.1'] is not checked" in remark for remark in found.remarks)


def test_a_key_that_stands_twice_is_refused(made: dict[str, Any]) -> None:
    text = json.dumps(made)
    assert verify(open_receipt(text)).holds
    for first in ('{"results": [{"upper": 0.1}], ', '{"specification": {"title": 1, "title": 2}, '):
        with pytest.raises(NoReceiptError, match="stands twice"):
            open_receipt(first + text[1:])


def test_a_number_that_is_none_of_float64s_is_not_taken_for_another(made: dict[str, Any]) -> None:
    text = json.dumps(edited(made, ("results", 0, "lower"), 0.0))
    assert open_receipt(text)["results"][0]["lower"] == 0.0
    for number in ("1e-400", "1e400"):
        with pytest.raises(NoReceiptError, match=number):
            open_receipt(text.replace('"lower": 0.0', f'"lower": {number}', 1))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("relation",), 1.5),
        (("cautions",), None),
        (("results", 0, "statement"), None),
        (("drawn", "epsilon", 3), "inf"),
        (("tradeoff", "false_positive", 0), []),
    ],
)
@pytest.mark.parametrize("how", [[], ["--independent"]])
def test_a_page_of_a_receipt_that_is_none_is_refuted_in_words(
    made: dict[str, Any], path: Keys, value: Any, how: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = edited(made, path, value)
    inside = json.dumps(made, ensure_ascii=False)
    shown = page(made).replace(inside, json.dumps(changed, ensure_ascii=False))
    assert shown != page(made)
    (tmp_path / "receipt.html").write_text(shown, encoding="utf-8")
    assert main(["verify", *how, str(tmp_path / "receipt.html")]) == Status.REFUTED
    assert "Traceback" not in capsys.readouterr().err
