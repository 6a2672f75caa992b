"""What a filter is: a budget that is asked before every step."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

from hockeystick.composition import Composition, Direction, Step, directions
from hockeystick.errors import HockeystickError, check_count, public_door
from hockeystick.laws.base import Pair
from hockeystick.state import Saved

Cost = TypeVar("Cost")


class BudgetError(HockeystickError):
    """A step does not fit into what is left of a filter's budget; nothing was recorded."""


class Filter(Saved, Generic[Cost]):
    """A stop rule for an adaptive run.

    Ask `allows` before a release, or let `step` raise. What is refused must not be run; a smaller step may still fit.
    """

    def __init__(self, adjacency: str) -> None:
        self._adjacency = adjacency
        self._directions: tuple[Direction, ...] = directions(adjacency)
        self._steps = 0

    def __repr__(self) -> str:
        return f"<{self.kind}: {self.statement}; {self._steps} steps so far>"

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
                f" {self._way_out(costs)}"
            )
        self._record(costs)
        self._steps += count * (mechanism.total_steps if isinstance(mechanism, Composition) else 1)

    def _way_out(self, costs: list[Cost]) -> str:
        """What to do about costs that do not fit."""
        return "stop here, or take a step with more noise"

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
