"""``hockeystick sweep``: one line a plan, rounded outward, and a status that says whether all are answered."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status
from hockeystick.sweep.plans import Plan, Row, rows_of

GRID = ["sweep", "--rate", "0.01", "--steps", "1000,2e3", "--delta", "1e-5"]


def test_the_table_rounds_outward(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GRID, "--noise-multiplier", "1,1.5"]) == Status.OK
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 4
    *_, lower, upper = lines[1].split()
    bound = hs.account(hs.Gaussian(1.0).poisson(0.01) * 2000).epsilon(1e-5)
    assert float(lower) <= bound.sides[0] <= bound.sides[1] <= float(upper)
    assert float(upper) - float(lower) < 1.1e-5


def test_sampling_schemes_are_an_axis(capsys: pytest.CaptureFixture[str]) -> None:
    grid = ["sweep", "--noise-multiplier", "2", "--steps", "20", "--delta", "1e-3", "--tolerance", "0.1"]
    names = "poisson,without-replacement,random-allocation,balls-in-bins"
    assert main([*grid, "--sampling", names, "--batch-size", "10", "--population", "100"]) == Status.OK
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[1] for row in rows] == names.split(",")
    for name, row in zip(names.split(","), rows, strict=True):
        run = hs.dpsgd.run(2.0, 20, batch_size=10, population=100, sampling=name)
        bound = hs.account(run, tolerance=0.1).epsilon(1e-3)
        assert float(row[-2]) <= bound.sides[0] <= bound.sides[1] <= float(row[-1]) < 1.01 * bound.sides[1]
    assert main([*grid, "--sampling", "shuffled,poisson", "--batch-size", "10", "--population", "100"]) == Status.OK
    heads, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert "adjacency" in heads
    assert [row[5] for row in rows] == ["zero-out"] * 2  # as dpsgd takes it, and the same for all
    run = hs.dpsgd.run(2.0, 20, batch_size=10, population=100, sampling="shuffled")
    bound = hs.account(run, "zero-out", tolerance=0.1).epsilon(1e-3)
    assert float(rows[0][-2]) <= bound.sides[0] <= bound.sides[1] <= float(rows[0][-1]) < 1.01 * bound.sides[1]
    for wrong, says in (
        (["--sampling", "cut-batches", "--batch-size", "10", "--population", "100"], "must be one of"),
        (["--sampling", "poisson", "--rate", "0.1"], "instead of --rate"),
        (["--batch-size", "10"], "give either --rate"),
        (["--rate", "0.1", "--batch-size", "10", "--population", "100"], "give either --rate"),
    ):
        assert main([*grid, *wrong]) == Status.BAD_INPUT
        assert says in capsys.readouterr().err


def test_a_delta_that_is_not_below_one_over_n_is_not_certified(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--batch-size", "10", "--population", "1000", "--steps", "20", "--delta", "1e-3,1e-5"]
    for plans in (["--noise-multiplier", "2"], ["--epsilon", "1", "--tolerance", "1e-2"]):
        assert main(["sweep", *plans, *sizes]) == Status.NOT_CERTIFIED  # as dpsgd and calibrate say of the same
        shown = capsys.readouterr().out
        assert shown.startswith(
            "NOT CERTIFIED: an assumption of the accounting is broken\n  - delta 0.001 is not below"
        )
        *_, above, below = shown.splitlines()
        assert above.endswith("if every assumption held")
        assert not below.endswith("held")
        assert main(["sweep", *plans, *sizes, "--json"]) == Status.NOT_CERTIFIED
        first, second = json.loads(capsys.readouterr().out)["broken_assumptions"]
        assert first[0].startswith("delta 0.001 is not below 1/n = 0.001 for n = 1,000")
        assert second == []


def test_json_holds_the_whole_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GRID, "--noise-multiplier", "1", "--adjacency", "add", "--json"]) == Status.OK
    table = json.loads(capsys.readouterr().out)
    assert table["steps"] == [1000, 2000]
    assert table["adjacency"] == ["add", "add"]
    assert table["epsilon_upper"][0] == hs.account(hs.Gaussian(1.0).poisson(0.01) * 1000, "add").epsilon(1e-5).sides[1]


def test_the_noise_is_found_for_each_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GRID, "--epsilon", "1,2"]) == Status.OK
    heads, *lines = capsys.readouterr().out.splitlines()
    assert "noise multiplier from" in heads
    noises = [float(line.split()[-1]) for line in lines]
    assert noises[0] > noises[1]
    assert noises[2] > noises[3]
    assert main([*GRID, "--epsilon", "1,2", "--tolerance", "1e-2", "--json"]) == Status.OK
    table = json.loads(capsys.readouterr().out)
    sides = zip(table["noise_multiplier_lower"], table["noise_multiplier_upper"], strict=True)
    assert all(1e-5 < upper / lower - 1.0 < 1.1e-2 for lower, upper in sides)


def test_a_plan_without_an_answer_is_a_line_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--rate", "0.5", "--steps", "1,10", "--delta", "1e-5", "--noise-multiplier", "1e-9"]) == (
        Status.NO_ANSWER
    )
    assert "use more noise" in capsys.readouterr().out


def test_an_interrupted_sweep_shows_what_is_done_and_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    module, asked = sys.modules["hockeystick.sweep"], rows_of

    def interrupted(chunk: Sequence[Plan]) -> list[Row]:
        if chunk[0].run.steps[0][1] == 2000:  # type: ignore[union-attr]
            raise KeyboardInterrupt
        return asked(chunk)

    monkeypatch.setattr(module, "rows_of", interrupted)
    path = tmp_path / "rows.csv"
    for given, how in (
        ([], "rows kept with --file can be gone on with, by --resume"),
        (["--file", str(path)], f"--resume {path} goes on"),
        (["--resume", str(path), "--json"], f"--resume {path} goes on"),
    ):
        assert main([*GRID, "--noise-multiplier", "1", *given]) == Status.INTERRUPTED
        told = capsys.readouterr()
        assert told.err == f"hockeystick: interrupted: 1 of 2 plans were not asked; {how}\n"
        assert json.loads(told.out)["steps"] == [1000] if "--json" in given else len(told.out.splitlines()) == 2


def test_rows_are_kept_and_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "rows.csv")
    given = [*GRID, "--noise-multiplier", "1"]
    assert main([*given, "--file", path]) == Status.OK
    first = capsys.readouterr().out
    assert main([*given, "--resume", path]) == Status.OK
    assert capsys.readouterr().out == first
    assert main([*GRID, "--noise-multiplier", "2", "--resume", path]) == Status.BAD_INPUT
    assert "holds another sweep" in capsys.readouterr().err


def test_a_file_that_is_there_already_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("kept", encoding="utf-8")
    assert main([*GRID, "--noise-multiplier", "1", "--file", str(rows)]) == Status.BAD_INPUT
    assert capsys.readouterr().err == f"hockeystick: error: {rows} is there already: --resume {rows} goes on with it\n"
    assert rows.read_text(encoding="utf-8") == "kept"


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")  # which nobody can open
    for name, said in (("none/rows.csv", "there is no folder"), ("loop.csv", "Too many levels of symbolic links")):
        assert main([*GRID, "--noise-multiplier", "1", "--file", str(tmp_path / name)]) == Status.BAD_INPUT
        error = capsys.readouterr().err
        assert error.startswith(f"hockeystick: error: {tmp_path / name}")
        assert said in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (GRID, "give either --noise-multiplier, or --epsilon"),
        ([*GRID, "--noise-multiplier", "1", "--epsilon", "1"], "give either --noise-multiplier, or --epsilon"),
        ([*GRID, "--noise-multiplier", "1,-1"], "--noise-multiplier must be finite and above 0"),
        ([*GRID, "--noise-multiplier", "1", "--file", "rows.txt"], "ends in .csv or .parquet"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == Status.BAD_INPUT
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
