"""Random configurations, extremes included: finite, ordered, quiet, and two independent certified methods agree."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified, Contour
from hockeystick.errors import PrecisionError

LATTICE = Certified(tolerance=1e-2, points=1 << 17, engine="lattice")


def _configuration(seed: int) -> tuple[hs.Composition, str, float]:
    rng = np.random.default_rng(seed)
    noise = float(10.0 ** rng.uniform(-1.3, 4.0))
    rate = float(10.0 ** rng.uniform(-6.0, 0.0)) if rng.random() < 0.8 else 1.0
    steps = int(10.0 ** rng.uniform(0.0, 8.0))
    delta = float(10.0 ** rng.uniform(-250.0 if rng.random() < 0.3 else -30.0, -0.5))
    step = hs.Gaussian(noise) if rng.random() < 0.75 else hs.Laplace(noise)
    return step.poisson(rate) * steps, ("add", "remove")[int(rng.integers(2))], delta


def _check(seed: int) -> bool:
    """Whether the contour answered too, and could be compared."""
    run, adjacency, delta = _configuration(seed)
    curve = hs.account(run, adjacency, accountant=LATTICE)
    bound = curve.epsilon(delta)
    assert 0.0 <= bound.lower <= bound.upper <= math.inf, (seed, run)
    assert bound.width <= 1e-2 or any("was asked for" in note for note in bound.notes), (seed, run)
    at = bound.upper if math.isfinite(bound.upper) else 1.0
    delta_there = curve.delta(at)
    assert 0.0 <= delta_there.lower <= delta_there.upper <= 1.0, (seed, run)
    assert delta_there.lower <= delta, (seed, run)  # at or beyond the true epsilon, delta is at most the target
    try:
        other = hs.account(run, adjacency, accountant=Contour()).epsilon(delta)
    except PrecisionError:
        return False  # handed over: few steps, or atoms
    assert isinstance(other, hs.Bound)
    assert max(bound.lower, other.lower) <= min(bound.upper, other.upper), (seed, run, bound, other)
    return True


@pytest.mark.parametrize("block", range(3))
def test_brackets_of_random_configurations_overlap(block: int) -> None:
    compared = [_check(seed) for seed in range(5 * block, 5 * block + 5)]
    assert any(compared)


@pytest.mark.torture
@pytest.mark.parametrize("block", range(40))
def test_two_thousand_random_configurations(block: int) -> None:
    compared = [_check(seed) for seed in range(1000 + 50 * block, 1000 + 50 * block + 50)]
    assert sum(compared) >= 10


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(hs.Gaussian(1.0).poisson(1e-6) * 100_000_000, marks=pytest.mark.torture),
        hs.Gaussian(2.0).poisson(1e-6) * 1_000_000,
        hs.Gaussian(1.0).poisson(1.0) * 10,
        hs.Gaussian(0.05) * 100,
        hs.Gaussian(1e4) * 100_000_000,
        hs.Gaussian(1.0).poisson(0.5),
        hs.Gaussian(0.05).poisson(0.5) * 2,
    ],
    ids=str,
)
def test_extremes_answer_truthfully(run: hs.Composition | hs.Step) -> None:
    curve = hs.account(run)
    for delta in (1e-5, 1e-30):
        bound = curve.epsilon(delta)
        assert 0.0 <= bound.lower <= bound.upper < math.inf
        assert bound.width <= 1e-3
    assert curve.epsilon(0.0).lower == math.inf
    at_zero = curve.delta(0.0)
    assert 0.0 < at_zero.lower <= at_zero.upper <= 1.0
