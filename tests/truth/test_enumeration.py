"""Few outcomes, listed one by one: brackets of rounding only, beside atoms and at the largest loss too."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.engines.choose import FEW_OUTCOMES
from hockeystick.engines.ends import composed_infinity
from hockeystick.engines.enumeration.curve import EnumeratedCurve, _Sum
from hockeystick.engines.enumeration.excess import Excess, Listed
from hockeystick.engines.enumeration.heaviest import HeaviestOutcomes, TooManyOutcomesError
from hockeystick.engines.enumeration.outcomes import (
    Omission,
    Outcomes,
    Parts,
    log_weights,
    number_of_outcomes,
    outcomes_of_all,
)
from hockeystick.engines.enumeration.sides import OutcomeSides
from hockeystick.exact import exact_delta
from hockeystick.laws import DiscreteGaussianPair
from hockeystick.numerics.columns import Array
from tests.outcomes import DIGITS, ListedCurve

Atoms = list[tuple[mpf, mpf]]  # masses under P and Q
TRUTH_DIGITS = 80


def randomised_response(p: float) -> Atoms:
    return [(mpf(p), 1 - mpf(p)), (1 - mpf(p), mpf(p))]


def approximate_dp(epsilon: float, delta: float) -> Atoms:
    high = (1 - mpf(delta)) / (1 + mp.exp(-mpf(epsilon)))
    low = (1 - mpf(delta)) / (1 + mp.exp(mpf(epsilon)))
    return [(mpf(delta), mpf(0)), (high, low), (low, high), (mpf(0), mpf(delta))]


def discrete_laplace(scale: float, sensitivity: int) -> Atoms:
    r = mp.exp(-1 / mpf(scale))
    inside = [(1 - r) / (1 + r) * r**x for x in range(1, sensitivity)]
    q = [1 / (1 + r), *inside, r**sensitivity / (1 + r)]
    return list(zip(reversed(q), q, strict=True))


def binomial(trials: int, probability: float, sensitivity: int) -> Atoms:
    p = mpf(probability)

    def mass(x: int) -> mpf:
        return mp.binomial(trials, x) * p**x * (1 - p) ** (trials - x) if 0 <= x <= trials else mpf(0)

    return [(mass(x - sensitivity), mass(x)) for x in range(trials + sensitivity + 1)]


def sampled(atoms: Atoms, rate: float) -> Atoms:
    g = mpf(rate)
    return [((1 - g) * q + g * p, q) for p, q in atoms]


def composed(parts: list[tuple[Atoms, int]]) -> Atoms:
    total: Atoms = [(mpf(1), mpf(1))]
    for atoms, count in parts:
        own: dict[tuple[int, ...], tuple[mpf, mpf]] = {}
        for shares in itertools.product(range(count + 1), repeat=len(atoms)):
            if sum(shares) == count:
                orders = mpf(math.factorial(count)) / mp.fprod(mpf(math.factorial(k)) for k in shares)
                p = orders * mp.fprod(a**k for (a, _), k in zip(atoms, shares, strict=True))
                q = orders * mp.fprod(b**k for (_, b), k in zip(atoms, shares, strict=True))
                own[shares] = p, q
        total = [(p * a, q * b) for p, q in total for a, b in own.values()]
    return total


def delta_of(outcomes: Atoms, epsilon: float) -> mpf:
    scale = mp.exp(mpf(epsilon))
    return mp.fsum(max(p - scale * q, mpf(0)) for p, q in outcomes)


def listed(outcomes: Atoms) -> ListedCurve:
    """The same outcomes, their masses added up once for all questions."""
    with ctx.workdps(DIGITS):
        return ListedCurve([(arb(p), arb(q)) for p, q in outcomes])


@functools.cache
def many_answers(share: float, steps: int) -> ListedCurve:
    """Of randomised response with two categories, by how many answers are false."""
    with mpmath.workdps(TRUTH_DIGITS):
        true, false = ([mpf(one) ** k for k in range(steps + 1)] for one in (share, 1 - mpf(share)))
        ways, outcomes = 1, []
        for k in range(steps + 1):
            outcomes.append((ways * true[steps - k] * false[k], ways * true[k] * false[steps - k]))
            ways = ways * (steps - k) // (k + 1)
        return listed(outcomes)


with mpmath.workdps(TRUTH_DIGITS):
    RUNS = {
        "randomised response": (hs.RandomizedResponse(0.7821) * 11, [(randomised_response(0.7821), 11)]),
        "approximate": (hs.ApproximateDP(0.3, 1e-9) * 6, [(approximate_dp(0.3, 1e-9), 6)]),
        "sampled approximate": (
            hs.ApproximateDP(0.7, 1e-12).poisson(0.01) * 5,
            [(sampled(approximate_dp(0.7, 1e-12), 0.01), 5)],
        ),
        "sampled discrete Laplace": (
            hs.DiscreteLaplace(1.5, sensitivity=3).poisson(0.9) * 4,
            [(sampled(discrete_laplace(1.5, 3), 0.9), 4)],
        ),
        "binomial": (hs.Binomial(6, 0.3, sensitivity=2) * 2, [(binomial(6, 0.3, 2), 2)]),
        "several": (
            hs.RandomizedResponse(0.9) * 3
            + hs.DiscreteLaplace(2.0) * 3
            + hs.ApproximateDP(40.0, 1e-30).poisson(1e-14) * 2,
            [
                (randomised_response(0.9), 3),
                (discrete_laplace(2.0, 1), 3),
                (sampled(approximate_dp(40.0, 1e-30), 1e-14), 2),
            ],
        ),
    }
    OUTCOMES = {name: composed(parts) for name, (_, parts) in RUNS.items()}


@functools.cache
def truth_of(name: str, direction: str) -> ListedCurve:
    return listed([(q, p) for p, q in OUTCOMES[name]] if direction == "add" else OUTCOMES[name])


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", RUNS)
def test_every_question_is_answered_to_rounding(name: str, direction: str) -> None:
    run, outcomes = RUNS[name][0], OUTCOMES[name]
    if direction == "add":
        outcomes = [(q, p) for p, q in outcomes]
    curve, delta_at = hs.account(run, direction), truth_of(name, direction).delta
    with mpmath.workdps(TRUTH_DIGITS):
        finite = [(p, mp.log(p / q)) for p, q in outcomes if p > 0 and q > 0]
        losses = sorted(float(loss) for _, loss in finite)
        beside = [x for loss in losses[:: max(len(losses) // 12, 1)] for x in (loss, loss * (1 - 1e-9)) if x >= 0.0]
        for epsilon in [0.0, 0.1, 1.0, *beside, losses[-1] * (1 - 1e-12)]:
            found, exact = curve.delta(epsilon), delta_at(epsilon)
            assert isinstance(found, Bound)
            assert found.method in {"enumeration", "trivial"}
            assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
            # an atom at epsilon adds its mass times the rounding of its loss
            beside_it = mp.fsum(p for p, loss in finite if abs(loss - epsilon) < 1e-4)
            assert mpf(float(found.width)) <= mpf(1e-9) * exact + mpf(1e-12) * beside_it
        at_infinity = mp.fsum(p for p, q in outcomes if q == 0)
        for delta in (0.3, 1e-3, 1e-6, 1e-9, 1e-15, 1e-30, 1e-100):
            if mpf(delta) <= at_infinity * (1 + mpf(1e-9)) or mpf(delta) >= delta_at(0.0):
                continue
            answer = curve.epsilon(delta)
            assert isinstance(answer, Bound)
            assert delta_at(float(answer.lower)) >= mpf(delta) or answer.lower == 0.0
            assert delta_at(float(answer.upper)) <= mpf(delta)
            assert float(answer.width) <= 1e-9 * max(1.0, float(answer.upper))


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", RUNS)
def test_two_halves_of_the_steps_tell_as_much(name: str, direction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[EnumeratedCurve.__module__], "_FEW", 0)
    parts, outcomes = RUNS[name][0].pairs(direction), OUTCOMES[name]  # type: ignore[arg-type]
    if direction == "add":
        outcomes = [(q, p) for p, q in outcomes]
    curve, delta_at = EnumeratedCurve(parts, composed_infinity(parts)), truth_of(name, direction).delta
    with mpmath.workdps(TRUTH_DIGITS):
        finite = [(p, mp.log(p / q)) for p, q in outcomes if p > 0 and q > 0]
        losses = sorted(float(loss) for _, loss in finite)
        between = [0.5 * (a + b) for a, b in itertools.pairwise(losses[:: max(len(losses) // 12, 1)]) if a + b >= 0.0]
        for epsilon in [0.0, 0.1, 1.0, *losses[-3:], *between, losses[-1] * (1 - 1e-9)]:
            found, exact = curve.delta(epsilon), delta_at(epsilon)
            assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
            beside_it = mp.fsum(p for p, loss in finite if abs(loss - epsilon) < 1e-4)
            # where nothing is left, the upper side is the smallest number
            assert mpf(float(found.width)) <= mpf(1e-9) * exact + mpf(1e-12) * beside_it + mpf(2) ** -1074
        for share in (0.7, 1e-2, 1e-6):
            delta = float(share * delta_at(0.0) + (1 - share) * mp.fsum(p for p, q in outcomes if q == 0))
            answer = curve.epsilon(delta)
            assert delta_at(float(answer.lower)) >= mpf(delta)
            assert delta_at(float(answer.upper)) <= mpf(delta)
            assert float(answer.width) <= 1e-9 * max(1.0, float(answer.upper))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("sums", ["cumulated", "of terms"])
def test_sums_as_wrong_as_their_errors_keep_the_bracket_true(
    sums: str, sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves, lists, bound = sys.modules[EnumeratedCurve.__module__], sys.modules[Excess.__module__], 1e-3
    monkeypatch.setattr(curves, "_FEW", 0)
    if sums == "cumulated":
        cumulated = lists._cumulated
        monkeypatch.setattr(lists, "gamma", lambda _: bound)
        monkeypatch.setattr(lists, "_cumulated", lambda terms: cumulated(terms) * (1.0 + 0.999 * sign * bound))
    else:
        added = lists.sum_of
        monkeypatch.setattr(curves, "sum_error", lambda _: bound)
        monkeypatch.setattr(curves, "sum_of", lambda terms: added(terms) * (1.0 + 0.999 * sign * bound))
    run, outcomes = RUNS["randomised response"]
    curve = EnumeratedCurve(run.pairs("remove"), (0.0, 0.0))
    truth = composed(outcomes)
    for epsilon in (0.0, 0.5, 3.0, 9.0, 14.0):
        found = curve.delta(epsilon)
        with mpmath.workdps(TRUTH_DIGITS):
            assert mpf(float(found.lower)) <= delta_of(truth, epsilon) <= mpf(float(found.upper))


@pytest.mark.parametrize("epsilon", [2600.0, 2680.0, 2684.3, 2690.0, 2800.0])
def test_lists_wider_than_exponentials_carry_over_what_is_above(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """6,000 answers in two halves: losses from -2542 to 2542 nats each, 1.7 apart."""
    monkeypatch.setattr(sys.modules[EnumeratedCurve.__module__], "_FEW", 0)
    share, steps = 0.7, 6000
    curve = EnumeratedCurve((hs.RandomizedResponse(share) * steps).pairs("remove"), (0.0, 0.0))
    with mpmath.workdps(TRUTH_DIGITS):
        found, exact = curve.delta(epsilon), many_answers(share, steps).delta(epsilon)
        assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
        assert float(found.width) <= 1e-7 * float(exact)


def test_what_is_carried_over_is_as_wrong_as_each_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest mass lies at the end of the first 600 nats, and is in the sums of the third."""
    lists, bound = sys.modules[Excess.__module__], 1e-3
    cumulated = lists._cumulated
    monkeypatch.setattr(lists, "gamma", lambda _: bound)
    monkeypatch.setattr(lists, "_cumulated", lambda terms: cumulated(terms) * (1.0 + 0.999 * bound))
    none = np.zeros(4)
    loss, mass = np.array([-1200.6, -600.5, -599.0, 0.0]), np.array([1e-295, 1e-290, 0.9, 1e-3])
    found = Excess.of(Listed(loss, none, mass, none))
    for place, at in enumerate(loss[::-1].tolist()):
        above = zip(mass.tolist(), loss.tolist(), strict=True)
        exact = math.fsum(m * math.exp(at - own) for m, own in above if own >= at)
        assert abs(found.weight[place] - exact) <= found.error * exact
    assert found.weight[-1] >= exact * (1.0 + 2.9 * bound)


