"""Random allocation of Gaussian noise: the contour and the convex order against ball arithmetic, and each other."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick.exact import Enclosure, Log
from hockeystick.exact.allocation import AllocationCurve, _Line, _Path, _planned
from hockeystick.exact.balls import ball, precision
from hockeystick.exact.curve import Curve
from hockeystick.exact.evaluate import curve_of
from hockeystick.exact.exponent import exact_epsilon_of
from hockeystick.exact.shapes import AllocationShape
from hockeystick.laws import GaussianPair, lognormal_panels
from hockeystick.laws.allocated import AllocatedCurve
from hockeystick.laws.allocated_line import StopLossLine
from hockeystick.laws.allocated_line_plan import LinePlan, plan_line
from hockeystick.laws.curve import ChordPair
from hockeystick.laws.lognormal_panels import LognormalPanels
from hockeystick.laws.one_step import one_step_delta

MILLION = 1_000_000


def truth(curve: AllocatedCurve, epsilon: float | Fraction | Log, digits: int = 13) -> Enclosure:
    """delta of one round in ball arithmetic."""
    return Enclosure.of_ball(exact_curve(curve).delta(exact_epsilon_of(epsilon), digits)).at_least(0)


@cache
def exact_curve(curve: AllocatedCurve) -> Curve:
    """Its lines serve all questions of a test."""
    return curve_of([(ChordPair(curve), 1)])


RUNS = [
    (1.0, 10, 1.0, 1e-10),
    (2.0, 1000, 0.1, 1e-8),
    (1.0, 1000, 0.534, 1e-7),
    (3.0, 100, 0.42, 2e-2),  # delta of 3e-32
    (100.0, 1000, 0.00046, 1e-8),
    (1.0, MILLION, 0.0026766, 1e-6),
    (1.0, 100, 0.0, 1e-10),
    (4.0, 2, 0.6, 1e-4),
]


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("sigma", "steps", "epsilon", "width"), RUNS)
def test_brackets_contain_the_truth_and_are_narrow(
    sigma: float, steps: int, epsilon: float, width: float, mirrored: bool
) -> None:
    curve = AllocatedCurve(GaussianPair(sigma), steps, mirrored)
    low, high = curve.delta(epsilon)
    exact = truth(curve, epsilon, digits=10)
    assert low <= exact.lower
    assert exact.upper <= high
    assert high - low <= width * high


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("sigma", "steps", "epsilon"), [(1.0, 100, 0.5), (0.7, 30, 1.0), (2.0, 7, 0.4)])
def test_the_convex_order_and_the_contour_agree(sigma: float, steps: int, epsilon: float, mirrored: bool) -> None:
    curve = AllocatedCurve(GaussianPair(sigma), steps, mirrored)
    loss = -epsilon if mirrored else epsilon
    line = StopLossLine(
        plan_line(1.0 / sigma, steps, loss, loss, below=mirrored), 1.0 / sigma, steps, reference=loss, below=mirrored
    )
    lattice = curve._lattice(loss, [loss], None)
    (low, high), (coarse_low, coarse_high) = (each.bounds(np.array([loss])) for each in (line, lattice))
    assert coarse_low <= low <= high <= coarse_high
    assert high - low <= 1e-3 * (coarse_high - coarse_low)


@pytest.mark.parametrize(("sigma", "least", "most"), [(0.5, 3.1341522, 3.1341523), (1.0, 0.1388465, 0.1388467)])
def test_published_values(sigma: float, least: float, most: float) -> None:
    found = hs.account(hs.Gaussian(sigma).random_allocation(steps=1000)).epsilon(delta=1e-5)
    curve = AllocatedCurve(GaussianPair(sigma), 1000)
    assert truth(curve, found.upper, 9).upper <= 1e-5 <= truth(curve, found.lower, 9).lower
    assert found.width <= 1e-7
    assert found.lower <= most
    assert least <= found.upper


def test_exact_accounts_for_a_round() -> None:
    step = hs.Gaussian(1.0).random_allocation(steps=50)
    found, exact = (hs.account(step, accountant=own) for own in (None, hs.accountants.Exact()))
    bound, ours = exact.delta(epsilon=0.3), found.delta(epsilon=0.3)
    assert bound.width <= 1e-14 * float(bound)
    assert ours.lower <= bound.lower <= bound.upper <= ours.upper
    bound, ours = exact.epsilon(delta=0.01), found.epsilon(delta=0.01)
    assert bound.width <= 1e-14 * float(bound)
    assert ours.lower <= bound.lower <= bound.upper <= ours.upper
    with pytest.raises(hs.UnknownPairError, match="alone"):
        hs.account(step * 2, accountant=hs.accountants.Exact()).delta(epsilon=0.3)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("sigma", "epsilon"), [(2.0, 0.7), (5.0, 0.2)])
def test_one_step_in_ball_arithmetic_is_the_mechanism_alone(sigma: float, epsilon: float, mirrored: bool) -> None:
    found = AllocationCurve(AllocationShape(1 / Fraction(sigma), 1, mirrored)).delta(Fraction(epsilon), 13)
    low, high = one_step_delta(GaussianPair(sigma), epsilon)
    enclosure = Enclosure.of_ball(found)
    assert low <= enclosure.upper
    assert enclosure.lower <= high
    assert float(found.rad()) <= 1e-12 * high


def test_lines_in_ball_arithmetic_outside_their_plan_agree() -> None:
    """t = 1 has a closed form; coarse and short lines enclose it, too."""
    shape = AllocationShape(Fraction(1, 3), 1, True)
    plan = _planned(shape, 0.2, 25.0)
    truth_low, truth_high = one_step_delta(GaussianPair(3.0), 0.2)
    plans = [replace(plan, nodes=plan.nodes // n) for n in (2, 4, 8)]
    plans += [replace(plan, step=n * plan.step, nodes=plan.nodes // n) for n in (2, 3, 4)]
    for own in (plan, *plans):
        with precision(own.bits):
            a = ball(Fraction(0.2)).exp()
            enclosure = Enclosure.of_ball(a * _Line(shape, own).put(1 / a))
        assert enclosure.lower <= truth_high
        assert truth_low <= enclosure.upper
        assert own is not plan or enclosure.upper - enclosure.lower <= 1e-9


def test_what_would_not_fit_in_memory_is_refused_in_ball_arithmetic() -> None:
    with precision(60), pytest.raises(hs.PrecisionError, match="more memory than it may"):
        _Path(Fraction(1, 3), Fraction(1)).line(Fraction(1), Fraction(1, 8), 10**10)


def lines_outside_their_plan(mirrored: bool) -> list[tuple[str, LinePlan]]:
    """Lines cut short, coarse, or tilted otherwise, and panels that end early: each error term matters in one."""
    plan = plan_line(1.0, 20, loss_of(mirrored), loss_of(mirrored), below=mirrored)
    found = [(f"{share} of the nodes", replace(plan, count=int(share * plan.count))) for share in (0.2, 0.4, 0.6)]
    found += [(f"{n} times the step", replace(plan, step=n * plan.step, count=plan.count // n)) for n in (2, 3, 4)]
    found += [(f"low at {low}", replace(plan, low=low)) for low in (-4.0, -4.5, -6.0)]
    found.append(("a tilt near the line's", replace(plan, tilt_above=1.05 * plan.theta, step=2.0 * plan.step)))
    if not mirrored:
        found += [(f"top less {cut}", replace(plan, top=plan.top - cut)) for cut in (0.2, 0.6)]
    return found


def loss_of(mirrored: bool) -> float:
    return -0.6 if mirrored else 0.6


@pytest.mark.parametrize("mirrored", [False, True])
def test_lines_outside_their_plan_contain_the_truth(mirrored: bool) -> None:
    curve = AllocatedCurve(GaussianPair(1.0), 20, mirrored)
    exact = truth(curve, 0.6)
    for name, plan in lines_outside_their_plan(mirrored):
        line = StopLossLine(plan, 1.0, 20, reference=loss_of(mirrored), below=mirrored)
        low, high = curve._at(0.6, line.bounds)
        assert Fraction(low) <= exact.low, name
        assert exact.high <= Fraction(high), name


def test_copies_from_below_count_where_the_sum_is_as_good_as_surely_above() -> None:
    """There E (S - k)+ is t - k and E (k - S)+, and every copy holds that and its distance."""
    plan = LinePlan(4.0 / 60.0, 13.0 / 128.0, 120, 0.5, -9.0, 6.0)
    low, high = (
        float(side[0]) for side in StopLossLine(plan, 0.3, 20, reference=0.5, below=False).bounds(np.array([-1.0]))
    )
    with mpmath.workdps(40):
        k = 20 * mpmath.exp(-1)
        short = AllocatedCurve(GaussianPair(1.0 / 0.3), 20, mirrored=True).delta(1.0)[1] * k
        assert low <= 20 - k + short
        assert 20 - k <= high
    assert low >= 0.99 * (20 - k)


@pytest.mark.parametrize("k", [50.0, 57.5, 65.0, 80.0])
def test_a_copy_from_above_counts_however_steep_the_tilt_that_shows_it(k: float) -> None:
    """Four terms of at most b, a period just below 4 b: at that tilt the transform is e^890, and its fall e^-2960."""
    shift = 0.7170443987738938
    unit = 75.1 / 4.0
    plan = LinePlan(
        0.22616167746986876 * unit,
        2.0**-6 * 19.0,
        2623,
        7.588880592979473 * unit,
        -8.875392313708717,
        7.005600272424454,
    )
    curve = AllocatedCurve(GaussianPair(1.0 / shift), 4)
    low, high = curve._at(math.log(k / 4.0), StopLossLine(plan, shift, 4, reference=math.log(unit), below=False).bounds)
    exact = truth(curve, math.log(k / 4.0), digits=8)
    assert Fraction(low) <= exact.low
    assert exact.high <= Fraction(high)


def test_tables_of_a_round_contain_the_truth() -> None:
    epsilons = np.arange(1, 4000) / 1024.0
    check_table(AllocatedCurve(GaussianPair(1.0 / 0.7170443987738938), 4), epsilons, [700, 2650, 2700, 2760, 3500])


def check_table(curve: AllocatedCurve, epsilons: np.ndarray, places: list[int]) -> None:
    """What chords are drawn through, at the knots of these places."""
    low, high = curve.deltas(epsilons, float(epsilons[1] - epsilons[0]))
    for place in (place for place in places if high[place] > 1e-30):
        try:
            exact = truth(curve, float(epsilons[place]), digits=6)
        except hs.PrecisionError:  # too heavy tails
            continue
        assert low[place] <= exact.high, (curve, epsilons[place])
        assert exact.low <= high[place], (curve, epsilons[place])


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(100))
def test_random_tables_contain_the_truth(seed: int) -> None:
    rng = np.random.default_rng([1516, seed])
    noise, steps = math.exp(rng.uniform(-0.7, 2.3)), int(math.exp(rng.uniform(math.log(2.0), math.log(300.0))))
    epsilons = np.arange(1, 4000) * 2.0 ** -rng.integers(5, 11)
    curve = AllocatedCurve(GaussianPair(noise), steps, bool(seed % 2))
    reached = int(np.searchsorted(epsilons, 1.2 * curve.guess(1e-25)))
    check_table(curve, epsilons, rng.integers(0, min(reached + 2, epsilons.size), 6).tolist())


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("off", [-1e-4, 1e-4])
def test_a_scale_as_wrong_as_its_error_keeps_the_bracket_true(
    monkeypatch: pytest.MonkeyPatch, mirrored: bool, off: float
) -> None:
    right = LognormalPanels.line

    def moved(self: LognormalPanels, *plan: Any, **which: Any) -> Any:
        found = right(self, *plan, **which)
        error = found.log_scale_error + abs(off)
        return replace(found, log_scale=found.log_scale + off, log_scale_error=error)

    monkeypatch.setattr(LognormalPanels, "line", moved)
    test_lines_outside_their_plan_contain_the_truth(mirrored)


@pytest.mark.parametrize("largest", [2.0, 20.0, 200.0])
@pytest.mark.parametrize("shift", [0.3, 1.0, 2.5])
def test_transforms_of_coarse_panels_contain_the_truth(shift: float, largest: float) -> None:
    """E e^{-z(V - 1)} with all V, by the rule in ball arithmetic; the panels end where nothing is left."""
    from flint import acb, arb

    theta, step, count = 1.0, 4.0, 9
    panels = LognormalPanels(shift, 0.0, -9.0, (math.log(45.0) + 0.5 * shift * shift) / shift, largest)
    found = panels.line(theta, step, count, mirrored=True)
    with precision(120):
        path = _Path(Fraction(shift), Fraction(theta))
        values = path.line(Fraction(theta), Fraction(step), count)
        scale = path.real(arb(theta)) * arb(theta).exp()
        assert abs(scale.log() - found.log_scale) <= found.log_scale_error
        for n, whole in enumerate(values):
            angle = -arb(step * n) * arb(found.centre)
            value = whole * acb(theta, step * n).exp()  # of W less 1
            ours = acb(complex(found.value[n]))
            off = value / (scale * acb(0, angle).exp()) - 1 - ours
            assert abs(off) <= float(found.error[n])
            beyond = panels.beyond(theta, step * n, mirrored=True)
            assert abs(value) <= beyond


@pytest.mark.parametrize("shift", [0.75, 4.0 / 3.0, 1.5])
def test_a_path_on_which_nothing_decays_bounds_nothing(shift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the decay cancels against what turning costs, rounding does not make a bound of it."""
    turned = 0.7
    monkeypatch.setattr(lognormal_panels, "_ANGLES", np.array([turned]))
    panels = LognormalPanels(shift, 0.0, -9.0, (math.log(45.0) + 0.5 * shift * shift) / shift, 20.0)
    back = turned**2 / (2.0 * shift * shift * math.exp(shift * panels.top - 0.5 * shift**2))
    frequency = (back + 1.0 - math.cos(turned)) / math.sin(turned) * (1.0 - 2.0**-49)
    for _ in range(40):
        with mpmath.workdps(40):
            b, a = mpmath.exp(mpmath.mpf(shift) * panels.top - mpmath.mpf(shift) ** 2 / 2), mpmath.mpf(turned)
            falls = b * shift * (frequency * mpmath.sin(a) - 1 + mpmath.cos(a)) / a > a / shift / 2
        assert falls or panels.beyond(1.0, frequency, mirrored=True) == math.inf
        frequency = math.nextafter(frequency, math.inf)


