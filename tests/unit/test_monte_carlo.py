"""Monte Carlo verification: intervals that hold, at any delta, with the same answer for the same seed."""

from __future__ import annotations

import math
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.accountants import MonteCarlo, samples_needed

CASES: dict[str, tuple[hs.Composition, str, float]] = {
    "gaussian": (hs.Gaussian(1.0) * 4, "remove", 16.0),
    "subsampled gaussian": (hs.Gaussian(1.0).poisson(0.01) * 10, "remove", 8.0),
    "subsampled gaussian, add": (hs.Gaussian(1.0).poisson(0.01) * 10, "add", 0.05),
    "subsampled laplace": (hs.Laplace(2.0).poisson(0.1) * 5, "remove", 0.2),
    "randomised response": (hs.RandomizedResponse(0.75) * 20, "remove", 15.0),
    "generic": (hs.ApproximateDP(0.1, 1e-6) * 10, "remove", 0.8),
    "joined": (hs.Gaussian(4.0).without_replacement(batch_size=1, population=20) * 3, "substitute", 0.2),
    "mixed": (hs.Gaussian(2.0) * 3 + hs.DiscreteLaplace(2.0).poisson(0.25) * 4, "remove", 4.0),
}


def estimate(run: hs.Composition, adjacency: str, epsilon: float, accountant: MonteCarlo) -> hs.Estimate:
    found = hs.account(run, adjacency, accountant=accountant).delta(epsilon=epsilon)
    assert isinstance(found, hs.Estimate)
    return found


def upper(run: hs.Composition, adjacency: str, epsilon: float) -> float:
    bound = hs.account(run, adjacency, tolerance=1e-4).delta(epsilon=epsilon)
    assert isinstance(bound, hs.Bound)
    return float(bound.upper)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("proposal", ["tilted", "plain"])
def test_the_interval_holds_the_certified_value(name: str, proposal: Any) -> None:
    """Confidence 1 - 1e-6 a case: sixteen cases raise a false alarm with probability below 2e-5."""
    run, adjacency, epsilon = CASES[name]
    found = estimate(run, adjacency, epsilon, MonteCarlo(50_000, seed=7, proposal=proposal, confidence=1 - 1e-6))
    exact = upper(run, adjacency, epsilon)
    assert abs(float(found.value) - exact) <= float(found.error) + 1e-4 * exact
    if proposal == "tilted":
        assert float(found.error) <= 0.3 * exact


def test_a_delta_of_1e_12_is_verified_with_a_million_samples() -> None:
    run = hs.Gaussian(1.0).poisson(0.05) * 6
    bound = hs.account(run, "remove", tolerance=1e-6).epsilon(delta=1e-12)
    assert isinstance(bound, hs.Bound)
    found = estimate(run, "remove", float(bound.upper), MonteCarlo(1_000_000, seed=2, confidence=0.999))
    assert abs(float(found.value) - 1e-12) <= float(found.error)
    assert float(found.error) <= 0.02e-12
    assert any("0.999" in note for note in found.notes)


def test_epsilon_is_found_within_its_interval() -> None:
    run = hs.Gaussian(1.0).poisson(0.05) * 6
    bound = hs.account(run, "remove").epsilon(delta=1e-9)
    found = hs.account(run, "remove", accountant=MonteCarlo(100_000, seed=4, confidence=1 - 1e-6)).epsilon(delta=1e-9)
    assert isinstance(bound, hs.Bound)
    assert isinstance(found, hs.Estimate)
    assert abs(float(found.value) - float(bound.upper)) <= float(found.error) + float(bound.width)
    assert float(found.error) <= 0.05


def test_the_same_seed_gives_the_same_answer_and_another_one_another() -> None:
    run = hs.Gaussian(1.0) * 2
    one, same, other = (estimate(run, "remove", 3.0, MonteCarlo(1000, seed=seed)) for seed in (1, 1, 2))
    assert one.value == same.value
    assert one.value != other.value


def test_intervals_shrink_like_the_root_of_the_number_of_samples() -> None:
    run = hs.Gaussian(1.0) * 2
    few, many = (estimate(run, "remove", 5.0, MonteCarlo(size, seed=1)) for size in (20_000, 320_000))
    assert 3.0 <= float(few.error) / float(many.error) <= 5.0


def test_progress_is_reported_after_every_chunk_and_memory_is_bounded() -> None:
    calls: list[tuple[int, int]] = []
    accountant = MonteCarlo(200_000, seed=1, progress=lambda done, total: calls.append((done, total)))
    estimate(hs.Gaussian(1.0) * 1, "remove", 1.0, accountant)
    assert [total for _, total in calls] == [200_000] * len(calls)
    assert [done for done, _ in calls] == [65_536, 131_072, 196_608, 200_000]


@pytest.mark.parametrize("scale", [3e-16, 1e-30])
def test_masses_whose_errors_are_beyond_float64_tell_nothing(scale: float) -> None:
    """Warnings are errors here."""
    few = estimate(hs.Laplace(scale) * 2, "remove", 1.0, MonteCarlo(100))
    assert 0.0 <= float(few.value) - float(few.error) <= 1.0 <= float(few.value) + float(few.error)


def test_the_ends_of_the_range() -> None:
    run = hs.ApproximateDP(0.5, 0.01) * 2
    beyond = estimate(run, "remove", 1.5, MonteCarlo(100))
    assert float(beyond.value) == pytest.approx(1 - 0.99**2, rel=1e-12, abs=0.0)
    assert beyond.error == 0.0
    at_infinity = hs.account(run, "remove", accountant=MonteCarlo(100)).epsilon(delta=[0.001, 1.0])
    assert list(at_infinity.value) == [math.inf, 0.0]  # type: ignore[union-attr,arg-type]


def test_the_number_of_samples_is_hoeffdings() -> None:
    """003, section 5, gives 3,342,306 for accuracy 0.001 and 40 epsilons: that is what a confidence of 0.9 needs."""
    assert samples_needed(1e-3, 0.9, epsilons=40) == 3_342_306
    assert samples_needed(1e-3, 0.99, epsilons=40) == 4_493_599
    assert samples_needed(0.1, 0.95) == math.ceil(math.log(40.0) / 0.02)
    assert 2 * 1e-40 * samples_needed(1e-20, 0.95) == pytest.approx(math.log(40.0), rel=1e-12)
    assert samples_needed(5e-324, 0.95) > samples_needed(1e-160, 0.95) > 10**320


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"samples": 10}, ValueError, "samples"),
        ({"samples": 1.5e6 + 0.5}, TypeError, "samples"),
        ({"seed": -1}, ValueError, "seed"),
        ({"confidence": 1.0}, ValueError, "confidence"),
        ({"confidence": math.nan}, ValueError, "NaN"),
        ({"proposal": "best"}, ValueError, "proposal"),
    ],
)
def test_bad_settings_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        MonteCarlo(**arguments)
    with pytest.raises(ValueError, match="accuracy"):
        samples_needed(0.0, 0.9)
