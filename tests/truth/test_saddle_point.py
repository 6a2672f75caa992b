"""The saddle-point accountant on 004's own experiments, against exact values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import mpmath
import pytest

import hockeystick as hs
from hockeystick.accountants import GaussianLimit, SaddlePoint
from hockeystick.exact import exact_delta, exact_epsilon
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair, Pair, SubsampledPair
from hockeystick.numerics.tilted_normal import tilted_normal
from tests.stated_pairs import stated_gaussian

EPOCH = 100  # steps at rate 0.01
SMALL_NOISE = SubsampledPair(GaussianPair(0.65), 0.01)  # experiment 1(b): delta 1e-5, up to 20 epochs
LARGE_NOISE = SubsampledPair(GaussianPair(2.0), 0.01)  # experiment 3: 2000 steps


@lru_cache
def true_epsilon(steps: int) -> float:
    return float(exact_epsilon([(SMALL_NOISE, steps)], 1e-5, digits=7).lower)


def relative_error(variant: Literal["msd0", "msd1", "clt"], steps: int) -> float:
    estimate = SaddlePoint(variant).directed(((SMALL_NOISE, steps),)).epsilon(1e-5)
    assert isinstance(estimate, hs.Estimate)
    return float(estimate.value) / true_epsilon(steps) - 1.0


# ------------------------------------------------------------------------------------- the claims of 004, section 5


@pytest.mark.parametrize("epochs", [1, 1.6, 3, 8, 16, 20])
def test_msd1_is_within_one_percent_from_one_epoch(epochs: float) -> None:
    assert abs(relative_error("msd1", round(EPOCH * epochs))) < 0.01


@pytest.mark.parametrize("epochs", [1.6, 3, 8, 16, 20])
def test_msd0_is_within_one_percent_soon_after_one_epoch(epochs: float) -> None:
    assert abs(relative_error("msd0", round(EPOCH * epochs))) < 0.01


def test_msd0_at_exactly_one_epoch() -> None:
    """The paper's "more than one epoch" is one and a half for order 0."""
    assert relative_error("msd0", EPOCH) == pytest.approx(0.01399, abs=0.5e-5)  # the digits known


@pytest.mark.parametrize("epochs", [3, 5, 10])
def test_msd1_is_within_a_thousandth_from_three_epochs(epochs: int) -> None:
    assert abs(relative_error("msd1", EPOCH * epochs)) < 0.001


@pytest.mark.parametrize("epochs", [17, 18, 20])
def test_msd1_is_within_a_ten_thousandth_from_seventeen_epochs(epochs: int) -> None:
    assert abs(relative_error("msd1", EPOCH * epochs)) < 1e-4


def test_msd1_at_sixteen_epochs() -> None:
    """The paper reads this off a logarithmic plot as below 0.01%; the exact error is a tenth above that."""
    assert relative_error("msd1", 16 * EPOCH) == pytest.approx(1.094e-4, abs=0.5e-7)  # the digits known


@pytest.mark.parametrize("variant", ["gaussian-dp", "normal-loss"])
@pytest.mark.parametrize("steps", [100, 300, 1000, 2000])
def test_the_gaussian_limit_under_reports(variant: Literal["gaussian-dp", "normal-loss"], steps: int) -> None:
    estimate = GaussianLimit(variant).directed(((SMALL_NOISE, steps),)).epsilon(1e-5)
    assert isinstance(estimate, hs.Estimate)
    assert float(estimate.value) < 0.9 * true_epsilon(steps)


@pytest.mark.parametrize("reverse", ["no", "yes"])
def test_the_clt_bound_contains_the_truth_and_is_tight(reverse: str) -> None:
    pair: Pair = LARGE_NOISE if reverse == "no" else LARGE_NOISE.reversed()
    curve = SaddlePoint("clt").directed(((pair, 2000),))
    for epsilon in (0.0, 0.2, 0.5, 1.0, 1.5, 2.0):
        truth = exact_delta([(pair, 2000)], epsilon, digits=5)
        bound = curve.delta(epsilon)
        assert isinstance(bound, hs.Bound)
        assert Fraction(float(bound.lower)) <= truth.upper
        assert truth.lower <= Fraction(float(bound.upper))
        assert float(bound.upper) <= 1.7 * float(truth.upper)
        assert float(bound.lower) >= 0.35 * float(truth.lower)


def test_the_clt_bound_on_epsilon_contains_the_truth() -> None:
    for delta in (1e-2, 1e-5, 1e-12):
        bound = SaddlePoint("clt").directed(((LARGE_NOISE, 2000),)).epsilon(delta)
        assert isinstance(bound, hs.Bound)
        assert exact_delta([(LARGE_NOISE, 2000)], float(bound.lower), digits=6).upper >= Fraction(delta)
        assert exact_delta([(LARGE_NOISE, 2000)], float(bound.upper), digits=6).lower <= Fraction(delta)
        assert bound.width <= 0.05


