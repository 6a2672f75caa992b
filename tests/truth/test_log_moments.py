"""Certified brackets of K contain values that share no code with them, and are narrow."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

import hockeystick as hs
from hockeystick.engines.ends import composed_infinity
from hockeystick.engines.moments.log_moment import MomentBracket, log_moment_bounds
from hockeystick.engines.moments.tilted_bounds import tilted_bounds
from hockeystick.errors import PrecisionError
from hockeystick.laws import (
    BinomialPair,
    ContinuousPair,
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    DiscretePair,
    GaussianMixturePair,
    GaussianPair,
    LaplacePair,
    Pair,
    SubsampledPair,
    WorstCasePair,
)
from hockeystick.laws.joined import JoinedPair
from hockeystick.transforms.saddle import round_tilt
from tests.quadrature import integral, normal_below, normal_density, panels
from tests.stated_pairs import stated_gaussian

DIGITS = 40


def binomial_sum(sigma: float, rate: float, order: int) -> mpmath.mpf:
    """ln E_Q[(P/Q)^order] of the subsampled Gaussian at an integer order: a finite sum, exact but for its digits."""
    g, s = mpmath.mpf(rate), mpmath.mpf(sigma)
    terms = (
        mpmath.mpf(math.comb(order, k)) * (1 - g) ** (order - k) * g**k * mpmath.exp((k * k - k) / (2 * s * s))
        for k in range(order + 1)
    )
    return mpmath.log(mpmath.fsum(terms))


def _mpf(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def trapezoid(sigma: float, rate: float, power: float) -> mpmath.mpf:
    """ln int q (p/q)^power of the subsampled Gaussian at any real power: sixty digits of a trapezoidal rule."""
    first, last = min(power, 0.0) / sigma - 16.0, max(power, 1.0) / sigma + 16.0
    with ctx.workdps(DIGITS + 20):
        s, g, step, total = arb(sigma), arb(rate), arb(3) / 50, arb(0)
        for k in range(int(first / 0.06), int(last / 0.06) + 1):
            x = k * step  # in units of sigma
            ratio = 1 - g + g * (x / s - 1 / (2 * s * s)).exp()
            total += normal_density(x) * ratio ** arb(power) * step
        return mpmath.mpf(total.log())


def bracket_of(pair: Pair, theta: float) -> MomentBracket:
    order = 1.0 + theta
    assert order - 1.0 == theta  # the tilts here are such that the order is exact
    return log_moment_bounds([(pair, 1)], np.array([order]))


def assert_contains(pair: Pair, theta: float, truth: mpmath.mpf, *, narrow: float) -> None:
    bracket = bracket_of(pair, theta)
    lower, upper = mpmath.mpf(float(bracket.lower[0])), mpmath.mpf(float(bracket.upper[0]))
    assert lower <= truth <= upper, (pair, theta)
    assert upper - lower <= narrow * max(abs(truth), mpmath.mpf("1e-13")), (pair, theta)


@pytest.mark.parametrize(
    ("sigma", "rate"), [(1.0, 0.01), (0.3, 1e-4), (0.65, 0.01), (5.0, 0.5), (100.0, 1e-4), (0.1, 0.9)]
)
@pytest.mark.parametrize("order", [2, 3, 17, 256])
def test_subsampled_gaussian_contains_the_binomial_sum(sigma: float, rate: float, order: int) -> None:
    with mpmath.workdps(DIGITS):
        truth = binomial_sum(sigma, rate, order)
    assert_contains(SubsampledPair(GaussianPair(sigma), rate), order - 1.0, truth, narrow=1e-7)


@pytest.mark.parametrize("theta", [1.1 - 1.0, 2.7 - 1.0, 30.5])
@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (0.6, 0.3), (8.0, 0.001)])
def test_subsampled_gaussian_contains_the_integral_at_real_orders(sigma: float, rate: float, theta: float) -> None:
    with mpmath.workdps(DIGITS):
        remove, add = trapezoid(sigma, rate, 1.0 + theta), trapezoid(sigma, rate, -theta)
    pair = SubsampledPair(GaussianPair(sigma), rate)
    assert_contains(pair, theta, remove, narrow=1e-8)
    assert_contains(pair.reversed(), theta, add, narrow=1e-8)


def test_reversed_pair_of_a_large_tilt_stays_cheap_and_true() -> None:
    with mpmath.workdps(DIGITS):
        truth = trapezoid(8.0, 0.1, -900.0)
    assert_contains(SubsampledPair(GaussianPair(8.0), 0.1).reversed(), 900.0, truth, narrow=1e-11)


@pytest.mark.parametrize("theta", [1.01 - 1.0, 1.0, 8.3 - 1.0, 400.0])
def test_gaussian_and_laplace_contain_their_closed_forms(theta: float) -> None:
    with mpmath.workdps(DIGITS):
        t = mpmath.mpf(theta)
        m = 1 / mpmath.mpf(3.7)
        assert_contains(GaussianPair(3.7), theta, t * (1 + t) * m * m / 2, narrow=1e-14)
        laplace = mpmath.log(((1 + t) * mpmath.exp(t * m) + t * mpmath.exp(-(1 + t) * m)) / (1 + 2 * t))
        assert_contains(LaplacePair(3.7), theta, laplace, narrow=1e-11)


@pytest.mark.parametrize("theta", [1.05 - 1.0, 2.0, 40.0])
@pytest.mark.parametrize("rate", [0.01, 0.6])
def test_subsampled_laplace_contains_the_integral(theta: float, rate: float) -> None:
    """Both directions, by Gauss-Legendre on the density and the two atoms."""
    with mpmath.workdps(DIGITS), ctx.workdps(DIGITS):
        m, g = 1 / arb(0.8), arb(rate)

        def moment(power: arb) -> mpmath.mpf:
            def f(y: arb) -> arb:
                return (1 - g + g * (2 * y - m).exp()) ** power

            atoms = f(arb(0)) / 2 + f(m) * (-m).exp() / 2
            return mpmath.mpf((atoms + integral(lambda y: (-y).exp() / 2 * f(y), panels(0, m, 8))).log())

        pair = SubsampledPair(LaplacePair(0.8), rate)
        assert_contains(pair, theta, moment(1 + arb(theta)), narrow=1e-5)
        assert_contains(pair.reversed(), theta, moment(-arb(theta)), narrow=1e-5)


VECTORS = [
    ((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))),
    ((Fraction(500001, 1000000), Fraction(499999, 1000000)), (Fraction(1, 2), Fraction(1, 2))),
    (
        (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3), Fraction(0)),
        (Fraction(1, 6), Fraction(1, 2), Fraction(0), Fraction(1, 3)),
    ),
]


@pytest.mark.parametrize(("p", "q"), VECTORS)
@pytest.mark.parametrize("theta", [1.02 - 1.0, 1.0, 60.0, 2000.0])
def test_probability_vectors_contain_their_sums(p: tuple[Fraction, ...], q: tuple[Fraction, ...], theta: float) -> None:
    with mpmath.workdps(DIGITS):
        sums = [
            _mpf(a) ** (1 + mpmath.mpf(theta)) * _mpf(b) ** -mpmath.mpf(theta)
            for a, b in zip(p, q, strict=True)
            if a and b
        ]
        truth = mpmath.log(mpmath.fsum(sums))
    assert_contains(DiscretePair(p, q), theta, truth, narrow=1e-3)


@pytest.mark.parametrize("theta", [0.5, 3.0, 20.0])
def test_mechanisms_on_the_integers_contain_their_sums(theta: float) -> None:
    with mpmath.workdps(DIGITS):
        t = mpmath.mpf(theta)
        two = 2 * mpmath.mpf(1.5) ** 2
        noise = mpmath.fsum(mpmath.exp(-(mpmath.mpf(x) ** 2) / two) for x in range(-60, 61))
        gaussian = mpmath.fsum(
            mpmath.exp(-((1 + t) * (x - 1) ** 2 - t * mpmath.mpf(x) ** 2) / two) for x in range(-60, 160)
        )
        assert_contains(DiscreteGaussianPair(1.5), theta, mpmath.log(gaussian / noise), narrow=1e-9)
        e = mpmath.mpf(1)
        top, bottom = mpmath.exp(e) / (1 + mpmath.exp(e)), 1 / (1 + mpmath.exp(e))
        assert_contains(
            WorstCasePair(1.0), theta, mpmath.log(top * mpmath.exp(t) + bottom * mpmath.exp(-t)), narrow=1e-12
        )
        b = 1 / mpmath.mpf(2)  # scale 2, in steps of one
        base = mpmath.tanh(b / 2)
        laplace = mpmath.fsum(base * mpmath.exp(-b * ((1 + t) * abs(x - 1) - t * abs(x))) for x in range(-400, 400))
        assert_contains(DiscreteLaplacePair(2.0), theta, mpmath.log(laplace), narrow=1e-10)


def test_binomial_moments_agree_with_its_atoms_as_a_vector() -> None:
    """The same outcomes, once as stated atoms and once as exact fractions: the brackets overlap and are narrow."""
    trials = 30
    masses = [Fraction(math.comb(trials, k), 2**trials) for k in range(trials + 1)]
    vector = DiscretePair((Fraction(0), *masses), (*masses, Fraction(0)))
    for theta in (1.25 - 1.0, 4.0):
        own = bracket_of(BinomialPair(trials), theta)
        exact = bracket_of(vector, theta)
        mirrored = bracket_of(vector.reversed(), theta)
        agreeing = [o for o in (exact, mirrored) if o.lower[0] <= own.upper[0] and own.lower[0] <= o.upper[0]]
        assert agreeing
        assert own.upper[0] - own.lower[0] <= 1e-9 * abs(own.upper[0])


@pytest.mark.parametrize("theta", [0.5, 6.0, 255.0])
def test_mixtures_contain_the_substitution_integral(theta: float) -> None:
    g = Fraction(1, 8)
    pair = GaussianMixturePair(0.9, (1 - g, g), (0.0, 1.0), (1 - g, g), (0.0, -1.0))
    with ctx.workdps(DIGITS):
        s, rate, step, t = arb(0.9), arb(1) / 8, arb(1) / 20, arb(theta)
        terms = []
        for k in range(-600, 900 + int(45.0 * theta)):
            x = k * step
            up, down = (x / s - 1 / (2 * s * s)).exp(), (-x / s - 1 / (2 * s * s)).exp()
            terms.append(normal_density(x) * (1 - rate + rate * up) ** (1 + t) * (1 - rate + rate * down) ** -t * step)
        truth = sum(terms, arb(0)).log()
    with mpmath.workdps(DIGITS):
        truth = mpmath.mpf(truth)
    assert_contains(pair, theta, truth, narrow=1e-10)


def test_composed_moments_add_up_and_stay_narrow_for_a_billion_steps() -> None:
    with mpmath.workdps(DIGITS):
        truth = 10**9 * binomial_sum(10.0, 1e-4, 9)
    bracket = log_moment_bounds([(SubsampledPair(GaussianPair(10.0), 1e-4), 10**9)], np.array([9.0]))
    low, high = float(bracket.lower[0]), float(bracket.upper[0])
    assert mpmath.mpf(low) <= truth <= mpmath.mpf(high)
    assert high - low <= 1e-6 * high


def joined_sides(g: arb, loss: arb, t: arb) -> arb:
    """``e^{theta L'}`` of the joined pair at an outcome of base loss L, times its mass over the base's under P."""
    if loss > 0:
        return (g + (1 - g) * (-loss).exp()) * (1 - g + g * loss.exp()) ** t
    return (1 - g + g * (-loss).exp()) ** -t


@pytest.mark.parametrize("theta", [0.5, 3.0, 40.0, 1500.0])
def test_joined_curves_are_put_between_lattices(theta: float) -> None:
    """Laplace noise of scale 1, and two outcomes with a mass at infinity."""
    with mpmath.workdps(DIGITS), ctx.workdps(DIGITS):
        g, t, e = arb(0.125), arb(theta), arb(1).exp()
        middle = (1 - g) * (1 - (arb(-1) / 2).exp())
        atoms = joined_sides(g, arb(1), t) / 2 + joined_sides(g, arb(-1), t) / (2 * e)
        inside = integral(
            lambda x: (x - 1).exp() / 2 * joined_sides(g, 2 * x - 1, t), [*panels(0, 0.5, 16), *panels(0.5, 1, 32)[1:]]
        )
        laplace = mpmath.mpf((atoms + inside + middle).log())
        d = arb(2.0**-20)
        top, bottom = (1 - d) * e / (1 + e), (1 - d) / (1 + e)
        middle = (1 - g) * (d + top - bottom)
        sides = top * joined_sides(g, arb(1), t) + bottom * joined_sides(g, arb(-1), t)
        two = mpmath.mpf((sides + middle).log())
    assert_contains(JoinedPair(LaplacePair(1.0), 0.125), theta, laplace, narrow=1e-8)
    assert_contains(JoinedPair(WorstCasePair(1.0, 2.0**-20), 0.125), theta, two, narrow=1e-8)


@pytest.mark.parametrize("theta", [0.5, 3.0, 40.0])
def test_a_pair_that_the_caller_states_is_put_between_lattices(theta: float) -> None:
    """Logistic noise: losses bounded by 1, without atoms."""
    pair = ContinuousPair(
        loss=lambda x: 1.0 - 2.0 * (np.logaddexp(0.0, 1.0 - x) - np.logaddexp(0.0, -x)),
        log_cdf_p=lambda x: -np.logaddexp(0.0, 1.0 - x),
        log_tail_p=lambda x: -np.logaddexp(0.0, x - 1.0),
        log_cdf_q=lambda x: -np.logaddexp(0.0, -x),
        log_tail_q=lambda x: -np.logaddexp(0.0, x),
        search=(-40.0, 41.0),
        bounds=(-1.0, 1.0),
        loss_error=4e-14,
        mass_error=1e-13,
    )
    with mpmath.workdps(DIGITS):

        def tilted(x: arb) -> arb:
            loss = 1 - 2 * ((1 - x).exp().log1p() - (-x).exp().log1p())
            return (theta * loss).exp() * (1 - x).exp() / (1 + (1 - x).exp()) ** 2

        truth = mpmath.mpf(integral(tilted, panels(-100, 100, 200)).log())
    assert_contains(pair, theta, truth, narrow=1e-7)


@pytest.mark.parametrize("theta", [0.5, 1.0, 30.0])
def test_sampled_noise_on_the_integers_contains_its_sums(theta: float) -> None:
    with mpmath.workdps(DIGITS):
        t, g, two = mpmath.mpf(theta), mpmath.mpf(0.125), 2 * mpmath.mpf(2) ** 2
        noise = mpmath.fsum(mpmath.exp(-(mpmath.mpf(x) ** 2) / two) for x in range(-80, 81))

        def moment(power: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(
                mpmath.fsum(
                    mpmath.exp(-(mpmath.mpf(x) ** 2) / two) * (1 - g + g * mpmath.exp((2 * x - 1) / two)) ** power
                    for x in range(-80, 160)
                )
                / noise
            )

        pair = SubsampledPair(DiscreteGaussianPair(2.0), 0.125)
        assert_contains(pair, theta, moment(1 + t), narrow=1e-10)
        assert_contains(pair.reversed(), theta, moment(-t), narrow=1e-10)


def test_unbounded_losses_of_an_unknown_pair_have_no_upper_bound() -> None:
    bracket, truth = bracket_of(stated_gaussian(0.5), 1.0), 2 * 0.5**2 / 2
    assert bracket.upper[0] == math.inf
    assert 0.999 * truth <= bracket.lower[0] <= truth


def test_unbounded_losses_of_a_joined_pair() -> None:
    pair = JoinedPair(GaussianPair(2.0), 0.125)
    with mpmath.workdps(DIGITS), ctx.workdps(DIGITS):
        g, s = arb(0.125), arb(2)

        def tilted(x: arb) -> arb:
            return normal_density(x - 1 / s) * joined_sides(g, x / s - 1 / (2 * s * s), arb(1))

        cut = 1 / (2 * s)
        middle = (1 - g) * (normal_below(1 / s - cut) - normal_below(-cut))
        inside = integral(tilted, [*panels(-20, cut, 20), *panels(cut, 20, 20)[1:]])
        truth = mpmath.mpf((inside + middle).log())
    assert_contains(pair, 1.0, truth, narrow=1e-10)


def test_infinite_mass_of_a_composition_is_bracketed() -> None:
    pair = DiscretePair((Fraction(19, 20), Fraction(1, 20)), (Fraction(1), Fraction(0)))
    low, high = composed_infinity([(pair, 10)])
    assert Fraction(low) <= 1 - Fraction(19, 20) ** 10 <= Fraction(high)
    assert high - low <= 1e-12


@functools.cache
def sampled_losses() -> tuple[list[arb], list[arb]]:
    """Densities of one-dimensional noise on a fine lattice, and the losses of a rate of 1% there."""
    with ctx.workdps(DIGITS):
        g, nodes = arb(0.01), [arb(k) / 100 for k in range(-1400, 2800)]
        return [normal_density(x) for x in nodes], [(1 - g + g * (x - 0.5).exp()).log() for x in nodes]


@pytest.mark.parametrize("theta", [0.2, 3.0, 11.0])
@pytest.mark.parametrize("reverse", ["no", "yes"])
def test_tilted_moments_are_bracketed(theta: float, reverse: str) -> None:
    """Mean and variance from convexity, the absolute third moment from cells: against a plain high-precision sum."""
    tilt = round_tilt(theta)
    pair: Pair = SubsampledPair(GaussianPair(1.0), 0.01)
    with mpmath.workdps(30), ctx.workdps(DIGITS):
        t = arb(tilt)
        power = 1 + t if reverse == "no" else -t
        sign = 1 if reverse == "no" else -1
        densities, losses = sampled_losses()
        weights = [density * (power * l).exp() for density, l in zip(densities, losses, strict=True)]
        total = sum(weights, arb(0))
        middle = sign * sum((w * l for w, l in zip(weights, losses, strict=True)), arb(0)) / total
        central = [sign * l - middle for l in losses]
        squares = sum((w * d * d for w, d in zip(weights, central, strict=True)), arb(0))
        cubes = sum((w * abs(d) ** 3 for w, d in zip(weights, central, strict=True)), arb(0))
        mean, variance, third = (mpmath.mpf(each) for each in (middle, squares / total, cubes / total))
    bounds = tilted_bounds([(pair if reverse == "no" else pair.reversed(), 1)], tilt)
    assert bounds.is_known
    assert mpmath.mpf(bounds.mean.lower) <= mean <= mpmath.mpf(bounds.mean.upper)
    assert mpmath.mpf(bounds.variance.lower) <= variance <= mpmath.mpf(bounds.variance.upper)
    assert third <= bounds.absolute_third * (1 + mpmath.mpf("1e-6"))  # the sum itself errs by that at the kink
    assert bounds.absolute_third <= 1.1 * float(third)
    assert bounds.variance.radius <= 1e-3 * float(variance)


@pytest.mark.parametrize("theta", [1.0, 30.0])
def test_the_third_moment_of_atoms_is_sharp_where_the_largest_is_far_out(theta: float) -> None:
    """A thousand trials: the largest loss, ln 1000, has next to no tilted mass."""
    pair = BinomialPair(1000)
    with mpmath.workdps(DIGITS):
        masses = [mpmath.mpf(math.comb(1000, k)) for k in range(1001)]
        # P is the noise itself or moved by one: one is the other mirrored
        ratios = [masses[k] / masses[k + 1] for k in range(1000)]
        found = []
        for p, losses in ((masses[:-1], ratios), (masses[1:], [1 / r for r in ratios])):
            weights = [m * r ** mpmath.mpf(theta) for m, r in zip(p, losses, strict=True)]
            total = mpmath.fsum(weights)
            logs = [mpmath.log(r) for r in losses]
            mean = mpmath.fsum(w * l for w, l in zip(weights, logs, strict=True)) / total
            found.append(mpmath.fsum(w * abs(l - mean) ** 3 for w, l in zip(weights, logs, strict=True)) / total)
    third = tilted_bounds([(pair, 1)], theta).absolute_third
    assert max(found) <= third <= 1.001 * float(max(found))


def test_finite_losses_whose_moment_vanishes_are_refused_in_words() -> None:
    """All lie far below 0, beside a mass at infinity: at large tilts nothing of the moment is left."""
    near = DiscretePair((0.334555, 0.333222, 0.332223), (0.25, 0.25, 0.5))
    far = DiscretePair((0.49975, 0.50025), (1.0, 0.0)).subsampled(1.0 - 2.0**-53)
    curve = hs.accountants.Contour().directed(((near, 1), (far, 1)))
    with pytest.raises(PrecisionError, match="no tilt"):
        curve.epsilon(0.5004)
