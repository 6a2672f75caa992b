"""Random allocation and fixed bins against truths found otherwise: quadrature, enumeration, simulation."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.laws import DiscreteGaussianPair, DiscretePair, GaussianPair, LaplacePair, Pair
from hockeystick.laws.allocated import AllocatedCurve
from hockeystick.laws.allocated_atoms import AllocatedAtomsPair
from hockeystick.laws.curve import ChordPair, SupportPair
from hockeystick.laws.extent import Extreme, InfiniteMass
from hockeystick.laws.one_step import one_step_delta
from hockeystick.numerics.stop_loss import RareTerms
from tests.quadrature import DIGITS, integral, normal_below, normal_density


def two_steps(sigma: float, epsilon: float, *, mirrored: bool) -> mpmath.mpf:
    """delta of Gaussian noise and two steps, by quadrature over the first of them to 25 digits."""
    with ctx.workdps(DIGITS):
        m, e = 1 / arb(sigma), arb(epsilon)
        k = 2 * (-e if mirrored else e).exp()

        def inner(z: arb) -> arb:
            c = k - (m * z - m * m / 2).exp()
            if c <= 0:
                return arb(0) if mirrored else normal_density(z) * (1 - c)
            place = (c.log() + m * m / 2) / m
            if mirrored:  # E (c - W)+
                return normal_density(z) * (c * normal_below(place) - normal_below(place - m))
            return normal_density(z) * (normal_below(m - place) - c * normal_below(-place))  # E (W - c)+

        middle = (k.log() + m * m / 2) / m
        close = [middle - arb(2) ** -j for j in range(-2, 25)]  # all derivatives fade there
        steps = [*(arb(z) for z in range(-14, 15)), *(middle + j for j in range(5)), 14 + m]
        total = integral(inner, sorted([*steps, *close]))
        return mpmath.mpf(total * e.exp() / 2 if mirrored else total / 2)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(
    ("sigma", "epsilon"), [(1.0, 0.0), (1.0, 0.7), (0.6, 3.0), (3.0, 0.5), (10.0, 0.05), (1.0, 4.0)]
)
def test_brackets_contain_two_steps_of_gaussian_noise(sigma: float, epsilon: float, mirrored: bool) -> None:
    low, high = AllocatedCurve(GaussianPair(sigma), 2, mirrored).delta(epsilon)
    truth = two_steps(sigma, epsilon, mirrored=mirrored)
    assert low <= truth <= high
    assert high - low <= 4e-4 * high


@pytest.mark.parametrize(
    ("sigma", "epsilon", "mirrored", "truth", "width"),
    [
        (2.0, 5.0, False, 1.91021505728679e-30, 1e-7),
        (2.0, 5.0, True, 1.52272894136959e-45, 1e-4),
        (2.0, 7.12, False, 3.7347023094846e-55, 1e-9),
        (2.0, 7.12, True, 1.2428057247932e-89, 1e-4),
        (2.0, 8.0, False, 1.127092330418e-67, 1e-9),
        (2.0, 8.0, True, 1.7315521949192e-112, 1.0),
        (0.754, 24.0, False, 1.48652684878822e-73, 1e-9),
        (0.754, 24.0, True, 1.2543080546597e-136, 1.0),
        (0.754, 36.0, False, 3.1387857481819907e-162, 1e-9),
        (0.754, 36.0, True, 1.2434546558416e-309, 1.0),
    ],
)
def test_brackets_hold_far_beyond_what_a_line_serves(
    sigma: float, epsilon: float, mirrored: bool, truth: float, width: float
) -> None:
    """Truths by quadrature over one of two steps, relative to what it peaks at: rules stop at absolute errors."""
    low, high = AllocatedCurve(GaussianPair(sigma), 2, mirrored).delta(epsilon)
    assert low <= truth <= high
    assert high - low <= width * high


@pytest.mark.parametrize("epsilon", [7.12, 9.5, 10.0, 12.0])
def test_small_deltas_are_narrow(epsilon: float) -> None:
    """From 1e-30 to 1e-59, where a coarse lattice is a straight line about the point."""
    low, high = AllocatedCurve(GaussianPair(1.0), 100).delta(epsilon)
    assert 0.0 < high - low <= 1e-4 * high


@pytest.mark.parametrize("epsilon", [12.0, 19.0, 32.0])
def test_bins_of_discrete_noise_far_out(epsilon: float) -> None:
    """Losses that are rare nearer to 0 decide there; the truth is the sum over both bins' outcomes."""
    sigma, most = 2.1, 120
    low, high = AllocatedCurve(DiscreteGaussianPair(sigma, 3), 2).delta(epsilon)
    assert high - low <= 1e-4 * high
    with mpmath.workdps(40):
        variance = mpmath.mpf(sigma) ** 2
        weights = [mpmath.exp(-(x * x) / (2 * variance)) for x in range(-most, most + 1)]
        q = [one / mpmath.fsum(weights) for one in weights]
        ratio = [mpmath.exp((6 * x - 9) / (2 * variance)) for x in range(-most, most + 1)]
        masses, means = ([mpmath.mpf(0)] for _ in range(2))  # of the last outcomes
        for own, w in zip(reversed(q), reversed(ratio), strict=True):
            masses.append(masses[-1] + own)
            means.append(means[-1] + own * w)
        truth = mpmath.mpf(0)
        for own, w in zip(q, ratio, strict=True):
            rest = 2 * mpmath.exp(epsilon) - w
            above = len(ratio) - bisect_right(ratio, rest)
            truth += own * (means[above] - rest * masses[above]) / 2
        assert low <= truth <= high


