"""Independent truths for tests: deliberately dumb, high precision, sharing no code with the library."""

from __future__ import annotations

from mpmath import mp, mpf

mp.dps = 80


def gaussian_delta(mu: mpf, epsilon: float | mpf) -> mpf:
    """delta of mu-Gaussian DP: Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)."""
    epsilon = mpf(epsilon)
    first = mp.erfc((epsilon / mu - mu / 2) / mp.sqrt(2)) / 2
    second = mp.erfc((epsilon / mu + mu / 2) / mp.sqrt(2)) / 2
    return first - mp.exp(epsilon) * second


def composed_mu(noise_multiplier: float, steps: int) -> mpf:
    """mu of the Gaussian mechanism composed ``steps`` times."""
    return mp.sqrt(steps) / mpf(noise_multiplier)


def gaussian_epsilon(mu: mpf, delta: float | mpf) -> mpf:
    """The epsilon of mu-Gaussian DP at delta, to about 60 digits: Newton's method on ln delta from the left."""
    target = mp.log(mpf(delta))
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
