"""Rules and moments where their own errors are large: coarse rules, high frequencies, narrow noise."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from flint import acb, arb, ctx
from mpmath import mp, mpc, mpf

from hockeystick.engines.moments import log_moment
from hockeystick.engines.moments.log_moment import log_moment_bounds
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair, Pair, SubsampledPair
from hockeystick.laws.discrete_gaussian import DiscreteGaussianPair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.laws.worst_case import WorstCasePair
from hockeystick.transforms.log_moments import log_moments, tilt
from hockeystick.transforms.rule import LossRule, NoQuadrature, Window
from tests.quadrature import DIGITS, integral, normal_density, panels


@pytest.fixture(autouse=True)
def _digits() -> object:
    with mp.workdps(40):
        yield


# ---------------------------------------------------------------------------------- Laplace: panels of too low an order


def laplace_transform(scale: float, rate: float, exponent: acb) -> acb:
    """``E_Q[r^a]``, a complex, by Gauss-Legendre of far higher order; r = 1 - g + g e^u between the two atoms."""
    g, shift = arb(rate), 1 / arb(scale)

    def power(u: arb) -> acb:
        return (exponent * ((g * u.expm1()).log1p() if rate < 1.0 else u)).exp()

    ends = panels(-shift, shift, 2 + int(float(abs(exponent) * shift) / 4.0))
    inside = integral(lambda u: (-(u + shift) / 2).exp() / 4 * power(u), ends)
    return power(-shift) / 2 + power(shift) * (-shift).exp() / 2 + inside


def sum_at(z: acb, rule: LossRule) -> acb:
    """The rule's own sum."""
    nodes = zip(rule.log_weight[0].tolist(), rule.loss[0].tolist(), strict=True)
    return sum(((z * loss + log_weight).exp() for log_weight, loss in nodes), acb(0))


@pytest.mark.parametrize(("scale", "rate"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.3), (0.7, 0.9)])
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_laplace_rules_say_how_far_off_they_are_at_frequencies_beyond_their_plan(
    scale: float, rate: float, direction: str
) -> None:
    """Panels made for the real axis, asked at ever higher frequencies: from no error to nothing but error."""
    pair: Pair = LaplacePair(scale) if rate == 1.0 else SubsampledPair(LaplacePair(scale), rate)
    pair = pair if direction == "remove" else pair.reversed()
    exponent = 2.5
    rules = PairSum([(pair, 1)]).rules(Window((exponent,), 0.0, -10.0))
    assert rules is not None
    (rule,) = rules
    still = rule.quadrature.error(np.array([exponent]))[0]
    seen = []
    with ctx.workdps(DIGITS):
        moment = laplace_transform(scale, rate, acb(exponent if direction == "remove" else 1 - exponent)).real
        for frequency in (0.0, 10.0, 25.0, 40.0, 55.0, 70.0, 90.0):
            z = acb(exponent, frequency)
            exact = laplace_transform(scale, rate, z if direction == "remove" else 1 - z)
            bound = float(rule.quadrature.error_up_to(frequency, exponent, still)[0])
            off = abs(sum_at(z, rule) - exact)
            assert off <= moment * (arb(bound) + arb(1e-13) * (1 + frequency))  # of the rule's floats
            seen.append(bound)
    assert any(1e-9 < bound < 1e-1 for bound in seen)


# ------------------------------------------------------------------------------------- moments as coarse as their rules


def discrete_moment(sigma: float, sensitivity: int, order: float) -> mpf:
    with ctx.workdps(DIGITS):
        t, two = arb(order) - 1, 2 * arb(sigma) ** 2
        integers = range(-60, 200)
        noise = sum(((-arb(x * x) / two).exp() for x in integers), arb(0))
        grown = sum((((t * x * x - (1 + t) * (x - sensitivity) ** 2) / two).exp() for x in integers), arb(0))
        return mpf((grown / noise).log())


@pytest.mark.parametrize("sigma", [0.15, 0.4, 0.5, 0.8, 1.2])
@pytest.mark.parametrize("order", [1.25, 1.5, 2.0, 2.5, 3.3])
def test_moments_of_narrow_discrete_gaussians_contain_their_sums(sigma: float, order: float) -> None:
    """Where the integers are far apart in terms of the noise, a tilted sum differs from the plain one by its phase."""
    for sensitivity in (1, 2):
        found = log_moment_bounds([(DiscreteGaussianPair(sigma, sensitivity), 1)], np.array([order]))
        truth = discrete_moment(sigma, sensitivity, order)
        assert mpf(float(found.lower[0])) <= truth <= mpf(float(found.upper[0]))


