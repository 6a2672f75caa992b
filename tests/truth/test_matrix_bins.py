"""Matrix mechanisms on fixed bins against simulation, quadrature, and the runs that they contain as limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

import hockeystick as hs
from hockeystick.laws.base import Pair
from hockeystick.mechanisms.matrix_bins import _above
from tests.closed_forms import gaussian_epsilon
from tests.quadrature import DIGITS, integral, normal_below, normal_density, panels


def banded(n: int, *bands: float) -> Any:
    return sum((np.diag(np.full(n - lag, entry), -lag) for lag, entry in enumerate(bands)), np.zeros((n, n)))


def gram(matrix: Any, noise: float, bins: int) -> Any:
    sums = np.stack([matrix[:, first::bins].sum(axis=1) for first in range(bins)], axis=1)
    return sums.T @ sums / noise**2


def simulated(
    covariance: Any, epsilons: Sequence[float], *, mirrored: bool, draws: int
) -> Iterator[tuple[float, float]]:
    """delta of the likelihood ratio of these bins, and Bernstein's bound on its error: a false alarm in 1e7."""
    rng, b = np.random.default_rng(1516), covariance.shape[0]
    values, vectors = np.linalg.eigh(covariance)
    x = rng.standard_normal((draws, b)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    if not mirrored:  # under P: one of the bins
        x += covariance[rng.integers(b, size=draws)]
    ratio = np.exp(x - 0.5 * covariance.diagonal()).mean(axis=1)
    log_beta = math.log(4.0 / 1e-7)
    for epsilon in epsilons:
        terms = np.maximum(1.0 - math.exp(epsilon) * (ratio if mirrored else 1.0 / ratio), 0.0)
        error = math.sqrt(2.0 * terms.var(ddof=1) * log_beta / draws) + 7.0 * log_beta / (3.0 * (draws - 1))
        yield float(terms.mean()), error


MATRICES = [
    (banded(12, 1.0, 0.3), 1.5, 6, (0.2, 1.0)),
    (banded(30, 0.8, 0.5, 0.3), 4.0, 15, (0.05, 0.15)),
    (np.tril(np.ones((6, 6))) / math.sqrt(6.0), 3.0, 3, (0.2, 1.0)),
    (banded(8, 1.0, 1.0, 1.0), 2.0, 3, (0.5,)),  # the last epoch is cut
]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("matrix", "noise", "bins", "epsilons"), MATRICES)
def test_brackets_contain_what_simulation_finds(
    matrix: Any, noise: float, bins: int, epsilons: tuple[float, ...], direction: str
) -> None:
    curve = hs.account(hs.binned_matrix_mechanism(matrix, noise, bins=bins), adjacency=direction)
    truths = simulated(gram(matrix, noise, bins), epsilons, mirrored=direction == "add", draws=60_000)
    for epsilon, (found, error) in zip(epsilons, truths, strict=True):
        bound = curve.delta(epsilon=epsilon)
        assert bound.lower <= found + error
        assert found - error <= bound.upper
        assert bound.lower > 0.0
        assert bound.upper <= 20.0 * bound.lower


def two_bins(own: tuple[float, float], both: float, epsilon: float) -> float:
    """delta under *remove* for two bins: the larger part of the second is integrated in closed form."""
    with ctx.workdps(DIGITS):
        g, h, c, a = (arb(x) for x in (*own, both, math.exp(epsilon)))
        shift, rest, root = c / g.sqrt(), h - c * c / g, g.sqrt()

        def inner(z: arb) -> arb:
            first = (root * z - g / 2).exp()
            scale, k = (shift * z - shift**2 / 2).exp(), 2 * a - first
            if k <= 0:
                return normal_density(z) * (scale - k)
            d = ((scale / k).log() + rest / 2) / rest.sqrt()
            return normal_density(z) * (scale * normal_below(d) - k * normal_below(d - rest.sqrt()))

        kink = ((2 * a).log() + g / 2) / root
        close = [kink - arb(2) ** -k for k in range(24)]  # all derivatives fade there
        last = (12 + root).max(kink + 1)
        return float(integral(inner, [*panels(-12, close[0], 24), *close[1:], *panels(kink, last, 12)]) / 2)


