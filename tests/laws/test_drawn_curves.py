"""What pictures draw is true between its points: every line of random runs, against certified values.

Runs are those of `tests.random_runs`, with atoms and without. Nothing here is left to chance but the choice of runs: a
line on the wrong side of a certified bracket is an error, so that no test fails by accident.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hockeystick as hs
from hockeystick import plots
from hockeystick.app.canvas import risen
from hockeystick.app.report.figures import privacy_chart, tradeoff_chart
from hockeystick.bound import Bound
from hockeystick.readouts.envelope import Value
from hockeystick.readouts.outline import Samples, crossed, crossings, sampled
from tests.random_runs import random_run

LEAST = 1e-9
ROUNDED = 0.0051  # coordinates in a file have two digits after the point, so many units of some hundreds
Array = NDArray[np.float64]


def reach(curve: hs.PrivacyCurve) -> float:
    ends = [float(curve.epsilon(level).sides[1]) for level in (LEAST, 1e-3)]
    return next((end for end in ends if 0.0 < end < 600.0), 5.0)


def sides(bound: Any) -> tuple[Array, Array]:
    assert isinstance(bound, hs.Bound)
    return np.asarray(bound.lower, dtype=np.float64), np.asarray(bound.upper, dtype=np.float64)


def on_log_scale(at: Array, line: tuple[Array, Array]) -> Array:
    return np.exp(np.interp(at, line[0], np.log(line[1])))


def privacy_holds(curve: hs.PrivacyCurve, samples: Samples, end: float, rng: np.random.Generator) -> None:
    lines = samples.privacy(LEAST)
    # between the points, and close to them, where a jump would show
    near = np.asarray(samples.epsilon[:-1])[rng.integers(0, len(samples.epsilon) - 1, 4)] * (1.0 + 1e-6)
    at = np.minimum(np.concatenate((rng.uniform(0.0, end, 8), near)), end)
    lower, upper = sides(curve.delta(at))
    above, below = on_log_scale(at, lines.above), on_log_scale(at, lines.below)
    assert np.all((above >= lower) | (lower <= LEAST))
    drawn = at <= lines.below[0][-1]
    assert np.all((below <= upper) | ~drawn)


def trade_off_holds(curve: hs.PrivacyCurve, samples: Samples, direction: str, rng: np.random.Generator) -> None:
    lines = samples.trade_off(direction)
    at = np.concatenate((rng.uniform(0.0, 1.0, 4), 10.0 ** rng.uniform(-4.0, 0.0, 3)))
    lower, upper = sides(curve.trade_off(at, direction=direction, tolerance=1e-3).false_negative_rate)
    assert np.all(np.interp(at, *lines.above) >= lower)
    assert np.all(np.interp(at, *lines.below) <= upper)


def svg_lines(chart: str, kind: str) -> list[Array]:
    found = re.findall(rf'<poly\w+ points="([^"]*)" class="{kind}"/>', chart)
    return [np.array([[float(x) for x in point.split(",")] for point in points.split()]) for points in found]


def check(rng: np.random.Generator) -> None:
    run, adjacency = random_run(rng, most_steps=500.0)
    curve = hs.account(run, adjacency)
    end = reach(curve)
    samples = sampled(curve, end, least=LEAST)
    assert samples.certified
    privacy_holds(curve, samples, end, rng)
    for direction in ("worst", *curve.directed) if adjacency not in {"add", "remove"} else ():
        trade_off_holds(curve, samples, direction, rng)
    again = Samples.of(samples.document)
    assert again == samples
    assert len(samples.epsilon) <= 70


@pytest.mark.parametrize("seed", range(5))
def test_drawn_lines_hold_between_their_points(seed: int) -> None:
    check(np.random.default_rng([13, seed]))


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100))
def test_drawn_lines_of_a_hundred_runs_hold_between_their_points(seed: int) -> None:
    check(np.random.default_rng([14, seed]))


LEVELS = np.geomspace(0.3, 0.5 * LEAST, 16).tolist()


def check_crossed(rng: np.random.Generator) -> None:
    run, adjacency = random_run(rng, most_steps=500.0)
    curve = hs.account(run, adjacency)
    samples = crossed(curve, crossings(curve, LEVELS))
    assert samples.certified
    privacy_holds(curve, samples, min(reach(curve), max(samples.epsilon[-2], 0.1)), rng)
    if adjacency not in {"add", "remove"}:
        trade_off_holds(curve, samples, "worst", rng)


@pytest.mark.parametrize("seed", range(2))
def test_lines_through_crossings_hold_between_them(seed: int) -> None:
    check_crossed(np.random.default_rng([15, seed]))


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(60))
def test_lines_through_crossings_of_sixty_runs_hold_between_them(seed: int) -> None:
    check_crossed(np.random.default_rng([16, seed]))


@pytest.mark.parametrize(("engine", "tolerance"), [("contour", 1e-9), ("lattice", 1e-2)])
def test_values_at_crossings_hold_the_closed_form(engine: Any, tolerance: float) -> None:
    """The lattice has no pass: every sixth delta is asked alone."""
    run = hs.Gaussian(2.0) * 4
    curve = hs.account(run, accountant=hs.accountants.Certified(tolerance, engine=engine))
    samples = crossed(curve, crossings(curve, LEVELS))
    truth = hs.account(run).delta(np.array(samples.epsilon))
    assert len(samples.epsilon) == 2 + -(-len(LEVELS) // (1 if engine == "contour" else 6))
    for value, low, high in zip(samples.worst, *sides(truth), strict=True):
        assert value.lower <= high
        assert low <= value.upper
        assert engine == "lattice" or value.lower >= 0.999 * value.upper or value == samples.worst[0]


ATOMS = hs.Laplace(1.0) * 3
SMOOTH = hs.Gaussian(1.0).poisson(0.01) * 2000


@pytest.mark.parametrize(("run", "end"), [(ATOMS, 3.0), (SMOOTH, 4.2)])
def test_the_two_sides_look_like_one_line(run: hs.Composition, end: float) -> None:
    samples = sampled(hs.account(run), end, least=LEAST)
    lines = samples.privacy(LEAST)
    at = np.linspace(0.0, 0.98 * end, 300)
    apart = np.log(on_log_scale(at, lines.above) / on_log_scale(at, lines.below)) / -np.log(LEAST)
    assert np.max(apart) < 0.02
    found = samples.trade_off("remove")
    alphas = np.linspace(0.0, 1.0, 300)
    assert np.max(np.interp(alphas, *found.above) - np.interp(alphas, *found.below)) < 0.01


@pytest.mark.parametrize("run", [ATOMS, SMOOTH])
def test_what_a_chart_draws_is_what_is_proved(run: hs.Composition) -> None:
    """The same of the coordinates in the file, the chart's rounding of them apart."""
    curve = hs.account(run)
    end = reach(curve)
    samples = sampled(curve, end, least=LEAST)
    chart = privacy_chart(samples, LEAST)
    assert chart is not None
    (line,) = svg_lines(chart, "line")
    width, left, height, top = 480.0 - 62.0 - 14.0, 62.0, 340.0 - 14.0 - 48.0, 14.0
    at = np.linspace(0.01, 0.99 * end, 80)
    across = left + width * at / samples.epsilon[-2]
    down = top - height * np.log10(np.asarray(curve.delta(at).sides[0])) / 9.0
    shown = down < top + height
    assert np.all((np.interp(across - ROUNDED, line[:, 0], line[:, 1]) <= down + ROUNDED)[shown])
    (below,) = svg_lines(tradeoff_chart(samples, "remove"), "line")
    alphas = np.linspace(0.0, 1.0, 80)
    most = np.asarray(curve.trade_off(alphas, direction="remove", tolerance=1e-4).false_negative_rate.sides[1])
    drawn = np.interp(left + width * alphas + ROUNDED, below[:, 0], below[:, 1])
    assert np.all(drawn >= top + height * (1.0 - most) - ROUNDED)


