"""Poisson samples cut to a largest batch, and micro-batches, against every draw listed one by one."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.engines.contour.decay import rectangles
from hockeystick.exact import exact_delta
from hockeystick.laws import DiscretePair, LabelledPair, Pair
from hockeystick.laws.base import Parts
from hockeystick.laws.loss_sum import PairSum
from hockeystick.laws.one_step import one_step_delta
from hockeystick.numerics.binomial_tail import TAIL, BinomialTail
from hockeystick.transforms.rule import Window

QUARTER = Fraction(1, 4)
Law = dict[Any, Fraction]


def binomial(n: int, g: Fraction, k: int) -> Fraction:
    return math.comb(n, k) * g**k * (1 - g) ** (n - k)


@pytest.mark.parametrize(
    ("trials", "rate", "least"), [(30, 0.25, 3), (30, 0.25, 29), (7, 0.9, 7), (7, 0.9, 1), (40, 0.1, 40), (1, 0.5, 1)]
)
def test_binomial_tails_are_within_their_error(trials: int, rate: float, least: int) -> None:
    tail, g = BinomialTail(trials, rate, least), Fraction(rate)
    above = sum(binomial(trials, g, k) for k in range(least, trials + 1))
    share = sum(binomial(trials, g, k) * Fraction(least, k + 1) for k in range(least, trials + 1)) / above
    for found, true in ((tail.above, above), (tail.below, 1 - above), (tail.mean_share, share)):
        assert abs(Fraction(found) / true - 1) <= Fraction(TAIL)


def test_long_binomial_tails_agree_with_their_definition_in_two_ways() -> None:
    """E[B / (K+1); K >= B] = (B / (n g)) Pr[Bin(n, g) > B], with n trials on one side and n - 1 on the other."""
    n, g, most = 50_000, 0.01, 550
    tail, other = BinomialTail(n - 1, g, most), BinomialTail(n, g, most + 1)
    one = Fraction(tail.above) * Fraction(tail.mean_share)
    assert abs(one / (Fraction(most, n) / Fraction(g) * Fraction(other.above)) - 1) <= 4 * Fraction(TAIL)


def noisy(total: int, weight: Fraction, trials: int = 9) -> Law:
    """A sum plus binomial noise."""
    return {total + j: weight * Fraction(math.comb(trials, j), 2**trials) for j in range(trials + 1)}


def added(laws: list[Law]) -> Law:
    whole: Law = {}
    for law in laws:
        for outcome, mass in law.items():
            whole[outcome] = whole.get(outcome, Fraction(0)) + mass
    return whole


def cut_law(values: tuple[int, ...], g: Fraction, most: int) -> Law:
    """The released sum: every sample, and every set of it that may be kept."""
    laws = []
    for drawn in itertools.product((False, True), repeat=len(values)):
        chosen = [value for value, is_in in zip(values, drawn, strict=True) if is_in]
        weight = g ** len(chosen) * (1 - g) ** (len(values) - len(chosen))
        kept = list(itertools.combinations(chosen, min(most, len(chosen))))
        laws += [noisy(sum(batch), weight / len(kept)) for batch in kept]
    return added(laws)


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    a = math.exp(epsilon)
    return math.fsum(max(float(mass) - a * float(q.get(outcome, 0)), 0.0) for outcome, mass in p.items())


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("others", [(-1, -1, -1), (0, 0, 0), (-1, 0, 1)])
def test_no_neighbours_are_above_the_pair(others: tuple[int, ...], most: int) -> None:
    """All that the sampler can do with four records, listed: below the pair, and null records attain the lower one."""
    step = hs.Binomial(9).poisson(0.25, largest_batch=most, population=4)
    without = cut_law(others, QUARTER, most)
    record = cut_law((*others, 1), QUARTER, most)
    for direction, p, q in (("remove", record, without), ("add", without, record)):
        for epsilon in (-1.0, -0.2, -0.01, 0.0, 0.01, 0.1, 0.3, 0.7, 1.5):
            true = hockey_stick(p, q, epsilon)
            assert true <= one_step_delta(step.pair(direction), epsilon)[1] * (1 + 1e-12)  # type: ignore[arg-type]
            (below,) = step.attained(direction) or ()  # type: ignore[arg-type]
            low, high = one_step_delta(below, epsilon)
            if others == (0, 0, 0):
                assert low <= true * (1 + 1e-12)
                assert true <= high * (1 + 1e-12) + 1e-15  # the rate below is one rounding off


def listed(pair: LabelledPair) -> Pair:
    """The labelled mixture of two pairs of probability vectors as one pair, an outcome for each label and outcome."""
    g, tail = Fraction(pair.tail.rate), pair.tail
    above = sum(binomial(tail.trials, g, k) for k in range(tail.least, tail.trials + 1))
    usual: Any = pair.usual
    rare: Any = pair.rare
    p = [(1 - above) * Fraction(w) for w in usual.p] + [above * Fraction(w) for w in rare.p]
    q = [(1 - above) * Fraction(w) for w in usual.q] + [above * Fraction(w) for w in rare.q]
    return hs.DiscretePair(p, q).pair("remove")  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 7, 30])
def test_a_labelled_mixture_composes_like_the_pair_of_its_labels_and_outcomes(count: int) -> None:
    step = hs.RandomizedResponse(0.8).poisson(0.25, largest_batch=2, population=5)
    pair = step.pair("remove")
    assert isinstance(pair, LabelledPair)
    for mine, whole in ((pair, listed(pair)), (pair.reversed(), listed(pair).reversed())):
        for epsilon in (0.1, 0.5, 1.5):
            found, true = (
                hs.accountants.Certified(1e-4).directed(((one, count),)).delta(epsilon) for one in (mine, whole)
            )
            assert isinstance(found, hs.Bound)
            assert isinstance(true, hs.Bound)
            assert found.lower <= true.upper
            assert true.lower <= found.upper
            assert found.width <= 1e-9 * float(true.upper)


def test_cells_are_the_weighted_sums_of_their_parts_within_their_errors() -> None:
    """Against exact weights: the stated errors hold those of the logarithms of the weights."""
    pair = hs.RandomizedResponse(0.8).poisson(0.25, largest_batch=2, population=5).pair("remove")
    assert isinstance(pair, LabelledPair)
    cuts = np.array([-0.2, 0.0, 0.15, 0.4])
    mine, whole = pair.cells(cuts), listed(pair).cells(cuts)
    for found, true, error, other in (
        (mine.log_p, whole.log_p, mine.error_p, whole.error_p),
        (mine.log_q, whole.log_q, mine.error_q, whole.error_q),
    ):
        full = np.isfinite(true)
        assert (np.isfinite(found) == full).all()
        assert (np.abs(found[full] - true[full]) <= error[full] + other[full]).all()


def test_atoms_are_those_of_both_parts_within_their_errors() -> None:
    pair = hs.RandomizedResponse(0.8).poisson(0.25, largest_batch=2, population=5).pair("remove")
    assert isinstance(pair, LabelledPair)
    whole = listed(pair)
    assert pair.atoms is not None
    assert isinstance(whole, DiscretePair)
    outcomes = sorted(
        zip(whole.p, whole.q, strict=True), key=lambda outcome: Fraction(outcome[0]) / Fraction(outcome[1])
    )
    with mp.workdps(40):
        for row, (p, q) in enumerate(outcomes):
            for found, mass in ((pair.atoms.log_p[row], p), (pair.atoms.log_q[row], q)):
                exact = mp.log(mpf(mass.numerator) / mass.denominator)
                assert abs(mpf(float(found)) - exact) <= float(pair.atoms.error[row]) <= 1e-14
    assert len(outcomes) == pair.atoms.size


def test_cells_state_the_errors_of_weights_and_the_larger_slack() -> None:
    pair = hs.Gaussian(1.0).poisson(0.25, largest_batch=2, population=5).pair("remove")
    assert isinstance(pair, LabelledPair)
    cuts = np.array([-0.2, 0.1, 0.4, 2.0])
    mine, usual, rare = (one.cells(cuts) for one in (pair, pair.usual, pair.rare))
    assert (mine.slack >= np.maximum(usual.slack, rare.slack)).all()
    for own, parts in (
        (mine.error_p, (usual.error_p, rare.error_p)),
        (mine.error_q, (usual.error_q, rare.error_q)),
    ):
        assert (own >= np.maximum(*parts) + pair.tail.log_error).all()


def bracketed(parts: Parts, epsilon: float) -> Any:
    return hs.accountants.Certified(1e-9).directed(parts).delta(epsilon)


def enclosed(parts: Parts, epsilon: float) -> Any:
    return exact_delta(parts, epsilon, digits=12)


def of_labels(
    pair: LabelledPair, count: int, epsilon: float, *, turned: bool, delta: Callable[[Parts, float], Any]
) -> tuple[Fraction, Fraction]:
    """Both sides of delta, by how many of the steps have the rare label."""
    above, below = Fraction(pair.tail.above), Fraction(pair.tail.below)
    usual, rare = (part.reversed() if turned else part for part in (pair.usual, pair.rare))
    low = high = Fraction(0)
    for j in range(count + 1):
        parts = tuple((part, times) for part, times in ((usual, count - j), (rare, j)) if times)
        found = delta(parts, epsilon)
        weight = math.comb(count, j) * above**j * below ** (count - j)
        low, high = low + weight * Fraction(found.lower), high + weight * Fraction(found.upper)
    slip = 2 * count * Fraction(TAIL)
    return low * (1 - slip), high * (1 + slip)


@pytest.mark.parametrize("delta", [bracketed, pytest.param(enclosed, marks=pytest.mark.torture)])
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("most", "epsilon"), [(24, 0.0), (24, 9.0), (50, 4.0)])
def test_the_contour_of_a_labelled_mixture_holds_the_sum_over_the_labels_of_all_steps(
    most: int, epsilon: float, direction: Any, delta: Callable[[Parts, float], Any]
) -> None:
    pair: Any = hs.Gaussian(1.5).poisson(0.2, largest_batch=most, population=100).pair(direction)
    found: Any = hs.accountants.Contour(1e-9).directed(((pair, 15),)).delta(epsilon)
    turned = direction == "add"
    low, high = of_labels(pair.base if turned else pair, 15, epsilon, turned=turned, delta=delta)
    assert Fraction(found.lower) <= high
    assert low <= Fraction(found.upper)
    assert found.width <= 2e-9 * found.upper


def test_the_rule_of_a_labelled_mixture_errs_like_the_worse_of_its_parts_and_falls_like_both() -> None:
    pair = hs.Gaussian(1.0).poisson(0.25, largest_batch=2, population=8).pair("remove")
    window, exponents = Window((1.0, 3.0), 9.0, -2.0, cells=4), np.array([1.0, 3.0])
    (rule,) = PairSum([(pair, 1)]).rules(window) or ()
    parts = [(PairSum([(part, 1)]).rules(window) or ())[0] for part in (pair.usual, pair.rare)]  # type: ignore[attr-defined]
    errors = [part.quadrature.error(exponents) for part in parts]
    assert (rule.quadrature.error(exponents) == np.maximum(*errors)).all()
    own = [part.quadrature.error_up_to(9.0, 3.0, error[1]) for part, error in zip(parts, errors, strict=True)]
    assert (rule.quadrature.error_up_to(9.0, 3.0, np.zeros(1)) == np.maximum(*own)).all()
    stated = np.concatenate([part.weight_error for part in parts], axis=1)
    rounded = 2.0**-53 * np.abs(rule.log_weight)
    assert (rule.weight_error >= stated + pair.tail.log_error + 0.99 * rounded).all()  # type: ignore[attr-defined]
    (fine,) = PairSum([(pair, 1)]).rules(Window((3.0,), 9.0, -34.0, cells=8)) or ()
    assert rule.cells is not None
    s, weight = np.linspace(0.0, 9.0, 91), np.exp(fine.log_weight + 3.0 * fine.loss)[0]
    size = np.abs(np.exp(1j * s[:, None] * fine.loss[0]) @ weight) / weight.sum()
    bound = rectangles(rule.cells, 3.0, np.log([weight.sum()])).log_bound(s)[:, 0]
    from_here_on = np.maximum.accumulate(size[::-1])[::-1]
    assert (np.log(from_here_on) <= bound + 1e-9).all()  # of the sum in float64
    assert bound[-1] < math.log(0.5)


def test_the_mass_at_infinity_is_the_mean_of_that_of_the_parts() -> None:
    step = hs.ApproximateDP(1.0, 0.01).poisson(0.25, largest_batch=1, population=2)
    pair = step.pair("remove")
    true = Fraction(3, 4) * Fraction(0.01) * QUARTER + QUARTER * Fraction(0.01) * Fraction(1, 8)
    assert 0 <= Fraction(pair.mass_at_infinity) / true - 1 <= 32 * Fraction(1, 2**53)


def test_deltas_next_to_1_are_answered_where_neither_label_is_rare() -> None:
    step = hs.RandomizedResponse(0.7, 3).poisson(0.25, largest_batch=1, population=3)
    for direction in ("remove", "add"):
        assert hs.account(step, direction).epsilon(1.0 - 1e-16).sides == (0.0, 0.0)


def test_samples_have_the_masses_of_the_cells() -> None:
    """20,000 draws of each measure: a false alarm, six standard deviations in any of 12 cells, has probability 3e-8."""
    pair = hs.Gaussian(1.0).poisson(0.25, largest_batch=2, population=8).pair("remove")
    cuts = np.array([-0.2, 0.0, 0.2, 0.5, 1.0])
    cells, rng = pair.cells(cuts), np.random.default_rng(5)
    measures: tuple[Any, ...] = (("P", cells.log_p), ("Q", cells.log_q))
    for measure, logs in measures:
        drawn = np.bincount(np.searchsorted(cuts, pair.sample(rng, 20_000, measure)), minlength=6) / 20_000
        mass = np.exp(logs)
        assert (np.abs(drawn - mass) <= 6.0 * np.sqrt(mass / 20_000)).all()


@pytest.mark.parametrize(
    ("most", "peer", "least"),
    [
        (600, 2.594349, 2.5835),
        (550, 5.598308, 2.5830),
        pytest.param(520, 10.270351, 2.5705, marks=pytest.mark.torture),
    ],
)
def test_a_run_is_never_above_what_a_substitution_pair_gives(most: int, peer: float, least: float) -> None:
    """dp-accounting 0.6.0 takes the substitution pair for full batches: its answers for 2000 steps at delta 1e-5."""
    step = hs.Gaussian(1.0).poisson(0.01, largest_batch=most, population=50_000)
    bound = hs.account(step * 2000).epsilon(delta=1e-5)
    assert isinstance(bound, hs.Bound)
    assert bound.certified
    assert bound.lower > least
    assert bound.upper < peer
    assert any("full without the record" in note for note in bound.notes)


def test_a_largest_batch_of_all_records_is_a_poisson_sample_exactly() -> None:
    plain = hs.account(hs.Gaussian(1.0).poisson(0.01) * 100).epsilon(delta=1e-5)
    cut = hs.account(hs.Gaussian(1.0).poisson(0.01, largest_batch=300, population=300) * 100).epsilon(delta=1e-5)
    assert repr(cut) == repr(plain)


def test_the_upper_side_falls_to_that_of_poisson_samples_as_the_largest_batch_grows() -> None:
    uppers = []
    for most in (20, 40, 999):
        step = hs.Gaussian(1.0).poisson(0.02, largest_batch=most, population=1000)
        uppers.append(float(hs.account(step * 100).epsilon(delta=1e-5).upper))
    assert uppers == sorted(uppers, reverse=True)
    poisson = hs.account(hs.Gaussian(1.0).poisson(0.02) * 100).epsilon(delta=1e-5)
    assert abs(uppers[-1] - float(poisson.upper)) <= 2e-3


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "substitute"])
def test_one_micro_batch_is_a_poisson_sample_bit_for_bit(adjacency: Any) -> None:
    one = hs.account(hs.Gaussian(1.0).poisson(0.01, micro_batches=1) * 100, adjacency).epsilon(delta=1e-5)
    assert repr(one) == repr(hs.account(hs.Gaussian(1.0).poisson(0.01) * 100, adjacency).epsilon(delta=1e-5))


def test_micro_batches_are_a_mixture_of_shifts() -> None:
    """One step, by the closed form: sum_j w_j Phi(j/s - y) - a Phi(-y), largest at the root of the likelihood ratio."""
    s, g, m = 2.0, 0.25, 3
    weights = [float(binomial(m, Fraction(g), j)) for j in range(m + 1)]
    pair = hs.Gaussian(s).poisson(g, micro_batches=m).pair("remove")
    for epsilon in (0.05, 0.3, 1.0):
        y = np.linspace(-8.0, 12.0, 100_001)
        values = sum(w * ndtr(j / s - y) for j, w in enumerate(weights)) - math.exp(epsilon) * ndtr(-y)
        low, high = one_step_delta(pair, epsilon)
        assert low <= high
        assert float(values.max()) <= high * (1 + 1e-9)
        assert low <= float(values.max()) * (1 + 1e-7)  # the grid misses the top by less


def test_chances_of_millions_of_digits_are_left_out_of_the_lower_side() -> None:
    """All others drawn at a rate of 1e-290: a chance of 1e-29000000, which took half a minute as a fraction."""
    start = time.process_time()
    (shown,) = hs.Gaussian(1.0).poisson(1e-290, largest_batch=99_999, population=100_000).attained("remove") or ()
    assert shown.sampling_rate == pytest.approx(1e-290, rel=1e-15, abs=0.0)
    assert shown.sampling_rate <= 1e-290
    unknown = hs.ApproximateDP(1.0, 0.01).poisson(1e-290, largest_batch=99_999, population=100_000).pair("remove")
    assert 0.0 <= Fraction(unknown.mass_at_infinity) / (Fraction(1e-290) * Fraction(0.01)) - 1 <= 1e-15
    assert time.process_time() - start < 3.0
