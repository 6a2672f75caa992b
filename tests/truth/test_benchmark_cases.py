"""The truths in the benchmark's table, computed again by ball arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import mpmath
import pytest

from benchmarks.cases import CASES, Case, Step
from hockeystick.exact import Enclosure
from hockeystick.exact.evaluate import curve_of, exact_epsilon
from hockeystick.exact.exponent import exact_epsilon_of
from hockeystick.laws import GaussianPair, Pair, SubsampledPair
from hockeystick.laws.allocated import AllocatedCurve
from hockeystick.laws.curve import ChordPair

# Minutes in ball arithmetic, or out of its reach; benchmarks/README.md says how the latter are known.
SLOW = {"rare", "rarer"}
OTHERWISE_KNOWN = {"distinct-200", "tiny-noise", "responses", "tuned", "round", "round-low-noise"}


def removed(step: Step) -> Pair:
    """The pair of one step when the example is removed: the worse direction in all these cases."""
    base = GaussianPair(step.noise_multiplier)
    return base if step.rate == 1.0 else SubsampledPair(base, step.rate)


def test_truth_of_randomised_responses_is_a_sum_of_binomial_terms() -> None:
    (case,) = [case for case in CASES if case.name == "responses"]
    ((step,),) = (case.steps,)
    truth, lies = Fraction(step.noise_multiplier), 1 - Fraction(step.noise_multiplier)
    p, q = truth / lies, lies / truth
    terms = [
        (comb(step.count, k) * truth**k * lies ** (step.count - k), (p**k * q ** (step.count - k)))
        for k in range(step.count + 1)
    ]

    def delta(epsilon: Fraction) -> Fraction:
        with mpmath.workdps(40):
            power = Fraction(mpmath.nstr(mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator), 38))
        return sum(max(Fraction(0), mass * (1 - power / ratio)) for mass, ratio in terms)

    middle, radius = Fraction(case.truth.value), Fraction(case.truth.radius)
    assert delta(middle - radius) > Fraction(case.delta) > delta(middle + radius)


@pytest.mark.parametrize("name", ["round", "round-low-noise"])
def test_truth_of_a_round_of_random_allocation(name: str) -> None:
    (case,) = [case for case in CASES if case.name == name]
    ((step,),) = (case.steps,)
    pair = ChordPair(AllocatedCurve(GaussianPair(step.noise_multiplier), step.count))
    middle, radius = Fraction(case.truth.value), Fraction(case.truth.radius)
    curve = curve_of([(pair, 1)])  # the line of one end serves the other
    above, below = (
        Enclosure.of_ball(curve.delta(exact_epsilon_of(place), 14)).at_least(0)
        for place in (middle - radius, middle + radius)
    )
    assert above.low > Fraction(case.delta) > below.high


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.torture if case.name in SLOW else ())
        for case in CASES
        if case.name not in OTHERWISE_KNOWN
    ],
    ids=lambda case: case.name,
)
def test_truth_of_benchmark_case(case: Case) -> None:
    exact = exact_epsilon([(removed(step), step.count) for step in case.steps], case.delta, digits=15)
    truth, radius = Fraction(case.truth.value), Fraction(case.truth.radius)
    assert exact.low - radius <= truth <= exact.high + radius
    assert exact.high - exact.low <= Fraction(1, 10**12) * exact.high
