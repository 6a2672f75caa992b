"""A direction that is proved at once to stay below another is not asked: the answer is the same, to the bit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.base import DirectedCurve
from hockeystick.bound import Bound
from hockeystick.engines.contour.decay import rectangles
from hockeystick.engines.contour.placing import log_tail
from hockeystick.engines.contour.stays_below import log_reverse_beside, log_reverses
from hockeystick.engines.ends import BoundedCurve
from hockeystick.engines.together import Quantity, standing_lines
from hockeystick.laws import GaussianPair
from hockeystick.laws.allocated import AllocatedCurve
from hockeystick.laws.base import Pair
from hockeystick.laws.curve import ChordPair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.together import Curve, each_together, worst
from hockeystick.transforms.log_moments import log_moments
from hockeystick.transforms.reversed_rule import reversed_rule
from hockeystick.transforms.rule import Window
from hockeystick.transforms.saddle import normal_tilts, round_tilts
from tests.closed_forms import gaussian_delta, mp, mpf

DPSGD = hs.Gaussian(1.0).poisson(0.01) * 2000


def least_proved(curve: DirectedCurve, epsilon: float) -> float:
    """The smallest delta proved at once, to 1e-13 relative; 1 where none is."""
    low, high = -700.0, 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if curve.is_below(epsilon, math.exp(middle)) else (middle, high)
    return math.exp(high)


def directed(run: hs.Step | hs.Composition, direction: str) -> DirectedCurve:
    return hs.account(run, direction).directed[direction]


@pytest.mark.parametrize(("epsilon", "times"), [(0.5, 40.0), (2.0, 40.0), (6.0, math.inf)])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_what_is_proved_at_once_is_above_the_exact_delta_and_near(direction: str, epsilon: float, times: float) -> None:
    run = hs.Gaussian(1.0).poisson(0.02) * 300
    truth = float(hs.account(run, direction, accountant=hs.accountants.Exact()).delta(epsilon).sides[1])
    assert truth < least_proved(directed(run, direction), epsilon) < times * truth


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_chernoffs_bound_is_above_the_exact_delta(epsilon: float) -> None:
    run = hs.Gaussian(1.0).poisson(0.02) * 300
    truth = float(hs.account(run, "add", accountant=hs.accountants.Exact()).delta(epsilon).sides[1])
    tilts = round_tilts(np.geomspace(0.5, 30.0, 24))[:, None]
    (found,) = log_tail(PairSum(run.pairs("add")).dropping(-690.0), tilts, np.array([epsilon]))
    assert math.log(truth) < found < math.log(truth) + 3.0


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_what_the_line_of_the_other_direction_proves_is_above_the_exact_delta_and_next_to_it(epsilon: float) -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(0.02) * 300)
    own, other = curve.directed["add"], curve.directed["remove"]
    truth = float(hs.account(curve.composition, "add", accountant=hs.accountants.Exact()).delta(epsilon).sides[1])
    assert own.is_below_beside(other, epsilon=epsilon, delta=truth * (1.0 + 1e-8), quantity="delta")
    assert not own.is_below_beside(other, epsilon=epsilon, delta=truth * (1.0 - 1e-13), quantity="delta")


def test_nearly_equal_directions_need_one_plan() -> None:
    """A million steps of much noise: Chernoff's bound does not tell them apart, the line of the one does."""
    curve = hs.account(hs.Gaussian(10.0).poisson(1e-3) * 10**6)
    low, high = curve.epsilon(1e-5).sides
    assert float(low) < 0.341659939882 + 5e-13
    assert float(high) > 0.341659939882 - 5e-13
    lines = standing_lines(curve.directed["add"].engine.engine)  # type: ignore[attr-defined]
    assert lines is not None
    assert lines._lines == lines._ladders == {}


