"""Specifications for the independent checker: a table of fast ones, slow ones, and random ones."""

from __future__ import annotations

import random
from typing import Any

from hockeystick.app.spec import from_document
from hockeystick.bound import Bound
from hockeystick.together import worst

Step = dict[str, Any]


def step(mechanism: str, count: int = 1, sampling: Step | None = None, **parameters: Any) -> Step:
    return {"mechanism": mechanism, **parameters, "count": count} | ({"sampling": sampling} if sampling else {})


def poisson(rate: float) -> Step:
    return {"scheme": "poisson", "rate": rate}


def fixed_size(batch_size: int, population: int) -> Step:
    return {"scheme": "without-replacement", "batch_size": batch_size, "population": population}


def shuffled(batch_size: int, population: int) -> Step:
    return {"scheme": "shuffled", "batch_size": batch_size, "population": population}


THIRDS = {"p": ["1/2", "1/4", "1/4"], "q": ["1/3", "1/3", "1/3"]}
LEAKY = {"p": [0.25, 0.5, 0.25], "q": [0.5, 0.5, 0.0]}

FAST: list[tuple[str, list[Step], float, float]] = [  # relation, steps, delta asked for, epsilon asked for
    ("add-remove", [step("gaussian", 20, noise_multiplier=5.0)], 1e-6, 1.0),
    ("substitute", [step("gaussian", 7, noise_multiplier=9.0)], 1e-30, 3.0),
    ("zero-out", [step("gaussian-dp", 3, mu=0.3), step("gaussian", 2, noise_multiplier=2.5)], 1e-5, 0.5),
    ("add-remove", [step("staircase", 12, epsilon=0.5)], 1e-6, 1.0),
    ("substitute", [step("staircase", 9, epsilon=0.25, gamma=0.75)], 1e-3, 0.5),
    ("remove", [step("staircase", 3, poisson(0.125), epsilon=1.0, gamma=0.25)], 1e-3, 0.2),
    ("add-remove", [step("gaussian", 1, poisson(0.1), noise_multiplier=0.8)], 1e-5, 0.05),
    ("substitute", [step("gaussian", 1, poisson(0.1), noise_multiplier=1.8)], 1e-5, 0.2),
    ("remove", [step("gaussian", 1, fixed_size(1, 3), noise_multiplier=1.8)], 1e-7, 0.2),
    ("add", [step("gaussian", 1, fixed_size(10, 30), noise_multiplier=1.8)], 1e-2, 0.2),
    ("remove", [step("gaussian", 2000, poisson(0.01), noise_multiplier=1.0)], 1e-5, 1.5),
    ("add", [step("gaussian", 10**5, poisson(0.001), noise_multiplier=2.0)], 1e-8, 1.0),
    ("zero-out", [step("gaussian", 3000, poisson(0.01), noise_multiplier=2.0)], 1e-5, 1.0),
    ("substitute", [step("gaussian", 400, poisson(0.02), noise_multiplier=2.0)], 1e-5, 1.0),
    ("remove", [step("gaussian", 500, fixed_size(20, 1000), noise_multiplier=3.0)], 1e-6, 1.0),
    ("substitute", [step("gaussian", 1000, fixed_size(20, 1000), noise_multiplier=8.0)], 1e-5, 0.8),
    (
        "add-remove",
        [step("gaussian", 1, {"scheme": "random-allocation", "steps": 50}, noise_multiplier=3.0)],
        1e-4,
        0.1,
    ),
    (
        "add",
        [step("gaussian", 1, {"scheme": "balls-in-bins", "bins": 20, "epochs": 2}, noise_multiplier=6.0)],
        1e-4,
        0.1,
    ),
    ("zero-out", [step("gaussian", 1, shuffled(10, 20), noise_multiplier=3.0)], 1e-5, 0.8),
    ("substitute", [step("gaussian", 4, shuffled(10, 10), noise_multiplier=6.0)], 1e-5, 0.8),
    (
        "remove",
        [
            step(
                "gaussian-mixture",
                1,
                noise_multiplier=1.0,
                sensitivities=[0.0, 1.0, 2.0],
                probabilities=[0.75, 0.125, 0.125],
            )
        ],
        1e-4,
        1.0,
    ),
    (
        "add",
        [
            step(
                "gaussian-mixture",
                1000,
                noise_multiplier=4.0,
                sensitivities=[0.0, 1.0, 2.0],
                probabilities=[0.75, 0.125, 0.125],
            )
        ],
        1e-4,
        1.0,
    ),
    (
        "add-remove",
        [
            step(
                "gaussian-mixture",
                1,
                poisson(0.125),
                noise_multiplier=1.75,
                sensitivities=[0.0, 1.0, 2.0],
                probabilities=[0.5, 0.25, 0.25],
            )
        ],
        1e-3,
        0.02,
    ),
    ("add-remove", [step("laplace", 1, scale=2.0)], 0.01, 0.25),
    ("add-remove", [step("laplace", 1, poisson(0.2), scale=1.0)], 0.01, 0.1),
    ("add-remove", [step("laplace", 5, scale=2.0), step("randomized-response", 3, probability=0.6)], 1e-6, 1.0),
    ("substitute", [step("laplace", 3, scale=3.0), step("laplace", 4, scale=5.0)], 1e-6, 0.5),
    ("substitute", [step("laplace", 200, scale=15.0)], 1e-5, 8.0),
    ("add-remove", [step("laplace", 400, poisson(0.1), scale=2.0)], 1e-6, 1.0),
    ("remove", [step("laplace", 400, fixed_size(1, 30), scale=3.0)], 1e-6, 0.3),
    ("substitute", [step("laplace", 500, fixed_size(1, 50), scale=3.0)], 1e-5, 0.3),
    ("substitute", [step("discrete-gaussian", 10, sigma=4.0)], 1e-5, 1.0),
    ("add-remove", [step("discrete-gaussian", 30, sigma=3.0, sensitivity=2)], 1e-9, 5.0),
    ("add-remove", [step("discrete-gaussian", 1, poisson(0.2), sigma=2.0)], 1e-4, 0.1),
    # noise is listed only as far as it matters, but its losses have no end
    ("remove", [step("discrete-gaussian", 1, poisson(0.041), sigma=3.625, sensitivity=3)], 1e-44, 8.0),
    ("add", [step("discrete-gaussian", 1, poisson(0.041), sigma=3.625, sensitivity=3)], 1e-30, 0.03),
    ("add-remove", [step("discrete-laplace", 40, scale=5.0)], 1e-6, 1.0),
    ("substitute", [step("discrete-laplace", 20, scale=9.0, sensitivity=3)], 1e-6, 5.0),
    ("add-remove", [step("discrete-laplace", 6, poisson(0.25), scale=2.0, sensitivity=2)], 1e-4, 0.3),
    ("substitute", [step("discrete-laplace", 5, fixed_size(2, 8), scale=3.0)], 1e-4, 0.3),
    ("add-remove", [step("randomized-response", 40, probability=0.6)], 1e-5, 2.0),
    ("substitute", [step("randomized-response", 25, probability=0.4, categories=5)], 1e-5, 2.0),
    ("add-remove", [step("randomized-response", 60, poisson(0.125), probability=0.75)], 1e-5, 1.0),
    ("substitute", [step("randomized-response", 20, fixed_size(1, 4), probability=0.75)], 1e-5, 1.0),
    ("substitute", [step("laplace", 1, poisson(0.2), scale=1.0)], 0.01, 0.1),
    ("substitute", [step("laplace", 300, poisson(0.1), scale=3.0)], 1e-6, 1.0),
    (
        "substitute",
        [step("laplace", 20, poisson(0.25), scale=2.0), step("gaussian", 30, noise_multiplier=9.0)],
        1e-5,
        1.0,
    ),
    ("substitute", [step("discrete-laplace", 200, poisson(0.125), scale=2.0)], 1e-6, 1.0),
    ("substitute", [step("discrete-laplace", 3, poisson(0.25), scale=2.0, sensitivity=2)], 1e-4, 0.3),
    ("substitute", [step("discrete-laplace", 30, poisson(0.25), scale=2.0, values="counts")], 1e-4, 0.3),
    ("substitute", [step("discrete-gaussian", 1, poisson(0.2), sigma=2.0, sensitivity=2)], 1e-4, 0.1),
    ("substitute", [step("binomial", 1, poisson(0.2), trials=60, sensitivity=2)], 1e-4, 0.1),
    ("substitute", [step("binomial", 1, poisson(0.2), trials=61)], 1e-4, 0.1),
    ("substitute", [step("randomized-response", 20, poisson(0.25), probability=0.75)], 1e-5, 1.0),
    ("zero-out", [step("binomial", 1, trials=60)], 1e-5, 0.5),
    ("add-remove", [step("binomial", 2, trials=40, probability=0.3)], 1e-3, 0.5),
    ("substitute", [step("binomial", 1, fixed_size(1, 5), trials=60)], 1e-3, 0.1),
    ("add-remove", [step("approximate-dp", 12, epsilon=0.2, delta=1e-6)], 1e-4, 1.0),
    ("substitute", [step("approximate-dp", 1, epsilon=1.0, delta=1e-6)], 1e-6, 1.0),
    ("add-remove", [step("approximate-dp", 20, poisson(0.1), epsilon=0.5, delta=1e-6)], 1e-4, 0.2),
    ("add-remove", [step("discrete-pair", 30, **THIRDS)], 1e-5, 3.0),
    ("remove", [step("discrete-pair", 1, **LEAKY)], 0.3, 1.0),
    ("zero-out", [step("discrete-pair", 12, poisson(0.25), **LEAKY)], 0.6, 1.0),
    (
        "add-remove",
        [step("randomized-response", 5, probability=0.6), step("approximate-dp", 4, epsilon=0.25)],
        1e-4,
        1.0,
    ),
]

