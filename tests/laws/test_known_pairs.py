"""What is proved for which mechanism, sampling and direction: one table, complete, known or refused.

A bracket is certified for the dominating pair, so the pair must be one that a theorem gives. Where no theorem does,
the step must refuse; a similar pair would be a wrong number that looks certified. A new mechanism, way of sampling or
direction without an entry here fails.
"""

from __future__ import annotations

import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

import pytest

import hockeystick as hs
from hockeystick import mechanisms
from hockeystick.composition import ADJACENCIES, Grouped, Step
from hockeystick.laws import (
    BinomialPair,
    BoundedRangePair,
    ConcentratedPair,
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    DiscretePair,
    GaussianMixturePair,
    GaussianPair,
    LabelledPair,
    LaplacePair,
    Pair,
    RenyiPair,
    SelectedPair,
    StaircasePair,
    WorstCasePair,
)
from hockeystick.laws.one_step import one_step_delta
from hockeystick.mechanisms import CorrelatedNoise, UserDefinedCurve
from hockeystick.mechanisms.matrix_bins import BinnedMatrix
from hockeystick.numerics.binomial_tail import BinomialTail
from hockeystick.sampling import (
    BallsInBins,
    CutBatches,
    MicroBatches,
    Poisson,
    RandomAllocation,
    Shuffled,
    WithoutReplacement,
)
from hockeystick.sampling.random_allocation import allocated_pairs

DIRECTIONS = ("remove", "add", "substitute", "zero-out", "zero-in")
RATE, BATCH, POPULATION, STEPS = 0.25, 5, 20, 4  # the same rate, exactly


@dataclass(frozen=True)
class Known:
    """A mechanism, the pairs that its own theorem gives it, and that theorem."""

    step: Step
    remove: Pair | None
    substitute: Pair | None
    theorem: str


def three(a: int, b: int, c: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(x, 16) for x in (a, b, c))


