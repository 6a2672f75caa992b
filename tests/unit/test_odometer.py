"""The odometer: equal to batch accounting at every moment, and through saving, killing and restoring."""

from __future__ import annotations

import functools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified
from hockeystick.bound import Bound
from hockeystick.composition import Step
from hockeystick.engines.lattice.compose import TiltedComposition
from hockeystick.engines.lattice.streaming import RunningComposition
from hockeystick.engines.lattice.streaming_plan import LiveDirection
from hockeystick.exact import exact_delta, exact_epsilon
from hockeystick.numerics.one_sided_root import one_sided_root
from hockeystick.state import stamped
from tests.closed_forms import composed_mu, gaussian_epsilon

MECHANISMS: list[Step] = [
    hs.Gaussian(1.0).poisson(0.01),
    hs.Gaussian(1.3).poisson(0.02),
    hs.Gaussian(30.0),
    hs.Laplace(200.0),
]


def batch(odometer: hs.Odometer) -> Bound:
    curve = hs.account(odometer.composition, odometer.adjacency, accountant=Certified(1e-3, engine="lattice"))
    bound = curve.epsilon(odometer.delta)
    assert isinstance(bound, Bound)
    return bound


def assert_agree(first: Bound, second: Bound) -> None:
    assert first.lower <= second.upper
    assert second.lower <= first.upper


def walk(odometer: hs.Odometer, steps: int, seed: int) -> None:
    for number in np.random.default_rng(seed).integers(len(MECHANISMS), size=steps).tolist():
        odometer.step(MECHANISMS[number])


@pytest.mark.parametrize("delta", [0.2, 1e-5, 1e-12, 1e-30])
def test_agrees_with_batch_accounting_along_the_way(delta: float) -> None:
    odometer = hs.Odometer(delta, "remove")
    for seed, steps in enumerate((1, 2, 7, 90, 400)):
        walk(odometer, steps, seed)
        bound = odometer.epsilon()
        assert bound.width <= 1e-3
        assert_agree(bound, batch(odometer))
    assert odometer.steps == 500


def test_epsilon_never_falls_by_more_than_the_tolerance() -> None:
    odometer = hs.Odometer(1e-5)
    last = 0.0
    for _ in range(60):
        odometer.step(MECHANISMS[0])
        bound = odometer.epsilon()
        assert bound.upper >= last
        last = float(bound.lower)


def transform_of_batch(odometer: hs.Odometer, direction: str) -> tuple[float, float]:
    """Upper and lower epsilon of the same lattices composed at once, by inverse transform over the whole window."""
    live = odometer._directions[direction]  # type: ignore[index]
    assert live.plan is not None
    found = []
    for side in (0, 1):
        parts = [(live.plan.lattices(pair)[side], count) for pair, count in live.counts.items()]
        composed = TiltedComposition(parts, live.plan)
        found.append(
            one_sided_root(
                composed.delta, odometer.delta, guess=live.guess, slope=live.plan.theta, step=1e-11, above=side == 0
            )
        )
    return found[0], found[1]