@pytest.mark.parametrize(("matrix", "noise"), [([[1.0, 0.0], [0.5, 1.0]], 2.0), ([[0.6, 0.0], [0.8, 1.0]], 2.0)])
def test_brackets_contain_two_bins_by_quadrature(matrix: list[list[float]], noise: float) -> None:
    (g, both), (_, h) = gram(np.array(matrix), noise, 2)
    curve = hs.account(hs.binned_matrix_mechanism(matrix, noise, bins=2), adjacency="remove")
    for epsilon in (0.0, 0.4, 1.0):
        bound = curve.delta(epsilon=epsilon)
        assert bound.lower <= two_bins((float(g), float(h)), float(both), epsilon) <= bound.upper


@pytest.mark.parametrize("adjacency", ["remove", "add"])
def test_orthogonal_bins_are_balls_in_bins(adjacency: Any) -> None:
    found = hs.account(hs.binned_matrix_mechanism(np.eye(40), 1.5, bins=20), adjacency=adjacency).epsilon(delta=1e-5)
    truth = hs.account(hs.Gaussian(1.5).balls_in_bins(bins=20, epochs=2), adjacency=adjacency).epsilon(delta=1e-5)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.width <= 1e-6


def test_one_bin_is_the_gaussian_release_of_all_columns() -> None:
    matrix = banded(5, 1.0, 0.5)
    found = hs.account(hs.binned_matrix_mechanism(matrix, 4.0, bins=1)).epsilon(delta=1e-5)
    truth = hs.account(hs.matrix_mechanism(matrix, 4.0, participation="fixed-epochs", separation=1)).epsilon(delta=1e-5)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.width <= 1e-9


@pytest.mark.parametrize("adjacency", ["remove", "add"])
@pytest.mark.parametrize("apart", [0.0, 1e-6])
def test_bins_that_are_all_alike_hide_nothing(adjacency: Any, apart: float) -> None:
    matrix = apart * np.eye(3)
    matrix[2] = 1.0
    found = hs.account(hs.binned_matrix_mechanism(matrix, 4.0, bins=3), adjacency=adjacency).epsilon(delta=1e-5)
    with mpmath.workdps(40):
        truth = gaussian_epsilon(mpmath.mpf(1) / 4, 1e-5)
        assert float(found.lower) <= truth <= float(found.upper)
    assert found.width <= 1e-9


def test_more_bins_than_bands_hide_more_than_one_bin_alone() -> None:
    """Never above the run whose record is in the worst bin for certain."""
    matrix = banded(40, 0.8, 0.6)
    found = hs.account(hs.binned_matrix_mechanism(matrix, 3.0, bins=20)).epsilon(delta=1e-5)
    alone = hs.account(hs.matrix_mechanism(matrix, 3.0, participation="min-separation", separation=20)).epsilon(
        delta=1e-5
    )
    assert found.upper < 0.8 * alone.lower


def test_negative_products_leave_an_upper_side() -> None:
    matrix = banded(4, 1.0, -0.5)
    signed, plain = (
        hs.account(hs.binned_matrix_mechanism(each, 2.0, bins=2), adjacency="remove").delta(epsilon=0.5)
        for each in (matrix, abs(matrix))
    )
    assert signed.lower == 0.0 < plain.lower
    assert signed.upper == plain.upper
    ((found, error),) = simulated(gram(matrix, 2.0, 2), (0.5,), mirrored=False, draws=60_000)
    assert found - error <= signed.upper


def test_roots_are_rounded_up() -> None:
    for both in np.linspace(0.01, 0.3, 50):
        steps, shared, apart = _above(np.array([[1.0, both], [both, 1.0]]))
        assert steps == 2
        assert Fraction(both) <= Fraction(shared) ** 2 <= Fraction(both) * (1 + Fraction(1, 10**14))
        assert Fraction(shared) ** 2 + Fraction(apart) ** 2 >= 1


def test_what_is_rounded_is_on_the_safe_side() -> None:
    """mu and shares of three bins whose covariance is 1/9 of whole numbers."""
    run = hs.binned_matrix_mechanism(np.tril(np.ones((3, 3))), 3.0, bins=3)
    (apart, _), (shared, _) = run.steps
    (_, own), (_, common) = apart.above, shared.above  # type: ignore[attr-defined]
    assert Fraction(common) ** 2 >= Fraction(2, 9)
    assert Fraction(common) ** 2 + Fraction(own) ** 2 >= Fraction(1, 3)
    ((_, low_common),) = shared.below  # type: ignore[attr-defined]
    assert Fraction(low_common) ** 2 <= Fraction(1, 9)
    for steps, low_own in apart.below:  # type: ignore[attr-defined]
        most = {3: Fraction(1, 9), 2: Fraction(1, 9), 1: Fraction(1, 9)}[steps]
        assert Fraction(low_common) ** 2 + Fraction(low_own) ** 2 <= most
    assert own < 0.34
    assert common < 0.48


