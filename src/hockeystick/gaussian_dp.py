"""Gaussian differential privacy in closed form: what a Gaussian curve must be to lie above points, cells and tails.

Symbols: ``d_mu(eps) = H_{e^eps}(N(mu, 1) || N(0, 1))``; ``a = e^eps``. A point (eps, u) needs ``d_mu(eps) >=
u``; a cell between two points needs d_mu to be above the chord of the two, as a function of a; a tail needs it
from some epsilon on.

Guarantee: every mu returned as an upper one has been verified with certified values; nothing rests on the root finding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from hockeystick.bound import Bound
from hockeystick.errors import check_finite, check_probability
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import U, up
from hockeystick.pairs.base import Pair
from hockeystick.pairs.gaussian import GaussianPair
from hockeystick.pairs.one_step import one_step_delta
from hockeystick.pairs.reversed import ReversedPair
from hockeystick.pairs.subsampled import SubsampledPair

__all__ = ["CompositionTail", "GaussianTail", "Point", "gaussian_tail", "mu_at", "mu_below", "mu_of_cell", "tail_of"]

_CLOSE = 1e-11  # relative step outward of a computed mu before it is verified
_LOG_NDTR = 1e-13  # relative error of ln Phi, tested against ball arithmetic
_STEEPEST = 7.0  # a slope of -Phi(7), the steepest drawn


@final
@dataclass(frozen=True)
class GaussianTail:
    """A pair's curve lies below that of a Gaussian pair followed by a bounded part: ``h(a) <= H_mu(a e^-epsilon)``.

    Attributes
    ----------
    mu : float
        Of the Gaussian part, rounded up; 0 where there is none.
    epsilon : float
        The bounded part (nats), rounded up.
    attained : bool
        Whether the tail in one direction decays no faster than the Gaussian part's.
    gaussian : bool
        Whether the pair is the Gaussian pair itself.
    """

    mu: float
    epsilon: float
    attained: bool
    gaussian: bool = False


def gaussian_tail(pair: Pair) -> GaussianTail | None:
    """The Gaussian tail of one pair and of its reverse; None where none is known.

    Sampling only lowers the curve (it is jointly convex), and a pair whose losses are bounded by e is an e-DP one.

    Examples
    --------
    >>> gaussian_tail(GaussianPair(2.0)).gaussian
    True
    """
    if isinstance(pair, GaussianPair):
        return GaussianTail(up(pair.shift, 2.0 * U), 0.0, attained=True, gaussian=True)
    if isinstance(pair, ReversedPair):
        return gaussian_tail(pair.base)
    low, high = pair.loss_bounds
    if math.isfinite(low) and math.isfinite(high) and pair.mass_at_infinity == pair.reverse_mass_at_infinity == 0.0:
        return GaussianTail(0.0, up(max(abs(low), abs(high)), 1e-13), attained=False)
    if isinstance(pair, SubsampledPair):
        base = gaussian_tail(pair.base)
        return None if base is None else GaussianTail(base.mu, base.epsilon, attained=base.attained)
    return None


def mu_at(epsilon: float, delta: float) -> Bound:
    """The smallest mu whose Gaussian-DP curve has at least ``delta`` at ``epsilon``.

    The mu of every mu-GDP run with this (epsilon, delta) is at least that; it is the mu at which Gaussian noise
    meets them.

    Parameters
    ----------
    epsilon : float
        At least 0 (nats).
    delta : float
        In [0, 1].

    Examples
    --------
    >>> mu_at(1.0, 0.12693673750664397).contains(1.0)
    True
    """
    point, value = check_finite("epsilon", epsilon), check_probability("delta", delta)
    if point < 0.0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon!r}")
    return Bound(mu_below(point, value), _mu_above(point, value), "closed form of the Gaussian")


def _mu_guess(epsilon: float, delta: float) -> float:
    """mu by bisection on ln mu, in floating point."""
    target = math.log(delta)

    def excess(log_mu: float) -> float:
        value = math.exp(log_mu)
        first = float(log_ndtr(0.5 * value - epsilon / value))
        second = epsilon + float(log_ndtr(-0.5 * value - epsilon / value))
        gap = -math.expm1(second - first)
        return (first + math.log(gap) if gap > 0.0 else -math.inf) - target

    return math.exp(increasing_root(excess, -40.0, math.log(80.0 + 2.0 * math.sqrt(2.0 * epsilon + 1500.0)), 1e-13))


def mu_below(epsilon: float, delta: float) -> float:
    """A mu whose curve has at most ``delta`` at epsilon, proved."""
    if delta <= 0.0:
        return 0.0
    if delta >= 1.0:
        return math.inf
    guess, step = _mu_guess(epsilon, delta), _CLOSE
    while step < 0.5:
        mu_low = guess * (1.0 - step)
        if one_step_delta(GaussianPair(1.0, mu_low), epsilon)[1] <= delta:
            return mu_low
        step *= 4.0
    return 0.0


def _mu_above(epsilon: float, delta: float) -> float:
    """A mu whose curve has at least ``delta`` at epsilon, proved."""
    if delta <= 0.0:
        return 0.0
    if delta >= 1.0:
        return math.inf
    guess, step = _mu_guess(epsilon, delta), _CLOSE
    while step < 1.0:
        mu_high = guess * (1.0 + step)
        if one_step_delta(GaussianPair(1.0, mu_high), epsilon)[0] >= delta:
            return mu_high
        step *= 4.0
    return math.inf


def _log_phi(x: float) -> tuple[float, float]:
    """Bounds on ln Phi(x)."""
    value = float(log_ndtr(x))
    return value * (1.0 + _LOG_NDTR), value * (1.0 - _LOG_NDTR)


def _quantile_above(log_probability: float) -> float:
    """An x with ``ln Phi(x) >= log_probability``, verified; infinite where none was found."""
    if log_probability >= -1e-15:
        return math.inf
    guess = float(ndtri_exp(log_probability))
    step = _CLOSE * max(abs(guess), 1.0)
    for _ in range(20):
        if _log_phi(guess + step)[0] >= log_probability:
            return guess + step
        step *= 4.0
    return math.inf


def _mu_of_chord(start: Point, end: Point, log_slope: float) -> float:
    """A mu whose curve is above the whole line through two points, proved.

    A line of slope -Phi(x) that is above both points must have a height of at most Phi(x + mu) at a = 0; any x will do.
    """
    x = float(ndtri_exp(log_slope)) if log_slope < -1e-12 else _STEEPEST
    log_slope = _log_phi(x)[1]
    heights = [float(np.logaddexp(_log(point.upper), log_slope + point.epsilon)) for point in (start, end)]
    needed = max(heights)
    needed += 8.0 * U * (1.0 + abs(needed) + max(abs(log_slope), end.epsilon))  # rounding of the logarithms
    reach = _quantile_above(needed)
    return up(max(reach - x, 0.0), 4.0 * U) + 2.0 * U * (abs(x) if math.isfinite(x) else 0.0)


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


@final
@dataclass(frozen=True)
class Point:
    """Certified values of the curve at one epsilon, and a mu whose curve is above the upper one (proved)."""

    epsilon: float
    lower: float
    upper: float
    needed: float

    @staticmethod
    def at(epsilon: float, lower: float, upper: float) -> Point:
        """The point with its mu."""
        return Point(epsilon, lower, upper, _mu_above(epsilon, upper))


def mu_of_cell(start: Point, end: Point) -> float:
    """A mu whose curve is above the chord between two points over their cell, proved.

    Where the difference of the two, convex, is monotone over the cell, its ends decide.
    """
    if start.upper <= 0.0:
        return 0.0
    if end.epsilon <= start.epsilon:
        return max(start.needed, end.needed)
    log_width = end.epsilon + math.log(-math.expm1(start.epsilon - end.epsilon))
    log_slope = math.log(max(start.upper - end.upper, 1e-320)) - log_width
    ends = max(start.needed, end.needed)
    if 0.0 < ends < math.inf:
        error = 16.0 * U * (4.0 + abs(log_slope) + abs(log_width))
        at_start, at_end = (-point.epsilon / ends - 0.5 * ends for point in (start, end))  # where d_mu has slope -Phi
        falling = log_slope + error <= _log_phi(at_end * (1.0 + 8.0 * U))[0]
        rising = log_slope - error >= _log_phi(at_start * (1.0 - 8.0 * U))[1]
        if falling or rising:
            return ends
    return _mu_of_chord(start, end, log_slope)


@final
@dataclass(frozen=True)
class CompositionTail:
    """The tail of a whole composition: `GaussianTail` of the composition, and a mu that holds everywhere."""

    mu: float
    epsilon: float
    attained: bool
    gaussian: bool
    everywhere: float

    def settled_from(self, mu: float) -> float:
        """The epsilon from which on the curve is below that of ``mu``; infinite where none is known."""
        if self.mu == 0.0:
            return self.epsilon
        if mu <= self.mu:
            return math.inf
        return up(
            (0.5 * (mu - self.mu) + self.epsilon / self.mu) / (1.0 / self.mu - 1.0 / mu), 1e-9 * mu / (mu - self.mu)
        )

    def settled_mu(self, epsilon: float) -> float:
        """A mu whose curve is above the tail from ``epsilon`` on (found by bisection, and checked)."""
        low, high = self.mu, max(2.0 * self.mu, 1.0)
        while self.settled_from(high) > epsilon:
            high *= 2.0
            if high > 1e6:
                return math.inf
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.settled_from(middle) > epsilon else (low, middle)
        return high


def tail_of(parts: tuple[tuple[Pair, int], ...]) -> CompositionTail | None:
    """The tail of a composition; None where some pair's is not known."""
    square, everywhere, epsilon, attained, gaussian = 0.0, 0.0, 0.0, False, True
    for pair, count in parts:
        tail = gaussian_tail(pair)
        if tail is None:
            return None
        square += count * tail.mu**2
        everywhere += count * (tail.mu**2 + _mu_of_pure(tail.epsilon) ** 2)
        epsilon += count * tail.epsilon
        attained, gaussian = attained or tail.attained, gaussian and tail.gaussian
    slack = 8.0 * U * (len(parts) + 4)
    return CompositionTail(
        up(math.sqrt(square), slack) if square else 0.0,
        up(epsilon, slack) if epsilon else 0.0,
        attained,
        gaussian,
        up(math.sqrt(everywhere), slack),
    )


def _mu_of_pure(epsilon: float) -> float:
    """A mu with every (epsilon, 0)-DP mechanism mu-GDP: ``Phi(mu / 2) >= 1 / (1 + e^-epsilon)``."""
    return 0.0 if epsilon == 0.0 else 2.0 * _quantile_above(-math.log1p(math.exp(-epsilon)) * (1.0 - 1e-14))
