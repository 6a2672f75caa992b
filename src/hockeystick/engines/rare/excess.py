"""What large losses add to delta: exactly what their masses say, but for the few that still end below epsilon.

With H the event that the upper cut takes a step away,

    E[(1 - e^{eps - L})_+ ; H] = P(H) - e^eps Q(H) + E[(e^{eps - L} - 1)_+ ; H],

and the last term, the *excess*, is at most ``T c(p - 1) e^{p eps} E[e^{-p l}; step taken] E[e^{-p l}]^{T-1}``.

Guarantee: upper bounds (`docs/derivations/rare-losses.md`, section 1).
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.engines.contour.aliasing import log_constant
from hockeystick.engines.rare.losses import Array, RareLosses, kept

_POWERS = np.geomspace(1.5, 600.0, 8)  # over epsilon, where that is below 1
_LEAST = 1e-12  # below it a larger power gains nothing
_CELL = 0.04  # in the base loss
_BEYOND = 4.0  # nats of base loss above epsilon, from which on one cell is enough
_BELOW = 14.0  # widths below the cut


def least_excess(losses: RareLosses, cut: float, epsilon: float) -> tuple[float, float]:
    """A power p and ``ln`` of the bound on the excess with it, the least of a few."""
    powers = 1.0 + (_POWERS - 1.0) / min(max(epsilon, _LEAST), 1.0)
    logs = log_excess(losses, cut, powers) + powers * epsilon
    best = int(np.argmin(logs))
    return float(powers[best]), float(logs[best])


def log_excess(losses: RareLosses, cut: float, powers: Array, *, times: Array | None = None) -> Array:
    """``ln`` of the bounds at epsilon 0, for powers p > 1; of several runs, of so many steps each, for one power."""
    m, g = losses.shift, losses.rate
    steps = np.array(losses.steps) if times is None else times
    edges = np.arange(cut - _BELOW * losses.width, cut + _BEYOND, _CELL)
    left, right = edges[:-1], edges[1:]
    middle = np.clip(-0.5 * m * m, left, right)  # where the density of Q is largest
    taken = losses.log_density(middle) + math.log(_CELL) + np.log(kept((cut - right) / losses.width))
    c = powers[:, None] - 1.0
    inside = taken - c * losses.loss(left)
    # below the first edge a step is hardly ever taken; above the last Q has hardly any mass
    least, most = kept(np.array([_BELOW, (edges[-1] / m + 0.5 * m) / math.sqrt(2.0)])).tolist()
    least, most = max(least, 1e-300), max(most, 1e-300)
    below = math.log(least) - c * math.log1p(-g)
    above = math.log(most) - c * float(losses.loss(edges[-1:])[0])
    logs = np.concatenate((inside, below, above), axis=1)
    peak = logs.max(axis=1, keepdims=True)
    one = np.log(np.exp(logs - peak).sum(axis=1)) + peak[:, 0]
    others = (steps - 1.0) * log_moment(losses, powers)
    found = np.log(steps) + log_constant(powers - 1.0) + one + others
    return np.asarray(found + 1e-9 * (1.0 + np.abs(found) + np.abs(logs).max(axis=1) + others))


def log_moment(losses: RareLosses, powers: Array) -> Array:
    """``ln`` of upper bounds on the mean of ``e^{-p l}``, for powers p >= 1.

    With c = p - 1 and x = r - 1, of mean 0 under Q and at least -g: ``(1 + x)^-c`` is at most ``1 - c x`` and half the
    square of x times its largest second derivative, ``c (c + 1) (1 - g)^{-c - 2}``.
    """
    g = losses.rate
    with np.errstate(over="ignore"):  # where the bound is of no use
        square = np.expm1(losses.shift * losses.shift)
        bend = powers * (powers - 1.0) * np.exp(-(powers + 1.0) * math.log1p(-g))
        return np.asarray(np.log1p(0.5 * bend * g * g * square))
