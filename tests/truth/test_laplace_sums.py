"""Runs of Laplace steps of any scales in closed form: brackets of rounding only, at any number of steps and delta."""

from __future__ import annotations

import itertools
import math
from decimal import localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.engines.closed_form import ClosedForm, closed_form
from hockeystick.engines.laplace_sum import LaplaceSum
from hockeystick.exact import exact_delta
from hockeystick.laws import LaplacePair, SubsampledPair
from hockeystick.laws.base import Pair
from tests.quadrature import DIGITS, integral

METHOD = "closed form of Laplace steps"
WIDTH = 5e-15  # of delta
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
        contains(parts, share * most, width=WIDTH)


@pytest.mark.parametrize("steps", [2, 5, 30])
def test_deltas_next_to_knots_and_to_the_largest_loss_contain_the_truth(steps: int) -> None:
    parts: Parts = [(LaplacePair(3.0), steps)]
    for knot in (0.0, 1.0 / 9.0, 1.0 / 3.0, (steps - 2) / 3.0):
        for epsilon in (knot, math.nextafter(knot, 0.0), math.nextafter(knot, 9.0), knot * (1.0 - 1e-12)):
            contains(parts, epsilon, width=WIDTH)
    for gap in (1e-3, 1e-6, 1e-9, 1e-12):
        contains(parts, steps / 3.0 * (1.0 - gap), width=WIDTH)


@pytest.mark.parametrize(("scale", "steps"), [(1.0, 80), (2.5, 127), (10.0, 127), (1.0 / 16.0, 12), (1e6, 4)])
def test_the_ends_of_what_is_served_contain_the_truth(scale: float, steps: int) -> None:
    for share in (0.0, 0.6, 0.99):
        contains([(LaplacePair(scale), steps)], share * steps / scale, width=WIDTH)


def test_the_density_of_two_steps_integrates_to_delta() -> None:
    """By hand: two steps, one outcome after the other, the density of each split where the loss bends."""
    with ctx.workdps(DIGITS):
        e, epsilon = arb(0.75), arb(0.4)
        atoms = [(e, arb(0.5)), (-e, (-e).exp() / 2)]

        def density(loss: arb) -> arb:
            return ((loss - e) / 2).exp() / 4

        def excess(loss: arb) -> arb:
            return -(epsilon - loss).expm1() if loss > epsilon else arb(0)

        def beside(a: arb) -> arb:
            """With every second outcome that is no atom."""
            low = (-e).max(epsilon - a)
            return integral(lambda b: density(b) * excess(a + b), [low, e]) if low < e else arb(0)

        total = sum((p * q * excess(a + b) for (a, p), (b, q) in itertools.product(atoms, atoms)), arb(0))
        total += sum((2 * p * beside(a) for a, p in atoms), arb(0))
        total += integral(lambda a: density(a) * beside(a), [epsilon - e, e])
    with mp.workdps(DIGITS):
        truth = mpf(total)
    form = closed_form([(LaplacePair(1.0, 0.75), 2)])
    assert form is not None
    bound = form.delta(0.4)
    assert bound.method == METHOD
    assert mpf(bound.lower) <= truth <= mpf(bound.upper)
    assert float(bound.width) <= WIDTH


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
    assert float(bound.width) <= 1e-11 * max(1.0, steps / scale)


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
        assert bound.upper - bound.lower <= 3e-13 * bound.upper


def test_equal_losses_of_other_scales_and_sensitivities_are_one_kind() -> None:
    plain, together = sides_of([(LaplacePair(1.0), 5)]), sides_of([(LaplacePair(2.0, 2.0), 2), (LaplacePair(1.0), 3)])
    assert plain.sides(np.array([1.7])) == together.sides(np.array([1.7]))


