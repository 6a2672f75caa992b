"""One step in the frequency domain: the transform of a tilted lattice PLD on low frequencies, and bounds for the rest.

Symbols as in `compose.py`: theta the tilt, n the length of the window, ``w_j = sum_a w_a e^{-i phi_j a}``, ``phi_j =
2 pi j / n``, the transform of the tilted masses w_a, which sum to at most one. The lowest ``kept`` frequencies are
stored; the others fall into bands, and of each band a bound on ``|w_j|`` is. A composition multiplies the first and
adds the logarithms of the second, so that a step costs the memory of the frequencies kept.

Two ways. *Full*: one FFT of length n, and the largest ``|w_j|`` of each band. *Low*: the frequencies kept by their
sums over the few hundred points that carry mass, and for the rest an inequality that needs no transform: split each
mass in halves, pair one half of a with one of a + d as far as both reach, and

    |w(phi)| <= 1 - M_d (1 - |cos(phi d / 2)|),     M_d = sum_a min(w_a, w_{a + d}),

since the two halves of a pair at distance d sum to at most ``2 m |cos(phi d / 2)|``. For a band around phi the
distance ``d = pi / phi`` makes the cosine small. With many steps the product of these is negligible: then no array of
the window's length is ever made.

Guarantee: the transform errors bound every w_j, and the bands are upper bounds. Cost: an FFT, or points x kept
exponentials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np

from hockeystick.engines.lattice.compose import TiltedWindow, log_moment, tilted
from hockeystick.engines.lattice.plancherel import FrequencyKernel
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.numerics.columns import Array, Complex, Indices
from hockeystick.numerics.fft import fft_error, transform_real
from hockeystick.numerics.products import product
from hockeystick.numerics.rounding import ELEMENTARY, U, gamma

SCALARS = (
    "log_scale",  # ln of the sum of the masses times e^{theta loss}
    "relative_error",  # of every tilted mass
    "transform_error",  # of every w_j, absolute
    "log_below",  # ln of the moment at the tilt below, rounded up
    "log_above",  # ln of the moment at the tilt above, rounded up
    "offset",  # where lattice index 0 lies (nats)
    "slack",  # nats by which the true losses may lie beyond the points
    "log_finite",  # ln(1 - mass at infinity)
    "excess",  # of the total mass, by rounding
)
"""What adds up over steps besides the spectra: the entries of ``StepSpectrum.scalars``."""

_TRANSFORM_ERROR = SCALARS.index("transform_error")
_BAND_GROWTH = 1.3
_BLOCK = 48
_FEWEST, _MOST = 16, 4096  # frequencies kept, where the rest is bounded

NEGLIGIBLE = 1e-16
"""Of the sum expected: what the frequencies left out may be."""


@final
@dataclass(frozen=True, eq=False)
class StepSpectrum:
    """The spectrum of one step.

    Attributes
    ----------
    values : ndarray of complex128, shape (kept,)
        w_j for the lowest frequencies, the origin at lattice index ``start``.
    start : int
        Lattice index of the origin.
    log_bands : ndarray, shape (bands,)
        ``ln`` of upper bounds on ``|w_j|`` in every band beyond.
    scalars : ndarray, shape (9,)
        The quantities of `SCALARS`.
    """

    values: Complex
    start: int
    log_bands: Array
    scalars: Array

    def truncated(self, kept: int, length: int) -> StepSpectrum:
        """A full spectrum cut to its lowest frequencies, the bands made from the rest."""
        edges = band_edges(kept, length)
        if edges.size < 2:
            return self
        magnitude = np.abs(self.values) + 2.0 * self.scalars[_TRANSFORM_ERROR]
        bands = np.log(np.maximum.reduceat(magnitude, edges[:-1])) + ELEMENTARY
        return StepSpectrum(self.values[:kept].copy(), self.start, bands, self.scalars)


def band_edges(kept: int, length: int) -> Indices:
    """Ends of the bands of frequencies ``kept <= j < length // 2 + 1``, wider and wider."""
    edges, last = [kept], length // 2 + 1
    while edges[-1] < last:
        edges.append(min(math.ceil(edges[-1] * _BAND_GROWTH) + 1, last))
    return np.array(edges)


def band_sizes(kernel: FrequencyKernel, edges: Indices) -> Array:
    """What the kernel makes of every band at the most, for an inner product with spectra of size one."""
    return np.array([kernel.beyond(int(low), int(high)) for low, high in pairwise(edges)])


