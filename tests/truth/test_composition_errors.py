"""Compositions of lattices in windows far too narrow, with errors inflated and terms left out."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.engines.contour.aliasing import kernel_peak
from hockeystick.engines.lattice.chernoff import log_tail
from hockeystick.engines.lattice.compose import TiltedComposition, TiltedWindow
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.fourier import Evaluation, PeriodicComposition
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.plan import saddle_at_epsilon
from hockeystick.engines.lattice.pld import LatticePLD, Side
from hockeystick.engines.lattice.rare_events import JumpComposition, _counts, plan_jumps
from hockeystick.engines.lattice.streaming import Frame, RunningComposition
from hockeystick.engines.lattice.streaming_spectrum import TiltedStep
from hockeystick.engines.lattice.tangents import tangents
from hockeystick.exact import exact_delta
from hockeystick.laws import Pair
from tests.lattice_laws import WINDOWS, composed, law


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    with mp.workdps(40):
        yield


@functools.cache
def shaken(
    side: Side, seed: int, slack: float, infinity: float
) -> tuple[list[tuple[LatticePLD, int]], Callable[[float], mpf]]:
    """Eight steps of two kinds, and their curve with every loss as far off as it may be: one for all windows."""
    parts = [(law(side, seed=seed, slack=slack, infinity=infinity), 5), (law(side, seed=seed + 1, slack=slack), 3)]
    return parts, composed(parts, (1.0 if side == "upper" else -1.0) * 8.0 * slack)


@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(("slack", "infinity"), [(0.0, 0.0), (0.003, 0.0), (0.05, 0.01)])
def test_compositions_in_any_window_keep_to_their_side(
    side: Side, window: TiltedWindow, slack: float, infinity: float
) -> None:
    """However much lies outside the window, and whatever the losses may be off by."""
    parts, truth = shaken(side, 1, slack, infinity)
    found = TiltedComposition(parts, window)
    for epsilon in np.linspace(-4.0, 9.0, 66).tolist():
        if side == "upper":
            assert mpf(found.delta(epsilon)) >= min(truth(epsilon), mpf(1))
        else:
            assert mpf(found.delta(epsilon)) <= truth(epsilon)


@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("error", [1e-6, 1e-2])
def test_doubtful_transforms_keep_compositions_on_their_side(side: Side, error: float) -> None:
    """Every mass of the composition, and their scale, as wrong as their errors say."""
    parts = [(law(side, seed=1), 5), (law(side, seed=2), 3)]
    truth = composed(parts, 0.0)
    for absolute in (True, False):
        found = TiltedComposition(parts, TiltedWindow(1.0, -40.0, 40.0, 0.5, 1.5))
        if absolute:
            found.masses = found.masses + (-error if side == "upper" else error) / 100.0
            found.mass_error += error / 100.0
        else:
            found.masses = found.masses * (1.0 - error if side == "upper" else 1.0 + error)
            found.relative_error += error
        for epsilon in np.linspace(-2.0, 9.0, 23).tolist():
            if side == "upper":
                assert mpf(found.delta(epsilon)) >= truth(epsilon)
            else:
                assert mpf(found.delta(epsilon)) <= truth(epsilon)


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_a_tilt_so_large_that_the_kernel_is_cut_off_keeps_to_the_side(side: Side) -> None:
    """Nearly all that matters lies beyond the reach of the kernel."""
    mass = np.array([1e-300, 1.0])
    pld = LatticePLD(side, 0.25, np.array([0, 400], dtype=np.int64), 0.0, np.log(mass), 0.0, 0.0)
    found = TiltedComposition([(pld, 1)], TiltedWindow(1.0, -1.0, 101.0, 0.5, 1.5))
    truth = composed([(pld, 1)], 0.0)
    for epsilon in (0.5, 20.0, 54.9, 60.0, 99.0):
        assert (mpf(found.delta(epsilon)) >= truth(epsilon)) if side == "upper" else True
        assert (mpf(found.delta(epsilon)) <= truth(epsilon)) if side == "lower" else True


def test_terms_left_out_are_in_the_upper_side() -> None:
    """A plan of which only some terms are kept: what the others add, and further jumps, counts as mass."""
    run = hs.Gaussian(0.996).poisson(6.27e-5) * 246 + hs.ApproximateDP(0.0, 1e-14) * 3
    parts, epsilon = run.pairs("remove"), 0.0798
    exact = exact_delta(parts, epsilon, digits=8)
    plan = plan_jumps(parts, epsilon, saddle_at_epsilon(parts, epsilon)[1])
    assert plan is not None
    assert len(plan.terms) > 2
    last = len(plan.terms) - 1
    plds = {side: lattices_of(parts, side) for side in ("upper", "lower")}
    for kept in ([0], [1], [0, 1], [0, last], [*range(1, last + 1)], [*range(last + 1)]):
        few = replace(plan, terms=tuple(plan.terms[k] for k in kept))
        upper, lower = (JumpComposition(plds[side], few, log_alias=-15.0, points=4096) for side in ("upper", "lower"))
        assert Fraction(upper.delta(epsilon)) >= exact.low
        assert Fraction(lower.delta(epsilon)) <= exact.high


@functools.cache
def jumping(steps: int, epsilon: float) -> tuple[Any, Any, dict[str, list[tuple[LatticePLD, int]]]]:
    """The truth, a plan and lattices of rare steps of large loss."""
    parts = (hs.Gaussian(0.996).poisson(6.27e-5) * steps).pairs("remove")
    plan = plan_jumps(parts, epsilon, saddle_at_epsilon(parts, epsilon)[1])
    assert plan is not None
    return exact_delta(parts, epsilon, digits=8), plan, {side: lattices_of(parts, side) for side in ("upper", "lower")}


@pytest.mark.parametrize("points", [1, 64, 512])
def test_jumps_are_composed_on_no_more_points_than_allowed(points: int) -> None:
    """What the lattices' own windows would hold beyond them counts as aliased: they may be far longer than planned."""
    steps, epsilon = 246, 0.0798
    exact, plan, plds = jumping(steps, epsilon)
    for side in ("upper", "lower"):
        found = JumpComposition(plds[side], plan, log_alias=-15.0, points=points)
        assert found.is_cut
        most = points + 2.0 * (math.sqrt(5.0 * steps) + 2.0) + 2.0
        assert all(term.length <= 1.2 * most for term in found._terms)
        delta = Fraction(found.delta(epsilon))
        assert delta >= exact.low if side == "upper" else delta <= exact.high


