"""Where to put the line: its tilt, and the tilts that bound its aliasing.

The saddle point makes the sum best conditioned, but where K has a cliff (small noise, rare sampling) just above it the
tilted loss has a second mode far away and the aliasing needs a long period. A smaller tilt then costs some
conditioning, ``e^loss`` in the rounding error, and saves many nodes. All candidates are weighed on one scan of K.

Estimates only: what is chosen is certified afterwards. Cost: one exponential for each node and tilt.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.transforms.cumulants import Scan
from hockeystick.transforms.rule import Array
from hockeystick.transforms.saddle import Saddle, round_tilts

__all__ = ["LinePlan", "log_share", "plan_line"]

_FACTORS = np.array(
    [0.01, 0.03, 0.08, 0.15, 0.25, 0.35, 0.5, 0.6, 0.7, 0.8, 0.86, 0.92, 0.96, 1.0, 1.02, 1.05, 1.1, 1.2, 1.4, 1.8, 2.5]
)
_GAPS = np.array([0.1, 0.3, 0.8, 2.0, 4.0, 7.5])  # over the standard deviation at the saddle point
_LEAST = 0.009  # candidates are not below this fraction of the saddle point
_PRICE = 0.5  # of a nat of conditioning, in nats of the period
_SHORTEST = 0.01  # of the standard deviation, that a period may be
_FARTHEST = 1e4
_KEPT = 3  # tilts of each side that are certified


@final
@dataclass(frozen=True)
class LinePlan:
    """A tilt, the tilts of Chernoff's bounds, and estimates that go with them.

    Attributes
    ----------
    theta : float
        The tilt of the line.
    tilts : tuple of float
        Tilts that bound the aliasing, 0 among them and theta not.
    log_error : float
        ``ln`` of the absolute error that each part of ``S = delta / e^{K - theta eps}`` may have.
    deviation : float
        Standard deviation of the tilted loss and its kernel together (nats).
    period : float
        Lambda that the aliasing needs (nats).
    """

    theta: float
    tilts: tuple[float, ...]
    log_error: float
    deviation: float
    period: float

    @property
    def exponents(self) -> tuple[float, ...]:
        """One plus theta and one plus every other tilt: all exact."""
        return (1.0 + self.theta, *(1.0 + t for t in self.tilts))


def log_share(tolerance: float) -> float:
    """``ln`` of the part of delta that each error of a line may be."""
    return math.log(tolerance / 16.0)


def plan_line(
    look: Callable[[Array], Scan], saddle: Saddle, epsilon: float, *, tolerance: float, log_delta: float | None = None
) -> LinePlan:
    """The tilt that needs the shortest period, at a fair price for conditioning.

    Parameters
    ----------
    look : callable
        From tilts to estimates of K there.
    saddle : Saddle
        The saddle point of ``epsilon``, or near it.
    epsilon : float
        The point to serve (nats).
    tolerance : float
        Relative width wanted.
    log_delta : float, optional
        ``ln delta`` where it is known; by default its saddle-point estimate.
    """
    tilts = _grid(saddle)
    found = look(tilts)
    exponent = found.value - tilts * epsilon  # ln E of a line at each tilt
    if log_delta is None:
        log_delta = saddle.log_delta(epsilon)
    log_delta = min(log_delta, float(exponent[tilts > 0.0].min()))  # Chernoff's bound, whatever was said
    log_error = log_delta - exponent + log_share(tolerance)
    within = (tilts <= saddle.theta * 1.0001) & (tilts >= _LEAST * saddle.theta)
    candidates = np.flatnonzero(within & np.isfinite(exponent))  # K may be beyond float64, but not everywhere
    gap = tilts - tilts[candidates, None]
    log_ratio = exponent - exponent[candidates, None] + log_constant(tilts)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.logaddexp(0.0, log_ratio - log_error[candidates, None]) / np.abs(gap)
    right, left = np.where(gap > 0.0, needed, np.inf), np.where(gap < 0.0, needed, np.inf)
    shortest = _SHORTEST * saddle.curvature**0.5
    period = np.maximum(np.maximum(right.min(axis=1), left.min(axis=1)), shortest)
    own = tilts[candidates]
    integrand = exponent[candidates] - np.log(own * (1.0 + own))  # least at the saddle point
    price = np.log(period) + _PRICE * (integrand - integrand.min())
    best = int(np.argmin(price))
    theta = float(tilts[candidates[best]])
    chosen = {0.0}
    for side in (right[best], left[best]):
        order = np.argsort(side, kind="stable")
        # a farther tilt than the best one would only widen the rules
        distances = np.abs(gap[best, order])
        near = order[distances <= 1.001 * distances[0]]
        chosen.update(tilts[near[:_KEPT]].tolist())
    variance = float(found.variance[candidates[best]])
    return LinePlan(
        theta=theta,
        tilts=tuple(sorted(chosen - {theta})),
        log_error=float(log_error[candidates[best]]),
        deviation=(variance + theta**-2.0 + (1.0 + theta) ** -2.0) ** 0.5,
        period=float(period[best]),
    )


def _grid(saddle: Saddle) -> Array:
    """Tilts around the saddle point, on the scales of theta and of the deviation, each with few bits."""
    theta = saddle.theta
    gaps = _GAPS / math.sqrt(saddle.variance) if saddle.variance > 0.0 else theta * _FACTORS
    every = np.concatenate((theta * _FACTORS, theta + gaps, theta - gaps, (-1.0, -0.5, 0.0)))
    return round_tilts(every[(every >= -1.0) & (every <= _FARTHEST * (1.0 + theta))])
