"""Where one large loss does what many small ones cannot: brackets by the number of jumps contain the exact value."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified
from hockeystick.bound import Bound
from hockeystick.engines.lattice.curve import LatticeCurve
from hockeystick.engines.lattice.plan import saddle_at_epsilon
from hockeystick.engines.lattice.rare_events import JumpComposition, plan_jumps
from hockeystick.exact import exact_delta

VALLEYS = [
    (0.996, 6.27e-5, 246, 0.0798),
    (3.124749730116784, 0.011074488101110301, 183, 0.8658),
    pytest.param(1.57, 0.00127, 8, 0.1147, marks=pytest.mark.torture),
    pytest.param(1.04, 0.000749, 13, 0.53517, marks=pytest.mark.torture),
    pytest.param(1.05, 3.22e-5, 2122, 0.0198, marks=pytest.mark.torture),
]


@pytest.mark.parametrize(("noise", "rate", "steps", "epsilon"), VALLEYS)
def test_lattices_contain_the_exact_value_between_the_modes(
    noise: float, rate: float, steps: int, epsilon: float
) -> None:
    parts = (hs.Gaussian(noise).poisson(rate) * steps).pairs("remove")
    exact = exact_delta(parts, epsilon, digits=8)
    curve = Certified(engine="lattice").directed(parts)
    bound = curve.delta(epsilon)
    assert isinstance(bound, Bound)
    assert Fraction(float(bound.lower)) <= exact.high
    assert exact.low <= Fraction(float(bound.upper))
    assert float(bound.width) <= 5e-3 * exact.upper
    found = curve.epsilon(exact.upper)
    assert isinstance(found, Bound)
    assert float(found.width) <= 1e-3
    assert found.lower - 1e-9 <= epsilon <= found.upper + 1e-9  # exact.upper is delta at epsilon to eight digits


def test_a_single_tilt_is_kept_where_it_serves() -> None:
    parts = (hs.Gaussian(1.0).poisson(0.01) * 2000).pairs("remove")
    for epsilon in (0.5, 2.5, 10.0):
        assert plan_jumps(parts, epsilon, saddle_at_epsilon(parts, epsilon)[1]) is None


def test_terms_add_up_to_the_whole() -> None:
    noise, rate, steps, epsilon = VALLEYS[0]
    curve = LatticeCurve((hs.Gaussian(noise).poisson(rate) * steps).pairs("remove"), 1e-3, 1 << 22)
    _, bracket = curve._delta_around(saddle_at_epsilon(curve.parts, epsilon), epsilon, curve.tolerance, 8)
    assert isinstance(bracket.upper, JumpComposition)
    for at in np.linspace(0.8 * epsilon, 1.25 * epsilon, 9).tolist():
        lower, upper = bracket.lower.delta(at), bracket.upper.delta(at)
        assert 0.0 < lower < upper
        budget = bracket.upper.budget(at)
        assert sum(budget.values()) < 1e-3 * upper
        assert bracket.upper.remainder < 1e-3 * upper


def test_rare_discrete_noise() -> None:
    """Two steps of discrete noise, summed over all integers that matter."""
    sigma, rate, delta = 0.9, 1e-5, 1e-18
    with mpmath.workdps(50):
        weight = {x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for x in range(-40, 42)}
        total = mpmath.fsum(weight.values())
        q = {x: w / total for x, w in weight.items()}
        g = mpmath.mpf(rate)
        p = {x: (1 - g) * q[x] + g * q.get(x - 1, 0) for x in q}

        def exact(epsilon: float) -> mpmath.mpf:
            grown = mpmath.exp(mpmath.mpf(epsilon))
            return mpmath.fsum(max(p[x] * p[y] - grown * q[x] * q[y], 0) for x in q for y in q)

        bound = hs.account(hs.DiscreteGaussian(sigma).poisson(rate) * 2, "remove").epsilon(delta)
        assert isinstance(bound, Bound)
        assert exact(float(bound.lower)) >= delta >= exact(float(bound.upper))
        assert float(bound.width) <= 1e-3
    many = hs.account(hs.DiscreteGaussian(1.42914).poisson(0.0002194) * 77, "remove").epsilon(5.4e-15)
    assert isinstance(many, Bound)
    assert float(many.width) <= 1e-3
