"""Guarantees for groups of records: against pairs written out, closed forms, and the bound for anything."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.composition import Step
from hockeystick.errors import UnknownPairError
from tests.closed_forms import gaussian_delta

NOISE = [
    (hs.Gaussian(3.0), hs.Gaussian(1.0)),
    (hs.Laplace(6.0), hs.Laplace(2.0)),
    (hs.DiscreteLaplace(6.0), hs.DiscreteLaplace(6.0, 3)),
    (hs.DiscreteGaussian(6.0), hs.DiscreteGaussian(6.0, 3)),
    (hs.DiscreteGaussian(6.0, values="counts"), hs.DiscreteGaussian(6.0, 3, values="counts")),
    (hs.Binomial(400), hs.Binomial(400, sensitivity=3)),
    (hs.GaussianDP(0.25), hs.GaussianDP(0.75)),
    (hs.ApproximateDP(0.25), hs.DiscreteLaplace(4.0, 3, values="counts")),
    (hs.RandomizedResponse(0.75), hs.RandomizedResponse(0.75) * 3),
]


@pytest.mark.parametrize(("step", "alike"), NOISE)
@pytest.mark.parametrize("adjacency", ["add-remove", "substitute"])
def test_a_group_of_three_is_one_record_of_three_times_the_size(step: Step, alike: Step, adjacency: str) -> None:
    group = hs.account(step * 2, adjacency, group_size=3)
    same = hs.account(alike * 2, adjacency)
    one, other = group.epsilon(1e-4), same.epsilon(1e-4)
    assert isinstance(one, hs.Bound)
    assert isinstance(other, hs.Bound)
    assert max(float(one.lower), float(other.lower)) <= min(float(one.upper), float(other.upper))
    assert one.width < 2e-3
    assert one.lower > 2.0 * float(hs.account(step * 2, adjacency).epsilon(1e-4)) or isinstance(
        step, hs.RandomizedResponse
    )


def test_the_group_of_a_staircase_has_the_shift_of_its_size() -> None:
    pair = hs.Staircase(0.5, 0.25).for_group(3).pair("substitute")  # type: ignore[union-attr]
    assert pair == type(hs.Staircase(0.5, 0.25).pair("remove"))(0.5, 0.25, 6)


def test_gaussian_groups_contain_the_closed_form() -> None:
    for size, epsilon in itertools.product((2, 7), (0.5, 3.0)):
        with mp.workdps(40):
            truth = gaussian_delta(mpf(size) / 5, epsilon)
            bound = hs.account(hs.Gaussian(5.0), group_size=size).delta(epsilon)
            assert isinstance(bound, hs.Bound)
            assert mpf(float(bound.lower)) <= truth <= mpf(float(bound.upper))


@pytest.mark.parametrize("direction", ["add", "remove"])
def test_a_sampled_group_contains_the_sum_over_who_is_drawn(direction: str) -> None:
    """One step, by bisection for the place where the mixture's loss is epsilon, written out in mpmath."""
    size, rate, noise, epsilon = 3, 0.2, 1.5, 0.4
    with mp.workdps(40):
        s, g = mpf(noise), mpf(rate)
        weights = [mp.binomial(size, j) * g**j * (1 - g) ** (size - j) for j in range(size + 1)]

        def ratio(x: mpf) -> mpf:
            return sum(w * mp.exp((2 * j * x - j * j) / (2 * s * s)) for j, w in enumerate(weights))

        order = mp.exp(mpf(epsilon)) if direction == "remove" else mp.exp(-mpf(epsilon))
        x = mp.findroot(lambda x: mp.log(ratio(x)) - mp.log(order), mpf(1))
        above = sum(w * mp.erfc((x - j) / s / mp.sqrt(2)) / 2 for j, w in enumerate(weights))
        plain = mp.erfc(x / s / mp.sqrt(2)) / 2
        truth = above - order * plain if direction == "remove" else (1 - plain) - (1 - above) / order
        for step in (hs.Gaussian(noise).poisson(rate), hs.Gaussian(noise).poisson(rate, micro_batches=1)):
            bound = hs.account(step, direction, group_size=size).delta(epsilon)
            assert isinstance(bound, hs.Bound)
            assert mpf(float(bound.lower)) <= truth * (1 + mpf(10) ** -30)
            assert truth * (1 - mpf(10) ** -30) <= mpf(float(bound.upper))
            assert bound.width < 1e-6


