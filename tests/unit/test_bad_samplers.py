"""What no sampler and no strategy matrix can be: a clear error each, in Python, in a file, on the command line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status
from hockeystick.composition import Composition
from hockeystick.laws.run_count import PoissonCount
from hockeystick.mechanisms.best_of import BestOf

STEP = hs.Gaussian(1.0)

# what is wrong: how Python is asked, the scheme and parameters of a file, the command line's options, what each says
Case = tuple[Callable[[], object], str, str, str]
CASES: dict[str, Case] = {
    "no steps in a round": (
        lambda: STEP.random_allocation(steps=0),
        "random-allocation, steps = 0",
        "random-allocation --round-steps 0 --steps 10",
        "steps",
    ),
    "half a step in a round": (
        lambda: STEP.random_allocation(steps=2.5),  # type: ignore[arg-type]
        "random-allocation, steps = 2.5",
        "random-allocation --round-steps 2.5 --steps 10",
        "steps",
    ),
    "no bins": (
        lambda: STEP.balls_in_bins(bins=0),
        "balls-in-bins, bins = 0",
        "balls-in-bins --round-steps 0 --steps 10",
        "bins|round-steps",
    ),
    "no epochs on bins": (
        lambda: STEP.balls_in_bins(bins=5, epochs=0),
        "balls-in-bins, bins = 5, epochs = 0",
        "balls-in-bins --round-steps 5 --epochs 0",
        "epochs",
    ),
    "a largest batch of none": (
        lambda: STEP.poisson(0.1, largest_batch=0, population=10),
        "cut-batches, rate = 0.1, largest_batch = 0, population = 10",
        "cut-batches --rate 0.1 --largest-batch 0 --population 10 --steps 10",
        "largest.batch",
    ),
    "a largest batch of more than all": (
        lambda: STEP.poisson(0.1, largest_batch=11, population=10),
        "cut-batches, rate = 0.1, largest_batch = 11, population = 10",
        "cut-batches --rate 0.1 --largest-batch 11 --population 10 --steps 10",
        "largest.batch",
    ),
    "batches cut from all records": (
        lambda: STEP.poisson(1.0, largest_batch=5, population=10),
        "cut-batches, rate = 1.0, largest_batch = 5, population = 10",
        "cut-batches --rate 1 --largest-batch 5 --population 10 --steps 10",
        "fixed size",
    ),
    "no micro-batches": (
        lambda: STEP.poisson(0.1, micro_batches=0),
        "micro-batches, rate = 0.1, micro_batches = 0",
        "micro-batches --rate 0.1 --micro-batches 0 --steps 10",
        "micro.batches",
    ),
    "too many micro-batches": (
        lambda: STEP.poisson(0.1, micro_batches=257),
        "micro-batches, rate = 0.1, micro_batches = 257",
        "micro-batches --rate 0.1 --micro-batches 257 --steps 10",
        "at most 256",
    ),
    "a batch larger than the data": (
        lambda: STEP.without_replacement(batch_size=11, population=10),
        "without-replacement, batch_size = 11, population = 10",
        "without-replacement --batch-size 11 --population 10 --steps 10",
        "population",
    ),
    "shuffled batches that do not come out even": (
        lambda: STEP.shuffled(batch_size=3, population=10),
        "shuffled, batch_size = 3, population = 10",
        "shuffled --batch-size 3 --population 10 --epochs 2",
        "multiple|full batches",
    ),
} | {
    f"{scheme}, rate {rate}": (
        lambda rate=rate, more=more: STEP.poisson(float(rate), **more),  # type: ignore[misc]
        f"{scheme}, rate = {rate}" + "".join(f", {name} = {value}" for name, value in more.items()),
        f"{scheme} --rate={rate} --steps 10"
        + "".join(f" --{name.replace('_', '-')} {value}" for name, value in more.items()),
        "rate",
    )
    for scheme, more in (
        ("poisson", {}),
        ("cut-batches", {"largest_batch": 5, "population": 10}),
        ("micro-batches", {"micro_batches": 2}),
    )
    for rate in ("0.0", "-0.5", "1.5", "nan")
}


@pytest.mark.parametrize("name", CASES)
def test_what_no_scheme_can_be_is_refused_everywhere(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask, written, options, says = CASES[name]
    with pytest.raises((TypeError, ValueError), match=says):
        ask()
    scheme, _, parameters = written.partition(", ")
    table = f'{{ scheme = "{scheme}", {parameters} }}'
    with pytest.raises(hs.spec.SpecificationError, match=says):
        hs.spec.read(f'steps = [{{ mechanism = "gaussian", noise_multiplier = 1.0, sampling = {table} }}]')
    assert main(f"dpsgd --noise-multiplier 1 --delta 1e-3 --sampling {options}".split()) == Status.BAD_INPUT
    error = capsys.readouterr().err.strip()
    assert error.startswith("hockeystick")
    assert len(error.splitlines()) == 1
    with pytest.raises(ValueError, match=says):
        raise ValueError(error)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("random-allocation --round-steps 7 --steps 20", "whole passes.*of 7 steps"),
        ("balls-in-bins --round-steps 7 --steps 20", "whole passes.*of 7 steps"),
        ("random-allocation --round-steps 7 --epochs 2.5", "whole passes"),
        ("shuffled --batch-size 5 --population 10 --steps 3", "whole passes.*of 2 steps"),
        ("random-allocation --steps 20", "needs either --round-steps"),
        ("random-allocation --round-steps 5 --rate 0.2 --steps 20", "instead of --rate"),
        ("random-allocation --round-steps 5 --largest-batch 3 --steps 20", "is not for"),
        ("balls-in-bins --batch-size 3 --population 10 --epochs 2", "full batches"),
        ("poisson --rate 0.1 --round-steps 5 --steps 20", "--round-steps is for"),
        ("cut-batches --rate 0.1 --population 10 --steps 20", "needs --largest-batch"),
        ("cut-batches --rate 0.1 --largest-batch 5 --steps 20", "needs --population"),
        ("micro-batches --rate 0.1 --steps 20", "needs --micro-batches"),
    ],
)
def test_runs_that_fit_no_scheme_are_one_line(options: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"dpsgd --noise-multiplier 1 --delta 1e-3 --sampling {options}".split()) == Status.BAD_INPUT
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    with pytest.raises(ValueError, match=says):
        raise ValueError(error)


TWO_BANDS = [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.5, 1.0]]


@pytest.mark.parametrize(
    ("strategy", "more", "says"),
    [
        ([[1.0, 0.5], [0.0, 1.0]], {}, r"lower triangular, but entry \(0, 1\) is 0.5"),
        ([[1.0, 0.0]], {}, r"square matrix, got shape \(1, 2\)"),
        ([1.0, 2.0], {}, "square matrix"),
        ([[1.0, 0.0], [0.0, 0.0]], {}, "column 1"),
        ([[math.nan]], {}, "NaN"),
        ([[math.inf]], {}, "infinite"),
        ([["1"]], {}, "integers or float64s"),
        (TWO_BANDS, {"participation": "min-separation", "separation": 1}, "strategy of 2 bands"),
        (TWO_BANDS, {"participation": "min-separation", "separation": 0}, "separation"),
        (TWO_BANDS, {"participation": "min-separation"}, "separation"),
        (TWO_BANDS, {"participation": "min-separation", "separation": 2, "participations": 0}, "participations"),
        (TWO_BANDS, {"participation": "fixed-epochs", "separation": 1.5}, "separation"),
        (TWO_BANDS, {"separation": 2}, "separation is for"),
        (TWO_BANDS, {"participation": "twice"}, "participation must be one of"),
    ],
)
def test_strategies_that_are_not_as_said_are_refused(strategy: Any, more: dict[str, Any], says: str) -> None:
    for ask in (hs.strategy_sensitivity, lambda given, **named: hs.matrix_mechanism(given, 1.0, **named)):
        with pytest.raises((TypeError, ValueError), match=says):
            ask(strategy, **more)


@pytest.mark.parametrize(
    ("strategy", "rate", "separation", "says"),
    [
        (TWO_BANDS, 0.1, 1, "strategy of 2 bands"),
        (TWO_BANDS, 0.0, 2, "rate"),
        (TWO_BANDS, 1.0, 2, "below 1"),
        (TWO_BANDS, math.nan, 2, "NaN"),
        (TWO_BANDS, 0.1, 0, "separation"),
        ([[1.0, 1.0], [0.0, 1.0]], 0.1, 2, "lower triangular"),
    ],
)
def test_cyclic_runs_of_what_is_not_banded_are_refused(strategy: Any, rate: float, separation: int, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        hs.cyclic_matrix_mechanism(strategy, 1.0, rate=rate, separation=separation)


def test_a_round_that_no_lattice_tells_apart_names_what_to_account_in_its_place() -> None:
    release = hs.Gaussian(3e16)
    with pytest.raises(hs.PrecisionError, match="one step for every round is an upper bound"):
        hs.account(release.random_allocation(steps=100) * 20).epsilon(delta=1e-5)
    assert hs.account(release * 20).epsilon(delta=1e-5).upper < 1e-6


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
def test_the_limits_of_the_schemes_are_what_they_should_be_to_the_bit(adjacency: str) -> None:
    def sides(run: Composition) -> tuple[Any, Any]:
        return hs.account(run, adjacency).epsilon(1e-5).sides

    for run in (
        STEP.random_allocation(steps=1) * 3,
        STEP.poisson(1.0, micro_batches=1) * 3,
        STEP.poisson(1.0, largest_batch=7, population=7) * 3,
    ):
        assert sides(run) == sides(STEP * 3)
    for run in (STEP.poisson(0.1, micro_batches=1) * 3, STEP.poisson(0.1, largest_batch=50, population=50) * 3):
        assert sides(run) == sides(STEP.poisson(0.1) * 3)
    low, high = sides(STEP.balls_in_bins(bins=1) * 1)
    least, most = sides(STEP * 1)
    assert max(low, least) <= min(high, most)
    assert abs(high - most) <= 1e-14 * most  # one step of a pair and its reverse: rounding alone


@pytest.mark.parametrize(
    "inner",
    [
        STEP.without_replacement(batch_size=10, population=100),
        STEP.shuffled(batch_size=10, population=100),
        hs.RandomizedResponse(0.75).shuffled_reports(people=1000),
    ],
)
def test_no_sample_has_the_number_of_records_stated_for_all(inner: hs.Step) -> None:
    for around in (
        lambda step: hs.sampling.Poisson(step, 0.1),
        lambda step: hs.sampling.WithoutReplacement(step, 10, 100),
        lambda step: hs.sampling.RandomAllocation(step, 10),
        lambda step: hs.sampling.Poisson(BestOf(step * 2, PoissonCount(5.0)), 0.1),
    ):
        with pytest.raises(ValueError, match="stated number of records"):
            around(inner)
    with pytest.raises(TypeError, match="takes a step"):
        hs.sampling.Poisson(0.1, 0.1)  # type: ignore[arg-type]
