"""Discrete Gaussian losses taken for normal ones: what is said of their transforms and of their replicas is true."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from flint import acb, arb, ctx
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.engines.contour.placing import line_for_epsilon
from hockeystick.laws import DiscreteGaussianPair, GaussianPair
from hockeystick.laws.discrete_gaussian_rule import DiscreteGaussianSummand
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.replicas import LatticeNormal, Replicas
from tests.contour_lines import relative_width


def loss_of(sigma: float, sensitivity: int = 1) -> LatticeNormal:
    found = DiscreteGaussianSummand(sigma, sensitivity).lattice_normal
    assert found is not None
    return found


def theta(z: acb, sigma: float) -> acb:
    """``sum_x e^{-x^2/2s^2 + 2 pi i x z}``, Jacobi's third theta function."""
    return z.modular_theta(acb(0, 1 / (2 * arb.pi() * arb(sigma) ** 2)))[2]


def transform(sigma: float, sensitivity: int, tilt: float, frequency: float) -> acb:
    """M(tilt + i frequency) over its value at 0: ``sum_x e^{-x^2/2s^2} e^{(1 + z) l_x}``, a theta function."""
    s, shift, power = arb(sigma), arb(sensitivity), 1 + acb(tilt, frequency)
    own = theta(acb(0, -1) * power * shift / (2 * arb.pi() * s * s), sigma)
    return own * (-power * shift * shift / (2 * s * s)).exp() / theta(acb(0), sigma)


@pytest.mark.parametrize("sensitivity", [1, 2, 3])
@pytest.mark.parametrize("sigma", [4.0, 4.7, 9.25])
def test_moments_are_those_of_the_normal_loss(sigma: float, sensitivity: int) -> None:
    with ctx.workdps(800):
        for tilt in (-3.7, -0.4, 1e-6, 0.3, 2.0, 40.25):
            own = transform(sigma, sensitivity, tilt, 0.0).real.log()
            normal = arb(tilt) * (1 + arb(tilt)) * (arb(sensitivity) / arb(sigma)) ** 2 / 2
            off = own / normal - 1
            assert abs(off) < arb(10) ** -130
            assert off.contains(0) == (tilt == 2.0)  # a whole one moves the noise from one integer to another


@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("sigma", [4.0, 5.3])
def test_a_size_of_the_transform_is_above_all_within_its_window(sigma: float, sensitivity: int) -> None:
    loss = loss_of(sigma, sensitivity)
    rng = np.random.default_rng(7)
    far = loss.period * rng.integers(0, 4, 8) + 4.0 * loss.period * rng.uniform(-0.5, 0.5, 8) ** 3
    far[0] = 1.5 * loss.period  # half-way
    for window in (0.0, 0.05 * loss.period):
        bounds = loss.log_size(far, window)
        for frequency, bound in zip(far.tolist(), bounds.tolist(), strict=True):
            with ctx.workdps(60):
                largest = transform(sigma, sensitivity, 0.75, 0.0).real
                near = [frequency + move for move in ((-window, 0.0, window) if window else (0.0,))]
                sizes = [abs(transform(sigma, sensitivity, 0.75, at)) / largest for at in near]
                assert all(size <= arb(bound).exp() * (1 + arb(10) ** -50) for size in sizes)
                most = max(float(size.log()) for size in sizes)
            nearest = abs(math.remainder(frequency, loss.period))
            if nearest < 0.2 * loss.period:  # and not far above them
                assert most >= bound - 0.5 * loss.variance * (4.0 * window * nearest + 1e-6)


@functools.cache
def on_nodes(
    losses: tuple[tuple[LatticeNormal, float], ...], normal: float, tilt: float, step: float, most: int
) -> float:
    """What nodes from a quarter of the smallest period on add to S, as far as ``most`` periods of the largest."""
    first = math.ceil(0.25 * min(loss.period for loss, _ in losses) / step)
    s = step * np.arange(first, most * max(loss.period for loss, _ in losses) / step)
    log_size = -0.5 * normal * s * s
    for loss, count in losses:
        off = np.abs(s - np.rint(s / loss.period) * loss.period)
        nearest, next_one = (-0.5 * loss.variance * distance**2 for distance in (off, loss.period - off))
        log_size = log_size + count * np.logaddexp(nearest, next_one)
    return float((np.exp(log_size) / (tilt * tilt + s * s)).sum()) * step / math.pi


@pytest.mark.parametrize(
    ("losses", "normal"),
    [
        ([(loss_of(4.5), 6.0)], 0.0),
        ([(loss_of(4.5), 6.0)], 2e-4),  # a Gaussian part
        ([(loss_of(4.5), 6.0), (loss_of(9.0), 5.0)], 0.0),  # every replica of the one meets one of the other
        ([(loss_of(20.0), 3.0), (loss_of(20.3), 3.0)], 0.0),  # many meet half-way
        ([(loss_of(6.0), 8.0), (loss_of(6.5), 8.0), (loss_of(13.0, 2), 8.0)], 0.0),
        ([(loss_of(60.0), 1.0), (loss_of(4.0), 20.0)], 0.0),  # replicas of the one within the first lobe of the other
    ],
)
@pytest.mark.parametrize("most", [1, 3, 200])
def test_replicas_are_bounded_on_the_nodes_of_a_line(
    losses: list[tuple[LatticeNormal, float]], normal: float, most: int
) -> None:
    variance = math.fsum(loss.variance * count for loss, count in losses) + normal
    tilt = 0.5 * min(loss.period for loss, _ in losses) ** 0.5
    found = Replicas.of(losses, normal, most)
    period = max(loss.period for loss, _ in losses)
    for share in (0.2, 0.6, 6.0):
        step = period / math.ceil(period * math.sqrt(variance) / share)  # so that nodes meet replicas
        bound = found.bound(tilt, step, 0.25 * min(loss.period for loss, _ in losses))
        assert 0.0 < on_nodes(tuple(losses), normal, tilt, step, 50) <= bound


