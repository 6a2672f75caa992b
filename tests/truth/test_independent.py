"""The independent checker proves what the accountants claim, refutes what is off, and catches a wrong pair.

No tolerance anywhere. The random cases are fixed by their seeds: nothing here can fail by chance.
"""

from __future__ import annotations

import copy
import math
import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import pytest
from flint import acb, arb, ctx

import hockeystick as hs
from hockeystick.independent import CONTRADICTED, NOT_REACHED, PROVED, Finding, check, laws
from hockeystick.independent.balls import real
from hockeystick.independent.laplace import laplace_delta
from hockeystick.independent.laws import Mixture
from hockeystick.independent.run import Run
from hockeystick.independent.steps import step_of
from hockeystick.laws.gaussian import GaussianPair
from hockeystick.laws.laplace import LaplacePair
from hockeystick.readouts.trade_off import trade_off
from tests.truth.independent_cases import FAST, SLOW, document, fixed_size, is_attained, poisson, random_case, step

RANDOM_CASES = 300
SIZES = {"batch_size": 10, "population": 100}
SEED = 20_261_122


def said(findings: tuple[Finding, ...]) -> str:
    return "\n".join(map(str, findings))


def nudged(claims: dict[str, Any], by: float) -> dict[str, Any]:
    """The same claims, every side moved past the other one: true of no number. Those of 0 and infinity are left out."""
    moved = copy.deepcopy(claims)
    moved["results"] = [result for result in moved["results"] if result["lower"] > 0.0 and result["upper"] < math.inf]
    for result in moved["results"]:
        result["directions"] = {
            name: own for name, own in result["directions"].items() if own["lower"] > 0.0 and own["upper"] < math.inf
        }
        for own in (result, *result["directions"].values()):
            own["lower"], own["upper"] = own["upper"] * (1.0 + by), own["lower"] * (1.0 - by)
    return moved


