"""A composition that grows step by step: one vector product a step, a few inner products an answer (002, Lemma 5).

Symbols as in `compose.py` and `plancherel.py`: ``W_j = prod w_{i,j}^{T_i}`` over the distinct steps i with counts
T_i, kept on low frequencies. On the points of the lattice the kernel's transform is one fixed vector times phases, so
that the curve at a lattice point is one inner product:

    delta(x_k) = delta_inf + e^{sum T_i K_i - theta x_k} S_k,      S_k = (1 / n) sum_j conj(F_j(x_k)) W_j.

The curve of a lattice measure is linear in e^eps between neighbouring points, so that the epsilon for a delta is read
off the two points around it without further evaluations: the chord between two upper (lower) bounds is an upper
(lower) bound.

Errors, all inside the answer: those of `compose.py`, and the frequencies left out, at most ``sum_j size_j prod_i
|w_{i,j}|^{T_i}``, from the bands of every step. A product of T steps errs by at most ``T (e + POWER_STEP)``, e the
error of one transform, whether made at once or one step at a time: nothing drifts. The masses of
a step sum to at most one, so that every ``|w_j|`` is at most ``1 + e``: bounds on sums of magnitudes stay valid while
steps are added, but for a part of the growth ``e^{4 T e}`` that they get anyhow. They are renewed when the number of
steps has grown by a quarter.

Guarantee: upper or lower, rounding included. Memory: 16 bytes a kept frequency and distinct step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.engines.contour.aliasing import kernel_peak
from hockeystick.engines.lattice.compose import TiltedWindow
from hockeystick.engines.lattice.plancherel import FrequencyKernel
from hockeystick.engines.lattice.pld import Side
from hockeystick.engines.lattice.streaming_spectrum import SCALARS, StepSpectrum, band_edges, band_sizes
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.fft import POWER_STEP, integer_power
from hockeystick.numerics.rounding import ELEMENTARY, UNDERFLOW, U, exp_down, exp_up

_RENEWED = 1.25
_GONE = 80.0  # e^-80: where the end of the window is out of sight; inside `FrequencyKernel.rounding`
_NEWTON = 12


@final
class Frame:
    """What all steps of one side and direction share: window, lattice, kept frequencies.

    Parameters
    ----------
    window : TiltedWindow
        Tilts and range (nats).
    spacing : float
        Lattice spacing (nats).
    length : int
        Points of the window.
    kept : int
        Frequencies kept.
    """

    def __init__(self, window: TiltedWindow, spacing: float, *, length: int, kept: int) -> None:
        self.window, self.spacing, self.length, self.kept = window, spacing, length, kept
        self.kernel = FrequencyKernel(window.theta, spacing, length=length, kept=kept)
        self.band_sizes = band_sizes(self.kernel, band_edges(kept, length))
        self.kernel_peak = kernel_peak(window.theta)
        first, second = self.kernel.series(spacing)
        self.series = (np.conj(first), np.conj(second))
        self.unit = self.series[0] - self.series[1]


@final
@dataclass(frozen=True)
class Magnitudes:
    """Sums over the kept frequencies, valid from the number of steps at which they were made on.

    Attributes
    ----------
    steps : int
        When they were made.
    product : float
        Bound on the sum of ``size |W|``.
    floor : float
        Bound on the sum of ``size prod max(|w_j|, 1/2)^T``.
    """

    steps: int
    product: float
    floor: float


@final
class RunningComposition:
    """The composition of one side in one frame, steps added one at a time.

    Parameters
    ----------
    side : "upper" or "lower"
        Which side of the curve its lattices keep to.
    frame : Frame
        The frame that all spectra were made for.
    """

    def __init__(self, side: Side, frame: Frame) -> None:
        self.side, self.frame = side, frame
        self.product = np.ones(frame.kept, dtype=np.complex128)
        self._spectra: list[StepSpectrum] = []
        self._counts: list[int] = []
        self._scalars = np.empty((0, len(SCALARS)))
        self._bands = np.empty((0, frame.band_sizes.size))
        self.magnitudes: Magnitudes | None = None

    def register(self, spectrum: StepSpectrum) -> int:
        """Make a distinct step known, with count 0; its number."""
        self._spectra.append(spectrum)
        self._counts.append(0)
        self._scalars = np.vstack((self._scalars, spectrum.scalars))
        self._bands = np.vstack((self._bands, spectrum.log_bands))
        return len(self._spectra) - 1

    def add(self, number: int, count: int) -> None:
        """Add ``count`` more of a known step: one vector product."""
        values = self._spectra[number].values
        self.product = self.product * (values if count == 1 else integer_power(values, count))
        self._counts[number] += count

    def restore(self, counts: list[int], product: Complex, magnitudes: Magnitudes | None) -> None:
        """Set the counts of the known steps, and the product and the magnitudes that belong to them."""
        self._counts, self.product, self.magnitudes = list(counts), product.copy(), magnitudes

    def recomputed(self) -> Complex:
        """The product, from the counts alone."""
        product = np.ones(self.frame.kept, dtype=np.complex128)
        for spectrum, count in zip(self._spectra, self._counts, strict=True):
            if count:
                product = product * integer_power(spectrum.values, count)
        return product

    @property
    def steps(self) -> int:
        """Steps composed."""
        return sum(self._counts)

    def product_error(self) -> float:
        """Bound on the error of every entry of the product, relative to ``prod max(|w_j|, 1/2)^T``."""
        counts = np.array(self._counts, dtype=np.float64)
        errors = float(counts @ self._scalars[:, SCALARS.index("transform_error")])
        return (errors + self.steps * POWER_STEP) * (1.0 + 1e-9)

    def curve(self) -> RunningCurve:
        """The curve as it stands."""
        counts = np.array(self._counts, dtype=np.float64)
        return RunningCurve(self, counts, self._renewed(counts), self._scalars, self._bands)

    def start(self) -> int:
        """Lattice index of the product's origin."""
        return sum(count * spectrum.start for spectrum, count in zip(self._spectra, self._counts, strict=True))

    def _renewed(self, counts: Array) -> Magnitudes:
        steps = self.steps
        if self.magnitudes is None or steps > _RENEWED * self.magnitudes.steps:
            log_floor = np.zeros(self.frame.kept)
            for spectrum, count in zip(self._spectra, counts, strict=True):
                if count:
                    log_floor += count * np.log(np.maximum(np.abs(spectrum.values), 0.5))
            size = self.frame.kernel.size
            magnitude = float(size @ np.abs(self.product)) * (1.0 + 1e-6)
            noise = float(size @ np.exp(log_floor)) * (1.0 + 1e-6)
            self.magnitudes = Magnitudes(steps, magnitude, noise)
        return self.magnitudes


