"""One step at many epsilons: sums of cells, each as wrong as it says, and the crossing of a delta."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.engines.closed_form import ClosedForm
from hockeystick.laws import GaussianPair, Pair, SubsampledPair
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.laws.one_step import _tails, one_step_delta, one_step_deltas


@pytest.mark.parametrize(
    "pair",
    [GaussianPair(1.0), GaussianPair(0.3), SubsampledPair(GaussianPair(1.0), 0.01), DiscreteGaussianPair(3.0, 1)],
)
def test_many_epsilons_are_bracketed_as_each_is_alone(pair: Pair) -> None:
    """The brackets overlap, and are a few dozen roundings wide, also where cuts are next to each other."""
    epsilons = np.unique(np.concatenate((np.linspace(-0.5, 6.0, 9), 1.0 + np.array([-1e-9, 0.0, 2.0**-50]))))
    lower, upper = one_step_deltas(pair, epsilons)
    for index, epsilon in enumerate(epsilons.tolist()):
        low, high = one_step_delta(pair, epsilon)
        assert lower[index] <= high
        assert low <= upper[index]
        assert upper[index] - lower[index] <= 1e-9 * lower[index] or upper[index] <= 1e-300


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0, 6.0])
def test_many_epsilons_contain_the_closed_form(epsilon: float) -> None:
    with mp.workdps(60):
        truth = mp.ncdf(mpf(1) / 2 - mpf(epsilon)) - mp.exp(mpf(epsilon)) * mp.ncdf(-mpf(1) / 2 - mpf(epsilon))
        lower, upper = one_step_deltas(GaussianPair(1.0), np.unique([0.0, 0.1, 1.0, 7.0, 9.0, epsilon]))
        index = int(np.searchsorted(np.unique([0.0, 0.1, 1.0, 7.0, 9.0, epsilon]), epsilon))
        assert mpf(float(lower[index])) <= truth <= mpf(float(upper[index]))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("size", [1e-13, 1e-6, 0.1])
def test_sums_of_cells_as_wrong_as_they_say_are_still_bracketed(sign: float, size: float) -> None:
    rng = np.random.default_rng(3)
    truth = [mpf(float(x)) for x in rng.uniform(-40.0, 0.0, 9)]
    error = size * rng.uniform(0.5, 1.0, 9)
    error[4] = size  # of the largest of its neighbours, say
    found, doubt = _tails(np.array([float(x) for x in truth]) + 0.999 * sign * error, error)
    for index in range(9):
        exact = mp.log(mp.fsum(mp.exp(x) for x in truth[index:]))
        assert abs(exact - mpf(float(found[index]))) <= mpf(float(doubt[index]))


@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-8, 1e-25])
def test_a_crossing_by_interpolation_is_the_one_that_is_searched_for(delta: float) -> None:
    for pair in (GaussianPair(2.0), SubsampledPair(GaussianPair(1.0), 0.3)):
        form = ClosedForm(pair, pair, "closed form")
        log_delta = float(np.log(delta))
        guess = max(pair.loss_range(log_delta, log_delta)[1], 0.0)
        lower, upper = form._crossing(delta, guess)
        least, most = form._searched(delta, guess, 1e-12)
        assert lower <= most
        assert least <= upper
        if lower > 0.0:
            assert one_step_delta(pair, lower)[1] >= delta
        if np.isfinite(upper):
            assert one_step_delta(pair, upper)[0] <= delta
            assert upper - lower <= 2e-11


def test_epsilon_of_one_step_takes_a_few_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    cells = GaussianPair.cells

    def counting(self: GaussianPair, losses: np.ndarray) -> object:
        nonlocal calls
        calls += 1
        return cells(self, losses)

    monkeypatch.setattr(GaussianPair, "cells", counting)
    hs.account(hs.Gaussian(1.0)).epsilon(1e-6)
    assert 0 < calls <= 30  # of two directions, two for each of a few dozen points