def assert_equals_batch(steps: int) -> None:
    odometer = hs.Odometer(1e-6, "remove")
    for seed in range(4):
        walk(odometer, steps // 4, seed)
        odometer.epsilon()
    bound, audited = odometer.epsilon(), odometer.audit()
    upper, lower = transform_of_batch(odometer, "remove")
    for running, again, at_once in ((bound.upper, audited.upper, upper), (bound.lower, audited.lower, lower)):
        assert math.isclose(float(running), float(again), rel_tol=1e-9, abs_tol=0.0)
        assert math.isclose(float(running), at_once, rel_tol=1e-9, abs_tol=0.0)


def test_equals_batch_accounting_to_1e_9() -> None:
    assert_equals_batch(4_000)


@pytest.mark.torture
def test_100_000_steps_equal_batch_accounting_to_1e_9() -> None:
    assert_equals_batch(100_000)


def test_counts_are_repeated_steps() -> None:
    one, many = hs.Odometer(1e-5), hs.Odometer(1e-5)
    for _ in range(50):
        one.step(MECHANISMS[1])
    many.step(MECHANISMS[1], count=50)
    assert one.composition == many.composition
    assert_agree(one.epsilon(), many.epsilon())


def test_a_composition_is_its_steps() -> None:
    odometer = hs.Odometer(1e-5)
    odometer.step(MECHANISMS[0] * 3 + MECHANISMS[2], count=2)
    assert odometer.composition == MECHANISMS[0] * 6 + MECHANISMS[2] * 2


def test_bounded_losses_and_mass_at_infinity() -> None:
    pure = hs.Odometer(1e-200)
    pure.step(hs.Laplace(4.0), count=3)
    assert pure.epsilon().upper <= 0.75 * (1.0 + 1e-12)
    failing = hs.Odometer(1e-9)
    failing.step(hs.ApproximateDP(0.1, 1e-8))
    assert failing.epsilon().lower == math.inf


def test_below_the_mass_at_infinity_neither_side_is_finite() -> None:
    step = hs.ApproximateDP(0.1, 1e-8)
    odometer = hs.Odometer(math.nextafter(1e-8, 0.0))  # closer than bounds on the mass tell
    odometer.step(step)
    assert odometer.epsilon().upper == math.inf
    live = LiveDirection(1e-9, 1e-3, 1 << 16)
    live.add(step.pair("remove"), 1)
    assert live.epsilon() == (math.inf, math.inf)


def test_the_worse_of_both_directions_is_answered() -> None:
    run = hs.Gaussian(0.8).poisson(0.05) * 100
    odometer = hs.Odometer(1e-5)
    odometer.step(run)
    exact = [exact_epsilon(run.pairs(direction), 1e-5, digits=6) for direction in ("remove", "add")]
    assert abs(float(exact[0].lower) - float(exact[1].lower)) > 0.05
    assert odometer.epsilon().lower <= max(float(one.upper) for one in exact)
    assert odometer.epsilon().upper >= max(float(one.lower) for one in exact)


@pytest.mark.parametrize("steps", [30, 60])
def test_the_mass_at_infinity_is_part_of_delta(steps: int) -> None:
    """Where half of delta is mass at infinity, the rest must do with half."""
    odometer = hs.Odometer(2.0 * steps * 1e-5, "remove")
    odometer.step(hs.ApproximateDP(0.1, 1e-5), count=steps)
    exact = exact_epsilon((hs.ApproximateDP(0.1, 1e-5) * steps).pairs("remove"), odometer.delta, digits=8)
    assert odometer.epsilon().lower <= exact.upper
    assert odometer.epsilon().upper >= exact.lower


def test_exact_lattices_are_left_when_another_loss_comes() -> None:
    odometer = hs.Odometer(1e-5, "remove")
    odometer.step(hs.RandomizedResponse(probability=0.6), count=20)
    assert_agree(odometer.epsilon(), batch(odometer))
    odometer.step(hs.RandomizedResponse(probability=0.57), count=20)
    odometer.step(hs.Gaussian(9.0))
    assert_agree(odometer.epsilon(), batch(odometer))


def test_notes_say_what_is_certified() -> None:
    odometer = hs.Odometer(1e-5)
    odometer.step(MECHANISMS[0])
    assert any("fixed in advance" in note for note in odometer.epsilon().notes)


def test_a_bound_that_is_not_attained_has_a_trivial_lower_side() -> None:
    odometer = hs.Odometer(1e-5, "substitute")
    odometer.step(hs.Gaussian(2.0).without_replacement(batch_size=10, population=100), count=5)
    assert odometer.epsilon().lower == 0.0


def test_steps_of_which_more_is_proved_together_than_of_each_are_accounted_together() -> None:
    odometer, run = hs.Odometer(1e-5), hs.ExponentialMechanism(1.9) * 50
    odometer.step(run)
    whole = hs.account(run).epsilon(1e-5)
    assert odometer.epsilon().sides == odometer.audit().sides == whole.sides
    assert 0.0 < whole.lower < whole.upper < 48.1


def test_a_lower_side_that_is_not_computed_is_not_called_unknown() -> None:
    """Of Laplace noise datasets attain the pair but for a rounding, and `account` has both sides."""
    odometer, step = hs.Odometer(1e-5, "substitute"), hs.Laplace(1.0).poisson(0.1)
    odometer.step(step)
    odometer.step(step)
    bound, told = odometer.epsilon(), hs.account(step * 2, "substitute").epsilon(1e-5)
    assert bound.lower == 0.0 < told.lower <= told.upper <= bound.upper * (1.0 + 1e-9)
    assert any("hockeystick.account may say more" in note for note in bound.notes)


def test_nothing_is_recorded_of_a_step_without_a_pair() -> None:
    odometer = hs.Odometer(1e-5, "substitute")
    with pytest.raises(hs.UnknownPairError):
        odometer.step(hs.GaussianDP(2.0).poisson(0.1))
    assert odometer.steps == 0
    assert odometer.epsilon().upper == 0.0


# ------------------------------------------------------------------------------------------------------------- state


def test_a_step_known_by_its_moments_is_refused_and_not_recorded() -> None:
    odometer = hs.Odometer(delta=1e-6)
    odometer.step(hs.Gaussian(2.0))
    with pytest.raises(hs.UnknownPairError, match="only its Renyi divergences are known"):
        odometer.step(hs.Gaussian(1.0) + hs.ZeroConcentratedDP(0.1))
    assert odometer.composition == hs.Gaussian(2.0) * 1
    assert odometer.epsilon().lower > 0.0


def test_a_run_of_finite_losses_below_0_is_restored() -> None:
    odometer = hs.Odometer(delta=0.1, adjacency="remove")
    odometer.step(hs.DiscretePair([0.5, 0.5], [1.0, 0.0]))
    assert odometer.epsilon().sides == (math.inf, math.inf)
    assert hs.Odometer.from_json(odometer.to_json()).epsilon().sides == (math.inf, math.inf)


def test_saving_killing_and_restoring_changes_nothing(tmp_path: Path) -> None:
    straight, broken = hs.Odometer(1e-5), hs.Odometer(1e-5)
    path = tmp_path / "run.json"
    for seed in range(6):
        for odometer in (straight, broken):
            walk(odometer, 40, seed)
            odometer.epsilon()
        broken.save(path)
        broken = hs.Odometer.load(path)
    walk(straight, 17, 99)
    walk(broken, 17, 99)
    first, second = straight.epsilon(), broken.epsilon()
    assert (first.lower, first.upper) == (second.lower, second.upper)
    assert straight.to_json() == broken.to_json()


def test_steps_that_share_a_pair_are_both_restored() -> None:
    """Saved before anything was asked: what is restored are counts, two steps of which belong to one pair."""
    odometer = hs.Odometer(1e-5)
    odometer.step(hs.Gaussian(1.0), count=30)
    odometer.step(hs.GaussianDP(1.0), count=20)
    restored = hs.Odometer.from_json(odometer.to_json())
    truth = gaussian_epsilon(composed_mu(1.0, 50), 1e-5)
    for bound in (odometer.epsilon(), restored.epsilon()):
        assert bound.lower <= truth <= bound.upper
        assert bound.width <= 1e-2
    one, other = odometer.epsilon(), restored.epsilon()
    assert (one.lower, one.upper) == (other.lower, other.upper)


def test_every_kind_of_step_is_read_back() -> None:
    odometer = hs.Odometer(1e-4)
    steps: list[Step] = [
        hs.Gaussian(0.1 + 0.2),
        hs.GaussianDP(0.3),
        hs.Laplace(2.5).poisson(1.0 / 3.0),
        hs.RandomizedResponse(probability=0.7),
        hs.Binomial(trials=60, probability=0.4),
        hs.DiscreteGaussian(3.0),
        hs.DiscretePair((0.5, 0.5), (0.25, 0.75)),
        hs.Gaussian(4.0).without_replacement(batch_size=3, population=10),
    ]
    for step in steps:
        odometer.step(step)
    assert hs.Odometer.from_json(odometer.to_json()).composition == odometer.composition


@functools.cache
def state() -> str:
    odometer = hs.Odometer(1e-5)
    odometer.step(MECHANISMS[0], count=30)
    odometer.epsilon()
    return odometer.to_json()


FOREIGN = [
    ("", "not JSON"),
    ("3", "not 'hockeystick odometer'"),
    ('{"epsilon": 1.0}', "not 'hockeystick odometer'"),
    ('{"format": "hockeystick odometer", "version": 2}', "version 2"),
]


@pytest.mark.parametrize(("text", "why"), FOREIGN)
def test_a_foreign_file_is_refused(text: str, why: str) -> None:
    with pytest.raises(hs.StateError, match=why):
        hs.Odometer.from_json(text)


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(hs.StateError, match="not text"):
        hs.Odometer.load(path)


def test_every_damaged_character_is_noticed() -> None:
    text = state()
    rng = np.random.default_rng(0)
    noticed = 0
    for position in rng.integers(len(text), size=40).tolist():
        character = text[position]
        if character in " \n":
            continue
        damaged = text[:position] + ("0" if character != "0" else "1") + text[position + 1 :]
        with pytest.raises(hs.StateError):
            hs.Odometer.from_json(damaged)
        noticed += 1
    assert noticed > 20


def resealed(change: dict[str, object]) -> str:
    """A state with a field replaced and its checksum made good: what a forger would write."""
    body = json.loads(state())
    for key in ("checksum", "format", "version"):
        del body[key]
    return json.dumps(stamped("odometer", {**body, **change}))


FORGED = [
    {"steps": []},
    {"steps": [{"step": {"type": "Gaussian", "noise_multiplier": "0x1.0p+0"}, "count": 30}]},
    {"steps": [{"step": {"type": "system", "command": {"text": "true"}}, "count": 1}]},
    {"steps": [{"step": {"type": "Gaussian", "noise_multiplier": "nan"}, "count": 30}]},
    {"steps": [{"step": {"type": "Gaussian", "noise_multiplier": "0x1.0p+0"}, "count": -1}]},
    {"steps": [{"step": {"type": "Gaussian"}, "count": 1}]},
    {"settings": {"delta": "0x1.0p+1", "adjacency": "add-remove", "tolerance": "0x1.0p-10", "points": 1024}},
    {"directions": {}},
    {"directions": {"remove": None, "add": None}},
]


@pytest.mark.parametrize("change", FORGED)
def test_content_that_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(hs.StateError):
        hs.Odometer.from_json(resealed(change))


def test_a_step_that_could_not_be_read_back_is_refused_when_it_is_taken() -> None:
    class Own(Step):
        def pair(self, direction: object) -> object:  # type: ignore[override]
            return hs.Gaussian(1.0).pair("remove")

        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

    odometer = hs.Odometer(1e-5)
    for step in (Own(), hs.UserDefined(hs.Gaussian(1.0).pair("remove"))):
        with pytest.raises(TypeError, match="account such a run as a whole"):
            odometer.step(step)
        assert odometer.steps == 0


def test_another_delta_is_answered_from_the_history() -> None:
    odometer = hs.Odometer(1e-5, "remove")
    assert odometer.epsilon(1e-9).sides == (0.0, 0.0)
    odometer.step(MECHANISMS[0], count=30)
    other = odometer.epsilon(delta=1e-9)
    pairs = (MECHANISMS[0] * 30).pairs("remove")  # whose delta falls in epsilon
    assert exact_delta(pairs, float(other.upper), digits=7).high <= Fraction(1e-9)
    assert Fraction(1e-9) <= exact_delta(pairs, float(other.lower), digits=7).low
    assert other.width <= 1e-3
    assert any("fixed in advance" in note for note in other.notes)
    assert odometer.epsilon(1e-5).sides == odometer.epsilon().sides


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"delta": 0.0}, ValueError),
        ({"delta": 1.0}, ValueError),
        ({"delta": math.nan}, ValueError),
        ({"delta": "x"}, TypeError),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, float], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        hs.Odometer(**settings)  # type: ignore[arg-type]


