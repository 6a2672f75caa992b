"""Events of dp-accounting as compositions: what each row of the table means, and what is refused."""

from __future__ import annotations

import math
import pickle
from collections import namedtuple
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.integrations.dp_events import parts_of


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"class_name": f"{name}DpEvent", **fields}


def gaussian(noise: float = 1.0) -> dict[str, Any]:
    return event("Gaussian", noise_multiplier=noise)


def poisson(rate: float, inner: dict[str, Any]) -> dict[str, Any]:
    return event("PoissonSampled", sampling_probability=rate, event=inner)


def fixed_size(size: int, records: int, inner: dict[str, Any]) -> dict[str, Any]:
    return event("SampledWithoutReplacement", source_dataset_size=records, sample_size=size, event=inner)


def repeated(inner: dict[str, Any], count: int) -> dict[str, Any]:
    return event("SelfComposed", event=inner, count=count)


GUARANTEE = event("EpsilonDelta", epsilon=0.5, delta=1e-6)
RESPONSE = event("RandomizedResponse", noise_parameter=0.5, num_buckets=4)
TREE = event("SingleEpochTreeAggregation", noise_multiplier=4.0, step_counts=[7, 8, 3])
MIXTURE = event(
    "MixtureOfGaussians", standard_deviation=2.0, sensitivities=[-1, 0, -1], sampling_probs=[0.25, 0.5, 0.25]
)
EVERYTHING = hs.ApproximateDP(0.0, 1.0)

MEANINGS = [
    (gaussian(0.0), "add-remove", EVERYTHING),
    (event("EpsilonDelta", epsilon=0.5, delta=1.0), "add-remove", EVERYTHING),
    (GUARANTEE, "zero-out", hs.ApproximateDP(0.5, 1e-6)),
    (event("DiscreteGaussian", sigma=3.0), "add-remove", hs.DiscreteGaussian(3.0, 1)),
    (event("DiscreteGaussian", sigma=3.0, sensitivity=2.9, dimension=1), "substitute", hs.DiscreteGaussian(3.0, 2)),
    (RESPONSE, "substitute", hs.RandomizedResponse(Fraction(5, 8), 4)),
    (
        RESPONSE,
        "zero-out",
        hs.DiscretePair((Fraction(5, 8), Fraction(3, 8)), (Fraction(1, 4), Fraction(3, 4))),
    ),
    (TREE, "zero-out", hs.Gaussian(4.0) * 4),
    (TREE, "substitute", hs.Gaussian(4.0) * 4),
    (MIXTURE, "add-remove", hs.GaussianMixture(2.0, (1.0, 0.0), probabilities=(0.5, 0.5))),
    (poisson(1.0, gaussian()), "add-remove", hs.Gaussian(1.0)),
    (poisson(0.5, gaussian(0.0)), "add-remove", EVERYTHING),
    (poisson(0.5, repeated(gaussian(3.0), 9)), "substitute", hs.Gaussian(1.0).poisson(0.5)),
    (poisson(0.5, GUARANTEE), "add-remove", hs.ApproximateDP(0.5, 1e-6).poisson(0.5)),
    (
        fixed_size(2, 8, GUARANTEE),
        "substitute",
        hs.ApproximateDP(0.5, 1e-6).without_replacement(batch_size=2, population=8),
    ),
    (event("Composed", events=[repeated(gaussian(), 2), gaussian()]), "add-remove", hs.Gaussian(1.0) * 3),
]


@pytest.mark.parametrize(("given", "adjacency", "meant"), MEANINGS)
def test_an_event_is_the_composition_it_describes(given: Any, adjacency: str, meant: Any) -> None:
    assert hs.from_dp_event(given, adjacency) == meant * 1


NOTHING = [
    event("NoOp"),
    event("Composed", events=[]),
    gaussian(math.inf),
    poisson(0.0, gaussian()),
    poisson(0.5, event("NoOp")),
    fixed_size(0, 8, gaussian()),
    event("EpsilonDelta", epsilon=0.0, delta=0.0),
    event("DiscreteLaplace", noise_parameter=0.5, sensitivity=0),
    event("DiscreteGaussian", sigma=1.0, sensitivity=0.9),
    event("MixtureOfGaussians", standard_deviation=1.0, sensitivities=[0.0], sampling_probs=[1.0]),
]


@pytest.mark.parametrize("given", NOTHING)
def test_what_releases_nothing_has_no_parts_and_costs_nothing(given: Any) -> None:
    assert parts_of(given, "add-remove") == ()
    assert hs.account(hs.from_dp_event(given)).epsilon(1e-5).upper == 0.0


