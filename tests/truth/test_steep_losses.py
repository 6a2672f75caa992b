"""Rare sampling with little noise: nearly all mass at one loss, and a density that falls steeply above it."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.accountants import Certified
from hockeystick.bound import Bound
from hockeystick.engines.lattice.compose import log_moment
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.tangents import tangents
from hockeystick.exact import exact_delta
from hockeystick.laws import GaussianPair, SubsampledPair


def two_steps(noise: float, rate: float, epsilon: float) -> mpf:
    """delta of two steps: the curve of the second, in closed form, integrated over the loss of the first."""
    sigma, g = mpf(noise), mpf(rate)

    def log_ratio(x: mpf) -> mpf:
        return mp.log(1 - g + g * mp.exp((x - mpf(1) / 2) / sigma**2))

    def tail(x: mpf, centre: int) -> mpf:
        return mp.erfc((x - centre) / (sigma * mp.sqrt(2))) / 2

    def one_step(e: mpf) -> mpf:
        rest = (mp.exp(e) - 1 + g) / g
        if rest <= 0:
            return 1 - mp.exp(e)
        x = sigma**2 * mp.log(rest) + mpf(1) / 2
        return (1 - g) * tail(x, 0) + g * tail(x, 1) - mp.exp(e) * tail(x, 0)

    def integrand(x: mpf) -> mpf:
        density = (1 - g) * mp.npdf(x, 0, sigma) + g * mp.npdf(x, 1, sigma)
        return density * one_step(mpf(epsilon) - log_ratio(x))

    with mpmath.workdps(40):
        kink = sigma**2 * mp.log((mp.exp(epsilon) / (1 - g) - 1 + g) / g) + mpf(1) / 2  # the second loss is enough
        return mp.quad(integrand, sorted([*(k * sigma for k in range(-20, 41, 2)), kink]))


def test_epsilon_of_two_steps() -> None:
    noise, rate, delta = 0.62929, 1.393e-06, 2.746865120329346e-31
    bound = hs.account(hs.Gaussian(noise).poisson(rate) * 2, "remove").epsilon(delta)
    assert isinstance(bound, Bound)
    assert float(bound.width) <= 1e-3
    assert two_steps(noise, rate, float(bound.lower)) >= delta >= two_steps(noise, rate, float(bound.upper))


def test_epsilon_of_many_steps_at_a_rare_rate() -> None:
    parts = (hs.Gaussian(0.34043).poisson(1.7483e-05) * 51014).pairs("remove")
    delta = 3.1e-19
    bound = Certified(engine="lattice").directed(parts).epsilon(delta)
    assert isinstance(bound, Bound)
    assert float(bound.width) <= 1e-3
    assert exact_delta(parts, float(bound.lower), digits=8).high >= Fraction(delta)
    assert exact_delta(parts, float(bound.upper), digits=8).low <= Fraction(delta)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "theta"), [(0.24074, 1.2406e-4, 3099, 0.54), (0.5, 1e-3, 1000, 3.0)]
)
def test_the_lower_lattice_loses_little_beside_a_heavy_loss(
    noise: float, rate: float, steps: int, theta: float
) -> None:
    """K of both lattices at the tilt that matters, where nearly all mass lies just above the lowest loss."""
    pair = SubsampledPair(GaussianPair(noise), rate)
    spacing = 2.0**-11
    grid = Grid.covering(*pair.loss_range(-60.0, -60.0), spacing, offset=math.remainder(math.log1p(-rate), spacing))
    lower, upper = tangents(pair, grid, tilt=theta), connect_the_dots(GridCells.of(pair, grid))
    below, above = (steps * np.subtract(*log_moment(lattice, theta)) for lattice in (lower, upper))
    assert 0.0 <= above - below <= 5e-4