SLOW: list[tuple[str, list[Step], float, float]] = [  # the same kinds, larger
    ("add", [step("gaussian", 10**6, poisson(0.001), noise_multiplier=2.0)], 1e-8, 1.0),
    ("substitute", [step("gaussian", 300, fixed_size(20, 1000), noise_multiplier=3.0)], 1e-5, 0.8),
    (
        "add",
        [step("gaussian", 1, {"scheme": "balls-in-bins", "bins": 20, "epochs": 5}, noise_multiplier=6.0)],
        1e-4,
        0.1,
    ),
    ("zero-out", [step("gaussian", 4, shuffled(10, 100), noise_multiplier=3.0)], 1e-5, 0.8),
]


def document(adjacency: str, steps: list[Step], delta: float, epsilon: float) -> dict[str, Any]:
    """What of a receipt the checker reads, without its curve and trade-off."""
    guarantee = {"adjacency": adjacency, "delta": delta, "epsilon": epsilon}
    specification = from_document({"version": 1, "steps": steps, "guarantee": guarantee})
    curve = specification.curve
    results = []
    for quantity, at, level in (("epsilon", "delta", delta), ("delta", "epsilon", epsilon)):
        found = {name: getattr(directed, quantity)(level) for name, directed in curve.directed.items()}
        result: dict[str, Any] = {"quantity": quantity, "at": {at: level}, **sides(worst(found))}
        result["notes"] = list(worst(found).notes)
        results.append(result | {"directions": {name: sides(bound) for name, bound in found.items()}})
    return {"specification": specification.document(), "results": results}


