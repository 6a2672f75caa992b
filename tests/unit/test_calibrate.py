"""Calibrations are safe by the exact truth, nearly optimal, and say what they are."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.certified import Certified
from hockeystick.bound import Bound
from hockeystick.calibrate import search
from hockeystick.calibrate.axis import Axis
from hockeystick.calibrate.search import Problem, Search
from hockeystick.calibrate.sought import calibrations
from hockeystick.calibrate.targets import target_of
from hockeystick.composition import Composition, directions
from hockeystick.engines.contour import standing
from hockeystick.errors import PrecisionError
from hockeystick.exact import exact_delta
from hockeystick.together import passed_together

THRESHOLD = 0.7876178  # true noise multiplier at epsilon 1, delta 1e-6, rate 0.001, 10,000 steps, rounded up


def sgd(noise: float) -> Composition:
    return hs.Gaussian(noise).poisson(0.001) * 10_000


def true_delta(run: Composition, epsilon: float, adjacency: str = "add-remove") -> tuple[Fraction, Fraction]:
    """Exact enclosure of delta, over the directions of the relation."""
    found = [exact_delta(run.pairs(direction), epsilon, digits=7) for direction in directions(adjacency)]
    return max(Fraction(one.lower) for one in found), max(Fraction(one.upper) for one in found)


def is_truly_above(run: Composition, epsilon: float, delta: float) -> bool:
    """Whether delta(epsilon) exceeds another delta: one direction in which it does is enough."""
    found = (exact_delta(run.pairs(direction), epsilon, digits=7) for direction in directions("add-remove"))
    return any(Fraction(one.lower) > Fraction(delta) for one in found)


def test_dp_sgd_noise_is_safe_and_within_a_millionth_of_the_true_threshold() -> None:
    found = hs.calibrate(sgd, epsilon=1.0, delta=1e-6, precision=1e-6)
    assert true_delta(sgd(found.value), 1.0)[1] <= Fraction(1e-6)
    assert found.value <= THRESHOLD + 1e-6
    assert found.unsafe is not None
    assert is_truly_above(sgd(found.unsafe), 1.0, 1e-6)
    assert found.precision <= 1e-6
    assert found.evaluations <= 5


def test_result_carries_the_proof_on_both_sides() -> None:
    found = hs.calibrate(sgd, epsilon=1.0, delta=1e-6)
    assert found.unsafe is not None
    assert found.bound_at_unsafe is not None
    assert float(found.bound.upper) <= 1e-6 < float(found.bound_at_unsafe.lower)
    assert found.unsafe < found.value == float(found)
    assert found.curve.composition == sgd(found.value)
    with pytest.raises(TypeError, match="real number"):
        int(found)


def random_case(seed: int) -> tuple[Any, dict[str, Any]]:
    """A family of DP-SGD runs or of plain noise, and its target."""
    rng = np.random.default_rng(seed)
    rate, steps = float(np.exp(rng.uniform(-6.0, -1.0))), int(np.exp(rng.uniform(5.0, 10.0)))
    noise = float(np.exp(rng.uniform(0.0, 1.5)))
    target = {"epsilon": float(np.exp(rng.uniform(-1.0, 2.0))), "delta": float(10.0 ** rng.uniform(-12.0, -3.0))}
    kind = seed % 4
    if kind == 0:
        return (lambda s: hs.Gaussian(s).poisson(rate) * steps), target
    if kind == 1:
        return (lambda g: hs.Gaussian(noise).poisson(g) * steps), {**target, "within": (1e-7, 1.0)}
    if kind == 2:
        return (lambda n: hs.Gaussian(noise).poisson(rate / 10) * n), {**target, "values": "integer"}
    return (lambda s: hs.Gaussian(s) * 7), target


def safe_by_exact(seed: int) -> None:
    family, target = random_case(seed)
    try:
        found = hs.calibrate(family, **target)
    except hs.UnreachableTargetError as error:
        assert is_truly_above(family(error.value), target["epsilon"], target["delta"])  # noqa: PT017
        return
    assert true_delta(family(found.value), target["epsilon"])[1] <= Fraction(target["delta"])
    if found.unsafe is not None:
        assert is_truly_above(family(found.unsafe), target["epsilon"], target["delta"])
        assert found.precision <= (1e-4 if target.get("values") is None else 1.0)
        if target.get("values") is not None:
            assert abs(found.unsafe - found.value) == 1


@pytest.mark.parametrize("seed", range(4))  # one of each kind
def test_random_calibrations_are_safe_and_tight(seed: int) -> None:
    safe_by_exact(seed)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(4, 212))
def test_many_random_calibrations_are_safe_and_tight(seed: int) -> None:
    safe_by_exact(seed)


def test_an_enormous_epsilon_is_a_target_like_others() -> None:
    """The noise is far below what float64 has the exponential of epsilon for."""
    found = hs.calibrate(lambda s: hs.Gaussian(s).poisson(0.1) * 10, epsilon=1e3, delta=1e-6)
    assert hs.account(hs.Gaussian(found.value).poisson(0.1) * 10).delta(1e3).upper <= 1e-6
    assert found.unsafe == pytest.approx(found.value, rel=1e-4)


def test_integers_are_exact() -> None:
    steps = hs.dpsgd.steps_for(epsilon=1.0, delta=1e-6, noise_multiplier=1.0, rate=0.001)
    assert isinstance(steps.value, int)
    assert steps.unsafe == int(steps) + 1
    run = hs.Gaussian(1.0).poisson(0.001)
    assert true_delta(run * int(steps), 1.0)[1] <= Fraction(1e-6)
    assert is_truly_above(run * (int(steps) + 1), 1.0, 1e-6)


def test_batch_size_and_rate_agree() -> None:
    size = hs.dpsgd.batch_size_for(epsilon=1.0, delta=1e-6, noise_multiplier=1.0, steps=10_000, population=60_000)
    rate = hs.dpsgd.rate_for(epsilon=1.0, delta=1e-6, noise_multiplier=1.0, steps=10_000)
    assert size.value / 60_000 <= rate.value * (1.0 + 1e-4)
    assert rate.value <= (size.value + 1) / 60_000


def test_the_largest_batch_of_fixed_size_leaves_a_record_out_under_add_remove() -> None:
    """The smaller of two neighbouring datasets must fill a batch, too."""
    easy = {"epsilon": 1.0, "delta": 1e-6, "noise_multiplier": 100.0, "steps": 2, "sampling": "without-replacement"}
    assert hs.dpsgd.batch_size_for(population=20, **easy).value == 19
    assert hs.dpsgd.batch_size_for(population=20, adjacency="substitute", **easy).value == 20


@pytest.mark.parametrize(
    ("sampler", "least"),
    [
        ({}, 2),
        ({"sampling": "without-replacement"}, 3),
        ({"sampling": "without-replacement", "adjacency": "substitute"}, 2),
        ({"sampling": "cut-batches", "largest_batch": 1}, 3),
    ],
)
def test_populations_that_leave_no_choice_are_refused_by_name(sampler: dict[str, Any], least: int) -> None:
    with pytest.raises(ValueError, match=f"population must be at least {least}, got {least - 1}"):
        hs.dpsgd.batch_size_for(epsilon=1.0, delta=1e-6, noise_multiplier=1.0, steps=1, population=least - 1, **sampler)


def test_one_number_is_no_range_of_rates() -> None:
    with pytest.raises(TypeError, match=r"rates must be a sequence, got 0\.1"):
        hs.dpsgd.noise_multipliers_for(epsilon=1.0, delta=1e-6, steps=1, rates=0.1)  # type: ignore[arg-type]


def test_gaussian_dp_target_has_its_closed_form() -> None:
    found = hs.calibrate(lambda s: hs.Gaussian(s) * 4, mu=1.0, precision=1e-6)
    assert 2.0 <= found.value <= 2.0 * (1.0 + 1e-6)


def test_pure_target_has_its_closed_form() -> None:
    found = hs.calibrate(lambda s: hs.Laplace(s) * 10, epsilon=1.0, delta=0.0, precision=1e-6)
    assert 10.0 <= found.value <= 10.0 * (1.0 + 1e-6)


def test_attack_targets_have_their_closed_forms() -> None:
    # G_mu: power Phi(Phi^-1(alpha) + mu), advantage 2 Phi(mu / 2) - 1, at mu = 1
    attack = hs.calibrate(hs.Gaussian, true_positive_rate=0.2595110225414, false_positive_rate=0.05, precision=1e-3)
    assert attack.value == pytest.approx(1.0, rel=2e-3, abs=0.0)
    advantage = hs.calibrate(hs.Gaussian, advantage=0.38292492254802624, precision=1e-6)
    assert 1.0 - 1e-9 <= advantage.value <= 1.0 + 2e-6


@pytest.mark.parametrize(
    ("family", "adjacency"),
    [
        (lambda s: hs.Gaussian(s).without_replacement(batch_size=4, population=40) * 5, "substitute"),
        (lambda s: hs.Gaussian(s).poisson(batch_size=4, population=40, largest_batch=8) * 5, "add-remove"),
    ],
)
def test_a_mu_that_nothing_can_prove_is_refused_before_anything_is_sought(
    family: Callable[[float], hs.Composition], adjacency: str
) -> None:
    with pytest.raises(ValueError, match=r"meet mu 1: no bound on the tail is known for such steps: give a floor"):
        hs.calibrate(family, mu=1.0, adjacency=adjacency)


def test_floor_of_mu_target_is_kept() -> None:
    found = hs.calibrate(sgd, mu=0.5, floor=1e-6, precision=1e-2)
    assert float(found.bound.upper) <= 0.5
    assert found.unsafe is not None
    assert found.bound_at_unsafe is not None
    assert float(found.bound_at_unsafe.lower) > 0.5


def test_a_smaller_epsilon_needs_more_noise() -> None:
    values = [hs.calibrate(sgd, epsilon=epsilon, delta=1e-6).value for epsilon in (0.5, 1.0, 2.0)]
    assert values[0] > values[1] > values[2]


def test_sampling_without_replacement_needs_twice_the_noise() -> None:
    # 003, Proposition 9: its add/remove pairs are those of Poisson with twice the sensitivity
    poisson = hs.dpsgd.noise_multiplier_for(epsilon=2.0, delta=1e-6, steps=1000, batch_size=100, population=10_000)
    fixed = hs.dpsgd.noise_multiplier_for(
        epsilon=2.0, delta=1e-6, steps=1000, batch_size=100, population=10_000, sampling="without-replacement"
    )
    assert poisson.unsafe is not None
    assert fixed.unsafe is not None
    assert 2.0 * poisson.unsafe <= fixed.value * (1 + 1e-12)
    assert fixed.unsafe <= 2.0 * poisson.value * (1 + 1e-12)


def test_neighbours_help_each_other() -> None:
    rates = [0.001, 0.0012, 0.00145]
    warm = hs.dpsgd.noise_multipliers_for(epsilon=1.0, delta=1e-6, steps=10_000, rates=rates)
    cold = hs.dpsgd.noise_multiplier_for(epsilon=1.0, delta=1e-6, steps=10_000, rate=rates[-1], guess=1.5)
    assert warm[-1].value == pytest.approx(cold.value, rel=1e-4, abs=0.0)
    assert warm[-1].estimates < cold.estimates


def test_a_neighbour_whom_every_value_serves_leads_nowhere() -> None:
    rates = [0.001, 0.0015]  # at the first no loss of adding a record reaches the target

    def run(rate: float, noise: float) -> Composition:
        assert rate == rates[0] or noise == 1e-6 or noise > 0.1, "next to no noise is slow, but for the end itself"
        return hs.Gaussian(noise).poisson(rate) * 2000

    settings = {"epsilon": 2.1, "delta": 1e-5, "adjacency": "add", "safe": "larger", "precision": 1e-3}
    every, some = calibrations([(partial(run, rate), settings) for rate in rates], rates)
    assert isinstance(every, hs.Calibration)
    assert every.value == 1e-6
    assert isinstance(some, hs.Calibration)
    assert some.value > 0.3


def test_the_gaussian_limit_spares_estimates() -> None:
    wanted: Any = {"epsilon": 0.5, "delta": 1e-5, "steps": 2000, "batch_size": 500, "population": 50_000}
    begun, cold = (hs.dpsgd.noise_multiplier_for(**wanted, **more) for more in ({}, {"guess": 1.0}))
    assert begun.value == pytest.approx(cold.value, rel=1e-4, abs=0.0)
    assert begun.estimates <= cold.estimates - 2


def test_no_guess_is_made_of_numbers_beyond_float64() -> None:
    wanted: Any = {"epsilon": 1.0, "delta": 1e-5, "steps": 10}
    assert hs.dpsgd.noise_multiplier_for(**wanted, rate=1e-300).value == 1e-6
    with pytest.raises(ValueError, match=r"epsilon must be .* beyond float64"):
        hs.dpsgd.noise_multiplier_for(**wanted | {"epsilon": 10**400}, rate=0.1)
    with pytest.raises(ValueError, match="batch_size must be at most"):
        hs.dpsgd.noise_multiplier_for(**wanted, batch_size=10**400, population=10)


@pytest.mark.parametrize("scheme", ["poisson", "without-replacement"])
def test_a_line_of_neighbours_takes_few_evaluations_each(scheme: str) -> None:
    sizes = [round(1_000_000 * 10.0 ** (i / 15.0 - 2.0)) for i in range(12)]
    found = hs.dpsgd.noise_multipliers_for(
        epsilon=2.0, delta=1e-6, steps=10_000, batch_sizes=sizes, population=1_000_001, sampling=scheme
    )
    assert sum(one.evaluations for one in found) <= 3.2 * len(found)  # most of them in a few passes
    assert sum(one.estimates for one in found) <= 1.6 * len(found)
    assert all(one.unsafe is not None and one.precision <= 1e-4 for one in found)


@pytest.mark.parametrize("rate", [1e-4, 1.8e-4])  # the largest loss of the other direction tells, or Chernoff's bound
def test_no_line_stands_where_rare_losses_answer(monkeypatch: pytest.MonkeyPatch, rate: float) -> None:
    stood: list[int] = []
    monkeypatch.setattr(standing, "stand", lambda asked: stood.append(len(asked)))
    target = target_of(epsilon=1.0, delta=1e-6)
    problem = Problem(lambda noise: hs.Gaussian(noise).poisson(rate) * 10_000, target, "add-remove", Certified())
    found = Search(problem, Axis(0.1, 10.0, False, -1, 1e-4)).evaluate(0.65, 1e-3)
    assert found.safe
    assert found.bound.method == "rare large losses"
    assert found.bound.notes == ("direction: remove",)
    assert not stood


def test_rare_losses_leave_a_direction_out_only_where_it_is_proved_to_stay_below() -> None:
    curve, target = hs.account(hs.Gaussian(0.65).poisson(1.8e-4) * 10_000), target_of(epsilon=0.1, delta=1e-3)
    truth = curve.directed["add"].delta(0.1)
    assert isinstance(truth, Bound)
    for share, proved in ((0.4, False), (100.0, True)):
        decides = Bound(share * float(truth.lower), 2.0 * share * float(truth.upper), "rare large losses")
        found = Search._below(curve, "add", {"remove": decides}, target)
        assert (found is not None) == proved


def test_lines_side_by_side_find_what_each_finds_alone_in_a_few_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []

    def counted(curves: Any, *rest: Any) -> Any:
        passes.append(len(curves))
        return passed_together(curves, *rest)

    def alone(search: Search, *rest: Any) -> Any:
        passes.append(1)
        return evaluate(search, *rest)

    evaluate = Search.evaluate
    monkeypatch.setattr(Search, "evaluate", alone)
    monkeypatch.setattr(sys.modules[calibrations.__module__], "passed_together", counted)
    rates = [0.005 * 1.2**i for i in range(10)]

    def asked(epsilon: float) -> list[Any]:
        settings = {"epsilon": epsilon, "delta": 1e-6, "safe": "larger", "precision": 1e-4}
        return [(lambda s, rate=rate: hs.Gaussian(s).poisson(rate) * 1000, settings) for rate in rates]

    def seen(found: list[Any]) -> list[Any]:
        return [(one.value, one.unsafe, one.bound.sides, one.bound_at_unsafe.sides) for one in found]

    each = [calibrations(asked(epsilon), rates) for epsilon in (1.0, 4.0)]
    passes.clear()
    both = calibrations(asked(1.0) + asked(4.0), rates * 2, [0] * 10 + [1] * 10)
    assert seen(both) == seen(each[0]) + seen(each[1])
    assert sum(size > 0 for size in passes) <= 11  # passes, and values that are evaluated alone
    assert max(passes) >= 20  # the values to either side of half of the answers, at once


@pytest.mark.torture
def test_the_lines_of_a_figure_take_few_evaluations() -> None:
    # noise against rate, as 003, Figure 2: 4 epsilons x 60 rates x 2 schemes
    sizes = [round(1_000_000 * 10.0 ** (i / 14.75 - 4.0)) for i in range(60)]
    for epsilon in (1.0, 2.0, 5.0, 10.0):
        for scheme in ("poisson", "without-replacement"):
            found = hs.dpsgd.noise_multipliers_for(
                epsilon=epsilon, delta=1e-6, steps=10_000, batch_sizes=sizes, population=1_000_001, sampling=scheme
            )
            assert all(one.unsafe is not None and one.precision <= 1e-4 for one in found)
            assert sum(one.evaluations for one in found) <= 3.5 * len(found)
            assert sum(one.estimates for one in found) <= 1.6 * len(found)


@pytest.mark.parametrize(
    ("rate", "epsilon", "settings"),
    [
        (1e-4, 1.0, {"guess": 126.7}),
        (1e-3, 2.0, {"within": (0.1, 5000.0), "safe": "larger"}),
        (3.16e-4, 5.0, {"within": (0.1, 5000.0), "safe": "larger"}),
        (1.78e-3, 1.0, {"within": (0.1, 5000.0), "safe": "larger"}),
        (0.055, 1.0, {"guess": 0.012}),
    ],
)
def test_a_start_far_from_the_answer_is_found_back_from(rate: float, epsilon: float, settings: dict[str, Any]) -> None:
    def family(noise: float) -> Composition:
        return hs.Gaussian(noise).poisson(rate) * 10_000

    found = hs.calibrate(family, epsilon=epsilon, delta=1e-6, precision=1e-3, **settings)
    near = hs.calibrate(family, epsilon=epsilon, delta=1e-6, precision=1e-3, guess=found.value)
    assert found.unsafe is not None
    assert near.unsafe is not None
    assert max(found.unsafe, near.unsafe) < min(found.value, near.value)
    assert found.estimates <= 25
    assert found.evaluations <= 6


def test_the_explicit_default_accountant_costs_and_finds_the_same() -> None:
    def family(noise: float) -> Composition:
        return hs.Gaussian(noise).poisson(1e-4) * 10_000

    default = hs.calibrate(family, epsilon=1.0, delta=1e-6)
    explicit = hs.calibrate(family, epsilon=1.0, delta=1e-6, accountant=hs.accountants.Certified())
    assert (explicit.value, explicit.unsafe) == (default.value, default.unsafe)
    assert (explicit.evaluations, explicit.estimates) == (default.evaluations, default.estimates)
    assert explicit.bound.method == default.bound.method


def test_an_accountant_of_upper_bounds_finds_where_they_stop_proving_safety() -> None:
    moments = hs.accountants.Moments()
    found = hs.calibrate(sgd, epsilon=1.0, delta=1e-6, accountant=moments)
    assert float(hs.account(sgd(found.value), accountant=moments).delta(1.0).upper) <= 1e-6
    just_below = found.value * (1.0 - 2.0 * found.precision)
    assert float(hs.account(sgd(just_below), accountant=moments).delta(1.0).upper) > 1e-6
    assert found.precision <= 1e-4
    assert found.unsafe is None
    assert found.bound_at_unsafe is None
    assert "upper bounds alone" in found.notes[0]
    assert found.value > THRESHOLD


def test_upper_bounds_that_never_suffice_are_no_proof_that_nothing_does() -> None:
    with pytest.raises(hs.PrecisionError, match="no value could be proved"):
        hs.calibrate(
            lambda n: hs.Gaussian(1.0) * n,
            epsilon=0.1,
            delta=1e-6,
            values="integer",
            accountant=hs.accountants.Moments(),
        )


def test_an_unreachable_target_says_so_with_a_bound() -> None:
    with pytest.raises(hs.UnreachableTargetError, match=r"no value from .* to .* meets epsilon 0\.1") as caught:
        hs.calibrate(lambda n: hs.Gaussian(1.0) * n, epsilon=0.1, delta=1e-6, values="integer")
    assert caught.value.value == 1
    assert float(caught.value.bound.lower) > 1e-6


@pytest.mark.parametrize(
    ("family", "target", "words"),
    [
        (lambda n: hs.Gaussian(0.1) * n, {"epsilon": 1.0, "delta": 1e-6}, "delta at epsilon 1 is already 0.999"),
        (
            lambda n: hs.Laplace(0.5) * n,
            {"epsilon": 1.0, "delta": 0.0},
            "epsilon at delta 0 is already 1.99999 or more",
        ),
        (lambda n: hs.Gaussian(1.0) * n, {"mu": 0.5}, "mu is already 0.999999 or more"),
        (lambda n: hs.Gaussian(1.0) * n, {"advantage": 0.1}, "the advantage is already 0.38"),
        (lambda n: hs.Gaussian(1.0) * n, {"epsilon": 0.0, "delta": 0.1}, "delta at epsilon 0 is already 0.38"),
        (
            lambda n: hs.Gaussian(1.0) * n,
            {"true_positive_rate": 0.02, "false_positive_rate": 0.01},
            "the true-positive rate at false-positive rate 0.01 is already 0.09",
        ),
    ],
)
def test_an_unreachable_target_names_the_quantity(family: Any, target: dict[str, float], words: str) -> None:
    with pytest.raises(hs.UnreachableTargetError, match="at the safest one, 1, " + re.escape(words)) as caught:
        hs.calibrate(family, values="integer", within=(1, 100), **target)
    printed = re.search(r"already ([^ ]+) or more", str(caught.value))
    assert printed is not None
    assert Fraction(printed[1]) <= Fraction(float(caught.value.bound.lower))


@pytest.mark.parametrize(
    "family",
    [
        lambda noise: hs.Gaussian(noise) * 10 + hs.ApproximateDP(5.0),
        lambda noise: hs.Gaussian(noise).poisson(0.01) * 1000 + hs.ApproximateDP(1.0, 1e-3),
        lambda noise: hs.Laplace(noise).poisson(0.01) * 1000 + hs.Gaussian(1.0) * 10,
        lambda noise: hs.Gaussian(noise).poisson(0.01) * 1000 + hs.Gaussian(1.0) * 10,
    ],
)
def test_a_target_that_other_steps_put_out_of_reach_is_refused_at_once(
    family: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the safest noise, by one wide bracket: the least noise, whose bracket takes minutes, is not asked for one."""
    asked: list[float] = []
    measured = Search._measured

    def counted(search: Search, run: Any, tolerance: float) -> Any:
        asked.append(tolerance)
        return measured(search, run, tolerance)

    monkeypatch.setattr(Search, "_measured", counted)
    with pytest.raises(hs.UnreachableTargetError, match="at the safest one, 1000000000,"):
        hs.calibrate(family, epsilon=3.0, delta=1e-5)
    assert asked in ([], [0.01])


