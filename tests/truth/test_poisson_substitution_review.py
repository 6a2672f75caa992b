"""Poisson samples under substitution: what a second reading found."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.laws.vectors import DiscretePair

RATE = 0.1
WITHOUT, OTHER, RECORD = (0.01, 0.99), (0.5, 0.5), (0.26, 0.74)  # C, B and A of the derivation


def hockey_stick(epsilon: float, p: np.ndarray, q: np.ndarray) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def test_one_lopsided_pair_for_both_relations_covers_the_other_record_too() -> None:
    """(B, C) has the pair under remove, and not its reverse: the joined pair of the two orders would say too little."""
    stated = DiscretePair(OTHER, WITHOUT)
    for a in np.linspace(-5.0, 5.0, 201).tolist():  # what is stated is true of A, B and C
        p, q = np.array(OTHER), np.array(WITHOUT)
        least = min(hockey_stick(a, p, q), hockey_stick(a, q, p))
        record = np.array(RECORD)
        assert hockey_stick(a, record, q) <= hockey_stick(a, p, q) + 1e-15
        assert max(hockey_stick(a, record, p), hockey_stick(a, p, record)) <= least + 1e-15
    step = hs.UserDefined(remove=stated, substitute=stated).poisson(RATE)
    x, y = ((1.0 - RATE) * np.array(WITHOUT) + RATE * np.array(drawn) for drawn in (RECORD, OTHER))
    strong = hs.RandomizedResponse(0.9)
    curve = hs.account(step + strong, adjacency="substitute")
    for back in (0.05, 0.1, 0.2, 0.3):
        epsilon = math.log(9.0) - back
        for p, q in ((x, y), (y, x)):
            both = np.outer(p, (0.9, 0.1)).ravel(), np.outer(q, (0.1, 0.9)).ravel()
            assert hockey_stick(epsilon, *both) <= curve.delta(epsilon).upper


def test_little_noise_is_sampled_without_waiting_for_outcomes_that_are_hardly_ever_kept() -> None:
    pair = hs.Laplace(0.01).poisson(RATE).pair("substitute")
    losses = pair.sample(np.random.default_rng(7), 20_000)
    assert abs(float((losses > 1.0).mean()) - RATE) < 0.01
    assert float((losses < -1.0).mean()) == 0.0


@pytest.mark.parametrize("measure", ["P", "Q"])
@pytest.mark.parametrize("step", [hs.Laplace(1.5), hs.DiscreteLaplace(2.0, 3)])
def test_samples_have_the_law_that_is_accounted(step: hs.Laplace | hs.DiscreteLaplace, measure: str) -> None:
    pair = step.poisson(0.4).pair("substitute")
    losses = pair.sample(np.random.default_rng(5), 100_000, measure)  # type: ignore[arg-type]
    cuts = np.array([-0.31, -0.1, 0.1, 0.31])
    cells = pair.cells(cuts)
    logs = cells.log_p if measure == "P" else cells.log_q
    counts = np.bincount(np.searchsorted(cuts, losses), minlength=5) / losses.size
    assert np.abs(counts - np.exp(logs)).max() < 0.007


@pytest.mark.parametrize("epsilon", [50.0, 710.0, 1e6, 1e300])
def test_beyond_the_largest_loss_of_both_pairs_nothing_is_told(epsilon: float) -> None:
    assert hs.account(hs.Staircase(1.0).poisson(RATE), adjacency="substitute").delta(epsilon).sides == (0.0, 0.0)


def test_staircase_noise_on_samples_keeps_pure_privacy() -> None:
    curve = hs.account(hs.Staircase(1.0).poisson(RATE) * 3, adjacency="substitute")
    low, high = curve.epsilon(0.0).sides
    assert low <= high < 3.0 * math.log1p(RATE * math.expm1(2.0)) * (1.0 + 1e-6)
