"""Pairs stated by functions that do not tell some cells from nothing: gaps of both measures, and coarse functions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log_ndtr

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.engines.lattice.buckets import buckets_down, buckets_up
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.tangents import tangents
from hockeystick.laws import ContinuousPair, GaussianPair, Pair, SubsampledPair, stated
from hockeystick.laws.joined import JoinedPair
from hockeystick.laws.one_step import one_step_deltas
from hockeystick.laws.reversed import ReversedPair

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

SLOPE = 1.0 / 3.0
CONSTANT = -math.log((math.expm1(SLOPE) + math.exp(2.0 * SLOPE) * math.expm1(SLOPE)) / SLOPE / 2.0)


def _halves(x: Array) -> tuple[Array, Array]:
    inside = np.clip(x, 0.0, 3.0)
    return np.minimum(inside, 1.0), np.maximum(inside, 2.0) - 2.0


def _log(of: Callable[[Array, Array], Array]) -> Function:
    def log(x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(of(*_halves(x))))

    return log


def _below(low: Array, high: Array) -> Array:
    found = np.expm1(SLOPE * low) + math.exp(2.0 * SLOPE) * np.expm1(SLOPE * high)
    return np.asarray(0.5 * math.exp(CONSTANT) * found / SLOPE)


def _above(low: Array, high: Array) -> Array:
    first = np.exp(SLOPE * low) * np.expm1(SLOPE * (1.0 - low))
    second = np.exp(SLOPE * (2.0 + high)) * np.expm1(SLOPE * (1.0 - high))
    return np.asarray(0.5 * math.exp(CONSTANT) * (first + second) / SLOPE)


# under Q uniform on [0, 1] and [2, 3], with a loss that goes on rising between
WITH_A_GAP = ContinuousPair(
    loss=lambda x: np.asarray(SLOPE * np.clip(x, 0.0, 3.0) + CONSTANT),
    log_cdf_p=_log(_below),
    log_tail_p=_log(_above),
    log_cdf_q=_log(lambda low, high: 0.5 * (low + high)),
    log_tail_q=_log(lambda low, high: 0.5 * ((1.0 - low) + (1.0 - high))),
    search=(0.0, 3.0),
    bounds=(CONSTANT, CONSTANT + 3.0 * SLOPE),
    loss_error=1e-14,
    mass_error=1e-13,
)


def _two_steps(epsilon: float, points: int = 2000) -> float:
    """delta of two of them by midpoints, to some 1e-8."""
    middles = (np.arange(points) + 0.5) / points
    loss = SLOPE * np.concatenate((middles, 2.0 + middles)) + CONSTANT
    p = np.exp(loss) / (2 * points)
    both = -np.expm1(np.minimum(epsilon - loss[:, None] - loss, 0.0))
    return float(p @ both @ p)


def test_a_gap_of_both_measures_composes_narrowly() -> None:
    for epsilon in (0.0, 0.2, 0.5):
        found = hs.account(hs.UserDefined(remove=WITH_A_GAP) * 2, adjacency="remove").delta(epsilon)
        assert isinstance(found, Bound)
        assert float(found.width) <= 1e-3 * float(found.lower)
        assert float(found.lower) * (1.0 - 1e-6) <= _two_steps(epsilon) <= float(found.upper) * (1.0 + 1e-6)


def test_cells_of_a_gap_are_empty_and_those_beside_it_hardly_less_accurate() -> None:
    cells = WITH_A_GAP.cells(np.linspace(CONSTANT, CONSTANT + 3.0 * SLOPE, 101)[1:-1])
    for log, error in ((cells.log_p, cells.error_p), (cells.log_q, cells.error_q)):
        assert np.isneginf(log).sum() == 32
        assert float(error.max()) < 1e-9
        assert math.fsum(np.exp(log)) == pytest.approx(1.0, rel=1e-12)


def _coarse(exact: Function, error: float, mode: str) -> Function:
    """A function that is off by the error or nearly, one way or either, and flat in between."""

    def found(x: Array) -> Array:
        log = exact(x) / error
        rounded = {"up": np.floor(log) + 1.0, "down": np.ceil(log) - 1.0, "either": 2.0 * np.round(0.5 * log)}[mode]
        return np.asarray(np.minimum(rounded * error, 0.0))

    return found


@pytest.mark.parametrize("mode", ["up", "down", "either"])
@pytest.mark.parametrize("error", [1e-3, 1e-2])
def test_coarse_functions_bracket_what_they_are_within_their_errors_of(error: float, mode: str) -> None:
    """On lattices so fine that functions do not rise from point to point, under P and under Q, and around loss 0."""
    exact: list[Function] = [lambda x: log_ndtr(x - 1.0), lambda x: log_ndtr(1.0 - x), log_ndtr, lambda x: log_ndtr(-x)]
    cdf_p, tail_p, cdf_q, tail_q = (_coarse(one, error, mode) for one in exact)
    stated = ContinuousPair(
        loss=lambda x: np.asarray(x - 0.5),
        log_cdf_p=cdf_p,
        log_tail_p=tail_p,
        log_cdf_q=cdf_q,
        log_tail_q=tail_q,
        search=(-37.0, 38.0),
        loss_error=1e-13,
        mass_error=error,
    )
    made: list[Callable[[Pair], Pair]] = [
        lambda pair: pair,
        ReversedPair,
        lambda pair: ReversedPair(SubsampledPair(pair, 0.3)),
        lambda pair: JoinedPair(pair, 0.3),
    ]
    epsilons = np.linspace(-2.0, 2.5, 7)
    for of in made:
        pair = of(stated)
        low, high = one_step_deltas(of(GaussianPair(1.0)), epsilons)
        low, high = low * (1.0 - 1e-9), high * (1.0 + 1e-9)
        for spacing in (0.3, 0.003, 0.0007):
            cells = GridCells.of(pair, Grid.covering(-4.0, 4.0, spacing))
            for upper in (connect_the_dots(cells), buckets_up(cells)):
                found = np.array([upper.hockey_stick(epsilon - upper.slack) for epsilon in epsilons.tolist()])
                assert (found >= low).all()
            for lower in (tangents(pair, cells.grid), buckets_down(cells)):
                found = np.array([lower.hockey_stick(epsilon + lower.slack) for epsilon in epsilons.tolist()])
                assert (found <= high).all()
        below, above = one_step_deltas(pair, np.linspace(-2.0, 2.5, 1501)[::250])
        assert (below <= high).all()
        assert (low <= above).all()


@pytest.mark.parametrize("own", [-20.0, -500.0, -1500.0])
def test_a_cell_that_takes_on_far_more_than_its_own_mass_says_so(own: float) -> None:
    """The mass given away is at most 1/e, whatever the next cells hold themselves."""
    logs, known = np.array([-5.0, -3.0, own, -2.0]), np.full(4, 1e-9)
    p = stated._Masses(logs, np.array([1e-9, np.inf, 1e-9, 1e-9]), np.array([-5.0, -1.0, own, -2.0]))
    q = stated._Masses(np.full(4, -4.0), known, np.full(4, -4.0))
    stated._give_away(p, q)
    assert p.log[1] == -np.inf
    for beside, before in ((0, -5.0), (2, own)):
        assert p.log[beside] + p.error[beside] >= float(np.logaddexp(before, -1.0))
