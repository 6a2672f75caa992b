"""The moments accountant and Renyi curves: certified upper bounds, ordered as theory says."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

import hockeystick as hs
from hockeystick.accountants import RENYI_ORDERS, Certified, Moments, RenyiCurve
from hockeystick.engines.moments import curve as moments_curve
from hockeystick.engines.moments.log_moment import MomentBracket
from hockeystick.exact import Enclosure, exact_delta, exact_epsilon
from hockeystick.laws import BoundedRangePair, DiscretePair, GaussianPair, LaplacePair, Pair, SubsampledPair
from tests.quadrature import DIGITS, normal_density
from tests.stated_pairs import stated_gaussian

CONVERSIONS: tuple[Literal["tight", "classic", "quadratic"], ...] = ("tight", "classic", "quadratic")
SMALL_NOISE = SubsampledPair(GaussianPair(0.65), 0.01)  # 004, experiment 1: one epoch is 100 steps

PAIRS: list[tuple[Pair, int]] = [
    (SMALL_NOISE, 300),
    (SMALL_NOISE.reversed(), 300),
    (SubsampledPair(GaussianPair(2.0), 0.01), 2000),
    (GaussianPair(3.0), 20),
    (LaplacePair(10.0), 200),
    (DiscretePair((Fraction(3, 5), Fraction(2, 5)), (Fraction(2, 5), Fraction(3, 5))), 50),
    (DiscretePair((Fraction(99, 100), Fraction(1, 100)), (Fraction(1), Fraction(0))), 3),
]


@functools.cache
def truth_of(pair: Pair, count: int, epsilon: float) -> Enclosure:
    """The same for every conversion."""
    return exact_delta([(pair, count)], epsilon, digits=8)


@pytest.mark.parametrize(("pair", "count"), PAIRS)
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_delta_contains_the_exact_value(
    pair: Pair, count: int, conversion: Literal["tight", "classic", "quadratic"]
) -> None:
    curve = Moments(conversion).directed(((pair, count),))
    for epsilon in (0.0, 0.7, 3.0):
        truth = truth_of(pair, count, epsilon)
        bound = curve.delta(epsilon)
        assert isinstance(bound, hs.Bound)
        assert Fraction(float(bound.lower)) <= truth.upper
        assert truth.lower <= Fraction(_upper(bound))


@pytest.mark.parametrize(("pair", "count"), PAIRS[:6])
@pytest.mark.parametrize("delta", [1e-3, 1e-10, 1e-40])
def test_epsilon_over_reports_and_inverts_delta(pair: Pair, count: int, delta: float) -> None:
    found = []
    for conversion in CONVERSIONS:
        curve = Moments(conversion).directed(((pair, count),))
        found.append(_upper(curve.epsilon(delta)))
        assert _upper(curve.delta(found[-1])) <= delta * (1.0 + 1e-9)
    # delta falls: at the larger epsilons it is no more
    assert exact_delta([(pair, count)], min(found), digits=6).low <= Fraction(delta)


@pytest.mark.parametrize("steps", [100, 300, 1000, 2000])
def test_moments_over_report_where_the_paper_says(steps: int) -> None:
    truth = float(exact_epsilon([(SMALL_NOISE, steps)], 1e-5, digits=8).lower)
    assert 1.10 * truth < _upper(Moments().directed(((SMALL_NOISE, steps),)).epsilon(1e-5)) < 1.35 * truth


@pytest.mark.parametrize(("pair", "count"), PAIRS)
def test_tight_is_never_looser_than_classic(pair: Pair, count: int) -> None:
    tight, classic = (Moments(kind).directed(((pair, count),)) for kind in ("tight", "classic"))
    for epsilon in (0.0, 0.3, 2.0, 9.0):
        assert _upper(tight.delta(epsilon)) <= _upper(classic.delta(epsilon))
    for delta in (0.5, 1e-3, 1e-9, 1e-200):
        assert _upper(tight.epsilon(delta)) <= _upper(classic.epsilon(delta))


def _uppers(result: hs.Bound | hs.Estimate) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    assert isinstance(result, hs.Bound)
    return np.asarray(result.upper)


def _upper(result: hs.Bound | hs.Estimate) -> float:
    return float(_uppers(result))


def test_quadratic_matches_a_hand_computation() -> None:
    """Equation (46) with the factor 1/2, for a Gaussian, whose K is a parabola: every term by hand."""
    m = 0.1
    epsilon = 1.5

    def excess(t: mpmath.mpf) -> mpmath.mpf:
        return 100 * m * m * (t + 0.5) - epsilon - 3 * mpmath.log((t + 1) / t)

    t = mpmath.findroot(excess, 2.0)
    s = t / (1 + t)
    kernel = s ** (3 * t) * (1 - s**3) + 0.5 * t * s ** (1 + 3 * t) * 100 * m * m
    expected = mpmath.exp(100 * m * m * t * (t + 1) / 2 - epsilon * t) * kernel
    found = Moments("quadratic").directed(((GaussianPair(10.0), 100),)).delta(epsilon)
    assert float(expected) == pytest.approx(_upper(found), rel=3e-6, abs=0.0)  # the tilt is rounded to 20 bits


def test_parabola_lies_above_the_kernel() -> None:
    """The inequality behind the quadratic conversion, on a fine grid, far into both tails."""
    for theta in (0.01, 0.3, 1.0, 5.0, 100.0):
        s, x0 = theta / (1.0 + theta), 3.0 * math.log1p(1.0 / theta)
        d = np.concatenate((np.linspace(-40.0, 40.0, 4001) * x0, np.linspace(-0.1, 0.1, 2001) * x0))
        parabola = (1.0 - s**3) - s * (1.0 + s) * d + 0.5 * s * s * (1.0 + theta) * d * d
        x = x0 + d
        kernel = np.where(x > 0.0, np.exp(-theta * np.maximum(d, -x0)) * -np.expm1(-np.maximum(x, 0.0)), 0.0)
        assert (parabola >= kernel * (1.0 - 1e-12)).all(), theta


def test_the_certified_default_is_never_worse() -> None:
    for run in (
        hs.Gaussian(0.65).poisson(0.01) * 300,
        hs.Gaussian(1.0).poisson(0.01) * 2000,
        hs.Gaussian(4.0) * 10,
        hs.Laplace(5.0) * 100,
        hs.RandomizedResponse(0.6) * 30,
        hs.Gaussian(20.0).poisson(0.5) * 10_000,
    ):
        default, moments = hs.account(run), hs.account(run, accountant=Moments())
        for delta in (1e-2, 1e-6, 1e-30):
            assert _upper(default.epsilon(delta)) <= _upper(moments.epsilon(delta))


def test_count_equals_repeated_composition() -> None:
    together = Moments().directed(((SMALL_NOISE, 100), (LaplacePair(10.0), 5)))
    apart = Moments().directed(((LaplacePair(10.0), 5), (SMALL_NOISE, 40), (SMALL_NOISE, 60)))
    assert _upper(together.epsilon(1e-6)) == pytest.approx(_upper(apart.epsilon(1e-6)), rel=1e-12, abs=0.0)


@pytest.mark.parametrize("conversion", ["tight", "classic", "quadratic"])
def test_an_estimate_of_zero_is_an_estimate(conversion: str) -> None:
    curve = Moments(conversion).directed(((stated_gaussian(0.1), 20),))
    for delta in (0.9, 0.99, 1.0 - 1e-12):
        assert isinstance(curve.epsilon(delta), hs.Estimate), delta


def test_a_pair_without_moment_bounds_gives_an_estimate_near_the_certified_value() -> None:
    pair = stated_gaussian(0.05)
    estimate = Moments().directed(((pair, 50),)).epsilon(1e-6)
    assert isinstance(estimate, hs.Estimate)
    certified = Certified().directed(((pair, 50),)).epsilon(1e-6)
    assert isinstance(certified, hs.Bound)
    assert float(certified.lower) <= float(estimate.value) <= 2.0 * float(certified.upper)


def test_ends_of_the_range() -> None:
    curve = Moments().directed(((LaplacePair(2.0), 4),))
    assert _upper(curve.delta(2.0 + 1e-9)) == 0.0
    assert _upper(curve.epsilon(1.0)) == 0.0
    assert 2.0 <= _upper(curve.epsilon(0.0)) <= 2.0 * (1.0 + 1e-12)
    infinite = Moments().directed((PAIRS[6],))
    bound = infinite.epsilon(0.01)  # below 1 - 0.99^3
    assert isinstance(bound, hs.Bound)
    assert bound.lower == bound.upper == math.inf


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_the_upper_side_holds_the_mass_at_infinity(conversion: Literal["tight", "classic", "quadratic"]) -> None:
    """Next to the largest finite loss the mass at infinite loss is nearly all of delta."""
    parts = hs.compose([(hs.ApproximateDP(0.5, 1e-3), 8)]).pairs("remove")
    curve = Moments(conversion).directed(parts)
    for epsilon in (3.5, 3.9, 3.999):
        assert exact_delta(parts, epsilon, digits=8).lower <= Fraction(_upper(curve.delta(epsilon)))
    for delta in (0.00798, 0.0081, 0.02):  # 1 - 0.999^8 is 0.007972...
        assert exact_epsilon(parts, delta, digits=8).lower <= Fraction(_upper(curve.epsilon(delta)))


# --------------------------------------------------------------------------------------------------------- Renyi curves


def _renyi_truth(rate: float, sigma: float, order: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Divergence of both directions at any order, by a trapezoidal rule in high precision."""
    s, g, step, alpha = arb(sigma), arb(rate), arb(3) / 25, arb(order)

    def of(power: arb, first: float, last: float) -> mpmath.mpf:
        total = arb(0)
        for k in range(int(first / 0.12), int(last / 0.12)):
            x = k * step
            ratio = 1 - g + g * (x / s - 1 / (2 * s * s)).exp()
            total += normal_density(x) * ratio**power * step
        return mpmath.mpf(total.log() / (alpha - 1))

    return of(alpha, -15.0, order / sigma + 15.0), of(1 - alpha, -order * rate / sigma - 15.0, 16.0)


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.001, 4.0), (0.3, 2.0)])
def test_renyi_curves_agree_with_high_precision(rate: float, sigma: float) -> None:
    orders = [1.1, 2.0, 8.0, 63.3, 256.0]
    step = hs.Gaussian(sigma).poisson(rate)
    with ctx.workdps(DIGITS):
        truths = [_renyi_truth(rate, sigma, order) for order in orders]
    for index, adjacency in enumerate(("remove", "add")):
        divergence = hs.renyi(step, orders, adjacency=adjacency).divergence
        assert isinstance(divergence, hs.Bound)
        for truth, low, high in zip(truths, np.asarray(divergence.lower), np.asarray(divergence.upper), strict=True):
            assert mpmath.mpf(float(low)) <= truth[index] <= mpmath.mpf(float(high)), (truth, adjacency)
            assert high - low <= 1e-8 * high