CONFIGURATIONS: list[tuple[Pair, int]] = [
    (SMALL_NOISE, 30),
    (SMALL_NOISE.reversed(), 1000),
    (SubsampledPair(GaussianPair(0.4), 1e-3), 500),
    (GaussianPair(5.0), 25),
    (LaplacePair(20.0), 500),
    (SubsampledPair(LaplacePair(1.0), 0.05), 400),
    (DiscretePair((Fraction(11, 20), Fraction(9, 20)), (Fraction(9, 20), Fraction(11, 20))), 400),
    (
        DiscretePair(
            (Fraction(1, 2), Fraction(49, 100), Fraction(1, 100)), (Fraction(49, 100), Fraction(51, 100), Fraction(0))
        ),
        40,
    ),
]


@pytest.mark.parametrize(("pair", "count"), CONFIGURATIONS)
def test_the_clt_bound_contains_the_truth_everywhere(pair: Pair, count: int) -> None:
    curve = SaddlePoint("clt").directed(((pair, count),))
    for epsilon in (0.0, 0.3, 1.3, 4.0):
        truth = exact_delta([(pair, count)], epsilon, digits=5)
        bound = curve.delta(epsilon)
        assert isinstance(bound, hs.Bound)
        assert Fraction(float(bound.lower)) <= truth.upper
        assert truth.lower <= Fraction(float(bound.upper))


def test_the_clt_error_shrinks_like_the_root_of_the_steps() -> None:
    """Theorem 7: the bracket at a fixed delta narrows relative to it as the number of steps grows by 16."""

    def relative_width(steps: int, noise: float) -> float:
        bound = SaddlePoint("clt").directed(((SubsampledPair(GaussianPair(noise), 0.01), steps),)).delta(1.0)
        assert isinstance(bound, hs.Bound)
        return float(bound.width) / float(bound.upper)

    few, many = relative_width(2000, 1.5), relative_width(32_000, 6.0)  # of about the same composed loss
    assert many < few / 3.0


# ------------------------------------------------------------------------------------------- formulas, by themselves


def mills(z: mpmath.mpf) -> mpmath.mpf:
    """q(z) of 004, Definition 8."""
    return mpmath.erfc(z / mpmath.sqrt(2)) / 2 * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(z * z / 2)


@pytest.mark.parametrize(
    ("theta", "gamma", "sigma"), [(2.0, 0.6, 1.1), (0.0, -3.0, 0.5), (9.0, 1.3, 0.2), (40.0, 0.05, 2.0)]
)
def test_proposition_6_is_the_integral_and_line_13_is_not(theta: float, gamma: float, sigma: float) -> None:
    with mpmath.workdps(40):
        t, g, s = (mpmath.mpf(v) for v in (theta, gamma, sigma))

        def integrand(y: mpmath.mpf) -> mpmath.mpf:  # y = Z - eps
            return mpmath.npdf(y, g * s, s) * mpmath.exp(-t * y) * (1 - mpmath.exp(-y))

        integral = mpmath.quad(integrand, [0, s / 8, s / 2, s, 2 * s, 4 * s, 8 * s, 16 * s])
        alpha, beta = s * t - g, s * (t + 1) - g
        scale = mpmath.exp(-g * g / 2) / mpmath.sqrt(2 * mpmath.pi)
        proved = scale * (mills(alpha) - mills(beta))
        printed = scale * (mills(alpha) / alpha - mills(beta) / beta)
        assert abs(proved / integral - 1) < mpmath.mpf("1e-15")
        assert abs(printed / integral - 1) > mpmath.mpf("0.01")
        found = tilted_normal(theta, gamma, sigma)
        exact = integral * mpmath.exp(-mpmath.mpf(found.log_scale))
        assert abs(exact - mpmath.mpf(found.value)) <= mpmath.mpf(found.error)
        assert found.error <= 1e-12 * max(found.value, 1e-3)


