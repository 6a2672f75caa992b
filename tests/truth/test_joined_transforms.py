"""Batches of a fixed size under substitution: transforms against balls and fractions, curves beside lattices."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx, fmpq

import hockeystick as hs
from hockeystick.accountants import Certified
from hockeystick.independent.laws import JoinedNormal, Laplace
from hockeystick.laws import (
    BinomialPair,
    DiscreteGaussianPair,
    DiscretePair,
    GaussianPair,
    LaplacePair,
    Pair,
    WorstCasePair,
)
from hockeystick.laws.joined import JoinedPair
from hockeystick.laws.joined_rule import JoinedSummand
from hockeystick.laws.loss_sum import PairSum
from hockeystick.mechanisms.base import Mechanism
from hockeystick.transforms.log_moments import log_moments
from hockeystick.transforms.rule import LossRule, Window

LATTICE = Certified(engine="lattice")


@pytest.fixture(autouse=True)
def _digits() -> object:
    before, ctx.prec = ctx.prec, 110
    yield
    ctx.prec = before


def rule_of(pair: Pair, window: Window, log_drop: float = -math.inf) -> LossRule:
    rules = PairSum([(pair, 1)]).dropping(log_drop).rules(window)
    assert rules is not None
    return rules[0]


def sum_of(rule: LossRule, exponent: Any) -> Any:
    """The rule's own sum at an exponent, exactly, and what its floats may be off by."""
    columns = (rule.log_weight[0], rule.loss[0], rule.weight_error[0], rule.loss_error[0])
    total, off = acb(0), arb(0)
    for log_q, loss, weight_error, loss_error in zip(*(column.tolist() for column in columns), strict=True):
        term = (arb(log_q) + exponent * arb(loss)).exp()
        total, off = total + term, off + abs(term) * (arb(weight_error) + abs(exponent) * arb(loss_error))
    return total, off * arb("1.01")


def moment_of(pair: JoinedPair, z: Any) -> Any:
    """``E_P e^{zL}`` in balls, by the densities that the checker derives for itself."""
    base = pair.base
    assert isinstance(base, GaussianPair | LaplacePair)
    law = JoinedNormal if isinstance(base, GaussianPair) else Laplace
    return law(Fraction(base.shift), Fraction(pair.rate), "joined").moment(z)


@pytest.mark.parametrize("accuracy", [-8.0, -50.0])
@pytest.mark.parametrize(
    ("base", "rate", "theta"),
    [
        (GaussianPair(1.0, 2.0), 0.01, 3.0),
        (GaussianPair(20.0), 0.5, 90.0),
        (GaussianPair(0.25), 2.0**-20, 1.5),
        (GaussianPair(3.0), 1.0 - 2.0**-30, 0.125),
        (LaplacePair(1.0, 2.0), 0.01, 3.0),
        (LaplacePair(0.125), 0.75, 20.0),
        (LaplacePair(50.0), 2.0**-20, 60.0),
    ],
)
def test_rules_say_how_far_off_they_are(base: Pair, rate: float, theta: float, accuracy: float) -> None:
    """At all frequencies planned for, and at others: from no error to nothing but error."""
    pair = JoinedPair(base, rate)
    planned = 4.0 / base.nodes(-30.0).loss.std()
    exponents = np.array([1.0 + theta, -0.25 * theta, 1.0 + 2.0 * theta])
    rule = rule_of(pair, Window(tuple(exponents.tolist()), planned, accuracy))
    errors = rule.quadrature.error(exponents)
    for exponent, (still,) in zip(exponents.tolist(), errors.tolist(), strict=True):
        assert still <= 3e-3 if accuracy > -10.0 else still <= 1e-13
        moment = moment_of(pair, acb(exponent - 1.0)).real
        for frequency in (0.0, planned, 3.0 * planned):
            up_to = rule.quadrature.error_up_to(frequency, exponent, np.array([still]))
            found, off = sum_of(rule, acb(exponent, frequency))
            allowed = moment * arb(float(up_to[0])) + off
            if math.isfinite(float(up_to[0])):
                truth = moment_of(pair, acb(exponent - 1.0, frequency)) if frequency else moment
                assert abs(found - truth) <= allowed
        own = log_moments(rule, np.array([exponent]))
        assert abs(arb(float(own.value[0, 0])) - moment.log()) <= arb(float(own.total_error[0, 0]))


@pytest.mark.parametrize("panels", [2, 3])
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 0.01), (4.0, 0.5), (40.0, 0.9)])
def test_panels_that_are_too_long_say_so(
    monkeypatch: pytest.MonkeyPatch, noise: float, rate: float, panels: int
) -> None:
    """Equal ones, at ever higher frequencies: from little error to nothing but error."""
    monkeypatch.setattr(JoinedSummand, "_edges", lambda _, __, top, ___: np.linspace(0.0, top, panels + 1))
    pair, exponent = JoinedPair(GaussianPair(noise), rate), 1.5
    rule = rule_of(pair, Window((exponent,), 0.0, -30.0))
    still = rule.quadrature.error(np.array([exponent]))[0]
    moment, seen = moment_of(pair, acb(exponent - 1.0)).real, []
    for frequency in (0.0, *(noise * np.geomspace(1.0, 300.0, 7)).tolist()):
        bound = float(rule.quadrature.error_up_to(frequency, exponent, still)[0])
        found, off = sum_of(rule, acb(exponent, frequency))
        if math.isfinite(bound):
            error = abs(found - moment_of(pair, acb(exponent - 1.0, frequency)))
            assert error <= moment * arb(bound) + off
            seen.append(bound)
    assert any(1e-12 < bound < 1e-1 for bound in seen)


