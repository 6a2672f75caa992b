"""The Fourier composition and mean-preserving lattices where each error term is large, and as bad as it may be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from hockeystick.engines.lattice.fourier import Evaluation, PeriodicComposition
from hockeystick.engines.lattice.nearest import nearest_points
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.laws import DiscretePair

SPACING, POINTS, STEPS = 0.5, 128, 9
STEP = LatticePLD("upper", SPACING, np.array([-2, 2]), 0.0, np.log([0.25, 0.75]), 0.0, 0.0)


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    with mp.workdps(40):
        yield


def sum_over_outcomes(epsilon: float) -> mpf:
    """delta of nine steps, from the floats that the step holds; they sum to 1 but for a rounding."""
    low, high = (mp.exp(mpf(log)) for log in STEP.log_mass.tolist())
    losses = ((k, mpf(2 * SPACING * (2 * k - STEPS))) for k in range(STEPS + 1))
    return mp.fsum(
        math.comb(STEPS, k) * high**k * low ** (STEPS - k) * (1 - mp.exp(mpf(epsilon) - loss))
        for k, loss in losses
        if loss > epsilon
    )


def doubtful(error: float, *, relative: bool, sign: int) -> PeriodicComposition:
    """A composition whose product of transforms, or whose masses, are off by as much as it says."""
    made = PeriodicComposition([(STEP, STEPS)], POINTS)
    known = made.spectrum
    if relative:
        wrong = replace(known, values=known.values * math.exp(0.99 * sign * error), relative_error=error)
    else:  # every product off by the same share of its floor, the sum of which the mass of the first point gets
        moved = known.values + 0.99 * sign * error * known.floor
        wrong = replace(known, values=moved, transform_error=error)
    made.__dict__["spectrum"] = wrong  # before anything else was asked
    return made


@pytest.mark.parametrize("evaluation", ["plancherel", "inverse transform"])
@pytest.mark.parametrize("error", [1e-9, 1e-3])
@pytest.mark.parametrize("relative", [False, True])
def test_a_transform_that_is_off_leaves_delta_between_its_sides(
    evaluation: Evaluation, error: float, *, relative: bool
) -> None:
    missed = []
    for sign in (-1, 1):
        composition = doubtful(error, relative=relative, sign=sign)
        for epsilon in (0.0, 0.75, 2.5, 6.0):
            truth = sum_over_outcomes(epsilon)
            low, high = composition.delta(epsilon, evaluation)
            assert mpf(low) <= truth <= mpf(high)
            missed.append(abs(mpf(composition._sum(epsilon, evaluation)[0]) - truth) > mpf(error) / 10 * truth)
    assert any(missed)  # it is no formality


def test_random_errors_of_every_frequency_leave_delta_between_its_sides() -> None:
    """Deterministic by its seed; no draw may fail."""
    rng = np.random.default_rng(11)
    for error in (1e-6, 1e-2):
        for _ in range(10):
            made = doubtful(error, relative=False, sign=0)
            known = made.spectrum
            signs = rng.choice([-1.0, 1.0], known.floor.size)
            made.__dict__["spectrum"] = replace(known, values=known.values + 0.99 * error * signs * known.floor)
            for epsilon in (0.0, 2.5, 6.0):
                low, high = made.delta(epsilon)
                assert mpf(low) <= sum_over_outcomes(epsilon) <= mpf(high)


@pytest.mark.parametrize("spacing", [0.4, 1.0, 1.7])
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ((0.75, 0.25), (0.25, 0.75)),
        ((0.5, 0.375, 0.125), (0.25, 0.25, 0.5)),
        ((0.625, 0.25, 0.125), (0.5, 0.125, 0.375)),
    ],
)
def test_the_mean_of_a_rounding_error_is_within_what_it_is_stated_to_be(
    p: tuple[float, ...], q: tuple[float, ...], spacing: float
) -> None:
    """Few atoms on a coarse grid: where in its cell an atom lies is not known from the masses."""
    found = nearest_points(DiscretePair(p, q), -3.0, 3.0, spacing)
    assert found.mass_outside <= 1e-300
    mean, h = mpf(0), mpf(spacing)
    for mass, other in zip(p, q, strict=True):
        loss = mp.log(mpf(mass) / mpf(other))
        mean += mpf(mass) * (loss - h * mp.floor(loss / h + mpf(0.5)))
    assert sum(map(Fraction, p)) == 1
    off = abs(mean - mpf(found.pld.offset))
    assert off <= mpf(found.mean_error)
    assert off > mpf(10) ** -6 * h  # a midpoint is no proof