def test_that_no_value_meets_a_target_rests_on_which_are_safer_where_that_was_told_from_estimates() -> None:
    def votes(probability: float) -> Any:
        return hs.RandomizedResponse(probability) * 3

    with pytest.raises(hs.UnreachableTargetError, match="at the safest one") as caught:
        hs.calibrate(votes, epsilon=1.0, delta=1e-6)  # the most private probability is 1/2
    assert "if privacy does not get steadily better or worse along these values, others may meet it" in str(
        caught.value
    )
    assert 0.58 < hs.calibrate(votes, epsilon=1.0, delta=1e-6, within=(0.5, 1.0)).value < 0.59
    with pytest.raises(hs.UnreachableTargetError) as caught:
        hs.calibrate(lambda noise: hs.Gaussian(noise) + hs.ApproximateDP(5.0), epsilon=3.0, delta=1e-5, safe="larger")
    assert "steadily" not in str(caught.value)


def test_where_no_value_can_be_told_from_another_the_error_says_on_which_side_they_are() -> None:
    with pytest.raises(ValueError, match="all that were tried seem to miss the target alike"):
        hs.calibrate(lambda _: hs.Gaussian(1.0), epsilon=0.1, delta=1e-5)
    with pytest.raises(ValueError, match="all that were tried seem to meet the target alike"):
        hs.calibrate(lambda _: hs.Gaussian(100.0), epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize("start", [None, 3, 10**9])
@pytest.mark.parametrize("noise", [0.1, 0.02])
def test_more_steps_are_never_safer_even_where_all_of_them_are_far_too_many(noise: float, start: int | None) -> None:
    """Estimates are alike there: delta is 1 for any number of steps."""
    with pytest.raises(hs.UnreachableTargetError):
        hs.calibrate(lambda n: hs.Gaussian(noise) * n, epsilon=1.0, delta=1e-5, values="integer", guess=start)


def test_fewer_steps_as_the_number_grows_are_told_from_the_runs() -> None:
    found = hs.calibrate(
        lambda n: hs.Gaussian(5.0) * (1000 // n), epsilon=2.0, delta=1e-5, values="integer", within=(1, 1000)
    )
    assert found.value > found.unsafe
    assert found.value - found.unsafe == 1


def test_steps_without_being_called_whole_are_pointed_at_values() -> None:
    with pytest.raises(TypeError, match="count must be an integer") as caught:
        hs.calibrate(lambda n: hs.Gaussian(10.0) * n, epsilon=100.0, delta=1e-5)
    assert "values='integer'" in caught.value.__notes__[0]


def test_a_number_that_repeats_nothing_more_often_is_told_by_estimates() -> None:
    found = hs.calibrate(
        lambda n: hs.Gaussian(0.1 * n) * 10, epsilon=2.0, delta=1e-5, values="integer", within=(1, 10**6)
    )
    assert found.unsafe == found.value - 1


@pytest.mark.parametrize(("steps", "delta"), [(1, 1e-300), (1, 1e-6), (3, 1e-12)])
def test_a_delta_that_falls_to_0_is_followed_to_its_edge(delta: float, steps: int) -> None:
    """Laplace noise has delta 0 where its epsilon is met, and a delta that jumps from 0 beside it."""
    found = hs.calibrate(lambda s: hs.Laplace(s) * steps, epsilon=1.0, delta=delta)
    assert found.precision <= 1e-5
    assert found.unsafe is not None
    assert not found.notes
    assert true_delta(hs.Laplace(found.value) * steps, 1.0)[1] <= Fraction(delta)
    assert is_truly_above(hs.Laplace(found.unsafe) * steps, 1.0, delta)


def test_a_range_that_is_safe_throughout_returns_its_end() -> None:
    found = hs.calibrate(
        lambda n: hs.Gaussian(10.0) * n, epsilon=5.0, delta=1e-6, values="integer", within=(1, 20), safe="smaller"
    )
    assert found.value == 20
    assert found.unsafe is None
    assert "every value allowed" in found.notes[0]


def test_what_is_not_decided_is_noted_in_passes_where_passes_are_sought() -> None:
    shuffled: Any = {"sampling": "shuffled", "batch_size": 10, "population": 1000, "adjacency": "zero-out"}
    moments = hs.accountants.Moments()
    found = hs.dpsgd.steps_for(epsilon=4.0, delta=1e-5, noise_multiplier=5.0, accountant=moments, **shuffled)
    (note,) = found.notes
    assert re.fullmatch(rf"in passes of 100 steps: .* proves {found.value // 100 + 1} neither safe nor unsafe", note)


def test_a_coarse_accountant_still_returns_a_safe_value_and_says_how_close_it_is() -> None:
    coarse = hs.accountants.Certified(0.1, engine="lattice")
    found = hs.calibrate(sgd, epsilon=1.0, delta=1e-6, accountant=coarse)
    assert true_delta(sgd(found.value), 1.0)[1] <= Fraction(1e-6)
    assert found.precision <= 1e-4 or "cannot decide" in " ".join(found.notes)


def test_a_coarse_accountant_calls_unsafe_only_what_it_proves_so() -> None:
    """A bracket around the target decides nothing: no value inside it is called unsafe, or safe."""
    coarse = hs.accountants.Certified(0.5, points=256, engine="lattice")
    found = hs.calibrate(lambda s: hs.Gaussian(s) * 40, epsilon=1.0, delta=1e-6, accountant=coarse, precision=1e-3)
    assert float(found.bound.upper) <= 1e-6
    assert found.unsafe is not None
    assert found.bound_at_unsafe is not None
    assert float(found.bound_at_unsafe.lower) > 1e-6
    assert is_truly_above(hs.Gaussian(found.unsafe) * 40, 1.0, 1e-6)


def test_a_range_whose_last_values_cannot_be_decided_leaves_the_best_value_open() -> None:
    coarse = hs.accountants.Certified(0.5, points=256, engine="lattice")
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "accountant": coarse}
    found = hs.calibrate(lambda s: hs.Gaussian(s) * 40, **settings, within=(26.7, 40.0))
    assert found.unsafe is None
    assert "does not decide" in found.notes[0]
    assert found.value > 26.8
    assert found.value * (1.0 - found.precision * (1.0 + 1e-12)) <= 26.7
    swept = hs.sweep(lambda s: hs.Gaussian(s) * 40, find="s", **settings, settings={"within": (26.7, 40.0)})
    assert swept.bound.sides == (0.0, math.inf)


def test_whole_numbers_stay_within_limits_that_are_no_floats() -> None:
    asked: list[int] = []

    def family(number: int) -> Composition:
        asked.append(number)
        return hs.Gaussian(1e15) * number

    found = hs.calibrate(family, epsilon=1.0, delta=1e-5, values="integer", within=(1, 2**60 - 1), safe="smaller")
    assert found.value == max(asked) == 2**60 - 1


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
def test_a_value_is_safe_only_when_every_direction_is(adjacency: str) -> None:
    found = hs.calibrate(sgd, epsilon=1.0, delta=1e-6, adjacency=adjacency)
    assert any(note.startswith("direction: ") for note in found.bound.notes)  # said where several were asked
    assert true_delta(sgd(found.value), 1.0, adjacency)[1] <= Fraction(1e-6)
    # rare large losses, which no pass answers
    alone = hs.calibrate(lambda s: hs.Gaussian(s).poisson(1e-4) * 5000, epsilon=1.0, delta=1e-6, adjacency=adjacency)
    assert any(note.startswith("direction: ") for note in alone.bound.notes)


def test_the_bracket_at_an_unsafe_value_holds_for_every_direction() -> None:
    """Of one step remove decides, delta 0.2; of two add does, 0.32 beside 0.28: either misses the target."""
    step = hs.DiscretePair([Fraction(3, 5), Fraction(1, 5), Fraction(1, 5)], [Fraction(n, 5) for n in (1, 2, 2)])
    found = hs.calibrate(lambda n: step * n, epsilon=math.log(2.0), delta=0.24, values="integer")
    assert (found.value, found.unsafe) == (1, 2)
    for value, bound in ((1, found.bound), (2, found.bound_at_unsafe)):
        lower, upper = true_delta(step * value, math.log(2.0))
        assert bound is not None
        assert Fraction(float(bound.lower)) <= lower
        assert upper <= Fraction(float(bound.upper))


@pytest.mark.parametrize("target", [{"epsilon": 1.0, "delta": 1e-3}, {"mu": 1.0, "floor": 1e-3}])
def test_pairs_without_a_transform_are_calibrated_by_the_lattice(target: dict[str, float]) -> None:
    def integers(sigma: float) -> Composition:
        return hs.DiscreteGaussian(sigma).poisson(0.1) * 4

    found = hs.calibrate(integers, **target, precision=1e-2, safe="larger", within=(0.5, 4.0))
    assert found.unsafe is not None
    assert found.bound_at_unsafe is not None
    most = target.get("delta", target.get("mu", 0.0))
    assert float(found.bound.upper) <= most < float(found.bound_at_unsafe.lower)


def test_the_lower_side_at_a_calibrated_value_is_that_of_known_datasets() -> None:
    """Of two directions that are not attained, the one far below is decided by its upper bound alone."""

    def family(epsilon: float) -> Composition:
        return hs.ExponentialMechanism(epsilon).poisson(0.5) * 30

    found = hs.calibrate(family, epsilon=1.0, delta=1e-3, precision=0.1, within=(0.01, 2.0))
    datasets = hs.account(family(found.value)).delta(1.0)
    assert float(found.bound.lower) <= float(datasets.lower) * (1.0 + 1e-6)  # type: ignore[union-attr]


def test_an_accountant_of_estimates_is_refused() -> None:
    with pytest.raises(TypeError, match="returns estimates"):
        hs.calibrate(sgd, epsilon=1.0, delta=1e-6, accountant=hs.accountants.SaddlePoint())


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, TypeError, "give one target"),
        ({"epsilon": 1.0}, TypeError, "go together"),
        ({"epsilon": 1.0, "delta": 1e-6, "mu": 1.0}, TypeError, "as well as"),
        ({"epsilon": math.nan, "delta": 1e-6}, ValueError, "NaN"),
        ({"epsilon": -1.0, "delta": 1e-6}, ValueError, "epsilon"),
        ({"epsilon": 1.0, "delta": 1.5}, ValueError, "delta"),
        ({"epsilon": 1.0, "delta": 1.0}, ValueError, "every run"),
        ({"epsilon": 0.0, "delta": 0.0}, ValueError, "no run"),
        ({"advantage": 0.0}, ValueError, "advantage"),
        ({"true_positive_rate": 0.01, "false_positive_rate": 0.1}, ValueError, "guessing"),
        ({"epsilon": 1.0, "delta": 1e-6, "floor": 1e-9}, TypeError, "floor"),
        ({"epsilon": 1.0, "delta": 1e-6, "within": (2.0, 1.0)}, ValueError, "within"),
        ({"epsilon": 1.0, "delta": 1e-6, "within": 3.0}, TypeError, "within"),
        ({"epsilon": 1.0, "delta": 1e-6, "values": "whole"}, ValueError, "values"),
        ({"epsilon": 1.0, "delta": 1e-6, "safe": "up"}, ValueError, "safe"),
        ({"epsilon": 1.0, "delta": 1e-6, "precision": 0.0}, ValueError, "precision"),
        ({"epsilon": 1.0, "delta": 1e-6, "adjacency": "near"}, ValueError, "adjacency"),
        ({"epsilon": 1.0, "delta": 1e-6, "accountant": "contour"}, TypeError, "accountant"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        hs.calibrate(sgd, **arguments)


def test_a_family_outside_its_domain_points_at_within() -> None:
    with pytest.raises(ValueError, match="rate must be in") as caught:
        hs.calibrate(lambda g: hs.Gaussian(1.0).poisson(g) * 10, epsilon=1.0, delta=1e-6, within=(0.5, 100.0))
    assert "within" in "".join(caught.value.__notes__)
    with pytest.raises(TypeError, match="family must"):
        hs.calibrate(lambda s: s, epsilon=1.0, delta=1e-6)
    with pytest.raises(TypeError, match="family must"):
        hs.calibrate(1.0, epsilon=1.0, delta=1e-6)  # type: ignore[arg-type]


def test_dpsgd_asks_for_rate_or_sizes() -> None:
    with pytest.raises(TypeError, match="either rate"):
        hs.dpsgd.run(1.0, 10)
    with pytest.raises(TypeError, match="either rate"):
        hs.dpsgd.run(1.0, 10, batch_size=3)
    with pytest.raises(ValueError, match="at most population"):
        hs.dpsgd.run(1.0, 10, batch_size=3, population=2)
    with pytest.raises(TypeError, match="batch_size and population"):
        hs.dpsgd.run(1.0, 10, rate=0.1, sampling="without-replacement")


def test_bounds_at_both_ends_are_certified() -> None:
    found = hs.dpsgd.noise_multiplier_for(epsilon=1.0, delta=1e-6, steps=1000, rate=0.01)
    assert isinstance(found.bound, Bound)
    assert isinstance(found.bound_at_unsafe, Bound)


def test_a_direction_is_left_out_only_where_it_is_proved_to_stay_below() -> None:
    """The direction thought to decide is asked first, and may be the wrong one."""
    run = hs.Gaussian(1.0).poisson(0.01) * 1000
    truth = hs.account(run).delta(1.0)
    problem = Problem(
        lambda noise: hs.Gaussian(noise).poisson(0.01) * 1000,
        target_of(epsilon=1.0, delta=0.5),
        "add-remove",
        Certified(),
    )
    for first in directions("add-remove"):
        search = Search(problem, Axis(0.1, 10.0, False, -1, 1e-4))
        search._worst = first
        bound = search.evaluate(1.0, 1e-3).bound
        assert float(bound.lower) <= float(truth.upper)
        assert float(truth.lower) <= float(bound.upper)
        assert search._worst == "remove"


def test_where_the_record_is_seldom_drawn_at_all_any_noise_will_do() -> None:
    """Without a look at curves of next to no noise, each of which takes half a minute."""
    found = hs.calibrate(lambda noise: hs.Gaussian(noise).poisson(0.01) * 20, epsilon=1.0, delta=0.5)
    assert found.value == 1e-6
    assert found.notes == ("every value allowed meets the target",)
    assert 0.18 < found.bound.upper < 0.19
    assert found.bound.method == "the probability that the record is ever drawn"


@pytest.mark.parametrize(
    ("target", "most"),
    [
        ({"true_positive_rate": 0.5, "false_positive_rate": 1e-3}, 1e-3 + 1.0 - 0.99**20),
        ({"bayes_risk": 0.2, "prior": 0.7}, 0.3 * (1.0 - 0.99**20)),
    ],
)
def test_nor_does_it_take_noise_to_meet_other_targets_then(target: dict[str, float], most: float) -> None:
    found = hs.calibrate(lambda scale: hs.Laplace(scale).poisson(0.01) * 20, **target)
    assert found.value == 1e-6
    assert found.notes == ("every value allowed meets the target",)
    assert most <= float(found.bound.upper) <= most * (1.0 + 1e-12)
    assert found.bound.method == "the probability that the record is ever drawn"


@pytest.mark.parametrize(
    ("run", "adjacency"),
    [
        (lambda noise: hs.Gaussian(noise).poisson(0.01, micro_batches=2) * 10, "add-remove"),
        (lambda noise: hs.GaussianMixture.poisson_group(noise, rate=0.01, size=4) * 5, "remove"),
        (lambda noise: hs.Gaussian(noise).poisson(0.01) * 20, "substitute"),
        (lambda noise: hs.Gaussian(noise).without_replacement(batch_size=5, population=500) * 20, "substitute"),
    ],
)
def test_nor_does_it_however_the_record_is_drawn(run: Any, adjacency: str) -> None:
    found = hs.calibrate(run, epsilon=1.0, delta=0.5, adjacency=adjacency)
    ever = 1 - Fraction(99, 100) ** 20
    assert found.value == 1e-6
    assert ever <= Fraction(found.bound.upper) <= ever * (1 + Fraction(1e-12))


def test_the_smallest_difference_of_risks_is_a_target() -> None:
    target = target_of(bayes_risk=math.nextafter(1e-320, 0.0), prior=1e-320)
    assert target.most == math.ulp(0.0)
    assert Problem(sgd, target, "add-remove", Certified()).excess(1e-323) > 0.0


def test_a_precision_beyond_all_values_is_met() -> None:
    found = hs.calibrate(sgd, epsilon=1.0, delta=1e-6, precision=1e9)
    assert found.unsafe is not None
    assert found.unsafe < THRESHOLD < found.value < 10.0


def test_where_the_safest_value_cannot_be_decided_no_other_is_asked() -> None:
    """With noise of 1e9 rounding is above so small a delta; with next to no noise the accountant refuses."""
    with pytest.raises(PrecisionError, match="epsilon 1e-8 at delta 1e-30: at 1000000000 the accountant"):
        hs.dpsgd.noise_multiplier_for(epsilon=1e-8, delta=1e-30, steps=1000, rate=0.01)


def test_what_is_proved_safe_is_kept_where_a_further_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Search._measured

    def refusing(self: Search, run: Composition, tolerance: float) -> Bound:
        if self.safe is not None:
            raise PrecisionError("the losses\nare too large")
        return measured(self, run, tolerance)

    monkeypatch.setattr(Search, "_measured", refusing)
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "accountant": Certified(1e-3), "guess": 26.9}
    found = hs.calibrate(lambda noise: hs.Gaussian(math.ceil(noise)) * 40, **settings)
    assert found.value > 26.0
    assert float(found.bound.upper) <= 1e-6
    assert len(found.notes) == 1
    assert found.notes[0].endswith("refuses to decide closer: the losses are too large")


