"""Random allocation where likelihood ratios leave the range of float64, or differ from 1 by less than it tells."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import acb, acb_mat, arb

import hockeystick as hs
from hockeystick.errors import PrecisionError
from hockeystick.exact.balls import precision
from hockeystick.laws import GaussianPair, allocated
from hockeystick.laws.allocated import AllocatedCurve
from hockeystick.laws.allocated_atoms import AllocatedAtomsPair
from hockeystick.laws.allocated_line_plan import plan_line
from hockeystick.laws.lognormal_panels import LognormalPanels
from hockeystick.laws.vectors import DiscretePair
from hockeystick.laws.worst_case import WorstCasePair
from hockeystick.numerics.lattice_sum import LatticeSum, PointMasses, SumWindow


@pytest.mark.parametrize("epsilon", [705.0, 720.0, 1e5])
def test_outcomes_of_enormous_likelihood_ratios_are_listed(epsilon: float) -> None:
    """One of t steps as good as surely shows a ratio of e^epsilon, all others e^-epsilon: of the mean 1/t is left."""
    curve = hs.account(hs.ApproximateDP(epsilon).random_allocation(steps=10), adjacency="remove")
    bound = curve.epsilon(0.5)
    truth = mpmath.mpf(epsilon) - mpmath.log(10) + mpmath.log(mpmath.mpf("0.5"))
    assert float(bound.lower) <= truth <= float(bound.upper)
    assert bound.upper - bound.lower <= 1e-11 * epsilon


@pytest.mark.parametrize(
    "base", [WorstCasePair(0.3), WorstCasePair(400.0), DiscretePair((0.7, 0.2, 0.1), (0.1, 0.3, 0.6))]
)
def test_losses_of_a_listed_round_are_as_accurate_as_stated(base: WorstCasePair | DiscretePair) -> None:
    table, atoms, steps = AllocatedAtomsPair(base, 7).atoms, base.atoms, 7
    with mpmath.workdps(40 + int(2 * atoms.loss[-1])):
        every = {}
        for first in range(steps + 1):
            for second in range(steps + 1 - first):
                counts = (first, second, steps - first - second)[: atoms.size]
                if sum(counts) == steps:
                    ratios = [n * mpmath.exp(mpmath.mpf(x)) for n, x in zip(counts, atoms.loss.tolist(), strict=True)]
                    every[counts] = mpmath.log(sum(ratios) / steps)
        truths = sorted(every.values())
        assert len(truths) == table.size
        for loss, error, truth in zip(table.loss.tolist(), table.loss_error.tolist(), truths, strict=True):
            assert abs(mpmath.mpf(loss) - truth) <= error


def test_what_overflows_far_to_the_left_of_a_sum_on_a_lattice_is_not_known() -> None:
    """Masses of points 1e120 apart, tilted: next to the reference they are known, to its left no float holds them."""
    spacing, points, count = 2.0**400, 2000, 3
    masses = np.full(points, 1.0 / points)
    index = np.arange(points)
    zero = np.zeros(points)
    terms = PointMasses(spacing, index, masses, zero, zero[1:])
    top = float(count * points) * spacing
    theta = 500.0 / top
    window = SumWindow(theta, 0.5 * theta, 2.0 * theta, 0.0, top)
    found = LatticeSum(terms, count, window, reference=top)
    k = np.linspace(0.0, 1.0, 41) * top
    low, high = found.bounds(k)
    truth = np.array([_stop_loss(points, count, float(x / spacing)) for x in k]) * spacing
    assert (low <= truth * (1.0 + 1e-9)).all()
    assert (truth * (1.0 - 1e-9) <= high).all()
    assert low[0] == 0.0
    assert math.isinf(high[0])
    assert (high[38:40] < 1.001 * low[38:40]).all()


def _stop_loss(points: int, count: int, k: float) -> float:
    """``E (S - k)+`` of a sum of whole numbers, each uniform below ``points``."""
    law = np.ones(1)
    for _ in range(count):
        law = np.convolve(law, np.full(points, 1.0 / points))
    return float(law @ np.maximum(np.arange(law.size) - k, 0.0))


@pytest.mark.parametrize("adjacency", ["add", "remove"])
@pytest.mark.parametrize("epsilon", [300.0, 690.8, 744.0, 1e5])
def test_delta_far_out_is_at_most_what_it_is_nearer(adjacency: str, epsilon: float) -> None:
    """Where the ratio of all steps leaves float64, or their sums are too rare for it."""
    curve = hs.account(hs.Gaussian(0.3).random_allocation(steps=10), adjacency)
    bound = curve.delta(epsilon)
    assert 0.0 <= bound.lower <= bound.upper <= 1e-90
    assert bound.lower <= curve.delta(100.0).upper
    assert hs.account(hs.Gaussian(0.3).random_allocation(steps=10)).bayes_risk(1e-320).upper <= 1e-320


def test_a_round_of_likelihood_ratios_0_and_1_shows_that_the_record_takes_no_part() -> None:
    """With one coin for noise a step's ratio is 1 or 0, each with a chance of a half, so that its finite loss is 0."""
    curve = hs.account(hs.Binomial(1).random_allocation(steps=3), "add")
    for epsilon in (0.0, 0.5, 5.0):
        truth = sum(math.comb(3, k) / 8.0 * max(1.0 - math.exp(epsilon) * k / 3.0, 0.0) for k in range(4))
        bound = curve.delta(epsilon)
        assert bound.lower <= truth * (1.0 + 1e-14)
        assert bound.upper >= truth * (1.0 - 1e-14)
        assert bound.width < 1e-4


