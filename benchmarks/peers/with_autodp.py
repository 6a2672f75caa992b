"""autodp: its Renyi accountant, and its analytical Fourier accountant.

The Fourier accountant is asked for delta and inverted here, because its own epsilon query answers about zero whatever
the mechanism (release 0.2.3.1). It is told the direction by name: both are computed, and the larger one is the answer.
"""

from __future__ import annotations

from importlib.metadata import version

from autodp import mechanism_zoo, transformer_zoo
from scipy.optimize import brentq

SEARCH_UP_TO = 1e4
WARM_UP = [[2.0, 1.0, 3]]  # the Fourier accountant would need minutes for a subsampled one


def epsilon(steps, delta, method="rdp"):
    """Upper epsilon (``rdp``) or an estimate (``fourier``)."""
    if method == "rdp":
        return {"upper": _renyi(steps).get_approxDP(delta)}
    subsampled = any(rate != 1.0 for _, rate, _ in steps)
    directions = (
        ("add_only", "remove_only") if subsampled else ("add_only",)
    )  # one curve is enough for a symmetric noise
    return {"estimate": max(_inverse(_fourier(steps, direction).approx_delta, delta) for direction in directions)}


def _renyi(steps):
    mechanisms = []
    for noise, rate, _ in steps:
        gaussian = mechanism_zoo.ExactGaussianMechanism(sigma=noise)
        if rate != 1.0:
            sample = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
            gaussian = sample(gaussian, rate, improved_bound_flag=True)
        mechanisms.append(gaussian)
    return transformer_zoo.Composition()(mechanisms, [int(count) for _, _, count in steps])


def _fourier(steps, direction):
    mechanisms = []
    for noise, rate, _ in steps:
        gaussian = mechanism_zoo.GaussianMechanism(sigma=noise, phi_off=False)
        if rate != 1.0:
            sample = transformer_zoo.AmplificationBySampling_pld(PoissonSampling=True, neighboring=direction)
            gaussian = sample(gaussian, rate)
        mechanisms.append(gaussian)
    return transformer_zoo.ComposeAFA()(mechanisms, [int(count) for _, _, count in steps])


def _inverse(delta_of, delta):
    highest = 1.0
    while delta_of(highest) > delta:
        highest *= 2.0
        if highest > SEARCH_UP_TO:
            raise ArithmeticError("delta never falls to the one asked for")
    return brentq(lambda epsilon: delta_of(epsilon) - delta, 0.0, highest, xtol=1e-6)


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("autodp", "numpy", "scipy")}
