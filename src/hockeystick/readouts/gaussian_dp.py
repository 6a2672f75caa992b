"""Gaussian differential privacy in closed form: what a Gaussian curve must be to lie above points, cells and tails.

Symbols: ``d_mu(eps) = H_{e^eps}(N(mu, 1) || N(0, 1))``; ``a = e^eps``. A point (eps, u) needs ``d_mu(eps) >=
u``; a cell between two points needs d_mu to be above the chord of the two, as a function of a; a tail needs it
from some epsilon on.

Guarantee: every mu returned as an upper one has been verified with certified values; nothing rests on the root finding.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtri, ndtri_exp

from hockeystick.laws.base import Pair
from hockeystick.numerics.roots import increasing_root
from hockeystick.numerics.rounding import ELEMENTARY, ERFCX, LOG_NDTR, U, down, up
from hockeystick.readouts.pure_dp import mu_of_pure

_CLOSE = 1e-11  # relative step outward of a computed mu before it is verified
_FAR = 1e150  # beyond it a square has no float
_NDTR_REACH = 15.0  # the domain of `LOG_NDTR`
_STEEPEST = 7.0  # a slope of -Phi(7), the steepest drawn


@final
@dataclass(frozen=True)
class _ClosedForm:
    """Bounds on ``ln delta`` and on ``ln (1 - delta)`` of one mu at one epsilon."""

    log_delta: tuple[float, float]
    log_rest: tuple[float, float]

    def at_most(self, delta: float) -> bool:
        """Whether the curve has at most ``delta``, in (0, 1), here: proved."""
        if delta <= 0.5:
            return self.log_delta[1] <= math.log(delta) * (1.0 + 4.0 * U)
        return self.log_rest[0] >= math.log(1.0 - delta) * (1.0 - 4.0 * U)  # the difference is exact

    def at_least(self, delta: float) -> bool:
        """Whether the curve has at least ``delta``, in (0, 1), here: proved."""
        if delta <= 0.5:
            return self.log_delta[0] >= math.log(delta) * (1.0 - 4.0 * U)
        return self.log_rest[1] <= math.log(1.0 - delta) * (1.0 + 4.0 * U)

    def excess(self, delta: float) -> float:
        """About ``ln`` of delta here over ``delta``; of the rests where those are smaller."""
        lower, upper = self.log_delta if delta <= 0.5 else self.log_rest
        middle = upper if math.isinf(lower) else 0.5 * (lower + upper)
        return middle - math.log(delta) if delta <= 0.5 else math.log(1.0 - delta) - middle


def _closed_form(mu: float, epsilon: float) -> _ClosedForm:
    """delta of two unit normals at distance mu, at any size of mu and epsilon.

    With ``w = epsilon / mu - mu / 2``, ``v = w + mu`` and Mills' ratio ``R(x) = Phi(-x) / phi(x)``, which falls, delta
    is ``phi(w) (R(w) - R(v))`` for w >= 0 and ``1 - phi(w) (R(-w) + R(v))`` for w < 0. It falls in w and grows in v.
    For small mu, where the difference cancels, from ``d delta / d mu = phi(w)``: with ``z = epsilon / mu``

        delta = e^{epsilon / 2} int_0^mu phi(epsilon / m) e^{-m^2 / 8} dm
              in [e^{-mu^2 / 8}, 1] e^{epsilon / 2} mu phi(z) (1 - z R(z)).
    """
    (e, e_unit), (m, m_unit) = epsilon.as_integer_ratio(), mu.as_integer_ratio()
    z, half, unit = 2 * e * m_unit * m_unit, m * m * e_unit, 2 * e_unit * m * m_unit  # exactly, in shares of the unit
    if z - half > int(_FAR) * unit:
        return _ClosedForm((-math.inf, -_FAR), (-math.exp(-700.0), 0.0))
    (w_low, w_high), (v_low, v_high) = _floats(abs(z - half), unit), _floats(z + half, unit)
    if z < half:
        smaller = _log_product(w_high, _mills(w_high)[0] + _mills(v_high)[0])[0]
        larger = min(_log_product(w_low, _mills(w_low)[1] + _mills(v_low)[1])[1], 0.0)
        log_rest = (smaller, larger)
        log_delta = (_log_of_rest(larger)[0], _log_of_rest(smaller)[1])
    else:
        smaller = _log_product(w_high, _mills(w_high)[0] - _mills(v_low)[1])[0]
        log_delta = (smaller, _log_product(w_low, _mills(w_low)[1] - _mills(v_high)[0])[1])
        log_rest = (math.log(0.5) * (1.0 + 4.0 * U), 0.0)
    if mu <= 1.0:
        low, high = _small_mu(mu, epsilon, _floats(z, unit))
        log_delta = (max(log_delta[0], low), min(log_delta[1], high))
    return _ClosedForm(log_delta, log_rest)


def _small_mu(mu: float, epsilon: float, z: tuple[float, float]) -> tuple[float, float]:
    """Bounds on ln delta by the last line of `_closed_form`."""
    size = 0.5 * epsilon + math.log(mu)
    slack = 4.0 * U * (epsilon + abs(math.log(mu)))
    lower = _log_product(z[1], 1.0 - up(z[1] * _mills(z[1])[1]))[0] + size - up(0.125 * mu * mu, 4.0 * U)
    upper = _log_product(z[0], 1.0 - z[0] * _mills(z[0])[0] * (1.0 - 2.0 * U) + U)[1] + size
    return lower - slack - 4.0 * U * abs(lower), upper + slack + 4.0 * U * abs(upper)


def _floats(value: int, unit: int) -> tuple[float, float]:
    """Floats on both sides of ``value / unit``, a number of at least 0."""
    near = value / unit  # of integers: rounded once
    return max(math.nextafter(near, -math.inf), 0.0), math.nextafter(near, math.inf)


def _mills(x: float) -> tuple[float, float]:
    """Bounds on ``Phi(-x) / phi(x)`` for x >= 0."""
    value = math.sqrt(0.5 * math.pi) * float(erfcx(x * math.sqrt(0.5)))
    return value * (1.0 - 2.0 * ERFCX), value * (1.0 + 2.0 * ERFCX)


def _log_product(x: float, factor: float) -> tuple[float, float]:
    """Bounds on ``ln (phi(x) factor)``; the factor's own error is the caller's."""
    if factor <= 0.0:
        return -math.inf, -math.inf
    log_phi, log_factor = -0.5 * min(x, _FAR) ** 2 - 0.5 * math.log(2.0 * math.pi), math.log(factor)
    slack = 8.0 * U * (abs(log_phi) + abs(log_factor) + 1.0)
    return (-math.inf if x > _FAR else log_phi + log_factor - slack), log_phi + log_factor + slack


def _log_of_rest(log: float) -> tuple[float, float]:
    """Bounds on ``ln (1 - e^log)``."""
    rest = -math.expm1(log)
    low, high = rest * (1.0 - 2.0 * ELEMENTARY) - U, rest * (1.0 + 2.0 * ELEMENTARY) + U
    slack = 2.0 * ELEMENTARY
    return (math.log(low) * (1.0 + slack) if low > 0.0 else -math.inf), min(math.log(high) * (1.0 - slack), 0.0)


def _mu_guess(epsilon: float, delta: float) -> float:
    """mu in floating point: the root above one that is too small, as ``delta <= Phi(-w)`` and ``mu / sqrt(2 pi)``."""
    w = float(-ndtri(delta) if delta <= 0.5 else ndtri(1.0 - delta))
    root = math.hypot(w, math.sqrt(2.0) * math.sqrt(epsilon))
    least = epsilon / (0.5 * (root + w)) if w > 0.0 else root - w
    least = max(least, delta * math.exp(-0.5 * epsilon), 5e-324)

    def excess(log_ratio: float) -> float:
        return _closed_form(least * math.exp(log_ratio), epsilon).excess(delta)

    reach = 1e-3
    while excess(reach) < 0.0 and reach < 64.0:
        reach *= 4.0
    return least * math.exp(increasing_root(excess, 0.0, reach, 1e-13))


def mu_below(epsilon: float, delta: float) -> float:
    """The largest mu whose curve has at most ``delta`` at epsilon, to about eleven digits: proved not to have more.

    0 where float64 holds none.
    """
    if delta <= 0.0:
        return 0.0
    if delta >= 1.0:
        return math.inf
    mus = _mus_beside(epsilon, delta, -1.0)
    return next((mu for mu in mus if mu > 0.0 and _closed_form(mu, epsilon).at_most(delta)), 0.0)


def delta_of(mu: float, epsilon: float) -> float:
    """About the delta of a mu at epsilon."""
    return math.exp(_closed_form(mu, epsilon).log_delta[1]) if 0.0 < mu < math.inf else 0.0


def _mu_above(epsilon: float, delta: float) -> float:
    """A mu whose curve has at least ``delta`` at epsilon, proved."""
    if delta <= 0.0:
        return 0.0
    if delta >= 1.0:
        return math.inf
    mus = _mus_beside(epsilon, delta, 1.0)
    return next((mu for mu in mus if _closed_form(mu, epsilon).at_least(delta)), math.inf)


def _mus_beside(epsilon: float, delta: float, sign: float) -> Iterator[float]:
    """Numbers on one side of the root, ever farther from it."""
    guess, step = _mu_guess(epsilon, delta), _CLOSE
    while step < 1.0:
        yield guess * (1.0 + sign * step)
        step *= 4.0


def _log_phi(x: float) -> tuple[float, float]:
    """Bounds on ln Phi(x); above `_NDTR_REACH` those that hold from there on."""
    value = float(log_ndtr(min(x, _NDTR_REACH)))
    upper = value * (1.0 - LOG_NDTR) if x <= _NDTR_REACH else 0.0
    return value * (1.0 + LOG_NDTR), max(upper, -sys.float_info.max)


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
    drop = max(start.upper - end.upper, 5e-324)
    log_slope = math.log(drop) - log_width
    ends = max(start.needed, end.needed)
    if 0.0 < ends < math.inf:
        error = 16.0 * U * (4.0 + abs(log_slope) + abs(log_width))
        at_start, at_end = (-point.epsilon / ends - 0.5 * ends for point in (start, end))  # where d_mu has slope -Phi
        falling = log_slope + error <= _log_phi(at_end * (1.0 + 8.0 * U))[0]
        rising = start.upper > end.upper and log_slope - error >= _log_phi(at_start * (1.0 - 8.0 * U))[1]
        if falling or rising:
            return ends
    return _mu_of_chord(start, end, log_slope)


@final
@dataclass(frozen=True)
class CompositionTail:
    """The tail of a whole composition: `GaussianTail` of the composition, and a mu that holds everywhere.

    ``least`` is the same mu as ``mu``, rounded down: where the tail is attained, no smaller one will do.
    """

    least: float
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
    gaussians, bounded, epsilon, attained, gaussian = [], [], 0.0, False, True
    for pair, count in parts:
        tail = pair.gaussian_tail
        if tail is None:
            return None
        gaussians.append(math.sqrt(count) * tail.mu)
        bounded.append(math.sqrt(count) * mu_of_pure(tail.epsilon))
        epsilon += count * tail.epsilon
        attained, gaussian = attained or tail.attained, gaussian and tail.gaussian
    slack = 8.0 * U * (len(parts) + 4)  # each mu is rounded up; and a root, a product and the root of a sum of squares
    mu = math.hypot(*gaussians)
    return CompositionTail(
        max(down(mu, slack), 0.0),
        up(mu, slack) if mu else 0.0,
        up(epsilon, slack) if epsilon else 0.0,
        attained,
        gaussian,
        up(math.hypot(mu, *bounded), slack),
    )


def worst_tail(tails: Sequence[CompositionTail]) -> CompositionTail:
    """What holds for several: each curve is below that of the largest Gaussian part after the largest bounded one."""
    return CompositionTail(
        max((tail.least for tail in tails if tail.attained), default=0.0),
        max(tail.mu for tail in tails),
        max(tail.epsilon for tail in tails),
        any(tail.attained for tail in tails),
        all(tail.gaussian for tail in tails),
        max(tail.everywhere for tail in tails),
    )
