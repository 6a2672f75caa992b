"""The stated errors of the primitives that certified numbers rest on, against ball arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx
from mpmath import mp, mpf
from scipy.special import erf, erfcx

from hockeystick.engines.contour.planned import few_bit_steps
from hockeystick.errors import check_probability
from hockeystick.numerics.fft import (
    even_smooth_length,
    fft_error,
    floored_power,
    integer_power,
    inverse_real,
    smooth_length,
    transform_real,
)
from hockeystick.numerics.normal import normal_intervals
from hockeystick.numerics.rationals import root_beside
from hockeystick.numerics.rounding import ELEMENTARY, ERF, ERFCX, POWER_STEP, U, down, exp_down, exp_up, gamma, up
from hockeystick.transforms.strip import few_bits

RNG = np.random.default_rng(20240601)


def _relative_errors(computed: np.ndarray, exact: list[arb]) -> float:
    worst = 0.0
    for value, truth in zip(computed.tolist(), exact, strict=True):
        if abs(value) >= 2.0**-1022:
            worst = max(worst, float(((arb(value) - truth) / truth).abs_upper()))
    return worst


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("exp", -700.0, 700.0), ("expm1", -40.0, 40.0), ("log1p", -0.999, 50.0), ("log", 1e-300, 1e3), ("sqrt", 0.0, 1e3)],
)
def test_elementary_functions(name: str, low: float, high: float) -> None:
    uniform = RNG.uniform(low, high, 3000)
    small = np.geomspace(1e-12, min(high, 0.9), 1000) * RNG.choice([-1.0, 1.0], 1000)
    points = np.concatenate((uniform, small[(small > low)]))
    exact = [getattr(arb(x), name)() for x in points.tolist()]
    assert _relative_errors(getattr(np, name)(points), exact) <= ELEMENTARY


def test_error_functions() -> None:
    points = np.concatenate((RNG.uniform(0.0, 30.0, 2000), np.geomspace(1e-12, 1e6, 1000)))
    scaled = [arb(x).erfc() * (arb(x) ** 2).exp() for x in points.tolist()]
    assert _relative_errors(erfcx(points), scaled) <= ERFCX
    points = np.concatenate((RNG.uniform(0.0, 6.0, 2000), np.geomspace(1e-300, 1.0, 1000)))
    assert _relative_errors(erf(points), [arb(x).erf() for x in points.tolist()]) <= ERF


@pytest.mark.parametrize("length", [64, 1000, 4096, 6075, 30_000])
def test_fft_errors_are_within_the_stated_bound(length: int) -> None:
    length = smooth_length(length)
    values = RNG.random(length) ** 8
    values /= values.sum()
    computed = transform_real(values)
    exact = [arb(v) for v in values.tolist()]
    worst = 0.0
    for k in [0, 1, 2, 7, length // 3, length // 2, *RNG.integers(0, length // 2, 2).tolist()]:
        small, large = (
            [(acb(0, -2) * acb.pi() * k * j / length).exp() for j in range(0, min(length, 256 * s), s)]
            for s in (1, 256)
        )
        truth = acb(0)
        for block, root in enumerate(large):  # powers of the root in two steps: errors do not build up
            part = acb(0)
            for v, power in zip(exact[256 * block : 256 * block + 256], small[:256], strict=False):
                part += v * power
            truth += root * part
        worst = max(worst, float((acb(computed[k].real, computed[k].imag) - truth).abs_upper()))
    assert worst <= fft_error(length)
    assert np.abs(inverse_real(computed, length) - values).max() <= 2.0 * fft_error(length) * np.abs(computed).mean()


def test_levels_of_a_transform_stay_below_the_stated_bound() -> None:
    """`docs/derivations/fourier.md`, section 4: what the levels of each radix add, for every length."""
    roots, butterfly = 9.9, {2: 1.0, 3: 4.6, 4: 2.0, 5: 7.5}
    checked = 0
    for twos, threes, fives in itertools.product(range(27), range(17), range(12)):
        length = 2**twos * 3**threes * 5**fives
        if not 8 <= length <= 2**26:
            continue
        levels = {4: twos // 2, 2: twos % 2, 3: threes, 5: fives}
        proved = sum(count * (roots + butterfly[radix]) for radix, count in levels.items()) - roots + 2.0
        assert proved * U <= 0.993 * fft_error(length)
        checked += 1
    assert checked > 1000


@pytest.mark.parametrize("length", [7, 2 * 1009])
def test_other_lengths_have_no_bound(length: int) -> None:
    with pytest.raises(ValueError, match="no error bound"):
        fft_error(length)


@pytest.mark.parametrize("least", [1, 16, 17, 2018, 2**25 - 1, 2**25])
def test_windows_are_rounded_up_to_a_length_with_a_bound(least: int) -> None:
    length = even_smooth_length(least)
    assert least <= length <= max(1.3 * least, 16)
    assert length % 2 == 0
    assert fft_error(length) > 0.0


@pytest.mark.parametrize("exponent", [1, 2, 3, 10, 1000, 12345])
def test_integer_power_errs_by_one_rounding_a_multiplication(exponent: int) -> None:
    base = np.exp(1j * RNG.uniform(-0.01, 0.01, 20)) * RNG.uniform(0.999, 1.0, 20)
    powers = integer_power(base, exponent)
    for b, p in zip(base.tolist(), powers.tolist(), strict=True):
        truth = acb(b.real, b.imag) ** exponent
        assert float(((acb(p.real, p.imag) - truth) / truth).abs_upper()) <= gamma(2.5 * exponent)


@pytest.mark.parametrize("exponent", [1, 7, 1000, 10**6, 10**12])
def test_powers_that_underflow_are_bounded_whether_they_are_computed_or_not(exponent: int) -> None:
    depths = np.linspace(0.0, 1500.0, 301)  # nats that the power falls by
    sizes = np.exp(-depths / exponent)
    powers, floors = integer_power(sizes * np.exp(0.3j), exponent), floored_power(sizes, exponent)
    for size, power, floor in zip(sizes.tolist(), powers.tolist(), floors.tolist(), strict=True):
        truth = arb(size) ** exponent
        assert float((abs(acb(power.real, power.imag)) - truth).abs_upper()) <= 1e-300 + gamma(4.0 * exponent) * truth
        assert arb(floor) >= arb(max(size, 0.5)) ** exponent
        assert floor <= max(float(arb(max(size, 0.5)) ** exponent) * (1.0 + 1e-11), 1e-303)


@pytest.mark.parametrize("count", [3, 50, 3000])
@pytest.mark.parametrize("centre", [0.0, 0.001, 3.0, 20.0])
def test_normal_masses_are_within_their_stated_error(count: int, centre: float) -> None:
    edges = np.concatenate(([-math.inf], np.sort(RNG.uniform(-36.0, 36.0 + centre, count)), [math.inf]))
    masses = normal_intervals(edges, centre)
    with mp.workdps(60):
        for i in RNG.integers(0, count + 1, 60):
            a, b = ((mpf(x) - mpf(centre)) / mp.sqrt(2) for x in edges[i : i + 2].tolist())
            exact = (mp.erfc(a) - mp.erfc(b)) / 2 if a > 0 else (mp.erfc(-b) - mp.erfc(-a)) / 2
            assert abs(mpf(float(masses.log_mass[i])) - mp.log(exact)) <= mpf(float(masses.error[i]))
            assert masses.error[i] <= 1e-9


def test_outward_rounding() -> None:
    for value in (1.0, -1.0, 1e-300, 3.7):
        assert down(value) < value < up(value)
        assert up(value, 1e-3) >= value + 1e-3 * abs(value)
    assert gamma(10) >= 10 * U
    with pytest.raises(OverflowError):
        gamma(1e16)


def test_exponentials_are_directed_at_any_size() -> None:
    """Bounds on ``factor * e^log``, no wider than a unit where numbers are subnormal."""
    logs = np.concatenate(
        (RNG.uniform(-760.0, -640.0, 3000), RNG.uniform(-746.0, -744.0, 500), RNG.uniform(-5, 5, 500))
    )
    factors = np.where(RNG.random(logs.size) < 0.5, 1.0, 10.0 ** RNG.uniform(-320.0, 0.0, logs.size))
    for log, factor in zip(logs.tolist(), factors.tolist(), strict=True):
        truth = arb(log).exp() * arb(factor)
        low, high = exp_down(log, factor), exp_up(log, factor)
        assert arb(low) <= truth <= arb(high)
        assert high > 0.0
        assert high - low <= 50.0 * U * high + 2 * 5e-324


def test_exponentials_are_rounded_outward_down_to_subnormal_numbers() -> None:
    logs = np.concatenate([np.linspace(-740.0, -700.0, 301), np.random.default_rng(5).uniform(-700.0, 50.0, 2000)])
    with mp.workdps(40):
        for log in logs.tolist():
            exact = mp.exp(mpf(log))
            assert mpf(exp_down(log)) <= exact <= mpf(exp_up(log))
            assert log < -700.0 or exp_up(log) <= exp_down(log) * (1.0 + 64.0 * U)


def test_a_product_of_complex_numbers_errs_by_at_most_a_power_step() -> None:
    first, second = (RNG.uniform(-1.0, 1.0, 4000) + 1j * RNG.uniform(-1.0, 1.0, 4000) for _ in range(2))
    worst = 0.0
    for a, b, found in zip(first.tolist(), second.tolist(), (first * second).tolist(), strict=True):
        truth = acb(a.real, a.imag) * acb(b.real, b.imag)
        worst = max(worst, float(((acb(found.real, found.imag) - truth) / truth).abs_upper()))
    assert U < worst <= POWER_STEP


def test_a_probability_of_minus_zero_is_zero() -> None:
    assert math.copysign(1.0, check_probability("delta", -0.0)) == 1.0


@pytest.mark.parametrize("outward", [up, down])
@pytest.mark.parametrize("relative", [0.0, 1e-9])
def test_infinities_moved_outward_are_what_they_were(outward: Callable[..., float], relative: float) -> None:
    """A rounding of infinity, relative to it, is no number: bounds of NaN would compare as neither side."""
    assert outward(math.inf, relative) == math.inf
    assert outward(-math.inf, relative) == -math.inf


@pytest.mark.parametrize("number", [0.0, 5e-324, 2.3e-308, 1e-200, 0.1, 1.0, 3.0, 1e200, 1.7976931348623157e308])
@pytest.mark.parametrize("aside", [0, -1, 1])
def test_a_root_is_the_float_next_to_it_or_itself(number: float, aside: int) -> None:
    square = Fraction(number) ** 2 * (1 + aside * Fraction(1, 10**100))
    below, above = root_beside(square, up=False), root_beside(square, up=True)
    assert Fraction(below) ** 2 <= square
    assert above == math.inf or square <= Fraction(above) ** 2
    assert above == (below if aside == 0 or number == 0.0 else math.nextafter(below, math.inf))


@pytest.mark.parametrize(("rounded", "bits"), [(few_bits, 12), (few_bit_steps, 21)])
def test_steps_have_few_bits_whatever_powers_and_logarithms_are_off_by(
    rounded: Callable[[np.ndarray], np.ndarray], bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their multiples are exact: that rests on no function whose errors are not stated."""
    exp2, log2 = np.exp2, np.log2
    monkeypatch.setattr(np, "exp2", lambda x: exp2(x) * (1.0 + 8.0 * U))
    monkeypatch.setattr(np, "log2", lambda x: log2(x) * (1.0 + 8.0 * U))
    steps = np.exp(RNG.uniform(-30.0, 30.0, 1000))
    found = rounded(steps)
    assert ((1.0 - 2.0 ** (1 - bits)) * steps <= found).all()
    assert (found <= steps).all()
    mantissa = np.frexp(found)[0] * 2.0**bits
    assert (mantissa == np.rint(mantissa)).all()
