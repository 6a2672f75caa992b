"""Which engine's theorem covers which pair: one table, complete; where none does, the engine refuses by name."""

from __future__ import annotations

import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib import import_module
from typing import Any

import pytest

import hockeystick as hs
from hockeystick import laws
from hockeystick.accountants import Certified, Contour
from hockeystick.bound import Bound
from hockeystick.composition import Composition, Direction, Step
from hockeystick.exact import exact_delta
from hockeystick.laws import (
    BinomialPair,
    BoundedRangePair,
    ConcentratedPair,
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    DiscretePair,
    GaussianMixturePair,
    GaussianPair,
    LaplacePair,
    Pair,
    RenyiPair,
    SelectedPair,
    StaircasePair,
    SubsampledPair,
    WorstCasePair,
)
from hockeystick.laws.blanket import CountedReports
from hockeystick.numerics import binomial_tail
from tests.stated_pairs import stated_gaussian


class Stated(Step):
    """A step of one pair, whatever the direction."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    def pair(self, direction: Direction) -> Pair:
        return self._pair


OWN = stated_gaussian(0.5)
HALF = Fraction(1, 2)
JOINED = hs.Gaussian(2.0).without_replacement(batch_size=1, population=4).pair("substitute")
CUT = hs.Gaussian(2.0).poisson(0.25, largest_batch=2, population=6).pair("remove")
ROUND = hs.Gaussian(2.0).random_allocation(steps=4)
LARGEST = (hs.Gaussian(2.0).shuffled(batch_size=1, population=4).attained("zero-out") or ())[0]
BLANKET = hs.RandomizedResponse(0.75).shuffled_reports(people=20).pair("substitute")
KNOWN, ROUNDED, REFUSED = "known", "known to fewer digits", "refused"
# a pair, and whether the contour and the exact curve have a proved transform of it
PAIRS: dict[str, tuple[Pair, str, str]] = {
    "gaussian": (GaussianPair(2.0), KNOWN, KNOWN),
    "laplace": (LaplacePair(2.0), KNOWN, KNOWN),
    "discrete": (DiscretePair((0.75, 0.25), (0.25, 0.75)), KNOWN, KNOWN),
    "worst case": (WorstCasePair(0.5, 0.01), KNOWN, KNOWN),
    "discrete laplace": (DiscreteLaplacePair(2.0), KNOWN, KNOWN),
    "bounded range": (BoundedRangePair(0.5), KNOWN, REFUSED),
    "concentrated": (ConcentratedPair(0.1), REFUSED, REFUSED),
    "renyi": (RenyiPair((2.0,), (0.1,)), REFUSED, REFUSED),
    "best of many": (SelectedPair(((LaplacePair(2.0), 3),), hs.PoissonCount(4.0)), REFUSED, REFUSED),
    "shuffled reports": (BLANKET, ROUNDED, REFUSED),
    "counted reports": (CountedReports(40, Fraction(3, 4), Fraction(1, 4)), KNOWN, REFUSED),
    "staircase": (StaircasePair(0.5, 0.25), KNOWN, KNOWN),
    "discrete gaussian": (DiscreteGaussianPair(2.0), KNOWN, REFUSED),
    "mixture": (GaussianMixturePair(2.0, (HALF, HALF), (0.0, 1.0), (1,), (0.0,)), KNOWN, KNOWN),
    "sampled gaussian": (SubsampledPair(GaussianPair(2.0), 0.25), KNOWN, KNOWN),
    "sampled gaussian, reversed": (SubsampledPair(GaussianPair(2.0), 0.25).reversed(), KNOWN, KNOWN),
    "sampled laplace": (SubsampledPair(LaplacePair(2.0), 0.25), KNOWN, KNOWN),
    "sampled discrete gaussian": (SubsampledPair(DiscreteGaussianPair(2.0), 0.25), KNOWN, REFUSED),
    "sampled worst case": (SubsampledPair(WorstCasePair(0.5, 0.01), 0.25), KNOWN, KNOWN),
    "rates whose product is no float": (
        SubsampledPair(SubsampledPair(GaussianPair(2.0), 0.1), 0.3),
        REFUSED,
        KNOWN,
    ),
    "binomial": (BinomialPair(20), KNOWN, KNOWN),
    "joined": (JOINED, KNOWN, REFUSED),
    "joined, of a sample": (SubsampledPair(GaussianPair(2.0), 0.25).joined(HALF), REFUSED, REFUSED),
    "not merged": (hs.Laplace(2.0).poisson(0.25).pair("substitute"), KNOWN, REFUSED),
    "not merged, of integers": (hs.DiscreteLaplace(2.0).poisson(0.25).pair("substitute"), KNOWN, KNOWN),
    "binomial, either way": (hs.Binomial(20).poisson(0.25).pair("substitute"), KNOWN, KNOWN),
    "discrete gaussian, either way": (hs.DiscreteGaussian(2.0).poisson(0.25).pair("substitute"), KNOWN, REFUSED),
    "labelled mixture": (CUT, KNOWN, REFUSED),
    "random allocation, above": (ROUND.pair("remove"), KNOWN, REFUSED),
    "random allocation, below": ((ROUND.attained("remove") or ())[0], KNOWN, REFUSED),
    "random allocation of few outcomes": (
        hs.RandomizedResponse(0.75).random_allocation(steps=3).pair("remove"),
        KNOWN,
        REFUSED,
    ),
    "largest of several": (LARGEST, KNOWN, REFUSED),
    "stated by its density": (OWN, REFUSED, REFUSED),
}


for found in pkgutil.iter_modules(laws.__path__, "hockeystick.laws."):
    import_module(found.name)  # those that nothing has used yet, too


def concrete(base: type) -> Iterator[type]:
    for below in base.__subclasses__():
        if below.__module__.split(".")[0] == "hockeystick":
            yield from concrete(below)
            if not inspect.isabstract(below):
                yield below


def test_the_table_has_every_pair() -> None:
    assert {type(pair) for pair, _, _ in PAIRS.values()} == set(concrete(Pair))


@pytest.mark.parametrize("name", PAIRS)
def test_the_contour_answers_for_the_pairs_it_is_proved_for_and_no_others(name: str) -> None:
    pair, contour, _ = PAIRS[name]
    if contour == REFUSED:
        with pytest.raises(hs.UnknownPairError, match=r"certified|float"):
            hs.account(Stated(pair) * 400, "remove", accountant=Contour()).delta(1.0)
        return
    for accountant in (Contour(1e-3), Contour(1e-6) if contour == ROUNDED else Contour()):
        bound = hs.account(Stated(pair) * 400, "remove", accountant=accountant).delta(1.0)
        assert isinstance(bound, Bound)
        assert bound.certified
        assert float(bound.width) <= accountant.tolerance * float(bound.lower)


@pytest.mark.parametrize("name", PAIRS)
def test_the_exact_curve_answers_for_the_pairs_it_is_proved_for_and_no_others(name: str) -> None:
    pair, _, exact = PAIRS[name]
    if exact == REFUSED:
        with pytest.raises(hs.UnknownPairError, match="no exact transform"):
            exact_delta([(pair, 2)], 0.1, digits=4)
    else:
        # of so many atoms the sum on no lattice decays too slowly
        steps = 1 if name.startswith("binomial") else 400
        assert exact_delta([(pair, steps)], 0.5, digits=4).low > 0


@pytest.mark.parametrize("name", PAIRS)
def test_the_default_brackets_every_pair(name: str) -> None:
    """What the contour refuses, the lattice does: the bracket meets that of the lattice alone.

    A pair known by its moments alone has the upper side that these give, and no window for a lattice; of the best of
    many runs the pair is an upper side, too.
    """
    pair, _, _ = PAIRS[name]
    if pair.is_known_by_moments_alone or pair.selection is not None:
        told = hs.account(Stated(pair) * (30 if pair.selection is None else 2), "remove").delta(5.0)
        assert isinstance(told, Bound)
        assert 0.0 == told.lower < told.upper < 1.0
        return
    first, second = (
        hs.account(Stated(pair) * 30, "remove", accountant=accountant).delta(0.5)
        for accountant in (Certified(1e-2), Certified(1e-2, engine="lattice"))
    )
    assert isinstance(first, Bound)
    assert isinstance(second, Bound)
    assert max(float(first.lower), float(second.lower)) <= min(float(first.upper), float(second.upper))


RARE = hs.Gaussian(1.0).poisson(0.01)
REFUSALS: list[tuple[Callable[[], object], type[Exception], str]] = [
    # the tolerance is not met, or the proof has no room
    (lambda: hs.account(RARE * (2**40 + 1)).epsilon(1e-5), hs.PrecisionError, "2^40"),
    (lambda: hs.account(RARE * (2**40 + 1), accountant=Contour()).epsilon(1e-5), hs.UnknownPairError, "2^40"),
    (lambda: hs.account(RARE, accountant=Contour()).delta(1.0), hs.PrecisionError, "too slowly|nodes"),
    (lambda: hs.account(hs.Laplace(10.0) * 20, accountant=Contour()).delta(0.3), hs.PrecisionError, "too slowly"),
    (lambda: hs.account(hs.Gaussian(1e-8).poisson(0.01) * 10).epsilon(1e-5), hs.PrecisionError, "more noise"),
    # what no theorem gives a mu
    (lambda: gaussian_filter(RARE), hs.UnknownPairError, "RenyiFilter"),
    (lambda: gaussian_filter(hs.ApproximateDP(0.1, 1e-9)), hs.UnknownPairError, "RenyiFilter"),
    (lambda: gaussian_filter(hs.DiscreteGaussian(2.0)), hs.UnknownPairError, "RenyiFilter"),
    # a target that no value meets
    (
        lambda: hs.calibrate(lambda s: hs.ApproximateDP(s, 0.1) * 1, epsilon=1.0, delta=1e-6),
        hs.errors.HockeystickError,
        "meets epsilon",
    ),
    # the door
    (lambda: hs.account(RARE).epsilon(math.nan), ValueError, "NaN"),
    (lambda: hs.account(RARE).delta(-1e-300), ValueError, "at least 0"),
    (lambda: hs.account(RARE, "anything"), ValueError, "add-remove"),
    (lambda: Composition(()), ValueError, "at least one"),
    (lambda: hs.Gaussian(1.0) * (10**100 + 1), ValueError, "10^100"),
    (lambda: hs.DiscretePair((0.5, 0.5), (0.5, 0.5 + 1e-8)), ValueError, "sum to 1"),
    (lambda: hs.GaussianMixture(1.0, (0.0, 1.0), probabilities=(0.5, 0.6)), ValueError, "sum to 1"),
    (lambda: hs.ApproximateDP(1.0, 1.0 + 1e-15), ValueError, "delta"),
    (lambda: hs.Odometer(1.0), ValueError, "delta"),
    (lambda: hs.matrix_mechanism([[1e-320]], 1.0), ValueError, "sensitivity over noise"),
    (lambda: hs.matrix_mechanism([[1e300]], 1e-300), ValueError, "beyond float64"),
    (lambda: hs.audit.one_run(10**12, 10**6 + 1, correct=1), ValueError, "at most 1000000"),
    (lambda: hs.audit.ManyRuns(attacks=(1, 2)), TypeError, "counts or scores"),  # type: ignore[arg-type]
    (lambda: hs.GaussianDP(1.7e-174), ValueError, "mu must be between"),
    # samples that are cut, or drawn apart
    (lambda: cut(0.01, largest_batch=0, population=9), ValueError, "largest_batch"),
    (lambda: cut(0.01, largest_batch=10, population=9), ValueError, "at most population"),
    (lambda: cut(1.0, largest_batch=8, population=9), ValueError, "without_replacement"),
    (lambda: cut(0.0, largest_batch=8, population=9), ValueError, "rate"),
    (lambda: cut(0.01, largest_batch=8), TypeError, "needs population"),
    (lambda: cut(0.01, population=8), TypeError, "give either rate"),
    (lambda: cut(0.01, largest_batch=8, population=9, micro_batches=2), ValueError, "exclude each other"),
    (lambda: cut(0.01, micro_batches=0), ValueError, "micro_batches"),
    (lambda: cut(0.01, micro_batches=257), ValueError, "at most 256"),
    (lambda: cut(0.01, micro_batches=2.5), TypeError, "micro_batches"),
]


def cut(rate: float, **arguments: Any) -> Step:
    step: Step = hs.Gaussian(1.0).poisson(rate, **arguments)
    return step


def gaussian_filter(step: Step) -> None:
    hs.filters.GaussianDPFilter.for_budget(epsilon=1.0, delta=1e-5).step(step)


@pytest.mark.parametrize(("call", "error", "says"), REFUSALS)
def test_what_is_not_proved_is_refused(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error) as refusal:
        call()
    assert any(part in str(refusal.value) for part in says.split("|"))


def test_a_pair_of_many_numbers_is_not_named_at_full_length() -> None:
    with pytest.raises(hs.PrecisionError, match="one step of GaussianMixturePair") as refusal:
        hs.account(hs.Gaussian(0.01).poisson(0.3, micro_batches=256) * 10).epsilon(1e-6)
    assert len(str(refusal.value)) < 500


def test_a_cut_batch_of_next_to_no_record_has_no_lower_side() -> None:
    """A record that is kept less often than the least rate: no refusal of a rate that nobody gave."""
    bound = hs.account(cut(1e-300, largest_batch=1, population=10) * 10).epsilon(1e-6)
    assert (bound.lower, bound.upper) == (0.0, 0.0)


def test_a_largest_batch_too_far_from_the_expected_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binomial_tail, "_MOST_TERMS", 20_000)
    with pytest.raises(hs.PrecisionError, match="more than 20000 terms: the largest batch is too far"):
        cut(0.001, largest_batch=9 * 10**9, population=10**10).pair("remove")


@pytest.mark.parametrize(
    "step", [hs.ExponentialMechanism(0.5), hs.ReportNoisyMax(0.5, "laplace"), hs.PermuteAndFlip(0.5)]
)
def test_a_round_of_what_only_dominates_claims_no_lower_side(step: Any) -> None:
    for run in (step.random_allocation(steps=3), step.balls_in_bins(bins=3)):
        assert run.attained("remove") == run.attained("add") == ()
        assert hs.account(run).delta(0.1).lower == 0.0


def test_a_round_of_what_only_moments_are_known_of_is_refused() -> None:
    for run in (
        hs.ZeroConcentratedDP(0.1).random_allocation(steps=3),
        hs.RenyiDP((2.0,), (0.1,)).balls_in_bins(bins=3),
    ):
        with pytest.raises(hs.UnknownPairError, match="only moments are known"):
            hs.account(run)
