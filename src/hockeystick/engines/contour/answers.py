"""Answers off standing lines, many at once: of one composition at many epsilons, of many compositions at one each.

Questions on lines of one length share numpy calls, and nothing else: every number of an answer is computed row by row,
so that it is the same to the bit whatever is asked beside it.

Guarantee: both sides certified. A question that is not `Answers.known` is to be asked alone, of a line of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.contour.line_curve import COLUMNS, Curve
from hockeystick.engines.contour.lines import Lines
from hockeystick.engines.contour.looking import look_for
from hockeystick.engines.contour.placing import ContourRefusal
from hockeystick.engines.contour.root_bracket import LogBracket, RootBracket, Targets, root_brackets
from hockeystick.engines.contour.search import REACH, PlacedLine, ranges_of
from hockeystick.engines.contour.standing import StandingLines, stand
from hockeystick.engines.contour.stations import Station
from hockeystick.engines.contour.widths import is_narrow, sides
from hockeystick.numerics.columns import Array, Columns, Flags, Places
from hockeystick.numerics.rounding import TINY

METHOD: Final = "contour"
_METHOD = np.array([METHOD], dtype=np.object_)
_PROVED_SMALLER = "delta is proved to be smaller at epsilon 0"
_LOOSE = 8.0  # times the width of delta, over the tilt: what a bracket of epsilon may have
_OFF = 2e-3  # deviations by which the guess of an epsilon is usually off, at most
_ROUNDS = 3  # of stations asked: one, but next to cliffs of K
_ERRORS = ("rounding", "truncation", "aliasing")


@final
@dataclass(frozen=True, eq=False)
class Answers(Columns):
    """Brackets of the questions, shape (E,), where `known`.

    Attributes
    ----------
    known : ndarray of bool
        Whether a standing line answers, narrowly enough.
    lower, upper : ndarray
        Certified sides.
    errors : ndarray, shape (3, E)
        Sizes of rounding, truncation and aliasing; NaN where a bracket is not said to be apart by it.
    at_zero : ndarray of bool
        Whether epsilon is 0 because delta is proved to be smaller there.
    point : ndarray
        The epsilon of a delta, as it was looked for.
    method : ndarray of str
        What answered.
    """

    known: Flags
    lower: Array
    upper: Array
    errors: Array
    at_zero: Flags
    point: Array
    method: NDArray[np.object_]

    @property
    def by_contour(self) -> Flags:
        """Whether lines of the contour answered, if anything did."""
        return np.asarray(self.method == METHOD, dtype=np.bool_)

    def is_bracket(self, index: int) -> bool:
        """Whether both sides were proved."""
        return bool(np.isfinite(self.upper[index] - self.lower[index]))

    def bound(self, index: int) -> Bound:
        """One answer."""
        notes = (_PROVED_SMALLER,) if self.at_zero[index] else ()
        said = () if self.at_zero[index] else zip(_ERRORS, self.errors[:, index].tolist(), strict=True)
        errors = {name: error for name, error in said if not math.isnan(error)}
        return from_sides(float(self.lower[index]), float(self.upper[index]), self.method[index], notes, errors)

    def together(self, rows: Places) -> Bound:
        """Some known answers as one."""
        errors = np.where(self.at_zero[rows], 0.0, self.errors[:, rows])
        method = "; ".join(sorted(set(self.method[rows].tolist())))
        said = [(name, row[~np.isnan(row)]) for name, row in zip(_ERRORS, errors, strict=True)]
        largest = {name: float(row.max()) for name, row in said if row.size}
        notes = (_PROVED_SMALLER,) if self.at_zero[rows].any() else ()
        return Bound(np.maximum(self.lower[rows], 0.0), np.maximum(self.upper[rows], 0.0), method, notes, largest)


@final
@dataclass(frozen=True, eq=False)
class _Asked:
    """Questions with the lines that may answer them.

    Attributes
    ----------
    rows : ndarray of int
        The questions that have one.
    placed : sequence of PlacedLine
        Different lines.
    which : ndarray of int, shape (n,)
        The line of each of the rows.
    """

    rows: Places
    placed: Sequence[PlacedLine]
    which: Places

    @classmethod
    def of(cls, curves: Sequence[StandingLines], owners: Places, stations: Sequence[Station | None]) -> _Asked:
        numbers: dict[tuple[int, Station | None], int] = {}
        seen: dict[tuple[int, int], int] = {}  # the same object is told sooner than an equal one
        keys = []
        for owner, station in zip(owners.tolist(), stations, strict=True):
            same = owner, id(station)
            if same not in seen:
                seen[same] = numbers.setdefault((owner, station), len(numbers))
            keys.append(seen[same])
        stand([(curves[owner], station) for owner, station in numbers])
        found = [_line_at(curves[owner], station) for owner, station in numbers]
        placed = [line for line in found if line is not None]
        standing, which = np.array([line is not None for line in found], dtype=np.bool_), np.array(keys, dtype=np.intp)
        served, place = standing[which], standing.cumsum() - 1
        return cls(served.nonzero()[0], placed, place[which[served]])

    def numbers(self, name: str) -> Array:
        """The epsilon, the deviation or the width of the line of each row."""
        return np.array([getattr(one, name) for one in self.placed])[self.which]


def _line_at(curve: StandingLines, station: Station | None) -> PlacedLine | None:
    try:
        return curve.at(station)
    except ContourRefusal:  # who asks alone hears why
        return None


def deltas(curves: Sequence[StandingLines], owners: Places, epsilon: Array) -> Answers:
    """delta of ``curves[owners[i]]`` at ``epsilon[i]``, each finite and well below its largest loss."""
    stations = look_for(curves, owners, epsilon, "delta")
    answers = _deltas_at(stations, curves, owners, epsilon)
    rounding, truncation, aliasing = answers.errors
    wide = np.flatnonzero(~answers.known & (rounding < np.maximum(truncation, aliasing))).tolist()
    wide = [row for row in wide if curves[owners[row]].losses.kind is not None]
    if wide:  # nothing is sharper than rounding
        sharper = [None if (station := stations[row]) is None else station.sharper for row in wide]
        rows = np.array(wide, dtype=np.intp)
        answers = answers.put(rows, _deltas_at(sharper, curves, owners[rows], epsilon[rows]))
    return answers


def _deltas_at(
    stations: Sequence[Station | None], curves: Sequence[StandingLines], owners: Places, epsilon: Array
) -> Answers:
    """The same by lines at stations."""
    answers = unknown(epsilon.size)
    asked = _Asked.of(curves, owners, stations)
    near = np.abs(epsilon[asked.rows] - asked.numbers("epsilon")) <= REACH * asked.numbers("deviation")
    rows, which = asked.rows[near], asked.which[near]
    if rows.size == 0:
        return answers
    found = Lines([one.line for one in asked.placed]).curve(which, epsilon[rows, None])
    flat = found.reshaped((rows.size,))
    answers.errors[:, rows] = _errors(flat, np.ones(rows.size))
    low, high = np.array([curve.infinite_mass for curve in curves])[owners[rows]].T
    answers.lower[rows], answers.upper[rows] = sides(flat.log_lower(), flat.log_upper(), low, high)
    answers.known[rows] = is_narrow(answers.lower[rows], answers.upper[rows], asked.numbers("width")[near])
    return answers


def epsilons(curves: Sequence[StandingLines], owners: Places, targets: Targets) -> Answers:
    """epsilon of ``curves[owners[i]]`` at each of the values, of the finite part of delta."""
    answers = unknown(owners.size)
    stations = look_for(curves, owners, targets.undercut, "epsilon")
    rows, before = np.arange(owners.size), stations
    for turn in range(_ROUNDS):
        found, following = _epsilons_at(stations, curves, owners[rows], targets.at(rows), refused=turn == 0)
        answers = answers.put(rows, found)
        left = [k for k, one in enumerate(following) if one is not None and one != before[k]]
        if not left:
            break
        rows, before, stations = rows[left], [stations[k] for k in left], [following[k] for k in left]
    return answers


def _epsilons_at(
    stations: Sequence[Station | None],
    curves: Sequence[StandingLines],
    owners: Places,
    targets: Targets,
    *,
    refused: bool,
) -> tuple[Answers, list[Station | None]]:
    """The same by lines at stations, and where to ask next what these do not reach: they were found by estimates.

    Or, if ``refused``, where there is none.
    """
    answers, goals = unknown(owners.size), targets.undercut
    asked = _Asked.of(curves, owners, stations)
    pairs = zip(owners.tolist(), stations, strict=True)
    following = [curves[owner].instead(station) if refused and station else None for owner, station in pairs]
    if asked.rows.size == 0:
        return answers, following
    ranges = ranges_of(asked.placed)
    reached = ranges.reaches(asked.which, goals[asked.rows])
    for row, line in zip(asked.rows[~reached].tolist(), asked.which[~reached].tolist(), strict=True):
        station = stations[row]
        following[row] = None if station is None else station.beside(-1 if goals[row] > ranges.most[line] else 1)
    rows, which = asked.rows[reached], asked.which[reached]
    if rows.size:
        width = asked.numbers("width")[reached]
        start, slope = ranges.guess(which, goals[rows])
        answers = answers.put(rows, solved(asked.placed, which, targets.at(rows), start, width, slope))
    return answers, following


def solved(
    placed: Sequence[PlacedLine],
    which: Places,
    targets: Targets,
    start: Array,
    tolerance: Array,
    slope: Array | float = 0.0,
) -> Answers:
    """Where the curves of ``placed[which[i]]`` take their values, in epsilon of at least 0.

    Parameters
    ----------
    placed : sequence of PlacedLine
        The lines.
    which : ndarray of int, shape (n,)
        The line of each question.
    targets : Targets
        The values.
    start : ndarray, shape (n,)
        Guesses (nats).
    tolerance : ndarray, shape (n,)
        Relative width of delta: an epsilon is `known` where its bracket is that narrow, or as narrow as delta makes it.
    slope : ndarray, shape (n,)
        Guesses of ``-d ln delta / d epsilon``; where one is not above 0, the tilt of the line is.
    """
    lines = Lines([one.line for one in placed])

    last = Curve(*(np.empty(which.size) for _ in COLUMNS))  # at the first point that each was asked last

    def brackets(rows: Places, points: Array) -> LogBracket:
        nonlocal last
        curve = lines.curve(which[rows], points)
        last = last.put(rows, curve.at((slice(None), 0)))
        return LogBracket(curve.log_lower(), curve.log_upper())

    theta = np.array([one.line.chernoff.theta for one in placed])[which]
    deviation = np.array([one.deviation for one in placed])[which]
    centre = np.array([one.epsilon for one in placed])[which]
    falls = np.where(np.asarray(slope) > 0.0, slope, theta)
    found = root_brackets(brackets, targets, start=start, spread=_OFF * deviation, slope=falls, reach=REACH * deviation)
    at_zero = _proved_at_zero(brackets, found, targets, np.abs(centre) <= REACH * deviation)
    lower, upper = np.where(at_zero, 0.0, found.lower), np.where(at_zero, 0.0, found.upper)
    width = upper - np.maximum(lower, 0.0)
    proved = np.isfinite(upper - lower)
    share = np.minimum(theta / _LOOSE, 1.0 / np.maximum(upper, 1e-300))
    known = at_zero | (proved & (np.where(proved, width, 0.0) * share <= tolerance))
    return Answers(
        known, lower, upper, _errors(last, theta * np.exp(targets.undercut)), at_zero, found.point, _by(known.size)
    )


def _proved_at_zero(
    brackets: Callable[[Places, Array], LogBracket], found: RootBracket, targets: Targets, near: Flags
) -> Flags:
    """Whether delta is proved to be smaller at epsilon 0, or where epsilon is 0 itself."""
    proved = found.upper == 0.0
    rows = ((found.lower < 0.0) & near).nonzero()[0]
    if rows.size:
        at_zero = brackets(rows, np.zeros((rows.size, 1)))
        proved[rows] |= at_zero.upper[:, 0] <= targets.undercut[rows]
    return np.asarray(proved)


def unknown(size: int) -> Answers:
    """No answers."""
    no, nothing = np.zeros(size, dtype=np.bool_), np.zeros(size)
    errors = np.empty((len(_ERRORS), size))
    errors.fill(np.nan)
    return Answers(no, nothing, nothing.copy(), errors, no.copy(), nothing.copy(), _by(size))


def _by(size: int) -> NDArray[np.object_]:
    return _METHOD.repeat(size)


def errors_at(curve: Curve, unit: float) -> dict[str, float]:
    """The parts of the width at the first epsilon of a curve, by name, in multiples of ``unit``."""
    return {name: float(row[0]) for name, row in zip(_ERRORS, _errors(curve, np.array(unit)), strict=True)}


def _errors(curve: Curve, unit: Array) -> Array:
    """The parts of the width at one epsilon a row, in multiples of ``unit``, shape (3, n)."""
    scale = np.exp(np.minimum(curve.log_scale, 0.0)) / np.maximum(unit, TINY)  # the slope of a tiny delta may underflow
    rounding = curve.rounding + 2.0 * curve.log_scale_error * np.abs(curve.upper)
    parts = np.array([rounding, curve.truncation, curve.aliasing])
    known = np.isfinite(parts)
    with np.errstate(over="ignore"):  # of a bracket that is of no use
        return np.where(known, scale * np.where(known, parts, 0.0), np.inf)
