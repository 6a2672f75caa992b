"""A round far out, where a single step decides: against quadrature, ball arithmetic, and what is proved on the way."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

import hockeystick as hs
from hockeystick.exact import Enclosure
from hockeystick.exact.evaluate import curve_of
from hockeystick.exact.exponent import exact_epsilon_of
from hockeystick.laws import GaussianPair, LaplacePair, single_jump
from hockeystick.laws.allocated import AllocatedCurve
from hockeystick.laws.curve import ChordPair, SupportPair
from hockeystick.laws.one_step import one_step_delta
from hockeystick.laws.single_jump import SingleJump, _density, _Others
from tests.quadrature import DIGITS, integral, normal_below, normal_density, panels


def stop_loss(m: arb, c: arb) -> arb:
    """E (W - c)+."""
    if c <= 0:
        return 1 - c
    z = (c.log() + m * m / 2) / m
    return normal_below(m - z) - c * normal_below(-z)


@functools.cache
def two_terms(sigma: float, k: float) -> mpmath.mpf:
    """E (W_1 + W_2 - k)+ by quadrature over the first."""
    with ctx.workdps(DIGITS):
        m = 1 / arb(sigma)
        middle = (arb(k).log() + m * m / 2) / m

        def inner(z: arb) -> arb:
            return normal_density(z) * stop_loss(m, k - (m * z - m * m / 2).exp())

        close = [middle - arb(2) ** -j for j in range(-2, 25)]  # all derivatives fade there
        ends = [arb(-12).min(middle - 8), *(arb(z) for z in range(-11, 13)), *close, *(middle + j for j in range(17))]
        return mpmath.mpf(integral(inner, sorted(ends)))


def jump(sigma: float, steps: int, epsilon: float) -> tuple[float, float]:
    """The bracket of a sum's stop-loss transform."""
    low, high = SingleJump(GaussianPair(sigma), 1.0 / sigma, steps).bounds(np.array([epsilon]))
    return float(low[0]), float(high[0])


