"""The closed form for Gaussians: ``count`` of noise s are one Gaussian with ``mu = sqrt(count) / s``.

Its curve is ``delta(e) = Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu)`` (Balle and Wang, 2018, Theorem 8), evaluated
with 60 digits and inverted by bisection, so that what is returned is correct to the last bit or nearly so.
"""

from __future__ import annotations

import mpmath

DIGITS = 60


def gaussian_epsilon(noise_multiplier: float, count: int, delta: float) -> float:
    """True epsilon (nats) of composed Gaussians, under add-remove."""
    with mpmath.workdps(DIGITS):
        mu = mpmath.sqrt(count) / mpmath.mpf(noise_multiplier)
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        while _delta(high, mu) > delta:
            high *= 2
        while high - low > high * mpmath.mpf(2) ** -60:
            middle = (low + high) / 2
            low, high = (middle, high) if _delta(middle, mu) > delta else (low, middle)
        return float(high)


def _delta(epsilon: mpmath.mpf, mu: mpmath.mpf) -> mpmath.mpf:
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
