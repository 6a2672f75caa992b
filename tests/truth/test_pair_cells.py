"""The tails window of the pairs: every mass within its stated error, to the far tails, wherever the cuts fall."""

from __future__ import annotations

import math
import re
import tracemalloc
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_ndtr

import hockeystick as hs
from hockeystick.laws import (
    BinomialPair,
    ContinuousPair,
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    DiscretePair,
    GaussianMixturePair,
    GaussianPair,
    JoinedPair,
    LaplacePair,
    Pair,
    SubsampledPair,
    WorstCasePair,
)
from hockeystick.laws.either_way import EitherWayBinomialPair, EitherWayDiscreteGaussianPair
from hockeystick.laws.largest_result import LargestResultPair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.laws.unmerged import UnmergedPair
from hockeystick.transforms.rule import Window
from tests import mechanism_truths as truths
from tests.mechanism_truths import mp, mpf
from tests.stated_pairs import stated_gaussian

G = Fraction(1, 10)
STATED = stated_gaussian(1.0)
PAIRS: list[Pair] = [
    GaussianMixturePair(1.0, (1 - G, G), (0.0, 1.0), (1 - G, G), (0.0, -1.0)),
    GaussianMixturePair(0.5, (0.5, 0.25, 0.25), (0.0, 1.0, 2.0), (1.0,), (0.0,)),
    GaussianMixturePair(5.0, (0.5, 0.5), (0.0, 1.0), (0.75, 0.25), (0.0, 1.0)),
    GaussianMixturePair(1.0, (1.0,), (0.0,), (1.0,), (0.0,)),
    JoinedPair(GaussianPair(4.0, 2.0), 0.05),
    JoinedPair(LaplacePair(2.0, 2.0), 0.5),
    JoinedPair(WorstCasePair(1.0, 0.125), 0.5),
    JoinedPair(DiscreteGaussianPair(2.0, 2), 0.3),
    JoinedPair(DiscreteLaplacePair(1.0, 2), 0.3),
    UnmergedPair(LaplacePair(2.0, 2.0), 0.05),
    UnmergedPair(DiscreteLaplacePair(1.0, 4), 0.3),
    EitherWayBinomialPair(BinomialPair(50, 0.5, 2), 0.3),
    EitherWayDiscreteGaussianPair(DiscreteGaussianPair(2.0, 2), 0.3),
    EitherWayDiscreteGaussianPair(DiscreteGaussianPair(300.0), 0.001),
    DiscreteGaussianPair(3.0, 2),
    DiscreteGaussianPair(0.3),
    DiscreteGaussianPair(300.0),
    DiscreteLaplacePair(2.0, 3),
    BinomialPair(50, 0.3, 2),
    BinomialPair(3, 0.5, 4),
    WorstCasePair(1.0, 0.01),
    WorstCasePair(0.0, 0.25),
    WorstCasePair(0.0, 1.0),
    LargestResultPair(1.0, 8, 2.0, 1.0),
    STATED,
    SubsampledPair(WorstCasePair(1.0, 0.01), 0.3),
    SubsampledPair(DiscreteGaussianPair(3.0), 0.1),
]
PAIRS += [pair.reversed() for pair in PAIRS]