def exact_delta(
    p: tuple[Fraction, ...], q: tuple[Fraction, ...], steps: int, a: Fraction, *, mirrored: bool
) -> Fraction:
    """The hockey-stick divergence of one round, outcome by outcome, in integers."""
    whole = math.lcm(*(mass.denominator for mass in (*p, *q)))
    own, base = ([int(mass * whole) for mass in side] for side in (p, q))
    total = 0
    for outcome in product(range(len(p)), repeat=steps):
        other = steps * math.prod(base[i] for i in outcome)
        ours = sum(
            own[i] * math.prod(base[j] for place, j in enumerate(outcome) if place != at)
            for at, i in enumerate(outcome)
        )
        first, second = (other, ours) if mirrored else (ours, other)
        total += max(a.denominator * first - a.numerator * second, 0)
    return Fraction(total, steps * a.denominator * whole**steps)


VECTORS = [
    ((0.75, 0.25), (0.25, 0.75)),
    ((0.5, 0.25, 0.25), (0.125, 0.375, 0.5)),
    ((0.125, 0.4375, 0.4375), (0.0, 0.5, 0.5)),
]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("steps", [2, 3, 5])
@pytest.mark.parametrize("vectors", VECTORS)
def test_brackets_contain_enumerated_rounds(
    vectors: tuple[tuple[float, ...], tuple[float, ...]], steps: int, direction: str
) -> None:
    p, q = (tuple(Fraction(x) for x in vector) for vector in vectors)
    curve = hs.account(hs.DiscretePair(p, q).random_allocation(steps=steps), adjacency=direction)
    for epsilon in (0.0, 0.1, 0.4, 0.9):
        bound = curve.delta(epsilon=epsilon)
        # e^epsilon from below and above, as fractions
        below, above = (Fraction(math.nextafter(math.exp(epsilon), end)) for end in (0.0, 9.0))
        assert bound.lower <= exact_delta(p, q, steps, below, mirrored=direction == "add")
        assert exact_delta(p, q, steps, above, mirrored=direction == "add") <= bound.upper
        assert bound.width <= 1e-12


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("p", "q", "steps"),
    [
        ((0.0, 1.0), (0.75, 0.25), 4),  # likelihood ratios of 0 and 4
        ((0.0, 0.9375, 0.0625), (0.75, 2.0**-20, 0.25 - 2.0**-20), 2),
        ((0.5, 0.375, 0.125, 0.0), (0.0, 0.125, 0.375, 0.5), 2),
    ],
)
def test_brackets_contain_rounds_of_outcomes_that_one_dataset_lacks(
    p: tuple[float, ...], q: tuple[float, ...], steps: int, direction: str
) -> None:
    curve = hs.account(hs.DiscretePair(p, q).random_allocation(steps=steps), adjacency=direction)
    exact = tuple(map(Fraction, p)), tuple(map(Fraction, q))
    for epsilon in (0.0, 1.0, 1.375, 30.0):
        bound = curve.delta(epsilon=epsilon)
        below, above = (Fraction(math.nextafter(math.exp(epsilon), end)) for end in (0.0, math.inf))
        assert bound.lower <= exact_delta(*exact, steps, below, mirrored=direction == "add")
        assert exact_delta(*exact, steps, above, mirrored=direction == "add") <= bound.upper
    bound = curve.epsilon(2.0**-12)
    if bound.upper < math.inf:
        above = Fraction(math.nextafter(math.exp(bound.upper), math.inf))
        assert exact_delta(*exact, steps, above, mirrored=direction == "add") <= 2.0**-12


