"""Choosing tilt, spacing and window: estimates only, nothing certified rests on them.

The cumulant generating function ``K(theta) = sum_j T_j ln E_{P_j} e^{theta L_j}`` of a composition is evaluated by
the pairs' quadrature nodes; the tilt solves 004's saddle-point equation (50), the spacing comes from the variance
that connect-the-dots adds, and the window from Chernoff bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.engines.lattice.compose import TiltedWindow
from hockeystick.numerics.columns import Array
from hockeystick.numerics.roots import fan_root
from hockeystick.transforms.cumulants import Cumulants, NodeSource, Scan, smooth_log_delta

Parts = Sequence[tuple[NodeSource, int]]

_LARGEST_THETA = 1e6
_LEAST_LOG_DELTA = -1e5  # far below what float64 tells from 0: nodes need not reach farther
_TILTS = np.geomspace(1e-5, _LARGEST_THETA, 400)
_DEEP = -780.0  # ln of tails beyond which float64 tells no delta from 0
_LARGEST_GROWTH = 9.0  # ln of the error growth that a lower tilt may cost


@final
@dataclass(frozen=True)
class SaddleEstimate:
    """A tilt with the epsilon and the ln(delta) it is right for (estimates; nats)."""

    theta: float
    epsilon: float
    log_delta: float


def _log_delta(theta: float, epsilon: float, k: float, second: float) -> float:
    return float(smooth_log_delta(np.array(k), np.array(theta), epsilon, np.array(second)))


def scanned(parts: Parts) -> Scan:
    """K and its derivatives at tilts from 1e-5 to 1e6, whatever delta that float64 holds is asked about."""
    return Cumulants(parts, _DEEP - math.log(sum(count for _, count in parts))).at(_TILTS)


def saddle_at_epsilon(parts: Parts, epsilon: float) -> tuple[Cumulants, SaddleEstimate]:
    """The saddle point for one epsilon, on nodes that reach as far as its delta needs; theta at most 1e6."""
    log_steps = math.log(sum(count for _, count in parts))
    log_tail = -60.0 - log_steps
    while True:
        cumulants = Cumulants(parts, log_tail)
        saddle = saddle_on(cumulants, epsilon)
        needed = saddle.log_delta - log_steps - 20.0
        if needed >= log_tail or log_tail < -1e5:
            return cumulants, saddle
        log_tail = max(2.0 * log_tail, 1.3 * needed - 20.0)


def saddle_at_delta(parts: Parts, delta: float) -> tuple[Cumulants, SaddleEstimate]:
    """The saddle point for one delta above 0, with its epsilon (which may come out below 0); theta at most 1e6."""
    log_delta = math.log(delta)
    cumulants = Cumulants(parts, min(log_delta, 0.0) * 1.1 - math.log(sum(count for _, count in parts)) - 40.0)

    def gap(log_theta: Array) -> Array:
        theta = np.exp(log_theta)
        found = cumulants.at(theta)
        return theta * found.mean - found.value + log_delta + np.log1p(theta)

    theta = math.exp(fan_root(gap, -12.0, math.log(_LARGEST_THETA)))
    k, _, second = cumulants(theta)
    epsilon = (_log_delta(theta, 0.0, k, second) - log_delta) / theta
    saddle = saddle_on(cumulants, epsilon)
    epsilon += (saddle.log_delta - log_delta) / saddle.theta
    return cumulants, saddle_on(cumulants, epsilon)


def saddle_at_least_zero(parts: Parts, delta: float) -> tuple[Cumulants, SaddleEstimate]:
    """The same for any delta, at epsilon 0 where its own would come out below."""
    cumulants, saddle = saddle_at_delta(parts, max(delta, 1e-320))
    return (cumulants, saddle) if saddle.epsilon >= 0.0 else saddle_at_epsilon(parts, 0.0)


def saddle_on(cumulants: Cumulants, epsilon: float) -> SaddleEstimate:
    """The saddle point for one epsilon, on given nodes; theta at most 1e6."""

    def gap(log_theta: Array) -> Array:
        return cumulants.at(np.exp(log_theta)).saddle_excess(epsilon)

    theta = math.exp(fan_root(gap, -12.0, math.log(_LARGEST_THETA)))
    k, _, second = cumulants(theta)
    return SaddleEstimate(theta, epsilon, max(_log_delta(theta, epsilon, k, second), _LEAST_LOG_DELTA))


def _window(cumulants: Cumulants, theta: float, log_alias: float) -> TiltedWindow:
    """A window outside which the composition tilted by theta has at most about ``e^log_alias`` on either side."""
    k, mean, second = cumulants(theta)
    width = math.sqrt(-2.0 * log_alias / max(second, 1e-300))
    # on the scale of a normal distribution, and of the exponential decay at an end of the range
    steps = np.concatenate((width * 2.0 ** np.arange(-4.0, 4.5, 0.5), (1.0 + theta) * 2.0 ** np.arange(-6.0, 1.0)))
    best: dict[int, tuple[float, float]] = {}
    steps = np.sort(steps)
    for sign in (-1, 1):
        for step, known in zip(steps.tolist(), cumulants.log_moments(theta + sign * steps).tolist(), strict=True):
            shift = sign * step
            if math.isinf(known) and sign in best:
                break
            # where the shortest step is beyond what the nodes resolve, they are all there is
            moment = cumulants(theta + shift)[0] if math.isinf(known) else known
            edge = (moment - k - log_alias) / shift
            if sign not in best or sign * edge < sign * best[sign][1]:
                best[sign] = (theta + shift, edge)
    (theta_below, low), (theta_above, high) = best[-1], best[1]
    return TiltedWindow(theta, min(low, mean), max(high, mean), theta_below, theta_above)


def window_around(cumulants: Cumulants, saddle: SaddleEstimate, log_alias: float) -> TiltedWindow:
    """The tilt and window to compose with: usually the saddle point's, a lower tilt where that is far shorter.

    With small noise and rate, K has a cliff: tilted to the saddle point a few steps jump far, and the window must hold
    their jumps. A lower tilt keeps them rare; all errors grow by ``e^{K(theta) - theta eps} / delta``, which the
    window makes good for.
    """
    best = _window(cumulants, saddle.theta, log_alias)
    deviation = math.sqrt(cumulants(saddle.theta)[2])
    if (
        best.high - best.low < 4.0 * math.sqrt(-2.0 * log_alias) * deviation
        and best.high < saddle.epsilon + 8.0 * deviation
    ):
        return best  # as short as a normal distribution's
    for factor in (0.85, 0.7, 0.55):
        theta = factor * saddle.theta
        loss = cumulants.log_moment(theta) - theta * saddle.epsilon - math.log(theta) - math.log1p(theta)
        growth = max(loss - saddle.log_delta, 0.0)
        if growth > _LARGEST_GROWTH:
            break
        window = _window(cumulants, theta, log_alias - growth)
        if window.high - window.low < 0.9 * (best.high - best.low):
            best = window
    return best


def spacing_for(steps: int, theta: float, width: float) -> float:
    """The spacing (nats) at which upper and lower lattice differ by about ``width`` in epsilon.

    Connect-the-dots raises K by ``theta (1 + theta) h^2 / 12`` a step, hence epsilon by ``T (1 + theta) h^2 / 12``; the
    tangents lower it by about as much.
    """
    return math.sqrt(6.0 * width / (steps * (1.0 + theta)))


def tail_exponents(steps: int, saddle: SaddleEstimate, relative: float) -> tuple[float, float]:
    """ln of the mass of one step that may lie below and above its lattice, for a relative error of delta."""
    log_steps, log_relative = math.log(steps), math.log(relative)
    return log_relative - log_steps - 4.0, min(saddle.log_delta, 0.0) + log_relative - log_steps - 4.0