def test_divergences_of_a_group_count_weights_below_float64() -> None:
    """Of 40 records at a rate of 1e-9 the last few have chances of 1e-324 to 1e-360, and all of the divergence."""
    step, at = hs.GaussianMixture.poisson_group(0.8, rate=1e-9, size=40), Fraction(0.8) ** 2
    divergence = hs.renyi(step, [2.0], adjacency="remove").divergence
    with mpmath.workdps(600):
        weights = [mpmath.mpf(one.numerator) / one.denominator for one in map(Fraction, step.probabilities)]
        grown = mpmath.exp(mpmath.mpf(at.denominator) / at.numerator)
        pairs = itertools.product(enumerate(weights), repeat=2)
        truth = mpmath.log(mpmath.fsum(a * b * grown ** (j * k) for (j, a), (k, b) in pairs))
        assert isinstance(divergence, hs.Bound)
        assert mpmath.mpf(float(divergence.lower[0])) <= truth <= mpmath.mpf(float(divergence.upper[0]))
    assert divergence.upper[0] - divergence.lower[0] <= 1e-12 * truth


def test_a_round_has_the_divergence_of_its_likelihood_ratio_and_no_infinite_one() -> None:
    step = hs.Gaussian(1.0).random_allocation(steps=10)
    bound = hs.renyi(step, [2.0], adjacency="remove").divergence
    with mpmath.workdps(30):  # E_Q of the squared mean of ten ratios, each of variance e - 1
        truth = mpmath.log1p(mpmath.expm1(1) / 10)
        assert bound.sides[0][0] <= truth <= bound.sides[1][0]  # type: ignore[index]
        assert bound.sides[0][0] > 0.99 * truth  # type: ignore[index]
    assert isinstance(bound, hs.Bound)
    assert "the dominating pair has infinite losses" in bound.notes  # which the round has not


