"""Sums, products of arrays and Fourier transforms, measured against exact sums.

Floats are exact numbers, and balls of a thousand bits hold their sums and products without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from flint import acb, arb

from hockeystick.exact.balls import precision
from hockeystick.numerics.fft import smooth_length
from hockeystick.numerics.rounding import ELEMENTARY, U, gamma
from hockeystick.selfcheck.elementwise import Array

_BITS = 1000
_EXPONENTS = (1, 2, 3, 7, 10, 1000, 12345)

Call = Callable[..., Any]
Ways = Callable[[Call, Array, Array], Sequence[complex]]
"""From the function measured and two vectors a and b to computed values of ``sum a_j b_j``."""


def _cases(generator: np.random.Generator, count: int) -> Iterator[Array]:
    """Vectors of many lengths: positive, of both signs, and one that loses an addend at every addition."""
    for size in (2, 3, 8, 9, 64, 130, max(count, 200)):
        yield generator.random(size)
        yield generator.standard_normal(size) * np.exp2(generator.integers(-20, 20, size))
        yield np.concatenate(([1.0], np.full(size - 1, U * (1.0 - 2.0**-40))))


def _size(ball: Any) -> float:
    """An upper bound, infinite where it is no number: NaN is above nothing."""
    size = float(ball.abs_upper())
    return math.inf if math.isnan(size) else size


def _distance(value: complex, truth: Any) -> float:
    """An upper bound."""
    return _size(acb(value) - truth)


@final
@dataclass(frozen=True)
class Sum:
    """A sum of products, relative to ``roundings(n)`` unit roundoffs of the sum of their sizes.

    Attributes
    ----------
    ways : callable
        How the function is called.
    roundings : callable
        From n to the number of roundings assumed.
    factors : bool
        Whether b is a second vector; else it is ones.
    is_complex : bool
        Whether both vectors are complex; the conjugate of a is meant.
    exact : bool
        Whether the error is relative to the sum itself: it is rounded once.
    """

    ways: Ways
    roundings: Callable[[int], float]
    factors: bool = False
    is_complex: bool = False
    exact: bool = False

    def __call__(self, call: Call, generator: np.random.Generator, count: int) -> float:
        """The largest error, in units of what is assumed."""
        worst = 0.0
        with precision(_BITS):
            for first in _cases(generator, count):
                a, b = self._vectors(generator, first)
                pairs = zip(np.conj(a).tolist(), b.tolist(), strict=True)
                truth = sum((acb(x) * acb(y) for x, y in pairs), acb(0))
                scale = float(truth.abs_lower()) if self.exact else float(np.abs(a) @ np.abs(b))
                size = scale * gamma(self.roundings(a.size))
                for value in self.ways(call, a, b):
                    worst = max(worst, _distance(value, truth) / size)
        return worst

    def _vectors(self, generator: np.random.Generator, first: Array) -> tuple[Array, Array]:
        second = generator.standard_normal(first.size) if self.factors else np.ones(first.size)
        if not self.is_complex:
            return first, second
        return first + 1j * generator.permutation(first), second + 1j * generator.standard_normal(first.size)


def plain(call: Call, a: Array, b: Array) -> Sequence[complex]:
    """A function of both vectors."""
    return [call(a, b)]


def whole(call: Call, a: Array, _b: Array) -> Sequence[complex]:
    """Side by side, strided, along the last axis and along the first."""
    rows, columns = np.tile(a, (3, 1)), np.tile(a[:, None], (1, 3))
    return [call(a), call(np.repeat(a, 2)[::2]), call(rows, axis=-1)[1], call(columns, axis=0)[1]]


def pieces(call: Call, a: Array, _b: Array) -> Sequence[complex]:
    """Two parts of one vector, ``reduceat``."""
    return list(call(np.tile(a, 2), [0, a.size]))


def running(call: Call, a: Array, _b: Array) -> Sequence[complex]:
    """The last of the running sums."""
    return [call(a)[-1]]


def binned(call: Call, a: Array, _b: Array) -> Sequence[complex]:
    """All in one bin."""
    return [call(np.zeros(a.size, dtype=np.int64), a)[0]]


def one_list(call: Call, a: Array, _b: Array) -> Sequence[complex]:
    """A list of Python's floats."""
    return [call(a.tolist())]