def low_transform(index: Indices, masses: Array, length: int, kept: int) -> Complex:
    """``sum_a masses_a e^{-2 pi i j index_a / length}`` for j below ``kept``: a product of two tables of phases.

    With j = r q + s the phases factor, and the sums are one matrix product. Phases are reduced as integers.
    """
    rows = max(math.isqrt(kept), 1)
    columns = -(-kept // rows)
    unit = -2j * math.pi / length
    coarse = np.exp(((index[None, :] * (rows * np.arange(columns))[:, None]) % length) * unit)
    fine = np.exp(((index[None, :] * np.arange(rows)[:, None]) % length) * unit)
    coarse *= masses
    total = np.zeros((columns, rows), dtype=np.complex128)
    for first in range(0, index.size, _BLOCK):  # sums of sums: few roundings a sum
        block = slice(first, first + _BLOCK)
        total += product(coarse[:, block], fine[:, block].T)
    return total.reshape(-1)[:kept]


def _low_error(points: int) -> float:
    """Bound on the error of every sum of `low_transform`, for masses that sum to at most one.

    Each phase is an integer times ``2 pi / length``: pi, the quotient and the product are rounded, 3 u of at most 2
    pi, and the two functions of an exponential are ELEMENTARY off each, sqrt(2) ELEMENTARY together; a mass is one
    product more. A complex inner product of m terms is two real ones of 2 m terms: ``sqrt(2) gamma_{2m}`` times ``sum
    |z| |w|``, in any order of the sum. Each block added costs one rounding of a sum of at most one. 1.001: products
    of errors.
    """
    phases = 2.0 * (3.0 * 2.0 * math.pi * U + math.sqrt(2.0) * ELEMENTARY) + U
    blocks = -(-points // _BLOCK)
    return (phases + math.sqrt(2.0) * gamma(2 * _BLOCK) + gamma(blocks + 1)) * 1.001


@final
class TiltedStep:
    """A lattice PLD, tilted: masses that sum to at most one, before any transform.

    Parameters
    ----------
    pld : LatticePLD
        One step.
    window : TiltedWindow
        The tilt, and the tilts for Chernoff bounds.
    """

    def __init__(self, pld: LatticePLD, window: TiltedWindow) -> None:
        self.masses, log_scale, relative = tilted(pld, window.theta)
        self.start = int(pld.index[int(self.masses.argmax())])
        self.index: Indices = pld.index - self.start
        below, error_below = log_moment(pld, window.theta_below)
        above, error_above = log_moment(pld, window.theta_above)
        self._scalars = np.array(
            [
                log_scale,
                relative + U * abs(log_scale),
                0.0,
                max(below + error_below, -1e6),
                max(above + error_above, -1e6),
                pld.offset,
                pld.slack,
                math.log1p(-min(pld.mass_at_infinity, 1.0 - U)),
                pld.excess,
            ]
        )

    def _with_error(self, transform_error: float) -> Array:
        scalars = self._scalars.copy()
        scalars[_TRANSFORM_ERROR] = transform_error
        return scalars

    def full(self, length: int) -> StepSpectrum:
        """All frequencies, by FFT; no bands."""
        scalars = self._with_error(fft_error(length) * 1.0001)
        folded = np.asarray(np.bincount(self.index % length, self.masses, length), dtype=np.float64)
        return StepSpectrum(transform_real(folded), self.start, np.empty(0), scalars)

    def low(self, kept: int, length: int) -> StepSpectrum:
        """The lowest frequencies, by their sums, and bounds on the rest."""
        # a negligible mass has no part in the sums: what is left out is in the error
        heavy = self.masses > 1e-22 / self.masses.size
        index, masses = self.index[heavy], self.masses[heavy]
        values = low_transform(index, masses, length, kept)
        error = _low_error(masses.size) + 1e-22
        return StepSpectrum(values, self.start, self.bands(band_edges(kept, length), length), self._with_error(error))

    def bands(self, edges: Indices, length: int) -> Array:
        """``ln`` of bounds on ``|w_j|`` for the frequencies between consecutive edges, by pairing masses."""
        phi = edges * (2.0 * math.pi / length)
        distances = np.maximum(np.rint(2.0 * math.pi / (phi[:-1] + phi[1:])).astype(np.int64), 1)
        cosine = np.maximum(np.abs(np.cos(0.5 * phi[:-1] * distances)), np.abs(np.cos(0.5 * phi[1:] * distances)))
        inside = 0.5 * phi[1:] * distances <= math.pi  # else the cosine turns back to one within the band
        bounds = np.ones(distances.size)
        for number in np.flatnonzero(inside):
            paired = self._paired(int(distances[number]))
            bounds[number] = 1.0 - paired * max(1.0 - float(cosine[number]) - 8.0 * U, 0.0)
        return np.log(bounds) + 8.0 * U * self.masses.size + ELEMENTARY

    def _paired(self, distance: int) -> float:
        """M_d, rounded down."""
        partner = np.searchsorted(self.index, self.index + distance)
        partner[partner == self.index.size] = 0
        found = self.index[partner] == self.index + distance
        both = np.minimum(self.masses[found], self.masses[partner[found]])
        return float(both.sum()) * (1.0 - U * (self.masses.size + 64.0))


def few_frequencies(
    sides: Sequence[Sequence[tuple[TiltedStep, int]]],
    window: TiltedWindow,
    spacing: float,
    *,
    length: int,
    expected: float,
) -> int | None:
    """How many frequencies are worth keeping of compositions of so many of these steps, the rest bounded by bands.

    None where they are many, or where high frequencies cannot be shown to be negligible in a sum of about ``expected``.
    """
    edges = band_edges(_FEWEST, length)
    if edges.size < 3:
        return None
    kernel = FrequencyKernel(window.theta, spacing, length=length, kept=_FEWEST)
    none = np.zeros(edges.size - 1)
    logs = [sum((count * step.bands(edges, length) for step, count in steps), none) for steps in sides]
    sizes = np.max(band_sizes(kernel, edges) * np.exp(np.minimum(logs, 700.0)), axis=0)
    beyond = np.append(np.cumsum(sizes[::-1])[::-1], 0.0)
    kept = int(edges[int(np.argmax(beyond <= NEGLIGIBLE * expected))])
    return kept if kept <= min(length // 4, _MOST) else None