P, Q = three(8, 5, 3), three(2, 5, 9)
SHIFTS = "log-concave noise: the largest shift dominates the smaller ones (monotone likelihood ratio)"
MECHANISMS = {
    "Gaussian": Known(
        hs.Gaussian(2.0), GaussianPair(2.0), GaussianPair(2.0, 2.0), "Balle and Wang 2018, Theorem 8: any direction"
    ),
    "GaussianDP": Known(
        hs.GaussianDP(0.5), GaussianPair(1.0, 0.5), GaussianPair(1.0, 0.5), "Dong, Roth and Su 2019: by definition"
    ),
    "CorrelatedNoise": Known(
        CorrelatedNoise(0.5, 0.5), GaussianPair(1.0, 0.5), GaussianPair(1.0, 1.0), "docs/derivations/banded.md, 1"
    ),
    "Laplace": Known(hs.Laplace(2.0), LaplacePair(2.0), LaplacePair(2.0, 2.0), SHIFTS),
    "DiscreteGaussian": Known(
        hs.DiscreteGaussian(2.0), DiscreteGaussianPair(2.0), DiscreteGaussianPair(2.0, 2), SHIFTS
    ),
    "DiscreteLaplace": Known(hs.DiscreteLaplace(2.0), DiscreteLaplacePair(2.0), DiscreteLaplacePair(2.0, 2), SHIFTS),
    "Staircase": Known(
        hs.Staircase(1.0, 0.25),
        StaircasePair(1.0, 0.25),
        StaircasePair(1.0, 0.25, 2),
        "symmetric unimodal noise: the largest shift dominates the smaller ones (proof: mechanisms/staircase.py)",
    ),
    "Binomial": Known(hs.Binomial(9), BinomialPair(9), BinomialPair(9, 0.5, 2), SHIFTS),
    "Binomial, skewed": Known(hs.Binomial(9, 0.25), BinomialPair(9, 0.25), None, SHIFTS + ", of one sign"),
    "RandomizedResponse": Known(
        hs.RandomizedResponse(0.75),
        DiscretePair((0.75, 0.25), (0.25, 0.75)),
        DiscretePair((0.75, 0.25), (0.25, 0.75)),
        "two categories told apart, the others alike (003, section 5)",
    ),
    "ApproximateDP": Known(
        hs.ApproximateDP(1.0, 0.01),
        WorstCasePair(1.0, 0.01),
        WorstCasePair(1.0, 0.01),
        "Kairouz, Oh and Viswanath 2015",
    ),
    "ExponentialMechanism": Known(
        hs.ExponentialMechanism(0.5), BoundedRangePair(0.5), BoundedRangePair(0.5), "docs/derivations/selection.md, 1"
    ),
    "ReportNoisyMax": Known(
        hs.ReportNoisyMax(0.5, "laplace"), WorstCasePair(0.5), WorstCasePair(0.5), "docs/derivations/selection.md, 2"
    ),
    "PermuteAndFlip": Known(
        hs.PermuteAndFlip(0.5), WorstCasePair(0.5), WorstCasePair(0.5), "docs/derivations/selection.md, 2"
    ),
    "AboveThreshold": Known(
        hs.AboveThreshold(8.0, 8.0),
        WorstCasePair(hs.AboveThreshold(8.0, 8.0).epsilon("remove")),
        WorstCasePair(hs.AboveThreshold(8.0, 8.0).epsilon("substitute")),
        "Lyu, Su and Li 2017; docs/derivations/selection.md, 3",
    ),
    "ZeroConcentratedDP": Known(
        hs.ZeroConcentratedDP(0.5), ConcentratedPair(0.5), ConcentratedPair(0.5), "Bun and Steinke 2016: by definition"
    ),
    "RenyiDP": Known(
        hs.RenyiDP((2.0,), (0.5,)), RenyiPair((2.0,), (0.5,)), RenyiPair((2.0,), (0.5,)), "Mironov 2017: by definition"
    ),
    "BestOf": Known(
        hs.select_best(hs.Laplace(2.0) * 3, count=hs.PoissonCount(4.0)),
        SelectedPair(((LaplacePair(2.0), 3),), hs.PoissonCount(4.0)),
        SelectedPair(((LaplacePair(2.0, 2.0), 3),), hs.PoissonCount(4.0)),
        "docs/derivations/selection.md, 5",
    ),
    "ShuffledReports": Known(
        hs.ShuffledReports((three(8, 5, 3), three(2, 5, 9)), 7),
        None,
        hs.ShuffledReports((three(2, 5, 9), three(8, 5, 3)), 7).pair("substitute"),
        "Balle, Bell, Gascon and Nissim 2019, Lemma 5.3; docs/derivations/selection.md, 6",
    ),
    "DiscretePair": Known(hs.DiscretePair(P, Q), DiscretePair(P, Q), None, "stated by the caller"),
    "UserDefined": Known(hs.UserDefined(remove=LaplacePair(2.0)), LaplacePair(2.0), None, "stated by the caller"),
    "UserDefined, substitute": Known(
        hs.UserDefined(remove=LaplacePair(2.0), substitute=LaplacePair(1.0)),
        LaplacePair(2.0),
        LaplacePair(1.0),
        "stated by the caller",
    ),
    "GaussianMixture": Known(
        hs.GaussianMixture(2.0, (0.0, 1.0), probabilities=(0.75, 0.25)),
        GaussianMixturePair(2.0, (0.75, 0.25), (0.0, 1.0), (Fraction(1),), (0.0,)),
        None,
        "Ganesh 2024",
    ),
}

OWN, NO = "the mechanism's own", "refused"
SAMPLED = "003, Theorem 10 (Zhu, Dong and Wang 2022, Theorem 11)"
SUBSTITUTED = "003, Proposition 13: Gaussian noise on Poisson samples"
EITHER_WAY = "docs/derivations/fixed-size.md, section 4: even, log-concave noise (003, Proposition 13, carried on)"
FROM_BOTH = "docs/derivations/fixed-size.md, section 4: from the pairs under remove and under substitute"
JOINED = "003, Theorem 15: both directions joined, an upper bound"
ALLOCATED = "docs/derivations/random-allocation.md, section 1 (Feldman and Shenfeld 2025; Chua et al. 2025)"
LABELLED = "docs/derivations/cut-batches.md, section 1"
DRAWN_TWICE = "docs/derivations/cut-batches.md, section 3: a group's mixture of shifts"
EPOCH = "Chua et al. 2024: a record takes part once, one unsampled step an epoch"

