"""Where float64 ends, where nothing is hidden or next to everything: true answers, or a clear refusal."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.accountants import Certified, Contour
from hockeystick.bound import Bound
from hockeystick.composition import Composition
from hockeystick.engines.ends import Engine, largest_loss
from hockeystick.engines.lattice.curve import LatticeCurve
from hockeystick.engines.lattice.plan import saddle_at_delta
from hockeystick.errors import PrecisionError
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair, Pair, SubsampledPair
from hockeystick.laws.discrete_laplace import DiscreteLaplacePair
from hockeystick.laws.reversed import ReversedPair
from hockeystick.numerics.one_sided_root import one_sided_root
from tests.quadrature import normal_below

NOTHING_HIDDEN = [
    hs.RandomizedResponse(1.0) * 2,
    hs.RandomizedResponse(0.0) * 3,
    hs.RandomizedResponse(1.0) + hs.Laplace(1.0) * 3,
    hs.ApproximateDP(1.0, 1.0) + hs.Gaussian(1.0),
    hs.DiscretePair((1.0, 0.0), (0.0, 1.0)) * 2,
    hs.Binomial(1, sensitivity=2) * 2,
    hs.Binomial(1, 0.5, sensitivity=2) + hs.Gaussian(1.0) * 2,
]


@pytest.mark.parametrize("run", NOTHING_HIDDEN, ids=repr)
def test_a_step_that_hides_nothing(run: Composition) -> None:
    curve = hs.account(run)
    delta, epsilon = curve.delta(1.0), curve.epsilon(1e-5)
    assert isinstance(delta, Bound)
    assert 1.0 - 1e-11 <= delta.lower <= delta.upper == 1.0
    assert isinstance(epsilon, Bound)
    assert epsilon.lower == epsilon.upper == math.inf


@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-12, 1e-6, 0.25])
@pytest.mark.parametrize("count", [1, 2])
def test_epsilon_next_to_the_mass_at_infinity(delta: float, count: int) -> None:
    """Just below it epsilon is infinite, from it on at most the largest loss."""
    curve = hs.account(hs.ApproximateDP(1.0, delta) * count)
    mass = 1 - (1 - Fraction(delta)) ** count
    for step in (-1e-9, -5e-14, -3e-16, 0.0, 3e-16, 5e-14, 1e-9):
        asked = float(mass) * (1.0 + step)
        bound = curve.epsilon(asked)
        assert isinstance(bound, Bound)
        if Fraction(asked) < mass:
            assert bound.upper == math.inf
        else:
            assert bound.lower <= count
        if abs(step) > 1e-10:
            assert bound.lower == math.inf or bound.upper <= count * (1.0 + 1e-12)
    assert float(np.asarray(hs.account(hs.ApproximateDP(1.0, delta)).epsilon(delta).upper)) <= 1.0 + 1e-12


def test_a_side_is_decided_by_delta_itself() -> None:
    target = 1e-300
    for above in (True, False):
        just_wrong = math.nextafter(target, 1.0 if above else 0.0)
        found = one_sided_root(lambda _, value=just_wrong: value, target, guess=1.0, slope=1.0, step=1e-9, above=above)  # type: ignore[misc]
        assert found == (math.inf if above else 0.0)


def test_a_record_that_is_hardly_ever_drawn() -> None:
    curve = hs.account(hs.Gaussian(0.01).poisson(1e-9) * 10)
    with mpmath.workdps(40):
        ever = 1 - (1 - mpf(1e-9)) ** 10
        epsilon = curve.epsilon(float(ever) * (1.0 + 1e-12))
        assert isinstance(epsilon, Bound)
        assert epsilon.lower == epsilon.upper == 0.0
        upper = hs.account(hs.Gaussian(3.0).poisson(1e-9) * 10, "remove").delta(0.0)
        assert isinstance(upper, Bound)
        assert 0 <= mpf(float(upper.lower)) <= mpf(float(upper.upper)) <= ever * (1 + mpf(1e-12))


@pytest.mark.parametrize(
    "run",
    [
        hs.Gaussian(1e-8).poisson(0.01) * 10,
        hs.Gaussian(1.0).poisson(1e-3) * 10**13,
        hs.GaussianMixture(1.0, (0.0, 1e8), probabilities=(0.5, 0.5)) * 10,
    ],
    ids=["noise", "steps", "centres"],
)
def test_what_no_engine_serves_is_refused(run: Composition) -> None:
    with pytest.raises(PrecisionError, match=r"more than the"):
        hs.account(run).epsilon(1e-5)


def test_a_loss_whose_mass_float64_does_not_tell_is_refused() -> None:
    run = hs.ApproximateDP(1e300, 1e-9).poisson(0.5) * 30 + hs.Gaussian(2.0)
    with pytest.raises(PrecisionError, match=r"losses of up to 1e\+300 nats"):
        hs.account(run, "add").epsilon(1e-5)


@pytest.mark.parametrize(
    "run",
    [
        hs.ApproximateDP(1e99).for_group(3) * 10,
        hs.DiscreteLaplace(1e-99, 3) * 10,
        hs.ApproximateDP(1e50, 1e-9).poisson(0.5) * 30 + hs.DiscretePair((0.5, 0.5), (0.25, 0.75)) * 20,
    ],
    ids=["group", "noise", "sampled"],
)
def test_outcomes_whose_masses_float64_does_not_tell_are_refused(run: Composition) -> None:
    with pytest.raises(PrecisionError, match="epsilon is enormous"):
        hs.account(run, "add").delta(1.0)


@pytest.mark.parametrize("largest", [50.0, 1e4, 1e10])
def test_a_huge_loss_of_next_to_no_mass_costs_no_time(largest: float) -> None:
    """Its exponential is no fraction that is written out."""
    other = hs.DiscretePair((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)) * 20
    bound = hs.account(hs.ApproximateDP(largest, 1e-9).poisson(0.5) * 30 + other, "add").epsilon(1e-5)
    assert bound.lower <= 37.257126531982132 <= bound.upper <= 37.2572  # the truth of all three, of sums in 60 digits


@pytest.mark.parametrize(
    ("p", "q", "rate", "steps", "least", "most"),
    [
        (1.67e-315, 1.99e-298, 1.0, 34951, 0.0, 0.0),
        (1.07e-263, 1.45e-315, 0.5, 116021, 0.0, 0.0),
        (1.0 - 2.0**-53, 6.1e-280, 1.0, 36403, 2.34e7, 2.35e7),
    ],
)
def test_outcomes_of_next_to_no_mass_are_answered(
    p: float, q: float, rate: float, steps: int, least: float, most: float
) -> None:
    step = hs.DiscretePair((p, 1 - Fraction(p)), (q, 1 - Fraction(q))).poisson(rate)
    bound = hs.account(step * steps).epsilon(1e-5)
    assert least <= bound.lower <= bound.upper <= most


def test_a_step_whose_reverse_shows_nearly_all_is_answered() -> None:
    """Nothing but e^-644 is left of the finite losses of Q."""
    step = hs.DiscretePair((6.1e-280, 1 - Fraction(6.1e-280)), (1.0, 0.0))
    bound = hs.account(step * 36403, "add").delta(1.0)
    assert 1.0 - 1e-12 <= bound.lower <= bound.upper == 1.0


def test_a_line_of_which_nothing_is_known_says_nothing() -> None:
    p = (2.74e-9, 1e-264, 3.04e-16, 1.0 - 2.74e-9, 1e-264)
    step = hs.DiscretePair(p, (0.512, 5e-265, 0.488, 5e-265, 5e-265)).poisson(0.856)
    for delta in (1e-300, 2e-24):
        bound = hs.account(step * 17_659_037, "add").epsilon(delta)
        assert bound.lower <= bound.upper <= 17_659_037 * 650.0


def test_no_lattice_is_finer_than_the_numbers_of_float64() -> None:
    """Points a rounding apart, with masses of 1e-264 about them, over 10^9 steps: wide, but no error of numpy."""
    rest = 1 - Fraction(4.16e-26) - Fraction(1.12e-292)
    step = hs.DiscretePair((1.12e-292, 4.16e-26, rest), (1.0 - 3.02e-22, 1.58e-264, 3.02e-22))
    bound = hs.account(step * 10**9, "add", accountant=Certified(points=1 << 14)).epsilon(1e-264)
    assert bound.lower <= 5e10 < bound.upper < math.inf


def test_inputs_that_float64_cannot_square() -> None:
    for noise in (1e200, 1e-160):
        with pytest.raises(ValueError, match="sensitivity over noise must be between 1e-140 and"):
            hs.account(hs.Gaussian(noise) * 2)
    for count in (10**101, 10**400):
        with pytest.raises(ValueError, match=r"at most 10\^100"):
            hs.Gaussian(1.0) * count


@pytest.mark.parametrize("mechanism", [hs.Gaussian(1.0), hs.Laplace(1.0), hs.RandomizedResponse(0.7)], ids=repr)
def test_delta_zero_of_fixed_size_batches(mechanism: hs.Gaussian | hs.Laplace | hs.RandomizedResponse) -> None:
    run = mechanism.without_replacement(batch_size=1, population=10) * 6
    bound = hs.account(run, "substitute").epsilon(0.0)
    assert isinstance(bound, Bound)
    assert bound.lower <= bound.upper
    assert math.isinf(float(bound.upper)) == isinstance(mechanism, hs.Gaussian)


def test_little_discrete_noise() -> None:
    """Nearly all mass is at one loss, 1 / 2 sigma^2, and the next is e^-100 and less."""
    for sigma, steps in ((0.1, 3), (0.05, 4)):
        bound = hs.account(hs.DiscreteGaussian(sigma) * steps).epsilon(1e-5)
        loss = steps * 0.5 / sigma**2
        assert isinstance(bound, Bound)
        assert loss + math.log1p(-1e-5) == pytest.approx(float(bound.upper), rel=1e-9, abs=0.0)
        assert float(bound.width) <= 1e-3


def test_categories_that_tell_nothing_apart_count_as_one() -> None:
    few, many = hs.RandomizedResponse(0.5, 5), hs.RandomizedResponse(0.5, 10**6)
    assert all(len(mechanism.pair("remove").p) == 3 for mechanism in (few, many))  # type: ignore[attr-defined]
    p, q = Fraction(1, 2), Fraction(1, 2) / (10**6 - 1)
    bound = hs.account(many).epsilon(0.25)
    assert isinstance(bound, Bound)
    exact = mpmath.log((mpf(1) / 4) / (mpf(q.numerator) / q.denominator))  # p - e^eps q = 1/4
    assert p == Fraction(1, 2)
    assert mpf(float(bound.lower)) <= exact <= mpf(float(bound.upper))


def sides(bound: hs.Bound) -> tuple[float, float]:
    return float(bound.lower), float(bound.upper)


def test_lattices_are_shared_by_questions_of_like_size_and_depend_on_no_other() -> None:
    curve, other = (
        LatticeCurve((hs.Gaussian(1.0).poisson(0.01) * 2000).pairs("remove"), 1e-3, 1 << 22) for _ in range(2)
    )
    first = sides(curve.epsilon(1e-5))
    curve.epsilon(1e-60)
    assert sides(curve.epsilon(1e-5)) == first
    made = len(curve._stations)
    curve.epsilon(1.1e-5)
    assert len(curve._stations) == made
    other.epsilon(1e-60)
    assert sides(other.epsilon(1e-5)) == first


NEAR_ONE = ReversedPair(SubsampledPair(DiscreteLaplacePair(scale=1 / 28, sensitivity=1), 0.9999999999999928))
NEAR_EQUAL = DiscretePair(
    (1 - Fraction(1, 10**18), Fraction(1, 10**18)),
    (1 - Fraction(25000318139, 5 * 10**15), Fraction(25000318139, 5 * 10**15)),
)


@pytest.mark.parametrize(
    ("pair", "steps", "engine"),
    [
        (NEAR_ONE, 2, "automatic"),
        (NEAR_ONE, 2, "lattice"),
        (NEAR_EQUAL, 10**6, "automatic"),
        (NEAR_EQUAL, 10**11, "automatic"),
    ],
    ids=["rate", "rate, lattice", "ratio", "ratio, many"],
)
def test_the_largest_loss_is_known_to_its_rounding_only(pair: Pair, steps: int, engine: Engine) -> None:
    """Next to it delta is ``P(largest) (1 - e^{eps - largest})``, and beyond it 0; no side may be cut too early."""
    with mpmath.workdps(60):
        if isinstance(pair, ReversedPair):
            g, r = mpf(0.9999999999999928), mpmath.exp(-1 / mpf(1 / 28))
            q = (r / (1 + r), 1 / (1 + r))  # of the base, under Q and P of the largest and of the smallest loss
            mass, loss = 1 / (1 + r), -mpmath.log(1 - g + g * q[0] / q[1])
        else:
            p, q0 = (mpf(side[0].numerator) / side[0].denominator for side in (pair.p, pair.q))  # type: ignore[attr-defined]
            mass, loss = p, mpmath.log(p / q0)
        largest = steps * loss
        low, high = largest_loss([(pair, steps)])
        assert mpf(low) <= largest <= mpf(high)
        curve = Certified(points=1 << 18, engine=engine).directed(((pair, steps),))
        for gap in (1e-12,) if engine == "lattice" else (1e-3, 1e-12):
            epsilon = float(largest * (1 - mpf(1e-16))) - gap
            exact = mass**steps * -mpmath.expm1(mpf(epsilon) - largest)
            bound = curve.delta(epsilon)
            assert isinstance(bound, Bound)
            assert mpf(float(bound.lower)) <= exact * (1 + mpf(1e-9))  # the second largest loss adds next to nothing
            assert mpf(float(bound.upper)) >= exact
        ends = curve.epsilon(0.0)
        assert isinstance(ends, Bound)
        assert mpf(float(ends.lower)) <= largest <= mpf(float(ends.upper))


def test_a_rate_of_one_is_no_sampling() -> None:
    base = DiscreteLaplacePair(scale=0.01, sensitivity=1)
    other = DiscretePair((0.75, 0.25), (0.25, 0.75))
    for engine in ("automatic", "lattice"):
        curve = Certified(engine=engine).directed(((SubsampledPair(base, 1.0), 2), (other, 2)))  # type: ignore[arg-type]
        bound = curve.delta(1.0)
        assert isinstance(bound, Bound)
        assert 1.0 - 1e-6 <= bound.lower <= bound.upper <= 1.0


@pytest.mark.parametrize("mass", [Fraction(1, 10), Fraction(1, 7)])
def test_epsilon_just_above_the_mass_at_infinity_is_not_called_infinite(mass: Fraction) -> None:
    parts = (
        (SubsampledPair(GaussianPair(1.0), 0.01), 20),
        (DiscretePair((1 - mass, mass), (Fraction(1), Fraction(0))), 1),
    )
    delta = float(mass)
    delta = delta if Fraction(delta) > mass else math.nextafter(delta, 1.0)
    for accountant in (Certified(0.5, points=1 << 14), Certified(0.5, points=1 << 14, engine="lattice")):
        bound = accountant.directed(parts).epsilon(delta)
        assert isinstance(bound, Bound)
        assert bound.lower < math.inf
    with pytest.raises(PrecisionError, match="to within rounding"):
        Contour().directed(parts).epsilon(delta)


@pytest.mark.parametrize("count", [1, 3, 10**6 + 7])
def test_the_largest_loss_lies_between_its_ends(count: int) -> None:
    with mpmath.workdps(40):
        for k in range(501, 800, 7):
            p = Fraction(k, 1000)
            exact = count * mpmath.log(mpf(k) / (1000 - k))
            low, high = largest_loss([(DiscretePair((p, 1 - p), (1 - p, p)), count)])
            assert mpf(low) <= exact <= mpf(high)
            low, high = largest_loss([(LaplacePair(k / 7.0), count)])
            assert mpf(low) <= count / mpf(k / 7.0) <= mpf(high)


def test_the_least_mass_at_infinity_has_no_epsilon_of_delta_zero() -> None:
    bound = hs.account(hs.ApproximateDP(1.0, 5e-324)).epsilon(0.0)
    assert isinstance(bound, Bound)
    assert bound.upper == math.inf


@pytest.mark.parametrize("epsilon", [10.0, 18.0, 20.0, 26.64, 29.9, 30.1, 90.0])
@pytest.mark.parametrize("rate", [1e-300, 1e-296, 1e-290])
def test_a_tiny_rate_leaves_the_loss_of_a_record_that_is_drawn(rate: float, epsilon: float) -> None:
    """The loss before sampling is about 700 nats larger, where (e^epsilon - 1) / rate is beyond float64."""
    bound = hs.account(hs.Gaussian(0.025).poisson(rate), "remove").delta(epsilon)
    with ctx.workdps(700):
        g, e, mu = arb(rate), arb(epsilon), 1 / arb(0.025)
        x = ((e.expm1() + g) / g).log() / mu + mu / 2  # where the loss is epsilon
        truth = g * normal_below(mu - x) - (e.expm1() + g) * normal_below(-x)
        assert bound.lower <= truth <= bound.upper <= truth * (1 + 1e-9)


def test_next_to_no_noise_a_record_is_found_whenever_it_is_drawn() -> None:
    """delta at epsilon 0 is then the probability that it is ever drawn, all but."""
    ever = 1.0 - (1.0 - 1e-3) ** 10
    for direction in ("remove", "add"):
        bound = hs.account(hs.Gaussian(0.05).poisson(1e-3) * 10, direction).delta(0.0)
        assert isinstance(bound, Bound)
        assert float(bound.upper) >= ever * (1.0 - 1e-9)


def test_an_epsilon_of_ten_digits_is_found_where_the_curve_is_flat_to_rounding() -> None:
    run = hs.Gaussian(8.392507898528976e-06).poisson(0.0007942644911771856, micro_batches=2)
    bound = hs.account(run, "remove").epsilon(0.0005215944987335947)
    with mp.workdps(60):
        g, s, delta = mpf(0.0007942644911771856), mpf(8.392507898528976e-06), mpf(0.0005215944987335947)
        chances = ((1 - g) ** 2, 2 * g * (1 - g), g * g)

        def log_ratio(t: mpf) -> mpf:
            return mp.log(sum(w * mp.exp(j * t / s - j * j / (2 * s * s)) for j, w in enumerate(chances)))

        def excess(t: mpf) -> mpf:
            seen = sum(w * mp.ncdf(j / s - t) for j, w in enumerate(chances))
            return seen - mp.exp(log_ratio(t)) * mp.ncdf(-t) - delta

        epsilon = log_ratio(mp.findroot(excess, (1 / s, 1 / s + 1)))
        assert bound.lower <= epsilon <= bound.upper


def test_where_rounding_forbids_fine_lattices_none_is_built() -> None:
    """Eight million points gave a bracket of 1e-3, a million one of 2e-4."""
    parts = (hs.Gaussian(0.05).poisson(1e-3) * 100).pairs("remove")
    curve = LatticeCurve(parts, 1e-6, 1 << 23)
    bound = curve._epsilon_around(1e-5)
    assert bound.lower <= 637.52469825  # the truth, to the digits known
    assert bound.upper >= 637.52469815
    assert bound.width < 4e-4
    cumulants, saddle = saddle_at_delta(parts, 1e-5)
    assert curve._compose(cumulants, saddle, curve._first_width(cumulants, saddle, 1e-6)).upper.length < 1 << 20


@pytest.mark.parametrize("epsilon", [1e289, 1e300, 1.7e308])
def test_a_guarantee_by_moments_is_asked_at_any_epsilon(epsilon: float) -> None:
    bound = hs.account(hs.RenyiDP((2.0, 8.0), (0.1, 0.5))).delta(epsilon)
    assert bound.lower == 0.0  # of what is known by moments
    assert 0.0 <= bound.upper <= 1e-300


def test_moments_of_next_to_no_noise_are_asked() -> None:
    """No difference of tails is known: a lattice below leaves such cells out, with their errors."""
    run = hs.Gaussian(1e-9).poisson(0.3) * 5
    found = hs.account(run, adjacency="remove", accountant=hs.accountants.Moments()).delta(1.0)
    assert found.sides[1] >= 1.0 - 0.7**5  # the record is drawn, and found


@pytest.mark.parametrize(("noise", "epsilon"), [(1.7e100, 1e300), (1e50, 1e290), (1e139, 1e200)])
def test_an_epsilon_beyond_what_float64_tells_of_the_noise_is_answered(noise: float, epsilon: float) -> None:
    bound = hs.account(hs.Gaussian(noise)).delta(epsilon)
    assert bound.sides[0] == 0.0  # as it is to far more digits than there are
