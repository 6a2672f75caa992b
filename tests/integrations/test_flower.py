"""The accountant in Flower itself: its protocol, a strategy's rounds, saved states, refusals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyAccountant, PrivacyConfig, SamplingMethod
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from flwr.supercore.task_identity import TaskIdentity

import hockeystick as hs
from hockeystick.integrations.flower import HockeystickAccountant

ADD, REPLACE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE
POISSON, FIXED, PLAIN = SamplingMethod.POISSON, SamplingMethod.WITHOUT_REPLACEMENT, SamplingMethod.NO_AMPLIFICATION


def made(relation: Any = ADD, method: Any = POISSON, **more: Any) -> HockeystickAccountant:
    return HockeystickAccountant(PrivacyConfig(1e-5, 1000, relation, method, **more))


def event(noise: float = 1.0, clients: int = 10, population: int = 1000) -> GaussianPrivacyEvent:
    return GaussianPrivacyEvent(noise, clients, population)


MEANINGS = [
    (ADD, POISSON, event(), hs.Gaussian(1.0).poisson(0.01), "add-remove"),
    (REPLACE, FIXED, event(), hs.Gaussian(1.0).without_replacement(batch_size=10, population=1000), "substitute"),
    (ADD, PLAIN, event(clients=1000), hs.Gaussian(1.0), "add-remove"),
    (ADD, PLAIN, event(clients=10), hs.Gaussian(0.5), "add-remove"),
]


@pytest.mark.parametrize(("relation", "method", "release", "step", "adjacency"), MEANINGS)
def test_each_sampling_method_is_accounted_as_what_it_is(
    relation: Any, method: Any, release: Any, step: hs.Step, adjacency: str
) -> None:
    accountant = made(relation, method)
    accountant.compose(release, 7)
    accountant.compose(event(2.0, release.sample_size))
    known = hs.account(accountant.composition, adjacency)
    assert dict(accountant.composition.steps)[step] == 7
    assert accountant.num_releases == 8
    assert accountant.get_epsilon(1e-6) == known.epsilon(1e-6).upper
    assert accountant.get_delta(1.5) == known.delta(1.5).upper
    spent = accountant.get_privacy_spent()
    assert (spent.epsilon, spent.delta, spent.num_releases) == (known.epsilon(1e-5).upper, 1e-5, 8)


def test_a_fixed_number_of_clients_out_of_more_moves_by_two_when_one_is_added() -> None:
    """With 999 of 1000 clients drawn, one more client nearly always pushes another out: a shift of 2."""
    accountant = made(ADD, PLAIN)
    accountant.compose(event(1.0, 999))
    attained = hs.account(hs.Gaussian(1.0).without_replacement(batch_size=999, population=1000))
    one = hs.account(hs.Gaussian(1.0))
    assert one.epsilon(1e-5).upper < attained.epsilon(1e-5).lower <= accountant.get_epsilon(1e-5)


def test_the_rate_of_a_sample_is_never_rounded_down() -> None:
    accountant = HockeystickAccountant(PrivacyConfig(1e-5, 49, ADD, POISSON))
    accountant.compose(event(1.0, 1, 49))
    ((step, _),) = accountant.composition.steps
    assert step.rate * 49 >= 1
    assert step.rate.as_integer_ratio()[0] * 49 >= step.rate.as_integer_ratio()[1]


def test_a_budget_is_asked_about_without_spending() -> None:
    accountant = made(max_epsilon=2.6)
    assert not accountant.would_exceed(event(), count=2000)
    assert accountant.would_exceed(event(), count=2100)
    assert not accountant.would_exceed(event(), max_epsilon=3.0, count=2100)
    assert accountant.num_releases == 0
    assert accountant.get_epsilon(1e-5) == 0.0
    with pytest.raises(ValueError, match="max_epsilon must be supplied"):
        made().would_exceed(event())


def test_a_saved_state_goes_on_as_if_never_interrupted() -> None:
    accountant, again = made(), made()
    accountant.compose(event(), 100)
    again.load_state_dict(json.loads(json.dumps(accountant.state_dict())))
    again.compose(event(), 50)
    accountant.compose(event(), 50)
    assert again.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)
    assert again.state_dict() == accountant.state_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"backend": "rdp"},
        {"schema_version": 2},
        {"config": {}},
        {"compositions": None},
        {"compositions": [{"event": {}, "count": 1}]},
        {"compositions": [{"event": vars(event()), "count": 0}]},
        {"compositions": [{"event": vars(event(population=999)), "count": 1}]},
        {"compositions": [{"event": vars(event()) | {"noise_multiplier": 10**400}, "count": 1}]},
    ],
)
def test_a_state_that_is_none_is_refused_and_changes_nothing(change: dict[str, Any]) -> None:
    accountant = made()
    accountant.compose(event())
    with pytest.raises(ValueError, match="state"):
        accountant.load_state_dict(accountant.state_dict() | change)
    assert accountant.num_releases == 1


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_bad_counts_and_deltas_are_refused_as_flower_refuses_them(count: Any) -> None:
    accountant = made()
    with pytest.raises(ValueError, match="count"):
        accountant.compose(event(), count)
    with pytest.raises(ValueError, match="population_size"):
        accountant.compose(event(population=20))
    for delta in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="delta"):
            accountant.get_epsilon(delta)
    assert accountant.num_releases == 0


def test_a_strategy_of_flower_takes_it_and_stops_at_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskIdentity, "_run_id", 1)  # as where a server runs: messages carry it
    monkeypatch.setattr(TaskIdentity, "_task_id", 1)
    monkeypatch.setattr(TaskIdentity, "_node_id", 1)
    accountant: PrivacyAccountant = HockeystickAccountant(PrivacyConfig(1e-5, 4, ADD, PLAIN, max_epsilon=4.0))
    strategy = DifferentialPrivacyServerSideFixedClipping(
        FedAvg(), noise_multiplier=2.0, clipping_norm=1.0, num_sampled_clients=4, accountant=accountant
    )
    strategy.current_arrays = ArrayRecord([np.zeros(3)])
    for round_number in (1, 2, 3):
        messages = [Message(RecordDict(), dst_node_id=node, message_type="train") for node in range(1, 5)]
        strategy._prepare_accounting(round_number, messages)
        replies = [
            Message(
                RecordDict({"arrays": ArrayRecord([np.ones(3)]), "metrics": MetricRecord({"num-examples": 10})}),
                reply_to=message,
            )
            for message in messages
        ]
        arrays, _ = strategy.aggregate_train(round_number, replies)
        assert arrays is not None
    assert strategy.privacy_spent().epsilon == hs.account(hs.Gaussian(2.0) * 3).epsilon(1e-5).upper
    with pytest.raises(Exception, match="would exceed max_epsilon"):
        strategy._prepare_accounting(4, messages)