def test_noise_far_apart_in_few_steps_is_answered_to_rounding() -> None:
    curve = hs.account(hs.DiscreteGaussian(0.02).poisson(0.1) * 3)
    for epsilon in (0.0, 1.0, 700.0, 2000.0):
        found = curve.delta(epsilon)
        assert isinstance(found, Bound)
        assert float(found.width) <= 1e-10 * float(found.upper)


def test_places_are_those_of_a_search_where_interpolation_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = Listed.of(outcomes_of_all((hs.RandomizedResponse(0.6) * 40).pairs("remove")))
    second = Excess.of(listed)
    near = [np.nextafter(second.negative, side) for side in (-np.inf, np.inf)]
    asked = np.sort(np.concatenate((second.negative, *near, second.negative + 1e-3, [-1e3, 1e3])))
    true = np.maximum(np.searchsorted(second.negative, asked, side="right") - 1, 0)
    assert (second.places(asked) == true).all()
    for wrong in (0.0, second.ranks[-1]):
        monkeypatch.setattr(np, "interp", lambda x, *_, wrong=wrong: np.full_like(x, wrong))
        assert (second.places(asked) == true).all()


def delta_by_fractions(pair: hs.DiscretePair, steps: int, ratio: Fraction) -> Fraction:
    """delta at ``ln ratio``, exactly: three atoms, shared in every way."""
    whole = math.lcm(*(Fraction(mass).denominator for masses in (pair.p, pair.q) for mass in masses))
    p, q = ([int(Fraction(mass) * whole) for mass in masses] for masses in (pair.p, pair.q))
    powers = [[[mass**k for k in range(steps + 1)] for mass in side] for side in (p, q)]
    up, down, total = ratio.numerator, ratio.denominator, 0
    for i in range(steps + 1):
        for j in range(steps - i + 1):
            ways = math.comb(steps, i) * math.comb(steps - i, j)
            first, second = (side[0][i] * side[1][j] * side[2][steps - i - j] for side in powers)
            total += ways * max(down * first - up * second, 0)
    return Fraction(total, down * whole**steps)


