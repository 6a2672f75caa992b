"""002's Fourier accountant against closed forms, exact values and its own claims."""

from __future__ import annotations

import functools
import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick.accountants import Certified, Fourier, Moments
from hockeystick.bound import Bound
from hockeystick.composition import Composition
from hockeystick.engines.lattice import fourier
from hockeystick.engines.lattice.buckets import bucket_cells, buckets_up
from hockeystick.engines.lattice.fourier import PeriodicComposition
from hockeystick.engines.lattice.grid import Grid
from hockeystick.engines.lattice.nearest import nearest_points
from hockeystick.errors import PrecisionError
from hockeystick.laws import DiscretePair, GaussianPair
from hockeystick.numerics.fft import inverse_real
from tests.closed_forms import composed_mu, gaussian_delta
from tests.stated_pairs import stated_gaussian


def bound_of(value: object) -> Bound:
    assert isinstance(value, Bound)
    return value


@pytest.mark.parametrize("evaluation", ["plancherel", "inverse transform"])
@pytest.mark.parametrize(("sigma", "steps", "spacing"), [(5.0, 50, 1e-3), (2.0, 4, 4e-4), (30.0, 1000, 2e-4)])
def test_contains_the_closed_form(evaluation: str, sigma: float, steps: int, spacing: float) -> None:
    fourier = Fourier(spacing, 12.0, evaluation=evaluation)  # type: ignore[arg-type]
    curve = hs.account(hs.Gaussian(sigma) * steps, accountant=fourier)
    mu = composed_mu(sigma, steps)
    for epsilon in (0.0, 0.3, 1.0, 2.5, 5.0, 11.9, 12.5):
        bound = bound_of(curve.delta(epsilon))
        truth = gaussian_delta(mu, epsilon)
        assert bound.lower <= truth <= bound.upper
        assert bound.width <= steps * spacing
    for delta in (1e-2, 1e-4, 1e-7):
        bound = bound_of(curve.epsilon(delta))
        assert gaussian_delta(mu, bound.lower) >= delta or bound.lower == 0.0
        assert gaussian_delta(mu, bound.upper) <= delta


def test_width_shrinks_with_the_spacing() -> None:
    run = hs.Gaussian(3.0).poisson(0.1) * 30
    widths = [bound_of(hs.account(run, accountant=Fourier(h, 6.0)).delta(0.5)).width for h in (4e-3, 2e-3, 1e-3, 5e-4)]
    for coarse, fine in pairwise(widths):
        assert 0.4 < fine / coarse < 0.6


def test_losses_on_the_grid_have_no_grid_error() -> None:
    """Randomised response on a grid that divides its loss: both roundings keep every atom where it is."""
    step = hs.RandomizedResponse(probability=0.75)
    fourier = Fourier(math.log(3.0) / 64, 30.0)
    bound = bound_of(hs.account(step * 10, accountant=fourier).delta(1.0))
    truth = sum(
        max(math.comb(10, i) * (0.75**i * 0.25 ** (10 - i) - math.e * 0.25**i * 0.75 ** (10 - i)), 0.0)
        for i in range(11)
    )
    assert bound.lower <= truth * (1.0 + 1e-14)
    assert bound.upper >= truth * (1.0 - 1e-14)
    assert bound.width < 1e-10


def test_mass_at_infinity_is_kept() -> None:
    run = hs.ApproximateDP(0.1, 1e-6) * 20
    bound = bound_of(hs.account(run, accountant=Fourier(1e-4, 5.0)).delta(math.inf))
    truth = -math.expm1(20 * math.log1p(-1e-6))
    assert bound.lower <= truth * (1.0 + 1e-12)
    assert bound.upper >= truth * (1.0 - 1e-12)
    assert bound.width < 1e-15


def test_both_evaluations_agree_within_their_rounding() -> None:
    pair = GaussianPair(2.0).subsampled(0.1)
    grid = Grid.covering(*pair.loss_range(-40.0, -60.0), 1e-3)
    composition = PeriodicComposition([(buckets_up(bucket_cells(pair, grid, "upper")), 64)], 16_000)
    for epsilon in np.linspace(0.0, 7.9, 23):
        low, high = composition.delta(float(epsilon), "plancherel")
        other_low, other_high = composition.delta(float(epsilon), "inverse transform")
        assert low <= other_high
        assert other_low <= high
        assert high - low < 1e-10


# ------------------------------------------------------------------------------- binomial mechanism (section 5.3)


SUMS = hs.Binomial(trials=1000, probability=0.5) * 20


@functools.cache
def twenty_sums() -> Bound:
    return bound_of(hs.account(SUMS).delta(0.7))


@pytest.mark.parametrize("points", [500, 2000, 8000])
@pytest.mark.parametrize("half_width", [1.5, 3.0])
def test_grid_bound_contains_the_error_observed(points: int, half_width: float) -> None:
    """Tables 1 and 2: the a priori bound on the grid error holds for every n and L."""
    fourier = Fourier(2.0 * half_width / points, half_width)
    exact, bound = twenty_sums(), bound_of(hs.account(SUMS, accountant=fourier).delta(0.7))
    assert bound.lower <= exact.upper
    assert exact.lower <= bound.upper
    observed = bound.upper - exact.upper - bound.errors["truncation and periodisation"] - bound.errors["rounding"]
    assert observed <= bound.errors["grid"]
    assert observed > 0.0
    assert bound.errors["grid"] <= 60.0 * observed


