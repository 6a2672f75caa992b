"""Runs given as arrays are the same runs, and repeated steps are found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs


def test_arrays_are_the_steps_written_out() -> None:
    noise, rate, counts = [2.0, 1.5, 2.0, 1.0], [0.01, 0.02, 0.01, 1.0], [3, 4, 5, 6]
    run = hs.compose_arrays(noise_multipliers=noise, rates=rate, counts=counts)
    written_out = hs.compose(
        [
            (hs.Gaussian(2.0).poisson(0.01), 8),
            (hs.Gaussian(1.5).poisson(0.02), 4),
            (hs.Gaussian(1.0), 6),
        ]
    )
    assert run == written_out
    assert [count for _, count in run.steps] == [8, 4, 6]


def test_everything_broadcasts() -> None:
    noise = np.linspace(3.0, 2.5, 500)
    run = hs.compose_arrays(noise_multipliers=noise[:, None], rates=np.array([[0.01, 0.02]]), counts=7)
    assert run.total_steps == 7000
    assert len(run.steps) == 1000
    assert hs.compose_arrays(noise_multipliers=1.0, rates=0.5) == hs.Gaussian(1.0).poisson(0.5) * 1


def test_counts_do_not_overflow() -> None:
    run = hs.compose_arrays(noise_multipliers=1.0, rates=0.5, counts=np.full(4, 2**62))
    assert run.total_steps == 2**64


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"noise_multipliers": [1.0, 0.0], "rates": 0.1}, ValueError, "noise_multipliers"),
        ({"noise_multipliers": [1.0, math.nan], "rates": 0.1}, ValueError, "NaN"),
        ({"noise_multipliers": [1.0, math.inf], "rates": 0.1}, ValueError, "noise_multipliers"),
        ({"noise_multipliers": ["1"], "rates": 0.1}, TypeError, "noise_multipliers"),
        ({"noise_multipliers": 1.0, "rates": 1.5}, ValueError, "batch size"),
        ({"noise_multipliers": 1.0, "rates": True}, TypeError, "rates"),
        ({"noise_multipliers": 1.0, "rates": 0.1, "counts": 0}, ValueError, "counts"),
        ({"noise_multipliers": 1.0, "rates": 0.1, "counts": 2.0}, TypeError, "counts"),
        ({"noise_multipliers": [1.0, 2.0], "rates": [0.1, 0.2, 0.3]}, ValueError, "broadcast"),
        ({"noise_multipliers": [], "rates": 0.1}, ValueError, "empty"),
    ],
)
def test_bad_arrays_are_refused(arguments: dict[str, Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        hs.compose_arrays(**arguments)