BOTH, ONE_WAY = (OWN, OWN, OWN, OWN, OWN), (OWN, OWN, NO, OWN, OWN)  # with a pair under substitution, or without
POISSON = (SAMPLED, SAMPLED, NO, SAMPLED, SAMPLED)
NOISE = (SAMPLED, SAMPLED, EITHER_WAY, SAMPLED, SAMPLED)
ABOVE = (SAMPLED, SAMPLED, FROM_BOTH, SAMPLED, SAMPLED)
FIXED, NO_FIXED = (SAMPLED, SAMPLED, JOINED, NO, NO), (NO, NO, NO, NO, NO)
EPOCHS, NULL_EPOCHS = (NO, NO, EPOCH, EPOCH, EPOCH), (NO, NO, NO, EPOCH, EPOCH)
ROUND = (ALLOCATED, ALLOCATED, NO, ALLOCATED, ALLOCATED)
CUT, NO_CUT = (LABELLED, LABELLED, NO, NO, NO), (NO, NO, NO, NO, NO)
TWICE, NO_TWICE = (DRAWN_TWICE, DRAWN_TWICE, NO, DRAWN_TWICE, DRAWN_TWICE), (NO, NO, NO, NO, NO)
NOT_OFFERED = None  # sampled already

# mechanism: unsampled, Poisson, fixed size, shuffled, random allocation, fixed bins, cut Poisson, micro-batches;
# each for remove, add, substitute, zero-out, zero-in
TABLE: dict[str, tuple[tuple[str, ...] | None, ...]] = {
    "Gaussian": (BOTH, (SAMPLED, SAMPLED, SUBSTITUTED, SAMPLED, SAMPLED), FIXED, EPOCHS, ROUND, ROUND, CUT, TWICE),
    "GaussianDP": (BOTH, POISSON, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "Laplace": (BOTH, NOISE, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "DiscreteGaussian": (BOTH, NOISE, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "DiscreteLaplace": (BOTH, NOISE, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "Staircase": (BOTH, ABOVE, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "Binomial": (BOTH, NOISE, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "Binomial, skewed": (ONE_WAY, POISSON, NO_FIXED, NULL_EPOCHS, ROUND, ROUND, NO_CUT, NO_TWICE),
    "RandomizedResponse": (BOTH, ABOVE, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "ApproximateDP": (BOTH, POISSON, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "ExponentialMechanism": (BOTH, POISSON, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "ReportNoisyMax": (BOTH, POISSON, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "PermuteAndFlip": (BOTH, POISSON, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "AboveThreshold": (BOTH, POISSON, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "ZeroConcentratedDP": (BOTH, NO_FIXED, NO_FIXED, EPOCHS, NO_CUT, NO_CUT, NO_CUT, NO_TWICE),
    "RenyiDP": (BOTH, NO_FIXED, NO_FIXED, EPOCHS, NO_CUT, NO_CUT, NO_CUT, NO_TWICE),
    "BestOf": (BOTH, *(NOT_OFFERED,) * 7),
    "CorrelatedNoise": (BOTH, *(NOT_OFFERED,) * 7),
    "ShuffledReports": ((NO, NO, OWN, NO, NO), *(NOT_OFFERED,) * 7),
    "DiscretePair": (ONE_WAY, POISSON, NO_FIXED, NULL_EPOCHS, ROUND, ROUND, NO_CUT, NO_TWICE),
    "UserDefined": (ONE_WAY, POISSON, NO_FIXED, NULL_EPOCHS, ROUND, ROUND, NO_CUT, NO_TWICE),
    "UserDefined, substitute": (BOTH, ABOVE, FIXED, EPOCHS, ROUND, ROUND, CUT, NO_TWICE),
    "GaussianMixture": (
        ONE_WAY,
        NOT_OFFERED,
        NOT_OFFERED,
        NOT_OFFERED,
        NOT_OFFERED,
        NOT_OFFERED,
        NOT_OFFERED,
        NOT_OFFERED,
    ),
}

SAMPLINGS: dict[str, tuple[type[Step] | None, Callable[[Any], Step]]] = {
    "unsampled": (None, lambda mechanism: mechanism),
    "poisson": (Poisson, lambda mechanism: mechanism.poisson(RATE)),
    "without_replacement": (
        WithoutReplacement,
        lambda mechanism: mechanism.without_replacement(batch_size=BATCH, population=POPULATION),
    ),
    "shuffled": (Shuffled, lambda mechanism: mechanism.shuffled(batch_size=BATCH, population=POPULATION)),
    "random_allocation": (RandomAllocation, lambda mechanism: mechanism.random_allocation(steps=STEPS)),
    "balls_in_bins": (BallsInBins, lambda mechanism: mechanism.balls_in_bins(bins=STEPS)),
    "cut poisson": (CutBatches, lambda mechanism: mechanism.poisson(RATE, largest_batch=1, population=2)),
    "micro-batches": (MicroBatches, lambda mechanism: mechanism.poisson(RATE, micro_batches=2)),
}
OFFERED_AS = {"cut poisson": "poisson", "micro-batches": "poisson"}

SAMPLED_STEPS = {
    (name, sampling): dict(zip(DIRECTIONS, row, strict=True))
    for name, rows in TABLE.items()
    for sampling, row in zip(SAMPLINGS, rows, strict=True)
    if row is not NOT_OFFERED
}


for found in pkgutil.iter_modules(mechanisms.__path__, "hockeystick.mechanisms."):
    import_module(found.name)  # those that nothing has used yet, too


def concrete(base: type) -> Iterator[type]:
    for below in base.__subclasses__():
        if below.__module__.split(".")[0] == "hockeystick":
            yield from concrete(below)
            if not inspect.isabstract(below):
                yield below


def test_the_table_has_every_step_every_way_of_sampling_and_every_direction() -> None:
    samplers = {kind for kind, _ in SAMPLINGS.values() if kind is not None}
    assert {type(known.step) for known in MECHANISMS.values()} | samplers == set(concrete(Step)) - {
        UserDefinedCurve,  # no pair
        Grouped,  # the pairs of its step: tests/truth/test_groups.py
        BinnedMatrix,  # rounds on either side of it: tests/truth/test_matrix_bins.py
    }
    offered = {name for name in vars(hs.mechanisms.Mechanism) if not name.startswith("_")}
    assert offered == set(SAMPLINGS) - {"unsampled"} - set(OFFERED_AS)
    assert {direction for relation in ADJACENCIES.values() for direction in relation} == set(DIRECTIONS)
    assert set(TABLE) == set(MECHANISMS)
    assert all(known.theorem for known in MECHANISMS.values())


@pytest.mark.parametrize("name", [name for name, rows in TABLE.items() if NOT_OFFERED in rows])
def test_what_is_sampled_already_is_not_sampled_again(name: str) -> None:
    for sampling, row in zip(SAMPLINGS, TABLE[name], strict=True):
        assert (row is NOT_OFFERED) == (
            not (sampling == "unsampled" or hasattr(MECHANISMS[name].step, OFFERED_AS.get(sampling, sampling)))
        )


@pytest.mark.parametrize(("name", "sampling"), SAMPLED_STEPS)
def test_each_entry_is_the_pair_of_its_theorem_or_refused(name: str, sampling: str) -> None:
    for direction, theorem in SAMPLED_STEPS[name, sampling].items():
        check_entry(name, sampling, direction, theorem)


def check_entry(name: str, sampling: str, direction: str, theorem: str) -> None:
    """The pair of the theorem, or a refusal that says what to do instead."""
    known = MECHANISMS[name]
    step = SAMPLINGS[sampling][1](known.step)
    if theorem == NO:
        with pytest.raises(hs.UnknownPairError, match=r"use|state|give"):  # and says what to do instead
            step.pair(direction)  # type: ignore[arg-type]
        return
    pair = step.pair(direction)  # type: ignore[arg-type]
    if theorem == JOINED:
        assert known.substitute is not None
        assert_joined(pair, known.substitute)
        attained = step.attained("substitute")
        assert attained is not None  # an upper bound only: the lower side is another's
        assert len(attained) == (2 if known.step.attained("substitute") is None else 0)
        return
    if theorem in {EITHER_WAY, FROM_BOTH}:  # what they are: tests/truth/test_poisson_substitution.py
        attained = step.attained("substitute")
        shown = 0 if known.step.stated_by_caller else 2
        assert (attained is None or len(attained) == 1) if theorem == EITHER_WAY else len(attained or ()) == shown
        assert pair.is_symmetric
        return
    if theorem == ALLOCATED:
        assert pair == allocated_pairs(known.remove, STEPS, "add" if direction in {"add", "zero-in"} else "remove")[0]
        return
    remove = expected_remove(known, sampling, direction, theorem)
    assert pair == (remove.reversed() if direction in {"add", "zero-in"} else remove) or is_own_reverse(pair, remove)


def expected_remove(known: Known, sampling: str, direction: str, theorem: str) -> Pair:
    """The pair of *remove* (or of *substitute*) that the theorem gives."""
    own = known.substitute if direction == "substitute" else known.remove
    if theorem == SAMPLED:
        base = known.remove if sampling == "poisson" else known.substitute
        assert base is not None
        return base.subsampled(RATE)
    if theorem == LABELLED:  # one other record, drawn with probability 1/4: then each of two is kept half the time
        assert known.substitute is not None
        return LabelledPair(
            known.remove.subsampled(RATE),
            known.substitute.subsampled(math.nextafter(RATE / 2, 1.0)),  # rounded up
            BinomialTail(1, RATE, 1),
        )
    if theorem == DRAWN_TWICE:
        weights = (Fraction(9, 16), Fraction(6, 16), Fraction(1, 16))
        return GaussianMixturePair(2.0, weights, (0.0, 1.0, 2.0), (Fraction(1),), (0.0,))
    if theorem == SUBSTITUTED:
        weights = (Fraction(3, 4), Fraction(1, 4))
        return GaussianMixturePair(2.0, weights, (0.0, 1.0), weights, (0.0, -1.0))
    assert own is not None
    return own


def assert_joined(pair: Pair, base: Pair) -> None:
    """From epsilon 0 on the curve of ((1-g) Q + g P, Q), below it that of (P, (1-g) P + g Q)."""
    above, below = base.subsampled(RATE), base.reversed().subsampled(RATE).reversed()
    for epsilon in (-0.9, -0.3, -0.05, 0.0, 0.05, 0.2, 0.7):
        low, high = one_step_delta(pair, epsilon)
        least, most = one_step_delta(above if epsilon >= 0.0 else below, epsilon)
        assert max(low, least) <= min(high, most)
        assert high - low <= 1e-9


def is_own_reverse(pair: Pair, remove: Pair) -> bool:
    """Symmetric noise: mirror the line, and the two directions are one."""
    symmetric = GaussianPair | LaplacePair | DiscreteGaussianPair | DiscreteLaplacePair | StaircasePair | WorstCasePair
    symmetric |= BoundedRangePair | ConcentratedPair | RenyiPair | SelectedPair
    if isinstance(pair, DiscretePair) and isinstance(remove, DiscretePair):
        outcomes = zip(pair.p, pair.q, strict=True)
        return (
            sorted(outcomes)
            == sorted(zip(remove.q, remove.p, strict=True))
            == sorted(zip(remove.p, remove.q, strict=True))
        )
    return isinstance(pair, symmetric) and pair == remove


@pytest.mark.parametrize(("name", "sampling"), [one for one, found in SAMPLED_STEPS.items() if NO in found.values()])
def test_whatever_is_refused_is_refused_by_every_question(name: str, sampling: str) -> None:
    """No accountant, odometer or filter answers where the step has no pair: the refusal comes before any number."""
    step = SAMPLINGS[sampling][1](MECHANISMS[name].step)
    refused = {direction for direction, theorem in SAMPLED_STEPS[name, sampling].items() if theorem == NO}
    relations = [relation for relation, ways in ADJACENCIES.items() if refused & set(ways)]
    assert relations
    for relation in relations:
        for accountant in (None, hs.accountants.SaddlePoint(), hs.accountants.Moments()):
            with pytest.raises(hs.UnknownPairError):
                hs.account(step * 3, relation, accountant=accountant)  # type: ignore[arg-type]
        odometer = hs.Odometer(1e-5, relation)  # type: ignore[arg-type]
        with pytest.raises(hs.UnknownPairError):
            odometer.step(step)
        assert odometer.steps == 0


@pytest.mark.parametrize("name", TABLE)
def test_full_batches_of_add_and_remove_are_refused_and_full_samples_are_not(name: str) -> None:
    known = MECHANISMS[name]
    if TABLE[name][1] is NOT_OFFERED:
        return
    mechanism: Any = known.step
    for direction in DIRECTIONS:
        unsampled = TABLE[name][0][DIRECTIONS.index(direction)]  # type: ignore[index]
        if unsampled == NO:
            with pytest.raises(hs.UnknownPairError):
                mechanism.poisson(1.0).pair(direction)
        else:
            assert mechanism.poisson(1.0).pair(direction) in {
                mechanism.pair(direction),
                mechanism.pair("remove").reversed(),
            }
    full = mechanism.without_replacement(batch_size=4, population=4)
    for direction in ("remove", "add"):  # the smaller dataset fills no batch
        with pytest.raises(hs.UnknownPairError):
            full.pair(direction)