UNPROVED = [
    (event("Unsupported"), "add-remove"),
    (event("Mystery"), "add-remove"),
    (event("ZC", rho=0.1, xi=0.0), "add-remove"),
    (event("RepeatAndSelect", event=gaussian(), mean=3.0, shape=1.0), "add-remove"),
    (event("SampledWithReplacement", source_dataset_size=9, sample_size=2, event=gaussian()), "add-remove"),
    (event("Gaussian", noise_multiplier=1.0, new_in_some_release=2), "add-remove"),
    (event("Gaussian"), "add-remove"),
    (RESPONSE, "add-remove"),
    (TREE, "add-remove"),
    (TREE, "remove"),
    (MIXTURE, "substitute"),
    (
        event("MixtureOfGaussians", standard_deviation=1.0, sensitivities=[-1, 1], sampling_probs=[0.5, 0.5]),
        "add-remove",
    ),
    (event("DiscreteGaussian", sigma=3.0, sensitivity=2.0), "add-remove"),
    (event("DiscreteGaussian", sigma=3.0, sensitivity=1.5, dimension=2), "add-remove"),
    (poisson(0.5, event("Laplace", noise_multiplier=1.0)), "substitute"),
    (poisson(0.5, event("Composed", events=[gaussian(), event("Laplace", noise_multiplier=1.0)])), "add-remove"),
    (poisson(0.5, repeated(event("Laplace", noise_multiplier=1.0), 2)), "add-remove"),
    (poisson(0.5, poisson(0.5, gaussian())), "add-remove"),
    (poisson(0.5, GUARANTEE), "zero-out"),
    (poisson(0.5, RESPONSE), "zero-out"),
    (fixed_size(2, 8, GUARANTEE), "add-remove"),
    (fixed_size(2, 8, gaussian()), "zero-out"),
    (fixed_size(8, 8, gaussian()), "add-remove"),
]


@pytest.mark.parametrize(("given", "adjacency"), UNPROVED)
def test_what_is_not_proved_is_refused_and_named(given: Any, adjacency: str) -> None:
    with pytest.raises(hs.UnprovedEventError) as found:
        hs.from_dp_event(event("Composed", events=[gaussian(), repeated(given, 2)]), adjacency)
    assert found.value.event == given or "DpEvent" in repr(found.value.event)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)  # noqa: S301 - what was dumped here


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (gaussian(-1.0), "noise_multiplier"),
        (gaussian(math.nan), "noise_multiplier"),
        (repeated(gaussian(), 0), "count"),
        (poisson(1.5, gaussian()), "sampling_probability"),
        (fixed_size(9, 8, gaussian()), "sample_size"),
        (event("SingleEpochTreeAggregation", noise_multiplier=1.0, step_counts=0), "step_counts"),
        (event("MixtureOfGaussians", standard_deviation=1.0, sensitivities=[1.0], sampling_probs=[]), "sensitivities"),
    ],
)
def test_bad_parameters_are_named(given: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        hs.from_dp_event(given, "substitute")


def test_what_is_no_event_is_refused() -> None:
    for thing in ("GaussianDpEvent", 1.0, {"noise_multiplier": 1.0}, None):
        with pytest.raises(TypeError, match="event must be"):
            hs.from_dp_event(thing)


def test_a_named_tuple_is_read_with_its_name_in_bytes() -> None:
    kind = namedtuple("kind", ["module_name", "class_name", "noise_multiplier"])
    assert hs.from_dp_event(kind("dp_accounting.dp_event", b"GaussianDpEvent", 2.0)) == hs.Gaussian(2.0) * 1


@pytest.mark.parametrize(("noise", "count"), [(0.7, 2), (1.3, 3), (5.1, 7), (0.1, 1000), (2.0, 5)])
def test_several_gaussian_releases_on_one_sample_are_one_with_noise_rounded_down(noise: float, count: int) -> None:
    ((step, _),) = hs.from_dp_event(poisson(0.5, repeated(gaussian(noise), count))).steps
    found = step.mechanism.noise_multiplier
    exact = Fraction(noise) ** 2 / count
    assert Fraction(found) ** 2 <= exact < Fraction(math.nextafter(found, math.inf)) ** 2


@pytest.mark.parametrize("parameter", [0.1, 0.3, 1 / 3, 7.7])
def test_discrete_laplace_noise_is_rounded_down(parameter: float) -> None:
    ((step, _),) = hs.from_dp_event(event("DiscreteLaplace", noise_parameter=parameter, sensitivity=2)).steps
    exact = 1 / Fraction(parameter)
    assert Fraction(step.scale) <= exact < Fraction(math.nextafter(step.scale, math.inf))
