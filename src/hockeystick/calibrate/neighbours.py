"""Where a calibration begins when its neighbours along a line are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["ahead"]

_KNOWN = 4  # answers from which the next is predicted
_FARTHEST = math.log(2.0)  # that it may lie from the last


def ahead(known: Sequence[tuple[float, float]], place: float) -> float | None:
    """The answer at a place, predicted from the last few: the polynomial through them, on logarithmic scales.

    Parameters
    ----------
    known : sequence of (float, float)
        Places and answers, all positive, the nearest last.
    place : float
        A positive place.

    Examples
    --------
    >>> round(ahead([(1.0, 3.0), (2.0, 6.0)], 3.0), 12)
    9.0
    """
    if not known or math.isnan(place):
        return None
    x = math.log(place)
    near = [(math.log(at), math.log(answer)) for at, answer in known[-_KNOWN:]]
    last = near[-1][1]
    if len({at for at, _ in near}) < len(near):  # the same place twice
        return known[-1][1]
    following = sum(
        value * math.prod((x - other) / (at - other) for other, _ in near if other != at) for at, value in near
    )
    return math.exp(min(max(following, last - _FARTHEST), last + _FARTHEST))
