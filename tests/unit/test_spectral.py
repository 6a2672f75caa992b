"""Compositions on low frequencies against the same lattices composed by FFT of the whole window."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.composition import Composition
from hockeystick.engines.lattice.compose import TiltedComposition, TiltedWindow
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.plan import saddle_at_epsilon, window_around
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.engines.lattice.spectral import spectral_curve
from hockeystick.engines.lattice.tangents import tangents

RUNS = [
    (hs.Gaussian(1.0).poisson(0.01) * 2000, 2.0, 2e-3),
    (hs.compose_arrays(noise_multipliers=np.linspace(3.0, 1.5, 40), rates=0.02, counts=20), 0.5, 1e-3),
    (hs.Gaussian(30.0) * 300 + hs.Laplace(40.0) * 300, 1.5, 5e-4),
]


def lattices(
    run: Composition, epsilon: float, spacing: float
) -> tuple[list[list[tuple[LatticePLD, int]]], TiltedWindow, float]:
    parts = run.pairs("remove")
    cumulants, saddle = saddle_at_epsilon(parts, epsilon)
    window = window_around(cumulants, saddle, math.log(1e-9))
    sides: list[list[tuple[LatticePLD, int]]] = [[], []]
    for pair, count in parts:
        grid = Grid.covering(*pair.loss_range(-60.0, -60.0), spacing)
        sides[0].append((connect_the_dots(GridCells.of(pair, grid)), count))
        sides[1].append((tangents(pair, grid, tilt=window.theta), count))
    return sides, window, math.sqrt(cumulants(window.theta)[2])


@pytest.mark.parametrize(("run", "epsilon", "spacing"), RUNS)
def test_equals_the_composition_by_fft(run: Composition, epsilon: float, spacing: float) -> None:
    sides, window, deviation = lattices(run, epsilon, spacing)
    for parts in sides:
        whole = TiltedComposition(parts, window)
        low = spectral_curve(parts, window, deviation=deviation)
        assert low is not None
        assert low.frame.kept < 0.25 * low.frame.length
        for point in (0.8 * epsilon, epsilon, 1.2 * epsilon):
            first, second = whole.delta(point), low.delta(point)
            sums = low._error * math.exp(low._log_scale - window.theta * point) + low._relative * second
            allowed = sum(whole.budget(point).values()) + sums + low.delta_at_infinity
            assert abs(first - second) <= allowed + 1e-12 * first
            assert allowed < 1e-4 * first
        crossing = low.epsilon(whole.delta(epsilon), epsilon)
        assert crossing == pytest.approx(epsilon, rel=1e-8, abs=0.0)


def test_upper_stays_above_lower() -> None:
    run, epsilon, spacing = RUNS[0]
    (above, below), window, deviation = lattices(run, epsilon, spacing)
    upper = spectral_curve(above, window, deviation=deviation)
    lower = spectral_curve(below, window, deviation=deviation)
    assert upper is not None
    assert lower is not None
    for point in np.linspace(0.5 * epsilon, 1.5 * epsilon, 50).tolist():
        assert lower.delta(point) < upper.delta(point)


def test_few_steps_or_few_atoms_are_left_to_the_fft() -> None:
    for run in (hs.Gaussian(1.0) * 2, hs.RandomizedResponse(probability=0.75) * 50):
        sides, window, deviation = lattices(run, 1.0, 0.01)
        assert spectral_curve(sides[0], window, deviation=deviation) is None
