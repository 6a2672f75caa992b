"""Composition by tilted FFT: the hockey-stick curve of many lattice PLDs, with every error in a budget.

Symbols: theta the tilt, h the spacing, n the length of the window, T_j the counts, x the composed losses. With
``p~ = p e^{theta l} / e^K`` for any float K near the log of the tilted sum,

    delta(eps) = delta_inf + e^{sum T_j K_j - theta eps} S(eps),     S = sum_{x > eps} f(x - eps) w(x),
    f(y) = e^{-theta y} (1 - e^{-y}) <= f_max = theta^theta / (1 + theta)^{1 + theta},

w the composition of the tilted masses, computed by FFT modulo n. Error budget of S, all a posteriori:

- *aliasing*: f_max times the tilted mass outside the window, which Chernoff bounds with a tilt on either side;
- *rounding of the transforms*: with e_j the error of one transform, every frequency of the product errs by at most
  ``2 G sum T_j e_j``, G = prod max(|w_j|, 1/2)^{T_j} (each term of the telescoping sum has one factor less, which is
  made good by the 2), plus the inverse transform;
- *rounding of the masses, the powers and the sums*: relative, on every term alike.

Slack moves epsilon: an upper composition is read at ``eps - slack``, a lower one at ``eps + slack``.
Source: 000 and 002 and 004 together (DESIGN, section 4). Cost: two real FFTs of length n a distinct PLD, O(n) an
answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.engines.contour.aliasing import kernel_peak
from hockeystick.engines.lattice.pld import LatticePLD, Side
from hockeystick.numerics.columns import Array, Indices
from hockeystick.numerics.fft import (
    POWER_STEP,
    fft_error,
    floored_power,
    integer_power,
    inverse_real,
    smooth_length,
    transform_real,
)
from hockeystick.numerics.rounding import ELEMENTARY, UNDERFLOW, U, exp_down, exp_up, gamma, up

Parts = Sequence[tuple[LatticePLD, int]]

_SMALL_ALIAS = 1e-3  # a tail beyond the window that is small enough to look no further
_FARTHEST = 2.0**62  # an index beyond every window
_LEAST = 1e-300  # of a positive mass, in units of the scale
_MOST_ERROR = 600.0  # of the logarithms of composed masses: beyond, powers of transforms may overflow
_UNKNOWN = 1e300  # the same where nothing is known of them
_KERNEL_REACH = 45.0  # e^-45: where the kernel e^{-theta y} is cut off, the remainder bounded


@dataclass(frozen=True)
class TiltedWindow:
    """The tilt and the range of composed losses (nats) that a composition keeps apart.

    Attributes
    ----------
    theta : float
        Tilt, above 0.
    low, high : float
        Ends of the window (nats).
    theta_below, theta_above : float
        Tilts below and above ``theta``, for the Chernoff bounds of the mass beyond either end.
    """

    theta: float
    low: float
    high: float
    theta_below: float
    theta_above: float


def log_moment(pld: LatticePLD, theta: float) -> tuple[float, float]:
    """``ln sum mass * e^{theta loss}`` over the finite points, and a bound on its absolute error."""
    loss = pld.losses
    exponents = pld.log_mass + theta * loss
    peak = float(exponents.max())
    if peak == -math.inf:
        return -math.inf, 0.0
    scaled = np.exp(exponents - peak)
    total = float(scaled.sum())
    finite = scaled > 0.0
    size = float(np.max(np.abs(pld.log_mass[finite]) + 2.0 * np.abs(theta * loss[finite]), initial=0.0))
    log_total = math.log(total)
    error = U * (2.0 * size + abs(peak) + 4.0) + ELEMENTARY * (2.0 + log_total) + gamma(pld.size)
    return peak + log_total, error


@final
class TiltedComposition:
    """A composition of lattice PLDs of one side and spacing, tilted and folded into one window.

    Parameters
    ----------
    parts : sequence of (LatticePLD, int)
        PLDs with their counts.
    window : TiltedWindow
        Where to look.
    log_weight : float
        ``ln`` of a factor on all finite masses.
    """

    is_cut = False  # the window is as long as was asked for

    def __init__(self, parts: Parts, window: TiltedWindow, *, log_weight: float = 0.0) -> None:
        first = parts[0][0]
        self.side: Side = first.side
        self.spacing = first.spacing
        self.window = window
        self.steps = sum(count for _, count in parts)
        self._log_weight = log_weight
        # lattices spread each step by up to about half a spacing more than its pair does
        self._margin = first.spacing * (math.sqrt(5.0 * self.steps) + 2.0)
        self.length = smooth_length(math.ceil((window.high - window.low + 2.0 * self._margin) / first.spacing) + 1)
        # Position of the composed index 0, and slack, with the rounding of both.
        offset = math.fsum(count * pld.offset for pld, count in parts)
        reach = (
            max(abs(window.low), abs(window.high))
            + self._margin
            + math.fsum(count * abs(pld.offset) for pld, count in parts)
        )
        self._offset = offset
        misplaced = 8.0 * U * reach  # by what composed positions are rounded
        self.slack = math.fsum(count * pld.slack for pld, count in parts) * (1.0 + 4.0 * U) + misplaced
        self._low_index = math.floor((window.low - self._margin - offset) / first.spacing)
        self.delta_at_infinity = composed_infinity(parts)[self.side == "upper"]
        if all((pld.log_mass > -math.inf).any() for pld, _ in parts):
            self.masses, self.log_scale, self.relative_error, self.mass_error = self._compose(parts)
            self.relative_error += window.theta * misplaced
            self.aliased_mass = self._aliased(parts)
        else:  # a part without finite losses leaves none
            self.masses, self.log_scale, self.relative_error, self.mass_error = np.zeros(self.length), 0.0, 0.0, 0.0
            self.aliased_mass = 0.0

    def _compose(self, parts: Parts) -> tuple[Array, float, float, float]:
        """Composed tilted masses, the log of their scale, their relative and their absolute error."""
        theta, n = self.window.theta, self.length
        one_error = fft_error(n)
        product = np.ones(n // 2 + 1, dtype=np.complex128)
        floor = np.ones(n // 2 + 1)
        log_scales, relative, transform_error, shift = [], 0.0, 0.0, 0
        for pld, count in parts:
            masses, log_scale, error = tilted(pld, theta)
            relative += count * (error + U * abs(log_scale))
            if relative > _MOST_ERROR:
                return np.zeros(n), 0.0, _UNKNOWN, 0.0
            folded, start = _folded(masses, pld.index, n)
            spectrum = transform_real(folded)
            magnitude = np.abs(spectrum)
            power = integer_power(spectrum, count)
            product = product * power
            floor *= floored_power(magnitude, count)
            log_scales.append(count * log_scale)
            transform_error += count * (one_error * 1.0001 + POWER_STEP)
            shift += count * start
        spread = 1.0 / n * (2.0 * float(floor.sum()))  # mean of G over all frequencies, each half counted twice
        # |w_j| is at most the computed magnitude plus 2 e_j, and the floor of G at least 1/2
        growth = math.exp(min(4.0 * transform_error, 700.0))
        # 1.001: the sum over the frequencies and the powers in it, below n u and u a step of themselves
        mass_error = 1.001 * (2.0 * transform_error + one_error) * spread * growth + 1e-300
        composed = np.roll(inverse_real(product, n), (shift - self._low_index) % n)
        return composed, math.fsum(log_scales), relative + U * self.steps, mass_error

    def _aliased(self, parts: Parts) -> float:
        """Bound on the composed tilted mass outside the window, in units of the scale."""
        window = self.window
        lowest = sum(count * int(pld.index[0]) for pld, count in parts)
        highest = sum(count * int(pld.index[-1]) for pld, count in parts)
        total = 0.0
        if lowest < self._low_index:
            total += self._beyond(parts, window.theta_below, window.low - self._margin)
        if highest >= self._low_index + self.length:
            total += self._beyond(parts, window.theta_above, window.high + self._margin)
        return total

    def _beyond(self, parts: Parts, theta: float, edge: float) -> float:
        """Chernoff's bound on the tilted mass beyond one end, by the best of a few tilts towards ``theta``."""
        best = math.inf
        for share in (1.0, 0.25, 0.06, 0.015, 0.004):
            tilt = self.window.theta + share * (theta - self.window.theta)
            log_tail = -self.log_scale - (tilt - self.window.theta) * edge
            for pld, count in parts:
                log_sum, error = log_moment(pld, tilt)
                log_tail += count * (log_sum + error)
            rounding = 8.0 * U * (abs(self.log_scale) + abs((tilt - self.window.theta) * edge))
            best = min(best, max(exp_up(min(log_tail + rounding + self.relative_error, 700.0)), _LEAST))
            if best < _SMALL_ALIAS:
                break
        return best

    @cached_property
    def losses(self) -> Array:
        """Composed losses of the window (nats), shape (n,)."""
        return np.asarray(self._offset + (self._low_index + np.arange(self.length)) * self.spacing)

    @cached_property
    def _kernel(self) -> Array:
        """``f(kh)`` and ``e^{-(1 + theta) kh}`` for k from 0 on, as far as they matter; shape (2, k)."""
        reach = math.ceil(_KERNEL_REACH / (self.window.theta * self.spacing)) + 1
        y = np.arange(float(min(reach, self.length))) * self.spacing
        fall = np.exp(-self.window.theta * y)
        return np.array([fall * -np.expm1(-y), fall * np.exp(-y)])

    def delta(self, epsilon: float) -> float:
        """The side's bound on delta at one epsilon: rounded up for the upper side, down for the lower.

        Returns
        -------
        float
            In [0, 1].
        """
        theta, sign = self.window.theta, 1.0 if self.side == "upper" else -1.0
        at = epsilon - sign * self.slack
        start = max(math.floor(min((at - self._offset) / self.spacing, _FARTHEST)) + 1 - self._low_index, 0)
        if start >= self.length:
            value, error = 0.0, 0.0
        else:
            gap = max(self._offset + (self._low_index + start) * self.spacing - at, 0.0)
            masses = self.masses[start : start + self._kernel.shape[1]]
            # f(gap + kh) = e^{-theta gap} (f(kh) + (1 - e^{-gap}) e^{-(1 + theta) kh}): no term cancels another
            scale, share, kernel = math.exp(-theta * gap), -math.expm1(-gap), self._kernel[:, : masses.size]
            own, rest = (kernel @ masses).tolist()
            value = scale * (own + share * rest)
            all_own, all_rest = kernel.sum(axis=1).tolist()
            doubt = self.mass_error * scale * (all_own + share * all_rest) * 1.01
            farthest = gap + (masses.size - 1) * self.spacing
            # the tilted masses sum to at most one, and f(y) <= e^{-theta y}; 1.01 for the rounding of the exponent
            beyond = 1.01 * exp_up(-theta * farthest) if start + masses.size < self.length else 0.0
            error = doubt + beyond
            # e^{-theta y} is off by the rounding of theta y, at most 2 u of the largest; five functions, a dozen
            # products and sums. No mass is below minus its error: sizes add up to the masses and twice the errors.
            rounding = gamma(masses.size) + 5.0 * ELEMENTARY + U * (3.0 * theta * farthest + 16.0)
            error += rounding * 1.01 * (value + 2.0 * doubt)
        error += kernel_peak(theta) * self.aliased_mass
        total = value + sign * error
        if sign > 0.0 and not (start >= self.length and self.aliased_mass == 0.0):
            total = max(total, _LEAST)  # there is mass above, however little
        if total <= 0.0:
            return self.delta_at_infinity
        exponent = self.log_scale + self._log_weight - theta * at
        log_total = math.log(total)
        rounding = 1.01 * self.relative_error + 2.0 * ELEMENTARY
        rounding += (
            4.0 * U * (abs(self.log_scale) + 2.0 * abs(self._log_weight) + abs(theta * at) + abs(log_total) + 4.0)
        )
        log_value = log_total + exponent + sign * rounding
        finite = (exp_up if sign > 0.0 else exp_down)(log_value) if log_value < 0.0 else 1.0
        combined = (finite + self.delta_at_infinity) * (1.0 + sign * 8.0 * U)
        return min(max(combined, 0.0), 1.0)

    def budget(self, epsilon: float) -> dict[str, float]:
        """Sizes of the errors inside ``delta(epsilon)``, in units of delta: aliasing, rounding, truncation."""
        theta = self.window.theta
        exponent = self.log_scale + self._log_weight - theta * epsilon
        scale = math.exp(min(exponent, 700.0))
        kernel_sum = 1.0 / (self.spacing * theta * (1.0 + theta)) + 1.0
        return {
            "aliasing": min(scale * kernel_peak(theta) * self.aliased_mass, 1.0),
            "rounding": min(scale * (self.mass_error * kernel_sum + self.relative_error), 1.0),
            "truncation": self.delta_at_infinity,
        }

    def nearest_epsilon(self, delta: float) -> float:
        """Estimate of where delta(epsilon) crosses ``delta``, by a search over the composed lattice points."""
        low, high = 0, self.length - 1
        while high - low > 1:
            middle = (low + high) // 2
            above = self.delta(self._offset + (self._low_index + middle) * self.spacing) > delta
            low, high = (middle, high) if above else (low, middle)
        return self._offset + (self._low_index + high) * self.spacing


