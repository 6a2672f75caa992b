"""Lists whose outcomes are merged while they are built: the truth lies between both sides, however few buckets are."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.engines.enumeration import merging, outcomes
from hockeystick.engines.enumeration.buckets import Asked, Buckets, Weights, about_epsilons
from hockeystick.engines.enumeration.curve import EnumeratedCurve
from hockeystick.engines.enumeration.heaviest import HeaviestOutcomes
from hockeystick.engines.enumeration.merging import Merging
from hockeystick.engines.enumeration.outcomes import Omission, Outcomes, TooManyOutcomesError
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Pair
from hockeystick.laws.loss_sum import PairSum

Parts = list[tuple[hs.DiscretePair, int]]
BUCKET_CODE = sys.modules[Buckets.__module__]


@pytest.fixture
def every_step_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few outcomes, too, are listed in halves, and each step after the first is merged."""
    monkeypatch.setattr(sys.modules[EnumeratedCurve.__module__], "_FEW", 0)
    monkeypatch.setattr(merging, "_listed_at_once", lambda *_: (1, -math.inf))
    monkeypatch.setattr(merging, "_FEWEST", 1)


def cells(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BUCKET_CODE, "_CELLS", number)


def random_parts(random: np.random.Generator) -> Parts:
    """One or two pairs of three to five atoms, some of them rare and of large losses."""
    parts: Parts = []
    for _ in range(random.integers(1, 3)):
        atoms = int(random.integers(3, 6))
        sides = []
        for _ in range(2):
            weights = [round(10.0 ** random.uniform(0.0, random.choice([1.0, 9.0]))) for _ in range(atoms)]
            sides.append(tuple(Fraction(one, sum(weights)) for one in weights))
        parts.append((hs.DiscretePair(*sides), int(random.integers(3, 5))))
    return parts


RARE: Parts = [
    (
        hs.DiscretePair(
            *(
                tuple(Fraction(x, 10**12) for x in (a, b, 10**12 - a - b))
                for a, b in ((10**3, 6 * 10**11), (1, 3 * 10**11))
            )
        ),
        5,
    )
]
"""To deltas of 1e-45."""


def every_way(parts: Parts) -> list[tuple[Fraction, Fraction]]:
    """Exact masses of all ways to share the steps."""
    total = [(Fraction(1), Fraction(1))]
    for pair, count in parts:
        ways = [(count, Fraction(1), Fraction(1))]
        for place, (p, q) in enumerate(zip(pair.p, pair.q, strict=True)):
            last = place == len(pair.p) - 1
            ways = [
                (left - k, a * math.comb(left, k) * Fraction(p) ** k, b * math.comb(left, k) * Fraction(q) ** k)
                for left, a, b in ways
                for k in ([left] if last else range(left + 1))
            ]
        total = [(a * p, b * q) for a, b in total for _, p, q in ways]
    return total


def delta_of(every: Sequence[tuple[Fraction, Fraction]], epsilon: float) -> mpf:
    ratio = mp.exp(mpf(epsilon))
    masses = [(mpf(p.numerator) / p.denominator, mpf(q.numerator) / q.denominator) for p, q in every]
    return mp.fsum(max(p - ratio * q, mpf(0)) for p, q in masses)


def pairs_of(parts: Parts) -> tuple[tuple[Pair, int], ...]:
    return tuple((pair.pair("remove"), count) for pair, count in parts)


def largest(parts: Parts) -> float:
    return sum(
        count
        * max(
            float(mp.log(mpf(p.numerator) * q.denominator / (p.denominator * q.numerator)))
            for p, q in zip(pair.p, pair.q, strict=True)
        )
        for pair, count in parts
    )


