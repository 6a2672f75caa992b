"""Every sampling scheme as a user reaches it: `hs.dpsgd`, the options of the commands, calibration."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status

STEP = hs.Gaussian(2.0)
SIZES = {"batch_size": 10, "population": 100}
RUNS: dict[str, tuple[dict[str, Any], Any]] = {
    "poisson": (SIZES, STEP.poisson(0.1) * 20),
    "without-replacement": (SIZES, STEP.without_replacement(**SIZES) * 20),
    "shuffled": (SIZES, STEP.shuffled(**SIZES) * 2),
    "random-allocation": ({"round_steps": 10}, STEP.random_allocation(steps=10) * 2),
    "balls-in-bins": ({"round_steps": 10}, STEP.balls_in_bins(bins=10, epochs=2) * 1),
    "cut-batches": ({**SIZES, "largest_batch": 20}, STEP.poisson(0.1, largest_batch=20, population=100) * 20),
    "micro-batches": ({"rate": 0.1, "micro_batches": 3}, STEP.poisson(0.1, micro_batches=3) * 20),
}


def options(sampler: dict[str, Any]) -> list[str]:
    return [word for name, value in sampler.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == Status.OK
    shown = capsys.readouterr()
    assert shown.err == ""
    document: dict[str, Any] = json.loads(shown.out)
    return document


@pytest.mark.parametrize("scheme", RUNS)
def test_python_the_command_line_and_a_saved_file_mean_the_same_run(
    scheme: str, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    sampler, run = RUNS[scheme]
    assert hs.dpsgd.run(2.0, 20, sampling=scheme, **sampler) == run
    file = str(tmp_path / "run.toml")
    said = ["--noise-multiplier", "2", "--steps", "20", "--delta", "1e-3", "--sampling", scheme, "--tolerance", "0.1"]
    document = printed(capsys, "dpsgd", *said, *options(sampler), "--save", file)
    assert hs.spec.from_document(document["specification"]).composition == run
    assert hs.spec.load(file).composition == run


def test_several_selected_steps_of_a_round_mean_the_same_run_everywhere(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    sampler, run = {"round_steps": 10, "selected": 10}, STEP.random_allocation(steps=10, selected=10) * 2
    assert hs.dpsgd.run(2.0, 20, sampling="random-allocation", **sampler) == run
    file, said = str(tmp_path / "run.toml"), ["--noise-multiplier", "2", "--sampling", "random-allocation"]
    printed(capsys, "dpsgd", *said, "--steps", "20", "--delta", "1e-3", *options(sampler), "--save", file)
    assert hs.spec.load(file).composition == run
    for wrong, says in (
        (["--round-steps", "5", "--selected", "6", "--steps", "20"], "only 5"),
        (["--batch-size", "5", "--population", "50", "--selected", "2", "--steps", "20"], "with --round-steps"),
        (["--round-steps", "5", "--selected", "2", "--epochs", "20"], "needs --steps"),
    ):
        assert main(["dpsgd", *said, "--delta", "1e-3", *wrong]) == Status.BAD_INPUT
        assert says in capsys.readouterr().err
    with pytest.raises(ValueError, match="at most steps"):
        hs.dpsgd.run(2.0, 20, sampling="random-allocation", round_steps=5, selected=6)


@pytest.mark.parametrize("scheme", ["random-allocation", "balls-in-bins"])
def test_sizes_of_whole_batches_are_the_steps_of_a_round(scheme: str) -> None:
    assert hs.dpsgd.run(2.0, 20, sampling=scheme, **SIZES) == RUNS[scheme][1]


@pytest.mark.parametrize(("scheme", "epochs"), [(name, 2) for name in RUNS if name != "micro-batches"])
def test_epochs_are_passes_over_the_data(scheme: str, epochs: int, capsys: pytest.CaptureFixture[str]) -> None:
    sampler, run = RUNS[scheme]
    said = ["--noise-multiplier", "2", "--epochs", str(epochs), "--delta", "1e-3", "--sampling", scheme]
    document = printed(capsys, "dpsgd", *said, "--tolerance", "0.1", "--by-epoch", *options(sampler))
    assert hs.spec.from_document(document["specification"]).composition == run
    last = document["by_epoch"][-1]
    assert (last["epoch"], last["steps"]) == (2.0, 20)
    assert last["epsilon"][0]["upper"] == document["results"][0]["upper"]
    first = document["by_epoch"][0]["epsilon"][0]
    assert first["upper"] < last["epsilon"][0]["lower"] or scheme == "shuffled"


@pytest.mark.parametrize(
    ("scheme", "sampler", "found"),
    [
        pytest.param("balls-in-bins", {"round_steps": 10}, "noise_multiplier", marks=pytest.mark.torture),
        pytest.param("balls-in-bins", {"round_steps": 10}, "epochs", marks=pytest.mark.torture),
        pytest.param("shuffled", SIZES, "noise_multiplier", marks=pytest.mark.torture),
        pytest.param("shuffled", SIZES, "count", marks=pytest.mark.torture),
        ("micro-batches", {"micro_batches": 3, "population": 100}, "batch_size"),
    ],
)
def test_calibration_proves_what_it_finds(
    scheme: str, sampler: dict[str, Any], found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ["calibrate", "--epsilon", "3", "--delta", "1e-3", "--precision", "0.01", "--sampling", scheme]
    said += [] if found == "noise_multiplier" else ["--noise-multiplier", "2"]
    said += [] if found in {"count", "epochs"} else ["--steps", "20"]
    document = printed(capsys, *said, *options(sampler))
    assert document["found"] == found
    run = hs.spec.from_document(document["specification"])
    assert document["at_value"]["upper"] <= 1e-3
    assert run.curve.delta(3.0).sides[1] <= 1e-3
    assert document["unsafe"] is not None
    assert document["at_unsafe"]["lower"] > 1e-3


def test_the_ends_of_what_no_bracket_decides_are_found() -> None:
    """Shuffled epochs: between the two sides lies a factor, and both ends of the open range are next to it."""
    found = hs.dpsgd.steps_for(
        epsilon=8.0, delta=1e-5, noise_multiplier=1.0, sampling="shuffled", adjacency="zero-out", **SIZES
    )

    def delta(epochs: int) -> Any:
        return hs.account(hs.Gaussian(1.0).shuffled(**SIZES) * epochs, "zero-out", tolerance=0.1).delta(8.0)

    epochs, missed = found.value // 10, (found.unsafe or 0) // 10
    assert delta(int(epochs)).upper <= 1e-5 < delta(int(epochs) + 1).upper
    assert delta(int(missed) - 1).lower <= 1e-5 < delta(int(missed)).lower


@pytest.mark.parametrize("round_steps", [0, -1, 2.5, "x", [3]])
def test_steps_in_a_round_that_are_no_number_are_refused_by_name(round_steps: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="round_steps must be an integer of at least 1"):
        hs.dpsgd.steps_for(
            epsilon=1.0, delta=1e-5, noise_multiplier=2.0, sampling="random-allocation", round_steps=round_steps
        )


def test_steps_are_python_integers() -> None:
    found = hs.dpsgd.steps_for(
        epsilon=1.0, delta=1e-2, noise_multiplier=2.0, sampling="random-allocation", round_steps=np.int64(1)
    )
    assert type(found.value) is type(found.unsafe) is int


def test_one_rate_beside_several_is_refused() -> None:
    with pytest.raises(TypeError, match="no rate beside"):
        hs.dpsgd.noise_multipliers_for(epsilon=1.0, delta=1e-5, steps=10, rates=[0.1], rate=0.2)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"sampling": "random-allocation"}, "needs round_steps"),
        ({"sampling": "random-allocation", "round_steps": 7}, "multiple of 7"),
        ({"sampling": "random-allocation", "round_steps": 40}, "multiple of 40"),
        ({"sampling": "random-allocation", "round_steps": 10, "rate": 0.1}, "no rate"),
        ({"sampling": "balls-in-bins", "round_steps": 10, **SIZES}, "round_steps alone"),
        ({"sampling": "balls-in-bins", "batch_size": 3, "population": 50}, "multiple of batch_size"),
        ({"sampling": "poisson", "rate": 0.1, "round_steps": 10}, "round_steps is for sampling random-allocation"),
        ({"sampling": "balls-in-bins", "round_steps": 10, "selected": 2}, "selected is for sampling random-allocation"),
        ({"sampling": "random-allocation", **SIZES, "selected": 2}, "with round_steps"),
        ({"sampling": "cut-batches", "rate": 0.1}, "needs largest_batch"),
        ({"sampling": "cut-batches", "rate": 0.1, "largest_batch": 5}, "population"),
        ({"sampling": "micro-batches", "rate": 0.1}, "needs micro_batches"),
        ({"sampling": "shuffled", "rate": 0.1}, "batch_size and population"),
        ({"sampling": "poission", "rate": 0.1}, "sampling must be one of"),
    ],
)
def test_what_a_scheme_does_not_take_is_refused_by_name(arguments: dict[str, Any], error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        hs.dpsgd.run(1.0, 20, **arguments)


def test_steps_in_a_round_are_found() -> None:
    found = hs.dpsgd.round_steps_for(
        epsilon=3.0, delta=1e-5, noise_multiplier=1.0, epochs=1, sampling="balls-in-bins", within=(4, 6)
    )
    assert (found.value, found.unsafe) == (5, 4)


def test_compare_writes_one_run_under_every_sampler(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'steps = [{ mechanism = "gaussian", noise_multiplier = 2.0, count = 20,'
        ' sampling = { scheme = "poisson", batch_size = 10, population = 100 } }]\nguarantee = { delta = 1e-3 }\n',
        encoding="utf-8",
    )
    names = ["poisson", "balls-in-bins", "cut-batches:largest_batch=20", "micro-batches:micro_batches=2"]
    document = printed(capsys, "compare", str(path), "--accountants", "automatic", "--samplings", ";".join(names))
    for row, run in zip(
        document["rows"],
        (RUNS["poisson"][1], RUNS["balls-in-bins"][1], RUNS["cut-batches"][1], STEP.poisson(0.1, micro_batches=2) * 20),
        strict=True,
    ):
        least, most = hs.account(run).epsilon(1e-3).sides
        assert (row["result"]["lower"], row["result"]["upper"]) == (float(least), float(most))
    for wrong, says in (
        ("cut-batches", "needs largest_batch"),
        ("cut-batches:largest_batch=200", "at most population"),
        ("poisson:colour=2", "has no parameter 'colour'"),
        ("balls-in-bins:bins=7", "needs epochs"),
        ("random-allocation:steps=7", "not a whole number of epochs"),
    ):
        assert main(["compare", str(path), "--samplings", wrong]) == Status.BAD_INPUT
        assert says in capsys.readouterr().err
