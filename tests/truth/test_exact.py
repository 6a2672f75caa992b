"""The exact curves against closed forms, published digits, and a different method at high precision."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from typing import final

import pytest
from flint import arb, ctx

from hockeystick.errors import PrecisionError, UnknownPairError
from hockeystick.exact import Enclosure, Log, exact_delta, exact_epsilon
from hockeystick.exact.composite import Composite
from hockeystick.exact.contour import Contour, plan_contour
from hockeystick.exact.curve import Curve
from hockeystick.exact.exponent import Epsilon
from hockeystick.exact.gaussian import GaussianTransform
from hockeystick.exact.inverse import _Search
from hockeystick.laws import GaussianPair, LaplacePair, Pair, ReversedPair, SubsampledPair
from tests.closed_forms import gaussian_delta, mp, mpf
from tests.quadrature import two_sampled_steps


def contains(enclosure: Enclosure, value: mpf) -> bool:
    """Containment of a number of mpmath, exactly."""
    sign, mantissa, exponent, _ = value._mpf_
    return enclosure.contains((-1) ** int(sign) * int(mantissa) * Fraction(2) ** int(exponent))


def subsampled(noise: float, rate: float) -> Pair:
    return SubsampledPair(GaussianPair(noise), rate)


def within(enclosure: Enclosure, printed: str) -> bool:
    """Whether an interval agrees with a number printed to as many digits as it has."""
    ulp = Fraction(1, 10 ** len(printed.partition(".")[2]))
    return Fraction(printed) - ulp <= enclosure.low and enclosure.high <= Fraction(printed) + ulp


# --------------------------------------------------------------------------------------------------------- closed forms


@pytest.mark.parametrize("epsilon", [1.0, 5.5, 20.75, 21.0, 60.0])
@pytest.mark.parametrize("steps", [1, 7, 10_000])
def test_gaussian_closed_form_is_contained_to_50_digits(steps: int, epsilon: float) -> None:
    noise = 2.0 * math.sqrt(steps)
    with mp.workdps(200):
        truth = gaussian_delta(mp.sqrt(steps) / mpf(noise), epsilon)
        found = exact_delta([(GaussianPair(noise), steps)], epsilon, digits=50)
        assert contains(found, truth)
        assert found.digits >= 50


@pytest.mark.parametrize("epsilon", [1.0, 6.5, 21.0])  # delta about 1e-1, 1e-10, 1e-100
def test_contour_agrees_with_the_gaussian_closed_form_to_50_digits(epsilon: float) -> None:
    # the line integral does not know that its transform is Gaussian
    composite = Composite(((GaussianTransform(Fraction(1, 10_000)), 10_000),))
    found = Contour(composite, plan_contour(composite, epsilon, digits=52)).delta(Fraction(epsilon))
    with mp.workdps(200):
        truth = gaussian_delta(mpf(1), epsilon)
        enclosure = Enclosure.of_ball(found)
        assert contains(enclosure, truth)
        assert enclosure.digits >= 50


@pytest.mark.parametrize("log10_delta", [-1, -10, -100, -1000])
def test_gaussian_epsilon_inverts_delta(log10_delta: int) -> None:
    terms = [(GaussianPair(2.0), 3), (GaussianPair(1.5, 0.5), 2)]
    delta = Fraction(10) ** log10_delta
    found = exact_epsilon(terms, delta, digits=40)
    assert found.digits >= 40
    assert exact_delta(terms, found.low, digits=60).high >= delta >= exact_delta(terms, found.high, digits=60).low


@pytest.mark.parametrize(("noise", "rate", "epsilon"), [(1.0, 0.25, 0.5), (0.75, 0.5, 3.0)])
def test_two_steps_agree_with_quadrature_over_the_first_loss(noise: float, rate: float, epsilon: float) -> None:
    found = exact_delta([(subsampled(noise, rate), 2)], epsilon, digits=12)
    assert abs(Fraction(found.low) / Fraction(two_sampled_steps(epsilon, noise, rate)) - 1) < Fraction(1, 10**11)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.003, 1.0, 8.0])
def test_one_step_of_the_subsampled_gaussian_is_the_closed_form(rate: float, epsilon: float) -> None:
    with mp.workdps(120):
        s, g, order = mpf(0.7), mpf(rate), mp.exp(mpf(epsilon))
        x = s * mp.log((order - 1 + g) / g) + 1 / (2 * s)  # e^epsilon > 1 - g
        tail_q, tail_p = mp.erfc(x / mp.sqrt(2)) / 2, mp.erfc((x - 1 / s) / mp.sqrt(2)) / 2
        truth = (1 - g) * tail_q + g * tail_p - order * tail_q
        found = exact_delta([(subsampled(0.7, rate), 1)], epsilon, digits=30)
        assert contains(found, truth)
        assert found.digits >= 30


# ----------------------------------------------------------------------------------------------------- known, to digits


@pytest.mark.parametrize(
    ("direction", "delta", "epsilon"),
    [
        ("remove", 1e-7, "1.17076284"),
        ("remove", 1e-6, "0.94719569"),
        ("remove", 1e-5, "0.78238778"),
        ("remove", 1e-4, "0.62860624"),
        ("add", 1e-7, "0.82417304"),
        ("add", 1e-6, "0.74270049"),
        ("add", 1e-5, "0.65072288"),
        ("add", 1e-4, "0.54387833"),
    ],
)
def test_known_epsilons_of_ten_thousand_rare_steps(direction: str, delta: float, epsilon: str) -> None:
    pair = subsampled(0.8, 0.001)
    found = exact_epsilon([(pair if direction == "remove" else ReversedPair(pair), 10_000)], delta)
    assert within(found, epsilon)
    assert found.digits >= 15


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta", "epsilon"),
    [
        (1.5, 0.22, 10_000, 1e-12, "237.716"),
        (0.6, 0.05, 500, 5e-14, "45.16"),
        (10.0, 1e-3, 10**6, 1e-5, "0.34166"),
        (1.0, 1e-5, 10**6, 1e-5, "0.0369"),
        (1.0, 1e-6, 10**8, 1e-5, "0.0368"),
    ],
)
def test_known_epsilons_where_float_accountants_fail(
    noise: float, rate: float, steps: int, delta: float, epsilon: str
) -> None:
    assert within(exact_epsilon([(subsampled(noise, rate), steps)], delta, digits=10), epsilon)


def test_known_delta_of_two_thousand_steps() -> None:
    found = exact_delta([(subsampled(1.0, 0.01), 2000)], 2.0)
    assert found.decimal(10) == "2.549593194e-4"
    assert found.digits >= 15


# ----------------------------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("epsilon", [0.25, 2.0, 30.0])
def test_intervals_shrink_and_overlap_as_digits_grow(epsilon: float) -> None:
    pair = subsampled(0.9, 0.02)
    found = [exact_delta([(pair, 300), (ReversedPair(pair), 200)], epsilon, digits=digits) for digits in (5, 15, 40)]
    assert all(f.digits >= digits for f, digits in zip(found, (5, 15, 40), strict=True))
    assert all(a.overlaps(b) for a in found for b in found)


def test_different_lines_enclose_one_value() -> None:
    pair = subsampled(1.1, 0.015)
    near = exact_delta([(pair, 700)], 1.5, digits=12)
    split = exact_delta([(pair, 699), (subsampled(1.1, 0.015), 1)], 1.5, digits=25)
    mixed = exact_delta([(pair, 700), (GaussianPair(1e9), 1)], 1.5, digits=12)
    assert near.overlaps(split)
    assert mixed.high > split.low  # one more step never helps
    assert mixed.high < split.high * (1 + Fraction(1, 10**8))


def test_directions_are_related_by_the_symmetry_of_divergences() -> None:
    # H_{e^eps}(P || Q) = 1 - e^eps (1 - H_{e^-eps}(Q || P)), both sides exactly computable
    pair = subsampled(0.8, 0.05)
    forward = exact_delta([(pair, 50)], 0.75, digits=25)
    backward = exact_delta([(ReversedPair(pair), 50)], -0.75, digits=25)
    ctx.prec = 200
    order = arb(0.75).exp()
    low, high = (1 - order * (1 - arb(_ratio(end))) for end in (backward.low, backward.high))
    assert high > arb(_ratio(forward.low))
    assert low < arb(_ratio(forward.high))
    ctx.prec = 53


def _ratio(value: Fraction | float) -> arb:
    number = Fraction(value)
    return arb(number.numerator) / arb(number.denominator)


def test_delta_is_nearly_one_far_below_the_mean_loss() -> None:
    found = exact_delta([(subsampled(1.0, 0.01), 10**9)], 6000.0)
    assert found.low < 1 <= found.high
    assert found.digits >= 15


def test_float_ends_are_rounded_outwards() -> None:
    found = exact_delta([(GaussianPair(1.0), 1)], 1.0, digits=40)
    assert Fraction(found.lower) <= found.low <= found.high <= Fraction(found.upper)
    assert found.upper == math.nextafter(found.lower, 1.0)
    tiny = exact_delta([(GaussianPair(1.0), 1)], 100.0)
    assert tiny.lower == 0.0 < tiny.upper == 5e-324
    assert tiny.low > 0


# ----------------------------------------------------------------------------------------------------------- edge cases


def test_epsilon_at_the_ends_of_the_curve() -> None:
    pair = subsampled(1.0, 0.01)
    assert exact_epsilon([(pair, 10)], 0.0) == Enclosure(math.inf, math.inf)
    assert exact_epsilon([(pair, 10)], 1.0) == Enclosure(Fraction(0), Fraction(0))
    assert exact_epsilon([(pair, 1)], 0.5) == Enclosure(Fraction(0), Fraction(0))
    limit = exact_epsilon([(ReversedPair(pair), 10)], 0.0)
    assert limit.contains(-10 * math.log1p(-0.01)) or abs(limit.lower + 10 * math.log1p(-0.01)) < 1e-15
    assert exact_delta([(ReversedPair(pair), 10)], 0.2) == Enclosure(Fraction(0), Fraction(0))


def test_log_epsilon_is_the_divergence_of_that_order() -> None:
    pair = GaussianPair(1.0)
    near, at = (exact_delta([(pair, 1)], point, digits=30) for point in (math.log(2.0), Log(Fraction(2))))
    assert not near.overlaps(at)  # math.log(2.0) is not ln 2
    assert abs(Fraction(near.low) - Fraction(at.low)) < Fraction(1, 10**16)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: exact_delta([], 1.0), ValueError),
        (lambda: exact_delta([(GaussianPair(1.0), 0)], 1.0), ValueError),
        (lambda: exact_delta([(GaussianPair(1.0), 1)], math.nan), ValueError),
        (lambda: exact_delta([(GaussianPair(1.0), 1)], "1"), TypeError),  # type: ignore[arg-type]
        (lambda: exact_delta([(GaussianPair(1.0), 1)], 1.0, digits=0), ValueError),
        (lambda: exact_epsilon([(GaussianPair(1.0), 1)], 1.5), ValueError),
        (lambda: exact_epsilon([(GaussianPair(1.0), 1)], math.nan), ValueError),
        (lambda: exact_epsilon([(GaussianPair(1.0), 1)], None), TypeError),  # type: ignore[arg-type]
        (lambda: exact_delta([(object(), 1)], 1.0), UnknownPairError),  # type: ignore[list-item]
        (lambda: Log(Fraction(0)), ValueError),
    ],
)
def test_bad_input_is_refused(call: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()  # type: ignore[operator]


def test_the_precision_of_the_caller_is_left_alone() -> None:
    ctx.prec = 77
    exact_epsilon([(subsampled(1.0, 0.5), 50)], 1e-5)
    assert ctx.prec == 77
    ctx.prec = 53


def test_no_numerical_code_is_shared() -> None:
    # beyond parameters, errors and types nothing of ours is loaded with the exact room
    code = (
        "import sys, hockeystick.laws.allocated; from hockeystick.laws import *; before = set(sys.modules);"
        "import hockeystick.exact;"
        "new = {m for m in set(sys.modules) - before if m.startswith('hockeystick')};"
        "sys.exit(any(not m.startswith('hockeystick.exact') for m in new))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pairs_of_one_shape_add_up() -> None:
    """Noise and sensitivity doubled together change nothing: the steps are the same."""
    for one, other in (
        (LaplacePair(1.0), LaplacePair(2.0, 2.0)),
        (SubsampledPair(GaussianPair(1.0), 0.25), SubsampledPair(GaussianPair(2.0, 2.0), 0.25)),
    ):
        mixed, plain = (exact_delta(terms, 1.0, digits=10) for terms in ([(one, 2), (other, 3)], [(one, 5)]))
        assert mixed.overlaps(plain)


@final
class _Rough(Curve):
    """A delta of 1/2 e^-epsilon, known to a few digits only."""

    def infinite(self) -> arb:
        return arb(0)

    def loss_limit(self) -> arb | None:
        return None

    def guess(self, delta: Fraction) -> tuple[float, float]:
        return 0.5, 1.0

    def delta(self, epsilon: Epsilon, digits: int, *, floor: Fraction = Fraction(0)) -> arb:
        assert isinstance(epsilon, Fraction)
        return (-arb(float(epsilon))).exp() / 2 * arb(1, 0.01)


def test_a_value_that_straddles_the_target_decides_nothing() -> None:
    search = _Search(_Rough(), Fraction(1, 4), 10)
    for epsilon in (Fraction(69, 100), Fraction(70, 100)):  # on either side of ln 2, each within a hundredth
        search.excess(epsilon, 10)
        assert search.low == 0
        assert search.high is None
    search.excess(Fraction(3, 4), 10)
    search.excess(Fraction(6, 10), 10)
    assert search.low == Fraction(6, 10)
    assert search.high == Fraction(3, 4)


def test_a_line_beside_next_to_no_noise_is_refused_in_words() -> None:
    """At the tilts asked for, the tilted loss of the sampled step has no spread that float64 tells from 0."""
    sampled = SubsampledPair(GaussianPair(0.045), 0.99993)
    with pytest.raises(PrecisionError, match="decays too slowly"):
        exact_epsilon([(sampled.reversed(), 78), (LaplacePair(0.045), 3)], 3.56e-31, digits=3)