def test_more_replicas_looked_at_leave_a_narrower_bound() -> None:
    losses = [(loss_of(60.0 + 1.7 * i), 5.0) for i in range(6)]
    bounds = [Replicas.of(losses, 0.0, most).bound(30.0, 0.1, 200.0) for most in (16, 256, 4096)]
    assert bounds[1] < 0.1 * bounds[0]
    assert bounds[2] < 0.1 * bounds[1]


def test_beyond_a_quarter_of_a_period_nothing_is_known() -> None:
    found = Replicas.of([(loss_of(5.0), 10.0)], 0.0, 8)
    assert math.isinf(found.bound(1.0, 0.1, 0.26 * loss_of(5.0).period))


def composed(sigma: float, sensitivity: int, steps: int) -> list[tuple[mpf, mpf]]:
    """Losses and masses under P of some steps, each mass to within 1e-89."""
    s, most = mpf(sigma), math.ceil(14.0 * sigma)
    with mp.workdps(100):
        weights = [mp.exp(-mpf(x * x) / (2 * s * s)) for x in range(-most, most + 1)]
        total = mp.fsum(weights)
        one = np.array([int(mp.ldexp(weight / total, 300)) for weight in weights], dtype=object)
    whole = one  # in units of 2^-300: convolutions of integers take a tenth of the time
    for _ in range(steps - 1):
        whole = np.convolve(whole, one) >> 300
    middle = len(whole) // 2
    return [
        ((2 * (n - middle) + steps * sensitivity) * sensitivity / (2 * s * s), mp.ldexp(mass, -300))
        for n, mass in enumerate(whole)
    ]


def truths(parts: list[tuple[DiscreteGaussianPair, int]], epsilons: list[float]) -> list[mpf]:
    """ln delta of two parts, by the sum over their outcomes."""
    with mp.workdps(40):
        (first, second) = [composed(pair.sigma, pair.sensitivity, count) for pair, count in parts]
        second.sort(key=lambda one: one[0])
        losses = np.array([float(loss) for loss, _ in second])
        p = list(mp.zeros(len(second) + 1, 1))
        q = list(p)
        for k in range(len(second) - 1, -1, -1):  # masses of the second part beyond each of its losses
            p[k] = p[k + 1] + second[k][1]
            q[k] = q[k + 1] + second[k][1] * mp.exp(-second[k][0])
        found = []
        for epsilon in epsilons:
            at = [int(np.searchsorted(losses, epsilon - float(loss))) for loss, _ in first]
            terms = [
                mass * (p[k] - mp.exp(mpf(epsilon) - loss) * q[k]) for k, (loss, mass) in zip(at, first, strict=True)
            ]
            found.append(mp.log(mp.fsum(terms)))
        return found


@pytest.mark.parametrize(
    "parts",
    [
        [(DiscreteGaussianPair(4.5), 6), (DiscreteGaussianPair(9.0), 2)],
        [(DiscreteGaussianPair(4.5), 4), (DiscreteGaussianPair(4.75), 4)],
        [(DiscreteGaussianPair(8.0, 2), 3), (DiscreteGaussianPair(6.3), 3)],
    ],
)
def test_lines_of_losses_taken_for_normal_contain_the_truth(parts: list[tuple[DiscreteGaussianPair, int]]) -> None:
    losses = PairSum(parts, math.inf)
    assert losses.replicas is not None
    assert losses.total_count == 0.0
    epsilons = [0.37, 1.5, 3.0]
    for epsilon, truth in zip(epsilons, truths(parts, epsilons), strict=True):
        found = line_for_epsilon(losses, epsilon, 1e-9).curve(np.array([epsilon]))
        assert found.log_lower()[0] <= truth <= found.log_upper()[0]
        assert relative_width(found)[0] <= 0.3


def test_distinct_lattices_are_answered_by_the_contour_as_far_as_they_share_none() -> None:
    run = hs.compose([(hs.DiscreteGaussian(500.0 + i), 100) for i in range(100)])
    ours = hs.account(run, "add").epsilon(1e-6)
    normal = hs.account(hs.compose([(hs.Gaussian(500.0 + i), 100) for i in range(100)]), "add").epsilon(1e-6)
    assert ours.method == "contour"
    assert ours.lower <= normal.upper
    assert normal.lower <= ours.upper
    assert ours.width <= 1e-10


def test_one_lattice_of_few_points_keeps_its_atoms() -> None:
    assert PairSum([(DiscreteGaussianPair(40.0), 100)]).replicas is None
    assert PairSum([(DiscreteGaussianPair(3.0), 10**6), (DiscreteGaussianPair(3.5), 10**6)]).replicas is None
    assert PairSum([(DiscreteGaussianPair(400.0), 100), (GaussianPair(5.0), 1)]).replicas is not None