@pytest.mark.parametrize(
    ("mechanism", "truth"),  # enumerated, and by quadrature
    [(hs.ApproximateDP(1.0, 1e-3), 1.6869665003420252), (hs.Laplace(0.05), 19.99996000)],
)
def test_epsilon_next_to_the_largest_loss_of_a_round(mechanism: hs.ApproximateDP | hs.Laplace, truth: float) -> None:
    bound = hs.account(mechanism.random_allocation(steps=2), adjacency="add").epsilon(1e-5)
    assert bound.lower <= truth <= bound.upper <= truth + 5e-5


def test_the_law_below_a_curve_may_end_below_it() -> None:
    """Two runs of bins whose mass at infinity is known to more digits than the law that shows it gives away."""
    shown = Fraction(1, 2**24)
    bound = hs.account(hs.Binomial(trials=24).balls_in_bins(bins=4) * 2, "remove").delta(4.7)
    assert 0.999 * float(1 - (1 - shown) ** 2) <= bound.lower <= bound.upper


def test_the_lattice_contains_listed_rounds() -> None:
    base = DiscretePair((0.75, 0.25), (0.25, 0.75))
    for steps, epsilon in ((40, 0.2), (200, 0.1)):
        listed = one_step_delta(AllocatedAtomsPair(base, steps), epsilon)
        low, high = AllocatedCurve(base, steps).delta(epsilon)
        assert low <= listed[1]
        assert listed[0] <= high
        assert max(high - low, listed[1] - listed[0]) <= 1e-3 * high


@pytest.mark.parametrize(
    ("sigma", "steps", "epsilon"),
    [(0.5, 1000, 3.1304), (1.0, 50, 0.8), (0.4, 300, 4.0), (1.0 / math.sqrt(20.0), 100, 20.0)],
)
def test_brackets_agree_with_simulation(sigma: float, steps: int, epsilon: float) -> None:
    """The largest term is integrated in closed form; five standard errors: a false alarm in 1e6."""
    rng = np.random.default_rng(15)
    m, k, draws = 1.0 / sigma, steps * math.exp(epsilon), 20_000
    rest, largest = np.zeros(draws), np.zeros(draws)
    for _ in range(steps - 1):
        w = np.exp(m * rng.standard_normal(draws) - 0.5 * m * m)
        rest, largest = rest + w, np.maximum(largest, w)
    above = np.maximum(largest, k - rest)
    z = (np.log(above) + 0.5 * m * m) / m
    found = ndtr(m - z) - (k - rest) * ndtr(-z)
    low, high = AllocatedCurve(GaussianPair(sigma), steps).delta(epsilon)
    error = 5.0 * found.std() / math.sqrt(draws)
    assert low - error <= found.mean() <= high + error
    assert error <= 0.2 * high


