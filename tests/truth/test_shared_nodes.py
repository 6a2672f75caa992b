"""Gaussian steps of one rate and like noise share the nodes of their rules: every bound, against ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx, fmpq

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.composition import Direction
from hockeystick.engines.contour.curve import ContourCurve
from hockeystick.engines.contour.line_sum import line_sum, line_sum_at
from hockeystick.engines.contour.placing import ContourRefusal
from hockeystick.engines.rare import RareCurve
from hockeystick.exact import exact_delta
from hockeystick.laws import GaussianPair, SubsampledPair
from hockeystick.laws.gaussian_summand import GaussianSummand
from hockeystick.laws.loss_sum import PairSum
from hockeystick.transforms.log_moments import TiltedRule, log_moments, tilt
from hockeystick.transforms.rule import LossRule, Window

SIGMAS = [1.0 + 0.02 * k for k in range(9)]
COUNTS = [1, 3, 2**39 - 7, 7, 50, 1, 1, 900, 2]


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    before, ctx.prec = ctx.prec, 160
    yield
    ctx.prec = before


def shared_rule(rate: float, window: Window, *, reverse: bool = False) -> LossRule:
    pairs = [SubsampledPair(GaussianPair(sigma), rate) for sigma in SIGMAS]
    rules = PairSum(zip([p.reversed() if reverse else p for p in pairs], COUNTS, strict=True)).rules(window)
    assert rules is not None
    (rule,) = rules
    assert (len(rule.loss), rule.size) == (1, len(SIGMAS))
    return rule


def tilted_to(rule: LossRule, exponent: float) -> TiltedRule:
    return tilt(rule, exponent, log_moments(rule, np.array([exponent])))


def exact_transform(sigma: float, rate: float, power: float, frequency: float) -> acb:
    """E_Q[r^{power + is}], by the trapezoidal rule."""
    g, m = arb(fmpq(*Fraction(rate).as_integer_ratio())), 1 / arb(sigma)
    low, high, size = -12.0 + min(power, 0.0) / sigma, 12.0 + max(power, 0.0) / sigma, 700
    step, total = arb((high - low) / size), acb(0)
    for k in range(size + 1):
        t = arb(low) + step * k
        loss = (g * (m * t - m * m / 2).expm1()).log1p()
        total += acb(power * loss - t * t / 2, frequency * loss).exp()
    return total * step / (2 * arb.pi()).sqrt()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("accuracy", [-10.0, -40.0])
def test_every_rule_is_within_its_own_quadrature_error(reverse: bool, accuracy: float) -> None:
    rate, exponent, s = 0.02, 3.25, 30.0
    rule = shared_rule(rate, Window((exponent,), s, accuracy), reverse=reverse)
    found = log_moments(rule, np.array([exponent]))
    still = rule.quadrature.error(np.array([exponent]))[0]
    moving = rule.quadrature.error_up_to(s, exponent, still)
    order = sorted(range(len(SIGMAS)), key=lambda k: 1.0 / SIGMAS[k])  # rows are sorted by their shifts
    for row in (0, 4, 8):
        sigma, count = SIGMAS[order[row]], COUNTS[order[row]]
        assert float(rule.counts[row]) == count
        sign, power = (-1, 1.0 - exponent) if reverse else (1, exponent)
        exact = exact_transform(sigma, rate, power, 0.0).real
        assert abs(arb(float(found.value[0, row])) - exact.log()) <= float(found.total_error[0, row])
        assert found.quadrature[0, row] <= 20.0 * math.exp(accuracy)
        turned = sum(
            acb(arb(q) + exponent * arb(loss), s * arb(loss)).exp()
            for q, loss in zip(rule.log_weight[row].tolist(), rule.loss[0].tolist(), strict=True)
        )
        distance = abs(turned - exact_transform(sigma, rate, power, sign * s))
        assert distance <= exact * (float(moving[row]) + 1e-12)  # roundings are carried elsewhere


@pytest.mark.parametrize("exponent", [1.25, 12.0])
@pytest.mark.parametrize("frequencies", [2, 60, 700])
def test_sums_on_a_line_are_within_their_errors(exponent: float, frequencies: int) -> None:
    rule = shared_rule(0.02, Window((exponent,), 30.0, -35.0))
    tilted = tilted_to(rule, exponent)
    one, none = np.ones(rule.size), np.zeros(rule.size)
    step = 30.0 / frequencies
    found = line_sum(tilted, one, step, frequencies, none)
    near, far = step * np.arange(2.0), step * np.array([0.0, frequencies // 2])
    scattered = line_sum_at(tilted, one, near, far, none)
    loss, centre = [arb(x) for x in rule.loss[0].tolist()], arb(float(tilted.centre[0]))
    logs = [[arb(q) + exponent * x for q, x in zip(row, loss, strict=True)] for row in rule.log_weight.tolist()]
    totals = [sum((x.exp() for x in row), arb(0)) for row in logs]
    for m in sorted({1, frequencies // 2, frequencies - 1}):
        s = arb(step * m)
        exact = acb(0)
        for row, total in zip(logs, totals, strict=True):
            phi = sum((acb(q, s * (x - centre)).exp() for q, x in zip(row, loss, strict=True)), acb(0)) / total
            exact += phi.log()
        answers = [found.at(m)] + ([scattered.at(2)] if m == frequencies // 2 else [])
        for answer in answers:
            assert abs(acb(float(answer.log_size), float(answer.argument)) - exact) <= float(answer.error)
            assert float(answer.error) <= 1e-11 * max(1.0, float((-exact.real).exp()))
            assert exact.real <= float(answer.log_size_bound)
    whole = line_sum(tilted, one, step, frequencies, none, most=frequencies // 2 + 1)
    assert np.array_equal(whole.argument, found.argument[: frequencies // 2 + 1])


def test_the_centre_that_all_share_times_every_count_is_exact() -> None:
    tilted = tilted_to(shared_rule(0.02, Window((3.0,), 10.0, -35.0)), 3.0)
    assert tilted.offset.shape == (1, tilted.weight.shape[1])
    assert np.unique(tilted.centre).size == 1
    for centre in tilted.centre.tolist():
        assert all(Fraction(centre) * count == Fraction(centre * count) for count in COUNTS)
    assert abs(tilted.drift).max() <= 0.1 * tilted.spread.min() ** 0.5


def test_steps_of_one_rate_and_like_noise_share_their_nodes() -> None:
    def batches(steps: list[tuple[float, float]]) -> list[tuple[bool, int]]:
        group = [(GaussianSummand(shift, rate=rate), 1.0) for shift, rate in steps]
        found = GaussianSummand.sources(group)
        assert sum(source.steps for source in found) == len(steps)
        return [(source.is_shared, source.counts.size) for source in found]  # type: ignore[attr-defined]

    like = [(1.0 + 1e-3 * k, 0.01) for k in range(100)]
    assert batches(like) == [(True, 64), (True, 36)]
    assert batches(like[:7]) == [(False, 7)]
    assert batches([(shift, 0.01 + 1e-6 * k) for k, (shift, _) in enumerate(like)]) == [(False, 64), (False, 36)]
    assert batches([(2.0**k, 0.01) for k in range(9)]) == [(False, 9)]
    assert batches([*like[:8], *((3.0 + 0.01 * k, 0.02) for k in range(9)), (5.0, 0.01)]) == [
        (True, 8),
        (True, 9),
        (False, 1),
    ]


@pytest.mark.parametrize("direction", ["add", "remove"])
def test_a_schedule_of_noise_contains_the_truth(direction: Direction) -> None:
    run = hs.compose([hs.Gaussian(sigma).poisson(0.02) * (3 + k) for k, sigma in enumerate(SIGMAS[:8])])
    bound = hs.account(run, direction).delta(0.5)
    assert bound.method == "contour"
    exact = exact_delta(run.pairs(direction), 0.5, digits=10)
    assert exact.low <= Fraction(float(bound.upper))
    assert Fraction(float(bound.lower)) <= exact.high
    assert float(bound.upper) - float(bound.lower) <= 1e-9 * float(bound.upper)


def test_where_noise_changes_from_step_to_step_the_contour_comes_before_lines_of_rare_losses() -> None:
    """These take 10 ms for each kind of noise."""
    run = hs.compose([hs.Gaussian(1.0 + 0.005 * k).poisson(0.003) * 8 for k in range(16)])
    bound = hs.account(run, "remove").epsilon(1e-6)
    assert (bound.method, bound.width <= 1e-9) == ("contour", True)
    few = hs.compose([hs.Gaussian(1.0 + 0.005 * k).poisson(0.003) * 18 for k in range(7)])
    assert hs.account(few, "remove").epsilon(1e-6).method == "rare large losses"


def test_a_line_that_refuses_such_a_schedule_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def refuse(curve: ContourCurve | RareCurve, delta: float) -> Bound:
        asked.append(type(curve))
        raise ContourRefusal("length", "a rule would need too many nodes")

    for engine in (ContourCurve, RareCurve):
        monkeypatch.setattr(engine, "epsilon", refuse)
    run = hs.compose([hs.Gaussian(0.6 + 0.005 * k).poisson(0.1) for k in range(8)])
    bound = hs.account(run, "remove").epsilon(1e-6)
    assert asked == [ContourCurve, RareCurve]
    assert bound.notes[-1] == "the contour handed over: a rule would need too many nodes"
