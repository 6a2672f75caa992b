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
from numpy.typing import NDArray

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.numerics.columns import Columns
from hockeystick.transforms.rule import Array
from hockeystick.transforms.saddle import LossSum, Saddle, round_tilts

_FACTORS = np.array(
    [0.01, 0.03, 0.08, 0.15, 0.25, 0.35, 0.5, 0.6, 0.7, 0.8, 0.86, 0.92, 0.96, 1.0, 1.02, 1.05, 1.1, 1.2, 1.4, 1.8, 2.5]
)
_GAPS = np.array([0.1, 0.3, 0.8, 2.0, 4.0, 7.5])  # over the standard deviation at the saddle point
_FIXED = np.array([-1.0, -0.5, 0.0])
_LEAST = 0.009  # candidates are not below this fraction of the saddle point
_PRICE = 0.5  # of a nat of conditioning, in nats of the period
_SHORTEST = 0.01  # of the standard deviation, that a period may be
_FARTHEST = 1e4
_MOST = 21  # candidates, at most
_KEPT = 3  # tilts of each side that are certified

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
    tilts : ndarray, shape (R, k)
        Tilts that bound the aliasing, 0 among them and theta not.
    log_error : ndarray, shape (R,)
        ``ln`` of the absolute error that each part of ``S = delta / e^{K - theta eps}`` may have.
    deviation : ndarray, shape (R,)
        Standard deviation of the tilted loss and its kernel together (nats).
    period : ndarray, shape (R,)
        Lambda that the aliasing needs (nats).
    """

    theta: Array
    tilts: Array
    log_error: Array
    deviation: Array
    period: Array

    @cached_property
    def every(self) -> Array:
        """Theta and every other tilt, shape (K, R)."""
        return np.concatenate((self.theta[None], self.tilts.T))

    @cached_property
    def exponents(self) -> Array:
        """One plus theta and one plus every other tilt: all exact; shape (K, R)."""
        return 1.0 + self.every


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
    tilts = _grid(saddle)
    found = saddle.look(losses, np.ascontiguousarray(tilts.T))
    value, variance = np.ascontiguousarray(found.value.T), np.ascontiguousarray(found.variance.T)
    exponent = value - tilts * epsilon[:, None]  # ln E of a line at each tilt
    if log_delta is None:
        log_delta = saddle.log_delta(epsilon)
    least = np.where(tilts > 0.0, exponent, np.inf).min(axis=1)
    log_delta = np.minimum(log_delta, least)  # Chernoff's bound, whatever was said
    log_error = log_delta[:, None] - exponent + log_share(tolerance)[:, None]
    own, usable = _candidates(tilts, saddle.theta)
    row = np.arange(len(own))
    theta, at, allowed = (one[row[:, None], own] for one in (tilts, exponent, log_error))
    usable &= np.isfinite(at)  # K may be beyond float64, but not everywhere
    at, allowed = np.where(usable, at, 0.0), np.where(usable, allowed, 0.0)
    fresh = np.ones(tilts.shape, dtype=np.bool_)
    fresh[:, 1:] = tilts[:, 1:] > tilts[:, :-1]
    gap = np.where(fresh[:, None], tilts[:, None] - theta[:, :, None], 0.0)
    log_ratio = exponent[:, None] - at[:, :, None] + log_constant(tilts)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.logaddexp(0.0, log_ratio - allowed[:, :, None]) / np.abs(gap)
    right, left = np.where(gap > 0.0, needed, np.inf), np.where(gap < 0.0, needed, np.inf)
    shortest = _SHORTEST * np.sqrt(saddle.curvature)[:, None]
    period = np.maximum(np.maximum(right.min(axis=2), left.min(axis=2)), shortest)
    with np.errstate(divide="ignore", invalid="ignore"):
        integrand = np.where(usable, at - np.log(theta * (1.0 + theta)), np.inf)  # least at the saddle point
        price = np.log(period) + _PRICE * (integrand - integrand.min(axis=1, keepdims=True))
    best = np.argmin(np.where(usable, price, np.inf), axis=1)
    chosen = [_nearest(side[row, best], gap[row, best], tilts) for side in (right, left)]
    own_theta, own_variance = theta[row, best], variance[row, own[row, best]]
    return LinePlan(
        theta=own_theta,
        tilts=np.concatenate((np.zeros((best.size, 1)), *chosen), axis=1),
        log_error=allowed[row, best],
        deviation=np.sqrt(own_variance + own_theta**-2.0 + (1.0 + own_theta) ** -2.0),
        period=period[row, best],
    )


def _candidates(tilts: Array, theta: Array) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where in each row the tilts stand that a line may have, and which of these are no others in disguise."""
    within = (tilts <= theta[:, None] * 1.0001) & (tilts >= _LEAST * theta[:, None])
    place = np.argmax(within, axis=1)[:, None] + np.arange(_MOST)
    own = np.minimum(place, tilts.shape[1] - 1)
    return own, within[np.arange(len(own))[:, None], own] & (place < tilts.shape[1])


def _nearest(needed: Array, gap: Array, tilts: Array) -> Array:
    """The tilts of one side that need the shortest periods, not farther than the best; 0 for want of another."""
    distance = np.abs(gap)
    row = np.arange(len(needed))[:, None]
    first = np.argmin(needed, axis=1)[:, None]
    # a farther tilt than the best one would only widen the rules
    near = np.where(distance <= 1.001 * distance[row, first], needed, np.inf)
    order = np.argsort(near, axis=1, kind="stable")[:, :_KEPT]
    return np.where(np.isfinite(near[row, order]), tilts[row, order], 0.0)


def _grid(saddle: Saddle) -> Array:
    """Tilts around the saddle points, on the scales of theta and of the deviation, each with few bits; shape (R, k)."""
    theta = saddle.theta[:, None]
    variance = np.maximum(saddle.variance, 0.0)[:, None]
    with np.errstate(divide="ignore"):
        gaps = np.where(variance > 0.0, _GAPS / np.sqrt(variance), theta * _FACTORS[: _GAPS.size])
    fixed = _FIXED + np.zeros((theta.size, 1))
    every = np.concatenate((theta * _FACTORS, theta + gaps, theta - gaps, fixed), axis=1)
    return round_tilts(np.where((every >= -1.0) & (every <= _FARTHEST * (1.0 + theta)), every, 0.0))
