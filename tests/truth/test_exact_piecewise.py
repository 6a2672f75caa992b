"""Exact curves of a few steps of subsampled Laplace noise: against closed forms, quadrature and other methods."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import acb, arb
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.errors import PrecisionError
from hockeystick.exact import Enclosure, exact_delta, exact_epsilon
from hockeystick.exact.balls import ball, precision
from hockeystick.exact.composite import Composite
from hockeystick.exact.contour import ContourCurve
from hockeystick.exact.laplace import LaplaceTransform
from hockeystick.exact.laplace_sum import LaplaceCurve
from hockeystick.exact.piecewise import PiecewiseCurve, _compose, _composed, _Series, _series, _Step, _value, _values
from hockeystick.laws import DiscretePair, LaplacePair, Pair, ReversedPair, SubsampledPair

SHAPES = [  # shift, P's and Q's share of the moved noise: remove, add, both mixed
    (Fraction(1, 2), Fraction(1, 10), Fraction(0)),
    (Fraction(1, 2), Fraction(0), Fraction(1, 4)),
    (Fraction(1, 4), Fraction(1, 3), Fraction(1, 7)),
]


def number(value: Fraction) -> mpf:
    return mpf(value.numerator) / value.denominator


def one_step(m: Fraction, a: Fraction, b: Fraction, epsilon: mpf) -> mpf:
    """P(L > eps) - e^eps Q(L > eps) of one step, from the tails of Laplace noise."""
    a_, b_, m_ = number(a), number(b), number(m)

    def loss(w: mpf) -> mpf:
        return mp.log((1 - a_ + a_ * mp.exp(w)) / (1 - b_ + b_ * mp.exp(w)))

    low, high = sorted((loss(-m_), loss(m_)))
    if epsilon >= high:
        return mpf(0)
    if epsilon < low:
        return 1 - mp.exp(epsilon)
    order = mp.exp(epsilon)
    y = (mp.log((order * (1 - b_) - (1 - a_)) / (a_ - b_ * order)) + m_) / 2  # the loss at y in [0, m] is epsilon
    plain, moved = 1 - mp.exp(-y) / 2, mp.exp(y - m_) / 2  # masses below y
    if a > b:
        plain, moved = 1 - plain, 1 - moved
    return (1 - a_) * plain + a_ * moved - order * ((1 - b_) * plain + b_ * moved)


def two_steps(m: Fraction, a: Fraction, b: Fraction, epsilon: mpf) -> mpf:
    """Over the place of the first step's noise, cut where the second step's curve has its kinks."""
    a_, b_, m_ = number(a), number(b), number(m)

    def ratios(y: mpf) -> tuple[mpf, mpf]:
        w = mp.exp(2 * y - m_)
        return 1 - a_ + a_ * w, 1 - b_ + b_ * w

    def rest(y: mpf) -> mpf:
        over, under = ratios(y)
        return over * one_step(m, a, b, epsilon - mp.log(over / under))

    cuts = [mpf(0), m_]
    for end in (mpf(0), m_):
        over, under = ratios(end)
        order = mp.exp(epsilon) * under / over
        below = a_ - b_ * order
        plain = (order * (1 - b_) - (1 - a_)) / below
        if plain > 0 and 0 < mp.log(plain) + m_ < 2 * m_:
            cuts.append((mp.log(plain) + m_) / 2)
    inside = mp.quad(lambda y: rest(y) * mp.exp(-y) / 2, sorted(cuts))
    return rest(mpf(0)) / 2 + rest(m_) * mp.exp(-m_) / 2 + inside


def contains(found: Enclosure, truth: mpf, digits: int) -> bool:
    """Whether the enclosure, to so many digits, holds a number that mpmath has to many more."""
    low, high = (number(Fraction(end)) for end in (found.low, found.high))
    doubt = abs(truth) * mpf(10) ** -(digits + 8)  # of the quadrature
    return bool(low <= truth + doubt and truth - doubt <= high and found.digits >= digits)


def enclosure(shape: tuple[Fraction, Fraction, Fraction], count: int, epsilon: Fraction, digits: int = 15) -> Enclosure:
    curve = PiecewiseCurve(Composite(((LaplaceTransform(*shape), count),)))
    return Enclosure.of_ball(curve.delta(epsilon, digits))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("place", [0.02, 0.4, 0.93])
def test_one_and_two_steps_are_what_quadrature_says(shape: tuple[Fraction, Fraction, Fraction], place: float) -> None:
    with mp.workdps(45):
        m, a, b = shape
        ends = [math.log((1 - a + a * math.exp(w)) / (1 - b + b * math.exp(w))) for w in (-float(m), float(m))]
        for count, truth in ((1, one_step), (2, two_steps)):
            epsilon = Fraction(count * (min(ends) + place * (max(ends) - min(ends))))
            found = enclosure(shape, count, epsilon)
            assert contains(found, truth(m, a, b, number(epsilon)), 15), (count, epsilon)


@pytest.mark.torture
def test_many_steps_agree_with_the_line() -> None:
    composite = Composite(((LaplaceTransform(Fraction(1), Fraction(1, 100), Fraction(0)), 100),))
    epsilon = Fraction(1, 10)
    one, other = PiecewiseCurve(composite).delta(epsilon, 10), ContourCurve(composite).delta(epsilon, 10)
    assert one.overlaps(other)


@pytest.mark.parametrize("count", [1, 5, 24])
def test_plain_noise_agrees_with_its_residues(count: int) -> None:
    composite = Composite(((LaplaceTransform(Fraction(3, 4), Fraction(1), Fraction(0)), count),))
    for epsilon in (Fraction(-1, 3), Fraction(count, 3)):
        one, other = PiecewiseCurve(composite).delta(epsilon, 15), LaplaceCurve(composite).delta(epsilon, 15)
        assert one.overlaps(other)


OFF = 1e-6


@pytest.mark.parametrize("off", ["density", "exponential", "degree"])
@pytest.mark.parametrize("count", [1, 5])
def test_what_series_miss_is_in_the_error(off: str, count: int) -> None:
    """A series that is off by what it says, or cells of too few degrees: the curve is off by less than it says."""
    transform = LaplaceTransform(Fraction(1, 4), Fraction(1, 3), Fraction(1, 7))
    with precision(96):
        step, fine = _Step(transform), _composed(transform, count, 96)
        width = step.atoms()[1]
        density, exponential = _series(step.density, 80), _series(lambda u: (width * (u - 1)).exp(), 80)
        degree = len(density.coefficients) + 4
        if off == "density":
            density = _shifted(density)
        elif off == "exponential":
            exponential = _shifted(exponential)
        else:
            degree = len(exponential.coefficients) - 1 if count > 1 else 12
            exponential = _Series(exponential.coefficients[: degree + 1], exponential.error)
        cells = _compose(step, density, exponential, degree, count)
        differences = []
        for index in range(count):
            for i in range(9):
                truth, found = _value(fine, index, arb(i) / 8), _value(cells, index, arb(i) / 8)
                assert found.contains(truth), (index, i)
                differences.append(abs(float(found.mid() - truth.mid())))
        assert max(differences) > (OFF / 100 if off != "degree" else 1e-26)  # far above the rounding


def _shifted(series: _Series) -> _Series:
    first, *others = series.coefficients
    return _Series((first + arb(OFF), *others), series.error + arb(OFF))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_series_is_within_its_error_of_the_density(shape: tuple[Fraction, Fraction, Fraction]) -> None:
    for bits in (5, 10, 20):
        with precision(96):
            step = _Step(LaplaceTransform(*shape))
            series = _series(step.density, bits)
            for i in range(33):
                u = arb(i) / 32
                row = _values(2 * u - 1, len(series.coefficients) - 1)
                value = sum((c * x for c, x in zip(series.coefficients, row, strict=True)), arb(0))
                assert abs(value - step.density(acb(u)).real) <= series.error


def _exact(value: Fraction) -> arb:
    with precision(200):
        return ball(value)


def test_a_wide_epsilon_holds_the_values_at_its_ends() -> None:
    shape = (Fraction(1, 2), Fraction(1), Fraction(0))  # plain, so that kinks are at -1, 0 and 1
    curve = PiecewiseCurve(Composite(((LaplaceTransform(*shape), 2),)))
    for middle in (Fraction(1, 3), Fraction(0), Fraction(1, 1000), Fraction(-999, 1000)):
        radius = Fraction(1, 400)
        with precision(82):
            wide = curve.formula(_exact(middle) + arb(0, float(radius)))
            ends = [curve.formula(_exact(middle + sign * radius * Fraction(99, 100))) for sign in (-1, 1)]
        assert all(wide.contains(end) for end in ends), middle
        assert wide.rad() < 0.05


def test_kinks_belong_to_both_cells() -> None:
    """Where a ball cannot tell on which side of a kink it is, it holds both; the curve is continuous there."""
    shape = (Fraction(1), Fraction(1), Fraction(0))  # plain, so that kinks are at whole numbers
    for k in (-2, 0, 2):
        at, near = enclosure(shape, 4, Fraction(k)), enclosure(shape, 4, k + Fraction(1, 10**25))
        assert at.digits >= 15
        assert at.low <= near.high * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize(("scale", "rate", "count"), [(2.0, 0.1, 20), (10.0, 0.01, 100)])
@pytest.mark.parametrize("reverse", [False, True])
def test_the_accountants_bracket_holds_the_exact_value(scale: float, rate: float, count: int, reverse: bool) -> None:
    pair: Pair = SubsampledPair(LaplacePair(scale), rate)
    pair = ReversedPair(pair) if reverse else pair
    step = hs.Laplace(scale).poisson(rate)
    curve = hs.account(step * count, "add" if reverse else "remove", tolerance=1e-6)
    epsilon = 0.2 * count * math.log1p(rate * math.expm1(1.0 / scale))
    exact, bound = exact_delta([(pair, count)], epsilon), curve.delta(epsilon)
    assert isinstance(bound, hs.Bound)
    assert exact.digits >= 15
    assert bound.lower <= exact.upper
    assert exact.lower <= bound.upper
    inverse = exact_epsilon([(pair, count)], exact.low, digits=9)
    assert inverse.overlaps(Enclosure(Fraction(epsilon), Fraction(epsilon) * (1 + Fraction(1, 10**9))))


def test_discrete_pairs_shift_epsilon() -> None:
    response = DiscretePair((0.75, 0.25), (0.25, 0.75))
    pair = SubsampledPair(LaplacePair(2.0), 0.2)
    found = exact_delta([(pair, 3), (response, 1)], 0.5)
    with mp.workdps(40):
        shift = Fraction(int(mp.log(3) * 2**120), 2**120)
    up, down = (exact_delta([(pair, 3)], Fraction(1, 2) + sign * shift, digits=25) for sign in (-1, 1))
    low, high = (Fraction(3, 4) * a + Fraction(1, 4) * b for a, b in ((up.low, down.low), (up.high, down.high)))
    assert low <= found.high * (1 + Fraction(1, 10**20))
    assert found.low <= high * (1 + Fraction(1, 10**20))
    assert found.digits >= 15


def test_very_little_noise_is_refused_with_what_to_use() -> None:
    with pytest.raises(PrecisionError, match="use the accountant Certified"):
        exact_delta([(SubsampledPair(LaplacePair(0.2), 0.1), 5)], 1.0)
