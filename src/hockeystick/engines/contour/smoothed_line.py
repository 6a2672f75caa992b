"""Lines for discrete losses that share no lattice: a little Gaussian noise is added, and its effect bounded.

The transform of a discrete loss need not decay, and without a lattice no finite part of it is the whole. Compose the
run with one Gaussian release of small mu = eta, and again with 2 eta: with h_eta the curve so found, at every epsilon

    (1 + c) h_eta - c h_{2 eta} <= delta <= h_eta,        c = e^{eta^2 / 2},

since what the noise adds to ``E (1 - a e^{-L})+`` is, for each loss, the integral over v from 0 to eta of
``phi(k / v - v / 2)``, ``k = ln a - L``, which is at most c times that from eta to 2 eta. The width is of second order
in eta (`docs/derivations/contour.md`, section 11), so that nine digits need frequencies up to some 1e5 over the
deviation of the loss. Nearly all of them are proved not to matter in blocks (`hockeystick.engines.contour.sieve`); the
rest serve both lines.

Guarantee: both sides certified, given two certified lines. Cost: some ten milliseconds; less with more steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from hockeystick.engines.contour.aliasing import Chernoff
from hockeystick.engines.contour.line import ContourLine
from hockeystick.engines.contour.line_curve import Curve
from hockeystick.engines.contour.line_part import LinePart
from hockeystick.numerics.columns import Array
from hockeystick.numerics.rounding import U

_DEEP = 7.5  # standard deviations of a Gaussian's transform, to start from
_MOVED = 400.0  # ln of how much larger the second line's scale may be
_LARGE = 1e100  # of its upper side
_LOG_FINEST = -300.0  # ln of the scale: such fine noise is refused
_LOG_COARSEST = -0.7  # beyond, nothing is left of the lower side


def smoothing(parts: Sequence[LinePart], epsilon: float, log_delta: float, width: float) -> float:
    """The eta at which the bracket is about ``width`` wide, relative to delta, where losses are dense.

    The width is 1.5 eta^2 times the density of the loss at epsilon, here that of a normal tilted loss; ``log_delta`` is
    ``ln delta`` relative to ``e^{K - theta eps}``.
    """
    mean = math.fsum(float(part.counts @ (part.tilted.centre + part.tilted.drift)) for part in parts)
    variance = max(math.fsum(float(part.counts @ part.tilted.spread) for part in parts), 1e-200)
    log_density = -0.5 * ((epsilon - mean) ** 2 / variance + math.log(2.0 * math.pi * variance)) - log_delta
    log_eta = 0.5 * (math.log(width / 1.5) - log_density)
    return few_bits(math.exp(min(max(log_eta, _LOG_FINEST), _LOG_COARSEST)))


def smoothed_reach(eta: float, theta: float, log_error: float) -> float:
    """About the frequency beyond which noise of eta alone leaves ``e^log_error`` of S."""
    reach = _DEEP
    for _ in range(3):
        log_kernel = math.log(math.atan(theta * eta / reach) / (math.pi * theta))
        reach = math.sqrt(2.0 * max(log_kernel - log_error, 1.0))
    return reach / eta


def few_bits(eta: float) -> float:
    """The number rounded down to ten bits, so that its square is exact."""
    unit = 2.0 ** (math.frexp(eta)[1] - 10)
    return math.floor(eta / unit) * unit


@final
@dataclass(frozen=True, eq=False)
class SmoothedLine:
    """Two lines, of the losses with Gaussian noise of eta and of 2 eta.

    Attributes
    ----------
    once, twice : ContourLine
        The lines.
    eta : float
        Standard deviation of the smaller noise (nats).
    """

    once: ContourLine
    twice: ContourLine
    eta: float

    @property
    def chernoff(self) -> Chernoff:
        """That of the first line."""
        return self.once.chernoff

    def curve(self, epsilon: Array) -> Curve:
        """Brackets of delta_fin(epsilon), epsilon of shape (E,)."""
        once, twice = self.once.curve(epsilon), self.twice.curve(epsilon)
        c = math.exp(0.5 * self.eta * self.eta) * (1.0 + 8.0 * U)
        moved = twice.log_scale - once.log_scale
        doubt = once.log_scale_error + twice.log_scale_error + 4.0 * U * (np.abs(moved) + 1.0)
        usable = (moved + doubt <= _MOVED) & (twice.upper <= _LARGE)  # beyond, the lower side says nothing
        above = np.minimum(twice.upper, _LARGE) * np.exp(np.minimum(moved + doubt, _MOVED)) * (1.0 + 8.0 * U)
        # only a first lower side that is not below 0 is worth more than once
        below = np.where(once.lower > 0.0, (1.0 + c) * (1.0 - 4.0 * U), 1.0) * once.lower - c * above
        below = below - 8.0 * U * (np.abs(below) + c * above)
        below = np.where(usable, below, 0.0)
        return replace(once, lower=below, truncation=once.truncation + np.maximum(once.upper - below, 0.0))
