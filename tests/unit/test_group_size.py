"""A group's size in specifications, on the command line, and in what is said: the number and the words go together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.report.receipt import receipt
from hockeystick.app.report.words import relation_words, statement
from hockeystick.independent import NOT_REACHED, check

HOUSEHOLD = """
[[steps]]
mechanism = "discrete-laplace"
scale = 20.0
count = 4
[guarantee]
unit = "person"
group_size = 5
delta = 1e-6
"""


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def test_a_specification_counts_the_group(tmp_path: Path) -> None:
    one, five = (hs.spec.read(text) for text in (HOUSEHOLD.replace("group_size = 5\n", ""), HOUSEHOLD))
    assert five.group_size == 5
    assert five.curve.epsilon(1e-6).sides == hs.account(one.composition, group_size=5).epsilon(1e-6).sides
    assert five.curve.epsilon(1e-6).sides[0] > 4.9 * one.curve.epsilon(1e-6).sides[1]
    hs.spec.save(five, tmp_path / "again.toml")
    assert hs.spec.load(tmp_path / "again.toml") == five
    assert "group_size" not in hs.spec.to_toml(one)
    assert hs.spec.of_run(hs.Laplace(2.0), group_size=3).composition == (hs.Laplace(2.0) * 1).for_group(3)


def test_a_grouped_step_says_how_it_is_written() -> None:
    with pytest.raises(TypeError, match="group_size=3"):
        hs.spec.of_run(hs.Laplace(2.0).for_group(3))


def test_what_is_said_is_of_the_group() -> None:
    five = hs.spec.read(HOUSEHOLD)
    assert relation_words(five).startswith("add-remove: a group of up to 5 people added or removed")
    bound = five.curve.epsilon(1e-6)
    assert statement(five, "epsilon", 1e-6, bound).startswith("Adding or removing any group of up to 5 people changes")


def test_a_wrong_size_is_a_problem_of_its_line() -> None:
    for wrong in ("0", "2.5", '"5"', "true"):
        with pytest.raises(hs.spec.SpecificationError, match=r"8: group_size"):
            hs.spec.read(HOUSEHOLD.replace("group_size = 5", f"group_size = {wrong}"))


def test_the_command_line_changes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "household.toml"
    path.write_text(HOUSEHOLD)
    for size in (1, 3):
        found = json.loads(printed(capsys, "account", str(path), "--group-size", str(size), "--json"))
        known = hs.account(hs.DiscreteLaplace(20.0) * 4, group_size=size).epsilon(1e-6)
        assert (found["results"][0]["lower"], found["results"][0]["upper"]) == known.sides
    run = ("dpsgd", "--noise-multiplier", "4", "--rate", "0.1", "--steps", "20", "--delta", "1e-6")
    answer = json.loads(printed(capsys, *run, "--group-size", "3", "--by-epoch", "--json"))
    known = hs.account(hs.Gaussian(4.0).poisson(0.1) * 20, group_size=3).epsilon(1e-6)
    assert answer["results"][0]["upper"] == answer["by_epoch"][-1]["epsilon"][0]["upper"] == known.sides[1]
    asked = ("calibrate", "--epsilon", "1", "--delta", "1e-6", "--rate", "0.01", "--steps", "1000")
    noise = json.loads(printed(capsys, *asked, "--group-size", "4", "--json"))["value"]
    curve = hs.account(hs.Gaussian(noise).poisson(0.01) * 1000, group_size=4, tolerance=1e-6)
    assert curve.delta(1.0).sides[0] <= 1e-6 <= curve.delta(1.0).sides[1] * (1.0 + 1e-3)


def test_what_cannot_be_proved_again_is_said() -> None:
    findings = check(receipt(hs.spec.read(HOUSEHOLD)))
    assert findings
    assert all(finding.verdict == NOT_REACHED and "group of 5" in finding.reason for finding in findings)
