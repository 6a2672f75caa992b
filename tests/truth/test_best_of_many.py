"""The best of a random number of runs, against every order of the outputs of small mechanisms, enumerated."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

import hockeystick as hs
from benchmarks.cases import CASES
from hockeystick.accountants import Certified
from hockeystick.bound import Bound
from hockeystick.engines.ends import BoundedCurve
from hockeystick.engines.one_run import OneRun
from hockeystick.engines.selection import SelectedCurve, _hull
from hockeystick.laws.run_count import NegativeBinomialCount, PoissonCount, RunCount
from hockeystick.laws.selected import SHARES
from hockeystick.numerics.rounding import U
from tests.quadrature import normal_below

mp = mpmath.mp.clone()
mp.dps = 40

COUNTS: tuple[RunCount, ...] = (
    PoissonCount(0.3),
    PoissonCount(2.0),
    PoissonCount(12.0),
    NegativeBinomialCount(0.5),
    NegativeBinomialCount(0.05),
    NegativeBinomialCount(0.02, 0.0),
    NegativeBinomialCount(0.1, -0.5),
    NegativeBinomialCount(0.2, 3.0),
)
EPSILONS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0)


def bound(answer: object) -> Bound:
    assert isinstance(answer, Bound)
    return answer


@functools.cache
def generating(count: RunCount, x: mpmath.mpf) -> mpmath.mpf:
    """f(x) by its definition."""
    if isinstance(count, PoissonCount):
        return mp.exp(mp.mpf(count.mean) * (x - 1))
    assert isinstance(count, NegativeBinomialCount)
    gamma, eta = mp.mpf(count.stopping), mp.mpf(count.shape)
    if eta == 0:
        return mp.log(1 - (1 - gamma) * x) / mp.log(gamma)
    return ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


@pytest.mark.parametrize("count", COUNTS)
def test_laws_of_the_number_of_runs_are_within_their_errors(count: RunCount) -> None:
    for rest in (0.0, 1e-9, 0.01, 0.3, 0.9, 1.0):
        slope = mp.diff(lambda x: generating(count, x), 1 - mp.mpf(rest))
        found = mp.mpf(float(count.log_slope(np.array(rest))))
        assert abs(mp.exp(found) / slope - 1) <= count.error
        for part in (1e-12, 1e-3, 0.1, 1.0):
            if rest + part <= 1.0:
                truth = generating(count, 1 - mp.mpf(rest)) - generating(count, 1 - mp.mpf(rest) - mp.mpf(part))
                assert abs(mp.mpf(float(count.chance(np.array(part), np.array(rest)))) / truth - 1) <= count.error
    assert abs(mp.mpf(count.mean) / mp.diff(lambda x: generating(count, x), 1) - 1) <= count.error  # type: ignore[attr-defined]


def test_a_geometric_number_of_runs_is_the_series() -> None:
    """Summed over k: stop after every run with probability 0.3."""
    count = NegativeBinomialCount(0.3)
    series = mp.fsum(mp.mpf(0.3) * (1 - mp.mpf(0.3)) ** (k - 1) * mp.mpf(0.6) ** k for k in range(1, 300))
    assert abs(generating(count, mp.mpf(0.6)) - series) < mp.mpf(10) ** -15
    assert abs(float(count.chance(np.array(0.4), np.array(0.0))) - float(1 - series)) < 1e-15


def exact_curve(p: np.ndarray, q: np.ndarray) -> Callable[[float], Bound]:
    """The curve of two vectors, the sum of nonnegative terms a few roundings off."""

    def delta(epsilon: float) -> Bound:
        if math.isinf(epsilon):
            total = float(p[q == 0.0].sum())
        else:
            terms = p - math.exp(epsilon) * q
            total = math.fsum(terms[terms > 0.0].tolist())
        room = 8.0 * U * (float(p.sum()) + math.exp(min(epsilon, 600.0)) * float(q.sum()))
        return Bound(max(total - room, 0.0), min(total + room, 1.0), "by hand")

    return delta


def each(delta: Callable[[float], Bound]) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Sides at several epsilons, one by one."""

    def deltas(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.array([delta(epsilon).sides for epsilon in at.tolist()], dtype=np.float64).T
        return low, high

    return deltas


def largest_loss(p: np.ndarray, q: np.ndarray, delta: float) -> Bound:
    both = (p > 0.0) & (q > 0.0)
    top = float(np.log(p[both] / q[both]).max(initial=0.0))
    return Bound(top, math.inf if (q[p > 0.0] == 0.0).any() else max(top, 0.0) + 1e-9, "by hand")


def winner(count: RunCount, masses: Sequence[Any] | np.ndarray, order: tuple[int, ...]) -> list[mpmath.mpf]:
    """The law of the best output, worst outputs first in ``order``; the last entry is that nothing is released."""
    below, out, total = generating(count, mp.mpf(0)), [], mp.mpf(0)
    for index in order:
        total += mp.mpf(masses[index])
        now = generating(count, min(total, mp.mpf(1)))
        out.append(now - below)
        below = now
    return out


def check(mechanisms: int, orders: int, seed: int) -> int:
    """Random mechanisms of three to five outputs, some with an output that one dataset never has."""
    rng, seen = np.random.default_rng(seed), 0
    scales = {epsilon: mp.exp(mp.mpf(epsilon)) for epsilon in EPSILONS}
    for trial in range(mechanisms):
        size = int(rng.integers(3, 6))
        weight = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 4.0])), 2)
        # multiples of 2^-40, so that sums are exact
        p, q = (np.floor(row * 2.0**40) / 2.0**40 for row in weight)
        p[0], q[0] = 1.0 - p[1:].sum(), 1.0 - q[1:].sum()
        if trial % 5 == 0:
            q[0], q[1] = q[0] + q[1], 0.0
        count = COUNTS[trial % len(COUNTS)]
        curve = SelectedCurve(
            OneRun(each(exact_curve(p, q)), partial(largest_loss, p, q)),
            OneRun(each(exact_curve(q, p)), partial(largest_loss, q, p)),
            count,
        )
        answers = {epsilon: curve.delta(epsilon) for epsilon in EPSILONS}
        every = list(itertools.permutations(range(size)))
        best = dict.fromkeys(EPSILONS, mp.mpf(0))
        chosen = every if orders >= len(every) else [every[k] for k in rng.choice(len(every), orders, replace=False)]
        for order in chosen:
            one, other = winner(count, p, order), winner(count, q, order)
            for epsilon, answer in answers.items():
                gains = (a - scales[epsilon] * b for a, b in zip(one, other, strict=True))
                truth = mp.fsum(max(gain, mp.mpf(0)) for gain in gains)
                assert truth <= answer.upper, (trial, order, epsilon)
                best[epsilon] = max(best[epsilon], truth)
            seen += 1
        if len(chosen) == len(every):
            for epsilon, answer in answers.items():
                assert answer.lower <= best[epsilon], (trial, epsilon)
    return seen