def lattices_of(parts: Sequence[tuple[Pair, int]], side: str) -> list[tuple[LatticePLD, int]]:
    """Lattices of one side, wide enough for all losses that matter."""
    spacing, plds = 2.0**-11, []
    for pair, count in parts:
        low, high = pair.loss_range(-80.0, -80.0)
        grid = Grid.covering(low - spacing, high + spacing, spacing)
        pld = connect_the_dots(GridCells.of(pair, grid)) if side == "upper" else tangents(pair, grid, tilt=10.0)
        plds.append((pld, count))
    return plds


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_a_power_has_the_rounding_of_as_many_factors(side: Side) -> None:
    pld = law(side, seed=3)
    window = TiltedWindow(1.0, -40.0, 40.0, 0.5, 1.5)
    power, factors = TiltedComposition([(pld, 12)], window), TiltedComposition([(pld, 1)] * 12, window)
    assert power.mass_error == pytest.approx(factors.mass_error, rel=1e-6, abs=0.0)
    assert power.relative_error == pytest.approx(factors.relative_error, rel=1e-6, abs=0.0)


def test_the_kernel_is_never_above_its_peak() -> None:
    """What wraps around counts by the largest value of ``e^-ty (1 - e^-y)``."""
    y = np.concatenate([np.linspace(1e-4, 5.0, 4000), np.logspace(-8.0, 2.0, 4000)])
    for theta in (1e-3, 0.1, 1.0, 7.0, 300.0, 1e5):
        most = float((np.exp(-theta * y) * -np.expm1(-y)).max())
        assert most <= kernel_peak(theta) <= most * 1.01