def test_sampled_groups_are_the_mixtures_of_their_size() -> None:
    poisson = hs.Gaussian(2.0).poisson(0.1).for_group(3).pair("remove")  # type: ignore[union-attr]
    assert poisson == hs.GaussianMixture.poisson_group(2.0, rate=0.1, size=3).pair("remove")
    micro = hs.Gaussian(2.0).poisson(0.1, micro_batches=2).for_group(3).pair("add")  # type: ignore[union-attr]
    assert micro == hs.GaussianMixture.poisson_group(2.0, rate=0.1, size=6).pair("add")
    fixed = hs.Gaussian(2.0).without_replacement(batch_size=5, population=50).for_group(3)
    whole = hs.GaussianMixture.fixed_size_group(2.0, batch_size=5, population=50, size=3)
    assert fixed.pair("remove") == whole.pair("remove")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("batch", "population", "size"),
    [(5, 50, 3), (3, 50, 5), (40, 50, 10), (10**8, 10**9, 3), (2, 10**9, 10**8), (10**50, 10**100, 2)],
)
def test_how_many_of_a_group_are_in_a_batch_of_fixed_size_is_hypergeometric(
    batch: int, population: int, size: int
) -> None:
    pair = hs.Gaussian(1.0).drawn_together(batch_size=batch, population=population, size=size)
    weights: Any = pair.p_weights  # type: ignore[attr-defined]
    assert len(weights) == min(batch, size) + 1
    assert sum(weights) == 1
    mean = Fraction(batch * size, population)
    assert sum(j * weight for j, weight in enumerate(weights)) == mean
    both = Fraction(batch * (batch - 1), population * (population - 1)) * math.comb(size, 2)
    assert sum(math.comb(j, 2) * weight for j, weight in enumerate(weights)) == both
    if population < 100:
        ways = [math.comb(size, j) * math.comb(population - size, batch - j) for j in range(len(weights))]
        assert list(weights) == [Fraction(way, math.comb(population, batch)) for way in ways]


@pytest.mark.parametrize("size", [2, 300])
def test_weights_of_any_size_are_written(size: int) -> None:
    """Python writes no whole number of more than some thousand digits; a notebook, and a sum of steps, write steps."""
    group = hs.GaussianMixture.poisson_group(4.0, rate=0.01, size=size)
    run = group * 2 + hs.Gaussian(10.0)
    assert run.pairs("remove") == (hs.Gaussian(10.0) + group * 2).pairs("remove")
    assert "GaussianMixture(" in run._repr_html_()
    assert repr(group.pair("remove")).startswith("GaussianMixturePair(sigma=4.0, p_weights=(")
    none = repr((1 - Fraction(0.01)) ** 2) if size == 2 else f"about {0.99**300:.12f}"[:-1]
    shifts = repr(tuple(map(float, range(size + 1))))
    start = f"GaussianMixture(noise_multiplier=4.0, sensitivities={shifts}, probabilities=({none}"
    assert repr(group).startswith(start)


def test_more_of_a_group_in_one_batch_than_a_mixture_has_terms_is_refused() -> None:
    for size in (1001, 10**50):
        with pytest.raises(hs.UnknownPairError, match="at most 1,000"):
            hs.GaussianMixture.fixed_size_group(1.0, batch_size=10**9, population=10**100, size=size)


def test_approximate_dp_of_a_group_is_the_chain_rounded_up() -> None:
    epsilon, delta, size = 0.1, 1e-5, 4
    pair = hs.ApproximateDP(epsilon, delta).pair_of_group("remove", size)
    with mp.workdps(40):
        total = mpf(delta) * sum(mp.exp(i * mpf(epsilon)) for i in range(size))
        assert total <= mpf(pair.delta) <= total * (1 + mpf(10) ** -8)  # type: ignore[attr-defined]
    assert Fraction(pair.epsilon) >= size * Fraction(epsilon)  # type: ignore[attr-defined]