@pytest.mark.parametrize("epsilon", [40.0, 83.76387754978927, 229.45894190575072, 375.1540062617122])
def test_a_round_of_likelihood_ratios_next_to_0_shows_that_the_record_takes_no_part(epsilon: float) -> None:
    """Ratios of 1.3e-115, and of 4e-164 in one of four steps: losses of hundreds of nats in the other direction."""
    small, least, never = Fraction(1, 10**115), Fraction(1, 10**164), Fraction(1, 10**188)
    p = (1 - small - least, small, least, Fraction(0))
    q = (Fraction(0), Fraction(3, 4) - never, Fraction(1, 4), never)
    curve = hs.account(hs.DiscretePair(p, q).random_allocation(steps=5), "add")
    with mpmath.workdps(400):
        a = mpmath.exp(mpmath.mpf(epsilon))
        truth = mpmath.mpf(0)
        for first in range(6):
            for second in range(6 - first):
                ways = math.comb(5, first) * math.comb(5 - first, second)
                mass = ways * q[1] ** first * q[2] ** second * q[3] ** (5 - first - second)
                ratio = (first * small / q[1] + second * least / q[2]) / 5
                truth += (
                    mpmath.mpf(mass.numerator) / mass.denominator * max(1 - a * ratio.numerator / ratio.denominator, 0)
                )
        bound = curve.delta(epsilon)
        assert bound.lower <= truth <= bound.upper
        assert bound.upper <= 1.001 * bound.lower or epsilon > 300.0


def test_likelihood_ratios_without_squares_in_float64_are_refused_or_bounded() -> None:
    """Of 1e166 and next to one; and of next to one, all of them."""
    rare = Fraction(1, 10**227)
    pair = hs.DiscretePair((1 - 10**166 * rare, 10**166 * rare), (1 - rare, rare))
    bound = hs.account(pair.random_allocation(steps=5000), "remove").delta(378.58)
    with mpmath.workdps(60):  # with one such ratio among the steps, or more
        below = mpmath.exp(mpmath.mpf(378.58)) * 5000 * mpmath.mpf(10) ** -166
        truth = sum(
            mpmath.binomial(5000, n) * mpmath.mpf(10) ** (-227 * n) * (n - below) * mpmath.mpf(10) ** 166 / 5000
            for n in range(1, 6)
            if n > below
        )
    assert bound.lower <= truth <= bound.upper < 1e-60
    off = Fraction(1, 10**170)
    alike = DiscretePair((Fraction(1, 4) + off, Fraction(1, 4) - off, Fraction(1, 2)), (0.25, 0.25, 0.5))
    low, high = AllocatedCurve(alike, 200).delta(0.2)
    assert low == 0.0 <= high


def test_lines_about_points_without_squares_in_float64_are_refused() -> None:
    for loss in (-392.0, -346.0, 460.0):
        with pytest.raises(PrecisionError):
            plan_line(18.0, 2, loss, loss + 0.05, below=True)
    with pytest.raises(PrecisionError):  # what is left below any top there never comes near the sum
        plan_line(18.0, 2, 529.0, 529.05, below=False)