@pytest.mark.torture
def test_rounds_of_a_thousand_steps_agree_with_ten_million_draws() -> None:
    """Empirical Bernstein bounds (Maurer and Pontil 2009) at 24 places, all at once: a false alarm in 1e6.

    Under *remove* delta is the mean of ``(1 - e^eps t / S)+``, S having one W under P; under *add* that of ``(1 - e^eps
    S / t)+``, all W under Q: numbers in [0, 1].
    """
    steps, draws, chunk, sigmas = 1000, 10_000_000, 2_000, (0.5, 1.0)
    places = {0.5: (0.02, 0.05, 0.1, 0.3, 1.0, 2.0), 1.0: (0.01, 0.03, 0.05, 0.07, 0.09, 0.11)}
    sums, squares = np.zeros((2, 2, 6)), np.zeros((2, 2, 6))
    rng = np.random.default_rng(1507)
    for _ in range(draws // chunk):
        z = rng.standard_normal((steps + 1, chunk))
        for i, sigma in enumerate(sigmas):
            w = np.exp(z / sigma - 0.5 / sigma**2)
            rest = w[1:-1].sum(axis=0)
            round_p, round_q = (rest + w[0] * math.exp(1.0 / sigma**2)) / steps, (rest + w[-1]) / steps
            for j, a in enumerate(np.exp(places[sigma])):
                for side, sample in enumerate((1.0 - a / round_p, 1.0 - a * round_q)):
                    found = np.maximum(sample, 0.0)
                    sums[side, i, j] += found.sum()
                    squares[side, i, j] += (found * found).sum()
    mean = sums / draws
    log_beta = math.log(2.0 * 24 * 2 / 1e-6)
    error = np.sqrt(2.0 * (squares / draws - mean**2) * log_beta / draws) + 7.0 * log_beta / (3.0 * draws)
    error *= 1.0 + 1e-6  # one draw less in each divisor
    assert (error <= 0.02 * mean)[:, :, 0].all()
    for side, i, j in np.ndindex(2, 2, 6):
        curve = AllocatedCurve(GaussianPair(sigmas[i]), steps, bool(side))
        low, high = curve.delta(places[sigmas[i]][j])
        own, about = mean[side, i, j], error[side, i, j]
        assert own - about <= high, (sigmas[i], places[sigmas[i]][j], side)
        assert low <= own + about, (sigmas[i], places[sigmas[i]][j], side)


def test_one_step_is_the_mechanism_alone() -> None:
    step = hs.Gaussian(1.3)
    for sampled in (step.random_allocation(steps=1), step.balls_in_bins(bins=1)):
        assert sampled.pair("remove") == step.pair("remove")
        assert sampled.attained("remove") is None


def test_one_bin_composes_its_epochs() -> None:
    found = hs.account(hs.Gaussian(3.0).balls_in_bins(bins=1, epochs=7)).epsilon(delta=1e-6)
    assert found.width <= 1e-9
    truth = hs.account(hs.Gaussian(3.0) * 7).epsilon(delta=1e-6)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper


def test_published_runs() -> None:
    one = hs.account(hs.Gaussian(1.0).random_allocation(steps=1000)).epsilon(delta=1e-5)
    assert 0.13884 < one.lower < one.upper < 0.13887
    assert one.width <= 1e-6
    noisy = hs.account(hs.Gaussian(0.5).random_allocation(steps=1000)).epsilon(delta=1e-5)
    assert 3.1255 < noisy.lower < noisy.upper < 3.1461  # PLD_accounting 2.0
    assert noisy.width <= 1e-6


def test_fresh_rounds_and_fixed_bins_differ_enormously() -> None:
    step = hs.Gaussian(1.0)
    fresh = hs.account(step.random_allocation(steps=100) * 20, tolerance=1e-4).epsilon(delta=1e-5)
    assert 2.411 < fresh.lower < fresh.upper < 2.495
    assert fresh.width <= 1e-4
    fixed = hs.account(step.balls_in_bins(bins=100, epochs=20)).epsilon(delta=1e-5)
    assert fixed.width <= 1e-6
    assert 23.7 < fixed.lower < 24.0


@pytest.mark.parametrize("base", [LaplacePair(1.0), GaussianPair(1.0)])
@pytest.mark.parametrize("mirrored", [False, True])
def test_chords_lie_above_the_curve_and_supports_below(base: Pair, mirrored: bool) -> None:
    curve = AllocatedCurve(base, 20, mirrored)
    chords, supports = ChordPair(curve).atoms, SupportPair(curve).atoms
    for epsilon in np.linspace(-0.6, 0.9, 6):
        low, high = curve.delta(float(epsilon))
        sides = []
        for atoms, sign in ((chords, 1.0), (supports, -1.0)):
            above = atoms.loss > epsilon
            masses = np.exp(atoms.log_p[above] + sign * atoms.error[above])
            sides.append(float((masses * -np.expm1(epsilon - atoms.loss[above])).sum()) + atoms.infinite_p)
        assert low <= sides[0] * (1.0 + 1e-9)
        assert sides[1] * (1.0 - 1e-9) <= high
        assert sides[0] - sides[1] <= 2e-3 * max(sides[0], 1e-3)


@dataclass(frozen=True)
class LooseAtOne:
    """One Gaussian, known well except at epsilon 0, where chords across it tell more."""

    def delta(self, epsilon: float) -> tuple[float, float]:
        low, high = self.deltas(np.array([epsilon]), 0.0)
        return float(low[0]), float(high[0])

    def deltas(self, epsilons: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray]:
        known = ndtr(0.5 - epsilons) - np.exp(epsilons) * ndtr(-0.5 - epsilons)
        return known * (1.0 - 1e-9), np.where(epsilons == 0.0, 1.05, 1.0 + 1e-9) * known

    def reversed(self) -> LooseAtOne:
        return self

    def guess(self, delta: float) -> float:
        return 1.0

    supremum = Extreme(math.inf)
    infinite_mass = InfiniteMass.rounded_up(0.0)


def test_chords_across_epsilon_0_lie_above_the_curve() -> None:
    atoms = ChordPair(LooseAtOne()).atoms
    above = atoms.loss > 0.0
    masses = np.exp(atoms.log_p[above] + atoms.error[above])
    found = float((masses * -np.expm1(-atoms.loss[above])).sum()) + atoms.infinite_p
    truth = ndtr(0.5) - ndtr(-0.5)
    assert truth <= found <= truth * 1.001  # 1.05 is what is said of epsilon 0 itself


def test_compositions_contain_enumerated_ones() -> None:
    p, q = (Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))
    round_p, round_q = [], []
    for outcome in product(range(2), repeat=3):
        mass = math.prod((q[i] for i in outcome), start=Fraction(1))
        round_q.append(mass)
        round_p.append(sum((mass / q[i] * p[i] for i in outcome), start=Fraction(0)) / 3)
    listed = hs.DiscretePair(round_p, round_q)
    step = hs.RandomizedResponse(probability=0.75)
    run, truth = hs.account(step.random_allocation(steps=3) * 4), hs.account(listed * 4)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        bound, exact = run.delta(epsilon=epsilon), truth.delta(epsilon=epsilon)
        assert bound.lower <= exact.upper
        assert exact.lower <= bound.upper