# ------------------------------------------------------------------------------- a priori error (Lemma 4, Remark 6)


def random_run(rng: np.random.Generator) -> Composition:
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        noise = float(rng.uniform(0.8, 4.0))
        step = [
            hs.Gaussian(noise),
            hs.Gaussian(noise).poisson(float(rng.uniform(0.02, 0.5))),
            hs.Laplace(2.0 * noise),
            hs.RandomizedResponse(probability=float(rng.uniform(0.55, 0.8))),
        ][int(rng.integers(4))]
        parts.append((step, int(rng.integers(1, 6))))
    return hs.compose(parts)


def assert_delivered(seed: int) -> None:
    rng = np.random.default_rng(seed)
    run, epsilon = random_run(rng), float(rng.uniform(0.0, 3.0))
    error = float(10.0 ** rng.uniform(-2.5, -1.0))
    fourier = Fourier.for_error(run, epsilon, error=error)
    bound = bound_of(hs.account(run, accountant=fourier).delta(epsilon))
    assert bound.width <= error
    exact = bound_of(hs.account(run, accountant=Certified(1e-3, engine="lattice")).delta(epsilon))
    assert bound.lower <= exact.upper
    assert exact.lower <= bound.upper


def test_for_error_delivers_where_all_losses_are_small() -> None:
    fourier = Fourier.for_error(hs.Gaussian(1e3), 0.0, error=4e-6)
    assert bound_of(hs.account(hs.Gaussian(1e3), accountant=fourier).delta(0.0)).width <= 4e-6


@pytest.mark.parametrize("seed", range(12))
def test_for_error_delivers(seed: int) -> None:
    assert_delivered(seed)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100, 200))
def test_for_error_delivers_on_100_random_compositions(seed: int) -> None:
    assert_delivered(seed)


def test_for_error_refuses_what_floats_cannot_do() -> None:
    with pytest.raises(PrecisionError, match="Certified"):
        Fourier.for_error(hs.Gaussian(1.0).poisson(0.01) * 100_000, 1.0, error=1e-9)
    for least in (5e-324, 1e-310):  # a spacing of 0, which no factor raises; windows of more points than floats tell
        with pytest.raises(PrecisionError, match="Certified"):
            Fourier.for_error(hs.Gaussian(1.0).poisson(0.01), 1.0, error=least)
    rare = hs.RandomizedResponse(0.75).poisson(5e-5) * 2  # in a window of 0.004 nats
    with pytest.raises(PrecisionError, match="rounding errors below"):
        Fourier.for_error(rare, 0.0, error=3.5e-8)
    wider = hs.account(rare, accountant=Fourier.for_error(rare, 0.0, error=1e-6)).delta(0.0)
    assert bound_of(wider).width <= 1e-6
    assert Fourier.for_error(hs.Gaussian(1.0), 1.0, error=1e300) == Fourier.for_error(hs.Gaussian(1.0), 1.0, error=1.0)


# ------------------------------------------------------ section 6's experiments


def test_gaussian_and_randomised_response_interleaved() -> None:
    """Section 6.1: the bounds contain the certified bracket, and moments are looser by about an order of magnitude."""
    run = (hs.Gaussian(5.0) + hs.RandomizedResponse(probability=0.52)) * 20
    exact = bound_of(hs.account(run).delta(1.5))
    fourier = bound_of(hs.account(run, accountant=Fourier(2e-4, 10.0)).delta(1.5))
    assert fourier.lower <= exact.lower
    assert exact.upper <= fourier.upper
    assert fourier.upper / exact.upper < 1.05
    moments = hs.account(run, accountant=Moments(conversion="classic")).delta(1.5)
    assert moments.upper / exact.upper > 5.0  # type: ignore[union-attr]


def linear_noise(steps: int) -> Composition:
    """Section 6.2 and appendix A.1: noise that falls linearly from 3.0 to 2.5."""
    return hs.compose([hs.Gaussian(float(s)).poisson(0.02) for s in np.linspace(3.0, 2.5, steps)])


def assert_linear_noise(steps: int, spacing: float) -> None:
    run = linear_noise(steps)
    exact = bound_of(hs.account(run, "remove").delta(0.1))
    fourier = bound_of(hs.account(run, "remove", accountant=Fourier(spacing, 8.0)).delta(0.1))
    assert fourier.lower <= exact.lower
    assert exact.upper <= fourier.upper
    moments = hs.account(run, "remove", accountant=Moments(conversion="classic")).delta(0.1)
    assert moments.upper / exact.upper > 5.0  # type: ignore[union-attr]


def test_subsampled_gaussians_of_falling_noise() -> None:
    assert_linear_noise(60, 1e-4)


