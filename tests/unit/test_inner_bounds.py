"""Bounds that certified answers rest on and never show: each against the truth at the edge where it is tight."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import erf, erfc, log, mp, mpf, sqrt

from hockeystick.accountants import Certified
from hockeystick.engines.choose import SOME_OUTCOMES
from hockeystick.engines.contour import planned
from hockeystick.engines.contour.aliasing import Chernoff, kernel_peak
from hockeystick.engines.contour.line_curve import Curve
from hockeystick.engines.ends import composed_infinity
from hockeystick.engines.lattice.buckets import buckets_up
from hockeystick.engines.lattice.chernoff import _on_block_ends
from hockeystick.engines.lattice.compose import TiltedWindow
from hockeystick.engines.lattice.dots import connect_the_dots
from hockeystick.engines.lattice.grid import Grid, GridCells
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.engines.lattice.streaming import Frame
from hockeystick.engines.lattice.streaming_spectrum import TiltedStep
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair, gaussian_rule, mixture_rule
from hockeystick.laws.base import INFINITE, Array, CellMasses, Extreme, Measure, Nodes, Pair
from hockeystick.laws.joined import JoinedPair
from hockeystick.laws.one_step import one_step_delta
from hockeystick.laws.subsampled import SubsampledPair
from hockeystick.numerics.normal import normal_intervals
from hockeystick.numerics.rationals import LOG_RATIO, log_of
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.readouts.gaussian_dp import _log_phi


def _peak(theta: float) -> arb:
    t = arb(theta)
    return (-t * (1 / t).log1p() - t.log1p()).exp()


def test_the_peak_of_the_kernel_is_rounded_up_at_every_tilt() -> None:
    before, ctx.prec = ctx.prec, 200
    try:
        for theta in np.geomspace(1e-8, 1e12, 2000).tolist():
            above = arb(kernel_peak(theta)) / _peak(theta) - 1
            assert above >= 0
            assert above <= 1e-12
    finally:
        ctx.prec = before


def test_a_running_composition_uses_that_peak() -> None:
    theta = 123456.7
    frame = Frame(TiltedWindow(theta, -1e-4, 1e-4, theta / 2, 2 * theta), 1e-6, length=256, kept=20)
    assert arb(frame.kernel_peak) >= _peak(theta)


class _OneAtom(Pair):
    """All P-mass on loss 1; cuts below 0.9999 may be off by 0.01, and are."""

    @property
    def infimum(self) -> Extreme:
        return Extreme(1.0)

    @property
    def supremum(self) -> Extreme:
        return Extreme(1.0)

    def cells(self, losses: Array) -> CellMasses:
        coarse = losses < 0.9999
        above = losses + np.where(coarse, 0.01, 0.0) < 1.0
        logs = np.append(-math.inf if above.any() else 0.0, np.where(above, 0.0, -math.inf))
        error = np.zeros(losses.size + 1)
        return CellMasses(logs, logs - 1.0, error, error, np.where(coarse, 0.01, 1e-6))

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        return 1.0, 1.0

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        raise NotImplementedError

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        raise NotImplementedError


def test_one_step_takes_the_slack_of_the_cut_that_it_uses() -> None:
    epsilon = 0.9999005  # just where cuts are fine; those a little below it are not
    lower, upper = one_step_delta(_OneAtom(), epsilon)
    truth = -math.expm1(epsilon - 1.0)
    assert lower <= truth <= upper
    assert upper <= 0.05


@pytest.mark.parametrize("points", [3, 48, 500, 5000])
def test_low_frequencies_are_charged_for_complex_products(points: int) -> None:
    pld = LatticePLD("lower", 0.01, np.arange(points), 0.0, np.full(points, -math.log(points) - 1e-12), 0.0, 0.0)
    stated = float(TiltedStep(pld, TiltedWindow(1e-9, -1.0, 1.0, -1e-9, 2e-9)).low(8, 100_000).scalars[2])
    # Higham, Accuracy and Stability of Numerical Algorithms, section 3.6: 2 sqrt(2) n u for a complex inner product
    blocks = -(-points // 48)
    assert stated >= (2.0 * math.sqrt(2.0) * 48 + blocks) * U + 2.0 * (6.0 * math.pi * U + ELEMENTARY)
    assert stated <= (400.0 + blocks) * U


def test_the_logarithm_of_the_normal_distribution_is_bounded_on_the_whole_line() -> None:
    points = np.concatenate((-np.geomspace(1e-3, 1e12, 200), np.linspace(-3.0, 40.0, 500), [1e3, 1e150]))
    with mp.workdps(60):
        for x in points.tolist():
            lower, upper = _log_phi(x)
            tail = erfc(mpf(x) / sqrt(2)) / 2 if x > 0 else mpf(0)
            truth = mp.log1p(-tail) if x > 0 else _log_of_a_far_tail(-x)
            assert mpf(lower) <= truth <= mpf(upper)


def _log_of_a_far_tail(x: float) -> mpf:
    if x < 1e4:
        return log(erfc(mpf(x) / sqrt(2)) / 2)
    y = mpf(x)  # the asymptotic series: what is left out is below 1e-30
    return -y * y / 2 - log(y * sqrt(2 * mp.pi)) + mp.log1p(-(y**-2) + 3 * y**-4 - 15 * y**-6 + 105 * y**-8)


@pytest.mark.parametrize("theta", [1.0, 1e-3, 1e-30, 1e-150, 1e-290])
@pytest.mark.parametrize("log_moment", [0.0, 1e-3])
def test_the_lower_side_of_the_aliasing_holds_at_small_tilts(theta: float, log_moment: float) -> None:
    none = np.zeros(4)
    values = np.array([log_moment, 0.0, 0.0, 0.0])
    bounds = Chernoff(theta, log_moment, 0.0, np.array([-1.0, 0.0, theta / 2, 2 * theta]), values, none)
    with mp.workdps(60):
        for period in np.geomspace(0.5, 50.0, 200).tolist():
            found = bounds.aliasing(np.array([0.0]), period)
            whole = mp.exp(-mpf(log_moment)) / mp.expm1(mpf(theta) * mpf(period))  # the most that the terms can be
            gap = 1 / mp.expm1((mpf(theta) + 1) * mpf(period))
            assert mpf(float(found.left_lower[0])) <= max(whole - gap, 0)


@pytest.mark.parametrize("noise", [0.5, 1e3, 1e9, 1e15, 1e20, 1e30])
def test_the_mass_at_loss_zero_of_a_joined_pair_is_inside_its_bounds(noise: float) -> None:
    low, high = JoinedPair(GaussianPair(noise, 2.0), 0.25)._middle
    with mp.workdps(60):
        truth = log(mpf(3) / 4 * erf(1 / mpf(noise) / sqrt(2)))  # total variation of two normals 2 / noise apart
        assert mpf(low) <= truth <= mpf(high)


@pytest.mark.parametrize("cut", [0.5, -0.5])
def test_the_cell_about_loss_zero_of_a_joined_pair_counts_what_is_not_known_as_all_there_may_be(cut: float) -> None:
    """Next to no noise: a rounding of the cuts is worth 5 nats, and what lies between two of them is not known."""
    cells = JoinedPair(GaussianPair(1.836603143927593e-08, 2.0), 0.6).cells(np.array([cut]))
    middle = log(mpf("0.4"))  # of the mass at loss 0; all else is far away
    holder = 0 if cut > 0.0 else 1
    for logs, errors in ((cells.log_p, cells.error_p), (cells.log_q, cells.error_q)):
        assert logs[holder] - errors[holder] <= middle <= logs[holder] + errors[holder]


def _sampled_infinity(rng: np.random.Generator) -> tuple[Pair, int, Fraction]:
    """A pair with mass at infinity, sampled up to three times; a count; the composed mass, exactly."""
    mass = Fraction(int(rng.integers(1, 1000)), 10 ** int(rng.integers(3, 12)))
    pair: Pair = DiscretePair((1 - mass, mass), (Fraction(1), Fraction(0)))
    for _ in range(int(rng.integers(0, 4))):
        rate = float(rng.uniform(0.01, 0.99))
        pair, mass = SubsampledPair(pair, rate), mass * Fraction(rate)
    return pair, int(rng.integers(1, 40)), mass


def test_the_mass_at_infinity_of_a_composition_is_inside_its_bounds() -> None:
    rng = np.random.default_rng(20)
    for _ in range(300):
        parts = [_sampled_infinity(rng) for _ in range(int(rng.integers(1, 4)))]
        low, high = composed_infinity([(pair, count) for pair, count, _ in parts])
        finite = Fraction(1)
        for _, count, mass in parts:
            finite *= (1 - mass) ** count
        assert Fraction(low) <= 1 - finite <= Fraction(high)
        assert high - low <= 1e-14 * high


def test_an_upper_lattice_knows_by_how_much_its_masses_exceed_one() -> None:
    for pair in (GaussianPair(1.0), LaplacePair(0.5).subsampled(0.01), DiscretePair((0.7, 0.3), (0.2, 0.8))):
        for make in (connect_the_dots, buckets_up):
            pld = make(GridCells.of(pair, Grid.covering(-9.0, 9.0, 0.01)))
            with mp.workdps(40):
                total = mp.fsum(mp.exp(mpf(float(log))) for log in pld.log_mass) + mpf(pld.mass_at_infinity)
                assert total <= 1 + mpf(pld.excess)
            assert pld.excess <= 1e-11


def test_logarithms_of_a_bracket_hold_where_scale_and_value_cancel() -> None:
    rng = np.random.default_rng(5)
    with mp.workdps(40):
        for _ in range(2000):
            scale = float(rng.uniform(0.0, 600.0))
            value = float(rng.uniform(0.5, 1.0)) * 2.0 ** -round(scale / math.log(2.0))
            one = np.array([value])
            none = np.zeros(1)
            curve = Curve(np.array([scale]), one, one, none, none, none, none)
            truth = mpf(scale) + log(mpf(value))
            assert mpf(float(curve.log_lower()[0])) <= truth <= mpf(float(curve.log_upper()[0]))


@pytest.mark.parametrize("tilt", [-3.0, 0.0, 2.0, 1e4, 1e5])
def test_fewer_points_for_tail_bounds_keep_every_moment_above(tilt: float) -> None:
    """One heavy point and then faint ones: at a large tilt the faintest decide."""
    count = 200
    masses = np.where(np.arange(count) % 100 == 0, -1.0, -801.0)
    fine = LatticePLD("upper", 0.001, np.arange(count), 0.0, masses, 0.0, 0.0)
    coarse = _on_block_ends(fine, 100)
    with mp.workdps(60):
        low, high = (
            log(mp.fsum(mp.exp(mpf(float(m)) + mpf(tilt) * mpf(float(loss))) for m, loss in zip(*both, strict=True)))
            for both in ((fine.log_mass, fine.losses), (coarse.log_mass, coarse.losses))
        )
        assert low <= high


class _Coarse(Pair):
    """Loss x under Q uniform on [-1, 1] (P is not a law: only the cuts matter); every cut lies 0.5 too low."""

    @property
    def infimum(self) -> Extreme:
        return Extreme(-1.0)

    @property
    def supremum(self) -> Extreme:
        return Extreme(1.0)

    def cells(self, losses: Array) -> CellMasses:
        logs, error = np.zeros(losses.size + 1), np.zeros(losses.size + 1)
        return CellMasses(logs, logs, error, error, np.full(losses.size, 3.0))

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        return -1.0, 1.0

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        raise NotImplementedError

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        raise NotImplementedError


@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.9])
def test_sampling_keeps_the_slack_of_coarse_cuts(rate: float) -> None:
    for base_loss in (-2.0, 0.0, 2.0):
        cut = math.log1p(rate * math.expm1(base_loss))
        slack = float(SubsampledPair(_Coarse(), rate).cells(np.array([cut])).slack[0])
        highest = math.log1p(rate * math.expm1(base_loss + 3.0))  # the base's cut may lie 3 above
        assert cut + slack >= highest


def test_a_narrow_interval_about_a_mean_that_is_hardly_known() -> None:
    """The mass does not change with the mean in first order: the second counts."""
    off = 1e-3
    found = normal_intervals(np.array([-1e-9, 1e-9]), 0.0, off)
    moved = normal_intervals(np.array([-1e-9 + off, 1e-9 + off]), 0.0)
    assert abs(float(moved.log_mass[0] - found.log_mass[0])) <= float(found.error[0] + moved.error[0])


def test_logarithms_of_fractions_are_as_accurate_as_stated() -> None:
    rng = np.random.default_rng(9)
    before, ctx.prec = ctx.prec, 300
    try:
        for _ in range(3000):
            size = int(rng.choice([0, 1, 2, 40, 900, 1100, 5000]))
            near = Fraction(1) + Fraction(int(rng.integers(-900, 900)), 1000) * Fraction(
                1, 1 << int(rng.integers(0, 90))
            )
            value = near * Fraction(2) ** int(rng.integers(-size, size + 1))
            if value == 1:
                continue
            truth = (arb(value.numerator) / arb(value.denominator)).log()
            assert abs(arb(log_of(value)) - truth) <= LOG_RATIO * abs(truth)
    finally:
        ctx.prec = before


def test_round_factors_cover_the_largest_sizes_that_are_served() -> None:
    """The sizes that docs/derivations/rounding.md counts on."""
    sizes = (planned.MOST_NODES, gaussian_rule._MOST_NODES, mixture_rule._MOST_NODES, SOME_OUTCOMES)
    assert (max(sizes) + 64) * U <= 1e-9
    assert (Certified().points + 64) * U <= 1e-6
    assert 100.0 * U * 9e4 <= 1e-9
    assert 17.0 * U < INFINITE < 64.0 * U
    for nested in range(10):  # samplings around an exact mass
        pair: Pair = DiscretePair((Fraction(2, 3), Fraction(1, 3)), (Fraction(1), Fraction(0)))
        mass = Fraction(1, 3)
        for _ in range(nested):
            pair, mass = SubsampledPair(pair, 0.7), mass * Fraction(0.7)
        assert mass <= Fraction(pair.mass_at_infinity) <= mass * (1 + Fraction(INFINITE))
