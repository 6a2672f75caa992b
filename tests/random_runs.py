"""Random runs: every mechanism, every sampling scheme, every neighbouring relation, one kind of step or two.

Counts are drawn as large as ball arithmetic can follow: losses on a lattice, or with company that is smooth, to 1e5
steps; others as long as their outcomes can be listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import hockeystick as hs
from hockeystick.composition import ADJACENCIES, Step, directions

__all__ = ["MAKERS", "SAMPLERS", "Drawn", "draw", "random_run"]

Rng = np.random.Generator

_LISTED = 4000  # outcomes of half a composition that ball arithmetic lists


@dataclass(frozen=True)
class Drawn:
    """A run, its relation, and the names of what was drawn first: a mechanism of `MAKERS`, a scheme of `SAMPLERS`."""

    mechanism: str
    sampler: str
    run: hs.Composition
    adjacency: str


def spread(rng: Rng, low: float, high: float) -> float:
    """Uniform in the logarithm."""
    return float(10.0 ** rng.uniform(np.log10(low), np.log10(high)))


def _mixture(rng: Rng) -> hs.GaussianMixture:
    return hs.GaussianMixture.poisson_group(
        spread(rng, 0.5, 5.0), rate=spread(rng, 1e-3, 0.3), size=int(rng.integers(2, 4))
    )


def _vectors(rng: Rng) -> hs.DiscretePair:
    size = int(rng.integers(2, 4))
    p, q = ([int(x) for x in rng.integers(1, 30, size)] for _ in range(2))
    if rng.random() < 0.3:
        q[-1] = 0  # an outcome that gives the record away
    return hs.DiscretePair(tuple(Fraction(x, sum(p)) for x in p), tuple(Fraction(x, sum(q)) for x in q))


def _response(rng: Rng) -> hs.RandomizedResponse:
    return hs.RandomizedResponse(float(rng.uniform(0.35, 0.95)), categories=int(rng.integers(2, 6)))


def _counted(rng: Rng) -> dict[str, Any]:
    return {"sensitivity": int(rng.integers(1, 4)), "values": str(rng.choice(["signed", "counts"]))}


MAKERS: dict[str, Callable[[Rng], Any]] = {
    "AboveThreshold": lambda rng: hs.AboveThreshold(spread(rng, 2.0, 40.0), spread(rng, 2.0, 40.0)),
    "ApproximateDP": lambda rng: hs.ApproximateDP(
        spread(rng, 0.01, 2.0), spread(rng, 1e-12, 1e-5) if rng.random() < 0.5 else 0.0
    ),
    "Binomial": lambda rng: hs.Binomial(
        int(rng.integers(20, 80)), probability=0.5 if rng.random() < 0.5 else float(rng.uniform(0.2, 0.8))
    ),
    "DiscreteGaussian": lambda rng: hs.DiscreteGaussian(spread(rng, 0.5, 8.0), **_counted(rng)),
    "DiscreteLaplace": lambda rng: hs.DiscreteLaplace(spread(rng, 0.5, 20.0), **_counted(rng)),
    "DiscretePair": _vectors,
    "ExponentialMechanism": lambda rng: hs.ExponentialMechanism(spread(rng, 0.01, 2.0)),
    "Gaussian": lambda rng: hs.Gaussian(spread(rng, 0.4, 50.0)),
    "GaussianDP": lambda rng: hs.GaussianDP(spread(rng, 0.02, 2.0)),
    "GaussianMixture": _mixture,
    "Laplace": lambda rng: hs.Laplace(spread(rng, 0.4, 30.0)),
    "PermuteAndFlip": lambda rng: hs.PermuteAndFlip(spread(rng, 0.01, 2.0)),
    "RandomizedResponse": _response,
    "ReportNoisyMax": lambda rng: hs.ReportNoisyMax(
        spread(rng, 0.01, 2.0), str(rng.choice(["gumbel", "exponential", "laplace"]))
    ),
    "ShuffledReports": lambda rng: hs.RandomizedResponse(
        float(rng.uniform(0.35, 0.95)), categories=int(rng.integers(2, 4))
    ).shuffled_reports(people=int(rng.integers(1, 6))),
    "Staircase": lambda rng: hs.Staircase(spread(rng, 0.05, 2.0)),
    "ZeroConcentratedDP": lambda rng: hs.ZeroConcentratedDP(spread(rng, 1e-3, 0.5)),
}
"""One random step of each mechanism."""

SAMPLERS: dict[str, Callable[[Rng, Any], Any]] = {
    "none": lambda _, step: step,
    "poisson": lambda rng, step: step.poisson(spread(rng, 1e-4, 0.5)),
    "fixed size": lambda rng, step: step.without_replacement(batch_size=1, population=int(rng.integers(2, 200))),
    "shuffled": lambda rng, step: step.shuffled(batch_size=1, population=int(rng.integers(1, 20))),
    "random allocation": lambda rng, step: step.random_allocation(steps=int(rng.integers(1, 5))),
    "balls in bins": lambda rng, step: step.balls_in_bins(bins=int(rng.integers(1, 5))),
    "cut batches": lambda rng, step: step.poisson(
        spread(rng, 0.01, 0.5), largest_batch=int(rng.integers(1, 8)), population=int(rng.integers(8, 30))
    ),
    "micro-batches": lambda rng, step: step.poisson(spread(rng, 1e-3, 0.3), micro_batches=int(rng.integers(1, 4))),
}

_ROUNDS = {"random allocation", "balls in bins"}
_SLOW = {*_ROUNDS, "cut batches"}
_FEW_OUTCOMES = {"RandomizedResponse", "DiscretePair"}
_CHANCES = {"none": 0.22, "poisson": 0.3, "fixed size": 0.16, "cut batches": 0.08}  # others share the rest
_WEIGHTS = [_CHANCES.get(name, (1.0 - sum(_CHANCES.values())) / (len(SAMPLERS) - len(_CHANCES))) for name in SAMPLERS]


def _count(rng: Rng, mechanism: str, sampler: str, step: Step, most: float) -> int:
    """How often the step is composed, so that ball arithmetic can follow."""
    if mechanism == "ShuffledReports":
        return 1  # known by a curve alone
    if sampler in _SLOW:
        return int(rng.integers(1, 4))
    sampled = sampler in {"poisson", "fixed size", "micro-batches"}
    if mechanism == "DiscreteGaussian":
        return 1 if sampled else int(spread(rng, 1.0, min(most, 100.0)))
    if mechanism in {"GaussianMixture", "Gaussian", "GaussianDP", "Laplace", "ZeroConcentratedDP"} or not (
        sampled or mechanism in {"Binomial", "DiscretePair"}
    ):
        return int(spread(rng, 1.0, most))
    kinds = {
        "Binomial": 100,
        "DiscretePair": 3,
        "RandomizedResponse": 2 if getattr(step, "categories", 0) == 2 else 3,
        "ApproximateDP": 3,
        "ExponentialMechanism": 2,
        "DiscreteLaplace": 5,
        "Staircase": 5,
    }.get(mechanism, 3)
    return int(spread(rng, 1.0, min(most, _longest(kinds))))


def _company(rng: Rng) -> hs.Composition:
    """Steps of another kind, smooth enough for a line on which nothing else decays."""
    return hs.Gaussian(spread(rng, 0.5, 2.0)) * int(rng.integers(1, 6))


def _longest(kinds: int) -> int:
    """The most steps with so many losses, half of which have outcomes that can be listed."""
    half = 1
    while half < 1 << 15 and math.comb(half + kinds, kinds - 1) <= _LISTED:
        half += 1
    return 2 * half - 1


def _known(run: hs.Composition, adjacency: str) -> bool:
    try:
        for direction in directions(adjacency):
            run.pairs(direction)
    except hs.UnknownPairError:  # a relation it is not proved for
        return False
    return True


def draw(rng: Rng, most_steps: float = 1e5) -> Drawn:
    """A run and a relation under which its pairs are known."""
    while True:
        mechanism = str(rng.choice(list(MAKERS)))
        sampler = str(rng.choice(list(SAMPLERS), p=_WEIGHTS))
        try:
            step = SAMPLERS[sampler](rng, MAKERS[mechanism](rng))
        except (AttributeError, ValueError):  # reports are sampled by no scheme
            continue
        if sampler in _ROUNDS and mechanism not in _FEW_OUTCOMES and rng.random() < 0.8:
            continue  # ball arithmetic knows rounds of few outcomes alone
        run = step * _count(rng, mechanism, sampler, step, most_steps)
        if rng.random() < 0.2 and mechanism != "ShuffledReports":
            run = run + _company(rng)
        known = [adjacency for adjacency in ADJACENCIES if _known(run, adjacency)]
        if known:
            return Drawn(mechanism, sampler, run, str(rng.choice(known)))


def random_run(rng: Rng, most_steps: float = 1e5, *, slow: bool = False) -> tuple[hs.Composition, str]:
    """A run and a relation under which its pairs are known; of the schemes that take long only where asked for."""
    while True:
        drawn = draw(rng, most_steps)
        if slow or drawn.sampler not in _SLOW:
            return drawn.run, drawn.adjacency