def test_nearly_equal_directions_need_one_plan_in_a_pass() -> None:
    runs = [hs.Gaussian(noise).poisson(1e-3) * 10**6 for noise in (8.0, 9.0, 10.0)] + [
        hs.Gaussian(4.0).poisson(0.01) * 10**4
    ]
    curves = [hs.account(run) for run in runs]
    found = each_together([cast(Curve, curve) for curve in curves], np.arange(4), np.full(4, 1e-5), "epsilon")
    for run, curve, answer in zip(runs, curves, found, strict=True):
        assert isinstance(answer, Bound)
        assert answer.sides == hs.account(run).epsilon(1e-5).sides
        lines = standing_lines(curve.directed["add"].engine.engine)  # type: ignore[attr-defined]
        assert lines is not None
        assert lines._lines == lines._ladders == {}


def test_a_large_loss_left_out_is_counted() -> None:
    """Noise so small that a step of tiny mass swamps the moments: its mass counts where it is left out."""
    run = hs.Gaussian(0.05).poisson(1e-9) * 3
    found = least_proved(directed(run, "remove"), 8.0)
    inner = mp.log1p(mp.expm1(8.0) / mpf(1e-9))  # where a sampled step looks at its base; more steps have more
    assert mpf(1e-9) * gaussian_delta(mpf(20), inner) <= found


@pytest.mark.parametrize("run", [hs.Gaussian(1.0).poisson(0.02), hs.Gaussian(3.0) * 5, hs.DiscreteLaplace(2.0, 5) * 14])
def test_where_one_evaluation_proves_it_the_upper_side_counts(run: hs.Step | hs.Composition) -> None:
    curve = directed(run, "remove")
    upper = float(curve.delta(0.6).sides[1])
    assert curve.is_below(0.6, upper)
    assert not curve.is_below(0.6, math.nextafter(upper, 0.0))


def test_mass_at_infinity_is_counted() -> None:
    pair = hs.DiscretePair((0.7, 0.3 - 2.0**-20, 2.0**-20), (0.3, 0.7, 0.0))
    for run, count, epsilon in ((pair, 1, 2.0), (pair, 1, 0.5), (pair * 3, 3, 4.0), (pair * 3, 3, 1.0)):
        curve = directed(run, "remove")
        mass = -math.expm1(count * math.log1p(-(2.0**-20)))
        assert not curve.is_below(epsilon, mass * (1.0 - 1e-9)), (run, epsilon)
        assert curve.is_below(1e4, mass * (1.0 + 1e-9))
    curve = directed(hs.Gaussian(1.0).poisson(0.02) * 300 + hs.ApproximateDP(0.01, 1e-6), "remove")
    finite = float(curve.delta(3.5).sides[0]) - 1e-6
    assert 1e-4 < finite / 1e-6 < 1e-2
    assert not curve.is_below(3.5, 1e-6 + 0.5 * finite)


@pytest.mark.parametrize(
    "run",
    [
        hs.Gaussian(1.0).poisson(0.01) * 2000,
        hs.Gaussian(2.0).poisson(0.1) * 20,
        hs.Gaussian(1.0).poisson(0.01),
        hs.Laplace(1.0).poisson(0.1) * 400,
        hs.DiscretePair((0.01, 0.99), (0.02, 0.98)) * 30,
        hs.DiscretePair((0.4, 0.6), (0.41, 0.59)) * 3,
        hs.DiscretePair((0.01, 0.99), (0.02, 0.98)) * 30_000,
        hs.Gaussian(5.0) * 3 + hs.DiscretePair((0.6, 0.39, 0.01), (0.5, 0.5, 0.0)) * 2,
    ],
)
def test_answers_are_the_larger_of_both_directions(run: hs.Step | hs.Composition) -> None:
    """Alone and in a pass."""
    questions: list[tuple[Quantity, float]] = [("epsilon", 1e-6), ("epsilon", 0.01), ("delta", 0.1), ("delta", 2.0)]
    for quantity, at in questions:
        every = worst(hs.account(run).by_direction(lambda one, q=quantity, v=at: getattr(one, q)(v)))  # type: ignore[misc]
        assert cast(Curve, hs.account(run)).one(at, quantity).sides == every.sides
        both = [cast(Curve, hs.account(one)) for one in (run, DPSGD)]
        together = each_together(both, np.arange(2), np.array([at, at]), quantity)[0]
        assert isinstance(together, Bound)
        assert together.sides == every.sides


