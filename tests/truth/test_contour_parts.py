"""Every stated error bound inside the contour, against ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import final

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from hockeystick.engines.contour.aliasing import chernoff
from hockeystick.engines.contour.decay import RoughDecay, _unimodal_minorant, is_cut, rectangles
from hockeystick.engines.contour.lattice_line import runs
from hockeystick.engines.contour.line import line_parts, summed_line
from hockeystick.engines.contour.line_sum import LineSum, line_sum
from hockeystick.laws import GaussianPair, LaplacePair, Pair, SubsampledPair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.numerics.gauss_legendre import NODE_ERROR, WEIGHT_ERROR, gauss_legendre
from hockeystick.numerics.residuals import EXPONENTIAL_RESIDUAL, SINE_RESIDUAL, exponential_residual, sine_residual
from hockeystick.numerics.rounding import TRIGONOMETRIC, U
from hockeystick.transforms.log_moments import log_moments, tilt
from hockeystick.transforms.rule import Array, LossRule, NoQuadrature, Quadrature, Window, additions, node_sum

RNG = np.random.default_rng(20240704)


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    before, ctx.prec = ctx.prec, 300
    yield
    ctx.prec = before


def spread_out(size: int, smallest: float, largest: float) -> np.ndarray:
    return RNG.choice([-1.0, 1.0], size) * np.exp(RNG.uniform(math.log(smallest), math.log(largest), size))


def test_trigonometric_functions() -> None:
    x = np.concatenate((spread_out(1500, 1e-9, 1e6), np.arange(-300, 300) * math.pi))
    for value, point in zip(np.sin(x).tolist(), x.tolist(), strict=True):
        if point:
            assert abs(arb(value) - arb(point).sin()) <= TRIGONOMETRIC * min(1.0, abs(point))
    for value, point in zip(np.cos(x).tolist(), x.tolist(), strict=True):
        assert abs(arb(value) - arb(point).cos()) <= TRIGONOMETRIC
    y, other = spread_out(1500, 1e-9, 1.0), RNG.uniform(-1.0, 1.0, 1500)
    for value, a, b in zip(np.arctan2(y, other).tolist(), y.tolist(), other.tolist(), strict=True):
        exact = arb.atan2(arb(a), arb(b))
        assert abs(arb(value) - exact) <= TRIGONOMETRIC * abs(exact)


def test_residuals() -> None:
    x = np.concatenate((spread_out(2000, 1e-9, 600.0), spread_out(1000, 0.1, 1.0)))
    exponential = exponential_residual(np.minimum(x, 600.0))
    sine = sine_residual(x, np.sin(x))
    for point, e, s in zip(x.tolist(), exponential.tolist(), sine.tolist(), strict=True):
        ball = arb(point)
        scale = arb(min(point * point, abs(point))) * arb(max(point, 0.0)).exp()
        assert abs(arb(e) - (ball.expm1() - ball)) <= EXPONENTIAL_RESIDUAL * scale
        assert abs(arb(s) - (ball - ball.sin())) <= SINE_RESIDUAL * point * point


def test_sums_over_nodes_meet_few_roundings() -> None:
    terms = RNG.lognormal(0.0, 3.0, (20, 777))
    for row, total in zip(terms.tolist(), node_sum(terms).tolist(), strict=True):
        exact = sum((arb(value) for value in row), arb(0))
        assert abs(arb(total) - exact) <= additions(777) * U * exact


def test_gauss_legendre_nodes_and_weights() -> None:
    nodes, weights = gauss_legendre()
    count = nodes.size
    for k, (node, weight) in enumerate(zip(nodes.tolist(), weights.tolist(), strict=True)):
        exact_node, exact_weight = arb.legendre_p_root(count, count - 1 - k, weight=True)
        assert abs(arb(node) - exact_node) <= NODE_ERROR
        assert abs(arb(weight) - exact_weight) <= WEIGHT_ERROR * exact_weight


# ------------------------------------------------------------------------------------------ finite sums, taken as exact


def finite_rule(loss: np.ndarray, q: np.ndarray, count: float) -> LossRule:
    """A rule whose floats are meant: no error but rounding. Its masses are known exactly."""
    ctx.prec = 300  # rules are built when the module is read, before any fixture
    losses, logs = loss[None], np.log(q)[None]
    exact_q = sum((arb(value).exp() for value in logs[0].tolist()), arb(0))
    exact_p = sum((arb(a + 0.0).exp() * arb(b).exp() for a, b in zip(logs[0], loss, strict=True)), arb(0))
    zero = np.zeros_like(losses)
    return LossRule(
        losses,
        zero,
        logs,
        zero,
        np.array([float((1 - exact_p).mid())]),
        np.array([float((1 - exact_q).mid())]),
        np.array([count]),
        quadrature=NoQuadrature(1),
        cells=None,
        dropped=np.array([1e-30]),  # of the masses, which are one rounding off where they are far from one
    )


def exact_moment(rule: LossRule, exponent: float) -> arb:
    pairs = zip(rule.log_weight[0].tolist(), rule.loss[0].tolist(), strict=True)
    return sum(((arb(q) + arb(exponent) * arb(loss)).exp() for q, loss in pairs), arb(0))


def small_losses(size: int, scale: float) -> LossRule:
    """Losses of one scale with masses near one in total, as a quadrature rule has them."""
    y = np.linspace(-9.0, 9.0, size)
    q = np.exp(-0.5 * y * y) * (y[1] - y[0]) / math.sqrt(2.0 * math.pi)
    loss = scale * y - 0.5 * scale * scale
    return finite_rule(loss, q, 1e6)


@pytest.mark.parametrize("exponent", [0.3, 0.9, 0.94, 1.5])
def test_what_nodes_grow_by_holds_at_every_exponent(exponent: float) -> None:
    """Between a half and one the weight is p, whose logarithm is rounded, and the losses that grow lie far below 0."""
    random = np.random.default_rng(0)
    loss = random.uniform(-700.0, -512.0, 2000) * (-0.6 if exponent in {0.3, 1.5} else 1.0)
    log_weight = np.minimum(-loss, 0.0) - random.uniform(0.0, 1.0, 2000)
    zero, none = np.zeros((1, loss.size)), np.zeros(1)
    rule = LossRule(loss[None], zero, log_weight[None], zero, none, none, none + 1.0, NoQuadrature(1), None, none)
    found = rule.grown_by(np.array([[exponent]]))
    lean = exponent > 0.5
    for value, error, q, x in zip(found.value[0], found.error[0], log_weight.tolist(), loss.tolist(), strict=True):
        base = (arb(q) + arb(x)).exp() if lean else arb(q).exp()
        assert abs(arb(float(value)) - base * (arb(exponent) * x - lean * arb(x)).expm1()) <= float(error)


RULES = [small_losses(40, 1e-4), small_losses(90, 0.05), small_losses(61, 0.9), small_losses(300, 4.0)]
EXPONENTS = np.array([0.0, 0.25, 0.5, 0.9990234375, 1.0, 1.0009765625, 1.5, 4.0, 31.0])


@pytest.mark.parametrize("rule", RULES)
def test_log_moments_are_within_their_errors(rule: LossRule) -> None:
    found = log_moments(rule, EXPONENTS)
    for k, exponent in enumerate(EXPONENTS.tolist()):
        exact = exact_moment(rule, exponent).log()
        assert abs(arb(float(found.value[k, 0])) - exact) <= float(found.error[k, 0])


def test_the_error_of_a_small_moment_is_relative_to_it() -> None:
    for exponent in (1.0009765625, 2.0, 9.0):
        found = log_moments(RULES[0], np.array([exponent]))
        assert 0.0 < found.value[0, 0] < 1e-6
        assert found.error[0, 0] <= 1e-13 * found.value[0, 0] + 1e-28


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("exponent", [1.0009765625, 3.0, 12.0])
@pytest.mark.parametrize("nodes", [2, 7, 100])
def test_line_sum_is_within_its_error(rule: LossRule, exponent: float, nodes: int) -> None:
    moments = log_moments(rule, np.array([exponent]))
    tilted = tilt(rule, exponent, moments)
    count = 50.0
    step = 2.0 ** math.floor(math.log2(0.5 / math.sqrt(count * float(tilted.spread[0]))))
    found = line_sum(tilted, np.array([count]), step, nodes, np.zeros(1))
    total = exact_moment(rule, exponent)
    centre = arb(float(tilted.centre[0]))
    assert found.log_size[0] == found.argument[0] == 0.0
    for m in range(1, nodes, 9):
        s = arb(step * m)
        real = imaginary = arb(0)
        for q, loss in zip(rule.log_weight[0].tolist(), rule.loss[0].tolist(), strict=True):
            weight = (arb(q) + arb(exponent) * arb(loss)).exp() / total
            real += weight * (s * (arb(loss) - centre)).cos()
            imaginary += weight * (s * (arb(loss) - centre)).sin()
        size, argument = (real * real + imaginary * imaginary).log() / 2 * count, arb.atan2(imaginary, real) * count
        error = float(found.error[m])
        assert size <= float(found.log_size_bound[m])
        if math.isfinite(error):
            assert abs(arb(float(found.log_size[m])) - size) <= error
            assert abs(arb(float(found.argument[m])) - argument) <= error
    if rule is not RULES[3]:  # moments of e^1000 lose some digits
        assert float(found.error[found.log_size > -8.0].max()) <= 2e-10


def test_a_billion_steps_cost_no_accuracy() -> None:
    """phi - 1 is of the order 1 / T, and so is its error."""
    rule = small_losses(40, 1e-5)
    moments = log_moments(rule, np.array([5.0]))
    tilted = tilt(rule, 5.0, moments)
    found = line_sum(tilted, np.array([1e9]), 2.0, 4, np.zeros(1))
    assert found.log_size[1] < -0.05
    assert found.error.max() <= 2e-12


# ------------------------------------------------------------------------------------------------ rules of known pairs


def transform(sigma: float, rate: float, power: float, frequency: float) -> tuple[arb, arb]:
    """Real and imaginary part of E_Q[r^{power + is}], by the trapezoidal rule with 1200 nodes and 300 bits."""
    g, m = arb(fmpq(*Fraction(rate).as_integer_ratio())), arb(fmpq(*(1 / Fraction(sigma)).as_integer_ratio()))
    low, high, size = -14.0 + min(power, 0.0) / sigma, 14.0 + max(power, 0.0) / sigma, 1200
    step = arb((high - low) / size)
    real = imaginary = arb(0)
    for k in range(size + 1):
        t = arb(low) + step * k
        loss = (g * (m * t - m * m / 2).expm1()).log1p()
        weight = (-t * t / 2 + power * loss).exp()
        real += weight * (frequency * loss).cos()
        imaginary += weight * (frequency * loss).sin()
    scale = step / (2 * arb.pi()).sqrt()
    return real * scale, imaginary * scale


@pytest.mark.parametrize(
    ("sigma", "rate", "frequency"),
    [(1.0, 0.01, 30.0), (0.7, 0.3, 30.0), (0.9, 0.999, 30.0), (4.0, 0.001, 1e3), (10.0, 1e-4, 2e4), (1.0, 1e-5, 3e3)],
)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("accuracy", [-12.0, -45.0])
def test_subsampled_gaussian_rule_is_within_its_quadrature_error(
    sigma: float, rate: float, frequency: float, direction: str, accuracy: float
) -> None:
    pair: Pair = SubsampledPair(GaussianPair(sigma), rate)
    pair = pair if direction == "remove" else pair.reversed()
    exponent = 3.25
    power = exponent if direction == "remove" else 1.0 - exponent
    rules = PairSum([(pair, 1)]).rules(Window((exponent,), frequency, accuracy))
    assert rules is not None
    (rule,) = rules
    found = log_moments(rule, np.array([exponent]))
    exact, _ = transform(sigma, rate, power, 0.0)
    assert abs(arb(float(found.value[0, 0])) - exact.log()) <= float(found.total_error[0, 0])
    assert found.quadrature[0, 0] <= 20.0 * math.exp(accuracy)
    for s in (0.1 * frequency, frequency):
        real, imaginary = transform(sigma, rate, power, s)
        a = b = arb(0)
        for q, loss in zip(rule.log_weight[0].tolist(), rule.loss[0].tolist(), strict=True):
            weight = (arb(q) + arb(exponent) * arb(loss)).exp()
            a += weight * (s * arb(loss)).cos()
            b += weight * (s * abs(arb(loss)) * (1 if (loss > 0) == (direction == "remove") else -1)).sin()
        distance = ((a - real) ** 2 + (b - imaginary) ** 2).sqrt()
        rounding = 1e-12 * (1.0 + s * rate)  # of the floats in the rule, whose errors are carried elsewhere
        still = rule.quadrature.error(np.array([exponent]))[0]
        bound = float(rule.quadrature.error_up_to(s, exponent, still)[0])
        assert distance <= exact * (bound + rounding)
        assert bound <= max(math.exp(0.4 * accuracy), 1e-6)  # high frequencies at small rates are planned less closely


@pytest.mark.parametrize(
    "pair",
    [
        SubsampledPair(GaussianPair(1.0), 0.01),
        SubsampledPair(GaussianPair(0.4), 0.001),
        SubsampledPair(GaussianPair(5.0), 0.2),
        SubsampledPair(GaussianPair(1.0), 0.01).reversed(),
        LaplacePair(1.0),
        SubsampledPair(LaplacePair(0.5), 0.1),
        SubsampledPair(LaplacePair(0.5), 0.1).reversed(),
    ],
)
@pytest.mark.parametrize("exponent", [1.25, 6.0])
def test_rectangles_bound_the_transform_from_any_frequency_on(pair: Pair, exponent: float) -> None:
    window = Window((exponent,), 60.0, -30.0, cells=8)
    rules = PairSum([(pair, 1)]).rules(window)
    assert rules is not None
    (rule,) = rules
    assert rule.cells is not None
    moments = log_moments(rule, np.array([exponent]))
    found = rectangles(rule.cells, exponent, moments.value[0] + moments.total_error[0])
    tilted = tilt(rule, exponent, moments)
    s = np.geomspace(0.05, 60.0, 300)
    size = np.abs((np.exp(1j * s[:, None] * tilted.offset[0]) * tilted.weight[0]).sum(axis=1))
    bound = np.exp(found.log_bound(s)[:, 0])
    from_here_on = np.maximum.accumulate(size[::-1])[::-1]
    assert (from_here_on <= bound + 1e-9).all()
    assert (np.diff(bound) <= 1e-15).all()
    covered = float(found.mass.sum())
    assert covered > 0.05


@pytest.mark.parametrize("exponent", [7.0, 9.0])
@pytest.mark.parametrize("log_drop", [-6.0, -14.0])
def test_rectangles_of_losses_cut_off_bound_the_transform_of_all_losses(exponent: float, log_drop: float) -> None:
    """Where most of the tilted mass is beyond the cut-off, rectangles below it prove as little as they weigh."""
    losses = PairSum([(SubsampledPair(GaussianPair(0.5), 1e-4), 3)])
    sketches = losses.dropping(log_drop).sketches(Window((1.0, 1.0 + exponent), 0.0, -30.0, cells=8))
    rules = losses.rules(Window((exponent,), 40.0, -30.0))
    assert sketches is not None
    assert rules is not None
    rough = RoughDecay.of(sketches, exponent, 0.0)
    assert is_cut(sketches, 1).all()
    assert not rules[0].dropped.any()
    moments = log_moments(rules[0], np.array([exponent]))
    tilted = tilt(rules[0], exponent, moments)
    s = np.geomspace(0.05, 40.0, 200)
    log_size = 3.0 * np.log(np.abs((np.exp(1j * s[:, None] * tilted.offset[0]) * tilted.weight[0]).sum(axis=1)))
    from_here_on = np.maximum.accumulate(log_size[::-1])[::-1]
    measured = rough.measured(rules, [moments])
    assert (from_here_on <= measured.log_bound(s) + 1e-9).all()
    below = sketches[0].log_weight + exponent * sketches[0].loss - moments.value[0]
    share = float(np.exp(below).sum())  # of the tilted mass, below the cut-off
    assert share < 0.9
    assert 0.5 * share < float(measured.parts[0][0].mass.sum()) <= share
    assert float(rough.decay.parts[0][0].mass.sum()) > share  # as the rectangles are before they are measured


def test_runs_bound_the_transform_over_half_a_period() -> None:
    for weight in (np.array([0.7, 0.3]), np.array([0.1, 0.2, 0.5, 0.15, 0.05]), RNG.dirichlet(np.ones(40))):
        index = np.arange(weight.size)
        s = np.linspace(0.01, math.pi, 800)
        size = np.abs((np.exp(1j * s[:, None] * index) * weight).sum(axis=1))
        bound = np.exp(runs(weight, index, 1.0).log_bound(s)[:, 0])
        assert (np.maximum.accumulate(size[::-1])[::-1] <= bound + 1e-12).all()


def test_runs_bound_the_transforms_of_all_laws_within_the_errors_of_their_masses() -> None:
    """Two even masses, whose runs are least loose: what one has too much, the other has not."""
    doubt, s = 1e-3, np.linspace(1e-3, 0.2, 50)
    weight = np.array([0.5 + doubt, 0.5 - doubt])
    size = np.abs(weight[0] + weight[1] * np.exp(1j * s))
    assert (size > np.exp(runs(np.array([0.5, 0.5]), np.arange(2), 1.0).log_bound(s)[:, 0])).any()
    assert (size <= np.exp(runs(np.array([0.5, 0.5]), np.arange(2), 1.0, doubt).log_bound(s)[:, 0])).all()


def test_runs_lie_under_masses_of_several_peaks() -> None:
    """Masses far apart beat at high frequencies; they are no run."""
    for weight in ([0.5, 0.0, 0.5], [0.4, 0.05, 0.05, 0.5], [0.1, 0.3, 0.02, 0.3, 0.01, 0.27]):
        mass, index = np.array(weight), np.arange(len(weight))
        s = np.linspace(0.01, math.pi, 400)
        size = np.abs((np.exp(1j * s[:, None] * index) * mass).sum(axis=1))
        bound = np.exp(runs(mass, index, 1.0).log_bound(s)[:, 0])
        assert (np.maximum.accumulate(size[::-1])[::-1] <= bound + 1e-12).all()


def test_errors_of_two_sums_along_a_line_add_up() -> None:
    first, second = (LineSum(*(np.array([0.0, x]) for x in (-0.3, 0.1, error, -0.2))) for error in (0.5, 0.25))
    assert ((first + second).error >= first.error + second.error).all()
    assert ((first + second).log_size_bound >= first.log_size_bound + second.log_size_bound).all()


@final
class _Rising(Quadrature):
    """A quadrature error that grows with the frequency, from nothing."""

    def error(self, exponents: Array) -> Array:
        return np.zeros((exponents.size, 1))

    def error_up_to(self, frequency: float, exponent: float, error: Array) -> Array:
        return np.array([1e-4 * frequency])


def test_a_line_has_the_quadrature_error_of_its_largest_frequency() -> None:
    losses = PairSum([(SubsampledPair(GaussianPair(1.0), 0.1), 3)])
    exponents = (2.0, 1.0, 3.0)
    rules = losses.rules(Window(exponents, 6.0, -40.0))
    assert rules is not None
    rising = [replace(rule, quadrature=_Rising()) for rule in rules]
    moments = [log_moments(rule, np.array(exponents)) for rule in rising]
    tilted = [tilt(rule, 2.0, moment) for rule, moment in zip(rising, moments, strict=True)]
    known = chernoff([rule.counts for rule in rising], moments, 0.0, (1.0, 0.0, 2.0))
    parts = line_parts(rising, tilted, 2.0, 0.25 * 20)
    line = summed_line(parts, 0.0, chernoff=known, step=0.25, nodes=21, log_tail=0.0)
    assert (line.total.error >= 3.0 * 1e-4 * 5.0).all()  # three steps, up to the frequency 5


def test_centres_are_multiplied_by_their_counts_exactly() -> None:
    counts = (1.0, 3.0, 1e4 + 7.0, 2.0**39 + 1.0)
    losses = PairSum([(SubsampledPair(GaussianPair(1.0 + 0.1 * k), 0.1), int(count)) for k, count in enumerate(counts)])
    (rule,) = losses.rules(Window((2.0,), 1.0, -40.0)) or ()
    tilted = tilt(rule, 2.0, log_moments(rule, np.array([2.0])))
    for centre, count, product in zip(tilted.centre, rule.counts, tilted.centre * rule.counts, strict=True):
        assert Fraction(float(centre)) * Fraction(float(count)) == Fraction(float(product)) != 0


def test_errors_of_a_moment_count_once_a_step() -> None:
    losses = PairSum([(SubsampledPair(GaussianPair(1.0), 0.1), 50), (SubsampledPair(GaussianPair(2.0), 0.2), 7)])
    exponents = (2.0, 1.0, 3.0)
    rules = losses.rules(Window(exponents, 1.0, -12.0))  # so coarse that the quadrature is all that errs
    assert rules is not None
    moments = [log_moments(rule, np.array(exponents)) for rule in rules]
    found = chernoff([rule.counts for rule in rules], moments, 0.0, (1.0, 0.0, 2.0))
    needed = sum((moment.total_error * rule.counts).sum(axis=1) for rule, moment in zip(rules, moments, strict=True))
    assert (np.array([found.error, *found.errors]) >= needed).all()


@pytest.mark.parametrize("moved", [1e-9, 1e-4, -1e-4])
def test_losses_that_are_off_leave_the_mean_within_its_error(moved: float) -> None:
    losses = PairSum([(SubsampledPair(GaussianPair(1.0), 0.1), 1)])
    (rule,) = losses.rules(Window((2.0,), 1.0, -40.0)) or ()
    wrong = replace(rule, loss=rule.loss + moved, loss_error=rule.loss_error + abs(moved))
    means, errors = [], []
    for one in (rule, wrong):
        tilted = tilt(one, 2.0, log_moments(one, np.array([2.0])))
        means.append(float(tilted.centre[0] + tilted.drift[0]))
        errors.append(float(tilted.drift_error[0]))
    assert 0.05 * abs(moved) < abs(means[1] - means[0]) <= sum(errors)


def test_a_minorant_with_one_peak_lies_under_a_density_with_several() -> None:
    density = RNG.uniform(0.0, 1.0, (40, 30))
    found = _unimodal_minorant(density)
    assert (found <= density).all()
    assert (found.max(axis=1) == density.max(axis=1)).all()
    for row in found:
        top = int(np.argmax(row))
        assert (np.diff(row[: top + 1]) >= 0.0).all()
        assert (np.diff(row[top:]) <= 0.0).all()


@pytest.mark.parametrize("exponent", [0.3, 2.0, 300.0])  # the last is summed in logarithms
@pytest.mark.parametrize("field", ["weights", "losses"])
@pytest.mark.parametrize("error", [1e-9, 1e-4])
def test_weights_and_losses_that_are_off_leave_moments_within_their_errors(
    exponent: float, field: str, error: float
) -> None:
    losses = PairSum([(SubsampledPair(GaussianPair(0.6), 0.1), 1)])
    (rule,) = losses.rules(Window((exponent,), 0.0, -40.0)) or ()
    true = log_moments(rule, np.array([exponent]))
    for signs in (1.0, -1.0, np.where(rule.loss > 0.0, 1.0, -1.0)):
        if field == "weights":
            wrong = replace(
                rule, log_weight=rule.log_weight + 0.99 * error * signs, weight_error=rule.weight_error + error
            )
        else:
            wrong = replace(rule, loss=rule.loss + 0.99 * error * signs, loss_error=rule.loss_error + error)
        found = log_moments(wrong, np.array([exponent]))
        off = abs(float(found.value[0, 0] - true.value[0, 0]))
        assert off <= float(found.error[0, 0] + true.error[0, 0])
        assert off > 0.01 * float(found.error[0, 0])  # it is no formality
