"""Events that release something: one function for each, from its fields to steps.

Derived in docs/derivations/events.md: noise on every coordinate of a vector costs at most what it costs on one number
of the same L1 norm; a tree of partial sums is as many releases as it has levels; randomised response against a special
record. Numbers that must be rounded are rounded to less noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hockeystick import mechanisms
from hockeystick.composition import Step
from hockeystick.errors import check_count, check_finite, check_positive, check_probability, check_real, check_sequence
from hockeystick.integrations.dp_events.event import Event
from hockeystick.numerics.rationals import exact_probabilities, float_beside

Parts = tuple[tuple[Step, int], ...]
"""Steps with their counts; empty where nothing is released."""

NOTHING, EVERYTHING = mechanisms.ApproximateDP(0.0), mechanisms.ApproximateDP(0.0, 1.0)
"""Steps that release nothing, and all there is."""

_LEAST = 1e-300  # of a number whose inverse is a float
_NARROWEST, _WIDEST = 1e-150, 700.0  # ranges that the exponential mechanism takes
_MOST = 1e300  # orders times divergences, of those that are taken
_ORDERS = tuple(1.0 + 10.0 ** (exponent / 32) for exponent in range(-128, 193))
"""Orders from 1.0001 to a million at which Renyi divergences are stated; between neighbours a chord holds."""

_REPLACING = "neighboring_relation must be `REPLACE_ONE` or `REPLACE_SPECIAL`"


def unproved(reason: str) -> Callable[[Event], Parts]:
    """Whatever the event: refused."""

    def refuse(event: Event) -> Parts:
        raise event.unproved(reason)

    return refuse


def always(parts: Parts) -> Callable[[Event], Parts]:
    """Whatever the event: the same."""
    return lambda _: parts


def _noise(name: str, value: Any, build: Callable[[float], Step]) -> Parts:
    """One release with noise of a size: none hides nothing, an infinite one everything."""
    size = check_real(name, value)
    if size == 0.0:
        return ((EVERYTHING, 1),)
    return () if size == math.inf else ((build(check_positive(name, size)), 1),)


def gaussian(event: Event) -> Parts:
    """Gaussian noise."""
    return _noise("noise_multiplier", event["noise_multiplier"], mechanisms.Gaussian)


def laplace(event: Event) -> Parts:
    """Laplace noise, on one number or on every coordinate of a vector (docs/derivations/events.md)."""
    return _noise("noise_multiplier", event["noise_multiplier"], mechanisms.Laplace)


def discrete_laplace(event: Event) -> Parts:
    """Discrete Laplace noise: its parameter is 1 / scale."""
    sensitivity = check_count("sensitivity", event["sensitivity"], minimum=0)
    a = check_finite("noise_parameter", event["noise_parameter"])
    if a == 0.0:
        return ((EVERYTHING, 1),) if sensitivity else ()  # as dp-accounting: it has no such law
    if 0.0 < a < _LEAST:
        raise ValueError(f"noise_parameter must be 0 or at least {_LEAST:g}, got {a!r}")
    scale = float_beside(1 / Fraction(check_positive("noise_parameter", a)), up=False)  # less noise costs more
    return ((mechanisms.DiscreteLaplace(scale, sensitivity), 1),) if sensitivity else ()


def discrete_gaussian(event: Event) -> Parts:
    """Discrete Gaussian noise, on one number or on vectors whose norm leaves one entry of 1."""
    sensitivity = Fraction(check_finite("sensitivity", event["sensitivity"]))
    if sensitivity < 0:
        raise ValueError(f"sensitivity must be at least 0, got {event['sensitivity']!r}")
    if event["dimension"] != 1 and sensitivity**2 >= 2:
        raise event.unproved("for vectors, only norms below sqrt(2) are proved: give dimension=1 for one number")
    shift = math.floor(sensitivity)  # an integer vector of norm below sqrt(2) has one entry of 1, or none
    return _noise("sigma", event["sigma"], lambda sigma: mechanisms.DiscreteGaussian(sigma, shift)) if shift else ()


def randomized_response(event: Event) -> Parts:
    """Randomised response: the truth with probability 1 - p + p/k; of a special record, any answer alike."""
    p = Fraction(check_probability("noise_parameter", event["noise_parameter"]))
    k = check_count("num_buckets", event["num_buckets"])
    if event.adjacency not in {"substitute", "zero-out"}:
        raise event.unproved(f"randomised response has one record: {_REPLACING}")
    if k == 1 or p == 1:
        return ()
    if p == 0:
        return ((EVERYTHING, 1),)
    true = 1 - p + p / k
    if event.adjacency == "substitute":
        return ((mechanisms.RandomizedResponse(true, k), 1),)
    uniform = Fraction(1, k), Fraction(k - 1, k)  # of a special record
    return ((mechanisms.DiscretePair((true, 1 - true), uniform), 1),)


def stated(event: Event) -> Parts:
    """A guarantee under the relation it is accounted for."""
    step = mechanisms.ApproximateDP(event["epsilon"], event["delta"])
    if step == NOTHING:
        return ()
    return ((EVERYTHING if step.delta == 1.0 else step, 1),)


def exponential(event: Event) -> Parts:
    """The exponential mechanism: losses in an interval of length epsilon, under the relation it is accounted for."""
    epsilon = _at_least_0("epsilon", event["epsilon"])
    if epsilon > _WIDEST:
        return ((EVERYTHING if epsilon == math.inf else mechanisms.ApproximateDP(epsilon), 1),)
    wide = max(epsilon, _NARROWEST)  # a wider range costs more
    return ((mechanisms.ExponentialMechanism(wide), 1),) if epsilon else ()


def permute_and_flip(event: Event) -> Parts:
    """Permute-and-flip: pure epsilon-DP, under the relation it is accounted for."""
    epsilon = _at_least_0("epsilon", event["epsilon"])
    return ((EVERYTHING if epsilon == math.inf else mechanisms.PermuteAndFlip(epsilon), 1),) if epsilon else ()


def concentrated(event: Event) -> Parts:
    """Renyi divergences of at most xi + rho alpha at every order alpha."""
    rho, xi = (_at_least_0(name, event[name]) for name in ("rho", "xi"))
    if math.inf in (rho, xi):
        return ((EVERYTHING, 1),)
    if xi == 0.0:
        return ((mechanisms.ZeroConcentratedDP(rho), 1),) if rho else ()
    bounds = {order: float_beside(Fraction(xi) + Fraction(rho) * Fraction(order), up=True) for order in _ORDERS}
    known = {order: bound for order, bound in bounds.items() if order * bound <= _MOST}
    return ((mechanisms.RenyiDP(tuple(known), tuple(known.values())) if known else EVERYTHING, 1),)


def _at_least_0(name: str, value: Any) -> float:
    number = math.inf if value == math.inf else check_finite(name, value)
    if number < 0.0:
        raise ValueError(f"{name} must be at least 0, got {value!r}")
    return number


def tree(event: Event) -> Parts:
    """Sums over the nodes of binary trees: as many releases as there are levels."""
    if event.adjacency not in {"substitute", "zero-out"}:
        raise event.unproved(f"a record more or less moves the others to other leaves: {_REPLACING}")
    counts = event["step_counts"]
    leaves = [check_count("step_counts", count, minimum=0) for count in (counts if _is_list(counts) else [counts])]
    if not any(leaves):
        raise ValueError(f"step_counts must hold a number of steps above 0, got {counts!r}")
    levels = max(leaves).bit_length()  # a record is in one leaf of one tree, and in at most one node of each level
    return tuple((step, levels * count) for step, count in gaussian(event))


def mixture(event: Event) -> Parts:
    """A mixture of Gaussians, shifts of equal size taken together."""
    shifts = [check_finite("sensitivities", shift) for shift in check_sequence("sensitivities", event["sensitivities"])]
    given = check_sequence("sampling_probs", event["sampling_probs"])
    weights = [Fraction(check_probability("sampling_probs", weight)) for weight in given]
    if len(shifts) != len(weights) or not shifts:
        raise ValueError(f"sensitivities and sampling_probs must be as many, got {len(shifts)} and {len(weights)}")
    exact_probabilities("sampling_probs", weights)  # refuses what is far from a sum of one
    if event.adjacency == "substitute":
        raise event.unproved(
            "it is the pair of a record added or removed: neighboring_relation must be `ADD_OR_REMOVE_ONE` or"
            " `REPLACE_SPECIAL`"
        )
    merged: dict[float, Fraction] = {}
    for shift, weight in zip(shifts, weights, strict=True):
        if weight:
            merged[shift] = merged.get(shift, Fraction(0)) + weight
    if min(merged) < 0.0 < max(merged):
        raise event.unproved("shifts of both signs have no single order")
    if set(merged) == {0.0}:
        return ()
    sizes = tuple(abs(shift) for shift in merged)  # all of one sign: mirror the line
    chances = tuple(merged.values())
    return _noise(
        "standard_deviation",
        event["standard_deviation"],
        lambda sigma: mechanisms.GaussianMixture(sigma, sizes, probabilities=chances),
    )


def _is_list(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str)