@pytest.mark.torture
def test_500_subsampled_gaussians_of_falling_noise() -> None:
    assert_linear_noise(500, 5e-5)


# -------------------------------------------------------------- Table 3 (Lemma 5)


@pytest.mark.parametrize("points", [50_000, pytest.param(5_000_000, marks=pytest.mark.torture)])
def test_a_new_epsilon_needs_no_transform_but_a_few_frequencies(points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What 002's Table 3 is about: an inner product with a part of the spectrum in place of an inverse transform."""
    pair = GaussianPair(2.0).subsampled(0.02)
    grid = Grid.covering(*pair.loss_range(-40.0, -60.0), 20.0 / points)
    composition = PeriodicComposition([(buckets_up(bucket_cells(pair, grid, "upper")), 2000)], points)
    transformed: list[int] = []
    summed: list[int] = []

    def inverse(spectrum: NDArray[np.complex128], length: int) -> NDArray[np.float64]:
        transformed.append(length)
        return inverse_real(spectrum, length)

    def inner(transform: NDArray[np.complex128], spectrum: NDArray[np.complex128]) -> float:
        summed.append(spectrum.size)
        return float(np.vdot(transform, spectrum).real)

    monkeypatch.setattr(fourier, "inverse_real", inverse)
    monkeypatch.setattr(fourier.FrequencyKernel, "inner", staticmethod(inner))
    composition.delta(1.0)
    composition.delta(1.01)
    assert not transformed
    assert summed == [summed[0]] * 2
    assert summed[0] <= 100  # frequencies, however fine the grid
    composition.delta(1.0, "inverse transform")
    assert transformed == [points]


@pytest.mark.parametrize(
    ("spacing", "half_width", "kind"), [(0.0, 1.0, ValueError), ("x", 1.0, TypeError), (1e-9, 50.0, ValueError)]
)
def test_bad_settings_are_refused(spacing: float, half_width: float, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Fourier(spacing, half_width)


@pytest.mark.parametrize("reach", [0.5, 1.5, 4.0])
def test_mass_outside_the_range_of_a_nearest_lattice_is_counted(reach: float) -> None:
    """A Gaussian loss has mean 1/2 and deviation 1; half a step of the lattice still belongs to its ends."""
    found = nearest_points(GaussianPair(1.0), 0.5 - reach, 0.5 + reach, 0.125)
    beyond = mpmath.erfc((mpmath.mpf(reach) + 0.125) / mpmath.sqrt(2))
    assert mpmath.mpf(found.mass_outside) + found.pld.total_mass >= 1 - mpmath.mpf(10) ** -13
    assert found.mass_outside >= beyond


def test_what_rounding_up_adds_beyond_the_grid_is_not_called_delta() -> None:
    """Losses beyond the grid, put at infinity, are taken away again: with all that was added to them."""
    curve = Fourier(1.0, 1.0).directed(((GaussianPair(1.0).subsampled(1e-9), 1),))
    for epsilon in (5.0, 1000.0):  # delta is 5e-151, and nothing
        assert bound_of(curve.delta(epsilon)).lower == 0.0


@pytest.mark.parametrize("steps", [1, 3, 10**6])
def test_a_grid_much_finer_than_the_losses_answers(steps: int) -> None:
    """Its tails are bounded on few points, whatever their spacing."""
    p, q = (0.5, 0.5), (0.0, 1.0)
    infinite = 1.0 - 0.5**steps
    bound = bound_of(Fourier(1e-12, 1e-7).directed(((DiscretePair(p, q), steps),)).delta(0.0))
    assert bound.lower <= infinite <= bound.upper


def test_grid_points_that_float64_does_not_tell_apart_are_refused() -> None:
    curve = Fourier(1e-100, 1e-95).directed(((DiscretePair((0.5, 0.5), (0.0, 1.0)), 1),))
    with pytest.raises(PrecisionError, match=r"finer than float64 tells losses of 0\.693 nats apart"):
        curve.delta(0.0)


def test_points_beyond_the_integers_that_are_exact_are_off() -> None:
    spacing = 2.0**-60
    first = math.floor(-math.log(2.0) / spacing)
    assert Grid(spacing, np.array([first, first + 1])).rounding >= spacing


def test_masses_that_are_known_roughly_are_not_counted_twice() -> None:
    """Rounded up, they sum to more than one: what the sum has too much is taken from the lower side."""
    pair = stated_gaussian(0.5, mass_error=1e-4)
    curve = Fourier(1e-3, 30.0).directed(((pair, 10),))
    for epsilon in (0.0, 1.0, 3.0):
        bound = bound_of(curve.delta(epsilon))
        assert bound.lower <= gaussian_delta(composed_mu(2.0, 10), epsilon) <= bound.upper


def test_steps_whose_masses_are_lost_to_rounding_are_refused() -> None:
    curve = Fourier(500.0, 1e5).directed(((GaussianPair(1e6), 2**40),))
    with pytest.raises(PrecisionError, match="rounding leaves nothing of the masses of 1099511627776 steps"):
        curve.delta(0.0)
