"""Crossings: each side of an epsilon is a point where delta is proved to be on its side of the target."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from hockeystick.engines.contour.root_bracket import LogBracket, root_bracket
from hockeystick.numerics.one_sided_root import one_sided_root


@pytest.mark.parametrize(("guess", "slope", "step"), list(product([0.0, 3.0, 40.0], [0.3, 1.0, 20.0], [1e-3, 1e-9])))
def test_each_side_keeps_to_its_own(guess: float, slope: float, step: float) -> None:
    def delta(epsilon: float) -> float:
        return 0.5 * math.exp(-epsilon) + (0.01 if epsilon < 5.0 else 0.0)  # with a jump

    for target in (0.2, 0.02, 0.01, 1e-3, 1e-9):
        upper, lower = (
            one_sided_root(delta, target, guess=guess, slope=slope, step=step, above=above) for above in (True, False)
        )
        assert delta(upper) <= target <= delta(lower)
        assert 0.0 <= lower <= upper <= lower + 2.0 * step + 1e-12 * upper


def test_where_delta_is_level_each_side_is_the_far_end_of_its_own() -> None:
    def delta(epsilon: float) -> float:
        return 0.5 if epsilon < 1.0 else 0.25 if epsilon <= 2.0 else 0.125

    upper = one_sided_root(delta, 0.25, guess=1.5, slope=1.0, step=1e-6, above=True)
    lower = one_sided_root(delta, 0.25, guess=1.5, slope=1.0, step=1e-6, above=False)
    assert delta(upper) <= 0.25
    assert upper == pytest.approx(1.0, rel=0.0, abs=2e-6)  # the first point that is small enough
    assert lower == pytest.approx(2.0, rel=0.0, abs=2e-6)  # the last that is large enough


@pytest.mark.parametrize("doubt", [1e-9, 1e-3, 0.1])
def test_a_crossing_of_brackets_is_proved_by_the_side_that_decides(doubt: float) -> None:
    """``ln delta = -2 epsilon`` to within a doubt, which is larger than it seemed where the crossing is proved."""

    def curve(points: np.ndarray) -> LogBracket:
        own = doubt if points.size > 5 else 0.2 * doubt
        return LogBracket(-2.0 * points - own, -2.0 * points + own)

    found = root_bracket(curve, (-4.0, -4.0), start=1.9, slope=2.0, reach=1.0)
    assert found.lower <= 2.0 - 0.5 * doubt * (1.0 - 1e-6)
    assert found.upper >= 2.0 + 0.5 * doubt * (1.0 - 1e-6)
    assert found.upper - found.lower <= 5.0 * doubt
