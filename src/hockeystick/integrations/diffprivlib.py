"""diffprivlib: its budget accountant, with the least epsilon that is proved for what was spent.

A spend of (epsilon, delta) is any mechanism with that guarantee. Under slack the total is epsilon at the total delta,
from the composition of their worst pairs: at most what the composition theorems of diffprivlib's own accountant give,
and never below what is proved. Without slack it is the sum. Floats stand for themselves: ten times 0.1 is above 1.0 by
5.6e-17, and does not fit a budget of 1.0.

Guarantee: the epsilon of `BudgetAccountant.total` is at least the certified upper side, or the sum where that is less;
its delta is rounded up.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import diffprivlib
from diffprivlib.utils import Budget
from diffprivlib.validation import check_epsilon_delta

from hockeystick.account import account
from hockeystick.composition import Composition, compose
from hockeystick.mechanisms import ApproximateDP
from hockeystick.numerics.rationals import float_beside

_Spends = list[tuple[float, float]]


class BudgetAccountant(diffprivlib.BudgetAccountant):
    """The accountant of diffprivlib; its parameters, and everything that takes one, stay as they are.

    Examples
    --------
    >>> spent = [(0.05, 0.0)] * 20
    >>> ours = BudgetAccountant(slack=1e-3, spent_budget=spent).total()
    >>> theirs = diffprivlib.BudgetAccountant(slack=1e-3, spent_budget=spent).total()
    >>> bool(ours[0] < theirs[0]) and ours[1] >= theirs[1]
    True
    """

    def total(self, spent_budget: _Spends | None = None, slack: float | None = None) -> Any:
        spends = self.spent_budget if spent_budget is None else spent_budget
        for epsilon, delta in spends:
            check_epsilon_delta(epsilon, delta)
        taken = self._checked(slack)
        total_delta = _total_delta(spends, taken)
        total_epsilon = _total_epsilon(spends)
        if taken > 0.0 and 0.0 < total_epsilon < math.inf:
            proved = account(_composition(spends)).epsilon(total_delta).sides[1]
            total_epsilon = min(total_epsilon, float(proved))
        return Budget(total_epsilon, total_delta)

    def _checked(self, slack: float | None) -> float:
        if slack is None:
            return float(self.slack)
        if not 0 <= slack <= self.delta:
            raise ValueError(f"Slack must be between 0 and delta ({self.delta}), inclusive. Got {slack}.")
        return float(slack)

    @property
    def composition(self) -> Composition:
        """What was spent so far, to ask anything else of it; ``ValueError`` before the first spend."""
        return _composition(self.spent_budget)


def _composition(spends: _Spends) -> Composition:
    return compose([ApproximateDP(float(epsilon), float(delta)) for epsilon, delta in spends])


def _total_epsilon(spends: _Spends) -> float:
    """The sum, rounded up; no limit where one is infinite, or not a number (which diffprivlib lets pass)."""
    if not all(epsilon < math.inf for epsilon, _ in spends):
        return math.inf
    return float_beside(sum((Fraction(epsilon) for epsilon, _ in spends), Fraction(0)), up=True)


def _total_delta(spends: _Spends, slack: float) -> float:
    """1 - (1 - slack) (1 - delta_1) ..., rounded up; 1 where one is not a number."""
    if any(math.isnan(delta) for _, delta in spends):
        return 1.0
    kept = 1 - Fraction(slack)
    for _, delta in spends:
        kept *= 1 - Fraction(delta)
    return min(float_beside(1 - kept, up=True), 1.0)
