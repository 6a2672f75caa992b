"""Random runs of every mechanism, scheme and relation against ball arithmetic, both questions, with no slack."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import mechanisms
from hockeystick.accountants import Exact
from hockeystick.errors import PrecisionError
from tests.random_runs import MAKERS, random_run

EXACT = Exact(digits=12)


def test_every_mechanism_is_drawn() -> None:
    known = {name for name in mechanisms.__all__ if isinstance(getattr(mechanisms, name), type)}
    of_their_own = {  # known by bounds, or composed of what is drawn: tests of their own hold them
        "AboveThreshold",
        "BestOf",
        "ExponentialMechanism",
        "Geometric",
        "PermuteAndFlip",
        "RenyiDP",
        "ReportNoisyMax",
        "ShuffledReports",
        "UserDefinedCurve",
        "ZeroConcentratedDP",
    }
    assert known - set(MAKERS) == {"Mechanism", "UserDefined"} | of_their_own


def overlap(question: str, run: hs.Composition, adjacency: str, at: float) -> float | None:
    """Ask both, and compare; the upper side, or None where ball arithmetic does not know the run."""
    try:
        exact = getattr(hs.account(run, adjacency, accountant=EXACT), question)(at)
    except (PrecisionError, hs.UnknownPairError):
        return None
    bound = getattr(hs.account(run, adjacency), question)(at)
    assert 0.0 <= bound.lower <= bound.upper, (run, adjacency, question, at, bound)
    assert bound.lower <= exact.upper, (run, adjacency, question, at, bound, exact)
    assert exact.lower <= bound.upper, (run, adjacency, question, at, bound, exact)
    return float(bound.upper)


def check(rng: np.random.Generator) -> str:
    run, adjacency = random_run(rng)
    delta, part = float(10.0 ** -rng.uniform(0.5, 60.0)), float(rng.uniform(0.2, 1.1))
    epsilon = overlap("epsilon", run, adjacency, delta)
    if epsilon is None:
        return "unknown"
    there = overlap("delta", run, adjacency, part * (epsilon if math.isfinite(epsilon) else 10.0))
    return "in part" if there is None else "contained"


@pytest.mark.parametrize("seed", range(3))
def test_random_runs_contain_the_exact_value(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    found = Counter(check(rng) for _ in range(6))
    assert found["contained"] >= 2, found


@pytest.mark.torture
@pytest.mark.parametrize("block", range(100))
def test_five_thousand_random_runs_contain_the_exact_value(block: int) -> None:
    rng = np.random.default_rng([8, block])
    found = Counter(check(rng) for _ in range(50))
    assert found["contained"] >= 20, found
