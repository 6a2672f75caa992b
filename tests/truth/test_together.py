"""Questions asked together: each answer is that of the question alone, to the bit, and contains the exact truth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from threading import Thread
from typing import Any, Literal

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import certified
from hockeystick.bound import Bound
from hockeystick.curve import PrivacyCurve
from hockeystick.engines import choose, closed_form, many_forms
from hockeystick.engines.contour import root_bracket, standing, through
from hockeystick.engines.contour.answers import Answers
from hockeystick.engines.contour.line import ContourLine
from hockeystick.engines.together import answers_together
from hockeystick.errors import PrecisionError
from hockeystick.exact import exact_delta
from hockeystick.together import asked_together, each_together
from reproduce.work import calls

DPSGD = hs.Gaussian(noise_multiplier=1.0).poisson(rate=0.01) * 2000


def random_run(rng: np.random.Generator) -> hs.Composition:
    noise, rate = float(10.0 ** rng.uniform(-0.1, 1.0)), float(10.0 ** rng.uniform(-2.5, 0.0))
    steps = int(10.0 ** rng.uniform(3.0, 6.0))
    kind = rng.random()
    if kind < 0.7:
        return hs.Gaussian(noise_multiplier=noise).poisson(rate=rate) * steps
    if kind < 0.8:
        return hs.Laplace(noise).poisson(rate=rate) * steps
    if kind < 0.9:
        return hs.Gaussian(noise_multiplier=noise).poisson(rate=rate) * steps + hs.Gaussian(noise_multiplier=30.0)
    return hs.RandomizedResponse(0.5 + 0.1 * rate) * steps


def same(together: Bound, index: int, alone: Bound) -> bool:
    lower, upper = np.asarray(together.lower), np.asarray(together.upper)
    return bool(lower[index] == alone.lower and upper[index] == alone.upper)


def random_questions(rng: np.random.Generator, curve: PrivacyCurve, count: int) -> dict[str, np.ndarray]:
    """Deltas of all sizes, and epsilons where delta is of all sizes."""
    deltas = 10.0 ** -rng.uniform(0.5, 30.0, count)
    ends = np.asarray(curve.epsilon(deltas).upper)
    reach = ends[np.isfinite(ends)].max(initial=1.0)
    return {"epsilon": deltas, "delta": rng.uniform(0.0, 1.2 * reach, count)}


@pytest.mark.parametrize("seed", range(3))
def test_arrays_answer_as_each_question_does_alone(seed: int) -> None:
    """On curves of their own, in another order, and in a thread of their own."""
    rng = np.random.default_rng(seed)
    for _ in range(2):
        run = random_run(rng)
        for quantity, values in random_questions(rng, hs.account(run), 8).items():
            whole = getattr(hs.account(run), quantity)(values)
            order = rng.permutation(values.size)
            assert (getattr(hs.account(run), quantity)(values[order]).upper == whole.upper[order]).all()
            for index in rng.permutation(values.size)[:3].tolist():
                assert same(whole, index, getattr(hs.account(run), quantity)(float(values[index]))), (
                    run,
                    values[index],
                )
            shared, found = hs.account(run), {}

            def ask(place: int, own: PrivacyCurve, of: str, at: np.ndarray, answers: dict[int, Bound]) -> None:
                answers[place] = getattr(own, of)(at[place::2])

            threads = [Thread(target=ask, args=(place, shared, quantity, values, found)) for place in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for place in range(2):
                assert (found[place].lower == whole.lower[place::2]).all()
                assert (found[place].upper == whole.upper[place::2]).all()


@pytest.mark.parametrize(
    ("quantity", "steps", "values"), [("epsilon", 2000, [0.5, 0.03]), ("delta", 692, [1900.0, 1950.0])]
)
def test_what_other_lines_answer_more_narrowly_is_left_to_them(quantity: str, steps: int, values: list[float]) -> None:
    """Of atoms on no lattice, which rounding keeps the contour from telling to the width wanted at the first value."""
    run = hs.DiscretePair((0.35, 0.06, 0.17, 0.42), (1.5e-3, 2.5e-5, 2e-3, 0.996475)) * steps
    whole = getattr(hs.account(run, "remove"), quantity)(values)
    for index, value in enumerate(values):
        assert same(whole, index, getattr(hs.account(run, "remove"), quantity)(value)), value


CLOSED = [
    hs.Gaussian(noise_multiplier=1.3),
    hs.Gaussian(noise_multiplier=5.0) * 400 + hs.Gaussian(noise_multiplier=2.0),
    hs.Gaussian(noise_multiplier=0.6).poisson(rate=0.1),
    hs.Laplace(0.7),
    hs.Laplace(0.7).poisson(rate=0.01),
    hs.Laplace(2.0) * 2 + hs.RandomizedResponse(0.6),
]


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
@pytest.mark.parametrize("run", CLOSED)
def test_arrays_of_closed_forms_answer_as_each_question_does_alone(run: Any, adjacency: str) -> None:
    """In any order, ends of the range among them, notes and all; and say what answered."""
    rng = np.random.default_rng(6)
    deltas = rng.permutation([0.0, 1.0, 0.5, 0.05, 1e-300, *10.0 ** -rng.uniform(0.5, 60.0, 12)])
    epsilons = rng.permutation([0.0, np.inf, 1000.0, 1e-9, *rng.uniform(0.0, 6.0, 12)])
    for quantity, values in (("epsilon", deltas), ("delta", epsilons)):
        alone = [getattr(hs.account(run, adjacency), quantity)(value) for value in values.tolist()]
        whole = getattr(hs.account(run, adjacency), quantity)(values)
        assert all(same(whole, index, one) for index, one in enumerate(alone))
        assert set(whole.method.split("; ")) == {one.method for one in alone}
        assert whole.errors == {"rounding": max(one.errors.get("rounding", 0.0) for one in alone)}
        each = each_together([hs.account(run, adjacency)], np.zeros(values.size, np.intp), values, quantity)
        for one, other in zip(alone, each, strict=True):
            assert isinstance(other, Bound)
            assert (one.method, one.errors, one.notes) == (other.method, other.errors, other.notes)


@pytest.mark.parametrize(("run", "most"), [(CLOSED[0], 6), (CLOSED[1], 6), (CLOSED[2], 9)])
def test_arrays_of_closed_forms_take_few_evaluations(run: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    for name in ("one_step_deltas", "least_one_step_deltas"):
        of = getattr(closed_form, name)

        def counting(
            pair: Any, at: np.ndarray, of: Callable[..., Any] = of, **above: Any
        ) -> tuple[np.ndarray, np.ndarray]:
            asked.append(at.size)
            answer: tuple[np.ndarray, np.ndarray] = of(pair, at, **above)
            return answer

        monkeypatch.setattr(closed_form, name, counting)
    curve = hs.account(run)
    curve.delta(np.linspace(0.0, 5.0, 500))
    curve.epsilon(np.geomspace(1e-20, 0.01, 500))
    assert len(asked) <= most
    assert sum(asked) <= 20_000


@pytest.mark.parametrize("adjacency", ["add-remove", "remove"])
def test_many_runs_answer_as_each_does_alone(adjacency: str) -> None:
    rng = np.random.default_rng(17)
    runs = [random_run(rng) for _ in range(6)]
    owners = np.repeat(np.arange(6), 2).reshape(3, 4)
    deltas = 10.0 ** -rng.uniform(1.0, 20.0, owners.shape)
    found = asked_together([hs.account(run, adjacency) for run in runs], owners, deltas, "epsilon")
    back = asked_together([hs.account(run, adjacency) for run in runs], owners, np.asarray(found.upper), "delta")
    assert isinstance(found, Bound)
    assert isinstance(back, Bound)
    assert np.shape(found.upper) == np.shape(back.upper) == owners.shape
    for index in np.ndindex(*owners.shape):
        alone = hs.account(runs[owners[index]], adjacency)
        answer = alone.epsilon(float(deltas[index]))
        assert (answer.lower, answer.upper) == (found.lower[index], found.upper[index]), runs[owners[index]]
        answer = alone.delta(float(answer.upper))
        assert (answer.lower, answer.upper) == (back.lower[index], back.upper[index]), runs[owners[index]]


@pytest.mark.parametrize("adjacency", ["add-remove", "substitute"])
def test_many_gaussian_runs_answer_as_each_does_alone_in_few_evaluations(
    adjacency: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, whatever the noise and the counts, and ends of the range among them."""
    rng = np.random.default_rng(31)
    runs = [
        hs.Gaussian(float(10.0 ** rng.uniform(-1.5, 3.0))) * int(10.0 ** rng.uniform(0.0, 5.0)) + hs.Gaussian(7.0) * k
        for k in range(1, 11)
    ]
    runs += [hs.Gaussian(3.0), hs.GaussianDP(0.25) * 9, hs.Laplace(2.0), *runs[:2]]
    epsilons, deltas = rng.uniform(0.0, 9.0, len(runs)), 10.0 ** -rng.uniform(0.5, 40.0, len(runs))
    epsilons[:4], deltas[:4] = [0.0, np.inf, 700.0, 1e-9], [0.0, 1.0, 1e-300, 0.7]
    alone = [hs.account(run, adjacency) for run in runs]
    sizes: list[int] = []
    for name in ("one_step_deltas", "least_one_step_deltas"):
        of = getattr(many_forms, name)

        def counting(below: Any, at: np.ndarray, of: Callable[..., Any] = of, **above: Any) -> Any:
            sizes.append(at.size)
            return of(below, at, **above)

        monkeypatch.setattr(many_forms, name, counting)
    for quantity, values in (("epsilon", deltas), ("delta", epsilons)):
        sizes.clear()
        found = asked_together([hs.account(run, adjacency) for run in runs], np.arange(len(runs)), values, quantity)
        assert 0 < len(sizes) <= 2 * len(runs)  # six and more each, alone
        for index, curve in enumerate(alone):
            assert same(found, index, getattr(curve, quantity)(float(values[index]))), runs[index]