def test_bad_steps_are_refused() -> None:
    odometer = hs.Odometer(1e-5)
    with pytest.raises(TypeError):
        odometer.step("Gaussian")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        odometer.step(MECHANISMS[0], count=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="count"):
        odometer.step(MECHANISMS[0], count=0)


@pytest.mark.parametrize("steps", [0, 10])
@pytest.mark.parametrize(
    ("delta", "kind"),
    [(5.0, ValueError), (-1e-9, ValueError), (math.nan, ValueError), ("x", TypeError), (np.ones(2), TypeError)],
)
def test_bad_deltas_are_refused_before_the_first_step_too(steps: int, delta: float, kind: type[Exception]) -> None:
    odometer = hs.Odometer(1e-5)
    for _ in range(steps):
        odometer.step(MECHANISMS[0])
    with pytest.raises(kind, match="delta"):
        odometer.epsilon(delta)


def test_a_tolerance_that_no_lattice_has_is_answered() -> None:
    """The largest loss over the spacing asked for is beyond the integers of numpy."""
    odometer = hs.Odometer(1e-5, "remove", tolerance=1e-300, points=1 << 10)
    odometer.step(hs.Laplace(1.0), count=7)
    assert_agree(odometer.epsilon(), hs.account(hs.Laplace(1.0) * 7, "remove").epsilon(1e-5))


