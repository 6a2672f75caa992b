"""The staircase mechanism against its density, piece by piece, in mpmath: no formula of the library is used."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, reduce
from itertools import accumulate, pairwise
from operator import mul

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import (
    PRV,
    Certified,
    Contour,
    Exact,
    Fourier,
    GaussianLimit,
    Moments,
    MonteCarlo,
    SaddlePoint,
)
from hockeystick.app.spec import read
from hockeystick.composition import Composition, Direction
from hockeystick.exact import exact_delta
from hockeystick.laws import StaircasePair
from tests.mechanism_truths import Vectors, as_mpf, hockey_stick, mixed, mp, mpf

SHAPES = (
    (1.0, None),
    (0.5, 0.25),
    (0.5, 0.8125),
    (1.0, 0.5),
    (3.0, 0.01),
    (0.1, None),
    (20.0, None),
)
COMPOSED = SHAPES[:5]


def gamma_of(epsilon: float, gamma: float | None) -> Fraction:
    return Fraction(hs.Staircase(epsilon, gamma).gamma)  # type: ignore[arg-type]


def level(x: int, gamma: int, unit: int) -> int:
    """k on [k, k + gamma), k + 1 on [k + gamma, k + 1): the definition of Geng and Viswanath, in parts of a unit."""
    k, rest = divmod(abs(x), unit)
    return k if rest < gamma else k + 1


def pieces(epsilon: float, gamma: Fraction, shift: Fraction) -> Iterator[tuple[int, int, int]]:
    """(length, level moved, level) between all steps of both densities, as far as there is mass to 1e-52.

    Lengths are in parts of a unit of twice what both denominators divide, so that middles are whole, too.
    """
    unit, reach = 2 * math.lcm(gamma.denominator, shift.denominator), math.ceil(120.0 / epsilon) + 3
    rise, moved = int(gamma * unit), int(shift * unit)
    steps = [s * (k * unit + part) for s in (1, -1) for k in range(reach) for part in (0, rise)]
    for low, high in pairwise(sorted({*steps, *(x + moved for x in steps)})):
        middle = (low + high) // 2
        yield high - low, level(middle - moved, rise, unit), level(middle, rise, unit)


@cache
def truth(epsilon: float, gamma: Fraction, shift: Fraction) -> Vectors:
    """(p, q) of every loss, the noise moved against the noise; masses normalised by their sum."""
    lengths: dict[tuple[int, int], int] = {}
    for length, moved, still in pieces(epsilon, gamma, shift):
        lengths[moved, still] = lengths.get((moved, still), 0) + length
    most, fall = max(max(levels) for levels in lengths), mp.exp(-mpf(epsilon))
    heights = list(accumulate([mpf(1), *[fall] * most], mul))
    masses: dict[int, tuple[mpf, mpf]] = {}
    for (moved, still), length in lengths.items():
        p, q = masses.get(still - moved, (mpf(0), mpf(0)))
        masses[still - moved] = p + length * heights[moved], q + length * heights[still]
    totals = [mp.fsum(pair[side] for pair in masses.values()) for side in (0, 1)]
    return tuple((p / totals[0], q / totals[1]) for _, (p, q) in sorted(masses.items()))


def composed(vectors: Vectors, count: int) -> Vectors:
    """All multisets of outcomes."""
    found = {(0,) * len(vectors): 1}
    for _ in range(count):
        following: dict[tuple[int, ...], int] = {}
        for times, ways in found.items():
            for i in range(len(vectors)):
                key = tuple(n + (i == j) for j, n in enumerate(times))
                following[key] = following.get(key, 0) + ways
        found = following

    powers = [[[mass**n for n in range(count + 1)] for mass in pair] for pair in vectors]

    def product(times: tuple[int, ...], side: int) -> mpf:
        return reduce(mul, (own[side][n] for n, own in zip(times, powers, strict=True) if n), mpf(1))

    return tuple((ways * product(times, 0), ways * product(times, 1)) for times, ways in found.items())


def contains(bound: object, value: mpf) -> bool:
    assert isinstance(bound, hs.Bound)
    return bool(mpf(float(bound.lower)) <= value <= mpf(float(bound.upper)))


@pytest.mark.parametrize("shift", [1, 2, 6])
@pytest.mark.parametrize(("epsilon", "gamma"), [*SHAPES, (0.05, 0.4999999999), (1.0, 1e-12), (1.0, 1.0 - 2.0**-50)])
def test_masses_and_losses_are_within_their_errors(epsilon: float, gamma: float | None, shift: int) -> None:
    exact = gamma_of(epsilon, gamma)
    table, known = StaircasePair(epsilon, float(exact), shift).atoms, truth(epsilon, exact, Fraction(shift))
    assert table.size == len(known)
    for i, (p, q) in enumerate(known):
        error = mpf(float(table.error[i]))
        assert abs(mpf(float(table.log_p[i])) - mp.log(p)) <= error <= 1e-12
        assert abs(mpf(float(table.log_q[i])) - mp.log(q)) <= error
        assert abs(mpf(float(table.loss[i])) - mp.log(p / q)) <= mpf(float(table.loss_error[i])) + mpf(10) ** -50


@pytest.mark.parametrize(("epsilon", "gamma"), [(1.0, 0.25), (0.5, 0.8125), (2.0, 0.5), (1.0, 0.375)])
@pytest.mark.parametrize("largest", [1, 2])
def test_the_largest_shift_dominates_all_smaller_ones(epsilon: float, gamma: float, largest: int) -> None:
    shifts = [Fraction(k, 6) for k in range(1, 6 * largest + 1)]
    for order in (0.05, 0.3, 0.7, 0.99, 1.0, 1.2, 2.0, 2.8, 7.0, 40.0):
        curve = [hockey_stick(truth(epsilon, Fraction(gamma), shift), mpf(order)) for shift in shifts]
        assert all(low <= high * (1 + mpf(10) ** -50) for low, high in pairwise(curve))


def expected_size(epsilon: float, gamma: Fraction) -> mpf:
    fall = mp.exp(-mpf(epsilon))
    mass = size = mpf(0)
    for length, _, k in pieces(epsilon, gamma, Fraction(0)):
        mass += length * fall**k
    unit = 2 * gamma.denominator
    rise = int(gamma * unit)
    cuts = sorted({k * unit + part for k in range(math.ceil(185.0 / epsilon)) for part in (0, rise)})
    for low, high in pairwise(cuts):  # |x| over both signs: twice the integral of x
        size += (high**2 - low**2) * fall ** level((low + high) // 2, rise, unit)
    return size / mass / unit


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_default_gamma_has_the_least_expected_noise(epsilon: float) -> None:
    best = gamma_of(epsilon, None)
    least = expected_size(epsilon, best)
    assert all(expected_size(epsilon, best * Fraction(factor)) > least for factor in (0.97, 0.999, 1.001, 1.03))


@pytest.mark.parametrize("engine", ["automatic", "contour", "lattice"])
@pytest.mark.parametrize(("adjacency", "shift"), [("add-remove", 1), ("substitute", 2)])
@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize(("epsilon", "gamma"), COMPOSED)
def test_delta_contains_the_truth(
    epsilon: float, gamma: float | None, count: int, adjacency: str, shift: int, engine: str
) -> None:
    known = composed(truth(epsilon, gamma_of(epsilon, gamma), Fraction(shift)), count)
    accountant = Certified(1e-6, engine=engine)  # type: ignore[arg-type]
    curve = hs.account(hs.Staircase(epsilon, gamma) * count, adjacency, accountant=accountant)
    for share in (0.0, 0.13, 0.6, 0.96):
        at = share * shift * count * epsilon
        value, bound = hockey_stick(known, mp.exp(mpf(at))), curve.delta(epsilon=at)
        assert contains(bound, value)
        assert bound.upper <= 1.01 * bound.lower


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("epsilon", "gamma"), COMPOSED)
def test_samples_contain_the_truth_down_to_small_deltas(
    epsilon: float, gamma: float | None, direction: Direction
) -> None:
    outcomes = mixed(truth(epsilon, gamma_of(epsilon, gamma), Fraction(1)), as_mpf(Fraction(0.1)))
    outcomes = outcomes if direction == "remove" else tuple((q, p) for p, q in outcomes)
    known = composed(outcomes, 40)
    run = hs.Staircase(epsilon, gamma).poisson(0.1) * 40
    curve = hs.account(run, direction, tolerance=1e-6)
    for at in (0.0, 0.05 * epsilon, 0.5 * epsilon):
        bound = curve.delta(epsilon=at)
        assert contains(bound, hockey_stick(known, mp.exp(mpf(at))))
        assert bound.upper <= (1.0 + 1e-5) * bound.lower
    for delta in (1e-3, 1e-12, 1e-30):
        bound = curve.epsilon(delta=delta)
        low, high = (hockey_stick(known, mp.exp(mpf(float(end)))) for end in (bound.lower, bound.upper))
        assert high <= mpf(delta)
        assert low >= mpf(delta) or bound.lower == 0.0
        assert bound.upper - bound.lower <= 1e-5


@pytest.mark.parametrize("adjacency", ["remove", "substitute"])
@pytest.mark.parametrize(("epsilon", "gamma"), COMPOSED)
def test_epsilon_at_tiny_deltas_agrees_with_the_exact_truth(
    epsilon: float, gamma: float | None, adjacency: Direction
) -> None:
    run = hs.Staircase(epsilon, gamma) * 30
    curve = hs.account(run, adjacency, tolerance=1e-6)
    for delta in (1e-6, 1e-18, 1e-30):
        bound = curve.epsilon(delta=delta)
        assert bound.upper - bound.lower <= 1e-5
        assert exact_delta(run.pairs(adjacency), float(bound.upper)).low <= Fraction(delta)
        if bound.lower > 0.0:
            assert exact_delta(run.pairs(adjacency), float(bound.lower)).high >= Fraction(delta)


@pytest.mark.parametrize("shift", [1, 2])
@pytest.mark.parametrize(("epsilon", "gamma"), SHAPES)
def test_the_exact_curve_is_that_of_the_density(epsilon: float, gamma: float | None, shift: int) -> None:
    exact = gamma_of(epsilon, gamma)
    for rate in (None, 0.1):
        pair = StaircasePair(epsilon, float(exact), shift)
        outcomes = truth(epsilon, exact, Fraction(shift))
        if rate is not None:
            outcomes = mixed(outcomes, as_mpf(Fraction(rate)))
        run, known = [(pair if rate is None else pair.subsampled(Fraction(rate)), 3)], composed(outcomes, 3)
        for at in (0.0, 0.3 * epsilon, 1.3 * epsilon):
            found = exact_delta(run, at, digits=30)
            value = hockey_stick(known, mp.exp(mpf(at)))
            assert as_mpf(found.low) * (1 - mpf(10) ** -50) <= value <= as_mpf(found.high) * (1 + mpf(10) ** -50)
            assert found.digits >= 30


@pytest.mark.parametrize("adjacency", ["remove", "substitute"])
@pytest.mark.parametrize("gamma", [None, 0.5, 0.8125])
def test_many_steps_contain_the_exact_truth(gamma: float | None, adjacency: Direction) -> None:
    """More outcomes than could be listed: their exact sum is one over the lattice."""
    run = hs.Staircase(0.05, gamma) * 2000
    for at in (1.0, 12.0):
        found = exact_delta(run.pairs(adjacency), at, digits=20)
        bound = hs.account(run, adjacency, tolerance=1e-6).delta(epsilon=at)
        assert Fraction(float(bound.lower)) <= found.low <= found.high <= Fraction(float(bound.upper))
        assert bound.upper <= (1.0 + 1e-5) * bound.lower


def test_half_way_steps_are_the_worst_case_of_pure_dp() -> None:
    """With gamma 1/2 the loss is never 0: nothing is gained over (epsilon, 0)-DP."""
    for count in (1, 9):
        staircase, worst = (
            hs.account(step * count, tolerance=1e-9) for step in (hs.Staircase(0.7, 0.5), hs.ApproximateDP(0.7))
        )
        for at in (0.0, 0.4, 2.0):
            one, other = staircase.delta(epsilon=at), worst.delta(epsilon=at)
            assert max(one.lower, other.lower) <= min(one.upper, other.upper)


def test_every_accountant_answers() -> None:
    run = hs.Staircase(0.25) * 60
    known = composed(truth(0.25, gamma_of(0.25, None), Fraction(1)), 60)
    value = hockey_stick(known, mp.exp(mpf(4.0)))
    for certified in (Certified(), Contour(), Exact(), Moments()):
        bound = hs.account(run, accountant=certified).delta(epsilon=4.0)
        assert contains(bound, value)
    # Monte Carlo: its interval misses the truth with probability below 1%; the seed is fixed
    for estimate, factor in (
        (Fourier(spacing=1e-3, half_width=30.0), 1.01),
        (PRV(), 1.2),
        (MonteCarlo(100_000), 1.1),
        (SaddlePoint(), 1.2),
        (GaussianLimit(), 2.0),
    ):
        found = hs.account(run, accountant=estimate).delta(epsilon=4.0)
        near = float(np.asarray(found.value if isinstance(found, hs.Estimate) else found.upper))
        assert value / factor <= near <= value * factor, estimate


def test_a_specification_names_it() -> None:
    text = '[[steps]]\nmechanism = "staircase"\nepsilon = 0.5\n{}count = 10\n[guarantee]\ndelta = 1e-6\n'
    for line, gamma in (("", None), ("gamma = 0.25\n", 0.25)):
        assert read(text.format(line)).composition == Composition(((hs.Staircase(0.5, gamma), 10),))


@pytest.mark.parametrize(
    ("epsilon", "gamma", "error", "word"),
    [
        (0.0, None, ValueError, "epsilon"),
        (-1.0, None, ValueError, "epsilon"),
        (math.nan, None, ValueError, "NaN"),
        (701.0, None, ValueError, "at most 700"),
        (math.inf, 0.5, ValueError, "epsilon"),
        ("1", None, TypeError, "epsilon"),
        (1.0, 0.0, ValueError, "gamma"),
        (1.0, 1.0, ValueError, "gamma"),
        (1.0, math.nan, ValueError, "NaN"),
        (1.0, "0.5", TypeError, "gamma"),
    ],
)
def test_bad_parameters_are_refused(epsilon: float, gamma: float, error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        hs.Staircase(epsilon, gamma)
