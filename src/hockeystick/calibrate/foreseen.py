"""Noise that a calibration is expected to find: what a picture begins with, whose curve then is the proof.

An estimate on the safe side by half the precision; nothing is proved. Cost: three or four estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hockeystick.accountants.certified import Certified
from hockeystick.calibrate.axis import Axis
from hockeystick.calibrate.problem import Problem
from hockeystick.calibrate.search import Search
from hockeystick.calibrate.targets import target_of
from hockeystick.composition import Composition

_ASIDE = 0.5  # of the precision
_STEP = 0.05  # in ln


def foreseen_noise(
    family: Callable[[float], Composition],
    wanted: Mapping[str, Any],
    *,
    within: tuple[float, float],
    precision: float,
) -> float:
    """About the smallest noise multiplier with which a run meets a target: epsilon (nats) at delta, by adjacency.

    Examples
    --------
    >>> import hockeystick as hs
    >>> found = foreseen_noise(
    ...     lambda noise: hs.Gaussian(noise).poisson(0.01) * 2000,
    ...     {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "guess": 1.8},
    ...     within=(0.1, 100.0),
    ...     precision=1e-3,
    ... )
    >>> proved = hs.dpsgd.noise_multiplier_for(epsilon=1.0, delta=1e-5, steps=2000, rate=0.01)
    >>> 0.0 < found / proved.value - 1.0 < 1e-3
    True
    """
    target = target_of(epsilon=wanted["epsilon"], delta=wanted["delta"])
    problem = Problem(family, target, wanted["adjacency"], Certified())
    search = Search(problem, Axis(*within, whole=False, sign=-1, precision=precision))
    start = min(max(wanted["guess"] or 1.0, within[0]), within[1])
    place = search.predicted_root(start, _STEP)
    return search.axis.value(place - _ASIDE * precision)
