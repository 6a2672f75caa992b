"""The contour against the exact curve: containment with no slack, and narrow brackets."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.engines.contour.answers import deltas
from hockeystick.engines.contour.curve import ContourCurve
from hockeystick.engines.contour.looking import station_near
from hockeystick.engines.contour.placing import ContourRefusal
from hockeystick.exact import exact_delta
from hockeystick.laws import (
    DiscretePair,
    GaussianPair,
    LaplacePair,
    Pair,
    ReversedPair,
    SubsampledPair,
    mixture_rule,
)
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.laws.discrete_laplace import DiscreteLaplacePair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.laws.mixture import GaussianMixturePair
from hockeystick.laws.worst_case import WorstCasePair
from hockeystick.numerics.rationals import log_of
from hockeystick.numerics.rounding import U
from hockeystick.transforms.rule import Window

Parts = list[tuple[Pair, int]]

TOLERANCE = 1e-9


def curve_of(*parts: tuple[Pair, int]) -> ContourCurve:
    return ContourCurve(PairSum(parts), TOLERANCE)


def sampled(sigma: float, rate: float, direction: str = "remove") -> Pair:
    pair = SubsampledPair(GaussianPair(sigma), rate)
    return pair if direction == "remove" else pair.reversed()


def response(probability: Fraction) -> DiscretePair:
    return DiscretePair((probability, 1 - probability), (1 - probability, probability))


def poisson_substitution(sigma: float, rate: Fraction) -> Pair:
    return GaussianMixturePair(sigma, (1 - rate, rate), (0.0, 1.0), (1 - rate, rate), (0.0, -1.0))


def group(sigma: float, rate: Fraction, size: int) -> Pair:
    weights = tuple(math.comb(size, k) * rate**k * (1 - rate) ** (size - k) for k in range(size + 1))
    return GaussianMixturePair(sigma, weights, tuple(map(float, range(size + 1))), (Fraction(1),), (0.0,))


def assert_contains(bound: Bound, parts: Parts, epsilon: float, tolerance: float = TOLERANCE) -> None:
    exact = exact_delta(parts, epsilon, digits=14)
    assert Fraction(float(bound.lower)) <= exact.low
    assert exact.high <= Fraction(float(bound.upper))
    assert float(bound.width) <= tolerance * float(bound.lower)


DP_SGD = [
    (1.0, 0.01, 2_000, 2.0),
    (0.8, 0.001, 10_000, 0.7),
    (1.5, 0.22, 10_000, 237.7),
    (0.6, 0.05, 500, 45.0),
    (10.0, 1e-3, 1_000_000, 0.34),
    (1.0, 1e-6, 100_000_000, 0.03),
    (100.0, 0.5, 100_000, 2.0),
    (0.3, 0.3, 50, 100.0),
    (4.0, 0.9, 40, 8.0),
    (0.5, 0.1, 100, 20.0),
]


@pytest.mark.parametrize(("sigma", "rate", "steps", "epsilon"), DP_SGD)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_subsampled_gaussian_contains_the_exact_delta(
    sigma: float, rate: float, steps: int, epsilon: float, direction: str
) -> None:
    parts: Parts = [(sampled(sigma, rate, direction), steps)]
    assert_contains(curve_of(*parts).delta(epsilon), parts, epsilon)


@pytest.mark.parametrize("exponent", [1, 5, 10, 30, 60, 100])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_epsilon_is_bracketed_down_to_delta_1e_100(exponent: int, direction: str) -> None:
    parts: Parts = [(sampled(1.3, 0.05, direction), 300)]
    delta = 10.0**-exponent
    bound = curve_of(*parts).epsilon(delta)
    assert 0.0 < float(bound.width) <= 1e-10
    assert exact_delta(parts, float(bound.lower), digits=14).high >= Fraction(delta)
    assert exact_delta(parts, float(bound.upper), digits=14).low <= Fraction(delta)


KNOWN = {
    "remove": {1e-7: 1.17076284, 1e-6: 0.94719569, 1e-5: 0.78238778, 1e-4: 0.62860624},
    "add": {1e-7: 0.82417304, 1e-6: 0.74270049, 1e-5: 0.65072288, 1e-4: 0.54387833},
}


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_known_epsilons(direction: str) -> None:
    curve = curve_of((sampled(0.8, 0.001, direction), 10_000))
    for delta, epsilon in KNOWN[direction].items():
        assert abs(float(curve.epsilon(delta)) - epsilon) <= 0.5e-8  # the values known have eight digits


OTHERS: list[tuple[Parts, float]] = [
    ([(GaussianPair(1.0), 1)], 1.0),
    ([(GaussianPair(3.0, 2.0), 40), (GaussianPair(7.0), 3)], 25.0),
    ([(response(Fraction(3, 4)), 1)], 0.5),
    ([(response(Fraction(3, 4)), 10)], 2.0),
    ([(response(Fraction(11, 20)), 1_000)], 30.0),
    ([(ReversedPair(DiscretePair((0.5, 0.5), (0.125, 0.875))), 40)], 5.0),
    ([(GaussianMixturePair(1.0, (0.7, 0.3 - 9e-10), (0.0, 1.0), (1.0,), (0.0,)), 300)], 40.0),
    ([(GaussianMixturePair(1.0, (0.7, 0.3 - 9e-10), (0.0, 1.0), (1.0,), (0.0,)).reversed(), 300)], 20.0),
    ([(response(Fraction(3, 4)).subsampled(0.01), 5_000)], 0.2),
    ([(response(Fraction(3, 4)).subsampled(0.01).reversed(), 5_000)], 0.2),
    ([(DiscretePair((0.7, 0.3), (0.3, 0.7)), 200)], 80.5),
    ([(response(Fraction(3, 4)), 30), (response(Fraction(9, 10)), 5)], 12.0),  # ln 9 = 2 ln 3: one lattice
    ([(DiscretePair((0.5, 0.25, 0.25, 0.0), (0.25, 0.25, 0.25, 0.25)), 60)], 1.0),
    ([(DiscretePair((Fraction(1, 100), Fraction(99, 100)), (Fraction(0), Fraction(1))), 7)], 0.0),
    ([(WorstCasePair(0.1, 1e-6), 300)], 3.0),
    ([(DiscreteLaplacePair(3.0, 2), 300)], 25.0),
    ([(LaplacePair(1.0), 200)], 90.0),
    ([(SubsampledPair(LaplacePair(1.0), 0.1), 1_000)], 5.0),
    ([(SubsampledPair(LaplacePair(1.0), 0.1).reversed(), 1_000)], 5.0),
    ([(poisson_substitution(1.0, Fraction(1, 100)), 2_000)], 2.0),
    ([(group(2.0, Fraction(1, 100), 3), 1_000)], 1.5),
    ([(group(2.0, Fraction(1, 100), 3).reversed(), 1_000)], 1.0),
    ([(sampled(1.0, 0.01), 1_000), (sampled(0.9, 0.02), 200), (GaussianPair(30.0), 10)], 1.5),
    ([(sampled(1.0, 0.01, "add"), 500), (response(Fraction(11, 20)), 20), (LaplacePair(5.0), 3)], 3.0),
]


@pytest.mark.parametrize(("parts", "epsilon"), OTHERS)
def test_every_kind_of_pair_contains_the_exact_delta(parts: Parts, epsilon: float) -> None:
    assert_contains(curve_of(*parts).delta(epsilon), parts, epsilon)


def test_discrete_gaussian_contains_its_rational_sum() -> None:
    """Against the sum over all outcomes of three steps, in floats far more accurate than the tails left out."""
    pair, steps, epsilon = DiscreteGaussianPair(1.0, 1), 3, 2.5
    x = np.arange(-40, 42)
    p, q = np.exp(-0.5 * (x - 1.0) ** 2), np.exp(-0.5 * x.astype(float) ** 2)
    p, q = p / p.sum(), q / q.sum()
    for _ in range(steps - 1):
        p, q = np.convolve(p, np.exp(-0.5 * (x - 1.0) ** 2)), np.convolve(q, np.exp(-0.5 * x.astype(float) ** 2))
        p, q = p / p.sum(), q / q.sum()
    truth = math.fsum(np.maximum(p - math.exp(epsilon) * q, 0.0))
    bound = curve_of((pair, steps)).delta(epsilon)
    assert float(bound.lower) * (1.0 - 1e-13) <= truth <= float(bound.upper) * (1.0 + 1e-13)  # rounding of the sum
    assert float(bound.width) <= TOLERANCE * float(bound.lower)


CLIFFS = [  # rare records behind large noise: K explodes at a tilt that the curve does not feel
    (6.81, 4.26e-4, 857, 1e-9),
    (6.168, 2.9e-4, 133, 1.49e-17),
    (12.9, 0.0035, 46, 1e-36),
    (2.0, 0.01, 30, 1e-9),
]


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta"), CLIFFS)
def test_epsilon_behind_a_cliff(sigma: float, rate: float, steps: int, delta: float) -> None:
    parts: Parts = [(sampled(sigma, rate), steps)]
    curve = curve_of(*parts)
    bound = curve.epsilon(delta)
    assert exact_delta(parts, float(bound.upper), digits=12).low <= Fraction(delta)
    assert exact_delta(parts, float(bound.lower), digits=12).high >= Fraction(delta)
    assert float(bound.width) <= 1e-9 * float(bound.upper)
    again = curve_of(*parts).delta(float(bound.upper))  # with delta not known beforehand
    assert again.contains(delta) or float(again.upper) <= delta


@pytest.mark.parametrize("epsilon", [6.0, 6.6])
@pytest.mark.parametrize("sigma", [2.178423042436338, 2.4])
def test_deltas_far_beyond_a_cliff_are_narrow(sigma: float, epsilon: float) -> None:
    """Near 1e-190, where stations counted in deviations alone would leave hundreds of powers of e between two."""
    parts: Parts = [(sampled(sigma, 8.64e-4), 13_032)]
    assert_contains(ContourCurve(PairSum(parts), 3e-7).delta(epsilon), parts, epsilon, 3e-7)


# ------------------------------------------------------------------------------------------------------ laws, refusals


@pytest.mark.parametrize(("sigma", "rate", "epsilon"), [(0.7151, 0.0002342, 0.622), (1.0885, 0.001316, 1.5344)])
def test_sharper_lines_answer_between_the_modes_of_a_tilted_loss(sigma: float, rate: float, epsilon: float) -> None:
    parts: Parts = [(sampled(sigma, rate), 10_000)]
    curve = ContourCurve(PairSum(parts), 7e-5)
    answers = deltas([curve.standing], np.zeros(1, dtype=np.intp), np.array([epsilon]))
    assert answers.known.all()  # by lines that stand, before one is made for the question
    station = station_near(curve.standing, epsilon, "delta")
    assert station is not None
    assert curve.standing.has(station)
    assert curve.standing.has(station.sharper)
    assert curve.delta(epsilon).sides == answers.bound(0).sides
    assert_contains(answers.bound(0), parts, epsilon, 7e-5)


def test_nearby_epsilons_share_one_line() -> None:
    curve = curve_of((sampled(1.0, 0.01), 2_000))
    first = curve.delta(2.0)
    others = [curve.delta(2.0 + shift) for shift in (-0.4, -0.01, 0.01, 0.4)]
    assert all(a.upper >= b.lower for a, b in pairwise(others))
    for shift, bound in zip((-0.4, -0.01, 0.01, 0.4), others, strict=True):
        fresh = curve_of((sampled(1.0, 0.01), 2_000)).delta(2.0 + shift)
        assert bound.lower <= fresh.upper
        assert fresh.lower <= bound.upper
    assert first.lower <= curve.delta(2.0).upper


def test_counts_equal_repeated_parts() -> None:
    pair, other = sampled(1.0, 0.01), sampled(1.0, 0.02)
    whole = curve_of((pair, 300), (other, 7)).delta(0.9)
    split = curve_of((other, 3), (pair, 100), (other, 4), (pair, 200)).delta(0.9)
    assert whole.lower <= split.upper
    assert split.lower <= whole.upper


def test_a_billion_steps_are_as_accurate_as_a_thousand() -> None:
    for steps, rate in ((1_000, 1e-2), (1_000_000_000, 1e-5)):
        bound = curve_of((sampled(1.0, rate), steps)).delta(1.0)
        assert float(bound.width) <= 1e-11 * float(bound.lower)


def test_heterogeneous_batches_agree_with_their_parts_in_any_order() -> None:
    rng = np.random.default_rng(5)
    parts = [
        (sampled(float(s), float(r)), 1)
        for s, r in zip(rng.uniform(0.8, 2.0, 300), rng.uniform(0.001, 0.02, 300), strict=True)
    ]
    bound = curve_of(*parts).epsilon(1e-6)
    shuffled = curve_of(*(parts[i] for i in rng.permutation(300))).epsilon(1e-6)
    assert bound.lower <= shuffled.upper
    assert shuffled.lower <= bound.upper
    assert float(bound.width) <= 1e-9


def test_delta_near_one() -> None:
    curve = curve_of((sampled(0.5, 0.5), 100_000))
    bound = curve.delta(10.0)
    assert float(bound.upper) == 1.0
    assert float(bound.lower) >= 1.0 - 1e-9


def test_ends_of_the_curve() -> None:
    curve = curve_of((WorstCasePair(0.5, 0.01), 4))
    mass = 1 - (1 - Fraction(0.01)) ** 4
    for epsilon in (2.0, 3.0, math.inf):  # at and beyond the largest loss
        bound = curve.delta(epsilon)
        assert Fraction(float(bound.lower)) <= mass <= Fraction(float(bound.upper))
        assert float(bound.width) < 1e-11
    assert float(curve.epsilon(1.0)) == 0.0
    assert float(curve.epsilon(0.5 * mass).lower) == math.inf
    for sigma in (50.0, 1000.0):  # the second by a line of many nodes
        assert float(curve_of((GaussianPair(sigma), 1)).epsilon(0.5)) == 0.0


@pytest.mark.parametrize("delta", [0.2, 0.28, 0.4])
def test_epsilon_beside_mass_at_infinity(delta: float) -> None:
    """Most of delta is mass at infinite loss: finite losses have the rest."""
    parts: Parts = [(WorstCasePair(0.3, 0.009), 20)]  # 0.165 at infinity
    bound = curve_of(*parts).epsilon(delta)
    assert exact_delta(parts, float(bound.lower), digits=12).high >= Fraction(delta)
    assert exact_delta(parts, float(bound.upper), digits=12).low <= Fraction(delta)


@pytest.mark.parametrize("gap", [1e-15, 1e-14, 2e-13])
def test_next_to_the_largest_loss(gap: float) -> None:
    """What is left up to the largest loss is so little that no line is drawn, but it is not nothing."""
    parts: Parts = [(response(Fraction(3, 4)), 2)]
    epsilon = 2.0 * math.log(3.0) * (1.0 - gap)
    bound, truth = curve_of(*parts).delta(epsilon), exact_delta(parts, epsilon, digits=8)
    assert truth.lower > 0.0
    assert float(bound.lower) <= truth.upper
    assert truth.lower <= float(bound.upper) <= 1e-11


@pytest.mark.parametrize(
    ("parts", "epsilon", "reason"),
    [
        (
            [(DiscretePair((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)), 3), (DiscretePair((0.6, 0.4), (0.3, 0.7)), 5)],
            0.7,
            "tail",
        ),
        ([(LaplacePair(10.0), 20)], 0.3, "tail"),
    ],
)
def test_atoms_without_a_lattice_are_refused_by_name(parts: Parts, epsilon: float, reason: str) -> None:
    with pytest.raises(ContourRefusal, match=r"decays too slowly|frequencies matter") as refusal:
        curve_of(*parts).delta(epsilon)
    assert refusal.value.reason == reason


# -------------------------------------------------------------------------------------------------------- random sweeps


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(1.25, 3e-4, 2000), (1.437, 8.663e-4, 3520), (2.0, 3e-4, 2106)])
def test_a_search_that_starts_beyond_a_cliff_comes_back(sigma: float, rate: float, steps: int) -> None:
    """There estimates of delta are far too large: no line says anything but that the crossing lies below."""
    run = hs.DiscreteGaussian(sigma).poisson(rate) * steps
    found = hs.account(run, "remove").epsilon(1e-6)
    assert found.method == "contour"
    assert float(found.width) < 1e-9
    other = hs.account(run, "remove", accountant=hs.accountants.Certified(engine="lattice")).epsilon(1e-6)
    assert float(other.lower) <= float(found.lower) <= float(found.upper) <= float(other.upper)


@pytest.mark.parametrize("order", ["forward", "reversed"])
@pytest.mark.parametrize("shift", [-3.0, -0.75, 0.25, 4.0])
def test_a_mixture_is_told_as_well_wherever_its_centres_lie(shift: float, order: str) -> None:
    """Only their distances count; far out all components may lie below the normal density about 0."""

    def epsilon(first: float) -> Bound:
        centres = first, first + 0.5
        pair: Pair = GaussianMixturePair(0.25, (0.4, 0.6), centres, (0.45, 0.55), centres)
        return ContourCurve(PairSum([(pair if order == "forward" else pair.reversed(), 1000)]), 1e-9).epsilon(1e-6)

    here, there = epsilon(0.0), epsilon(shift)
    assert here.lower <= there.upper
    assert there.lower <= here.upper
    assert there.width < 1e-9


def test_a_mixture_of_weights_of_all_sizes_is_told_where_its_heavy_components_vanish() -> None:
    """Beside these P and Q are next to nothing there, and so is their difference."""
    weights, centres = (2.0**-550, 2.0**-290, 2.0**-250, 1.0), (-23.0, -10.0, -1.0, 20.0)
    rules = GaussianMixturePair(1.0, weights, centres, weights[::-1], centres).summand()
    rule = rules.rule(Window((1.0, 1.5), 0.0, -30.0), 1.0)
    assert rule is not None
    assert float(rule.loss_error.max()) < 1e-10


def test_a_mixture_is_told_where_its_ratio_is_beyond_float64() -> None:
    tiny = 2.0**-400
    rules = GaussianMixturePair(1.0, (1.0 - 2.0**-9, 2.0**-10, 2.0**-10), (0.0, 2.0, 4.0), (1.0, tiny), (0.0, 2.0))
    rule = rules.summand().rule(Window((1.0, 200.0), 0.0, -30.0), 1.0)
    assert rule is not None
    assert float(rule.loss_error.max()) < 1e-10


def test_logarithms_of_weights_below_float64_are_told_within_their_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far off as they may be, beside exponents that are exact."""
    monkeypatch.setattr(mixture_rule, "log_of", lambda weight: log_of(weight) * (1.0 + 11.0 * U))
    weight, t = Fraction(1, 3 * 2**1030), 800.0
    looks = GaussianMixturePair(1.0, (1 - weight, weight), (0.0, 1.0), (1.0,), (0.0,)).summand()._look(np.array([t]))
    with mpmath.workdps(40):
        loss = mpmath.log1p(mpmath.mpf(weight.numerator) / weight.denominator * (mpmath.exp(t - 0.5) - 1))
        assert abs(mpmath.mpf(float(looks.loss[0])) - loss) <= mpmath.mpf(float(looks.loss_error[0]))


@pytest.mark.parametrize("halvings", [1020, 1070, 1073, 1080])
@pytest.mark.parametrize("t", [-1.0, 0.3, 1.4, 30.0])
def test_losses_below_the_normal_range_are_told_within_their_errors(halvings: int, t: float) -> None:
    weight = Fraction(1, 3 * 2**halvings)
    looks = GaussianMixturePair(1.0, (1 - weight, weight), (0.0, 1.0), (1.0,), (0.0,)).summand()._look(np.array([t]))
    with mpmath.workdps(400):
        loss = mpmath.log1p(mpmath.mpf(weight.numerator) / weight.denominator * (mpmath.exp(mpmath.mpf(t) - 0.5) - 1))
        assert abs(mpmath.mpf(float(looks.loss[0])) - loss) <= mpmath.mpf(float(looks.loss_error[0]))
