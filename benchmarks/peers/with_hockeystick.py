"""hockeystick: a certified bracket, by the default accountant."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

import hockeystick as hs


def epsilon(steps, delta, tolerance=1e-3):
    """Certified bracket for epsilon under add-remove."""
    bound = hs.account(_run(steps), adjacency="add-remove", tolerance=tolerance).epsilon(delta=delta)
    return {"lower": bound.lower, "upper": bound.upper}


def curve(steps, delta, highest, points):
    """The bracket for epsilon that delta's brackets at so many epsilons give."""
    epsilons = np.linspace(0.0, highest, points)
    found = hs.account(_run(steps)).delta(epsilon=epsilons)
    above, safe = epsilons[found.lower > delta], epsilons[found.upper <= delta]
    return {"lower": above.max(initial=0.0), "upper": safe.min(initial=np.inf)}


def grid(steps, delta, noises, rates, counts):
    """The bracket of one plan among all."""
    ((noise, rate, count),) = steps
    found = hs.sweep(_plan, noise=noises, rate=rates, count=counts, delta=delta)
    place = noises.index(noise), rates.index(rate), counts.index(count)
    return {"lower": found.bound.lower[place], "upper": found.bound.upper[place]}


def responses(steps, delta):
    """Randomised responses under substitution; what stands for the noise is the probability of the truth."""
    ((probability, _, count),) = steps
    bound = hs.account(hs.RandomizedResponse(probability) * count, adjacency="substitute").epsilon(delta)
    return {"lower": bound.lower, "upper": bound.upper}


def tuned(steps, delta, mean):
    """The best of a Poisson number of runs."""
    bound = hs.account(hs.select_best(_run(steps), count=hs.PoissonCount(mean))).epsilon(delta)
    return {"lower": bound.lower, "upper": bound.upper}


def allocated(steps, delta):
    """One round of random allocation."""
    ((noise, _, count),) = steps
    bound = hs.account(hs.Gaussian(noise).random_allocation(steps=count)).epsilon(delta)
    return {"lower": bound.lower, "upper": bound.upper}


def _plan(noise, rate, count):
    return _mechanism(noise, rate) * count


def _run(steps):
    return hs.compose([(_mechanism(noise, rate), count) for noise, rate, count in steps])


def _mechanism(noise, rate):
    gaussian = hs.Gaussian(noise_multiplier=noise)
    return gaussian if rate == 1.0 else gaussian.poisson(rate=rate)


def versions():
    """Installed versions."""
    return {name: version(name) for name in ("hockeystick", "numpy", "scipy")}