@pytest.mark.parametrize("tolerance", [5e-324, 1e-320, 1e200, 1e308])
def test_any_tolerance_is_answered(tolerance: float) -> None:
    odometer = hs.Odometer(1e-5, "remove", tolerance=tolerance, points=1 << 14)
    odometer.step(hs.Gaussian(2.0).poisson(0.1), count=10)
    assert_agree(odometer.epsilon(), hs.account(odometer.composition, "remove").epsilon(1e-5))
    assert hs.Odometer.from_json(odometer.to_json()).epsilon().sides == odometer.epsilon().sides


@pytest.mark.parametrize(("selected", "known"), [(2, False), (6, True)])
def test_rounds_of_several_selected_steps_are_followed(selected: int, known: bool) -> None:
    step = hs.Gaussian(4.0).random_allocation(steps=6, selected=selected)
    odometer = hs.Odometer(1e-5)
    odometer.step(step)
    odometer.epsilon()
    odometer.step(step, count=2)
    bound = odometer.epsilon()
    assert_agree(bound, hs.account(step * 3).epsilon(1e-5))
    assert (bound.lower > 0.0) == known
    assert hs.Odometer.from_json(odometer.to_json()).epsilon().sides == bound.sides


SIDES_AND_DIRECTIONS = [(RunningComposition, name, call) for name in ("register", "add") for call in range(4)]


