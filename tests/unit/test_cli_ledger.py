"""``hockeystick ledger``: a year of a statistics office, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hockeystick.app.cli import main

pytest.importorskip("sqlalchemy")

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> str:
    monkeypatch.setenv("HOCKEYSTICK_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    path = tmp_path / "table.toml"
    path.write_text(
        'version = 1\n[[steps]]\nmechanism = "discrete-gaussian"\nsigma = 30.0\ncount = 20\n'
        '[guarantee]\nadjacency = "add-remove"\ndelta = 1e-6\n'
    )
    assert main(["ledger", "init"]) == 0
    assert main(["ledger", "add-dataset", "census", "--epsilon", "1", "--delta", "1e-6", "--unit", "household"]) == 0
    capsys.readouterr()
    return str(path)


def test_a_year_of_releases(table: str, capsys: Capture) -> None:
    assert main(["ledger", "would-fit", "census", table]) == 0
    assert main(["ledger", "remaining", "census", table]) == 0
    assert capsys.readouterr().out == "fits\n2\n"
    assert main(["ledger", "spend", "census", table, "--why", "Table 3"]) == 0
    assert main(["ledger", "reserve", "census", table, "--why", "Table 4"]) == 0
    assert "hockeystick ledger commit census 2" in capsys.readouterr().out
    assert main(["ledger", "would-fit", "census", table]) == 1
    assert main(["ledger", "spend", "census", table, "--why", "one too many"]) == 1
    assert "does not fit" in capsys.readouterr().err
    assert main(["ledger", "release", "census", "2", "--why", "it did not start"]) == 0
    assert main(["ledger", "total", "census", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert found["releases"] == 20
    assert 0.608 < found["lower"] <= found["upper"] < 0.609
    assert main(["ledger", "correct", "census", "1", "--why", "never published"]) == 0
    assert main(["ledger", "history", "census"]) == 0
    assert "it did not start" in capsys.readouterr().out
    assert main(["ledger", "verify"]) == 0
    assert main(["ledger", "export"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ledger"], "ACTION"),
        (["ledger", "total", "nowhere"], "there is no data set 'nowhere'; known are census"),
        (["ledger", "add-dataset", "census", "--mu", "1"], "there is a data set 'census' already"),
        (["ledger", "add-dataset", "other"], "a budget is epsilon and delta, or mu"),
        (["ledger", "add-dataset", "other", "--epsilon", "1"], "epsilon and delta go together"),
        (["ledger", "commit", "census", "7"], "has no entry 7"),
        (["ledger", "init"], "there is a ledger at"),
        (["ledger", "verify", "--ledger", "nonsense"], "cannot open a ledger at 'nonsense'"),
    ],
)
def test_bad_input_is_one_line(table: str, arguments: list[str], message: str, capsys: Capture) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_without_a_ledger_it_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.delenv("HOCKEYSTICK_LEDGER", raising=False)
    assert main(["ledger", "verify"]) == 2
    assert "give --ledger URL, or set HOCKEYSTICK_LEDGER" in capsys.readouterr().err
