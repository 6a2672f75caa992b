"""Sampling schemes: what they refuse, what they say, how the two sides of a bracket are chosen."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified, SaddlePoint, certified
from hockeystick.accountants.attained import AttainedCurve
from hockeystick.app.cli.parsing import Parser
from hockeystick.app.cli.sampler import add_sampler
from hockeystick.app.report.words import not_included, sampling_words
from hockeystick.app.spec import registry
from hockeystick.app.spec.cautions import cautions
from hockeystick.bound import Bound
from hockeystick.composition import Direction, Step
from hockeystick.engines.one_sided.line import OneSidedLine
from hockeystick.exact import exact_delta
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair
from hockeystick.laws.allocated_atoms import AllocatedAtomsPair
from hockeystick.laws.base import Pair
from hockeystick.laws.one_step import one_step_delta
from hockeystick.mechanisms.matrix import CorrelatedNoise
from hockeystick.sampling import (
    SCHEMES,
    BallsInBins,
    CutBatches,
    MicroBatches,
    Poisson,
    RandomAllocation,
    Sampled,
    Shuffled,
    WithoutReplacement,
)


@pytest.mark.parametrize("population", [3, 10])  # the float64 nearest to 1/3 is below it, that of 1/10 above
def test_the_rate_of_fixed_size_batches_is_bracketed_by_float64s(population: int) -> None:
    step = hs.Gaussian(1.0).without_replacement(batch_size=1, population=population)
    upper, attained = step.pair("remove"), step.attained("remove")
    assert attained is not None
    assert len(attained) == 1
    assert Fraction(attained[0].rate) < Fraction(1, population) < Fraction(upper.rate)  # type: ignore[attr-defined]
    assert math.nextafter(attained[0].rate, 1.0) == upper.rate  # type: ignore[attr-defined]


def test_an_exact_rate_needs_no_second_pair_and_no_note() -> None:
    step = hs.Gaussian(1.0).without_replacement(batch_size=1, population=8)
    assert step.attained("remove") is None
    assert step.provenance("remove") == ()
    bound = hs.account(step * 3, "remove").delta(epsilon=0.5)
    assert not any("fixed-size" in note for note in bound.notes)


def test_probability_vectors_keep_any_rate_exactly() -> None:
    step = hs.RandomizedResponse(0.75).without_replacement(batch_size=1, population=3)
    pair = step.pair("remove")
    assert isinstance(pair, DiscretePair)
    assert pair.p == (Fraction(5, 12), Fraction(7, 12))
    assert step.attained("remove") is None


def test_a_full_batch_is_no_sampling_under_substitution_and_impossible_under_add_remove() -> None:
    step = hs.Gaussian(1.0).without_replacement(batch_size=5, population=5)
    assert step.pair("substitute") == GaussianPair(1.0, 2.0)
    assert step.attained("substitute") is None
    with pytest.raises(hs.UnknownPairError, match="no batch of 5"):
        step.pair("remove")


def test_one_shuffled_batch_is_no_sampling() -> None:
    step = hs.Gaussian(1.0).shuffled(batch_size=5, population=5)
    assert step.attained("substitute") is None
    assert step.provenance("substitute") == ()


def test_shuffled_batches_are_never_poisson() -> None:
    shuffled = hs.Gaussian(0.5).shuffled(batch_size=10, population=10_000)
    bound = hs.account(shuffled, "zero-out").epsilon(delta=1e-5)
    poisson = hs.account(hs.Gaussian(0.5).poisson(0.001) * 1000, "zero-out").epsilon(delta=1e-5)
    assert isinstance(bound, hs.Bound)
    assert isinstance(poisson, hs.Bound)
    assert bound.lower > 1.5 * float(poisson.upper)  # even the lower side is far above the Poisson accounting
    assert any("Poisson" in note for note in bound.notes)


def test_other_noise_on_shuffled_batches_has_a_trivial_lower_side_and_says_so() -> None:
    bound = hs.account(hs.Laplace(1.0).shuffled(batch_size=1, population=4) * 2, "zero-out").delta(epsilon=0.5)
    assert isinstance(bound, hs.Bound)
    assert bound.lower == 0.0
    assert bound.upper > 0.0
    assert any("trivial" in note for note in bound.notes)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": 0, "population": 4}, ValueError, "batch_size"),
        ({"batch_size": 5, "population": 4}, ValueError, "at most population"),
        ({"batch_size": 1.5, "population": 4}, TypeError, "batch_size must be an integer"),
        ({"batch_size": True, "population": 4}, TypeError, "batch_size"),
        ({"batch_size": 1, "population": "4"}, TypeError, "population"),
    ],
)
def test_bad_sizes_are_refused_by_name(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    for scheme in (hs.Gaussian(1.0).without_replacement, hs.Gaussian(1.0).shuffled):
        with pytest.raises(error, match=message):
            scheme(**arguments)


def test_shuffled_batches_must_come_out_even() -> None:
    with pytest.raises(ValueError, match="multiple of batch_size"):
        hs.Gaussian(1.0).shuffled(batch_size=3, population=10)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, math.nan, math.inf])
def test_bad_rates_are_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        hs.Gaussian(1.0).poisson(rate)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: hs.RandomizedResponse(1.5), ValueError, "probability"),
        (lambda: hs.RandomizedResponse(Fraction(3, 2)), ValueError, "probability"),
        (lambda: hs.RandomizedResponse(0.75, 1), ValueError, "categories"),
        (lambda: hs.Binomial(0), ValueError, "trials"),
        (lambda: hs.Binomial(10**6), ValueError, "DiscreteGaussian"),
        (lambda: hs.Binomial(10, 1.0), ValueError, "no noise"),
        (lambda: hs.DiscreteGaussian(0.0), ValueError, "sigma"),
        (lambda: hs.DiscreteGaussian(1e9), ValueError, "larger units"),
        (lambda: hs.DiscreteGaussian(1.0, 0.5), TypeError, "sensitivity"),  # type: ignore[arg-type]
        (lambda: hs.DiscreteLaplace(math.nan), ValueError, "NaN"),
        (lambda: hs.ApproximateDP(-1.0), ValueError, "epsilon"),
        (lambda: hs.ApproximateDP(1.0, 1.5), ValueError, "delta"),
        (lambda: hs.GaussianDP(math.inf), ValueError, "mu"),
        (lambda: hs.DiscretePair((0.5, 0.4), (0.5, 0.5)), ValueError, "sum to 1"),
        (lambda: hs.UserDefined("pair"), TypeError, "pair of hockeystick.laws"),  # type: ignore[arg-type]
        (lambda: hs.GaussianMixture(1.0, (-1.0, 0.0), probabilities=(0.5, 0.5)), ValueError, "at least 0"),
        (
            lambda: hs.GaussianMixture.fixed_size_group(1.0, batch_size=3, population=4, size=2),
            ValueError,
            "fill no batch",
        ),
    ],
)
def test_bad_mechanisms_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_steps_are_hashable_and_equal_where_their_parameters_are() -> None:
    steps = [
        Poisson(hs.Gaussian(1.0), 0.5),
        WithoutReplacement(hs.Laplace(1.0), 1, 3),
        Shuffled(hs.Gaussian(2.0), 2, 4),
        hs.DiscretePair([0.5, 0.5], [0.25, 0.75]),  # type: ignore[arg-type]
        hs.GaussianMixture.poisson_group(1.0, rate=0.5, size=2),
        hs.UserDefined(remove=LaplacePair(1.0)),
    ]
    assert len({*steps, *steps}) == len(steps)
    run = hs.compose([(step, 2) for step in steps])
    assert run == hs.compose([(step, 1) for step in reversed(steps)] * 2)
    assert run.total_steps == 12


@final
@dataclass(frozen=True)
class EveryOther(Sampled):
    """A step on every other record, which are the same ones each time."""

    batches: ClassVar[str] = "every-other"
    noun: ClassVar[str] = "every other record"
    manner: ClassVar[str] = "as every other record"
    not_covered: ClassVar[str] = "batches of other records"

    mechanism: Step
    share: float

    @classmethod
    def sentence(cls, unit: str, parameters: Mapping[str, float]) -> str:
        return f"every other {unit}, with share {parameters['share']}"

    def pair(self, direction: Direction) -> Pair:
        return self.mechanism.pair(direction)


def test_a_new_scheme_is_one_class_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    schemes = (*SCHEMES, EveryOther)
    monkeypatch.setattr(registry, "SCHEMES", schemes)
    monkeypatch.setattr("hockeystick.app.spec.cautions.SCHEMES", schemes)
    for cached in (registry.schemes, registry.samplings):
        monkeypatch.setattr(registry, cached.__name__, cached.__wrapped__)
    for module in (
        "spec.entries",
        "spec.cautions",
        "spec.parts",
        "spec.schema",
        "report.words",
        "cli.sampler",
        "cli.compare",
    ):
        for name in ("schemes", "samplings"):
            # by import: `spec.schema` is a function of that name as well
            home = importlib.import_module(f"hockeystick.app.{module}")
            monkeypatch.setattr(home, name, getattr(registry, name), raising=False)
    text = """
    steps = [{ mechanism = "gaussian", noise_multiplier = 2.0, sampling = { scheme = "every-other", share = 0.5 } }]
    guarantee = { delta = 1e-5 }
    circumstances = { batches = "poisson" }
    """
    specification = hs.spec.read(text)
    assert specification.composition == EveryOther(hs.Gaussian(2.0), 0.5) * 1
    assert sampling_words(specification.steps[0].sampling, "user") == "every other user, with share 0.5"
    assert "batches of other records" in not_included(specification)
    assert any(c.broken and "assumes every other record" in c.text for c in cautions(specification))
    assert "every-other" in str(hs.spec.schema())
    parser = Parser()
    add_sampler(parser)
    assert "every-other" in parser.format_help()
    with pytest.raises(hs.spec.SpecificationError, match="share is missing"):
        hs.spec.read(text.replace(", share = 0.5", ""))


def test_a_mixed_run_combines_attained_and_open_steps() -> None:
    """Gaussian steps are attained, fixed-size ones are not: the lower side mixes both."""
    fixed = hs.Gaussian(3.0).without_replacement(batch_size=1, population=8)
    run = fixed * 20 + hs.Gaussian(20.0) * 5 + hs.Laplace(40.0).without_replacement(batch_size=1, population=4) * 3
    curve = hs.account(run, "substitute")
    assert isinstance(curve.directed["substitute"], AttainedCurve)
    bound = curve.delta(epsilon=0.5)
    assert isinstance(bound, hs.Bound)
    assert 0.0 < bound.lower < bound.upper < 1.0
    parts = [
        (fixed.attained("substitute") or ())[0],
        (hs.Laplace(40.0).without_replacement(batch_size=1, population=4).attained("substitute") or ())[0],
    ]
    one_way = Certified().directed(((parts[0], 20), (GaussianPair(20.0, 2.0), 5), (parts[1], 3))).delta(0.5)
    assert isinstance(one_way, hs.Bound)
    assert bound.lower >= one_way.lower  # at least as good as one direction throughout
    assert len(bound.notes) >= 3


@pytest.mark.parametrize("rounding", ["tangents", "connect-the-dots"])
def test_the_lower_side_is_that_of_known_datasets_whatever_the_accountant_leaves_open(rounding: Any) -> None:
    """One-sided lattices: the other side of each dataset's bracket is trivial, and must not be taken for its own."""
    step = hs.Gaussian(3.0).without_replacement(batch_size=1, population=8)
    bound = hs.account(step * 6, "substitute", accountant=hs.accountants.Lattice(0.01, rounding)).delta(epsilon=0.2)
    pair = (step.attained("substitute") or ())[0]
    splits = [((pair, first), (pair.reversed(), 6 - first)) for first in range(1, 6)]
    every = (((pair, 6),), ((pair.reversed(), 6),), *splits)
    assert any(float(bound.lower) <= exact_delta(parts, 0.2, digits=8).upper for parts in every)  # type: ignore[union-attr]