@final
class RunningCurve:
    """The curve of a running composition at one moment."""

    def __init__(
        self, of: RunningComposition, counts: Array, magnitudes: Magnitudes, scalars: Array, bands: Array
    ) -> None:
        frame = of.frame
        self.frame, self._sign = frame, 1.0 if of.side == "upper" else -1.0
        total = dict(zip(SCALARS, (counts @ scalars).tolist(), strict=True))
        size = dict(zip(SCALARS, (counts @ np.abs(scalars)).tolist(), strict=True))
        adding = (counts.size + 4.0) * U  # rounding of the sums over distinct steps
        h = frame.spacing
        self._log_scale = total["log_scale"]
        self._relative = total["relative_error"] * (1.0 + 1e-9) + U * of.steps + adding * size["log_scale"]
        reach = max(abs(frame.window.low), abs(frame.window.high)) + size["offset"] * (1.0 + counts.size)
        misplaced = 8.0 * U * reach  # by what composed positions are rounded
        self.slack: float = total["slack"] * (1.0 + 1e-9) + misplaced
        self._relative += frame.window.theta * misplaced
        self._offset: float = math.remainder(total["offset"], h)
        carried = round((total["offset"] - self._offset) / h)
        self._low: int = math.floor((frame.window.low - self._offset) / h)
        self._product = of.product
        self._weighted = frame.unit * of.product
        self._origin = of.start() + carried
        transform = of.product_error()
        growth = math.exp(min(4.0 * transform, 700.0))
        beyond = float(frame.band_sizes @ np.exp(np.minimum(counts @ bands, 1.0))) * (1.0 + 1e-6) * growth
        self._error = 2.0 * transform * growth * magnitudes.floor * growth + beyond
        self._error += frame.kernel.rounding(magnitudes.product * growth) + 1e-300
        self._alias_error = self._alias(total, size, adding) * frame.kernel_peak * (1.0 + 1e-9)
        self._error += self._alias_error
        self.delta_at_infinity = _infinity(total, size, adding, self._sign, of.steps)

    def _alias(self, total: dict[str, float], size: dict[str, float], adding: float) -> float:
        """Bound on the composed tilted mass outside the window, and on what the kernel loses where the window ends."""
        window, result = self.frame.window, 0.0
        for name, tilt, edge in (
            ("log_below", window.theta_below, window.low),
            ("log_above", window.theta_above, window.high),
        ):
            log_tail = total[name] - total["log_scale"] - (tilt - window.theta) * edge
            rounding = 8.0 * U * abs((tilt - window.theta) * edge) + adding * (size[name] + size["log_scale"])
            result += exp_up(min(log_tail + rounding + self._relative, 700.0)) + 1e-300
        return result

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """What the endless series would add beyond the window's end, each in units of its decay up to there."""
        phases = self.frame.kernel.phases(self._origin - self.last - 1)
        first, second = (float(np.dot(phases, series * self._product).real) for series in self.frame.series)
        return first, second

    def point(self, index: int) -> float:
        """Where the curve is known by evaluating at lattice index ``index`` (nats): the slack is applied."""
        return self._offset + index * self.frame.spacing + self._sign * self.slack

    def index_near(self, epsilon: float) -> int:
        """The lattice index whose point is at or just below ``epsilon``."""
        return math.floor(min((epsilon - self._sign * self.slack - self._offset) / self.frame.spacing, 2.0**62))

    @property
    def last(self) -> int:
        """The highest lattice index of the window."""
        return self._low + self.frame.length - 1

    def sum_at(self, index: int) -> float:
        """S_k, to rounding, for an index of the window or just below it."""
        frame, terms = self.frame, self.last - index
        theta, h = frame.window.theta, frame.spacing
        if terms <= 0:
            return 0.0
        value = float(np.dot(frame.kernel.phases(self._origin - index - 1), self._weighted).real)
        if theta * terms * h < _GONE:
            first, second = self._ends
            value -= math.exp(-theta * terms * h) * first - math.exp(-(1.0 + theta) * terms * h) * second
        return value

    def at_index(self, index: int) -> float:
        """The side's bound on delta at ``point(index)``: rounded up for the upper side, down for the lower."""
        frame, sign = self.frame, self._sign
        theta, h = frame.window.theta, frame.spacing
        if index < self.last - frame.length:  # below the window
            if sign > 0.0:
                return 1.0
            index = self.last - frame.length
        value = self.sum_at(index)
        error = self._error if index < self.last else self._alias_error
        total = value + sign * error
        if total <= 0.0:
            return self.delta_at_infinity
        at = self._offset + index * h
        log_total = math.log(total)
        rounding = 1.01 * self._relative + 2.0 * ELEMENTARY
        rounding += 4.0 * U * (abs(self._log_scale) + abs(theta * at) + abs(log_total) + 4.0)
        log_value = log_total + self._log_scale - theta * at + sign * rounding
        finite = (exp_up if sign > 0.0 else exp_down)(log_value) if log_value < 0.0 else 1.0
        return min(max((finite + self.delta_at_infinity) * (1.0 + sign * 8.0 * U), 0.0), 1.0)

    def delta(self, epsilon: float) -> float:
        """The side's bound on delta at any epsilon (nats): the chord of the two lattice points around it."""
        index, h = self.index_near(epsilon), self.frame.spacing
        ahead, whole = min(max(epsilon - self.point(index), 0.0), h), -math.expm1(-h)
        share = math.exp(ahead - h) * -math.expm1(-ahead) / whole
        # what the point and the difference are off by, 1 / whole the steepest the share grows; and its few operations
        slip = 4.0 * U * (abs(epsilon) + abs(self.point(index)) + h) / whole + 4.0 * ELEMENTARY
        share = min(max(share - self._sign * slip, 0.0), 1.0)
        near, far = self.at_index(index), self.at_index(index + 1)
        value = ((1.0 - share) * near + share * far) * (1.0 + self._sign * 8.0 * U) + self._sign * UNDERFLOW
        return min(max(value, 0.0), 1.0)

    def epsilon(self, delta: float, guess: float) -> float:
        """The side's bound on the epsilon of at least 0 at ``delta`` above 0: from the two lattice points around it."""
        theta, h = self.frame.window.theta, self.frame.spacing
        target, floor = math.log(delta), self.index_near(0.0)
        low, high = -(1 << 62), 1 << 62  # indices known to have delta above and at most the target
        value_low = value_high = math.nan
        at = min(max(self.index_near(guess), floor), self.last)
        for trial in range(200):
            value = self.at_index(at)
            if value > delta:
                low, value_low = at, value
            else:
                high, value_high = at, value
            if high <= floor:
                return 0.0
            if low >= self.last:
                return math.inf if self._sign > 0.0 else max(self.point(self.last), 0.0)
            if high - low == 1:
                break
            if trial >= _NEWTON or value <= 0.0:
                at = (max(low, floor) + min(high, self.last)) // 2
                at = max(at, low + 1)
                continue
            ahead = math.floor((math.log(value) - target) / (theta * h))
            at = min(max(at + (ahead or (1 if at == low else -1)), low + 1, floor), high - 1, self.last)
        share = (value_low - delta) / (value_low - value_high) * (1.0 + self._sign * 8.0 * U)
        step = _along(share, h) if share < 1.0 else h
        found = self.point(low) + step
        return max(found + self._sign * 16.0 * U * (abs(found) + h), 0.0)


def _along(share: float, width: float) -> float:
    """``ln(1 + share (e^width - 1))``, for a share in (0, 1): where the chord of a cell has come so far."""
    if width <= 1.0:
        return math.log1p(share * math.expm1(width))
    return width + math.log(share + (1.0 - share) * math.exp(-width))


def _infinity(total: dict[str, float], size: dict[str, float], adding: float, sign: float, steps: int) -> float:
    """Mass at infinity of the composition, rounded outward: ``1 - prod (1 - p_j)^{T_j}``."""
    log_finite = total["log_finite"]
    if log_finite == 0.0:
        return 0.0
    loose = log_finite * (1.0 + sign * (8.0 * U + adding)) - sign * adding * size["log_finite"]
    mass = -math.expm1(min(loose, 0.0))
    if sign > 0.0:
        return min(mass * (1.0 + 16.0 * U) * math.exp(min(total["excess"], 700.0)) + steps * UNDERFLOW, 1.0)
    return max(mass * (1.0 - 16.0 * U) - steps * UNDERFLOW, 0.0)
