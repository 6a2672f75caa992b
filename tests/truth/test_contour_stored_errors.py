"""The errors that the contour stores and passes on, inflated: each as large, and as wrong, as its bound allows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from hockeystick.engines.contour.lattice_line import LatticeLine
from hockeystick.engines.contour.line import ContourLine
from hockeystick.engines.contour.line_sum import LineSum, line_sum
from hockeystick.laws import GaussianPair, SubsampledPair
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.log_moments import log_moments, tilt
from hockeystick.transforms.rule import LossRule, NoQuadrature, Window
from tests.closed_forms import mp, mpf
from tests.contour_lines import (
    EPSILONS,
    LAWS,
    RESPONSE,
    Delta,
    Normal,
    ball,
    gaussian_line,
    holds,
    lattice_line,
)


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("accuracy", [-0.1, -1.0, -3.0])
def test_discrete_gaussians_cut_off_early_contain_the_truth(accuracy: float, steps: int) -> None:
    """A rule of so few integers that its quadrature error is what the bracket is made of."""
    noise = 3.0
    line = lattice_line(DiscreteGaussianPair(noise, 1), steps, 0.75, size=101, accuracy=accuracy)
    assert line.dropped > 1e-6
    weight = [mp.exp(-(mpf(x) ** 2) / (2 * mpf(noise) ** 2)) for x in range(-60, 61)]
    once = {2 * x - 1: weight[x + 60] / mp.fsum(weight) for x in range(-60, 61)}  # Q by the loss, in units of 1 / 2 s^2
    mass: dict[int, mpf] = once if steps == 1 else {}
    if steps == 2:
        for a, first in once.items():
            for b, second in once.items():
                mass[a + b] = mass.get(a + b, mpf(0)) + first * second
    found = line.curve(EPSILONS)
    for index, epsilon in enumerate(EPSILONS.tolist()):
        losses = [(mpf(n) / (2 * mpf(noise) ** 2), q) for n, q in mass.items()]
        truth = mp.fsum(q * (mp.exp(loss) - mp.exp(mpf(epsilon))) for loss, q in losses if loss > epsilon)
        assert holds(found, index, truth), epsilon


@pytest.mark.parametrize("accuracy", [-0.1, -1.0, -3.0])
def test_rules_cut_off_early_say_how_far_off_their_transform_is(accuracy: float) -> None:
    noise, theta = 3.0, 0.75
    line = lattice_line(DiscreteGaussianPair(noise, 1), 1, theta, size=41, accuracy=accuracy)
    unit = 1 / (2 * mpf(noise) ** 2)
    weight = {2 * x - 1: mp.exp(-(mpf(x) ** 2) * unit) for x in range(-80, 81)}  # Q by the loss, in the unit
    total = mp.fsum(weight.values())

    def moment(z: mpf) -> mpf:
        return mp.fsum(q * mp.exp((1 + z) * n * unit) for n, q in weight.items()) / total

    for t, value, error in (
        (theta, line.chernoff.value, line.chernoff.error),
        *zip(line.chernoff.tilts.tolist(), line.chernoff.values, line.chernoff.errors, strict=True),
    ):
        assert abs(mp.log(moment(mpf(t))) - mpf(float(value))) <= mpf(float(error))
    step = 2 * mp.pi / (line.size * mpf(line.lattice.spacing))
    for m in range(line.total.log_size.size):
        exact = moment(mpf(theta) + 1j * m * step) / moment(mpf(theta)) * mp.exp(-1j * m * step * ball(line.centre))
        found = mp.exp(mpf(float(line.total.log_size[m])) + 1j * mpf(float(line.total.argument[m])))
        error = float(line.total.error[m])
        assert math.isinf(error) or abs(found - exact) <= abs(found) * mp.expm1(mpf(error))


@pytest.mark.parametrize("error", [1e-6, 0.2])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_errors_of_the_scale_widen_the_bracket(error: float, sign: float) -> None:
    """K(theta) as wrong as its error says."""
    lines: list[tuple[ContourLine | LatticeLine, Delta]] = [
        (gaussian_line(1.0, 1.0, step=0.25, nodes=40), Normal(1.0).delta),
        (lattice_line(RESPONSE, 12, 1.0, size=41), LAWS["response"].delta),
    ]
    for line, delta in lines:
        wrong = replace(line.chernoff, value=line.chernoff.value + 0.99 * sign * error, error=error)
        found = replace(line, chernoff=wrong).curve(EPSILONS)
        for index, epsilon in enumerate(EPSILONS.tolist()):
            assert holds(found, index, delta(epsilon)), epsilon


@pytest.mark.parametrize("error", [1e-12, 1e-6, 0.2])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_errors_of_the_mean_widen_the_bracket(error: float, sign: float) -> None:
    """K' of the normal part as wrong as its error says: every term of the sum is turned."""
    line = gaussian_line(1.0, 1.0, step=0.25, nodes=40)
    wrong = replace(line, normal_mean=line.normal_mean + 0.99 * sign * error, normal_mean_error=error)
    found = wrong.curve(EPSILONS)
    for index, epsilon in enumerate(EPSILONS.tolist()):
        assert holds(found, index, Normal(1.0).delta(epsilon)), epsilon


