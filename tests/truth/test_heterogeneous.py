"""Runs whose every step is another: the acceptance figures at scale, and the same answers by different ways."""

from __future__ import annotations

import time

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified, Fourier
from hockeystick.bound import Bound


def ramp(steps: int) -> hs.Composition:
    return hs.compose_arrays(noise_multipliers=np.linspace(3.0, 1.0, steps), rates=0.01)


def epsilon(run: hs.Composition, accountant: hs.accountants.Accountant | None = None) -> Bound:
    bound = hs.account(run, accountant=accountant).epsilon(1e-5)
    assert isinstance(bound, Bound)
    return bound


def test_two_engines_and_the_fourier_accountant_agree() -> None:
    run = ramp(40)
    bounds = [epsilon(run), epsilon(run, Certified(1e-3, engine="lattice")), epsilon(run, Fourier(2e-5, 2.0))]
    for first in bounds:
        for second in bounds:
            assert first.lower <= second.upper
    assert bounds[0].width <= 1e-3
    assert bounds[1].width <= 1e-3


def test_a_hundred_distinct_steps_take_a_moment() -> None:
    start = time.perf_counter()
    bound = epsilon(ramp(100))
    assert bound.width <= 1e-3
    assert time.perf_counter() - start < 10.0  # half a second on a quiet machine


@pytest.mark.torture
def test_ten_thousand_distinct_steps() -> None:
    import resource

    start = time.perf_counter()
    bound = epsilon(ramp(10_000))
    assert bound.width <= 1e-3
    assert bound.contains(2.79046303735860)
    assert time.perf_counter() - start < 30.0  # under 10 s on a quiet machine of two cores
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20  # kilobytes: 1 GiB