@pytest.mark.parametrize(
    ("kind", "name", "call"), [*SIDES_AND_DIRECTIONS, (LiveDirection, "add", 0), (LiveDirection, "add", 1)]
)
def test_a_step_whose_recording_is_interrupted_counts_in_every_direction(
    monkeypatch: pytest.MonkeyPatch, kind: type, name: str, call: int
) -> None:
    """Before, what had been multiplied so far was answered as the whole: 0.55 for an epsilon of 1.60."""
    odometer = hs.Odometer(1e-5)
    odometer.step(MECHANISMS[0], count=40)
    odometer.epsilon()
    whole, calls = getattr(kind, name), iter(range(call))

    def interrupted(*given: object) -> object:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return whole(*given)

    monkeypatch.setattr(kind, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        odometer.step(hs.Gaussian(2.5))
    monkeypatch.undo()
    assert odometer.steps == 41
    saved = odometer.to_json()
    found = odometer.epsilon()
    assert_agree(found, hs.account(odometer.composition).epsilon(1e-5))
    assert hs.Odometer.from_json(saved).epsilon().sides == found.sides


def test_a_step_whose_known_pairs_are_interrupted_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its lower side would be taken for one that datasets attain."""
    step, odometer = hs.Gaussian(2.0).random_allocation(steps=4), hs.Odometer(1e-5, "remove")

    def interrupted(*given: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(step), "attained", interrupted)
    with pytest.raises(KeyboardInterrupt):
        odometer.step(step)
    monkeypatch.undo()
    assert odometer.steps == 0
    odometer.step(step)
    assert odometer.epsilon().lower == 0.0


@pytest.mark.torture
def test_a_million_updates_stay_sound() -> None:
    odometer = hs.Odometer(1e-6, "remove")
    for number in range(1_000_000):
        odometer.step(MECHANISMS[number % 3])
        if number % 50_000 == 0:
            odometer.epsilon()
    bound, audited = odometer.epsilon(), odometer.audit()
    assert math.isclose(float(bound.upper), float(audited.upper), rel_tol=1e-9, abs_tol=0.0)
    assert_agree(bound, batch(odometer))


@pytest.mark.parametrize(
    ("step", "count", "says"),
    [
        (hs.Gaussian(1e9), 2**40, "more than the 2\\^40"),
        (hs.Gaussian(1e9), 10**30, "more than the 2\\^40"),
        (hs.Laplace(1e-140), 1, "more than the 1e\\+07"),
        (hs.ApproximateDP(1e300), 1, "more than the 1e\\+07"),
    ],
)
def test_what_no_bracket_is_proved_for_is_refused_when_it_is_taken(step: hs.Step, count: int, says: str) -> None:
    odometer = hs.Odometer(delta=1e-5)
    odometer.step(hs.Gaussian(1e9))
    before = odometer.to_json()
    for run in (step, step + hs.ExponentialMechanism(0.5)):
        with pytest.raises(hs.PrecisionError, match=says):
            odometer.step(run, count)
        assert odometer.to_json() == before
    assert odometer.epsilon().notes == hs.Odometer.from_json(before).epsilon().notes


@pytest.mark.parametrize("largest", [5.0, 709.5, 720.0, 1e5])
@pytest.mark.parametrize("delta", [1e-6, 0.3, 0.9])
def test_cells_may_be_wider_than_float64_holds_the_exponential_of(largest: float, delta: float) -> None:
    odometer = hs.Odometer(delta=delta)
    odometer.step(hs.ApproximateDP(largest))
    found = odometer.epsilon()
    # two outcomes: delta = (e^largest - e^epsilon) / (1 + e^largest)
    truth = largest + math.log1p(-delta * (1.0 + math.exp(-largest)))
    assert found.lower <= truth <= found.upper
    assert found.width <= 1e-3


def test_a_delta_below_the_mass_at_infinite_loss_needs_no_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    odometer = hs.Odometer(delta=1e-6)
    odometer.step(hs.RandomizedResponse(0.95), 1000)
    odometer.step(hs.ApproximateDP(0.5, 5e-6))
    monkeypatch.setattr("hockeystick.engines.lattice.streaming_plan.LiveDirection.epsilon", None)
    assert odometer.epsilon().sides == (math.inf, math.inf)


@pytest.mark.parametrize(
    ("run", "delta"),
    [
        (hs.Gaussian(5.0) * 100, 1e-250),
        (hs.Gaussian(7.44).poisson(3.67e-6) * 1000, 1e-60),
        (hs.Gaussian(0.7).poisson(1e-4) * 100, 1e-250),
    ],
)
def test_where_no_lattice_is_fine_enough_the_history_is_accounted_anew(run: hs.Composition, delta: float) -> None:
    """Followed on lattices alone, these were [0, 71.7], [6e-5, inf] and [65.5, inf]."""
    odometer = hs.Odometer(delta=delta)
    for step, count in run.steps:
        odometer.step(step, count)
    found, whole = odometer.epsilon(), hs.account(run).epsilon(delta)
    assert isinstance(whole, Bound)
    assert whole.lower <= found.lower <= found.upper <= whole.upper
    assert found.width <= 1e-3
    assert "fixed in advance" in found.notes[0]


def test_what_is_saved_while_a_plan_is_made_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may save at any moment: products of some steps alone were refused when they were read back."""
    odometer, composed, saved = hs.Odometer(1e-5), RunningComposition.add, []

    def add(side: RunningComposition, number: int, count: int) -> None:
        composed(side, number, count)
        saved.append(odometer.to_json())

    for noise in (30.0, 40.0):
        odometer.step(hs.Gaussian(noise), count=7)
    monkeypatch.setattr(RunningComposition, "add", add)
    answer = odometer.epsilon().sides
    monkeypatch.undo()
    assert len(saved) >= 8
    assert {hs.Odometer.from_json(text).epsilon().sides for text in saved} == {answer}