def test_classes_of_bins_are_as_small_as_the_smallest() -> None:
    """Seven bins, only neighbours alike: every other one is three bins or four, and orthogonal."""
    steps, shared, apart = _above(np.eye(7) + 0.9 * (np.eye(7, k=1) + np.eye(7, k=-1)))
    assert (steps, shared) == (3, 0.0)
    assert 1.0 <= apart <= 1.0 + 1e-14


@pytest.mark.parametrize(
    ("matrix", "noise", "bins", "error", "says"),
    [
        ([[1.0, 0.1], [0.0, 1.0]], 1.0, 2, ValueError, "lower triangular"),
        ([[1.0, 0.0]], 1.0, 1, ValueError, "square"),
        ([[1.0, 0.0], [0.0, 0.0]], 1.0, 1, ValueError, "column of zeros"),
        (np.eye(3), 1.0, 4, ValueError, "at most the number of steps"),
        (np.eye(3), 1.0, 0, ValueError, "bins"),
        (np.eye(3), 1.0, 1.5, (TypeError, ValueError), "bins"),
        (np.eye(3), 0.0, 2, ValueError, "noise_multiplier"),
        (np.eye(3) * 1e-200, 1.0, 2, ValueError, "1e-100"),
        (np.eye(3), 1e-200, 2, ValueError, "1e-100"),
        (np.eye(3) * 1e100, 1e-100, 2, ValueError, "sensitivity over noise"),
        (np.eye(3) * 1e-100, 1e100, 2, ValueError, "sensitivity over noise"),
        ([[1.0], [0.5, 1.0]], 1.0, 2, ValueError, "square"),
    ],
)
def test_bad_matrices_and_bins_are_refused(matrix: Any, noise: float, bins: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        hs.binned_matrix_mechanism(matrix, noise, bins=bins)


def test_substitution_is_refused_by_name() -> None:
    with pytest.raises(hs.UnknownPairError, match="zero-out"):
        hs.account(hs.binned_matrix_mechanism(np.eye(4), 1.0, bins=2), adjacency="substitute")
    found, truth = (
        hs.account(hs.binned_matrix_mechanism(np.eye(4), 1.0, bins=2), adjacency=each).epsilon(delta=1e-5)
        for each in ("zero-out", "add-remove")
    )
    assert (found.lower, found.upper) == (truth.lower, truth.upper)


def test_what_bins_have_in_common_counts_however_little_it_is() -> None:
    """A covariance of 1e-330 beside 1e-60 is below the smallest float, one of 1e-100 beside 1 beyond a lattice."""
    matrix = [[1e35, 0.0, 0.0], [1e-100, 1e-100, 0.0], [0.0, 0.0, 1e35]]
    assert hs.binned_matrix_mechanism(matrix, 1e65, bins=3).total_steps == 2
    found, apart = (
        hs.account(hs.binned_matrix_mechanism([[1.0, 0.0], [least, 1.0]], 1.0, bins=2), "remove").epsilon(delta=1e-6)
        for least in (1e-100, 0.0)
    )
    assert found.lower <= apart.upper <= found.upper + 1e-3
    assert found.upper - found.lower < 1e-3


@pytest.mark.parametrize(
    ("matrix", "noise"),
    [
        ([[1e100, 0.0], [1e-100, 1e-100]], 1e50),  # one bin far below the other, and next to nothing in common
        ([[1.0, 0.0], [0.0, 1e-100]], 1e50),
        ([[1e-90, 0.0], [1e-100, 1e-90]], 1e46),  # all of it next to nothing
        ([[1e-80, 0.0], [1e-80 * (1.0 - 1e-9), 1e-80 * 1e-4]], 0.7e60),  # next to nothing apart
    ],
)
def test_bins_of_next_to_nothing_have_pairs(matrix: list[list[float]], noise: float) -> None:
    """Products far below the least that a pair may have are raised to it, or left out below."""
    for step, _ in hs.binned_matrix_mechanism(matrix, noise, bins=2).steps:
        step.pair("remove")
        assert all(isinstance(pair, Pair) for pair in step.attained("remove") or ())
