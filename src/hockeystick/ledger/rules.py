"""Budgets, and the rules by which releases are admitted to them.

What may be promised depends on how releases were chosen:

- ``"in-advance"``: every release was fixed before any result was seen. The certified curve of their composition counts.
- ``"gaussian-dp"``, ``"renyi"``: releases may depend on earlier results. A filter admits them
  (`hockeystick.filters`; docs/derivations/filters.md), and what is proved is its budget.

A data set has one rule from the first day. A rule that changed on the way, when an adaptive release is first asked for,
would itself depend on results: on some paths the curve would count, on others the filter, and together they may spend
more than either allows (docs/decisions/0011-a-ledger-has-one-rule.md).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast, final

from hockeystick.account import account
from hockeystick.bound import Bound, Estimate
from hockeystick.composition import Composition, Step, compose
from hockeystick.decimals import plain
from hockeystick.errors import (
    PrecisionError,
    UnknownPairError,
    check_choice,
    check_inside,
    check_positive,
    check_probability,
    check_sequence,
    public_door,
    set_fields,
    shown,
)
from hockeystick.filters import Filter, GaussianDPFilter, RenyiFilter
from hockeystick.mechanisms import ApproximateDP, GaussianDP

RULES = ("in-advance", "gaussian-dp", "renyi")
_MOST = 10**12  # repetitions looked for

Runs = Mapping[Step, int]


@final
@dataclass(frozen=True)
class Budget:
    """What a data set may spend: (epsilon, delta), or mu of Gaussian DP, or points of a privacy curve.

    Attributes
    ----------
    epsilon, delta : float, optional
        (epsilon, delta)-DP, epsilon above 0 (nats), delta in [0, 1); 0 is pure differential privacy, and for releases
        fixed in advance.
    mu, floor : float, optional
        mu-Gaussian-DP, for deltas above the floor.
    curve : tuple of (float, float), optional
        Pairs of an epsilon and the delta allowed there: all of them hold.

    Examples
    --------
    >>> print(Budget(epsilon=1.0, delta=1e-6))
    (1, 1e-6)-DP
    """

    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    floor: float = 0.0
    curve: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        curve = tuple(_point(one) for one in check_sequence("curve", self.curve))
        given = [self.epsilon is not None or self.delta is not None, self.mu is not None, bool(curve)]
        if sum(given) != 1:
            raise TypeError("a budget is epsilon and delta, or mu, or a curve: give one of them")
        set_fields(self, floor=check_probability("floor", self.floor), curve=curve)
        if self.mu is not None:
            set_fields(self, mu=check_positive("mu", self.mu))
        elif self.floor:
            raise TypeError("floor belongs to a budget of mu")
        elif not curve:
            if self.epsilon is None or self.delta is None:
                raise TypeError("epsilon and delta go together: give both")
            epsilon, delta = _point((self.epsilon, self.delta))
            set_fields(self, epsilon=epsilon, delta=delta)

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """The pairs of epsilon and delta that must hold; none for mu."""
        return () if self.mu is not None else self.curve or ((self.epsilon, self.delta),)  # type: ignore[return-value] # both are checked above

    @property
    def delta_read(self) -> float:
        """Where epsilon is read unless another delta is asked for: the (first) delta given; 1e-6 for mu."""
        return self.points[0][1] if self.points else 1e-6

    def __str__(self) -> str:
        if self.mu is not None:
            return f"{plain(self.mu)}-GDP" + (f" above delta {plain(self.floor)}" if self.floor else "")
        return " and ".join(f"({plain(epsilon)}, {plain(delta)})-DP" for epsilon, delta in self.points)

    def document(self) -> dict[str, Any]:
        """Plain data that `Budget.read` reads."""
        if self.mu is not None:
            return {"mu": self.mu, "floor": self.floor}
        return {"curve": [list(point) for point in self.points]}

    @staticmethod
    def read(document: Mapping[str, Any]) -> Budget:
        """The budget written by `document`."""
        if "mu" in document:
            return Budget(mu=document["mu"], floor=document["floor"])
        points = tuple((epsilon, delta) for epsilon, delta in document["curve"])
        return Budget(epsilon=points[0][0], delta=points[0][1]) if len(points) == 1 else Budget(curve=points)


def _point(given: object) -> tuple[float, float]:
    """An epsilon, and the delta allowed there."""
    both = check_sequence("curve", given)
    if len(both) != 2:
        raise TypeError(f"curve must hold pairs of an epsilon and the delta allowed there, got {shown(given)}")
    epsilon, delta = check_positive("epsilon", both[0]), check_probability("delta", both[1])
    return epsilon, check_inside("delta", delta) if delta else 0.0


@final
@dataclass(frozen=True)
class Total:
    """What has been spent.

    Attributes
    ----------
    epsilon : Bound
        At `delta`; certified for the way in which releases were chosen.
    delta : float
        Where epsilon is read.
    statement : str
        What is proved of everything admitted, in a sentence.
    within_budget : bool
        False only where a correction recorded more than the budget allows.
    releases : int
        Releases that count, reservations included.
    broken : tuple of str
        What specifications of such releases said themselves is not as accounted, with their entries: where there is
        any, `epsilon` and `statement` hold only if every assumption held.
    period : str
        The period whose releases alone these are, where budgets are by period; else "".
    """

    epsilon: Bound
    delta: float
    statement: str
    within_budget: bool
    releases: int
    broken: tuple[str, ...] = ()
    period: str = ""


def check_rule(rule: str, budget: Budget) -> str:
    """The rule, if the budget is one that it can keep."""
    check_choice("rule", rule, RULES)
    if rule == "renyi" and len(budget.points) != 1:
        raise ValueError(f"the rule renyi needs a budget of one epsilon and delta, got {budget}")
    if rule == "gaussian-dp" and (budget.floor or len(budget.points) > 1):
        raise ValueError(f"the rule gaussian-dp needs a budget of mu, or of one epsilon and delta, got {budget}")
    if rule != "in-advance" and not all(delta for _, delta in budget.points):
        raise ValueError(f"the rule {rule} needs a delta above 0, got {budget}: only in-advance keeps a delta of 0")
    return rule


@public_door
def fits(runs: Runs, budget: Budget, rule: str, adjacency: str) -> bool:
    """Whether a composition satisfies the budget, by the rule: proved."""
    if not runs:
        return True
    whole = compose(list(runs.items()))
    if rule != "in-advance":
        return _filter(budget, rule, adjacency).allows(whole)
    if budget.mu is not None and not budget.floor:  # exact, where every step has a mu of its own
        with contextlib.suppress(UnknownPairError):
            return _filter(budget, "gaussian-dp", adjacency).allows(whole)
    if budget.mu is not None:
        return _upper(account(whole, adjacency).mu(floor=budget.floor)) <= budget.mu
    return all(  # far below a budget delta is tiny, and epsilon the cheaper question; either proves it
        _is_far_below(whole, adjacency, epsilon, delta)
        or _upper(found := _epsilon(whole, adjacency, delta)) <= epsilon
        or (found.sides[0] <= epsilon and _upper(account(whole, adjacency).delta(epsilon)) <= delta)
        for epsilon, delta in budget.points
    )


@lru_cache(maxsize=64)
def _is_far_below(whole: Composition, adjacency: str, epsilon: float, delta: float) -> bool:
    """Whether Chernoff's bound proves a point of the budget: it decides most questions, at a tenth of the cost."""
    return all(curve.is_below(epsilon, delta) for curve in account(whole, adjacency).directed.values())


