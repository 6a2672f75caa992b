"""Privacy filters: stop rules for runs whose next step may depend on everything seen so far.

A filter is asked before every step whether the step still fits, and what has passed it is private as a whole, however
the steps, their parameters and their number were chosen from earlier outputs. Adding up privacy loss distributions is
*no* such rule: each path of an adaptive run may have a composed curve within the budget while the run has not,
because the choice can be matched to the loss already suffered ("f-DP filters", 2026;
`docs/concepts/adaptive-composition.md` has an example). Two rules are valid:

- `RenyiFilter`: moments of a fixed order add up whatever the choices (Feldman and Zrnic 2021; Rogers et al. 2021). Of
  several orders each has its share of delta.
- `GaussianDPFilter`: mu_i-GDP steps with ``sum mu_i^2 <= mu^2`` are mu-GDP (Smith and Thakurta 2022; Koskela, Tobaben
  and Honkela 2023).

Guarantee: what passed satisfies the budget, rounding included: every cost is rounded up, every budget down. A step is
what is released about all records at once: individual filters are another matter. Derivations:
`docs/derivations/filters.md`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.composition import Composition, Direction, Step, directions
from hockeystick.decimals import plain
from hockeystick.engines.moments.log_moment import log_moment_bounds
from hockeystick.errors import (
    HockeystickError,
    PrecisionError,
    check_count,
    check_finite,
    check_positive,
    check_probability,
    public_door,
)
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.readouts.gaussian_dp import mu_below
from hockeystick.readouts.pure_dp import squared_mu

__all__ = ["BudgetError", "Filter", "GaussianDPFilter", "RenyiFilter"]

Cost = TypeVar("Cost")

_OVER = Fraction(4)
_ORDERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)


class BudgetError(HockeystickError):
    """A step does not fit into what is left of a filter's budget; nothing was recorded."""


class Filter(ABC, Generic[Cost]):
    """A stop rule for an adaptive run.

    Ask `allows` before a release, or let `step` raise. What is refused must not be run; a smaller step may still fit.
    """

    def __init__(self, adjacency: str) -> None:
        self._adjacency = adjacency
        self._directions: tuple[Direction, ...] = directions(adjacency)
        self._steps = 0

    @property
    def adjacency(self) -> str:
        """The neighbouring relation."""
        return self._adjacency

    @property
    def steps(self) -> int:
        """Steps that have passed, counts included."""
        return self._steps

    @property
    @abstractmethod
    def statement(self) -> str:
        """What is proved of everything that has passed."""

    @public_door
    def allows(self, mechanism: Step | Composition, count: int = 1) -> bool:
        """Whether ``count`` runs of a mechanism still fit into the budget; nothing is recorded."""
        return self._fits(self._costs(mechanism, check_count("count", count)))

    @public_door
    def step(self, mechanism: Step | Composition, count: int = 1) -> None:
        """Record ``count`` runs of a mechanism, which may then be released.

        Raises
        ------
        BudgetError
            Where they do not fit: they must not be run, and are not recorded.
        """
        costs = self._costs(mechanism, check_count("count", count))
        if not self._fits(costs):
            raise BudgetError(
                f"{count} x {mechanism!r} does not fit into what is left after {self._steps} steps ({self.statement}):"
                " stop here, or take a step with more noise"
            )
        self._record(costs)
        self._steps += count * (mechanism.total_steps if isinstance(mechanism, Composition) else 1)

    def _costs(self, mechanism: Step | Composition, count: int) -> list[Cost]:
        """Cost in every direction."""
        if not isinstance(mechanism, Step | Composition):
            raise TypeError(
                f"a filter takes a step or a composition, got {mechanism!r} of type {type(mechanism).__name__}"
            )
        run = mechanism * count
        return [self._cost(run.pairs(direction)) for direction in self._directions]

    @abstractmethod
    def _cost(self, parts: tuple[tuple[Pair, int], ...]) -> Cost:
        """Cost of a composition in one direction: exact, or rounded up."""

    @abstractmethod
    def _fits(self, costs: list[Cost]) -> bool:
        """Whether these costs, one a direction, fit."""

    @abstractmethod
    def _record(self, costs: list[Cost]) -> None:
        """Add costs that fit."""