def cuts_of(pair: Pair) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Cuts everywhere: a grid, and on, just below and just above whatever has mass."""
    low, high = pair.loss_range(-40.0, -40.0)
    special = [0.0, *pair.anchors, low, high]
    near = [loss + step for loss in special for step in (-1e-9, 0.0, 1e-9)]
    return np.unique(np.concatenate((np.linspace(low - 0.3, high + 0.3, 301), near)))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: re.sub(r" at 0x[0-9a-f]+", "", repr(pair)))
def test_cells_hold_all_the_mass_and_their_losses(pair: Pair) -> None:
    cuts = cuts_of(pair)
    cells = pair.cells(cuts)
    assert cells.log_p.shape == cells.log_q.shape == cells.error_p.shape == (cuts.size + 1,)
    assert cells.slack.shape == cuts.shape
    for logs, errors, infinite in (
        (cells.log_p, cells.error_p, pair.mass_at_infinity),
        (cells.log_q, cells.error_q, pair.reverse_mass_at_infinity),
    ):
        total = math.fsum(np.exp(logs)) + infinite
        assert abs(total - 1.0) <= math.fsum(np.exp(logs) * errors) + 4e-16 * cuts.size + 1e-13
    inner = np.flatnonzero(np.isfinite(cells.log_p[1:-1]) & (np.exp(cells.log_p[1:-1]) > 1e-200))
    log_p, log_q = cells.log_p[1:-1][inner], cells.log_q[1:-1][inner]
    ratio = log_p - log_q
    allowed = (cells.error_p + cells.error_q)[1:-1][inner] + 1e-15 * np.abs(log_p)
    assert (ratio >= (cuts[:-1] - cells.slack[:-1])[inner] - allowed).all()
    assert (ratio <= (cuts[1:] + cells.slack[1:])[inner] + allowed).all()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: re.sub(r" at 0x[0-9a-f]+", "", repr(pair)))
def test_draws_and_nodes_agree_with_the_cells(pair: Pair) -> None:
    """Each frequency is a binomial of known mean: false alarm below 1e-6 a comparison by Hoeffding's inequality."""
    rng, size = np.random.default_rng(11), 20_000
    band = math.sqrt(math.log(2e6) / (2 * size))
    low, high = pair.loss_range(-3.0, -3.0)
    cuts = np.unique(np.array([low - 1e-6, 0.3 * low + 0.7 * high + 1e-5, high + 1e-6]))
    cells = pair.cells(cuts)
    for measure, logs, infinite in (("P", cells.log_p, pair.mass_at_infinity), ("Q", cells.log_q, 0.0)):
        drawn = pair.sample(rng, size, measure)  # type: ignore[arg-type]
        assert drawn.shape == (size,)
        above = float(np.exp(logs[-1])) + infinite
        assert abs(float((drawn > cuts[-1]).mean()) - above) <= band
        lower = 1.0 - above - float(np.exp(logs[-2]))
        assert abs(float((drawn <= cuts[-2]).mean()) - lower) <= band
    for refine in (1, 2):
        nodes = pair.nodes(-40.0, refine=refine)
        total = float(np.exp(nodes.log_p).sum()) + pair.mass_at_infinity
        assert abs(total - 1.0) <= 1e-9
        mean = float(np.exp(nodes.log_p) @ -np.expm1(np.minimum(-nodes.loss, 0.0))) + pair.mass_at_infinity
        tails = pair.cells(np.array([0.0]))
        exact = math.exp(tails.log_p[1]) - math.exp(tails.log_q[1]) + pair.mass_at_infinity
        assert abs(mean - exact) <= 0.02  # an estimate: good enough to plan by


@pytest.mark.parametrize(("sigma", "shift"), [(0.4, 1), (3.0, 1), (3.0, 2), (40.0, 1)])
def test_discrete_gaussian_masses_are_within_their_errors(sigma: float, shift: int) -> None:
    pair = DiscreteGaussianPair(sigma, shift)
    s = mpf(sigma)
    reach = 40 * round(sigma + 1)  # beyond it, a part of e^-800
    total = mp.fsum(mp.exp(-(mpf(x) ** 2) / (2 * s**2)) for x in range(-reach, reach + 1))
    unit = shift / (2 * sigma * sigma)
    edges = [
        -round(20 * sigma) - 3,
        -round(8 * sigma) - 2,
        -2,
        -1,
        0,
        1,
        2,
        5 + round(9 * sigma),
        7 + round(25 * sigma),
    ]
    cells = pair.cells(np.array([unit * (2 * x + 1 - shift) for x in edges]))  # halfway between x and x + 1
    runs = [(edges[0] - reach, edges[0]), *((a + 1, b) for a, b in pairwise(edges))]
    for index, (first, last) in enumerate([*runs, (edges[-1] + 1, edges[-1] + reach)]):
        for logs, errors, moved in ((cells.log_p, cells.error_p, shift), (cells.log_q, cells.error_q, 0)):
            exact = mp.log(mp.fsum(mp.exp(-(mpf(x - moved) ** 2) / (2 * s**2)) for x in range(first, last + 1)) / total)
            assert abs(mpf(float(logs[index])) - exact) <= errors[index], (first, last, moved)
            assert errors[index] <= 1e-11