@pytest.mark.parametrize("kinds", [((1.0, 2),), ((1.0, 3),), ((2.0, 10),), ((4.0, 20),), ((1.0, 1), (20.0, 5))])
@pytest.mark.parametrize("delta", [0.2, 0.1, 0.01, 1e-5, 1e-10])
def test_an_epsilon_takes_a_few_evaluations(
    kinds: tuple[tuple[float, int], ...], delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = sides_of([(LaplacePair(scale), steps) for scale, steps in kinds])
    at, calls = sides._at, 0

    def counting(epsilon: float) -> tuple[float, float]:
        nonlocal calls
        calls += 1
        return at(epsilon)

    monkeypatch.setattr(sides, "_at", counting)
    bound = ClosedForm(sides).epsilon(delta)
    assert bound.width <= 1e-14
    assert 0 < calls <= 20


@pytest.mark.parametrize("delta", [0.99, 0.999, 0.9999])
@pytest.mark.parametrize("kinds", [((1.0 / 26.0, 5),), ((0.04, 9), (0.17, 2), (7.0, 3)), ((0.05, 5), (4.0, 2))])
def test_a_delta_next_to_one_takes_a_few_evaluations(
    kinds: tuple[tuple[float, int], ...], delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(ClosedForm, "_searched")
    parts: Parts = [(LaplacePair(scale), steps) for scale, steps in kinds]
    bound = ClosedForm(sides_of(parts)).epsilon(delta)
    assert bound.width <= 1e-13 / (1.0 - delta)
    assert exact_delta(parts, float(bound.upper), digits=20).low <= Fraction(delta)
    assert exact_delta(parts, float(bound.lower), digits=20).high >= Fraction(delta)


def test_many_epsilons_are_answered_as_one_is() -> None:
    for run in (hs.Laplace(1.0) * 12, hs.Laplace(2.0) * 5 + hs.RandomizedResponse(0.8) * 2):
        curve = hs.account(run)
        epsilons = np.linspace(0.0, 12.5, 60)
        together = curve.delta(epsilons)
        for index, epsilon in enumerate(epsilons.tolist()):
            alone = hs.account(run).delta(epsilon)
            assert (alone.lower, alone.upper) == (together.lower[index], together.upper[index])


@lru_cache(maxsize=64)
def _counts(steps: int, level: int, length: int) -> tuple[int, ...]:
    """[w^level] of (1 + x + w)^k w^2 / ((1 - x)^2 - w^2), for the first powers of x: all at least 0."""
    row = [0] * length
    for p in range(2, level + 1, 2):
        free = steps - level + p
        if level - p > steps:
            continue
        for i in range(length):
            ways = sum(math.comb(free, a) * math.comb(i - a + p - 1, p - 1) for a in range(min(free, i) + 1))
            row[i] += math.comb(steps, level - p) * ways
    return tuple(row)


def by_splines(loss: mpf, steps: int, epsilon: mpf) -> mpf:
    """Delta of steps of one loss e as a sum of cardinal B-splines in losses over 2e: nothing cancels."""
    z = steps / mpf(2) - epsilon / (2 * loss)
    length, total = int(z) + 1, mpf(0)
    splines = [mpf(1) if 0 <= z - i < 1 else mpf(0) for i in range(length)]  # N_1(z - i)
    for level in range(2, 200):
        lower = [*splines[1:], mpf(0)]
        splines = [
            ((z - i) * splines[i] + (level - z + i) * lower[i]) / (level - 1) if z - i < level else mpf(0)
            for i in range(length)
        ]
        row = _counts(steps, level, length)
        total += loss**level * mp.fsum(c * n for c, n in zip(row, splines, strict=True))
    return 2 / loss * mp.exp(-loss * z) * total / mpf(2) ** steps


@pytest.mark.parametrize(("steps", "loss"), [(1, 1.5), (2, 0.75), (3, 2.0), (8, 0.25), (13, 1.0)])
def test_sums_of_splines_are_contained(steps: int, loss: float) -> None:
    with mp.workdps(40):
        for share in (-0.6, 0.0, 0.3, 0.77, 0.999):
            epsilon = share * steps * loss
            lower, upper = (
                float(side[0]) for side in sides_of([(LaplacePair(1.0, loss), steps)]).sides(np.array([epsilon]))
            )
            truth = by_splines(mpf(loss), steps, mpf(epsilon))
            assert mpf(lower) <= truth <= mpf(upper), (share, lower, truth, upper)


@pytest.mark.parametrize(
    "parts",
    [
        [(LaplacePair(1.0), 2), (LaplacePair(2.0), 1)],
        [(LaplacePair(0.7), 3), (LaplacePair(3.0, 1.3), 5), (LaplacePair(1e4), 2)],
        [(LaplacePair(1.0), 30), (LaplacePair(1.0 + 2.0**-40), 9)],
        [(LaplacePair(1e-3), 3), (LaplacePair(1e3), 4)],
        [(LaplacePair(float(scale)), 1) for scale in range(1, 9)],
    ],
    ids=["two", "three", "neighbours", "far", "eight"],
)
def test_steps_of_several_scales_contain_the_truth(parts: Parts) -> None:
    most = sum(count * pair.sensitivity / pair.scale for pair, count in parts if isinstance(pair, LaplacePair))
    for share in (-0.9, -0.2, 0.0, 0.1, 0.5, 0.9, 0.999):
        contains(parts, share * most, width=WIDTH)
    for epsilon in (math.nextafter(most, 0.0), most * (1.0 - 1e-12)):
        contains(parts, epsilon, width=1.0)


def test_the_callers_decimal_context_changes_nothing() -> None:
    parts: Parts = [(LaplacePair(0.9), 7), (LaplacePair(2.0), 5)]
    plain = sides_of(parts)
    with localcontext() as context:
        context.prec = 3
        for epsilon in (0.123456789, 4.7):
            crossed = sides_of(parts)
            assert crossed.sides(np.array([epsilon])) == plain.sides(np.array([epsilon]))


def test_runs_that_are_not_of_this_kind_are_left_to_others() -> None:
    for parts in (
        [(SubsampledPair(LaplacePair(1.0), 0.5), 3)],
        [(LaplacePair(1.0), 300)],
        [(LaplacePair(1e-4), 3)],
        [(LaplacePair(1.0), 2), (hs.Gaussian(1.0).pair("remove"), 1)],
    ):
        assert LaplaceSum.of(parts) is None
    assert isinstance(closed_form([(LaplacePair(1.0), 2)]), ClosedForm)


@pytest.mark.parametrize(("steps", "digits"), [(1, 320), (20, 320), (60, 300)])
def test_a_delta_too_small_for_float64_is_not_certified_to_be_0(steps: int, digits: int) -> None:
    """A rare outcome of a large loss, beside Laplace steps: the product of its mass and their delta underflows."""
    rare = Fraction(1, 10**digits)
    run = hs.Laplace(1.0) * steps + hs.DiscretePair((rare, 1 - rare), (rare / 10**5, 1 - rare / 10**5))
    epsilon = (steps + 5.0 * math.log(10.0)) * (1.0 - 1e-15)
    bound = hs.account(run, "remove").delta(epsilon)
    assert bound.method == METHOD
    with mp.workdps(400):  # all losses the largest ones
        largest = mpf(steps) + 5 * mp.log(10)
        least = mpf(2) ** -steps * mpf(10) ** -digits * -mp.expm1(mpf(epsilon) - largest)
        assert 0 < least <= mpf(bound.upper)
    assert bound.lower == 0.0