def test_a_divergence_is_no_more_than_known_candidates_show() -> None:
    noise, orders = mpmath.mpf(1), [1.5, 2.0, 8.0]
    bound = hs.renyi(hs.PermuteAndFlip(1.0) * 3, orders).divergence
    # the chances of the lower one of two candidates, whose gap moves by the noise: to the other side, or from a tie
    pairs = [(1 - loser, loser) for loser in (mpmath.exp(-noise / 2) / 2, mpmath.exp(-noise) / 2, mpmath.mpf(0.5))]
    moves = [(pairs[0], pairs[0][::-1]), (pairs[2], pairs[1]), (pairs[1], pairs[2])]
    for order, low in zip(orders, np.asarray(bound.sides[0]), strict=True):
        shown = (
            mpmath.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1)
            for p, q in moves
        )
        truth = 3 * max(shown)
        assert 0.999 * truth < low <= truth
    nothing = hs.renyi(hs.AboveThreshold(1.0, 1.0), orders).divergence
    assert not np.asarray(nothing.sides[0]).any()


def test_a_divergence_at_orders_that_lack_their_neighbour_is_rounded_outward(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 2^53 order - 1 is no float64; known moments without any slack, of 2000 orders."""
    random = np.random.default_rng(0)
    orders, known = 2.0**53 + 2.0 * random.integers(1, 2**51, 2000), random.uniform(1.0, 2.0, 2000)
    module = sys.modules["hockeystick.accountants.renyi"]
    monkeypatch.setattr(module, "moments_of_pair", lambda *_: MomentBracket(known, known))
    sides = map(np.asarray, hs.renyi(GaussianPair(1.0), orders).divergence.sides)
    for order, moment, low, high in zip(orders.tolist(), known.tolist(), *sides, strict=True):
        assert Fraction(low) <= Fraction(moment) / (int(order) - 1) <= Fraction(high)


def test_a_count_that_is_no_float_is_rounded_outward() -> None:
    values = np.linspace(1.9, 2.0, 200, endpoint=False)  # where a unit in the last place is the smallest part
    curve = RenyiCurve(2.0 + values, hs.Bound(values, values, "stated"))
    for count in (2**53 + 13, 10**40 + 1):
        for value, low, high in zip(values, *map(np.asarray, (curve * count).divergence.sides), strict=True):
            assert Fraction(float(low)) <= count * Fraction(float(value)) <= Fraction(float(high))


def test_divergences_that_leave_float64_are_infinite_and_hide_no_other_order() -> None:
    curve = RenyiCurve([2.0, 1e150], hs.Bound(np.array([0.0, 1e308]), np.array([0.1, 1e308]), "stated"))
    for more in (curve + curve, curve * 10):
        assert _uppers(more.divergence)[1] == math.inf
        assert np.isfinite(np.asarray(more.divergence.sides[0])).all()
    for epsilon, most in ((10.0, 1e-4), (1e200, 1e-300)):
        assert 0.0 < _upper(curve.delta(epsilon)) < most
    assert _upper(curve.epsilon(1e-5)) == pytest.approx(0.1 + math.log(1e5 / 4.0), rel=1e-13, abs=0.0)


def test_add_remove_takes_the_larger_divergence() -> None:
    step = hs.Gaussian(1.0).poisson(0.1)
    both = hs.renyi(step, [2.0, 20.0]).divergence
    single = [hs.renyi(step, [2.0, 20.0], adjacency=a).divergence for a in ("add", "remove")]
    assert isinstance(both, hs.Bound)
    assert np.array_equal(both.upper, np.max([_uppers(d) for d in single], axis=0))


def test_curves_compose() -> None:
    step, other = hs.Gaussian(2.0).poisson(0.01), hs.Laplace(30.0)
    whole = hs.renyi(step * 500 + other * 3).divergence
    parts = (hs.renyi(step) * 500 + 3 * hs.renyi(other)).divergence
    assert isinstance(whole, hs.Bound)
    assert isinstance(parts, hs.Bound)
    assert np.allclose(whole.upper, parts.upper, rtol=1e-12, atol=0.0)


def test_the_sum_of_curves_of_opposite_directions_contains_that_of_the_run() -> None:
    """Each curve is of the worse direction, which is another one for these two."""
    one, other = hs.DiscretePair((0.9, 0.1), (0.5, 0.5)), hs.DiscretePair((0.5, 0.5), (0.9, 0.1))
    whole, parts = hs.renyi(one + other).divergence, (hs.renyi(one) + hs.renyi(other)).divergence
    assert isinstance(whole, hs.Bound)
    assert isinstance(parts, hs.Bound)
    assert (np.asarray(parts.lower) <= whole.lower).all()
    assert (np.asarray(whole.upper) <= parts.upper).all()


@pytest.mark.parametrize("conversion", ["tight", "classic"])
def test_a_grid_of_orders_is_no_better_than_all_orders(conversion: Literal["tight", "classic"]) -> None:
    run = hs.Gaussian(1.0).poisson(0.01) * 2000
    for delta in (1e-3, 1e-5, 1e-9):
        grid = _upper(hs.renyi(run).epsilon(delta, conversion=conversion))
        best = _upper(hs.account(run, accountant=Moments(conversion)).epsilon(delta))
        assert best <= grid * (1.0 + 1e-12)
        assert grid <= 1.02 * best


def test_conversions_match_their_published_forms() -> None:
    """Mironov's, and Canonne, Kamath and Steinke's Proposition 12 as they print it."""
    r, alpha, delta = 0.7, 12.0, 1e-6
    curve = RenyiCurve([alpha], [r])
    classic = r + math.log(1.0 / delta) / (alpha - 1.0)
    tight = r + math.log1p(-1.0 / alpha) - math.log(delta * alpha) / (alpha - 1.0)
    assert _upper(curve.epsilon(delta, conversion="classic")) == pytest.approx(classic, rel=1e-13, abs=0.0)
    assert _upper(curve.epsilon(delta)) == pytest.approx(tight, rel=1e-13, abs=0.0)
    epsilon = 2.0
    expected = math.exp((alpha - 1.0) * (r - epsilon)) / (alpha - 1.0) * (1.0 - 1.0 / alpha) ** alpha
    assert _upper(curve.delta(epsilon)) == pytest.approx(expected, rel=1e-13, abs=0.0)
    assert _upper(curve.delta(epsilon, conversion="classic")) == pytest.approx(
        math.exp((alpha - 1.0) * (r - epsilon)), rel=1e-13, abs=0.0
    )


def test_the_default_grid_of_orders() -> None:
    assert min(RENYI_ORDERS) == 1.1
    assert max(RENYI_ORDERS) == 256.0
    assert hs.renyi(GaussianPair(5.0)).orders.tolist() == list(RENYI_ORDERS)


def test_infinite_losses_have_infinite_divergence() -> None:
    divergence = hs.renyi(PAIRS[6][0], [2.0]).divergence
    assert isinstance(divergence, hs.Bound)
    assert np.isinf(divergence.upper).all()
    assert _upper(RenyiCurve([2.0], divergence).epsilon(0.5)) == math.inf


REFUSED: list[tuple[type[Exception], str, Callable[[], object]]] = [
    (ValueError, "conversion", lambda: Moments("loose")),  # type: ignore[arg-type]
    (ValueError, "above 1", lambda: hs.renyi(GaussianPair(1.0), [1.0, 2.0])),
    (ValueError, "NaN", lambda: hs.renyi(GaussianPair(1.0), [math.nan])),
    (ValueError, "above 1", lambda: hs.renyi(GaussianPair(1.0), [math.inf])),
    (TypeError, "pair, a step or a composition", lambda: hs.renyi(3.0)),  # type: ignore[arg-type]
    (TypeError, "orders", lambda: hs.renyi(GaussianPair(1.0), "all")),
    (ValueError, "divergences", lambda: RenyiCurve([2.0], [-1.0])),
    (ValueError, "as many", lambda: RenyiCurve([2.0, 3.0], [1.0])),
    (ValueError, "same orders", lambda: RenyiCurve([2.0], [1.0]) + RenyiCurve([3.0], [1.0])),
]


@pytest.mark.parametrize(("kind", "words", "call"), REFUSED)
def test_bad_input_is_refused(kind: type[Exception], words: str, call: Callable[[], object]) -> None:
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_divergences_of_a_pair_are_its_own_and_not_those_of_the_steps_it_stands_for(
    epsilon: float, order: float
) -> None:
    """The joined curve of bounded range diverges further than any step whose losses are of that range."""
    with mpmath.workdps(30):
        e, power = mpmath.mpf(epsilon), mpmath.mpf(order) - 0.5
        truth = mpmath.log(mpmath.sinh(power * e) / (power * 2 * mpmath.sinh(e / 2))) / (mpmath.mpf(order) - 1)
    found = hs.renyi(BoundedRangePair(epsilon), [order]).divergence
    assert found.lower[0] <= truth <= found.upper[0]
    assert found.upper[0] - found.lower[0] <= 1e-12 * found.upper[0]
    assert hs.renyi(hs.ExponentialMechanism(epsilon), [order]).divergence.upper[0] < truth


@pytest.mark.parametrize(
    ("step", "rate"),
    [(hs.ZeroConcentratedDP(1e-300), Fraction(1e-300)), (hs.ExponentialMechanism(1e-150), Fraction(1e-150) ** 2 / 8)],
)
def test_moments_below_the_normal_range_are_rounded_outward(step: hs.Step, rate: Fraction) -> None:
    """At an order next to 1 K is a number of few digits; of the second step it is what two outcomes have, to 1e-150."""
    order = math.nextafter(1.0, 2.0)
    found = hs.renyi(step * 2, [order]).divergence
    truth = 2 * rate * Fraction(order)
    assert Fraction(found.lower[0]) <= truth * (1 - Fraction(1, 10**140)) <= Fraction(found.upper[0])


def test_divergences_of_orders_beyond_what_is_known_are_infinite() -> None:
    run = hs.RenyiDP((2.0, 8.0), (0.1, 0.5)) * 3 + hs.Gaussian(4.0)
    found = hs.renyi(run, [2.0, 8.0, 64.0])
    assert np.isfinite(found.divergence.upper).tolist() == [True, True, False]
    assert 1.99 < found.divergence.lower[2] <= 2.0  # the Gaussian step's
    assert found.epsilon(1e-5).upper == hs.renyi(run, [2.0, 8.0]).epsilon(1e-5).upper


@pytest.mark.parametrize("delta", [2.0239086288578882e-229, 1.2547919886200283e-155, 1.3742596606145554e-65, 1e-5])
def test_the_quadratic_bound_is_brought_down_to_delta_itself(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to the exponential of its rounded logarithm, which may be larger."""
    targets: list[float] = []

    def root(_: object, target: float, **__: object) -> float:
        targets.append(target)
        return 1.0

    monkeypatch.setattr(moments_curve, "one_sided_root", root)
    hs.account(hs.Gaussian(1.0), "remove", accountant=Moments("quadratic")).epsilon(delta)
    assert 0.99 * delta < targets[0] <= delta