@pytest.mark.parametrize(("trials", "probability", "shift"), [(20, 0.5, 1), (20, 0.3, 3), (300, 0.5, 2)])
def test_binomial_masses_are_within_their_errors(trials: int, probability: float, shift: int) -> None:
    pair = BinomialPair(trials, probability, shift)
    noise = truths.binomial(trials, probability)
    atoms = pair.atoms
    for index, x in enumerate(range(shift, trials + 1)):
        p, q = noise[x - shift], noise[x]
        assert abs(mpf(float(atoms.log_p[index])) - mp.log(truths.as_mpf(p))) <= atoms.error[index]
        assert abs(mpf(float(atoms.log_q[index])) - mp.log(truths.as_mpf(q))) <= atoms.error[index]
        assert abs(mpf(float(atoms.loss[index])) - mp.log(truths.as_mpf(p / q))) <= atoms.loss_error[index]
    assert atoms.error.max() <= 1e-11
    assert atoms.loss_error.max() <= 1e-12
    above = sum(noise[x] for x in range(trials - shift + 1, trials + 1))
    assert above <= Fraction(pair.mass_at_infinity) <= above * (1 + Fraction(1, 2**51))
    below = sum(noise[x] for x in range(shift))
    assert below <= Fraction(pair.reverse_mass_at_infinity) <= below * (1 + Fraction(1, 2**51))


def test_a_large_shift_of_binomial_noise_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        assert BinomialPair(10_000, 0.5, 2_000).atoms.size == 8_001
        assert tracemalloc.get_traced_memory()[1] < 2**24  # a table of every factor of every loss has 2^27 bytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("scale", "shift"), [(0.05, 1), (1.0, 4), (30.0, 2)])
def test_discrete_laplace_masses_are_within_their_errors(scale: float, shift: int) -> None:
    atoms = DiscreteLaplacePair(scale, shift).atoms
    for index, (p, q) in enumerate(truths.shifted_discrete_laplace(scale, shift)):
        assert abs(mpf(float(atoms.log_p[index])) - mp.log(p)) <= atoms.error[index]
        assert abs(mpf(float(atoms.log_q[index])) - mp.log(q)) <= atoms.error[index]
        assert abs(mpf(float(atoms.loss[index])) - mp.log(p / q)) <= atoms.loss_error[index]
    assert atoms.error.max() <= 1e-12


@pytest.mark.parametrize(("sigma", "batches", "p_shift", "q_shift"), [(1.0, 2, 2.0, 1.0), (0.3, 1000, 2.0, 0.0)])
def test_masses_of_the_largest_result_are_within_their_errors(
    sigma: float, batches: int, p_shift: float, q_shift: float
) -> None:
    """Every atom's masses must be those of one interval: found by its distribution functions in high precision."""
    pair = LargestResultPair(sigma, batches, p_shift, q_shift)
    atoms = pair.atoms
    assert atoms.error.max() <= 1e-10

    def below(level: mpf, shift: float) -> mpf:
        others = mp.ncdf(level) ** (batches - 1)
        return mp.ncdf(level - mpf(shift) / mpf(sigma)) * others

    shifts = (p_shift / sigma, q_shift / sigma)
    low = max(min(-math.sqrt(120.0 / batches), *shifts) - 1.0, max(shifts) - 36.0)
    cuts = np.linspace(low, max(0.0, min(shifts)) + 36.0, 2000)
    exact = []
    with mp.workdps(250):  # differences of distribution functions, far out
        for a, b in zip(cuts[400:1200:70], cuts[401:1201:70], strict=True):
            masses = [below(mpf(float(b)), shift) - below(mpf(float(a)), shift) for shift in (p_shift, q_shift)]
            exact.append((mp.log(masses[0]), mp.log(masses[1])))
    for log_p, log_q in exact:
        near = np.flatnonzero(np.abs(atoms.log_p - float(log_p)) < 1e-8)
        assert any(
            abs(mpf(float(atoms.log_p[i])) - log_p) <= atoms.error[i]
            and abs(mpf(float(atoms.log_q[i])) - log_q) <= atoms.error[i]
            for i in near
        ), float(log_p)


