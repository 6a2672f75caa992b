"""``hockeystick audit``: three ways to say what an attack saw, a claim, and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from hockeystick.app.cli import main

ONE = ["audit", "--canaries", "1000", "--guesses", "200", "--correct", "180"]
MANY = ["audit", "--true-positives", "90", "--positives", "100", "--false-positives", "5", "--negatives", "100"]


def spec(folder: Path, noise: float) -> str:
    path = folder / "spec.toml"
    path.write_text(
        f'version = 1\n[[steps]]\nmechanism = "gaussian"\nnoise_multiplier = {noise}\n'
        '[guarantee]\nadjacency = "add-remove"\ndelta = 1e-5\n'
    )
    return str(path)


@pytest.mark.parametrize(("noise", "status"), [(0.3, 0), (2.0, 1)])
def test_the_status_says_whether_a_claim_is_refuted(
    noise: float, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*MANY, "--claim", spec(tmp_path, noise), "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    assert document["refuted"] is bool(status)
    assert (document["p_value"] < 0.05) is bool(status)
    assert [row["delta"] for row in document["epsilon_at_least"]] == [0.0, 1e-5]


def test_what_is_refuted_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MANY, "--claim", spec(tmp_path, 2.0)]) == 1
    assert "refuted: were the claim true, this would be seen with probability" in capsys.readouterr().out


@pytest.mark.parametrize("guesses", [[], ["--guesses", "20"]])
def test_scores_come_from_a_table(guesses: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "scores.csv"
    rows = [f"{member * 3 + index / 100},{member}" for member in (0, 1) for index in range(60)]
    table.write_text("score,member\n" + "\n".join(rows) + "\n")
    assert main(["audit", "--scores", str(table), *guesses, "--delta", "1e-6"]) == 0
    assert "mu at least" in capsys.readouterr().out


def test_a_table_may_begin_with_a_mark_of_its_encoding_or_come_from_stdin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, table = "score,member\n3,1\n1,0\n2,1\n0,0\n", tmp_path / "scores.csv"
    table.write_text(rows, encoding="utf-8-sig")
    monkeypatch.setattr("sys.stdin", io.StringIO(rows))
    assert [main(["audit", "--scores", name, "--guesses", "2"]) for name in (str(table), "-")] == [0, 0]
    first, second = capsys.readouterr().out.split("delta  epsilon at least")[1:]
    assert first == second


def test_the_relation_that_a_verdict_rests_on_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = Path(spec(tmp_path, 2.0))
    claim.write_text(claim.read_text().replace("add-remove", "substitute"))
    main([*MANY, "--claim", str(claim)])
    assert "neighbours as claimed: one example is replaced by any other" in " ".join(capsys.readouterr().out.split())
    main([*MANY, "--claim", str(claim), "--json"])
    assert json.loads(capsys.readouterr().out)["neighbours"] == "one example is replaced by any other"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit"], "give --true-positives --positives --false-positives --negatives; or --canaries"),
        ([*ONE, "--positives", "3"], "give --true-positives"),
        (["audit", "--canaries", "10", "--guesses", "5", "--correct", "6"], "correct <= guesses <= canaries"),
        ([*ONE, "--confidence", "1"], "--confidence must be above 0 and below 1, got 1.0"),
        ([*ONE, "--confidence", "abc"], "--confidence must be a number, got 'abc'"),
        (["audit", "--scores", "nowhere.csv"], "cannot read nowhere.csv"),
        (["audit", "--scores", ""], "cannot read a file without a name: Is a directory"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,1\n", "the first line must name the columns score and member, with a comma between, got 'a,b'"),
        ("score,member\n1,yes\n", "scores.csv:2: error: member must be 1 or 0, got 'yes'"),
        ("score,member\nhigh,1\n", "scores.csv:2: error: score must be a number, got 'high'"),
        ("score,member\n1,1\n\nnan,0\n", "scores.csv:4: error: score must be a number, got 'nan'"),
        ("score,member\n1,1\n0,1,0\n", "scores.csv:3: error: 3 cells, but 2 columns are named; is 0.1 written 0,1?"),
        ("id,score,member\n1,0.5\n", "scores.csv:2: error: 2 cells, but 3 columns are named\n"),
        (f"score,member\n{'1' * 200_000},1\n", "scores.csv:1: error: score must be a number (field larger"),
        ("score,member\n\udcff,1\n", "scores.csv is not a text file in UTF-8"),
    ],
)
def test_a_bad_table_is_named_by_its_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "scores.csv"
    table.write_bytes(text.encode(errors="surrogateescape"))
    assert main(["audit", "--scores", str(table)]) == 2
    assert message in capsys.readouterr().err


def test_a_claim_that_is_not_as_accounted_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = Path(spec(tmp_path, 0.3))
    claim.write_text(claim.read_text() + '[circumstances]\nadaptive = "yes"\n')
    assert main([*ONE, "--claim", str(claim)]) == 4
    assert capsys.readouterr().out.startswith("NOT CERTIFIED")
    assert main([*ONE, "--claim", str(claim), "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["broken_assumptions"]