def test_what_lies_beyond_the_reach_of_the_kernel_is_counted() -> None:
    """All of the mass lies there, and every error of the transform is taken away."""
    pld = LatticePLD("upper", 0.25, np.array([0, 400], dtype=np.int64), 0.0, np.log([1e-300, 1.0]), 0.0, 0.0)
    found = TiltedComposition([(pld, 1)], TiltedWindow(1.0, -1.0, 101.0, 0.5, 1.5))
    found.masses = np.where(found.losses == 100.0, 1.0, 0.0)
    found.mass_error = found.aliased_mass = 0.0
    truth = composed([(pld, 1)], 0.0)
    for epsilon in (20.0, 40.0, 54.0):
        assert mpf(found.delta(epsilon)) >= truth(epsilon)


@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("share", [0.02, 0.1, 1.0])
@pytest.mark.parametrize("slack", [0.0, 0.02])
def test_running_compositions_in_any_window_keep_to_their_side(
    side: Side, window: TiltedWindow, share: float, slack: float
) -> None:
    """Windows that are too narrow, and frequencies that are far too few."""
    parts, truth = shaken(side, 4, slack, 0.002)
    length = 512 if window.high > 10.0 else 64
    kept = math.ceil(share * (length // 2 + 1)) + 1 if share < 1.0 else length // 2 + 1
    composition = RunningComposition(side, Frame(window, 0.25, length=length, kept=kept))
    for pld, count in parts:
        step = TiltedStep(pld, window)
        spectrum = step.low(kept, length) if share < 1.0 else step.full(length).truncated(kept, length)
        composition.add(composition.register(spectrum), count)
    found = composition.curve()
    for epsilon in np.linspace(-3.0, 8.0, 34).tolist():
        if side == "upper":
            assert mpf(found.delta(epsilon)) >= min(truth(epsilon), mpf(1))
        else:
            assert mpf(found.delta(epsilon)) <= truth(epsilon)


@pytest.mark.parametrize("evaluation", ["plancherel", "inverse transform"])
@pytest.mark.parametrize("points", [32, 64, 256])
def test_periodic_compositions_in_any_window_keep_to_their_side(evaluation: Evaluation, points: int) -> None:
    parts = [(law("upper", seed=6, infinity=0.01), 3), (law("upper", seed=7), 2)]
    found, truth = PeriodicComposition(parts, points), composed(parts, 0.0)
    for epsilon in np.linspace(-3.0, 12.0, 31).tolist():
        low, high = found.delta(epsilon, evaluation)
        assert mpf(low) <= truth(epsilon) <= mpf(high)


@pytest.mark.parametrize("theta", [0.5, 2.0])
def test_composed_masses_and_their_scale_are_within_their_errors(theta: float) -> None:
    """Masses as they are, against sums in high precision: rounding is all there is, and it is counted."""
    rng = np.random.default_rng(8)
    index = np.sort(rng.choice(np.arange(0, 900), 9, replace=False)).astype(np.int64)
    log_mass = -np.abs(rng.normal(0.0, 40.0, 9))
    log_mass -= np.logaddexp.reduce(log_mass)
    pld = LatticePLD("lower", 0.25, index, 0.0, log_mass, 0.0, 0.0)
    found = TiltedComposition([(pld, 3)], TiltedWindow(theta, -1.0, 690.0, 0.5 * theta, 1.5 * theta))
    once = {int(i): mp.exp(mpf(float(m)) + mpf(theta) * int(i) / 4) for i, m in zip(index, log_mass, strict=True)}
    scale = mp.fsum(once.values())
    rounding = mpf(found.relative_error) - mpf(theta) * mpf(found.slack)  # positions are exact here
    assert 0 < abs(mpf(found.log_scale) - 3 * mp.log(scale)) <= rounding
    masses = {0: mpf(1)}
    for _ in range(3):
        following: dict[int, mpf] = {}
        for place, mass in masses.items():
            for step, own in once.items():
                following[place + step] = following.get(place + step, mpf(0)) + mass * own / scale
        masses = following
    off = {True: mpf(0), False: mpf(0)}  # by whether anything is there: where nothing is, only the transform errs
    for loss, mass in zip(found.losses, found.masses, strict=True):
        exact = masses.get(round(4.0 * float(loss)), mpf(0))
        off[exact > 0] = max(off[exact > 0], abs(mpf(float(mass)) - exact))
    assert 0 < off[False] <= mpf(found.mass_error)
    assert 0 < off[True] <= mpf(found.mass_error) + rounding


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_running_curve_whose_scale_is_off_keeps_to_its_side(sign: float) -> None:
    side: Side = "upper" if sign > 0.0 else "lower"
    pld, window, error = law(side, seed=9), WINDOWS[5], 1e-3
    composition = RunningComposition(side, Frame(window, 0.25, length=512, kept=257))
    composition.add(composition.register(TiltedStep(pld, window).full(512).truncated(257, 512)), 6)
    found, truth = composition.curve(), composed([(pld, 6)], 0.0)
    found._log_scale -= sign * 0.99 * error
    found._relative += error
    for epsilon in np.linspace(0.0, 4.0, 17).tolist():
        assert sign * (mpf(found.delta(epsilon)) - truth(epsilon)) >= 0


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_positions_may_be_off_by_what_is_stated_of_them(side: Side) -> None:
    """A tilt multiplies what they are off by: here a loss of 2 nats in a window of thousands, tilted by e^20."""
    pld = LatticePLD(side, 0.25, np.array([0, 8]), 0.0, np.log([0.5, 0.5]), 0.0, 0.0)
    found = TiltedComposition([(pld, 1)], TiltedWindow(10.0, -4000.0, 4000.0, 5.0, 15.0))
    found._offset += (7.0 if side == "upper" else -7.0) * 2.0**-53 * 4000.0
    delta, truth = mpf(found.delta(1.5)), 0.5 * -mp.expm1(mpf(-0.5))
    assert delta >= truth if side == "upper" else delta <= truth


def test_terms_of_all_numbers_of_jumps_are_the_whole() -> None:
    """``(a + b + c)^n``, term by term."""
    logs = [math.log(0.5), math.log(0.3), math.log(0.2)]
    found = list(_counts(6, logs, most=6))
    terms = (math.exp(weight + sum(n * log for n, log in zip(counts, logs, strict=True))) for counts, weight in found)
    assert math.fsum(terms) == pytest.approx(1.0, rel=1e-13, abs=0.0)
    assert len({counts for counts, _ in found}) == math.comb(8, 2)


@pytest.mark.parametrize("tilt", [-3.0, -0.1, 0.2, 4.0])
def test_a_tail_is_bounded_by_chernoff_rounded_up(tilt: float) -> None:
    parts = [(law("upper", seed=10), 1000), (law("upper", seed=11), 70)]
    exact = -mpf(tilt) * mpf(5.0)
    for pld, count in parts:
        losses = zip(pld.index, pld.log_mass, strict=True)
        exact += count * mp.log(mp.fsum(mp.exp(mpf(float(log)) + mpf(tilt) * int(i) / 4) for i, log in losses))
    assert exact <= mpf(log_tail(parts, tilt, 5.0)) <= exact + mpf(10) ** -9


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_masses_of_which_rounding_leaves_nothing_prove_nothing(side: Side) -> None:
    """Of a tilt of 1e18 the losses are the same, and their sum is lost beside its logarithm: powers of 2 overflow."""
    pld = LatticePLD(side, 1e-18, np.array([0, 1]), 1.0, np.log(np.array([0.5, 0.5])), 0.0, 0.0)
    found = TiltedComposition([(pld, 2000)], TiltedWindow(1e18, 2000.0, 2000.0, 1e17, 1e19))
    running = RunningComposition(side, Frame(found.window, 1e-18, length=512, kept=257))
    running.add(running.register(TiltedStep(pld, found.window).full(512)), 2000)
    for epsilon in (1999.5, 2000.0):
        assert found.delta(epsilon) == running.curve().delta(epsilon) == (1.0 if side == "upper" else 0.0)


@pytest.mark.parametrize(("theta", "offset"), [(1e-3, 0.0), (1.0, 1e6)])
def test_tilted_masses_sum_to_at_most_one(theta: float, offset: float) -> None:
    """Of more, the transform of a step at frequency 0 would be above one, and its powers would grow."""
    for seed in range(30):
        pld = replace(law("upper", seed=seed), offset=offset)
        masses = TiltedStep(pld, TiltedWindow(theta, 0.0, 1.0, theta, theta)).masses
        assert 1.0 - 1e-9 < math.fsum(masses) <= 1.0