def test_what_is_proved_of_many_is_proved_of_each() -> None:
    """Whatever is asked beside it: the smallest delta that is proved is the same."""
    runs = [hs.Gaussian(noise).poisson(rate) * 500 for noise, rate in ((0.7, 1e-3), (1.0, 0.02), (3.0, 0.01))]
    runs += [hs.Laplace(2.0).poisson(0.1) * 400, hs.Gaussian(3.0) * 5, runs[1] + hs.ApproximateDP(0.01, 1e-6)]
    curves = [directed(run, direction) for run in runs for direction in ("remove", "add")]
    epsilon = np.linspace(0.2, 1.5, len(curves))
    others = [directed(hs.Gaussian(1.0), "remove")] * len(curves)  # which has no line
    least = np.array([least_proved(*one) for one in zip(curves, epsilon.tolist(), strict=True)])
    for factor, proved in ((1.0 + 1e-9, True), (1.0 - 1e-9, False)):
        together = hs.accountants.Certified().together([*curves, *others])
        assert together is not None
        own = np.arange(len(curves))
        found = together.are_below(own, own + len(curves), epsilon, least * factor, "delta")
        assert (found == proved).all()


def test_a_direction_far_below_is_not_answered() -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(0.01) * 2000)
    add = curve.directed["add"]
    object.__setattr__(add, "epsilon", lambda delta: pytest.fail(f"asked at {delta}"))
    assert curve.epsilon(1e-6).notes == ("direction: remove",)


@pytest.mark.parametrize(("one", "two"), [((1.0, 2.0), (0.5, 3.0)), ((1.0, 3.0), (2.0, 2.5)), ((0.0, 1.0), (1.0, 1.5))])
def test_the_larger_of_each_side_is_that_of_all_directions(one: tuple[float, float], two: tuple[float, float]) -> None:
    found = cast(Bound, worst({"remove": Bound(*one, "one"), "add": Bound(*two, "two")}))
    assert (found.lower, found.upper) == (max(one[0], two[0]), max(one[1], two[1]))
    assert found.notes == (f"direction: {'remove' if one[1] > two[1] else 'add'}",)


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.0, 0.02, 300), (2.0, 0.1, 400), (3.0, 0.05, 2000)])
@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_the_rule_of_a_line_bounds_the_reverse_of_its_curve(
    noise: float, rate: float, steps: int, share: float
) -> None:
    run = hs.Gaussian(noise).poisson(rate) * steps
    curve = hs.account(run)
    epsilon = share * float(curve.epsilon(1e-6).lower)
    lines = standing_lines(curve.directed["remove"].engine.engine)  # type: ignore[attr-defined]
    assert lines is not None
    truth = float(hs.account(run, "add", accountant=hs.accountants.Exact()).delta(epsilon).sides[1])
    delta = min(40.0 * truth, 0.9)
    at = np.array([epsilon]), np.array([delta])
    bounds = float(log_reverses([lines], *at, "delta")[0]), log_reverse_beside(lines, epsilon, delta, "delta")
    assert math.log(truth) < min(bounds)  # Chernoff's, and that of a line
    assert min(bounds) < math.log(delta)


def test_the_reverse_of_several_rules_in_one_batch_is_not_bounded_by_one_of_them() -> None:
    few, many = hs.Gaussian(6.9).poisson(0.016) * 59, hs.Gaussian(2.7).poisson(0.024) * 250
    lines = standing_lines(hs.account(few + many).directed["remove"].engine.engine)  # type: ignore[attr-defined]
    assert lines is not None
    truth = float(hs.account(few + many, "add").delta(0.19).lower)
    assert math.log(truth) < log_reverse_beside(lines, 0.19, 0.9 * truth, "delta")


def test_two_kinds_of_steps_of_any_noise_have_an_epsilon() -> None:
    run = hs.Gaussian(1.4434177890331774).poisson(0.004178669584742143) * 28
    run += hs.Gaussian(2.945943623946073).poisson(0.0018155156408417809) * 149
    assert float(hs.account(run).epsilon(7.2936427748778e-05).width) < 1e-3


