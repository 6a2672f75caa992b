"""One step at many epsilons: sums of cells, each as wrong as it says, and the crossing of a delta."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.engines import closed_form
from hockeystick.engines.closed_form import ClosedForm, PairSides
from hockeystick.engines.enumeration.sides import OutcomeSides
from hockeystick.exact import exact_delta
from hockeystick.laws import GaussianPair, LaplacePair, Pair, SubsampledPair
from hockeystick.laws.atoms import AtomicPair
from hockeystick.laws.base import CellMasses
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.laws.discrete_laplace import DiscreteLaplacePair
from hockeystick.laws.gaussian import GaussianTails
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


TOLD = [GaussianPair(0.7), LaplacePair(0.4), DiscreteGaussianPair(1.3, 2)]


@pytest.mark.parametrize("pair", [*TOLD, *(each.subsampled(rate) for each in TOLD for rate in (1e-6, 0.1, 0.75))])
@pytest.mark.parametrize("turned", [False, True])
def test_pairs_that_tell_tails_answer_any_epsilons_as_each_alone(pair: Pair, turned: bool) -> None:
    """To the bit, in any order, cuts below and beyond all losses among them, and as the cells about one cut do."""
    law = pair.reversed() if turned else pair
    rng = np.random.default_rng(8)
    ends = [law.loss_bounds[0] - 1.0, *law.loss_bounds, law.loss_bounds[1] + 1.0, 0.0, 1e-13, -0.2]
    epsilons = rng.permutation(
        [*filter(np.isfinite, ends), *rng.uniform(0.0, 8.0, 20), *10.0 ** -rng.uniform(0, 17, 9)]
    )
    lower, upper = one_step_deltas(law, epsilons)
    for index, epsilon in enumerate(epsilons.tolist()):
        assert one_step_delta(law, epsilon) == (lower[index], upper[index]), epsilon
        above, own, both = law.tails(np.array([epsilon])), law.tails(np.array([epsilon]), upper=False), "log_p log_q"
        cells = law.cells(np.array([epsilon]))
        assert above is not None
        assert own is not None
        for log, error in zip(both.split(), ("error_p", "error_q"), strict=True):
            for side, place in ((own, 0), (above, 1)):
                here, there = float(getattr(side, log)[0]), float(getattr(cells, log)[place])
                off = float(getattr(side, error)[0] + getattr(cells, error)[place])
                assert here == there or abs(here - there) <= off, (epsilon, log, place)


@pytest.mark.parametrize("seed", range(10))
def test_epsilons_a_few_roundings_apart_are_bracketed_as_each_is_alone(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a pair that tells no tails: their cuts go down by different slacks, and must not pass each other."""
    monkeypatch.setattr(SubsampledPair, "tails", Pair.tails)
    rng = np.random.default_rng(seed)
    pair = SubsampledPair(GaussianPair(float(10.0 ** rng.uniform(-1.3, 0.7))), float(10.0 ** rng.uniform(-4.0, 0.0)))
    points = np.unique(rng.uniform(0.0, 3.0) + rng.uniform(0.0, 10.0 ** -rng.uniform(12.0, 16.0), 12))
    lower, upper = one_step_deltas(pair, points)
    for index, epsilon in enumerate(points.tolist()):
        least, most = one_step_delta(pair, epsilon)
        assert lower[index] <= most
        assert least <= upper[index]


