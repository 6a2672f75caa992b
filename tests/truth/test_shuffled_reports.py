"""Shuffled reports against brute force: every multiset of reports of few people, whatever the others hold."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified
from hockeystick.bound import Bound
from hockeystick.laws.blanket import BlanketCurve, CountedReports
from hockeystick.laws.one_step import one_step_delta

mp = mpmath.mp.clone()
mp.dps = 40
F = Fraction
EPSILONS = (0.0, 0.05, 0.2, 0.5, 0.9)


def bound(answer: object) -> Bound:
    assert isinstance(answer, Bound)
    return answer


def histograms(rows: tuple[tuple[Fraction, ...], ...], held: tuple[int, ...]) -> Counter[tuple[int, ...]]:
    """The law of the counts of the reports, one person after the other, exactly."""
    law: Counter[tuple[int, ...]] = Counter({(0,) * len(rows[0]): F(1)})  # type: ignore[dict-item]
    for value in held:
        after: Counter[tuple[int, ...]] = Counter()
        for counts, chance in law.items():
            for w, share in enumerate(rows[value]):
                if share:
                    after[(*counts[:w], counts[w] + 1, *counts[w + 1 :])] += chance * share  # type: ignore[assignment]
        law = after
    return law


def worst(rows: tuple[tuple[Fraction, ...], ...], people: int, epsilon: float) -> mpmath.mpf:
    """The largest delta over what person 1 holds before and after and what all others hold."""
    best, scale = mp.mpf(0), mp.exp(mp.mpf(epsilon))
    for others in itertools.combinations_with_replacement(range(len(rows)), people - 1):
        laws = [histograms(rows, (own, *others)) for own in range(len(rows))]
        for p, q in itertools.permutations(laws, 2):
            gains = (mp.mpf(a.numerator) / a.denominator - scale * _number(q[key]) for key, a in p.items())  # type: ignore[attr-defined]
            best = max(best, mp.fsum(max(gain, mp.mpf(0)) for gain in gains))
    return best


def _number(value: object) -> mpmath.mpf:
    share = F(value)  # type: ignore[arg-type]
    return mp.mpf(share.numerator) / share.denominator


def response(true: Fraction, categories: int) -> tuple[tuple[Fraction, ...], ...]:
    other = (1 - true) / (categories - 1)
    return tuple(tuple(true if w == x else other for w in range(categories)) for x in range(categories))


@pytest.mark.parametrize(
    ("rows", "people"),
    [
        (response(F(3, 4), 2), 1),
        (response(F(3, 4), 2), 2),
        (response(F(3, 4), 2), 12),
        (response(F(2, 3), 2), 8),
        (response(F(1, 2), 3), 7),
        (response(F(2, 5), 4), 4),
        (response(F(1, 10), 3), 4),  # the true category is the least likely
        (((F(1, 2), F(1, 2), F(0)), (F(1, 4), F(1, 2), F(1, 4))), 5),  # a report that one value never gives
        (((F(1, 2), F(1, 2), F(0)), (F(1, 4), F(1, 2), F(1, 4))), 1),
        (((F(5, 8), F(2, 8), F(1, 8)), (F(1, 8), F(3, 8), F(4, 8)), (F(2, 8), F(4, 8), F(2, 8))), 4),
    ],
)
def test_no_datasets_of_few_people_are_above_and_some_are_not_below(
    rows: tuple[tuple[Fraction, ...], ...], people: int
) -> None:
    curve = hs.account(hs.ShuffledReports(rows, people), "substitute")
    for epsilon in EPSILONS:
        answer, truth = bound(curve.delta(epsilon)), worst(rows, people, epsilon)
        assert answer.lower <= truth <= answer.upper
        if people == 1:
            assert answer.upper <= truth * (1 + mp.mpf("1e-3")) + mp.mpf("1e-6")


def blanket(people: int, true: Fraction, categories: int, epsilon: float) -> mpmath.mpf:
    """E (T_1 + ... + T_n)_+ / n as a sum over the numbers of reports x and x', the others binomial."""
    q = (1 - true) / (categories - 1)
    scale, p, low = mp.exp(mp.mpf(epsilon)), _number(true), _number(q)
    own, other, rest = (p - scale * low) / low, (low - scale * p) / low, 1 - scale
    share = _number((categories - 2) * q)
    total = mp.mpf(0)
    for a in range(people + 1):
        for b in range(people + 1 - a):
            left = people - a - b
            both = mp.binomial(people, a) * mp.binomial(people - a, b) * low ** (a + b)
            for c in range(left + 1) if categories > 2 else (0,):
                value = a * own + b * other + c * rest
                if value > 0:
                    idle = (1 - 2 * low - share) ** (left - c)
                    total += both * mp.binomial(left, c) * share**c * idle * value
    return total / people


@pytest.mark.parametrize(("people", "categories"), [(2, 2), (12, 2), (60, 2), (12, 3), (16, 5)])
def test_the_upper_side_is_the_blanket_to_three_digits(people: int, categories: int) -> None:
    step = hs.RandomizedResponse(F(3, 5), categories).shuffled_reports(people=people)
    for epsilon in (0.05, 0.2, 0.35):
        high = one_step_delta(step.pair("substitute"), epsilon)[1]
        truth = blanket(people, F(3, 5), categories, epsilon)
        assert truth <= high
        assert high <= truth * (1 + mp.mpf("2e-3"))


