"""Runs of several laws whose large losses are rare: one line takes the losses of all apart, and contains the truth.

Terms of the bracket are tested where each is the largest, as for one law (`test_rare_losses.py`).
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mpmath import mp

import hockeystick as hs
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.rare.curve import RareCurve
from hockeystick.engines.rare.excess import log_excess
from hockeystick.engines.rare.line import RareLine, pieces_of, rare_line
from hockeystick.engines.rare.losses import RareLosses, RareSum
from hockeystick.engines.rare.powers import difference, log_difference, moved
from hockeystick.engines.rare.runs import RareRuns
from hockeystick.exact import exact_delta
from hockeystick.laws import GaussianPair, SubsampledPair
from hockeystick.laws.base import Parts
from tests.rare_pieces import sides_around

LAWS = ((1.6, 3e-4, 40), (1.0, 7e-4, 160))  # noise, rate, steps
EPSILON = 0.12


def parts_of(laws: tuple[tuple[float, float, int], ...]) -> Parts:
    return tuple((SubsampledPair(GaussianPair(noise), rate), steps) for noise, rate, steps in laws)


def sum_of(laws: tuple[tuple[float, float, int], ...]) -> RareSum:
    return RareSum(tuple(RareLosses(1.0 / noise, rate, float(steps)) for noise, rate, steps in laws))


@functools.cache
def truth(epsilon: float = EPSILON, laws: tuple[tuple[float, float, int], ...] = LAWS) -> tuple[float, float]:
    found = exact_delta(parts_of(laws), epsilon, digits=10)
    return float(found.lower), float(found.upper)


@functools.cache
def planned(log_error: float = math.log(1e-6 * 3e-8)) -> RareLine:
    return rare_line(sum_of(LAWS), EPSILON, log_error)


def with_plan(**changes: Any) -> RareLine:
    line = planned()
    found = replace(line.found, **changes)
    return replace(line, found=found, pieces=pieces_of(sum_of(LAWS), found))


def assert_contains(line: RareLine) -> tuple[float, float]:
    return sides_around(truth(), line, EPSILON)


def test_a_planned_line_contains_the_truth_narrowly() -> None:
    lower, upper = assert_contains(planned())
    assert upper - lower <= 1e-5 * lower


def test_the_cuts_of_all_laws_are_at_one_loss() -> None:
    found = planned().found
    for cuts in (found.low, found.high):
        losses = [float(law.loss(np.array([cut]))[0]) for law, cut in zip(sum_of(LAWS).laws, cuts, strict=True)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-9)


@pytest.mark.parametrize("law", [0, 1])
@pytest.mark.parametrize("part", [0, 2])
@pytest.mark.parametrize("turn", [1.0, 1j, -1.0, -1j])
def test_transforms_off_by_the_errors_that_they_state_count_as_such(law: int, part: int, turn: complex) -> None:
    line = replace(planned())
    step = line.steps[law]
    found = list(step.transforms)
    error = 1e-6 * step.moments[part // 2]
    found[part], found[part + 1] = found[part] + error * turn, found[part + 1] + error
    vars(step)["transforms"] = tuple(found)
    lower, upper = assert_contains(line)
    assert upper - lower <= 0.15 * lower


@pytest.mark.parametrize("times", [1.25, 1.5, 2.0])
def test_a_line_of_too_long_steps_subtracts_the_periods_below(times: float) -> None:
    line = planned()
    assert_contains(replace(line, step=line.step * times, frequencies=math.ceil(line.frequencies / times)))


@pytest.mark.parametrize("times", [2.0, 3.0])
def test_a_line_of_too_large_a_tilt_subtracts_the_periods_above(times: float) -> None:
    found = planned().found
    line = with_plan(tilt=times * found.tilt, above=1.2 * times * found.tilt)
    step = line.step * (1.0 + 1.0 / times)
    assert_contains(replace(line, step=step, frequencies=math.ceil(line.frequencies * line.step / step)))


@pytest.mark.parametrize("share", [0.03, 0.06, 0.1, 0.15, 0.25])
def test_a_line_cut_short_adds_what_lies_beyond(share: float) -> None:
    line = planned()
    assert_contains(replace(line, frequencies=math.ceil(share * line.frequencies)))


@pytest.mark.parametrize("law", [0, 1])
@pytest.mark.parametrize(("cut", "by"), [("low", 0.5), ("low", 0.8), ("high", -0.4), ("high", -0.7)])
def test_cuts_that_are_off_for_one_law_add_what_they_leave_out(cut: str, by: float, law: int) -> None:
    cuts = list(getattr(planned().found, cut))
    cuts[law] += by
    assert_contains(with_plan(**{cut: tuple(cuts)}))


@pytest.mark.parametrize("law", [0, 1])
def test_pieces_that_end_early_add_the_mass_beyond(law: int) -> None:
    pieces = planned().pieces[law]
    for place in range(pieces.sizes.size):
        own = np.arange(pieces.sizes.size) == place
        last = np.where(own, pieces.first + np.ceil(0.5 * (pieces.last - pieces.first)), pieces.last)
        short = tuple(replace(one, last=last) if one is pieces else one for one in planned().pieces)
        assert_contains(replace(planned(), pieces=short))


def test_two_laws_that_are_one_are_bounded_as_one_law_is() -> None:
    one, two = sum_of(((1.0, 7e-4, 250),)), sum_of(((1.0, 7e-4, 160), (1.0, 7e-4, 90)))
    power = np.array([40.0])
    together = [log_excess(losses, [3.0] * len(losses.laws), power, times=losses.counts[None]) for losses in (one, two)]
    assert together[0][0] == pytest.approx(together[1][0], rel=1e-8)
    a, b = np.array([0.999, 0.9]), np.array([1e-4, 0.2])
    logs = [
        log_difference(np.array([a] * len(losses.laws)), np.array([b] * len(losses.laws)), losses.counts[None])
        for losses in (one, two)
    ]
    assert logs[0] == pytest.approx(logs[1], rel=1e-8)


def random_transforms(rng: np.random.Generator, ratio: tuple[float, float]) -> list[tuple[Any, float, Any, float]]:
    """Of three laws, next to one, of sizes of B over A between two powers of ten."""
    laws = []
    for steps in (2.0, 300.0, 1.0):
        a = (1.0 - 0.1 * rng.random(40) / steps) * np.exp(1j * rng.uniform(-3.0, 3.0, 40))
        b = 10.0 ** rng.uniform(*ratio, 40) * np.exp(1j * rng.uniform(-3.0, 3.0, 40)) / steps
        laws.append((a, 1e-9, b, 1e-10))
    return laws


def exact_difference(laws: list[tuple[Any, float, Any, float]], place: int, steps: tuple[int, ...]) -> Any:
    one, other = mp.mpc(1), mp.mpc(1)
    for (a, _, b, _), number in zip(laws, steps, strict=True):
        one *= (mp.mpc(complex(a[place])) + mp.mpc(complex(b[place]))) ** number
        other *= mp.mpc(complex(a[place])) ** number
    return one - other


@pytest.mark.parametrize("ratio", [(-12.0, -1.0), (-1.0, 0.3)])
def test_differences_of_products_err_by_no_more_than_they_say(ratio: tuple[float, float]) -> None:
    laws, steps = random_transforms(np.random.default_rng(7), ratio), (2, 300, 1)
    value, error = difference(laws, np.array([steps], dtype=float))
    for place in range(40):
        with mp.workdps(60):
            exact = exact_difference(laws, place, steps)
            assert abs(mp.mpc(complex(value[0, place])) - exact) <= error[0, place]
        assert error[0, place] <= 1e-9 * max(abs(complex(exact)), 1e-3)


@pytest.mark.parametrize("turn", [1.0, -1.0, 1j])
@pytest.mark.parametrize(("law", "part"), [(law, part) for law in range(3) for part in (0, 2)])
def test_products_of_transforms_that_are_off_move_by_no_more_than_is_said(law: int, part: int, turn: complex) -> None:
    laws, steps = random_transforms(np.random.default_rng(8), (-4.0, 0.0)), (2, 300, 1)
    off = [list(one) for one in laws]
    off[law][part] = off[law][part] + 0.999 * turn * off[law][part + 1]
    bound = moved(laws, np.array([steps], dtype=float))
    exactly = [(a, 0.0, b, 0.0) for a, _, b, _ in laws]
    a, a_error, b, b_error = laws[law]
    exactly[law] = (a, a_error, b, 0.0) if part == 0 else (a, 0.0, b, b_error)
    alone = moved(exactly, np.array([steps], dtype=float))
    for place in range(40):
        with mp.workdps(60):
            by = abs(exact_difference([tuple(one) for one in off], place, steps) - exact_difference(laws, place, steps))
            assert by <= alone[0, place] <= bound[0, place]


def test_runs_of_several_laws_on_one_line_contain_their_own_truths() -> None:
    counts, rows = np.array([[40.0, 160.0], [30.0, 120.0]]), np.arange(2)
    lower, upper = RareRuns(planned(), counts).sides(rows, np.full((2, 1), EPSILON))
    for row, (some, others) in enumerate(counts.astype(int).tolist()):
        least, most = truth(laws=((*LAWS[0][:2], some), (*LAWS[1][:2], others)))
        assert lower[row, 0] <= most
        assert least <= upper[row, 0] <= 1.01 * lower[row, 0]
        alone = RareRuns(planned(), counts[row : row + 1]).sides(np.zeros(1, dtype=int), np.full((1, 1), EPSILON))
        assert (alone[0][0, 0], alone[1][0, 0]) == (lower[row, 0], upper[row, 0])


@pytest.mark.parametrize(
    ("laws", "delta"),
    [
        (LAWS, 1e-8),
        (((1.0, 2e-2, 18), (0.8, 1e-2, 4)), 1e-12),
        (((0.9, 0.05, 3), (10.0, 0.03, 40)), 1e-5),
        (((1.0, 3e-2, 9), (5.0, 1e-3, 1)), 1e-6),
    ],
)
def test_epsilons_contain_the_truth(laws: tuple[tuple[float, float, int], ...], delta: float) -> None:
    curve = RareCurve.of(parts_of(laws), 1e-6)
    assert curve is not None
    bound = curve.epsilon(delta)
    assert 0.0 < bound.upper - bound.lower <= 1e-6
    assert truth(float(bound.upper), laws)[0] <= delta <= truth(float(bound.lower), laws)[1]


@pytest.mark.parametrize("place", [0, 1])
def test_a_law_that_adds_next_to_nothing_costs_next_to_nothing(place: int) -> None:
    """A loss of that size would be 400 deviations above the mean: pieces there would take millions of nodes."""
    alone, laws = RareCurve.of(parts_of(LAWS[:1]), 1e-6), [LAWS[0]]
    laws.insert(place, (15.0, 1e-30, 100))
    beside = RareCurve.of(parts_of(tuple(laws)), 1e-6)
    assert alone is not None
    assert beside is not None
    one, other = alone.epsilon(1e-8), beside.epsilon(1e-8)
    assert one.lower <= other.upper
    assert other.lower <= one.upper
    line = beside.standing.at(beside.station(math.log(1e-8)))
    assert line is not None
    assert sum(int(own.sizes.sum()) for own in line.pieces) <= 10_000


def test_one_line_of_several_laws_is_kept() -> None:
    """Each holds the transforms of every law: those for ten deltas of 300 laws would take gigabytes."""
    curve = RareCurve.of(parts_of(LAWS), 1e-6)
    assert curve is not None
    both = [float(curve.epsilon(delta).upper) for delta in (1e-8, 1e-9, 1e-8)]
    assert both[0] == both[2] < both[1]
    assert len(curve.standing._lines) == 1


def test_deltas_contain_the_truth() -> None:
    curve = RareCurve.of(parts_of(LAWS), 1e-5)
    assert curve is not None
    bound, (least, most) = curve.delta(EPSILON), truth()
    assert bound.lower <= most
    assert least <= bound.upper <= (1.0 + 1e-5) * bound.lower


def test_runs_it_does_not_serve_are_left_to_others() -> None:
    assert RareCurve.of(((GaussianPair(9.0), 1), *parts_of(LAWS)), 1e-6) is None
    assert RareCurve.of(parts_of(((0.05, 1e-3, 9), (1.0, 1e-3, 9))), 1e-6) is None  # noise too little for both
    assert RareCurve.of(parts_of(((1.0, 1e-3, 5000), (1.1, 1e-3, 5000))), 1e-6) is None  # ten records drawn
    assert RareCurve.of(parts_of(((1.0, 1e-3, 1), (1.1, 1e-3, 1))), 1e-6) is not None


def test_a_line_of_too_many_laws_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hockeystick.engines.rare.line.MOST_HELD", 100)
    with pytest.raises(ContourRefusal, match="of every law"):
        rare_line(sum_of(LAWS), EPSILON, math.log(1e-14))


def test_a_schedule_of_noise_at_small_rates_is_answered_by_one_line() -> None:
    """Where a lattice would answer hundreds of times as widely, after seconds."""
    run = hs.compose([hs.Gaussian(1.0 + 0.02 * step).poisson(3e-4) * 10 for step in range(12)])
    bound = hs.account(run).epsilon(1e-6)
    assert bound.method == "rare large losses"
    assert bound.width <= 1e-6
    both = hs.account(run).epsilon(np.array([1e-6, 1e-7]))
    assert (both.lower[0], both.upper[0]) == (bound.lower, bound.upper)
