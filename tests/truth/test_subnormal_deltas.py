"""Deltas that float64 holds only in part: brackets of epsilon and of delta hold from 5e-324 to 2e-308.

The truth is exact: ball arithmetic where it knows the pair, fractions and sums of many digits elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified, Contour, Moments
from hockeystick.accountants.base import Accountant
from hockeystick.errors import PrecisionError
from hockeystick.exact import exact_delta
from hockeystick.laws import Pair, SubsampledPair
from tests.mechanism_truths import (
    Vectors,
    binomial,
    hockey_stick,
    mixed,
    mp,
    mpf,
    shifted,
    shifted_discrete_laplace,
    turned,
)

LEAST, NORMAL = 5e-324, 2.0**-1022

Truth = Callable[[float], tuple[Any, Any]]
"""From epsilon to exact numbers below and above delta."""


@dataclass(frozen=True)
class Case:
    """A run under one relation, and its curve."""

    run: hs.Step | hs.Composition
    adjacency: str
    truth: Truth


def _by_balls(run: hs.Step | hs.Composition, adjacency: str, parts: tuple[tuple[Pair, int], ...] | None = None) -> Case:
    known = parts or (run * 1).pairs(adjacency)  # type: ignore[arg-type]

    def truth(epsilon: float) -> tuple[Fraction, Fraction]:
        found = exact_delta(known, epsilon, digits=12)
        return Fraction(found.low), Fraction(found.high)

    return Case(run, adjacency, truth)


def _by_sums(run: hs.Step | hs.Composition, adjacency: str, vectors: Vectors, steps: int) -> Case:
    """One or two steps of known outcomes."""

    def truth(epsilon: float) -> tuple[mpf, mpf]:
        with mp.workdps(80):
            value = hockey_stick(vectors, mp.exp(mpf(epsilon)), vectors if steps == 2 else None)
            return value * (1 - mpf(10) ** -60), value * (1 + mpf(10) ** -60)

    return Case(run, adjacency, truth)


def _discrete_gaussian(sigma: float, shift: int) -> Vectors:
    with mp.workdps(80):
        reach = math.ceil(48 * sigma) + shift  # what is left out is below e^-1100
        weights = {x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(sigma) ** 2)) for x in range(-reach, reach + 1)}
        total = mp.fsum(weights.values())
        return shifted({x: weight / total for x, weight in weights.items()}, shift)


def _integers(rng: np.random.Generator, kind: str) -> Case:
    """Noise on the integers, one step or two, sampled or not."""
    with mp.workdps(80):
        if kind == "discrete gaussian":
            sigma = float(rng.uniform(0.3, 0.9))
            step, vectors = hs.DiscreteGaussian(sigma), _discrete_gaussian(sigma, 1)
        elif kind == "discrete laplace":
            scale, shift = float(rng.uniform(0.002, 0.01)), int(rng.integers(1, 4))
            step, vectors = hs.DiscreteLaplace(scale, sensitivity=shift), shifted_discrete_laplace(scale, shift)
        else:
            trials, probability = int(rng.integers(40, 60)), float(10.0 ** rng.uniform(-8.0, -4.0))
            step, vectors = hs.Binomial(trials, probability), shifted(binomial(trials, probability), 1)
        if rng.random() < 0.5:
            rate = float(10.0 ** rng.uniform(-4.0, -0.3))
            step, vectors = step.poisson(rate), mixed(vectors, Fraction(rate) if kind == "binomial" else mpf(rate))
        adjacency = ("remove", "add")[int(rng.integers(2))]
        steps = 2 if rng.random() < 0.2 else 1
        return _by_sums(step * steps, adjacency, vectors if adjacency == "remove" else turned(vectors), steps)


def _atoms(rng: np.random.Generator, kind: str) -> Case:
    """Few outcomes, whose smallest masses or products of masses are subnormal."""
    if kind == "response":
        step: hs.Step = hs.RandomizedResponse(probability=1.0 - float(10.0 ** rng.uniform(-12.0, -2.0)))
        steps = int(rng.integers(20, 120))
    elif kind == "leak":
        step = hs.ApproximateDP(float(rng.uniform(0.0, 3.0)), float(rng.integers(0, 3000)) * LEAST)
        steps = int(rng.integers(1, 12))
    else:
        tiny = Fraction(int(rng.integers(1, 4000)), 2**1075) * int(rng.integers(1, 5))
        step, steps = hs.DiscretePair((1 - tiny, tiny), (1 - tiny / 9, tiny / 9)), int(rng.integers(1, 4))
    adjacency = ("remove", "add")[int(rng.integers(2))]
    if kind == "leak":
        return _worst_case(step, steps, adjacency)
    return _by_balls(step * steps, adjacency)


def _worst_case(step: hs.Step, steps: int, adjacency: str) -> Case:
    """The composition of one leaking step with itself, from the binomial formula."""
    assert isinstance(step, hs.ApproximateDP)
    epsilon, leak = step.epsilon, step.delta

    def truth(point: float) -> tuple[mpf, mpf]:
        with mp.workdps(400):
            e, d = mpf(epsilon), mpf(leak)
            up, a = mp.exp(e) / (1 + mp.exp(e)), mp.exp(mpf(point))
            finite = mp.fsum(
                mp.binomial(steps, k) * up**k * (1 - up) ** (steps - k) * max(1 - a * mp.exp(-e * (2 * k - steps)), 0)
                for k in range(steps + 1)
            )
            value = 1 - (1 - d) ** steps * (1 - finite)
            return value * (1 - mpf(10) ** -60), value * (1 + mpf(10) ** -60)

    return Case(step * steps, adjacency, truth)


def _line(rng: np.random.Generator, kind: str) -> Case:
    """Noise on the line, under every sampling that is known for it."""
    noise = float(10.0 ** rng.uniform(-0.5, 1.2))
    rate = float(10.0 ** rng.uniform(-4.0, -0.1))
    adjacency = ("remove", "add")[int(rng.integers(2))]
    if kind == "mixture":
        return _by_balls(hs.GaussianMixture.poisson_group(noise, rate=rate, size=int(rng.integers(1, 4))), adjacency)
    if kind == "substitution":
        return _by_balls(hs.Gaussian(noise).poisson(rate), "substitute")
    if kind == "fixed size":
        population = int(rng.integers(10, 1000))
        batch = int(rng.integers(1, population))
        step = hs.Gaussian(noise).without_replacement(batch_size=batch, population=population)
        (base, _), *_ = (hs.Gaussian(noise) * 1).pairs("substitute")
        return _by_balls(step, "substitute", ((SubsampledPair(base, batch / population), 1),))
    if kind == "gdp":
        return _by_balls(hs.GaussianDP(1.0 / noise) * int(rng.integers(1, 50)), adjacency)
    if kind == "gaussian":
        return _by_balls(hs.Gaussian(noise) * int(10.0 ** rng.uniform(0.0, 3.5)), adjacency)
    if rng.random() < 0.7:
        return _by_balls(hs.Gaussian(noise).poisson(rate), adjacency)
    steps = int(10.0 ** rng.uniform(2.5, 3.5))  # so many that the truth is quick
    return _by_balls(hs.Gaussian(float(rng.uniform(0.8, 3.0))).poisson(rate) * steps, adjacency)


def _laplace(rng: np.random.Generator, kind: str) -> Case:
    """One step: ``g (1 - sqrt(a' e^-m))`` with ``a' = 1 + (a - 1) / g`` and m the largest loss of the noise."""
    scale, rate = float(rng.uniform(0.05, 3.0)), float(10.0 ** rng.uniform(-4.0, 0.0))

    def truth(epsilon: float) -> tuple[mpf, mpf]:
        with mp.workdps(800):
            g, a = mpf(rate), mp.exp(mpf(epsilon))
            value = max(g * (1 - mp.sqrt((1 + (a - 1) / g) * mp.exp(-1 / mpf(scale)))), mpf(0))
            return value, value

    return Case(hs.Laplace(scale).poisson(rate), "remove", truth)


MAKERS: dict[str, Callable[[np.random.Generator, str], Case]] = {
    **dict.fromkeys(("gaussian", "sampled", "mixture", "substitution", "fixed size", "gdp"), _line),
    "laplace": _laplace,
    **dict.fromkeys(("discrete gaussian", "discrete laplace", "binomial"), _integers),
    **dict.fromkeys(("response", "leak", "tiny masses"), _atoms),
}


def _delta(rng: np.random.Generator) -> float:
    """Below the normal range: any exponent alike, or a few units."""
    if rng.random() < 0.3:
        return int(rng.integers(1, 40)) * LEAST
    return max(float(2.0 ** rng.uniform(-1074.0, -1021.0)), LEAST)


def _check(case: Case, delta: float, accountant: Accountant | None) -> bool:
    """The brackets of epsilon, and of delta at their ends, against the truth; False where one of them is refused."""
    try:
        curve = hs.account(case.run, case.adjacency, accountant=accountant)
        bound = curve.epsilon(delta)
        points = [float(point) for point in bound.sides if math.isfinite(float(point))]
        values = [curve.delta(point) for point in points]
        truths = [case.truth(point) for point in points]
    except (PrecisionError, hs.UnknownPairError):  # an engine asked for by name may not serve the pair
        return False
    if any(isinstance(answer, hs.Estimate) for answer in (bound, *values)):
        return False  # nothing is claimed
    context = (case.run, case.adjacency, delta, accountant, bound)
    assert isinstance(bound, hs.Bound)
    if bound.lower > 0.0:
        largest = truths[0][1] if math.isfinite(bound.lower) else case.truth(1e4)[1]
        assert largest >= as_exact(delta), context
    if bound.upper < math.inf:
        assert truths[-1][0] <= as_exact(delta), context
    for point, value, (low, high) in zip(points, values, truths, strict=True):
        assert as_exact(value.lower) <= high, (*context, point, value)
        assert as_exact(value.upper) >= low, (*context, point, value)
    return True


def as_exact(value: Any) -> mpf:
    """A float as the number that it is."""
    with mp.workdps(400):
        return mpf(float(value))


@pytest.mark.parametrize("kind", MAKERS)
def test_brackets_hold_below_the_normal_range(kind: str) -> None:
    rng = np.random.default_rng([27, *kind.encode()])
    answered = [_check(MAKERS[kind](rng, kind), _delta(rng), None) for _ in range(3)]
    assert sum(answered) >= 2


@pytest.mark.torture
@pytest.mark.parametrize("block", range(30))
@pytest.mark.parametrize("kind", MAKERS)
def test_brackets_of_any_engine_hold_below_the_normal_range(kind: str, block: int) -> None:
    rng = np.random.default_rng([23, block, *kind.encode()])
    engines: list[Accountant | None] = [
        None,
        None,
        None,
        Certified(1e-2, 1 << 14, engine="lattice"),
        Contour(),
        Moments(),
    ]
    for _ in range(10):
        _check(MAKERS[kind](rng, kind), _delta(rng), engines[int(rng.integers(len(engines)))])


@pytest.mark.parametrize("delta", [5e-324, 1e-323, 1e-322, 1e-320, 1e-318, 1e-316, 2.2e-308])
def test_closed_forms_are_narrow_below_the_normal_range(delta: float) -> None:
    for step in (hs.Gaussian(9.14075271197882), hs.Gaussian(1.0).poisson(0.01), hs.Gaussian(2.0) * 30):
        bound = hs.account(step, "remove").epsilon(delta)
        assert bound.width <= 1e-9 * bound.upper


def test_a_gaussian_curve_is_nowhere_zero() -> None:
    assert hs.account(hs.Gaussian(1.0)).delta(1e300).upper == LEAST


def test_a_leak_too_small_for_float64_is_not_none() -> None:
    """A probability of 2^-1080 is no float, and delta is at least that at any epsilon."""
    leak = Fraction(1, 2**1080)
    for steps in (1, 3):
        curve = hs.account(hs.DiscretePair((1 - leak, leak), (Fraction(1), Fraction(0))) * steps, "remove")
        assert curve.delta(math.inf).upper >= LEAST
        assert curve.delta(math.inf).lower == 0.0
        assert curve.delta(1.0).upper >= LEAST


def test_losses_of_the_least_number_add_up() -> None:
    """Each of the outcomes adds less than float64 holds; together they are twelve times the least."""
    case = _worst_case(hs.ApproximateDP(LEAST), 1000, "remove")
    low, high = case.truth(0.0)
    bound = hs.account(case.run, "remove").delta(0.0)
    assert as_exact(bound.lower) <= low
    assert high <= as_exact(bound.upper)