CASES = [*FAST, *(pytest.param(case, marks=pytest.mark.torture) for case in SLOW)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{'-'.join(s['mechanism'] for s in case[1])}")
def test_true_numbers_are_proved_and_nudged_ones_refuted(case: tuple[Any, ...]) -> None:
    claims = document(*case)
    shuffles = any(
        s.get("sampling", {}).get("scheme") == "shuffled" and s["sampling"]["population"] > 10 for s in case[1]
    )
    attained = is_attained(case)
    true = sum(2 * (1 + len(result["directions"])) for result in claims["results"])
    # in one receipt: what the checker computes for the true numbers it need not compute again for the nudged ones
    nudges = nudged(claims, 1e-6)["results"] if attained and not shuffles else []
    found = check({**claims, "results": [*claims["results"], *nudges]})
    kept = [f for f in found[:true] if not (shuffles and f.where.endswith("lower"))]
    assert all(f.verdict == PROVED for f in kept), said(found)
    assert all(f.verdict == CONTRADICTED for f in found[true:]), said(found)
    assert len(found) > true or not nudges


@pytest.mark.torture
@pytest.mark.parametrize("number", range(RANDOM_CASES))
def test_no_random_case_is_contradicted(number: int) -> None:
    rng = random.Random(f"{SEED}-{number}")  # noqa: S311 - no secret
    case = random_case(rng)
    found = check(document(*case))
    verdicts = Counter(f.verdict for f in found)
    assert not verdicts[CONTRADICTED], f"{case}\n{said(found)}"
    assert all(f.reason for f in found if f.verdict == NOT_REACHED), said(found)


def test_a_curve_in_closed_form_is_met_by_the_contour(monkeypatch: pytest.MonkeyPatch) -> None:
    law, _ = step_of(step("gaussian", 50, noise_multiplier=7.0), "remove")
    exact, _ = Run([law]).delta(Fraction(1), 60, -10.0)
    monkeypatch.setattr(Run, "_gaussian", lambda *_: None)
    contour, _ = Run([law]).delta(Fraction(1), 60, -10.0)
    assert contour.overlaps(exact)
    assert contour.rad() < exact.mid() * 2**-50


WRONG_SHIFT = [
    ("remove", [step("gaussian", 30, noise_multiplier=3.0)]),
    ("remove", [step("gaussian", 1000, poisson(0.05), noise_multiplier=2.0)]),
]


@pytest.mark.parametrize("turned", [False, True], ids=["remove", "add"])
@pytest.mark.parametrize("noise", ["1/2", "1", "7"])
def test_a_moment_beside_the_real_line_is_that_on_it(noise: str, turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the integrand falls in place of turning: a tenth of the evaluations far out."""
    mixed, still = {Fraction(0): Fraction(9, 10), 1 / Fraction(noise): Fraction(1, 10)}, {Fraction(0): Fraction(1)}
    law = Mixture(still, mixed) if turned else Mixture(mixed, still)
    calls: Counter[str] = Counter()

    def counted(self: Mixture, z: Any, x: Any, analytic: bool, told: Any = Mixture._integrand) -> Any:
        calls[key] += 1
        return told(self, z, x, analytic)

    monkeypatch.setattr(Mixture, "_integrand", counted)
    found: dict[str, list[Any]] = {"beside": [], "on": []}
    before, ctx.prec = ctx.prec, 60
    for key, aside in (("beside", laws._ASIDE), ("on", 0.0)):
        monkeypatch.setattr(laws, "_ASIDE", aside)
        found[key] = [law.moment(acb(2, s)) for s in (0.5, 20, float(8000 * Fraction(noise)))]
    ctx.prec = before
    for beside, on in zip(*found.values(), strict=True):
        assert beside.overlaps(on)
        assert beside.rad() <= 1e-12
    assert calls["on"] > 4 * calls["beside"]


@pytest.mark.parametrize(("adjacency", "steps"), WRONG_SHIFT)
def test_a_pair_of_slightly_wrong_noise_is_caught(
    monkeypatch: pytest.MonkeyPatch, adjacency: str, steps: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(hs.Gaussian, "pair", lambda self, _: GaussianPair(self.noise_multiplier * (1.0 + 1e-6), 1.0))
    found = check(document(adjacency, steps, 1e-5, 1.0))
    assert any(f.verdict == CONTRADICTED for f in found), said(found)


def test_a_direction_the_wrong_way_round_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = type(hs.Gaussian(1.0).poisson(0.1)).pair

    def turned(self: Any, direction: Any) -> Any:
        return right(self, {"remove": "add", "add": "remove"}[direction])

    monkeypatch.setattr(type(hs.Gaussian(1.0).poisson(0.1)), "pair", turned)
    found = check(document("remove", [step("gaussian", 1, poisson(0.1), noise_multiplier=0.8)], 1e-5, 0.05))
    assert any(f.verdict == CONTRADICTED for f in found), said(found)


def test_a_forgotten_doubling_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hs.Laplace, "pair", lambda self, _: LaplacePair(self.scale, 1.0))
    found = check(document("substitute", [step("laplace", 200, scale=30.0)], 1e-5, 1.0))
    assert any(f.verdict == CONTRADICTED for f in found), said(found)


def test_a_trade_off_is_proved_and_a_nudged_one_refuted() -> None:
    run = hs.DiscreteLaplace(2.0) * 5
    alphas = (0.0, 0.001, 0.05, 0.3, 0.6, 1.0)
    rates = trade_off(hs.account(run), alphas, direction="remove", tolerance=0.02).false_negative_rate
    claims = document("add-remove", [step("discrete-laplace", 5, scale=2.0)], 1e-3, 0.5)
    rows = list(zip(rates.lower.tolist(), rates.upper.tolist(), strict=True))
    stated = {"certified": True, "direction": "remove", "false_positive": list(alphas)}
    found = check(claims | {"tradeoff": stated | {"false_negative": [{"lower": a, "upper": b} for a, b in rows]}})
    assert sum(f.where.startswith("trade-off") for f in found) == 2 * len(alphas)
    assert all(f.verdict == PROVED for f in found), said(found)
    turned = [{"lower": 1.01 * b, "upper": 0.99 * a} for a, b in rows[:-1]]
    wrong = check(
        {**claims, "results": [], "tradeoff": stated | {"false_negative": turned, "false_positive": alphas[:-1]}}
    )
    assert all(f.verdict == CONTRADICTED for f in wrong), said(wrong)


def test_what_is_out_of_reach_is_said_with_its_reason() -> None:
    claims = document("remove", [step("discrete-gaussian", 40, poisson(0.1), sigma=2.0)], 1e-5, 0.1)
    found = [f for f in check(claims) if f.verdict != PROVED]
    assert found
    assert {f.verdict for f in found} == {NOT_REACHED}
    assert all(f.reason for f in found)


@pytest.mark.parametrize(
    ("quantity", "lower", "upper", "verdicts"),
    [
        ("delta", math.nan, math.nan, [NOT_REACHED, NOT_REACHED]),
        ("epsilon", math.nan, 9.0, [NOT_REACHED, PROVED]),
        ("delta", math.inf, math.inf, [CONTRADICTED, PROVED]),
        ("delta", -math.inf, -math.inf, [PROVED, CONTRADICTED]),
        ("epsilon", -math.inf, -math.inf, [PROVED, CONTRADICTED]),
    ],
)
def test_sides_that_are_no_finite_numbers_have_a_verdict(
    quantity: str, lower: float, upper: float, verdicts: list[str]
) -> None:
    claims = document("remove", [step("gaussian", 3, noise_multiplier=2.0)], 1e-5, 1.0)
    result = next(result for result in claims["results"] if result["quantity"] == quantity)
    found = check({**claims, "results": [{**result, "lower": lower, "upper": upper, "directions": {}}]})
    assert [f.verdict for f in found[:2]] == verdicts


def test_an_enormous_upper_side_is_not_reached_with_a_reason() -> None:
    steps = [step("gaussian", 1, noise_multiplier=1.0), step("approximate-dp", 1, epsilon=0.5, delta=1e-11)]
    claims = document("remove", steps, 1e-5, 1.0)
    (result,) = (result for result in claims["results"] if result["quantity"] == "epsilon")
    result["upper"] = 9e9
    (found,) = (f for f in check({**claims, "results": [result]}) if f.where.endswith("1e-05, upper"))
    assert found.verdict == NOT_REACHED
    assert found.reason


@pytest.mark.parametrize(
    "written",
    [
        step("randomized-response", 3, epsilon=2.0),
        step("discrete-laplace", 3, epsilon=0.5),
        step("gaussian", 3, noise_multiplier=2.0, sensitivity=3.0),
        step("gaussian", 3, {**poisson(0.1), "micro_batches": 4}, noise_multiplier=2.0),
    ],
    ids=str,
)
def test_what_is_written_otherwise_is_not_taken_for_something_else(written: dict[str, Any]) -> None:
    claims = document("remove", [step("gaussian", 3, noise_multiplier=2.0)], 1e-5, 0.1)
    claims["specification"]["steps"] = [written]
    found = check(claims)
    assert {f.verdict for f in found} == {NOT_REACHED}
    assert all("which the checker does not know" in f.reason for f in found)


def test_batches_of_a_step_that_shows_nothing_are_proved() -> None:
    claims = document("substitute", [step("approximate-dp", 2, fixed_size(5, 10), epsilon=0.0)], 1e-5, 0.1)
    assert {f.verdict for f in check(claims)} == {PROVED}


def test_names_and_notes_of_steps_change_nothing() -> None:
    named = {**step("laplace", 1, scale=1.0), "name": "a", "note": "b"}
    assert step_of(named, "add") == step_of(step("laplace", 1, scale=1.0), "add")


def test_the_same_rate_as_two_sizes_is_exact() -> None:
    assert step_of(step("laplace", 1, fixed_size(1, 3), scale=1.0), "add")[0].g == Fraction(1, 3)


def gaussian_trade_off(mu: float, alpha: float) -> float:
    normal = NormalDist()
    return normal.cdf(-normal.inv_cdf(alpha) - mu)


def test_a_trade_off_that_no_datasets_are_known_to_attain_is_proved_from_below_only() -> None:
    # shuffled batches are dominated by steps without sampling: known datasets miss more than f
    f = gaussian_trade_off(2.0 / 3.0, 0.1)
    steps = [{**step("gaussian", 4, noise_multiplier=3.0), "sampling": {"scheme": "shuffled", **SIZES}}]
    claims = {"specification": {"steps": steps, "guarantee": {"adjacency": "zero-out"}}, "results": []}
    rows = [{"lower": f - 1e-4, "upper": f + 1e-4}, {"lower": f + 1e-4, "upper": f - 1e-4}]
    tradeoff = {"certified": True, "direction": "zero-out", "false_positive": [0.1, 0.1], "false_negative": rows}
    found = [one.verdict for one in check({**claims, "tradeoff": tradeoff})]
    assert found == [PROVED, NOT_REACHED, CONTRADICTED, CONTRADICTED]


def test_a_trade_off_of_exchanged_records_is_proved_from_above_by_datasets() -> None:
    claims = document("substitute", [step("randomized-response", 5, fixed_size(1, 4), probability=0.75)], 1e-4, 0.1)
    rows = [{"lower": 0.7161, "upper": 0.7331}, {"lower": 0.7161, "upper": 0.725}]
    tradeoff = {"certified": True, "direction": "substitute", "false_positive": [0.1, 0.1], "false_negative": rows}
    found = [one.verdict for one in check({**claims, "results": [], "tradeoff": tradeoff})]
    assert found == [PROVED, PROVED, PROVED, NOT_REACHED]


def test_losses_too_small_for_the_working_precision_are_not_taken_for_none() -> None:
    steps = [step("approximate-dp", 1, fixed_size(1, 2), epsilon=1e-30)]
    result = {"quantity": "delta", "at": {"epsilon": 0.0}, "lower": 1e-31, "upper": 1e-40, "directions": {}}
    specification = {"steps": steps, "guarantee": {"adjacency": "substitute"}}
    found = check({"specification": specification, "results": [result]})
    assert [one.verdict for one in found] == [PROVED, NOT_REACHED]  # delta is 1.25e-31


def test_a_ball_around_the_largest_loss_of_laplace_noise_holds_delta_on_both_sides_of_it() -> None:
    noise, apart = [(Fraction(1), 1), (Fraction(1, 3), 2)], Fraction(1, 2**40)
    limit = Fraction(5, 3)
    whole = laplace_delta(noise, real(limit) + arb(0, 2 * real(apart)))
    assert whole.contains(0)
    assert whole.contains(laplace_delta(noise, real(limit - apart)))


@pytest.mark.parametrize(("trials", "sensitivity"), [(1, 1), (1200, 2)])
def test_the_middle_of_symmetric_noise_is_known_to_be_even(trials: int, sensitivity: int) -> None:
    steps = [step("binomial", 1, fixed_size(1, 5), trials=trials, sensitivity=sensitivity)]
    assert {one.verdict for one in check(document("substitute", steps, 1e-3, 0.01))} == {PROVED}


@pytest.mark.parametrize("count", [2, 100])
def test_the_mass_at_infinity_is_told_from_the_numbers_next_to_it(count: int) -> None:
    steps = [step("approximate-dp", count, epsilon=1.0, delta=1e-3)]
    mass = 1 - (1 - Fraction(1e-3)) ** count
    low = max(x for x in (float(mass), math.nextafter(float(mass), 0.0)) if Fraction(x) < mass)
    high = math.nextafter(low, 1.0)
    claims = [
        {"quantity": "delta", "at": {"epsilon": math.inf}, "lower": low, "upper": high},
        {"quantity": "delta", "at": {"epsilon": math.inf}, "lower": high, "upper": low},
        {"quantity": "epsilon", "at": {"delta": low}, "lower": math.inf, "upper": 1e9},
        {"quantity": "epsilon", "at": {"delta": high}, "lower": math.inf, "upper": 1e9},
    ]
    specification = {"steps": steps, "guarantee": {"adjacency": "remove"}}
    found = check({"specification": specification, "results": [{**claim, "directions": {}} for claim in claims]})
    true = [True, True, False, False, True, False, False, True]
    assert [f.verdict for f in found] == [PROVED if one else CONTRADICTED for one in true]


def test_no_epsilon_is_below_0() -> None:
    claims = document("remove", [step("gaussian", 1, noise_multiplier=2.0)], 0.9, 1.0)
    (result,) = (result for result in claims["results"] if result["quantity"] == "epsilon")
    (_, found) = check({**claims, "results": [{**result, "upper": -0.1, "directions": {}}]})
    assert found.verdict == CONTRADICTED


@pytest.mark.parametrize(
    "changed",
    [
        {"threat_model": "one record is known"},
        {"guarantee": {"adjacency": "remove", "delta": 1e-5, "conditional_on": "public data"}},
        {"steps": [step("gaussian", 3, fixed_size(5, 5), noise_multiplier=2.0)]},
        {"steps": [step("gaussian", 3, poisson(-0.5), noise_multiplier=2.0)]},
    ],
    ids=["of the run", "of the guarantee", "no smaller dataset", "no rate"],
)
def test_a_specification_that_is_not_wholly_understood_proves_nothing(changed: dict[str, Any]) -> None:
    claims = document("remove", [step("gaussian", 3, noise_multiplier=2.0)], 1e-5, 1.0)
    claims["specification"] |= changed
    assert {one.verdict for one in check(claims)} == {NOT_REACHED}


@pytest.mark.parametrize(("quantity", "given"), [("epsilon", "epsilon"), ("mu", "delta")])
def test_a_quantity_that_is_not_known_is_no_figure(quantity: str, given: str) -> None:
    claims = document("remove", [step("gaussian", 3, noise_multiplier=2.0)], 1e-5, 1.0)
    with pytest.raises(LookupError):
        check({**claims, "results": [{**claims["results"][0], "quantity": quantity, "at": {given: 0.5}}]})


ROUND = {"scheme": "random-allocation", "steps": 5}


@pytest.mark.parametrize(
    ("written", "epsilon"),
    [
        (step("gaussian", 1, ROUND, noise_multiplier=1.0), 800.0),
        (step("laplace", 2, scale=1e-9), 1e6),
        (step("discrete-laplace", 1, scale=1.0, sensitivity=10**9), 1.0),
        (step("discrete-gaussian", 1, sigma=3.0, sensitivity=10**9), 1.0),
        (step("binomial", 1, trials=60, sensitivity=10**9), 1.0),
    ],
    ids=["float64", "digits", "discrete-laplace", "discrete-gaussian", "binomial"],
)
def test_what_would_take_too_much_is_not_reached(written: dict[str, Any], epsilon: float) -> None:
    result = {"quantity": "delta", "at": {"epsilon": epsilon}, "lower": 1e-9, "upper": 0.5, "directions": {}}
    specification = {"steps": [written], "guarantee": {"adjacency": "remove"}}
    found = check({"specification": specification, "results": [result]})
    assert {one.verdict for one in found} == {NOT_REACHED}
    assert all(one.reason for one in found)


def test_threads_wait_for_each_other() -> None:
    depths = [(5.0, 1e-6), (3.0, 1e-60), (9.0, 1e-2), (7.0, 1e-200)]
    cases = [document("remove", [step("gaussian", 20, noise_multiplier=s)], d, 1.0) for s, d in depths]
    before, interval = ctx.prec, sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = [one for said in pool.map(check, cases * 40) for one in said]
    finally:
        after, ctx.prec = ctx.prec, before
        sys.setswitchinterval(interval)
    assert {one.verdict for one in found} == {PROVED}
    assert after == before