def test_counted_reports_are_the_binomial_sum() -> None:
    for people, first, other in ((1, F(3, 4), F(1, 4)), (9, F(2, 3), F(1, 6)), (400, F(1, 2), F(1, 10))):
        for epsilon in (0.0, 0.1, 0.4):
            low, high = one_step_delta(CountedReports(people, first, other), epsilon)
            scale, truth = mp.exp(mp.mpf(epsilon)), mp.mpf(0)

            def count(c: int, people: int = people, other: Fraction = other) -> mpmath.mpf:
                if not 0 <= c < people:
                    return mp.mpf(0)
                return mp.binomial(people - 1, c) * _number(other) ** c * _number(1 - other) ** (people - 1 - c)

            for c in range(people + 1):
                p, q = (_number(s) * count(c - 1) + _number(1 - s) * count(c) for s in (first, other))
                truth += max(p - scale * q, mp.mpf(0))
            assert low <= truth <= high
            assert high - low <= 1e-9


def test_ten_thousand_people_hide_one() -> None:
    """Beside Balle et al. 2019, Theorem 3.1: k-ary randomised response of eps0 = 1 with gamma = k / (k - 1 + e)."""
    n, delta, local = 10_000, 1e-6, 1.0
    for categories in (2, 4):
        true = math.exp(local) / (math.exp(local) + categories - 1.0)
        curve = hs.account(hs.RandomizedResponse(true, categories).shuffled_reports(people=n), "substitute")
        gamma = categories / (categories - 1.0 + math.exp(local))
        published = max(
            math.sqrt(14.0 * math.log(2.0 / delta) / ((n - 1) * gamma)), 27.0 / ((n - 1) * gamma)
        )  # of their theorem, for the central guarantee
        answer = bound(curve.epsilon(delta))
        assert 0.02 < answer.lower < answer.upper < 0.045 < published
        assert answer.upper < 1.35 * float(answer.lower)
        assert bound(curve.delta(answer.upper)).upper <= delta


def test_more_people_hide_better_and_what_is_not_proved_is_refused() -> None:
    rows = response(F(3, 4), 2)
    uppers = [bound(hs.account(hs.ShuffledReports(rows, n), "substitute").delta(0.2)).upper for n in (1, 10, 100, 1000)]
    assert uppers == sorted(uppers, reverse=True)
    step = hs.RandomizedResponse(0.75).shuffled_reports(people=100)
    for adjacency in ("add-remove", "zero-out"):
        with pytest.raises(hs.UnknownPairError, match="substitute"):
            hs.account(step, adjacency)
    for wrong, says in (((rows, 0), "people"), ((rows, 10**6), "at most"), ((rows[:1], 5), "two")):
        with pytest.raises(ValueError, match=says):
            hs.ShuffledReports(*wrong)
    assert isinstance(step.pair("substitute").curve, BlanketCurve)


def product_delta(
    laws: Sequence[tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]]], epsilon: float
) -> mpmath.mpf:
    """delta of independent releases, every outcome of all of them listed."""
    scale, total = mp.exp(mp.mpf(epsilon)), mp.mpf(0)
    for outcomes in itertools.product(*(set(p) | set(q) for p, q in laws)):
        p, q = (math.prod(F(law[side][key]) for law, key in zip(laws, outcomes, strict=True)) for side in (0, 1))
        total += max(_number(p) - scale * _number(q), mp.mpf(0))
    return total


@pytest.mark.parametrize("rows", [response(F(3, 4), 2), response(F(1, 2), 3), ((F(1, 2), F(1, 2)), (F(1, 4), F(3, 4)))])
def test_polls_and_other_steps_compose_above_every_dataset_and_not_above_all(
    rows: tuple[tuple[Fraction, ...], ...],
) -> None:
    """Two polls of four people and a coin about person 1: the worst of what person 1 and the others hold in each."""
    people, coin = 4, (Counter({(0,): F(2, 3), (1,): F(1, 3)}), Counter({(0,): F(1, 3), (1,): F(2, 3)}))
    step = hs.ShuffledReports(rows, people)
    curve = hs.account(step * 2 + hs.RandomizedResponse(F(2, 3)), "substitute")
    shown = []
    for others in itertools.combinations_with_replacement(range(len(rows)), people - 1):
        laws = [histograms(rows, (own, *others)) for own in range(len(rows))]
        shown += [(p, q) for p, q in itertools.permutations(laws, 2)]
    for epsilon in (0.1, 0.8, 1.4):
        every = itertools.combinations_with_replacement(shown[: 8 if len(rows) > 2 else None], 2)
        worst_of_two = max(product_delta((*polls, coin), epsilon) for polls in every)  # type: ignore[arg-type]
        answer = bound(curve.delta(epsilon))
        assert answer.lower <= worst_of_two <= answer.upper
        assert answer.upper <= 2.5 * float(worst_of_two)


def test_a_poll_composes_as_closely_as_its_curve_is_known() -> None:
    """One poll and a step that tells nothing: the curve of the poll alone, but for chords between knots."""
    poll = hs.RandomizedResponse(F(3, 4)).shuffled_reports(people=200)
    nothing = hs.DiscretePair((F(1, 2), F(1, 2)), (F(1, 2), F(1, 2)))
    for epsilon in (0.05, 0.3, 0.6):
        alone = bound(hs.account(poll, "substitute").delta(epsilon))
        composed = poll.pair("substitute"), nothing.pair("remove")
        found = bound(Certified(1e-4).directed(((composed[0], 1), (composed[1], 1))).delta(epsilon))
        assert alone.upper * (1.0 - 2e-3) <= found.upper <= alone.upper * 1.01