def room(runs: Runs, more: Composition, budget: Budget, rule: str, adjacency: str) -> int:
    """How many more repetitions of a composition fit: the largest number that is proved to."""

    def fit(times: int) -> bool:
        try:
            return fits(added(runs, more, times), budget, rule, adjacency)
        except PrecisionError:  # of more steps than brackets are proved for
            return False

    if not fits(added(runs, more), budget, rule, adjacency):
        return 0
    low, high = 1, 2
    while high <= _MOST and fit(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fit(middle) else (low, middle)
    return low


def total(runs: Runs, budget: Budget, rule: str, adjacency: str, delta: float | None) -> Total:
    """What a composition has spent; epsilon at the budget's delta, if no other is asked for."""
    at = budget.delta_read if delta is None else check_probability("delta", delta)
    within, releases = fits(runs, budget, rule, adjacency), sum(runs.values())
    if within and rule != "in-advance":
        epsilon = _promised(budget, rule, adjacency, at) if runs else composed_epsilon(runs, adjacency, at)
        return Total(epsilon, at, _filter(budget, rule, adjacency).statement, within, releases)
    spent = composed_epsilon(runs, adjacency, at)
    statement = f"over the budget of {budget} under {adjacency}: epsilon is that of releases fixed in advance"
    if within:
        statement = f"{budget} under {adjacency}, all fixed in advance"
        proved = min((epsilon for epsilon, least in budget.points if least <= at), default=math.inf)
        spent = replace(spent, upper=min(_upper(spent), proved))
    return Total(spent, at, statement, within, releases)


def promise(budget: Budget, rule: str, adjacency: str) -> Composition:
    """What everything that a filter admits is as private as: one step of its budget."""
    if rule == "renyi":
        ((epsilon, delta),) = budget.points
        return ApproximateDP(epsilon, delta) * 1
    return GaussianDP(_filter(budget, "gaussian-dp", adjacency).mu) * 1  # type: ignore[attr-defined] # a GaussianDPFilter


def added(runs: Runs, more: Composition, times: int = 1) -> dict[Step, int]:
    """The counts of both."""
    both = dict(runs)
    for step, count in more.steps:
        both[step] = both.get(step, 0) + count * times
    return both


def _filter(budget: Budget, rule: str, adjacency: str) -> Filter[Any]:
    """A fresh filter of the budget."""
    if rule == "gaussian-dp" and budget.mu is not None:
        return GaussianDPFilter(budget.mu, adjacency=adjacency)
    (epsilon, delta) = budget.points[0]
    if rule == "gaussian-dp":
        return GaussianDPFilter.for_budget(epsilon, delta, adjacency=adjacency)
    return RenyiFilter(epsilon, delta, adjacency=adjacency)


def _promised(budget: Budget, rule: str, adjacency: str, delta: float) -> Bound:
    """Epsilon at a delta, of everything that a filter lets pass."""
    if rule == "gaussian-dp":
        upper = _upper(account(promise(budget, rule, adjacency), adjacency).epsilon(delta))
    else:
        (epsilon, at) = budget.points[0]
        upper = epsilon if delta >= at else math.inf
    return Bound(0.0, upper, f"the {rule} filter's budget")


def composed_epsilon(runs: Runs, adjacency: str, delta: float) -> Bound:
    """Certified epsilon of releases that were all fixed in advance."""
    if not runs:
        return Bound(0.0, 0.0, "nothing was released")
    return _epsilon(compose(list(runs.items())), adjacency, delta)


@lru_cache(maxsize=64)
def _epsilon(whole: Composition, adjacency: str, delta: float) -> Bound:
    """An answer that both the budget and the total ask for."""
    return cast("Bound", account(whole, adjacency).epsilon(delta))  # the default accountant certifies


def _upper(found: Bound | Estimate) -> float:
    """The certified side: an estimate has none."""
    return float(cast("Bound", found).upper)
