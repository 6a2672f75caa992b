"""Where the lines of many questions stand: those of like compositions are looked for in one pass.

Estimates only: a line proves what it says wherever it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.contour.lines import Quantity, grouped
from hockeystick.engines.contour.standing import DEEPEST, StandingLines
from hockeystick.engines.contour.stations import Station, Stations, by_epsilon, by_log_delta, scan_towards
from hockeystick.transforms.rule import Array

Rows = NDArray[np.intp]


def station_near(curve: StandingLines, value: float, quantity: Quantity) -> Station | None:
    """The station of one question; see `look_for`."""
    return look_for([curve], np.zeros(1, dtype=np.intp), np.array([value]), quantity)[0]


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
