"""Schedules of many unlike kinds of steps: published accountants share work among them, and compute what they did."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import PRV, GaussianLimit, Moments, SaddlePoint
from hockeystick.accountants.base import Accountant
from hockeystick.engines.lattice import chernoff, grid, nearest
from hockeystick.engines.lattice.compose import log_moment
from hockeystick.engines.moments import log_moment as bounds
from hockeystick.engines.moments import quadratures
from hockeystick.engines.moments.cumulants import CumulantWindow
from hockeystick.engines.moments.log_moment import log_moment_bounds, moments_of_pair
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U

UNLIKE: list[Pair] = [
    GaussianPair(1.0).subsampled(0.01),
    GaussianPair(1.0),
    GaussianPair(1.1).subsampled(0.02).reversed(),
    LaplacePair(2.0),
    GaussianPair(100.0).subsampled(0.001),
    DiscretePair((0.75, 0.25), (0.25, 0.75)),
    GaussianPair(0.4).subsampled(0.2),
    LaplacePair(0.5).subsampled(0.1),
]
FIELDS = ("log_moment", "mean", "variance", "third", "fourth", "absolute_third")


def schedule(kinds: int) -> hs.Composition:
    """Noise and rates that change from step to step."""
    places = np.arange(kinds) / kinds
    return hs.compose_arrays(noise_multipliers=1.0 + 0.1 * places, rates=0.005 + 0.01 * places)


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, calls: Counter[str]) -> None:
    """Count the calls of a function that a module uses."""
    function: Callable[..., Any] = getattr(module, name)

    def called(*arguments: Any, **named: Any) -> Any:
        calls[name] += 1
        return function(*arguments, **named)

    monkeypatch.setattr(module, name, called)


@pytest.mark.parametrize("theta", [2.0**-30, 0.3, 5.0, 300.0, 3e3])
def test_cumulants_of_many_kinds_are_those_of_each_alone(theta: float) -> None:
    together = CumulantWindow([(pair, 1) for pair in UNLIKE]).each(theta, refine=2)
    for place, pair in enumerate(UNLIKE):
        alone = CumulantWindow([(pair, 1)]).at(theta, refine=2)
        for field in FIELDS:
            assert float(getattr(together, field)[place]) == pytest.approx(getattr(alone, field), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("accountant", [Moments(), SaddlePoint(), GaussianLimit()])
def test_cumulants_of_a_hundred_kinds_take_few_evaluations(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()
    counted(monkeypatch, quadratures, "tilted_cumulants", calls)
    counted(monkeypatch, bounds, "log_moments", calls)
    numbers = []
    for kinds in (4, 100):
        calls.clear()
        hs.account(schedule(kinds), accountant=accountant).epsilon(1e-5)
        numbers.append(dict(calls))
    few, many = numbers
    assert few["tilted_cumulants"] > 0
    assert many["tilted_cumulants"] <= 3 * few["tilted_cumulants"]  # kinds by the length of their nodes
    assert many.get("log_moments", 0) <= 2 * 2 * 2  # two tilts, two directions, two batches of at most 64


@pytest.mark.parametrize("order", [1.5, 2.0, 33.0])
def test_bounds_of_many_kinds_are_the_sum_of_those_of_each(order: float) -> None:
    parts = [(pair, 3 + place) for place, pair in enumerate(UNLIKE)]
    parts += schedule(40).pairs("remove")
    orders = np.array([order, 2.0 * order])
    together = log_moment_bounds(parts, orders)
    each = [(moments_of_pair(pair, orders), count) for pair, count in parts]
    lower, upper = (sum(count * getattr(one, side) for one, count in each) for side in ("lower", "upper"))
    assert (together.lower <= upper).all()
    assert (together.upper >= lower).all()
    rounding = 2.0 * (len(parts) + 4.0) * U * upper  # of the sum
    assert (together.upper - together.lower <= 1.5 * (upper - lower) + rounding).all()


def test_tails_of_laws_are_the_same_asked_together() -> None:
    below, above = np.array([-1.0, -3.0, -80.0, -5e3]), np.array([-2.0, -80.0, -700.0, -1e5])
    for pair in UNLIKE:
        for own in (pair, pair.reversed()):
            for measure in ("P", "Q"):
                low, high = own.loss_ranges(below, above, measure)
                each = [own.loss_range(*logs, measure) for logs in zip(below.tolist(), above.tolist(), strict=True)]
                assert list(zip(low.tolist(), high.tolist(), strict=True)) == each


def test_a_grid_of_prv_takes_few_cells_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells with next to no mass, of which there are many, are not split; those with most are, finely."""
    sizes: list[int] = []
    points = grid.Grid.points.func  # type: ignore[attr-defined]

    def looked_at(self: grid.Grid) -> Any:
        sizes.append(self.index.size)
        return points(self)

    monkeypatch.setattr(grid.Grid, "points", property(looked_at))
    pair = GaussianPair(1.0).subsampled(0.01)
    found = nearest.nearest_points(pair, *pair.loss_range(-35.0, -35.0), 1e-3)
    assert max(sizes) <= 1.5 * found.pld.size
    assert found.mean_error <= 1e-6 / 256.0  # of four parts of every cell: (h / 4)^2 / 16 on either side of the middle


def test_tails_of_a_window_are_read_at_one_tilt_on_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tilts are chosen on few points; the bound there is as good as the best of a search on all of them."""
    calls: Counter[str] = Counter()
    counted(monkeypatch, chernoff, "log_moment", calls)
    curve = hs.account(schedule(30), adjacency="remove", accountant=PRV())
    curve.epsilon(1e-5)
    assert calls["log_moment"] == 2 * 30
    lattices = [
        (nearest.nearest_points(pair, *pair.loss_range(-35.0, -35.0), 1e-3).pld, count)
        for pair, count in schedule(30).pairs("remove")
    ]
    for end, sign in ((1.5, 1.0), (1.5, -1.0)):
        tilts = np.exp(np.linspace(0.0, 6.0, 200))
        best = min(
            math.fsum(count * log_moment(pld, sign * tilt)[0] for pld, count in lattices) - tilt * end
            for tilt in tilts.tolist()
        )
        found = chernoff.least_log_tails(lattices, end)[sign < 0.0]
        assert found <= best + 1e-2


def test_a_window_that_ends_just_below_the_largest_loss_has_tails() -> None:
    """There bounds grow again beyond the best tilt."""
    run = hs.Gaussian(0.853).poisson(0.0245) * 32 + hs.Laplace(1.65) * 15 + hs.DiscreteLaplace(1.14) * 6
    found = hs.account(run, adjacency="add", accountant=PRV()).epsilon(1e-6)
    assert float(found.width) <= 0.05


def test_sums_and_logarithms_of_a_nearest_lattice_are_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, spacing = DiscretePair((1.0, 2.0**-1000), (0.5, 0.5)), 0.5
    found = nearest.nearest_points(pair, -700.0, 1.0, spacing)
    present = found.pld.log_mass[np.isfinite(found.pld.log_mass)]
    cells = pair.cells(found.pld.losses)
    assert found.mass_error >= float(cells.error_p.max()) + ELEMENTARY * float(np.abs(present).max())
    monkeypatch.setattr(nearest, "additions", lambda _: 2**40)
    doubtful = nearest.nearest_points(pair, -700.0, 1.0, spacing)
    assert doubtful.mean_error - found.mean_error >= spacing * 2.0**39 * U


def test_a_specification_makes_each_step_once() -> None:
    specification = hs.spec.of_run(schedule(3), delta=1e-5)
    assert all(entry.step is entry.step for entry in specification.steps)
