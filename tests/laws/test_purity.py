"""The same question gets the same bits: whatever was asked before, from any thread, alone or in an array, unpickled.

And in whatever order the steps are written.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import (
    PRV,
    Accountant,
    Contour,
    Fourier,
    GaussianLimit,
    Lattice,
    Moments,
    MonteCarlo,
    SaddlePoint,
)
from hockeystick.accountants.lattice import Rounding
from hockeystick.exact import Enclosure, evaluate, exact_delta, exact_epsilon
from tests.random_runs import random_run

Question = tuple[str, float]


def bits(bound: hs.Bound) -> tuple[str, str]:
    return float(bound.lower).hex(), float(bound.upper).hex()


def ask(curve: hs.PrivacyCurve, question: Question) -> tuple[str, str]:
    kind, at = question
    return bits(getattr(curve, kind)(at))


def check(rng: np.random.Generator, most_steps: float, *, slow: bool = False) -> None:
    run, adjacency = random_run(rng, most_steps, slow=slow)
    deltas, epsilons = 10.0 ** -rng.uniform(0.5, 30.0, 3), rng.uniform(0.0, 6.0, 3)
    questions = [("epsilon", float(at)) for at in deltas] + [("delta", float(at)) for at in epsilons]
    fresh = {question: ask(hs.account(run, adjacency), question) for question in questions}
    used = hs.account(run, adjacency)
    order = [questions[i] for i in rng.permutation(2 * len(questions)) % len(questions)]
    found = [(question, ask(used, question)) for question in order]
    unpickled = pickle.loads(pickle.dumps(used))  # noqa: S301 - our own
    found += [(question, ask(unpickled, question)) for question in reversed(questions)]
    turned = hs.account(hs.compose(run.steps[::-1]), adjacency)
    found += [(question, ask(turned, question)) for question in questions]
    shared = hs.account(run, adjacency)
    with ThreadPoolExecutor(8) as threads:
        found += zip(order, threads.map(lambda question: ask(shared, question), order), strict=True)
    for kind, values in (("epsilon", deltas), ("delta", epsilons)):
        array = getattr(hs.account(run, adjacency), kind)(values[::-1])
        sides = zip(array.lower[::-1], array.upper[::-1], strict=True)
        found += [((kind, float(at)), (low.hex(), high.hex())) for at, (low, high) in zip(values, sides, strict=True)]
    for question, answer in found:
        assert answer == fresh[question], (run, adjacency, question)


@pytest.mark.parametrize("seed", [6, 12, 16, 19])  # those that answer fast
def test_random_runs_answer_alike_however_asked(seed: int) -> None:
    check(np.random.default_rng([9, seed]), 100.0)


PUBLISHED = [
    *(Lattice(0.01, rounding=rounding) for rounding in get_args(Rounding)),
    Fourier(1e-3, 10.0),
    PRV(0.05, 1e-9),
    SaddlePoint(),
    Moments(),
    GaussianLimit(),
    Contour(),
    MonteCarlo(1000, seed=1),
]


@pytest.mark.parametrize("accountant", PUBLISHED, ids=str)
def test_published_accountants_answer_alike_whatever_was_asked_before(accountant: Accountant) -> None:
    """Of questions so near one another that one composition serves them, and of others that drive it out."""
    run = hs.Gaussian(1.0) * 3 + hs.Laplace(3.0)
    questions = [("delta", 0.0), ("delta", 0.1), ("epsilon", 0.15), ("epsilon", 0.1), ("delta", 6.0)]
    used = hs.account(run, "remove", accountant=accountant)
    fresh = [getattr(hs.account(run, "remove", accountant=accountant), kind)(at) for kind, at in questions]
    asked = [*zip(questions, fresh, strict=True)]
    for question, alone in [*asked, *asked[::-1]]:
        kind, at = question
        again = getattr(used, kind)(at)
        assert type(again) is type(alone)
        assert list(map(str, again.sides)) == list(map(str, alone.sides)), question


@pytest.mark.parametrize(
    "run",
    [hs.Gaussian(1.0).poisson(0.01) * 500, hs.Gaussian(2.0).random_allocation(steps=10) * 1],
    ids=["line", "allocation"],
)
def test_exact_numbers_have_the_same_digits_whatever_was_asked_before(run: hs.Composition) -> None:
    parts = [(step.pair("remove"), count) for step, count in run.steps]
    questions = [("delta", 0.5), ("delta", 0.52), ("delta", 0.6), ("epsilon", 1e-4)]

    def digits(question: Question) -> Enclosure:
        kind, at = question
        return (exact_delta if kind == "delta" else exact_epsilon)(parts, at, digits=16)

    fresh = {}
    for question in questions:
        evaluate._curve.cache_clear()
        fresh[question] = digits(question)
    backwards = questions[::-1]
    assert [digits(question) for question in backwards] == [fresh[question] for question in backwards]
    evaluate._curve.cache_clear()
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(digits, questions)) == [fresh[question] for question in questions]


STEPS = (hs.Gaussian(1.0).poisson(0.01) * 300, hs.Laplace(2.0) * 2, hs.DiscreteLaplace(3.0) * 4)
BATCHES = (
    hs.Gaussian(2.0).without_replacement(batch_size=50, population=500) * 3,
    hs.Gaussian(4.0).without_replacement(batch_size=20, population=500) * 5,
    hs.RandomizedResponse() * 2,
)


@pytest.mark.parametrize(
    ("steps", "adjacency"),
    [(STEPS, "add-remove"), (STEPS[1:], "add-remove"), (BATCHES, "substitute")],
    ids=["contour", "lattice", "known datasets"],
)
def test_compositions_that_are_equal_answer_alike(steps: tuple[hs.Composition, ...], adjacency: str) -> None:
    one, other = hs.compose(steps), hs.compose(steps[::-1])
    assert one == other
    for question in (("epsilon", 1e-6), ("delta", 0.5)):
        assert ask(hs.account(one, adjacency), question) == ask(hs.account(other, adjacency), question)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(300))
def test_three_hundred_random_runs_answer_alike_however_asked(seed: int) -> None:
    check(np.random.default_rng([10, seed]), 2000.0, slow=True)
