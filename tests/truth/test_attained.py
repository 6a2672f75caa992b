"""The lower side is that of real neighbours: every mechanism under every scheme, drawn out in a world of three records.

The upper side is at least what any neighbours of that world show, the lower side at most what the best of them show;
both with no slack.
"""

from __future__ import annotations

import math
from functools import lru_cache

import pytest

import hockeystick as hs
from hockeystick.errors import PrecisionError
from hockeystick.sampling import SCHEMES as ALL_SCHEMES
from tests.truth.worlds import BASES, SCHEMES, World

DIRECTIONS = ("remove", "add", "substitute", "zero-out")

world = lru_cache(maxsize=8)(World)


def check(mechanism: str, scheme: str, direction: str, count: int, epsilon: float) -> bool:
    """Whether there is a bracket; if so, it holds."""
    try:
        run = SCHEMES[scheme][0](BASES[mechanism].step) * count
        bound = hs.account(run, direction).delta(epsilon)
    except (hs.UnknownPairError, PrecisionError):  # no pair is known, or no composition of its curve
        return False
    ways = (direction,) if direction != "zero-out" else ("zero-out", "zero-in")
    shown = max(world(mechanism, scheme, way).most(epsilon, count) for way in ways)
    said = mechanism, scheme, direction, count, epsilon, bound, shown
    assert bound.lower <= shown, said
    assert shown <= bound.upper, said
    return True


def test_every_scheme_has_a_world() -> None:
    drawn = {type(make(hs.Gaussian(1.0))) for make, _ in SCHEMES.values()}
    assert set(ALL_SCHEMES) <= drawn


@pytest.mark.parametrize("mechanism", ["PermuteAndFlip", "RandomizedResponse"])
@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_what_a_lower_side_claims_is_shown_by_neighbours(mechanism: str, scheme: str) -> None:
    direction = "zero-out" if scheme == "shuffled" else "remove"
    assert check(mechanism, scheme, direction, 1, 0.125)


@pytest.mark.parametrize(
    ("mechanism", "scheme", "direction"),
    [
        ("PermuteAndFlip", "none", "remove"),
        ("PermuteAndFlip", "random allocation", "remove"),
        ("RandomizedResponse", "fixed size", "substitute"),
    ],
)
def test_the_best_of_many_runs_claims_what_datasets_of_one_run_show(
    mechanism: str, scheme: str, direction: str
) -> None:
    tuned = hs.select_best(SCHEMES[scheme][0](BASES[mechanism].step), count=hs.PoissonCount(3.0))
    shown = world(mechanism, scheme, direction).most_of_best(0.5, 3.0)
    bound = hs.account(tuned, direction).delta(0.5)
    assert bound.lower <= shown <= bound.upper


def test_the_best_of_runs_of_which_no_datasets_are_known_has_no_lower_side() -> None:
    tuned = hs.select_best(hs.AboveThreshold(1.0, 1.0) * 2, count=hs.PoissonCount(3.0))
    assert hs.account(tuned).delta(0.5).lower == 0.0
    # what else is in the run counts, as if those steps released nothing
    both = hs.select_best(hs.AboveThreshold(1.0, 1.0) + hs.RandomizedResponse(), count=hs.PoissonCount(3.0))
    alone = hs.select_best(hs.RandomizedResponse(), count=hs.PoissonCount(3.0))
    lower, known = (hs.account(it).delta(0.5).lower for it in (both, alone))
    assert 0.9 * known < lower <= known


@pytest.mark.parametrize("direction", ["remove", "add", "add-remove"])
def test_the_way_back_of_a_one_sided_relation_claims_what_datasets_show(direction: str) -> None:
    curve = hs.account(BASES["PermuteAndFlip"].step, direction)
    ways = (world("PermuteAndFlip", "none", way) for way in ("remove", "add"))
    least = (1 - max(way.most(0.0, 1) for way in ways)) / 2
    risk = curve.bayes_risk(0.5)
    assert risk.lower <= least <= risk.upper  # type: ignore[operator]
    missed = curve.trade_off(float(least)).false_negative_rate
    assert missed.sides[0] <= least * (1 + 2**-50)  # type: ignore[operator]
    assert missed.sides[1] >= least * (1 - 2**-50)  # type: ignore[operator]
    nothing = hs.account(hs.AboveThreshold(1.0, 1.0), direction)
    assert nothing.bayes_risk(0.5).sides[1] == 0.5
    assert nothing.mu().sides[0] == 0.0


def test_one_step_of_a_round_may_show_how_little_is_in_it_where_the_others_show_nothing() -> None:
    assert check("ApproximateDP", "random allocation", "add", 1, 0.75)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_rounds_of_a_step_that_hides_nothing_hide_nothing(direction: str) -> None:
    curve = hs.account(hs.DiscretePair((1.0, 0.0), (0.0, 1.0)).random_allocation(steps=3), direction)
    bound = curve.delta(0.3)
    assert 0.999 < bound.lower <= bound.upper == 1.0
    assert curve.mu().sides == (math.inf, math.inf)
    split = hs.DiscretePair((1.0, 0.0, 0.0), (0.0, 0.5, 0.5)).random_allocation(steps=10)
    assert hs.account(split, direction).mu(floor=1e-9).sides == (math.inf, math.inf)


def test_rounds_compose_next_to_their_largest_loss() -> None:
    run = hs.Laplace(3.0770739236373283).random_allocation(steps=3) * 2
    bound = hs.account(run).epsilon(4.195485407367732e-19)
    # of two rounds, both show the largest ratio of all three steps: of this chance, the loss is 2 / scale
    assert bound.lower <= 2.0 / 3.0770739236373283 <= bound.upper <= 0.6499681351938


@pytest.mark.torture
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("scheme", sorted(SCHEMES))
@pytest.mark.parametrize("mechanism", sorted(BASES))
def test_both_sides_hold_in_every_world(mechanism: str, scheme: str, direction: str) -> None:
    for count in (1, 2):
        for epsilon in (0.0, 0.03125, 0.125, 0.375, 0.75, 1.25):
            check(mechanism, scheme, direction, count, epsilon)
