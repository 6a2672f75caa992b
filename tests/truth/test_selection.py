"""Mechanisms that choose: the exponential mechanism and its kin, above-threshold, and steps known by their moments."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

import hockeystick as hs
from hockeystick.accountants import Certified
from hockeystick.bound import Bound
from hockeystick.engines.moments.guarantee import GuaranteeCurve
from hockeystick.laws import BoundedRangePair, ConcentratedPair, RenyiPair
from hockeystick.laws.bounded_range import two_outcomes, two_outcomes_family
from hockeystick.laws.one_step import one_step_delta

mp = mpmath.mp.clone()
mp.dps = 80


def bound(answer: object) -> Bound:
    assert isinstance(answer, Bound)
    return answer


def joined_delta(epsilon: float, x: float) -> mpmath.mpf:
    """delta of one step by its formula; ``1 - e^x`` below the smallest loss."""
    e, at = mp.mpf(epsilon), mp.mpf(x)
    if at >= e:
        return mp.mpf(0)
    return 1 - mp.exp(at) if at <= -e else (1 - mp.exp((at - e) / 2)) ** 2 / (1 - mp.exp(-e))


def two_point_delta(epsilon: float, t: mpmath.mpf, x: float) -> mpmath.mpf:
    """delta of losses t and t - epsilon, t in [0, epsilon]."""
    e, at = mp.mpf(epsilon), mp.mpf(x)
    p = (mp.exp(e) - mp.exp(t)) / mp.expm1(e)
    masses = ((p, p * mp.exp(-t)), (1 - p, (1 - p) * mp.exp(e - t)))
    return mp.fsum(max(a - mp.exp(at) * b, mp.mpf(0)) for a, b in masses)


@pytest.mark.parametrize("epsilon", [1e-20, 1e-6, 0.1, 1.0, 8.0, 300.0, 700.0])
def test_one_step_of_bounded_range_contains_its_formula_and_no_two_points_are_above(epsilon: float) -> None:
    for share in (-1.5, -1.0, -0.7, -0.1, 0.0, 0.1, 0.5, 0.9, 0.999, 1.0):
        x = share * epsilon
        if abs(x) > 700.0:
            continue
        low, high = one_step_delta(BoundedRangePair(epsilon), x)
        truth = joined_delta(epsilon, x)
        assert low <= truth <= high
        assert high - low <= 4e-13 + 1e-10 * high
        for k in range(33):
            assert two_point_delta(epsilon, mp.mpf(epsilon) * k / 32, x) <= truth + mp.mpf(10) ** -70  # of 80 digits
        best = min(max((mp.mpf(x) + mp.mpf(epsilon)) / 2, 0), mp.mpf(epsilon))
        assert abs(two_point_delta(epsilon, best, x) - truth) <= mp.mpf(10) ** -30


def composed_joined(epsilon: float, steps: int, x: float) -> mpmath.mpf:
    """The joined pair composed: each loss is uniform on [-eps, eps] tilted by e^{l/2}, their sum Irwin-Hall."""
    e, at = mp.mpf(epsilon), mp.mpf(x)
    scale = (e * mp.exp(-e / 2) / (1 - mp.exp(-e))) ** steps

    ways = [(-1) ** k * math.comb(steps, k) for k in range(steps + 1)]

    def density(y: mpmath.mpf) -> mpmath.mpf:  # of a sum of uniforms on [-eps, eps]
        u = (y / e + steps) / 2
        terms = [ways[k] * (u - k) ** (steps - 1) for k in range(min(math.floor(u), steps) + 1)]
        return mp.fsum(terms) / mp.factorial(steps - 1) / (2 * e)

    knots = [at, *(k for k in ((2 * j - steps) * e for j in range(steps + 1)) if k > at)]
    with mp.workdps(30):
        return scale * mp.quad(lambda y: (1 - mp.exp(at - y)) * mp.exp(y / 2) * density(y), knots)


@pytest.mark.parametrize(("epsilon", "steps"), [(0.1, 2), (1.0, 3), (2.5, 5), (0.3, 8)])
def test_composed_joined_curves_contain_the_tilted_irwin_hall_integral(epsilon: float, steps: int) -> None:
    curves = [
        Certified(1e-3, engine=engine)._by_windows(((BoundedRangePair(epsilon), steps),))  # type: ignore[arg-type]
        for engine in ("automatic", "lattice")
    ]
    for share in (0.1, 0.5, 0.9):
        x = share * steps * epsilon
        truth = composed_joined(epsilon, steps, x)
        for curve in curves:
            found = bound(curve.delta(x))
            assert found.lower <= truth <= found.upper
            assert float(found.width) <= 2e-3 * float(found.upper)


def test_the_moment_guarantee_is_the_largest_over_all_intervals() -> None:
    for epsilon in (1e-3, 0.1, 1.0, 5.0, 50.0):
        for theta in (2.0**-6, 0.5, 1.0, 7.0, 64.0):
            found = float(BoundedRangePair(epsilon).moment_guarantee(np.array([1.0 + theta]))[0])
            with ctx.workdps(mp.dps):
                e, z = arb(epsilon), arb(theta)
                whole, grown = e.exp(), e.expm1()

                def k(t: arb, e: arb = e, z: arb = z, whole: arb = whole, grown: arb = grown) -> mpmath.mpf:
                    p = (whole - t.exp()) / grown
                    return mp.mpf((p * (z * t).exp() + (1 - p) * (z * (t - e)).exp()).log())

                grid = [k(e * j / 400) for j in range(401)]
                best = grid.index(max(grid))
                beside = k(e * best / 400 + e / 1200)
            assert found >= max(grid)
            assert found >= beside
            assert found <= max(grid) * (1 + mp.mpf("2e-3")) + mp.mpf("1e-11")
            assert found <= 0.125 * epsilon**2 * theta * (1.0 + theta) * (1.0 + 1e-14)


def test_rounded_outcomes_never_reach_beyond_the_range() -> None:
    for epsilon in (1e-9, 0.1, 1.0, 40.0, 700.0):
        family = two_outcomes_family(epsilon)
        assert len(family) >= 3
        for pair in family:
            p, q = (mp.mpf(v.numerator) / v.denominator for v in (pair.p[0], pair.q[0]))  # type: ignore[union-attr]
            wide = mp.log(p / q) - mp.log((1 - p) / (1 - q))
            assert wide <= mp.mpf(epsilon)
            assert wide >= mp.mpf(epsilon) * (1 - mp.mpf("1e-3"))
    assert abs(two_outcomes(1.0, 0.25).loss_bounds[1] - 0.25) < 1e-12


def test_a_hundred_choices_cost_less_than_pure_dp_and_than_the_joined_curve() -> None:
    run = hs.ExponentialMechanism(0.1) * 100
    joined = bound(Certified()._by_windows(((BoundedRangePair(0.1), 100),)).epsilon(1e-6))
    assert joined.lower >= 2.6117
    assert joined.upper <= 2.6118
    answer = bound(hs.account(run).epsilon(1e-6))
    assert 2.2499 <= answer.lower <= answer.upper <= 2.2533
    assert bound(hs.account(hs.ApproximateDP(0.1) * 100).epsilon(1e-6)).lower > 4.77
    many = bound(hs.account(hs.ExponentialMechanism(0.05) * 1000).epsilon(1e-9))
    concentrated = bound(hs.account(hs.ZeroConcentratedDP(0.05**2 / 8) * 1000).epsilon(1e-9))
    assert many.upper <= concentrated.upper <= 5.402
    assert many.lower >= 4.7
    assert any("1000 steps of loss" in note for note in many.notes)


def test_moments_are_asked_of_several_choices_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one choice the joined curve is the largest: what moments prove is above it."""
    choice = hs.ExponentialMechanism(0.7)
    one, two = hs.account(choice), hs.account(choice * 1 + hs.ExponentialMechanism(0.3) * 1)
    pair = BoundedRangePair(0.7)
    assert bound(GuaranteeCurve(((pair, 1),)).epsilon(1e-6)).upper > bound(one.epsilon(1e-6)).upper

    def refused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(GuaranteeCurve, "epsilon", refused)
    assert bound(one.epsilon(1e-7)).upper <= 0.7
    with pytest.raises(AssertionError):
        two.epsilon(1e-7)


