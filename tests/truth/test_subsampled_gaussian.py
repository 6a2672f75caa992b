"""The certified accountant on Poisson-subsampled Gaussians, against values known to many digits."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import hockeystick as hs

REMOVE = {1e-7: 1.17076284, 1e-6: 0.94719569, 1e-5: 0.78238778, 1e-4: 0.62860624}
ADD = {1e-7: 0.82417304, 1e-6: 0.74270049, 1e-5: 0.65072288, 1e-4: 0.54387833}
LAST_DIGIT = 0.5e-8  # the values above are rounded to eight digits


@pytest.mark.parametrize(("adjacency", "truth"), [("remove", REMOVE), ("add", ADD)])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-5])
def test_contains_known_epsilons(adjacency: str, truth: dict[float, float], tolerance: float) -> None:
    curve = hs.account(hs.Gaussian(0.8).poisson(0.001) * 10_000, adjacency, tolerance=tolerance)
    for delta, epsilon in truth.items():
        bound = curve.epsilon(delta)
        assert bound.lower <= epsilon + LAST_DIGIT
        assert bound.upper >= epsilon - LAST_DIGIT
        assert bound.width <= tolerance


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta", "epsilon", "digit"),
    [
        (1.5, 0.22, 10_000, 1e-12, 237.716, 5e-4),
        (0.6, 0.05, 500, 5e-14, 45.16, 5e-3),
        (10.0, 1e-3, 1_000_000, 1e-5, 0.34166, 5e-6),
        (1.0, 1e-5, 1_000_000, 1e-5, 0.0369, 5e-5),
        (1.0, 1e-6, 100_000_000, 1e-5, 0.0368, 5e-5),
    ],
)
def test_where_other_libraries_fail(
    noise: float, rate: float, steps: int, delta: float, epsilon: float, digit: float
) -> None:
    bound = hs.account(hs.Gaussian(noise).poisson(rate) * steps).epsilon(delta)
    assert bound.lower <= epsilon + digit
    assert bound.upper >= epsilon - digit
    assert bound.width <= 1e-3


@pytest.mark.parametrize("delta", [1e-10, 1e-15, 1e-20, 1e-30])
def test_small_delta_is_finite_and_narrow(delta: float) -> None:
    bound = hs.account(hs.Gaussian(1.0).poisson(0.01) * 2000).epsilon(delta)
    assert math.isfinite(float(bound))
    assert bound.width <= 1e-3


def test_refining_only_narrows() -> None:
    """Nested brackets: every finer one overlaps every coarser one, and none is wider."""
    run = hs.Gaussian(10.0).poisson(1e-3) * 1_000_000
    bounds = [hs.account(run, tolerance=t).epsilon(1e-5) for t in (1e-2, 3e-3, 1e-3, 3e-4)]
    for coarse, fine in pairwise(bounds):
        assert fine.width <= coarse.width
        assert max(coarse.lower, fine.lower) <= min(coarse.upper, fine.upper)


def test_arrays_have_the_shape_of_their_input() -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(0.01) * 2000)
    deltas = np.array([[1e-3, 1e-5], [1e-7, 1e-9]])
    bound = curve.epsilon(deltas)
    assert bound.lower.shape == bound.upper.shape == deltas.shape
    single = curve.epsilon(1e-7)
    assert max(single.lower, bound.lower[1, 0]) <= min(single.upper, bound.upper[1, 0])