def dots(call: Call, a: Array, b: Array) -> Sequence[complex]:
    """Side by side, strided, and as rows of a matrix."""
    return [call(a, b), call(np.repeat(a, 2)[::2], b[::-1][::-1]), call(np.tile(a, (5, 1)), b)[3]]


def products(call: Call, a: Array, b: Array) -> Sequence[complex]:
    """Matrix and vector, stacked matrices, matrices stored by columns."""
    left, right = np.tile(a, (2, 5, 1)), np.tile(b[:, None], (2, 1, 7))
    return [call(a[None], b)[0], call(left, right)[1, 4, 6], call(left[0].T.copy().T, right[0])[0, 0]]


def conjugated_products(call: Call, a: Array, b: Array) -> Sequence[complex]:
    """The same with the conjugate of a, as the sum has it."""
    return products(call, np.conj(a), b)


def log_sum(call: Call, generator: np.random.Generator, count: int) -> float:
    """The error of ``ln sum e^{x_j}`` by additions of logarithms, relative to n - 1 times the error of one."""
    worst = 0.0
    for size in (2, 3, 9, 64, max(count // 4, 100)):
        for reach in (1.0, 40.0, 700.0):
            logs = generator.uniform(-reach, 0.0, size)
            truth = sum((arb(x).exp() for x in logs.tolist()), arb(0)).log()
            bound = (size - 1) * (2.0 * ELEMENTARY + U * float(np.abs(logs).max() + np.log(size)))
            worst = max(worst, _distance(float(call(logs)), truth) / bound)
    return worst


def power(call: Call, generator: np.random.Generator, count: int) -> float:
    """The relative error of integer powers of complex numbers, divided by the exponent: the number of products."""
    worst = 0.0
    base = np.exp(1j * generator.uniform(-3.0, 3.0, count // 8 + 9)) * generator.uniform(0.999, 1.0, count // 8 + 9)
    for exponent in _EXPONENTS:
        for b, found in zip(base.tolist(), call(base, exponent).tolist(), strict=True):
            truth = acb(b) ** exponent
            worst = max(worst, _size((acb(found) - truth) / truth) / exponent)
    return worst


def _signals(generator: np.random.Generator, length: int) -> Iterator[Array]:
    """Masses, values of both signs, and one point."""
    masses = generator.random(length) ** 8
    yield masses / masses.sum()
    yield generator.standard_normal(length)
    yield np.eye(1, length, int(generator.integers(1, length)))[0]


def _lengths(count: int) -> list[int]:
    """Lengths that reach every radix, alone and together."""
    lengths = {smooth_length(least) for least in (8, 9, 10, 12, 15, 16, 25, 27, 60, 64, 81, 125, 240, 512)}
    if count > 1000:
        lengths |= {smooth_length(least) for least in (729, 1000, 3125, 4096, 6075, 6561, 16384, 30_000)}
    return sorted(lengths)


def transform(call: Call, generator: np.random.Generator, count: int) -> float:
    """The error of the real transform, relative to the sum of the absolute inputs, for each level and three more."""
    worst = 0.0
    for length in _lengths(count):
        for signal in _signals(generator, length):
            truth = acb.dft([acb(x) for x in signal.tolist()])
            size = float(np.abs(signal).sum()) * (np.log2(length) + 3.0)
            pairs = zip(call(signal).tolist(), truth, strict=False)
            worst = max(worst, *(_distance(value, exact) / size for value, exact in pairs))
    return worst


def inverse(call: Call, generator: np.random.Generator, count: int) -> float:
    """The same of its inverse, relative to the mean of the absolute inputs, mirrored half included."""
    worst = 0.0
    for length in _lengths(count):
        half = generator.standard_normal(length // 2 + 1) + 1j * generator.standard_normal(length // 2 + 1)
        half[0] = half[0].real
        if length % 2 == 0:
            half[-1] = half[-1].real
        mirrored = np.concatenate((half, np.conj(half[1 : (length + 1) // 2][::-1])))
        truth = acb.dft([acb(x) for x in mirrored.tolist()], inverse=True)
        size = float(np.abs(mirrored).mean()) * (np.log2(length) + 3.0)
        pairs = zip(call(half, length).tolist(), truth, strict=True)
        worst = max(worst, *(_distance(value, exact) / size for value, exact in pairs))
    return worst