def test_the_lower_side_is_the_curve_of_the_stated_outcomes() -> None:
    """Two outcomes composed 200 times, by the binomial sum of the stated probabilities."""
    answer = bound(hs.account(hs.ExponentialMechanism(0.5) * 200).delta(12.0))
    best = arb(0)
    with ctx.workdps(mp.dps):
        scale, ways = arb(12).exp(), [math.comb(200, k) for k in range(201)]
        for pair in two_outcomes_family(0.5):
            p, q = (arb(v.numerator) / v.denominator for v in (pair.p[0], pair.q[0]))  # type: ignore[union-attr]
            gains = (
                way * (p**k * (1 - p) ** (200 - k) - scale * q**k * (1 - q) ** (200 - k)) for k, way in enumerate(ways)
            )
            best = best.max(sum((gain for gain in gains if gain > 0), arb(0)))
    assert answer.lower <= best <= answer.upper
    assert answer.lower >= 0.98 * best  # which t is the best is estimated


# ------------------------------------------------------------------------------------------------ other noisy maxima


def permute_and_flip(scores: list[mpmath.mpf]) -> list[mpmath.mpf]:
    """The chances of all candidates, over all orders: scores in units of the noise."""
    top, chances = max(scores), [mp.mpf(0)] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        left = mp.mpf(1) / math.factorial(len(scores))
        for r in order:
            chances[r] += left * mp.exp(scores[r] - top)
            left *= 1 - mp.exp(scores[r] - top)
    return chances


