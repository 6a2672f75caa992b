"""hockeystick: a certified bracket, by the default accountant."""

from __future__ import annotations

from importlib.metadata import version

import hockeystick as hs


def epsilon(steps, delta, tolerance=1e-3):
    """Certified bracket for epsilon under add-remove."""
    run = hs.compose([(_mechanism(noise, rate), count) for noise, rate, count in steps])
    bound = hs.account(run, adjacency="add-remove", tolerance=tolerance).epsilon(delta=delta)
    return {"lower": bound.lower, "upper": bound.upper}


def _mechanism(noise, rate):
    gaussian = hs.Gaussian(noise_multiplier=noise)
    return gaussian if rate == 1.0 else gaussian.poisson(rate=rate)


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("hockeystick", "numpy", "scipy")}
