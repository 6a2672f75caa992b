"""What a caller states by functions is looked at once: what contradicts itself is refused in words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr

import hockeystick as hs
from tests.truth.test_pair_cells import STATED as GAUSSIAN


@pytest.mark.parametrize(
    ("changed", "error", "says"),
    [
        ({"search": 5}, TypeError, "search must be a sequence"),
        ({"search": (1.0,)}, ValueError, "search must hold two numbers"),
        ({"search": (1.0, 0.0)}, ValueError, "two increasing numbers"),
        ({"bounds": (1.0, 2.0, 3.0)}, ValueError, "bounds must hold two numbers"),
        ({"bounds": ("a", "b")}, TypeError, "bounds must be a real number"),
        ({"bounds": (math.inf, math.inf)}, ValueError, "smallest and the largest loss"),
        ({"bounds": (math.nan, 1.0)}, ValueError, "bounds is NaN"),
        ({"mass_error": "1e-12"}, TypeError, "mass_error must be a real number"),
        ({"loss": lambda _: 3.0}, TypeError, r"shape of its argument, \(4000,\), got 3.0"),
        ({"loss": lambda x: x[1:]}, TypeError, "loss must return an array of float64"),
        ({"loss": lambda x: x.astype(object)}, TypeError, "loss must return an array of float64"),
        ({"loss": lambda x: x * math.nan}, ValueError, "loss is NaN at x = -37.0"),
        ({"loss": lambda x: np.where(x > 0.0, np.inf, x)}, ValueError, "loss must be finite"),
        ({"loss": lambda x: 0.5 - x}, ValueError, "nondecreasing"),
        ({"loss": lambda x: x}, ValueError, "is not at x = "),
        ({"loss": lambda x: x - 1.0}, ValueError, "is not at x = "),
        ({"log_cdf_p": list}, TypeError, "log_cdf_p must return an array of float64"),
        ({"log_tail_q": log_ndtr}, ValueError, "log_cdf_q and log_tail_q must be logarithms"),
        ({"log_cdf_p": lambda x: np.exp(log_ndtr(x - 1.0))}, ValueError, "log_cdf_p and log_tail_p must be logarithms"),
        (  # P and Q exchanged
            {
                "log_cdf_p": GAUSSIAN.log_cdf_q,
                "log_tail_p": GAUSSIAN.log_tail_q,
                "log_cdf_q": GAUSSIAN.log_cdf_p,
                "log_tail_q": GAUSSIAN.log_tail_p,
            },
            ValueError,
            "exchange P and Q",
        ),
    ],
)
def test_functions_that_contradict_one_another_are_refused(
    changed: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        replace(GAUSSIAN, **changed)


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize(
    ("bounds", "error", "says"),
    [
        (3, TypeError, "a curve must return a lower and an upper bound on delta, got 3"),
        (None, TypeError, "got None"),
        ((0.0,), TypeError, "a lower and an upper bound"),
        (("a", "b"), TypeError, "a bound on delta must be a real number"),
        ((0.0, math.nan), ValueError, "a bound on delta is NaN"),
        ((0.5, 0.25), ValueError, "got 0.5 and 0.25 at epsilon"),
        ((0.0, 0.0625), ValueError, "infinite, 0.125; got 0.0 and 0.0625"),
    ],
)
def test_bounds_that_contradict_one_another_are_refused(
    bounds: Any, error: type[Exception], says: str, steps: int
) -> None:
    run = hs.UserDefinedCurve(lambda _: bounds, infinite=0.125) * steps
    with pytest.raises(error, match=says):
        hs.account(run).delta(1.0)


@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 1.1, 5.0])
def test_a_stated_curve_may_be_straight_across_epsilon_0(epsilon: float, delta: float) -> None:
    """That of (epsilon, delta)-DP, with no outcome of loss 0: its upper side was refused, its lower side 0."""

    def stated(at: float) -> tuple[float, float]:
        value = delta + (1.0 - delta) * max(math.exp(epsilon) - math.exp(at), 0.0) / (math.exp(epsilon) + 1.0)
        return value * (1.0 - 1e-13), value * (1.0 + 1e-13)

    for count in (2, 10):
        found = hs.account(hs.UserDefinedCurve(stated, infinite=delta * (1.0 - 1e-13)) * count)
        truth = hs.account(hs.ApproximateDP(epsilon, delta) * count)
        for ask, values in (("epsilon", [0.02, 0.1]), ("delta", [0.0, epsilon, 0.7 * count * epsilon])):
            for value in values:
                low, high = (float(side) for side in getattr(found, ask)(value).sides)
                least, most = (float(side) for side in getattr(truth, ask)(value).sides)
                assert low <= most
                assert least <= high
                assert high - low <= 0.03 * max(high, epsilon if ask == "epsilon" else 1e-3)
