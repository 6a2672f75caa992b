"""Trade-off functions contain their closed forms on both sides, with no slack."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import erfinv, mp, mpf, ncdf, sqrt

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.laws import DiscretePair, GaussianPair
from hockeystick.laws.one_step import one_step_delta
from hockeystick.readouts.directions import Asked
from hockeystick.readouts.envelope import Enclosure, Side, Value
from hockeystick.readouts.outline import crossed, crossings, sampled
from tests.closed_forms import gaussian_delta

ALPHAS = (0.0, 1e-12, 1e-6, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999, 1.0 - 1e-9, 1.0)


def gaussian_rates(mu: float, alpha: float) -> tuple[Any, Any]:
    """G_mu(alpha) and its complement, each to 40 digits."""
    with mp.workdps(60):
        if alpha in {0.0, 1.0}:
            return mpf(1 - alpha), mpf(alpha)
        quantile = -sqrt(2) * erfinv(2 * mpf(alpha) - 1)  # Phi^-1(1 - alpha)
        return ncdf(quantile - mpf(mu)), ncdf(mpf(mu) - quantile)


def holds(bound: hs.Bound | hs.Estimate, index: int, value: Any) -> bool:
    assert isinstance(bound, Bound)
    return bool(mpf(float(bound[index].lower)) <= value <= mpf(float(bound[index].upper)))


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 4.0])
def test_contains_the_gaussians_trade_off(mu: float) -> None:
    found = hs.account(hs.GaussianDP(mu)).trade_off(ALPHAS)
    for index, alpha in enumerate(ALPHAS):
        negative, positive = gaussian_rates(mu, alpha)
        assert holds(found.false_negative_rate, index, negative), alpha
        assert holds(found.true_positive_rate, index, positive), alpha


def test_is_as_narrow_as_asked_for_in_both_rates() -> None:
    found = hs.account(hs.Gaussian(1.0)).trade_off(np.linspace(0.001, 0.999, 40), tolerance=1e-4)
    for bound in (found.false_negative_rate, found.true_positive_rate):
        assert isinstance(bound, Bound)
        assert np.all(np.asarray(bound.width) <= 1e-4 * np.asarray(bound.upper))


@pytest.mark.parametrize("noise", [1e-9, 1e-4, 0.2])
def test_values_known_only_roughly_widen_the_enclosure_and_never_lose_the_truth(noise: float) -> None:
    rng = np.random.default_rng(7)
    pair = GaussianPair(1.0, 1.5)

    def rough(epsilon: float) -> Value:
        if math.isinf(epsilon):
            return Value(0.0, 0.0)
        low, high = one_step_delta(pair, epsilon)
        return Value(low * (1.0 - noise * rng.random()), min(high * (1.0 + noise * rng.random()), 1.0))

    enclosure = Enclosure(rough)
    for alpha in (1e-8, 1e-3, 0.1, 0.4, 0.9):
        rates = enclosure.refined(alpha, 1e-3)
        negative, positive = gaussian_rates(1.5, alpha)
        assert mpf(rates.negative.lower) <= negative <= mpf(rates.negative.upper)
        assert mpf(rates.positive.lower) <= positive <= mpf(rates.positive.upper)
        assert rates.gap <= 2e-3 + 20.0 * noise


def test_slopes_are_as_open_as_the_values_they_are_taken_from() -> None:
    """A lower side that is far too low makes no curve flatter: here delta falls to 0 just beyond a sample."""

    def response(epsilon: float) -> Value:
        exact = max(0.75 - 0.25 * math.exp(epsilon), 0.0) if math.isfinite(epsilon) else 0.0
        return Value((0.5 if epsilon == 0.9 else 1.0) * exact, exact)

    enclosure = Enclosure(response)
    for epsilon in (0.9, 1.05, 2.0):
        enclosure.add(enclosure.forward, epsilon)
    for alpha in (0.01, 0.1, 0.2, 0.25):
        rates, _ = enclosure.rates(alpha)
        assert rates.negative.lower <= 1.0 - 3.0 * alpha + 1e-15  # of this line's own rounding
        assert rates.negative.upper >= 1.0 - 3.0 * alpha - 1e-15


def test_mass_at_infinity_known_only_roughly_leaves_the_rates_without_false_positives_as_open() -> None:
    """Where the test never says "yes" by mistake, what it finds is the mass at infinite loss, wherever that lies."""

    def rough(epsilon: float) -> Value:
        finite = max(0.4 - 0.1 * epsilon, 0.0) if math.isfinite(epsilon) else 0.0
        return Value(0.1 + finite, 0.3 + finite)

    rates, _ = Enclosure(rough).rates(0.0)
    assert rates.positive.lower <= 0.1
    assert rates.positive.upper >= 0.3
    assert rates.negative.lower <= 0.7
    assert rates.negative.upper >= 0.9


@pytest.mark.parametrize("probability", [0.6, 0.75, 0.9])
def test_contains_randomised_responses_trade_off_and_is_exact_at_its_corner(probability: float) -> None:
    alphas = np.array([0.0, 0.01, 0.1, 1.0 - probability, 0.5, 0.9, 1.0])
    found = hs.account(hs.RandomizedResponse(probability)).trade_off(alphas)
    p, q = mpf(probability), 1 - mpf(probability)
    for index, alpha in enumerate(alphas):
        a = mpf(float(alpha))
        positive = min(p / q * a, 1 - (q / p) * (1 - a))  # the two lines through (q, p)
        assert holds(found.true_positive_rate, index, positive), alpha
        assert holds(found.false_negative_rate, index, 1 - positive), alpha
    bound = found.true_positive_rate
    assert isinstance(bound, Bound)
    assert np.all(np.asarray(bound.width) <= 1e-3 * np.asarray(bound.upper))


def test_a_sampled_mechanism_is_asymmetric_and_its_directions_are_inverse_functions() -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(0.1) * 50)
    alphas = np.array([1e-3, 0.05, 0.3])
    remove, add = (curve.trade_off(alphas, direction=name).false_negative_rate for name in ("remove", "add"))
    worst = curve.trade_off(alphas).false_negative_rate
    assert isinstance(remove, Bound)
    assert isinstance(add, Bound)
    assert isinstance(worst, Bound)
    # proved different: the brackets are disjoint
    assert np.any(
        (np.asarray(remove.upper) < np.asarray(add.lower)) | (np.asarray(add.upper) < np.asarray(remove.lower))
    )
    back = curve.trade_off(np.asarray(remove.lower), direction="add").false_negative_rate
    assert isinstance(back, Bound)
    assert np.all(np.asarray(back.upper) >= alphas)  # f_add(beta) >= alpha for beta below f_remove(alpha)
    assert np.all(np.asarray(worst.lower) <= np.minimum(np.asarray(remove.upper), np.asarray(add.upper)))


def test_a_one_sided_relation_has_that_directions_trade_off() -> None:
    run = hs.Gaussian(1.0).poisson(0.1) * 50
    both, one = hs.account(run), hs.account(run, "remove")
    for direction in ("remove", "add"):
        a, b = both.trade_off(0.01, direction=direction), one.trade_off(0.01, direction=direction)
        assert float(a.true_positive_rate.upper) == pytest.approx(float(b.true_positive_rate.upper), rel=1e-9, abs=0.0)  # type: ignore[union-attr]


def powers(p: tuple[Fraction, ...], q: tuple[Fraction, ...], alpha: Fraction) -> Fraction:
    """The largest P(attack) among attacks with Q(attack) = alpha (Neyman and Pearson), exactly."""
    found, left = Fraction(0), alpha
    for a, b in sorted(zip(p, q, strict=True), key=lambda ab: -float(ab[0] / ab[1]) if ab[1] else -math.inf):
        share = min(left / b, Fraction(1)) if b else Fraction(1)
        found, left = found + share * a, left - share * b
    return found


@pytest.mark.parametrize("relation", ["add-remove", "remove", "add"])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_each_directions_attack_has_the_power_of_its_own_likelihood_ratio(relation: str, direction: str) -> None:
    """An asymmetric pair, whose two directions differ everywhere: with the record p, without it q."""
    p = (Fraction(1, 16), Fraction(3, 16), Fraction(3, 4))
    q = (Fraction(1, 128), Fraction(31, 128), Fraction(3, 4))
    curve = hs.account(hs.DiscretePair(p, q), relation)
    first, second = (p, q) if direction == "remove" else (q, p)
    alphas = (0.0, 0.0078125, 0.05, 0.25, 0.6, 1.0)
    found = curve.trade_off(alphas, direction=direction)
    for index, alpha in enumerate(alphas):
        power = powers(first, second, Fraction(alpha))
        assert holds(found.true_positive_rate, index, mpf(power.numerator) / power.denominator), alpha
        assert holds(found.false_negative_rate, index, 1 - mpf(power.numerator) / power.denominator), alpha
    width = found.true_positive_rate.upper - found.true_positive_rate.lower  # type: ignore[union-attr]
    assert np.all(np.asarray(width) < 2e-3)
    if relation == direction:
        assert_same(curve.trade_off(alphas), found)


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.1, 0.2, 0.3, 0.5, 0.9, 1.0])
def test_the_worst_of_two_directions_is_what_the_better_of_their_attacks_reaches(alpha: float) -> None:
    """Between the two a convex function would promise attacks that nobody has: 0.675 at 0.3 here, where 0.6 is true."""
    p, q = (Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 8), Fraction(7, 8))
    curve = hs.account(hs.DiscretePair(p, q))
    power = max(powers(p, q, Fraction(alpha)), powers(q, p, Fraction(alpha)))
    found = curve.trade_off([alpha])
    assert holds(found.true_positive_rate, 0, mpf(power.numerator) / power.denominator)
    assert holds(found.false_negative_rate, 0, 1 - mpf(power.numerator) / power.denominator)
    assert found.true_positive_rate.width[0] <= 2e-3  # type: ignore[union-attr]
    drawn = sampled(curve, 3.0, least=1e-3).trade_off()
    missed = float(1 - power)
    assert np.interp(alpha, *drawn.below) <= missed <= np.interp(alpha, *drawn.above)
    assert np.interp(alpha, *drawn.above) - np.interp(alpha, *drawn.below) <= 0.02


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_what_several_datasets_show_at_different_epsilons_is_no_attack_on_one_of_them(steps: int) -> None:
    """Each pair's trade-off is convex, the smallest of them is not: 0.6 at 0.2 was promised here, where 0.556 is true.

    A batch of one of two records, of which one is replaced: every step shows one of two orders of one pair.
    """
    p, q = (Fraction(1, 2), Fraction(1, 2)), (1 - Fraction(0.9), Fraction(0.9))
    splits = [
        [functools.reduce(products, [(p, q)[way]] * turned + [(q, p)[way]] * (steps - turned)) for way in (0, 1)]
        for turned in range(steps + 1)
    ]
    curve = hs.account(hs.RandomizedResponse(0.9).without_replacement(batch_size=1, population=2) * steps, "substitute")
    alphas = (0.0, 1e-3, 0.01, 0.05, 0.2, 0.3, 0.5, 0.8, 0.95, 1.0)
    found, drawn = curve.trade_off(alphas), sampled(curve, 3.0 * steps, least=1e-6).trade_off()
    for index, alpha in enumerate(alphas):
        power = max(powers(first, second, Fraction(alpha)) for first, second in splits)
        assert float(found.true_positive_rate.lower[index]) <= power <= float(found.true_positive_rate.upper[index])  # type: ignore[index,union-attr]
        missed = 1 - power
        assert float(found.false_negative_rate.lower[index]) <= missed <= float(found.false_negative_rate.upper[index])  # type: ignore[index,union-attr]
        assert np.interp(alpha, *drawn.below) <= missed <= np.interp(alpha, *drawn.above)
        assert float(found.true_positive_rate.lower[index]) >= power * (1 - Fraction(1, 10**9) if steps == 1 else 0.8)  # type: ignore[index]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("relation", ["add-remove", "remove"])
def test_an_attack_on_one_of_many_pairs_of_datasets_is_on_that_pair(relation: str, direction: str) -> None:
    """Two candidates with a gap of 0, or of half of epsilon on either side, on samples of rate 1/4."""
    mechanism = hs.PermuteAndFlip(2.0)
    shown = []
    for pair in mechanism.attained("remove") or ():
        drawn = tuple((p + 3 * q) / 4 for p, q in zip(pair.p, pair.q, strict=True))  # type: ignore[attr-defined]
        shown.append((drawn, pair.q)[:: 1 if direction == "remove" else -1])  # type: ignore[attr-defined]
    alphas = (1e-3, 0.05, 0.2, 0.5, 0.9)
    found = hs.account(mechanism.poisson(0.25) * 2, relation).trade_off(alphas, direction=direction).true_positive_rate
    for index, alpha in enumerate(alphas):
        power = max(powers(products(p, p), products(q, q), Fraction(alpha)) for p, q in shown)
        assert 0.97 * power <= float(found.lower[index]) <= power <= float(found.upper[index])  # type: ignore[index,union-attr]


@pytest.mark.parametrize("relation", ["substitute", "add-remove", "add"])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3, 0.5, 0.7])
def test_a_pair_stated_for_both_orders_of_two_datasets_is_attacked_in_one_of_them(relation: str, alpha: float) -> None:
    p, q = (Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 8), Fraction(7, 8))
    pair = DiscretePair(p, q)
    curve = hs.account(hs.UserDefined(remove=pair, add=pair, substitute=pair), relation)
    power = max(powers(p, q, Fraction(alpha)), powers(q, p, Fraction(alpha)))
    found = curve.trade_off(alpha).true_positive_rate
    assert power * Fraction(999, 1000) <= found.sides[0] <= power <= found.sides[1]
    drawn = sampled(curve, 2.0, least=1.0).trade_off()
    assert np.interp(alpha, *drawn.below) <= 1 - power <= np.interp(alpha, *drawn.above)


def test_laws_below_what_datasets_show_are_no_pair_of_datasets() -> None:
    curve = hs.account(hs.Gaussian(2.5).shuffled(batch_size=1, population=25) * 2, "substitute")
    assert any(pair.curve is not None for pairs, _ in curve.composition.attained("substitute") or () for pair in pairs)
    assert Asked(curve).shown_at("substitute", 0.5) is None


def test_of_a_run_of_which_no_datasets_are_known_the_lower_side_alone_is_told() -> None:
    """It was a TypeError, of nothing that could be added up."""
    stated = hs.UserDefined(hs.Laplace(1.0).pair("remove"), substitute=DiscretePair((0.7, 0.2, 0.1), (0.1, 0.3, 0.6)))
    run = stated.without_replacement(batch_size=1, population=10) * 5
    found = hs.account(run, "substitute").trade_off(np.array([0.01, 0.1])).false_negative_rate
    assert (np.asarray(found.lower) > 0.5).all()  # type: ignore[union-attr]
    assert np.allclose(found.upper, [0.99, 0.9], rtol=1e-9, atol=0.0)  # type: ignore[union-attr]


def products(one: tuple[Fraction, ...], other: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    return tuple(a * b for a in one for b in other)


def test_a_picture_from_crossings_promises_no_attack_between_those_of_two_directions() -> None:
    p, q = (Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 8), Fraction(7, 8))
    curve = hs.account(hs.DiscretePair(p, q))
    deltas = np.geomspace(0.37, 1e-3, 9).tolist()
    drawn = crossed(curve, crossings(curve, deltas, deltas)).trade_off()
    for alpha in (0.05, 0.2, 0.3, 0.5, 0.8):
        power = max(powers(p, q, Fraction(alpha)), powers(q, p, Fraction(alpha)))
        assert np.interp(alpha, *drawn.below) <= 1 - power <= np.interp(alpha, *drawn.above)


@pytest.mark.parametrize("alpha", [5e-324, 1.5e-323, 1e-310])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_rates_too_small_to_be_rounded_relative_to_themselves_are_contained(alpha: float, direction: str) -> None:
    p, q = (Fraction(4, 5), Fraction(1, 5)), (Fraction(3, 5), Fraction(2, 5))
    found = hs.account(hs.DiscretePair(p, q)).trade_off(alpha, direction=direction).true_positive_rate
    first, second = (p, q) if direction == "remove" else (q, p)
    lower, upper = (Fraction(float(side)) for side in found.sides)
    assert lower <= powers(first, second, Fraction(alpha)) <= upper


def assert_same(first: hs.TradeOff, second: hs.TradeOff) -> None:
    """One-sided relations have one direction: the worst is that one."""
    assert np.array_equal(first.true_positive_rate.upper, second.true_positive_rate.upper)  # type: ignore[union-attr]
    assert np.array_equal(first.true_positive_rate.lower, second.true_positive_rate.lower)  # type: ignore[union-attr]


def test_mass_at_infinity_is_found_at_no_false_positive() -> None:
    found = hs.account(hs.ApproximateDP(0.5, 0.01)).trade_off([0.0, 0.1])
    assert holds(found.true_positive_rate, 0, mpf(0.01))
    expected = mpf(0.01) + mp.exp(mpf(0.5)) * mpf(0.1)
    assert holds(found.true_positive_rate, 1, expected)


def test_advantage_is_the_total_variation() -> None:
    bound = hs.account(hs.Gaussian(1.0)).advantage()
    assert isinstance(bound, Bound)
    assert mpf(float(bound.lower)) <= 2 * ncdf(mpf("0.5")) - 1 <= mpf(float(bound.upper))


def test_crossings_of_an_estimate_are_no_certified_picture() -> None:
    """What is answered at infinite epsilon is certified whoever is asked."""
    curve = hs.account(hs.Laplace(1.0) * 5, accountant=hs.accountants.SaddlePoint())
    assert curve.delta(math.inf).certified
    assert not crossed(curve, crossings(curve, (), needed=(1e-3, 1e-2))).certified


def test_estimates_stay_estimates() -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(0.01) * 1000, accountant=hs.accountants.SaddlePoint())
    assert isinstance(curve.true_positive_rate(0.01), hs.Estimate)


def test_tables_have_columns_of_one_length() -> None:
    curve = hs.account(hs.Gaussian(1.0))
    table = curve.trade_off([0.1, 0.2, 0.3]).to_table()
    assert {len(column) for column in table.values()} == {3}
    assert set(curve.to_table(delta=[1e-5])) == {"delta", "epsilon_lower", "epsilon_upper"}
    with pytest.raises(TypeError, match="either epsilon or delta"):
        curve.to_table()


@pytest.mark.parametrize(
    ("alpha", "error", "words"),
    [
        (1.5, ValueError, "1.5"),
        (math.nan, ValueError, "NaN"),
        ("x", TypeError, "real numbers"),
        (True, TypeError, "real"),
        ([[0.1], [0.1, 0.2]], TypeError, "as many in every row"),
    ],
)
def test_bad_rates_are_refused_by_name(alpha: Any, error: type[Exception], words: str) -> None:
    curve = hs.account(hs.Gaussian(1.0))
    with pytest.raises(error, match=words):
        curve.trade_off(alpha)
    with pytest.raises(ValueError, match="direction must be one of 'worst', 'remove', 'add', got"):
        curve.trade_off(0.1, direction="sideways")


def test_a_point_looked_at_twice_says_nothing_of_slopes() -> None:
    def known(epsilon: float) -> Value:
        value = 0.0 if math.isinf(epsilon) else float(gaussian_delta(1.0, epsilon))
        return Value(value * (1.0 - 1e-15), value * (1.0 + 1e-15))

    side, other = Side(known), Side(known)
    side.add(0.5, 1.0, 2.0)
    other.add(0.0, 1.0)
    found = side.corners(other)
    for a, lower in zip(found.a[:-1].tolist(), found.lower[:-1].tolist(), strict=True):
        assert lower <= float(gaussian_delta(1.0, math.log(a))) * (1.0 + 1e-12)