def test_msd_formulas_against_high_precision() -> None:
    """Equations (60) and (61) at the saddle point, term by term from moments with thirty digits."""
    steps, epsilon = 500, mpmath.mpf("1.5")
    with mpmath.workdps(30):
        s, g, step = mpmath.mpf(0.8), mpmath.mpf(0.01), mpmath.mpf("0.1")
        nodes = [k * step for k in range(-140, 260)]
        losses = [mpmath.log(1 - g + g * mpmath.exp(x / s - 1 / (2 * s * s))) for x in nodes]
        base = [mpmath.npdf(x) * step for x in nodes]

        def cumulants(t: mpmath.mpf) -> list[mpmath.mpf]:
            w = [b * mpmath.exp((1 + t) * l) for b, l in zip(base, losses, strict=True)]
            total = mpmath.fsum(w)
            mean = mpmath.fsum(a * l for a, l in zip(w, losses, strict=True)) / total
            m2, m3, m4 = (
                mpmath.fsum(a * (l - mean) ** k for a, l in zip(w, losses, strict=True)) / total for k in (2, 3, 4)
            )
            return [steps * v for v in (mpmath.log(total), mean, m2, m3, m4 - 3 * m2 * m2)]

        t = mpmath.findroot(lambda t: cumulants(t)[1] - epsilon - 1 / t - 1 / (1 + t), (2, 4), solver="secant")
        k, _, k2, k3, k4 = cumulants(t)
        f2 = k2 + t**-2 + (1 + t) ** -2
        f3 = k3 - 2 * t**-3 - 2 * (1 + t) ** -3
        f4 = k4 + 6 * t**-4 + 6 * (1 + t) ** -4
        msd0 = mpmath.exp(k - epsilon * t) / (t * (1 + t)) / mpmath.sqrt(2 * mpmath.pi * f2)
        squares = 2 * mpmath.pi * (t**2 * (1 + t) ** 2 * k2 + t**2 + (1 + t) ** 2)
        assert abs(msd0 / (mpmath.exp(k - epsilon * t) / mpmath.sqrt(squares)) - 1) < mpmath.mpf(
            "1e-25"
        )  # equation (7)
        msd1 = msd0 * (1 + f4 / (8 * f2**2) - 5 * f3**2 / (24 * f2**3))
    parts = ((SubsampledPair(GaussianPair(0.8), 0.01), steps),)
    for variant, expected in (("msd0", msd0), ("msd1", msd1)):
        found = SaddlePoint(variant).directed(parts).delta(1.5)  # type: ignore[arg-type]
        assert isinstance(found, hs.Estimate)
        assert float(found.value) == pytest.approx(float(expected), rel=1e-10, abs=0.0)


def test_both_expansions_are_close_where_steps_are_many() -> None:
    """Their leading terms differ by K'' against F'' alone (Proposition 4)."""
    bound = SaddlePoint("clt").directed(((LARGE_NOISE, 2000),)).delta(0.5)
    first = SaddlePoint("msd0").directed(((LARGE_NOISE, 2000),)).delta(0.5)
    assert isinstance(bound, hs.Bound)
    assert isinstance(first, hs.Estimate)
    middle = 0.5 * (float(bound.lower) + float(bound.upper))
    assert 0.9 < middle / float(first.value) < 1.1


# ----------------------------------------------------------------------------------------------- laws, errors, ends


@pytest.mark.parametrize("variant", ["msd0", "msd1"])
def test_epsilon_and_delta_are_inverse(variant: Literal["msd0", "msd1"]) -> None:
    curve = SaddlePoint(variant).directed(((LARGE_NOISE, 5000), (LaplacePair(50.0), 20)))
    for delta in (1e-2, 1e-6, 1e-30, 1e-200):
        epsilon = curve.epsilon(delta)
        assert isinstance(epsilon, hs.Estimate)
        back = curve.delta(float(epsilon.value))
        assert isinstance(back, hs.Estimate)
        assert math.log(float(back.value)) == pytest.approx(math.log(delta), abs=1e-6)  # relative in delta


def test_stated_errors_have_the_size_of_the_true_ones() -> None:
    """Within a factor of thirty, over three decades of steps: an error estimate, not a bound."""
    for steps in (300, 2000, 20_000):
        truth = float(exact_delta([(LARGE_NOISE, steps)], 0.5, digits=8).lower)
        for variant in ("msd0", "msd1"):
            found = SaddlePoint(variant).directed(((LARGE_NOISE, steps),)).delta(0.5)
            assert isinstance(found, hs.Estimate)
            assert abs(float(found.value) - truth) <= 30.0 * float(found.error)


def test_relative_error_falls_with_the_steps() -> None:
    errors = [abs(relative_error("msd1", steps)) for steps in (100, 300, 1000, 2000)]
    assert errors == sorted(errors, reverse=True)


def test_a_billion_steps_cost_no_accuracy() -> None:
    """A composed loss of order one from a billion steps: the approximation is then all but exact."""
    parts = ((SubsampledPair(GaussianPair(50.0), 1e-3), 10**9),)
    found = SaddlePoint("msd1").directed(parts).delta(1.0)
    assert isinstance(found, hs.Estimate)
    truth = float(exact_delta(parts, 1.0, digits=10).lower)
    limit = GaussianLimit().directed(parts).delta(1.0)
    assert isinstance(limit, hs.Estimate)
    assert float(limit.value) == pytest.approx(truth, rel=1e-3, abs=0.0)  # here the Gaussian limit is right too
    assert float(found.value) == pytest.approx(truth, rel=2e-2, abs=0.0)
    bound = SaddlePoint("clt").directed(parts).delta(1.0)
    assert isinstance(bound, hs.Bound)
    assert float(bound.lower) <= truth <= float(bound.upper)
    assert bound.width <= 1e-3 * truth


