"""The odometer: epsilon of a run so far, at every moment, without composing it anew.

What it certifies: the cost of all steps so far, *had their parameters been fixed in advance*. Steps whose parameters
depend on earlier outputs are composed by the same formula only where a theorem says so: privacy loss distributions
may not be, in general ("f-DP filters", 2026; `docs/concepts/adaptive-composition.md`). `hockeystick.filters` stop
such runs soundly.

Cost: a step is one vector product for each side and direction, an answer a few inner products; a distinct step is put
on the lattice once, and all of them anew when the run has grown fourfold (`engines/lattice/streaming_plan.py`). Where
no lattice is fine enough, as at deltas of 1e-60 for tiny losses, or more is proved of steps together than of each, as
of those of bounded range, an answer costs what accounting the history anew does.
Memory: some hundred complex numbers a distinct step.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Self, cast, final

from hockeystick import notebook
from hockeystick.account import account
from hockeystick.bound import Bound, agreed, at_most
from hockeystick.composition import Composition, Direction, Step, directions
from hockeystick.decimals import plain
from hockeystick.engines.ends import composed_infinity, largest_loss
from hockeystick.engines.lattice.streaming_plan import LiveDirection
from hockeystick.engines.reach import check_reach
from hockeystick.errors import check_count, check_inside, check_positive, check_probability, public_door
from hockeystick.laws.base import Pair, Parts, any_guarantee
from hockeystick.odometer.products import decode_progress, encode_progress
from hockeystick.odometer.steps import decode_step, encode_step
from hockeystick.state import Saved, StateError, decode_float, encode_float, field

_METHOD = "odometer (running lattice composition)"
_FIXED = (
    "certified for parameters fixed in advance; where later steps depend on earlier outputs, use hockeystick.filters"
)
_TRIVIAL_LOWER = (
    "a step's dominating pair is not exactly attained: the lower side is trivial here, where hockeystick.account may"
    " say more"
)


@final
class Odometer(Saved):
    """Privacy accounting that follows a run step by step.

    Parameters
    ----------
    delta : float
        In (0, 1): the delta that epsilon is followed at.
    adjacency : {"add-remove", "add", "remove", "substitute", "zero-out"}
        Which datasets count as neighbours.
    tolerance : float
        Width of the epsilon bracket asked for (nats).
    points : int
        Largest number of lattice points in a window.

    Examples
    --------
    >>> import hockeystick as hs
    >>> odometer = hs.Odometer(delta=1e-5)
    >>> for _ in range(100):
    ...     odometer.step(hs.Gaussian(1.0).poisson(0.01))
    >>> bound = odometer.epsilon()
    >>> batch = hs.account(odometer.composition).epsilon(1e-5)
    >>> bound.lower <= batch.upper and batch.lower <= bound.upper and bound.width <= 1e-3
    True
    """

    kind: ClassVar[str] = "odometer"

    def __init__(
        self, delta: float, adjacency: str = "add-remove", *, tolerance: float = 1e-3, points: int = 1 << 22
    ) -> None:
        self._delta = check_inside("delta", delta)
        names = directions(adjacency)
        self._adjacency = adjacency
        self._tolerance = check_positive("tolerance", tolerance)
        self._points = check_count("points", points, minimum=64)
        self._directions: dict[Direction, LiveDirection] = {
            name: LiveDirection(self._delta, self._tolerance, self._points) for name in names
        }
        self._counts: dict[Step, int] = {}
        self._pairs: dict[Step, dict[Direction, Parts]] = {}
        self._attained = True  # every dominating pair is attained by datasets
        self._bounded = True  # every loss is at most a finite number
        self._alone = True  # nothing better is proved of steps than the composition of their pairs

    def __repr__(self) -> str:
        return f"Odometer(delta={self._delta!r}, adjacency={self._adjacency!r}, {self.steps} steps)"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        bound = self.epsilon()
        rows = [
            (f"epsilon at delta {plain(self._delta)}", notebook.bracket(*bound.sides)),
            ("steps", f"{self.steps:,}"),
        ]
        return notebook.table("Odometer", [*rows, ("relation", self._adjacency)], remark=_FIXED)

    @property
    def delta(self) -> float:
        """The delta that epsilon is read at."""
        return self._delta

    @property
    def adjacency(self) -> str:
        """The neighbouring relation."""
        return self._adjacency

    @property
    def steps(self) -> int:
        """Steps so far, counts included."""
        return sum(self._counts.values())

    @property
    def composition(self) -> Composition:
        """The history as a composition, to account it by other means.

        Raises
        ------
        ValueError
            Before the first step.
        """
        return Composition(tuple(self._counts.items()))

    @public_door
    def step(self, mechanism: Step | Composition, count: int = 1) -> None:
        """Record that a mechanism was run ``count`` times.

        Parameters
        ----------
        mechanism : Step or Composition
            What was released.
        count : int
            At least 1.

        Raises
        ------
        UnknownPairError
            Where no dominating pair is known; nothing is recorded then.
        PrecisionError
            For more steps, or larger losses, than brackets are proved for; nothing is recorded then, either.
        TypeError
            Where a step is not of hockeystick's own classes, or holds the caller's own pair: such a run could be saved
            but not read back, so nothing is recorded.
        """
        times = check_count("count", count)
        if not isinstance(mechanism, Step | Composition):
            raise TypeError(f"step takes a step or a composition, got {mechanism!r} of type {type(mechanism).__name__}")
        run = ((mechanism, times),) if isinstance(mechanism, Step) else (mechanism * times).steps
        whole = self.steps + sum(own for _, own in run)
        known = [(step, own, self._pairs_of(step, whole)) for step, own in run]
        for step, own, pairs in known:
            self._count(step, own, pairs)
            for direction, parts in pairs.items():
                for pair, times in parts:
                    self._directions[direction].add(pair, own * times)

    def _pairs_of(self, step: Step, steps: int) -> dict[Direction, Parts]:
        """The pairs of a step, one of so many: what cannot be followed is refused here, before anything is recorded."""
        pairs = self._pairs.get(step) or {direction: step.same_pairs(direction) for direction in self._directions}
        for parts in pairs.values():
            check_reach(tuple((pair, steps * times) for pair, times in parts))
        if step not in self._pairs:
            encode_step(step)  # and what cannot be saved
        return pairs

    def _count(self, step: Step, count: int, pairs: dict[Direction, Parts]) -> None:
        if step not in self._pairs:
            self._attained = self._attained and all(step.attained(direction) is None for direction in self._directions)
            self._bounded = self._bounded and all(
                pair.loss_bounds[1] < math.inf and pair.mass_at_infinity == 0.0
                for parts in pairs.values()
                for pair, _ in parts
            )
            self._alone = self._alone and not any(map(any_guarantee, pairs.values()))
            self._pairs[step] = pairs
        self._counts[step] = self._counts.get(step, 0) + count

    def _live(self, direction: Direction) -> LiveDirection:
        """The composition of a direction: of all steps, also where recording one of them was interrupted."""
        live, counts = self._directions[direction], self._counts_of(direction)
        if live.counts != counts:
            live.restore(counts, None, guess=live.guess, refined_at=live.refined_at)
        return live

    def _counts_of(self, direction: Direction) -> dict[Pair, int]:
        counts: dict[Pair, int] = {}
        for step, count in self._counts.items():
            for pair, times in self._pairs[step][direction]:
                counts[pair] = counts.get(pair, 0) + count * times
        return counts

    @public_door
    def epsilon(self, delta: float | None = None) -> Bound:
        """Certified epsilon of all steps so far (nats).

        Parameters
        ----------
        delta : float, optional
            By default the odometer's own. At another one, and where the running composition is wider than the
            tolerance or than what is proved, the history is accounted anew, as `hockeystick.account` does.

        Returns
        -------
        Bound
            Its notes say which statement holds.
        """
        at = self._delta if delta is None else check_probability("delta", delta)
        if not self._counts:
            return Bound(0.0, 0.0, _METHOD, notes=(_FIXED,))
        if at != self._delta:
            return self._anew(at)
        answers = {direction: self._capped(direction) for direction in self._directions}
        lower, upper = (max(sides) for sides in zip(*answers.values(), strict=True))
        notes = [_FIXED] if self._attained else [_FIXED, _TRIVIAL_LOWER]
        if len(answers) > 1:
            notes.append(f"direction: {max(answers, key=lambda name: answers[name][1])}")
        live = Bound(lower if self._attained else 0.0, upper, _METHOD, notes=tuple(notes))
        is_narrow = lower == math.inf or upper - lower <= self._tolerance
        return live if is_narrow and self._alone else agreed(self._anew(self._delta), live)

    def _anew(self, delta: float) -> Bound:
        """The history accounted anew: at another delta, or one for which no lattice is fine enough."""
        curve = account(self.composition, self._adjacency, tolerance=self._tolerance)
        found = cast("Bound", curve.epsilon(delta))  # the default accountant certifies
        return replace(found, notes=(_FIXED, *found.notes))

    def _capped(self, direction: Direction) -> tuple[float, float]:
        """The direction's bracket, within the largest loss where there is one."""
        live = self._live(direction)
        if self._delta < composed_infinity([(pair.curve or pair, count) for pair, count in live.counts.items()])[0]:
            return math.inf, math.inf  # no lattice has more to say, and its windows would be as wide as they may be
        lower, upper = live.epsilon()
        if self._bounded:
            largest = max(largest_loss(live.counts.items())[1], 0.0)
            capped = at_most(Bound(lower, upper, _METHOD), largest, "the largest loss")
            return float(capped.lower), float(capped.upper)
        return lower, upper

    @public_door
    def audit(self) -> Bound:
        """The same answer with the running products made anew from the counts: what a batch of the same history gives.

        It differs from `epsilon` by the rounding of the multiplications only.
        """
        again = Odometer.from_json(self.to_json())
        for live in again._directions.values():  # noqa: SLF001 - its own class
            live.recompute()
        return again.epsilon()

    def _content(self) -> dict[str, Any]:
        return {
            "settings": {
                "delta": encode_float(self._delta),
                "adjacency": self._adjacency,
                "tolerance": encode_float(self._tolerance),
                "points": self._points,
            },
            "steps": [{"step": encode_step(step), "count": count} for step, count in self._counts.items()],
            "directions": {name: _encode_direction(self._live(name)) for name in self._directions},
        }

    @classmethod
    def _restored(cls, body: dict[str, Any]) -> Self:
        settings = field(body, "settings", dict)
        odometer = cls(
            decode_float(field(settings, "delta", str)),
            field(settings, "adjacency", str),
            tolerance=decode_float(field(settings, "tolerance", str)),
            points=field(settings, "points", int),
        )
        for entry in field(body, "steps", list):
            step, count = decode_step(field(entry, "step", dict)), check_count("count", field(entry, "count", int))
            odometer._count(step, count, odometer._pairs_of(step, odometer.steps + count))
        stored = field(body, "directions", dict)
        if set(stored) != set(odometer._directions):
            raise StateError(f"this odometer state is damaged: it has the directions {sorted(stored)}")
        for direction, live in odometer._directions.items():
            if not _restore_direction(live, odometer._counts_of(direction), stored[direction]):
                raise StateError("this odometer state is damaged: its products do not belong to its counts")
        return odometer


def _encode_direction(live: LiveDirection) -> dict[str, Any]:
    progress = live.progress()
    return {
        "guess": encode_float(live.guess),
        "refined_at": live.refined_at,
        "progress": None if progress is None else encode_progress(progress),
    }


def _restore_direction(live: LiveDirection, counts: dict[Pair, int], data: Any) -> bool:
    progress = None if data["progress"] is None else decode_progress(field(data, "progress", dict))
    guess, refined_at = decode_float(field(data, "guess", str)), field(data, "refined_at", int)
    return live.restore(counts, progress, guess=guess, refined_at=refined_at)
