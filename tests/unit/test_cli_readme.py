"""The README's comparison: our cells are what the library answers today, and its truths are the benchmark's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hockeystick as hs
from benchmarks.cases import CASES, Case

README = Path(__file__).resolve().parents[2] / "README.md"
ROWS = re.findall(r"^\| `([\w-]+)` \|(.*)\|$", README.read_text(encoding="utf-8"), re.MULTILINE)


def case_of(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def test_the_table_has_rows() -> None:
    assert len(ROWS) == 6


@pytest.mark.parametrize(("name", "cells"), ROWS, ids=[name for name, _ in ROWS])
def test_our_bracket_lies_in_the_one_shown_and_holds_the_truth(name: str, cells: str) -> None:
    _, truth, ours, *_ = (cell.strip() for cell in cells.split("|"))
    case = case_of(name)
    run = hs.compose([(hs.Gaussian(s.noise_multiplier).poisson(s.rate), s.count) for s in case.steps])
    bound = hs.account(run).epsilon(case.delta)
    assert isinstance(bound, hs.Bound)
    low, high = (float(side) for side in ours.strip("[]").split(","))
    assert low <= float(bound.lower) <= float(bound.upper) <= high
    assert float(bound.lower) * (1.0 - 1e-11) <= case.truth.value <= float(bound.upper) * (1.0 + 1e-11)  # its digits
    assert high - low < 1.1e-8
    digits = len(truth.partition(".")[2])
    assert truth == f"{case.truth.value:.{digits}f}"
