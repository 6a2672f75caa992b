"""Bayes risk and attack success, against closed forms; calibration to each."""

from __future__ import annotations

import math

import pytest
from mpmath import erfc, log, mp, mpf

import hockeystick as hs


def gaussian_delta(mu: mpf, epsilon: mpf) -> mpf:
    def phi(x: mpf) -> mpf:
        return erfc(-x / mp.sqrt(2)) / 2

    return phi(mu / 2 - epsilon / mu) - mp.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("prior", [0.5, 0.3, 0.9, 0.001, 1e-12, 1e-200, 0.4999999])
@pytest.mark.parametrize("noise", [0.3, 1.0, 7.0])
def test_the_risk_of_gaussian_noise_contains_its_closed_form(noise: float, prior: float) -> None:
    bound = hs.account(hs.Gaussian(noise)).bayes_risk(prior)
    with mp.workdps(260):
        rarer = min(mpf(prior), 1 - mpf(prior))
        truth = rarer * (1 - gaussian_delta(1 / mpf(noise), log((1 - rarer) / rarer)))
        assert mpf(bound.lower) <= truth <= mpf(bound.upper)
    assert bound.upper - bound.lower <= 1e-11 * bound.upper


@pytest.mark.parametrize("adjacency", ["add", "remove", "add-remove"])
def test_both_ways_count_whatever_the_relation(adjacency: str) -> None:
    leak = hs.DiscretePair((0.5, 0.5), (1.0, 0.0)).poisson(0.5)
    bound = hs.account(leak, adjacency).bayes_risk(0.25)
    other = hs.account(leak, adjacency).bayes_risk(0.75)
    assert (bound.lower, bound.upper) == (other.lower, other.upper)
    # P = (3/4, 1/4), Q = (1, 0): by h(a) = max(3/4 - a, 0) + 1/4 both ways round
    assert bound.contains(0.25 * (1.0 - 0.25))


@pytest.mark.parametrize(
    ("prior", "risk"), [(0.5, 0.4429580577978871), (0.7, 0.29980402352290597), (0.95, 0.049999999998869435)]
)
def test_risks_are_those_of_riskcal(prior: float, risk: float) -> None:
    """riskcal 1.5.1 over dp-accounting 0.6.0 at a spacing of 1e-4: near the truth, on the pessimistic side."""
    bound = hs.account(hs.Gaussian(1.0).poisson(0.01) * 500).bayes_risk(prior)
    assert risk <= bound.lower + 2e-12
    assert float(bound) == pytest.approx(risk, rel=1e-6)


def test_attack_rates_and_calibration_are_those_of_riskcal() -> None:
    """riskcal 1.5.1 at a spacing of 1e-4: advantage, false-negative rates, and noise for advantage 0.1 to 1e-3."""
    curve = hs.account(hs.Gaussian(1.0).poisson(0.01) * 500)
    assert float(curve.advantage()) == pytest.approx(0.1140838844042258, rel=1e-5)
    rates = {0.01: 0.97788287, 0.05: 0.90984994, 0.1: 0.83676918, 0.5: 0.38654006}
    missed = curve.trade_off(list(rates), tolerance=1e-5).false_negative_rate
    assert missed.sides[1].tolist() == pytest.approx(list(rates.values()), rel=2e-4)  # of either bracket
    found = hs.calibrate(lambda s: hs.Gaussian(s).poisson(0.01) * 500, advantage=0.1, precision=1e-3)
    assert found.value == pytest.approx(1.0959289550781253, rel=1e-3)


@pytest.mark.parametrize("noise", [0.5, 1.0, 4.0])
def test_the_success_of_an_attack_contains_its_closed_form(noise: float) -> None:
    """Gaussian noise: a secret guessed with probability a is guessed with Phi(Phi^-1(a) + mu) at most."""
    for baseline in (0.01, 0.3):
        bound = hs.account(hs.Gaussian(noise)).attack_success(baseline)
        with mp.workdps(40):
            at = mp.sqrt(2) * mp.erfinv(2 * mpf(baseline) - 1) + 1 / mpf(noise)
            assert mpf(float(bound.lower)) <= mp.ncdf(at) <= mpf(float(bound.upper))  # type: ignore[union-attr]


def test_calibration_to_the_success_of_an_attack_is_tight() -> None:
    found = hs.calibrate(hs.Gaussian, true_positive_rate=0.2, false_positive_rate=0.1)
    assert found.unsafe is not None
    safe = hs.account(hs.Gaussian(found.value)).trade_off(0.1, tolerance=1e-7).true_positive_rate
    assert 0.2 * (1.0 - 1e-5) <= safe.sides[1] <= 0.2 * (1.0 + 1e-7)  # of what is asked
    assert math.isclose(found.value, found.unsafe, rel_tol=1e-4, abs_tol=0.0)


def test_success_from_a_baseline_is_the_true_positive_rate_there() -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(0.01) * 100)
    assert repr(curve.attack_success(0.05)) == repr(curve.true_positive_rate(0.05))


@pytest.mark.parametrize(("risk", "prior"), [(0.4, 0.5), (0.05, 0.1), (0.0009, 0.999)])
def test_calibration_to_a_risk_is_tight(risk: float, prior: float) -> None:
    found = hs.calibrate(hs.Gaussian, bayes_risk=risk, prior=prior)
    assert found.unsafe is not None
    assert hs.account(hs.Gaussian(found.value)).bayes_risk(prior).lower >= risk * (1.0 - 1e-15)
    assert hs.account(hs.Gaussian(found.unsafe)).bayes_risk(prior).upper <= risk * (1.0 + 1e-15)
    assert math.isclose(found.value, found.unsafe, rel_tol=2e-5, abs_tol=0.0)


def test_a_risk_that_guessing_reaches_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bayes_risk must be below 0\.25"):
        hs.calibrate(hs.Gaussian, bayes_risk=0.25, prior=0.75)
    with pytest.raises(TypeError, match="go together"):
        hs.calibrate(hs.Gaussian, bayes_risk=0.1)
    with pytest.raises(ValueError, match="prior"):
        hs.account(hs.Gaussian(1.0)).bayes_risk(1.0)
