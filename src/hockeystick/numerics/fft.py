"""The real FFT with a componentwise error bound, and integer powers of complex arrays.

Every output of a fast Fourier transform is reached from every input along exactly one path of butterflies, and the
absolute values of the factors on a path multiply to one. Hence, for any vector x of length n, each output errs by at
most ``((1 + eta)^levels - 1) * sum |x_j|``, with eta the error of one complex multiply-add by a rounded twiddle factor
(N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 24.1, whose proof bounds the same product
of sparse factors in the 2-norm). A butterfly of radix r counts for log2 r levels and a small constant;
``FFT_LEVEL`` = 8 units roundoff a level is stated for scipy.fft and checked against ball arithmetic in the tests.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from hockeystick.numerics.rounding import U

__all__ = ["FFT_LEVEL", "POWER_STEP", "fft_error", "integer_power", "inverse_real", "smooth_length", "transform_real"]

FFT_LEVEL = 8.0 * U
"""Relative error of one level of butterflies."""

POWER_STEP = 2.5 * U
"""Relative error of one complex multiplication, at most sqrt(5) u."""


def smooth_length(least: int) -> int:
    """The smallest fast transform length of at least ``least``."""
    return int(fft.next_fast_len(max(least, 8), real=True))


def fft_error(length: int) -> float:
    """Bound on the error of every output of a transform of this length, relative to the sum of the absolute inputs."""
    return (math.log2(length) + 3.0) * FFT_LEVEL


def transform_real(values: NDArray[np.float64]) -> NDArray[np.complex128]:
    """Half spectrum of a real vector of length n, shape (n // 2 + 1,)."""
    return np.asarray(fft.rfft(values))


def inverse_real(spectrum: NDArray[np.complex128], length: int) -> NDArray[np.float64]:
    """The real vector of the given length that has this half spectrum."""
    return np.asarray(fft.irfft(spectrum, length))


def integer_power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """``base ** exponent``, exponent at least 1, by repeated squaring.

    The relative error is at most ``gamma`` of ``exponent`` POWER_STEPs.

    Values that underflow become zero, an absolute error below 1e-300.
    """
    square = base
    with np.errstate(under="ignore"):
        while not exponent & 1:
            square, exponent = square * square, exponent >> 1
        result = square
        while exponent := exponent >> 1:
            square = square * square
            if exponent & 1:
                result = result * square
    return result