def test_many_steps_of_few_atoms_are_answered_exactly() -> None:
    pair = hs.DiscretePair((0.5, 0.3125, 0.1875), (0.3125, 0.25, 0.4375))
    parts = (pair * 190).pairs("remove")
    assert not EnumeratedCurve.serves(parts, 1 << 14)
    curve = EnumeratedCurve(parts, (0.0, 0.0))
    for ratio in (Fraction(1), Fraction(2**60), Fraction(2**120)):
        exact, found = delta_by_fractions(pair, 190, ratio), curve.delta(math.log(ratio))
        slack = Fraction(1, 10**12)  # the logarithm is rounded
        assert Fraction(float(found.lower)) * (1 - slack) <= exact <= Fraction(float(found.upper)) * (1 + slack)
        assert float(found.width) <= 1e-10 * float(found.lower)


@pytest.mark.parametrize("run", [hs.Binomial(100) * 5, hs.Binomial(20) * 10, hs.Binomial(100).poisson(0.1) * 3])
def test_few_steps_of_many_atoms_are_listed_in_halves(run: hs.Composition) -> None:
    found = hs.account(run, "remove").delta(0.3)
    assert isinstance(found, Bound)
    assert found.method == "enumeration"
    assert float(found.width) <= 1e-9 * float(found.lower)


