"""The accountant in dp-accounting itself: truth, relations, counts, refusals; and events there and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import attr
import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event

import hockeystick as hs
from hockeystick.integrations.dp_accounting import RELATIONS, HockeystickAccountant

RELATION = dp_accounting.NeighboringRelation
ADD_REMOVE, REPLACE, SPECIAL = RELATION.ADD_OR_REMOVE_ONE, RELATION.REPLACE_ONE, RELATION.REPLACE_SPECIAL
Rng = np.random.Generator
Tree = tuple[Any, list[tuple[hs.Step, int]]]


def test_repeated_randomised_response_costs_what_it_is_repeated() -> None:
    event = dp_event.RandomizedResponseDpEvent(noise_parameter=0.5, num_buckets=2)
    for repeated in (dp_event.SelfComposedDpEvent(event, 100), dp_event.ComposedDpEvent([event] * 100)):
        assert 94.289 < HockeystickAccountant(REPLACE).compose(repeated).get_epsilon(1e-6) < 94.290
    assert 94.289 < HockeystickAccountant(REPLACE).compose(event, 100).get_epsilon(1e-6) < 94.290


# ------------------------------------------------------------------------------------------------ random trees


def release(rng: Rng, relation: Any) -> Tree:
    noise = float(rng.uniform(1.0, 8.0))
    match rng.integers(0 if relation is ADD_REMOVE else 2, 7):
        case 1:
            event = dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 15, noise)
            return event, [(hs.Gaussian(noise).poisson(0.1, population=100, largest_batch=15), 1)]
        case 6:
            return dp_event.ZCDpEvent(0.5 / noise**2), [(hs.ZeroConcentratedDP(0.5 / noise**2), 1)]
        case 0:
            return dp_event.MixtureOfGaussiansDpEvent(noise, [0.0, 1.0, 1.0], [0.5, 0.25, 0.25]), [
                (hs.GaussianMixture(noise, (0.0, 1.0), probabilities=(0.5, 0.5)), 1)
            ]
        case 2:
            return dp_event.GaussianDpEvent(noise), [(hs.Gaussian(noise), 1)]
        case 3:
            scale = 2.0 ** int(rng.integers(0, 3))
            return dp_event.DiscreteLaplaceDpEvent(1 / scale, 1), [(hs.DiscreteLaplace(scale, 1), 1)]
        case 4:
            return sampled(rng, relation, noise)
        case _:
            return dp_event.LaplaceDpEvent(noise), [(hs.Laplace(noise), 1)]


def sampled(rng: Rng, relation: Any, noise: float) -> Tree:
    if relation is REPLACE and rng.random() < 0.5:
        inner = dp_event.GaussianDpEvent(noise)
        step = hs.Gaussian(noise).without_replacement(batch_size=5, population=50)
        return dp_event.SampledWithoutReplacementDpEvent(50, 5, inner), [(step, 1)]
    rate, times = float(rng.uniform(0.01, 0.5)), int(rng.integers(1, 3))
    inner = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(noise), times * times)  # noise over a square
    return dp_event.PoissonSampledDpEvent(rate, inner), [(hs.Gaussian(noise / times).poisson(rate), 1)]


def tree(rng: Rng, relation: Any, depth: int) -> Tree:
    if depth == 0 or rng.random() < 0.3:
        return release(rng, relation)
    if rng.random() < 0.5:
        inner, steps = tree(rng, relation, depth - 1)
        times = int(rng.integers(1, 6))
        return dp_event.SelfComposedDpEvent(inner, times), [(step, count * times) for step, count in steps]
    parts = [tree(rng, relation, depth - 1) for _ in range(int(rng.integers(1, 4)))]
    return dp_event.ComposedDpEvent([dp_event.NoOpDpEvent(), *(event for event, _ in parts)]), [
        part for _, steps in parts for part in steps
    ]


def truth(steps: list[tuple[hs.Step, int]], relation: Any, delta: float) -> Any:
    """The composition put together beside the event, by ball arithmetic; by the default where that has no answer."""
    run = hs.compose(steps)
    try:
        return hs.account(run, RELATIONS[relation], accountant=hs.accountants.Exact(6)).epsilon(delta)
    except (hs.PrecisionError, hs.UnknownPairError):
        return hs.account(run, RELATIONS[relation]).epsilon(delta)


@pytest.mark.parametrize("block", range(10))
def test_random_event_trees_agree_with_the_truth(block: int) -> None:
    rng = np.random.default_rng([17, block])
    for _ in range(50):
        relation = (ADD_REMOVE, REPLACE, SPECIAL)[rng.integers(3)]
        event, steps = tree(rng, relation, 3)
        count = int(rng.integers(1, 4))
        accountant = HockeystickAccountant(relation)
        assert accountant.composition == hs.ApproximateDP(0.0) * 1
        accountant.compose(event, count)
        assert accountant.composition == hs.compose(steps) * count
        if rng.random() < 0.2:
            known = truth([(step, own * count) for step, own in steps], relation, 1e-5)
            assert known.lower <= accountant.get_epsilon(1e-5) <= known.upper + 1e-3, (event, relation)


def test_a_tree_with_one_unproved_leaf_is_refused_whole_and_named() -> None:
    bad = dp_event.SampledWithReplacementDpEvent(10, 2, dp_event.GaussianDpEvent(1.0))
    event = dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(1.0), dp_event.SelfComposedDpEvent(bad, 3)])
    accountant = HockeystickAccountant()
    assert not accountant.supports(event)
    with pytest.raises(dp_accounting.UnsupportedEventError, match=r"with replacement.*caused by subevent Sampled"):
        accountant.compose(event)
    assert accountant.get_epsilon(1e-5) == 0.0
    assert accountant.ledger == dp_event.NoOpDpEvent()


# ------------------------------------------------------------------------------------------------ the interface


@pytest.mark.parametrize("bad", [0, -1])
def test_bad_counts_are_refused_as_dp_accounting_refuses_them(bad: int) -> None:
    accountant = HockeystickAccountant()
    with pytest.raises(ValueError, match="count"):
        accountant.compose(dp_event.GaussianDpEvent(1.0), bad)
    assert accountant.get_epsilon(1e-5) == 0.0


def test_bad_parameters_and_deltas_are_refused_and_nothing_is_composed() -> None:
    accountant = HockeystickAccountant()
    with pytest.raises(ValueError, match="noise_multiplier"):
        accountant.compose(dp_event.GaussianDpEvent(-1.0))
    with pytest.raises(TypeError, match="DpEvent"):
        accountant.compose("gaussian")
    with pytest.raises(ValueError, match="delta"):
        accountant.get_epsilon(1.5)
    with pytest.raises(ValueError, match="epsilon"):
        accountant.get_delta(-1.0)
    assert accountant.get_delta(0.0) == 0.0


def test_calibration_ends_below_the_target_and_close() -> None:
    def event(noise: float) -> Any:
        return dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(noise)), 1000)

    noise = dp_accounting.calibrate_dp_mechanism(HockeystickAccountant, event, 1.0, 1e-6, tol=1e-5)
    proved = hs.account(hs.from_dp_event(event(noise))).epsilon(1e-6)
    assert 1.0 - 1e-3 < proved.lower <= proved.upper <= 1.0


RUNS_TO_WRITE: list[hs.Step] = [
    hs.DiscreteGaussian(3.0, 2),
    hs.ApproximateDP(0.5, 1e-6),
    hs.ExponentialMechanism(0.5),
    hs.PermuteAndFlip(0.5),
    hs.Gaussian(1.5).random_allocation(steps=10),
    hs.Gaussian(1.5).random_allocation(steps=10, selected=3),
]


@pytest.mark.parametrize("run", RUNS_TO_WRITE, ids=str)
def test_events_of_releases_to_come_are_written_and_read_back(run: hs.Step, monkeypatch: pytest.MonkeyPatch) -> None:
    from hockeystick.integrations.dp_events.reading import _ROWS as READ
    from hockeystick.integrations.dp_events.writing import _ROWS as WRITTEN

    name, _ = WRITTEN[type(run)]
    if not hasattr(dp_event, name):
        with pytest.raises(ValueError, match=f"the installed dp-accounting has no {name}"):
            hs.to_dp_event(run)
        needed, optional, _ = READ[name]
        kind = attr.make_class(name, [*needed, *optional], bases=(dp_event.DpEvent,), frozen=True)
        monkeypatch.setattr(dp_event, name, kind, raising=False)
    assert hs.from_dp_event(hs.to_dp_event(run * 3)) == run * 3
    assert HockeystickAccountant().compose(hs.to_dp_event(run)).get_epsilon(1e-6) == (
        hs.account(run).epsilon(1e-6).upper
    )


ROUND_TRIPS: list[hs.Step | hs.Composition] = [
    hs.ZeroConcentratedDP(0.125) * 4,
    hs.Gaussian(2.0).poisson(0.1, population=100, largest_batch=15) * 5,
    hs.select_best(hs.Gaussian(0.7).poisson(0.02) * 500 + hs.Gaussian(1.0), count=hs.PoissonCount(10.0)),
    hs.select_best(hs.Laplace(2.0), count=hs.NegativeBinomialCount(0.125)),
    hs.Gaussian(1.5) * 3,
    hs.Laplace(2.0) + hs.DiscreteLaplace(4.0, 3),
    hs.Gaussian(0.7).poisson(0.02) * 500 + hs.Gaussian(1.0),
    hs.Gaussian(0.7).without_replacement(batch_size=3, population=10) * 7,
    hs.RandomizedResponse(0.75, 2) * 2,
    hs.GaussianMixture(1.0, (0.0, 1.0, 2.0), probabilities=(0.5, 0.25, 0.25)),
    hs.ApproximateDP(0.0),
    hs.ApproximateDP(0.0, 1.0),
]


@pytest.mark.parametrize("run", ROUND_TRIPS, ids=str)
def test_what_is_written_as_an_event_reads_back_in_every_form(run: hs.Step | hs.Composition) -> None:
    adjacency = "substitute" if "Randomized" in repr(run) else "add-remove"
    event = hs.to_dp_event(run)
    named = event.to_named_tuple()
    for form in (event, named, json.loads(json.dumps(plain(named)))):
        assert hs.from_dp_event(form, adjacency) == (hs.ApproximateDP(0.0) * 1 if not event else run * 1)


def plain(value: Any) -> Any:
    """A named tuple as JSON holds it."""
    if hasattr(value, "_asdict"):
        return {name: plain(one) for name, one in value._asdict().items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "run",
    [
        hs.select_best(hs.Gaussian(1.0), count=hs.NegativeBinomialCount(0.1)),
        hs.select_best(hs.Gaussian(1.0), count=hs.NegativeBinomialCount(0.25, 0.5)),
        hs.select_best(hs.Gaussian(1.0), count=hs.PoissonCount(0.5)),
        hs.Laplace(2.0).poisson(0.1, population=100, largest_batch=15),
        hs.GaussianDP(1.0),
        hs.Staircase(1.0),
        hs.Gaussian(1.0).shuffled(batch_size=2, population=4),
        hs.RandomizedResponse(0.1, 3),
        hs.GaussianMixture.poisson_group(1.0, rate=0.1, size=3),
        hs.UserDefined(hs.Gaussian(1.0).pair("remove")),
    ],
    ids=repr,
)
def test_steps_that_no_event_stands_for_are_refused(run: hs.Step) -> None:
    with pytest.raises(ValueError, match="no event of dp-accounting stands for"):
        hs.to_dp_event(run)


@pytest.mark.parametrize(
    ("write", "cheaper"),
    [
        (lambda: hs.to_dp_event(hs.DiscreteLaplace(3.0)).noise_parameter, lambda a: Fraction(a) < Fraction(1, 3)),
        (
            lambda: hs.to_dp_event(hs.RandomizedResponse(0.7, 3)).noise_parameter,
            lambda p: p * 2 > (1 - Fraction(0.7)) * 3,
        ),
    ],
)
def test_what_must_be_rounded_never_makes_the_event_cheaper(write: Callable[[], float], cheaper: Any) -> None:
    assert not cheaper(Fraction(write()))


def test_every_event_of_the_installed_release_has_a_row() -> None:
    from hockeystick.integrations.dp_events.reading import _ROWS

    structure = {"DpEvent", "DpEventNamedTuple"}
    theirs = {name for name in vars(dp_event) if name.endswith("DpEvent")} - structure
    assert theirs <= set(_ROWS)
    for name in theirs:
        needed, optional, _ = _ROWS[name]
        fields = [one.name for one in getattr(dp_event, name).__attrs_attrs__]
        assert fields == [*needed, *optional], name


def test_no_privacy_is_infinite_at_any_delta() -> None:
    accountant = HockeystickAccountant().compose(dp_event.GaussianDpEvent(0.0))
    assert accountant.get_epsilon(1.0) == math.inf
    assert accountant.get_delta(math.inf) == 1.0