def test_no_order_of_the_outputs_of_small_mechanisms_is_above_nor_all_below() -> None:
    assert check(25, 120, seed=11) > 600


@pytest.mark.torture
def test_no_order_in_27_000_small_mechanisms_is_above() -> None:
    assert check(27_000, 1, seed=12) == 27_000


def test_randomised_response_selected_is_bracketed_through_the_front_door() -> None:
    tuned = hs.select_best(hs.RandomizedResponse(0.75) * 2, count=hs.NegativeBinomialCount(0.25))
    p, q = np.array([9.0, 3.0, 3.0, 1.0]) / 16.0, np.array([1.0, 3.0, 3.0, 9.0]) / 16.0
    for epsilon in (0.5, 2.5, 3.5, 4.5):
        answer = bound(hs.account(tuned).delta(epsilon))
        best = mp.mpf(0)
        for order in itertools.permutations(range(4)):
            one, other = (winner(tuned.count, masses, order) for masses in (p, q))
            best = max(best, mp.fsum(max(a - mp.exp(epsilon) * b, mp.mpf(0)) for a, b in zip(one, other, strict=True)))
        assert answer.lower <= best <= answer.upper


def test_an_output_that_one_dataset_hardly_ever_has_is_worth_what_it_is() -> None:
    """One that is next to sure here has 1.5e-13 there, less than a hundredth of which 1 - 1.5e-13 holds as a float."""
    p, q = (Fraction(891_860, 891_863), Fraction(3, 891_863)), (Fraction(1, 2_550_683), Fraction(2_550_682, 2_550_683))
    count = PoissonCount(2.28e-4)
    curve = hs.account(hs.select_best(hs.DiscretePair(p, q) * 2, count=count), "remove")
    masses = [
        [mp.mpf(a.numerator * b.numerator) / (a.denominator * b.denominator) for a in r for b in r] for r in (p, q)
    ]
    for epsilon in (25.8, 29.5, 29.5028):
        best = mp.mpf(0)
        for order in itertools.permutations(range(4)):
            one, other = (winner(count, row, order) for row in masses)
            gains = (a - mp.exp(mp.mpf(epsilon)) * b for a, b in zip(one, other, strict=True))
            best = max(best, mp.fsum(max(gain, mp.mpf(0)) for gain in gains))
        answer = bound(curve.delta(epsilon))
        assert answer.lower <= best <= answer.upper
        assert answer.lower > 0.99 * best