def test_masses_and_losses_are_within_their_errors() -> None:
    pair = hs.DiscretePair(
        (Fraction(1, 7), Fraction(2, 7), Fraction(4, 7)), (Fraction(3, 5), Fraction(1, 5), Fraction(1, 5))
    )
    parts = (pair * 9).pairs("remove")
    assert number_of_outcomes(parts, 100) == math.comb(11, 2)
    assert number_of_outcomes(parts, 50) is None
    found = outcomes_of_all(parts)
    with mpmath.workdps(50):
        exact = {}
        for a in range(10):
            for b in range(10 - a):
                shares = (a, b, 9 - a - b)
                orders = math.factorial(9) // math.prod(math.factorial(k) for k in shares)
                p = orders * math.prod(Fraction(n, 7) ** k for n, k in zip((1, 2, 4), shares, strict=True))
                q = orders * math.prod(Fraction(n, 5) ** k for n, k in zip((3, 1, 1), shares, strict=True))
                exact[shares] = (
                    mp.log(mpf(p.numerator) / p.denominator),
                    mp.log(mpf((p / q).numerator) / (p / q).denominator),
                )
        for log_p, error, loss, loss_error in zip(found.log_p, found.error, found.loss, found.loss_error, strict=True):
            best = min(exact.values(), key=lambda pair: abs(pair[1] - float(loss)) + abs(pair[0] - float(log_p)))
            assert abs(best[0] - mpf(float(log_p))) <= mpf(float(error))
            assert abs(best[1] - mpf(float(loss))) <= mpf(float(loss_error))
        assert max(found.error) <= 2e-13


def test_compositions_of_many_outcomes_are_not_enumerated() -> None:
    few, many = (hs.RandomizedResponse(0.6) * n for n in (8_000, 9_000))
    assert EnumeratedCurve.serves(few.pairs("remove"), FEW_OUTCOMES)
    assert not EnumeratedCurve.serves(many.pairs("remove"), FEW_OUTCOMES)
    assert not EnumeratedCurve.serves((few + hs.Gaussian(1.0)).pairs("remove"), FEW_OUTCOMES)
    lower, upper = (np.asarray(hs.account(run, "remove").epsilon(1e-9).upper) for run in (few, many))
    assert float(lower) < float(upper)


def test_errors_add_up_over_parts_and_steps() -> None:
    """Every mass and loss of two parts is as doubtful as both of its own together."""
    doubtful = [
        Outcomes(*(np.array(column) for column in ([0.5, -0.5], loss_error, [-0.5, -1.0], error)))
        for loss_error, error in (([0.01, 0.02], [0.1, 0.2]), ([0.03, 0.05], [0.3, 0.5]))
    ]
    both = doubtful[0].beside(doubtful[1])
    assert (both.error >= np.array([0.4, 0.6, 0.5, 0.7]) - 1e-15).all()
    assert (both.loss_error >= np.array([0.04, 0.06, 0.05, 0.07]) - 1e-15).all()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("field", ["log_p", "loss"])
@pytest.mark.parametrize("few", [1 << 14, 0])  # above them, in halves, both of them wrong
def test_outcomes_as_wrong_as_their_errors_keep_the_bracket_true(
    few: int, field: str, sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, error = hs.RandomizedResponse(0.75) * 3, 0.01

    def wrong(parts: Parts) -> Outcomes:
        true = outcomes_of_all(parts)
        return Outcomes(
            true.loss + sign * 0.999 * error * (field == "loss"),
            true.loss_error + error * (field == "loss"),
            true.log_p + sign * 0.999 * error * (field == "log_p"),
            true.error + error * (field == "log_p"),
        )

    module = sys.modules[EnumeratedCurve.__module__]
    monkeypatch.setattr(module, "_FEW", few)
    monkeypatch.setattr(module, "outcomes_of_all", lambda own, _: wrong(own) if own else outcomes_of_all(()))
    curve, truth = EnumeratedCurve(run.pairs("remove"), (0.0, 0.0)), composed([(randomised_response(0.75), 3)])
    for epsilon in (0.0, 0.5, 1.08, 1.09, 1.1, 1.105, 2.0, 3.28, 3.29, 3.3):
        bound = curve.delta(epsilon)
        with mpmath.workdps(TRUTH_DIGITS):
            assert mpf(float(bound.lower)) <= delta_of(truth, epsilon) <= mpf(float(bound.upper))


def test_losses_known_in_part_only_move_the_lower_side_by_what_they_may_be_off() -> None:
    """One loss among exact ones is known to 0.8 nats: both of its ends, summed exactly, lie in the bracket."""
    one = np.zeros(1)
    first = Listed.of(Outcomes(one, one, one, one))
    loss, error, mass = np.array([0.6, 0.9]), np.array([0.4, 0.0]), np.array([1e-3, 0.999])
    second = Excess.of(Listed.of(Outcomes(loss, error, np.log(mass), np.zeros(2))))
    for epsilon in (-0.5, 0.0, 0.1, 0.6, 0.95):
        found = _Sum.of(first, second, epsilon)
        for end in (loss - error, loss, loss + error):
            truth = float(mass @ -np.expm1(np.minimum(epsilon - end, 0.0)))
            assert found.lower <= truth <= found.upper


def discrete_gaussian(sigma: float, rate: float) -> Atoms:
    """Noise against itself moved by one, sampled: all integers of a mass above 1e-120."""
    s, g = mpf(sigma), mpf(rate)
    masses = {x: mp.exp(-x * x / (2 * s * s)) for x in range(-math.ceil(24 * sigma), math.ceil(24 * sigma) + 1)}
    total = mp.fsum(masses.values())
    at = {x: masses.get(x, mpf(0)) / total for x in range(min(masses), max(masses) + 2)}
    return [((1 - g) * at[x] + g * at.get(x - 1, mpf(0)), at[x]) for x in at]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("sigma", "rate"), [(2.0, 0.01), (0.9, 0.3), (1.5, 1.0)])
