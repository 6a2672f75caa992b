"""Runs of one law and nearly as many steps share plans, rules and transforms, and each contains its own truth."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.certified import Certified
from hockeystick.engines.contour import line_sum
from hockeystick.engines.contour.laid import FEWEST
from hockeystick.exact import exact_delta
from hockeystick.laws.loss_sum import PairSum
from hockeystick.together import asked_together
from hockeystick.transforms.rule import few_bits_up

STEP = hs.Gaussian(noise_multiplier=1.2).poisson(rate=0.008)


def planned_steps(steps: int) -> float:
    return PairSum((STEP * steps).pairs("remove")).planned().total_count


def test_a_plan_is_for_no_fewer_steps_and_not_for_many_more() -> None:
    """So that centres times counts are exact, and periods long enough."""
    near = [round(2.0 ** (half / 2.0)) + off for half in range(2, 80) for off in (-1, 0, 1)]
    for steps in [*range(1, 300), *(one for one in near if 0 < one <= 2**40)]:
        planned = planned_steps(steps)
        assert planned >= steps
        assert steps >= FEWEST * planned - 1.0


def test_what_is_planned_for_others_is_the_sum_itself() -> None:
    run = STEP * 100 + hs.Laplace(2.0) * 3
    losses = PairSum(run.pairs("remove"))
    assert losses.planned() is losses


def test_runs_of_nearly_as_many_steps_share_transforms(monkeypatch: pytest.MonkeyPatch) -> None:
    """And each bracket, which contains the truth of its own number of steps, is the one found alone."""
    rows, found = 0, line_sum._deviation

    def counting(weight: Any, *args: Any) -> Any:
        nonlocal rows
        rows += len(weight)
        return found(weight, *args)

    monkeypatch.setattr(line_sum, "_deviation", counting)
    counts = [2900 + 120 * k for k in range(9)]
    assert len({planned_steps(count) for count in counts}) == 1
    curves = [hs.account(STEP * count, "remove") for count in counts]
    together = asked_together(curves, np.arange(9), np.full(9, 1e-7), "epsilon")
    assert rows <= 2
    for row, count in list(enumerate(counts))[::4]:
        lower, upper = float(np.asarray(together.lower)[row]), float(np.asarray(together.upper)[row])
        alone = hs.account(STEP * count, "remove").epsilon(1e-7)
        assert (lower, upper) == (alone.lower, alone.upper)
        assert upper - lower <= 1e-11
        parts = (STEP * count).pairs("remove")
        assert exact_delta(parts, lower, digits=13).high >= Fraction(1e-7)
        assert exact_delta(parts, upper, digits=13).low <= Fraction(1e-7)


@pytest.mark.parametrize("rate", [2e-4, 6e-4])
def test_next_to_a_cliff_a_pass_answers(rate: float) -> None:
    """Where few large losses would decide at larger tilts, a station or its neighbour reaches the epsilon."""
    step, contour = hs.Gaussian(noise_multiplier=1.6).poisson(rate), Certified(engine="contour")
    curves = [hs.account(step * count, "remove", accountant=contour) for count in (200, 500, 1300, 3600)]
    together = asked_together(curves, np.arange(4), np.full(4, 1e-6), "epsilon")
    assert float(np.max(np.asarray(together.upper) - np.asarray(together.lower))) <= 1e-10
    assert together.method == "contour"


@pytest.mark.parametrize("among", [1.0, 5.0, 80.0])
def test_numbers_of_nodes_are_rounded_alone_as_among_others(among: float) -> None:
    sizes = np.concatenate((np.arange(1.0, 3000.0, 7.0), 2.0 ** np.arange(20.0)))
    together = few_bits_up(sizes, among)
    assert together.tolist() == [few_bits_up(np.array([size]), among).item() for size in sizes]
    assert ((together >= sizes) & (together <= 1.5 * sizes)).all()
