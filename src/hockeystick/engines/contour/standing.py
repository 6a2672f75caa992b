"""The lines of one composition that stand at its stations: placed when first asked for, and kept.

Guarantee: a line proves what it says wherever it stands; `sides` rounds outwards.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, final

import numpy as np

from hockeystick.engines.contour.placing import (
    ContourRefusal,
    line_for_epsilon,
    saddle_of_epsilon,
)
from hockeystick.engines.contour.root_bracket import LogBracket
from hockeystick.engines.contour.search import PlacedLine
from hockeystick.engines.contour.stations import (
    Ladder,
    Station,
    saddles_at,
    sizes_of,
)
from hockeystick.engines.contour.through import SMALLEST, PlannedRuns, lines_through, too_wide
from hockeystick.engines.contour.widths import sides, width_asked
from hockeystick.engines.ends import composed_infinity
from hockeystick.laws.loss_sum import PairSum, together
from hockeystick.numerics.columns import Array
from hockeystick.transforms.saddle import LossSum, Saddle, is_few

SLOW: Final = ("tail", "length")
"""Reasons of `ContourRefusal` where the transform decays slowly."""

DEEPEST: Final = -690.0
"""``ln`` of the mass that may always be left out."""

_BELOW = ("length", "width")  # reasons of `ContourRefusal` for which the next station may do
_CLASS = 13.0  # of ln of the mass left out, from one ladder of stations to the next: 4 to 16 take as long on average
_LITTLE_WORK = 4_000_000  # for each part, as long as leaving mass out has not been tried
_SHARE = 0.01  # of the tolerance, that a line is planned for: digits are cheap here
_FINEST = 1e-12
_SHARPER = 0.03  # of that: next to a cliff of K delta falls a thousand times faster than planned for


@final
@dataclass(eq=False)
class StandingLines:
    """The lines of one composition. They stand where the composition says: no answer depends on another.

    Parameters
    ----------
    losses : PairSum
        The composition.
    tolerance : float
        Relative width of a bracket of delta.
    most_work : int
        Products of nodes in s and in the loss that a line may take.
    hasty : tuple of str
        Reasons of `ContourRefusal` that are answer enough at a station: where another engine is quick.
    enough : float
        Relative width with which a line stays: its rounding leaves no less where large losses are rare, and lines
        without these, or elsewhere, seldom do.
    """

    losses: PairSum
    tolerance: float
    most_work: int
    hasty: tuple[str, ...]
    enough: float
    looked_for: tuple[object, Station | None] | None = field(default=None, repr=False)
    _ladders: dict[float, Ladder] = field(default_factory=dict, repr=False)
    _lines: dict[Station, PlacedLine | ContourRefusal] = field(default_factory=dict, repr=False)

    @cached_property
    def infinite_mass(self) -> tuple[float, float]:
        """Lower and upper bound of the mass of infinite losses."""
        return composed_infinity(self.losses.parts)

    @cached_property
    def planned(self) -> PairSum:
        """What lines are planned for."""
        return self.losses.planned()

    @cached_property
    def ratio(self) -> float:
        """How many times the steps planned for the composition has."""
        return self.losses.total_count / max(self.planned.total_count, 1.0) if self.losses.kind else 1.0

    @cached_property
    def plan(self) -> Hashable:
        """What tells lines at one station from those of like compositions; runs of one plan share all but counts."""
        return self.planned.key, self.tolerance, self.most_work, self.enough

    def ladder(self, log_drop: float) -> Ladder:
        """Where lines of the composition stand, each step of which may leave out ``e^log_drop`` of its mass."""
        if log_drop not in self._ladders:
            self._ladders[log_drop] = Ladder(self.losses, self.planned, log_drop)
        return self._ladders[log_drop]

    def tamed(self, found: Sequence[Station | None], log_delta: Array) -> list[tuple[int, float]]:
        """The questions for which something may be left out, and ``ln`` of how much.

        Steps of enormous loss and tiny mass swamp the moments of larger tilts. There the stations are those of the
        composition without them, as far as deltas of this size allow.
        """
        if not self.losses.leaves_out:
            return []
        rows = [row for row, station in enumerate(found) if station is None or station.path[0] > 0]
        drops = [_CLASS * math.floor(self.log_drop(math.exp(float(log_delta[row]))) / _CLASS) for row in rows]
        return [(row, drop) for row, drop in zip(rows, drops, strict=True) if drop > DEEPEST]

    def at(self, station: Station | None) -> PlacedLine | None:
        """The line at a station, placed when first asked for; None where there is no station.

        Raises
        ------
        ContourRefusal
            Where the transform decays too slowly for any line there, or atoms are too many.
        """
        if station is None:
            return None
        if station not in self._lines:
            if self.losses.kind is None:
                self._lines[station] = self._stood(station)
            else:
                stand([(self, station)])
        found = self._lines[station]
        if isinstance(found, ContourRefusal):
            if found.reason in (*self.hasty, "atoms") or (found.reason in SLOW and self.losses.on_lattice):
                raise ContourRefusal(found.reason, str(found))
            return None
        return found

    def instead(self, station: Station) -> Station | None:
        """Where to ask where no line stands: below, where losses of small mass matter less; nowhere for few steps."""
        found = None if is_few(self.losses.total_count) else self._lines.get(station)
        if isinstance(found, ContourRefusal) and (found.reason in _BELOW or station.log_drop > DEEPEST):
            return station.beside(-1)
        return None

    def has(self, station: Station) -> bool:
        """Whether it is known what stands at a station."""
        return station in self._lines

    def keep(self, station: Station, placed: PlacedLine | ContourRefusal) -> None:
        """The line that stands at a station, or why there is none."""
        self._lines[station] = placed

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """Steps, how many times those planned for; the normal variance; widths asked for; the mass at infinity."""
        variance = float(self.losses.gaussian_variance)
        return self.losses.total_count, self.ratio, variance, self.tolerance, self.enough, *self.infinite_mass

    @property
    def finest(self) -> float:
        """The relative width that lines are planned for."""
        return max(_SHARE * self.tolerance, _FINEST)

    def finest_at(self, station: Station) -> float:
        """The same at a station of a composition of some kind."""
        return max(_SHARPER * self.finest, _FINEST) if station.is_sharper else self.finest

    def _stood(self, station: Station) -> PlacedLine | ContourRefusal:
        """A line through the tilt of a station; where large losses of small mass stand in the way, without these.

        Of a composition of no kind.
        """
        found = self.ladder(station.log_drop).saddle(station)
        saddle = None if found is None else found.row(0)
        if found is None or saddle is None or saddle.log_delta(saddle.epsilon) < SMALLEST:
            return _no_line()
        attempts = [(station.log_drop, self.work_at(station))]
        if station.log_drop == DEEPEST:
            attempts.append((self.second_drop(saddle), self.most_work))
        refusal = too_wide()
        for drop, work in attempts:
            losses = self.losses.dropping(drop)
            try:
                own = found if drop == station.log_drop else saddle_of_epsilon(losses, saddle.epsilon)
                placed = self.place(losses, own, saddle.epsilon, None, work)
                lower, upper = (np.array(side) for side in self.sides_of(placed.here))
                width = float(width_asked(lower, upper, self.tolerance, self.enough))
                if math.isfinite(width):
                    return placed.asked_for(width)
            except ContourRefusal as error:
                refusal = error
        return refusal

    def second_drop(self, saddle: Saddle) -> float:
        """``ln`` of what each step may leave out where no line stands at a saddle point otherwise."""
        return self.log_drop(math.exp(min(saddle.log_delta(saddle.epsilon), 0.0)), self.planned)

    def place(self, losses: PairSum, saddle: Saddle, epsilon: float, log_delta: float | None, work: int) -> PlacedLine:
        """A line planned for an epsilon."""
        line = line_for_epsilon(losses, epsilon, self.finest, saddle=saddle, log_delta=log_delta, work=work)
        return PlacedLine(line, epsilon, float(np.sqrt(saddle.curvature).item()))

    def work_at(self, station: Station) -> int:
        """What the first line tried at a station may take."""
        return self.little_work if station.log_drop == DEEPEST else self.most_work

    @property
    def little_work(self) -> int:
        """What a line may take as long as leaving mass out has not been tried."""
        return min(_LITTLE_WORK * len(self.losses.parts), self.most_work)

    def log_drop(self, delta: float, losses: PairSum | None = None) -> float:
        """``ln`` of the mass that each step may leave out where delta matters to the tolerance."""
        steps = max((losses or self.losses).total_count, 1.0)
        return math.log(max(delta, 1e-300)) + math.log(self.tolerance / 64.0) - math.log(steps)

    def sides_of(self, finite: LogBracket) -> tuple[float, float]:
        """Certified sides of delta at one epsilon, infinite losses included."""
        low, high = self.infinite_mass
        lower, upper = sides(finite.lower, finite.upper, np.array(low), np.array(high))
        return float(lower[0]), float(upper[0])


Place = tuple[StandingLines, Station]
Standing = dict[Place, PlacedLine | ContourRefusal]


def stand(asked: Sequence[tuple[StandingLines, Station | None]]) -> None:
    """Place lines at stations of compositions of some kind in one pass.

    Where large losses of small mass stand in the way, without these.
    """
    kinds: dict[str, dict[Hashable, list[Place]]] = {}
    for curve, station in asked:
        kind = curve.losses.kind
        if station is not None and kind is not None and not curve.has(station):
            kinds.setdefault(kind, {}).setdefault((curve.plan, station), []).append((curve, station))
    for like in kinds.values():
        plans = list(like.values())
        found: Standing = {place: _no_line() for places in plans for place in places}
        first = [places[0] for places in plans]
        for own, sums, saddle in saddles_at([(curve.ladder(at.log_drop), at) for curve, at in first]):
            some = [plans[place] for place in own]
            placed = _stand(some, sums, saddle, [curve.work_at(station) for (curve, station), *_ in some])
            found.update(placed)
            found.update(_without_large_losses(some, saddle, placed))
        for (curve, station), line in found.items():
            curve.keep(station, line)


def _without_large_losses(plans: Sequence[list[Place]], saddle: Saddle, placed: Standing) -> Standing:
    """Lines without large losses of small mass, where there is none with them through a saddle point."""
    alike: dict[Hashable, list[tuple[list[Place], PairSum, Saddle]]] = {}
    found: Standing = {}
    for row, every in enumerate(plans):
        curve, station = every[0]
        places = [place for place in every if isinstance(placed.get(place), ContourRefusal)]
        if station.log_drop != DEEPEST or not places:
            continue
        old = saddle.row(row)
        losses = curve.planned.dropping(curve.second_drop(old))
        try:
            own = saddle_of_epsilon(losses, old.epsilon)
        except ContourRefusal as refusal:
            found.update(dict.fromkeys(places, refusal))
            continue
        alike.setdefault(sizes_of(own.sketches), []).append((places, losses, own))
    for group in alike.values():
        some, sums, saddles = (list(column) for column in zip(*group, strict=True))
        again = _stand(some, together(sums), Saddle.stacked(saddles), [places[0][0].most_work for places in some])
        for place, line in again.items():  # what is left out widens brackets of smaller deltas
            found[place] = line.asked_for(place[0].enough) if isinstance(line, PlacedLine) else line
    return found


def _stand(plans: Sequence[list[Place]], sums: LossSum, saddle: Saddle, work: Sequence[int]) -> Standing:
    """Lines through saddle points, `Saddle.stacked`, of what is planned for some runs each, or why there is none.

    Nothing of runs whose delta there is too small for float64.
    """
    places = [place for own in plans for place in own]
    rows = np.array([row for row, own in enumerate(plans) for _ in own], dtype=np.intp)
    runs = PlannedRuns(rows, np.array([curve.numbers for curve, _ in places]).T)
    finest = np.array([curve.finest_at(station) for (curve, station), *_ in plans])
    lines = lines_through(sums, saddle, runs, finest=finest, work=np.array(work))
    return {place: line for place, line in zip(places, lines, strict=True) if line is not None}


def _no_line() -> ContourRefusal:
    return ContourRefusal("saddle", "no line stands at this tilt")
