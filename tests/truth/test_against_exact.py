"""Random compositions: the contour and the certified lattice contain the exact value, with no slack."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from hockeystick.accountants import Certified
from hockeystick.engines.contour.curve import ContourCurve
from hockeystick.engines.contour.placing import ContourRefusal
from hockeystick.errors import PrecisionError
from hockeystick.exact import Enclosure, exact_delta
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair, Pair, SubsampledPair
from hockeystick.laws.loss_sum import PairSum

Parts = tuple[tuple[Pair, int], ...]

LATTICE = Certified(tolerance=1e-2, points=1 << 17, engine="lattice")
AGREEMENT = 1e-10


def response(probability: Fraction) -> DiscretePair:
    return DiscretePair((probability, 1 - probability), (1 - probability, probability))


def random_pair(rng: np.random.Generator) -> Pair:
    sigma, rate = float(10.0 ** rng.uniform(-0.5, 2.0)), float(10.0 ** rng.uniform(-4.0, 0.0))
    kind = rng.random()
    pair: Pair
    if kind < 0.7:
        pair = SubsampledPair(GaussianPair(sigma), rate)
    elif kind < 0.75:
        pair = GaussianPair(sigma)
    elif kind < 0.87:
        pair = response(Fraction(int(rng.integers(51, 99)), 100))
        pair = pair.subsampled(rate) if rng.random() < 0.5 else pair
    else:
        pair = SubsampledPair(LaplacePair(float(10.0 ** rng.uniform(-0.5, 1.5))), rate)
    return pair.reversed() if rng.random() < 0.5 else pair


def random_parts(rng: np.random.Generator) -> Parts:
    steps = int(10.0 ** rng.uniform(1.0, 8.0))
    first = (random_pair(rng), steps)
    return (first, (random_pair(rng), max(1, steps // 10))) if rng.random() < 0.2 else (first,)


def contour_is_right(parts: Parts, delta: float) -> tuple[str, float, Enclosure | None]:
    """What the contour did, an epsilon, and the exact delta there."""
    curve = ContourCurve(PairSum(parts), AGREEMENT)
    try:
        upper = float(curve.epsilon(delta).upper)
        bound = curve.delta(upper)
    except ContourRefusal:
        return "refused", 0.0, None
    if not 0.0 < upper < math.inf:
        return "trivial", upper, None
    try:
        exact = exact_delta(parts, upper, digits=13)
    except PrecisionError:
        return "unknown", upper, None
    assert exact.low <= Fraction(delta), (parts, delta)
    assert Fraction(float(bound.lower)) <= exact.high, (parts, upper, bound)
    assert exact.low <= Fraction(float(bound.upper)), (parts, upper, bound)
    assert bound.upper <= 1e-300 or bound.width <= AGREEMENT * bound.lower, (parts, upper, bound)
    return "contained", upper, exact


def check(rng: np.random.Generator) -> str:
    parts, delta = random_parts(rng), float(10.0 ** -rng.uniform(1.0, 100.0))
    found, epsilon, exact = contour_is_right(parts, delta)
    curve = LATTICE.directed(parts)
    if exact is None:
        bound = curve.epsilon(delta)
        assert 0.0 <= bound.lower <= bound.upper
        return found
    at = curve.delta(epsilon)
    assert Fraction(float(at.lower)) <= exact.high, (parts, epsilon, at)
    assert exact.low <= Fraction(float(at.upper)), (parts, epsilon, at)
    return found


@pytest.mark.parametrize("seed", range(1))
def test_random_compositions_contain_the_exact_value(seed: int) -> None:
    rng = np.random.default_rng(20240705 + seed)
    found = Counter(check(rng) for _ in range(10))
    assert found["contained"] >= 6, found


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(50))
def test_many_random_compositions_contain_the_exact_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = Counter(check(rng) for _ in range(100))
    assert found["contained"] >= 60, found