def several_delta(p: tuple[Fraction, ...], q: tuple[Fraction, ...], steps: int, k: int, a: Fraction) -> list[Fraction]:
    """The hockey-stick divergences, both ways, of k of so many steps, outcome by outcome."""
    chosen = list(combinations(range(steps), k))
    total = [Fraction(0), Fraction(0)]
    for outcome in product(range(len(p)), repeat=steps):
        other = math.prod((q[i] for i in outcome), start=Fraction(1))
        ratios = [p[i] / q[i] for i in outcome]
        ours = other * sum(math.prod((ratios[i] for i in own), start=Fraction(1)) for own in chosen) / len(chosen)
        total[0] += max(ours - a * other, Fraction(0))
        total[1] += max(other - a * ours, Fraction(0))
    return total


@pytest.mark.parametrize(("steps", "selected"), [(4, 2), (5, 2), (5, 3), (5, 4)])
def test_several_steps_of_a_round_lie_below_rounds_of_one(steps: int, selected: int) -> None:
    p, q = (Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))
    step = hs.DiscretePair(p, q).random_allocation(steps=steps, selected=selected)
    for epsilon in (0.0, 0.5, 1.2):
        a = Fraction(math.nextafter(math.exp(epsilon), 0.0))
        for direction, exact in zip(("remove", "add"), several_delta(p, q, steps, selected, a), strict=True):
            bound = hs.account(step, adjacency=direction).delta(epsilon=epsilon)
            assert bound.lower == 0.0
            assert exact <= bound.upper <= 3 * exact