def test_replicas_of_losses_that_count_as_normal_are_in_the_bound_on_the_reverse() -> None:
    noise = [(hs.DiscreteGaussian(float(sigma)), 4) for sigma in range(500, 600)]
    curve = hs.account(hs.compose([(hs.Gaussian(30.0).poisson(0.5), 100), *noise]))
    lines = standing_lines(curve.directed["remove"].engine.engine)  # type: ignore[attr-defined]
    assert lines is not None
    assert lines.losses.replicas is not None
    before = log_reverse_beside(lines, 0.7, 1e-6, "delta")
    lines.losses.replicas = replace(lines.losses.replicas, met=1.0)
    assert log_reverse_beside(lines, 0.7, 1e-6, "delta") > before + 1.0


def test_no_law_about_a_curve_is_taken_for_the_curve_reversed() -> None:
    """Its mass at infinity is not the curve's, by whose ends the two sides are told apart."""

    def ends(pair: Pair) -> BoundedCurve:
        return BoundedCurve(((pair, 3),), lambda _: pytest.fail("no engine is needed"), 1e-9)

    plain = hs.Gaussian(1.5).poisson(0.1).pair("remove")
    assert ends(plain.reversed()).is_reverse_of(ends(plain))
    about = ChordPair(AllocatedCurve(GaussianPair(1.5), 3))
    assert not ends(about.reversed()).is_reverse_of(ends(about))


def test_a_reversed_rule_has_the_moments_of_the_reverse() -> None:
    pair = hs.Gaussian(1.5).poisson(0.1)
    exponents = np.array([1.5, 3.0, 9.0])
    window = Window(tuple(1.0 - exponents), 0.0, -40.0)
    (rule,) = PairSum([(pair.pair("remove"), 7)]).rules(replace(window, log_accuracy=-8.0)) or ()  # to see its error
    (other,) = PairSum([(pair.pair("add"), 7)]).rules(replace(window, exponents=tuple(exponents))) or ()
    turned, own = (log_moments(one, exponents) for one in (reversed_rule(rule), other))
    assert (np.abs(turned.value - own.value) <= turned.total_error + own.total_error).all()
    assert (turned.total_error <= 0.1 * np.abs(turned.value)).all()


def test_reversed_cells_bound_the_transform_of_the_reverse() -> None:
    pair, exponent, frequencies = hs.Gaussian(0.6).poisson(0.7), 1.5, np.linspace(0.2, 12.0, 60)
    (sketch,) = PairSum([(pair.pair("remove"), 1)]).sketches(Window((1.0, 9.0), 0.0, -16.0, cells=4)) or ()
    (rule,) = PairSum([(pair.pair("add"), 1)]).rules(Window((1.0, exponent), 12.0, -40.0)) or ()
    moment = log_moments(rule, np.array([exponent]))
    weight = np.exp(rule.log_weight + exponent * rule.loss - moment.value[0])[0]
    size = np.abs(np.exp(1j * frequencies[:, None] * rule.loss[0]) @ weight)
    assert sketch.cells is not None
    highest = moment.value[0] + moment.total_error[0]
    bound = np.exp(rectangles(sketch.cells.reversed(), exponent, highest).log_bound(frequencies)[:, 0])
    assert (size <= bound).all()
    assert bound[0] - size[0] < 0.01
    assert bound[-1] < 0.7


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-20, 1e-3), (1e-30, 1e-300), (5e-324, 0.5), (1.0, 1e-300)])
def test_tilts_to_look_at_are_numbers_however_small_epsilon_is(epsilon: float, delta: float) -> None:
    tilts = normal_tilts(np.array([epsilon]), np.log([delta]), np.array([[0.25], [1.0], [2.0]]))
    assert np.isfinite(tilts).all()
    assert (tilts > 0.0).all()


def test_the_other_direction_is_told_apart_at_the_smallest_epsilons() -> None:
    run = hs.Gaussian(1.0).poisson(0.01) * 300
    truth = hs.account(run, accountant=hs.accountants.Exact()).delta(0.0).sides  # less than epsilon above that sought
    for epsilon in (1e-18, 1e-30, 1e-300):
        lower, upper = hs.account(run).delta(epsilon).sides
        assert lower <= truth[1]
        assert truth[0] - epsilon <= upper <= 1.000001 * lower
