"""What is printed of a bracket holds: every side is rounded outward, by at most one unit of its last place."""

from __future__ import annotations

import math
import struct
from decimal import ROUND_HALF_EVEN, Context, Decimal, FloatOperation, Inexact, Rounded, Subnormal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick.app.report.numbers import bracket
from hockeystick.decimals import formatted, plain, rounded_down, rounded_up
from hockeystick.laws.atoms import _table_of
from hockeystick.laws.bounded_range import two_outcomes

WIDE = Context(prec=2500, Emax=10**6, Emin=-(10**6))

floats = st.one_of(
    st.floats(0.0, 1e4), st.floats(0.0, allow_infinity=False, allow_nan=False), st.integers(0, 2000).map(float)
)
formats = st.builds(
    lambda precision, kind: ("" if precision is None else f".{precision}") + kind,
    st.one_of(st.none(), st.integers(0, 40)),
    st.sampled_from(["e", "f", "g", "E", "F", "G", "", "%"]),
).filter(bool)


def number(text: str) -> Decimal:
    """The decimal that a text states."""
    with localcontext(WIDE):
        return Decimal(text.rstrip("%")) / (100 if text.endswith("%") else 1)


def unit(text: str, specification: str) -> Decimal:
    """One in the last place that the format has, at the magnitude of the text or just below it."""
    with localcontext(WIDE):
        kind = specification[-1].lower() if specification[-1].isalpha() or specification[-1] == "%" else ""
        precision = int(specification.strip(".efgEFG%")) if "." in specification else None
        if kind in {"f", "%"}:
            return Decimal(1).scaleb(-(6 if precision is None else precision) - (2 if kind == "%" else 0))
        digits = {"e": 7, "g": 6, "": 17}[kind] if precision is None else precision + 1 if kind == "e" else precision
        stated = number(text)
        return Decimal(1).scaleb(stated.adjusted() - max(digits, 1) + 1)


@given(ends=st.tuples(floats, floats), specification=formats)
@example(ends=(0.0, 0.1), specification=".1f")
@example(ends=(9.9999, 9.9999), specification=".3g")
@example(ends=(5e-324, 5e-324), specification=".0e")
@example(ends=(1.7976931348623157e308, 1.7976931348623157e308), specification=".3%")
def test_a_printed_bracket_contains_the_bracket(ends: tuple[float, float], specification: str) -> None:
    bound = hs.Bound(min(ends), max(ends), "example")
    lower, upper = f"{bound:{specification}}".strip("[]").split(", ")
    assert number(lower) <= Decimal(bound.lower) <= Decimal(bound.upper) <= number(upper)
    with localcontext(WIDE):
        if bound.lower > 0.0:
            # a lower side that falls below a power of ten has a smaller unit than the value
            assert Decimal(bound.lower) - number(lower) <= max(unit(lower, specification), unit(upper, specification))
        assert number(upper) - Decimal(bound.upper) <= unit(upper, specification)


@given(value=floats, specification=formats)
def test_the_side_that_python_rounds_to_keeps_python_s_text(value: float, specification: str) -> None:
    text = format(value, specification)
    if specification.endswith("%"):
        return  # Python multiplies by 100 in floating point
    if number(text) <= Decimal(value):
        assert formatted(value, specification, "lower") == text
    if number(text) >= Decimal(value):
        assert formatted(value, specification, "upper") == text


@pytest.mark.parametrize(
    ("value", "specification", "lower", "upper"),
    [
        (1234567.891, ",.2f", "1,234,567.89", "1,234,567.90"),
        (1234567.891, "_.0f", "1_234_567", "1_234_568"),
        (999.96, "010,.1f", "0,000,999.9", "0,001,000.0"),
        (2.5, "+.3f", "+2.500", "+2.500"),
        (2.5001, " .3f", " 2.500", " 2.501"),
        (2.5001, "*^9.1f", "***2.5***", "***2.6***"),
        (2.5001, "<7.1f", "2.5    ", "2.6    "),
        (-2.5001, "x=8.1f", "-xxxx2.6", "-xxxx2.5"),
        (0.123456, ".1%", "12.3%", "12.4%"),
        (1.0001e-5, "#.1g", "1.e-05", "2.e-05"),
        (-1e-9, "z.1f", "-0.1", "0.0"),
        (99999.5, "g", "99999.5", "99999.5"),
        (999999.5, "g", "999999", "1e+06"),
        (0.1, "6", "   0.1", "0.10000000000000001"),
        (math.inf, "8.2f", "     inf", "     inf"),
        (0.0, ".2e", "0.00e+00", "0.00e+00"),
        (5e-324, ".1f", "0.0", "0.1"),
    ],
)
def test_each_side_by_hand(value: float, specification: str, lower: str, upper: str) -> None:
    assert (formatted(value, specification, "lower"), formatted(value, specification, "upper")) == (lower, upper)


