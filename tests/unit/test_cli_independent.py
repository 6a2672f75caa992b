"""``hockeystick verify --independent``: what it prints, and its three statuses."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status
from hockeystick.app.report.page import page
from hockeystick.app.report.receipt import checksum, receipt
from hockeystick.app.spec import from_document


def written(path: Path, document: dict[str, Any]) -> str:
    path.write_text(json.dumps(document | {"checksum": checksum(document)}), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    steps = [{"mechanism": "approximate-dp", "epsilon": 0.25, "delta": 1e-6, "count": 8}]
    return receipt(from_document({"version": 1, "steps": steps, "guarantee": {"delta": 1e-4, "epsilon": 0.5}}))


def test_every_number_of_a_receipt_is_proved(
    made: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = made | {"tradeoff": None}
    assert main(["verify", "--independent", written(tmp_path / "receipt.json", short)]) == Status.OK
    drawn = made["drawn"]["epsilon"]
    sides = 2 * (2 * 3 + len(made["curve"]) + 2 * len(drawn))  # of two results, each and its directions, and the rest
    assert f"{sides} proved, 0 not proved independently, 0 contradicted" in capsys.readouterr().out


def test_a_wrong_number_is_contradicted(
    made: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [dict(result) for result in made["results"]]
    results[1]["upper"] = results[1]["lower"] * (1.0 - 1e-9)
    name = written(tmp_path / "receipt.json", made | {"results": results, "curve": [], "tradeoff": None})
    assert main(["verify", "--independent", name, "--json"]) == Status.REFUTED
    found = json.loads(capsys.readouterr().out)
    assert found["numbers"]["contradicted"] == 1
    assert [one["where"] for one in found["findings"] if one["verdict"] == "contradicted"] == [
        "delta at epsilon 0.5, upper"
    ]


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        (("results", 0, "statement"), "(0.1, 1e-9)-differential privacy."),
        (("results", 0, "guarantee"), "proved by an office"),
        (("relation",), "add-remove: one company added or removed"),
        (("cautions",), []),
        (("not_included",), []),
    ],
)
def test_words_that_do_not_follow_from_proved_numbers_are_refuted(
    made: dict[str, Any], path: tuple[Any, ...], changed: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = copy.deepcopy(made | {"curve": [], "tradeoff": None})
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = changed
    assert main(["verify", "--independent", written(tmp_path / "receipt.json", document)]) == Status.REFUTED
    assert f"{path[0]}" in capsys.readouterr().out


@pytest.mark.parametrize("guarantee", [{"delta": 1e-12, "epsilon": 0.5}, {"delta": 1e-4}, {"delta": [1e-4, 0.5]}])
def test_true_numbers_that_answer_other_questions_are_refuted(
    guarantee: dict[str, Any], made: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cautions speak of the deltas that were asked for: others could stand in the results."""
    specification = made["specification"] | {"guarantee": made["specification"]["guarantee"] | guarantee}
    if "epsilon" not in guarantee:
        del specification["guarantee"]["epsilon"]
    again = receipt(from_document(specification), created=made["created"])
    said = {name: again[name] for name in ("specification", "cautions", "not_included", "relation")}
    document = made | said | {"curve": [], "tradeoff": None}
    assert main(["verify", "--independent", written(tmp_path / "receipt.json", document)]) == Status.REFUTED
    assert "results: not those the specification asks for" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "key", "changed"),
    [
        ("tradeoff", "direction", "add"),  # the attack that claims a record was not there
        ("tradeoff", "false_positive", [0.00051, 0.01, 0.1]),  # which a page shows as 1 in 1,000
        ("drawn", "several", True),
    ],
)
def test_true_numbers_of_another_attack_are_refuted(
    made: dict[str, Any], table: str, key: str, changed: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = {"curve": [], "tradeoff": made["tradeoff"] | {"certified": False}}  # else its points take minutes
    document = made | short
    document[table] = document[table] | {key: changed}
    assert main(["verify", "--independent", written(tmp_path / "receipt.json", document)]) == Status.REFUTED
    assert f"{table}.{key}" in capsys.readouterr().out


def test_what_a_page_shows_of_proved_numbers_is_compared(made: dict[str, Any], tmp_path: Path) -> None:
    document = made | {"curve": [made["curve"][0]], "tradeoff": None}
    signed = document | {"checksum": checksum(document)}
    path = tmp_path / "receipt.html"
    for shown, status in ((page(signed), Status.OK), (page(signed).replace("certified", "sealed"), Status.REFUTED)):
        path.write_text(shown, encoding="utf-8")
        assert main(["verify", "--independent", str(path)]) == status


def test_what_is_out_of_reach_has_a_status_of_its_own(
    made: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method = {"accountant": {"method": "gaussian-limit"}}
    estimate = receipt(from_document({**made["specification"], **method}))
    name = written(tmp_path / "receipt.json", estimate | {"curve": [], "tradeoff": None})
    assert main(["verify", "--independent", name]) == Status.NO_ANSWER
    said = " ".join(capsys.readouterr().out.split())  # lines are wrapped
    assert "not proved independently: an estimate, which claims no side" in said


def test_what_is_out_of_reach_for_one_reason_is_said_once(
    made: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method = {"accountant": {"method": "gaussian-limit"}}
    name = written(tmp_path / "receipt.json", receipt(from_document({**made["specification"], **method})))
    assert main(["verify", "--independent", name, "--json"]) == Status.NO_ANSWER
    findings = json.loads(capsys.readouterr().out)["findings"]
    reasons = {one["reason"] for one in findings if one["verdict"] == "not proved independently"}
    assert main(["verify", "--independent", name]) == Status.NO_ANSWER
    said = " ".join(capsys.readouterr().out.split())
    assert 0 < len(reasons) < len(findings) / 10
    assert all(said.count(f"not proved independently: {reason}: ") == 1 for reason in reasons)
    assert all(said.count(reason) <= len(reasons) for reason in reasons)
    assert "which claims no side: epsilon at delta 0.0001" in said
    assert re.search("; and [0-9]+ more", said)


def test_a_receipt_without_its_checksum_is_refused(made: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(made | {"created": "2000-01-01"}), encoding="utf-8")
    assert main(["verify", "--independent", str(path)]) == Status.REFUTED


@pytest.mark.parametrize(
    ("path", "junk"),
    [
        (("results",), "none"),
        (("results", 0, "at"), None),
        (("results", 0, "directions"), None),
        (("curve", 0), {}),
        (("curve", 0, "delta"), 10**400),
        (("selfcheck",), {"passed": True, "worst": {"math.exp": 10**400}}),
        (("results", 0, "upper"), "nan"),
        (("results", 0, "lower"), [1.0]),
        (("results", 0, "at"), {}),
        (("drawn", "directions", "remove"), [[], []]),
    ],
    ids=["results", "level", "directions", "point", "delta", "self-check", "NaN", "list", "no level", "nothing drawn"],
)
@pytest.mark.parametrize("how", [[], ["--independent"]])
def test_figures_that_are_none_are_refuted_in_words(
    path: tuple[Any, ...], junk: Any, how: list[str], made: dict[str, Any], tmp_path: Path
) -> None:
    changed = copy.deepcopy(made | {"tradeoff": None})
    inside: Any = changed
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = junk
    assert main(["verify", *how, written(tmp_path / "receipt.json", changed)]) == Status.REFUTED
