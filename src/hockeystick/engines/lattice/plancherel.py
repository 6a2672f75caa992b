"""Hockey-stick sums in the frequency domain: an inner product for a new epsilon or number of steps (002, Lemma 5).

With masses w on the indices 0 .. n - 1 of a periodic lattice of spacing h, their transform ``W_j = sum_l w_l e^{-i
phi_j l}``, ``phi_j = 2 pi j / n``, and the kernel ``f(y) = e^{-theta y} (1 - e^{-y})`` laid from index s on,
Plancherel's theorem gives

    S = sum_{m < N} f(y + m h) w_{s + m} = (1 / n) sum_j conj(F_j) W_j,

where the transform of the kernel is two geometric series in closed form: with ``c = e^{-theta h - i phi_j}`` and
``d = e^{-(1 + theta) h - i phi_j}``,

    F_j = e^{-i phi_j s} (e^{-theta y} (1 - c^N) / (1 - c) - e^{-(1 + theta) y} (1 - d^N) / (1 - d)).

No inverse transform is made, nor an exponential for each lattice point: of real masses half the frequencies are
needed, and of a composition of many steps only the lowest few hundred, since the rest of W is negligible, and
bounded. theta = 0 is 002's sum.

Guarantee: `FrequencyKernel.rounding` bounds the error of a sum; with ``|F_j| <= 2 / |1 - c| + 2 / |1 - d|`` what is
left out is bounded by the caller. Phases are reduced modulo n as integers, so that they are exact to rounding. Cost:
one complex exponential and a few products a frequency kept.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from hockeystick.numerics.columns import Array, Complex, Indices
from hockeystick.numerics.rounding import U, gamma

_GONE = 80.0  # exponents beyond which e^-x counts as zero
# Error of F_j relative to the sum of its terms' absolute values, in u: 22 for 1 - e^{-x - i phi} (two parts of one
# sign each: expm1, exp, the square of a sine, phi off by 3), 10 for its reciprocal, 11 for two exponentials and their
# product, 23 for the phase (3 of an angle of at most 2 pi, sine and cosine), 6 for a complex and three real products
# and sums.
_TRANSFORM = 96.0 * U


@final
class FrequencyKernel:
    """The transform of the hockey-stick kernel on the lowest frequencies of a periodic lattice.

    Parameters
    ----------
    theta : float
        Tilt, at least 0.
    spacing : float
        Lattice spacing h (nats).
    length : int
        Period n, in lattice points.
    kept : int
        Number of frequencies kept, from 0 on; at most ``length // 2 + 1``.

    Attributes
    ----------
    size : ndarray, shape (kept,)
        Bound on ``|F_j| / n`` of any kernel, doubled where j stands for n - j as well.
    """

    def __init__(self, theta: float, spacing: float, *, length: int, kept: int) -> None:
        self.theta, self.spacing, self.length, self.kept = theta, spacing, length, kept
        self._frequency = np.arange(kept)
        self._weight = _weights(length, kept)
        self._first = _at(theta * spacing, length, self._frequency)
        self._second = _at((1.0 + theta) * spacing, length, self._frequency)
        self.size = self._weight * (2.0 + 1e-12) * (np.abs(self._first) + np.abs(self._second))
        if theta == 0.0:  # at frequency 0 the first series is not geometric: N terms of 1
            self.size[0] = self._weight[0] * (length + 2.0 * abs(self._second[0]))
        self.size.setflags(write=False)

    def series(self, gap: float) -> tuple[Complex, Complex]:
        """The two geometric series of a kernel that begins at ``gap``, endless and weighted; phases left out."""
        outer, inner = math.exp(-self.theta * gap), math.exp(-(1.0 + self.theta) * gap)
        return self._weight * outer * self._first, self._weight * inner * self._second

    def phases(self, index: int) -> Complex:
        """``e^{-i phi_j index}``, shape (kept,)."""
        turns = (self._frequency * (index % self.length)) % self.length
        return np.asarray(np.exp(turns * (-2j * math.pi / self.length)))

    def transform(self, start: int, *, gap: float, terms: int) -> Complex:
        """``F_j`` times its weight, for a kernel of ``terms`` terms from index ``start`` on, ``f(gap)`` the first.

        Parameters
        ----------
        start : int
            Index s, modulo the period.
        gap : float
            Distance y of the first point from epsilon, at least 0 (nats).
        terms : int
            N, at most the period.
        """
        theta, h = self.theta, self.spacing
        outer, inner = math.exp(-theta * gap), math.exp(-(1.0 + theta) * gap)
        result = self.phases(start) * (outer * self._first - inner * self._second)
        if theta * h * terms < _GONE:
            tail = self.phases(start + terms)
            far, farther = math.exp(-theta * h * terms), math.exp(-(1.0 + theta) * h * terms)
            result -= tail * (outer * far * self._first - inner * farther * self._second)
        if theta == 0.0:
            result[0] += terms  # `_first` is 0 there
        result *= self._weight
        return np.asarray(result)

    def rounding(self, magnitude: float) -> float:
        """Bound on the rounding error of an inner product, ``magnitude`` the sum of ``size * |W|``."""
        return (_TRANSFORM + gamma(2 * self.kept + 8)) * magnitude + math.exp(-_GONE) * magnitude

    @staticmethod
    def inner(transform: Complex, spectrum: Complex) -> float:
        """The sum S."""
        return float(np.vdot(transform, spectrum).real)

    def beyond(self, low: int, high: int) -> float:
        """Bound on the sum of ``size`` over the frequencies ``low <= j < high``, whether kept or not."""
        both = sum(
            abs(_at(decay * self.spacing, self.length, np.array([low]))[0]) for decay in (self.theta, 1.0 + self.theta)
        )
        # |1 - e^{-x - i phi}| grows with phi in [0, pi], so that the first of them is the largest
        return (high - low) * (2.0 / self.length) * (2.0 + 1e-9) * float(both)


def _weights(length: int, kept: int) -> Array:
    """1 / n, doubled for the frequencies that stand for their mirror image too."""
    weight = np.full(kept, 2.0 / length)
    weight[0] = 1.0 / length
    if length % 2 == 0 and kept == length // 2 + 1:
        weight[-1] = 1.0 / length
    return weight


def _at(decay: float, length: int, frequency: Indices) -> Complex:
    """``1 / (1 - e^{-decay - i phi_j})``, 0 where the denominator vanishes."""
    phi = frequency * (2.0 * math.pi / length)
    shrink = math.exp(-decay)
    half = np.sin(0.5 * phi)
    denominator = (-math.expm1(-decay) + 2.0 * shrink * half * half) + 1j * (shrink * np.sin(phi))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator == 0.0, 0.0, 1.0 / denominator)
