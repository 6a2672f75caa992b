"""Runs of Laplace steps of one scale in closed form: brackets of rounding only, at any number of steps and delta."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.engines.closed_form import ClosedForm, closed_form
from hockeystick.engines.laplace_sum import LaplaceSum, _Splines, _table
from hockeystick.exact import exact_delta
from hockeystick.laws import LaplacePair, SubsampledPair
from hockeystick.laws.base import Pair

METHOD = "closed form of Laplace steps"
Parts = list[tuple[Pair, int]]


def sides_of(parts: Parts) -> LaplaceSum:
    sides = LaplaceSum.of(parts)
    assert sides is not None
    return sides


def contains(parts: Parts, epsilon: float, *, width: float) -> None:
    lower, upper = (float(side[0]) for side in sides_of(parts).sides(np.array([epsilon])))
    truth = exact_delta(parts, epsilon, digits=20)
    assert Fraction(lower) <= truth.high, (parts, epsilon)
    assert Fraction(upper) >= truth.low, (parts, epsilon)
    assert upper - lower <= width * upper, (parts, epsilon, lower, upper)


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 20, 64])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0, 1e3])
def test_deltas_contain_the_truth_from_end_to_end(steps: int, scale: float) -> None:
    parts: Parts = [(LaplacePair(scale), steps)]
    most = steps / scale
    for share in (-0.7, 0.0, 1e-9, 0.2, 0.5, 2.0 / 3.0, 0.95):
        contains(parts, share * most, width=1e-12)


@pytest.mark.parametrize("steps", [2, 5, 30])
def test_deltas_next_to_knots_and_to_the_largest_loss_contain_the_truth(steps: int) -> None:
    parts: Parts = [(LaplacePair(3.0), steps)]
    for knot in (0.0, 1.0 / 9.0, 1.0 / 3.0, (steps - 2) / 3.0):
        for epsilon in (knot, math.nextafter(knot, 0.0), math.nextafter(knot, 9.0), knot * (1.0 - 1e-12)):
            contains(parts, epsilon, width=1e-12)
    for gap in (1e-3, 1e-6, 1e-9, 1e-12):
        contains(parts, steps / 3.0 * (1.0 - gap), width=1e-14 * steps / gap)


@pytest.mark.parametrize(("scale", "steps"), [(1.0, 80), (2.5, 130), (10.0, 200), (1.0 / 16.0, 12), (1e6, 4)])
def test_the_ends_of_what_is_served_contain_the_truth(scale: float, steps: int) -> None:
    for share in (0.0, 0.6, 0.99):
        contains([(LaplacePair(scale), steps)], share * steps / scale, width=1e-11)


def test_the_density_of_two_steps_integrates_to_delta() -> None:
    """By hand: two steps, one outcome after the other, the density of each split where the loss bends."""
    mp.dps = 30
    e, epsilon = mpf(0.75), mpf(0.4)
    atoms = [(e, mpf(1) / 2), (-e, mp.exp(-e) / 2)]

    def density(loss: mpf) -> mpf:
        return mp.exp((loss - e) / 2) / 4

    def excess(loss: mpf) -> mpf:
        return -mp.expm1(epsilon - loss) if loss > epsilon else mpf(0)

    truth = mp.fsum(p * q * excess(a + b) for (a, p), (b, q) in itertools.product(atoms, atoms))
    for a, p in atoms:
        low = max(-e, epsilon - a)
        if low < e:
            truth += 2 * p * mp.quad(lambda b, a=a: density(b) * excess(a + b), [low, e])
    truth += mp.quad(
        lambda a: density(a) * mp.quad(lambda b: density(b) * excess(a + b), [max(-e, epsilon - a), e]),
        [max(-e, epsilon - e), e],
    )
    form = closed_form([(LaplacePair(1.0, 0.75), 2)])
    assert form is not None
    bound = form.delta(0.4)
    assert bound.method == METHOD
    assert mpf(bound.lower) <= truth <= mpf(bound.upper)
    assert float(bound.width) <= 1e-13


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-6, 1e-12, 1e-30, 1e-100, 1e-300])
@pytest.mark.parametrize(("scale", "steps"), [(1.0, 2), (0.5, 9), (5.0, 40)])
def test_epsilons_are_where_the_truth_crosses_delta(delta: float, scale: float, steps: int) -> None:
    run = hs.Laplace(scale) * steps
    bound = hs.account(run).epsilon(delta)
    assert isinstance(bound, hs.Bound)
    pairs = run.pairs("remove")
    if bound.lower > 0.0:
        assert exact_delta(pairs, float(bound.lower), digits=20).high >= Fraction(delta)
    assert exact_delta(pairs, float(bound.upper), digits=20).low <= Fraction(delta)
    assert float(bound.width) <= 1e-10 * max(1.0, steps / scale)


@pytest.mark.parametrize(
    "rest",
    [
        hs.RandomizedResponse(0.6),
        hs.RandomizedResponse(0.9) * 5,
        hs.DiscreteLaplace(2.0) * 2,
        hs.DiscretePair((0.5, 0.3, 0.2), (0.25, 0.75, 0.0)) * 3,
    ],
    ids=["response", "five", "noise", "infinite"],
)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_discrete_steps_beside_them_shift_epsilon(rest: hs.Composition, direction: str) -> None:
    run = hs.Laplace(2.0) * 4 + rest
    curve = hs.account(run, direction)
    for epsilon in (0.0, 0.3, 1.1, 2.0, 3.5):
        bound = curve.delta(epsilon)
        truth = exact_delta(run.pairs(direction), epsilon, digits=20)
        assert bound.method in {METHOD, "trivial"}
        assert bound.lower <= truth.high
        assert bound.upper >= truth.low
        assert bound.upper - bound.lower <= 1e-11 * bound.upper


def test_equal_losses_of_other_scales_and_sensitivities_are_one_kind() -> None:
    plain, together = sides_of([(LaplacePair(1.0), 5)]), sides_of([(LaplacePair(2.0, 2.0), 2), (LaplacePair(1.0), 3)])
    assert plain.side(0, 1.7) == together.side(0, 1.7)
    assert plain.side(1, 1.7) == together.side(1, 1.7)
    assert LaplaceSum.of([(LaplacePair(1.0), 2), (LaplacePair(2.0), 1)]) is None


def test_many_epsilons_are_answered_as_one_is() -> None:
    for run in (hs.Laplace(1.0) * 12, hs.Laplace(2.0) * 5 + hs.RandomizedResponse(0.8) * 2):
        curve = hs.account(run)
        epsilons = np.linspace(0.0, 12.5, 60)
        together = curve.delta(epsilons)
        for index, epsilon in enumerate(epsilons.tolist()):
            alone = hs.account(run).delta(epsilon)
            assert (alone.lower, alone.upper) == (together.lower[index], together.upper[index])


def test_coefficients_are_those_of_the_generating_function() -> None:
    """(1 + x + w)^k w^2 / ((1 - x)^2 - w^2), term by term."""
    steps, levels, length = 4, 12, 6
    table = _table(steps, levels, length)
    for level, i in itertools.product(range(2, levels + 1), range(length)):
        total = 0
        for p in range(2, level + 1, 2):
            if level - p <= steps:
                free = steps - level + p
                total += math.comb(steps, level - p) * sum(
                    math.comb(free, a) * math.comb(i - a + p - 1, p - 1) for a in range(min(free, i) + 1)
                )
        assert table[level, i] == total


@pytest.mark.parametrize(("steps", "loss", "z"), [(2, 1.0, 1.0), (10, 4.0, 5.0), (60, 0.1, 30.0), (5, 1e-3, 2.0)])
def test_levels_left_out_are_within_the_bracket(steps: int, loss: float, z: float) -> None:
    enough = _Splines(steps, loss, int(z))
    more, fewer = _Splines(steps, loss, int(z), more=64), _Splines(steps, loss, int(z), more=-16)
    at = np.array([z * (1.0 - 1e-9)])
    value = {one: one._sums(at)[0] * 2.0 ** (-one._scale) for one in (enough, more, fewer)}
    assert abs(value[enough] / value[more] - 1.0) <= enough._error + more._error
    assert value[fewer] <= value[more] * (1.0 + more._error)


def test_sums_below_the_range_of_floats_widen_the_bracket() -> None:
    """With no scale left, what underflows is in the bracket."""
    splines = _Splines(40, 0.5, 21)
    z = np.array([1e-3, 0.5, 3.0])
    low, high = splines.bounds(z, above=False), splines.bounds(z, above=True)
    splines._scale = -1045
    lower, upper = splines.bounds(z, above=False), splines.bounds(z, above=True)
    assert (lower <= high).all()
    assert (upper >= low).all()
    assert (upper > 1.5 * high).any()  # it did


def test_runs_that_are_not_of_this_kind_are_left_to_others() -> None:
    for parts in (
        [(SubsampledPair(LaplacePair(1.0), 0.5), 3)],
        [(LaplacePair(1.0), 300)],
        [(LaplacePair(1e-3), 3)],
        [(LaplacePair(1.0), 2), (hs.Gaussian(1.0).pair("remove"), 1)],
    ):
        assert LaplaceSum.of(parts) is None
    assert isinstance(closed_form([(LaplacePair(1.0), 2)]), ClosedForm)
