"""The real FFT with a componentwise error bound, and powers of spectra.

Guarantee: every output errs by at most ``fft_error(n) * sum |x_j|``, for lengths n without prime factors above 5, the
only ones that are transformed. A transform of such a length is a sequence of levels, each of which multiplies by
rounded roots of unity and adds r = 2, 3, 4 or 5 numbers that stand r apart; the proof (`docs/derivations/fourier.md`,
section 4) bounds what one level adds. For other lengths a transform goes through convolutions (Bluestein), whose error
grows with the root of n, or through sums of as many terms as the prime.

`scipy.fft`, a third of a cold start, is loaded with the first transform: most answers need none.
"""

from __future__ import annotations

import math

import numpy as np

from hockeystick.errors import PrecisionError
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.rounding import FFT_LEVEL
from hockeystick.numerics.rounding import POWER_STEP as POWER_STEP

_LONGEST = 1 << 26
_MOST_INDEX = 1 << 62


def smooth_length(least: int) -> int:
    """The smallest fast transform length of at least ``least``; itself where no array is as long."""
    from scipy import fft

    return least if least > _MOST_INDEX else int(fft.next_fast_len(max(least, 8), real=True))


def even_smooth_length(least: int) -> int:
    """The least number from ``least`` on that is twice a fast length; itself where that would be too long."""
    return 2 * smooth_length(-(-least // 2)) if least <= _LONGEST else least


def fft_error(length: int) -> float:
    """Bound on the error of every output of a transform of this length, relative to the sum of the absolute inputs.

    Raises PrecisionError for a length above 2^26, and ValueError for one with a prime factor above 5: for these no
    bound is proved. Ask before anything of that length is made.
    """
    if length > _LONGEST:
        raise PrecisionError(
            f"this takes a transform of {length} points, more than the {_LONGEST} that an error bound is proved for:"
            " use a larger spacing or tolerance, fewer points, or accountants.Certified"
        )
    rest = length
    for prime in (2, 3, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        raise ValueError(
            f"no error bound is proved for a transform of length {length}: it is for lengths without prime factors"
            " above 5"
        )
    return (math.log2(length) + 3.0) * FFT_LEVEL


def transform_real(values: Array) -> Complex:
    """Half spectrum of a real vector of length n, shape (n // 2 + 1,)."""
    from scipy import fft

    return np.asarray(fft.rfft(values))


def inverse_real(spectrum: Complex, length: int) -> Array:
    """The real vector of the given length that has this half spectrum."""
    from scipy import fft

    return np.asarray(fft.irfft(spectrum, length))


def integer_power(base: Complex, exponent: int) -> Complex:
    """``base ** exponent``, exponent at least 1, by repeated squaring.

    The relative error is at most ``gamma`` of ``exponent`` POWER_STEPs.

    Powers that underflow become zero, an absolute error below 1e-300. Of many steps these are nearly all frequencies,
    and numbers next to underflow take ten times as long: those of at most e^-712 are not computed.
    """
    least = math.exp(-712.0 / exponent) / 1.5  # either part of larger ones is larger
    kept = (np.abs(base.real) > least) | (np.abs(base.imag) > least)
    square = base if kept.all() else base[kept]
    with np.errstate(under="ignore"):
        while not exponent & 1:
            square, exponent = square * square, exponent >> 1
        result = square
        while exponent := exponent >> 1:
            square = square * square
            if exponent & 1:
                result = result * square
    if result.size == base.size:
        return result
    power = np.zeros_like(base)
    power[kept] = result
    return power


def floored_power(sizes: Array, exponent: float) -> Array:
    """``max(x, 1/2) ** exponent``, rounded up, and e^-700 at least: powers that underflow take ten times as long."""
    logs = exponent * np.log(np.maximum(sizes, 0.5))
    # up to 700 nats err by 5 u of themselves, and the exponential by 4 u: below 4e-13 together
    return np.asarray(np.exp(np.maximum(logs, -700.0)) * (1.0 + 1e-12))
