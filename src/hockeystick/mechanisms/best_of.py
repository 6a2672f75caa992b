"""The best of a random number of runs: hyperparameter tuning and other private selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.composition import Composition, Direction, Step
from hockeystick.errors import UnknownPairError, public_door
from hockeystick.laws.base import Pair
from hockeystick.laws.run_count import RunCount
from hockeystick.laws.selected import SelectedPair


@final
@dataclass(frozen=True)
class BestOf(Step):
    """A run repeated a random number of times, of which the best alone is released; made by `select_best`."""

    run: Composition
    count: RunCount

    @property
    def adds_noise(self) -> bool:
        return any(step.adds_noise for step, _ in self.run.steps)

    @property
    def stated_by_caller(self) -> bool:
        return any(step.stated_by_caller for step, _ in self.run.steps)

    @property
    def of_stated_population(self) -> bool:
        return any(step.of_stated_population for step, _ in self.run.steps)

    @property
    def words(self) -> str:
        return f"the best of {self.count.words}, each of {self.run.total_steps} steps"

    def pair(self, direction: Direction) -> SelectedPair:
        return SelectedPair(self.run.pairs(direction), self.count)

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        shown = self.run.attained(direction)
        if shown is None:
            return self.pair(direction).orders()
        # datasets that are known of a run, one choice of them; steps of which none are known may release nothing
        parts: dict[Pair, int] = {}
        for pairs, count in shown:
            for pair in pairs[len(pairs) // 2 :][:1]:
                parts[pair] = parts.get(pair, 0) + count
        return SelectedPair(tuple(parts.items()), self.count).orders() if parts else ()

    def for_group(self, size: int) -> BestOf:
        """The best of runs as they count for the group."""
        return BestOf(self.run.for_group(size), self.count)

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        own = "the best of many runs: the upper bound holds for every score, the lower one for some"
        return (own, *self.run.provenance(direction))


@public_door
def select_best(run: Step | Composition, *, count: RunCount) -> BestOf:
    """A run repeated a random number of times, of which the best alone is released.

    The number of runs is drawn from ``count`` without looking at the data; it, and all runs but the best, stay secret.
    Each run draws its own hyperparameters, at random and independently of the data, and its own noise; which is best
    may be told by any function of what a run releases (a score on private data must itself be part of the run).

    Parameters
    ----------
    run : Step or Composition
        One run, its score included.
    count : RunCount
        `PoissonCount` or `NegativeBinomialCount`.

    Returns
    -------
    BestOf
        A step, for `account` and `calibrate`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.Gaussian(1.0).poisson(0.01) * 1000
    >>> tuned = hs.select_best(run, count=hs.PoissonCount(10.0))
    >>> once, best = (hs.account(it).epsilon(delta=1e-6).upper for it in (run, tuned))
    >>> 2.1 < once < 2.2 < best < 3.7
    True
    """
    if not isinstance(run, Step | Composition):
        raise TypeError(f"run must be a step or a composition, got {run!r} of type {type(run).__name__}")
    if not isinstance(count, RunCount):
        raise TypeError(f"count must be a law such as PoissonCount(10.0), got {count!r}: a fixed number leaks more")
    composed = run * 1
    if any(isinstance(step, BestOf) for step, _ in composed.steps):
        raise UnknownPairError("the best of runs that are themselves selected is not accounted for; select once")
    return BestOf(composed, count)
