"""Lines of limited band of exponential mechanisms: the density of Laplace noise without its atoms.

The transform is ``(e^{zm} - e^{-(1 + z) m}) w / (1 - e^{-m})``, w = 1 / (2z + 1): m or -m, less a gamma variable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx, fmpq

import hockeystick as hs
from hockeystick.accountants import Certified
from hockeystick.bound import Bound
from hockeystick.engines.one_sided.curve import OneSidedCurve, _Lines
from hockeystick.engines.one_sided.line import OneSidedLine
from hockeystick.engines.one_sided.steps import TILTS, LaplaceStep, step_of
from hockeystick.engines.one_sided.terms import Placed, Terms
from hockeystick.engines.one_sided.tilted import COLUMNS, TiltedStep, Transforms
from hockeystick.laws import BoundedRangePair, LaplacePair
from hockeystick.laws.extent import LaplaceLoss
from hockeystick.numerics.rounding import U

RANGES = (1e-6, 0.01, 0.5, 3.0, 50.0)
Steps = Sequence[tuple[LaplaceLoss, int]]


def density(largest: float) -> LaplaceLoss:
    return LaplaceLoss(Fraction(largest), has_atoms=False)


def noise(largest: float) -> LaplaceLoss:
    return LaplaceLoss(Fraction(largest), has_atoms=True)


def ball(number: Fraction) -> arb:
    return arb(fmpq(number.numerator, number.denominator))


def terms_of_step(loss: LaplaceLoss) -> list[tuple[Fraction, list[arb]]]:
    """Terms ``e^{za} (c_0 + c_1 w)`` of the transform."""
    m = loss.largest
    low = (-ball(m)).exp()
    if loss.has_atoms:
        return [(m, [arb(0.5), arb(0.5)]), (-m, [low / 2, -low / 2])]
    return [(m, [arb(0), 1 / (1 - low)]), (-m, [arb(0), -low / (1 - low)])]


def expanded(steps: Steps) -> dict[Fraction, list[arb]]:
    """The transform of a sum: for each a the coefficients of the powers of w."""
    found: dict[Fraction, list[arb]] = {Fraction(0): [arb(1)]}
    for loss, count in steps:
        for _ in range(count):
            following: dict[Fraction, list[arb]] = {}
            for a, powers in found.items():
                for b, (constant, linear) in terms_of_step(loss):
                    own = following.setdefault(a + b, [arb(0)] * (len(powers) + 1))
                    for k, power in enumerate(powers):
                        own[k] += power * constant
                        own[k + 1] += power * linear
            found = following
    return found


def exact_delta(steps: Steps, epsilon: float) -> arb:
    """``sum c E (1 - e^{x - a + G})+`` over the terms, G of the gamma distribution with shape k and rate 1/2."""
    total = arb(0)
    for a, powers in expanded(steps).items():
        if a <= Fraction(epsilon):
            continue
        u = ball(a - Fraction(epsilon)) / 2
        total += powers[0] * (1 - (-2 * u).exp())
        below, above, term = arb(0), arb(0), arb(1)
        for k in range(1, len(powers)):
            below += term  # sum_{j < k} u^j / j!, and the same of -u
            above += term if k % 2 else -term
            term *= u / k
            mass = 1 - (-u).exp() * below
            tilted = (1 - u.exp() * above) * (-1) ** k
            total += powers[k] * (mass - (-2 * u).exp() * tilted)
    return total


def moment(m: arb, z: acb) -> acb:
    """``E e^{zL}``, by the integral over the density."""
    return ((z + 0.5) * m).sinh() / (z + 0.5) * acb(-m / 2).exp() / (1 - (-m).exp())


def test_the_truth_is_that_of_one_and_two_steps() -> None:
    """Against the formula of one step, and the integral over another's density."""
    ctx.prec = 300
    m, x = arb(0.5), arb(0.125)
    one = (1 - ((x - m) / 2).exp()) ** 2 / (1 - (-m).exp())
    assert exact_delta([(density(0.5), 1)], 0.125).overlaps(one)
    scale = arb(0.75)

    def laplace(y: acb) -> acb:
        return 1 - ((y - scale) / 2).exp()

    def integrand(loss: acb, _: bool) -> acb:
        return ((loss - m) / 2).exp() / (2 * (1 - (-m).exp())) * laplace(x - loss)

    two = acb.integral(integrand, -m, m).real  # |x - l| is below the scale throughout
    found = exact_delta([(density(0.5), 1), (noise(0.75), 1)], 0.125)
    assert abs(found - two) < arb(1e-40)


@pytest.mark.parametrize("largest", RANGES)
def test_moments_are_bounds_and_close(largest: float) -> None:
    small, large = LaplaceStep(density(largest)).log_moments(2)
    ctx.prec = 300
    m = arb(largest)
    for tilt in (*range(0, 17, 3), 8, *range(17, TILTS.size, 40), TILTS.size - 1):
        t = arb(float(TILTS[tilt]))
        x = (t + 0.5) * m
        ratio = x.sinh() / x if t != -0.5 else arb(1)
        value = m * (-m / 2).exp() / (1 - (-m).exp()) * ratio
        assert value.log() <= arb(float(small[tilt]))
        assert float(small[tilt]) <= value.log() + arb(3e-9) + arb(1e-12) * (1 + abs(t)) * m
    assert (large < -1e299).all()


