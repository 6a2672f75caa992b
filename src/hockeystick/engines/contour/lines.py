"""Lines that are asked together: those of one length are stacked, and share calls.

Guarantee: every number is computed row by row, so that it is the same to the bit whatever is asked beside it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, final

import numpy as np

from hockeystick.engines.contour.line import ContourLine
from hockeystick.engines.contour.line_curve import COLUMNS, Curve
from hockeystick.numerics.columns import Array, Places

if TYPE_CHECKING:
    from hockeystick.engines.contour.lattice_line import LatticeLine
    from hockeystick.engines.contour.smoothed_line import SmoothedLine

    Line = ContourLine | LatticeLine | SmoothedLine

Quantity = Literal["delta", "epsilon"]

_AT_ONCE = 1 << 15  # terms of sums computed at a time: a few arrays of them stay in the cache of a processor
_EACH = 4  # questions of a line, up to which it is copied for each


@final
class Lines:
    """Lines that are asked together: those of one length are stacked."""

    def __init__(self, lines: Sequence[Line]) -> None:
        lengths = [
            line.frequencies.size if isinstance(line, ContourLine) else -index for index, line in enumerate(lines)
        ]
        self._group, self._place = np.zeros(len(lines), dtype=np.intp), np.zeros(len(lines), dtype=np.intp)
        self._stacks: list[tuple[int, int, Line]] = []
        for number, length in enumerate(dict.fromkeys(lengths)):
            own = [index for index, one in enumerate(lengths) if one == length]
            self._group[own], self._place[own] = number, np.arange(len(own))
            first = lines[own[0]]
            if isinstance(first, ContourLine):
                stacked = ContourLine.stacked(
                    [line for line in (lines[i] for i in own) if isinstance(line, ContourLine)]
                )
                self._stacks.append((len(own), length, stacked))
            else:
                self._stacks.append((1, 1, first))

    def curve(self, which: Places, points: Array) -> Curve:
        """Brackets at points (n, P), each row of the line meant."""
        if len(self._stacks) == 1 and points.size * self._stacks[0][1] <= _AT_ONCE:
            return self._asked(0, which, points)
        whole = Curve(*(np.empty_like(points) for _ in COLUMNS))
        for number, (_, length, _) in enumerate(self._stacks):
            rows = (self._group[which] == number).nonzero()[0]
            most = max(_AT_ONCE // (length * points.shape[1]), 1)
            for first in range(0, rows.size, most):
                part = rows[first : first + most]
                _put(whole, part, self._asked(number, which[part], points[part]))
        return whole

    def _asked(self, number: int, which: Places, points: Array) -> Curve:
        count, _, line = self._stacks[number]
        if not isinstance(line, ContourLine):
            return line.curve(points.ravel()).reshaped(points.shape)
        if count == 1:
            return line.curve(points)
        place = self._place[which]
        if place.size <= _EACH * count:
            return line.rows(place).curve(points)
        found = Curve(*(np.empty_like(points) for _ in COLUMNS))
        for one, rows in grouped(place):  # many questions of a line need no copies of it
            own = points[rows]
            _put(found, rows, line.rows(one).curve(own.ravel()).reshaped(own.shape))
        return found


def _put(whole: Curve, rows: Places, part: Curve) -> None:
    """Put some rows in their place."""
    for name in COLUMNS:
        getattr(whole, name)[rows] = getattr(part, name)


def grouped(keys: Places) -> Iterator[tuple[int, Places]]:
    """Each key with where it stands."""
    if keys.size == 1:
        yield int(keys[0]), np.zeros(1, dtype=np.intp)
        return
    order = keys.argsort(kind="stable")
    ordered = keys[order]
    starts = [0, *((ordered[1:] != ordered[:-1]).nonzero()[0] + 1).tolist(), keys.size]
    for first, after in itertools.pairwise(starts if keys.size else []):
        yield int(ordered[first]), order[first:after]