def sampled_run(rng: np.random.Generator) -> hs.Composition:
    """DP-SGD of all sorts, some of it behind a cliff, some with other releases beside it."""
    noise, rate = float(rng.uniform(0.7, 5.0)), float(10.0 ** rng.uniform(-3.0, -1.0))
    run = hs.Gaussian(noise_multiplier=noise).poisson(rate=rate) * int(10.0 ** rng.uniform(2.5, 5.0))
    return run + hs.Gaussian(noise_multiplier=20.0) if rng.random() < 0.2 else run


@pytest.mark.parametrize("quantity", ["epsilon", "delta"])
def test_many_sampled_runs_answer_as_each_does_alone(quantity: Literal["epsilon", "delta"]) -> None:
    """To the bit, whichever runs are asked beside it."""
    rng = np.random.default_rng(23)
    runs = [sampled_run(rng) for _ in range(16)]
    values = 10.0 ** -rng.uniform(1.0, 15.0, len(runs)) if quantity == "epsilon" else rng.uniform(0.0, 1.0, len(runs))
    found = asked_together([hs.account(run) for run in runs], np.arange(len(runs)), values, quantity)
    half = asked_together([hs.account(run) for run in runs[:7]], np.arange(7), values[:7], quantity)
    assert isinstance(found, Bound)
    assert isinstance(half, Bound)
    assert (np.asarray(half.lower) == np.asarray(found.lower)[:7]).all()
    assert (np.asarray(half.upper) == np.asarray(found.upper)[:7]).all()
    for index in rng.permutation(len(runs))[:6].tolist():
        curve = hs.account(runs[index])
        assert same(found, index, getattr(curve, quantity)(float(values[index]))), runs[index]


