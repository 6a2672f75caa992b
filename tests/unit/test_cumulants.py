"""The cumulants window: estimates whose stated errors hold, at any tilt; and rules on the complex plane."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import PRV, Accountant, Fourier, GaussianLimit, Lattice, Moments, SaddlePoint
from hockeystick.engines.moments.absolute_third import absolute_third_upper
from hockeystick.engines.moments.cumulants import CumulantWindow
from hockeystick.errors import PrecisionError
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair, Pair, SubsampledPair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.rule import Window

RARE = SubsampledPair(GaussianPair(1.0), 0.01)
PAIRS: list[Pair] = [
    RARE,
    RARE.reversed(),
    SubsampledPair(GaussianPair(0.4), 0.2),
    SubsampledPair(LaplacePair(0.5), 0.1),
    SubsampledPair(LaplacePair(0.5), 0.1).reversed(),
    LaplacePair(2.0),
    DiscretePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))),
]


def laplace_moment(m: mpmath.mpf, z: mpmath.mpc) -> mpmath.mpc:
    """E_P e^{zL} for Lap(m, 1) against Lap(0, 1), by integrating both atoms and the density."""
    return ((1 + z) * mpmath.exp(z * m) + z * mpmath.exp(-(1 + z) * m)) / (1 + 2 * z)


def rare_gaussian_moments(sigma: float, rate: float, z: mpmath.mpc, *, powers: int) -> list[mpmath.mpc]:
    """E_P[L^k e^{zL}] of the subsampled Gaussian for k below ``powers``, by a trapezoidal rule in high precision."""
    s, g, step = mpmath.mpf(sigma), mpmath.mpf(rate), mpmath.mpf("0.1")
    total = [mpmath.mpc(0)] * powers
    for k in range(-130, int(10 * (1 + mpmath.re(z)) / s) + 140):
        x = k * step * s
        log_ratio = mpmath.log1p(g * mpmath.expm1((2 * x - 1) / (2 * s * s)))
        term = mpmath.npdf(x, 0, s) * mpmath.exp((1 + z) * log_ratio) * step * s
        total = [t + term * log_ratio**power for power, t in enumerate(total)]
    return total


@pytest.mark.parametrize("z", [0.5, 3.0, 0.5 + 2.0j, 3.0 + 20.0j, 1.0 + 60.0j])
def test_rules_give_complex_moments_in_high_precision(z: complex) -> None:
    with mpmath.workdps(30):
        rare = complex(rare_gaussian_moments(1.0, 0.01, mpmath.mpmathify(z), powers=1)[0])
        flat = complex(laplace_moment(mpmath.mpf(1) / 2, mpmath.mpmathify(z)))
    window = Window((1.0, 1.0 + z.real), z.imag, -45.0)
    for pair, expected in ((RARE, rare), (LaplacePair(2.0), flat)):
        (rule,) = PairSum([(pair, 1)]).rules(window) or ()
        found = np.exp(rule.log_weight + (1.0 + z) * rule.loss).sum()
        size = abs(np.exp(rule.log_weight + (1.0 + z.real) * rule.loss).sum())
        assert abs(found - expected) <= 1e-13 * size * (1.0 + abs(z))


@pytest.mark.parametrize("theta", [0.3, 2.0, 9.0])
def test_cumulants_match_moments_in_high_precision(theta: float) -> None:
    with mpmath.workdps(40):
        m = [mpmath.re(v) for v in rare_gaussian_moments(1.0, 0.01, mpmath.mpf(theta), powers=5)]
        mean = m[1] / m[0]
        central = [
            sum(mpmath.binomial(k, j) * m[j] / m[0] * (-mean) ** (k - j) for j in range(k + 1)) for k in range(5)
        ]
        truth = [mpmath.log(m[0]), mean, central[2], central[3], central[4] - 3 * central[2] ** 2]
    found = CumulantWindow([(RARE, 1)]).checked(theta)
    scale = math.sqrt(found.variance)
    for value, expected, unit in zip(
        (found.log_moment, found.mean, found.variance, found.third, found.fourth),
        truth,
        (abs(found.log_moment), scale, scale**2, scale**3, scale**4),
        strict=True,
    ):
        assert abs(value - float(expected)) <= 1e-9 * unit


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("theta", [0.01, 1.0, 25.0])
def test_cumulants_are_derivatives_of_the_log_moment(pair: Pair, theta: float) -> None:
    window = CumulantWindow([(pair, 3)])
    c = window.checked(theta)
    assert c.error <= 1e-8
    h = 1e-3 * min(theta, 1.0 / max(math.sqrt(c.variance / 3.0), 1e-2))
    above, below = window.at(theta + h), window.at(theta - h)
    curvature = h * h * max(abs(above.third), abs(below.third), abs(c.third))
    rounding = 4e-16 * abs(c.log_moment) / h
    assert (
        abs((above.log_moment - below.log_moment) / (2.0 * h) - c.mean)
        <= curvature + 1e-9 * math.sqrt(c.variance) / h + rounding
    )
    assert (above.mean - below.mean) / (2.0 * h) == pytest.approx(
        c.variance, rel=1e-3, abs=1e-11 / h
    )  # the means differ by little


def test_composition_adds_up() -> None:
    parts = [(RARE, 7), (LaplacePair(2.0), 2)]
    together = CumulantWindow(parts).at(1.5)
    apart = [CumulantWindow([(pair, 1)]).at(1.5) for pair, _ in parts]
    for field in ("log_moment", "mean", "variance", "third", "fourth", "absolute_third"):
        expected = 7 * getattr(apart[0], field) + 2 * getattr(apart[1], field)
        assert getattr(together, field) == pytest.approx(expected, rel=1e-14, abs=0.0)


def test_a_rare_record_shows_its_far_peak() -> None:
    """At this tilt nearly all tilted mass sits 1000 deviations out, where nodes around the bulk see nothing."""
    found = CumulantWindow([(SubsampledPair(GaussianPair(100.0), 0.001), 1)]).checked(1e6)
    with mpmath.workdps(30):
        far = mpmath.mpf(10) ** 6 * (10**6 + 1) * mpmath.mpf(100) ** -2 / 2 + (10**6 + 1) * mpmath.log("0.001")
    assert found.log_moment == pytest.approx(float(far), rel=1e-9, abs=0.0)
    assert found.mean > 50.0


def test_small_losses_cost_no_accuracy() -> None:
    """K is near 1e-12 here: as the logarithm of a sum near one it would have four digits."""
    found = CumulantWindow([(SubsampledPair(GaussianPair(100.0), 1e-4), 1)]).checked(1.0).log_moment
    assert found == pytest.approx(math.log1p(1e-8 * math.expm1(1e-4)), rel=1e-7, abs=0.0)


def test_a_tilt_beyond_reach_says_so() -> None:
    with pytest.raises(PrecisionError, match="quadrature nodes"):
        CumulantWindow([(SubsampledPair(GaussianPair(0.01), 0.5), 1)]).at(1e9)


@pytest.mark.parametrize(
    "accountant", [Lattice(1.0), Fourier(0.01, 20.0), PRV(), SaddlePoint("clt"), Moments("quadratic"), GaussianLimit()]
)
@pytest.mark.parametrize("size", [1e60, 1e160, 1e300])
def test_losses_whose_powers_overflow_are_answered_or_refused_in_words(accountant: Accountant, size: float) -> None:
    curve = hs.account(hs.ApproximateDP(size) * 2, accountant=accountant)
    for ask, value in ((curve.delta, 1.0), (curve.epsilon, 1e-6)):
        with contextlib.suppress(PrecisionError):
            found = ask(value)
            assert isinstance(found, hs.Estimate) or found.lower <= found.upper


@pytest.mark.parametrize(
    "accountant", [Moments(), Moments("quadratic"), SaddlePoint(), SaddlePoint("clt"), GaussianLimit("normal-loss")]
)
@pytest.mark.parametrize("noise", [1e-50, 1e-80, 1e-118, 1e-140])
def test_gaussian_steps_of_next_to_no_noise_hide_nothing(accountant: Accountant, noise: float) -> None:
    curve = hs.account(hs.Gaussian(noise), "remove", accountant=accountant)
    assert curve.delta(1.0).sides[1] == 1.0
    assert float(curve.epsilon(1e-6).sides[1]) > 0.4 / noise / noise


@pytest.mark.parametrize(
    ("accountant", "noise"),
    [
        *product([PRV(), Lattice(1.0)], [1e-16, 1e-20, 1e-60, 1e-110]),
        *product([SaddlePoint("clt"), Moments("quadratic"), GaussianLimit()], [1e-20, 1e-60, 1e-110]),
    ],
)
def test_laplace_steps_of_next_to_no_noise_are_answered_or_refused_in_words(
    accountant: Accountant, noise: float
) -> None:
    curve = hs.account(hs.Laplace(noise), "remove", accountant=accountant)
    for ask, value in ((curve.delta, 1.0), (curve.epsilon, 1e-6)):
        with contextlib.suppress(PrecisionError):
            found = ask(value)
            assert isinstance(found, hs.Estimate) or found.lower <= found.upper


@pytest.mark.parametrize("beside", [[], [(hs.Laplace(1.0), 2)], [(hs.RandomizedResponse(0.75), 1)]], ids=len)
def test_outcomes_of_enormous_losses_are_answered_or_refused_in_words(beside: list[tuple[hs.Step, int]]) -> None:
    curve = hs.account(hs.compose([(hs.ApproximateDP(1e100), 2), *beside]))
    for ask, value in ((curve.delta, 1.0), (curve.epsilon, 1e-6)):
        with contextlib.suppress(PrecisionError):
            found = ask(value)
            assert found.lower <= found.upper


def test_divergences_of_enormous_losses_are_refused_in_words() -> None:
    with pytest.raises(PrecisionError, match="whose powers float64 holds"):
        hs.renyi(hs.Gaussian(1e-36).poisson(0.1) * 3, orders=[2.0, 10.0])


def test_a_third_moment_beyond_float64_is_not_known() -> None:
    assert absolute_third_upper(LaplacePair(1.0), 2.0**20, 0.0, -1e6) == math.inf


@pytest.mark.parametrize("shift", [1e4, 1e6])
def test_laplace_steps_of_tiny_noise_need_nodes_where_there_is_mass_alone(shift: float) -> None:
    """Between both ends neither distribution has mass; with nodes all the way there were millions."""
    nodes = LaplacePair(1.0 / shift).nodes(-60.0)
    assert nodes.loss.size <= 2 * 32 * (60 / 4 + 2)
    assert (np.diff(nodes.loss) > 0.0).all()
    assert math.fsum(np.exp(nodes.log_p)) == pytest.approx(1.0, rel=1e-9, abs=0.0)
    assert math.fsum(np.exp(nodes.log_q)) == pytest.approx(1.0, rel=1e-9, abs=0.0)


def test_groups_with_next_to_no_noise_need_nodes_where_there_is_mass_alone() -> None:
    """Three records at noise 1e-3: four centres a thousand deviations apart; nodes all the way were millions."""
    (pair, _), *_ = (hs.GaussianMixture.poisson_group(1e-3, rate=0.01, size=3) * 1).pairs("remove")
    nodes = pair.nodes(-60.0)
    assert nodes.loss.size <= 4 * (2.0 * math.sqrt(120.0) * 3000.0 / 0.55 + 2)
    assert (np.diff(nodes.loss) >= 0.0).all()
    assert math.fsum(np.exp(nodes.log_p)) == pytest.approx(1.0, rel=1e-9, abs=0.0)
    assert math.fsum(np.exp(nodes.log_q)) == pytest.approx(1.0, rel=1e-9, abs=0.0)
