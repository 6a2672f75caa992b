"""The budget accountant in diffprivlib itself: totals that are proved, budgets that are kept, tools that take it."""

from __future__ import annotations

import math

import diffprivlib
import numpy as np
import pytest
from diffprivlib.utils import BudgetError

import hockeystick as hs
from hockeystick.integrations.diffprivlib import BudgetAccountant

SPENDS = [(0.05, 0.0)] * 20 + [(0.1, 1e-7)] * 30


def test_the_total_is_proved_and_below_the_composition_theorem() -> None:
    ours, theirs = (kind(slack=1e-6, spent_budget=SPENDS) for kind in (BudgetAccountant, diffprivlib.BudgetAccountant))
    epsilon, delta = ours.total()
    run = hs.ApproximateDP(0.05) * 20 + hs.ApproximateDP(0.1, 1e-7) * 30
    assert ours.composition == run
    known = hs.account(run).epsilon(delta)
    assert known.lower <= epsilon <= known.upper
    assert epsilon < theirs.total()[0]
    assert delta >= theirs.total()[1] * (1 - 1e-15)
    exact = hs.account(run, accountant=hs.accountants.Exact()).delta(epsilon)
    assert exact.upper <= delta


def test_without_slack_the_total_is_the_sum_rounded_up() -> None:
    accountant = BudgetAccountant(spent_budget=[(0.1, 0.0)] * 10)
    assert accountant.total() == (math.nextafter(1.0, 2.0), 0.0)
    assert BudgetAccountant().total() == (0.0, 0.0)
    assert BudgetAccountant(spent_budget=[(math.inf, 0.0)]).total() == (math.inf, 0.0)
    assert BudgetAccountant(delta=0.5, slack=0.1, spent_budget=[(0.0, 0.25)]).total()[0] == 0.0


def fits(accountant: diffprivlib.BudgetAccountant) -> bool:
    try:
        return bool(accountant.check(0.01, 0.0))
    except BudgetError:
        return False


def test_a_budget_is_kept_and_more_fits_into_it() -> None:
    fitting = []
    for kind in (diffprivlib.BudgetAccountant, BudgetAccountant):
        accountant = kind(epsilon=1.0, delta=1e-5, slack=1e-5)
        while fits(accountant):
            accountant.spend(0.01, 0.0)
        with pytest.raises(BudgetError):
            accountant.spend(0.01, 0.0)
        assert accountant.total()[0] <= 1.0
        fitting.append(len(accountant))
    theirs, ours = fitting
    assert ours > theirs


def test_tools_of_diffprivlib_spend_from_it_and_what_remains_can_be_spent() -> None:
    accountant = BudgetAccountant(epsilon=2.0, delta=0.0)
    data = np.linspace(0.0, 1.0, 100)
    diffprivlib.tools.mean(data, epsilon=0.5, bounds=(0, 1), accountant=accountant)
    with accountant:
        diffprivlib.tools.mean(data, epsilon=0.25, bounds=(0, 1))
    assert accountant.total() == (0.75, 0.0)
    left, _ = accountant.remaining()
    assert 1.25 - 1e-12 <= left <= 1.25


def test_bad_spends_are_refused_as_diffprivlib_refuses_them() -> None:
    for kind in (diffprivlib.BudgetAccountant, BudgetAccountant):
        accountant = kind(epsilon=1.0, delta=0.1)
        for epsilon, delta, error in ((-1.0, 0.0, ValueError), (0.1, 2.0, ValueError), ("a", 0.0, TypeError)):
            with pytest.raises(error):
                accountant.spend(epsilon, delta)
        with pytest.raises(ValueError, match="Slack"):
            accountant.total(slack=0.2)
        assert len(accountant) == 0