@pytest.mark.parametrize("theta", [0.25, 3.0, 900.0])
@pytest.mark.parametrize("largest", RANGES)
def test_transforms_of_a_step_err_by_less_than_they_say(largest: float, theta: float) -> None:
    step = TiltedStep.of_laplace(density(largest), 1, theta)
    frequency = 0.37 * (1.0 + theta)
    transforms = Transforms([step], 0, frequency)
    ((fixed, turning),) = step.doubts
    ctx.prec = 200
    off = arb(0)
    for group in (0, 3, 700, 77_777):
        phi = transforms.at(np.array([float(group)]))
        for row in (0, transforms.group - 1):
            for column in (0, 31, 62):
                number = (group * transforms.group + row) * COLUMNS + column - COLUMNS // 2
                s = number * arb(frequency)
                exact = moment(arb(largest), acb(theta, s)) * acb(-arb(step.log_scale), -s * arb(step.centre)).exp()
                off = abs(acb(complex(phi[row, column])) - exact)
                assert off <= arb(fixed) + arb(turning) * abs(s)
    # two ends that nearly cancel where m is small: 1 / (beta m) of what is left
    cancelled = 1.0 / math.tanh((theta + 0.5) * largest)
    assert fixed <= cancelled * (5e-14 + 3e-15 * (1.0 + theta) * largest)
    assert turning <= 1e-14 * largest * cancelled


@pytest.mark.parametrize("largest", RANGES)
def test_a_largest_loss_one_rounding_off_moves_no_more_than_is_said(largest: float) -> None:
    """At the same share x of the largest loss, the losses and the density."""
    step = TiltedStep.of_laplace(density(largest), 1, 2.0)
    ctx.prec = 200
    m = arb(largest)

    def log_density(m: arb, x: int) -> arb:
        return m.log() + m * (x - 1) / 2 - (1 - (-m).exp()).log()

    for other in (m * (1 + arb(U)), m * (1 - arb(U))):
        assert abs(other - m) <= arb(step.shift)
        for x in (-1, 0, 1):
            assert abs(log_density(other, x) - log_density(m, x)) <= arb(step.error)


STEPS: tuple[Steps, ...] = (
    [(density(0.5), 1), (noise(1 / 3), 1)],
    [(density(0.5), 1), (density(0.25), 1), (density(1.75), 1)],
    [(density(0.125), 3), (noise(0.0625), 4)],
)


@pytest.mark.parametrize("steps", STEPS)
def test_lines_of_any_tilt_period_and_length_contain_the_truth(steps: Steps) -> None:
    random = np.random.default_rng(7)
    terms = Terms([(LaplaceStep(loss), count) for loss, count in steps])
    most, apart = float(sum(loss.largest * count for loss, count in steps)), 0
    ctx.prec = 300
    for _ in range(15):
        epsilon = float(random.uniform(0.0, 1.0)) * most
        tilt = int(np.argmin(np.abs(TILTS - float(np.exp(random.uniform(-1.5, 3.0))) / max(most, 1e-3))))
        period = float(np.exp(random.uniform(-1.0, 2.5))) * most
        nodes = int(max(64, 40.0 * (1.0 + TILTS[tilt]) * period) * random.uniform(1.0, 4.0))
        found = _Lines(terms, (OneSidedLine.of(terms, Placed(0, tilt, period), nodes),), (0.0, 0.0))
        exact = exact_delta(steps, epsilon)
        assert arb(found.lower(epsilon)) <= exact <= arb(found.upper(epsilon))
        apart += found.upper(epsilon) <= 1.5 * found.lower(epsilon)
    assert apart >= 3


@pytest.mark.parametrize("steps", STEPS)
def test_both_sides_hold_the_truth_between_them(steps: Steps) -> None:
    pairs = [
        (LaplacePair(1.0, float(loss.largest)) if loss.has_atoms else BoundedRangePair(float(loss.largest)), count)
        for loss, count in steps
    ]
    curve, most = (
        OneSidedCurve(pairs, (0.0, 0.0), width=1e-8, most=1 << 19),
        sum(float(loss.largest) * count for loss, count in steps),
    )
    ctx.prec = 400
    for share in (0.021, 0.213, 0.587):
        epsilon = share * most
        exact, found = exact_delta(steps, epsilon), curve.delta(epsilon)
        assert arb(float(found.lower)) <= exact <= arb(float(found.upper))
        assert float(found.width) <= 2e-8 * float(found.lower)
    for delta in (1e-6, 1e-12, 1e-20):
        answer = curve.epsilon(delta)
        assert exact_delta(steps, float(answer.lower)) >= arb(delta)
        assert exact_delta(steps, float(answer.upper)) <= arb(delta)
        assert float(answer.width) <= 1e-8


@pytest.mark.parametrize("delta", [1e-6, 1e-12])
def test_an_exponential_mechanism_beside_noise_is_answered_to_many_digits(delta: float) -> None:
    """The upper side of the account is that of the joined pair."""
    steps = [(density(0.5), 1), (noise(0.25), 2)]
    parts = ((BoundedRangePair(0.5), 1), (LaplacePair(4.0), 2))
    found = Certified()._by_windows(parts).epsilon(delta)
    ctx.prec = 300
    assert isinstance(found, Bound)
    assert float(found.width) <= 1e-6
    assert exact_delta(steps, float(found.lower)) >= arb(delta)
    assert exact_delta(steps, float(found.upper)) <= arb(delta)
    run = hs.ExponentialMechanism(0.5) + hs.Laplace(4.0) * 2
    assert float(hs.account(run).epsilon(delta).upper) <= float(found.upper)


def test_ranges_that_are_too_small_are_left_to_others() -> None:
    assert step_of(BoundedRangePair(2e-6), -math.inf) is not None
    assert step_of(BoundedRangePair(5e-7), -math.inf) is None