def test_a_plot_draws_the_same_lines_and_no_wall_before_the_largest_loss() -> None:
    """Three Laplace steps of scale 1 have losses of up to 3, and delta at 2.99 is at least 0.00125."""
    pytest.importorskip("matplotlib")
    axes = plots.privacy_curve(hs.account(ATOMS), end=3.2, least=LEAST).axes[0]
    line = np.asarray(axes.lines[0].get_xydata(), dtype=np.float64)
    assert on_log_scale(np.array([2.99]), (line[:, 0], line[:, 1]))[0] >= 0.00125
    assert np.interp(2.99, line[:, 0], line[:, 1]) < 0.002
    assert line[line[:, 1] > 2.0 * LEAST, 0].max() <= 3.05
    shown = np.asarray(plots.trade_off(hs.account(ATOMS)).axes[0].lines[0].get_xydata(), dtype=np.float64)
    assert np.interp(0.0175, shown[:, 0], shown[:, 1]) <= 0.7271  # what an attack reaches


@pytest.mark.parametrize("run", [hs.RandomizedResponse(0.6) * 1, hs.ApproximateDP(1.0, 1e-3) * 1, ATOMS])
def test_a_trade_off_on_logarithmic_axes_holds_between_its_points(run: hs.Composition) -> None:
    pytest.importorskip("matplotlib")
    curve = hs.account(run)
    axes = plots.trade_off(curve, scale="logarithmic").axes[0]
    x, y = np.maximum(np.asarray(axes.patches[0].get_path().vertices[:-1], dtype=np.float64), 1e-300).T
    half = int(np.argmax(x)) + 1  # there along the lower line, back along the upper one
    alphas = np.geomspace(1e-6, 1.0 - 1e-6, 251)
    truth = curve.trade_off(alphas, tolerance=1e-9).false_negative_rate
    seen = truth.sides[0] > 1e-6  # inside the picture
    below, above = (
        np.exp(np.interp(np.log(alphas), np.log(px), np.log(py)))
        for px, py in ((x[:half], y[:half]), (x[half:][::-1], y[half:][::-1]))
    )
    assert np.all((below <= truth.sides[1])[seen])
    assert np.all((above >= truth.sides[0])[seen])
    guesses = np.asarray(axes.lines[-1].get_xydata(), dtype=np.float64)[:-1]
    assert np.max(np.abs(np.diff(np.log(guesses), axis=0))) < 0.04  # of the 14 that an axis shows


