"""Runs of steps of bounded range, each chosen by what came before: the recursion by search over the choices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.accountants.certified import Certified
from hockeystick.laws import BoundedRangePair
from hockeystick.laws.bounded_range import two_outcomes
from hockeystick.laws.bounded_range_run import BoundedRangeRun
from hockeystick.laws.one_step import one_step_delta

_SHRINK = (math.sqrt(5.0) - 1.0) / 2.0


def largest(
    function: Callable[[float], float], low: float, high: float, *, starts: int = 12, rounds: int = 45
) -> float:
    """The largest value: the best of some starts, then a golden-section search around it."""
    points = [low + (high - low) * k / starts for k in range(starts + 1)]
    values = [function(point) for point in points]
    best = values.index(max(values))
    left, right = points[max(best - 1, 0)], points[min(best + 1, starts)]
    found = values[best]
    for _ in range(rounds):
        one, other = right - _SHRINK * (right - left), left + _SHRINK * (right - left)
        first, second = function(one), function(other)
        found = max(found, first, second)
        left, right = (left, other) if first > second else (one, right)
    return found


def worst(epsilon: float, count: int, x: float, *, rounds: int = 45) -> float:
    """V_k(x): the definition, the last step in closed form; choices before the last but one are searched for less."""
    if x >= count * epsilon:
        return 0.0
    if x <= -count * epsilon:
        return -math.expm1(x)
    if count == 1:
        return math.expm1((x - epsilon) / 2) ** 2 / -math.expm1(-epsilon)

    def chosen(t: float) -> float:
        p = math.expm1(t - epsilon) / math.expm1(-epsilon)
        after, otherwise = (worst(epsilon, count - 1, y, rounds=25) for y in (x - t, x - t + epsilon))
        return p * after + (1 - p) * otherwise

    # below, nothing is left to reach
    least = max(x - (count - 1) * epsilon, 0.0)
    return largest(chosen, least, epsilon, rounds=rounds)


@pytest.mark.parametrize("epsilon", [1e-100, 1e-3, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("share", [-0.7, -0.01, 0.0, 0.2, 0.5123, 0.9, 0.999, 1.0 - 1e-9])
def test_runs_of_two_contain_the_best_of_all_choices(epsilon: float, share: float) -> None:
    x = 2.0 * epsilon * share
    low, high = BoundedRangeRun(epsilon, 2).delta(x)
    assert low <= worst(epsilon, 2, x) <= high
    if abs(share) < 0.95:
        assert high <= low * (1.0 + 1e-3)


@pytest.mark.parametrize(("epsilon", "x"), [(0.5, 0.0), (0.5, 1.1), (2.0, 3.3)])
def test_runs_of_three_contain_the_best_of_all_choices(epsilon: float, x: float) -> None:
    low, high = BoundedRangeRun(epsilon, 3).delta(x)
    truth = worst(epsilon, 3, x, rounds=25)
    assert low <= truth * (1.0 + 1e-9)  # choices are found to 1e-6, values to the square of that
    assert high >= truth
    assert high <= low * (1.0 + 1e-3)


def test_one_step_is_the_joined_curve() -> None:
    for x in (-0.3, 0.0, 0.1, 0.7, 0.99):
        low, high = BoundedRangeRun(1.0, 1).delta(x)
        one = one_step_delta(BoundedRangePair(1.0), x)
        assert low <= one[1]
        assert high >= one[0]
        assert high <= one[1] * (1.0 + 1e-3)


def test_choices_on_points_are_attained_and_all_choices_are_not_above() -> None:
    """A run of many: a coarse recursion with choices of its own, none of which is above."""
    epsilon, count, parts = 0.25, 12, 24
    t = [epsilon * j / parts for j in range(parts + 1)]
    p = [math.expm1(s - epsilon) / math.expm1(-epsilon) for s in t]
    values = {i: max(-math.expm1(i * epsilon / parts), 0.0) for i in range(-count * parts, count * parts + 1)}
    for left in range(count - 1, -1, -1):
        values = {
            i: max(p[j] * values[i - j] + (1.0 - p[j]) * values.get(i - j + parts, 0.0) for j in range(parts + 1))
            for i in range(-left * parts, count * parts + 1)
        }
    run = BoundedRangeRun(epsilon, count)
    for i in range(0, count * parts, 7):
        low, high = run.delta(i * epsilon / parts)
        assert high >= values[i] * (1.0 - 1e-12)
        assert low <= high <= values[i] * 1.05 or values[i] < 1e-6


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 5), (0.5, 20), (0.1, 100), (0.01, 128)])
def test_runs_are_known_closely_and_above_those_of_one_choice_for_all(epsilon: float, count: int) -> None:
    run = hs.ExponentialMechanism(epsilon) * count
    for delta in (1e-2, 1e-6, 1e-30):
        found = hs.account(run).epsilon(delta)
        assert isinstance(found, hs.Bound)
        assert float(found.width) <= 1e-2 * float(found.upper)
        for share in (0.3, 0.45, 0.5, 0.55):
            same = Certified().directed(((two_outcomes(epsilon, share * epsilon), count),)).epsilon(delta)
            assert isinstance(same, hs.Bound)
            assert same.lower <= found.upper


@pytest.mark.parametrize(("epsilon", "count", "delta"), [(0.0588, 100, 5.6e-134), (0.5, 4, 1e-3), (1.0, 5, 0.2)])
def test_a_lattice_that_is_insisted_on_takes_no_lower_side_of_a_law_above_the_run(
    epsilon: float, count: int, delta: float
) -> None:
    """Near the largest loss the law has more mass than any run: 5.88 was certified where 5.63 is enough."""
    run = hs.ExponentialMechanism(epsilon) * count
    found, other = hs.account(run), hs.account(run, accountant=Certified(engine="lattice"))
    for one, two in (
        (found.epsilon(delta), other.epsilon(delta)),
        (found.delta(0.9 * epsilon * count), other.delta(0.9 * epsilon * count)),
    ):
        assert 0.0 < float(two.sides[0]) <= float(one.sides[1])
        assert float(one.sides[0]) <= float(two.sides[1])


def test_longer_runs_are_cut_and_stay_above_choices_of_the_whole() -> None:
    pair = BoundedRangePair(0.1)
    assert sum(own.known.count * times for own, times in pair.composed(1000)) == 1000  # type: ignore[attr-defined]
    found, moments = (
        bound
        for bound in (
            hs.account(hs.ExponentialMechanism(0.1) * 1000).epsilon(1e-6),
            hs.account(hs.ExponentialMechanism(0.1) * 1000, accountant=hs.accountants.Moments()).epsilon(1e-6),
        )
    )
    assert isinstance(found, hs.Bound)
    assert isinstance(moments, hs.Bound)
    assert float(found.upper) < float(moments.upper)
    assert float(found.width) <= 0.01 * float(found.upper)
    assert pair.attains_together(100)
    assert not pair.attains_together(1000)


def chosen_first(epsilon: float, count: int, x: float, after: Callable[[float], float]) -> float:
    """The best of all choices for steps that come before others, whose delta is ``after``."""
    if count == 0:
        return after(x)

    def chosen(t: float) -> float:
        p = math.expm1(t - epsilon) / math.expm1(-epsilon)
        one, other = (chosen_first(epsilon, count - 1, y, after) for y in (x - t, x - t + epsilon))
        return p * one + (1 - p) * other

    return largest(chosen, 0.0, epsilon, rounds=30)


@pytest.mark.parametrize(("x", "honest"), [(0.0, 0.9), (0.4, 0.9), (1.3, 0.9), (2.2, 0.9), (0.1, 0.55), (0.4, 0.55)])
def test_other_steps_beside_a_run_contain_what_choosing_last_reaches(x: float, honest: float) -> None:
    run = hs.ExponentialMechanism(0.5) * 2 + hs.RandomizedResponse(honest) * 2
    found = hs.account(run).delta(x)
    assert isinstance(found, hs.Bound)
    right, wrong = mpf(honest), 1 - mpf(honest)
    loss = mp.log(right / wrong)
    ways = [(right**2, 2 * loss), (2 * right * wrong, mpf(0)), (wrong**2, -2 * loss)]
    truth = mp.fsum(p * worst(0.5, 2, float(x - own)) for p, own in ways)
    assert mpf(found.lower) <= truth <= mpf(found.upper) * (1 + mpf(1e-12))  # the pair's loss is from a float
    assert mpf(found.upper) <= truth * (1 + mpf(1e-3))
    # where others come after, what they show comes too late to choose by, unless it decides alone
    masses = [(float(p), float(own)) for p, own in ways]
    least = chosen_first(0.5, 2, x, lambda y: sum(p * max(-math.expm1(y - own), 0.0) for p, own in masses))
    assert float(found.lower) <= least * (1.0 + 1e-13)
    assert honest == 0.9 or least < 0.999 * float(truth)


def test_many_epsilons_at_once_are_those_of_each_alone() -> None:
    run = BoundedRangeRun(0.3, 40)
    at = np.linspace(0.0, 12.5, 301)
    low, high = run.deltas(at, 0.0)
    assert [run.delta(x) for x in at.tolist()] == list(zip(low.tolist(), high.tolist(), strict=True))
    assert (np.diff(high) <= 1e-15).all()
    assert (low <= high).all()


def two_epochs_of_two_batches(chances: tuple[float, float, float], x: float) -> float:
    """delta of two epochs: one of two records, a batch each in random order, is exchanged; two candidates."""
    mine, yours, other = chances

    def epoch(own: float) -> list[float]:  # how often the first candidate was chosen: the order tells nothing
        return [own * other, own + other - 2.0 * own * other, (1.0 - own) * (1.0 - other)]

    pairs = list(zip(epoch(mine), epoch(yours), strict=True))
    return sum(max(p * s - math.exp(x) * q * t, 0.0) for p, q in pairs for s, t in pairs)


def test_shuffled_epochs_claim_no_lower_side_of_steps_that_are_not_shuffled() -> None:
    epsilon, x = 1.0, 0.5
    logits = np.linspace(-epsilon, epsilon, 21)
    chances = (1.0 / (1.0 + np.exp(-logits))).tolist()
    worlds = itertools.product(zip(logits, chances, strict=True), repeat=3)
    shown = max(
        two_epochs_of_two_batches((a, b, c), x)
        for (first, a), (second, b), (third, c) in worlds
        if max(first, second, third) - min(first, second, third) <= epsilon
    )
    step = hs.ExponentialMechanism(epsilon)
    alone = hs.account(step * 2, "substitute").delta(x)
    assert alone.lower > 1.5 * shown > 0.1
    epochs = step.shuffled(batch_size=1, population=2) * 2
    assert hs.account(epochs, "substitute").delta(x).lower <= shown
    beside = hs.account(epochs + step, "substitute").delta(x)  # the step is still there, the epochs may show nothing
    assert beside.lower <= hs.account(step, "substitute").delta(x).upper
