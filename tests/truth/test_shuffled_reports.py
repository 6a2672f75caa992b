"""Shuffled reports against brute force: every multiset of reports of few people, whatever the others hold."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

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


def histograms(rows: tuple[tuple[Any, ...], ...], held: tuple[int, ...]) -> Counter[tuple[int, ...]]:
    """The law of the counts of the reports, one person after the other, exactly."""
    law: Counter[tuple[int, ...]] = Counter({(0,) * len(rows[0]): 1})
    for value in held:
        after: Counter[tuple[int, ...]] = Counter()
        for counts, chance in law.items():
            for w, share in enumerate(rows[value]):
                if share:
                    after[(*counts[:w], counts[w] + 1, *counts[w + 1 :])] += chance * share
        law = after
    return law


@functools.cache
def neighbours(rows: tuple[tuple[Fraction, ...], ...], people: int) -> tuple[int, list[list[tuple[int, int]]]]:
    """All counts of reports in whole numbers over one, of any others: what person 1 holds before and after."""
    whole = math.lcm(*(share.denominator for row in rows for share in row))
    numerators, found = tuple(tuple(int(share * whole) for share in row) for row in rows), []
    for others in itertools.combinations_with_replacement(range(len(rows)), people - 1):
        laws = [histograms(numerators, (own, *others)) for own in range(len(rows))]
        found += [[(p[key], q[key]) for key in p] for p, q in itertools.permutations(laws, 2)]
    return whole**people, found


def worst(rows: tuple[tuple[Fraction, ...], ...], people: int, epsilon: float) -> mpmath.mpf:
    """The largest delta over what person 1 holds before and after and what all others hold."""
    best, scale = mp.mpf(0), mp.exp(mp.mpf(epsilon))
    whole, laws = neighbours(rows, people)
    for law in laws:
        above = [(p, q) for p, q in law if p > scale * q]
        best = max(best, sum(p for p, _ in above) - scale * sum(q for _, q in above))
    return best / mp.mpf(whole)


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
        (((F(1, 2), F(1, 2)), (F(1, 4), F(3, 4)), (F(1, 10**200), 1 - F(1, 10**200))), 3),  # hardly ever blanketed
        (((F(3, 10**50), 1 - F(3, 10**50)), (F(2, 10**50), 1 - F(2, 10**50))), 2),  # hardly ever reported
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


@pytest.mark.parametrize("least", [F(1, 10**9), F(1, 10**17), F(1, 10**200)])
def test_shuffling_is_never_above_a_report_that_is_seen(least: Fraction) -> None:
    """Of a report that is rarely blanketed, whose ratios spread phi far; and far out, where phi is nearly 0."""
    rows = (F(1, 2), F(1, 4), F(1, 4)), (F(1, 4), F(1, 8), F(5, 8)), (least, F(1, 8), F(7, 8) - least)
    curve = BlanketCurve(tuple(hs.ShuffledReports(rows, 3)._choices()), 3)
    for epsilon in (0.2, 20.0, 700.0):
        upper = curve._upper(epsilon, 1 << 12)
        assert worst(rows, 3, epsilon) * (1 - mp.mpf("1e-35")) <= upper
        assert upper <= worst(rows, 1, min(epsilon, 600.0)) * (1 + mp.mpf("1e-9"))


def counted(categories: int, held: tuple[int, ...], true: int, other: int) -> Counter[tuple[int, ...]]:
    """The law of the counts in whole numbers: chances ``true`` and ``other`` over their sum, once a person."""
    law: Counter[tuple[int, ...]] = Counter({(0,) * categories: 1})
    for value in held:
        after: Counter[tuple[int, ...]] = Counter()
        for counts, weight in law.items():
            for w in range(categories):
                key = (*counts[:w], counts[w] + 1, *counts[w + 1 :])
                after[key] += weight * (true if w == value else other)
        law = after
    return law


@pytest.mark.torture
@pytest.mark.parametrize("categories", [2, 3, 4])
@pytest.mark.parametrize("people", range(1, 13))
def test_up_to_twelve_people_are_enumerated(people: int, categories: int) -> None:
    """All that the others may hold; every choice of what person 1 holds is one of two categories, by symmetry."""
    for true in (3, 8):
        whole = true + categories - 1
        poll = hs.RandomizedResponse(F(true, whole), categories).shuffled_reports(people=people)
        curve, best = hs.account(poll, "substitute"), dict.fromkeys((0.0, 0.1, 0.4, 0.9), mp.mpf(0))
        for others in itertools.combinations_with_replacement(range(categories), people - 1):
            p, q = (counted(categories, (own, *others), true, 1) for own in (0, 1))
            for epsilon in best:
                scale = mp.exp(mp.mpf(epsilon))
                gains = (mp.mpf(weight) - scale * q[key] for key, weight in p.items())
                delta = mp.fsum(max(gain, mp.mpf(0)) for gain in gains) / mp.mpf(whole) ** people
                best[epsilon] = max(best[epsilon], delta)
        for epsilon, truth in best.items():
            answer = bound(curve.delta(epsilon))
            assert answer.lower <= truth <= answer.upper


def blanket(people: int, true: Fraction, categories: int, epsilon: float) -> mpmath.mpf:
    """E (T_1 + ... + T_n)_+ / n as a sum over the numbers of reports x and x', the others binomial."""
    q = (1 - true) / (categories - 1)
    scale, p, low = mp.exp(mp.mpf(epsilon)), _number(true), _number(q)
    own, other, rest = (p - scale * low) / low, (low - scale * p) / low, 1 - scale
    share = _number((categories - 2) * q)
    lows, shares, idles = ([x**k for k in range(people + 1)] for x in (low, share, 1 - 2 * low - share))
    total = mp.mpf(0)
    for a in range(people + 1):
        for b in range(people + 1 - a):
            left = people - a - b
            both = math.comb(people, a) * math.comb(people - a, b) * lows[a + b]
            for c in range(left + 1) if categories > 2 else (0,):
                value = a * own + b * other + c * rest
                if value > 0:
                    total += both * math.comb(left, c) * shares[c] * idles[left - c] * value
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
        one, none = _number(other), _number(1 - other)
        counts = [math.comb(people - 1, c) * one**c * none ** (people - 1 - c) for c in range(people)]
        sides = [
            [_number(s) * below + _number(1 - s) * own for below, own in zip([0, *counts], [*counts, 0], strict=True)]
            for s in (first, other)
        ]
        for epsilon in (0.0, 0.1, 0.4):
            low, high = one_step_delta(CountedReports(people, first, other), epsilon)
            scale = mp.exp(mp.mpf(epsilon))
            truth = mp.fsum(max(p - scale * q, mp.mpf(0)) for p, q in zip(*sides, strict=True))
            assert low <= truth <= high
            assert high - low <= 1e-9


