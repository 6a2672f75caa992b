"""Every rounding is on its own side of the truth, down to 1e-30 and at the order of accuracy it claims."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.accountants import PRV, Certified, Lattice
from hockeystick.bound import Bound
from hockeystick.engines.lattice.algorithm2 import algorithm_2
from hockeystick.engines.lattice.buckets import bucket_cells, buckets_down, buckets_up
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.errors import PrecisionError
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair
from hockeystick.laws.base import Pair
from hockeystick.laws.one_step import one_step_delta
from hockeystick.laws.worst_case import WorstCasePair
from tests.closed_forms import composed_mu, gaussian_delta, gaussian_epsilon

UPPER = ["connect-the-dots", "buckets-up"]
LOWER = ["tangents", "algorithm-2", "buckets-down"]
PAIRS = [
    GaussianPair(1.0),
    GaussianPair(1.0).subsampled(0.01),
    GaussianPair(0.5).subsampled(0.1).reversed(),
    LaplacePair(1.0),
    LaplacePair(0.7).subsampled(0.3),
    DiscretePair((0.5, 0.3, 0.2, 0.0), (0.25, 0.25, 0.0, 0.5)),
]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("spacing", [0.3, 0.05])
def test_one_step_is_bounded_at_every_epsilon(pair: Pair, spacing: float) -> None:
    low, high = pair.loss_range(-60.0, -120.0)
    on = GridCells.of(pair, Grid.covering(min(low, -spacing), max(high, spacing), spacing))
    above, below, optimistic = buckets_up(on), buckets_down(on), algorithm_2(on)
    for epsilon in np.linspace(0.0, 8.0, 33).tolist():
        lower, upper = one_step_delta(pair, epsilon)
        assert above.hockey_stick(epsilon - above.slack) >= lower
        assert below.hockey_stick(epsilon + below.slack) <= upper
        assert optimistic.hockey_stick(epsilon + optimistic.slack) <= upper


def test_buckets_of_atoms_on_points_have_their_masses_rounded_outward() -> None:
    pair, grid = WorstCasePair(1.0, 0.01), Grid.covering(-2.0, 2.0, 0.25)
    up, down = buckets_up(bucket_cells(pair, grid, "upper")), buckets_down(bucket_cells(pair, grid, "lower"))
    with mp.workdps(40):
        for loss in (-1.0, 1.0):
            truth = (1 - mpf(0.01)) / (1 + mp.exp(-mpf(loss)))
            above, below = (mp.exp(mpf(float(pld.log_mass[pld.losses == loss].item()))) for pld in (up, down))
            assert truth * (1 - mpf(10) ** -13) <= below <= truth <= above <= truth * (1 + mpf(10) ** -13)


def test_algorithm_2_is_between_buckets_and_the_truth_for_smooth_losses() -> None:
    pair = GaussianPair(1.0)
    on = GridCells.of(pair, Grid.covering(-9.0, 10.0, 0.1))
    for epsilon in (0.2, 1.0, 3.0):
        truth, _ = one_step_delta(pair, epsilon)
        assert buckets_down(on).hockey_stick(epsilon) < algorithm_2(on).hockey_stick(epsilon) < truth


def test_algorithm_2_needs_zero_inside() -> None:
    with pytest.raises(ValueError, match="inner point"):
        algorithm_2(GridCells.of(GaussianPair(1.0), Grid.covering(0.5, 3.0, 0.1)))


def value(bound: object, rounding: str) -> float:
    assert isinstance(bound, Bound)
    assert any("one side only" in note for note in bound.notes)
    return float(bound.upper if rounding in UPPER else bound.lower)


@pytest.mark.parametrize("rounding", UPPER + LOWER)
def test_composed_gaussians_down_to_1e_30(rounding: str) -> None:
    sigma, steps = 20.0, 100
    curve = hs.account(hs.Gaussian(sigma) * steps, accountant=Lattice(0.002, rounding=rounding))  # type: ignore[arg-type]
    mu = composed_mu(sigma, steps)
    for epsilon in (0.0, 0.5, 2.0, 4.0, 5.5):
        truth = gaussian_delta(mu, epsilon)
        found = value(curve.delta(epsilon), rounding)
        assert found >= truth if rounding in UPPER else found <= truth
    for delta in (0.05, 1e-6, 1e-15, 1e-30):
        truth = gaussian_epsilon(mu, delta)
        found = value(curve.epsilon(delta), rounding)
        assert found >= truth if rounding in UPPER else found <= truth
        loose = steps * 0.002 if rounding.startswith("buckets") else 0.02
        assert abs(found - float(truth)) <= loose


@pytest.mark.parametrize(
    ("rounding", "order"),
    [("connect-the-dots", 2), ("tangents", 2), ("algorithm-2", 2), ("buckets-up", 1), ("buckets-down", 1)],
)
def test_error_shrinks_at_its_order(rounding: str, order: int) -> None:
    sigma, steps, epsilon = 2.0, 10, 2.0
    truth = float(gaussian_delta(composed_mu(sigma, steps), epsilon))
    errors = []
    for spacing in (0.04, 0.02, 0.01):
        lattice = Lattice(spacing, rounding=rounding)  # type: ignore[arg-type]
        found = value(hs.account(hs.Gaussian(sigma) * steps, accountant=lattice).delta(epsilon), rounding)
        errors.append(abs(found / truth - 1.0))
    for coarse, fine in pairwise(errors):
        assert order - 0.35 < math.log2(coarse / fine) < order + 0.35


def test_the_ends_of_the_range() -> None:
    run = hs.Laplace(2.0) * 4 + hs.ApproximateDP(0.25, 1e-3)
    for rounding in UPPER + LOWER:
        curve = hs.account(run, accountant=Lattice(0.125, rounding=rounding))  # type: ignore[arg-type]
        infinite = value(curve.delta(math.inf), rounding)
        assert infinite >= 1e-3 if rounding in UPPER else infinite <= 1e-3
        assert infinite == pytest.approx(1e-3, rel=1e-9, abs=0.0)
        assert float(curve.epsilon(1.0)) == 0.0  # type: ignore[arg-type]
        assert value(curve.epsilon(0.0), rounding) == math.inf
        if rounding in LOWER:
            assert value(curve.epsilon(1e-4), rounding) == math.inf


@pytest.mark.parametrize("steps", [1, 30, 400])
def test_prv_brackets_the_truth(steps: int) -> None:
    accountant = PRV(epsilon_error=0.02, delta_error=1e-9)
    sigma = 4.0 * math.sqrt(steps)
    curve = hs.account(hs.Gaussian(sigma) * steps, accountant=accountant)
    mu = composed_mu(sigma, steps)
    for epsilon in (0.0, 0.4, 1.2):
        bound = curve.delta(epsilon)
        assert isinstance(bound, Bound)
        assert bound.lower <= gaussian_delta(mu, epsilon) <= bound.upper
    for delta in (1e-2, 1e-6):
        bound = curve.epsilon(delta)
        assert isinstance(bound, Bound)
        assert bound.lower <= gaussian_epsilon(mu, delta) <= bound.upper
        assert bound.width <= 0.0405
    assert any("Hoeffding" in note for note in bound.notes)


def test_prv_on_subsampled_and_bounded_losses() -> None:
    for run in (hs.Gaussian(1.0).poisson(0.05) * 100, hs.Laplace(5.0) * 20, hs.RandomizedResponse(0.6) * 30):
        exact = hs.account(run).epsilon(1e-5)
        bound = hs.account(run, accountant=PRV(0.05, 1e-9)).epsilon(1e-5)
        assert isinstance(exact, Bound)
        assert isinstance(bound, Bound)
        assert bound.lower <= exact.upper
        assert exact.lower <= bound.upper
        assert bound.width <= 0.11


def test_prv_says_where_it_knows_nothing() -> None:
    bound = hs.account(hs.Gaussian(1.0), accountant=PRV(0.1, 1e-6)).epsilon(1e-7)
    assert isinstance(bound, Bound)
    assert bound.upper == math.inf
    for error in (5e-324, 1.5):
        with pytest.raises(ValueError, match="delta_error"):
            PRV(0.1, error)


def test_windows_of_more_points_than_integers_count_are_refused() -> None:
    with pytest.raises(PrecisionError, match="use a larger spacing"):
        hs.account(hs.Gaussian(1e3) * 10**100, "remove", accountant=Lattice(1e-3)).epsilon(1e-5)
    for run in (hs.RandomizedResponse(1.0 - 1e-12) * 10**25, hs.Laplace(1.0) * 10**60):  # what it spreads is more
        with pytest.raises(PrecisionError, match="use a larger spacing"):
            hs.account(run, "remove", accountant=Lattice(54.4)).epsilon(1e-6)


@pytest.mark.parametrize("rounding", ["connect-the-dots", "tangents"])
def test_long_windows_on_low_frequencies(rounding: str) -> None:
    sigma, steps = 30.0, 10_000
    curve = hs.account(hs.Gaussian(sigma) * steps, accountant=Lattice(2e-4, rounding=rounding))  # type: ignore[arg-type]
    mu = composed_mu(sigma, steps)
    for epsilon in (5.0, 15.0, 25.0):
        truth = gaussian_delta(mu, epsilon)
        found = value(curve.delta(epsilon), rounding)
        assert found >= truth if rounding in UPPER else found <= truth
        assert abs(found / float(truth) - 1.0) < 2e-3


@pytest.mark.parametrize("direction", ["add", "remove"])
def test_an_atom_on_the_highest_point_keeps_the_order(direction: str) -> None:
    run = hs.Laplace(1.0) * 20
    truth = hs.account(run, direction, accountant=Certified(1e-5)).epsilon(1e-5)
    gaps = []
    for spacing in (1 / 8, 1 / 16, 1 / 32):  # the largest loss, 1, is a lattice point
        found = hs.account(run, direction, accountant=Lattice(spacing, rounding="tangents")).epsilon(1e-5)
        assert isinstance(found, Bound)
        assert isinstance(truth, Bound)
        assert found.lower <= truth.upper
        gaps.append(float(truth.lower) - float(found.lower))
    assert gaps[-1] < 1e-3
    assert gaps[0] / gaps[1] > 3.0
    assert gaps[1] / gaps[2] > 3.0


@pytest.mark.parametrize("spacing", [710.0, 1000.0, 1e5])
def test_points_further_apart_than_exponentials_of_float64_reach_bound_from_below(spacing: float) -> None:
    curve = Lattice(spacing, rounding="algorithm-2").directed(((GaussianPair(0.02), 1),))
    for epsilon in (10.0, 1000.0, 1300.0):
        lower = curve.delta(epsilon).lower
        assert 0.0 <= lower <= gaussian_delta(50.0, epsilon)
    assert curve.delta(10.0).lower > (0.999 if spacing <= 1000.0 else -1.0)