def test_guesses_stay_where_likelihood_ratios_of_all_steps_have_floats() -> None:
    assert AllocatedCurve(GaussianPair(0.0555), 2**40).guess(1e-300) <= 600.0


@pytest.mark.parametrize("shift", [1e-10, 1e-3, 1.0, 4.0])
def test_likelihood_ratios_less_one_are_known(shift: float) -> None:
    from flint import arb

    x = np.arange(-9.0, 9.0) + 0.3
    for loss in (0.0, 2.3 * shift, -0.7):
        found, off = LognormalPanels(shift, loss, -9.0, 9.0, 1.0)._excess(x, np.zeros(x.size))
        with precision(200):
            m = arb(shift)
            for at, value, bound in zip(x.tolist(), found.tolist(), off.tolist(), strict=True):
                assert abs((m * at - m * m / 2 - arb(loss)).expm1() - value) <= bound


def much_noise(sigma: float, steps: int, epsilon: float, *, mirrored: bool) -> Any:
    """delta of a round of much noise, to 40 digits: trapezoidal rules on a line and over the noise up to 25 deviations.

    Not proved: halved steps agree to 1e-48, and for two steps quadrature over the first of them to 1e-29.
    """
    sign, m, spread = -1 if mirrored else 1, 1 / arb(sigma), math.sqrt(steps) / sigma
    loss, far = sign * arb(epsilon), epsilon * steps / spread
    near = 0.5 * (far + math.sqrt(far * far + 8.0))
    theta, step = arb(near / spread), 2 * arb.pi() / (max(120.0 / near, 45.0) * spread)
    places = [arb(j) / 10 for j in range(-250, 251)]
    excess = [sign * (m * x - m * m / 2 - loss).expm1() for x in places]
    nodes = int(18.0 / spread / float(step)) + 1
    block = math.isqrt(nodes) + 1
    starts = [[(theta * v - x * x / 2).exp() for x, v in zip(places, excess, strict=True)]]
    blocks, turns = ([acb(0, step * v * each).exp() for v in excess] for each in (block, 1))
    for _ in range(nodes // block):
        starts.append([term * turn for term, turn in zip(starts[-1], blocks, strict=True)])
    fine = [[acb(1)] * len(places)]
    for _ in range(block - 1):
        fine.append([term * turn for term, turn in zip(fine[-1], turns, strict=True)])
    total = acb(0)
    for n, value in enumerate((acb_mat(starts) * acb_mat(fine).transpose()).entries()[:nodes]):
        z = acb(theta, n * step)
        total += (value / (200 * arb.pi()).sqrt()) ** steps / (z * z) / (1 if n else 2)
    return total.real * step / arb.pi() / steps * (1 if mirrored else arb(epsilon).exp())


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("sigma", "steps"), [(1e4, 2), (1e4, 5000), (3e6, 30), (1e10, 2), (1e10, 1000)])
def test_rounds_of_much_noise_contain_the_truth_and_are_narrow(sigma: float, steps: int, mirrored: bool) -> None:
    curve = AllocatedCurve(GaussianPair(sigma), steps, mirrored)
    for deviations in (0.0, 0.8, 7.0):
        epsilon = deviations / sigma / math.sqrt(steps)
        low, high = curve.delta(epsilon)
        with precision(400):
            exact = much_noise(sigma, steps, epsilon, mirrored=mirrored)
            assert low <= exact <= high
        assert high - low <= 1e-8 * high


def test_rounds_far_out_are_bounded_by_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    for mirrored in (False, True):
        for epsilon in (1e-6, 1e-3, 1.0, 10.0):
            low, high = AllocatedCurve(GaussianPair(1e10), 1000, mirrored).delta(epsilon)
            assert low == 0.0 < high <= 1e-300
    monkeypatch.setattr(allocated, "_NOTHING", 1.0)  # everywhere
    p, q = (0.875, 0.125), (0.5, 0.5)
    for mirrored in (False, True):
        found = AllocatedCurve(DiscretePair(p, q), 2, mirrored).delta(0.625)[1]
        grow, truth = Fraction(math.exp(0.625)), Fraction(0)
        for i in (0, 1):
            for j in (0, 1):
                without = Fraction(q[i]) * Fraction(q[j])
                taken = (Fraction(p[i]) * Fraction(q[j]) + Fraction(q[i]) * Fraction(p[j])) / 2
                truth += max(without - grow * taken if mirrored else taken - grow * without, Fraction(0))
        assert truth <= Fraction(found) < 1
