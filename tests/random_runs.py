"""Random runs: every mechanism, every sampling scheme, every neighbouring relation, one kind of step or two."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import hockeystick as hs
from hockeystick.composition import ADJACENCIES

__all__ = ["MAKERS", "SAMPLERS", "random_run", "random_step"]

Rng = np.random.Generator


def spread(rng: Rng, low: float, high: float) -> float:
    """Uniform in the logarithm."""
    return float(10.0 ** rng.uniform(np.log10(low), np.log10(high)))


def _mixture(rng: Rng) -> hs.GaussianMixture:
    return hs.GaussianMixture.poisson_group(
        spread(rng, 0.5, 5.0), rate=spread(rng, 1e-3, 0.3), size=int(rng.integers(2, 5))
    )


def _vectors(rng: Rng) -> hs.DiscretePair:
    size = int(rng.integers(2, 5))
    p, q = ([int(x) for x in rng.integers(1, 30, size)] for _ in range(2))
    if rng.random() < 0.3:
        q[-1] = 0  # an outcome that gives the record away
    return hs.DiscretePair(tuple(Fraction(x, sum(p)) for x in p), tuple(Fraction(x, sum(q)) for x in q))


MAKERS: dict[str, Callable[[Rng], Any]] = {
    "ApproximateDP": lambda rng: hs.ApproximateDP(spread(rng, 0.01, 2.0), spread(rng, 1e-12, 1e-5)),
    "Binomial": lambda rng: hs.Binomial(int(rng.integers(20, 200)), probability=float(rng.uniform(0.2, 0.8))),
    "DiscreteGaussian": lambda rng: hs.DiscreteGaussian(spread(rng, 0.5, 8.0), sensitivity=int(rng.integers(1, 4))),
    "DiscreteLaplace": lambda rng: hs.DiscreteLaplace(spread(rng, 0.5, 20.0), sensitivity=int(rng.integers(1, 4))),
    "DiscretePair": _vectors,
    "Gaussian": lambda rng: hs.Gaussian(spread(rng, 0.4, 50.0)),
    "GaussianDP": lambda rng: hs.GaussianDP(spread(rng, 0.02, 2.0)),
    "GaussianMixture": _mixture,
    "Laplace": lambda rng: hs.Laplace(spread(rng, 0.4, 30.0)),
    "RandomizedResponse": lambda rng: hs.RandomizedResponse(
        float(rng.uniform(0.35, 0.95)), categories=int(rng.integers(2, 6))
    ),
    "Staircase": lambda rng: hs.Staircase(spread(rng, 0.05, 2.0)),
}
"""One random step of each mechanism."""

SAMPLERS: dict[str, Callable[[Rng, Any], Any]] = {
    "none": lambda _, step: step,
    "poisson": lambda rng, step: step.poisson(spread(rng, 1e-4, 0.5)),
    "fixed size": lambda rng, step: step.without_replacement(batch_size=1, population=int(rng.integers(2, 200))),
    "shuffled": lambda rng, step: step.shuffled(batch_size=1, population=int(rng.integers(2, 20))),
}


def random_step(rng: Rng) -> Any:
    name, sampler = rng.choice(list(MAKERS)), rng.choice(list(SAMPLERS), p=[0.25, 0.45, 0.2, 0.1])
    return SAMPLERS[sampler](rng, MAKERS[name](rng))


def random_run(rng: Rng, most_steps: float = 1e5) -> tuple[hs.Composition, str]:
    """A run and a relation under which its pairs are known."""
    while True:
        try:
            run = random_step(rng) * int(spread(rng, 1.0, most_steps))
            if rng.random() < 0.2:
                run = run + random_step(rng) * int(spread(rng, 1.0, most_steps))
            adjacency = str(rng.choice(list(ADJACENCIES)))
            hs.account(run, adjacency)
        except (hs.UnknownPairError, AttributeError, ValueError):  # a scheme or a relation it is not proved for
            continue
        return run, adjacency
