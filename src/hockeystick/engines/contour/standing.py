"""The lines of one composition that stand at its stations: placed when first asked for, and kept.

Guarantee: a line proves what it says wherever it stands; `sides` rounds outwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.contour.lines import Lines, Quantity, grouped
from hockeystick.engines.contour.placing import (
    ContourRefusal,
    line_for_epsilon,
    lines_for_epsilons,
    saddle_of_epsilon,
)
from hockeystick.engines.contour.root_bracket import LogBracket
from hockeystick.engines.contour.search import PlacedLine
from hockeystick.engines.contour.stations import (
    Station,
    Stations,
    by_epsilon,
    by_log_delta,
    saddles_at,
    scan_towards,
)
from hockeystick.engines.ends import composed_infinity
from hockeystick.laws.loss_sum import LikeSums, PairSum
from hockeystick.numerics.rounding import exps_down, exps_up
from hockeystick.transforms.rule import Array, Numbers
from hockeystick.transforms.saddle import Saddle

__all__ = ["DEEPEST", "SLOW", "SMALLEST", "StandingLines", "is_narrow", "look_for", "sides", "stand"]

Rows = NDArray[np.intp]

SLOW: Final = ("tail", "length")
"""Reasons of `ContourRefusal` where the transform decays slowly."""

DEEPEST: Final = -690.0
"""``ln`` of the mass that may always be left out."""

SMALLEST: Final = -740.0
"""``ln`` of what float64 still tells from 0."""

_CLASS = 16.0  # of ln of the mass left out, from one ladder of stations to the next
_LITTLE_WORK = 4_000_000  # for each part, as long as leaving mass out has not been tried
_SHARE = 0.01  # of the tolerance, that a line is planned for: digits are cheap here
_FINEST = 1e-12
_LEAST = 1e-300  # a smaller delta is not asked to be relatively accurate


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
    _ladders: dict[float, Stations] = field(default_factory=dict, repr=False)
    _lines: dict[Station, PlacedLine | ContourRefusal] = field(default_factory=dict, repr=False)

    @cached_property
    def infinite_mass(self) -> tuple[float, float]:
        """Lower and upper bound of the mass of infinite losses."""
        return composed_infinity(self.losses.parts)

    def stations(self, log_drop: float) -> Stations:
        """Where lines of the composition stand, each step of which may leave out ``e^log_drop`` of its mass."""
        if log_drop not in self._ladders:
            self._ladders[log_drop] = Stations(self.losses.dropping(log_drop), log_drop)
        return self._ladders[log_drop]

    def of_epsilons(self, epsilon: Array) -> list[Station | None]:
        """The stations for delta at epsilons (nats)."""
        return self.stations(DEEPEST).of_epsilons(epsilon)

    def of_log_deltas(self, log_delta: Array) -> list[Station | None]:
        """The stations for the epsilons at ``ln delta``.

        Steps of enormous loss and tiny mass swamp the moments of larger tilts. There the stations are those of the
        composition without them, as far as deltas of this size allow.
        """
        found = self.stations(DEEPEST).of_log_deltas(log_delta)
        for row, drop in self.tamed(found, log_delta):
            found[row] = self.without(drop, float(log_delta[row]), found[row])
        return found

    def without(self, log_drop: float, log_delta: float, station: Station | None) -> Station | None:
        """The station of the composition whose steps leave out so much, where they do; else the one given."""
        stations = self.stations(log_drop)
        found = stations.of_log_deltas(np.array([log_delta]))[0]
        return found if stations.leaves_out(found) else station

    def tamed(self, found: Sequence[Station | None], log_delta: Array) -> list[tuple[int, float]]:
        """The questions for which something may be left out, and ``ln`` of how much."""
        if not self.losses.leaves_out:
            return []
        rows = [row for row, station in enumerate(found) if station is None or station.level > 0]
        drops = [_CLASS * math.floor(self.log_drop(math.exp(float(log_delta[row]))) / _CLASS) for row in rows]
        return [(row, drop) for row, drop in zip(rows, drops, strict=True) if drop > DEEPEST]

    def is_tamed(self, log_delta: float) -> bool:
        """Whether steps leave something out at the station for the epsilon at ``ln delta``."""
        station = self.of_log_deltas(np.array([log_delta]))[0]
        return station is not None and station.log_drop > DEEPEST

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
            self._lines[station] = self.stood(station)
        found = self._lines[station]
        if isinstance(found, ContourRefusal):
            if found.reason in (*self.hasty, "atoms") or (found.reason in SLOW and self.losses.on_lattice):
                raise ContourRefusal(found.reason, str(found))
            return None
        return found

    def has(self, station: Station) -> bool:
        """Whether it is known what stands at a station."""
        return station in self._lines

    def keep(self, station: Station, placed: PlacedLine | ContourRefusal) -> None:
        """The line that stands at a station, or why there is none."""
        self._lines[station] = placed

    @property
    def finest(self) -> float:
        """The relative width that lines are planned for."""
        return max(_SHARE * self.tolerance, _FINEST)

    def near(self, *, epsilon: float | None = None, log_delta: float | None = None) -> PlacedLine | None:
        """The line near the epsilon given, or near that of a delta; see `at`."""
        if epsilon is not None:
            return self.at(self.of_epsilons(np.array([epsilon]))[0])
        return self.at(self.of_log_deltas(np.array([log_delta]))[0])

    def stood(self, station: Station, tried: ContourRefusal | None = None) -> PlacedLine | ContourRefusal:
        """A line through the tilt of a station; where large losses of small mass stand in the way, without these.

        ``tried`` is why the first attempt failed, where one has been made.
        """
        if tried is not None and station.log_drop != DEEPEST:
            return tried
        saddle = self.stations(station.log_drop).saddle(station)
        if saddle is None or saddle.log_delta(saddle.epsilon) < SMALLEST:
            return ContourRefusal("saddle", "no line stands at this tilt")
        attempts = [(station.log_drop, self.work_at(station))] if tried is None else []
        if station.log_drop == DEEPEST:
            attempts.append((self.log_drop(math.exp(min(saddle.log_delta(saddle.epsilon), 0.0))), self.most_work))
        refusal = tried or _too_wide()
        for drop, work in attempts:
            losses = self.losses.dropping(drop)
            try:
                own = saddle if drop == station.log_drop else saddle_of_epsilon(losses, saddle.epsilon)
                placed = self.place(losses, own, saddle.epsilon, None, work)
                lower, upper = (np.array(side) for side in self.sides_of(placed.here))
                width = float(_width(lower, upper, self.tolerance, self.enough))
                if math.isfinite(width):
                    return placed.asked_for(width)
            except ContourRefusal as error:
                refusal = error
        return refusal

    def place(self, losses: PairSum, saddle: Saddle, epsilon: float, log_delta: float | None, work: int) -> PlacedLine:
        """A line planned for an epsilon."""
        line = line_for_epsilon(losses, epsilon, self.finest, saddle=saddle, log_delta=log_delta, work=work)
        return PlacedLine(line, epsilon, math.sqrt(saddle.curvature))

    def work_at(self, station: Station) -> int:
        """What the first line tried at a station may take."""
        return self.little_work if station.log_drop == DEEPEST else self.most_work

    @property
    def little_work(self) -> int:
        """What a line may take as long as leaving mass out has not been tried."""
        return min(_LITTLE_WORK * len(self.losses.parts), self.most_work)

    def log_drop(self, delta: float) -> float:
        """``ln`` of the mass that each step may leave out where delta matters to the tolerance."""
        return (
            math.log(max(delta, 1e-300)) + math.log(self.tolerance / 64.0) - math.log(max(self.losses.total_count, 1.0))
        )

    def narrow(self, lower: float, upper: float) -> bool:
        """Whether a bracket of delta is as narrow as it should be."""
        return bool(is_narrow(np.array(lower), np.array(upper), np.array(self.tolerance)))

    def sides_of(self, finite: LogBracket) -> tuple[float, float]:
        """Certified sides of delta at one epsilon, infinite losses included."""
        low, high = self.infinite_mass
        lower, upper = sides(finite.lower, finite.upper, np.array(low), np.array(high))
        return float(lower[0]), float(upper[0])


def look_for(curves: Sequence[StandingLines], owners: Rows, values: Array, quantity: Quantity) -> list[Station | None]:
    """The stations of many questions in one pass; asked alone, each finds the same.

    Parameters
    ----------
    curves : sequence of StandingLines
        Different ones.
    owners : ndarray of int
        Which of them each question is asked of.
    values : ndarray
        The epsilons where ``quantity`` is "delta", and ``ln delta`` where it is "epsilon".
    """
    found: list[Station | None] = [None] * owners.size
    asked = [(curves[owner], rows) for owner, rows in grouped(owners)]
    sign, along = (1.0, by_epsilon) if quantity == "delta" else (-1.0, by_log_delta)
    scan_towards([(curve.stations(DEEPEST), sign * values[rows]) for curve, rows in asked], along)
    again: dict[Stations, list[float]] = {}
    tamed: list[tuple[StandingLines, int, float]] = []
    for curve, rows in asked:
        own = curve.stations(DEEPEST).found(sign * values[rows], along)
        for row, station in zip(rows.tolist(), own, strict=True):
            found[row] = station
        for place, drop in curve.tamed(own, values[rows]) if quantity == "epsilon" else ():
            row = int(rows[place])
            tamed.append((curve, row, drop))
            again.setdefault(curve.stations(drop), []).append(sign * float(values[row]))
    scan_towards([(stations, np.array(own)) for stations, own in again.items()], along)
    for curve, row, drop in tamed:
        found[row] = curve.without(drop, float(values[row]), found[row])
    return found


def stand(asked: Sequence[tuple[StandingLines, Station | None]]) -> None:
    """Place lines at different stations in one pass, where one of the first kind serves; `at` finds the same alone."""
    kinds: dict[str, list[tuple[StandingLines, Station]]] = {}
    for curve, station in asked:
        kind = curve.losses.kind
        if station is not None and kind is not None and not curve.has(station):
            kinds.setdefault(kind, []).append((curve, station))
    for like in kinds.values():
        if len(like) > 1:
            for own, saddle in saddles_at([(curve.stations(station.log_drop), station) for curve, station in like]):
                _stand([like[place] for place in own], saddle)


def _stand(asked: Sequence[tuple[StandingLines, Station]], saddle: Saddle) -> None:
    """Lines through saddle points, `Saddle.stacked`: those that come out narrow, or what a second attempt leaves."""
    epsilon = saddle.epsilon
    held = saddle.log_delta(epsilon) >= SMALLEST
    losses = LikeSums.of([curve.losses.dropping(station.log_drop) for curve, station in asked])
    lines = lines_for_epsilons(
        losses,
        epsilon,
        np.array([curve.finest for curve, _ in asked]),
        saddle=saddle,
        work=np.array([curve.work_at(station) for curve, station in asked]),
    )
    deviation = np.sqrt(saddle.curvature)
    rows, placed = [], []
    for row, line in enumerate(lines):
        curve, station = asked[row]
        if not held[row]:
            continue
        if isinstance(line, ContourRefusal):
            curve.keep(station, curve.stood(station, line))
        else:
            rows.append(row)
            placed.append(PlacedLine(line, float(epsilon[row]), float(deviation[row])))
    if not rows:
        return
    found = Lines([one.line for one in placed]).curve(np.arange(len(rows)), np.array([one.asked for one in placed]))
    placed = [one.sees(*logs) for one, *logs in zip(placed, found.log_lower(), found.log_upper(), strict=True)]
    low, high = np.array([asked[row][0].infinite_mass for row in rows]).T
    here = [one.here for one in placed]
    lower, upper = (np.concatenate([getattr(one, side) for one in here]) for side in ("lower", "upper"))
    lower, upper = sides(lower, upper, low, high)
    tolerance, enough = np.array([(asked[row][0].tolerance, asked[row][0].enough) for row in rows]).T
    widths = _width(lower, upper, tolerance, enough).tolist()
    for one, row, width in zip(placed, rows, widths, strict=True):
        curve, station = asked[row]
        curve.keep(station, one.asked_for(width) if math.isfinite(width) else curve.stood(station, _too_wide()))


def _too_wide() -> ContourRefusal:
    return ContourRefusal("width", "no line at this tilt is narrow enough")


def _width(lower: Array, upper: Array, tolerance: Numbers, enough: Numbers) -> Array:
    """The relative width that lines are asked for, by their brackets at their own epsilons; infinite if none."""
    loose = np.where(is_narrow(lower, upper, enough), enough, np.inf)
    return np.where(is_narrow(lower, upper, tolerance), tolerance, loose)


def is_narrow(lower: Array, upper: Array, tolerance: Numbers) -> NDArray[np.bool_]:
    """Which brackets of delta are as narrow as they should be."""
    return np.asarray((upper - lower <= tolerance * lower) | (upper <= _LEAST))


def sides(log_lower: Array, log_upper: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Certified sides of delta from ``ln`` of those of its finite part, and those of the mass at infinity."""
    lower = exps_down(np.minimum(log_lower, 0.0)) + low
    upper = exps_up(np.minimum(log_upper, 0.0)) + high
    return np.maximum(np.nextafter(lower, -np.inf), 0.0), np.minimum(np.nextafter(upper, np.inf), 1.0)
