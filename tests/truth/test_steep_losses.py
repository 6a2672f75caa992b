"""Rare sampling with little noise: nearly all mass at one loss, and a density that falls steeply above it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified
from hockeystick.bound import Bound
from hockeystick.engines.lattice.compose import log_moment
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.tangents import tangents
from hockeystick.exact import exact_delta
from hockeystick.laws import GaussianPair, SubsampledPair
from tests.quadrature import two_sampled_steps


def test_epsilon_of_two_steps() -> None:
    noise, rate, delta = 0.62929, 1.393e-06, 2.746865120329346e-31
    bound = hs.account(hs.Gaussian(noise).poisson(rate) * 2, "remove").epsilon(delta)
    assert isinstance(bound, Bound)
    assert float(bound.width) <= 1e-3
    least, most = (two_sampled_steps(float(side), noise, rate) for side in (bound.upper, bound.lower))
    assert least <= delta <= most


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
