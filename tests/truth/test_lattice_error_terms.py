"""The lattice's bounds of one step with every stored error inflated.

In use each error is a few roundings, which no test would miss. Here errors are large, and as bad as they may be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from mpmath import mp, mpf

from hockeystick.engines.lattice.algorithm2 import algorithm_2
from hockeystick.engines.lattice.buckets import bucket_cells, buckets_down, buckets_up
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.pld import LatticePLD, Side
from hockeystick.engines.lattice.tangents import tangents
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair, Pair
from hockeystick.laws.base import Array, CellMasses
from hockeystick.laws.one_step import one_step_delta
from hockeystick.laws.sampled_loss import base_losses, sampled_loss_error, sampled_losses


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    with mp.workdps(40):
        yield


@dataclass(frozen=True)
class Doubtful:
    """A pair whose masses are known to within an error only, and are as wrong as that allows.

    ``signs`` says which way the masses of P and of Q are off: all up, all down, or each cell its own way.
    """

    pair: Pair
    error: float
    signs: tuple[str, str]

    def __getattr__(self, name: str) -> object:
        return getattr(self.pair, name)

    def cells(self, losses: Array) -> CellMasses:
        return self._wrong(self.pair.cells(losses), 0)

    def tails(self, cuts: Array, *, upper: bool = True) -> CellMasses | None:
        found = self.pair.tails(cuts, upper=upper)
        return None if found is None else self._wrong(found, 1)

    def _wrong(self, cells: CellMasses, first: int) -> CellMasses:
        n = cells.log_p.size
        rng = np.random.default_rng(n)
        ways = {"up": np.ones(n), "down": -np.ones(n), "either": rng.choice([-1.0, 1.0], n), "true": np.zeros(n)}
        error = self.error * np.where((first + np.arange(n)) % 2, 1.0, 0.01)  # merging cells must keep the larger one
        off_p, off_q = (0.99 * error * ways[sign] for sign in self.signs)
        return replace(
            cells,
            log_p=cells.log_p + off_p,
            log_q=cells.log_q + off_q,
            error_p=cells.error_p + (error if self.signs[0] != "true" else 0.0),
            error_q=cells.error_q + (error if self.signs[1] != "true" else 0.0),
        )


@dataclass(frozen=True)
class OffCut:
    """A pair that cuts beside where it is asked to, and says so."""

    pair: Pair
    shift: float

    def __getattr__(self, name: str) -> object:
        return getattr(self.pair, name)

    def cells(self, losses: Array) -> CellMasses:
        cells = self.pair.cells(losses + self.shift)
        return replace(cells, slack=cells.slack + abs(self.shift))

    def tails(self, cuts: Array, *, upper: bool = True) -> CellMasses | None:
        found = self.pair.tails(cuts + self.shift, upper=upper)
        return None if found is None else replace(found, slack=found.slack + abs(self.shift))


PAIRS = [
    GaussianPair(1.0),
    GaussianPair(1.0).subsampled(0.1),
    GaussianPair(0.5).subsampled(0.05).reversed(),
    LaplacePair(1.0),
    LaplacePair(0.7).subsampled(0.3),
    DiscretePair((0.5, 0.25, 0.25, 0.0), (0.125, 0.25, 0.5, 0.125)),
    DiscretePair((0.1, 0.45, 0.45), (0.0, 0.5, 0.5)),
]


WRONG = [("up", "true"), ("down", "true"), ("true", "up"), ("true", "down"), ("down", "up"), ("up", "down")]


ANYHOW = [*WRONG, ("either", "either")]


def covering(pair: Pair, spacing: float, log_tail: float = -30.0) -> Grid:
    low, high = pair.loss_range(log_tail, log_tail)
    return Grid.covering(min(low, -spacing), max(high, spacing), spacing)


def built(pair: Pair, grid: Grid) -> list[LatticePLD]:
    """Every lattice of a pair on a grid."""
    on = GridCells(grid, pair.cells(grid.points), pair.mass_at_infinity, pair.loss_bounds[1])
    found = [connect_the_dots(on), buckets_up(on), buckets_down(on), tangents(pair, grid, tilt=2.0)]
    return [*found, tangents(pair, grid, tilt=0.0)]


@cache
def truth(pair: Pair) -> list[tuple[float, float, float]]:
    """Epsilons, and both sides of the pair's delta there."""
    low, high = pair.loss_range(-12.0, -12.0)
    everywhere, near = np.linspace(low - 0.2, high + 0.2, 40), np.linspace(-0.05, 0.05, 21)  # near an atom at 0, too
    return [(epsilon, *one_step_delta(pair, epsilon)) for epsilon in (*everywhere.tolist(), *near.tolist())]


