"""The certified accountant against the closed form of the Gaussian mechanism, zero slack."""

from __future__ import annotations

import math

import pytest

import hockeystick as hs
from hockeystick.accountants import Certified
from tests.closed_forms import composed_mu, gaussian_delta, gaussian_epsilon, mp, mpf

TARGETS = (1e-1, 1e-5, 1e-12, 1e-30, 1e-100, 1e-250)


@pytest.mark.parametrize("noise", [0.3, 1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("steps", [1, 10, 10_000, 1_000_000])
@pytest.mark.parametrize("engine", ["automatic", "lattice"])
def test_bracket_contains_closed_form(noise: float, steps: int, engine: str) -> None:
    mu = composed_mu(noise, steps)
    scale = 3e-2 if mu > 500 else 1e-2 if mu > 50 else 1e-3
    tolerance = 1e-3 if engine == "automatic" else scale * max(1.0, 3.0 * float(mu))
    curve = hs.account(hs.Gaussian(noise) * steps, "remove", accountant=Certified(tolerance, engine=engine))
    for delta in TARGETS if engine == "automatic" else TARGETS[::2] if steps < 1_000_000 else (1e-5, 1e-250):
        true = gaussian_epsilon(mu, delta)
        bound = curve.epsilon(delta)
        assert isinstance(bound, hs.Bound)
        assert mpf(bound.lower) <= true <= mpf(bound.upper)
        assert bound.width <= tolerance
        if true > 0 and engine == "automatic":
            exact = gaussian_delta(mu, float(true))
            answer = curve.delta(float(true))
            assert mpf(answer.lower) <= exact <= mpf(answer.upper)
            assert answer.width <= 1e-5 * answer.lower


@pytest.mark.parametrize(
    ("noise", "steps", "delta"),
    [(100.0, 10_000, 1e-10), (100.0, 10_000, 1e-12), (100.0, 10_000, 1e-13), (1000.0, 1_000_000, 1e-11)],
)
def test_where_other_libraries_under_report(noise: float, steps: int, delta: float) -> None:
    true = gaussian_epsilon(composed_mu(noise, steps), delta)
    for engine in ("automatic", "lattice"):
        bound = hs.account(hs.Gaussian(noise) * steps, accountant=Certified(engine=engine)).epsilon(delta)
        assert mpf(bound.lower) <= true <= mpf(bound.upper)
        assert bound.width <= 1e-3


def test_width_shrinks_with_tolerance() -> None:
    true = gaussian_epsilon(composed_mu(20.0, 400), 1e-6)
    for tolerance in (1e-2, 1e-3, 1e-4, 1e-5):
        method = Certified(tolerance, engine="lattice")
        bound = hs.account(hs.Gaussian(20.0) * 400, accountant=method).epsilon(1e-6)
        assert mpf(bound.lower) <= true <= mpf(bound.upper)
        assert bound.width <= tolerance


def test_one_step_is_exact_to_rounding() -> None:
    curve = hs.account(hs.Gaussian(2.0))
    for epsilon in (0.0, 0.5, 3.0, 12.0):
        answer = curve.delta(epsilon)
        exact = gaussian_delta(mpf(1) / 2, epsilon)
        assert mpf(answer.lower) <= exact <= mpf(answer.upper)
        assert answer.width <= 1e-9 * answer.lower


def test_delta_zero_is_infinite_epsilon() -> None:
    assert hs.account(hs.Gaussian(1.0) * 10).epsilon(0.0).lower == math.inf


def test_epsilon_zero_is_the_total_variation() -> None:
    answer = hs.account(hs.Gaussian(5.0) * 25).delta(0.0)
    exact = 2 * mp.ncdf(mpf(1) / 2) - 1
    assert mpf(answer.lower) <= exact <= mpf(answer.upper)
    assert answer.width <= 2e-3 * answer.lower
