"""A filter by moments of fixed orders, each with its share of delta."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.renyi import LARGEST_ORDER
from hockeystick.composition import Composition, Step
from hockeystick.decimals import plain
from hockeystick.engines.moments.log_moment import log_moment_bounds
from hockeystick.errors import (
    check_count,
    check_finite,
    check_inside,
    check_positive,
    check_probability,
    check_sequence,
    public_door,
)
from hockeystick.filters.base import Filter
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.state import decode_float, encode_float, field

_ORDERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)


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
        Renyi orders, above 1, at most 1e150, fixed before the run: each has an equal share of delta. One that fits the
        run is better than many (`planned_for`).
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

    kind: ClassVar[str] = "RenyiFilter"

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
        self._delta = check_inside("delta", delta)
        self._infinite_delta = check_probability("infinite_delta", infinite_delta)
        if not self._infinite_delta < self._delta:
            raise ValueError(f"infinite_delta must be below delta, got {infinite_delta!r} and {delta!r}")
        chosen = sorted({check_finite("order", order) for order in check_sequence("orders", orders)})
        if not chosen or chosen[0] <= 1.0 or chosen[-1] > LARGEST_ORDER:
            raise ValueError(f"orders must hold numbers above 1, at most {LARGEST_ORDER:g}, got {chosen!r}")
        self._orders = np.array(chosen)
        self._budget = _room(self._orders - 1.0, self._epsilon, self._delta - self._infinite_delta)
        self._spent = np.zeros((len(self._directions), len(chosen)))
        self._infinite = np.zeros(len(self._directions))
        self._alive = np.ones((len(self._directions), len(chosen)), dtype=np.bool_)

    @classmethod
    @public_door
    def planned_for(
        cls,
        run: Step | Composition,
        epsilon: float,
        delta: float,
        *,
        adjacency: str = "add-remove",
        infinite_delta: float = 0.0,
    ) -> RenyiFilter:
        """The filter with the single order that leaves most room for repetitions of a run like this one.

        The order is fixed here, before the first output; the run that follows may be any other.
        """
        candidates = np.unique(np.concatenate((1.0 + 2.0 ** np.arange(-4.0, 9.0, 0.5), np.arange(2.0, 65.0))))
        everything = cls(epsilon, delta, adjacency=adjacency, orders=candidates.tolist(), infinite_delta=infinite_delta)
        single = everything._budget + math.log(candidates.size)
        costs = np.max(np.array(everything._costs(run, 1))[:, :-1], axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(single > 0.0, single / costs, -math.inf)
        best = (float(candidates[int(np.nanargmax(room))]),)
        return cls(epsilon, delta, adjacency=adjacency, orders=best, infinite_delta=infinite_delta)

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

    def _content(self) -> dict[str, Any]:
        settings = {
            "epsilon": encode_float(self._epsilon),
            "delta": encode_float(self._delta),
            "adjacency": self._adjacency,
            "orders": [encode_float(order) for order in self.orders],
            "infinite_delta": encode_float(self._infinite_delta),
        }
        spent = np.column_stack((self._spent, self._infinite)).tolist()
        return {
            "settings": settings,
            "steps": self._steps,
            "spent": [[encode_float(value) for value in row] for row in spent],
            "alive": self._alive.tolist(),
        }

    @classmethod
    def _restored(cls, body: dict[str, Any]) -> Self:
        settings = field(body, "settings", dict)
        budget = cls(
            **{name: decode_float(field(settings, name, str)) for name in ("epsilon", "delta", "infinite_delta")},
            adjacency=field(settings, "adjacency", str),
            orders=[decode_float(order) for order in field(settings, "orders", list)],
        )
        spent = np.array([[decode_float(value) for value in row] for row in field(body, "spent", list)])
        alive = np.array(field(body, "alive", list))
        directions, orders = budget._alive.shape
        as_made = alive.shape == (directions, orders) and spent.shape == (directions, orders + 1)
        if not as_made or alive.dtype != np.bool_ or (spent < 0.0).any():
            raise ValueError("what is spent makes no sense")
        budget._spent[:], budget._infinite[:] = spent[:, :-1], spent[:, -1]
        budget._alive = alive
        budget._steps = check_count("steps", field(body, "steps", int), minimum=0)
        return budget

    def _cost(self, parts: tuple[tuple[Pair, int], ...]) -> Array:
        cost = np.zeros(self._orders.size + 1)
        with np.errstate(over="ignore"):  # of a cost beyond float64 none fits
            for pair, count in parts:
                cost[:-1] += count * _unit_cost(pair, self.orders)
                cost[-1] += count * pair.mass_at_infinity
        return np.asarray(cost * (1.0 + (len(parts) + 4.0) * U))

    def _fits(self, costs: list[Array]) -> bool:
        return self._infinite_fits(costs) and bool(self._survivors(np.array(costs)).any(axis=1).all())

    def _infinite_fits(self, costs: list[Array]) -> bool:
        infinite = self._infinite + np.array(costs)[:, -1]
        return bool((infinite <= self._infinite_delta * (1.0 - 8.0 * U)).all())

    def _way_out(self, costs: list[Array]) -> str:
        if self._infinite_fits(costs):
            return super()._way_out(costs)
        return f"its mass at infinite loss is beyond the infinite_delta of this filter, {plain(self._infinite_delta)}"

    def _survivors(self, costs: Array) -> NDArray[np.bool_]:
        return np.asarray(self._alive & ((self._spent + costs[:, :-1]) * (1.0 + 2.0 * U) <= self._budget))

    def _record(self, costs: list[Array]) -> None:
        added = np.array(costs)
        self._alive = self._survivors(added)
        self._spent = (self._spent + added[:, :-1]) * (1.0 + 2.0 * U)
        self._infinite = (self._infinite + added[:, -1]) * (1.0 + 2.0 * U)


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