@pytest.mark.parametrize("order", [1.25, 2.0, 5.0])
def test_moments_of_a_sampled_step_with_infinite_loss_contain_their_sum(order: float) -> None:
    """Where P has no mass the sample keeps what Q has; where Q has none it keeps its share."""
    epsilon, delta, rate = mpf(0.5), mpf(0.125), mpf(0.25)
    found = log_moment_bounds([(SubsampledPair(WorstCasePair(0.5, 0.125), 0.25), 1)], np.array([order]))
    losses = [(-epsilon, (1 - delta) / (1 + mp.exp(-epsilon))), (epsilon, (1 - delta) / (1 + mp.exp(epsilon)))]
    grown = (q * (1 - rate + rate * mp.exp(loss)) ** mpf(order) for loss, q in losses)
    truth = mp.log(mp.fsum(grown) + delta * (1 - rate) ** mpf(order))
    assert mpf(float(found.lower[0])) <= truth <= mpf(float(found.upper[0])) <= truth + mpf(10) ** -13


@functools.cache
def sampled_nodes(noise: float, rate: float) -> list[tuple[arb, arb]]:
    """(weight, ln r) of the trapezoidal rule of step 1/20, whose strip error is below e^-400."""
    g, m, places = arb(rate), 1 / arb(noise), (arb(k) / 20 for k in range(-300, 500))
    return [(normal_density(x) / 20, (g * (m * x - m * m / 2).expm1()).log1p()) for x in places]


@functools.cache
def sampled_moment(noise: float, rate: float, power: complex) -> mpc:
    """``ln E_Q[r^power]``."""
    with ctx.workdps(DIGITS):
        z = acb(power)
        found = sum((weight * (z * loss).exp() for weight, loss in sampled_nodes(noise, rate)), acb(0)).log()
        return mpc(mpf(found.real), mpf(found.imag))


@pytest.mark.parametrize("accuracy", [-0.1, -1.0, -3.0, -8.0])
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.1), (0.8, 0.5), (1.5, 0.01)])
def test_moments_by_coarse_rules_contain_the_integral(
    noise: float, rate: float, accuracy: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes far apart, and none a few standard deviations beyond the peaks: both errors are in the bracket."""
    monkeypatch.setattr(log_moment, "_LOG_ACCURACY", accuracy)
    monkeypatch.setattr(log_moment, "_rules", log_moment._rules.__wrapped__)
    pair = SubsampledPair(GaussianPair(noise), rate)
    for order in (1.5, 4.0):
        for own, power in ((pair, order), (pair.reversed(), 1.0 - order)):
            found = log_moment_bounds([(own, 1)], np.array([order]))
            truth = sampled_moment(noise, rate, power).real
            assert mpf(float(found.lower[0])) <= truth <= mpf(float(found.upper[0]))


@pytest.mark.parametrize("accuracy", [-0.1, -1.0, -3.0, -8.0])
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_moments_of_like_pairs_by_coarse_rules_contain_the_integrals(
    rate: float, accuracy: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs that share a batch, and of one rate, from eight on, their nodes."""
    monkeypatch.setattr(log_moment, "_LOG_ACCURACY", accuracy)
    monkeypatch.setattr(log_moment, "_batches", log_moment._batches.__wrapped__)
    few, many = (1.0, 1.1), tuple(1.0 + place / 64.0 for place in range(8))
    for noises, order in itertools.product((few, many), (1.5, 4.0)):
        pairs = [SubsampledPair(GaussianPair(noise), rate) for noise in noises]
        for own, power in ((pairs, order), ([pair.reversed() for pair in pairs], 1.0 - order)):
            found = log_moment_bounds([(pair, 3) for pair in own], np.array([order]))
            truth = 3 * sum(sampled_moment(noise, rate, power).real for noise in noises)
            assert mpf(float(found.lower[0])) <= truth <= mpf(float(found.upper[0]))


# ----------------------------------------------------------------------- rules of continuous pairs, as coarse as can be


@pytest.mark.parametrize("accuracy", [-0.1, -1.0, -3.0, -8.0])
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.1), (0.8, 0.9), (1.5, 0.01)])
def test_coarse_rules_of_sampled_gaussians_contain_the_integral(
    noise: float, rate: float, direction: str, accuracy: float
) -> None:
    pair: Pair = SubsampledPair(GaussianPair(noise), rate)
    pair = pair if direction == "remove" else pair.reversed()
    exponents = (1.5, 0.5, 4.0)
    rules = PairSum([(pair, 1)]).rules(Window(exponents, 0.0, accuracy))
    assert rules is not None
    found = log_moments(rules[0], np.array(exponents))
    for k, a in enumerate(exponents):
        power = a if direction == "remove" else 1.0 - a
        truth = sampled_moment(noise, rate, power).real
        error = float(found.total_error[k, 0])
        assert math.isinf(error) or abs(mpf(float(found.value[k, 0])) - truth) <= mpf(error)


