"""Results and curves survive pickling and copying, and answer alike from any thread."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick import mechanisms
from hockeystick.accountants import Contour, Fourier, Lattice, Moments, SaddlePoint
from hockeystick.composition import ADJACENCIES, Step
from hockeystick.errors import ContradictionError
from hockeystick.laws import DiscretePair
from hockeystick.mechanisms import CorrelatedNoise

STEPS: dict[str, Step] = {
    "ApproximateDP": hs.ApproximateDP(1.0, 1e-6),
    "Binomial": hs.Binomial(100),
    "CorrelatedNoise": CorrelatedNoise(0.5, 0.4),
    "DiscreteGaussian": hs.DiscreteGaussian(2.0),
    "DiscreteLaplace": hs.DiscreteLaplace(2.0),
    "DiscretePair": hs.DiscretePair((Fraction(1, 3), Fraction(2, 3)), (Fraction(2, 3), Fraction(1, 3))),
    "Gaussian": hs.Gaussian(1.0),
    "GaussianDP": hs.GaussianDP(0.5),
    "GaussianMixture": hs.GaussianMixture.poisson_group(1.0, rate=0.01, size=3),
    "Laplace": hs.Laplace(2.0),
    "RandomizedResponse": hs.RandomizedResponse(0.75),
    "BestOf": hs.select_best(hs.Gaussian(2.0), count=hs.NegativeBinomialCount(0.5)),
    "ShuffledReports": hs.ShuffledReports(((0.75, 0.25), (0.25, 0.75)), 30),
    "AboveThreshold": hs.AboveThreshold(4.0, 8.0),
    "ExponentialMechanism": hs.ExponentialMechanism(0.5),
    "PermuteAndFlip": hs.PermuteAndFlip(0.5),
    "RenyiDP": hs.RenyiDP((2.0, 8.0), (0.1, 0.4)),
    "ReportNoisyMax": hs.ReportNoisyMax(0.5, "laplace"),
    "ZeroConcentratedDP": hs.ZeroConcentratedDP(0.125),
    "Staircase": hs.Staircase(0.5),
    "sampled Gaussian": hs.Gaussian(1.0).poisson(0.1),
    "sampled Laplace": hs.Laplace(2.0).poisson(0.1),
    "sampled DiscreteLaplace": hs.DiscreteLaplace(2.0).poisson(0.1),
    "fixed size": hs.Gaussian(2.0).without_replacement(batch_size=1, population=3),
    "cut Poisson": hs.Gaussian(2.0).poisson(0.25, largest_batch=2, population=6),
    "micro-batches": hs.Gaussian(2.0).poisson(0.1, micro_batches=2),
    "shuffled": hs.Gaussian(1.0).shuffled(batch_size=2, population=4),
}
COPIES: list[Callable[[Any], Any]] = [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy]  # noqa: S301


def same(one: hs.Bound | hs.Estimate, other: hs.Bound | hs.Estimate) -> bool:
    """Bit for bit, whatever was said beside the numbers included."""
    return repr(one) == repr(other)


def test_every_mechanism_is_tried() -> None:
    known = {name for name in mechanisms.__all__ if getattr(getattr(mechanisms, name), "__name__", "") == name}
    functions = {
        "binned_matrix_mechanism",
        "compose_arrays",
        "cyclic_matrix_mechanism",
        "matrix_mechanism",
        "select_best",
        "strategy_sensitivity",
    }
    assert known - set(STEPS) - functions == {
        "Mechanism",
        "UserDefined",
        "UserDefinedCurve",
    }  # holds the caller's functions, which pickle as the caller made them


UNKNOWN = {  # no dominating pair is proved
    ("ShuffledReports", "add-remove"),
    ("ShuffledReports", "zero-out"),
    ("DiscretePair", "substitute"),
    ("GaussianMixture", "substitute"),
    ("fixed size", "zero-out"),
    ("shuffled", "add-remove"),
    ("cut Poisson", "substitute"),
    ("cut Poisson", "zero-out"),
    ("micro-batches", "substitute"),
}


ASKED = [
    *((name, adjacency) for name in STEPS for adjacency in ("add-remove", "substitute")),
    *((name, "zero-out") for name in ("Gaussian", "sampled Laplace")),  # the others have the pairs of "remove"
    *((name, adjacency) for name, adjacency in sorted(UNKNOWN) if adjacency == "zero-out"),
]


@pytest.mark.parametrize(("name", "adjacency"), ASKED)
def test_a_curve_that_was_copied_gives_the_same_answers(name: str, adjacency: str) -> None:
    assert adjacency in ADJACENCIES
    run = STEPS[name] * (1 if name in {"BestOf", "ExponentialMechanism", "ShuffledReports", "shuffled"} else 3)
    if (name, adjacency) in UNKNOWN:
        with pytest.raises(hs.UnknownPairError):
            hs.account(run, adjacency)
        return
    curve = hs.account(run, adjacency, tolerance=0.1)
    fresh = pickle.dumps(curve)
    answer = curve.delta([0.2, 0.4])
    for copied in (pickle.loads(fresh), copy.deepcopy(curve)):  # noqa: S301 - our own
        assert (copied.composition, copied.adjacency) == (curve.composition, adjacency)
        assert repr(copied.accountant) == repr(curve.accountant)
        assert same(copied.delta([0.2, 0.4]), answer)


@pytest.mark.parametrize("accountant", [Contour(), Lattice(1e-3), Fourier(1e-3, 4.0), Moments(), SaddlePoint()])
def test_a_curve_of_any_accountant_can_be_copied(accountant: Any) -> None:
    stated = hs.UserDefined(DiscretePair((0.25, 0.75), (0.5, 0.5)))
    curve = hs.account(hs.Gaussian(2.0).poisson(0.1) * 5 + stated, "remove", accountant=accountant)
    answer = curve.delta(0.5)
    for duplicate in COPIES:
        assert same(duplicate(curve).delta(0.5), answer)


def test_results_can_be_copied() -> None:
    curve = hs.account(hs.Gaussian(2.0).poisson(0.1) * 5)
    bound = curve.delta([0.5, 1.0])
    estimate = hs.account(hs.Gaussian(2.0), accountant=SaddlePoint()).delta(0.5)
    found = hs.calibrate(hs.Gaussian, epsilon=1.0, delta=1e-5)
    for duplicate in COPIES:
        assert same(duplicate(bound), bound)
        assert dict(duplicate(bound).errors) == dict(bound.errors)  # type: ignore[union-attr]
        assert not duplicate(bound).upper.flags.writeable
        assert same(duplicate(estimate), estimate)
        assert repr(duplicate(found)).partition("curve=")[0] == repr(found).partition("curve=")[0]


def test_an_unreachable_target_can_be_copied() -> None:
    with pytest.raises(hs.UnreachableTargetError) as caught:
        hs.calibrate(hs.Gaussian, epsilon=1e-3, delta=1e-9, within=(0.1, 1.0))
    for duplicate in COPIES:
        assert str(duplicate(caught.value)) == str(caught.value)
        assert duplicate(caught.value).value == caught.value.value
        assert same(duplicate(caught.value).bound, caught.value.bound)


def test_a_contradiction_can_be_copied() -> None:
    error = ContradictionError("both", (hs.Bound(0.0, 1.0, "one"), hs.Bound(2.0, 3.0, "other")))
    for duplicate in COPIES:
        assert str(duplicate(error)) == "both"
        assert repr(duplicate(error).answers) == repr(error.answers)


def test_a_curve_may_be_asked_from_eight_threads_at_once() -> None:
    epsilons = [0.2 * k for k in range(8)]
    run = hs.Gaussian(1.5).poisson(0.1) * 20 + hs.Laplace(3.0) * 2
    alone = {epsilon: hs.account(run).delta(epsilon) for epsilon in epsilons}
    shared = hs.account(run)
    asked = [*epsilons, *reversed(epsilons)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(shared.delta, asked))
    for epsilon, answer in zip(asked, answers, strict=True):
        assert same(answer, alone[epsilon])