def test_splits_that_are_clearly_behind_are_not_accounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a shuffled epoch: all of them one way show more than any other split, and the estimates tell."""
    asked: list[Any] = []
    engine = certified.choose_engine

    def counted(parts: Any, *rest: Any, **settings: Any) -> Any:
        asked.append(parts)
        return engine(parts, *rest, **settings)

    step = hs.Gaussian(4.0).shuffled(batch_size=1, population=20)
    monkeypatch.setattr(certified, "choose_engine", counted)
    bound = hs.account(step * 7, "substitute").epsilon(delta=1e-6)
    below = [parts for parts in asked if parts[0][0].gaussian_mu is None]
    pair = (step.attained("substitute") or ())[0]
    every = [{pair: first, pair.reversed(): 7 - first} for first in range(8)]
    curves = [Certified().directed(tuple((own, n) for own, n in split.items() if n)) for split in every]
    assert float(bound.lower) == max(float(curve.epsilon(1e-6).lower) for curve in curves)  # type: ignore[union-attr]
    assert len(below) <= 2


def test_known_datasets_that_show_next_to_nothing_are_not_accounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three epochs cost up to 2e-18, and what is known to be shown is 1e-36, or a minute of lattices."""
    run = hs.Gaussian(3.0).shuffled(batch_size=1, population=20) * 3
    monkeypatch.setattr(AttainedCurve, "_curve", None)
    bound = hs.account(run, "zero-out").delta(epsilon=5.0)
    assert bound.lower == 0.0
    assert 1.78e-18 < bound.upper < 1.80e-18
    assert "lower: trivial, the known datasets seem to show next to nothing" in bound.notes