def real_transform(panels: LognormalPanels, real: float) -> Any:
    """E[e^{real (V - 1)}; V <= b] in ball arithmetic."""
    from flint import acb, arb

    m, loss = arb(panels.shift), arb(panels.loss)

    def integrand(x: Any, _: bool) -> Any:
        return (real * (m * x - m * m / 2 - loss).expm1() - x * x / 2).exp()

    return acb.integral(integrand, -40, panels.top).real / (2 * arb.pi()).sqrt()


@pytest.mark.parametrize(
    ("shift", "loss", "low", "largest", "real"),
    [
        (0.3, 0.0, -2.0, 20.0, -60.0),  # what lies below the last panel rises downwards
        (0.3, 0.0, -2.0, 20.0, 3.0),
        (0.3, 0.1, -9.0, 2.0, -600.0),  # panels too wide
        (0.3, 0.1, -9.0, 1.0, 60.0),
        (1e-10, 3e-10, -9.0, 1e10, 4e10),
        (1e-10, 3e-10, -9.0, 1e10, -4e10),
    ],
)
def test_real_transforms_contain_the_truth_as_far_as_their_terms_are_known(
    shift: float, loss: float, low: float, largest: float, real: float
) -> None:
    for off in (0.0, 1e-3 / abs(real), 0.5 / abs(real)):
        panels = LognormalPanels(shift, loss, low, 4.0, largest)
        excess, log_weight, own, error = panels._nodes
        panels.__dict__["_nodes"] = (excess - math.copysign(off, real), log_weight, own + off, error)
        value, bound = panels.at(real)
        with precision(200):
            assert bound == math.inf or abs(real_transform(panels, real) - value) <= bound