def tilted(pld: LatticePLD, theta: float) -> tuple[Array, float, float]:
    """Tilted masses that sum to at most one, ln of their scale, and the relative error of each; none of no mass."""
    exponents = pld.log_mass + theta * pld.losses
    peak = float(exponents.max())
    if peak == -math.inf:
        return np.zeros(pld.size), 0.0, 32.0 * U + 2.0 * ELEMENTARY
    weights = np.exp(exponents - peak)
    # up: of more than one, powers of transforms would grow with the steps. 128 u: the logarithm, exp and products below
    total = float(weights.sum()) * (1.0 + gamma(weights.size + 128))
    log_scale = up(peak + math.log(total), 2.0 * U)
    present = weights > 0.0
    size = float(np.max(np.abs(pld.log_mass[present]) + 2.0 * np.abs(theta * pld.losses[present]), initial=0.0))
    error = U * (2.0 * size + 2.0 * abs(peak) + 32.0) + 2.0 * ELEMENTARY
    return weights * math.exp(peak - log_scale), log_scale, error


def _folded(masses: Array, index: Indices, length: int) -> tuple[Array, int]:
    """Masses modulo the window, the heaviest at 0, and the lattice index that 0 stands for."""
    start = int(index[masses.argmax()])
    folded = np.bincount((index - start) % length, weights=masses, minlength=length)
    return folded.astype(np.float64, copy=False), start


def composed_infinity(parts: Parts) -> tuple[float, float]:
    """Bounds on the mass at infinity of the composition, ``1 - prod (1 - p_j)^{T_j}``."""
    if any(pld.mass_at_infinity >= 1.0 for pld, _ in parts):
        return 1.0 - 4.0 * U, 1.0
    log_finite = math.fsum(count * math.log1p(-pld.mass_at_infinity) for pld, count in parts)
    excess = math.fsum(count * pld.excess for pld, count in parts)
    mass = abs(math.expm1(log_finite))  # of no loss at infinity 0, not -0
    lost = sum(count for _, count in parts) * UNDERFLOW if mass > 0.0 else 0.0
    high = min(mass * (1.0 + 16.0 * U) * math.exp(min(excess, 700.0)) + lost, 1.0)
    return max(mass * (1.0 - 16.0 * U) - lost, 0.0), high
