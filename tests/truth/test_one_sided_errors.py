"""One-sided lines whose tilts leave float64, or whose atoms are hardly known: nothing is claimed that is not so."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.enumeration.outcomes import table
from hockeystick.engines.one_sided.line import OneSidedLine
from hockeystick.engines.one_sided.steps import AtomStep
from hockeystick.engines.one_sided.terms import TILTS, Placed, Terms
from hockeystick.laws.atom_table import AtomTable

STEPS = 6


def atoms() -> AtomTable:
    p, q = ((5, 20, 40, 25, 10), (10, 27, 38, 19, 6))
    every = hs.DiscretePair(tuple(Fraction(x, 100) for x in p), tuple(Fraction(x, 100) for x in q))
    found = table(every.pair("remove"))
    assert found is not None
    return found


def tilt_near(theta: float) -> int:
    return int(np.argmin(np.abs(TILTS - theta)))


@pytest.mark.parametrize("theta", [300.0, 1000.0])
def test_far_below_the_place_of_a_line_it_claims_nothing(theta: float) -> None:
    """Where both the sum and what a period brings back are beyond float64."""
    line = OneSidedLine.of(Terms([(AtomStep(atoms()), STEPS)]), Placed(0, tilt_near(theta), 2.0 / theta), 1 << 13)
    assert line.lower(0.0) <= 1.0
    assert line.upper(0.0) == math.inf


def test_masses_that_are_hardly_known_may_all_be_larger() -> None:
    """Where all losses are between those that a period brings back, these are mass, which each step may multiply."""
    known, tilt, period = atoms(), tilt_near(2.0), 5.0
    doubted = replace(known, error=np.full(known.size, 0.3))
    found = Terms([(AtomStep(doubted), STEPS)]).aliasing(Placed(0, tilt, period), 0.0)
    copies = period * np.arange(1.0, 60.0)
    lacking = float(np.exp(known.log_p - known.loss).sum()) ** STEPS * np.exp(-copies)
    brought = float(np.sum(np.exp(-TILTS[tilt] * copies) * (1.0 - lacking)))
    assert found.lower <= math.exp(-0.3 * STEPS) * brought
    assert math.exp(0.3 * STEPS) * brought <= found.upper < 10.0 * brought


def test_an_atom_whose_weight_underflows_may_weigh_most() -> None:
    """Two losses so close together, and one so wrong, that at a large tilt either may be all that there is."""
    loss, log_p = np.array([1.0 - 1e-9, 1.0]), np.log(np.array([0.5, 0.5]))
    close = AtomTable(loss, np.array([2e-9, 1e-16]), log_p, log_p - loss, np.array([1e-15, 1e-15]))
    theta = 2.0**42
    with pytest.raises(ContourRefusal, match="too fast"):
        OneSidedLine.of(Terms([(AtomStep(close), 2)]), Placed(0, tilt_near(theta), 40.0 / theta), 1 << 13)
    right = replace(close, loss_error=np.full(2, 1e-16))
    assert OneSidedLine.of(Terms([(AtomStep(right), 2)]), Placed(0, tilt_near(theta), 40.0 / theta), 1 << 13).nodes > 0