@pytest.mark.parametrize(
    ("family", "values", "most"),
    [
        (lambda s: hs.Gaussian(s).without_replacement(batch_size=8, population=400) * 200, "real", 10),
        (lambda n: hs.Gaussian(2.0).without_replacement(batch_size=8, population=400) * n, "integer", 9),
    ],
)
def test_the_ends_of_what_cannot_be_decided_take_few_evaluations(
    family: Callable[[Any], hs.Composition], values: str, most: int
) -> None:
    """Of fixed-size batches under substitution the sides of a bracket never meet: each has an edge of its own."""
    found = hs.calibrate(family, epsilon=2.0, delta=1e-6, adjacency="substitute", values=values)
    assert found.evaluations <= most
    assert "cannot decide" in found.notes[0]
    assert found.unsafe is not None
    beyond = [found.value * (1.0 - 1e-3), found.unsafe * (1.0 + 1e-3)]
    nearer = [int(found.value) + 1, int(found.unsafe) - 1] if values == "integer" else beyond
    for value, side in zip(nearer, ("upper", "lower"), strict=True):
        bound = hs.account(family(value), "substitute").delta(2.0)
        assert (float(getattr(bound, side)) > 1e-6) is (side == "upper")


def test_gaussian_steps_are_never_bounded_by_lattices_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their closed form answers far out, too, where the contour refuses and lattices take a second each."""
    monkeypatch.setattr(search, "Moments", None)  # which is asked before lattices are
    found = hs.calibrate(lambda s: hs.Gaussian(s) * 1000, epsilon=1e-4, delta=1e-100)
    assert float(found.bound.upper) <= 1e-100
    assert found.precision <= 1e-5