def _chain(epsilon: float, delta: float, size: int, at: float) -> mpf:
    """The most that a chain of (epsilon, delta)-DP leaves: H(e^at) of P(E) <= G(G(...Q(E))), linear between corners."""
    e, d, a = mp.exp(mpf(epsilon)), mpf(delta), mp.exp(mpf(at))

    def most(p: mpf) -> mpf:
        for _ in range(size):
            p = min(e * p + d, 1 - (1 - d - p) / e, mpf(1))
        return p

    def least(p: mpf) -> mpf:
        """What one step makes p of."""
        return (p - d) / e if p <= (e + d) / (1 + e) else 1 - d - (1 - p) * e

    corners = [mpf(0), (1 - d) / (1 + e), 1 - d]
    for _ in range(size):
        corners += [least(p) for p in corners[-2:]]
    return max(most(p) - a * p for p in corners if 0 <= p <= 1)


@pytest.mark.parametrize("size", [2, 4, 7])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.5, 0.01), (2.0, 0.0), (0.1, 1e-5), (1e-150, 1e-3)])
def test_no_chain_of_a_stated_guarantee_shows_less_than_is_claimed_of_a_group(
    epsilon: float, delta: float, size: int
) -> None:
    step = hs.ApproximateDP(epsilon, delta)
    alike = [step.for_group(size)]
    if size == 4:  # a record that is in two micro-batches for certain is two records
        alike.append(step.poisson(1.0, micro_batches=2).for_group(2))
    with mp.workdps(40):
        for at in (0.0, 0.3, epsilon, 0.9 * size * epsilon):
            truth = _chain(epsilon, delta, size, at)
            for run in alike:
                bound = hs.account(run).delta(at)
                assert bound.lower <= truth <= bound.upper
                if not delta:  # discrete Laplace noise shows as much
                    assert bound.upper * (1 - mpf(10) ** -9) <= truth <= bound.lower * (1 + mpf(10) ** -9)


@pytest.mark.parametrize("units", [1, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.7])
def test_a_delta_below_the_normal_range_is_rounded_up_too(units: int, epsilon: float) -> None:
    delta = units * 5e-324
    pair = hs.ApproximateDP(epsilon, delta).pair_of_group("remove", 2)
    with mp.workdps(400):
        assert mpf(delta) * (1 + mp.exp(mpf(epsilon))) <= mpf(pair.delta)  # type: ignore[attr-defined]


def test_a_stated_mu_is_rounded_to_both_sides() -> None:
    step = hs.GaussianDP(0.1)
    upper = step.pair_of_group("remove", 3)
    (lower,) = step.attained_by_group("remove", 3) or ()
    assert Fraction(lower.sensitivity) <= 3 * Fraction(0.1) <= Fraction(upper.sensitivity)  # type: ignore[attr-defined]
    assert lower != upper


RUNS = [
    hs.Gaussian(20.0) * 10,
    hs.Gaussian(4.0).poisson(0.01) * 50,
    hs.DiscreteLaplace(20.0) * 4,
    hs.RandomizedResponse(0.6) * 2,
]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("size", [2, 6])
def test_the_bound_for_anything_is_above_what_is_proved_of_the_pair(run: hs.Composition, size: int) -> None:
    curve = hs.account(run)
    exact, bound = hs.account(run, group_size=size).epsilon(1e-6), curve.group_epsilon(1e-6, size=size)
    assert bound.upper >= exact.sides[0]
    assert bound.lower <= exact.sides[1]
    assert bound.upper <= 1.2 * exact.sides[1]


def test_the_bound_for_anything_is_the_chain_of_pure_dp() -> None:
    """Two answers of log-odds k epsilon apart are a chain of k steps, and no bound may be below their loss."""
    bound = hs.account(hs.ApproximateDP(0.1)).group_epsilon(0.0, size=5)
    assert 0.5 <= bound.upper <= 0.5 * (1 + 1e-3)
    assert hs.account(hs.ApproximateDP(0.1, 0.01)).group_epsilon(1e-3, size=5).upper == math.inf
    one = hs.account(hs.Gaussian(1.0))
    assert one.group_epsilon(1e-5, size=1).sides == one.epsilon(1e-5).sides


