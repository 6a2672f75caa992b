"""``hockeystick calibrate``: the value brackets the known threshold; wrong input is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status

ADJACENT = ["--adjacency", "substitute"]
TARGET = ["calibrate", "--epsilon", "1", "--delta", "1e-6"]
TRUE_NOISE = 0.7876178  # at rate 0.001 and 10,000 steps, seven digits known

SPEC = """\
[[steps]]
mechanism = "laplace"
scale = 5
[[steps]]
mechanism = "gaussian"
noise_multiplier = 1.0
sampling = { scheme = "poisson", batch_size = 60, population = 60_000 }
count = 10_000
"""


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == Status.OK
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_noise_brackets_the_known_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    answer = found(capsys, *TARGET, "--rate", "0.001", "--steps", "10000")
    assert answer["unsafe"] <= TRUE_NOISE + 1e-7
    assert TRUE_NOISE - 1e-7 <= answer["value"] <= TRUE_NOISE * (1 + 1.1e-4)
    assert answer["at_value"]["upper"] <= 1e-6 <= answer["at_unsafe"]["upper"]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--rate", "0.001", "--noise-multiplier", "1"], "count"),
        (["--steps", "10000", "--noise-multiplier", "1"], "rate"),
        (["--steps", "10000", "--noise-multiplier", "1", "--examples", "60000"], "batch_size"),
    ],
)
def test_what_is_missing_is_found_and_meets_the_target(
    capsys: pytest.CaptureFixture[str], arguments: list[str], name: str
) -> None:
    answer = found(capsys, *TARGET, *arguments)
    assert answer["found"] == name
    assert answer["value"] < answer["unsafe"], "the largest safe value is found"
    assert answer["at_value"]["certified"] is True
    assert answer["at_value"]["upper"] <= 1e-6
    assert answer["at_unsafe"]["lower"] > 1e-6
    if name != "rate":
        assert answer["unsafe"] - answer["value"] == 1


def test_any_number_of_a_file_can_be_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC, encoding="utf-8")
    answer = found(capsys, *TARGET, str(path), "--find", "scale")
    assert answer["found"] == "scale"
    assert answer["specification"]["steps"][0]["scale"] == answer["value"] > answer["unsafe"]
    assert answer["at_value"]["upper"] <= 1e-6 < answer["at_unsafe"]["lower"]


def test_the_number_of_examples_can_be_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    sampling = "sampling = {scheme = 'poisson', batch_size = 500, population = 50_000}\ncount = 2000\n"
    path.write_text(f"[[steps]]\nmechanism = 'gaussian'\nnoise_multiplier = 1.0\n{sampling}", encoding="utf-8")
    answer = found(capsys, *TARGET, str(path), "--find", "population")
    assert 50_000 < answer["unsafe"] < answer["value"]
    assert answer["at_value"]["upper"] <= 1e-6 < answer["at_unsafe"]["lower"]


def test_options_stand_in_place_of_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text("[[steps]]\nmechanism = 'gaussian'\nnoise_multiplier = 1.0\n", encoding="utf-8")
    plain, doubled = (found(capsys, *TARGET, str(path), "--find", "noise_multiplier", *more) for more in ([], ADJACENT))
    assert doubled["specification"]["guarantee"]["adjacency"] == "substitute"
    assert doubled["unsafe"] <= 2.0 * plain["value"]
    assert 2.0 * plain["unsafe"] <= doubled["value"]


def test_upper_bounds_alone_prove_no_value_unsafe(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    run = "[[steps]]\nmechanism = 'gaussian'\nnoise_multiplier = 1.0\n[accountant]\nmethod = 'moments'\n"
    path.write_text(run, encoding="utf-8")
    assert main([*TARGET, str(path), "--find", "noise_multiplier"]) == Status.OK
    shown = capsys.readouterr().out
    assert "upper bounds alone" in shown
    assert "every value" not in shown


def test_the_value_is_shown_with_what_it_covers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TARGET, "--rate", "0.001", "--steps", "10000"]) == Status.OK
    shown = capsys.readouterr().out
    for said in (
        "noise multiplier = 0.7876",
        "meets epsilon 1 at delta 1e-6, ",
        "does not",
        "certified",
        "What it does not cover",
    ):
        assert said in shown


def test_an_unreachable_target_has_its_own_status(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    kinds = [
        "[[steps]]\nmechanism = 'gaussian'\nnoise_multiplier = 0.5\n",
        "[[steps]]\nmechanism = 'gaussian-dp'\nmu = 3\n",
    ]
    path.write_text("".join(kinds), encoding="utf-8")
    assert main([*TARGET, str(path), "--step", "1", "--find", "noise_multiplier"]) == Status.NO_ANSWER
    assert "no answer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["calibrate", "--epsilon", "1", "--rate", "0.1", "--steps", "5"], "one target"),
        (
            ["calibrate", "--mu", "1", "--epsilon", "1", "--delta", "1e-5", "--rate", "0.1", "--steps", "5"],
            "one target",
        ),
        ([*TARGET, "--rate", "0.001"], "missing: noise-multiplier, steps"),
        ([*TARGET, "--rate", "0.001", "--steps", "5", "--noise-multiplier", "1"], "missing: none"),
        ([*TARGET, "--rate", "0.001", "--steps", "5", "--find", "rate"], "to find: rate"),
        ([*TARGET, "{spec}"], "say what to --find: scale, count"),
        ([*TARGET, "{spec}", "--find", "scal"], "did you mean 'scale'"),
        ([*TARGET, "{spec}", "--step", "3", "--find", "scale"], "2 kinds of steps"),
        ([*TARGET, "nowhere.toml", "--find", "scale"], "cannot read nowhere.toml"),
        ([*TARGET, "{spec}", "--find", "scale", "--steps", "5"], "--steps describes a run"),
        ([*TARGET, "--rate", "0.001", "--steps", "5", "--precision", "nan"], "NaN"),
    ],
)
def test_wrong_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC, encoding="utf-8")
    assert main([argument.replace("{spec}", str(path)) for argument in arguments]) == Status.BAD_INPUT
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert said in printed.err


def test_the_probability_of_a_randomised_response_is_sought_above_that_of_a_guess(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "votes.toml"
    for categories in (2, 4):
        spec.write_text(
            f'[[steps]]\nmechanism = "randomized-response"\nprobability = 0.9\ncategories = {categories}\ncount = 3\n'
        )
        asked = ["calibrate", str(spec), "--epsilon", "1", "--delta", "1e-6", "--find", "probability", "--json"]
        assert main(asked) == Status.OK
        found = json.loads(capsys.readouterr().out)
        assert 1.0 / categories < found["value"] < found["unsafe"] < 0.6