def test_the_rest_of_outputs_that_nearly_every_run_has_counts_in_many_runs() -> None:
    """An output of 5e-14 here and of 1.1e-12 there: a rounding of one less these is a thousandth of them, seen in a
    million runs."""
    p, q = Fraction(5, 10**14), Fraction(11, 10**13)
    count = NegativeBinomialCount(1e-6, 5.0)
    curve = hs.account(hs.select_best(hs.DiscretePair((1 - p, p), (1 - q, q)), count=count), "remove")
    masses = [[mp.mpf(a.numerator) / a.denominator for a in (1 - r, r)] for r in (p, q)]
    best = mp.mpf(0)
    for order in itertools.permutations(range(2)):
        one, other = (winner(count, row, order) for row in masses)
        best = max(best, mp.fsum(max(a - b, mp.mpf(0)) for a, b in zip(one, other, strict=True)))
    answer = bound(curve.delta(0.0))
    assert 0.99 * best < answer.lower <= best <= answer.upper


def test_the_best_of_runs_of_large_losses_is_answered_without_a_warning() -> None:
    """Their epsilons go up to 600, products of whose exponentials are beyond float64."""
    tuned = hs.select_best(hs.DiscreteLaplace(0.34, sensitivity=2) * 100, count=PoissonCount(3.0))
    answer = bound(hs.account(tuned, "add").epsilon(1e-5))
    assert 500.0 < answer.lower <= answer.upper < answer.lower + 0.1


def gaussian_run() -> OneRun:
    curve = hs.account(hs.Gaussian(1.0)).directed["remove"]
    return OneRun(each(lambda e: bound(curve.delta(e))), lambda d: bound(curve.epsilon(d)))


def test_the_hinges_are_above_every_line_of_the_region_and_the_chords_above_the_curve() -> None:
    """Gaussian noise: U(v) = Phi(Phi^-1(v) + 1), C(a) = a delta(-ln a), both in closed form."""
    from scipy.special import ndtr, ndtri

    one = gaussian_run()
    v = np.random.default_rng(3).random(6000)
    for count in (PoissonCount(10.0), NegativeBinomialCount(0.1)):
        curve = SelectedCurve(one, one, count)
        weights, ends, flat = curve._hinges
        assert flat == 0.0
        first = np.exp(count.log_slope(1.0 - ndtr(ndtri(v) + 1.0)))
        second = np.exp(count.log_slope(1.0 - v))
        for b in (0.0, 0.5, 1.0, 2.0, 5.0, 12.0):
            line = float((first - second * b).max())
            assert line <= float(weights @ np.maximum(ends - b, 0.0))
        for a in np.geomspace(1e-3, 1e3, 400):
            x = -math.log(float(a))
            truth = a * (ndtr(0.5 - x) - math.exp(x) * ndtr(-0.5 - x))
            found = float(curve._above_c(np.array([a]), 0.0)[0])
            assert truth * (1.0 - 1e-12) <= found <= truth * 1.02 + 1e-12


def test_the_lower_side_is_below_the_best_order_of_gaussian_outputs() -> None:
    """Masses of losses above l0 and l in closed form, the best of both by search."""
    from scipy.optimize import minimize
    from scipy.special import ndtr

    one = gaussian_run()
    for count in (PoissonCount(10.0), NegativeBinomialCount(0.1)):
        curve = SelectedCurve(one, one, count)
        for epsilon in (1.0, 3.0, 5.0):

            def gain(at: np.ndarray, count: RunCount = count, epsilon: float = epsilon) -> float:
                start, x = float(at[0]), max(float(at[1]), float(at[0]))
                parts = [(ndtr(s - x), ndtr(start - s)) for s in (0.5, -0.5)]  # the event, and what is better
                first, second = (float(count.chance(np.array(p), np.array(rest))) for p, rest in parts)
                return -(first - math.exp(epsilon) * second)

            starts = sorted(itertools.product((-4.0, 0.0, 1.0), (0.5, 1.0, 2.0, 4.0)), key=gain)[:3]
            options = {"xatol": 1e-8, "fatol": 1e-14}
            found = min(float(minimize(gain, at, method="Nelder-Mead", options=options).fun) for at in starts)
            lower = float(curve.delta(epsilon).lower)
            assert 0.9 * -found <= lower <= -found * (1.0 + 1e-7)  # of the search


