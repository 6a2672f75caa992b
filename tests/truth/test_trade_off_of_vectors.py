"""Trade-offs of two probability vectors hold the exact ones, whatever their masses, from values as tight as float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from mpmath import exp, mp, mpf

import hockeystick as hs
from hockeystick.readouts.envelope import Enclosure, Rates, Value
from hockeystick.readouts.one_test import KnownTests
from hockeystick.readouts.outline import Samples

Vector = tuple[Fraction, ...]


def split(*masses: str) -> Vector:
    """A vector of these masses and the rest."""
    found = tuple(map(Fraction, masses))
    return (*found, 1 - sum(found))


def tight(p: Vector, q: Vector) -> Callable[[float], Value]:
    """The floats beside delta(epsilon)."""

    def value(epsilon: float) -> Value:
        with mp.workdps(400):
            a = exp(mpf(epsilon)) if math.isfinite(epsilon) else mpf(0)
            reached = [(x, y) for x, y in zip(p, q, strict=True) if y == 0 or math.isfinite(epsilon)]
            terms = [mpf(x.numerator) / x.denominator - a * y.numerator / y.denominator for x, y in reached]
            delta = sum((max(term, mpf(0)) for term in terms), mpf(0))
            near = float(delta)
            low, high = math.nextafter(near, 0.0), math.nextafter(near, 2.0)
            return Value(near if near <= delta else low, near if near >= delta else high)

    return value


def enclosure(p: Vector, q: Vector, forward: tuple[float, ...], backward: tuple[float, ...]) -> Enclosure:
    found = Enclosure(tight(p, q), tight(q, p))
    found.forward.add(*forward)
    found.backward.add(*backward)
    return found


def power(p: Vector, q: Vector, alpha: float) -> Fraction:
    """The largest P(attack) among attacks with Q(attack) = alpha (Neyman and Pearson), exactly."""
    found, left = Fraction(0), Fraction(alpha)
    for a, b in sorted(zip(p, q, strict=True), key=lambda both: -both[0] / both[1] if both[1] else -math.inf):
        share = min(left / b, Fraction(1)) if b else Fraction(1)
        found, left = found + share * a, left - share * b
    return found


def assert_holds(rates: Rates, p: Vector, q: Vector, alpha: float) -> None:
    found = power(p, q, alpha)
    assert Fraction(rates.positive.lower) <= found <= Fraction(rates.positive.upper), alpha
    assert Fraction(rates.negative.lower) <= 1 - found <= Fraction(rates.negative.upper), alpha


@pytest.mark.parametrize("rare", ["1e-20", "1e-40", "1e-60"])
def test_a_slope_that_rounding_hides_bounds_no_curve(rare: str) -> None:
    """Between e^-0.3 and 1 delta falls by no more than e^0 times the rare mass: by nothing in float64."""
    p, q = split("0.3"), split(rare)
    curve = hs.account(hs.DiscretePair(p, q), "remove", accountant=hs.accountants.Exact())
    found = curve.trade_off([0.7, 0.5, 0.3, 0.1, 1e-3 * float(rare)], direction="remove")
    for index, alpha in enumerate(found.false_positive_rate.tolist()):
        positive, negative = (side[index] for side in (found.true_positive_rate, found.false_negative_rate))  # type: ignore[index]
        exact = power(p, q, alpha)
        assert Fraction(float(positive.lower)) <= exact <= Fraction(float(positive.upper)), alpha
        assert Fraction(float(negative.lower)) <= 1 - exact <= Fraction(float(negative.upper)), alpha


def test_points_far_apart_bound_slopes_despite_the_rounding_of_their_distance() -> None:
    p, q = split("0.3"), split("1e-230")
    for before, after in ((2.92, 526.84), (112.65, 526.92), (118.4, 526.54)):
        found = enclosure(p, q, (before, after), ())
        rates, _ = found.rates(1e-260)
        assert_holds(rates, p, q, 1e-260)
        assert_holds(KnownTests.of(found).rates(1e-260, rates), p, q, 1e-260)


@pytest.mark.parametrize("rare", ["1e-305", "1e-310", "1e-318"])
@pytest.mark.parametrize("alpha", [5e-324, 3e-320, 1e-310, 1e-305, 0.5])
def test_curves_that_fall_beyond_what_float64_holds_are_enclosed(rare: str, alpha: float) -> None:
    p, q = split("0.3", "0.2"), split(rare, "1e-280")
    found = enclosure(p, q, (300.0, 640.0, 660.0, 690.0), (0.5, 1.0))
    for _ in range(2):  # both ways round
        rates = found.refined(alpha, 1e-3)
        assert_holds(rates, p, q, alpha)
        assert_holds(KnownTests.of(found).rates(alpha, rates), p, q, alpha)
        found, p, q = Enclosure(tight(q, p), tight(p, q)), q, p


def test_no_rate_is_above_one() -> None:
    """Next to infinity lower sides may be below that of the mass there, so that no line meets it beyond."""

    def known(epsilon: float) -> Value:
        exact = max(1.0 - math.exp(epsilon) / 4.0, 0.25) if math.isfinite(epsilon) else 0.25
        return Value(exact * (1.0 if math.isinf(epsilon) else 1.0 - 1e-9), exact)

    found = Enclosure(known)
    found.forward.add(1.5, 2.5)
    for alpha in (0.5, 1.0 - 1e-9, 1.0):
        rates, _ = found.rates(alpha)
        assert rates.positive.lower <= rates.positive.upper <= 1.0


def test_lines_next_to_a_largest_loss_are_moved_outward_by_more_than_a_rounding_of_places() -> None:
    largest = 2.0**-17
    with mp.workdps(60):
        odds = exp(mpf(largest))
        share = Fraction(str(odds / (1 + odds)))
    value = tight((share, 1 - share), (1 - share, share))
    for last in ((6, 4, 3, 2, 1), (2**51 - 1, 2**30, 2**20, 7, 5, 1)):
        epsilons = (0.0, *(largest * (1.0 - k * 2.0**-53) for k in (2**51, *last)), 2.0 * largest, math.inf)
        lines = Samples(epsilons, {"substitute": tuple(map(value, epsilons))}, certified=True).privacy(1e-30)
        for epsilon in (*epsilons[1:-2], *lines.below[0][1:-1].tolist(), *lines.above[0][1:-1].tolist()):
            above, below = (float(np.interp(epsilon, x, np.log(y))) for x, y in (lines.above, lines.below))
            exact = value(epsilon)
            assert exact.lower <= max(math.exp(above), 1e-30)
            assert exact.upper >= math.exp(below) or epsilon >= lines.below[0][-1]


def test_lines_of_known_tests_end_at_one() -> None:
    p, q = split("0.3"), split("0.25")
    for x, y in KnownTests.of(enclosure(p, q, (0.1, 3.0), (0.01, 4.0))).lines():
        assert np.all(np.diff(x) >= 0.0)
        assert (x[0], x[-1], y[-1]) == (0.0, 1.0, 0.0)


def test_the_line_below_a_trade_off_ends_before_its_last_floats() -> None:
    """Between 1 - 2^-60, where no attack misses, and 1 there is no float64."""
    loss = 2.0**-60
    known = (Value(loss, loss), Value(0.0, 0.0), Value(0.0, 0.0))
    x, y = Samples((0.0, 1.0, math.inf), {"substitute": known}, certified=True).trade_off("substitute").below
    alpha = 1.0 - 2.0**-53
    before = int(np.searchsorted(x, alpha)) - 1
    (a, b), (c, d) = map(Fraction, x[before : before + 2].tolist()), map(Fraction, y[before : before + 2].tolist())
    drawn = c + (d - c) * (Fraction(alpha) - a) / (b - a)
    assert drawn <= 1 - Fraction(loss) - Fraction(alpha)