def test_gaussian_limit_is_exact_for_gaussians() -> None:
    for variant in ("gaussian-dp", "normal-loss"):
        curve = GaussianLimit(variant).directed(((GaussianPair(5.0), 25),))
        delta = curve.delta(1.0)
        assert isinstance(delta, hs.Estimate)
        if variant == "normal-loss":
            assert float(delta.value) == pytest.approx(0.12693673750664397, rel=1e-12, abs=0.0)
        epsilon = curve.epsilon(float(delta.value))
        assert isinstance(epsilon, hs.Estimate)
        assert float(epsilon.value) == pytest.approx(1.0, rel=1e-9, abs=0.0)


def test_gaussian_dp_mu_has_the_published_form() -> None:
    """Bu et al.: mu = rate sqrt(T (e^{1/s^2} - 1)), and delta(eps) of a mu-Gaussian mechanism."""
    mu = 0.01 * math.sqrt(2000 * math.expm1(1.0 / 4.0))

    def normal(z: float) -> float:
        return 0.5 * math.erfc(-z / math.sqrt(2.0))

    expected = normal(-0.5 / mu + mu / 2.0) - math.exp(0.5) * normal(-0.5 / mu - mu / 2.0)
    found = GaussianLimit("gaussian-dp").directed(((LARGE_NOISE, 2000),)).delta(0.5)
    assert isinstance(found, hs.Estimate)
    assert float(found.value) == pytest.approx(expected, rel=1e-10, abs=0.0)


@pytest.mark.parametrize("variant", ["msd0", "msd1", "clt"])
def test_ends_of_the_range(variant: Literal["msd0", "msd1", "clt"]) -> None:
    curve = SaddlePoint(variant).directed(((LaplacePair(2.0), 4),))
    beyond, whole = curve.delta(2.1), curve.epsilon(1.0)
    assert isinstance(beyond, hs.Bound)
    assert isinstance(whole, hs.Bound)
    assert beyond.upper == 0.0
    assert whole.upper == 0.0


def test_few_steps_are_named_as_such() -> None:
    found = SaddlePoint("msd1").directed(((SubsampledPair(GaussianPair(20.0), 6e-4), 1),)).delta(0.0)
    assert isinstance(found, hs.Estimate)
    assert "too few steps" in found.notes[0]


def test_a_pair_without_moment_bounds_gives_an_estimate() -> None:
    parts = ((stated_gaussian(0.02), 2000),)
    found = SaddlePoint("clt").directed(parts).delta(1.0)
    assert isinstance(found, hs.Estimate)
    close = SaddlePoint("msd1").directed(parts).delta(1.0)
    assert isinstance(close, hs.Estimate)
    assert abs(float(found.value) - float(close.value)) <= float(found.error)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="variant"):
        SaddlePoint("msd2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="variant"):
        GaussianLimit("clt")  # type: ignore[arg-type]


def test_a_moment_beyond_float64_leaves_a_bracket() -> None:
    run = hs.DiscreteGaussian(4.451, sensitivity=3, values="counts").poisson(0.0028)
    found = hs.account(run, "zero-out", accountant=hs.accountants.SaddlePoint("clt")).epsilon(2e-40)
    known = hs.account(run, "zero-out").epsilon(2e-40)
    assert found.lower <= known.upper  # type: ignore[union-attr, operator]
    assert known.lower <= found.upper  # type: ignore[union-attr, operator]


@pytest.mark.parametrize("size", [1e60, 1e100, 1e108, 1e130])
@pytest.mark.parametrize("step", [hs.Gaussian, hs.Laplace], ids=lambda step: step.__name__)
def test_losses_whose_powers_vanish_leave_a_bracket(step: Callable[[float], hs.Step], size: float) -> None:
    run = step(size) * 100
    found = hs.account(run, "remove", accountant=SaddlePoint("clt")).delta(epsilon=0.0)
    known = hs.account(run, "remove").delta(epsilon=0.0)
    assert isinstance(found, hs.Bound)
    assert found.lower <= known.upper
    assert known.lower <= found.upper
    limit = hs.account(run, "remove", accountant=GaussianLimit()).delta(epsilon=0.0)
    assert 0.0 <= float(limit.value) <= float(known.upper)  # type: ignore[union-attr]


def test_a_limit_of_steps_that_never_draw_the_record_is_none() -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(9.7e-238), "add", accountant=GaussianLimit())
    assert curve.delta(0.0).value == 0.0  # type: ignore[union-attr]
    assert curve.epsilon(1e-9).value == 0.0  # type: ignore[union-attr]
