"""Discrete losses that share no lattice: smoothed lines contain enumerated truths, and are narrow where they answer."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.accountants import Contour
from hockeystick.composition import Composition, Direction
from hockeystick.engines.contour.placing import ContourRefusal, line_for_epsilon
from hockeystick.engines.contour.smoothed_line import SmoothedLine
from hockeystick.engines.enumeration.heaviest import HeaviestOutcomes
from hockeystick.exact import exact_delta
from hockeystick.laws import DiscretePair, Pair
from hockeystick.laws.loss_sum import PairSum
from tests.contour_lines import relative_width

SKEWED = DiscretePair((0.5, 0.3125, 0.1875), (0.3125, 0.25, 0.4375))


@functools.cache
def enumerated_delta(pair: DiscretePair, steps: int, epsilon: float) -> mpf:
    """delta by the multinomial sum, to 60 digits."""
    with mp.workdps(60):
        p, q = [mpf(v) for v in pair.p], [mpf(v) for v in pair.q]
        total, order = mpf(0), mp.exp(mpf(epsilon))
        for i in range(steps + 1):
            for j in range(steps - i + 1):
                k = steps - i - j
                ways = mpf(math.comb(steps, i) * math.comb(steps - i, j))
                a = p[0] ** i * p[1] ** j * p[2] ** k
                b = q[0] ** i * q[1] ** j * q[2] ** k
                total += ways * max(a - order * b, mpf(0))
        return total


@pytest.mark.parametrize("tolerance", [1e-9, 1e-6, 1e-3, 1e-1, 1.0])
@pytest.mark.parametrize(("steps", "epsilon"), [(60, 0.0), (60, 3.0), (120, 12.0)])
def test_smoothed_line_contains_the_enumerated_delta(steps: int, epsilon: float, tolerance: float) -> None:
    line = line_for_epsilon(PairSum([(SKEWED, steps)]), epsilon, tolerance)
    assert isinstance(line, SmoothedLine)
    found = line.curve(np.array([epsilon]))
    truth = mp.log(enumerated_delta(SKEWED, steps, epsilon))
    assert found.log_lower()[0] <= truth <= found.log_upper()[0]
    if tolerance < 1e-2:
        assert relative_width(found)[0] <= 100.0 * tolerance


def test_few_steps_are_refused_where_too_many_frequencies_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = PairSum([(hs.Binomial(20).pair("remove"), 10)])
    with pytest.raises(ContourRefusal, match="few steps of atoms"):
        line_for_epsilon(losses, 10.0, 1e-11)
    monkeypatch.setattr("hockeystick.engines.contour.atomic_lines._MOST_KEPT", 1000)
    with pytest.raises(ContourRefusal, match="matter: few steps of atoms"):
        line_for_epsilon(losses, 10.0, 1e-6)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("run", "epsilon"),
    [
        (hs.DiscreteGaussian(2.0).poisson(0.1) * 7, 0.3),
        (hs.DiscreteGaussian(1.0).poisson(0.02) * 9, 0.1),
        (hs.Binomial(100) * 5, 1.0),
        (hs.DiscreteGaussian(5.0).poisson(0.5) * 3 + hs.Binomial(60) * 2, 0.8),
    ],
)
@pytest.mark.parametrize("tolerance", [1e-7, 1e-4])
def test_lines_of_few_steps_hold_what_their_outcomes_add_up_to(
    run: Composition, epsilon: float, direction: Direction, tolerance: float
) -> None:
    parts = run.pairs(direction)
    line = line_for_epsilon(PairSum(parts), epsilon, tolerance)
    assert isinstance(line, SmoothedLine)
    listed = HeaviestOutcomes(parts, (0.0, 0.0), 1 << 17).delta(epsilon)
    assert float(listed.width) <= 1e-9 * float(listed.lower)
    found = line.curve(np.array([epsilon]))
    assert found.log_lower()[0] <= math.log(float(listed.upper))
    assert math.log(float(listed.lower)) <= found.log_upper()[0]
    assert relative_width(found)[0] <= 100.0 * tolerance


@pytest.mark.parametrize(
    ("run", "epsilon"), [(hs.Binomial(1000) * 18, 1.1), (hs.DiscreteGaussian(20.0).poisson(0.1) * 18, 0.07)]
)
def test_some_steps_of_too_many_atoms_to_list_are_answered_to_five_digits(run: Composition, epsilon: float) -> None:
    found = hs.account(run, "remove").delta(epsilon)
    lattice = hs.account(run, "remove", accountant=hs.accountants.Certified(engine="lattice")).delta(epsilon)
    assert isinstance(found, hs.Bound)
    assert found.method == "contour"
    assert float(found.width) <= 1e-5 * float(found.lower)
    assert max(float(found.lower), float(lattice.lower)) <= min(float(found.upper), float(lattice.upper))


def test_width_falls_with_the_noise_added() -> None:
    losses = PairSum([(hs.Binomial(100).pair("remove"), 50)])
    widths = []
    for tolerance in (1e-4, 1e-6, 1e-8):
        line = line_for_epsilon(losses, 2.0, tolerance)
        assert isinstance(line, SmoothedLine)
        widths.append(float(relative_width(line.curve(np.array([2.0])))[0]))
    assert all(0.0 < second < 0.1 * first for first, second in pairwise(widths))


@pytest.mark.parametrize(
    "run",
    [
        hs.DiscreteGaussian(4.0).poisson(0.01) * 1000,
        hs.Binomial(100) * 50,
        hs.Binomial(100).poisson(0.2) * 400,
    ],
)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_contour_lies_within_the_lattice_bracket(run: Composition, direction: str) -> None:
    contour = hs.account(run, direction, accountant=Contour())
    lattice = hs.account(run, direction, accountant=hs.accountants.Certified(engine="lattice"))
    for delta in (1e-4, 1e-12):
        ours, theirs = contour.epsilon(delta), lattice.epsilon(delta)
        assert max(float(ours.lower), float(theirs.lower)) <= min(float(ours.upper), float(theirs.upper))
        assert float(ours.width) <= 1e-9 * float(ours.upper)


SAMPLED = hs.DiscreteLaplace(2.0, sensitivity=3).poisson(0.25).pair("remove")


@pytest.mark.parametrize(
    ("pair", "steps", "tolerance", "epsilons"),
    [
        (SKEWED, 400, 1e-9, (18.8, 47.0, 75.2, 94.0)),
        (SKEWED, 400, 1e-5, (131.6, 160.0)),
        (SAMPLED, 150, 1e-9, (0.0, 23.4)),
        (SAMPLED, 150, 1e-5, (9.4, 47.0, 60.1, 65.7)),
        (SAMPLED.reversed(), 150, 1e-9, (0.0, 8.1)),
        (SAMPLED.reversed(), 150, 1e-5, (3.2, 16.2, 22.6)),
        (hs.Binomial(4).pair("remove"), 90, 1e-9, (0.0, 12.5, 26.0)),
        (hs.Binomial(4).pair("remove"), 90, 1e-5, (50.0, 62.4)),
    ],
)
def test_answers_contain_the_truth_outcome_by_outcome(
    pair: Pair, steps: int, tolerance: float, epsilons: tuple[float, ...]
) -> None:
    curve = Contour(tolerance).directed(((pair, steps),))
    for epsilon in epsilons:
        found, exact = curve.delta(epsilon), exact_delta([(pair, steps)], epsilon, digits=20)
        assert isinstance(found, hs.Bound)
        assert Fraction(found.lower) <= exact.low <= exact.high <= Fraction(found.upper)
        assert found.width <= tolerance * float(found.lower)


@pytest.mark.parametrize("sensitivity", [2, 7])
@pytest.mark.parametrize("tolerance", [1e-7, 1e-5])
def test_a_transform_that_comes_back_to_one_is_added_where_it_does(
    monkeypatch: pytest.MonkeyPatch, sensitivity: int, tolerance: float
) -> None:
    """Losses on a lattice, smoothed all the same: |phi| is one again and again, at frequencies far out."""
    monkeypatch.setattr(PairSum, "lattice", lambda *_: None)
    pair = hs.DiscreteLaplace(4.0, sensitivity=sensitivity).pair("remove")
    for epsilon in (0.07, 10.07, 40.07, 100.07):  # between atoms
        line = line_for_epsilon(PairSum([(pair, 300)]), epsilon, tolerance)
        assert isinstance(line, SmoothedLine)
        found = line.curve(np.array([epsilon]))
        exact = exact_delta([(pair, 300)], epsilon, digits=20)
        assert found.log_lower()[0] <= mp.log(mpf(exact.low.numerator) / exact.low.denominator)
        assert found.log_upper()[0] >= mp.log(mpf(exact.high.numerator) / exact.high.denominator)
        assert relative_width(found)[0] <= 100.0 * tolerance