@pytest.mark.parametrize("step", [hs.RandomizedResponse(0.7), hs.Binomial(9, 0.3), hs.Binomial(40, 0.5).poisson(0.3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 0.6])
def test_sides_read_off_cells_of_atoms_contain_the_truth(step: hs.Step, epsilon: float) -> None:
    pair = step.pair("remove")
    lower, upper = one_step_delta(pair, epsilon)
    exact = exact_delta(((pair, 1),), epsilon, digits=25)
    assert Fraction(lower) <= exact.low
    assert exact.high <= Fraction(upper)
    assert upper - lower <= 1e-9 * upper


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("measure", ["p", "q"])
def test_masses_as_wrong_as_they_say_keep_the_sides_true(
    measure: str, sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, error, cells = hs.RandomizedResponse(0.7).pair("remove"), 1e-3, AtomicPair.cells

    def wrong(self: AtomicPair, losses: np.ndarray) -> CellMasses:
        found = cells(self, losses)
        log, doubt = getattr(found, f"log_{measure}"), getattr(found, f"error_{measure}")
        return replace(found, **{f"log_{measure}": log + sign * 0.999 * error, f"error_{measure}": doubt + error})

    monkeypatch.setattr(AtomicPair, "cells", wrong)
    for epsilon in (0.0, 0.1, 0.6):
        lower, upper = one_step_delta(pair, epsilon)
        exact = exact_delta(((pair, 1),), epsilon, digits=25)
        assert Fraction(lower) <= exact.low
        assert exact.high <= Fraction(upper)
        assert upper - lower <= 1e-2


def test_each_side_is_that_of_its_own_pair() -> None:
    epsilons = np.array([0.1, 1.0])
    lower, upper = one_step_deltas(GaussianPair(2.0), epsilons, above=GaussianPair(1.0))
    least, most = one_step_deltas(GaussianPair(2.0), epsilons)[1], one_step_deltas(GaussianPair(1.0), epsilons)[0]
    assert (lower <= least).all()
    assert (upper >= most).all()


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


@pytest.mark.parametrize("size", [0.5, 2.0, 20.0, np.inf])
def test_a_small_cell_of_which_next_to_nothing_is_known_may_be_the_largest(size: float) -> None:
    log, error = np.array([0.0, -5.0]), np.array([0.0, size])
    found, doubt = _tails(log, error)
    most = log[1] + min(size, 800.0)
    assert found[0] + doubt[0] >= np.logaddexp(log[0], most)
    assert found[1] + doubt[1] >= most


@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-8, 1e-25])
def test_a_crossing_by_interpolation_is_the_one_that_is_searched_for(delta: float) -> None:
    for pair in (GaussianPair(2.0), SubsampledPair(GaussianPair(1.0), 0.3)):
        form = ClosedForm(PairSides(pair, pair, "closed form"))
        log_delta = float(np.log(delta))
        guess = max(pair.loss_range(log_delta, log_delta)[1], 0.0)
        lower, upper = (float(side[0]) for side in form._crossings(np.array([delta]), np.array([guess])))
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
    tails = GaussianPair.tails

    def counting(self: GaussianPair, cuts: np.ndarray) -> object:
        nonlocal calls
        calls += 1
        return tails(self, cuts)

    monkeypatch.setattr(GaussianPair, "tails", counting)
    hs.account(hs.Gaussian(1.0)).epsilon(1e-6)
    assert 0 < calls <= 30  # of two directions, two for each of a few dozen points


def laplace_delta(b: float, rate: float, epsilon: float) -> mpf:
    """delta of one sampled step of Laplace noise, by the masses above the outcome where the loss is epsilon."""
    b, g, e = mpf(b), mpf(rate), mp.exp(mpf(epsilon))
    cut = (1 + b * mp.log((e - 1 + g) / g)) / 2  # between 0 and 1 for losses inside their range
    return g * (1 - mp.exp((cut - 1) / b) / 2) + (1 - g - e) * mp.exp(-cut / b) / 2


def kinked(seed: int) -> tuple[Pair, float, Callable[[float], Fraction]]:
    """One step whose curve has kinks, or an end, with a delta, and its curve to many digits."""
    rng = np.random.default_rng(seed)
    noise, rate = float(rng.uniform(0.7, 4.0)), float(10.0 ** rng.uniform(-2.5, -0.3))
    if seed % 2:
        pair = hs.DiscreteLaplace(noise).poisson(rate=rate).pair("remove")
        return pair, chosen(rng, pair), lambda epsilon: exact_delta(((pair, 1),), epsilon, digits=25).low
    pair = hs.Laplace(noise).poisson(rate=rate).pair("remove")
    with mp.workdps(50):
        return pair, chosen(rng, pair), lambda epsilon: Fraction(str(laplace_delta(noise, rate, epsilon)))


def chosen(rng: np.random.Generator, pair: Pair) -> float:
    """A delta well below the largest."""
    return float(one_step_delta(pair, 0.0)[0] * 10.0 ** -rng.uniform(0.05, 4.0))


@pytest.mark.parametrize("seed", range(12))
def test_epsilon_of_one_step_with_kinks_contains_the_truth(seed: int) -> None:
    """Both sides, where delta is known to many more digits than a float has."""
    pair, delta, true = kinked(seed)
    bound = ClosedForm(PairSides(pair, pair, "closed form")).epsilon(delta)
    lower, upper = float(bound.lower), float(bound.upper)
    assert 0.0 < lower < upper <= lower + 2e-11
    with mp.workdps(50):
        assert true(lower) >= Fraction(delta) >= true(upper)


