"""The plan of a saved odometer: what makes no sense is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.engines.lattice.streaming_plan import Plan, Progress
from hockeystick.odometer.products import decode_progress, encode_progress

NONSENSE = [
    {"kept": 0},
    {"kept": 10},
    {"spacing": 0.0},
    {"spacing": -0.1},
    {"theta": 0.0},
    {"low": 3.0},
    {"low": 2.0},
]


@pytest.mark.parametrize("change", NONSENSE)
def test_a_plan_that_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    plan = Plan(1.0, -2.0, 2.0, 0.5, 0.5, 0.25, 16, 9, -30.0, -30.0, 40, 1e-3, 0, 0.1)
    products = np.ones(9, dtype=complex), np.ones(9, dtype=complex)
    assert decode_progress(encode_progress(Progress(plan, products, (None, None)))).plan == plan
    with pytest.raises(hs.StateError, match="plan makes no sense"):
        decode_progress(encode_progress(Progress(replace(plan, **change), products, (None, None))))
