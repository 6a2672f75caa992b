"""Sensitivities of strategy matrices against every set of steps and every choice of signs; what the steps then are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick.composition import Composition
from hockeystick.mechanisms import CorrelatedNoise
from tests.closed_forms import gaussian_epsilon

Exact = list[list[Fraction]]


def lower_triangular(seed: int, n: int, bands: int, *, signed: bool = False) -> Any:
    rng = np.random.default_rng(seed)
    matrix = np.tril(rng.random((n, n)))
    matrix[np.subtract.outer(np.arange(n), np.arange(n)) >= bands] = 0.0
    return matrix * rng.choice([-1.0, 1.0], (n, n)) if signed else matrix


def sets(n: int, pattern: str, apart: int, times: int) -> Iterator[tuple[int, ...]]:
    """Every set of steps that a pattern allows."""
    for size in range(1, n + 1):
        for chosen in itertools.combinations(range(n), size):
            gaps = [b - a for a, b in itertools.pairwise(chosen)]
            if pattern == "single" and size == 1:
                yield chosen
            if pattern == "fixed-epochs" and all(gap % apart == 0 for gap in gaps):
                yield chosen
            if pattern == "min-separation" and size <= times and all(gap >= apart for gap in gaps):
                yield chosen


def brute_force(matrix: Any, pattern: str, apart: int, times: int) -> tuple[Fraction, Fraction]:
    """The largest squared norm of a sum of +- columns, and the largest sum of |G_ij|, over all sets; exact."""
    exact: Exact = [[Fraction(float(entry)) for entry in row] for row in matrix]
    n = len(exact)
    signs, sizes = [], []
    for chosen in sets(n, pattern, apart, times):
        for sign in itertools.product((1, -1), repeat=len(chosen)):
            moved = [sum(e * row[j] for e, j in zip(sign, chosen, strict=True)) for row in exact]
            signs.append(sum((x * x for x in moved), Fraction(0)))
        sizes.append(sum((abs(sum(row[i] * row[j] for row in exact)) for i in chosen for j in chosen), Fraction(0)))
    return max(signs), max(sizes)


CASES = [
    (seed, n, bands, pattern, apart, times)
    for seed in range(4)
    for n, bands, pattern, apart, times in (
        (5, 5, "single", 1, 1),
        (6, 6, "fixed-epochs", 2, 3),
        (6, 3, "fixed-epochs", 4, 2),
        (7, 2, "min-separation", 2, 4),
        (7, 2, "min-separation", 3, 2),
        (7, 3, "min-separation", 3, 1),
        (6, 1, "min-separation", 1, 4),
    )
]


def arguments(pattern: str, apart: int, times: int) -> dict[str, Any]:
    given: dict[str, Any] = {"participation": pattern}
    if pattern != "single":
        given["separation"] = apart
    if pattern == "min-separation":
        given["participations"] = times
    return given


@pytest.mark.parametrize(("seed", "n", "bands", "pattern", "apart", "times"), CASES)
def test_sensitivities_are_those_of_all_patterns(
    seed: int, n: int, bands: int, pattern: str, apart: int, times: int
) -> None:
    matrix = lower_triangular(seed, n, bands)
    found = hs.strategy_sensitivity(matrix, **arguments(pattern, apart, times))
    true, _ = brute_force(matrix, pattern, apart, times)
    assert Fraction(float(found.lower)) ** 2 <= true <= Fraction(float(found.upper)) ** 2
    assert found.upper <= np.nextafter(float(found.lower), np.inf)  # exact but for one rounding


@pytest.mark.parametrize(("seed", "n", "bands", "pattern", "apart", "times"), CASES)
def test_signed_entries_are_bracketed(seed: int, n: int, bands: int, pattern: str, apart: int, times: int) -> None:
    matrix = lower_triangular(seed, n, bands, signed=True)
    found = hs.strategy_sensitivity(matrix, **arguments(pattern, apart, times))
    least, most = brute_force(matrix, pattern, apart, times)
    assert Fraction(float(found.lower)) ** 2 <= least <= most <= Fraction(float(found.upper)) ** 2
    assert Fraction(np.nextafter(float(found.upper), 0.0)) ** 2 < most  # the sum of |G_ij|, rounded up once
    if pattern != "fixed-epochs":
        assert found.upper <= np.nextafter(float(found.lower), np.inf)


def test_known_sensitivities() -> None:
    ones = np.tril(np.ones((6, 6)))  # prefix sums: the column of step j has 6 - j ones
    assert float(hs.strategy_sensitivity(ones).upper) ** 2 == pytest.approx(6.0, rel=1e-15)
    twice = hs.strategy_sensitivity(ones, participation="fixed-epochs", separation=3)
    assert float(twice.upper) ** 2 == pytest.approx(6.0 + 3.0 + 2.0 * 3.0, rel=1e-15)
    identity = hs.strategy_sensitivity(np.eye(9), participation="min-separation", separation=1)
    assert identity.lower == identity.upper == 3.0


def test_the_step_is_gaussian_noise_over_the_sensitivity_rounded_down() -> None:
    matrix = lower_triangular(7, 6, 2)
    step = hs.matrix_mechanism(matrix, 2.0, participation="min-separation", separation=2, participations=2)
    square, _ = brute_force(matrix, "min-separation", 2, 2)
    noise = step.noise_multiplier
    assert Fraction(noise) ** 2 * square <= 4 < Fraction(np.nextafter(noise, np.inf)) ** 2 * square
    assert hs.matrix_mechanism(np.eye(5), 1.5) == hs.Gaussian(1.5)
    assert isinstance(hs.account(step, "substitute").epsilon(delta=1e-5), hs.Bound)


def test_cyclic_samples_cost_what_poisson_samples_of_fewer_steps_do() -> None:
    matrix = np.eye(9) + np.diag(np.full(8, 0.75), -1)  # two bands, columns of norm 1.25, but for the last
    run = hs.cyclic_matrix_mechanism(matrix, 2.5, rate=0.1, separation=3)
    assert isinstance(run, Composition)
    found, true = hs.account(run).epsilon(delta=1e-5), hs.account(hs.Gaussian(2.0).poisson(0.1) * 3).epsilon(delta=1e-5)
    assert (found.lower, found.upper) == (true.lower, true.upper)
    with pytest.raises(hs.UnknownPairError):
        hs.account(run, "substitute").epsilon(delta=1e-5)


@pytest.mark.parametrize("adjacency", ["remove", "add", "zero-out"])
def test_cyclic_brackets_contain_the_part_with_most_steps_where_its_last_column_is_shorter(adjacency: str) -> None:
    matrix = np.eye(10) + np.diag(np.full(9, 0.75), -1)  # of the part with four steps, the last column has norm 1
    found = hs.account(hs.cyclic_matrix_mechanism(matrix, 2.5, rate=0.1, separation=3), adjacency)
    truth = hs.account(hs.Gaussian(2.0).poisson(0.1) * 3 + hs.Gaussian(2.5).poisson(0.1), adjacency)
    for delta in (1e-3, 1e-9):
        bound, true = found.epsilon(delta=delta), truth.epsilon(delta=delta)
        assert bound.lower <= true.lower <= true.upper <= bound.upper
        assert bound.upper <= 1.3 * bound.lower


SIGNED = [[2.0, 0.0, 0.0], [-1.0, 2.0, 0.0], [-1.0, -1.0, 2.0]]  # squares 6, 5, 4 and products -1, -2, -2


@pytest.mark.parametrize(("adjacency", "moved"), [("add-remove", 1), ("substitute", 2)])
def test_brackets_contain_a_run_whose_columns_have_negative_products(adjacency: str, moved: int) -> None:
    """The largest of 15 - 2 <g1, g2> - 4 <g1 + g2, g3> is 21: with |g1 + g2|^2 = u it is 17 - u + 4 sqrt(u) at most."""
    step = hs.matrix_mechanism(SIGNED, 3.0, participation="fixed-epochs", separation=1)
    for members in (1, 2):
        curve = hs.account(step, adjacency, group_size=members)
        mu = moved * members * mpmath.sqrt(21) / 3
        for delta in (0.1, 1e-5, 1e-30):
            bound = curve.epsilon(delta=delta)
            assert bound.lower <= gaussian_epsilon(mu, delta) <= bound.upper
            assert bound.upper <= 1.8 * bound.lower


def test_contributions_of_opposite_signs_make_two_columns_exact() -> None:
    step = hs.matrix_mechanism([[1.0, 0.0], [-0.75, 1.0]], 2.0, participation="fixed-epochs", separation=1)
    assert isinstance(step, hs.Gaussian)
    assert Fraction(step.noise_multiplier) ** 2 * (Fraction(25, 16) + 1 + Fraction(3, 2)) <= 4


@pytest.mark.parametrize("known", [-0.1, 0.6, float("nan")])
def test_what_datasets_show_lies_between_nothing_and_the_most(known: float) -> None:
    with pytest.raises(ValueError, match="known_mu"):
        CorrelatedNoise(0.5, known)


def test_a_run_of_which_no_datasets_are_known_has_an_upper_side_alone() -> None:
    found, known = (hs.account(step).epsilon(delta=1e-5) for step in (CorrelatedNoise(0.5, 0.0), hs.GaussianDP(0.5)))
    assert (found.lower, found.upper) == (0.0, known.upper)


def test_the_norm_over_the_noise_is_rounded_up() -> None:
    run = hs.cyclic_matrix_mechanism([[1.0, 0.0], [1.0, 1.0]], 1.0, rate=0.1, separation=2)
    step: Any = run.steps[0][0]
    mu, known = step.mechanism.mu, step.mechanism.known_mu
    assert Fraction(known) ** 2 < 2 < Fraction(mu) ** 2
    assert mu == np.nextafter(known, np.inf)


SQUARE = [[1.0, 0.0], [0.5, 1.0]]


@pytest.mark.parametrize(
    ("matrix", "given", "error", "says"),
    [
        ([[1.0, 0.1], [0.0, 1.0]], {}, ValueError, "lower triangular, but entry"),
        ([[1.0, 0.0]], {}, ValueError, "square"),
        ([[[1.0]]], {}, ValueError, "square"),
        ([[1.0], [0.5, 1.0]], {}, ValueError, "square"),
        (np.empty((0, 0)), {}, ValueError, "square"),
        ([[1.0, 0.0], [0.0, 0.0]], {}, ValueError, "column of zeros"),
        ([[float("nan")]], {}, ValueError, "NaN"),
        ([["1"]], {}, TypeError, "real numbers|integers or float64s"),
        ([[1.0 + 2.0j]], {}, TypeError, "float64s"),
        (SQUARE, {"participation": "often"}, ValueError, "participation"),
        (SQUARE, {"separation": 2}, ValueError, "separation is for"),
        (SQUARE, {"participation": "fixed-epochs"}, ValueError, "need it"),
        (SQUARE, {"participation": "fixed-epochs", "separation": 0}, ValueError, "separation"),
        (SQUARE, {"participation": "fixed-epochs", "separation": 1, "participations": 2}, ValueError, "participations"),
        (SQUARE, {"participation": "min-separation", "separation": 1}, ValueError, "2 bands"),
        (
            SQUARE,
            {"participation": "min-separation", "separation": 2, "participations": 0},
            ValueError,
            "participations",
        ),
    ],
)
def test_bad_matrices_and_patterns_are_refused(
    matrix: Any, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    for call in (hs.strategy_sensitivity, lambda matrix, **given: hs.matrix_mechanism(matrix, 1.0, **given)):
        with pytest.raises(error, match=says):
            call(matrix, **given)


@pytest.mark.parametrize(
    ("rate", "separation", "noise", "says"),
    [
        (0.1, 1, 1.0, "2 bands"),
        (1.0, 2, 1.0, "below 1"),
        (0.0, 2, 1.0, "rate"),
        (0.1, 0, 1.0, "separation"),
        (0.1, 2, 0.0, "noise"),
    ],
)
def test_bad_cyclic_samples_are_refused(rate: float, separation: int, noise: float, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        hs.cyclic_matrix_mechanism(SQUARE, noise, rate=rate, separation=separation)


def test_a_known_distance_next_to_nothing_shows_nothing() -> None:
    bound = hs.account(CorrelatedNoise(1.0, 1e-200)).epsilon(1e-5)
    assert bound.lower == 0.0
    assert bound.upper == hs.account(hs.Gaussian(1.0)).epsilon(1e-5).upper


def test_runs_that_hide_everything_or_nothing_are_refused_by_name() -> None:
    signed = [[1.0, 0.0], [1.0, -1.0]]
    for noise in (1e-200, 1e200, 1e308):
        for call in (
            lambda noise: hs.matrix_mechanism(SQUARE, noise),
            lambda noise: hs.matrix_mechanism(signed, noise, participation="fixed-epochs", separation=1),
            lambda noise: hs.cyclic_matrix_mechanism(SQUARE, noise, rate=0.1, separation=2),
            lambda noise: CorrelatedNoise(noise, 0.0),
        ):
            with pytest.raises(ValueError, match="sensitivity over noise"):
                call(noise)
