"""Where to put the line: its tilt, and the tilts that bound its aliasing.

The saddle point makes the sum best conditioned, but where K has a cliff (small noise, rare sampling) just above it the
tilted loss has a second mode far away and the aliasing needs a long period. A smaller tilt then costs some
conditioning, ``e^loss`` in the rounding error, and saves many nodes. All candidates are weighed on one scan of K, those
of many runs at once.

Estimates only: what is chosen is certified afterwards. Cost: one exponential for each node and tilt.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.numerics.columns import Columns, across
from hockeystick.transforms.rule import Array, Rows
from hockeystick.transforms.saddle import LossSum, Saddle, normal_tilts

_LEAST = 0.009  # candidates are not below this fraction of the saddle point
_PRICE = 0.5  # of a nat of conditioning, in nats of the period
_SHORTEST = 0.01  # of the standard deviation, that a period may be
_KEPT = 3  # tilts of each side that are certified
_MIRRORED = np.array([0.7, 1.0, 1.4, 2.0])[:, None]  # times a tilt, where the reverse may be told to lie below

BEST: Final = np.array([0, 1, 1 + _KEPT])
"""Where in a plan's tilts the tilt 0 stands, and on each side that of the shortest period."""


@final
@dataclass(frozen=True, eq=False)
class LinePlan(Columns):
    """A tilt, the tilts of Chernoff's bounds, and estimates that go with them, for each of R runs.

    Attributes
    ----------
    theta : ndarray, shape (R,)
        The tilt of the line.
    tilts : ndarray, shape (k, R)
        Tilts that bound the aliasing, 0 among them and theta not.
    mirrored : ndarray, shape (m, R)
        Tilts t below -1, K at which is that of the reverse at -1 - t: they tell whether that lies below (0 for none).
    log_error : ndarray, shape (R,)
        ``ln`` of the absolute error that each part of ``S = delta / e^{K - theta eps}`` may have.
    deviation : ndarray, shape (R,)
        Standard deviation of the tilted loss and its kernel together (nats).
    period : ndarray, shape (R,)
        Lambda that the aliasing needs (nats).
    """

    theta: Array
    tilts: Array
    mirrored: Array
    log_error: Array
    deviation: Array
    period: Array

    @cached_property
    def exponents(self) -> Array:
        """One plus theta and one plus every tilt that bounds the aliasing: all exact; shape (K, R)."""
        return 1.0 + np.concatenate((self.theta[None], self.tilts))

    @cached_property
    def every(self) -> Array:
        """Theta and every other tilt, shape (K, R)."""
        return np.concatenate((self.theta[None], self.tilts, self.mirrored))

    def at(self, rows: Rows) -> LinePlan:
        """Those of some of the runs."""
        return self.of_all([self], lambda own: own[0][..., rows])


def log_share(tolerance: Any) -> Any:
    """``ln`` of the part of delta that each error of a line may be."""
    return np.log(tolerance / 16.0)


def plan_lines(
    losses: LossSum, saddle: Saddle, epsilon: Array, *, tolerance: Array, log_delta: Array | None = None
) -> LinePlan:
    """The tilts that need the shortest periods, at a fair price for conditioning.

    Parameters
    ----------
    losses : LossSum
        R sums.
    saddle : Saddle
        The saddle points of ``epsilon``, or near them (`Saddle.stacked`).
    epsilon : ndarray, shape (R,)
        The points to serve (nats).
    tolerance : ndarray, shape (R,)
        Relative widths wanted.
    log_delta : ndarray, shape (R,), optional
        ``ln delta`` where it is known; by default its saddle-point estimate.
    """
    found = saddle.looked_around(losses)
    tilts, exponent = found.tilts, found.value - found.tilts * across(epsilon)  # ln E of a line at each tilt
    if log_delta is None:
        log_delta = saddle.log_delta(epsilon)
    # Chernoff's bound, whatever was said
    log_delta = np.minimum(log_delta, np.where(tilts > 0.0, exponent, np.inf).min(axis=0))
    wanted = log_delta + log_share(tolerance)
    usable = (tilts <= across(saddle.theta * 1.0001)) & (tilts >= across(_LEAST * saddle.theta))
    usable &= np.isfinite(exponent)  # K may be beyond float64, but not everywhere
    # the period that a tilt t allows a line at theta is a number of its own over |t - theta|
    room = np.logaddexp(0.0, exponent + log_constant(tilts) - across(wanted))
    gap = tilts[:, None] - tilts
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = room[:, None] / np.abs(gap)
        sides = [np.where(side, needed, np.inf) for side in (gap > 0.0, gap < 0.0)]
        period = np.maximum(sides[0].min(axis=0), sides[1].min(axis=0))
        period = np.maximum(period, across(_SHORTEST * np.sqrt(saddle.curvature)))
        integrand = np.where(usable, exponent - np.log(tilts * (1.0 + tilts)), np.inf)  # least at the saddle point
        price = np.where(usable, np.log(period) + _PRICE * (integrand - across(integrand.min(axis=0))), np.inf)
    best, row = price.argmin(axis=0), np.arange(saddle.theta.size)
    theta, variance = tilts[best, row], found.variance[best, row]
    chosen = [_nearest(side[:, best, row], np.abs(gap[:, best, row]), tilts) for side in sides]
    below = (epsilon > 0.0) & (log_delta < 0.0)
    mirrored = -1.0 - normal_tilts(np.where(below, epsilon, 1.0), np.where(below, log_delta, -1.0), _MIRRORED)
    return LinePlan(
        theta=theta,
        tilts=np.concatenate((np.zeros((1, best.size)), *chosen)),
        mirrored=np.where(below, mirrored, 0.0),
        log_error=wanted - exponent[best, row],
        deviation=np.sqrt(variance + theta**-2.0 + (1.0 + theta) ** -2.0),
        period=period[best, row],
    )


def _nearest(needed: Array, distance: Array, tilts: Array) -> Array:
    """The tilts of one side that need the shortest periods, not farther than the best; 0 for want of another."""
    row = np.arange(needed.shape[1])
    # a farther tilt than the best one would only widen the rules
    near = np.where(distance <= across(1.001 * distance[needed.argmin(axis=0), row]), needed, np.inf)
    order = near.argsort(axis=0, kind="stable")[:_KEPT]
    return np.where(np.isfinite(near[order, row]), tilts[order, row], 0.0)