@pytest.mark.parametrize("error", [1e-8, 1e-3])
@pytest.mark.parametrize("name", ["missing_p", "missing_q"])
def test_moments_carry_the_mass_that_a_rule_may_lack(name: str, error: float) -> None:
    """Masses as far from what they are stated to be as the rule says that they may be."""
    p, q = (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
    rules = PairSum([(DiscretePair(p, q), 1)]).rules(Window((2.0,), 0.0, -40.0))
    assert rules is not None
    exponents = np.array([0.5, 1.5, 2.0, 6.0])
    for sign in (-1.0, 1.0):
        stated = getattr(rules[0], name) + 0.99 * sign * error
        found = log_moments(replace(rules[0], **{name: stated}, dropped=np.array([error])), exponents)
        for k, a in enumerate(exponents.tolist()):
            truth = mp.log(mp.fsum(mpf(x) ** mpf(a) * mpf(y) ** (1 - mpf(a)) for x, y in zip(p, q, strict=True)))
            assert abs(mpf(float(found.value[k, 0])) - truth) <= mpf(float(found.total_error[k, 0]))


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.1), (0.8, 0.9)])
def test_rules_of_sampled_gaussians_say_how_far_off_they_are_beyond_their_plan(
    noise: float, rate: float, direction: str
) -> None:
    """Steps made for the real axis, asked at ever higher frequencies."""
    pair: Pair = SubsampledPair(GaussianPair(noise), rate)
    pair = pair if direction == "remove" else pair.reversed()
    exponent = 2.5
    (rule,) = PairSum([(pair, 1)]).rules(Window((exponent,), 0.0, -12.0)) or ()
    still = rule.quadrature.error(np.array([exponent]))[0]
    seen = []
    for frequency in (0.0, 2.0, 5.0, 10.0, 20.0, 40.0):
        z = complex(exponent, frequency)
        power = z if direction == "remove" else 1 - z
        exact = mp.exp(sampled_moment(noise, rate, power))
        moment = mp.exp(sampled_moment(noise, rate, power.real)).real
        with ctx.workdps(DIGITS):
            value = sum_at(acb(z), rule)
            found = mpc(mpf(value.real), mpf(value.imag))
        bound = float(rule.quadrature.error_up_to(frequency, exponent, still)[0])
        assert abs(found - exact) <= moment * (mpf(bound) + mpf(1e-13) * (1 + frequency))  # of the rule's floats
        seen.append((float(abs(found - exact) / moment), bound))
    assert any(off > 10.0 * seen[0][1] for off, _ in seen)  # the bound at frequency 0 would not do


# -------------------------------------------------------------------------------------- moments next to what is carried


@pytest.mark.parametrize("together", [2, 3, 8])
@pytest.mark.parametrize("top", [598.5, 599.5, 599.99, 600.5])
def test_a_moment_larger_than_any_of_its_terms_may_be_tells_the_mean(together: int, top: float) -> None:
    """Equal atoms, each just in range of the exponents, whose sum is beyond."""
    loss, log_weight = np.full(together + 1, top), np.full(together + 1, -top)
    loss[0], log_weight[0] = -1.0, -0.7
    masses = [mp.exp(mpf(q)) for q in log_weight.tolist()]
    missing = [float(1 - sum(masses)), float(1 - sum(q * mp.exp(mpf(x)) for q, x in zip(masses, loss, strict=True)))]
    none = np.zeros(loss.size)
    rule = LossRule.of_pair(loss, none, log_weight, none, count=1.0, quadrature=NoQuadrature(1))
    rule = replace(rule, missing_q=np.array(missing[:1]), missing_p=np.array(missing[1:]))
    found = tilt(rule, 2.0, log_moments(rule, np.array([2.0])))
    terms = [q * mp.exp(2 * mpf(x)) for q, x in zip(masses, loss.tolist(), strict=True)]
    mean = sum(term * mpf(x) for term, x in zip(terms, loss.tolist(), strict=True)) / sum(terms)
    assert abs(mpf(found.centre.item()) + mpf(found.drift.item()) - mean) <= found.drift_error.item() < 1e-8