def curve_of(p: list[mpmath.mpf], q: list[mpmath.mpf], x: float) -> mpmath.mpf:
    return mp.fsum(max(a - mp.exp(mp.mpf(x)) * b, mp.mpf(0)) for a, b in zip(p, q, strict=True))


def test_permute_and_flip_is_below_its_pair_and_attains_its_lower_side() -> None:
    rng = np.random.default_rng(5)
    epsilon = 1.0
    curve = hs.account(hs.PermuteAndFlip(epsilon))
    answers = {x: bound(curve.delta(x)) for x in (0.0, 0.3, 0.7, 0.95)}
    seen = dict.fromkeys(answers, mp.mpf(0))
    for trial in range(60):
        size = int(rng.integers(2, 5))
        scores = [mp.mpf(float(s)) for s in rng.uniform(-0.5, 0.5, size)]
        moved = [s + mp.mpf(float(d)) for s, d in zip(scores, rng.choice([-0.5, 0.0, 0.5], size), strict=True)]
        if trial < 2:  # the two that attain it
            scores, moved = (
                ([mp.mpf(-0.25), mp.mpf(0.25)], [mp.mpf(0.25), mp.mpf(-0.25)])
                if trial == 0
                else (
                    [mp.mpf(0), mp.mpf(0)],
                    [mp.mpf(0.5), mp.mpf(-0.5)],
                )
            )
        p, q = permute_and_flip(scores), permute_and_flip(moved)
        for x, answer in answers.items():
            seen[x] = max(seen[x], curve_of(p, q, x), curve_of(q, p, x))
            assert seen[x] <= answer.upper
    for x, answer in answers.items():
        assert answer.lower <= seen[x] * (1 + mp.mpf("1e-15"))


def test_permute_and_flip_is_not_of_bounded_range() -> None:
    """Two candidates whose gap goes from -epsilon / 2 to epsilon / 2: losses of +-ln(2 e^{epsilon / 2} - 1)."""
    p, q = permute_and_flip([mp.mpf(-0.25), mp.mpf(0.25)]), permute_and_flip([mp.mpf(0.25), mp.mpf(-0.25)])
    losses = [mp.log(a / b) for a, b in zip(p, q, strict=True)]
    assert max(losses) - min(losses) > 1.6
    assert curve_of(p, q, 0.5) > one_step_delta(BoundedRangePair(1.0), 0.5)[1]
    assert hs.PermuteAndFlip(1.0).pair("remove") == hs.ReportNoisyMax(1.0, "exponential").pair("remove")
    assert hs.ReportNoisyMax(1.0, "gumbel").pair("remove") == hs.ExponentialMechanism(1.0).pair("remove")


