"""Poisson samples under substitution, against sums and quadrature over what records can do.

With the record the noise is moved by x, with another in its place by x', without either it is not moved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified, Contour, Moments
from hockeystick.composition import Step
from hockeystick.laws import DiscreteGaussianPair, DiscreteLaplacePair, LaplacePair, Pair
from hockeystick.laws.substituted import SubstitutedCurve
from tests import mechanism_truths as truths
from tests.mechanism_truths import LinePair, mp, mpf


def delta(run: Any, epsilon: float, **asked: Any) -> hs.Bound:
    bound = hs.account(run, "substitute", **asked).delta(epsilon)
    assert isinstance(bound, hs.Bound)
    return bound


def discrete_laplace(scale: float, reach: int) -> dict[int, mpf]:
    """All masses but for next to nothing."""
    r = mp.exp(-1 / mpf(scale))
    return {x: (1 - r) / (1 + r) * r ** abs(x) for x in range(-reach, reach + 1)}


def moved(masses: dict[int, Any], x: int, other: int, rate: float) -> truths.Vectors:
    """Outcomes on the integers, of one record against another; where the noise has no end, but for the outermost."""
    g = mpf(rate)
    bounded = isinstance(masses[0], Fraction)
    places = sorted({y + shift for y in masses for shift in (0, x, other)})
    rows = [[truths.as_mpf(masses.get(y - shift, mpf(0))) for shift in (0, x, other)] for y in places]
    return tuple(((1 - g) * c + g * p, (1 - g) * c + g * q) for c, p, q in rows if bounded or min(c, p, q) > 0)


INTEGERS: dict[str, tuple[Step, dict[int, Any], int, float]] = {
    "discrete gaussian": (hs.DiscreteGaussian(1.5), truths.discrete_gaussian(1.5), 1, 0.125),
    "rare discrete gaussian": (hs.DiscreteGaussian(2.0, 2), truths.discrete_gaussian(2.0), 2, 1e-4),
    "discrete laplace": (hs.DiscreteLaplace(2.0, 2), discrete_laplace(2.0, 500), 2, 0.3),
    "rare discrete laplace": (hs.DiscreteLaplace(0.8), discrete_laplace(0.8, 200), 1, 1e-3),
    "binomial": (hs.Binomial(30), truths.binomial(30, 0.5), 1, 0.25),
    "binomial of large values": (hs.Binomial(16, sensitivity=3), truths.binomial(16, 0.5), 3, 0.01),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_noise_on_the_integers_is_moved_either_way(name: str) -> None:
    mechanism, masses, size, rate = INTEGERS[name]
    outcomes = moved(masses, size, -size, rate)
    step = mechanism.poisson(rate)  # type: ignore[attr-defined]
    for epsilon in (0.0, 0.01, 0.1, 0.5, 2.0):
        a = mp.exp(mpf(epsilon))
        for run, exact in (
            (step, truths.hockey_stick(outcomes, a)),
            (step * 2, truths.hockey_stick(outcomes, a, outcomes)),
        ):
            bound = delta(run, epsilon)
            assert bound.lower <= exact <= bound.upper
            assert bound.upper <= exact * (1 + mpf(2e-8)) + mpf(1e-290)


@pytest.mark.parametrize("name", INTEGERS)
def test_no_two_records_show_more(name: str) -> None:
    mechanism, masses, size, rate = INTEGERS[name]
    step = mechanism.poisson(rate)  # type: ignore[attr-defined]
    uppers = {epsilon: delta(step, epsilon).upper for epsilon in (0.0, 0.02, 0.3)}
    for x, other in product(range(-size, size + 1), repeat=2):
        outcomes = moved(masses, x, other, rate)
        for epsilon, upper in uppers.items():
            assert truths.hockey_stick(outcomes, mp.exp(mpf(epsilon))) <= upper, (x, other, epsilon)


@pytest.mark.parametrize(("scale", "rate"), [(0.5, 0.01), (1.0, 0.3), (4.0, 0.9), (0.02, 1e-6), (30.0, 1e-3)])
def test_laplace_noise_is_moved_either_way(scale: float, rate: float) -> None:
    g = Fraction(rate)
    pair = LinePair(truths.laplace_noise(scale), ((1 - g, 0.0), (g, 1.0)), ((1 - g, 0.0), (g, -1.0)))
    step = hs.Laplace(scale).poisson(rate)
    largest = math.log(1.0 - rate + rate * math.exp(1.0 / scale)) - math.log1p(-rate * -math.expm1(-1.0 / scale))
    for share in (0.0, 0.3, 0.9, 0.999):
        exact = pair.once(mp.exp(mpf(share * largest)))
        once = delta(step, share * largest)
        assert once.lower <= exact <= once.upper
        assert once.upper <= exact * (1 + mpf(1e-9)) + mpf(2e-14)
    assert delta(step, largest * (1.0 + 1e-9)).upper <= 1e-13
    for share in (0.0, 0.7):
        value = pair.twice(math.exp(share * largest))
        twice = delta(step * 2, share * largest)
        assert twice.lower <= value * (1 + truths.LINE_ERROR)
        assert value * (1 - truths.LINE_ERROR) <= twice.upper <= value * (1 + 1e-4)


@pytest.mark.parametrize("places", [(1.0, -0.5), (0.5, -0.5), (0.5, 1.0), (0.25, -1.0), (1.0, 0.0), (0.0, 1.0)])
def test_no_two_records_show_more_of_laplace_noise(places: tuple[float, float]) -> None:
    """Where both move the sum the same way the ratio is not monotone: masses of fine cells, which show no more."""
    scale, rate, (x, other) = 1.0, 0.25, places
    edges = np.linspace(-40.0, 40.0, 160_001)

    def masses(centre: float) -> truths.Array:
        return np.diff(np.where(edges < centre, np.exp(edges - centre) / 2, 1.0 - np.exp(centre - edges) / 2))

    p, q = ((1.0 - rate) * masses(0.0) + rate * masses(at) for at in (x, other))
    for epsilon in (0.0, 0.05, 0.2, 0.35):
        below = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())  # a coarser view shows no more
        assert below * (1.0 - 1e-9) - 1e-13 <= delta(hs.Laplace(scale).poisson(rate), epsilon).upper


COUNTED = {
    "counts": (hs.DiscreteGaussian(1.5, values="counts"), truths.discrete_gaussian(1.5), (0, 1)),
    "larger counts": (hs.DiscreteLaplace(2.0, 2, values="counts"), discrete_laplace(2.0, 500), (0, 1, 2)),
    "binomial counts": (hs.Binomial(20, values="counts"), truths.binomial(20, 0.5), (0, 1)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counts_are_bracketed(name: str) -> None:
    mechanism, masses, values = COUNTED[name]
    for rate, epsilon in product((0.05, 0.5), (0.0, 0.1, 0.4)):
        step = mechanism.poisson(rate)
        truth = max(
            truths.hockey_stick(moved(masses, x, other, rate), mp.exp(mpf(epsilon)))
            for x, other in product(values, repeat=2)
        )
        bound = delta(step, epsilon)
        assert bound.lower <= truth <= bound.upper
        assert bound.upper <= truth * (1 + mpf(1e-9)) + mpf(1e-290)  # of one step the bound is attained
    several = delta(mechanism.poisson(0.05) * 20, 0.2)
    assert 0.0 < several.lower < several.upper < 2.0 * several.lower


@pytest.mark.parametrize("categories", [2, 3])
def test_randomised_response_is_bracketed(categories: int) -> None:
    true = Fraction(3, 5)
    other = (1 - true) / (categories - 1)
    rate, a = Fraction(1, 4), mpf(1.05)
    reports = [[true if w == x else other for w in range(categories)] for x in range(categories)]
    worst = mpf(0)
    for without, one, two in product(range(categories), repeat=3):
        outcomes = tuple(
            ((1 - rate) * c + rate * p, (1 - rate) * c + rate * q)
            for c, p, q in zip(reports[without], reports[one], reports[two], strict=True)
        )
        worst = max(worst, truths.hockey_stick(outcomes, a))
    bound = delta(hs.RandomizedResponse(true, categories).poisson(0.25), float(mp.log(a)))
    assert bound.lower <= worst * (1 + mpf(1e-15))
    assert worst * (1 - mpf(1e-15)) <= bound.upper <= worst * (1 + mpf(1e-9))


BOTH: Sequence[tuple[Pair, Pair, Step]] = (
    (LaplacePair(1.0), LaplacePair(1.0, 2.0), hs.Laplace(1.0)),
    (DiscreteLaplacePair(2.0, 2), DiscreteLaplacePair(2.0, 4), hs.DiscreteLaplace(2.0, 2)),
    (DiscreteGaussianPair(1.5), DiscreteGaussianPair(1.5, 2), hs.DiscreteGaussian(1.5)),
)


@pytest.mark.parametrize(("remove", "substitute", "mechanism"), BOTH)
@pytest.mark.parametrize("rate", [0.001, 0.2, 0.9])
def test_the_bound_from_both_pairs_is_that_of_the_noise(
    remove: Pair, substitute: Pair, mechanism: Any, rate: float
) -> None:
    curve = SubstitutedCurve(remove, substitute, rate)
    epsilons = np.array([0.0, 1e-3, 0.02, 0.15, 0.4])
    _, above = curve.deltas(epsilons, 0.0)
    for epsilon, upper in zip(epsilons.tolist(), above.tolist(), strict=True):
        exact = delta(mechanism.poisson(rate), epsilon)
        assert exact.lower <= upper <= exact.upper * (1.0 + 1e-9) + 1e-17
        assert curve.at(epsilon)[1] == pytest.approx(upper, rel=1e-9, abs=1e-17)


def test_staircase_noise_is_bracketed() -> None:
    """Two records move the noise by 1 and by -1: cells on which the three densities are constant."""
    epsilon, gamma, rate = 1.0, 0.25, 0.2
    edges = np.unique(np.concatenate([k + np.array([0.0, gamma, 1.0 - gamma]) for k in range(-60, 61)]))
    middles, widths = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)

    def density(x: truths.Array) -> truths.Array:
        size = np.abs(x)
        whole = np.floor(size)
        return np.exp(-epsilon * (whole + (size - whole > gamma)))

    scale = float((density(middles) * widths).sum())
    p, q = (widths / scale * ((1 - rate) * density(middles) + rate * density(middles - at)) for at in (1.0, -1.0))
    step = hs.Staircase(epsilon, gamma).poisson(rate)
    for at in (0.0, 0.1, 0.25):
        shown = float(np.maximum(p - math.exp(at) * q, 0.0).sum())
        bound = delta(step, at)
        assert bound.lower <= shown * (1.0 + 1e-9)  # what a null record shows is no more
        assert shown * (1.0 - 1e-9) <= bound.upper
    both = np.outer(p, p).ravel(), np.outer(q, q).ravel()
    for at in (0.1, 0.4):
        shown = float(np.maximum(both[0] - math.exp(at) * both[1], 0.0).sum())
        bound = delta(step * 2, at)
        assert bound.lower <= shown * (1.0 + 1e-9)
        assert shown * (1.0 - 1e-9) <= bound.upper < 2.0 * shown


SEVERAL: Sequence[Step] = (
    hs.Laplace(1.0).poisson(0.1),
    hs.DiscreteGaussian(2.0).poisson(0.1),
    hs.DiscreteLaplace(1.0).poisson(0.2),
    hs.Binomial(50).poisson(0.1),
)


@pytest.mark.parametrize("step", SEVERAL, ids=repr)
def test_every_accountant_brackets_the_same(step: Step) -> None:
    exact = delta(step * 200, 5.0, accountant=Certified(1e-9))
    assert exact.upper <= exact.lower * (1 + 1e-8)
    for accountant in (Certified(1e-4, engine="lattice"), Contour(1e-6), Moments()):
        bound = delta(step * 200, 5.0, accountant=accountant)
        assert bound.lower <= exact.upper
        assert exact.lower <= bound.upper


def test_what_is_one_guarantee_is_refused() -> None:
    for mechanism in (hs.GaussianDP(1.0), hs.ApproximateDP(1.0, 1e-6), hs.ExponentialMechanism(1.0)):
        with pytest.raises(hs.UnknownPairError, match="UserDefined"):
            hs.account(mechanism.poisson(0.1), "substitute")
    stated = hs.UserDefined(LaplacePair(1.0), substitute=LaplacePair(1.0, 2.0))
    both = delta(stated.poisson(0.1), 0.05)
    exact = delta(hs.Laplace(1.0).poisson(0.1), 0.05)
    assert 0.0 == both.lower < exact.lower <= both.upper <= exact.upper * (1 + 1e-6)


def test_rates_next_to_nothing_and_to_one() -> None:
    for mechanism in (hs.Laplace(0.5), hs.DiscreteLaplace(0.5), hs.DiscreteGaussian(0.7), hs.Binomial(10)):
        for rate in (1e-300, 1e-12, 1.0 - 2.0**-53):
            bound = delta(mechanism.poisson(rate) * 3, 0.1)
            assert bound.lower <= bound.upper <= 3.01 * rate
        whole = delta(mechanism, 1.0)
        nearly = delta(mechanism.poisson(1.0 - 2.0**-53), 1.0)
        assert nearly.lower <= whole.upper
        assert whole.lower * (1.0 - 1e-9) <= nearly.upper <= whole.upper * (1.0 + 1e-9)
