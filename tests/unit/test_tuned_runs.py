"""Tuning in specifications, receipts and commands: the best of many runs is what is accounted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status
from hockeystick.app.report.content import Content
from hockeystick.app.report.receipt import receipt
from hockeystick.app.report.verification import verify
from hockeystick.app.spec import SpecificationError, from_document, read, to_toml
from hockeystick.app.spec.cautions import cautions
from hockeystick.independent import NOT_REACHED, check

RUN = """[[steps]]
mechanism = "gaussian"
noise_multiplier = 2.0
count = 2
[tuning]
runs = "negative-binomial"
stopping = 0.2
[guarantee]
delta = 1e-6
"""
TUNED = hs.select_best(hs.Gaussian(2.0) * 2, count=hs.NegativeBinomialCount(0.2))


def test_the_best_of_many_runs_is_read_and_written() -> None:
    specification = read(RUN)
    assert specification.composition == TUNED * 1
    assert from_document(specification.document()) == specification
    assert read(to_toml(specification)) == specification
    made = hs.spec.of_run(TUNED, delta=1e-6)
    assert made.composition == TUNED * 1
    assert read(to_toml(made)).composition == TUNED * 1
    with pytest.raises(TypeError, match="cannot hold BestOf"):
        hs.spec.of_run(TUNED + hs.Gaussian(1.0), delta=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('"negative-binomial"', '"negative-binomal"', 6, "unknown runs"),
        ("stopping = 0.2\n", "", 5, "stopping is missing"),
        ("stopping = 0.2", "stopping = 2.0", 7, "stopping must be"),
        ("stopping = 0.2", "stopping = 0.2\nmean = 3", 8, "unknown key 'mean'"),
        ('runs = "negative-binomial"\n', "", 5, "runs is missing"),
    ],
)
def test_a_wrong_table_is_a_problem_at_its_line(old: str, new: str, line: int, said: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        read(RUN.replace(old, new))
    problems = refused.value.problems
    assert problems[0].line == line
    assert said in problems[0].message


def test_a_receipt_states_the_cost_of_tuning_in_place_of_the_caution() -> None:
    specification = read(RUN)
    assert "tuning-unstated" not in {caution.name for caution in cautions(specification)}
    assert "tuning-unstated" in {caution.name for caution in cautions(hs.spec.of_run(hs.Gaussian(2.0) * 2, delta=1e-6))}
    made = receipt(specification)
    once = hs.account(hs.Gaussian(2.0) * 2).epsilon(1e-6)
    (result,) = made["results"]
    assert result["upper"] == hs.account(TUNED).epsilon(1e-6).upper > 1.25 * float(once.upper)  # type: ignore[union-attr]
    assert "of the best run" in result["statement"]
    rows = {row.name: row.text for row in Content(made).guarantee()}
    assert "5 on average" in rows["Tuning"]
    assert verify(made).holds
    assert {finding.verdict for finding in check(made)} == {NOT_REACHED}


def test_commands_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "tuned.toml"
    run = ["dpsgd", "--noise-multiplier", "2", "--rate", "1", "--steps", "2", "--delta", "1e-6"]
    tuned = ["--tuning", "negative-binomial:stopping=0.2"]
    assert main([*run, *tuned, "--json", "--save", str(saved)]) == Status.OK
    (first,) = json.loads(capsys.readouterr().out)["results"]
    assert main(["account", str(saved), "--json"]) == Status.OK
    (second,) = json.loads(capsys.readouterr().out)["results"]
    upper = hs.account(TUNED).epsilon(1e-6).upper  # type: ignore[union-attr]
    assert first["upper"] == second["upper"] == upper
    assert main(["account", str(saved)]) == Status.OK
    assert "5 on average" in capsys.readouterr().out
    for wrong, says in ((["--tuning", "poisson"], "mean is missing"), ([*tuned, "--by-epoch"], "about one run")):
        assert main([*run, *wrong]) == Status.BAD_INPUT
        assert says in capsys.readouterr().err