def test_several_steps_of_a_round_of_gaussian_noise_are_bracketed() -> None:
    """Two of three steps, by simulation; five standard errors: a false alarm in 1e6."""
    rng = np.random.default_rng(7)
    w = np.exp(rng.standard_normal((100_000, 3)) - 0.5)
    ratio = (w[:, 0] * w[:, 1] + w[:, 0] * w[:, 2] + w[:, 1] * w[:, 2]) / 3.0
    step = hs.Gaussian(1.0).random_allocation(steps=3, selected=2)
    curves = {direction: hs.account(step, adjacency=direction) for direction in ("remove", "add")}
    for epsilon in (0.0, 0.6, 1.5):
        a = math.exp(epsilon)
        for direction, sample in (("remove", ratio - a), ("add", 1.0 - a * ratio)):
            found = np.maximum(sample, 0.0)
            error = 5.0 * found.std() / math.sqrt(found.size)
            bound = curves[direction].delta(epsilon=epsilon)
            assert bound.lower - error <= found.mean() <= bound.upper + error
            assert 0.0 < bound.lower < bound.upper
            assert any("2 of 3" in note for note in bound.notes)


def test_lattices_of_few_steps_hold_the_whole_sum() -> None:
    """Their windows end where the sum does, whatever the spacing: no mass is folded back."""
    epsilons = np.arange(12) * 2.0**-8
    for mirrored in (False, True):
        low, high = AllocatedCurve(GaussianPair(1.0), 2, mirrored).deltas(epsilons, 2.0**-8)
        assert (high - low <= 1e-5 * high).all()


@pytest.mark.parametrize("steps", [2, 3, 40, 400])
def test_rare_terms_are_bracketed_whether_or_not_one_of_them_is_enough(steps: int) -> None:
    """W is 1/2, or 5/2 with probability 1/4: ``E[(S - k)+; some W > b]`` and the same from below are finite sums."""
    large, q = Fraction(5, 2), Fraction(1, 4)
    squares = q * large**2 + (1 - q) / 4
    for k in (Fraction(steps) * share / 20 for share in range(1, 61, 4)):
        exact = [Fraction(0), Fraction(0)]
        for n in range(1, steps + 1):
            mass = math.comb(steps, n) * q**n * (1 - q) ** (steps - n)
            s = n * large + (steps - n) * Fraction(1, 2)
            exact = [exact[0] + mass * max(s - k, Fraction(0)), exact[1] + mass * max(k - s, Fraction(0))]
        for below, truth in zip((False, True), exact, strict=True):
            rare = RareTerms(
                math.log(q), math.log(q * large), 1e-15, 2.4, mean=1.0, count=steps, below=below, square=float(squares)
            )
            low, high = (float(side[0]) for side in rare.bounds(np.array([float(k)])))
            assert low <= truth <= high
            surely = k + math.sqrt(60 * steps * squares) <= steps + Fraction(12, 5)
            assert below or not surely or high - low <= 1e-9 * high