def assert_on_its_side(pld: LatticePLD, pair: Pair) -> None:
    for epsilon, least, most in truth(pair):  # `hockey_stick` rounds to nearest: so much of its sum is allowed
        if pld.side == "upper":
            assert pld.hockey_stick(epsilon - pld.slack) >= least * (1.0 - 1e-12) - 1e-15, epsilon
        else:
            assert pld.hockey_stick(epsilon + pld.slack) <= most * (1.0 + 1e-12) + 1e-15, epsilon


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("spacing", [0.5, 0.0625])
def test_doubtful_masses_leave_every_lattice_on_its_side(pair: Pair, spacing: float) -> None:
    for log_beyond in (-30.0, -1.5):  # the second leaves much beyond both ends
        grid = covering(pair, spacing, log_beyond)
        for signs in ANYHOW:
            for pld in built(Doubtful(pair, 1e-6, signs), grid):  # type: ignore[arg-type]
                assert_on_its_side(pld, pair)


@pytest.mark.parametrize("pair", PAIRS[:5], ids=str)
@pytest.mark.parametrize("shift", [-0.01, 0.01])
def test_cuts_that_are_off_leave_every_lattice_on_its_side(pair: Pair, shift: float) -> None:
    """Cells cut beside where they were asked for: what the slack of the cuts is for."""
    grid = covering(pair, 0.25)
    moved = pair.cells(grid.points + shift)
    on = GridCells(grid, replace(moved, slack=moved.slack + abs(shift)), pair.mass_at_infinity, pair.loss_bounds[1])
    for pld in (connect_the_dots(on), buckets_up(on), buckets_down(on)):
        assert_on_its_side(pld, pair)


@pytest.mark.parametrize("shift", [-0.01, 0.01])
def test_atoms_just_beyond_a_cut_that_is_off(shift: float) -> None:
    """An atom 0.009 below a point, counted among those above it, beside another one in the same cell."""
    pair = PAIRS[5]  # with atoms at -ln 2, 0 and ln 4
    grid = Grid(2.0, np.arange(-2, 3), math.copysign(0.009, -shift))
    moved = pair.cells(grid.points + shift)
    on = GridCells(grid, replace(moved, slack=moved.slack + abs(shift)), pair.mass_at_infinity, pair.loss_bounds[1])
    for pld in (connect_the_dots(on), buckets_up(on), buckets_down(on)):
        assert_on_its_side(pld, pair)


@pytest.mark.parametrize("signs", ANYHOW)
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_buckets_without_a_lattice_error_hold_doubtful_masses(side: Side, signs: tuple[str, str]) -> None:
    """Atoms on the points: nothing but the error of the masses is between the buckets and the truth."""
    pair, spacing = DiscretePair((0.75, 0.25), (0.25, 0.75)), math.log(3.0)
    grid = Grid(spacing, np.arange(-2, 3))
    on = bucket_cells(Doubtful(pair, 1e-6, signs), grid, side)  # type: ignore[arg-type]
    assert_on_its_side(buckets_up(on) if side == "upper" else buckets_down(on), pair)


