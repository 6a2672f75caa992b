"""The self-check: the assumed errors of the primitives hold here, and one that errs by more is found out."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.app.cli import main
from hockeystick.app.cli.parsing import Status
from hockeystick.app.report.content import Content
from hockeystick.app.report.receipt import checksum, receipt
from hockeystick.app.report.verification import verify
from hockeystick.app.spec.reader import from_document
from hockeystick.numerics import rounding
from hockeystick.selfcheck import NoBallArithmeticError, assumptions, quick_self_check, self_check
from hockeystick.selfcheck.assumptions import ASSUMPTIONS, Assumption, primitive

ROUNDING = [  # of numpy, math and scipy.special
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "hypot", "power", "float_power"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "atan", "atan2", "asin", "acos"),
    *("sinh", "cosh", "tanh", "arcsinh", "asinh", "arctanh", "atanh", "logaddexp", "logaddexp2"),
    *("dot", "vdot", "matmul", "inner", "einsum", "tensordot", "cumsum", "cumprod", "convolve", "bincount", "fsum"),
    *("erf", "erfc", "erfcx", "ndtr", "log_ndtr", "ndtri", "ndtri_exp", "gammaln", "lgamma", "gamma", "digamma"),
]

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "assumptions.md"

WIDER = {  # what is assumed is 16 ulp or more: one that errs by more than that
    "numpy.exp, tiny values": lambda _: 17.0,
    "math.exp, tiny values": lambda _: 17.0,
    "scipy.special.log_ndtr": lambda _: 1000.0,
    "scipy.fft.rfft": lambda value: 16.0 * math.log2(2.0 * value.size),  # 16 ulp a level
    "scipy.fft.irfft": lambda value: 16.0 * math.log2(2.0 * value.size),
}

SPECIFICATION = {
    "steps": [{"mechanism": "gaussian", "noise_multiplier": 2.0, "count": 1}],
    "guarantee": {"delta": [1e-5]},
}


def off(function: Callable[..., Any], ulps: Callable[[Any], float] = lambda _: 16.0) -> Callable[..., Any]:
    """The same function, all values too large by so many units in the last place."""

    def moved(*arguments: Any, **options: Any) -> Any:
        value = np.asarray(function(*arguments, **options))
        return (value + ulps(value) * np.spacing(np.abs(value)))[()]

    return moved


def test_every_assumption_holds_here() -> None:
    found = self_check()
    assert found.passed, found.failures
    assert len(found.measurements) == len(ASSUMPTIONS)
    assert all(one.worst > 0.0 for one in found.measurements)  # something was measured


def test_the_same_points_at_every_run() -> None:
    assert self_check("quick") == self_check("quick")


@pytest.mark.parametrize("assumption", ASSUMPTIONS, ids=lambda assumption: assumption.name)
def test_a_primitive_that_is_16_ulp_off_or_nan_is_found(
    assumption: Assumption, monkeypatch: pytest.MonkeyPatch
) -> None:
    ulps = WIDER.get(assumption.name, lambda _: 16.0)
    monkeypatch.setattr(assumptions, "ASSUMPTIONS", (assumption,))
    assert self_check("quick").passed
    for off_by in (ulps, lambda _: math.nan):
        monkeypatch.setattr(assumptions, "primitive", lambda path, by=off_by: off(primitive(path), by))
        assert self_check("quick").failures == (assumption.name,)


def test_logarithms_that_are_off_next_to_minus_one_alone_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def astray(path: str) -> Callable[..., Any]:
        call, ways = primitive(path), off(primitive(path))
        return (lambda x: np.where(x < -0.9995, ways(x), call(x))) if path == "numpy.log1p" else call

    monkeypatch.setattr(assumptions, "primitive", astray)
    assert self_check("quick").failures == ("numpy.log1p",)


@pytest.mark.parametrize("path", ["numpy.exp", "math.log1p", "scipy.special.erfcx"])
def test_the_command_fails_where_a_library_is_off(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["selfcheck", "--quick"]) == Status.OK
    assert "EXCEEDED" not in capsys.readouterr().out
    monkeypatch.setattr(path, off(primitive(path)))
    assert main(["selfcheck", "--quick", "--json"]) == Status.REFUTED
    document = json.loads(capsys.readouterr().out)
    assert not document["passed"]
    assert path in [row["primitive"] for row in document["primitives"] if not row["holds"]]
    assert main(["selfcheck", "--quick"]) == Status.REFUTED
    assert re.search(rf"{path} .*EXCEEDED", capsys.readouterr().out)


def test_without_ball_arithmetic_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(NoBallArithmeticError, match="python-flint"):
        self_check()
    assert main(["selfcheck"]) == Status.NO_ANSWER
    assert "pip install 'hockeystick[exact]'" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------------ the page


def test_the_page_states_what_the_code_assumes() -> None:
    rows = [
        tuple(cell.strip().strip("`") for cell in line.strip("|").split(" | "))
        for line in PAGE.read_text().splitlines()
        if line.startswith("| `")
    ]
    stated = {row[0]: (row[1], row[2], row[3]) for row in rows}
    assert stated == {a.name: (a.domain, f"{a.bound / a.unit[1]:.4g} {a.unit[0]}", a.constant) for a in ASSUMPTIONS}


def test_every_bound_is_the_constant_it_names() -> None:
    named = set()
    for assumption in ASSUMPTIONS:
        found = re.fullmatch(r"(?:(sqrt\(2\)|[\d.]+) )?([A-Z_]+)(?: \(2 \+ size / 4\))?", assumption.constant)
        if found is None:
            assert "gamma(" in assumption.constant or "ELEMENTARY" in assumption.constant
            continue
        factor = {None: 1.0, "sqrt(2)": 2.0**0.5}.get(found[1]) or float(found[1])
        named.add(found[2])
        if assumption.name != "math.fsum":  # in units of U
            assert assumption.bound == factor * getattr(rounding, found[2])
    assert named >= {
        "ELEMENTARY",
        "TRIGONOMETRIC",
        "ERF",
        "ERFCX",
        "LOG_NDTR",
        "POWER_STEP",
        "FFT_LEVEL",
        "SUBNORMAL",
        "U",
    }


def test_every_function_called_is_assumed_or_known_to_need_nothing() -> None:
    """Functions of numpy, math and scipy that round, wherever certified numbers are computed."""
    text = PAGE.read_text()
    source = Path(hs.__file__).parent
    called = set()
    for file in source.rglob("*.py"):
        code = file.read_text()
        called |= set(re.findall(r"\b(?:np|math|special)\.(\w+)", code)) & set(ROUNDING)
        for names in re.findall(r"from scipy\.special import (.+)", code):
            called |= set(names.split(", ")) & set(ROUNDING)
    unmentioned = {name for name in called if not re.search(rf"\b{name}\b", text)}
    assert not unmentioned


# -------------------------------------------------------------------------------------------------------- the receipt


def test_a_receipt_records_the_self_check_and_verification_states_it() -> None:
    made = receipt(from_document(SPECIFICATION))
    assert made["selfcheck"]["passed"] is True
    assert set(made["selfcheck"]["worst"]) == {assumption.name for assumption in ASSUMPTIONS}
    rows = {row.name: row.text for row in Content(made).accounting()}
    assert "assumptions.md" in rows["Given"]
    assert "ideal noise" in rows["Given"]
    assert rows["Self-check"].startswith("passed")
    found = verify(made)
    assert found.holds
    assert "self-check: passed where the receipt was made" in found.remarks
    assert "self-check: passes here" in found.remarks


@pytest.mark.parametrize("share", [1.01, "nan"])
def test_a_receipt_made_where_a_bound_was_exceeded_does_not_hold(share: object) -> None:
    made = receipt(from_document(SPECIFICATION))
    made["selfcheck"]["worst"]["numpy.exp"] = share
    made["checksum"] = checksum(made)
    found = verify(made)
    assert not found.holds
    assert any("self-check" in finding and "numpy.exp" in finding for finding in found.findings)


def test_a_receipt_of_another_processor_holds() -> None:
    made = receipt(from_document(SPECIFICATION))
    made["selfcheck"]["worst"]["numpy.exp"] *= 0.5
    made["selfcheck"]["platform"] = "another"
    made["checksum"] = checksum(made)
    assert verify(made).holds


def test_verification_fails_where_a_bound_is_exceeded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    made = receipt(from_document(SPECIFICATION))
    quick_self_check.cache_clear()
    try:
        monkeypatch.setattr(assumptions, "primitive", lambda path: off(primitive(path)))
        found = verify(made)
    finally:
        quick_self_check.cache_clear()
    assert not found.holds
    assert any("hockeystick selfcheck" in finding for finding in found.findings)


def test_a_receipt_without_a_self_check_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_self_check.cache_clear()
    monkeypatch.setitem(sys.modules, "flint", None)
    made = receipt(from_document(SPECIFICATION))
    assert made["selfcheck"] is None
    assert "python-flint" in {row.name: row.text for row in Content(made).accounting()}["Self-check"]
    found = verify(made)
    assert found.holds
    assert any("none is recorded" in remark for remark in found.remarks)
    assert any("not run here" in remark for remark in found.remarks)


# ------------------------------------------------------------------------------------------------- the caller's word


@pytest.mark.parametrize(
    "step",
    [
        hs.DiscretePair([0.75, 0.25], [0.25, 0.75]),
        hs.UserDefined(remove=hs.Laplace(2.0).pair("remove")),
        hs.UserDefined(remove=hs.Laplace(2.0).pair("remove")).poisson(0.5),
        hs.Gaussian(1.0) + hs.DiscretePair([0.75, 0.25], [0.25, 0.75]),
    ],
)
def test_bounds_of_a_stated_pair_rest_on_the_callers_word(step: hs.Step | hs.Composition) -> None:
    curve = hs.account(step)
    for bound in (curve.epsilon(delta=1e-3), curve.delta(epsilon=[0.5, 1.0])):
        assert any("caller's word" in note for note in bound.notes)


def test_bounds_of_a_built_in_mechanism_do_not() -> None:
    assert not any("word" in note for note in hs.account(hs.Gaussian(1.0).poisson(0.5)).epsilon(delta=1e-3).notes)


def test_a_receipt_of_a_stated_pair_warns() -> None:
    steps = [{"mechanism": "discrete-pair", "p": [0.75, 0.25], "q": [0.25, 0.75], "count": 2}]
    made = receipt(from_document(SPECIFICATION | {"steps": steps}))
    assert "pair-stated-by-caller" in [caution["name"] for caution in made["cautions"]]
    assert any("caller's word" in note for note in made["results"][0]["notes"])
