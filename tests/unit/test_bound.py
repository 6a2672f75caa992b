"""A bracket is refused when its sides are out of order: the last guard before a caller."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hockeystick.bound import Bound


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