@pytest.mark.parametrize("signs", ANYHOW)
def test_algorithm_2_with_doubtful_masses(signs: tuple[str, str]) -> None:
    pair, grid = GaussianPair(1.0), Grid.covering(-9.0, 10.0, 0.25)
    doubtful = Doubtful(pair, 1e-6, signs)
    on = GridCells(grid, doubtful.cells(grid.points), 0.0, math.inf)
    assert_on_its_side(algorithm_2(on), pair)


@pytest.mark.parametrize("pair", [GaussianPair(1.0), GaussianPair(1.0).subsampled(0.1), LaplacePair(1.0)], ids=str)
@pytest.mark.parametrize("shift", [-0.01, 0.01])
def test_one_step_whose_cut_is_off_keeps_its_bracket(pair: Pair, shift: float) -> None:
    for epsilon in np.linspace(-0.4, 0.9, 14).tolist():
        found = one_step_delta(OffCut(pair, shift), epsilon)  # type: ignore[arg-type]
        least, most = one_step_delta(pair, epsilon)
        assert found[0] <= most
        assert least <= found[1]


@pytest.mark.parametrize("shift", [-0.01, 0.01])
def test_one_step_of_an_atom_just_beyond_a_cut_that_is_off(shift: float) -> None:
    pair = PAIRS[5]  # with atoms at -ln 2, 0 and ln 4
    for loss in (-math.log(2.0), 0.0, math.log(4.0)):
        for epsilon in (loss - 0.005, loss + 0.005):
            found = one_step_delta(OffCut(pair, shift), epsilon)  # type: ignore[arg-type]
            least, most = one_step_delta(pair, epsilon)
            assert found[0] <= most
            assert least <= found[1]


@pytest.mark.parametrize("spacing", [0.1, 1e-3 / 3.0])
@pytest.mark.parametrize("offset", [0.0, 0.123456789])
def test_points_of_a_grid_are_within_their_rounding(spacing: float, offset: float) -> None:
    grid = Grid(spacing, np.arange(-5000, 5001, 7), offset)
    exact = (Fraction(offset) + int(i) * Fraction(spacing) for i in grid.index)
    off = [abs(Fraction(float(point)) - place) for point, place in zip(grid.points, exact, strict=True)]
    assert 0 < max(off) <= Fraction(grid.rounding)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.7])
def test_cuts_of_a_sampled_pair_are_within_their_slack(rate: float) -> None:
    pair = GaussianPair(0.7).subsampled(rate)
    losses = np.concatenate([np.linspace(0.999, -0.999, 41) * math.log1p(-rate), np.linspace(0.01, 40.0, 60)])
    losses = np.sort(losses[losses > math.log1p(-rate)])
    cuts, slack = base_losses(losses, rate), pair.cells(losses).slack
    off = []
    for loss, cut in zip(losses.tolist(), cuts.tolist(), strict=True):
        off.append(abs(mp.log1p(mpf(rate) * mp.expm1(mpf(cut))) - mpf(loss)))
    assert all(distance <= mpf(float(own)) for distance, own in zip(off, slack, strict=True))
    assert max(off) > 0


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.7])
def test_a_base_loss_that_is_off_moves_the_sampled_one_by_no_more_than_it_says(rate: float) -> None:
    base, off = np.linspace(-40.0, 40.0, 81), 1e-6
    found = sampled_losses(base, rate)
    error = sampled_loss_error(found, base, rate, off)
    for sign in (-1, 1):
        truth = [mp.log1p(mpf(rate) * mp.expm1(mpf(loss) + sign * mpf(off))) for loss in base.tolist()]
        moved = [abs(own - mpf(loss)) for own, loss in zip(truth, found.tolist(), strict=True)]
        assert 0.9 * off <= max(moved)
        assert all(distance <= mpf(float(own)) for distance, own in zip(moved, error, strict=True))
