"""Rounding made explicit: the unit roundoff, the assumed errors of the primitives, outward steps.

Symbols: ``U`` is the unit roundoff 2^-53 of float64 in round-to-nearest. Every error of numpy, scipy and the C library
that a proof assumes has its constant here and nowhere else. `docs/concepts/assumptions.md` lists them with their
domains, and `hockeystick selfcheck` measures them against ball arithmetic on the machine at hand.

Below `TINY` a product is off by up to 2^-1075, however small it is, and no relative error holds; sums are exact there.
Two rules keep bounds right at that end: what may be as small as that stays a logarithm until `exp_up` or `exp_down`
makes a float of it; and a mass that is given as a float counts as off by `UNDERFLOW` besides its relative error.
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.numerics.columns import Array, column

U = 2.0**-53
"""Unit roundoff."""

ELEMENTARY = 4.0 * U
"""Bound on the relative error of exp, expm1, log, log1p, sqrt, and of the absolute value of a complex number.

Two to four units in the last place, by where the value lies between powers of two.
"""

TRIGONOMETRIC = ELEMENTARY
"""Bound on ``|computed - sin x| / min(1, |x|)``, on ``|computed - cos x|`` and on the relative error of arctan2."""

ERF = 8.0 * U
"""Bound on the relative error of the error function."""

ERFCX = 16.0 * U
"""Bound on the relative error of the scaled complementary error function for arguments of at least 0."""

LOG_NDTR = 1e-13
"""Bound on the relative error of ``ln Phi(x)``, the logarithm of the normal distribution function, for x up to 15.

Further up it grows with the square of x: the upper tail is the exponential of a rounded square.
"""

POWER_STEP = 2.5 * U
"""Bound on the relative error of a product of complex numbers, at most sqrt(5) u; fused, 2 u."""

FFT_LEVEL = 8.0 * U
"""Error of one level of butterflies of a Fourier transform, relative to the sum of the absolute inputs."""

TINY = 2.0**-1022
"""Smallest normal float64: below it a relative error bound does not hold."""

SUBNORMAL = 2.0**-1070
"""Bound on the absolute error of exp where its value is below `TINY`: a few units of the numbers there."""

UNDERFLOW = 2.0**-1068
"""What a few dozen products of numbers below `TINY` may lose: 64 times the least float64."""

_OVERFLOW = 709.0  # e^709 is finite
_NORMAL = -650.0  # e^-650 times anything above 1e-20 is far above `TINY`
_VANISHED = -760.0  # e^-760 is below half of the least float64
_SCALE = 2.0**500  # its square brings numbers below `TINY` well above it


def gamma(operations: float) -> float:
    """Bound on the relative error of a sum or product of ``operations`` roundings: n u / (1 - n u)."""
    product = operations * U
    if product >= 0.5:
        raise OverflowError(f"{operations} roundings leave no accuracy to bound")
    return product / (1.0 - product)


def up(value: float, relative: float = 0.0) -> float:
    """A float64 of at least ``value + relative * |value|``; of an infinity, itself."""
    if math.isinf(value):
        return value
    return math.nextafter(value + relative * abs(value) * (1.0 + 4.0 * U), math.inf)


def down(value: float, relative: float = 0.0) -> float:
    """A float64 of at most ``value - relative * |value|``; of an infinity, itself."""
    if math.isinf(value):
        return value
    return math.nextafter(value - relative * abs(value) * (1.0 + 4.0 * U), -math.inf)


def dyadic_below(spacing: float) -> float:
    """The largest k 2^e, k in 4..7, that is at most ``spacing``: a dyadic rational within a quarter of it."""
    mantissa, exponent = math.frexp(spacing)  # mantissa in [1/2, 1)
    return math.ldexp(math.floor(mantissa * 8.0), exponent - 3)


def exp_up(log: float, factor: float = 1.0) -> float:
    """A float64 of at least ``factor * e^log``, factor in [0, 1]: above 0 also where that is too small for float64.

    Below `TINY` it is the least such number, but for a relative error of a few u.
    """
    if not log < _OVERFLOW:
        return math.inf
    if log > _NORMAL:
        return up(math.exp(log) * factor, 2.0 * ELEMENTARY)
    scaled = up(_scaled_exp(log) * factor, 4.0 * ELEMENTARY)
    value = scaled / _SCALE / _SCALE
    # both quotients together are rounded once, or 0; the products are exact again and tell the direction
    return value if value * _SCALE * _SCALE >= scaled else math.nextafter(value, math.inf)


def exp_down(log: float, factor: float = 1.0) -> float:
    """A float64 of at most ``factor * e^log``, factor in [0, 1], and at least 0.

    Below `TINY` it is the largest such number, but for a relative error of a few u.
    """
    if log > _NORMAL:
        return max(down(math.exp(min(log, _OVERFLOW)) * factor, 2.0 * ELEMENTARY), 0.0)
    if not log > _VANISHED:
        return 0.0
    scaled = max(down(_scaled_exp(log) * factor, 4.0 * ELEMENTARY), 0.0)
    value = scaled / _SCALE / _SCALE
    return value if value * _SCALE <= scaled / _SCALE else math.nextafter(value, 0.0)


def exps_up(logs: Array, factors: Array | None = None) -> Array:
    """`exp_up` of several logarithms, each at most 709, and of as many factors."""
    value = np.exp(logs) if factors is None else np.exp(logs) * factors
    value = ups(value, 2.0 * ELEMENTARY)
    for index in (~(logs > _NORMAL)).nonzero()[0].tolist():
        value[index] = exp_up(float(logs[index]), 1.0 if factors is None else float(factors[index]))
    return value


def exps_down(logs: Array, factors: Array | None = None) -> Array:
    """`exp_down` of several logarithms, each at most 709, and of as many factors."""
    value = np.exp(logs) if factors is None else np.exp(logs) * factors
    value = np.maximum(downs(value, 2.0 * ELEMENTARY), 0.0)
    for index in (~(logs > _NORMAL)).nonzero()[0].tolist():
        value[index] = exp_down(float(logs[index]), 1.0 if factors is None else float(factors[index]))
    return value


def ups(values: Array, relative: float = 0.0) -> Array:
    """`up` of several numbers of at least 0."""
    return np.asarray(np.nextafter(values + relative * values * (1.0 + 4.0 * U), np.inf))


def downs(values: Array, relative: float = 0.0) -> Array:
    """`down` of several numbers of at least 0."""
    return np.asarray(np.nextafter(values - relative * values * (1.0 + 4.0 * U), -np.inf))


def _scaled_exp(log: float) -> float:
    """``2^1000 e^log`` (a larger number below `_VANISHED`), to a relative error of 3 `ELEMENTARY`."""
    half = math.exp(0.5 * max(log, _VANISHED)) * _SCALE
    return half * half


def log_sums(logs: Array) -> Array:
    """``ln sum exp(logs)`` over the last axis; infinite where a term is ``inf`` or all are ``-inf``."""
    peak = logs.max(axis=-1)
    finite = np.isfinite(peak)
    if finite.all():
        return np.asarray(np.log(np.exp(logs - column(peak)).sum(axis=-1)) + peak)
    terms = np.exp(np.where(finite[..., None], logs - np.where(finite, peak, 0.0)[..., None], 0.0))
    return np.asarray(np.where(finite, np.log(terms.sum(axis=-1)), 0.0) + peak)