CIFAR = hs.Gaussian(1.0).poisson(0.01) * 1000


# delta, and epsilon by dp-accounting 0.6.0: RdpAccountant, RepeatAndSelectDpEvent(run, mean=10, shape=inf)
RENYI = [(1e-5, 4.329497680252047), (1e-7, 5.002174379891901), (1e-9, 5.650298823838799)]


def test_tuning_a_training_run_costs_a_nat_less_than_others_say() -> None:
    tuned = hs.account(hs.select_best(CIFAR, count=hs.PoissonCount(10.0)))
    for delta, renyi in RENYI:
        answer = bound(tuned.epsilon(delta))
        assert float(answer.upper) < renyi - 1.0
        assert answer.upper - answer.lower < 0.08
        assert bound(tuned.delta(answer.upper)).upper <= delta * (1.0 + 1e-9)
    (case,) = [case for case in CASES if case.name == "tuned"]
    answer, middle, radius = bound(tuned.epsilon(case.delta)), case.truth.value, case.truth.radius
    assert middle - radius < answer.lower < answer.upper < middle + radius


def test_tuning_costs_more_with_more_runs_and_never_less_than_one() -> None:
    once = bound(hs.account(CIFAR).epsilon(1e-6))
    uppers = [
        float(bound(hs.account(hs.select_best(CIFAR, count=hs.PoissonCount(mean))).epsilon(1e-6)).upper)
        for mean in (1.0, 3.0, 10.0)
    ]
    assert float(once.lower) < uppers[0] < uppers[1] < uppers[2]


def test_calibration_and_refusals() -> None:
    found = hs.calibrate(
        lambda s: hs.select_best(hs.Gaussian(s), count=hs.NegativeBinomialCount(0.2)),
        epsilon=2.0,
        delta=1e-6,
        adjacency="remove",
        guess=2.9,
        precision=1.0,
    )
    assert bound(found.curve.delta(2.0)).upper <= 1e-6
    base = hs.Gaussian(2.0)
    tuned = hs.select_best(base, count=hs.PoissonCount(3.0))
    with pytest.raises(hs.UnknownPairError, match="certified accountant"):
        hs.account(tuned + base, accountant=hs.accountants.Lattice(0.01)).delta(1.0)
    with pytest.raises(hs.UnknownPairError, match="select once"):
        hs.select_best(tuned * 1, count=hs.PoissonCount(3.0))
    with pytest.raises(TypeError, match="fixed number"):
        hs.select_best(base, count=3)  # type: ignore[arg-type]
    for wrong in (lambda: hs.PoissonCount(0.0), lambda: hs.PoissonCount(1e7), lambda: hs.NegativeBinomialCount(1.0)):
        with pytest.raises(ValueError, match=r"mean|stopping"):
            wrong()
    with pytest.raises(ValueError, match="shape"):
        hs.NegativeBinomialCount(0.5, -1.0)