@pytest.mark.parametrize("log_drop", [-12.0, -60.0, -500.0])
@pytest.mark.parametrize(("noise", "rate"), [(1.0, 1e-4), (8.0, 0.01)])
def test_what_is_left_out_is_told(noise: float, rate: float, log_drop: float) -> None:
    pair = JoinedPair(GaussianPair(noise), rate)
    rule = rule_of(pair, Window((60.0 * noise, 0.0, 1.0), 0.0, -40.0), log_drop)
    (dropped,) = rule.dropped.tolist()
    assert 0.0 < dropped <= 1.01 * math.exp(log_drop)
    for exponent in (0.0, 1.0):  # all of Q, all of P
        found, off = sum_of(rule, arb(exponent))
        assert abs(found - 1).real <= arb(dropped) + off
        assert abs(found - 1).real >= arb(rate * dropped) * arb("1e-3") - off


def balls(*numbers: Fraction) -> list[Any]:
    return [arb(fmpq(number.numerator, number.denominator)) for number in numbers]


def exact_binomial(trials: int) -> DiscretePair:
    """The pair of binomial noise as exact fractions."""
    masses = [Fraction(math.comb(trials, k), 2**trials) for k in range(trials + 1)]
    return DiscretePair((Fraction(0), *masses), (*masses, Fraction(0)))


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 2**20), 1 - Fraction(1, 2**30)])
@pytest.mark.parametrize("trials", [1, 2, 9, 30])
def test_tables_join_as_exact_vectors_do(trials: int, rate: Fraction) -> None:
    """With and without an atom at loss 0, with infinite losses of both measures."""
    table = BinomialPair(trials).atoms.joined(rate)
    assert table is not None
    exact = exact_binomial(trials).joined(rate)
    rows = [balls(p, q) for p, q in zip(map(Fraction, exact.p), map(Fraction, exact.q), strict=True) if p > 0 and q > 0]
    for exponent in (0.0, 0.5, 1.0, 4.0, -3.0):
        truth = sum((q * ((p / q).log() * exponent).exp() for p, q in rows), arb(0))
        found, off = arb(0), arb(0)
        for log_q, loss, error, loss_error in zip(
            table.log_q.tolist(), table.loss.tolist(), table.error.tolist(), table.loss_error.tolist(), strict=True
        ):
            term = (arb(log_q) + exponent * arb(loss)).exp()
            found, off = found + term, off + term * ((arb(error) + abs(exponent) * arb(loss_error)).exp() - 1)
        assert abs(found - truth) <= off
        assert off <= truth * arb("1e-12")
    still = np.flatnonzero(table.loss == 0.0)
    (rest,) = balls(sum((Fraction(q) for p, q in zip(exact.p, exact.q, strict=True) if p == q), Fraction(0)))
    own = [
        (arb(log).exp(), error)
        for log, error in zip(table.log_p[still].tolist(), table.error[still].tolist(), strict=True)
    ]
    assert abs(sum((mass for mass, _ in own), arb(0)) - rest) <= sum(
        (mass * (arb(off).exp() - 1) for mass, off in own), arb(0)
    )
    infinite = [p for p, q in zip(exact.p, exact.q, strict=True) if q == 0]
    assert sum(map(Fraction, infinite)) <= Fraction(table.infinite_p) <= sum(map(Fraction, infinite)) * Fraction(1.0001)


@pytest.mark.parametrize(
    "base",
    [GaussianPair(1.0), LaplacePair(1.0, 2.0), DiscreteGaussianPair(2.0), WorstCasePair(1.0, 0.125)],
    ids=lambda base: type(base).__name__,
)
def test_batches_of_everyone_join_nothing(base: Pair) -> None:
    assert JoinedPair(base, 1.0).summand() == base.summand()


def test_losses_of_joined_tables_are_known_as_fractions() -> None:
    table = WorstCasePair(1.0, 0.125).atoms.joined(Fraction(1, 4))
    assert table is not None
    assert table.precise is not None
    low, middle, high = table.precise
    assert middle == 0 == low + high
    (found,) = balls(high)
    assert abs(found - ((arb(1).exp() + 3) / 4).log()) <= arb("1e-30")


@pytest.mark.parametrize("delta", [1e-6, 1e-60])
@pytest.mark.parametrize(
    ("step", "count", "width"),
    [
        (hs.Gaussian(1.0), 1000, 1e-11),
        (hs.Gaussian(8.0), 60, 1e-11),
        (hs.Laplace(2.0), 800, 1e-10),
        (hs.DiscreteLaplace(2.0, values="counts"), 500, 1e-11),
        (hs.Binomial(400, values="counts"), 500, 1e-7),
    ],
    ids=str,
)
def test_brackets_are_narrow_and_lie_within_those_of_lattices(
    step: Mechanism, count: int, width: float, delta: float
) -> None:
    pair = step.without_replacement(batch_size=1, population=20).pair("substitute")
    ours, theirs = (engine.directed(((pair, count),)).epsilon(delta) for engine in (Certified(), LATTICE))
    assert isinstance(ours, hs.Bound)
    assert isinstance(theirs, hs.Bound)
    assert theirs.lower <= ours.lower <= ours.upper <= theirs.upper
    assert ours.width <= width * float(ours.lower)
