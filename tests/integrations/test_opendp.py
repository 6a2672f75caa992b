"""Profiles and measures in OpenDP itself."""

from __future__ import annotations

import math

import opendp.prelude as dp
import pytest

import hockeystick as hs
from hockeystick.integrations.opendp import curve_of, curve_of_measurement, privacy_profile

dp.enable_features("contrib", "honest-but-curious", "floating-point")

SPACE = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def test_a_profile_says_the_certified_upper_side() -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(0.01) * 2000)
    profile = privacy_profile(curve)
    for epsilon in (0.0, 0.5, 2.0):
        assert curve.delta(epsilon).upper <= profile.delta(epsilon) <= curve.delta(epsilon).upper * (1 + 1e-9)
    found = profile.epsilon(1e-5)
    assert curve.delta(found).upper <= 1e-5
    assert curve.epsilon(1e-5).lower <= found <= curve.epsilon(1e-5).upper + 1e-9
    with pytest.raises(dp.OpenDPException, match="epsilon"):
        profile.delta(-1.0)


def test_a_measurement_of_laplace_noise_is_pure() -> None:
    curve = curve_of_measurement(dp.m.make_laplace(*SPACE, scale=2.0), 1.0)
    assert curve.epsilon(0.0).contains(0.5)


def test_zero_concentration_is_no_tighter_than_proved_and_no_looser_than_opendp() -> None:
    gaussian = dp.m.make_gaussian(*SPACE, scale=2.0)
    curve = curve_of_measurement(gaussian, 1.0)
    theirs = dp.c.make_zCDP_to_approxDP(gaussian).map(1.0)
    for delta in (1e-3, 1e-6, 1e-12):
        best = min(rho_at(order, 0.125, delta) for order in [1.0 + 10 ** (k / 500) for k in range(-1000, 2000)])
        assert best * (1 - 1e-12) <= float(curve.epsilon(delta)) <= best + 1e-4
        assert float(curve.epsilon(delta)) <= theirs.epsilon(delta) + 1e-4


def rho_at(order: float, rho: float, delta: float) -> float:
    """Canonne, Kamath and Steinke (2020), Proposition 12, at one order."""
    return rho * order + math.log(1 / (order * delta)) / (order - 1) + math.log(1 - 1 / order)


def test_inputs_that_do_not_differ_cost_nothing() -> None:
    for measurement in (dp.m.make_gaussian(*SPACE, scale=2.0), dp.m.make_laplace(*SPACE, scale=2.0)):
        assert curve_of_measurement(measurement, 0.0).epsilon(1e-6).upper == 0.0


@pytest.mark.parametrize("distance", [-1.0, 1e308, math.inf, math.nan])
def test_a_distance_that_is_none_is_named(distance: float) -> None:
    with pytest.raises(ValueError, match="distance"):
        curve_of(dp.zero_concentrated_divergence(), distance)
    with pytest.raises(TypeError, match="distance must be epsilon and delta"):
        curve_of(dp.approximate(dp.max_divergence()), distance)
    with pytest.raises(TypeError, match="measure must be a Measure"):
        curve_of("MaxDivergence", distance)  # type: ignore[arg-type]


def test_an_approximate_measurement_is_its_worst_pair() -> None:
    curve = curve_of(dp.approximate(dp.max_divergence()), (0.5, 1e-6))
    assert curve.composition == hs.ApproximateDP(0.5, 1e-6) * 1


def test_other_measures_and_things_are_refused() -> None:
    for measure in (dp.smoothed_max_divergence(), dp.renyi_divergence()):
        with pytest.raises(hs.UnknownPairError, match="no curve is proved"):
            curve_of(measure, 1.0)
    with pytest.raises(TypeError, match="PrivacyCurve"):
        privacy_profile(1.0)
