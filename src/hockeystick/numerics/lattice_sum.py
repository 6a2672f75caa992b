"""The stop-loss transform E (S - k)+ of a sum S of independent, equal lattice variables, by a tilted FFT.

Symbols: h the spacing, t the number of terms, theta > 0 the tilt, x = h * index the points; ``w`` are the masses of one
term times e^{theta x}, made to sum to one. Tilting commutes with convolution, and ``(x - k)+ <= e^{theta (x - k)} / (e
theta)``, so that at a tilt near the saddle point every error is relative to the answer:

- *masses*: what each differs by at most from the mass meant, tilted and summed to r: ``((1 + r)^t - 1) / (e theta)``;
- *moved masses*: what may lie one point away from where it is meant, tilted at the upper point and summed to m:
  ``t h m (1 + r)^t``, since ``1 <= e^{theta (x - k)}`` for x >= k;
- *aliasing*: the tilted mass outside the window, by Chernoff at a tilt on either side, over ``e theta``;
- *transforms*: the error of every frequency, as in `engines/lattice/compose`, times what the kernel ``y e^{-theta y}``
  has of it, and one error of the inverse for every composed mass times ``sum of y e^{-theta y} <= 1 / (theta^2 h)``;
- *clipping* of masses below 0: what is added to them, over ``e theta``;
- *rounding* of tilts, powers and cumulated sums: relative, on positive terms alike, but for masses that are below the
  range of float64 without the tilt: far right of the reference, at tilts far above the saddle point.

On a lattice the stop-loss transform is linear between the points: two cumulated sums give it everywhere.

Guarantee: both sides are certified. Cost: two real FFTs. Proof: docs/derivations/random-allocation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from hockeystick.errors import PrecisionError
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
from hockeystick.numerics.rounding import ELEMENTARY, SUBNORMAL, UNDERFLOW, U, gamma

_REACH = 600.0  # nats of e^{-theta x} that are kept apart to the left of the reference
_LEAST = 1e-300
_MOST_POINTS = 1 << 26  # of the composed sum: some gigabytes
_READ = 2.0**13 * U  # logarithms of up to 700 nats and their sum, a few roundings each, and an exponential


@final
@dataclass(frozen=True, eq=False)
class PointMasses:
    """Masses on multiples of a spacing.

    Attributes
    ----------
    spacing : float
        h, above 0, of few bits: its multiples are exact.
    index : ndarray of int64, shape (n,)
        Increasing.
    mass, error : ndarray, shape (n,)
        The masses, at least 0, and bounds on their absolute errors.
    moved : ndarray, shape (n - 1,)
        Besides: how much mass may be at a point that ought to be at the next one, or the other way round.
    """

    spacing: float
    index: Indices
    mass: Array
    error: Array
    moved: Array

    def mirrored(self) -> PointMasses:
        """The masses of the negative."""
        return PointMasses(self.spacing, -self.index[::-1], self.mass[::-1], self.error[::-1], self.moved[::-1])


@final
@dataclass(frozen=True)
class SumWindow:
    """Where a sum is looked at: the tilt, tilts below and above it for Chernoff, and the range kept apart."""

    theta: float
    theta_below: float
    theta_above: float
    low: float
    high: float


@final
class LatticeSum:
    """E (S - k)+ for the sum S of ``count`` independent variables of the masses given.

    Parameters
    ----------
    masses : PointMasses
        Of one term; they may sum to less than one.
    count : int
        t, at least 1.
    window : SumWindow
        Where to look.
    reference : float
        A point k about which answers are wanted.
    """

    def __init__(self, masses: PointMasses, count: int, window: SumWindow, *, reference: float) -> None:
        h, theta = masses.spacing, window.theta
        # the window was made for another spacing: where it held the sum to its end, it holds that of these masses
        first, last = (float(count * (end * h)) for end in (masses.index[0], masses.index[-1]))
        window = replace(
            window,
            low=first if 0.0 < window.low - first <= count * h else window.low,
            high=last if 0.0 < last - window.high <= count * h else window.high,
        )
        self._masses, self._count, self._window = masses, count, window
        folded_from = math.floor(window.low / h)
        # ceil: of a lattice coarse beside 1 / theta one more point would be beyond float64
        self.low_index = max(folded_from, math.ceil((reference - _REACH / theta) / h))
        points = math.ceil((window.high - window.low) / h) + 2
        if points > _MOST_POINTS:
            raise PrecisionError(f"a sum of {count} terms needs a lattice of more than {_MOST_POINTS} points there")
        length = smooth_length(points)
        composed, log_scale, relative, absolute = self._composed(length)
        composed = np.roll(composed, -folded_from % length)[self.low_index - folded_from :]
        x = (self.low_index + np.arange(composed.size)) * h
        exponent = -theta * (x - reference)
        plain = composed * np.exp(exponent)
        above = np.cumsum(plain[:0:-1])[::-1]  # T_j = sum of the masses beyond j, for all but the last point
        with np.errstate(over="ignore"):  # so far to the left that nothing is known
            stop_loss = h * np.cumsum(above[::-1])[::-1]
        self._stop_loss = np.append(stop_loss, 0.0)
        # two cumulated sums of n terms, the exponential of a rounded product, the mass it multiplies
        self._relative = relative + gamma(2.0 * composed.size + 8.0) + 2.0 * ELEMENTARY
        self._relative += 4.0 * U * (theta * max(abs(window.low), abs(window.high)) + _REACH)
        # of exponentials below `TINY`, of their sums, and of what is itself too small for float64
        lost = SUBNORMAL * (absolute + float(composed.size) ** 2 * h) + UNDERFLOW
        with np.errstate(over="ignore", invalid="ignore"):
            self._errors = np.nan_to_num(1.01 * (absolute * np.exp(exponent) + lost), nan=math.inf, posinf=math.inf)
        self._log_factor = log_scale - theta * reference
        self._relative += 4.0 * U * (abs(log_scale) + abs(theta * reference)) + 4.0 * ELEMENTARY

    def _composed(self, length: int) -> tuple[Array, float, float, float]:
        """Composed tilted masses modulo the window; ``ln`` of their scale; their relative error; that of answers.

        The last is absolute, in units of the scale and of ``e^{-theta k}``.
        """
        masses, count, theta = self._masses, self._count, self._window.theta
        points = masses.index * masses.spacing
        self._centre = float(points[(masses.mass * np.exp(np.minimum(theta * (points - points[-1]), 0.0))).argmax()])
        if theta * (float(points[-1]) - self._centre) > _REACH:
            raise PrecisionError(f"a tilt of {theta!r} spreads one term over more than float64 holds")
        tilts = np.exp(theta * (points - self._centre))
        weights = masses.mass * tilts
        total = float(weights.sum())
        own = 2.0 * ELEMENTARY + U * (4.0 * theta * float(np.abs(points).max()) + 8.0 + points.size / length)
        missed = 1.01 * float(((masses.error + UNDERFLOW * (masses.mass > 0.0)) * tilts).sum()) / total
        folded = np.bincount(masses.index % length, weights=weights / total, minlength=length).astype(np.float64)
        spectrum = transform_real(folded)
        composed = inverse_real(integer_power(spectrum, count), length)
        transform_error = count * (fft_error(length) * 1.0001 + POWER_STEP)
        floor = floored_power(np.abs(spectrum), count)
        growth = 1.002 * math.exp(min(4.0 * transform_error, 700.0))
        peak = 1.001 / (math.e * theta)  # the largest y e^{-theta y}
        kernel = kernel_bounds(theta, masses.spacing, length)
        transforms = 2.0 * transform_error * growth * 2.0 * float(floor @ kernel) / length
        transforms += (fft_error(length) * growth * 2.0 * float(floor.sum()) / length + _LEAST) * float(kernel[0])
        changed = math.expm1(min(count * missed * 1.01, 700.0))
        moved = 1.01 * float((masses.moved * tilts[1:]).sum()) / total * count * (1.0 + changed)
        outside = self._outside(math.log(total), count * own)
        absolute = peak * (changed + outside) + moved * masses.spacing
        absolute += 1.01 * transforms
        log_scale = count * (math.log(total) + theta * self._centre)
        relative = (
            count * (own + U) + count * ELEMENTARY * abs(math.log(total)) + 4.0 * U * count * theta * abs(self._centre)
        )
        # no mass is below 0; what is put back to it counts as an error
        absolute -= 1.01 * peak * float(np.minimum(composed, 0.0).sum())
        return np.maximum(composed, 0.0), log_scale, math.expm1(min(relative, 700.0)), absolute

    def _outside(self, log_total: float, rounding: float) -> float:
        """Bound on the composed tilted mass outside the window, in units of the scale."""
        window, masses, count = self._window, self._masses, self._count
        points = masses.index * masses.spacing
        most = masses.mass + masses.error
        most[1:] += masses.moved
        most[:-1] += masses.moved
        total = 0.0
        ends = (count * float(points[0]) < window.low, count * float(points[-1]) > window.high)
        tilts = ((window.theta_below, window.low), (window.theta_above, window.high))
        for (theta, edge), reached in zip(tilts, ends, strict=True):
            if not reached:
                continue
            shift = theta - window.theta
            exponents = theta * (points - self._centre)
            peak = float(exponents[most > 0.0].max())
            log_moment = peak + math.log(float((most * np.exp(np.minimum(exponents - peak, 0.0))).sum()))
            log_tail = count * (log_moment - log_total) - shift * (edge - count * self._centre)
            size = (
                abs(count * log_moment) + abs(count * log_total) + abs(shift) * (abs(edge) + count * abs(self._centre))
            )
            room = rounding + 8.0 * U * size + 1e-9 * count * U * float(points.size)
            room += count * (2.0 * ELEMENTARY + gamma(points.size) + 4.0 * U * float(np.abs(exponents).max()))
            total += math.exp(min(log_tail + room, 700.0))
        return total

    def bounds(self, k: Array) -> tuple[Array, Array]:
        """Certified lower and upper bounds on ``E (S - k)+``, each of the shape of ``k``.

        Where k is left of what is kept, the bounds are 0 and infinity.
        """
        h = self._masses.spacing
        position = np.asarray(k) / h - self.low_index
        left = np.clip(np.floor(position), 0, self._stop_loss.size - 2).astype(np.int64)
        share = np.clip(position - left, 0.0, 1.0)

        def between(values: Array) -> Array:
            return np.asarray((1.0 - share) * values[left] + share * values[left + 1])

        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            # the errors are a convex function of k: between two points the chord is above it
            value, error = between(self._stop_loss), between(self._errors)
            inside = (position >= 0.0) & np.isfinite(value * (1.0 + self._relative) + error)
            low = np.exp(np.log(np.maximum(value * (1.0 - min(self._relative, 1.0)) - error, 0.0)) + self._log_factor)
            high = np.exp(np.log(value * (1.0 + self._relative) + error) + self._log_factor)
        low = np.where(inside & (low > _LEAST), low * (1.0 - _READ), 0.0)
        return low, np.where(inside, high * (1.0 + _READ) + _LEAST, math.inf)


def kernel_bounds(theta: float, spacing: float, length: int) -> Array:
    """Bounds on the half spectrum of ``y e^{-theta y}`` at multiples of a spacing from 0 to anywhere in one period.

    Frequency j has their sum at most, and at most twice the largest over ``|1 - e^{2 pi i j / n}| >= 4 j / n``.
    """
    whole, largest = 1.001 / (theta * theta * spacing), 1.001 / (math.e * theta)
    return np.asarray(whole / np.maximum(1.0, np.arange(length // 2 + 1) * (2.0 * whole / (largest * length))))
