"""`Exact` gives as many digits as asked for, and they hold the truth in higher precision."""

from __future__ import annotations

from fractions import Fraction

import pytest
from mpmath import mp

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.errors import PrecisionError
from hockeystick.exact import exact_delta, exact_epsilon
from hockeystick.laws import DiscretePair, GaussianPair


def gaussian_delta(mu: Fraction, epsilon: Fraction) -> mp.mpf:
    """In closed form, to 120 digits."""
    m, e = mp.mpf(mu.numerator) / mu.denominator, mp.mpf(epsilon.numerator) / epsilon.denominator
    return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("digits", [16, 30, 50, 100])
@pytest.mark.parametrize("epsilon", [0.0, 0.75, 3.0])
@pytest.mark.parametrize("noise", [0.25, 1.0, 4.0])
def test_the_digits_asked_for_contain_the_closed_form(noise: float, epsilon: float, digits: int) -> None:
    curve = hs.account(hs.Gaussian(noise), accountant=hs.accountants.Exact(digits=digits))
    bound = curve.delta(epsilon)
    assert isinstance(bound, Bound)
    assert bound.decimals is not None
    low, high = (Fraction(side) for side in bound.decimals)
    with mp.workdps(120 + digits):
        truth = gaussian_delta(1 / Fraction(noise), Fraction(epsilon))
        assert mp.mpf(low.numerator) / low.denominator <= truth <= mp.mpf(high.numerator) / high.denominator
    assert high - low <= 4 * high / 10**digits
    assert bound.lower <= float(high)
    assert float(low) <= bound.upper


def test_few_digits_and_dominating_pairs_that_are_not_attained_have_none() -> None:
    exact = hs.accountants.Exact(digits=30)
    bound = hs.account(hs.Gaussian(1.0), accountant=hs.accountants.Exact(digits=15)).delta(1.0)
    assert isinstance(bound, Bound)
    assert bound.decimals is None
    fixed = hs.Gaussian(1.0).without_replacement(batch_size=1, population=3)  # a rate between two float64s
    bound = hs.account(fixed, "remove", accountant=exact).delta(0.5)
    assert isinstance(bound, Bound)
    assert bound.decimals is None  # the two sides come from different pairs


@pytest.mark.parametrize("epsilon", [5e3, 1e6, 1e300])
def test_deltas_that_no_memory_holds_are_above_0_and_next_to_it(epsilon: float) -> None:
    bound = hs.account(hs.Gaussian(1.0), "remove", accountant=hs.accountants.Exact(digits=20)).delta(epsilon)
    assert isinstance(bound, Bound)
    assert bound.lower == 0.0
    assert bound.decimals is not None
    assert bound.decimals[0] == 0 < bound.decimals[1]
    assert bound.upper == (5e-324 if epsilon < 1e300 else 1.0)


def test_an_enclosure_of_thousands_of_digits_is_shown() -> None:
    assert repr(exact_delta([(GaussianPair(1.0), 1)], 300.0)) == "Enclosure(3.053895103623556e-19484)"


@pytest.mark.parametrize("delta", [1e-12, 1e-20, 1e-100])
def test_epsilon_next_to_the_largest_loss_is_found(delta: float) -> None:
    p = Fraction(1, 2) + Fraction(1, 10**6)
    found = exact_epsilon([(DiscretePair((p, 1 - p), (1 - p, p)), 1)], delta)
    order = (p - Fraction(delta)) / (1 - p)
    with mp.workdps(200):
        truth = mp.log(mp.mpf(order.numerator) / order.denominator)
        assert found.contains(Fraction(int(truth * 2**500), 2**500))
    assert found.digits >= 15


@pytest.mark.parametrize("epsilon", [800.0, 1e300])
@pytest.mark.parametrize("direction", ["add", "remove"])
def test_rounds_beyond_the_range_of_their_plans_are_refused_in_words(direction: str, epsilon: float) -> None:
    rounds = hs.Gaussian(1.0).random_allocation(steps=3)
    curve = hs.account(rounds, direction, accountant=hs.accountants.Exact())
    with pytest.raises(PrecisionError, match="epsilons up to 600, got"):
        curve.delta(epsilon)


@pytest.mark.parametrize("rare", [Fraction(1, 10**50), Fraction(1, 10**300)])
def test_epsilon_is_found_where_delta_is_next_to_flat(rare: Fraction) -> None:
    p = Fraction(1, 2)
    delta = p - Fraction(1, 10**30)
    found = exact_epsilon([(DiscretePair((p, 1 - p), (rare, 1 - rare)), 1)], delta, digits=6)
    with mp.workdps(400):
        order = (p - delta) / rare  # delta = p - e^epsilon rare
        truth = mp.log(mp.mpf(order.numerator) / order.denominator)
        assert found.contains(Fraction(int(truth * 2**500), 2**500))
