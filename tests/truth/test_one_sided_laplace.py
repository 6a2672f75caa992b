"""Lines of limited band of Laplace steps: two atoms, and what lies between as weights that turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx, fmpq

import hockeystick as hs
from hockeystick.accountants import Certified
from hockeystick.engines.choose import EngineName
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.one_sided import line as line_code
from hockeystick.engines.one_sided import tilted as tilted_code
from hockeystick.engines.one_sided.curve import OneSidedCurve, _Lines
from hockeystick.engines.one_sided.line import OneSidedLine
from hockeystick.engines.one_sided.steps import TILTS, LaplaceStep
from hockeystick.engines.one_sided.terms import Placed, Terms
from hockeystick.engines.one_sided.tilted import COLUMNS, TiltedStep, Transforms, doubts_of
from hockeystick.independent.laplace import laplace_delta
from hockeystick.laws.extent import LaplaceLoss
from hockeystick.laws.laplace import LaplacePair
from hockeystick.numerics.rounding import U

ENGINES: tuple[EngineName, ...] = ("automatic", "lattice")
SCALES = (0.02, 0.7, 3.0, 1000.0)
Noise = Sequence[tuple[float, int]]  # scales, and how often


def losses_of(noise: Noise) -> list[tuple[LaplaceLoss, int]]:
    return [(LaplaceLoss(1 / Fraction(scale), has_atoms=True), count) for scale, count in noise]


def exact_delta(noise: Noise, epsilon: float) -> arb:
    return laplace_delta([(loss.largest, count) for loss, count in losses_of(noise)], arb(epsilon))


def moment(m: arb, z: acb) -> acb:
    """``E e^{zL}``, by the integral over the density between the atoms."""
    between = ((z + 0.5) * m).sinh() / (z + 0.5) * acb(-m / 2).exp() / 2
    return (z * m).exp() / 2 + (-(1 + z) * m).exp() / 2 + between


def terms_of(noise: Noise) -> Terms:
    return Terms([(LaplaceStep(loss), count) for loss, count in losses_of(noise)])


@pytest.mark.parametrize("scale", SCALES)
def test_moments_are_bounds_and_close(scale: float) -> None:
    m = 1 / Fraction(scale)
    small, large = LaplaceStep(LaplaceLoss(m, has_atoms=True)).log_moments(2)
    ctx.prec = 200
    size = arb(fmpq(m.numerator, m.denominator))
    for tilt in (*range(0, 17, 3), 8, *range(17, TILTS.size, 40), TILTS.size - 1):
        t = arb(float(TILTS[tilt]))
        # at -1/2 the integral is m
        x = (t + 0.5) * size
        ratio = x.sinh() / x if t != -0.5 else arb(1)
        value = (t * size).exp() / 2 + (-(1 + t) * size).exp() / 2 + size * (-size / 2).exp() / 2 * ratio
        assert value.log() <= arb(float(small[tilt]))
        assert float(small[tilt]) <= value.log() + arb(3e-9) + arb(1e-12) * (1 + abs(t)) * size
    assert (large < -1e299).all()


@pytest.mark.parametrize("theta", [0.25, 3.0, 900.0])
@pytest.mark.parametrize("scale", SCALES)
def test_transforms_of_a_step_err_by_less_than_they_say(scale: float, theta: float) -> None:
    """Of a Laplace pair whose largest loss is the float nearest to the true one."""
    m = float(1 / Fraction(scale))
    step = TiltedStep.of_laplace(LaplaceLoss(Fraction(m), has_atoms=True), 1, theta)
    frequency = 0.37 * (1.0 + theta)
    transforms = Transforms([step], 0, frequency)
    ((fixed, turning),) = step.doubts
    ctx.prec = 200
    for group in (0, 3, 700, 77_777):
        phi = transforms.at(np.array([float(group)]))
        for row in (0, transforms.group - 1):
            for column in (0, 31, 62):
                number = (group * transforms.group + row) * COLUMNS + column - COLUMNS // 2
                s = number * arb(frequency)
                exact = moment(arb(m), acb(theta, s)) * acb(-arb(step.log_scale), -s * arb(step.centre)).exp()
                off = abs(acb(complex(phi[row, column])) - exact)
                assert off <= arb(fixed) + arb(turning) * abs(s)
    assert fixed <= 3e-14 + 3e-15 * (1.0 + theta) * m
    assert turning <= 1e-14 * m


@pytest.mark.parametrize("scale", SCALES)
def test_a_largest_loss_one_rounding_off_moves_no_more_than_is_said(scale: float) -> None:
    """At the same share x of the largest loss, the losses and the masses of the atoms and of the density."""
    step = TiltedStep.of_laplace(LaplaceLoss(1 / Fraction(scale), has_atoms=True), 1, 2.0)
    ctx.prec = 200
    m = arb(float(1 / Fraction(scale)))
    for other in (m * (1 + arb(U)), m * (1 - arb(U))):
        assert abs(other - m) <= arb(step.shift)
        for x in (-1, 0, 1):
            assert abs((other / m).log() - (other - m) * (1 - x) / 2) <= arb(step.error)


def test_a_product_of_many_factors_errs_by_less_than_it_says() -> None:
    """Of which each goes with the size of all, but for one."""
    noise = [(2.0 + 0.37 * k, 1 + (k % 3 == 0)) for k in range(12)]
    steps = [TiltedStep.of_laplace(loss, count, 2.0) for loss, count in losses_of(noise)]
    error, random = 1e-5, np.random.default_rng(5)
    roots = [Transforms([replace(step, count=1)], 0, 0.61).at(np.arange(4.0)) for step in steps]
    counts = np.array([step.count for step in steps])
    product = np.prod([phi**count for phi, count in zip(roots, counts, strict=True)], axis=0)
    moved = [phi + error * np.exp(2j * math.pi * random.random(phi.shape)) for phi in roots]
    off = np.abs(np.prod([phi**count for phi, count in zip(moved, counts, strict=True)], axis=0) - product)
    wrong = error * counts.sum()
    bound = 1.03 * (wrong * np.sqrt(np.abs(product)) + error) + (41.0 * 12 + 50.0) * wrong**2
    assert (off <= bound).all()
    assert off.max() > 0.1 * bound.max()
    own = np.array([step.doubts[0] for step in steps])
    found = doubts_of(steps, 0)
    assert (found[0] >= sum(count * one for count, one in zip(counts, own, strict=True))).all()
    assert (found[1] == own[counts == 1].max(axis=0)).all()


@pytest.mark.parametrize("seed", range(3))
def test_lines_of_any_tilt_period_and_length_contain_the_truth(seed: int) -> None:
    """Far outside any plan, where each of the terms matters that a bound is made of."""
    random = np.random.default_rng(seed)
    noise = [[(1.0, 4), (2.5, 3)], [(0.11, 2), (0.4, 1), (3.0, 3)], [(20.0, 9), (33.0, 2)]][seed]
    terms, most = terms_of(noise), sum(count / scale for scale, count in noise)
    apart = 0
    ctx.prec = 120
    for _ in range(15):
        epsilon = float(random.uniform(0.0, 1.0)) * most
        tilt = int(np.argmin(np.abs(TILTS - float(np.exp(random.uniform(-1.5, 3.0))) / max(most, 1e-3))))
        period = float(np.exp(random.uniform(-1.0, 2.5))) * most
        nodes = int(max(64, 40.0 * (1.0 + TILTS[tilt]) * period) * random.uniform(1.0, 4.0))
        found = _Lines(terms, (OneSidedLine.of(terms, Placed(0, tilt, period), nodes),), (0.0, 0.0))
        exact = exact_delta(noise, epsilon)
        assert arb(found.lower(epsilon)) <= exact <= arb(found.upper(epsilon))
        apart += found.upper(epsilon) <= 1.5 * found.lower(epsilon)
    assert apart >= 3


@pytest.mark.parametrize("noise", [[(100.0, 150)], [(30.0, 12), (41.0, 10), (55.0, 6)], [(4.0, 8), (1.0, 3)]])
def test_both_sides_hold_the_truth_between_them(noise: Noise) -> None:
    pairs = [(LaplacePair(scale), count) for scale, count in noise]
    curve, most = OneSidedCurve(pairs, (0.0, 0.0), width=1e-9, most=1 << 20), sum(n / scale for scale, n in noise)
    ctx.prec = 160
    for share in (0.021, 0.213, 0.587):
        epsilon = share * most
        exact, found = exact_delta(noise, epsilon), curve.delta(epsilon)
        assert arb(float(found.lower)) <= exact <= arb(float(found.upper))
        assert float(found.width) <= 2e-9 * float(found.lower)
        answer = curve.epsilon(float(exact))
        assert exact_delta(noise, float(answer.lower)) >= arb(float(exact))
        assert exact_delta(noise, float(answer.upper)) <= arb(float(exact))
        assert float(answer.width) <= 1e-9


def test_a_crossing_next_to_the_largest_loss_is_told() -> None:
    """Where delta falls by a power of ten within far less than the width wanted."""
    noise = [(20.0 + 7.3 * k, 1) for k in range(9)]
    pairs = [(LaplacePair(scale), count) for scale, count in noise]
    ctx.prec = 160
    for delta in (1e-12, 1e-15, 1e-21):
        answer = OneSidedCurve(pairs, (0.0, 0.0), width=1e-7, most=1 << 18).epsilon(delta)
        assert exact_delta(noise, float(answer.lower)) >= arb(delta)
        assert exact_delta(noise, float(answer.upper)) <= arb(delta)
        assert float(answer.width) <= 1e-7


def test_a_product_that_has_vanished_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no smaller than that of all steps."""
    noise, theta, frequency = [(40.0 + 1.3 * k, 3) for k in range(60)], 8.0, 1.6
    steps = [TiltedStep.of_laplace(loss, count, theta) for loss, count in losses_of(noise)]
    transforms, groups = Transforms(steps, 0, frequency), np.arange(300.0, 302.0)
    every = np.abs(transforms.at(groups))
    monkeypatch.setattr(tilted_code, "VANISHED", 1e-8)
    early = np.abs(transforms.at(groups))
    assert (early >= every).all()
    assert 1e3 * every.max() < early.max() < 1e-8