@pytest.mark.parametrize("pair", PAIRS[:4], ids=lambda pair: re.sub(r" at 0x[0-9a-f]+", "", repr(pair)))
def test_mixture_masses_are_within_their_errors(pair: GaussianMixturePair) -> None:
    cuts = np.linspace(*pair.loss_range(-200.0, -200.0), 60)
    cells = pair.cells(cuts)
    y = pair._inverse(cuts)
    sides = ((pair.p_weights, pair.p_centres, cells.log_p), (pair.q_weights, pair.q_centres, cells.log_q))
    for index in range(0, cuts.size - 1, 7):
        left, right = mpf(float(y[index])), mpf(float(y[index + 1]))
        if not mp.isfinite(left) or not mp.isfinite(right) or left == right:
            continue
        for weights, centres, logs in sides:
            with mp.workdps(250):
                exact = mp.log(
                    mp.fsum(
                        truths.as_mpf(Fraction(w))
                        * (mp.ncdf(right - c / mpf(pair.sigma)) - mp.ncdf(left - c / mpf(pair.sigma)))
                        for w, c in zip(weights, centres, strict=True)
                    )
                )
            error = max(cells.error_p[index + 1], cells.error_q[index + 1])
            assert abs(mpf(float(logs[index + 1])) - exact) <= error
            assert error <= 1e-11


def test_joined_vectors_are_exact_and_joined_pairs_agree_with_them() -> None:
    p, q = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
    exact = DiscretePair(p, q).joined(Fraction(1, 4))
    assert isinstance(exact, DiscretePair)
    assert sum(Fraction(x) for x in exact.p) == sum(Fraction(x) for x in exact.q) == 1
    general = JoinedPair(DiscretePair(p, q), 0.25)
    for epsilon in (-0.3, -0.05, 0.0, 0.05, 0.2):
        a, b = (pair.cells(np.array([epsilon])) for pair in (exact, general))
        for one, other, error in (
            (a.log_p, b.log_p, a.error_p + b.error_p),
            (a.log_q, b.log_q, a.error_q + b.error_q),
        ):
            same = one == other  # empty cells: -inf both
            assert (np.abs(np.where(same, 0.0, one) - np.where(same, 0.0, other)) <= error).all()
            assert (error <= 1e-12).all()


def test_a_mixture_whose_loss_is_not_monotone_is_refused() -> None:
    with pytest.raises(ValueError, match="must not fall"):
        GaussianMixturePair(1.0, (1.0,), (0.0,), (0.5, 0.5), (0.0, 1.0))
    with pytest.raises(ValueError, match="must sum to 1"):
        GaussianMixturePair(1.0, (0.5, 0.4), (0.0, 1.0), (1.0,), (0.0,))
    with pytest.raises(ValueError, match="distinct"):
        GaussianMixturePair(1.0, (0.5, 0.5), (1.0, 1.0), (1.0,), (0.0,))
    with pytest.raises(ValueError, match="nondecreasing"):
        ContinuousPair(
            loss=lambda x: -x,
            log_cdf_p=log_ndtr,
            log_tail_p=log_ndtr,
            log_cdf_q=log_ndtr,
            log_tail_q=log_ndtr,
            search=(-1.0, 1.0),
            loss_error=1e-15,
            mass_error=1e-15,
        )


