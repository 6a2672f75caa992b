"""Where the lattices of a composition lie: one spacing for all, an offset for each pair.

Three cases, the best first: every loss is a multiple of one number (the lattice is exact); a pair whose mass
concentrates at one or two losses (its anchors) has its lattice laid through them, where a lattice point costs
nothing; otherwise a dyadic spacing, whose multiples are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.laws.base import Pair
from hockeystick.numerics.rounding import dyadic_below

_CLOSE = 0.25  # of the spacing: anchors that count as one
_TRIES = 500
_LARGEST_RATIO = 1000  # of two quanta that still share a lattice


@final
@dataclass(frozen=True)
class Layout:
    """One spacing and the offsets of the cuts.

    Attributes
    ----------
    spacing : float
        Nats.
    offsets : tuple of float
        One a pair: where its index 0 lies.
    exact : bool
        Whether all losses are multiples of the spacing, so that refining gains nothing.
    """

    spacing: float
    offsets: tuple[float, ...]
    exact: bool


def common_layout(parts: Sequence[tuple[Pair, int]], spacing: float) -> Layout:
    """The layout for a composition, with a spacing of at most about ``spacing`` unless it is exact."""
    quantum = _common_quantum([pair for pair, _ in parts])
    if quantum is not None and quantum >= spacing / 8.0:
        return Layout(quantum, (0.0,) * len(parts), exact=True)
    gaps = [(gap, count) for pair, count in parts if (gap := _gap(pair)) >= 2.0 * spacing]
    h = _dividing(gaps, spacing) if gaps else dyadic_below(spacing)
    offsets = tuple(math.remainder(_point(pair.anchors, h), h) for pair, _ in parts)
    return Layout(h, offsets, exact=False)


def _gap(pair: Pair) -> float:
    """What the distances of a pair's heavy losses are multiples of; 0 where there is no such number."""
    quantum = pair.loss_quantum
    if quantum is not None:
        return quantum.value
    return abs(pair.anchors[0] - pair.anchors[1]) if len(pair.anchors) >= 2 else 0.0


def _dividing(gaps: Sequence[tuple[float, int]], spacing: float) -> float:
    """A spacing of at most ``spacing``, and at least half of that, of which the gaps are nearly multiples.

    It divides the gap of most steps. What the other gaps miss by, the lower lattice loses at every step.
    """
    main = max(gaps, key=lambda one: one[1])[0]
    least = float(math.ceil(main / spacing))  # may be beyond the integers of numpy
    pieces = np.unique(np.linspace(least, 2.0 * least, int(min(least, _TRIES)) + 1).round())
    h = main / pieces
    missed = np.zeros_like(h)
    for gap, count in gaps:
        missed += count * np.abs(gap - np.rint(gap / h) * h)
    return float(h[int(np.argmin(missed))])


def _point(anchors: tuple[float, ...], spacing: float) -> float:
    """The loss to lay a lattice point at.

    Two anchors far closer than the spacing cannot both have one. The upper lattice does not mind; the lower one would
    take what lies below the point a whole spacing down: so 0 where they lie on either side of it, else the lower one.
    """
    if not anchors:
        return 0.0
    if len(anchors) == 1 or abs(anchors[0] - anchors[1]) >= _CLOSE * spacing:
        return anchors[0]
    return 0.0 if min(anchors) <= 0.0 <= max(anchors) else min(anchors)


def _common_quantum(pairs: Sequence[Pair]) -> float | None:
    """The largest number of which all quanta are small multiples, to within rounding."""
    common: float | None = None
    for pair in pairs:
        quantum = pair.loss_quantum
        if quantum is None:
            return None
        common = quantum.value if common is None else _shared(common, quantum.value)
        if common is None:
            return None
    return common


def _shared(a: float, b: float) -> float | None:
    """The greatest common divisor of two floats, if their ratio is close to a ratio of small integers."""
    large, small = max(a, b), min(a, b)
    for denominator in range(1, _LARGEST_RATIO + 1):
        multiple = large * denominator / small
        if multiple > _LARGEST_RATIO:
            return None
        if abs(multiple - round(multiple)) < 1e-13 * multiple:
            return small / denominator
    return None
