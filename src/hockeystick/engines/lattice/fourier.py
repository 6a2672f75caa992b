"""The Fourier accountant's composition (002, Algorithm 1): grid losses in [-L, L), convolved by FFT modulo 2 L.

Symbols: h the spacing, n = 2 L / h the number of points, T_j the counts, k their sum, w_j the transform of one grid
PLD. The masses are not tilted, so that all errors are absolute. What is computed is

    delta~(eps) = delta_inf + sum_{eps < x < L} (1 - e^{eps - x}) w~(x),     w~(x) = sum_m w(x + 2 L m),

w the composed masses. Error budget, all inside the bounds (docs/derivations/fourier.md):

- *truncation and periodisation* (002, Theorems 1 and 3): masses from above the window are wrapped to a smaller loss,
  which lowers delta, by at most their sum; masses from below are wrapped to a larger one, which raises it by at most
  theirs. Both tails are bounded by Chernoff at the best tilt;
- *rounding*: of the transforms as in `compose.py`, of the masses relative, of the sums.

Guarantee: `PeriodicComposition.delta` brackets the curve of the composed grid measures themselves. Which side of the
true curve they are on is the grids' affair (`buckets.py`). Cost: one real FFT of length n a distinct PLD; an answer
one inner product with the transform of the kernel (`plancherel.py`), or an inverse transform once and a sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, final

import numpy as np

from hockeystick.engines.lattice.chernoff import TailTable, least_log_tails
from hockeystick.engines.lattice.compose import Parts, composed_infinity
from hockeystick.engines.lattice.plancherel import FrequencyKernel
from hockeystick.errors import PrecisionError
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.fft import POWER_STEP, fft_error, floored_power, integer_power, inverse_real, transform_real
from hockeystick.numerics.rounding import ELEMENTARY, U, exp_up, gamma

Evaluation = Literal["plancherel", "inverse transform"]
"""How the sum of an answer is formed."""

Side = tuple[float, float]

_UNKNOWN = 1.0  # ln of a mass rounded up: beyond, nothing is known of it
_OVERFLOW = 600.0  # ln of the sum of composed masses: float64 holds no powers much larger
_NEGLIGIBLE = 1e-18  # what the frequencies left out may add to delta


@final
@dataclass(frozen=True)
class Spectrum:
    """The product of all transforms, its origin, and its errors."""

    values: Complex
    floor: Array  # G = prod max(|w_j|, 1/2)^T_j
    shift: int  # lattice index of its origin
    transform_error: float  # sum T_j e_j
    relative_error: float  # of the masses


@final
class PeriodicComposition:
    """A composition of grid PLDs of one spacing in the window [-half_width, half_width).

    Parameters
    ----------
    parts : sequence of (LatticePLD, int)
        PLDs with their counts.
    points : int
        n, even: the window is ``n * spacing`` wide.
    """

    def __init__(self, parts: Parts, points: int) -> None:
        if any((pld.log_mass == -math.inf).all() for pld, _ in parts):
            raise PrecisionError("a step hides nothing: no loss is finite, and neither is epsilon; use more noise")
        if any(not float(pld.log_mass.max()) < _UNKNOWN for pld, _ in parts):
            raise PrecisionError("rounding leaves nothing of the masses of enormous losses: use more noise")
        if not math.fsum(count * pld.excess for pld, count in parts) < _OVERFLOW:
            steps, spacing = sum(count for _, count in parts), parts[0][0].spacing
            raise PrecisionError(
                f"rounding leaves nothing of the masses of {steps} steps on a grid of spacing {spacing!r}: use"
                " accountants.Certified"
            )
        self.parts = tuple(parts)
        self.spacing = parts[0][0].spacing
        self.points = points
        self.half_width = 0.5 * points * self.spacing
        offset = math.fsum(count * pld.offset for pld, count in parts)
        self.offset = math.remainder(offset, self.spacing)
        self._carried = round((offset - self.offset) / self.spacing)
        self.slack = math.fsum(count * pld.slack for pld, count in parts) * (1.0 + 4.0 * U)
        self.slack += 8.0 * U * (self.half_width + math.fsum(count * abs(pld.offset) for pld, count in parts))
        self._low_index = -points // 2
        self.infinity = composed_infinity(parts)

    @cached_property
    def _log_tails(self) -> tuple[float, float]:
        """``ln`` of bounds, of at most 1, on the composed mass at or above L, and on that below -L."""
        end = self.half_width - abs(self.offset) - self.slack
        above, below = least_log_tails(self.parts, end)
        return min(above, 0.0), min(below, 0.0)

    @cached_property
    def spectrum(self) -> Spectrum:
        """The product of the transforms; memory about 40 bytes a point."""
        n = self.points
        product: Complex = np.ones(1, dtype=np.complex128)
        floor = np.ones(n // 2 + 1)
        relative, transform_error, shift = 0.0, 0.0, self._carried
        for pld, count in self.parts:
            masses = np.exp(pld.log_mass)
            start = int(pld.index[pld.log_mass.argmax()])
            values = transform_real(np.asarray(np.bincount((pld.index - start) % n, masses, n), dtype=np.float64))
            magnitude = np.abs(values)
            product = product * integer_power(values, count)
            floor *= floored_power(magnitude, count)
            total = float(masses.sum())
            size = float(np.max(np.abs(pld.log_mass[np.isfinite(pld.log_mass)]), initial=0.0))
            relative += count * (ELEMENTARY + U * min(size, 745.0) + gamma(4 + int(np.ptp(pld.index)) // n))
            transform_error += count * (fft_error(n) * 1.0001 * max(total, 1.0) + POWER_STEP)
            shift += count * start
        return Spectrum(product, floor, shift, transform_error, relative)

    @cached_property
    def masses(self) -> Array:
        """The periodised masses of the window, by inverse transform; shape (n,)."""
        shift = (self.spectrum.shift - self._low_index) % self.points
        return np.roll(inverse_real(self.spectrum.values, self.points), shift)

    @cached_property
    def _growth(self) -> float:
        return math.exp(min(4.0 * self.spectrum.transform_error, 700.0))

    @cached_property
    def mass_error(self) -> float:
        """Bound on the absolute error of every one of the masses."""
        mean = 2.0 * float(self.spectrum.floor.sum()) / self.points
        return (2.0 * self.spectrum.transform_error + fft_error(self.points)) * mean * self._growth + 1e-300

    @cached_property
    def _kept(self) -> tuple[FrequencyKernel, Complex, float]:
        """Kernel and spectrum on the frequencies worth keeping, and the error of a sum over them."""
        n, spectrum = self.points, self.spectrum
        full = FrequencyKernel(0.0, self.spacing, length=n, kept=n // 2 + 1)
        magnitude = full.size * np.abs(spectrum.values)
        beyond = np.cumsum(magnitude[::-1])[::-1]  # what frequencies from j on can add
        kept = max(int(np.count_nonzero(beyond > _NEGLIGIBLE)), 2)
        kernel = full if kept >= n // 4 else FrequencyKernel(0.0, self.spacing, length=n, kept=kept)
        error = float(beyond[kernel.kept]) * (1.0 + 1e-6) if kernel.kept < beyond.size else 0.0
        error += 2.0 * spectrum.transform_error * self._growth * float(full.size @ spectrum.floor) * (1.0 + 1e-6)
        error += kernel.rounding(float(magnitude[: kernel.kept].sum()) * (1.0 + 1e-6)) + 1e-300
        return kernel, spectrum.values[: kernel.kept].copy(), error

    def delta(self, epsilon: float, evaluation: Evaluation = "plancherel") -> Side:
        """Lower and upper bound on the curve of the composed grid measures at one epsilon (nats)."""
        above, below = map(exp_up, self._log_tails)
        value, error = self._sum(epsilon, evaluation)
        relative = math.expm1(min(1.01 * self.spectrum.relative_error, 700.0)) + 4.0 * U
        low = (value - error) * (1.0 - min(relative, 1.0)) - below
        high = (value + error) * (1.0 + relative) + above
        lower = (max(low, 0.0) + self.infinity[0]) * (1.0 - 4.0 * U)
        return min(max(lower, 0.0), 1.0), min((max(high, 0.0) + self.infinity[1]) * (1.0 + 4.0 * U), 1.0)

    def _sum(self, epsilon: float, evaluation: Evaluation) -> Side:
        """The sum over the window and a bound on its error."""
        start = max(math.floor((epsilon - self.offset) / self.spacing) + 1, self._low_index)
        terms = self._low_index + self.points - start
        if terms <= 0:
            return 0.0, 0.0
        if evaluation == "plancherel":
            kernel, spectrum, error = self._kept
            gap = max(self.offset + start * self.spacing - epsilon, 0.0)
            transform = kernel.transform(start - self.spectrum.shift, gap=gap, terms=terms)
            return kernel.inner(transform, spectrum), error
        gaps = np.maximum(self.offset + np.arange(start, start + terms) * self.spacing - epsilon, 0.0)
        weights = -np.expm1(-gaps)
        masses = self.masses[self.points - terms :]
        error = self.mass_error * float(weights.sum()) * (1.0 + 1e-6)
        return float(weights @ masses), error + (gamma(terms) + ELEMENTARY) * float(weights @ np.abs(masses))

    def budget(self) -> dict[str, float]:
        """Sizes of the errors inside ``delta``: truncation and periodisation, rounding."""
        return {
            "truncation and periodisation": min(sum(map(math.exp, self._log_tails)), 1.0),
            "rounding": min(self._kept[2] + self.spectrum.relative_error, 1.0),
        }

    def log_mass_beyond(self, epsilon: float) -> float:
        """``ln`` of the best Chernoff bound on the composed mass above ``epsilon`` (the mass at infinity left out)."""
        return min(self._tails.log_tail(epsilon), 0.0)

    @cached_property
    def _tails(self) -> TailTable:
        return TailTable.of(self.parts)