# local epsilon and categories; epsilon at delta 1e-6 of 10,000 people, by the code that others publish:
# Balle et al. 2019, by Hoeffding's and by Bennett's inequality (BorjaBalle/amplification-by-shuffling, 1778a0d),
# Feldman, McMillan and Talwar 2021, numerically (apple/ml-shuffling-amplification, 993d285, 14 halvings, step 10),
# and the variation ratio of Wang et al. 2024 (wangsw/PrivacyAmplification, 34ca048, 14 halvings)
PUBLISHED = [
    (0.5, 2, 0.0215516, 0.0217442, 0.0212317, 0.0181274),
    (0.5, 4, 0.0231030, 0.0161496, 0.0212317, 0.0133667),
    (0.5, 10, 0.0242030, 0.0104230, 0.0212317, 0.0085144),
    (1.0, 2, 0.0506666, 0.0512365, 0.0549706, 0.0432129),
    (1.0, 4, 0.0582330, 0.0408566, 0.0549706, 0.0343018),
    (1.0, 10, 0.0646988, 0.0280397, 0.0549706, 0.0232544),
    (2.0, 2, 0.1324350, 0.1349180, 0.1591999, 0.1145020),
    (2.0, 4, 0.1707069, 0.1205510, 0.1591999, 0.1020508),
    (2.0, 10, 0.2180005, 0.0949797, 0.1591999, 0.0798340),
]


@pytest.mark.parametrize("apart", [F(1, 1000), F(1, 10**10), F(1, 10**20), F(1, 10**400)])
def test_counts_of_reports_that_all_but_surely_are_alike_are_as_accurate_as_stated(apart: Fraction) -> None:
    people, first, other = 10, 1 - apart, 1 - 2 * apart
    table = CountedReports(people, first, other).make_table()
    with mpmath.workdps(900):
        p, q = (mpmath.mpf(x.numerator) / x.denominator for x in (first, other))

        def counted(own: mpmath.mpf, count: int) -> mpmath.mpf:
            below = [mpmath.binomial(people - 1, c) * q**c * (1 - q) ** (people - 1 - c) for c in (count - 1, count)]
            return own * below[0] + (1 - own) * below[1]

        for count in range(people + 1):
            masses = counted(p, count), counted(q, count)
            assert abs(mpmath.log(masses[0]) - float(table.log_p[count])) <= float(table.error[count])
            assert abs(mpmath.log(masses[1]) - float(table.log_q[count])) <= float(table.error[count])
            assert abs(mpmath.log(masses[0] / masses[1]) - float(table.loss[count])) <= float(table.loss_error[count])


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=() if row[:2] in {(1.0, 2), (2.0, 10)} else pytest.mark.torture) for row in PUBLISHED],
)
def test_ten_thousand_people_hide_one_no_worse_than_others_say(row: tuple[float, ...]) -> None:
    local, categories, *published = row
    poll = hs.RandomizedResponse.by_epsilon(local, int(categories)).shuffled_reports(people=10_000)
    answer = bound(hs.account(poll, "substitute").epsilon(1e-6))
    assert answer.lower < answer.upper < min(published)
    assert answer.upper > 0.99 * min(published)  # the last of them is tight, to within its halvings
    assert answer.lower > 0.7 * float(answer.upper)


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
    scale, chances = mp.exp(mp.mpf(epsilon)), [(1, 1)]  # in whole numbers, over one denominator
    whole = 1
    for law in laws:
        own = math.lcm(*(F(share).denominator for side in law for share in side.values()))
        both = [tuple(int(F(side[key]) * own) for side in law) for key in set(law[0]) | set(law[1])]
        chances = [(p * a, q * b) for p, q in chances for a, b in both]
        whole *= own
    above = [(p, q) for p, q in chances if p > scale * q]
    return (sum(p for p, _ in above) - scale * sum(q for _, q in above)) / whole


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
    poll = hs.RandomizedResponse(F(3, 4)).shuffled_reports(people=60)
    nothing = hs.DiscretePair((F(1, 2), F(1, 2)), (F(1, 2), F(1, 2)))
    curve = hs.account(poll, "substitute")
    composed = Certified(1e-4).directed(((poll.pair("substitute"), 1), (nothing.pair("remove"), 1)))
    for epsilon in (0.05, 0.6):
        alone, found = bound(curve.delta(epsilon)), bound(composed.delta(epsilon))
        assert alone.upper * (1.0 - 2e-3) <= found.upper <= alone.upper * 1.01