def test_of_atoms_without_end_those_that_matter_are_listed(sigma: float, rate: float, direction: str) -> None:
    run = (hs.DiscreteGaussian(sigma).poisson(rate) if rate < 1.0 else hs.DiscreteGaussian(sigma)) * 2
    curve = hs.account(run, direction)
    with mpmath.workdps(TRUTH_DIGITS):
        one = discrete_gaussian(sigma, rate)
        one = [(q, p) for p, q in one] if direction == "add" else one
        outcomes = [(p * a, q * b) for (p, q), (a, b) in itertools.combinations_with_replacement(one, 2)]
        twice = [(1 if x is y else 2) for x, y in itertools.combinations_with_replacement(one, 2)]
        truth = listed([(n * p, n * q) for n, (p, q) in zip(twice, outcomes, strict=True)])
        for epsilon in (0.0, 0.003, 0.1, 1.0):
            found, exact = curve.delta(epsilon), truth.delta(epsilon)
            assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
            if exact > mpf(1e-60):
                assert isinstance(found, Bound)
                assert found.method == "enumeration"
                assert mpf(float(found.width)) <= mpf(1e-9) * exact
        for delta in (1e-3, 1e-8, 1e-15):
            if mpf(delta) < truth.delta(0.0):
                answer = curve.epsilon(delta)
                assert truth.delta(float(answer.lower)) >= mpf(delta)
                assert truth.delta(float(answer.upper)) <= mpf(delta)
                assert float(answer.width) <= 1e-9


@pytest.mark.parametrize("log_drop", [-2.0, -6.0, -30.0])
def test_what_is_left_out_is_in_the_upper_side(log_drop: float) -> None:
    for run, atoms in (
        (hs.DiscreteGaussian(1.5).poisson(0.3), lambda: discrete_gaussian(1.5, 0.3)),
        (hs.Binomial(30, 0.4), lambda: binomial(30, 0.4, 1)),
    ):
        pair = run.pair("remove")
        curve = EnumeratedCurve(((pair, 1),), composed_infinity(((pair, 1),)), Omission(log_drop))
        with mpmath.workdps(TRUTH_DIGITS):
            outcomes = atoms()
            assert 0.0 < curve.left_out(0.0) <= 2.1 * math.exp(log_drop)
            for epsilon in (0.0, 0.2, 0.5, 0.8, 1.2):
                found, exact = curve.delta(epsilon), delta_of(outcomes, epsilon)
                assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))


def test_each_step_may_leave_out_as_much() -> None:
    """The outcome of a large loss is so rare that it is left out of every step."""
    pair = hs.DiscretePair((0.6, 0.39, 0.01), (0.39, 0.6099, 0.0001))
    parts = (pair * 8).pairs("remove")
    curve = EnumeratedCurve(parts, (0.0, 0.0), Omission(math.log(0.06)))
    true = EnumeratedCurve(parts, (0.0, 0.0))
    assert 1.0 - 0.99**8 <= curve.left_out(0.0) <= 0.081
    for epsilon in (0.0, 1.0, 3.0, 4.0):
        assert float(curve.delta(epsilon).lower) <= float(true.delta(epsilon).lower)
        assert float(true.delta(epsilon).upper) <= float(curve.delta(epsilon).upper)


LIGHT = (
    (hs.DiscretePair((0.5, 0.2, 0.2, 0.1), (0.1, 0.4, 0.2, 0.3)), 5),
    (hs.DiscretePair((0.7, 0.25, 0.05), (0.3, 0.3, 0.4)), 3),
)


