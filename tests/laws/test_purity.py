"""The same question gets the same bits: whatever was asked before, from any thread, alone or in an array, unpickled."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import hockeystick as hs
from tests.random_runs import random_run

Question = tuple[str, float]


def bits(bound: hs.Bound) -> tuple[str, str]:
    return float(bound.lower).hex(), float(bound.upper).hex()


def ask(curve: hs.PrivacyCurve, question: Question) -> tuple[str, str]:
    kind, at = question
    return bits(getattr(curve, kind)(at))


def check(rng: np.random.Generator, most_steps: float) -> None:
    run, adjacency = random_run(rng, most_steps=most_steps)
    deltas, epsilons = 10.0 ** -rng.uniform(0.5, 30.0, 3), rng.uniform(0.0, 6.0, 3)
    questions = [("epsilon", float(at)) for at in deltas] + [("delta", float(at)) for at in epsilons]
    fresh = {question: ask(hs.account(run, adjacency), question) for question in questions}
    used = hs.account(run, adjacency)
    order = [questions[i] for i in rng.permutation(2 * len(questions)) % len(questions)]
    found = [(question, ask(used, question)) for question in order]
    unpickled = pickle.loads(pickle.dumps(used))  # noqa: S301 - our own
    found += [(question, ask(unpickled, question)) for question in reversed(questions)]
    shared = hs.account(run, adjacency)
    with ThreadPoolExecutor(8) as threads:
        found += zip(order, threads.map(lambda question: ask(shared, question), order), strict=True)
    for kind, values in (("epsilon", deltas), ("delta", epsilons)):
        array = getattr(hs.account(run, adjacency), kind)(values[::-1])
        sides = zip(array.lower[::-1], array.upper[::-1], strict=True)
        found += [((kind, float(at)), (low.hex(), high.hex())) for at, (low, high) in zip(values, sides, strict=True)]
    for question, answer in found:
        assert answer == fresh[question], (run, adjacency, question)


@pytest.mark.parametrize("seed", [0, 4, 5, 6])  # those that answer fast
def test_random_runs_answer_alike_however_asked(seed: int) -> None:
    check(np.random.default_rng([9, seed]), 100.0)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(300))
def test_three_hundred_random_runs_answer_alike_however_asked(seed: int) -> None:
    check(np.random.default_rng([10, seed]), 2000.0)
