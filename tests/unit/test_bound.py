"""A bracket is refused when its sides are out of order: the last guard before a caller."""

from __future__ import annotations

import math
import operator
import pickle
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest

from hockeystick.bound import Bound, Estimate


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(1.0, math.nextafter(1.0, 0.0)), (math.inf, 1.0), (math.nan, 1.0), (0.0, math.nan)],
)
def test_sides_out_of_order_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(ValueError, match="lower must be at most upper"):
        Bound(lower, upper, "some method")


def test_one_pair_of_sides_out_of_order_among_many_is_refused() -> None:
    with pytest.raises(ValueError, match="lower must be at most upper"):
        Bound(np.array([0.0, 0.5, 0.0]), np.array([1.0, 0.25, 1.0]), "some method")
    with pytest.raises(ValueError, match="shape"):
        Bound(np.zeros(3), np.ones(2), "some method")


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
@pytest.mark.parametrize("number", [2, 2.5, np.float64(2.5), np.array([2.5, 3.0])])
def test_a_comparison_with_a_number_says_which_side_to_take(
    compare: Callable[[object, object], object], number: object
) -> None:
    for answer, take in ((Bound(2.0, 3.0, "some method"), ".upper"), (Estimate(2.0, 0.1, "some method"), ".value")):
        for sides in ((answer, number), (number, answer)):
            with pytest.raises(TypeError, match=f"take {take}"):
                compare(*sides)
    assert Bound(2.0, 3.0, "some method") != "a text"
    assert answer in [answer, 1.0]
    assert len({answer, answer}) == 1


def test_decimals_are_those_of_the_sides() -> None:
    third = (Decimal("0.333333333333333333332"), Decimal("0.333333333333333333334"))
    bound = Bound(0.3333333333333333, 0.33333333333333337, "some method", decimals=third)
    assert pickle.loads(pickle.dumps(bound)).decimals == third  # noqa: S301 - our own
    for sides in ((0.0, 0.33333333333333337), (0.3333333333333333, 1.0), (np.zeros(1), np.ones(1))):
        with pytest.raises(ValueError, match="decimals"):
            Bound(*sides, "some method", decimals=third)


def test_a_side_of_minus_0_is_0() -> None:
    assert str(Bound(-0.0, 1.0, "test").lower) == "0.0"
    assert str(Bound(np.array([-0.0]), np.array([1.0]), "test").lower) == "[0.]"