@pytest.mark.parametrize("sigma", [0.5, 0.99, 1.0, 1.1, 1.7])
def test_discrete_gaussians_are_normalised_whatever_their_width(sigma: float) -> None:
    """Near width 1 both ends of the theta series count."""
    pair = DiscreteGaussianPair(sigma, 1)
    with mp.workdps(40):
        weight = {x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma) ** 2)) for x in range(-80, 81)}
        total = mp.fsum(weight.values())
        cells = pair.cells(np.array([0.0]))  # outcomes up to 0, and from 1 on
        below = mp.log(mp.fsum(own for x, own in weight.items() if x <= 0) / total)
        assert abs(mpf(float(cells.log_q[0])) - below) <= mpf(float(cells.error_q[0]))
        (rule,) = PairSum([(pair, 1)]).rules(Window((2.0,), 0.0, -40.0)) or ()
        first = -int(np.argmax(rule.log_weight[0]))
        for k, (log, error) in enumerate(zip(rule.log_weight[0], rule.weight_error[0], strict=True)):
            assert abs(mpf(float(log)) - mp.log(weight[first + k] / total)) <= mpf(float(error))


@pytest.mark.parametrize(("sigma", "batches"), [(1.9198105190583046, 1000), (0.0625, 10)])
def test_masses_of_the_largest_result_below_the_normal_range_are_within_their_errors(
    sigma: float, batches: int
) -> None:
    """The last intervals: whatever law is that far out has masses of e^-700 and less there."""
    pair = LargestResultPair(sigma, batches, 2.0, 0.0)
    levels = np.linspace(min(-math.sqrt(120.0 / batches), 0.0) - 1.0, 2.0 / sigma + 38.0, 1500)
    log_mass, error = pair._masses(levels, 0.0)
    far = np.flatnonzero((log_mass[1:-1] > -745.0) & (log_mass[1:-1] < -690.0) & (levels[:-1] > 0.0))
    assert far.size > 3
    with mp.workdps(50):
        for index in far[-6:]:
            a, b = (mpf(float(level)) for level in levels[index : index + 2])
            # T Q(a < X <= b), but for a part of it that is the mass above
            truth = mp.log(batches * (mp.ncdf(-a) - mp.ncdf(-b)))
            assert abs(mpf(float(log_mass[index + 1])) - truth) <= error, float(truth)


@pytest.mark.parametrize("sigma", [1e-3, 1e-6, 1e-8, 1e-100])
def test_the_largest_of_results_with_next_to_no_noise_overflows_nowhere(sigma: float) -> None:
    """Warnings are errors. It tells what it does where noise is added until the laws are 60 deviations apart."""
    pair = LargestResultPair(sigma, 10, 1.0, 0.0)
    assert pair.atoms.log_p.tolist() == LargestResultPair(1.0 / 60.0, 10, 1.0, 0.0).atoms.log_p.tolist()
    assert pair.loss_bounds[1] > 600.0


@pytest.mark.parametrize("sigma", [1.0, 0.05, 0.02, 1e-3])
def test_the_intervals_of_the_largest_result_leave_nothing_out(sigma: float) -> None:
    """Of levels beyond which float64 held one law alone, the mass was in no atom: upper sides were 0."""
    pair = LargestResultPair(sigma, 10, 2.0, 1.0)
    for logs in (pair.atoms.log_p, pair.atoms.log_q):
        assert abs(math.fsum(np.exp(logs)) - 1.0) <= pair.atoms.error.max()
    upper, mean = (
        np.asarray(hs.renyi(one, [16.0]).divergence.upper) for one in (pair, GaussianPair(max(sigma, 1.0 / 60.0)))
    )
    assert 0.9 * min(float(mean[0]), 550.0) < upper[0] <= mean[0]
