"""Events of dp-accounting as compositions: what each row of the table means, and what is refused."""

from __future__ import annotations

import math
import pickle
import sys
from collections import namedtuple
from decimal import Context, FloatOperation, Inexact, localcontext
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

import hockeystick as hs
from hockeystick.integrations.dp_events import UnprovedEventError, parts_of


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


def best(inner: dict[str, Any], mean: float, shape: float) -> dict[str, Any]:
    return event("RepeatAndSelect", event=inner, mean=mean, shape=shape)


def allocated(inner: dict[str, Any], selected: int, steps: int) -> dict[str, Any]:
    return event("RandomAllocation", event=inner, num_selected=selected, num_steps=steps)


def cut(rate: float, most: int, records: int, noise: float = 1.0) -> dict[str, Any]:
    return event(
        "TruncatedSubsampledGaussian",
        dataset_size=records,
        sampling_probability=rate,
        truncated_batch_size=most,
        noise_multiplier=noise,
    )


CHOICE, FLIP = event("ExponentialMechanism", epsilon=0.5), event("PermuteAndFlip", epsilon=0.5)

MEANINGS = [
    (event("ZC", rho=0.1), "substitute", hs.ZeroConcentratedDP(0.1)),
    (event("ZC", rho=math.inf), "add-remove", EVERYTHING),
    (event("ZC", rho=1e308, xi=1e308), "add-remove", EVERYTHING),
    (CHOICE, "substitute", hs.ExponentialMechanism(0.5)),
    (event("ExponentialMechanism", epsilon=1e-200), "add-remove", hs.ExponentialMechanism(1e-150)),
    (event("ExponentialMechanism", epsilon=800.0), "add-remove", hs.ApproximateDP(800.0)),
    (event("ExponentialMechanism", epsilon=math.inf), "add-remove", EVERYTHING),
    (FLIP, "zero-out", hs.PermuteAndFlip(0.5)),
    (poisson(0.5, FLIP), "add-remove", hs.PermuteAndFlip(0.5).poisson(0.5)),
    (
        fixed_size(2, 8, CHOICE),
        "substitute",
        hs.ExponentialMechanism(0.5).without_replacement(batch_size=2, population=8),
    ),
    (cut(0.1, 15, 100), "add-remove", hs.Gaussian(1.0).poisson(0.1, population=100, largest_batch=15)),
    (cut(0.1, 150, 100), "zero-out", hs.Gaussian(1.0).poisson(0.1)),
    (cut(0.1, 99, 100), "add-remove", hs.Gaussian(1.0).poisson(0.1, population=100, largest_batch=99)),
    (cut(1.0, 100, 100), "substitute", hs.Gaussian(1.0)),
    (cut(1.0, 15, 100), "add-remove", hs.Gaussian(1.0).without_replacement(batch_size=15, population=100)),
    (cut(0.1, 15, 100, noise=0.0), "add-remove", EVERYTHING),
    (allocated(repeated(gaussian(3.0), 9), 1, 10), "zero-out", hs.Gaussian(1.0).random_allocation(steps=10)),
    (allocated(gaussian(), 7, 7), "add-remove", hs.Gaussian(1.0) * 7),
    (allocated(gaussian(), 2, 10), "add-remove", hs.Gaussian(1.0).random_allocation(steps=10, selected=2)),
    (allocated(gaussian(0.0), 2, 7), "add-remove", EVERYTHING),
    (best(gaussian(), 3.0, math.inf), "substitute", hs.select_best(hs.Gaussian(1.0), count=hs.PoissonCount(3.0))),
    (best(gaussian(), 4.0, 1.0), "zero-out", hs.select_best(hs.Gaussian(1.0), count=hs.NegativeBinomialCount(0.25))),
    (best(repeated(gaussian(), 5), 1.0, 0.0), "add-remove", hs.Gaussian(1.0) * 5),
    (best(gaussian(0.0), 3.0, 1.0), "add-remove", EVERYTHING),
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


def test_of_divergences_beyond_float64_those_within_are_taken() -> None:
    ((step, _),) = hs.from_dp_event(event("ZC", rho=1e294, xi=1.0)).steps
    assert 100 < len(step.orders) < 321
    assert hs.account(step).delta(1e299).lower == 0.0


NOTHING = [
    event("ZC", rho=0.0, xi=0.0),
    event("ExponentialMechanism", epsilon=0.0),
    event("PermuteAndFlip", epsilon=0.0),
    cut(0.0, 15, 100),
    cut(0.1, 0, 100, noise=0.0),
    allocated(gaussian(), 0, 5),
    best(event("NoOp"), 3.0, 1.0),
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
    (poisson(0.5, event("ZC", rho=0.1)), "add-remove"),
    (poisson(0.5, CHOICE), "zero-out"),
    (fixed_size(2, 8, FLIP), "add-remove"),
    (cut(0.1, 15, 100), "substitute"),
    (cut(0.1, 15, 100), "zero-out"),
    (cut(1.0, 15, 100), "zero-out"),
    (allocated(gaussian(), 1, 10), "substitute"),
    (allocated(GUARANTEE, 2, 10), "add-remove"),
    (allocated(CHOICE, 1, 10), "zero-out"),
    (allocated(event("ZC", rho=0.1), 1, 10), "add-remove"),
    (best(best(gaussian(), 3.0, 1.0), 3.0, 1.0), "add-remove"),
    (best(gaussian(), 1e9, math.inf), "add-remove"),
    (best(gaussian(), math.inf, 1.0), "add-remove"),
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
    (poisson(0.5, GUARANTEE), "substitute"),
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
        (event("ZC", rho=-0.1), "rho"),
        (event("ZC", rho=0.1, xi=math.nan), "xi"),
        (event("ExponentialMechanism", epsilon=-0.1), "epsilon"),
        (event("PermuteAndFlip", epsilon=math.nan), "epsilon"),
        (cut(1.5, 15, 100), "sampling_probability"),
        (cut(0.5, -1, 100), "truncated_batch_size"),
        (allocated(gaussian(), 8, 7), "num_selected"),
        (best(gaussian(), 0.5, math.inf), "mean"),
        (best(gaussian(), math.nan, 1.0), "mean"),
        (best(gaussian(), 3.0, -0.5), "shape"),
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


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("weight", [0.0, 0.25])
def test_chances_that_are_far_from_a_sum_of_one_are_none(noise: float, shift: float, weight: float) -> None:
    fields = {"standard_deviation": noise, "sensitivities": [0.0, shift], "sampling_probs": [0.0, weight]}
    with pytest.raises(ValueError, match=f"sampling_probs must sum to 1, got {weight}"):
        hs.from_dp_event(event("MixtureOfGaussians", **fields))


@pytest.mark.parametrize("value", [True, "1", np.array(True), [1.0], None, 10**400])
@pytest.mark.parametrize(
    ("given", "field"),
    [
        (gaussian(), "noise_multiplier"),
        (best(gaussian(), 3.0, 1.0), "mean"),
        (best(gaussian(), 3.0, 1.0), "shape"),
        (event("DiscreteGaussian", sigma=2.0, sensitivity=1), "sigma"),
        (
            event("MixtureOfGaussians", standard_deviation=1.0, sensitivities=[1.0], sampling_probs=[1.0]),
            "standard_dev",
        ),
    ],
)
def test_what_is_no_number_is_taken_for_none(given: Any, field: str, value: Any) -> None:
    """True stood for noise of 1, and a text for the number that it writes."""
    (name,) = (name for name in given if name.startswith(field))
    with pytest.raises((TypeError, ValueError), match=name):
        hs.from_dp_event(given | {name: value})


def test_what_is_no_event_is_refused() -> None:
    for thing in ("GaussianDpEvent", 1.0, {"noise_multiplier": 1.0}, None):
        with pytest.raises(TypeError, match="event must be"):
            hs.from_dp_event(thing)
    odd_name, odd_fields = gaussian() | {"class_name": b"\xff"}, gaussian() | {1: 2, "x": 3}
    missing = {"class_name": "GaussianDpEvent"}
    odd = {"not known$": odd_fields, "known are": odd_name, "missing$": missing}
    for said, thing in odd.items():
        with pytest.raises(UnprovedEventError, match=said):
            hs.from_dp_event(thing)


def test_a_named_tuple_is_read_with_its_name_in_bytes() -> None:
    kind = namedtuple("kind", ["module_name", "class_name", "noise_multiplier"])
    assert hs.from_dp_event(kind("dp_accounting.dp_event", b"GaussianDpEvent", 2.0)) == hs.Gaussian(2.0) * 1


def test_an_event_says_in_how_many_steps_of_a_round_a_record_takes_part(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("Gaussian", "SelfComposed", "RandomAllocation")  # of a release to come
    kinds = {f"{name}DpEvent": partial(event, name) for name in names}
    monkeypatch.setitem(sys.modules, "dp_accounting", SimpleNamespace(dp_event=SimpleNamespace(**kinds)))
    run = hs.Gaussian(1.0).random_allocation(steps=10, selected=3) * 4
    assert hs.from_dp_event(hs.to_dp_event(run)) == run


@pytest.mark.parametrize(("noise", "count"), [(0.7, 2), (1.3, 3), (5.1, 7), (0.1, 1000), (2.0, 5)])
def test_several_gaussian_releases_on_one_sample_are_one_with_noise_rounded_down(noise: float, count: int) -> None:
    ((step, _),) = hs.from_dp_event(poisson(0.5, repeated(gaussian(noise), count))).steps
    found = step.mechanism.noise_multiplier
    exact = Fraction(noise) ** 2 / count
    assert Fraction(found) ** 2 <= exact < Fraction(math.nextafter(found, math.inf)) ** 2


@pytest.mark.parametrize("noise", [1e-320, 1e-200, 1e-150, 1e150, 1e200, 1.7e308])
def test_noise_whose_square_is_beyond_float64_is_named_on_a_sample_as_it_is_alone(noise: float) -> None:
    for inner in (gaussian(noise), poisson(0.5, gaussian(noise)), fixed_size(3, 9, repeated(gaussian(noise), 1))):
        with pytest.raises(ValueError, match="sensitivity over noise must be between"):
            hs.from_dp_event(inner, "substitute")


@pytest.mark.parametrize("parameter", [0.1, 0.3, 1 / 3, 7.7])
def test_discrete_laplace_noise_is_rounded_down(parameter: float) -> None:
    ((step, _),) = hs.from_dp_event(event("DiscreteLaplace", noise_parameter=parameter, sensitivity=2)).steps
    exact = 1 / Fraction(parameter)
    assert Fraction(step.scale) <= exact < Fraction(math.nextafter(step.scale, math.inf))


@pytest.mark.parametrize(("rho", "xi"), [(0.1, 0.02), (0.0, 0.3), (1e-4, 1e-6)])
def test_divergences_with_a_constant_are_stated_at_orders_and_never_below(rho: float, xi: float) -> None:
    ((step, _),) = hs.from_dp_event(event("ZC", rho=rho, xi=xi)).steps
    for order, stated in zip(step.orders, step.epsilons, strict=True):
        exact = Fraction(xi) + Fraction(rho) * Fraction(order)
        assert exact <= Fraction(stated) <= exact * (1 + Fraction(1, 2**50))
    found = hs.account(hs.from_dp_event(event("ZC", rho=rho, xi=xi)) * 5).epsilon(1e-6).upper
    orders = [1 + 10 ** (k / 500) for k in range(-2000, 3000)]
    ideal = min(
        5 * (xi + rho * a) + math.log1p(-1 / a) - (math.log(1e-6) + math.log(a)) / (a - 1) for a in orders
    )  # Canonne, Kamath and Steinke (2020), Proposition 12
    assert ideal * (1 - 1e-9) <= found <= ideal * 1.002 + 1e-3


@pytest.mark.parametrize(("mean", "shape"), [(10.0, 1.0), (3.0, 0.0), (1.5, 0.3), (40.0, 7.0), (1.001, 1000.0)])
def test_the_law_of_a_mean_has_it_to_the_last_float(mean: float, shape: float) -> None:
    ((step, _),) = hs.from_dp_event(best(gaussian(), mean, shape)).steps
    count = step.count
    assert count.shape == shape
    with mpmath.workdps(50):
        more, fewer = (
            ratio(mpmath.mpf(math.nextafter(count.stopping, towards)), mpmath.mpf(shape)) for towards in (0.0, 2.0)
        )
        assert fewer < mean < more


@pytest.mark.parametrize(("stopping", "shape"), [(0.1, 1.0), (0.9, 0.0), (0.01, 30.0), (1 - 1e-9, 900.0)])
def test_the_stated_error_of_a_law_covers_a_chance_to_stop_that_is_off(stopping: float, shape: float) -> None:
    rest = np.array([0.0, 1e-6, 0.3, 1.0])
    own = hs.NegativeBinomialCount(stopping, shape)
    for off in (stopping * (1 - 2**-52), stopping * (1 + 2**-52)):
        with mpmath.workdps(50):
            g, eta = mpmath.mpf(off), mpmath.mpf(shape)
            for s, found in zip(rest, np.exp(own.log_slope(rest)), strict=True):
                exact = ratio(g, eta) * (1 + (1 / g - 1) * mpmath.mpf(float(s))) ** -(1 + eta)
                assert abs(mpmath.mpf(float(found)) / exact - 1) <= own.error


def ratio(g: Any, eta: Any) -> Any:
    """The mean number of runs, as Papernot and Steinke (2022), Definition 1, have it."""
    return (1 / g - 1) * (eta / (1 - g**eta) if eta else 1 / mpmath.log(1 / g))


def test_the_law_of_runs_is_the_same_in_any_decimal_context() -> None:
    tuned = event("RepeatAndSelect", event=event("Gaussian", noise_multiplier=5.0), mean=3.3, shape=0.5)
    expected = parts_of(tuned, "add-remove")
    with localcontext(Context(prec=3, traps=[Inexact, FloatOperation])):
        assert parts_of(tuned, "add-remove") == expected