def random_vectors(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Two laws of so many outputs, multiples of 2^-20, so that sums and fractions of them are exact."""
    rows = [np.floor(row * 2.0**20) / 2.0**20 for row in rng.dirichlet(np.full(size, 2.0), 2)]
    for row in rows:
        row[0] = 1.0 - row[1:].sum()
    return rows[0], rows[1]


def delta_of(laws: list[tuple[list[mpmath.mpf], list[mpmath.mpf]]], epsilon: float) -> mpmath.mpf:
    """delta of independent releases, every outcome of all of them listed."""
    joint = [(mp.mpf(1), mp.mpf(1))]
    for p, q in laws:
        joint = [(a * c, b * d) for a, b in joint for c, d in zip(p, q, strict=True)]
    scale = mp.exp(mp.mpf(epsilon))
    return mp.fsum(max(a - scale * b, mp.mpf(0)) for a, b in joint)


def compositions_hold(mechanisms: int, seed: int) -> None:
    """Random runs of three outputs, tuned twice, and another step: all pairs of orders, and what nobody ranks by."""
    rng = np.random.default_rng(seed)
    for trial in range(mechanisms):
        count = COUNTS[trial % len(COUNTS)]
        p, q = random_vectors(rng, 3)
        other = random_vectors(rng, 2)
        tuned = hs.select_best(hs.DiscretePair(tuple(p), tuple(q)), count=count)
        step = hs.DiscretePair(*(tuple(row) for row in other))
        beside = [[mp.mpf(float(x)) for x in row] for row in other]
        ranked = [(winner(count, p, order), winner(count, q, order)) for order in itertools.permutations(range(3))]
        for row in ranked:  # that nothing is released is an outcome, too
            for side in row:
                side.append(generating(count, mp.mpf(0)))
        for run, number in ((tuned + step, 1), (tuned * 2 + step, 2)):
            chosen = [list(some) for some in itertools.combinations_with_replacement(ranked, number)]
            curve = hs.account(run, "remove")
            for epsilon in (0.3, 1.5):
                truth = max(delta_of([*some, (beside[0], beside[1])], epsilon) for some in chosen)
                answer = bound(curve.delta(epsilon))
                assert answer.lower <= truth <= answer.upper, (trial, number, epsilon)


def test_tuned_runs_compose_with_other_steps_above_all_orders_and_not_above_the_best() -> None:
    compositions_hold(3, seed=13)


@pytest.mark.torture
def test_200_tuned_runs_compose_with_other_steps() -> None:
    compositions_hold(200, seed=14)


def test_tuned_runs_compose_as_narrowly_as_they_are_known() -> None:
    tuned, once = hs.select_best(hs.Gaussian(2.0), count=hs.PoissonCount(3.0)), hs.Gaussian(2.0)
    alone = bound(hs.account(tuned).epsilon(1e-6))
    for run, width in ((tuned + once, 0.07), (tuned * 2, 0.14)):
        answer = bound(hs.account(run).epsilon(1e-6))
        assert float(alone.lower) < float(answer.lower) < float(answer.upper) < float(answer.lower) + width
    assert bound(Certified().directed((tuned + once).pairs("remove")).delta(1.0)).lower == 0.0  # of no one score
    nothing = hs.DiscretePair((0.5, 0.5), (0.5, 0.5))
    assert float(bound(hs.account(tuned + nothing).epsilon(1e-6)).upper) < float(alone.upper) + 2e-3


def test_the_curve_of_one_run_is_asked_in_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[float] = []
    delta = BoundedCurve.delta
    monkeypatch.setattr(BoundedCurve, "delta", lambda self, epsilon: alone.append(epsilon) or delta(self, epsilon))
    tuned = hs.select_best(hs.Gaussian(1.03125).poisson(0.01) * 1000, count=PoissonCount(10.0))
    assert bound(hs.account(tuned).epsilon(1e-5)).lower > 0.0
    assert len(alone) <= 4  # at infinity; of some two thousand


def test_the_winner_of_gaussian_runs_in_one_order_is_below_its_law() -> None:
    """Ranked by loss: the winner's loss exceeds l with probability 1 - f(1 - Phi(1/2 - l)), in closed form."""
    one, count = gaussian_run(), PoissonCount(3.0)
    p, q = SelectedCurve(one, one, count).ranked(1.0)
    assert sum(p) == sum(q) == 1
    order = sorted(range(len(p)), key=lambda k: p[k] / q[k], reverse=True)
    for most in range(1, len(p)):
        # a corner (Q, P) lies below the curve of the events {loss > l}: the one of this P has less Q
        first, second = (sum(row[k] for k in order[:most]) for row in (p, q))
        event = -mp.log(1 - mp.mpf(first.numerator) / first.denominator) / 3
        assert mp.mpf(second.numerator) / second.denominator >= -mp.expm1(-3 * shifted(event))


def test_the_winner_of_an_order_that_begins_inside_is_below_its_law() -> None:
    """Losses above l0 are ranked first to last, the rest above them: each event's chances in closed form."""
    one, mean = gaussian_run(), 3.0
    curve = SelectedCurve(one, one, PoissonCount(mean))
    # of a mass and the rest the smaller one is a bound, the other a rounding off
    exact = [[mp.mpf(x) if x < rest else 1 - mp.mpf(rest) for x, rest in event] for event in curve._tails]
    for p, q in exact:
        assert q >= shifted(p)
    for share in SHARES:
        least, most = min(exact, key=lambda event: abs(event[0] - share)) if share < 1.0 else (mp.mpf(1), mp.mpf(1))
        rows = list(zip(*curve._ordered[share], strict=True))
        assert rows
        for first, second in rows:
            event = -mp.log(1 - mp.mpf(first) * mp.exp(mean * (1 - least))) / mean  # whose winner has this under P
            assert mp.mpf(second) >= -mp.exp(-mean * (1 - most)) * mp.expm1(-mean * shifted(event))


def shifted(p: mpmath.mpf) -> mpmath.mpf:
    """The mass under Q of the losses that have mass p under P."""
    with ctx.workdps(mp.dps):
        return mp.mpf(normal_below(arb(2).sqrt() * (2 * arb(p) - 1).erfinv() - 1))


def test_more_runs_than_float64_can_tell_apart_widen_the_upper_side_in_words() -> None:
    """Whichever output ranks first comes up but for a chance of e^-4000, whatever the dataset: delta is below that."""
    curve = hs.account(hs.select_best(hs.RandomizedResponse(0.98), count=hs.PoissonCount(2e5)), "remove")
    for answer in (bound(curve.delta(0.3)), bound(curve.delta(300.0)), bound(curve.epsilon(1e-3))):
        assert answer.lower == 0.0
        assert "state fewer runs" in " ".join(answer.notes)


@pytest.mark.parametrize(("share", "epsilon"), [(1e-60, 600.0), (1e-100, 500.0), (1e-200, 300.0), (1e-200, math.inf)])
def test_a_tiny_mass_at_infinite_loss_is_left_at_every_epsilon(share: float, epsilon: float) -> None:
    """C(e^-eps) of one run is below float64 there: five runs on average meet the mass five times as often."""
    curve = hs.account(hs.select_best(hs.ApproximateDP(1.0, share), count=PoissonCount(5.0)))
    answer = bound(curve.delta(epsilon))
    assert answer.lower <= 5.0 * share * (1.0 - 1e-15) <= answer.upper <= 5.0 * share * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("noise", "mean", "epsilon"),
    [(0.05, 1e-200, 300.0), (0.05, 1e-300, 300.0), (0.05, 1e-320, 300.0), (3.0, 1e-320, 1.0), (3.0, 1e-310, 1.0)],
)
def test_runs_next_to_never_made_are_bounded_by_how_often_they_are(noise: float, mean: float, epsilon: float) -> None:
    """More than one run is made with a chance of mean^2: delta is mean times that of one run."""
    one = bound(hs.account(hs.Gaussian(noise)).delta(epsilon))
    answer = bound(hs.account(hs.select_best(hs.Gaussian(noise), count=PoissonCount(mean))).delta(epsilon))
    assert Fraction(float(answer.lower)) <= Fraction(mean) * Fraction(float(one.upper))
    assert Fraction(mean) * Fraction(float(one.lower)) * (1 - Fraction(1, 10**12)) <= Fraction(float(answer.upper))