def test_a_rule_that_is_cut_off_leaves_those_beside_it_as_they_are() -> None:
    """Of two runs whose coarse rules are both cut off, one needs a rule that is cut off itself."""
    delta = 4.79697153390329e-06
    runs = [  # the plain step keeps lines of rare large losses from answering
        hs.Gaussian(noise_multiplier=noise).poisson(rate=rate) * steps + hs.Gaussian(1e4)
        for noise, rate, steps in (
            (0.6552079283088517, 0.005425638791620347, 98),
            (0.641641729518721, 0.005575628413645928, 91),
        )
    ]
    found = asked_together([hs.account(run) for run in runs], np.arange(2), np.full(2, delta), "epsilon")
    for index, run in enumerate(runs):
        assert same(found, index, hs.account(run).epsilon(delta))


@pytest.mark.parametrize("run", [DPSGD, hs.Laplace(1.0).poisson(rate=0.01) * 2000])
def test_the_contour_alone_answers_an_array_as_each_epsilon(run: hs.Composition) -> None:
    contour = hs.accountants.Contour(1e-6)
    epsilons = np.array([0.0, 0.3, 1.0, 2.5, 1e6])  # the last beyond the largest loss of Laplace noise
    if run is DPSGD:
        epsilons = epsilons[:-1]
    together = hs.account(run, accountant=contour).delta(epsilons)
    for index, epsilon in enumerate(epsilons.tolist()):
        alone = hs.account(run, accountant=contour).delta(epsilon)
        assert same(together, index, alone)


def test_many_runs_take_few_calls() -> None:
    """A pass over many runs makes a small part of the calls that they make one by one."""
    rng = np.random.default_rng(29)
    runs = [
        hs.Gaussian(noise_multiplier=float(rng.uniform(0.8, 4.0))).poisson(rate=float(10.0 ** rng.uniform(-2.5, -1.0)))
        * int(10.0 ** rng.uniform(3.0, 5.0))
        for _ in range(64)
    ]
    alone = calls(lambda: [hs.account(run).epsilon(1e-6) for run in runs[:4]]) / 4
    curves = [hs.account(run) for run in runs]
    together = calls(lambda: asked_together(curves, np.arange(64), np.full(64, 1e-6), "epsilon")) / 64
    assert together <= 0.4 * alone


