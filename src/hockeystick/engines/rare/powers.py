"""Products of powers of the transforms of several laws, and their differences where large losses are left out.

With ``T_k`` steps of the k-th law, ``A_k`` its transform below the lower cut and ``B_k`` the one between both cuts,

    D = prod_k (A_k + B_k)^{T_k} - prod_k A_k^{T_k}.

Several runs of the laws may be asked at once; every run is computed as it is alone.

Guarantee: bounds on errors as stated (`docs/derivations/rare-losses.md`, sections 4 and 5). Cost: a dozen elementary
functions for each law, run and frequency.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from hockeystick.engines.rare.losses import LEAST, RISEN
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.rounding import U

Transforms = tuple[Complex, float, Complex, float]
"""A and B of a law at some frequencies, each followed by a bound on its errors at all of them."""


def composed(logs: Array, counts: Array) -> Array:
    """``sum_k T_k log_k`` of every run; logarithms of shape (K, ...), counts of shape (R, K)."""
    return np.asarray((counts.reshape(counts.shape + (1,) * (logs.ndim - 1)) * logs).sum(axis=1))


def log_difference(a: Array, b: Array, counts: Array) -> Array:
    """Upper bounds on ``ln D`` of every run, for A and B of shape (K, ...), at least 0, that carry a few roundings."""
    logs, more = np.log(a), composed(np.log1p(b / a), counts)
    found = composed(logs, counts) + np.where(more < 30.0, np.log(np.expm1(np.minimum(more, 30.0)) + LEAST), more)
    return np.asarray(found + 1e-9 * (1.0 + np.abs(found) + composed(np.abs(logs), counts)))


def difference(laws: Sequence[Transforms], counts: Array) -> tuple[Complex, Array]:
    """D of every run and a bound on what its evaluation loses, shape (R, M)."""
    small, both = _Power(), _Power()
    grown, turned, shares, rare = np.zeros(1), np.zeros(1), np.zeros(1), np.ones(1, dtype=np.bool_)
    for (a, _, b, _), steps in _each(laws, counts):
        size = np.abs(a) + LEAST
        share = np.abs(b) / size
        few = (share < 0.5) & (size > 1e-100)  # elsewhere nothing is gained over both powers
        ratio = np.where(few, b, 0.0) * np.reciprocal(np.where(few, a, 1.0))
        real, imaginary = ratio.real, ratio.imag
        grown = grown + steps * 0.5 * np.log1p(2.0 * real + (real * real + imaginary * imaginary))
        turned = turned + steps * np.arctan2(imaginary, 1.0 + real)
        shares, rare = shares + steps * share, rare & few
        small.times(a, steps)
        both.times(a + b, steps)
    half = np.sin(0.5 * turned)
    inner = np.expm1(grown) * np.cos(turned) - 2.0 * half * half + 1j * (np.exp(grown) * np.sin(turned))
    power, power_error = small.value
    whole = np.abs(power)
    lost = (200.0 + 4.0 * len(laws)) * shares + 64.0 * (np.abs(grown) + np.abs(turned))
    inner_error = U * np.exp(np.maximum(grown, 0.0)) * lost
    rounding = whole * (1.0 + power_error) * (np.abs(inner) * power_error + inner_error) * 1.01
    other, other_error = both.value
    lost = (np.abs(other) * other_error + whole * power_error) * 1.01
    return np.where(rare, power * inner, other - power), np.where(rare, rounding, lost) + LEAST


def moved(laws: Sequence[Transforms], counts: Array) -> Array:
    """By how much D of every run may be off as A and B are by their errors, shape (R, M)."""
    log, size, some, own, large = (np.zeros(1) for _ in range(5))
    for (a, a_error, b, b_error), steps in _each(laws, counts):
        most = (np.maximum(np.abs(a), np.abs(a + b)) + (a_error + b_error)) * (1.0 + 8.0 * U)
        log_most, times = np.log(most), steps / most
        log, size = log + steps * log_most, size + steps * np.abs(log_most)
        some, own, large = some + times * a_error, own + times * b_error, large + times * (np.abs(b) + b_error)
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(log + 1e-9 * (1.0 + size)) * (own + some * large) * RISEN)


def _each(laws: Sequence[Transforms], counts: Array) -> Iterator[tuple[Transforms, Array]]:
    """The laws with the steps that the runs take of them, shape (R, 1)."""
    return zip(laws, counts.T[:, :, None], strict=True)


@final
class _Power:
    """A product of powers, where neither it nor its factors are next to the end of float64."""

    def __init__(self) -> None:
        self._log, self._turn, self._sizes, self._steps, self._factors = *(np.zeros(1) for _ in range(4)), 0

    def times(self, base: Complex, steps: Array) -> None:
        """Multiply by a power."""
        log, turn = np.log(np.abs(base) + LEAST), np.arctan2(base.imag, base.real)
        self._log, self._turn = self._log + steps * log, self._turn + steps * turn
        self._sizes = self._sizes + steps * (np.abs(log) + np.abs(turn))
        self._steps, self._factors = self._steps + steps, self._factors + 1

    @property
    def value(self) -> tuple[Complex, Array]:
        """It, and a bound on its relative error; of sums of K terms each is rounded up to K times."""
        lost = 32.0 * self._steps + (4.0 + self._factors) * self._sizes + 64.0
        return np.exp(self._log) * np.exp(1j * self._turn), U * lost
