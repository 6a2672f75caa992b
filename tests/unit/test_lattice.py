"""Lattice PLDs: each keeps to its side of the pair's curve, and the better ones are better."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.engines.lattice.algorithm2 import algorithm_2
from hockeystick.engines.lattice.buckets import buckets_down, buckets_up
from hockeystick.engines.lattice.compose import composed_infinity
from hockeystick.engines.lattice.curve import LatticeCurve
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.hull import spread_negative_masses
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.engines.lattice.tangents import tangents
from hockeystick.errors import PrecisionError
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair, Pair, SubsampledPair
from hockeystick.laws.one_step import one_step_delta
from hockeystick.numerics.rounding import dyadic_below

PAIRS = [
    GaussianPair(1.0),
    GaussianPair(30.0),
    GaussianPair(0.2),
    GaussianPair(1.0).subsampled(0.01),
    GaussianPair(1.0).subsampled(0.01).reversed(),
    GaussianPair(0.5).subsampled(1e-5).reversed(),
    LaplacePair(2.0),
    LaplacePair(2.0).subsampled(0.1),
    LaplacePair(0.5).subsampled(0.3).reversed(),
    DiscretePair((0.75, 0.25), (0.25, 0.75)),
    DiscretePair((0.5, 0.25, 0.25, 0.0), (0.125, 0.25, 0.5, 0.125)),
    DiscretePair((0.1, 0.45, 0.45), (0.0, 0.5, 0.5)),
]


def _grid(pair: Pair, cells: int) -> Grid:
    low, high = pair.loss_range(-60.0, -60.0)
    return Grid.covering(low, high, dyadic_below(max((high - low) / cells, 1e-9)))


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("cells", [20, 300, 3000])
def test_each_lattice_keeps_to_its_side(pair: Pair, cells: int) -> None:
    grid = _grid(pair, cells)
    upper, lower = connect_the_dots(GridCells.of(pair, grid)), tangents(pair, grid, tilt=5.0)
    low, high = pair.loss_range(-40.0, -40.0)
    for epsilon in np.linspace(low - 0.1, high + 0.1, 41).tolist():
        least, most = one_step_delta(pair, epsilon)
        rounding = 1e-12 * most
        assert upper.hockey_stick(epsilon - upper.slack) >= least - rounding
        assert lower.hockey_stick(epsilon + lower.slack) <= most + rounding


@pytest.mark.parametrize("spacing", [2.0**-20, 2.0**-27])
def test_an_atom_at_a_large_loss_is_kept_where_points_are_closer_than_its_place_is_known(spacing: float) -> None:
    pair = LaplacePair(1e-6)
    top = pair.loss_bounds[1]
    first = math.floor(top / spacing) - 40
    grid = Grid(spacing, np.arange(first, first + 50), math.remainder(top, spacing))
    assert 0.4999 < tangents(pair, grid).total_mass < 0.51


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_masses_obey_their_identities(pair: Pair) -> None:
    grid = _grid(pair, 500)
    upper, lower = connect_the_dots(GridCells.of(pair, grid)), tangents(pair, grid)
    assert abs(upper.total_mass - 1.0) <= 1e-9
    assert lower.total_mass <= 1.0 + 1e-12
    assert np.exp(upper.log_mass - upper.losses).sum() <= 1.0 + 1e-9
    assert (np.exp(upper.log_mass) >= 0.0).all()


def _error(pld: LatticePLD, pair: Pair, epsilon: float) -> float:
    low, high = one_step_delta(pair, epsilon)
    return abs(pld.hockey_stick(epsilon) - 0.5 * (low + high))


def _log_moment_error(pld: LatticePLD, pair: Pair, theta: float) -> float:
    """What composing many steps sees of a lattice: its error in ln E e^{theta L}."""
    nodes = pair.nodes(-80.0)
    exact = math.log(math.fsum(np.exp(nodes.log_p + theta * nodes.loss)))
    return abs(math.log(math.fsum(np.exp(pld.log_mass + theta * pld.losses))) - exact)


@pytest.mark.parametrize("spacing", [1e-3, 4e-4, 2e-4])  # one step has a standard deviation of 1.3e-2
def test_tangents_beat_algorithm_2(spacing: float) -> None:
    pair = GaussianPair(1.0).subsampled(0.01)
    low, high = pair.loss_range(-60.0, -60.0)
    grid = Grid.covering(low, high, dyadic_below(spacing))
    ours, theirs = tangents(pair, grid, tilt=6.0), algorithm_2(GridCells.of(pair, grid))
    assert 5.0 * _log_moment_error(ours, pair, 6.0) <= _log_moment_error(theirs, pair, 6.0)


@pytest.mark.parametrize("pair", PAIRS[:9], ids=str)
def test_dots_lie_between_the_pair_and_buckets(pair: Pair) -> None:
    cells = GridCells.of(pair, _grid(pair, 200))
    dots, up, down = connect_the_dots(cells), buckets_up(cells), buckets_down(cells)
    low, high = pair.loss_range(-30.0, -30.0)
    for epsilon in np.linspace(low, high, 31).tolist():
        assert dots.hockey_stick(epsilon) <= up.hockey_stick(epsilon) * (1.0 + 1e-9)
        assert down.hockey_stick(epsilon) <= dots.hockey_stick(epsilon) * (1.0 + 1e-9)


@pytest.mark.parametrize("make", [connect_the_dots, buckets_up])
def test_mass_beyond_the_last_point_too_small_for_float64_is_kept(make: Callable[[GridCells], LatticePLD]) -> None:
    on = GridCells.of(GaussianPair(1.0), Grid.covering(-8.0, 60.0, 0.25))
    assert -2000.0 < on.cells.log_p[-1] < -750.0
    assert make(on).mass_at_infinity > 0.0


def test_tangents_of_next_to_no_losses_stay_below_the_pair() -> None:
    hidden = GaussianPair(1e50)  # between these points ln of its masses is -1e98
    pld = tangents(hidden, Grid.covering(-1.0, 1.0, 0.25))
    assert pld.total_mass <= 1.0
    for epsilon in (-0.5, -0.125, 0.0, 0.125):
        assert pld.hockey_stick(epsilon) <= one_step_delta(hidden, epsilon)[1]


def test_tangents_of_points_closer_than_atoms_are_told_apart() -> None:
    pair = LaplacePair(1e10)
    pld = tangents(pair, Grid.covering(-1e-10, 1e-10, 2.0**-41, offset=1e-10))
    assert pld.hockey_stick(0.0) <= one_step_delta(pair, 0.0)[1]


def test_no_mass_at_infinity_is_no_negative_zero() -> None:
    pld = connect_the_dots(GridCells.of(LaplacePair(1.0), Grid.covering(-1.0, 1.0, 0.25)))
    assert [str(side) for side in composed_infinity([(pld, 3)])] == ["0.0", "0.0"]


@pytest.mark.parametrize("which", ["upper", "lower"])
def test_error_is_of_second_order(which: str) -> None:
    pair, theta, errors = GaussianPair(2.0).subsampled(0.1), 4.0, []
    low, high = pair.loss_range(-60.0, -60.0)
    for spacing in (2.0**-6, 2.0**-7, 2.0**-8):
        grid = Grid.covering(low, high, spacing)
        pld = connect_the_dots(GridCells.of(pair, grid)) if which == "upper" else tangents(pair, grid, tilt=theta)
        errors.append(_log_moment_error(pld, pair, theta))
    for coarse, fine in itertools.pairwise(errors):
        assert 3.0 <= coarse / fine <= 5.5


def test_hull_keeps_total_mass_and_lowers_the_curve() -> None:
    rng = np.random.default_rng(3)
    positions = np.cumsum(rng.uniform(0.1, 0.5, 40))
    masses = rng.uniform(0.2, 1.0, 40)
    masses[rng.integers(1, 38, 8)] *= -0.3
    found = spread_negative_masses(masses, np.zeros(40), positions)
    assert found is not None
    hull, _ = found
    assert (hull >= 0.0).all()
    assert 0.0 <= masses.sum() - hull.sum() <= 1e-12

    def curve(weights: np.ndarray, at: float) -> float:
        return float(np.sum(weights[positions > at] * -np.expm1(at - positions[positions > at])))

    for at in positions.tolist():
        assert curve(hull, at) <= curve(masses, at) + 1e-13


def test_lattice_refuses_masses_that_exceed_one() -> None:
    with pytest.raises(ValueError, match="above 1"):
        LatticePLD("lower", 0.1, np.arange(2), 0.0, np.log(np.array([0.6, 0.6])), 0.0, 0.0)


def test_dyadic_spacings_are_short_and_close() -> None:
    for spacing in (1e-7, 3.3e-4, 0.99, 7.0):
        short = dyadic_below(spacing)
        assert 0.75 * spacing <= short <= spacing
        assert (short * 2.0**60 / 2.0 ** math.floor(math.log2(short))) % 2.0**50 == 0.0


@pytest.mark.parametrize("beyond", [3e-14, 9e-14])
def test_a_largest_loss_just_beyond_the_last_point_is_slack(beyond: float) -> None:
    pair = DiscretePair((0.75, 0.25), (0.25, 0.75))
    on = GridCells.of(pair, Grid(0.5, np.array([-3, 0, 2], dtype=np.int64)))  # the losses are -ln 3 and ln 3
    upper = connect_the_dots(replace(on, largest_loss=1.0 + beyond))
    assert upper.mass_at_infinity == 0.0
    assert upper.losses[-1] + upper.slack >= 1.0 + beyond


def test_a_mean_loss_far_below_its_only_point_is_not_raised() -> None:
    """All losses lie a thousand nats below the points: what is left of them is next to nothing."""
    pld = tangents(LaplacePair(1.0), Grid.covering(1000.0, 1010.0, 0.5))
    assert pld.loss_bounds[1] <= 0.0  # the mean of e^-L under P is one


def test_a_window_too_long_to_transform_is_refused_in_words_before_it_is_made() -> None:
    run = hs.Laplace(3e8) * (3 * 10**14)  # the lattice spreads so many steps over 8e7 points
    curve = hs.account(run, "add", accountant=hs.accountants.Lattice(1e-4))
    with pytest.raises(PrecisionError, match=r"79626240 points, more than the 67108864 .*: use a larger spacing"):
        curve.delta(0.1)


def test_a_bracket_that_is_wide_by_rounding_is_not_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding is that of both sides: finer lattices, with more points, would only add to it."""
    composed = []
    compose = LatticeCurve._compose

    def counting(curve: LatticeCurve, *asked: Any) -> Any:
        composed.append(asked)
        return compose(curve, *asked)

    monkeypatch.setattr(LatticeCurve, "_compose", counting)
    pair = SubsampledPair(GaussianPair(0.5), 1e-4)
    bound = LatticeCurve(((pair, 999), (pair.reversed(), 1)), 1e-5, 1 << 23).epsilon(1e-6)
    assert 1e-5 < bound.width < 2e-5
    assert len(composed) <= 4