@pytest.mark.parametrize("log_least", [-1.5, -4.0, -8.0])
@pytest.mark.parametrize("theta", [0.0, 0.75, 4.0])
def test_outcomes_that_are_not_listed_weigh_what_is_said(theta: float, log_least: float) -> None:
    parts = [(pair.pair("remove"), count) for pair, count in LIGHT]
    found = outcomes_of_all(parts, Omission(theta=theta, log_least=log_least))
    with mpmath.workdps(TRUTH_DIGITS):
        whole = mpf(1)
        for pair, count in parts:
            atoms = pair.atoms
            assert atoms is not None
            weights = (mp.exp(mpf(p) + mpf(theta) * mpf(x)) for p, x in zip(atoms.log_p, atoms.loss, strict=True))
            whole *= mp.fsum(weights) ** count
        listed = mp.fsum(mp.exp(mpf(p) + mpf(theta) * mpf(x)) for p, x in zip(found.log_p, found.loss, strict=True))
        omitted = whole - listed
        assert 0 < omitted <= mp.exp(mpf(found.log_omitted)) <= omitted * mpf(1.3)  # what both parts lack counts twice
        assert whole <= mp.exp(mpf(found.log_weight)) <= whole * (1 + mpf(1e-6))
    assert found.loss.size < outcomes_of_all(parts).loss.size
    assert (log_weights(found, theta) >= log_least + found.log_weight).all()


@pytest.mark.parametrize("log_least", [-3.0, -7.0, -14.0])
@pytest.mark.parametrize("theta", [0.0, 0.5, 8.0])
@pytest.mark.parametrize("name", ["several", "sampled discrete Laplace", "sampled approximate"])
def test_whatever_outcomes_are_left_out_the_bracket_holds_the_truth(name: str, theta: float, log_least: float) -> None:
    omitted = Omission(theta=theta, log_least=log_least)
    for direction in ("remove", "add"):
        parts, truth = RUNS[name][0].pairs(direction), truth_of(name, direction)
        curve, whole = EnumeratedCurve(parts, composed_infinity(parts), omitted), EnumeratedCurve(parts, (0.0, 0.0))
        with mpmath.workdps(TRUTH_DIGITS):
            for epsilon in (0.0, 0.2, 0.7, 1.1, 2.5):
                found, exact = curve.delta(epsilon), truth.delta(epsilon)
                assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
                assert float(found.width) <= curve.left_out(epsilon) * (1.0 + 1e-9) + 1e-9 * float(found.upper)
                assert float(found.lower) <= float(whole.delta(epsilon).upper) + composed_infinity(parts)[1]


def delta_of_all_ways(atoms: Atoms, steps: int, epsilon: float) -> mpf:
    """The same of steps of one kind, whose outcomes are not kept."""
    ratio = mp.exp(mpf(epsilon))

    def over(first: int, left: int, p: mpf, q: mpf) -> mpf:
        if first == len(atoms) - 1 or left == 0:
            p, q = p * atoms[first][0] ** left, q * atoms[first][1] ** left
            return max(p - ratio * q, mpf(0)) / math.factorial(left)
        total, (a, b) = mpf(0), atoms[first]
        for taken in range(left + 1):
            total += over(first + 1, left - taken, p, q)
            p, q = p * a / (taken + 1), q * b / (taken + 1)
        return total

    return over(0, steps, mpf(1), mpf(1)) * math.factorial(steps)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"),
    [
        (0.4, 0.3, 5),
        (0.9, 0.1, 3),
        pytest.param(0.5, 0.02, 7, marks=pytest.mark.torture),
        pytest.param(1.5, 0.2, 4, marks=pytest.mark.torture),
    ],
)
def test_few_steps_of_sampled_noise_are_as_narrow_as_rounding(sigma: float, rate: float, steps: int) -> None:
    run = hs.DiscreteGaussian(sigma).poisson(rate) * steps
    with mpmath.workdps(40):
        every = discrete_gaussian(sigma, rate)
        atoms = [(p, q) for p, q in every if p > mpf(10) ** -24]
        rest = steps * mp.fsum(max(p, q) for p, q in every if p <= mpf(10) ** -24)  # which the truth lacks
        for direction in ("remove", "add"):
            own = atoms if direction == "remove" else [(q, p) for p, q in atoms]
            found, exact = hs.account(run, direction).delta(0.3), delta_of_all_ways(own, steps, 0.3)
            assert mpf(float(found.lower)) <= exact + rest
            assert exact <= mpf(float(found.upper))
            assert float(found.width) <= 1e-9 * float(found.lower)


@pytest.mark.parametrize(
    "run",
    [
        hs.DiscreteGaussian(2.0).poisson(0.1) * 7,
        hs.DiscreteGaussian(5.0).poisson(0.5) * 6,
        hs.DiscreteGaussian(15.0).poisson(0.01) * 3,
        hs.DiscreteGaussian(1.0).poisson(0.1) * 5 + hs.Binomial(40) * 2,
        hs.Binomial(1000) * 2,
        hs.DiscreteGaussian(0.5).poisson(0.01) * 30,
        hs.DiscreteGaussian(0.5) * 10 + hs.RandomizedResponse(0.9) * 10,
    ],
)
def test_few_steps_of_many_atoms_are_listed(run: hs.Composition) -> None:
    curve = hs.account(run, "remove")
    for delta in (1e-4, 1e-11):
        epsilon = curve.epsilon(delta)
        found = curve.delta(float(epsilon.upper))
        assert isinstance(found, Bound)
        assert found.method == "enumeration"
        assert float(found.width) <= 1e-9 * float(found.lower)
        assert float(found.lower) <= delta * (1.0 + 1e-9)
        assert float(curve.delta(float(epsilon.lower)).upper) >= delta * (1.0 - 1e-9)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("log_drop", [1.0, -3.0, -60.0])
