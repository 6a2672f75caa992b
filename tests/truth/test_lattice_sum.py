"""The stop-loss transform of sums on a lattice: exact sums, and transforms that err as much as they may."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from hockeystick.laws.allocated_plan import plan_sum
from hockeystick.numerics import lattice_sum
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.fft import fft_error, inverse_real, transform_real
from hockeystick.numerics.lattice_sum import LatticeSum, PointMasses, SumWindow, kernel_bounds

SPACING = 0.25
FALLING = [10**6, *(10**4 // (1 + i) for i in range(120))]  # mostly 0: the spectrum of a sum stays large everywhere
EVEN = [1] * 60
LEAST_SHARE = 0.02  # of the width, that such errors move the answer by


def _terms(weights: list[int], finer: int = 1) -> PointMasses:
    masses, index = np.array(weights) / sum(weights), finer * np.arange(len(weights))
    return PointMasses(SPACING / finer, index, masses, 4e-16 * masses, np.zeros(masses.size - 1))


def _truth(weights: list[int], count: int, k: int) -> Fraction:
    """``E (S - k)+`` at a multiple of the spacing: the power of a polynomial, as one of a long number."""
    size = count * sum(weights).bit_length() // 8 + 1
    whole = int.from_bytes(b"".join(weight.to_bytes(size, "little") for weight in weights), "little")
    law = (whole**count).to_bytes(size * count * len(weights), "little")
    above = sum(int.from_bytes(law[x * size : (x + 1) * size], "little") * (x - k) for x in range(k, len(law) // size))
    return Fraction(SPACING) * above / sum(weights) ** count


@pytest.mark.parametrize(("weights", "spread"), [(FALLING, 9.0), (EVEN, 0.6)], ids=["falling", "even"])
@pytest.mark.parametrize("count", [20, 50])
def test_the_truth_is_contained_where_transforms_err_as_much_as_they_may(
    monkeypatch: pytest.MonkeyPatch, count: int, weights: list[int], spread: float
) -> None:
    """Every frequency is off by what is proved of it, in the direction that changes the answer most."""
    terms = _terms(weights)
    mean = count * float(terms.mass @ terms.index)
    k = math.ceil(mean + spread * math.sqrt(count * float(terms.mass @ terms.index**2)))
    window, *_ = plan_sum(terms, count, k * SPACING)

    def erring(values: Array, sign: float) -> Complex:
        size = values.size
        x = math.floor(window.low / SPACING) + np.arange(size)
        away = np.maximum((x - k) * SPACING, 0.0)
        kernel = np.zeros(size)
        kernel[x % size] = away * np.exp(-window.theta * away)
        spectrum = transform_real(values)
        slope = spectrum ** (count - 1) * np.conj(transform_real(kernel))
        return np.asarray(spectrum + sign * fft_error(size) * np.exp(-1j * np.angle(slope)))

    def bounds() -> tuple[float, float]:
        low, high = LatticeSum(terms, count, window, reference=k * SPACING).bounds(np.array([k * SPACING]))
        return float(low[0]), float(high[0])

    truth, (_, plain) = _truth(weights, count, k), bounds()
    for sign in (1.0, -1.0):
        monkeypatch.setattr(lattice_sum, "transform_real", partial(erring, sign=sign))
        low, high = bounds()
        assert Fraction(low) <= truth <= Fraction(high)
        assert abs(high - plain) > LEAST_SHARE * (high - low)


def test_masses_put_back_to_0_count_as_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most points of a fine lattice have no mass: errors that cancel leave half of these below 0."""
    count, k = 20, 800
    terms = _terms(EVEN, finer=16)

    def alternating(spectrum: Complex, length: int) -> Array:
        return inverse_real(spectrum, length) + 1e-8 * (-1.0) ** np.arange(length)

    monkeypatch.setattr(lattice_sum, "inverse_real", alternating)
    window, *_ = plan_sum(terms, count, k * SPACING)
    low, high = LatticeSum(terms, count, window, reference=k * SPACING).bounds(np.array([k * SPACING]))
    assert Fraction(float(low[0])) <= _truth(EVEN, count, k) <= Fraction(float(high[0]))
    assert float(high[0]) < 1.01 * float(low[0])


@pytest.mark.parametrize("k", [10.0, 50.0, 75.0, 90.0, 100.0])
def test_far_right_of_the_reference_at_a_tilt_above_the_saddle_point_the_bounds_hold(k: float) -> None:
    """Tilted, nearly all mass lies at the largest sum; no longer tilted it is below the range of float64."""
    window = SumWindow(theta=10.0, theta_below=9.0, theta_above=11.0, low=0.0, high=7 * 59 * SPACING)
    low, high = LatticeSum(_terms(EVEN), 7, window, reference=15.0).bounds(np.array([k]))
    assert low[0] <= _truth(EVEN, 7, round(k / SPACING)) <= high[0]


def test_sums_that_vanish_at_the_tilt_given_are_not_taken_for_none() -> None:
    """Tilted by 10,000 nats a point, what is known right of the reference is no float, nor is its error."""
    h = 2.0**-140
    terms = PointMasses(h, np.array([-1, 0]), np.array([0.0, 1.0]), np.zeros(2), np.zeros(1))
    window = SumWindow(1e4 / h, 9e3 / h, 1.1e4 / h, -1000 * h, 0.0)
    low, high = LatticeSum(terms, 3, window, reference=-1000 * h).bounds(np.array([-900.0, -0.5]) * h)
    assert (low <= np.array([900.0, 0.5]) * h).all()
    assert (high >= np.array([900.0, 0.5]) * h).all()


@pytest.mark.parametrize("step", [1e-3, 0.02, 0.4, 3.0])
def test_the_spectrum_of_the_kernel_is_bounded_wherever_it_ends(step: float) -> None:
    theta, length = step / SPACING, 360
    y = SPACING * np.arange(length)
    ends = np.tril(np.ones((length, length)))  # row by row one more point of the period
    sizes = np.abs(np.fft.rfft(ends * (y * np.exp(-theta * y)), axis=1)).max(axis=0)
    bounds = kernel_bounds(theta, SPACING, length)
    assert (sizes <= bounds).all()
    if step == 0.02:
        assert (bounds[1:30] <= 3.0 * sizes[1:30]).all()