@pytest.mark.parametrize(("shift", "real"), [(0.2, -30.0), (0.2, -100.0), (0.1, -300.0)])
def test_panels_too_wide_for_a_falling_exponential_show_it(
    shift: float, real: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lognormal_panels, "_WIDEST", 6.0)
    panels = LognormalPanels(shift, 0.0, -9.0, 6.0, 1e-3)
    value, bound = panels.at(real)
    with precision(200):
        assert abs(real_transform(panels, real) - value) <= bound


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(20))
def test_random_rounds_contain_the_truth(seed: int) -> None:
    """Noise 0.3 to 100, t from 2 to 1e6, delta from 0.5 to 1e-30; a few have too heavy tails for ball arithmetic."""
    rng, refused = np.random.default_rng(1515 + seed), 0
    for number in range(15):
        sigma = round(math.exp(rng.uniform(math.log(0.3), math.log(100.0))), 3)
        steps = int(math.exp(rng.uniform(math.log(2.0), math.log(1e6))))
        log_delta = rng.uniform(math.log(1e-30), math.log(0.5))
        curve = AllocatedCurve(GaussianPair(sigma), steps, bool(number % 2))
        epsilon = min(curve.guess(math.exp(log_delta)), 50.0)
        low, high = curve.delta(epsilon)
        try:
            exact = truth(curve, epsilon, digits=10)
        except hs.PrecisionError:
            refused += 1
            continue
        # our bracket may be narrower than the enclosure
        assert low <= exact.high, (sigma, steps, epsilon, number)
        assert exact.low <= high, (sigma, steps, epsilon, number)
    assert refused <= 7