@pytest.mark.parametrize("epsilon", [1.0, 100.0, 200.0, 300.0, 450.0])
def test_winners_of_thousands_of_runs_hold_where_their_chances_have_no_float(epsilon: float) -> None:
    p, q = (0.5, 0.3, 0.2), (0.3, 0.3, 0.4)
    run = hs.select_best(hs.DiscretePair(p, q), count=PoissonCount(3000.0))
    with mp.workdps(60):
        masses = [[mp.mpf(mass) / mp.fsum(map(mp.mpf, every)) for mass in every] for every in (p, q)]
        truth = mp.zero
        for order in itertools.permutations(range(3)):
            chances = []
            for each_mass in masses:
                below = [mp.fsum(each_mass[i] for i in order[:rank]) for rank in range(4)]
                at = [mp.exp(3000 * (share - 1)) for share in below]
                chances.append([b - a for a, b in itertools.pairwise(at)])
            gaps = (first - mp.exp(epsilon) * second for first, second in zip(*chances, strict=True))
            truth = max(truth, mp.fsum(max(gap, mp.zero) for gap in gaps))
        answer = bound(hs.account(run, "remove").delta(epsilon))
        assert answer.lower <= truth <= answer.upper


def test_the_lines_of_a_hull_are_the_same_at_any_scale() -> None:
    slopes = np.geomspace(1e-60, 1.0, 50)
    heights = slopes * np.linspace(9.0, 1.0, 50) + 1e-70
    found = _hull(heights, slopes)
    assert found.size > 10
    assert found.tolist() == _hull(2.0**-700 * heights, 2.0**-700 * slopes).tolist()