@pytest.mark.parametrize("direction", ["zero-out", "zero-in"])
def test_merged_results_are_asked_for_few_digits(monkeypatch: pytest.MonkeyPatch, direction: Direction) -> None:
    nodes: list[int] = []
    made = OneSidedLine.of

    def counted(*given: Any) -> OneSidedLine:
        line = made(*given)
        nodes.append(line.nodes)
        return line

    monkeypatch.setattr(OneSidedLine, "of", counted)
    (pair,) = hs.Gaussian(1.0).shuffled(batch_size=1, population=50).attained(direction) or ()
    bound: Any = Certified().directed(((pair, 10),)).delta(5.0)
    assert 0.0 < bound.width <= 2e-5 * bound.lower
    assert nodes
    assert max(nodes) < 100_000  # a million for nine digits


def test_both_sides_fall_with_epsilon_and_meet_the_epsilon_they_answer() -> None:
    curve = hs.account(hs.Gaussian(2.0).without_replacement(batch_size=1, population=5) * 12, "substitute")
    epsilons = np.array([0.0, 0.3, 0.8, 2.0])
    bound = curve.delta(epsilon=epsilons)
    assert isinstance(bound, hs.Bound)
    assert (np.diff(np.asarray(bound.lower)) < 0).all()
    assert (np.diff(np.asarray(bound.upper)) < 0).all()
    answer = curve.epsilon(delta=1e-3)
    assert isinstance(answer, hs.Bound)
    at_upper, at_lower = curve.delta(epsilon=answer.upper), curve.delta(epsilon=answer.lower)
    assert isinstance(at_upper, hs.Bound)
    assert isinstance(at_lower, hs.Bound)
    assert at_upper.upper <= 1e-3 * (1 + 2e-3)
    assert at_lower.lower >= 1e-3 * (1 - 2e-3)


