"""Crossings: each side of an epsilon is a point where delta is proved to be on its side of the target."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from hockeystick.engines.contour.root_bracket import LogBracket, RootBracket, Targets, root_brackets
from hockeystick.numerics.one_sided_root import one_sided_root
from hockeystick.numerics.roots import increasing_root, newton_root


def test_a_root_among_large_numbers_is_found_to_two_neighbours() -> None:
    """No float lies between, however fine the tolerance: the search ended never."""
    assert increasing_root(lambda x: -1.0 if x < 3e20 else 1.0, 0.0, 1e21, 1e-3) == pytest.approx(
        3e20, rel=1e-15, abs=0.0
    )


@pytest.mark.parametrize(
    ("function", "root", "most"),
    [
        (lambda x: (x - 0.3, 1.0), 0.3, 2),
        (lambda x: (math.log1p(x) - 0.5, 1.0 / (1.0 + x)), math.expm1(0.5), 8),
        (lambda x: (math.expm1(9.0 * (x - 2.5)), 9.0 * math.exp(9.0 * (x - 2.5))), 2.5, 20),
        (lambda x: (-1.0 if x < 1.7 else 2.0, 0.0), 1.7, 40),  # a jump, whose slopes tell nothing
        (lambda x: (max(x - 0.9, -0.01), float(x > 0.89)), 0.9, 12),  # level before a kink
        (lambda x: (x + 1.0, 1.0), 0.0, 1),
        (lambda x: (x - 9.0, 1.0), 4.0, 30),
        (lambda _: (-1.0, 0.0), 4.0, 40),
    ],
)
def test_steps_by_slopes_are_few_and_stay_in_the_interval(
    function: Callable[[float], tuple[float, float]], root: float, most: int
) -> None:
    asked: list[float] = []
    found = newton_root(lambda x: asked.append(x) or function(x), 0.0, 4.0, 1e-6)  # type: ignore[func-returns-value]
    assert abs(found - root) <= 2e-6
    assert len(asked) <= most
    assert all(0.0 <= x <= 4.0 for x in asked)


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

    def curve(rows: np.ndarray, points: np.ndarray) -> LogBracket:
        own = doubt if points.shape[1] > 5 else 0.2 * doubt
        return LogBracket(-2.0 * points - own, -2.0 * points + own)

    targets = Targets(np.array([-4.0]), np.array([-4.0]))
    start, slope, reach = np.array([1.9]), np.array([2.0]), np.array([1.0])
    for spread in (0.3, 1e-3):  # the crossing lies within, and far beyond
        found = root_brackets(curve, targets, start=start, spread=np.array([spread]), slope=slope, reach=reach)
        assert found.lower[0] <= 2.0 - 0.5 * doubt * (1.0 - 1e-6)
        assert found.upper[0] >= 2.0 + 0.5 * doubt * (1.0 - 1e-6)
        assert found.upper[0] - found.lower[0] <= 5.0 * doubt


def test_crossings_found_together_are_those_found_alone() -> None:
    """Among them curves that no interpolation serves, and one that is never proved."""
    rng = np.random.default_rng(0)
    steepness, goal = rng.uniform(0.5, 20.0, 40), rng.uniform(-9.0, -1.0, 40)
    start, spread, reach = rng.uniform(0.0, 3.0, 40), 10.0 ** rng.uniform(-6.0, 0.0, 40), np.full(40, 30.0)

    def curve(rows: np.ndarray, points: np.ndarray) -> LogBracket:
        value = -steepness[rows, None] * points - np.where(rows[:, None] % 3 == 0, np.abs(points - 1.0), 0.0)
        doubt = np.where(rows[:, None] == 7, np.inf, 1e-9)
        return LogBracket(value - doubt, value + doubt)

    def asked(rows: np.ndarray) -> RootBracket:
        return root_brackets(
            lambda own, points: curve(rows[own], points),
            Targets(goal[rows], goal[rows]),
            start=start[rows],
            spread=spread[rows],
            slope=steepness[rows],
            reach=reach[rows],
        )

    whole = asked(np.arange(40))
    assert np.isinf(whole.upper[7])
    for index in range(40):
        alone = asked(np.array([index]))
        for name in ("point", "lower", "upper"):
            assert getattr(alone, name)[0] == getattr(whole, name)[index], (index, name)
        if index != 7:
            lower, upper = float(whole.lower[index]), float(whole.upper[index])
            row = np.array([index])
            assert curve(row, np.array([[lower]])).lower[0, 0] >= goal[index]
            assert curve(row, np.array([[upper]])).upper[0, 0] <= goal[index]
            assert upper - lower <= 1e-6


def test_questions_are_asked_in_order() -> None:
    """Whatever the rounds before left of them: answers that stand for all of them are taken as they come."""

    def curve(rows: np.ndarray, points: np.ndarray) -> LogBracket:
        assert (np.diff(rows) > 0).all()
        kink = np.where(rows[:, None] == 0, 3.0 * np.abs(points - 1.0), 0.0)
        return LogBracket(-2.0 * points - kink - 1e-9, -2.0 * points - kink + 1e-9)

    goal, reach = np.full(2, -4.0), np.full(2, 30.0)
    start, spread, slope = np.array([1.35, 5.0]), np.array([0.5, 1e-3]), np.full(2, 2.0)  # the first is left to prove
    found = root_brackets(curve, Targets(goal, goal), start=start, spread=spread, slope=slope, reach=reach)
    assert found.point == pytest.approx([1.4, 2.0], rel=0.0, abs=1e-8)