def test_what_blocks_that_have_vanished_may_add_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if they had where a third of the whole is left."""
    terms, epsilon = terms_of([(10.0 + 1.3 * k, 1) for k in range(12)]), 0.5
    placed = Placed(0, int(np.argmin(np.abs(TILTS - 8.0))), 4.0)
    line = OneSidedLine.of(terms, placed, 1 << 16)
    for code in (tilted_code, line_code):
        monkeypatch.setattr(code, "VANISHED", 0.3)
    coarse = OneSidedLine.of(terms, placed, 1 << 16)
    assert coarse.rows.size < line.rows.size
    assert coarse.lower(epsilon) < line.lower(epsilon) < line.upper(epsilon) < coarse.upper(epsilon)
    assert coarse.upper(epsilon) - coarse.lower(epsilon) < 1e-5 * line.lower(epsilon)


def test_many_unlike_laplace_steps_are_answered_to_many_digits() -> None:
    """Inside of what lattices say, which are a thousand times wider."""
    scales = np.round(np.random.default_rng(3).uniform(60.0, 200.0, 25), 1).tolist()
    run = hs.Composition(tuple((hs.Laplace(scale), 1) for scale in scales))
    found, wide = (hs.account(run, accountant=Certified(engine=engine)).epsilon(1e-6) for engine in ENGINES)
    assert found.method == "contour"
    assert float(found.width) <= 1e-7
    assert wide.lower <= found.lower
    assert found.upper <= wide.upper


def test_laplace_steps_beside_discrete_ones_are_answered_to_many_digits() -> None:
    run = hs.Laplace(20.0) * 30 + hs.DiscreteGaussian(15.0) * 5
    found, wide = (hs.account(run, accountant=Certified(engine=engine)).epsilon(1e-8) for engine in ENGINES)
    assert float(found.width) <= 1e-7
    assert wide.lower <= found.lower
    assert found.upper <= wide.upper


def test_where_an_atom_lies_at_epsilon_what_is_left_is_said() -> None:
    """A share of the mass at one loss, a multiple of 0.02: the frequencies allowed leave more than is asked for."""
    run = hs.Laplace(100.0) * 300
    found = hs.account(run, accountant=Certified(1e-7)).delta(0.5)
    assert 1e-7 * float(found.lower) < float(found.width) <= 1e-5 * float(found.lower)
    assert "what the frequencies allowed do not tell" in found.notes[0]
    ctx.prec = 200
    assert arb(float(found.lower)) <= exact_delta([(100.0, 300)], 0.5) <= arb(float(found.upper))


def test_where_the_frequencies_do_it_is_said_that_rounding_is_left() -> None:
    """Next to delta 1 of little noise."""
    found = OneSidedCurve([(LaplacePair(0.25), 10)], (0.0, 0.0), width=1e-7, most=1 << 17).delta(0.0)
    assert found.errors["rounding"] > 3.0 * found.errors["band"] > 0.0
    assert math.fsum(found.errors.values()) == pytest.approx(float(found.width), rel=1e-12)


def test_steps_of_more_than_lines_tell_apart_are_refused() -> None:
    with pytest.raises(hs.errors.TooManyOutcomesError):
        OneSidedCurve([(LaplacePair(1e-9), 3)], (0.0, 0.0), width=1e-9, most=1 << 20).delta(1.0)
    with pytest.raises(ContourRefusal):
        OneSidedCurve([(LaplacePair(1e-5), 3)], (0.0, 0.0), width=1e-9, most=1 << 10).delta(1.0)
