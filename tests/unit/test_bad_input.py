"""Bad input gets a clear error: what was given, what is allowed, what to try."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import hockeystick as hs

RUN = hs.Gaussian(1.0).poisson(0.01) * 10


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: hs.Gaussian(math.nan), ValueError, "NaN"),
        (lambda: hs.Gaussian(-1.0), ValueError, "-1.0"),
        (lambda: hs.Gaussian(0.0), ValueError, "above 0"),
        (lambda: hs.Gaussian("1"), TypeError, "'1'"),
        (lambda: hs.Gaussian(math.inf), ValueError, "finite"),
        (lambda: hs.Gaussian(True), TypeError, "True"),
        (lambda: hs.Laplace(-2.0), ValueError, "-2.0"),
        (lambda: hs.Gaussian(1.0).poisson(0.0), ValueError, r"\(0, 1\]"),
        (lambda: hs.Gaussian(1.0).poisson(1.5), ValueError, "1.5"),
        (lambda: hs.Gaussian(1.0).poisson(math.nan), ValueError, "NaN"),
        (lambda: hs.Gaussian(1.0) * 0, ValueError, "at least 1"),
        (lambda: hs.Gaussian(1.0) * 2.5, TypeError, "must be an integer of at least 1, got 2.5"),
        (lambda: hs.Gaussian(1.0) * -3, ValueError, "-3"),
        (lambda: hs.account(RUN, "neighbours"), ValueError, "add-remove"),
        (lambda: hs.account(RUN, 3), TypeError, "add-remove"),
        (lambda: hs.account(RUN, tolerance=0.0), ValueError, "tolerance"),
        (lambda: hs.account("run"), TypeError, "composition"),
        (lambda: hs.account(RUN, accountant="certified"), TypeError, "accountant"),
        (lambda: hs.account(RUN).epsilon(-0.1), ValueError, r"\[0, 1\]"),
        (lambda: hs.account(RUN).epsilon(1.5), ValueError, "1.5"),
        (lambda: hs.account(RUN).epsilon(math.nan), ValueError, "NaN"),
        (lambda: hs.account(RUN).epsilon([0.1, math.nan]), ValueError, "NaN"),
        (lambda: hs.account(RUN).epsilon("1e-5"), TypeError, "delta"),
        (lambda: hs.account(RUN).delta(-1.0), ValueError, "at least 0"),
        (lambda: hs.account(RUN).delta(math.nan), ValueError, "NaN"),
        (lambda: hs.compose([]), ValueError, "at least one"),
        (lambda: hs.compose(hs.Gaussian(1.0)), TypeError, "list"),
        (lambda: hs.account(hs.Laplace(1.0).poisson(0.1), "substitute"), hs.UnknownPairError, "add-remove"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_extreme_answers_are_defined() -> None:
    curve = hs.account(RUN)
    assert curve.epsilon(1.0).upper == 0.0
    assert curve.delta(math.inf).upper == 0.0
    assert curve.epsilon(0.0).lower == math.inf
    assert curve.delta(np.array([0.0, math.inf])).upper[1] == 0.0