def test_the_table_of_discrete_gaussian_noise_states_what_it_lacks(sigma: float, log_drop: float) -> None:
    for sensitivity in (1, 3):
        table = DiscreteGaussianPair(sigma, sensitivity).atoms_but(log_drop)
        assert table is not None
        with mpmath.workdps(TRUTH_DIGITS):
            s = mpf(sigma)
            total = mp.fsum(mp.exp(-(mpf(x) ** 2) / (2 * s * s)) for x in range(-200, 201))
            first = (table.size - sensitivity - 1) // 2
            for moved, logs in ((sensitivity, table.log_p), (0, table.log_q)):
                masses = [mp.exp(-(mpf(x - first - moved) ** 2) / (2 * s * s)) / total for x in range(table.size)]
                assert 0 < 1 - mp.fsum(masses) <= mpf(table.dropped)
                for mass, log, error in zip(masses, logs, table.error, strict=True):
                    assert abs(mp.log(mass) - mpf(float(log))) <= mpf(float(error))
            for x, (loss, error) in enumerate(zip(table.loss, table.loss_error, strict=True)):
                exact = mpf(sensitivity) * (2 * (x - first) - sensitivity) / (2 * s * s)
                assert abs(exact - mpf(float(loss))) <= mpf(float(error))


def test_a_question_gets_the_same_answer_whatever_lists_were_made_before() -> None:
    run = hs.DiscreteGaussian(2.0).poisson(0.05) * 3
    deltas = [1e-3, 1e-12, 1e-7, 1e-3, 1e-20]
    curve = hs.account(run, "remove")
    for delta in deltas:
        assert curve.epsilon(delta).sides == hs.account(run, "remove").epsilon(delta).sides
    together = curve.epsilon(np.array(deltas))
    assert [float(x) for x in together.upper] == [float(curve.epsilon(delta).upper) for delta in deltas]


def test_lists_that_would_be_too_long_are_refused() -> None:
    parts = (hs.DiscreteGaussian(2.0).poisson(0.1) * 10).pairs("remove")
    few = HeaviestOutcomes(parts, (0.0, 0.0), 1 << 10)
    with pytest.raises(TooManyOutcomesError, match="matter"):
        few.epsilon(1e-5)
    with pytest.raises(TooManyOutcomesError):
        few.delta(0.1)
    narrow = HeaviestOutcomes((hs.DiscreteGaussian(2.0).poisson(0.1) * 2).pairs("remove"), (0.0, 0.0), 1 << 13)
    with pytest.raises(TooManyOutcomesError):
        narrow.delta(60.0)
    assert narrow.delta(0.3).certified


