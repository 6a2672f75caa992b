"""Where lines stand: a fixed ladder of tilts for each composition, so that an answer depends on the question alone.

A line through one tilt serves every epsilon within a deviation or so of its own. If each question placed a line of its
own, a curve would cost a line a point; if it took the nearest line that an earlier question left, its last digits would
depend on what was asked before. So lines stand on stations, two deviations of the tilted loss apart, that depend on
the composition alone: a question goes to the nearest one, and a thousand questions share a few dozen lines.

Estimates only: a line proves what it says wherever it stands. Cost: one coarse scan of K for each level; those of many
compositions share calls, never numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, final

import numpy as np

from hockeystick.engines.contour.levels import APART, Along, Level, Levels
from hockeystick.laws.loss_sum import PairSum, together
from hockeystick.numerics.columns import Places, across
from hockeystick.numerics.interpolation import monotone_cubic, number_below
from hockeystick.transforms.cumulants import Scan, scan
from hockeystick.transforms.rule import Array, Sketch
from hockeystick.transforms.saddle import LossSum, Saddle, level_sketches

_RUNGS = 41  # tilts scanned in the first level, each sqrt 2 above the one before
_MORE = 10  # in every further one, whose largest is eight times that of the one before
_PIECES = 16  # of an interval between two tilts that are too far apart
_LEVELS = 4  # of ever larger tilts
_NESTED = 3  # levels, each between two tilts of the one before
_AT_ONCE = 1 << 16  # nodes of coarse rules looked at together

Path = tuple[int, ...]
"""The number of a level of ever larger tilts, and then between which tilts of it another lies, and so on."""


class Station(NamedTuple):
    """The number of a station: its level, its place on the ladder, and ``ln`` of the mass that steps may leave out.

    Where its line does not say enough of epsilons at its ends, a sharper one stands there, too.
    """

    path: Path
    place: int
    log_drop: float
    is_sharper: bool = False

    @property
    def sharper(self) -> Station:
        """The same with its sharper line."""
        return self._replace(is_sharper=True)

    def beside(self, step: int) -> Station | None:
        """A neighbour on its ladder."""
        return self._replace(place=self.place + step) if self.place + step >= 0 else None


def sizes_of(sketches: Sequence[Sketch]) -> tuple[int, ...]:
    """How many nodes and points of cells rules have."""
    cells = [0 if rough.cells is None else rough.cells.loss.shape[1] for rough in sketches]
    return (*(rough.loss.shape[1] for rough in sketches), *cells)


@final
class Ladder:
    """The stations of one composition: those of what is planned for it.

    Parameters
    ----------
    losses, planned : PairSum
        The composition, and what lines are planned for (`PairSum.planned`).
    log_drop : float
        ``ln`` of the mass that each step may leave out.
    """

    def __init__(self, losses: PairSum, planned: PairSum, log_drop: float) -> None:
        self.losses, self.planned, self.log_drop = losses, planned.dropping(log_drop), log_drop
        self.levels: dict[Path, Level | None] = {}

    def level(self, path: Path) -> Level | None:
        """A level; None where no rule serves it."""
        if path not in self.levels:
            _scan_levels([(self, path)])
        return self.levels[path]

    def passed(self, path: Path) -> float:
        """What the ladder has passed where a level between two tilts of another begins."""
        parent = self.level(path[:-1]) if len(path) > 1 else None
        return 0.0 if parent is None else float(parent.ladder[path[-1]])

    def leaves_out(self, station: Station | None) -> bool:
        """Whether some losses are left out at a station."""
        level = None if station is None else self.level(station.path)
        return level is not None and any(bool(rough.dropped.any()) for rough in level.sketches)

    def saddle(self, station: Station) -> Saddle | None:
        """The saddle point at a station."""
        return next((saddle for _, _, saddle in saddles_at([(self, station)])), None)

    def sums(self) -> tuple[PairSum, PairSum]:
        """What is planned for, and the composition."""
        return self.planned, self.losses


def find_stations(asked: Sequence[tuple[Ladder, Array]], along: Along) -> list[list[Station | None]]:
    """The stations where what increases along ladders takes values, shape (E,) each; None where none is near.

    As many levels as the questions need are scanned, those of like compositions together.
    """
    found: list[list[Station | None]] = [[None] * values.size for _, values in asked]
    left: list[tuple[int, Path, Places]]
    left = [(which, (0,), np.arange(values.size)) for which, (_, values) in enumerate(asked)]
    while left:
        _scan_levels([(asked[which][0], path) for which, path, _ in left])
        following: list[tuple[int, Path, Places]] = []
        alike: dict[Levels, list[tuple[int, Path, Places]]] = {}
        for which, path, asking in left:
            level = asked[which][0].level(path)
            if level is not None:
                alike.setdefault(level.levels, []).append((which, path, asking))
        for levels, several in alike.items():
            following += _placed(levels, several, asked, along, found)
        left = following
    return found


def _placed(
    levels: Levels,
    several: Sequence[tuple[int, Path, Places]],
    asked: Sequence[tuple[Ladder, Array]],
    along: Along,
    found: Sequence[list[Station | None]],
) -> list[tuple[int, Path, Places]]:
    """Find the stations of questions on levels that were looked at together; which are left, and where to look."""
    owners, path = [which for which, _, _ in several], several[0][1]
    ladders = [asked[which][0] for which in owners]
    rows = np.array([0 if (level := ladder.level(path)) is None else level.row for ladder in ladders])
    questions = np.concatenate([asking for _, _, asking in several])
    own = np.repeat(np.arange(rows.size), [asking.size for _, _, asking in several])
    values = np.concatenate([asked[which][1][asking] for which, _, asking in several])
    line, slope = along(levels, rows)
    line = np.maximum.accumulate(line, axis=1)  # but for its errors it does increase
    here, left = np.ones(values.size, dtype=np.bool_), []
    if len(path) == 1:
        beyond = values > line[own, -1]
        here = (line[own, 0] <= values) & ~beyond
        left += [(beyond, (path[0] + 1,))] if path[0] + 1 < _LEVELS else []
    if len(path) <= _NESTED and levels.is_long.any():
        interval = np.minimum(np.maximum(number_below(values, line, own) - 1, 0), line.shape[1] - 2)
        long = here & levels.is_long[rows[own], interval]
        left += [(long & (interval == k), (*path, k)) for k in set(interval[long].tolist())]
        here &= ~long
    places = np.flatnonzero(here)
    stations = np.rint(monotone_cubic(values[places], line, levels.ladder[rows], slope, own[places]) / APART)
    whose = zip(own[places].tolist(), stations.astype(int).tolist(), strict=True)
    kept: dict[tuple[int, int], Station] = {}
    for question, key in zip(questions[places].tolist(), whose, strict=True):
        which, place = key
        station = kept.get(key)
        if station is None:
            station = kept[key] = Station(path, place, ladders[which].log_drop)
        found[owners[which]][question] = station
    return [
        (owners[which], further, questions[some & (own == which)])
        for some, further in left
        for which in np.unique(own[some]).tolist()
    ]


def _scan_levels(asked: Sequence[tuple[Ladder, Path]]) -> None:
    """Have levels of several ladders, those of like compositions in one pass.

    K of one step is looked at once for all runs of a law.
    """
    kinds: dict[str, dict[tuple[Hashable, Path], list[Ladder]]] = {}
    for ladder, path in asked:
        if path in ladder.levels:
            continue
        kind = ladder.losses.kind
        if kind is None:
            for _, sketches, tops, tilts in _looks([(ladder, path)]):
                found = scan(sketches, ladder.planned.gaussian_variance, tilts)
                both = Scan.joined([found, found], axis=1)
                levels = Levels.of(both, partial(_given, sketches), tops, [ladder.passed(path)])
                ladder.levels[path] = Level(levels, 0)
            ladder.levels.setdefault(path, None)
        else:
            kinds.setdefault(kind, {}).setdefault((ladder.planned.look, path), []).append(ladder)
    for like in kinds.values():
        laws = [(ladders, path) for (_, path), ladders in like.items()]
        for rows, sketches, tops, tilts in _looks([(ladders[0], path) for ladders, path in laws]):
            _scan_like([laws[row] for row in rows], sketches, tops, tilts)
        for ladders, path in laws:
            for ladder in ladders:
                ladder.levels.setdefault(path, None)


def _looks(asked: Sequence[tuple[Ladder, Path]]) -> Iterator[tuple[list[int], Sequence[Sketch], Array, Array]]:
    """Coarse rules of like sums, a few at a time: which, the largest tilts served, and those to look at, (k, R)."""
    coarse = [row for row, (_, path) in enumerate(asked) if len(path) == 1]
    for number in sorted({asked[row][1][0] for row in coarse}):
        own = [row for row in coarse if asked[row][1][0] == number]
        for some, tops, sketches in level_sketches(together([asked[row][0].planned for row in own]), number):
            if sketches is not None:
                powers = np.exp2(0.5 * np.arange(1.0 - (_MORE if number else _RUNGS), 1.0))
                yield [own[k] for k in some.tolist()], sketches, tops, across(tops) * powers[:, None]
    for row, (ladder, path) in enumerate(asked):
        parent = ladder.level(path[:-1]) if len(path) > 1 else None
        if parent is not None:
            first, last = parent.tilts[path[-1] : path[-1] + 2]
            tilts = first * (last / first) ** np.linspace(0.0, 1.0, _PIECES + 1)
            yield [row], parent.sketches, np.array([parent.top]), tilts[:, None]


def _scan_like(
    laws: Sequence[tuple[Sequence[Ladder], Path]], sketches: Sequence[Sketch], tops: Array, tilts: Array
) -> None:
    """Levels of the runs of some laws, given rules of one length of the laws, a row for each."""
    step = scan([rough.counted(np.ones(rough.counts.size)) for rough in sketches], 0.0, tilts)
    runs = [(row, ladder) for row, (ladders, _) in enumerate(laws) for ladder in ladders]
    rows = np.array([row for row, _ in runs])
    planned, own = zip(*(ladder.sums() for _, ladder in runs), strict=True)
    both = _composed(step, np.concatenate((rows, rows)), planned + own)
    steps = np.array([ladder.planned.total_count for _, ladder in runs])
    passed = [ladder.passed(laws[row][1]) for row, ladder in runs]
    levels = Levels.of(both, partial(_of_law, sketches, rows, steps), tops[rows], passed)
    for place, (row, ladder) in enumerate(runs):
        ladder.levels[laws[row][1]] = Level(levels, place)


def _of_law(rules: Sequence[Sketch], laws: Places, steps: Array, place: int) -> Sequence[Sketch]:
    """Of rules with a row for each law, that of a run, for so many steps."""
    own = slice(place, place + 1)
    alone = rules if all(rough.counts.size == 1 for rough in rules) else [rough.at(laws[own]) for rough in rules]
    return [rough.counted(steps[own]) for rough in alone]


def _given(rules: Sequence[Sketch], _: int) -> Sequence[Sketch]:
    """Rules that are those of the only run."""
    return rules


def _composed(step: Scan, rows: Places, sums: Sequence[PairSum]) -> Scan:
    """That of sums of one kind, given those of one step of each law."""
    steps, variance = np.array([(one.total_count, float(one.gaussian_variance)) for one in sums]).T
    return step.at((slice(None), rows)).composed(steps, variance)


def saddles_at(asked: Sequence[tuple[Ladder, Station]]) -> Iterator[tuple[list[int], LossSum, Saddle]]:
    """The saddle points at stations of like sums that have one: which, these sums, and several at a time."""
    alike: dict[tuple[int, ...], list[tuple[int, Level]]] = {}
    for which, (ladder, station) in enumerate(asked):
        level = ladder.level(station.path)
        if level is not None:
            alike.setdefault(sizes_of(level.sketches), []).append((which, level))
    for sizes, every in alike.items():
        most = max(_AT_ONCE // max(sizes, default=1), 1)
        for first in range(0, len(every), most):
            own = every[first : first + most]
            sums = together([asked[which][0].planned for which, _ in own])
            sketches = [Sketch.joined(each) for each in zip(*(level.sketches for _, level in own), strict=True)]
            tops = np.array([level.top for _, level in own])
            tilts = [level.tilt(asked[which][1].place) for which, level in own]
            spread = [level.spread(tilt) for (_, level), tilt in zip(own, tilts, strict=True)]
            yield [which for which, _ in own], sums, Saddle.at(sums, sketches, tops, np.array(tilts), np.array(spread))
