"""Sums in the frequency domain against the same sums written out, and the bounds on the frequencies left out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hockeystick.engines.lattice.compose import TiltedWindow
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.plancherel import FrequencyKernel
from hockeystick.engines.lattice.streaming_spectrum import TiltedStep, band_edges, low_transform
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair
from hockeystick.laws.base import Pair

PAIRS = [
    GaussianPair(1.0),
    GaussianPair(1.0).subsampled(0.01),
    GaussianPair(0.7).subsampled(0.2).reversed(),
    LaplacePair(2.0),
    DiscretePair((0.75, 0.25), (0.25, 0.75)),
]


@pytest.mark.parametrize("length", [15, 16, 300, 301])
@pytest.mark.parametrize("theta", [0.0, 0.3, 40.0])
def test_inner_product_is_the_sum_within_its_bound(length: int, theta: float) -> None:
    spacing, gap = 0.1, 0.03
    weights = np.random.default_rng(7).random(length)
    spectrum = np.fft.rfft(weights)
    kernel = FrequencyKernel(theta, spacing, length=length, kept=length // 2 + 1)
    bound = kernel.rounding(float((kernel.size * np.abs(spectrum)).sum()))
    for start in (0, 3, length - 1):
        terms = length - start
        y = gap + np.arange(terms) * spacing
        written_out = math.fsum(np.exp(-theta * y) * -np.expm1(-y) * weights[start:])
        transform = kernel.transform(start, gap=gap, terms=terms)
        assert abs(kernel.inner(transform, spectrum) - written_out) <= bound
        assert bound < 1e-9
        assert (np.abs(transform) <= kernel.size).all()


@pytest.mark.parametrize("theta", [0.5, 6.0])
def test_what_lies_beyond_is_bounded(theta: float) -> None:
    full = FrequencyKernel(theta, 0.01, length=4096, kept=2049)
    for low, high in ((1, 10), (100, 140), (1000, 2049)):
        bound = full.beyond(low, high)
        assert float(full.size[low:high].sum()) <= bound
        assert bound <= 10.0 * float(full.size[low:high].sum())


@pytest.mark.parametrize("kept", [1, 2, 17, 100])
def test_low_transform_is_the_fourier_transform(kept: int) -> None:
    rng = np.random.default_rng(3)
    index = np.unique(rng.integers(-500, 5000, 300))
    masses = rng.random(index.size)
    full = np.fft.rfft(np.bincount(index % 1001, masses, 1001))
    assert np.abs(low_transform(index, masses, 1001, kept) - full[:kept]).max() < 1e-11


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("theta", [0.5, 8.0])
def test_pairing_bounds_every_high_frequency(pair: Pair, theta: float) -> None:
    low, high = pair.loss_range(-40.0, -60.0)
    pld = connect_the_dots(GridCells.of(pair, Grid.covering(low, high, 0.01)))
    step = TiltedStep(pld, TiltedWindow(theta, -5.0, 15.0, theta - 0.4, theta + 1.0))
    length = 4000
    magnitude = np.abs(step.full(length).values)
    edges = band_edges(16, length)
    bounds = step.bands(edges, length)
    largest = np.maximum.reduceat(magnitude, edges[:-1])
    assert (np.log(largest) <= bounds + 1e-12).all()  # the transforms themselves round
    if not pair.is_discrete and not isinstance(pair, LaplacePair):  # atoms leave high frequencies large
        assert bounds.min() < math.log(0.7)  # and the bounds say something


def test_low_and_full_spectra_agree() -> None:
    pld = connect_the_dots(GridCells.of(GaussianPair(1.0).subsampled(0.02), Grid.covering(-0.03, 9.0, 1e-3)))
    step = TiltedStep(pld, TiltedWindow(5.0, -1.0, 3.0, 4.0, 6.0))
    full, low = step.full(8000), step.low(100, 8000)
    error = full.scalars[2] + low.scalars[2]
    assert np.abs(full.values[:100] - low.values).max() <= error
    assert error < 1e-11