def test_counts_between_those_drawn_lie_below_the_line() -> None:
    pytest.importorskip("matplotlib")
    step = hs.Gaussian(2.0).poisson(0.01)
    axes = plots.epsilon_against_steps(step, [400, 10, 100], delta=1e-5).axes[0]
    line = np.asarray(axes.lines[0].get_xydata(), dtype=np.float64)
    for count in (11, 50, 99, 100, 101, 399):
        epsilon = float(hs.account(step * count).epsilon(1e-5).sides[0])
        drawn = line[line[:, 0] >= count][0, 1]  # stairs: the value of the next count
        assert np.interp(count + 1e-9, line[:, 0], line[:, 1]) >= epsilon
        assert drawn >= epsilon


def test_stairs_of_wide_brackets_never_fall() -> None:
    """Each side is proved by itself: what never falls is at least those before, and at most those behind."""
    lower, upper = risen(Bound(np.array([1.0, 0.5, 2.0]), np.array([4.0, 5.0, 3.0]), "wide"))
    assert (lower.tolist(), upper.tolist()) == ([1.0, 1.0, 2.0], [3.0, 3.0, 3.0])


def test_relations_of_one_direction_are_drawn_without_the_other() -> None:
    curve = hs.account(SMOOTH, "add")
    samples = sampled(curve, 4.0, least=LEAST)
    privacy_holds(curve, samples, 4.0, np.random.default_rng(3))


def test_values_known_only_roughly_are_drawn_as_roughly() -> None:
    curve = hs.account(hs.Gaussian(1.0) * 4, accountant=hs.accountants.Lattice(spacing=0.05))
    truth = hs.account(hs.Gaussian(1.0) * 4)
    samples = sampled(curve, 8.0, least=LEAST)
    assert samples.certified
    privacy_holds(truth, samples, 8.0, np.random.default_rng(5))
    trade_off_holds(truth, samples, "worst", np.random.default_rng(6))


def test_a_picture_that_ends_early_says_little_of_what_lies_beyond() -> None:
    """Where all values are at small epsilons, the mass beyond them still counts above the trade-off function."""
    curve = hs.account(hs.Gaussian(0.5))
    samples = sampled(curve, 0.5, least=0.1)
    for direction in ("worst", "remove"):
        trade_off_holds(curve, samples, direction, np.random.default_rng(7))
    at = np.array([0.0, 1e-4, 1e-3])
    lower, _ = sides(curve.trade_off(at, tolerance=1e-3).false_negative_rate)
    assert np.all(np.interp(at, *samples.trade_off().above) >= lower)


def test_directions_of_one_pair_of_which_datasets_show_different_things_are_drawn_apart() -> None:
    curve = hs.account(hs.Gaussian(5.0).shuffled(batch_size=1, population=5), "zero-out")
    drawn = sampled(curve, 0.4, least=1e-3, seen=np.inf)
    for name, values in drawn.values.items():
        for epsilon, value in zip(drawn.epsilon[:-1], values[:-1], strict=True):
            low, high = sides(curve.directed[name].delta(epsilon))
            assert (value.lower, value.upper) == (low, high), (name, epsilon)
    assert drawn.values["zero-out"][1].lower < drawn.values["zero-in"][1].lower


def test_a_curve_known_at_epsilon_0_alone_has_no_picture() -> None:
    """As of a run so long that its epsilons are beyond what pictures show."""
    values = (Value(0.9, 1.0), Value(0.0, 0.0))
    assert privacy_chart(Samples((0.0, np.inf), {"substitute": values}, True), LEAST) is None


def test_a_delta_below_the_rounding_of_its_corners_is_drawn() -> None:
    run = hs.DiscretePair([3e-42, 1.0], [4e-210, 1.0]) * 4
    samples = sampled(hs.account(run, "remove"), 0.0165, least=1e-50)
    below = samples.privacy(1e-50).below[1]
    assert np.all(np.diff(below) <= 0.0)
    assert 1.19e-41 < below.min() <= below.max() <= 1.2e-41
    assert "polygon" in str(privacy_chart(samples, 1e-50))