@pytest.mark.usefixtures("every_step_is_merged")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("number", [8, 64, 8192])
def test_both_sides_hold_the_truth_between_them(number: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cells(number, monkeypatch)
    random = np.random.default_rng([seed, number])
    parts = random_parts(random) if seed else RARE
    pairs, every, top = pairs_of(parts), every_way(parts), largest(parts)
    smallest = 1.0
    with mpmath.workdps(60):
        for share in (0.0, 0.05, 0.3, 0.6, 0.9, 0.999):
            epsilon = share * top
            log_least = float(random.choice([-60.0, -8.0]))
            omitted = Omission(-math.inf, float(random.choice([0.0, 0.5, 3.0])), log_least)
            curve = EnumeratedCurve(pairs, (0.0, 0.0), omitted, Merging(4 * number, epsilon, epsilon, 1.0))
            assert curve.is_merged
            found, exact = curve.delta(epsilon), delta_of(every, epsilon)
            assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
            smallest = min(smallest, float(exact))
            if exact > 0 and share < 0.9:
                answer = curve.epsilon(float(exact))
                assert delta_of(every, float(answer.lower)) >= mpf(float(exact)) or float(answer.lower) == 0.0
                assert delta_of(every, float(answer.upper)) <= mpf(float(exact))
    assert seed or 0.0 < smallest < 1e-30


@pytest.mark.usefixtures("every_step_is_merged")
def test_sides_come_together_with_the_square_of_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four steps of noise, to deltas of 1e-30: sixteen times as many buckets, a bracket some 256 times as narrow."""
    run = hs.Binomial(40).poisson(0.3) * 4
    parts = run.pairs("remove")
    true = EnumeratedCurve(parts, (0.0, 0.0), Omission(-90.0))
    curve = HeaviestOutcomes(PairSum(parts), (0.0, 0.0), 8, buckets=1 << 13)
    for epsilon in (0.1, 1.0, float(curve.epsilon(1e-12).upper), float(curve.epsilon(1e-30).lower)):
        widths = []
        exact = true.delta(epsilon)
        for buckets in (1 << 13, 1 << 17):
            found = HeaviestOutcomes(PairSum(parts), (0.0, 0.0), 8, buckets=buckets).delta(epsilon)
            assert float(found.lower) <= float(exact.upper)
            assert float(exact.lower) <= float(found.upper)
            widths.append(float(found.width) / float(found.lower))
        assert widths[0] <= 3e-6
        assert widths[1] <= widths[0] / 60.0 + 4.0 * float(exact.width) / float(exact.lower)


@pytest.mark.usefixtures("every_step_is_merged")
@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("field", ["loss", "log_p"])
def test_atoms_as_wrong_as_their_errors_keep_the_bracket_true(
    field: str, sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = 1e-3
    true = outcomes.table

    def wrong(pair: Pair, log_drop: float = -math.inf) -> AtomTable | None:
        found = true(pair, log_drop)
        assert found is not None
        losses, masses = (error * (field == one) for one in ("loss", "log_p"))
        return replace(
            found,
            loss=found.loss + sign * 0.999 * losses,
            loss_error=found.loss_error + losses,
            log_p=found.log_p + sign * 0.999 * masses,
            error=found.error + masses,
        )

    parts = [(hs.DiscretePair((0.5, 0.25, 0.25), (0.125, 0.375, 0.5)), 6)]
    every = every_way(
        [(hs.DiscretePair(*([Fraction(x) for x in side] for side in (pair.p, pair.q))), n) for pair, n in parts]
    )
    monkeypatch.setattr(outcomes, "table", wrong)
    with mpmath.workdps(60):
        for epsilon in (0.0, 0.7, 2.0, 5.0, 8.0):
            curve = EnumeratedCurve(pairs_of(parts), (0.0, 0.0), merging=Merging(1 << 14, epsilon, epsilon, 1.0))
            found, exact = curve.delta(epsilon), delta_of(every, epsilon)
            assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))


@pytest.mark.usefixtures("every_step_is_merged")
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_coarser_lists_as_wrong_as_their_errors_keep_the_bracket_true(
    sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    true, made = merging._Side.coarser, 0

    def wrong(self: merging._Side, *, above: bool) -> merging._Side:
        nonlocal made
        made += 1
        found = true(self, above=above)
        # far less than a cell
        return replace(found, loss=found.loss + sign * 0.999e-5, shift=found.shift + 1e-5)

    monkeypatch.setattr(merging._Side, "coarser", wrong)
    parts = [(hs.DiscretePair((0.75, 0.1875, 0.0625), (0.4375, 0.0625, 0.5)), 6)]
    every = every_way(
        [(hs.DiscretePair(*([Fraction(x) for x in side] for side in (pair.p, pair.q))), n) for pair, n in parts]
    )
    with mpmath.workdps(60):
        for epsilon in (0.0, 0.7, 2.0, 5.0):
            curve = EnumeratedCurve(pairs_of(parts), (0.0, 0.0), merging=Merging(1 << 14, epsilon, epsilon, 1.0))
            found, exact = curve.delta(epsilon), delta_of(every, epsilon)
            assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
    assert made > 10


def test_masses_whose_products_would_lose_digits_are_left_out_and_counted() -> None:
    step = hs.DiscretePair((0.5, 0.5 - 2.0**-40, 2.0**-40), (0.25, 0.5, 0.25)).pairs("remove")[0][0].atoms
    assert step is not None
    found = Outcomes(np.arange(3.0), np.zeros(3), np.array([-1.0, -620.0, -1.0]), np.zeros(3))
    side = merging._Side.of(found, Buckets.between((0.0, 2.0), 64, [], Asked((0.0, 1.0), 1.0, [])))
    kept = side.with_digits(step)
    assert kept.loss.tolist() == [0.0, 2.0]
    assert kept.mass.tolist() == side.mass[[0, 2]].tolist()
    assert side.mass[1] <= kept.dropped <= 1.02 * side.mass[1]
    assert kept.mass.min() * 2.0**-40 >= 0.999 * math.exp(-640.0)


@pytest.mark.usefixtures("every_step_is_merged")
def test_lists_of_a_range_of_epsilons_serve_all_of_it() -> None:
    """No more than ten times as wide anywhere in a range as lists made for the one epsilon."""
    parts = (hs.DiscreteGaussian(2.0).poisson(0.1) * 10).pairs("remove")
    omitted = Omission(-60.0, 12.0, -35.0)
    curve = EnumeratedCurve(parts, (0.0, 0.0), omitted, Merging(1 << 13, 0.8, 1.0, 12.0))
    for epsilon in (0.8, 0.9, 1.0):
        alone = EnumeratedCurve(parts, (0.0, 0.0), omitted, Merging(1 << 13, epsilon, epsilon, 12.0)).delta(epsilon)
        found = curve.delta(epsilon)
        assert max(found.lower, alone.lower) <= min(found.upper, alone.upper)
        assert float(found.width) <= 10.0 * float(alone.width)


def test_epsilons_are_about_where_deltas_are() -> None:
    """Also where large losses are rare, and a saddle point tells an epsilon to a factor of two or so."""
    for rate in (0.1, 0.01):
        parts = (hs.DiscreteGaussian(2.0).poisson(rate) * 8).pairs("remove")
        atoms = outcomes.table(parts[0][0], -60.0)
        assert atoms is not None
        steps, sizes = [Weights.of(atoms.loss, atoms.log_p, 8)], (1e-8, 1e-5)
        curve = HeaviestOutcomes(PairSum(parts), (0.0, 0.0), 1 << 19)
        for size, epsilon in zip(sizes, about_epsilons(steps, sizes), strict=True):
            assert epsilon == pytest.approx(float(curve.epsilon(size).upper), rel=1e-2)


def test_epsilons_are_about_where_deltas_are_beyond_what_exponentials_hold() -> None:
    steps = [Weights.of(np.array([900.0, 905.0]), np.log(np.array([1.0 - 1e-6, 1e-6])), 4)]
    assert about_epsilons(steps, [1e-9, 0.5]) == pytest.approx([3605.0, 3600.0], abs=2.0)


def sums_of_random_outcomes(
    unit: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[merging._Sums, Callable[[float], tuple[float, float, float]]]:
    """Outcomes added up where a rounding is as large as ``unit``; what they and both sides are worth at an epsilon."""
    monkeypatch.setattr(merging, "U", unit)
    cells(64, monkeypatch)
    random = np.random.default_rng(seed)
    loss, mass = np.sort(random.uniform(0.0, 3.0, 2000)), random.uniform(0.1, 1.0, 2000)
    listed = Weights.of(loss, np.log(mass))
    sums = merging._Sums(Buckets.between((0.0, 3.0), 128, [listed], Asked((1.5, 1.5), 1.0, [listed])))
    start = sums.buckets.start
    sums.add(loss - start, mass)

    def worth(epsilon: float) -> tuple[float, float, float]:
        sides = ((at + start, weights) for at, weights in (sums.below(), sums.above()))
        true, below, above = (
            float(weights @ np.maximum(-np.expm1(epsilon - at), 0.0)) for at, weights in ((loss, mass), *sides)
        )
        return below, true, above

    return sums, worth


@pytest.mark.parametrize("signs", [(-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (1.0, 1.0)])
def test_sums_as_wrong_as_their_errors_keep_what_they_say(
    signs: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of masses and of losses, each off by what so many roundings may do."""
    unit = 1e-6
    sums, worth = sums_of_random_outcomes(unit, 5, monkeypatch)
    sums.mass *= 1.0 + signs[0] * unit * sums.terms
    sums.moment *= 1.0 + signs[1] * unit * sums.terms
    for epsilon in (-50.0, -1.0, 0.5, 1.5, 2.5):
        below, true, above = worth(epsilon)
        assert below <= true <= above
        assert above <= below * (1.0 + 1e-2)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_means_as_wrong_as_their_errors_keep_what_they_say(sign: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of means alone, whose roundings are larger than what merging does."""
    unit = 1e-3
    sums, worth = sums_of_random_outcomes(unit, 6, monkeypatch)
    sums.moment *= 1.0 + sign * unit * sums.terms
    mean, doubt, relative = sums.means()
    monkeypatch.setattr(sums, "means", lambda: (mean, doubt, 0.0 * relative))
    for epsilon in (-1.0, 0.5, 1.5):
        below, true, above = worth(epsilon)
        assert below <= true
        # beyond the factor of roundings that masses have once more
        assert true * (1.0 + 8.0 * unit) <= above
        assert above <= below * (1.0 + 0.2)


def test_every_loss_lies_between_the_edges_of_its_bucket() -> None:
    random = np.random.default_rng(1)
    loss = np.sort(random.normal(size=1000))
    listed = Weights.of(loss, -0.5 * loss**2)
    buckets = Buckets.between((float(loss[0]), float(loss[-1])), 1 << 15, [listed], Asked((1.0, 2.0), 1.0, [listed]))
    between = buckets.edges[random.integers(0, buckets.edges.size - 1, 4000)]
    near = np.concatenate((between, *(np.nextafter(between[between > 0.0], side) for side in (0.0, 1e9))))
    inside = np.concatenate((near, random.uniform(0.0, float(buckets.edges[-1]), 4000)))
    inside = inside[inside < buckets.edges[-1]]
    places, beyond = buckets.places_of(inside)
    assert (beyond * np.diff(buckets.edges)[places] == inside - buckets.edges[places]).all()
    assert (buckets.edges[places] <= inside).all()
    assert (inside < buckets.edges[places + 1]).all()
    assert (places == np.searchsorted(buckets.edges, inside, side="right") - 1).all()


def test_buckets_are_chosen_where_epsilon_is_a_rounding_before_a_cell() -> None:
    loss = np.linspace(0.0, 1.0, 50)
    listed = Weights.of(loss, np.zeros(50))
    for cell in range(0, 4096, 97):
        epsilon = float(np.nextafter(cell / 4096.0, -1.0))
        buckets = Buckets.between((0.0, 1.0), 1 << 12, [listed], Asked((epsilon, epsilon), 1.0, [listed]))
        assert buckets.edges[-1] >= 1.0 - buckets.start


RUNS = (
    (hs.DiscreteGaussian(2.0).poisson(0.5) * 14, 5.334),
    (hs.Binomial(100).poisson(0.1) * 8, 0.3),
    pytest.param(hs.DiscreteGaussian(2.0).poisson(0.01) * 14, 0.5, marks=pytest.mark.torture),
    pytest.param(hs.Binomial(1000) * 8, 0.74, marks=pytest.mark.torture),
    pytest.param(hs.DiscreteGaussian(5.0).poisson(0.1) * 9 + hs.Binomial(60, 0.3) * 3, 0.4, marks=pytest.mark.torture),
)


@pytest.mark.parametrize(("run", "epsilon"), RUNS)
def test_few_steps_of_many_atoms_are_answered_to_seven_digits(run: hs.Composition, epsilon: float) -> None:
    found = hs.account(run, "remove").delta(epsilon)
    assert isinstance(found, Bound)
    assert found.method == "enumeration"
    assert float(found.width) <= 1e-7 * float(found.lower)
    lattice = hs.account(run, "remove", accountant=hs.accountants.Certified(engine="lattice")).delta(epsilon)
    assert max(float(found.lower), float(lattice.lower)) <= min(float(found.upper), float(lattice.upper))


def test_nothing_is_merged_for_known_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand below a bound of other pairs, from which they are far."""
    monkeypatch.delattr(sys.modules[EnumeratedCurve.__module__], "merged_sides")
    run = hs.Gaussian(1.0).shuffled(batch_size=50, population=5000) * 10
    found = hs.account(run, "zero-out").epsilon(1e-6)
    assert 10.8124 < float(found.lower) < float(found.upper) < 19.4237
    with pytest.raises(NameError):
        hs.account(hs.DiscreteGaussian(2.0).poisson(0.1) * 14, "remove").epsilon(1e-6)


def test_known_datasets_next_to_the_upper_side_are_as_narrow_as_it_is() -> None:
    run = hs.DiscreteGaussian(2.0).without_replacement(batch_size=50, population=500) * 12
    found = hs.account(run, "remove").epsilon(1e-6)
    assert 0.0 < float(found.width) <= 3e-9 * float(found.lower)


def test_a_merged_answer_is_the_same_whatever_was_asked_before() -> None:
    parts = (hs.DiscreteGaussian(2.0).poisson(0.1) * 10).pairs("remove")

    def fresh() -> HeaviestOutcomes:
        return HeaviestOutcomes(PairSum(parts), (0.0, 0.0), 1 << 10, buckets=1 << 13)

    kept = fresh()
    for delta in (1e-3, 1e-12, 1e-7, 1e-3):
        assert kept.epsilon(delta).sides == fresh().epsilon(delta).sides
        epsilon = float(fresh().epsilon(delta).upper)
        assert kept.delta(epsilon).sides == fresh().delta(epsilon).sides
        assert kept.is_below(epsilon, delta * (1.0 + 1e-4))
        assert not kept.is_below(epsilon, delta * (1.0 - 1e-4))


@pytest.mark.usefixtures("every_step_is_merged")
def test_masses_too_small_to_be_multiplied_are_inside_the_bracket() -> None:
    """Where two or three draws of an atom of 1e-130 are all there is."""
    sides = (Fraction(1, 10**exponent) for exponent in (130, 160))
    pair = hs.DiscretePair(*((rare, 1 - rare) for rare in sides))
    every = every_way([(pair, 6)])
    curve = EnumeratedCurve(pairs_of([(pair, 6)]), (0.0, 0.0), merging=Merging(1 << 13, 0.0, 0.0, 1.0))
    assert curve.is_merged
    with mpmath.workdps(700):
        for epsilon in (0.0, 60.0, 100.0, 180.0):
            found, exact = curve.delta(epsilon), delta_of(every, epsilon)
            assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))