@pytest.mark.parametrize("epsilon", [0.0089, 0.1])
def test_many_steps_of_which_one_may_carry_the_sum_are_narrow(epsilon: float) -> None:
    """A million steps, delta of 1e-15 and 1e-30: neither a normal law nor a single large term."""
    low, high = AllocatedCurve(GaussianPair(1.0), 1_000_000).delta(epsilon)
    assert high - low <= 0.02 * high


@pytest.mark.torture
@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("steps", [1, 2, 10, 1000, 1_000_000])
def test_corners_of_the_range_are_answered(steps: int, sigma: float) -> None:
    curve = hs.account(hs.Gaussian(sigma).random_allocation(steps=steps))
    for delta in (0.5, 1e-5, 1e-15, 1e-30):
        found = curve.epsilon(delta=delta)
        assert found.certified
        assert found.width <= max(1e-3 * found.upper, 1e-6)


def test_two_steps_compose() -> None:
    found = hs.account(hs.Gaussian(1.0).random_allocation(steps=2) * 20).epsilon(delta=1e-5)
    assert 20.6404 < found.lower < found.upper < 20.6409


@pytest.mark.parametrize(("sigma", "steps"), [(0.5, 50), (2.0, 10), (20.0, 1000)])
def test_the_sum_of_a_round_lies_below_it(sigma: float, steps: int) -> None:
    (below,) = hs.Gaussian(sigma).summed_lower(1, steps)
    for mirrored in (False, True):
        for epsilon in (0.0, 0.05, 0.3):
            assert (
                one_step_delta(below, epsilon)[0]
                <= AllocatedCurve(GaussianPair(sigma), steps, mirrored).delta(epsilon)[1]
            )


def test_all_steps_of_a_round_are_no_sampling() -> None:
    step = hs.Gaussian(3.0)
    whole = step.random_allocation(steps=7, selected=7)
    for adjacency in ("add-remove", "substitute"):
        found, truth = (hs.account(run, adjacency=adjacency).epsilon(delta=1e-6) for run in (whole, step * 7))
        assert (found.lower, found.upper) == (truth.lower, truth.upper)
    assert (whole * 2 + step).pairs("remove") == ((step.pair("remove"), 15),)
    with pytest.raises(ValueError, match="at most steps"):
        step.random_allocation(steps=7, selected=8)
    with pytest.raises(hs.UnknownPairError, match="selected=1"):
        hs.account(hs.DiscretePair((0.5, 0.5, 0.0), (0.0, 0.5, 0.5)).random_allocation(steps=4, selected=2))


def test_a_sum_of_next_to_nothing_shows_nothing() -> None:
    assert hs.Gaussian(1e139).random_allocation(steps=10**6, selected=2).attained("remove") == ()


def test_substitution_is_refused_by_name() -> None:
    for step in (hs.Gaussian(1.0).random_allocation(steps=5), hs.Gaussian(1.0).balls_in_bins(bins=5)):
        with pytest.raises(hs.UnknownPairError, match="zero-out"):
            hs.account(step, adjacency="substitute")


def test_epochs_on_fixed_bins_need_gaussian_noise() -> None:
    assert hs.account(hs.Laplace(2.0).balls_in_bins(bins=5)).delta(epsilon=0.1).certified
    with pytest.raises(hs.UnknownPairError, match="Gaussian"):
        hs.account(hs.Laplace(2.0).balls_in_bins(bins=5, epochs=2))