@pytest.mark.parametrize("pair", [GaussianPair(1.0), DiscreteGaussianPair(1.0, 1), DiscreteLaplacePair(1.0, 30)])
def test_crossings_are_proved_where_brackets_of_delta_are_wide_and_uneven(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltas = np.geomspace(1e-5, 1e-2, 20)
    sides = OutcomeSides.of_step(pair) or PairSides(pair, pair, "closed form")
    form, guesses = ClosedForm(sides), sides.guesses(np.array(deltas))
    true, plain = form._crossings(deltas, guesses)[0], sides.sides

    def doubtful(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = plain(points)
        share = 0.5 + 0.5 * np.sin(1e9 * points)
        return lower * (1.0 - 1e-6 * share), upper * (1.0 + 1e-6 * (1.0 - share))

    monkeypatch.setattr(sides, "sides", doubtful)
    lower, upper = form._crossings(deltas, guesses)
    told = np.isfinite(upper)
    assert told.any()
    assert (doubtful(lower)[0] >= deltas)[told].all()
    assert (doubtful(upper)[1] <= deltas)[told].all()
    assert ((lower < true) & (true < upper) & (upper < lower + 1e-4))[told].all()


@pytest.mark.parametrize("pair", [GaussianPair(1.0), DiscreteGaussianPair(1.0, 1)])
def test_epsilon_is_0_only_where_that_is_proved(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = PairSides(pair, pair, "closed form")
    form = ClosedForm(sides)
    low, high = float(sides.least_at(np.zeros((1, 1)), np.zeros(1, dtype=np.intp))[0, 0]), one_step_delta(pair, 0.0)[1]
    assert form.epsilon(high).sides == (0.0, 0.0)

    def doubtful(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = one_step_deltas(pair, points)
        return lower * (1.0 - 1e-6), upper * (1.0 + 1e-6)

    monkeypatch.setattr(sides, "sides", doubtful)
    assert float(form.epsilon(low).sides[1]) > 0.0
    assert form.epsilons(np.array([low]))[1][0] > 0.0


def test_an_epsilon_below_which_no_cut_is_told_to_be_has_a_delta_of_at_most_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others beside it are answered as ever."""
    places = GaussianTails._places

    def doubtful(self: GaussianTails, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y, slack = places(self, losses)
        return y, np.where(losses > 2.0, slack, 0.8 * (1.0 - losses))

    alone = one_step_delta(GaussianPair(1.0), 3.0)
    monkeypatch.setattr(GaussianTails, "_places", doubtful)
    lower, upper = one_step_deltas(GaussianPair(1.0), np.array([1.0, 3.0]))
    assert (lower[1], upper[1]) == alone
    assert upper[0] == 1.0


@pytest.mark.parametrize("mechanism", [hs.Laplace(1.0), hs.DiscreteGaussian(2.0)])
def test_epsilon_of_one_step_with_kinks_takes_a_few_passes(
    mechanism: hs.mechanisms.Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, several = 0, closed_form.one_step_deltas

    def counting(pair: Pair, points: np.ndarray, **above: Pair) -> tuple[np.ndarray, np.ndarray]:
        nonlocal passes
        passes += 1
        return several(pair, points, **above)

    monkeypatch.setattr(closed_form, "one_step_deltas", counting)
    hs.account(mechanism.poisson(rate=0.01)).epsilon(1e-5)
    assert 0 < passes <= 14  # of two directions


@pytest.mark.parametrize(
    ("mechanism", "delta", "width"),
    [
        (hs.Laplace(37.6), 1e-22, 1e-14),
        (hs.Laplace(37.6), 1e-300, 1e-14),
        (hs.RandomizedResponse(0.75), 5e-324, 1e-14),
        (hs.DiscreteGaussian(0.0837), 1.4e-147, 3e-11),
        (hs.DiscreteGaussian(0.0837), 1e-300, 3e-11),
    ],
)
def test_epsilons_a_few_roundings_from_a_loss_take_a_few_passes(
    mechanism: hs.mechanisms.Mechanism, delta: float, width: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(ClosedForm, "_searched")
    assert hs.account(mechanism, "add").epsilon(delta).width < width