@pytest.mark.parametrize(("scale", "size"), [(0.1, 100), (0.001, 2), (1.0, 10**6)])
def test_the_bound_of_a_group_is_finite_wherever_losses_are(scale: float, size: int) -> None:
    """The largest loss of one record is 1 / scale, so that of k is k / scale at most, beyond e^700 as well."""
    largest = size / scale
    for delta in (0.0, 1e-300, 1e-6):
        assert 0.5 * largest <= hs.account(hs.Laplace(scale)).group_epsilon(delta, size=size).upper <= 1.001 * largest
    assert hs.account(hs.Gaussian(0.1)).group_epsilon(1e-6, size=2).upper < 700.0
    nothing = hs.account(hs.Gaussian(1.0)).group_epsilon(1.0, size=size)
    assert nothing.sides == (0.0, 0.0)  # a delta of 1 asks for nothing


def test_a_curve_that_is_certified_at_its_ends_alone_bounds_no_group() -> None:
    """Of 2,000 Laplace steps the group's largest loss is 10,000; estimates of delta are 0 from 1,860 on."""
    curve = hs.account(hs.Laplace(1.0) * 2000, accountant=hs.accountants.SaddlePoint())
    assert curve.epsilon(0.0).certified
    with pytest.raises(TypeError, match="certified accountant"):
        curve.group_epsilon(0.0, size=5)


def test_an_accountant_that_knows_no_largest_loss_bounds_a_group() -> None:
    run = hs.Gaussian(2.0).poisson(0.1) * 10
    found = hs.account(run, accountant=hs.accountants.Contour()).group_epsilon(1e-5, size=2)
    assert found.lower <= hs.account(run).group_epsilon(1e-5, size=2).upper <= 1.01 * float(found.upper)


@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.5])
def test_the_bound_of_a_group_is_found_where_losses_are_a_few_of_the_least_numbers(delta: float) -> None:
    """A sample of two equal datasets: what is rounded of its loss is all there is to halve."""
    curve = hs.account(hs.DiscretePair((0.0, 1.0), (0.0, 1.0)).poisson(0.5))
    assert 0.0 <= curve.group_epsilon(delta, size=2).upper < 1e-320  # type: ignore[operator]


def test_what_is_not_proved_is_refused_with_what_to_use() -> None:
    for step in (
        hs.Laplace(5.0).poisson(0.1),
        hs.ExponentialMechanism(0.1),
        hs.ZeroConcentratedDP(0.1),
        hs.Gaussian(1.0).poisson(0.1).for_group(300),
        hs.Laplace(5.0).without_replacement(batch_size=5, population=50),
        hs.Gaussian(1.0).random_allocation(steps=10),
    ):
        with pytest.raises(UnknownPairError, match="group_epsilon"):
            hs.account(step, group_size=5)
    for adjacency in ("substitute", "zero-out"):
        with pytest.raises(UnknownPairError):
            hs.account(hs.Gaussian(1.0).without_replacement(batch_size=5, population=50), adjacency, group_size=2)
    with pytest.raises(UnknownPairError):
        hs.account(hs.Gaussian(1.0).poisson(0.1), "substitute", group_size=2)
    with pytest.raises(ValueError, match="group_size"):
        hs.account(hs.Gaussian(1.0), group_size=0)
    fixed = hs.account(hs.Gaussian(1.0).without_replacement(batch_size=5, population=50))
    with pytest.raises(UnknownPairError, match="number of records"):
        fixed.group_epsilon(1e-5, size=2)
    with pytest.raises(TypeError, match="certified"):
        hs.account(hs.Gaussian(1.0), accountant=hs.accountants.GaussianLimit()).group_epsilon(1e-5, size=2)


def test_groups_of_groups_multiply() -> None:
    step = hs.Gaussian(5.0).for_group(2)
    assert step.for_group(3).pair("remove") == hs.Gaussian(5.0).for_group(6).pair("remove")  # type: ignore[union-attr]
    assert hs.Gaussian(5.0).for_group(1) == hs.Gaussian(5.0)
    tuned = hs.select_best(hs.Gaussian(20.0) * 2, count=hs.PoissonCount(3.0))
    grouped = hs.select_best((hs.Gaussian(20.0) * 2).for_group(4), count=hs.PoissonCount(3.0))
    assert tuned.for_group(4).pair("remove") == grouped.pair("remove")
