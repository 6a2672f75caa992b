"""Laws that every certified curve obeys, whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.accountants import Certified

QUICK = Certified(1e-2, points=1 << 16, engine="lattice")

steps_of = st.one_of(
    st.builds(lambda s, g: hs.Gaussian(s).poisson(g), st.floats(0.4, 20.0), st.floats(1e-4, 1.0)),
    st.builds(hs.Gaussian, st.floats(0.4, 20.0)),
    st.builds(hs.Laplace, st.floats(0.3, 20.0)),
    st.builds(lambda b, g: hs.Laplace(b).poisson(g), st.floats(0.3, 20.0), st.floats(1e-3, 1.0)),
)


@settings(max_examples=8, deadline=None)
@given(step=steps_of, count=st.integers(2, 300))
def test_delta_is_monotone_in_epsilon_and_steps(step: hs.Step, count: int) -> None:
    epsilons = np.linspace(0.0, 6.0, 7)
    fewer, more = (hs.account(step * n, accountant=QUICK).delta(epsilons) for n in (count, count + count // 2))
    for bound in (fewer, more):
        assert ((bound.lower >= 0.0) & (bound.upper <= 1.0)).all()
        # each is its own bracket, as narrow as asked for unless it says it is not
        assert (bound.upper[1:] <= bound.upper[:-1] * 1.02).all() or any("was asked for" in n for n in bound.notes)
        assert (bound.lower[1:] <= bound.upper[:-1]).all()
    assert (fewer.lower <= more.upper).all()


NEIGHBOURING = [
    hs.Gaussian(1.3),
    hs.Laplace(1.7),
    hs.Gaussian(1.1).poisson(0.1),
    hs.Gaussian(3.0) * 7,
    hs.RandomizedResponse(probability=0.8) * 5,
    hs.Gaussian(0.9).poisson(0.02) * 300,
]


@pytest.mark.parametrize("run", NEIGHBOURING, ids=str)
def test_sides_fall_to_within_the_width_at_neighbouring_epsilons(run: hs.Step) -> None:
    """Each bracket is proved by itself: its sides may rise by rounding, never by more than it is wide."""
    at = [0.7]
    for _ in range(60):
        at.append(float(np.nextafter(at[-1], np.inf)))
    bound = hs.account(run, "add").delta(at)
    assert (np.diff(bound.upper) <= bound.width[1:]).all()
    assert (np.diff(bound.lower) <= bound.width[:-1]).all()
    later = np.maximum.accumulate(bound.lower[::-1])[::-1]
    assert (later <= np.minimum.accumulate(bound.upper)).all()
    assert bound.width.max() <= 1e-8 * bound.upper.max()


def test_running_extremes_of_sides_are_in_order_and_hold() -> None:
    at = 1.0 + np.arange(300) * 2.0**-52
    bound = hs.account(hs.Gaussian(1.0)).delta(at)
    assert (np.diff(bound.upper) > 0.0).any()  # the sides do rise: else this would say nothing
    upper = np.minimum.accumulate(bound.upper)
    lower = np.maximum.accumulate(bound.lower[::-1])[::-1]
    with mp.workdps(40):
        for low, high, epsilon in zip(lower.tolist(), upper.tolist(), at.tolist(), strict=True):
            e = mpf(epsilon)
            truth = mp.ncdf(mpf(1) / 2 - e) - mp.exp(e) * mp.ncdf(-mpf(1) / 2 - e)
            assert mpf(low) <= truth <= mpf(high)


@settings(max_examples=8, deadline=None)
@given(a=steps_of, b=steps_of)
def test_order_does_not_matter(a: hs.Step, b: hs.Step) -> None:
    assert a + b == b + a
    first, second = (hs.account(run * 3, accountant=QUICK).epsilon(1e-6) for run in (a + b, b + a))
    assert max(first.lower, second.lower) <= min(first.upper, second.upper)


def test_count_is_repeated_composition() -> None:
    step = hs.Gaussian(2.0).poisson(0.1)
    assert step * 3 == step + step + step == hs.compose([(step, 2), step])
    assert (step * 2) * 3 == step * 6
    assert len((step * 3 + step).steps) == 1


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-20])
def test_add_remove_is_the_maximum_over_directions(delta: float) -> None:
    run = hs.Gaussian(0.9).poisson(0.05) * 200
    both, add, remove = (hs.account(run, adjacency).epsilon(delta) for adjacency in ("add-remove", "add", "remove"))
    assert both.upper == max(add.upper, remove.upper)
    assert both.lower == max(add.lower, remove.lower)


def test_sampling_at_rate_one_is_no_sampling() -> None:
    plain, sampled = (hs.account(s * 50).epsilon(1e-6) for s in (hs.Gaussian(3.0), hs.Gaussian(3.0).poisson(1.0)))
    assert (plain.lower, plain.upper) == (sampled.lower, sampled.upper)


@settings(max_examples=6, deadline=None)
@given(noise=st.floats(0.5, 10.0), rate=st.floats(1e-3, 0.5), factor=st.floats(1.05, 3.0))
def test_more_noise_or_less_sampling_is_more_private(noise: float, rate: float, factor: float) -> None:
    base = hs.account(hs.Gaussian(noise).poisson(rate) * 100).epsilon(1e-6)
    noisier = hs.account(hs.Gaussian(noise * factor).poisson(rate) * 100).epsilon(1e-6)
    rarer = hs.account(hs.Gaussian(noise).poisson(rate / factor) * 100).epsilon(1e-6)
    assert noisier.lower <= base.upper
    assert rarer.lower <= base.upper


def test_steps_that_share_a_pair_add_up() -> None:
    """30 of Gaussian noise 1 and 20 of mu = 1 are 50 of either."""
    mixed, plain = hs.Gaussian(1.0) * 30 + hs.GaussianDP(1.0) * 20, hs.Gaussian(1.0) * 50
    for direction in ("remove", "add", "substitute"):
        assert sum(count for _, count in mixed.pairs(direction)) == 50
    first, second = (hs.account(run).epsilon(1e-6) for run in (mixed, plain))
    assert max(first.lower, second.lower) <= min(first.upper, second.upper)


def test_each_relation_has_both_of_its_directions() -> None:
    """Whichever direction is worse decides, under every relation that has two."""
    few, many = (0.5, 0.5, 0.0), (0.45, 0.5, 0.05)
    for pair in (hs.DiscretePair(few, many), hs.DiscretePair(many, few)):
        for adjacency in ("add-remove", "zero-out"):
            bound = hs.account(pair * 3, adjacency).delta(3.0)
            assert bound.lower <= 1.0 - 0.95**3 <= bound.upper