@pytest.mark.parametrize("open_one", [0, 1])
def test_a_direction_that_no_pass_answers_is_asked_alone(open_one: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the directions is left open by the pass."""
    epsilons = np.array([0.5, 1.0, 2.0])
    answered = [hs.account(DPSGD).delta(float(epsilon)) for epsilon in epsilons]
    passes: list[Answers] = []
    alone: list[float] = []
    one = PrivacyCurve.one

    def without_one(*args: object) -> Answers:
        answers = answers_together(*args)  # type: ignore[arg-type]
        for part in (answers.known, answers.lower, answers.upper) if len(passes) == open_one else ():
            part[:] = 0  # of this direction nothing is known
        passes.append(answers)
        return answers

    def asked_alone(curve: PrivacyCurve, value: float, quantity: Literal["epsilon", "delta"]) -> Any:
        alone.append(value)
        return one(curve, value, quantity)

    monkeypatch.setattr(certified, "answers_together", without_one)
    monkeypatch.setattr(PrivacyCurve, "one", asked_alone)
    together = hs.account(DPSGD).delta(epsilons)
    assert len(passes) == open_one + 1
    assert alone == epsilons.tolist()
    assert all(same(together, index, one) for index, one in enumerate(answered))


def test_the_direction_that_decides_is_named_as_alone() -> None:
    epsilons = np.array([0.0, 0.5, 1.0, 4.0])
    together = hs.account(DPSGD).delta(epsilons)
    notes = {note for epsilon in epsilons for note in hs.account(DPSGD).delta(float(epsilon)).notes}
    assert set(together.notes) == notes
    largest = {}
    for epsilon in epsilons:
        for name, error in hs.account(DPSGD).delta(float(epsilon)).errors.items():
            largest[name] = max(largest.get(name, 0.0), error)
    assert dict(together.errors) == largest


def test_a_thousand_questions_share_a_few_dozen_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    count: Counter[str] = Counter()
    placed, asked, interpolated = standing.line_for_epsilon, ContourLine.curve, root_bracket._Search.interpolate
    several = through.lines_for_epsilons

    def counting_several(*args: Any, **kwargs: Any) -> object:
        count["lines"] += args[1].size
        count["passes"] += 1
        return several(*args, **kwargs)

    def counting(name: str, function: object) -> object:
        def inside(*args: object, **kwargs: object) -> object:
            count[name] += 1
            return function(*args, **kwargs)  # type: ignore[operator]

        return inside

    monkeypatch.setattr(standing, "line_for_epsilon", counting("lines", placed))
    monkeypatch.setattr(through, "lines_for_epsilons", counting_several)
    monkeypatch.setattr(ContourLine, "curve", counting("calls", asked))
    monkeypatch.setattr(root_bracket._Search, "interpolate", counting("rounds", interpolated))
    curve = hs.account(DPSGD)
    curve.epsilon(np.logspace(-30.0, -1.0, 1000))
    assert 10 <= count["lines"] <= 60  # of two directions
    assert count["passes"] <= 12
    assert count["calls"] <= 400
    assert count["rounds"] <= 2  # all at once
    count.clear()
    curve.epsilon(np.logspace(-29.0, -1.5, 1000))
    assert count["lines"] == 0
    count.clear()
    hs.account(DPSGD).delta(np.linspace(0.0, 12.0, 10_000))
    assert count["lines"] <= 60
    assert count["calls"] <= 200


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.68, 1.43e-4, 3730), (1.67, 5.38e-4, 775), (1.9, 1.88e-3, 477)])
def test_behind_a_cliff_one_line_answers(
    noise: float, rate: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rare steps of enormous loss swamp the larger tilts: the line stands where they are left out."""
    monkeypatch.setattr(choose, "RARE_FIRST", (0.0, 0.0, 0.0))  # the contour comes first
    count, several = 0, through.lines_for_epsilons

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += args[1].size
        return several(*args, **kwargs)

    monkeypatch.setattr(through, "lines_for_epsilons", counting)
    run = hs.Gaussian(noise_multiplier=noise).poisson(rate=rate) * steps
    curve = hs.account(run, "remove")
    found = curve.epsilon(1e-6)
    assert count == 1
    assert found.width <= 1e-11
    for side, above in ((float(found.lower), True), (float(found.upper), False)):
        exact = exact_delta(run.pairs("remove"), side, digits=13)
        assert exact.high >= Fraction(1e-6) if above else exact.low <= Fraction(1e-6)
    count = 0
    curve.epsilon(np.linspace(0.8e-6, 1.25e-6, 50))
    assert count <= 2


@pytest.mark.parametrize(("rate", "most"), [(5e-4, 3), (1.2e-3, 2), (1.5e-3, 2)])
def test_a_line_whose_rounding_leaves_less_serves_a_whole_curve(
    rate: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "RARE_FIRST", (0.0, 0.0, 0.0))  # the contour comes first
    count, placed, several = 0, standing.line_for_epsilon, through.lines_for_epsilons

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return placed(*args, **kwargs)

    def counting_several(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += args[1].size
        return several(*args, **kwargs)

    monkeypatch.setattr(standing, "line_for_epsilon", counting)
    monkeypatch.setattr(through, "lines_for_epsilons", counting_several)
    run, deltas = hs.Gaussian(1.0).poisson(rate) * 2000, np.geomspace(1e-3, 5e-9, 20)
    found = hs.account(run, "remove").epsilon(deltas)
    assert count <= most
    assert 1e-10 < float(np.max(found.width)) < 1e-6
    for row in (0, 10, 19):
        for side, above in ((float(found.lower[row]), True), (float(found.upper[row]), False)):
            exact = exact_delta(run.pairs("remove"), side, digits=11)
            assert exact.high >= Fraction(deltas[row]) if above else exact.low <= Fraction(deltas[row])


def contained(rng: np.random.Generator, questions: int) -> int:
    """How many answers of one batch were compared with the truth."""
    run = random_run(rng)
    curve = hs.account(run, "remove")
    parts = run.pairs("remove")
    asked = random_questions(rng, curve, questions)
    found, compared = curve.delta(asked["delta"]), 0
    at = curve.epsilon(asked["epsilon"])
    for index, epsilon in enumerate(asked["delta"].tolist()):
        try:
            exact = exact_delta(parts, epsilon, digits=13)
        except PrecisionError:
            continue
        assert Fraction(float(found.lower[index])) <= exact.high, (run, epsilon)
        assert exact.low <= Fraction(float(found.upper[index])), (run, epsilon)
        compared += 1
    for index, delta in enumerate(asked["epsilon"].tolist()):
        lower, upper = float(at.lower[index]), float(at.upper[index])
        if not math.isfinite(upper):
            continue
        try:
            below, above = (exact_delta(parts, side, digits=13) for side in (lower, upper))
        except PrecisionError:
            continue
        assert above.low <= Fraction(delta), (run, delta)
        assert lower == 0.0 or below.high >= Fraction(delta), (run, delta)
        compared += 1
    return compared


@pytest.mark.parametrize("seed", range(2))
def test_batches_contain_the_exact_truth(seed: int) -> None:
    rng = np.random.default_rng(20261122 + seed)
    assert sum(contained(rng, 3) for _ in range(3)) >= 9


def of_many_runs(rng: np.random.Generator, count: int) -> int:
    """How many brackets of one pass over many runs were compared with the truth, on both sides."""
    runs = [sampled_run(rng) for _ in range(count)]
    deltas, compared = 10.0 ** -rng.uniform(2.0, 12.0, count), 0
    curves = [hs.account(run, "remove" if rng.random() < 0.6 else "add") for run in runs]
    found = asked_together(curves, np.arange(count), deltas, "epsilon")
    for index, (curve, delta) in enumerate(zip(curves, deltas.tolist(), strict=True)):
        parts = runs[index].pairs("remove" if curve.adjacency == "remove" else "add")
        try:
            above = exact_delta(parts, float(np.asarray(found.lower)[index]), digits=13)
            below = exact_delta(parts, float(np.asarray(found.upper)[index]), digits=13)
        except PrecisionError:
            continue
        assert above.high >= Fraction(delta) or float(np.asarray(found.lower)[index]) == 0.0, (runs[index], delta)
        assert below.low <= Fraction(delta), (runs[index], delta)
        compared += 2
    return compared


def test_many_runs_contain_the_exact_truth() -> None:
    assert of_many_runs(np.random.default_rng(31), 3) >= 2


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(40))
def test_two_thousand_sides_of_many_runs_contain_the_exact_truth(seed: int) -> None:
    assert of_many_runs(np.random.default_rng([37, seed]), 25) >= 25


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(50))
def test_two_thousand_questions_in_batches_contain_the_exact_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert sum(contained(rng, 10) for _ in range(2)) >= 10