@final
class RenyiFilter(Filter[Array]):
    """Stops an adaptive run before it is no longer (epsilon, delta)-DP, by moments of fixed orders.

    With ``K_i(t) = ln E e^{t L_i}`` of step i and t = order - 1, the run may go on while for one of the orders ``sum
    K_i(t) <= t epsilon + ln(delta_t) - ln(t^t / (1 + t)^{1 + t})`` in every direction, delta_t its share of delta.

    Parameters
    ----------
    epsilon : float
        Above 0 (nats).
    delta : float
        In (0, 1).
    adjacency : str
        The neighbouring relation.
    orders : iterable of float
        Renyi orders, above 1, fixed before the run: each has an equal share of delta. One that fits the run is better
        than many (`planned_for`).
    infinite_delta : float
        The part of delta that masses at infinite loss may use up; 0 refuses steps that have any.

    Examples
    --------
    >>> import hockeystick as hs
    >>> budget = hs.filters.RenyiFilter(epsilon=2.0, delta=1e-5)
    >>> while budget.allows(hs.Gaussian(10.0)):
    ...     budget.step(hs.Gaussian(10.0))
    >>> spent = hs.account(hs.Gaussian(10.0) * budget.steps).epsilon(1e-5)
    >>> 1.0 < spent.upper <= 2.0
    True
    """

    @public_door
    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        adjacency: str = "add-remove",
        orders: Iterable[float] = _ORDERS,
        infinite_delta: float = 0.0,
    ) -> None:
        super().__init__(adjacency)
        self._epsilon = check_positive("epsilon", epsilon)
        self._delta = _inside("delta", delta)
        self._infinite_delta = check_probability("infinite_delta", infinite_delta)
        if not self._infinite_delta < self._delta:
            raise ValueError(f"infinite_delta must be below delta, got {infinite_delta!r} and {delta!r}")
        chosen = sorted({check_finite("order", order) for order in orders})
        if not chosen or chosen[0] <= 1.0:
            raise ValueError(f"orders must hold numbers above 1, got {chosen!r}")
        self._orders = np.array(chosen)
        self._budget = _room(self._orders - 1.0, self._epsilon, self._delta - self._infinite_delta)
        self._spent = np.zeros((len(self._directions), len(chosen)))
        self._infinite = np.zeros(len(self._directions))
        self._alive = np.ones((len(self._directions), len(chosen)), dtype=np.bool_)

    @classmethod
    @public_door
    def planned_for(
        cls, run: Step | Composition, epsilon: float, delta: float, *, adjacency: str = "add-remove"
    ) -> RenyiFilter:
        """The filter with the single order that leaves most room for repetitions of a run like this one.

        The order is fixed here, before the first output; the run that follows may be any other.
        """
        candidates = np.unique(np.concatenate((1.0 + 2.0 ** np.arange(-4.0, 9.0, 0.5), np.arange(2.0, 65.0))))
        everything = cls(epsilon, delta, adjacency=adjacency, orders=candidates.tolist())
        single = everything._budget + math.log(candidates.size)
        costs = np.max(np.array(everything._costs(run, 1))[:, :-1], axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(single > 0.0, single / costs, -math.inf)
        return cls(epsilon, delta, adjacency=adjacency, orders=(float(candidates[int(np.nanargmax(room))]),))

    @property
    def statement(self) -> str:
        """What is proved of everything that has passed."""
        return f"({plain(self._epsilon)}, {plain(self._delta)})-DP under {self._adjacency}, steps chosen adaptively"

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders, increasing."""
        return tuple(self._orders.tolist())

    @property
    @public_door
    def remaining(self) -> float:
        """The largest share of its budget that any living order has left, in [0, 1]."""
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where(self._alive & (self._budget > 0.0), 1.0 - self._spent / self._budget, 0.0)
        return float(np.clip(left.max(axis=1).min(), 0.0, 1.0))

    def _cost(self, parts: tuple[tuple[Pair, int], ...]) -> Array:
        cost = np.zeros(self._orders.size + 1)
        for pair, count in parts:
            cost[:-1] += count * _unit_cost(pair, self.orders)
            cost[-1] += count * pair.mass_at_infinity
        return np.asarray(cost * (1.0 + (len(parts) + 4.0) * U))

    def _fits(self, costs: list[Array]) -> bool:
        infinite = self._infinite + np.array(costs)[:, -1]
        within = bool((infinite <= self._infinite_delta * (1.0 - 8.0 * U)).all())
        return within and bool(self._survivors(np.array(costs)).any(axis=1).all())

    def _survivors(self, costs: Array) -> NDArray[np.bool_]:
        return np.asarray(self._alive & ((self._spent + costs[:, :-1]) * (1.0 + 2.0 * U) <= self._budget))

    def _record(self, costs: list[Array]) -> None:
        added = np.array(costs)
        self._alive = self._survivors(added)
        self._spent = (self._spent + added[:, :-1]) * (1.0 + 2.0 * U)
        self._infinite = (self._infinite + added[:, -1]) * (1.0 + 2.0 * U)


def _inside(name: str, value: float) -> float:
    number = check_probability(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must be above 0 and below 1, got {value!r}")
    return number


def _room(theta: Array, epsilon: float, delta: float) -> Array:
    """The largest sum of K at each tilt, rounded down; each has an equal share of delta.

    The share is taken in logarithms: the quotient of a tiny delta may be rounded up by a part of itself.
    """
    if not epsilon < 1e300 / (1.0 + float(theta[-1])):
        raise ValueError(f"epsilon times the largest order must be below 1e300, got {epsilon!r}: give lower orders")
    log_share = math.log(delta) - math.log(theta.size)
    log_ratio = -np.log1p(1.0 / theta)
    log_peak = theta * log_ratio - np.log1p(theta)
    size = theta * (epsilon + 4.0) + abs(math.log(delta)) + math.log(theta.size) + np.abs(log_peak) + 4.0
    room = theta * epsilon + log_share - log_peak
    return np.asarray(room - 8.0 * ELEMENTARY * size, dtype=np.float64)


@lru_cache(maxsize=4096)
def _unit_cost(pair: Pair, orders: tuple[float, ...]) -> Array:
    """Upper bounds of K at the orders, at least 0; infinite where nothing is known."""
    upper = log_moment_bounds([(pair, 1)], np.array(orders)).upper
    cost = np.where(np.isnan(upper), math.inf, np.maximum(upper, 0.0))
    cost.setflags(write=False)
    return cost


@final
class GaussianDPFilter(Filter[Counter[Fraction]]):
    """Stops an adaptive run before it is no longer mu-GDP: as private as two unit normals at distance mu.

    Steps whose own mu is known are Gaussian noise without sampling, `GaussianDP`, and anything with bounded losses
    (epsilon-DP steps are mu-GDP with ``mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon))``). A subsampled Gaussian has none
    worth having: use `RenyiFilter`.

    Parameters
    ----------
    mu : float
        Above 0.
    adjacency : str
        The neighbouring relation.

    Examples
    --------
    >>> import hockeystick as hs
    >>> budget = hs.filters.GaussianDPFilter(mu=1.0)
    >>> budget.step(hs.Gaussian(2.0), count=3)
    >>> budget.allows(hs.Gaussian(2.5)), budget.allows(hs.Gaussian(1.9))
    (True, False)
    """

    def __init__(self, mu: float, *, adjacency: str = "add-remove") -> None:
        super().__init__(adjacency)
        self._mu = check_positive("mu", mu)
        self._budget = Fraction(self._mu) ** 2
        self._spent: list[Counter[Fraction]] = [Counter() for _ in self._directions]  # mu^2 of a step: how often
        self._share = np.zeros(len(self._directions))  # their sum over the budget, to rounding

    @classmethod
    @public_door
    def for_budget(cls, epsilon: float, delta: float, *, adjacency: str = "add-remove") -> GaussianDPFilter:
        """The filter with the largest mu that implies (epsilon, delta)-DP, to about eleven digits.

        Parameters
        ----------
        epsilon : float
            Above 0 (nats).
        delta : float
            In (0, 1).
        adjacency : str
            The neighbouring relation.

        Raises
        ------
        PrecisionError
            Where float64 holds no mu that is proved to imply it.

        Guarantee
        ---------
        The closed form of delta, rounded up, is at most ``delta`` for the mu chosen.

        Examples
        --------
        >>> import hockeystick as hs
        >>> budget = hs.filters.GaussianDPFilter.for_budget(epsilon=1.0, delta=1e-5)
        >>> hs.account(hs.GaussianDP(budget.mu)).delta(1.0).upper <= 1e-5
        True
        """
        epsilon, delta = check_positive("epsilon", epsilon), _inside("delta", delta)
        mu = mu_below(epsilon, delta)
        if mu == 0.0:
            raise PrecisionError(
                f"no mu that float64 holds was proved to imply ({plain(epsilon)}, {plain(delta)})-DP:"
                " give a larger budget"
            )
        return cls(mu, adjacency=adjacency)

    @property
    def mu(self) -> float:
        """The budget."""
        return self._mu

    @property
    def statement(self) -> str:
        """What is proved of everything that has passed."""
        return f"{plain(self._mu)}-GDP under {self._adjacency}, steps chosen adaptively"

    @property
    @public_door
    def remaining(self) -> float:
        """About the mu of a Gaussian step that would just fit."""
        return self._mu * math.sqrt(max(1.0 - float(self._share.max()), 0.0))

    def _cost(self, parts: tuple[tuple[Pair, int], ...]) -> Counter[Fraction]:
        cost: Counter[Fraction] = Counter()
        for pair, count in parts:
            cost[squared_mu(pair)] += count
        return cost

    def _fits(self, costs: list[Counter[Fraction]]) -> bool:
        return all(self._within(*each) for each in zip(self._spent, self._share.tolist(), costs, strict=True))

    def _within(self, spent: Counter[Fraction], share: float, cost: Counter[Fraction]) -> bool:
        """Whether the sum is at most mu^2: in floats where that is clear, exactly where it is close."""
        nearly = share + self._share_of(cost)
        if abs(nearly - 1.0) > 1e-9:
            return nearly < 1.0
        return sum(((spent + cost)[square] * square for square in spent + cost), Fraction(0)) <= self._budget

    def _record(self, costs: list[Counter[Fraction]]) -> None:
        for spent, cost in zip(self._spent, costs, strict=True):
            spent.update(cost)
        self._share = np.array([self._share_of(spent) for spent in self._spent])

    def _share_of(self, cost: Counter[Fraction]) -> float:
        """The part of the budget, cut where it is far above; the quotient has a float where the squares have none."""
        return math.fsum(float(min(count * square / self._budget, _OVER)) for square, count in cost.items())