@pytest.mark.parametrize("error", [1e-8, 1e-3, 0.3])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_errors_of_the_transform_widen_the_bracket(error: float, sign: float) -> None:
    """The logarithm of phi as wrong as its error says: larger or smaller, or turned, and all of it unknown beyond."""
    lines: list[tuple[ContourLine | LatticeLine, Delta]] = [
        (gaussian_line(1.0, 1.0, step=0.25, nodes=40), Normal(1.0).delta),
        (lattice_line(RESPONSE, 12, 1.0, size=41), LAWS["response"].delta),
    ]
    for line, delta in lines:
        total = line.total
        moved = np.where(np.arange(total.log_size.size) > 0, 0.99 * error * sign, 0.0)
        doubt = total.error + error
        far = np.arange(moved.size) > moved.size // 4  # where phi is nearly nothing, and computed to be one
        wrong = [
            replace(total, log_size=total.log_size + moved, log_size_bound=total.log_size_bound + error, error=doubt),
            replace(total, argument=total.argument + moved, error=doubt),
            replace(total, log_size=np.where(far, 0.0, total.log_size), error=np.where(far, np.inf, total.error)),
            replace(
                total,
                log_size=np.where(moved != 0.0, total.log_size - 3.0, 0.0),
                error=np.where(moved != 0.0, np.inf, 0.0),
            ),
        ]
        for one in wrong:
            found = replace(line, total=one).curve(EPSILONS)
            for index, epsilon in enumerate(EPSILONS.tolist()):
                assert holds(found, index, delta(epsilon)), epsilon


# -------------------------------------------------------------------------------------------- errors that are passed on


@pytest.mark.parametrize("count", [1.0, 40.0])
@pytest.mark.parametrize("error", [1e-9, 1e-6, 1e-3])
def test_a_line_sum_carries_the_quadrature_error_of_its_rule(error: float, count: float) -> None:
    """Two laws whose transforms differ by at most the error: each lies within the bracket of the other."""
    rules = PairSum([(SubsampledPair(GaussianPair(1.0), 0.1), 1)]).rules(Window((2.0,), 20.0, -40.0))
    assert rules is not None
    moments = log_moments(rules[0], np.array([2.0]))
    first = tilt(rules[0], 2.0, moments)
    weight = first.weight[0]
    for heavy in (int(np.argmax(weight)), int(np.argmax(first.offset[0] > 1.0)), 3):
        other = weight * (1.0 - 0.5 * error)  # half of the error away from all nodes, to one of them
        other[heavy] += 0.5 * error
        drift = float(other @ first.offset[0])
        spread = float(other @ first.offset[0] ** 2)
        second = replace(first, weight=other[None], drift=np.array([drift]), spread=np.array([spread]))
        counts, allowed = np.array([count]), np.array([error])
        found = line_sum(first, counts, 0.25, 40, allowed)
        meant = line_sum(second, counts, 0.25, 40, np.zeros(1))
        assert_within(found, meant)