@pytest.mark.usefixtures("every_step_is_merged")
def test_masses_smaller_than_any_product_keeps_are_refused() -> None:
    pair = hs.DiscretePair(*((rare, 1 - rare) for rare in (Fraction(1, 10**290), Fraction(1, 10**200))))
    with pytest.raises(TooManyOutcomesError, match="no mass"):
        EnumeratedCurve(pairs_of([(pair, 8)]), (0.0, 0.0), merging=Merging(1 << 13, 0.0, 0.0, 1.0))


VALLEYS = (
    (hs.DiscreteGaussian(3.0).poisson(0.01) * 4, "remove", 1e-40),
    (hs.DiscreteGaussian(3.0).poisson(0.01) * 4, "add", 1e-40),
    (hs.DiscreteGaussian(6.0).poisson(0.003) * 4, "remove", 1e-25),
)


@pytest.mark.usefixtures("every_step_is_merged")
@pytest.mark.parametrize(("run", "direction", "delta"), VALLEYS)
def test_buckets_are_narrow_where_every_tilt_has_its_weight_elsewhere(
    run: hs.Composition, direction: str, delta: float
) -> None:
    """Between few small losses and one rare large one; and where no tilt is found at all."""
    losses = PairSum(run.pairs(direction))
    one_by_one = HeaviestOutcomes(losses, (0.0, 0.0), 1 << 20)
    epsilon = float(one_by_one.epsilon(delta).upper)
    true = one_by_one.delta(epsilon)
    found = HeaviestOutcomes(losses, (0.0, 0.0), 8, buckets=1 << 14).delta(epsilon)
    assert float(found.lower) <= float(true.upper)
    assert float(true.lower) <= float(found.upper)
    assert float(found.width) <= 1e-5 * float(found.lower)


def test_far_out_masses_far_beyond_epsilon_weigh_no_more_than_they_do() -> None:
    """At 1e-100, where masses of e^-350 and less have losses of twice epsilon."""
    losses = PairSum((hs.DiscreteGaussian(1.2).poisson(0.01) * 12).pairs("remove"))
    found = HeaviestOutcomes(losses, (0.0, 0.0), 1 << 12, buckets=1 << 15).epsilon(1e-100)
    assert 0.0 < float(found.width) <= 1e-5 * float(found.lower)


def test_buckets_without_mass_are_weighed_as_what_is_left_out() -> None:
    """Near the largest loss, where all of a bucket's mass may lie at its other end."""
    losses = PairSum((hs.DiscreteGaussian(2.0).poisson(0.1) * 14).pairs("add"))
    coarse, fine = (HeaviestOutcomes(losses, (0.0, 0.0), 8, buckets=1 << bits).epsilon(1e-150) for bits in (12, 17))
    assert float(coarse.lower) <= float(fine.lower) <= float(fine.upper) <= float(coarse.upper)
    assert 0.0 < float(fine.width) <= 1e-9 * float(fine.lower)
