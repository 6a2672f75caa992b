"""What large losses add to delta: exactly what their masses say, but for the few that still end below epsilon.

With H the event that the upper cut takes a step away,

    E[(1 - e^{eps - L})_+ ; H] = P(H) - e^eps Q(H) + E[(e^{eps - L} - 1)_+ ; H],

and the last term, the *excess*, is at most ``c(p - 1) e^{p eps}`` times the sum over steps of
``E[e^{-p l}; step taken]`` and the product of ``E[e^{-p l}]`` over the others.

Guarantee: upper bounds (`docs/derivations/rare-losses.md`, sections 1 and 5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.rare.losses import Array, RareLosses, RareSum, kept
from hockeystick.numerics.rounding import log_sums

_POWERS = np.geomspace(1.5, 600.0, 8)  # over epsilon, where that is below 1
_LEAST = 1e-12  # below it a larger power gains nothing
_CELL = 0.04  # in the base loss
_BEYOND = 4.0  # nats of base loss above epsilon, from which on one cell is enough
_BELOW = 14.0  # widths below the cut


def least_excess(losses: RareSum, cuts: Sequence[float], epsilon: float) -> tuple[float, float]:
    """A power p and ``ln`` of the bound on the excess with it, the least of a few; cuts of every law."""
    powers = 1.0 + (_POWERS - 1.0) / min(max(epsilon, _LEAST), 1.0)
    logs = log_excess(losses, cuts, powers, times=losses.counts[None]) + powers * epsilon
    best = int(np.argmin(logs))
    return float(powers[best]), float(logs[best])


def log_excess(losses: RareSum, cuts: Sequence[float], powers: Array, *, times: Array) -> Array:
    """``ln`` of the bounds at epsilon 0, for powers p > 1; of several runs, of so many steps each, for one power.

    Cuts have the shape (K,), and times, how often runs compose the laws, (R, K).
    """
    ones, moments = [], []
    for law, cut in zip(losses.laws, cuts, strict=True):
        ones.append(_log_taken(law, cut, powers))
        moments.append(log_moment(law, powers))
    one, moment = np.array(ones).T, np.array(moments).T  # (n, K)
    with np.errstate(invalid="ignore"):  # where a moment is beyond float64, nothing is known
        all_others = (times * moment).sum(axis=1)
        found = log_sums(np.log(times) + one - moment) + all_others + log_constant(powers - 1.0)
    found = found + 1e-9 * (1.0 + np.abs(found) + np.abs(one).max(axis=1) + all_others)
    return np.asarray(np.where(np.isnan(found), np.inf, found))


def _log_taken(law: RareLosses, cut: float, powers: Array) -> Array:
    """``ln`` of bounds on the mean of ``e^{-p l}`` where the cut takes a step away."""
    m, g = law.shift, law.rate
    edges = np.arange(cut - _BELOW * law.width, cut + _BEYOND, _CELL)
    left, right = edges[:-1], edges[1:]
    middle = np.clip(-0.5 * m * m, left, right)  # where the density of Q is largest
    taken = law.log_density(middle) + math.log(_CELL) + np.log(kept((cut - right) / law.width))
    c = powers[:, None] - 1.0
    inside = taken - c * law.loss(left)
    # below the first edge a step is hardly ever taken; above the last Q has hardly any mass
    least, most = kept(np.array([_BELOW, (edges[-1] / m + 0.5 * m) / math.sqrt(2.0)])).tolist()
    least, most = max(least, 1e-300), max(most, 1e-300)
    below = math.log(least) - c * math.log1p(-g)
    above = math.log(most) - c * float(law.loss(edges[-1:])[0])
    logs = np.concatenate((inside, below, above), axis=1)
    return np.asarray(log_sums(logs) + 1e-9 * (1.0 + np.abs(logs).max(axis=1)))


def log_moment(law: RareLosses, powers: Array) -> Array:
    """``ln`` of upper bounds on the mean of ``e^{-p l}``, for powers p >= 1: at least 0.

    With c = p - 1 and x = r - 1, of mean 0 under Q and at least -g: ``(1 + x)^-c`` is at most ``1 - c x`` and half the
    square of x times its largest second derivative, ``c (c + 1) (1 - g)^{-c - 2}``.
    """
    g = law.rate
    with np.errstate(over="ignore"):  # where the bound is of no use
        square = np.expm1(law.shift * law.shift)
        bend = powers * (powers - 1.0) * np.exp(-(powers + 1.0) * math.log1p(-g))
        return np.asarray(np.log1p(0.5 * bend * g * g * square))
