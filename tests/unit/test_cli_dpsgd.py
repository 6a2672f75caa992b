"""``hockeystick dpsgd``: the answer contains the truth and says what it covers; bad input is one line and status 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status
from hockeystick.decimals import rounded_up

RUN = ["dpsgd", "--noise-multiplier", "1.0", "--rate", "0.01", "--steps", "2000"]
TRUE_EPSILON = 2.583841181692741  # at delta 1e-5, six digits known


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main([*arguments, "--json"]) == Status.OK
    printed = capsys.readouterr()
    assert printed.err == ""
    results: list[dict[str, object]] = json.loads(printed.out)["results"]
    assert len(results) == 1
    return results[0]


def test_json_answer_contains_the_known_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, *RUN, "--delta", "1e-5")
    assert result["certified"] is True
    assert float(str(result["lower"])) <= TRUE_EPSILON <= float(str(result["upper"]))
    assert float(str(result["width"])) <= 1e-3


def test_tolerance_narrows_the_bracket(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, *RUN, "--delta", "1e-5", "--tolerance", "1e-5")
    assert float(str(result["width"])) <= 1e-5


def test_batch_size_and_examples_are_the_rate(capsys: pytest.CaptureFixture[str]) -> None:
    by_rate = answer(capsys, *RUN, "--delta", "1e-5")
    sized = [*RUN[:3], "--batch-size", "500", "--examples", "50_000", "--steps", "2e3"]
    by_size = answer(capsys, *sized, "--delta", "1e-5")
    assert (by_rate["lower"], by_rate["upper"]) == (by_size["lower"], by_size["upper"])


def test_epsilon_asks_for_delta(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, *RUN, "--epsilon", str(TRUE_EPSILON))
    assert result["quantity"] == "delta"
    assert float(str(result["lower"])) <= 1e-5 * (1 + 1e-5)
    assert float(str(result["upper"])) >= 1e-5 * (1 - 1e-5)


def test_infinite_epsilon_is_valid_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, *RUN, "--delta", "0")["upper"] == "inf"


@pytest.mark.parametrize(
    "said",
    ["2.5839", "certified", "add-remove", "one example", "Poisson", "2,000", "clipping norm", "tuning", "shuffled"],
)
def test_text_says_what_is_included(capsys: pytest.CaptureFixture[str], said: str) -> None:
    assert main([*RUN, "--delta", "1e-5"]) == Status.OK
    assert said in capsys.readouterr().out


def test_printed_epsilon_is_rounded_up(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, *RUN, "--delta", "1e-5")
    assert main([*RUN, "--delta", "1e-5"]) == Status.OK
    headline = capsys.readouterr().out.splitlines()[0]
    printed = float(headline.removeprefix("(").split(",")[0])
    assert float(str(result["upper"])) <= printed <= float(str(result["upper"])) * 1.0001


def test_delta_above_one_over_n_is_cautioned(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--delta", "1e-4", "--examples", "50000"]) == Status.NOT_CERTIFIED
    shown = capsys.readouterr().out
    assert shown.startswith("NOT CERTIFIED: an assumption of the accounting is broken\n")
    assert "not below 1/n" in shown
    assert ", certified" not in shown
    assert main([*RUN, "--delta", "1e-6", "--examples", "50000"]) == Status.OK
    assert "not below 1/n" not in capsys.readouterr().out


BAD = {
    "NaN noise": ["--noise-multiplier", "nan"],
    "negative noise": ["--noise-multiplier", "-1"],
    "negative noise in scientific notation": ["--noise-multiplier", "-1e-3"],
    "infinite noise": ["--noise-multiplier", "inf"],
    "zero noise": ["--noise-multiplier", "0"],
    "rate 0": ["--rate", "0"],
    "rate above 1": ["--rate", "1.5"],
    "NaN rate": ["--rate", "nan"],
    "no steps": ["--steps", "0"],
    "negative steps": ["--steps", "-5"],
    "fractional steps": ["--steps", "1.5"],
    "float steps": ["--steps", "2000.5"],
    "fractional power": ["--steps", "1.5e0"],
    "NaN steps": ["--steps", "nan"],
    "delta above 1": ["--delta", "2"],
    "negative delta": ["--delta", "-1e-5"],
    "NaN delta": ["--delta", "nan"],
    "delta no number": ["--delta", "small"],
    "unknown adjacency": ["--adjacency", "neighbour"],
    "tolerance 0": ["--tolerance", "0"],
    "rate and batch size": ["--batch-size", "500"],
    "delta and epsilon": ["--epsilon", "1"],
    "unknown option": ["--nosie", "1"],
    "unknown scheme": ["--sampling", "reservoir"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main([*RUN, "--delta", "1e-5", *arguments]) == Status.BAD_INPUT
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert arguments[0] in printed.err
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--delta", "1e-5"], "--rate"),
        (["--rate", "0.01"], "--delta"),
        (["--batch-size", "5", "--delta", "1e-5"], "--population"),
        (["--batch-size", "5", "--examples", "4", "--delta", "1e-5"], "only 4"),
    ],
)
def test_missing_input_is_named(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(["dpsgd", "--noise-multiplier", "1", "--steps", "10", *arguments]) == Status.BAD_INPUT
    assert said in capsys.readouterr().err


def test_a_misspelt_option_is_named_before_a_missing_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dpsgd", "--noise", "1", "--rate", "0.1", "--steps", "10", "--delta", "1e-5"]) == Status.BAD_INPUT
    error = capsys.readouterr().err
    assert "unknown option --noise; did you mean --noise-multiplier?" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--delta", "0"], "no finite epsilon holds at delta 0"),
        (["--delta", "1"], "(0, 1)-differential privacy, certified"),
    ],
)
def test_the_headline_says_what_is_known(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main([*RUN, *arguments]) == Status.OK
    assert said in capsys.readouterr().out


def test_sizes_are_grouped_alike(capsys: pytest.CaptureFixture[str]) -> None:
    sized = ["--batch-size", "1500", "--examples", "150000", "--steps", "2000", "--delta", "1e-6"]
    for scheme in ("poisson", "without-replacement"):
        assert main(["dpsgd", "--noise-multiplier", "2", *sized, "--sampling", scheme]) == Status.OK
        shown = " ".join(capsys.readouterr().out.split())
        assert "1,500 of 150,000" in shown or "1,500 out of 150,000" in shown


CUT = ["--population", "50000", "--sampling", "cut-batches", "--largest-batch", "600"]


@pytest.mark.parametrize(
    ("options", "scheme"),
    [
        (["--rate", "0.01", *CUT], "cut-batches"),
        (["--batch-size", "500", *CUT], "cut-batches"),
        (["--rate", "0.01", "--sampling", "micro-batches", "--micro-batches", "2"], "micro-batches"),
    ],
)
def test_samples_that_are_cut_or_drawn_apart_are_accounted_as_such(
    options: list[str], scheme: str, tmp_path: Path
) -> None:
    target = tmp_path / "run.toml"
    given = ["dpsgd", "--noise-multiplier", "1", "--steps", "100", "--delta", "1e-5", "--save", str(target)]
    assert main([*given, *options]) == 0
    step = hs.spec.read(target.read_text()).steps[0].step
    assert step == (
        hs.Gaussian(1.0).poisson(0.01, largest_batch=600, population=50_000)
        if scheme == "cut-batches"
        else hs.Gaussian(1.0).poisson(0.01, micro_batches=2)
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--rate", "0.01", "--micro-batches", "2"], "--micro-batches is not for poisson"),
        (["--rate", "0.01", "--save", "run.yaml"], "--save must end in .toml or .json"),
        (["--rate", "0.01", "--save", "-"], "--save must end in .toml or .json"),
        (["--rate", "0.01", "--steps", "1e300"], "--steps must be at most 10^100, got '1e300'"),
        (["--rate", "0.01", "--sampling", "cut-batches", "--largest-batch", "4"], "needs --population"),
        (["--rate", "0.01", "--sampling", "micro-batches"], "needs --micro-batches"),
    ],
)
def test_options_of_other_schemes_are_refused(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["dpsgd", "--noise-multiplier", "1", "--steps", "100", "--delta", "1e-5", *options])
    except SystemExit as stop:
        status = int(stop.code or 0)
    assert status != 0
    assert says in " ".join(capsys.readouterr().err.split())


def test_sizes_of_errors_are_rounded_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--delta", "1e-5", "--json"]) == Status.OK
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert main([*RUN, "--delta", "1e-5"]) == Status.OK
    shown = capsys.readouterr().out
    sizes = {"width": found["width"], **found["errors"]}
    for name, size in sizes.items():
        assert f"{name} {rounded_up(size, 2)}" in shown


def test_a_picture_that_cannot_be_written_is_named_by_its_own_command(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--by-epoch"]):
        assert main([*RUN, "--delta", "1e-5", "--plot", "nowhere/a.png", *more]) == Status.BAD_INPUT
        assert capsys.readouterr().err.startswith("hockeystick dpsgd: error: cannot write nowhere/a.png")