def sides(bound: Any) -> dict[str, float]:
    assert isinstance(bound, Bound)
    return {"lower": float(bound.lower), "upper": float(bound.upper)}


def is_attained(case: tuple[Any, ...]) -> bool:
    """Whether known datasets attain the curve of a case: not where one record's steps look one way or the other."""
    both_ways = ("without-replacement", "counts", "randomized-response")
    return case[0] != "substitute" or not any(
        "sampling" in s and any(word in str(s) for word in both_ways) for s in case[1]
    )


def random_case(rng: random.Random) -> tuple[str, list[Step], float, float]:
    """A random run of one or two kinds of steps under a relation for which all have pairs."""
    adjacency = rng.choice(["add-remove", "add", "remove", "substitute", "zero-out"])
    steps = [_random_step(rng, adjacency) for _ in range(rng.choice([1, 1, 1, 2]))]
    return adjacency, steps, 10.0 ** rng.uniform(-12.0, -1.0), rng.uniform(0.05, 3.0)


def _random_step(rng: random.Random, adjacency: str) -> Step:
    doubled = adjacency == "substitute"
    few, many = rng.randint(1, 12), round(10.0 ** rng.uniform(2.0, 5.0))
    parameters: dict[str, tuple[int, Step]] = {
        "gaussian": (rng.choice([1, few, many]), {"noise_multiplier": rng.uniform(0.8, 6.0)}),
        "gaussian-dp": (few, {"mu": rng.uniform(0.05, 1.0)}),
        "laplace": (rng.choice([1, many]), {"scale": rng.uniform(1.0, 30.0)}),
        "discrete-gaussian": (few, {"sigma": rng.uniform(1.5, 6.0), "sensitivity": rng.randint(1, 2)}),
        "discrete-laplace": (few, {"scale": rng.uniform(1.0, 6.0), "sensitivity": rng.randint(1, 2)}),
        "randomized-response": (few, {"probability": rng.uniform(0.3, 0.8), "categories": rng.randint(2, 4)}),
        "approximate-dp": (few, {"epsilon": rng.uniform(0.05, 0.8), "delta": rng.choice([0.0, 1e-6])}),
        "binomial": (1, {"trials": rng.randint(20, 80)}),
        "discrete-pair": (few, rng.choice([THIRDS, LEAKY])),
    }
    name = rng.choice([name for name in parameters if not (doubled and name == "discrete-pair")])
    count, given = parameters[name]
    allowed = [None, poisson(rng.choice([0.5, 0.125, 0.01]))]
    if doubled and name in {"gaussian-dp", "approximate-dp"}:
        allowed.pop()
    if adjacency != "zero-out" and name != "discrete-pair":
        allowed.append(fixed_size(rng.randint(1, 3), 40))
    return step(name, count, rng.choice(allowed), **given)
