"""Probability vectors whose floats miss one: every engine brackets the curve of the vectors over their exact sums."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb

import hockeystick as hs
from hockeystick.accountants import Certified, Exact, Lattice, Moments
from hockeystick.accountants.base import Accountant
from hockeystick.bound import Bound
from hockeystick.engines.ends import composed_infinity
from hockeystick.errors import PrecisionError
from hockeystick.laws import DiscretePair, GaussianMixturePair, SubsampledPair
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.worst_case import WorstCasePair
from hockeystick.numerics.rationals import LOG_RATIO, exact_probabilities, log_ratio
from tests.random_vectors import Case, exact_delta, random_case, seeded

ENGINES: dict[str, Accountant] = {
    "certified": Certified(points=1 << 15),
    "contour": Certified(engine="contour"),
    "lattice": Certified(engine="lattice", points=1 << 15),
    "exact": Exact(10),
    "moments": Moments(),
}
ALWAYS = ("certified",)  # engines on their own may refuse, as documented

KNOWN = [  # what contradicted itself before it was said what such a pair is
    (Case((0.6181219035139404, 0.3818779403958987, 1.5609016080217042e-07), (0.75, 0.25, 0.0), 111_393, False),
     5960.745108424821),
    (Case((0.6990000001193735, 0.301), (0.35681, 0.64319), 4_119, False), 0.0),
    (Case((0.6990000001193735, 0.301), (0.35681, 0.64319), 4_119, False), 1500.0),
    (Case((0.1, 0.2, 0.7), (0.3, 0.7, 0.0), 10**6, False), 1e10),
    (Case((0.1, 0.2, 0.7), (0.3, 0.7, 0.0), 10**6, False), math.inf),
]  # fmt: skip


def deltas(case: Case, epsilon: float, engines: tuple[str, ...]) -> dict[str, Bound]:
    """The brackets of all engines that answer."""
    found: dict[str, Bound] = {}
    for name in engines:
        try:
            answer = ENGINES[name].directed(case.parts).delta(epsilon)
        except PrecisionError:
            assert name not in ALWAYS
            continue
        if isinstance(answer, Bound):
            found[name] = answer
    return found


def check(case: Case, epsilon: float, engines: tuple[str, ...]) -> dict[str, Bound]:
    """Every bracket holds the truth where it is known, and any two have a number in common."""
    found = deltas(case, epsilon, engines)
    lower = max(found, key=lambda name: float(found[name].lower))
    upper = min(found, key=lambda name: float(found[name].upper))
    assert found[lower].lower <= found[upper].upper, (case, epsilon, lower, found[lower], upper, found[upper])
    truth = exact_delta(case, epsilon)
    for name, bound in found.items():
        if truth is not None:
            assert not arb(bound.lower) > truth, (case, epsilon, name, bound, truth)
            assert not arb(bound.upper) < truth, (case, epsilon, name, bound, truth)
    return found


def check_epsilon(case: Case, delta: float, engines: tuple[str, ...]) -> None:
    """The truth has at least ``delta`` at every lower end, and at most that at every upper end."""
    found = {name: ENGINES[name].directed(case.parts).epsilon(delta) for name in engines}
    for name, bound in found.items():
        assert isinstance(bound, Bound)
        if 0.0 < float(bound.lower) < math.inf and (truth := exact_delta(case, float(bound.lower))) is not None:
            assert not truth < arb(delta), (case, delta, name, bound, truth)
        if float(bound.upper) < math.inf and (truth := exact_delta(case, float(bound.upper))) is not None:
            assert not truth > arb(delta), (case, delta, name, bound, truth)


@pytest.mark.parametrize(("case", "epsilon"), KNOWN)
def test_engines_agree_where_they_contradicted_each_other(case: Case, epsilon: float) -> None:
    found = check(case, epsilon, tuple(ENGINES))
    assert set(found) == set(ENGINES)
    assert found["certified"].width <= 1e-9
    assert found["exact"].width <= 1e-9 * float(found["exact"].upper)


def test_exact_has_one_answer_beyond_the_largest_loss() -> None:
    parts = KNOWN[-1][0].parts
    far, end = (Exact().directed(parts).delta(epsilon) for epsilon in (1e10, math.inf))
    assert isinstance(far, Bound)
    assert isinstance(end, Bound)
    assert (far.lower, far.upper) == (end.lower, end.upper)


def run(seeds: range) -> None:
    for seed in seeds:
        rng = seeded(seed)
        case = random_case(rng)
        for epsilon in case.epsilons(rng):
            slow = {"lattice"} if case.steps > 10**5 else set()  # no less true there, but slow
            slow |= {"exact"} if seed % 3 else set()
            engines = tuple(name for name in ENGINES if name not in slow)
            found = check(case, epsilon, engines)
        delta = float(found["certified"].upper)
        if 0.0 < delta < 1.0 and seed % 8 == 0:
            check_epsilon(case, delta, ("certified", "moments"))


@pytest.mark.parametrize("first", [0, 20])
def test_no_engine_excludes_another_or_the_truth(first: int) -> None:
    run(range(first, first + 10))


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1_000, 4_000, 100))
def test_no_engine_excludes_another_or_the_truth_in_many_cases(first: int) -> None:
    run(range(first, first + 100))


# ------------------------------------------------------------------------------------------------------- the vectors


@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000])
def test_probabilities_sum_to_exactly_one_and_keep_their_ratios(size: int) -> None:
    rng = seeded(size)
    weights = [rng.random() * 10.0 ** rng.choice([0, 0, -5, -200]) for _ in range(size)]
    given = tuple(weight / math.fsum(weights) for weight in weights)
    exact = exact_probabilities("p", given)
    assert sum(map(Fraction, exact)) == 1
    assert all(Fraction(a) * Fraction(given[0]) == Fraction(b) * Fraction(exact[0])
               for a, b in zip(exact, given, strict=True))  # fmt: skip


def test_probabilities_that_sum_to_one_are_left_alone() -> None:
    assert exact_probabilities("p", (0.25, 0.75)) == (0.25, 0.75)
    assert isinstance(DiscretePair((0.25, 0.75), (0.5, 0.5)).p[0], float)


@pytest.mark.parametrize("total", [1.0 - 2e-9, 1.0 + 2e-9, 0.0, 0.5])
def test_sums_far_from_one_are_refused(total: float) -> None:
    with pytest.raises(ValueError, match="must sum to 1"):
        DiscretePair((total / 2, total / 2), (0.5, 0.5))


def test_vectors_that_mean_the_same_are_equal_and_are_merged() -> None:
    floats = DiscretePair((0.1, 0.2, 0.7), (0.3, 0.7, 0.0))
    total = sum(map(Fraction, (0.1, 0.2, 0.7)))
    other = DiscretePair(tuple(Fraction(x) / total for x in (0.1, 0.2, 0.7)), (0.3, 0.7, 0.0))
    assert floats == other
    assert hash(floats) == hash(other)
    run = hs.DiscretePair((0.1, 0.2, 0.7), (0.3, 0.7, 0.0)) * 2 + hs.DiscretePair(other.p, other.q)
    assert run.pairs("remove") == ((floats, 3),)


def test_the_mechanism_shows_the_vectors_as_they_were_given() -> None:
    assert hs.DiscretePair([0.1, 0.9], [0.3, 0.7]).p == (0.1, 0.9)
    group = hs.GaussianMixture(1.0, (0.0, 1.0, 2.0), probabilities=(0.1, 0.2, 0.7))
    assert group.probabilities == (0.1, 0.2, 0.7)


def test_what_is_made_of_such_vectors_sums_to_one() -> None:
    pair = DiscretePair((0.1, 0.2, 0.7), (0.3, 0.7, 0.0))
    for made in (pair.subsampled(0.1), pair.reversed(), pair.joined(0.3)):
        assert isinstance(made, DiscretePair)
        assert sum(map(Fraction, made.p)) == sum(map(Fraction, made.q)) == 1


def test_engines_agree_on_mixtures_whose_weights_miss_one() -> None:
    weights = (0.1 * (1.0 + 9e-10), 0.2, 0.7)
    pair = GaussianMixturePair(400.0, weights, (0.0, 1.0, 2.0), (1.0,), (0.0,))
    assert sum(map(Fraction, pair.p_weights)) == 1
    for direction in (pair, pair.reversed()):
        answers = [a.directed(((direction, 10**6),)).delta(20.0) for a in (Certified(), Exact())]
        contour, exact = (answer for answer in answers if isinstance(answer, Bound))
        assert contour.lower <= exact.lower <= exact.upper <= contour.upper
        assert contour.width <= 1e-8 * float(contour.upper)


def test_logarithms_of_ratios_are_within_their_bound() -> None:
    rng = seeded(7)
    with mpmath.workdps(60):
        for _ in range(3000):
            denominator = rng.getrandbits(rng.choice([3, 60, 1100])) + 1
            numerator = denominator + rng.randint(-denominator + 1, denominator) // 10 ** rng.choice([0, 5, 15])
            if rng.random() < 0.3:
                numerator = rng.getrandbits(rng.choice([3, 60, 1100])) + 1
            truth = mpmath.log(mpmath.mpf(numerator) / denominator)
            if 1 - mpmath.mpf(2) ** -150 < mpmath.mpf(numerator) / denominator < 1 + mpmath.mpf(2) ** -150:
                truth = (mpmath.mpf(numerator) - denominator) / denominator
            assert abs(log_ratio(numerator, denominator) - truth) <= LOG_RATIO * abs(truth) + mpmath.mpf(2) ** -1074


@pytest.mark.parametrize("steps", [1, 2, 1_000, 10**7, 10**12])
@pytest.mark.parametrize("mass", [0.1, 0.7, 1e-7, 1e-17, 1.0 - 1e-12, 1e-300, 1e-320, 5e-324, 1.0])
def test_the_mass_at_infinity_is_bracketed_relative_to_itself(mass: float, steps: int) -> None:
    vectors = DiscretePair((mass, 1 - Fraction(mass)), (Fraction(0), Fraction(1)))
    for pair in (vectors, WorstCasePair(1.0, mass), SubsampledPair(WorstCasePair(1.0, mass), 0.3)):
        exact = Fraction(mass)
        if isinstance(pair, SubsampledPair):
            exact *= Fraction(0.3)
        low, high = composed_infinity(((pair, steps),))
        with mpmath.workdps(400):
            ratio = mpmath.mpf(exact.numerator) / exact.denominator
            truth = -mpmath.expm1(steps * mpmath.log1p(-ratio)) if exact < 1 else mpmath.mpf(1)
            assert low <= truth <= high
            assert high - low <= 1e-13 * truth + (steps + 8) * 2.0**-1070  # a few of the smallest numbers a step


NEARLY_EQUAL = (
    Fraction(59954802788394337773188074801463296, 1804738975986208856433453388445583),
    Fraction(265301, 7986),
)
"""Two ratios, increasing, whose logarithms as computed decrease."""


@pytest.mark.parametrize("rounding", ["connect-the-dots", "tangents", "algorithm-2", "buckets-up", "buckets-down"])
def test_outcomes_of_nearly_one_ratio_keep_what_lies_beside_them(rounding: str) -> None:
    """With a cut at the smaller of the logarithms, the next outcome below is in a cell with the larger ratio."""
    low, high = NEARLY_EQUAL
    p = [Fraction(3, 10), Fraction(1, 1000), Fraction(4, 10)]
    q = [mass / ratio for mass, ratio in zip(p, (low * Fraction(98, 100), low, high), strict=True)]
    pair = DiscretePair((*p, 1 - sum(p)), (*q, 1 - sum(q)))
    losses = pair.atoms.loss
    assert (np.diff(losses) >= 0.0).all()
    for cut in losses:
        masses = pair.cells(np.array([cut]))
        assert np.exp(masses.log_p).sum() == pytest.approx(1.0, rel=1e-14)
        assert np.exp(masses.log_q).sum() == pytest.approx(1.0, rel=1e-14)
    run = ((pair, 2),)
    for epsilon in (1.0, 4.0):
        exact = Exact().directed(run).delta(epsilon)
        lattice = Lattice(log_ratio(high.numerator, high.denominator) / 32.0, rounding=rounding)
        found = lattice.directed(run).delta(epsilon)
        assert isinstance(exact, Bound)
        assert isinstance(found, Bound)
        assert found.lower <= exact.lower
        assert exact.upper <= found.upper


def test_a_loss_that_is_raised_to_the_one_before_is_within_its_error() -> None:
    logs = np.log([0.25, 0.5, 0.25])
    table = AtomTable(np.array([1.0, 0.75, 2.0]), np.array([0.25, 0.0, 0.5]), logs, logs, np.zeros(3))
    assert table.loss.tolist() == [1.0, 1.0, 2.0]
    assert table.loss_error[1] >= 0.25
    assert table.loss_error[[0, 2]].tolist() == [0.25, 0.5]