def test_two_candidates_with_laplace_noise_attain_the_lower_side() -> None:
    epsilon = mp.mpf(1)

    def wins(gap: mpmath.mpf) -> mpmath.mpf:  # the lower of two candidates, the gap in units of the noise
        tail: Callable[[mpmath.mpf], mpmath.mpf] = lambda y: mp.exp(-y) / 2 if y > 0 else 1 - mp.exp(y) / 2  # noqa: E731
        return mp.quad(lambda y: mp.exp(-abs(y)) / 2 * tail(y + gap), [-60, -gap, 0, 60])

    low = wins(epsilon / 2)
    answer = bound(hs.account(hs.ReportNoisyMax(1.0, "laplace")).delta(0.3))
    truth = curve_of([1 - low, low], [low, 1 - low], 0.3)
    assert answer.lower <= truth <= answer.upper
    assert answer.lower >= truth * (1 - mp.mpf("1e-12"))


@pytest.mark.parametrize("queries", ["any", "monotone"])
def test_above_threshold_is_below_its_pair_for_streams_of_three(queries: str) -> None:
    """Every transcript of three queries, by integration over the noisy threshold (1e-12)."""
    b1, b2 = 2.0, 3.0
    step = hs.AboveThreshold(b1, b2, positives=1, queries=queries)  # type: ignore[arg-type]
    epsilon = step.epsilon("remove")
    assert abs(epsilon - (0.5 + (2.0 if queries == "any" else 1.0) / 3.0)) < 1e-14
    grid = np.linspace(-90.0, 90.0, 36001)
    width = grid[1] - grid[0]
    noise = np.exp(-np.abs(grid) / b1) / (2.0 * b1) * width

    def transcripts(values: tuple[float, ...]) -> list[float]:
        tails = [(y > 0, 0.5 * np.exp(-np.abs(y) / b2)) for y in (grid - v for v in values)]
        below = [np.where(above, 1.0 - tail, tail) for above, tail in tails]
        out, before = [], noise.copy()
        for part in below:
            out.append(float((before * (1.0 - part)).sum()))
            before = before * part
        return [*out, float(before.sum())]

    largest = 0.0
    moves = (-1.0, 0.0, 1.0) if queries == "any" else (0.0, 1.0)
    for values in ((0.0, 0.0, 0.0), (8.0, 0.0, -8.0), (-8.0, -8.0, 3.0)):
        for shift in itertools.product(moves, repeat=3):
            p, q = transcripts(values), transcripts(tuple(v + s for v, s in zip(values, shift, strict=True)))
            largest = max(largest, *(abs(math.log(a / b)) for a, b in zip(p, q, strict=True)))
    assert largest <= epsilon
    assert largest >= (0.7 if queries == "any" else 0.5) * epsilon
    assert bound(hs.account(step).delta(epsilon + 1e-12)).upper == 0.0


# --------------------------------------------------------------------------------------------- known by their moments


def cks(rho: float, delta: float) -> mpmath.mpf:
    """The conversion of Canonne, Kamath and Steinke by a fine search in 40 digits."""

    noise, rest = mp.mpf(rho), mp.log(mp.mpf(delta))
    return min((noise * theta * (1 + theta) + kernel - rest) / theta for theta, kernel in kernels())


@functools.cache
def kernels() -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """Tilts, and what the conversion takes from each whatever the moments are."""
    tilts = [mp.mpf(2) ** (mp.mpf(k) / 64) for k in range(-640, 1600)]
    return [(theta, theta * mp.log(theta) - (1 + theta) * mp.log(1 + theta)) for theta in tilts]


@pytest.mark.parametrize(("rho", "delta"), [(0.125, 1e-6), (0.3125, 1e-9), (1e-6, 1e-5), (40.0, 1e-12), (0.5, 1e-200)])
def test_concentrated_steps_have_the_best_known_conversion(rho: float, delta: float) -> None:
    answer = bound(hs.account(hs.ZeroConcentratedDP(rho / 4) * 4).epsilon(delta))
    gaussian = bound(hs.account(hs.GaussianDP(math.sqrt(2.0 * rho))).epsilon(delta))
    best = cks(rho, delta)
    assert best * (1 - mp.mpf("1e-4")) <= answer.upper <= best * (1 + mp.mpf("1e-4"))
    assert answer.lower <= gaussian.upper
    assert answer.lower >= float(gaussian.lower) * (1.0 - 1e-9)
    assert answer.upper >= gaussian.lower
    assert answer.lower == 0.0 or not any("trivial" in note for note in answer.notes)


