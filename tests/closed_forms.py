"""Independent truths for tests: deliberately dumb, high precision, sharing no code with the library."""

from __future__ import annotations

import functools
import math

import mpmath

mp = mpmath.mp.clone()  # of its own: what other tests ask of mpmath needs other digits
mp.dps = 80
mpf = mp.mpf


def gaussian_delta(mu: mpf, epsilon: float | mpf) -> mpf:
    """delta of mu-Gaussian DP: Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)."""
    mu, epsilon = mpf(mu), mpf(epsilon)
    first = mp.erfc((epsilon / mu - mu / 2) / mp.sqrt(2)) / 2
    second = mp.erfc((epsilon / mu + mu / 2) / mp.sqrt(2)) / 2
    return first - mp.exp(epsilon) * second


def gaussian_delta_of_any_size(mu: float, epsilon: float) -> mpf:
    """The same, with as many bits as the difference of the two terms needs.

    Up to a reach of 45 they are apart by more than mu / 100 of their size: a bit for each of mu, and of the quotient.
    """
    bits = 200 + 2 * abs(math.frexp(mu)[1]) + 2 * abs(math.frexp(epsilon)[1])
    with mp.workprec(bits):
        reach = mpf(epsilon) / mpf(mu) - mpf(mu) / 2
        # phi(45) is below every float64; erfc(x) e^(x^2) has a series where mpmath has no time for e^epsilon
        return mpf(0) if reach > 45 else _scaled_gaussian_delta(mpf(mu), mpf(epsilon))


def _scaled_gaussian_delta(mu: mpf, epsilon: mpf) -> mpf:
    near, far = (epsilon / mu - mu / 2) / mp.sqrt(2), (epsilon / mu + mu / 2) / mp.sqrt(2)
    if far < 1000:
        scaled = mp.exp(far**2) * mp.erfc(far)
    else:  # asymptotic, alternating: off by less than the first term left out
        scaled = sum(mp.rf(mpf(1) / 2, k) * (-1) ** k / far ** (2 * k) for k in range(12)) / (far * mp.sqrt(mp.pi))
    return (mp.erfc(near) - mp.exp(-(near**2)) * scaled) / 2


def composed_mu(noise_multiplier: float, steps: int) -> mpf:
    """mu of the Gaussian mechanism composed ``steps`` times."""
    return mp.sqrt(steps) / mpf(noise_multiplier)


@functools.cache
def gaussian_epsilon(mu: mpf, delta: float | mpf) -> mpf:
    """The epsilon of mu-Gaussian DP at delta, to about 60 digits: Newton's method on ln delta from the left."""
    mu, target = mpf(mu), mp.log(mpf(delta))
    if gaussian_delta(mu, 0) <= mpf(delta):
        return mpf(0)
    # ln delta is concave and falls: from the right every step stays on the right
    epsilon = mu**2 / 2 + mu * mp.sqrt(-2 * target)
    for _ in range(400):
        value = gaussian_delta(mu, epsilon)
        tail = mp.erfc((epsilon / mu + mu / 2) / mp.sqrt(2)) / 2
        step = (mp.log(value) - target) * value / (mp.exp(epsilon) * tail)
        epsilon += step
        if abs(step) < mpf(10) ** -45 * epsilon:
            break
    return epsilon
