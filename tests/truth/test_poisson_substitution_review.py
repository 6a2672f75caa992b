"""Poisson samples under substitution: what a second reading found."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified
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
    curve = hs.account(step + strong, adjacency="substitute", accountant=Certified(1e-7))
    for back in (0.05, 0.1, 0.2, 0.3):
        epsilon = math.log(9.0) - back
        for p, q in ((x, y), (y, x)):
            both = np.outer(p, (0.9, 0.1)).ravel(), np.outer(q, (0.1, 0.9)).ravel()
            assert hockey_stick(epsilon, *both) <= curve.delta(epsilon).upper