def test_random_bits_are_rounded_outward_in_the_notation_of_the_project() -> None:
    rng = np.random.default_rng(5)
    for bits in rng.integers(0, 0x7FEF_FFFF_FFFF_FFFF, 3000).tolist():
        value = struct.unpack("d", struct.pack("Q", bits))[0]
        digits = 1 + bits % 17
        low, high = Decimal(rounded_down(value, digits)), Decimal(rounded_up(value, digits))
        assert low <= Decimal(value) <= high
        with localcontext(WIDE):
            assert high - low <= Decimal(1).scaleb(Decimal(value).adjusted() - digits + 1)
        assert float(plain(value)) == value


@pytest.mark.parametrize("specification", ["d", ".3q", "n", "09<8.2f", "<08.2f", "5^9f", "abc"])
def test_what_cannot_be_printed_truly_is_refused(specification: str) -> None:
    with pytest.raises(ValueError, match=r"[Ff]ormat|fill"):
        f"{hs.Bound(1.0, 2.0, 'example'):{specification}}"


def test_an_array_of_brackets_says_how_to_print_it() -> None:
    bound = hs.Bound(np.array([1.0, 2.0]), np.array([1.26, 2.5]), "example")
    with pytest.raises(TypeError, match="one bracket at a time"):
        f"{bound:.1f}"
    assert [f"{bound[index]:.1f}" for index in range(2)] == ["[1.0, 1.3]", "[2.0, 2.5]"]


def test_no_format_is_the_representation() -> None:
    bound = hs.Bound(0.1, 0.3, "example")
    assert f"{bound}" == repr(bound)


def test_a_bracket_in_a_report_contains_the_bracket() -> None:
    for lower, upper in ((0.123456789, 0.123456789), (1.0000049, 1.0000051), (3.3e-9, 3.4e-9), (0.0, math.inf)):
        ends = bracket(hs.Bound(lower, upper, "some method")).strip("[]").split(", ")
        assert float(ends[0]) <= lower
        assert float(ends[1]) >= upper


@pytest.mark.parametrize(
    "context",
    [
        Context(prec=3),
        Context(prec=5, rounding=ROUND_HALF_EVEN, Emax=20, Emin=-20),
        Context(traps=[Inexact, Rounded, Subnormal, FloatOperation]),
    ],
    ids=["few digits", "a short range", "traps"],
)
def test_the_callers_decimal_context_changes_nothing(context: Context) -> None:
    values = (2.58401, 1.00001e-30, 1.2345678e61, 1234567.0, 5e-324, 0.0)

    def told() -> list[str]:
        sides = [f(value, digits) for value in values for digits in (3, 5, 9) for f in (rounded_down, rounded_up)]
        return sides + [f"{hs.Bound(value, value, 'x'):{kind}}" for value in values for kind in (".4e", ".3f", ".9g")]

    expected = told()
    with localcontext(context):
        assert told() == expected
        assert hs.Bound(1.0, 2.0, "x", decimals=(Decimal(1), Decimal(2))).decimals is not None


@pytest.mark.parametrize(
    ("run", "accountant"),
    [
        (hs.ExponentialMechanism(0.1034) * 100, None),
        (hs.DiscretePair((0.5, 0.3, 0.2), (0.25, 0.7, 0.05)).poisson(0.1034) * 300, None),
        (hs.Laplace(1.0) * 1, hs.accountants.Exact(digits=20)),
    ],
)
def test_answers_do_not_depend_on_the_callers_decimal_context(
    run: hs.Composition, accountant: hs.accountants.Accountant | None
) -> None:
    with localcontext(Context(prec=3, Emax=9, Emin=-9, traps=[Inexact, Rounded, Subnormal, FloatOperation])):
        crossed = hs.account(run, accountant=accountant).epsilon(1e-5)  # first: nothing is kept of these numbers
    for kept in (_table_of, two_outcomes):
        kept.cache_clear()
    usual = hs.account(run, accountant=accountant).epsilon(1e-5)
    assert isinstance(usual, hs.Bound)
    assert isinstance(crossed, hs.Bound)
    assert (crossed.lower, crossed.upper, crossed.decimals) == (usual.lower, usual.upper, usual.decimals)
