"""Audits: brute force over small mechanisms, coverage by simulation, and the numbers of others on the same counts."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import bdtrc, betaincinv

import hockeystick as hs
from hockeystick import audit
from hockeystick.audit.claims import Approximate, Gaussian, Lines, claim_of

# epsilon by the listing of Steinke, Nasr and Jagielski 2023 (appendix D), 40 halvings, on the counts of ONE_RUN below
LISTING = [
    0.2972269537185639,
    1.79628507066991,
    3.4926905927350163,
    1.9414204321292345,
    5.782283135389662,
    1.8967834980921907,
]

# true positives, positives, false positives, negatives, delta; epsilon of jax_privacy 2.0.0 at a threshold stated,
# by epsilon_clopper_pearson of its CanaryScoreAuditor at significance 0.1, two-sided
MANY_RUNS = [
    (90, 100, 5, 200, 0.0, 2.780739865241736),
    (90, 100, 5, 200, 0.01, 2.76871011352862),
    (60, 80, 1, 80, 1e-05, 2.4296959156974083),
    (999, 1000, 300, 1000, 0.0, 4.960097272637062),
    (999, 1000, 300, 1000, 0.01, 4.945177109397871),
]

# canaries, guesses, correct, significance, delta; epsilon of Steinke et al. and of the f-DP form for Gaussian noise, by
# jax_privacy.auditing (August 2026): _epsilon_one_run and _epsilon_one_run_fdp
ONE_RUN = [
    (1000, 1000, 600, 0.05, 1e-5, 0.2972269575896597, 0.5835403679239116),
    (1000, 200, 180, 0.05, 1e-5, 1.796285070718516, 2.9012429233094306),
    (100, 100, 100, 0.05, 1e-6, 3.492690507482892, 9.07089168421171),
    (5000, 500, 450, 0.05, 1e-5, 1.9414204321527775, 2.77606619765971),
    (1000, 1000, 1000, 0.05, 1e-5, 5.782283131572193, 12.334570155595598),
    (200, 50, 47, 0.1, 0.0001, 1.8967833296765209, 3.096148076709173),
]


@pytest.mark.parametrize("row", ONE_RUN)
def test_one_run_agrees_with_what_others_say_of_the_same_counts(row: tuple[float, ...]) -> None:
    canaries, guesses, correct, significance, delta, steinke, gaussian = row
    seen = audit.one_run(int(canaries), int(guesses), correct=int(correct), confidence=1.0 - significance)
    assert seen.published_epsilon(delta) == pytest.approx(steinke, rel=0.0, abs=3e-6)  # their tolerance is 1e-6
    ours = hs.account(hs.GaussianDP(seen.mu())).epsilon(delta)
    assert float(ours) == pytest.approx(gaussian, rel=0.0, abs=3e-6)
    assert seen.epsilon(delta) == pytest.approx(steinke, rel=0.03)  # proved, and as good


@pytest.mark.parametrize(("row", "listed"), list(zip(ONE_RUN, LISTING, strict=True)))
def test_one_run_agrees_with_the_published_listing(row: tuple[float, ...], listed: float) -> None:
    canaries, guesses, correct, significance, delta, *_ = row
    seen = audit.one_run(int(canaries), int(guesses), correct=int(correct), confidence=1.0 - significance)
    assert seen.published_epsilon(delta) == pytest.approx(listed, rel=1e-9)


@pytest.mark.parametrize(("hits", "members", "alarms", "others", "delta", "epsilon"), MANY_RUNS)
def test_many_runs_agree_with_what_others_say_of_the_same_counts(
    hits: int, members: int, alarms: int, others: int, delta: float, epsilon: float
) -> None:
    seen = audit.counts(hits, members, false_positives=alarms, negatives=others, confidence=0.9)
    assert seen.epsilon(delta) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("guesses", [7, 60, 400])
def test_all_correct_without_delta_is_the_binomial_tail(guesses: int) -> None:
    """Of r guesses all right: (1 + e^-eps)^-r is the level."""
    rate = 0.05 ** (1.0 / guesses)
    found = audit.one_run(1000, guesses, correct=guesses).epsilon(0.0)
    assert found == pytest.approx(math.log(rate / (1.0 - rate)), rel=1e-6)


def test_many_runs_are_clopper_and_pearson() -> None:
    seen = audit.counts(90, 100, false_positives=5, negatives=200, confidence=0.9)
    hits, alarms = betaincinv(90, 11, 0.05), betaincinv(6, 195, 0.95)
    expected = max(math.log((hits - 1e-5) / alarms), math.log((1.0 - alarms - 1e-5) / (1.0 - hits)))
    assert seen.epsilon(1e-5) == pytest.approx(expected, rel=1e-9)


def claim_of_channel(channel: np.ndarray, bits: int) -> Lines:
    """The worst trade-off function over records flipped: all the lines that some pair of rows needs."""
    ratios, rows = {1.0}, []
    for row in range(channel.shape[0]):
        for bit in range(bits):
            p, q = channel[row], channel[row ^ (1 << bit)]
            ratios |= {float(x) for x in p / q if x > 1.0}
            rows.append((p, q))
    factor = np.array(sorted(ratios))
    deltas = np.array([max(float(np.sum(np.maximum(p - a * q, 0.0))) for p, q in rows) for a in factor])
    return Lines(factor, deltas * (1.0 + 1e-12))


@pytest.mark.parametrize("seed", range(40))
def test_no_true_claim_is_refuted_more_often_than_the_level(seed: int) -> None:
    """All outputs of a random mechanism of a few canaries, and every number of correct guesses."""
    rng = np.random.default_rng(seed)
    bits, outputs = int(rng.integers(1, 5)), int(rng.integers(2, 7))
    channel = rng.gamma(0.7, size=(1 << bits, outputs)) + 1e-3
    channel /= channel.sum(axis=1, keepdims=True)
    if seed % 2:  # randomised response, which reaches the bound of pure claims
        keep = float(rng.uniform(0.55, 0.95))
        flips = np.array([[(a ^ b).bit_count() for b in range(1 << bits)] for a in range(1 << bits)])
        channel = keep ** (bits - flips) * (1.0 - keep) ** flips
    claim = claim_of_channel(channel, bits)
    for guesses in range(1, bits + 1):
        posterior = channel / channel.sum(axis=0)
        chances = np.zeros(guesses + 1)
        for output in range(channel.shape[1]):
            inside = np.array([sum(posterior[s, output] for s in range(1 << bits) if s >> j & 1) for j in range(bits)])
            asked = np.argsort(-np.abs(inside - 0.5))[:guesses]
            for s in range(1 << bits):
                right = sum((s >> int(j) & 1) == (inside[j] > 0.5) for j in asked)
                chances[right] += channel[s, output] / (1 << bits)
        for correct in range(guesses + 1):
            tail = float(chances[correct:].sum())
            seen = audit.one_run(bits, guesses, correct=correct)
            assert not seen.refuted_at(claim, tail * (1.0 - 1e-9))
            assert not tail < 1e-3 or not seen.refuted_at(claim, tail)


def test_the_recursion_is_tight_for_one_canary() -> None:
    keep = 0.8
    claim = Approximate(math.log(keep / (1.0 - keep)), 0.0)
    seen = audit.one_run(1, 1, correct=1)
    assert not seen.refuted_at(claim, keep * (1.0 - 1e-8))
    assert seen.refuted_at(claim, keep * (1.0 + 1e-8))


AUDITS = 10_000
MOST = 610  # of 10,000 at rate 0.05, exceeded with probability 3e-7: the chance that a test below fails for no reason


def test_coverage_over_many_runs() -> None:
    assert bdtrc(MOST, AUDITS, 0.05) < 1e-6
    rng = np.random.default_rng(5)
    claim = Gaussian(1.0)
    inside, outside = rng.normal(1.0, 1.0, (AUDITS, 60)), rng.normal(0.0, 1.0, (AUDITS, 60))
    hits, alarms = (np.sum(scores > 1.2, axis=1) for scores in (inside, outside))
    pairs, times = np.unique(np.column_stack((hits, alarms)), axis=0, return_counts=True)
    refuted = [audit.counts(int(h), 60, false_positives=int(f), negatives=60).refuted_at(claim, 0.05) for h, f in pairs]
    assert int(np.sum(times[refuted])) <= MOST


@pytest.mark.parametrize(("mu", "canaries", "guesses"), [(0.5, 200, 40), (2.0, 200, 200), (1.0, 1000, 100)])
def test_coverage_of_one_run(mu: float, canaries: int, guesses: int) -> None:
    """Canaries whose outcomes are independent, each mu-Gaussian-DP by itself."""
    rng = np.random.default_rng(6)
    member = rng.random((AUDITS, canaries)) < 0.5
    scores = rng.normal(0.0, 1.0, (AUDITS, canaries)) + mu * (member - 0.5)
    asked = np.argsort(-np.abs(scores), axis=1)[:, :guesses]
    right = np.sum(np.take_along_axis((scores > 0.0) == member, asked, axis=1), axis=1)
    claim = Gaussian(mu)
    refuted = {v: audit.one_run(canaries, guesses, correct=int(v)).refuted_at(claim, 0.05) for v in np.unique(right)}
    assert sum(refuted[v] for v in right) <= MOST


def test_half_the_noise_is_found_out() -> None:
    """mu 2 claimed as mu 1: refuted in at least 95 of 100 audits of 1,000 canaries."""
    rng = np.random.default_rng(7)
    claim = claim_of(hs.account(hs.Gaussian(1.0)))
    audits = [audit.scores(rng.normal(2.0, 1.0, 500), rng.normal(0.0, 1.0, 500), seed=seed) for seed in range(100)]
    assert sum(seen.refuted_at(claim, 0.05) for seen in audits) >= 95
    verdict = audits[0].verdict(hs.account(hs.Gaussian(1.0)))
    assert verdict.refuted
    assert verdict.p_value < 0.05
    assert str(verdict).startswith("refuted: were the claim true, this would be seen with probability ")
    honest = audits[0].verdict(hs.account(hs.Gaussian(0.5)))
    assert not honest.refuted
    assert honest.p_value > 0.05


def test_all_canaries_are_counted_that_chose_no_threshold() -> None:
    seen = audit.scores([1.0, 2.0, 3.0], np.arange(101.0))
    assert {(attack.positives, attack.negatives) for attack in seen.attacks} == {(3, 51)}


def test_half_the_noise_is_found_out_in_one_run() -> None:
    rng = np.random.default_rng(8)
    members, nonmembers = rng.normal(1.0, 1.0, 5000), rng.normal(-1.0, 1.0, 5000)
    seen = audit.one_run_scores(members, nonmembers, guesses=400)
    assert seen.mu() > 1.0
    assert seen.verdict(hs.account(hs.Gaussian(1.0))).refuted
    assert not seen.verdict(hs.account(hs.Gaussian(0.5))).refuted


def test_what_an_audit_says_holds_together() -> None:
    seen = audit.scores(np.linspace(0.0, 3.0, 900), np.linspace(-1.5, 1.5, 900))
    epsilons = np.array([0.0, 0.5, 1.0, 2.0])
    deltas = np.array([seen.delta(float(epsilon)) for epsilon in epsilons])
    assert np.all(np.diff(deltas) <= 0.0)
    assert deltas[0] > 0.2
    assert seen.epsilon(float(deltas[2])) == pytest.approx(1.0, rel=1e-6)
    alphas = np.linspace(0.0, 1.0, 21)
    missed = seen.false_negative_rate(alphas)
    assert np.all(np.diff(missed) <= 0.0)
    # no claim that is true passes above: total variation is what this shows
    assert float(np.max(1.0 - alphas - missed)) <= deltas[0] + 1e-9


def test_what_was_missed_holds_for_the_worst_trade_off() -> None:
    """Two directions that differ: between a test of the one and a test of the other lies no attack.

    The counts are the expected ones, so that every limit is on its own side of the truth.
    """
    curve = hs.account(hs.DiscretePair((0.5, 0.5), (0.1, 0.9)))
    size = 10**8
    seen = audit.counts(size // 2, size, false_positives=size // 10, negatives=size)
    alphas = np.linspace(0.0, 1.0, 41)
    truth = np.array([min(max(1 - 5 * a, (1 - a) * 5 / 9), max(1 - 1.8 * a, 0.2 * (1 - a))) for a in alphas])
    missed = seen.false_negative_rate(alphas)
    assert np.all(missed >= truth)
    assert np.all(missed <= truth + 1e-3)
    assert np.all(missed >= curve.trade_off(alphas).false_negative_rate.lower)


def test_lines_claim_no_more_than_the_curve() -> None:
    claim = claim_of(hs.account(hs.Gaussian(1.0)))
    truth = Gaussian(1.0)
    for hits in np.geomspace(1e-9, 1.0, 60):
        assert claim.cost(float(hits)) <= truth.cost(float(hits)) * (1.0 + 1e-9)
        assert claim.cost(float(hits)) >= truth.cost(float(hits)) * 0.97 - 1e-11


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: audit.counts(5, 4, false_positives=0, negatives=4), "true_positives must be at most positives"),
        (lambda: audit.counts(1, 4, false_positives=0, negatives=0), "negatives"),
        (
            lambda: audit.counts(1, 10**13, false_positives=0, negatives=4),
            "positives must be at most 1000000000000, got",
        ),
        (lambda: audit.one_run(10, 11, correct=2), "correct <= guesses <= canaries"),
        (lambda: audit.one_run(10, 5, correct=6), "correct <= guesses <= canaries"),
        (lambda: audit.one_run(10, 5, correct=3, confidence=1.0), "confidence"),
        (lambda: audit.scores([], [1.0]), "members must hold at least one score"),
        (lambda: audit.scores([math.nan], [1.0]), "members holds NaN"),
        (lambda: audit.scores([1.0], [1.0]), "at least two scores"),
        (lambda: audit.one_run_scores([1.0], [1.0], guesses=3), "guesses must be at most the 2 canaries"),
        (lambda: audit.counts(3, 4, false_positives=0, negatives=4).epsilon(2.0), "delta"),
        (lambda: audit.counts(3, 4, false_positives=0, negatives=4).delta(-1.0), "epsilon must be at least 0"),
    ],
)
def test_bad_input_is_refused(ask: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask()  # type: ignore[operator]


def test_an_estimate_is_no_claim() -> None:
    curve = hs.account(hs.Gaussian(1.0), accountant=hs.accountants.GaussianLimit())
    with pytest.raises(TypeError, match="an audit needs a proved claim"):
        audit.counts(3, 4, false_positives=0, negatives=4).verdict(curve)


def test_every_pair_of_counts_answers() -> None:
    for hits, alarms in itertools.product(range(5), repeat=2):
        seen = audit.counts(hits, 4, false_positives=alarms, negatives=4)
        assert 0.0 <= seen.epsilon(1e-6) < 10.0
        assert 0.0 <= seen.mu() < 10.0


@pytest.mark.parametrize("canaries", [10**3, 10**9, 10**12])
def test_rates_next_to_0_and_1_are_accurate(canaries: int) -> None:
    """All right or one hit, no false alarm: the limits are roots of 0.025 and 0.975."""
    alarms, one = (-math.expm1(math.log(level) / canaries) for level in (0.025, 0.975))
    for hits, rate in ((canaries, 1.0 - alarms), (1, one)):
        seen = audit.counts(hits, canaries, false_positives=0, negatives=canaries)
        assert seen.epsilon(0.0) == pytest.approx(max(math.log(rate / alarms), 0.0), rel=1e-12, abs=0.0)
    assert audit.many_runs._lower(1, canaries, 0.025) == pytest.approx(one, rel=1e-12, abs=0.0)


def test_a_limit_that_is_not_found_says_nothing() -> None:
    limits = [audit.many_runs._upper(3, 7, 10.0**-power) for power in range(1, 300)]
    limits += [audit.many_runs._lower(4, 7, 10.0**-power) for power in range(1, 300)]
    assert all(0.0 <= limit <= 1.0 for limit in limits)


@pytest.mark.parametrize(("hits", "alarms"), [(0, 0), (0, 3), (3, 3), (3, 0)])
def test_who_always_says_in_misses_nothing(hits: int, alarms: int) -> None:
    seen = audit.counts(hits, 3, false_positives=alarms, negatives=3)
    assert seen.false_negative_rate([0.0, 1.0]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: audit.scores(["a", "b"], [1.0, 2.0]), "members must hold real numbers"),
        (lambda: audit.scores([[1.0], [2.0, 3.0]], [1.0, 2.0]), "as many in every row"),
        (lambda: audit.one_run_scores([1.0], None, guesses=1), "nonmembers must hold real numbers"),
        (lambda: audit.counts(3, 4, false_positives=0, negatives=4).false_negative_rate("x"), "must hold real numbers"),
        (lambda: audit.counts(3, 4, false_positives=0, negatives=4).verdict(hs.Gaussian(1.0)), "be a privacy curve"),
    ],
)
def test_what_is_of_another_kind_is_refused(ask: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ask()  # type: ignore[operator]


@pytest.mark.parametrize("level", [1e-3, 1e-9, 1e-12])
@pytest.mark.parametrize("trials", [2, 5, 10, 50])
def test_the_largest_rate_of_false_alarms_is_rounded_up(trials: int, level: float) -> None:
    rate = Fraction(audit.many_runs._upper(trials - 1, trials, level))
    assert 1 - rate**trials <= Fraction(level)  # that not all of so many are false alarms