def test_an_estimating_accountant_says_that_the_pair_is_an_upper_bound_only() -> None:
    step = hs.Gaussian(2.0).without_replacement(batch_size=1, population=5)
    found = hs.account(step * 30, "substitute", accountant=SaddlePoint()).delta(epsilon=1.0)
    assert not found.certified
    assert any("upper bound only" in note for note in found.notes)


def test_a_pair_that_is_attained_but_for_its_rounding_is_said_to_be() -> None:
    """It was called an upper bound only, and the lower side that of the best of several datasets."""
    curve = hs.account(hs.Laplace(1.0).poisson(0.1) * 30, "substitute")
    attained = "Poisson samples: datasets attain the pair, of which a rate is rounded up above and down below"
    assert curve.epsilon(1e-6).notes == ("lower: that of known datasets", attained)
    estimate = hs.account(hs.Laplace(1.0).poisson(0.1) * 30, "substitute", accountant=SaddlePoint()).epsilon(1e-6)
    assert estimate.notes == ("an estimate of the dominating pair's curve, and so of the upper bound only", attained)
    both = hs.account(hs.Laplace(1.0).poisson(0.1) * 3 + hs.RandomizedResponse(0.75).poisson(0.1), "substitute")
    assert {attained, *both.composition.provenance("substitute")} < set(both.epsilon(1e-3).notes)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (hs.DiscretePair((0.5, 0.5), (0.25, 0.75)), "two vectors, with and without the record, say nothing about"),
        (hs.GaussianDP(1.0), "this is one guarantee, for one of them"),
        (hs.Binomial(20, 0.25), "the noise is skewed"),
    ],
)
def test_a_refused_poisson_sample_under_substitution_says_why(step: Any, said: str) -> None:
    with pytest.raises(hs.UnknownPairError, match=said):
        hs.account(step.poisson(0.1), "substitute")


