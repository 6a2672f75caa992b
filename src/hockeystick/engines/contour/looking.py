"""Where the lines of many questions stand: those of like compositions are looked for in one pass.

Estimates only: a line proves what it says wherever it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hockeystick.engines.contour.levels import by_epsilon, by_log_delta
from hockeystick.engines.contour.lines import Quantity, grouped
from hockeystick.engines.contour.standing import DEEPEST, StandingLines
from hockeystick.engines.contour.stations import Station, find_stations
from hockeystick.numerics.columns import Array, Places


def station_near(curve: StandingLines, value: float, quantity: Quantity) -> Station | None:
    """The station of one question; see `look_for`."""
    return look_for([curve], np.zeros(1, dtype=np.intp), np.array([value]), quantity)[0]


def look_for(
    curves: Sequence[StandingLines], owners: Places, values: Array, quantity: Quantity
) -> list[Station | None]:
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
    asked = []
    for owner, rows in grouped(owners):
        key, known = (quantity, float(values[rows[0]])), curves[owner].looked_for
        if rows.size == 1 and known is not None and known[0] == key:
            found[rows[0]] = known[1]
        else:
            asked.append((curves[owner], rows))
    sign, along = (1.0, by_epsilon) if quantity == "delta" else (-1.0, by_log_delta)
    several = find_stations([(curve.ladder(DEEPEST), sign * values[rows]) for curve, rows in asked], along)
    tamed: list[tuple[StandingLines, int, float]] = []
    for (curve, rows), own in zip(asked, several, strict=True):
        for row, station in zip(rows.tolist(), own, strict=True):
            found[row] = station
        if quantity == "epsilon":
            tamed += [(curve, int(rows[place]), drop) for place, drop in curve.tamed(own, values[rows])]
    others = [(curve.ladder(drop), sign * values[row : row + 1]) for curve, row, drop in tamed]
    for (curve, row, drop), (other,) in zip(tamed, find_stations(others, along), strict=True):
        found[row] = other if curve.ladder(drop).leaves_out(other) else found[row]
    for curve, rows in asked:
        if rows.size == 1:  # it is often asked again, for the other direction
            curve.looked_for = (quantity, float(values[rows[0]])), found[rows[0]]
    return found
