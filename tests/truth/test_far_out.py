"""Where delta is too small for float64, and where many questions are put to one curve."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Accountant, Certified, Fourier, Lattice, Moments, SaddlePoint
from hockeystick.bound import Bound
from hockeystick.composition import Composition
from hockeystick.exact import exact_delta
from hockeystick.laws import DiscretePair, LaplacePair, SubsampledPair

RUN = hs.Gaussian(1.0).poisson(0.01) * 2000
ACCOUNTANTS: list[Accountant] = [
    Certified(),
    Certified(engine="lattice"),
    Moments(),
    Lattice(1e-3),
    Fourier(1e-3, 40.0),
    SaddlePoint("clt"),
]


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=repr)
def test_an_upper_bound_stays_above_zero_below_the_largest_loss(accountant: Accountant) -> None:
    curve = hs.account(RUN, "add", accountant=accountant)  # largest loss -2000 ln 0.99 = 20.1
    for epsilon in (19.0, 20.0, 20.09):
        bound = curve.delta(epsilon)
        assert isinstance(bound, Bound)
        assert bound.upper > 0.0  # the truth is below 1e-323 and above 0
        assert bound.lower == 0.0


@pytest.mark.parametrize(
    "run",
    [
        hs.Gaussian(1.0) * 1,
        hs.Gaussian(1.0) * 30,
        hs.Gaussian(1.0) * 30 + hs.Laplace(1.0) * 1,
        hs.RandomizedResponse(probability=0.6) * 3000,
        hs.Laplace(1.0) * 2000,
        hs.Laplace(1.0).poisson(0.5) * 2000,
    ],
)
def test_very_far_out(run: Composition) -> None:
    curve = hs.account(run)
    largest = min(float(np.asarray(curve.epsilon(0.0).lower)), 5000.0)
    bound = curve.delta(largest * (1.0 - 1e-6))
    assert isinstance(bound, Bound)
    assert 0.0 <= bound.lower <= bound.upper
    assert 0.0 < bound.upper < 1e-290


def test_the_order_of_questions_does_not_matter() -> None:
    deltas = [1e-5, 1e-10, 1e-300, 1e-2, 1e-5, 0.3, 1e-30, 1e-6]
    curve = hs.account(RUN)
    for delta in deltas:
        warm, cold = curve.epsilon(delta), hs.account(RUN).epsilon(delta)
        assert isinstance(warm, Bound)
        assert isinstance(cold, Bound)
        for bound in (warm, cold):
            assert float(bound.width) <= 1e-8
        assert max(float(warm.lower), float(cold.lower)) <= min(float(warm.upper), float(cold.upper))


def test_the_order_of_questions_does_not_matter_with_few_steps() -> None:
    curve = hs.account(hs.RandomizedResponse(probability=0.5662222489606572) * 4)
    p, q = 0.5662222489606572, 1.0 - 0.5662222489606572
    for epsilon in (0.1, 0.5, 1.065674, 0.9):
        truth = math.fsum(
            math.comb(4, k) * max(p**k * q ** (4 - k) - math.exp(epsilon) * q**k * p ** (4 - k), 0.0) for k in range(5)
        )
        bound = curve.delta(epsilon)
        assert isinstance(bound, Bound)
        assert bound.lower <= truth * (1.0 + 1e-11)
        assert bound.upper >= truth * (1.0 - 1e-11)
        assert float(bound.width) <= 1e-8 * truth


TINY = Fraction(1, 10**2000)
QUARTER, HALF = Fraction(1, 4), Fraction(1, 2)


@pytest.mark.parametrize(
    "pair",
    [
        DiscretePair(
            (Fraction(1, 4) - TINY, Fraction(3, 4), TINY), (Fraction(1, 2) - 2 * TINY, Fraction(1, 2), 2 * TINY)
        ),
        DiscretePair(
            (Fraction(1, 4) - TINY, Fraction(3, 4), TINY), (Fraction(1, 2) - TINY / 2, Fraction(1, 2), TINY / 2)
        ),
    ],
    ids=["with a faint small loss", "with a faint large loss"],
)
def test_masses_far_below_float64(pair: DiscretePair) -> None:
    parts = ((pair, 10),)
    curve = Certified(engine="lattice").directed(parts)
    for epsilon in (0.5, 2.0, 4.0, 4.05):
        bound, exact = curve.delta(epsilon), exact_delta(parts, epsilon, digits=15)
        assert isinstance(bound, Bound)
        assert Fraction(float(bound.lower)) <= exact.high
        assert exact.low <= Fraction(float(bound.upper))
        assert float(bound.width) <= 1e-2 * float(bound.upper)


def test_few_atoms_on_a_fine_lattice_need_few_points() -> None:
    rare = SubsampledPair(LaplacePair(13.975588236983313), 0.00021722627998976927).reversed()
    p = Fraction(11, 100)
    response = DiscretePair((p, 1 - p), (1 - p, p))
    curve = Certified(1e-3, engine="lattice").directed(((rare, 43), (response, 4)))  # losses of 2e-5 and of 2.09 nats
    moved = 43.0 * 1.0001 * max(map(abs, rare.loss_bounds))

    def of_response(epsilon: float) -> float:
        q = 1 - p
        masses = [(float(q**k * p ** (4 - k)), float(p**k * q ** (4 - k)), math.comb(4, k)) for k in range(5)]
        return math.fsum(orders * max(above - math.exp(epsilon) * below, 0.0) for above, below, orders in masses)

    for epsilon in (2.0, 6.0, 8.3):
        bound = curve.delta(epsilon)
        assert isinstance(bound, Bound)
        assert bound.lower <= of_response(epsilon - moved) * (1.0 + 1e-12)  # the rare part moves losses by so much
        assert bound.upper >= of_response(epsilon + moved) * (1.0 - 1e-12)
        assert float(bound.width) <= 1e-2 * float(bound.upper)


@pytest.mark.parametrize(("steps", "delta"), [(1, 1e-12), (11, 1.25e-15), (67, 1e-19), (67, 1e-60), (400, 1e-120)])
def test_epsilon_where_only_the_largest_loss_is_left(steps: int, delta: float) -> None:
    """Above all losses but the largest, ``delta = P(largest) (1 - e^{eps - largest})``."""
    p = 0.7821
    with mpmath.workdps(60):
        largest = steps * mpmath.log(mpmath.mpf(p) / (1 - mpmath.mpf(p)))
        exact = largest + mpmath.log1p(-mpmath.mpf(delta) / mpmath.mpf(p) ** steps)
        bound = hs.account(hs.RandomizedResponse(p) * steps, "remove").epsilon(delta)
        assert isinstance(bound, Bound)
        assert mpmath.mpf(float(bound.lower)) <= exact <= mpmath.mpf(float(bound.upper))
        assert float(bound.width) <= 1e-3


def test_epsilon_next_to_the_largest_loss_of_several_parts() -> None:
    rare = hs.Laplace(1.0).poisson(0.001) * 43
    for run, delta in ((rare, 1e-150), (rare + hs.RandomizedResponse(0.75) * 4, 6e-160)):
        curve = hs.account(run, "remove")
        bound = curve.epsilon(delta)
        assert isinstance(bound, Bound)
        assert float(bound.width) <= 1e-3
        assert float(np.asarray(curve.delta(float(bound.lower) * (1.0 - 1e-9)).upper)) >= delta
        assert float(np.asarray(curve.delta(float(bound.upper) * (1.0 + 1e-9)).lower)) <= delta