@pytest.mark.parametrize("run", [hs.RandomizedResponse(0.7) * 20, hs.DiscreteLaplace(2.0) * 8, hs.Binomial(90)])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
def test_epsilons_of_one_list_take_few_passes(
    run: hs.Composition | hs.Binomial, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, sides = 0, OutcomeSides.sides

    def counting(self: OutcomeSides, epsilons: Array) -> tuple[Array, Array]:
        nonlocal asked
        asked += 1
        return sides(self, epsilons)

    monkeypatch.setattr(OutcomeSides, "sides", counting)
    assert hs.account(run).epsilon(delta).width <= 1e-12
    assert 0 < asked <= 12  # of two directions


def test_epsilons_of_two_lists_take_few_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, of = 0, _Sum.of

    def counting(first: Listed, second: Excess, epsilon: float) -> _Sum:
        nonlocal asked
        asked += 1
        return of(first, second, epsilon)

    monkeypatch.setattr(_Sum, "of", counting)
    found = hs.account(hs.Binomial(100) * 5, "remove").epsilon(1e-6)
    assert found.method == "enumeration"
    assert 0 < asked <= 45


def test_lists_of_a_question_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, of_all = 0, outcomes_of_all

    def counting(*asked: Any) -> Any:
        nonlocal made
        made += 1
        return of_all(*asked)

    monkeypatch.setattr("hockeystick.engines.enumeration.curve.outcomes_of_all", counting)
    for run in (hs.DiscreteGaussian(1.0) * 10, hs.DiscreteGaussian(1.0).poisson(0.01) * 10, hs.Binomial(100) * 4):
        before = made
        assert hs.account(run, "remove").epsilon(1e-6).method == "enumeration"
        assert made == before + 1  # both halves are the same


@pytest.mark.parametrize(("scale", "rate", "steps"), [(0.5, 0.01, 20), (0.4, 0.2, 30), (0.6, 0.5, 40)])
def test_more_steps_of_few_atoms_contain_the_truth(scale: float, rate: float, steps: int) -> None:
    curve = hs.account(hs.DiscreteLaplace(scale).poisson(rate) * steps, "remove")
    for delta in (1e-4, 1e-12):
        answer = curve.epsilon(delta)
        below, above = (exact_delta(curve.composition.pairs("remove"), float(side), digits=20) for side in answer.sides)
        assert delta <= float(below.upper)
        assert float(above.lower) <= delta
        assert answer.method == "enumeration"
        assert float(answer.width) <= 1e-10


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("field", ["log_p", "loss"])
def test_one_list_as_wrong_as_its_errors_keeps_the_bracket_true(field: str, sign: float) -> None:
    error = 0.01
    true = outcomes_of_all((hs.RandomizedResponse(0.75) * 3).pairs("remove"))
    wrong = Outcomes(
        true.loss + sign * 0.999 * error * (field == "loss"),
        true.loss_error + error * (field == "loss"),
        true.log_p + sign * 0.999 * error * (field == "log_p"),
        true.error + error * (field == "log_p"),
    )
    epsilons = np.array([0.0, 0.5, 1.08, 1.09, 1.1, 1.105, 2.0, 3.28, 3.29, 3.3])
    lower, upper = OutcomeSides(wrong, (0.0, 0.0), "enumeration").sides(epsilons)
    with mpmath.workdps(TRUTH_DIGITS):
        truth = composed([(randomised_response(0.75), 3)])
        for low, high, epsilon in zip(lower.tolist(), upper.tolist(), epsilons.tolist(), strict=True):
            assert mpf(low) <= delta_of(truth, epsilon) <= mpf(high)
            assert high - low <= 0.1


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_one_list_whose_sums_are_as_wrong_as_they_may_be_keeps_the_bracket_true(
    sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, bound = sys.modules[Excess.__module__], 1e-3
    cumulated = lists._cumulated
    monkeypatch.setattr(lists, "gamma", lambda _: bound)
    monkeypatch.setattr(lists, "_cumulated", lambda terms: cumulated(terms) * (1.0 + 0.999 * sign * bound))
    sides = OutcomeSides(outcomes_of_all((hs.RandomizedResponse(0.75) * 5).pairs("remove")), (0.0, 0.0), "enumeration")
    with mpmath.workdps(TRUTH_DIGITS):
        truth = composed([(randomised_response(0.75), 5)])
        for epsilon in (0.0, 0.5, 3.0, 5.0):
            (low,), (high,) = sides.sides(np.array([epsilon]))
            assert mpf(float(low)) <= delta_of(truth, epsilon) <= mpf(float(high))


@pytest.mark.parametrize(("p", "steps"), [(0.6, 2000), (0.55, 4000), (0.999, 120), (1.0 - 1e-12, 60)])
def test_losses_further_apart_than_exponentials_reach_are_carried_on(p: float, steps: int) -> None:
    """From the largest loss down in pieces of 600 nats, each with what lies above it."""
    curve = hs.account(hs.RandomizedResponse(p) * steps, "remove")
    with mpmath.workdps(TRUTH_DIGITS):
        truth, largest = many_answers(p, steps), float(steps * mp.log(mpf(p) / (1 - mpf(p))))
        ends = [
            largest - 600.0 * piece - beside for piece in range(int(largest / 600.0) + 1) for beside in (-3, 0, 1, 30)
        ]
        for epsilon in [0.0, *(end for end in ends if 0.0 < end < largest)]:
            found, exact = curve.delta(epsilon), truth.delta(epsilon)
            assert found.method == "enumeration"
            assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
            assert float(found.width) <= 1e-9 * float(found.upper) or exact < mpf(10) ** -300


@pytest.mark.parametrize("run", [hs.RandomizedResponse(0.7) * 9, hs.Binomial(60).poisson(0.2), hs.Binomial(9)])
def test_arrays_of_one_list_are_answered_as_each_alone(run: hs.Composition | hs.Step) -> None:
    curve, rng = hs.account(run), np.random.default_rng(4)
    epsilons, deltas = rng.uniform(0.0, 3.0, 30), 10.0 ** -rng.uniform(0.0, 12.0, 30)
    for ask, values in ((curve.delta, epsilons), (curve.epsilon, deltas)):
        together = ask(values)
        for row, value in enumerate(values.tolist()):
            alone = ask(value)
            assert (alone.lower, alone.upper) == (together.lower[row], together.upper[row])


def test_slopes_are_at_least_the_true_ones_where_little_is_left_of_them() -> None:
    excess = Excess.of(Listed(*(np.array([one]) for one in (44.0, 14.0, 1.0, 0.0))))
    assert excess.at(np.array([0.0]))[1][0] >= math.exp(-44.0)


@pytest.mark.parametrize("rest", [2.0**-53, 1e-12, 1e-6])
@pytest.mark.parametrize("direction", ["add", "remove"])
def test_steps_that_nearly_always_draw_the_record_are_answered_to_rounding(rest: float, direction: str) -> None:
    curve, p, g = hs.account(hs.Binomial(1, 0.375).poisson(1.0 - rest), direction), Fraction(3, 8), Fraction(1.0 - rest)
    without = [1 - p, p, Fraction(0)]
    drawn = [(1 - g) * a + g * b for a, b in zip(without, [Fraction(0), 1 - p, p], strict=True)]
    pair = (drawn, without) if direction == "remove" else (without, drawn)
    delta = curve.delta(epsilon=0.0)
    truth = sum((max(a - b, Fraction(0)) for a, b in zip(*pair, strict=True)), Fraction(0))
    assert Fraction(delta.lower) <= truth <= Fraction(delta.upper)
    assert delta.width < 1e-13
    assert curve.epsilon(delta=0.4).width < 1e-12