def test_steps_that_share_attained_pairs_are_counted_together() -> None:
    open_step = hs.Gaussian(3.0).without_replacement(batch_size=1, population=8)
    run = open_step * 2 + hs.Gaussian(1.0) * 3 + hs.GaussianDP(2.0) * 4  # under substitution the same pair
    groups = run.attained("substitute")
    assert groups is not None
    assert sum(count for _, count in groups) == 9
    assert sum(count for pairs, count in groups if pairs == (GaussianPair(1.0, 2.0),)) == 7


def test_a_group_of_one_in_fixed_size_batches_is_the_plain_step() -> None:
    group = hs.GaussianMixture.fixed_size_group(2.0, batch_size=2, population=16, size=1)
    plain = hs.Gaussian(2.0).without_replacement(batch_size=2, population=16)
    for epsilon in (0.0, 0.5, 2.0):
        first, second = (hs.account(step, "remove").delta(epsilon) for step in (group, plain))
        assert max(first.lower, second.lower) <= min(first.upper, second.upper)
        assert first.upper <= 1.01 * first.lower  # type: ignore[operator]


def test_a_group_in_fixed_size_batches_is_that_of_known_records_more_or_less() -> None:
    """Null records push others out of a batch, too: with one other record of value -1 delta(1) is 0.0077 there."""
    group = hs.GaussianMixture.fixed_size_group(1.3, batch_size=1, population=2, size=1)
    for adjacency in ("zero-out", "substitute"):
        with pytest.raises(hs.UnknownPairError, match="group"):
            hs.account(group, adjacency)
    with pytest.raises(hs.UnknownPairError, match="number of records"):
        hs.account(group).group_epsilon(1e-5, size=2)


@pytest.mark.parametrize(
    ("scheme", "parameters"), [(Poisson, (0.5,)), (WithoutReplacement, (2, 4)), (Shuffled, (2, 4))]
)
def test_no_scheme_draws_a_group_as_one(scheme: Any, parameters: tuple[float, ...]) -> None:
    """Its records are drawn one by one: the group of the sampled step is another one."""
    with pytest.raises(ValueError, match="for_group"):
        scheme(hs.Gaussian(1.0).for_group(3), *parameters)


def test_cut_batches_of_noise_that_is_known_between_two_numbers_show_the_smaller() -> None:
    cut = CutBatches(CorrelatedNoise(2.0, 0.25), 0.25, 2, 4)
    shown = Poisson(CorrelatedNoise(0.25, 0.25), 0.25)
    assert 0.0 < hs.account(cut).delta(0.0).lower < hs.account(shown).delta(0.0).upper


def test_no_datasets_are_known_for_a_sample_of_a_batch_of_fixed_size() -> None:
    """Of two records out of four, each dropped or not, delta(0) is 0.1217 at most, where the pair has 0.1357."""
    step = WithoutReplacement(hs.Gaussian(0.6).poisson(0.3), 2, 4)
    for direction in ("add", "remove"):
        bound = hs.account(step, direction).delta(0.0)
        assert bound.lower == 0.0
        assert 0.12168 < bound.upper < 0.1357
    assert "lower: trivial, no datasets are known" in bound.notes


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (hs.Laplace(9.0).shuffled(batch_size=1, population=3), False),
        (hs.Gaussian(9.0).shuffled(batch_size=1, population=3), True),
        (hs.Laplace(9.0).random_allocation(steps=4, selected=2), False),
        (hs.Gaussian(9.0).random_allocation(steps=4, selected=2), True),
        (hs.PermuteAndFlip(1.0).random_allocation(steps=4), False),
        (hs.ApproximateDP(1.0).poisson(0.5, largest_batch=1, population=3), False),
        (hs.Laplace(9.0).poisson(0.5, largest_batch=1, population=3), True),
    ],
)
def test_notes_speak_of_known_datasets_where_there_are_any(step: Sampled, shown: bool) -> None:
    (note,) = step.provenance("zero-out" if isinstance(step, Shuffled) else "remove")
    assert ("the lower bound is that of" in note) == shown


def test_a_scheme_that_leaves_nothing_to_chance_has_the_notes_of_the_mechanism() -> None:
    flip = hs.PermuteAndFlip(1.0)
    for step in (flip.random_allocation(steps=3, selected=3), flip.shuffled(batch_size=4, population=4)):
        assert step.provenance("zero-out") == flip.provenance("zero-out")