@pytest.mark.parametrize(
    ("sigma", "epsilon", "width"),
    [
        (1.0, 5.0, 1e-4),
        (1.0, 12.0, 1e-11),
        (0.25, 120.0, 1e-10),
        (0.1, 150.0, 1e-11),  # the eighth power of b is beyond float64
        (4.0, 5.0, 1e-3),
        (0.52, 69.6, 2e-10),
        (2.0, 15.0, 1e-9),
    ],
)
def test_brackets_contain_two_steps(sigma: float, epsilon: float, width: float) -> None:
    low, high = jump(sigma, 2, epsilon)
    assert low <= two_terms(sigma, 2.0 * math.exp(epsilon)) <= high
    assert high - low <= width * high


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize(("sigma", "epsilon"), [(1.0, 5.0), (0.4, 8.0), (2.0, 4.0)])
def test_series_of_any_even_order_contain_two_steps(
    sigma: float, epsilon: float, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(single_jump, "_ORDER", order)
    for kept in (single_jump._density, single_jump._others):
        kept.cache_clear()
    try:
        low, high = jump(sigma, 2, epsilon)
    finally:
        for kept in (single_jump._density, single_jump._others):
            kept.cache_clear()
    assert low <= two_terms(sigma, 2.0 * math.exp(epsilon)) <= high
    assert high - low <= 0.5 * high


@pytest.mark.parametrize(
    ("sigma", "steps", "epsilon", "width"),
    [
        (1.0, 100, 2.4, 6e-5),
        (1.0, 100, 3.05, 1e-6),
        (1.0, 1000, 1.82, 1e-7),
    ],
)
def test_brackets_contain_rounds_in_ball_arithmetic(sigma: float, steps: int, epsilon: float, width: float) -> None:
    curve = AllocatedCurve(GaussianPair(sigma), steps)
    exact = Enclosure.of_ball(curve_of([(ChordPair(curve), 1)]).delta(exact_epsilon_of(epsilon), 12)).at_least(0)
    low, high = jump(sigma, steps, epsilon)
    room = Fraction(1, 10**14)  # k is a rounding off
    assert Fraction(low) / steps <= exact.upper * (1 + room)
    assert Fraction(high) / steps >= exact.lower * (1 - room)
    assert high - low <= width * high


@pytest.mark.parametrize(("sigma", "steps"), [(1.0, 1000), (0.5, 100), (2.0, 10_000)])
def test_rounds_are_known_down_to_the_least_deltas(sigma: float, steps: int) -> None:
    curve = AllocatedCurve(GaussianPair(sigma), steps)
    for delta in (1e-60, 1e-120, 1e-250):
        epsilon = curve.guess(delta)
        low, high = curve.delta(epsilon)
        assert 0.1 * delta < low <= high < min(10.0 * delta, low * (1.0 + 1e-3))
        assert high < one_step_delta(GaussianPair(sigma), epsilon)[1]  # sampling hides something


@pytest.mark.parametrize("shift", [0.2, 1.0, 3.0])
def test_derivatives_of_the_density_are_those_of_its_polynomials(shift: float) -> None:
    polynomials, first = _density(shift)
    with mpmath.workdps(60):
        m = mpmath.mpf(shift)

        def density(w: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf((mpmath.log(w) + m * m / 2) / m) / (m * w)

        for z in (mpmath.mpf(first), 2 * mpmath.mpf(first)):
            w = mpmath.exp(z * m * m - m * m / 2)
            for j, each in enumerate(polynomials):
                truth = mpmath.diff(density, w, j) * (-w) ** j / density(w)
                assert truth > 0
                assert abs(float(np.polyval(each, float(z))) / truth - 1) < 1e-9


def test_moments_of_the_others_contain_those_of_ball_arithmetic() -> None:
    shift, count, b = 0.8, 50, 30.0
    others = _Others.of(shift, count, b)
    with mpmath.workdps(40):
        m, top = mpmath.mpf(shift), (mpmath.log(b) + mpmath.mpf(shift) ** 2 / 2) / mpmath.mpf(shift)
        raw = [mpmath.exp(m * m * j * (j - 1) / 2) * mpmath.ncdf(top - j * m) for j in range(9)]
        ratio = [each / raw[0] for each in raw]
        logs = mpmath.taylor(
            lambda s: mpmath.log(sum(r * s**j / mpmath.factorial(j) for j, r in enumerate(ratio))), 0, 8
        )
        sums = mpmath.taylor(lambda s: mpmath.exp(sum(count * c * s**j for j, c in enumerate(logs) if j > 1)), 0, 8)
        for j in range(2, 9):
            truth = sums[j] * mpmath.factorial(j) / mpmath.exp(j * others.log_b)
            assert others.low[j] <= truth <= others.high[j]
            assert others.high[j] - others.low[j] <= 1e-9 * abs(truth)
    m, ends = arb(shift), [*panels(-14, arb(top) - 1, 20), *panels(arb(top) - 1, arb(top), 20)]
    for tilt, log in zip(others.tilts[::6], others.logs[::6], strict=True):
        truth = integral(lambda z, tilt=tilt: normal_density(z) * (tilt * (m * z - m * m / 2).exp()).exp(), ends)
        assert truth <= arb(log).exp() <= 100 * truth


def test_what_no_single_step_decides_is_left_to_others() -> None:
    low, high = SingleJump(GaussianPair(5.0), 0.2, 100).bounds(np.array([-0.7, 0.0, 0.2, math.inf]))
    assert low[[0, 1, 3]].tolist() == [0.0] * 3
    assert (high[[0, 1, 3]] == math.inf).all()
    for sigma in (1e20, 1e100):
        for epsilon in (1e-9, 2.0):  # and no transform of the others is a float64
            assert jump(sigma, 100, epsilon) == (0.0, math.inf)
    assert AllocatedCurve(GaussianPair(1.0), 100, mirrored=True).single_jump is None
    assert AllocatedCurve(LaplacePair(1.0), 100).single_jump is None


@pytest.mark.parametrize("steps", [2, 100])
def test_tables_reach_down_to_the_least_deltas(steps: int) -> None:
    curve = AllocatedCurve(GaussianPair(1.0), steps)
    above, below = ChordPair(curve).with_tails.atoms, SupportPair(curve).with_tails.atoms
    assert 0.0 < above.infinite_p < 1e-250
    assert above.infinite_q < 1e-250
    for epsilon in (4.03, 9.01, 17.7, 25.3):
        low, high = (float(side[0]) / steps for side in curve.single_jump.bounds(np.array([epsilon])))  # type: ignore[union-attr]
        chords, supports = (
            math.fsum(np.exp(table.log_p) * -np.expm1(np.minimum(epsilon - table.loss, 0.0)))
            for table in (above, below)
        )
        assert low <= chords * (1.0 + 1e-9) + above.infinite_p <= 1.3 * high
        assert 0.7 * low <= supports <= high * (1.0 + 1e-9)


@pytest.mark.parametrize(("sigma", "epsilon"), [(1.0, 2.0), (1.0, 6.0), (2.0, 3.0), (0.5, 20.0)])
def test_far_bounds_of_the_reverse_lie_above_it(sigma: float, epsilon: float) -> None:
    curve = AllocatedCurve(GaussianPair(sigma), 2, mirrored=True).with_tails
    k = 2.0 * math.exp(-epsilon)
    with ctx.workdps(DIGITS):
        m = 1 / arb(sigma)
        top = (arb(k).log() + m * m / 2) / m

        def inner(z: arb) -> arb:
            c = k - (m * z - m * m / 2).exp()
            place = (c.log() + m * m / 2) / m
            return normal_density(z) * (c * normal_below(place) - normal_below(place - m))  # E (c - W)+

        close = [top - arb(2) ** -j for j in range(25)]  # all derivatives fade there
        truth = integral(inner, [*panels(top - 14, close[0], 30), *close[1:]]) / k
        found = float(curve._far(np.array([epsilon]))[0])
        assert truth <= found <= truth ** arb(0.8)


def test_rounds_compose_at_the_least_deltas() -> None:
    run = hs.account(hs.Gaussian(1.0).random_allocation(steps=100) * 2)
    alone = hs.account(hs.Gaussian(1.0).random_allocation(steps=100))
    for delta in (1e-60, 1e-150, 1e-230):
        bound, each = run.epsilon(delta), alone.epsilon(math.sqrt(delta))
        # both rounds beyond half of it, or one of them beyond all of it
        assert alone.epsilon(delta).lower < bound.upper
        assert 2.0 * each.lower - 2.0 < bound.upper
        assert bound.upper - bound.lower < 0.01


@pytest.mark.parametrize(("shift", "k", "b"), [(1.0, 40.0, 8.0), (0.5, 12.0, 3.0)])
def test_two_steps_by_how_many_are_large(shift: float, k: float, b: float) -> None:
    others = _Others.of(shift, 1, b)
    with mpmath.workdps(30), ctx.workdps(DIGITS):
        m = mpmath.mpf(shift)
        top = (mpmath.log(b) + m * m / 2) / m

        def part(first: tuple[mpmath.mpf, mpmath.mpf], second: tuple[mpmath.mpf, mpmath.mpf]) -> mpmath.mpf:
            shift, start, end = arb(m), arb(second[0]), arb(second[1])

            def inner(at: mpmath.mpf) -> mpmath.mpf:  # E[(W - c)+; second], c from the first
                z = arb(at)
                c = k - (shift * z - shift * shift / 2).exp()
                least = start.max((c.log() + shift * shift / 2) / shift) if c > 0 else start
                if least >= end:
                    return mpmath.mpf(0)
                above = normal_below(shift - least) - normal_below(shift - end)
                return mpmath.mpf(normal_density(z) * (above - c * (normal_below(-least) - normal_below(-end))))

            middle = (mpmath.log(k) + m * m / 2) / m
            ends = [first[0], *(z for z in (mpmath.mpf(0), middle - 1, middle) if first[0] < z < first[1]), first[1]]
            return mpmath.quad(inner, ends)

        low, high = (mpmath.mpf(-16), top), (top, mpmath.mpf(16))
        none, both = part(low, low), part(high, high)
        assert none <= others.without(np.array([k]))[0]
        whole = 2 * mpmath.ncdf(m - top) * mpmath.ncdf(-top)  # all of the sum, in place of what is above k
        assert both <= others.twice() <= 1.001 * whole
        chance = 1 - mpmath.ncdf((mpmath.log(b / 2) + m * m / 2) / m) / mpmath.ncdf(top)
        assert chance <= mpmath.exp(others.log_tails(np.array([b / 2]))[0][0]) <= 30 * chance