def test_a_concentrated_step_composes_with_others_as_gaussian_noise_of_its_rho_does() -> None:
    """Gaussian noise is concentrated: what it gives exactly lies in the bracket of every such step."""
    others = hs.Gaussian(1.0).poisson(0.01) * 1000 + hs.Laplace(4.0) * 2
    truth = bound(hs.account(others + hs.GaussianDP(0.5)).epsilon(1e-6))
    answer = bound(hs.account(others + hs.ZeroConcentratedDP(0.125)).epsilon(1e-6))
    assert answer.lower <= truth.upper
    assert answer.upper >= truth.lower
    assert answer.upper <= 1.35 * truth.upper
    curve = hs.account(others + hs.ZeroConcentratedDP(0.125))
    assert bound(curve.delta(answer.upper)).upper <= 1e-6 * (1.0 + 1e-3)


def test_renyi_steps_use_chords_between_orders_and_nothing_beyond() -> None:
    orders = (2.0, 3.0, 5.0, 9.0, 17.0, 33.0)
    step = hs.RenyiDP(orders, tuple(0.02 * a for a in orders))
    listed, whole = (bound(hs.account(s * 3).epsilon(1e-5)) for s in (step, hs.ZeroConcentratedDP(0.02)))
    assert whole.upper <= listed.upper <= 1.1 * float(whole.upper)
    assert listed.lower == 0.0
    pair = RenyiPair(orders, tuple(0.02 * a for a in orders))
    at = np.array([1.5, 2.0, 4.0, 33.0, 34.0])
    known = pair.moment_guarantee(at)
    assert (known[:4] >= ConcentratedPair(0.02).moment_guarantee(at[:4]) * (1.0 - 1e-15)).all()
    assert abs(known[2] - 0.5 * (2 * 0.06 + 4 * 0.1)) < 1e-15
    assert known[4] == math.inf
    assert GuaranteeCurve(((RenyiPair((1.5,), (0.1,)), 1),)).epsilon(1e-6).certified


def test_a_step_without_known_datasets_leaves_the_lower_side_to_the_others() -> None:
    alone = bound(hs.account(hs.Gaussian(1.0) * 2).epsilon(1e-5))
    both = bound(hs.account(hs.Gaussian(1.0) * 2 + hs.AboveThreshold(4.0, 4.0)).epsilon(1e-5))
    assert abs(float(both.lower) - float(alone.lower)) < 1e-9
    assert both.upper > alone.upper


def test_steps_known_by_moments_are_refused_where_a_window_is_needed() -> None:
    for step in (hs.ZeroConcentratedDP(0.1), hs.RenyiDP((2.0,), (0.1,))):
        for accountant in (hs.accountants.Contour(), hs.accountants.SaddlePoint(), hs.accountants.Lattice(1e-3)):
            with pytest.raises(hs.UnknownPairError, match="certified"):
                hs.account(step * 3, accountant=accountant).epsilon(1e-5)
        with pytest.raises(hs.UnknownPairError, match="unsampled"):
            hs.account(step.poisson(0.1))
    for orders, epsilons, says in (
        ((1.0,), (0.1,), "above 1"),
        ((2.0, 2.0), (0.1, 0.1), "increasing"),
        ((), (), "length"),
    ):
        with pytest.raises(ValueError, match=says):
            hs.RenyiDP(orders, epsilons)
    with pytest.raises(ValueError, match="700"):
        hs.ExponentialMechanism(701.0)


def test_calibration_goes_by_the_upper_side_where_the_sides_never_meet() -> None:
    found = hs.calibrate(lambda e: hs.ExponentialMechanism(e) * 100, epsilon=1.0, delta=1e-6)
    assert 0.0473 < found.value < 0.0474
    assert found.unsafe is None
    assert bound(hs.account(hs.ExponentialMechanism(found.value) * 100).epsilon(1e-6)).upper <= 1.0
    assert bound(hs.account(hs.ExponentialMechanism(found.value * (1.0 + 1e-4)) * 100).epsilon(1e-6)).upper > 1.0
    others = hs.Gaussian(1.0).poisson(0.01) * 100
    mixed = hs.calibrate(lambda rho: hs.ZeroConcentratedDP(rho) * 10 + others, epsilon=2.0, delta=1e-6)
    assert bound(hs.account(hs.ZeroConcentratedDP(mixed.value) * 10 + others).delta(2.0)).upper <= 1e-6