def test_rounds_and_fixed_bins_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    from hockeystick.app.cli.program import main

    run = ["dpsgd", "--noise-multiplier", "2", "--steps", "30", "--delta", "1e-5", "--sampling"]
    assert main([*run, "random-allocation", "--round-steps", "10"]) == 0
    assert "each round has 10 steps" in capsys.readouterr().out
    assert main([*run, "balls-in-bins", "--round-steps", "10"]) == 0
    assert "in each of 3 epochs" in capsys.readouterr().out
    for wrong, text in ((["--round-steps", "7"], "whole passes"), ([], "needs either --round-steps")):
        assert main([*run, "random-allocation", *wrong]) != 0
        assert text in capsys.readouterr().err


@pytest.mark.parametrize("direction", ["add", "zero-in", "remove", "zero-out"])
def test_samples_are_made_of_the_pair_that_is_stated_for_their_direction(direction: Direction) -> None:
    remove, add = DiscretePair((0.5, 0.5), (0.25, 0.75)), DiscretePair((0.6, 0.4), (0.4, 0.6))
    substitute = GaussianPair(1.0)
    step = hs.UserDefined(remove=remove, add=add, substitute=substitute)
    for whole in (step.poisson(1.0), step.random_allocation(steps=1), step.poisson(1.0, micro_batches=1)):
        assert whole.pair(direction) == step.pair(direction)
    own = add.reversed() if direction in {"add", "zero-in"} else remove
    assert step.poisson(0.5).pair(direction) == own.subsampled(0.5).under(direction)
    assert step.random_allocation(steps=3).pair(direction) == AllocatedAtomsPair(own, 3).under(direction)
    if direction in {"add", "remove"}:
        cut = hs.account(step.poisson(0.5, largest_batch=6, population=10), direction).delta(0.0)
        often = one_step_delta(step.poisson(0.5).pair(direction), 0.0)[0]
        rare = one_step_delta(substitute.subsampled(0.5).under(direction), 0.0)[1]
        assert often <= cut.upper <= rare


@pytest.mark.parametrize("direction", ["add", "zero-in", "remove", "zero-out"])
def test_samples_of_samples_are_made_of_the_pair_that_is_stated_for_their_direction(direction: Direction) -> None:
    remove, add = LaplacePair(2.0), LaplacePair(0.5)
    stated = hs.UserDefined(remove, add)
    own = hs.UserDefined(add.reversed() if direction in {"add", "zero-in"} else remove)
    samples: tuple[Callable[[hs.UserDefined], Step], ...] = (
        lambda step: Poisson(step.poisson(0.5), 0.25),
        lambda step: Poisson(step.random_allocation(steps=3), 0.25),
        lambda step: RandomAllocation(step.poisson(0.5), 3),
        lambda step: BallsInBins(step.poisson(0.5), 3),
        lambda step: MicroBatches(step.poisson(0.5), 0.25, 1),
        lambda step: Poisson(Poisson(step.poisson(0.5), 0.5), 0.25),
    )
    for sample in samples:
        assert sample(stated).pair(direction) == sample(own).pair(direction)
        assert sample(stated).attained(direction) == sample(own).attained(direction)


@pytest.mark.parametrize("direction", ["substitute", "remove", "add"])
@pytest.mark.parametrize("steps", [1, 3, 30])
@pytest.mark.parametrize(
    ("q", "attained"),
    [((0.3125, 0.5, 0.1875), True), ((0.3125, 0.1875, 0.5), False), ((0.25, 0.75, 0.0), False)],
)
def test_no_datasets_attain_a_pair_for_an_exchange_that_is_not_symmetric(
    q: tuple[float, ...], attained: bool, steps: int, direction: Direction
) -> None:
    pair = DiscretePair((0.5, 0.3125, 0.1875), q)
    step = hs.UserDefined(remove=pair, substitute=pair).without_replacement(batch_size=2, population=10)
    curve = hs.account(step * steps, direction)
    for bound in (curve.delta(0.0), curve.delta(0.05), curve.epsilon(1e-6)):
        assert isinstance(bound, Bound)
        assert (bound.lower > 0.0) == attained
        assert bound.upper >= bound.lower
    assert attained == all("not known to be symmetric" not in note for note in curve.delta(0.05).notes)
    assert curve.delta(0.05).upper >= one_step_delta(step.pair(direction), 0.05)[0]