def assert_within(found: LineSum, meant: LineSum) -> None:
    known = np.isfinite(found.error) & np.isfinite(meant.error)
    assert known.sum() > 3
    distance = np.hypot(found.log_size - meant.log_size, found.argument - meant.argument)
    slack = meant.error + 1e-12 * (1.0 + np.abs(meant.argument))  # of the sums of the weights, in floats
    assert (distance <= found.error + slack)[known].all()
    assert (meant.log_size <= found.log_size_bound + slack).all()
    assert float(distance[known].max()) > 0.05 * float(found.error[known].max())  # it is no formality


@pytest.mark.parametrize("field", ["drift", "bend"])
def test_a_line_sum_carries_the_errors_of_its_weights_and_losses(field: str) -> None:
    """Losses all moved a little, and losses spread a little: what the errors of first and second order are for."""
    rules = PairSum([(SubsampledPair(GaussianPair(1.0), 0.1), 1)]).rules(Window((2.0,), 20.0, -40.0))
    assert rules is not None
    first = tilt(rules[0], 2.0, log_moments(rules[0], np.array([2.0])))
    error = 1e-5
    if field == "drift":
        second, doubtful = replace(first, drift=first.drift + error), replace(first, drift_error=np.array([error]))
    else:
        wider = first.offset * (1.0 + error)
        second = replace(first, offset=wider, spread=first.spread * (1.0 + error) ** 2)
        bend = (
            float((first.weight * wider * wider).sum()) * error * 1.001
        )  # |e^{ix} - 1 - ix| grows by at most s^2 y dy
        doubtful = replace(first, bend_error=np.array([bend]), slope_error=np.array([np.inf]))
    counts = np.array([40.0])
    found, meant = (line_sum(one, counts, 0.25, 12, np.zeros(1)) for one in (doubtful, second))
    assert_within(found, meant)


@pytest.mark.parametrize(("error", "fine"), [(1e-9, 0), (1e-3, 0), (0.3, 0), (0.3, 1), (12.0, 0), (12.0, 1)])
@pytest.mark.parametrize("of", ["the loss", "the weight"])
def test_errors_of_a_light_node_count_as_what_it_may_weigh(error: float, fine: int, of: str) -> None:
    """Of two nodes the lighter one alone is off: by 12 nats it may be the heavier one; no sum of masses is known."""
    off = np.array([0.0, error])
    none = np.zeros(2)
    errors = (off, none) if of == "the loss" else (none, off)
    loss, log_weight = np.array([0.0, 1.0]), np.array([math.log1p(-math.exp(-6.0)), -6.0])
    rule = LossRule.of_pair(loss, errors[0], log_weight, errors[1], count=1.0, quadrature=NoQuadrature(1))
    exponent = 2.0
    found = log_moments(rule, np.array([exponent]), fine=fine)
    exact = mp.log(
        mp.exp(mpf(log_weight[0]))
        + mp.exp(mpf(-6) + mpf(exponent) + mpf(error) * (mpf(exponent) if of == "the loss" else 1))
    )
    assert abs(exact - mpf(float(found.value[0, 0]))) <= mpf(float(found.error[0, 0]))
    tilted = tilt(rule, exponent, found)
    heavier = mp.exp(mpf(-6) + mpf(exponent) * (1 + (mpf(error) if of == "the loss" else 0)) - exact)
    heavier *= mp.exp(mpf(error)) if of == "the weight" else 1
    assert abs(heavier - mpf(float(tilted.weight[0, 1]))) <= mpf(float(tilted.weight_error[0]))
