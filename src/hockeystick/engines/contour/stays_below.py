"""Which curves are proved at once to stay below a delta: by Chernoff's bound at a few tilts, with a rule and no line.

Like compositions share calls (`hockeystick.laws.loss_sum.LikeSums`), and nothing else: each finds what it finds alone.

Guarantee: what is said to stay below does, rounding included. Cost: a rule without frequencies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hockeystick.engines.contour.placing import log_tail, normal_tilts
from hockeystick.engines.contour.standing import DEEPEST, StandingLines
from hockeystick.laws.loss_sum import LikeSums
from hockeystick.numerics.rounding import exp_up, up
from hockeystick.transforms.rule import Array

__all__ = ["stay_below"]

_DOUBT = 1e-6  # of an estimate of ln of Chernoff's bound


def stay_below(curves: Sequence[StandingLines], epsilon: Array, delta: Array) -> NDArray[np.bool_]:
    """Whether Chernoff's bound proves ``delta(epsilon[i]) <= delta[i]`` of each curve.

    Parameters
    ----------
    curves : sequence of StandingLines
        The curves.
    epsilon, delta : ndarray, shape (n,)
        A point for each (nats).
    """
    found = np.zeros(epsilon.size, dtype=np.bool_)
    kinds: dict[str | int, list[int]] = {}
    for row in np.flatnonzero((epsilon > 0.0) & (delta > 0.0) & (delta < 1.0)).tolist():
        kinds.setdefault(curves[row].losses.kind or row, []).append(row)
    for own in kinds.values():
        sums = [curves[row].losses.dropping(DEEPEST) for row in own]
        losses = LikeSums.of(sums) if len(sums) > 1 else sums[0]
        goal = np.log(delta[own]) + _DOUBT
        logs = log_tail(losses, normal_tilts(epsilon[own], delta[own]), epsilon[own], goal=goal)
        for row, log in zip(own, logs.tolist(), strict=True):
            found[row] = up(curves[row].infinite_mass[1] + exp_up(min(log, 0.0))) <= delta[row]
    return found
