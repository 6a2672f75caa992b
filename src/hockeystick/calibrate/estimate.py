"""A fast estimate of the curve, to know where to look: nothing certified rests on it.

The trapezoidal rule on 004's integral (28), along the line through the saddle point, with the pairs' quadrature nodes;
where it does not converge soon, each number of large losses on its own (`engines/lattice/rare_events.py`) or 004's
saddle-point approximation of order 0, which may be far off. Some four to ten digits in two milliseconds for DP-SGD,
none or one for few steps with rare large losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.accountants.certified import Certified
from hockeystick.bound import Estimate
from hockeystick.engines.lattice.plan import SaddleEstimate, saddle_at_delta, saddle_at_epsilon, window_around
from hockeystick.engines.lattice.rare_events import plan_jumps
from hockeystick.engines.reach import MOST_LOSS
from hockeystick.laws.base import Array
from hockeystick.transforms.cumulants import Cumulants

_METHOD = "fast estimate"
_COARSE = 0.05
_CHUNK = 32  # frequencies at a time
_MOST = 512  # frequencies
_WORK = 400_000  # frequencies times nodes
_CONVERGED = 1e-11
_LOG_ALIAS = -16.0
_SMALLEST = -700.0  # ln of a delta that float64 tells from 0
_TILTS = tuple(2.0**k for k in range(-10, 20))
_NOISE = 1e-9  # of the largest term: a smaller sum is made of rounding errors
_SHY = 0.9999  # of the largest loss, beyond which delta counts as 0


@final
@dataclass(frozen=True)
class FastEstimate(Accountant):
    """Estimates good enough to bracket a root.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> estimate = FastEstimate().directed(((GaussianPair(20.0), 400),)).delta(1.0)
    >>> bool(abs(estimate.value - 0.12693673750664397) < 1e-7)
    True
    """

    def directed(self, parts: Parts) -> DirectedCurve:
        if sum(count for _, count in parts) == 1:
            return Certified(_COARSE).directed(parts)  # one step is read off its own curve, sooner than off its atoms
        return _EstimatedCurve(parts)


@final
class _EstimatedCurve(DirectedCurve):
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        log_finite = sum(count * math.log1p(-min(pair.mass_at_infinity, 1.0 - 1e-16)) for pair, count in parts)
        self._infinite = -math.expm1(log_finite)
        self._largest = sum(count * pair.loss_bounds[1] for pair, count in parts)

    def delta(self, epsilon: float) -> Estimate:
        if epsilon > min(MOST_LOSS, _SHY * self._largest):
            return Estimate(self._infinite, math.nan, _METHOD)
        cumulants, saddle = saddle_at_epsilon(self._parts, epsilon)
        log_delta = self._summed(cumulants, saddle)
        error = math.nan if log_delta is not None else math.inf
        log_delta = _approximated(self._parts, cumulants, saddle) if log_delta is None else log_delta
        return Estimate(min(self._infinite + math.exp(min(log_delta, 0.0)), 1.0), error, _METHOD)

    def epsilon(self, delta: float) -> Estimate:
        finite = delta - self._infinite
        if finite <= 0.0:
            return Estimate(math.inf, math.nan, _METHOD)
        _, saddle = saddle_at_delta(self._parts, finite)
        return Estimate(max(saddle.epsilon, 0.0), math.nan, _METHOD)

    def _summed(self, cumulants: Cumulants, saddle: SaddleEstimate) -> float | None:
        """ln delta at the saddle's epsilon (finite part) by the trapezoidal rule; None where it does not converge."""
        if not _SMALLEST < saddle.log_delta < 1.0:  # too small to matter, or the nodes do not reach the saddle point
            return None
        theta, period = _line(cumulants, saddle)
        k = cumulants.log_moment(theta)
        if not (math.isfinite(k) and 0.0 < period < math.inf):
            return None
        nodes = [pair.nodes(cumulants.log_tail) for pair, _ in self._parts]
        step = 2.0 * math.pi / period
        turns = [_turns(step * node.loss) for node in nodes]
        tilted = [_tilted(node.log_p + theta * node.loss) / turn[0] for node, turn in zip(nodes, turns, strict=True)]
        total = 0.0
        affordable = min(_MOST, _WORK // sum(node.loss.size for node in nodes))
        for start in range(0, affordable, _CHUNK):
            s = step * np.arange(start, start + _CHUNK)
            value = np.exp(-1j * s * saddle.epsilon) / ((theta + 1j * s) * (1.0 + theta + 1j * s))
            for weight, turn, (_, count) in zip(tilted, turns, self._parts, strict=True):
                value = value * (turn * weight).sum(axis=1) ** count
            tilted = [weight * turn[-1] for weight, turn in zip(tilted, turns, strict=True)]
            total += float(np.sum(value.real)) - (0.5 * float(value[0].real) if start == 0 else 0.0)
            size = np.abs(value)
            if float(np.max(size[-4:])) <= _CONVERGED * max(abs(total), 1e-300):
                break
        else:
            return None
        if not _NOISE / (theta * (1.0 + theta)) <= total < math.inf:
            return None
        return k - theta * saddle.epsilon + math.log(total * 2.0 / period)


def _line(cumulants: Cumulants, saddle: SaddleEstimate) -> tuple[float, float]:
    """The tilt and the period of the aliasing.

    With small noise and rate a few steps jump far, and the saddle's tilt weighs them up: the period must hold their
    jumps, or a lower tilt keep them rare.
    """
    theta = saddle.theta
    k, _, second = cumulants(theta)
    if second <= 0.0:
        return theta, math.nan
    period = max((23.0 - saddle.log_delta) / theta, 12.0 * math.sqrt(second))
    tilt = 6.0 / math.sqrt(second)
    if cumulants.log_moment(theta + tilt) - k - tilt * (saddle.epsilon + period) < _LOG_ALIAS:
        return theta, period
    window = window_around(cumulants, saddle, _LOG_ALIAS)
    lower_side = (23.0 - saddle.log_delta) / window.theta
    return window.theta, max(lower_side, window.high - saddle.epsilon)


def _approximated(parts: Parts, cumulants: Cumulants, saddle: SaddleEstimate) -> float:
    """ln delta by the saddle-point approximation; by tilts that the nodes resolve, where they miss the saddle point."""
    if saddle.log_delta < _SMALLEST:
        return saddle.log_delta
    if saddle.log_delta <= 1.0:
        plan = plan_jumps(parts, saddle.epsilon, saddle) if saddle.epsilon > 0.0 else None
        return saddle.log_delta if plan is None else plan.log_delta
    return min(cumulants.log_moment(theta) - theta * saddle.epsilon for theta in _TILTS)


def _turns(angle: Array) -> NDArray[np.complex128]:
    """``e^{i k angle}`` for k = 1, 2 .. of a chunk: products lose fewer digits than an estimate."""
    return np.multiply.accumulate(np.broadcast_to(np.exp(1j * angle), (_CHUNK, angle.size)), axis=0)


def _tilted(exponents: Array) -> Array:
    weights = np.exp(exponents - float(np.max(exponents)))
    return np.asarray(weights / float(np.sum(weights)), dtype=np.float64)
