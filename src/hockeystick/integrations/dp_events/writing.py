"""Compositions as events of dp-accounting.

Guarantee: read back by `from_dp_event` the event costs at least what the composition does, and exactly that where no
number had to be rounded. One step is an exception: randomised response against a special record, which answers
uniformly there, but may tell any other category here. Steps that no event of the installed release stands for raise
``ValueError``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from hockeystick import mechanisms
from hockeystick.composition import Composition, Step
from hockeystick.integrations.dp_events.releases import EVERYTHING, NOTHING
from hockeystick.laws.run_count import NegativeBinomialCount, PoissonCount
from hockeystick.numerics.rationals import float_beside
from hockeystick.sampling import CutBatches, Poisson, RandomAllocation, WithoutReplacement


def to_dp_event(run: Step | Composition) -> Any:
    """A step or composition as an event of dp-accounting, which must be installed.

    Parameters
    ----------
    run : Step or Composition
        What is released.

    Returns
    -------
    DpEvent
        Of the release of dp-accounting that is installed.

    Raises
    ------
    ValueError
        Where no event stands for a step.
    """
    if not isinstance(run, Step | Composition):
        raise TypeError(f"run must be a step or a composition, got {run!r} of type {type(run).__name__}")
    events = []
    for step, count in (run * 1).steps:
        event = _event(step)
        events.append(event if count == 1 else _built("SelfComposedDpEvent", step, event=event, count=count))
    return events[0] if len(events) == 1 else _built("ComposedDpEvent", run, events=events)


def _event(step: Step) -> Any:
    if step == NOTHING:
        return _built("NoOpDpEvent", step)
    if step == EVERYTHING:
        return _built("NonPrivateDpEvent", step)
    row = _ROWS.get(type(step))
    if row is None:
        raise ValueError(f"no event of dp-accounting stands for {step!r}")
    name, fields = row
    return _built(name, step, **fields(step))


def _built(name: str, step: object, **fields: Any) -> Any:
    from dp_accounting import dp_event

    kind = getattr(dp_event, name, None)
    if kind is None:
        raise ValueError(f"the installed dp-accounting has no {name}, which stands for {step!r}")
    return kind(**fields)


def _discrete_laplace(step: mechanisms.DiscreteLaplace) -> dict[str, Any]:
    a = float_beside(1 / Fraction(step.scale), up=True)  # less noise costs more
    return {"noise_parameter": a, "sensitivity": step.sensitivity}


def _randomized_response(step: mechanisms.RandomizedResponse) -> dict[str, Any]:
    k = step.categories
    p = (1 - Fraction(step.probability)) * k / (k - 1)  # the truth is told with probability 1 - p + p/k
    if p > 1:
        raise ValueError(f"no event of dp-accounting stands for {step!r}: it tells the truth less often than not")
    return {"noise_parameter": float_beside(p, up=False), "num_buckets": k}


def _mixture(step: mechanisms.GaussianMixture) -> dict[str, Any]:
    weights = [Fraction(weight) for weight in step.probabilities]
    if any(Fraction(float(weight)) != weight for weight in weights):
        raise ValueError(f"no event of dp-accounting stands for {step!r}: its probabilities are not exact float64s")
    return {
        "standard_deviation": step.noise_multiplier,
        "sensitivities": list(step.sensitivities),
        "sampling_probs": [float(weight) for weight in weights],
    }


def _cut(step: CutBatches) -> dict[str, Any]:
    if not isinstance(step.mechanism, mechanisms.Gaussian):
        raise ValueError(f"no event of dp-accounting stands for {step!r}: its cut samples are of Gaussian noise")
    return {
        "dataset_size": step.population,
        "sampling_probability": step.rate,
        "truncated_batch_size": step.largest_batch,
        "noise_multiplier": step.mechanism.noise_multiplier,
    }


def _best(step: mechanisms.BestOf) -> dict[str, Any]:
    """An event states the mean number of runs; that costs more as it grows is not proved, so it must be exact."""
    match step.count:
        case PoissonCount(mean) if mean >= 1.0:
            shape = math.inf
        case NegativeBinomialCount(stopping, shape) if shape == 1.0 and math.frexp(stopping)[0] == 0.5:
            mean = 1.0 / stopping  # of a power of two: exactly the mean
        case _:
            raise ValueError(
                f"no event of dp-accounting stands for {step!r}: the mean number of runs is not an exact float64"
            )
    return {"event": to_dp_event(step.run), "mean": mean, "shape": shape}


_ROWS: Mapping[type[Step], tuple[str, Callable[[Any], dict[str, Any]]]] = {
    mechanisms.Gaussian: ("GaussianDpEvent", lambda step: {"noise_multiplier": step.noise_multiplier}),
    mechanisms.Laplace: ("LaplaceDpEvent", lambda step: {"noise_multiplier": step.scale}),
    mechanisms.DiscreteLaplace: ("DiscreteLaplaceDpEvent", _discrete_laplace),
    mechanisms.DiscreteGaussian: (
        "DiscreteGaussianDpEvent",
        lambda step: {"sigma": step.sigma, "sensitivity": step.sensitivity, "dimension": 1},
    ),
    mechanisms.RandomizedResponse: ("RandomizedResponseDpEvent", _randomized_response),
    mechanisms.ApproximateDP: ("EpsilonDeltaDpEvent", lambda step: {"epsilon": step.epsilon, "delta": step.delta}),
    mechanisms.GaussianMixture: ("MixtureOfGaussiansDpEvent", _mixture),
    mechanisms.ZeroConcentratedDP: ("ZCDpEvent", lambda step: {"rho": step.rho}),
    mechanisms.ExponentialMechanism: ("ExponentialMechanismDpEvent", lambda step: {"epsilon": step.epsilon}),
    mechanisms.PermuteAndFlip: ("PermuteAndFlipDpEvent", lambda step: {"epsilon": step.epsilon}),
    mechanisms.BestOf: ("RepeatAndSelectDpEvent", _best),
    CutBatches: ("TruncatedSubsampledGaussianDpEvent", _cut),
    RandomAllocation: (
        "RandomAllocationDpEvent",
        lambda step: {"event": _event(step.mechanism), "num_selected": step.selected, "num_steps": step.steps},
    ),
    Poisson: (
        "PoissonSampledDpEvent",
        lambda step: {"sampling_probability": step.rate, "event": _event(step.mechanism)},
    ),
    WithoutReplacement: (
        "SampledWithoutReplacementDpEvent",
        lambda step: {
            "source_dataset_size": step.population,
            "sample_size": step.batch_size,
            "event": _event(step.mechanism),
        },
    ),
}
