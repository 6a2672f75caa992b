"""Runs of few large losses, a spike with a broad tail: lines between two cuts contain the exact truth.

Terms of the bracket are tested where each is the largest: on lines of other cuts, steps and lengths than planned.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.accountants.certified import Certified
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.contour.root_bracket import Targets
from hockeystick.engines.rare import line as engine_line
from hockeystick.engines.rare import standing
from hockeystick.engines.rare.curve import RareCurve
from hockeystick.engines.rare.curve import deltas as rare_deltas
from hockeystick.engines.rare.curve import epsilons as rare_epsilons
from hockeystick.engines.rare.excess import log_excess, log_moment
from hockeystick.engines.rare.line import RareLine, pieces_of, rare_line, transforms
from hockeystick.engines.rare.losses import WIDTH, RareLosses, RareSum, kept
from hockeystick.engines.rare.pieces import Pieces, TiltedPieces
from hockeystick.engines.rare.plan import RarePlan
from hockeystick.engines.rare.powers import difference
from hockeystick.engines.rare.runs import RareRuns
from hockeystick.engines.rare.standing import epsilon_near
from hockeystick.exact import exact_delta
from hockeystick.laws import GaussianPair, SubsampledPair
from tests.quadrature import DIGITS, integral, normal_density, panels
from tests.rare_pieces import exact_piece, only, sides, sides_around

NOISE, RATE, STEPS = 1.0, 7e-4, 260
LAW = RareLosses(1.0 / NOISE, RATE, float(STEPS))
LOSSES = RareSum((LAW,))
EPSILON = 0.15


def one_law(shift: float, rate: float, steps: float) -> RareSum:
    return RareSum((RareLosses(shift, rate, steps),))


@functools.cache
def truth(epsilon: float, noise: float = NOISE, rate: float = RATE, steps: int = STEPS) -> tuple[float, float]:
    found = exact_delta([(SubsampledPair(GaussianPair(noise), rate), steps)], epsilon, digits=10)
    return float(found.lower), float(found.upper)


@functools.cache
def planned(log_error: float = math.log(1e-6 * 1.35e-8)) -> RareLine:
    return rare_line(LOSSES, EPSILON, log_error)


def with_plan(**changes: Any) -> RareLine:
    """The line of other cuts or tilts, on pieces that serve them."""
    line = planned()
    found = replace(line.found, **changes)
    return replace(line, found=found, pieces=pieces_of(LOSSES, found))


def assert_contains(line: RareLine, epsilon: float = EPSILON) -> tuple[float, float]:
    return sides_around(truth(epsilon), line, epsilon)


def test_a_planned_line_contains_the_truth_narrowly() -> None:
    lower, upper = assert_contains(planned())
    assert upper - lower <= 1e-5 * lower


def test_a_line_proves_nothing_where_its_factors_would_be_0(monkeypatch: pytest.MonkeyPatch) -> None:
    line = planned()
    monkeypatch.setattr(RareRuns, "_sides", lambda *asked: (0.0 * asked[2], 0.0 * asked[2] + 1.0))
    assert sides(line, EPSILON) == (0.0, 1.0)
    assert sides(line, 601.0 / line.found.tilt) == (-math.inf, math.inf)


@pytest.mark.parametrize("epsilon", [0.0, math.inf, math.nan])
def test_a_line_is_planned_for_an_epsilon_above_0(epsilon: float) -> None:
    with pytest.raises(ContourRefusal, match="where to look"):
        rare_line(LOSSES, epsilon, -30.0)


@pytest.mark.parametrize("delta", [1.2e-3, 1e-251])
def test_where_no_line_serves_the_engine_refuses(delta: float) -> None:
    with pytest.raises(ContourRefusal, match=r"not rare|narrow enough"):
        RareCurve(one_law(0.26, 3.2e-4, 172.0), 1e-6).epsilon(delta)


def test_width_shrinks_with_the_error_meant() -> None:
    widths = []
    for error in (1e-2, 1e-4, 1e-6):
        lower, upper = assert_contains(planned(math.log(error * 1.35e-8)))
        widths.append(upper - lower)
    assert widths[1] <= 0.05 * widths[0]
    assert widths[2] <= 0.05 * widths[1]


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2, 0.4])
def test_a_line_contains_the_truth_far_from_its_epsilon(epsilon: float) -> None:
    assert_contains(planned(), epsilon)


@pytest.mark.parametrize("part", [0, 2])
@pytest.mark.parametrize("turn", [1.0, 1j, -1.0, -1j])
def test_transforms_off_by_the_errors_that_they_state_count_as_such(part: int, turn: complex) -> None:
    line = replace(planned())
    (step,) = line.steps
    found = list(step.transforms)
    error = 1e-6 * step.moments[part // 2]
    found[part], found[part + 1] = found[part] + error * turn, found[part + 1] + error
    vars(step)["transforms"] = tuple(found)
    lower, upper = assert_contains(line)
    assert upper - lower <= 0.1 * lower


@pytest.mark.parametrize("times", [1.25, 1.5, 2.0])
def test_a_line_of_too_long_steps_subtracts_the_periods_below(times: float) -> None:
    """Nearly all that a longer step adds comes from below."""
    line = planned()
    assert_contains(replace(line, step=line.step * times, frequencies=math.ceil(line.frequencies / times)))


@pytest.mark.parametrize("times", [2.0, 3.0])
def test_a_line_of_too_large_a_tilt_subtracts_the_periods_above(times: float) -> None:
    found = planned().found
    line = with_plan(tilt=times * found.tilt, above=1.2 * times * found.tilt)
    step = line.step * (1.0 + 1.0 / times)
    assert_contains(replace(line, step=step, frequencies=math.ceil(line.frequencies * line.step / step)))


@pytest.mark.parametrize("share", [0.03, 0.06, 0.1, 0.15, 0.25])
def test_a_line_cut_short_adds_what_lies_beyond(share: float) -> None:
    line = planned()
    assert_contains(replace(line, frequencies=math.ceil(share * line.frequencies)))


@pytest.mark.parametrize("by", [0.5, 0.8])
def test_too_high_a_lower_cut_adds_the_runs_below_it(by: float) -> None:
    assert_contains(with_plan(low=(planned().found.low[0] + by,)))


@pytest.mark.parametrize("by", [0.4, 0.7])
def test_too_low_an_upper_cut_adds_the_excess_above_it(by: float) -> None:
    assert_contains(with_plan(high=(planned().found.high[0] - by,)))


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_pieces_that_end_early_add_the_mass_beyond(share: float) -> None:
    (pieces,) = planned().pieces
    for place in range(pieces.sizes.size):
        kept = np.ceil(share * (pieces.last - pieces.first))
        own = np.arange(pieces.sizes.size) == place
        for short in (
            replace(pieces, last=np.where(own, pieces.first + kept, pieces.last)),
            replace(pieces, first=np.where(own, pieces.last - kept, pieces.first)),
        ):
            assert_contains(replace(planned(), pieces=(short,)))


FREQUENCY = 60.0  # of nodes that ball arithmetic reaches in no time


def coarse(piece: Pieces, times: float) -> Pieces:
    """The piece on fewer nodes, judged on the best of a few strips."""
    step = piece.step * times
    first, last = (np.floor(one * piece.step / step) for one in (piece.first, piece.last))
    rules = [
        replace(piece, step=step, first=first, last=last, half_width=np.array([b]))
        for b in (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
    ]
    return min(rules, key=lambda rule: float(on_line(rule).log_error(2.0 * FREQUENCY)[0]))


def on_line(pieces: Pieces) -> TiltedPieces:
    return TiltedPieces(pieces, 1.0 + planned().found.tilt)


@pytest.mark.parametrize("times", [1.0, 5.0, 10.0])
@pytest.mark.parametrize("part", ["small", "large"])
def test_rules_err_by_no_more_than_they_say(part: str, times: float) -> None:
    tilt, (small, large) = planned().found.tilt, planned().steps[0].parts
    rule = coarse(only(planned().pieces[0], 0 if part == "small" else large.start), times)
    assert small.stop == large.start
    ((value, error),) = transforms(on_line(rule), [slice(None)], FREQUENCY, 3)
    for number in (0, 2):
        assert abs(complex(value[number]) - exact_piece(rule, 1.0 + tilt, number * FREQUENCY)) <= error
    assert error <= 1.1 * math.exp(on_line(rule).log_error(2.0 * FREQUENCY)[0]) + 1e-11 * abs(value[0])
    assert abs(exact_piece(rule, 1.0 + tilt, 0.0)) <= on_line(rule).moment[0]


@pytest.mark.parametrize(
    ("frequencies", "nodes"), [(1, 70), (2, 70), (3, 70), (5, 70), (26, 70), (677, 70), (5000, 70), (5000, 1100)]
)
def test_sums_of_turned_weights_err_by_no_more_than_they_say(frequencies: int, nodes: int) -> None:
    rng, step = np.random.default_rng(frequencies), 53 / 4096
    weight, loss = rng.uniform(0.0, 1.0, nodes), rng.normal(0.0, 1.0, nodes)
    last = step * (frequencies - 1)
    value, error = engine_line._summed(weight, loss, 3.0 * 2.0**-53 * last * np.abs(loss), step, frequencies)
    for place in sorted({0, frequencies // 3, frequencies // 2, frequencies - 1}):
        with mp.workdps(40):
            terms = zip(weight.tolist(), loss.tolist(), strict=True)
            exact = sum(mpf(w) * mp.expj(mpf(step) * place * mpf(y)) for w, y in terms)
            assert abs(mp.mpc(complex(value[place])) - exact) <= error
    assert error <= 1e-10


def test_the_transform_between_the_cuts_fades_as_it_is_said_to() -> None:
    line = planned()
    piece = only(line.pieces[0], line.steps[0].parts[1].start)
    for half_width in (*line.found.half_widths, 1.2):
        bound = math.exp(on_line(piece).log_faded(FREQUENCY, half_width)[0])
        for beyond in (1.0, 2.0):
            assert abs(exact_piece(piece, 1.0 + line.found.tilt, beyond * FREQUENCY)) <= bound


@pytest.mark.parametrize("cut", [-0.1, -0.3, 0.5])
def test_the_lowest_piece_begins_where_its_cut_changes_by_less_than_1_a_nat(cut: float) -> None:
    """So the bound on its first cell has it, wherever the cut is."""
    losses = RareLosses(0.05, 0.05, 3.0)
    own = {"exponent": 9.0, "frequency": 10.0, "log_accuracy": np.array([-30.0])}
    piece = Pieces.planned(losses, np.array([-math.inf]), np.array([cut]), **own)
    m, g, w = (mpf(one) for one in (losses.shift, losses.rate, losses.width))
    (low, _), found = piece.ends[:, 0].tolist(), TiltedPieces(piece, 9.0).cells[0]
    x = (mpf(float(piece.nodes[0])) - mpf(cut)) / w
    assert mp.exp(-x * x) / mp.erfc(x) * 2 / (mp.sqrt(mp.pi) * w) < 1
    for u in np.linspace(low, float(piece.nodes[0]), 9).tolist():
        normal = mp.npdf(mpf(u), -m * m / 2, m) * mp.erfc((mpf(u) - mpf(cut)) / w) / 2
        assert mp.log(normal) + 9 * mp.log1p(g * mp.expm1(u)) <= mpf(float(found))


def test_a_piece_among_others_is_what_it_is_alone() -> None:
    """To the bit."""
    (pieces,), (half_width,) = planned().pieces, planned().found.half_widths
    together, at = on_line(pieces), (FREQUENCY, half_width)
    for place in range(pieces.sizes.size):
        alone = on_line(only(pieces, place))
        assert together.moment[place] == alone.moment[0]
        assert together.log_error(FREQUENCY)[place] == alone.log_error(FREQUENCY)[0]
        assert together.log_faded(*at)[place] == alone.log_faded(*at)[0]
        assert pieces.lost[place] == alone.pieces.lost[0]
        assert (together.weights[pieces.nodes_of(slice(place, place + 1))] == alone.weights).all()


def mean_over_q(losses: RareLosses, of: Callable[[arb, arb], arb]) -> arb:
    """The mean under Q of a function of u and r."""
    m, g = arb(losses.shift), arb(losses.rate)
    with ctx.workdps(DIGITS):
        return integral(
            lambda u: normal_density(u / m + m / 2) / m * of(u, 1 + g * u.expm1()), panels(-12 * m, 12 * m, 120)
        )


@pytest.mark.parametrize("power", [1.5, 20.0, 100.0])
def test_the_excess_of_one_large_loss_is_bounded(power: float) -> None:
    losses, cut, p, w = RareLosses(1.0, 1e-2, 1.0), 3.0, arb(power), arb(WIDTH)
    bound = math.exp(float(log_excess(RareSum((losses,)), [cut], np.array([power]), times=np.ones((1, 1)))[0]))
    taken = mean_over_q(losses, lambda u, r: r ** (1 - p) * ((cut - u) / w).erfc() / 2)
    exact = float(taken * (p - 1) ** (p - 1) / p**p)
    assert exact <= bound <= 10.0 * exact


@pytest.mark.parametrize("power", [1.5, 20.0, 100.0])
def test_the_moment_of_the_other_steps_is_bounded(power: float) -> None:
    losses, p = RareLosses(0.7, 1e-3, 1.0), arb(power)
    bound = float(log_moment(losses, np.array([power]))[0])
    exact = float(mean_over_q(losses, lambda _, r: r ** (1 - p)).log())
    assert exact <= bound <= 1.6 * exact
    one, more = (log_excess(RareSum((losses,)), [3.0], np.array([power]), times=np.array([[n]])) for n in (1.0, 3.0))
    assert more[0] - one[0] >= math.log(3.0) + 2.0 * exact


def test_the_mass_above_a_cut_is_what_it_is() -> None:
    losses, cut = RareLosses(0.8, 1e-3, 100.0), 2.5
    m, g, w = arb(losses.shift), arb(losses.rate), arb(WIDTH)
    for (mass, error), mixed in zip(losses.cut_off(cut), (True, False), strict=True):

        def f(u: arb, mixed: bool = mixed) -> arb:
            r = 1 + g * u.expm1() if mixed else 1
            return normal_density(u / m + m / 2) / m * r * ((cut - u) / w).erfc() / 2

        with ctx.workdps(DIGITS):
            exact = integral(f, panels(-4, 12, 160))
            assert abs(mass - exact) <= error * exact
        assert error <= 1e-12


def test_tails_err_by_no_more_than_assumed() -> None:
    x = np.linspace(0.0, 20.0, 401)
    for one, value in zip(x.tolist(), kept(x).tolist(), strict=True):
        exact = mp.erfc(mpf(one)) / 2
        assert abs(value - exact) <= 30.0 * 2.0**-53 * (1.0 + one * one) * exact


@pytest.mark.parametrize("steps", [2.0, 300.0, 1e6])
def test_differences_of_powers_err_by_no_more_than_they_say(steps: float) -> None:
    rng = np.random.default_rng(5)
    a = (1.0 - 0.1 * rng.random(50) / steps) * np.exp(1j * rng.uniform(-3.0, 3.0, 50))
    b = 10.0 ** rng.uniform(-12.0, -1.0, 50) * np.exp(1j * rng.uniform(-3.0, 3.0, 50)) / steps
    value, error = (found[0] for found in difference([(a, 0.0, b, 0.0)], np.array([[steps]])))
    for k in range(50):
        with mp.workdps(60):
            exact = (mp.mpc(a[k]) + mp.mpc(b[k])) ** int(steps) - mp.mpc(a[k]) ** int(steps)
            assert abs(mp.mpc(value[k]) - exact) <= error[k]
        assert error[k] <= 1e-13 * steps * abs(complex(exact))


@pytest.mark.parametrize("steps", [2.0, 300.0, 1e6])
def test_where_large_losses_are_as_likely_both_powers_err_by_no_more_than_they_say(steps: float) -> None:
    rng = np.random.default_rng(6)
    a = 0.4 * 10.0 ** rng.uniform(-200.0 / steps, 0.0, 50) * np.exp(1j * rng.uniform(-3.0, 3.0, 50))
    b = 10.0 ** rng.uniform(-0.3, 3.0 / steps, 50) * np.abs(a) * np.exp(1j * rng.uniform(-3.0, 3.0, 50))
    a[0], a[1] = 0.0, 1e-250
    value, error = (found[0] for found in difference([(a, 0.0, b, 0.0)], np.array([[steps]])))
    for k in range(50):
        with mp.workdps(60):
            one, other = (mp.mpc(a[k]) + mp.mpc(b[k])) ** int(steps), mp.mpc(a[k]) ** int(steps)
            assert abs(mp.mpc(value[k]) - (one - other)) <= error[k]
        assert error[k] <= 1e-12 * steps * float(abs(one) + abs(other)) + 1e-270


def test_runs_on_one_line_contain_their_own_truths_as_they_do_alone() -> None:
    steps, rows = np.array([[140.0], [190.0], [260.0]]), np.arange(3)
    points = np.array([[0.145, 0.14], [0.145, 0.15], [0.15, 0.16]])
    lower, upper = RareRuns(planned(), steps).sides(rows, points)
    for row, number in enumerate(steps[:, 0].tolist()):
        alone = RareRuns(planned(), steps[row : row + 1]).sides(np.zeros(1, dtype=int), points[row : row + 1])
        assert (np.array([lower[row], upper[row]]) == np.concatenate(alone)).all()
        for place, epsilon in enumerate(points[row].tolist()):
            least, most = truth(epsilon, steps=int(number))
            assert lower[row, place] <= most
            assert least <= upper[row, place] <= 1.01 * lower[row, place]


def test_epsilons_off_lines_that_stand_contain_the_truth_as_they_do_alone() -> None:
    steps, delta = (130, 190, 256, 257), 1e-8
    curves = [RareCurve(LOSSES.of(float(number)), 1e-4) for number in steps]
    targets = Targets(np.full(4, math.log(delta) + 1e-12), np.full(4, math.log(delta) - 1e-12))
    lower, upper = rare_epsilons(curves, np.arange(4), targets)
    for row, number in enumerate(steps):
        assert upper[row] - lower[row] <= 1e-4
        assert truth(float(upper[row]), steps=number)[0] <= delta <= truth(float(lower[row]), steps=number)[1]
        alone = rare_epsilons(
            [RareCurve(curves[row].losses, 1e-4)], np.zeros(1, dtype=int), targets.at(np.array([row]))
        )
        assert (float(alone[0][0]), float(alone[1][0])) == (lower[row], upper[row])
    assert len({curve.station(math.log(delta)) for curve in curves}) == 2


def test_many_runs_of_one_law_share_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[float] = []

    def counting(losses: RareSum, epsilon: float, log_error: float, **least: Any) -> RareLine:
        placed.append(epsilon)
        return rare_line(losses, epsilon, log_error, **least)

    monkeypatch.setattr(standing, "rare_line", counting)
    curves = [RareCurve(one_law(1.25, 3e-4, float(steps)), 1e-3) for steps in range(100, 1000, 30)]
    values = np.full(len(curves), math.log(1e-6))
    lower, upper = rare_epsilons(curves, np.arange(len(curves)), Targets(values, values))
    assert (upper - lower <= 1e-3).all()
    assert len(placed) == 2  # up to 256 steps, and up to 1024


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "octaves"),
    [(0.65, 1e-4, 30_000, 1.0), (0.65, 1e-4, 46_340, 0.5), (0.65, 1e-4, 46_341, 0.5), (0.9, 4.6e-4, 4_097, 1.0)],
)
def test_where_several_steps_draw_the_record_lines_serve_fewer_runs(
    noise: float, rate: float, steps: int, octaves: float
) -> None:
    curve, goal = RareCurve(one_law(1.0 / noise, rate, float(steps)), 1e-6), math.log(1e-6)
    most, least, _ = curve.station(goal)
    assert most - least == octaves
    assert 2.0**least < steps <= 2.0**most
    targets = Targets(np.array([goal + 1e-12]), np.array([goal - 1e-12]))
    (lower,), (upper,) = rare_epsilons([curve], np.zeros(1, dtype=int), targets)
    assert upper - lower <= 1e-6
    assert truth(float(upper), noise, rate, steps)[0] <= 1e-6 <= truth(float(lower), noise, rate, steps)[1]


@pytest.mark.parametrize(("noise", "rate", "steps"), [(0.6, 1e-3, 500), (1.0, 1e-4, 1000), (2.0, 1e-3, 100)])
def test_epsilon_is_guessed_to_a_tenth(noise: float, rate: float, steps: int) -> None:
    losses = one_law(1.0 / noise, rate, float(steps))
    exact = float(hs.account(hs.Gaussian(noise).poisson(rate) * steps, adjacency="remove").epsilon(1e-6).upper)
    assert 0.9 <= epsilon_near(losses, math.log(1e-6)) / exact <= 1.02


def random_question(rng: np.random.Generator) -> tuple[float, float, int, float, float]:
    noise, rate = float(rng.uniform(0.5, 1.6)), float(10.0 ** rng.uniform(-4.2, -3.0))
    steps, delta = int(10.0 ** rng.uniform(1.5, 3.0)), float(10.0 ** -rng.uniform(3.0, 30.0))
    return noise, rate, steps, delta, float(10.0 ** -rng.uniform(3.0, 7.0))


def assert_brackets(
    noise: float, rate: float, steps: int, delta: float, tolerance: float, *, of_its_own: bool = False
) -> bool:
    """Whether the curve answers; where it does the bracket contains the exact epsilon, with zero slack."""
    curve = RareCurve.of(((SubsampledPair(GaussianPair(noise), rate), steps),), tolerance)
    assert curve is not None
    log_delta = np.log(np.array([delta]))
    try:
        bound = curve._fresh_epsilon(Targets(log_delta, log_delta)) if of_its_own else curve.epsilon(delta)
    except ContourRefusal:
        return False
    lower, upper = float(bound.lower), float(bound.upper)
    assert upper - lower <= tolerance
    assert truth(upper, noise, rate, steps)[0] <= delta
    assert lower == 0.0 or truth(lower, noise, rate, steps)[1] >= delta
    return True


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [
        (0.98, 7.4e-4, 263, 1e-8),
        (1.41, 7.3e-4, 309, 1e-26),
        (1.2, 2e-4, 281, 1e-6),
        (0.9, 0.05, 30, 1e-5),
        (1.2, 0.1, 12, 1e-7),
    ],
)
@pytest.mark.parametrize("of_its_own", [False, True], ids=["standing", "of its own"])
def test_epsilons_contain_the_truth(noise: float, rate: float, steps: int, delta: float, *, of_its_own: bool) -> None:
    assert assert_brackets(noise, rate, steps, delta, 1e-6, of_its_own=of_its_own)


@pytest.mark.torture
def test_random_questions_contain_the_truth() -> None:
    """Most are answered, the others refused, or the truth is out of reach; no false alarm is possible."""
    rng = np.random.default_rng(11)
    answered = 0
    for _ in range(60):
        question = random_question(rng)
        with contextlib.suppress(hs.errors.PrecisionError):
            answered += assert_brackets(*question)
    assert answered >= 40


def test_few_sampled_steps_are_answered_by_lines_of_rare_losses() -> None:
    """Where a lattice would answer a thousand times as widely."""
    parts = ((SubsampledPair(GaussianPair(0.8), 0.03), 10),)
    found = Certified().directed(parts).delta(1.0)
    lattice = Certified(engine="lattice").directed(parts).delta(1.0)
    assert found.method == "rare large losses"
    assert float(found.width) <= 1e-6 * float(found.upper) < 1e-2 * float(lattice.width)
    assert lattice.lower <= found.lower <= found.upper <= lattice.upper


def test_deltas_contain_the_truth() -> None:
    curve = RareCurve.of(((SubsampledPair(GaussianPair(NOISE), RATE), STEPS),), 1e-4)
    assert curve is not None
    bound = curve.delta(EPSILON)
    least, most = truth(EPSILON)
    assert bound.lower <= most
    assert least <= bound.upper <= (1.0 + 1e-4) * bound.lower


def test_deltas_off_lines_that_stand_contain_the_truth_as_they_do_alone() -> None:
    curve, epsilon = RareCurve(LOSSES, 1e-6), np.array([0.149, 0.13, 0.1495, 0.0, 0.2])
    lower, upper = rare_deltas([curve], np.zeros(5, dtype=int), epsilon)
    assert (lower[3], upper[3]) == (0.0, math.inf)
    for row in (0, 1, 2, 4):
        least, most = truth(float(epsilon[row]))
        assert lower[row] <= most
        assert least <= upper[row] <= (1.0 + 1e-6) * lower[row]
        alone = RareCurve(LOSSES, 1e-6).delta(float(epsilon[row]))
        assert (alone.lower, alone.upper) == (lower[row], upper[row])


def test_no_line_stands_where_epsilon_or_its_power_leaves_the_range_of_numbers() -> None:
    epsilon = np.array([5e-324, 1e-300, 699.0, 1e3, 1e300, 1.7976931348623157e308])
    lower, upper = rare_deltas([RareCurve(LOSSES, 1e-6)], np.zeros(epsilon.size, dtype=int), epsilon)
    assert (lower <= [truth(1e-9)[1]] * 2 + [1e-30] * 4).all()
    assert (upper[:2] >= truth(1e-9)[0]).all()
    assert np.isinf(upper[2:]).all()


def test_deltas_of_one_curve_share_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[float] = []

    def counting(losses: RareSum, epsilon: float, log_error: float, **least: Any) -> RareLine:
        placed.append(epsilon)
        return rare_line(losses, epsilon, log_error, **least)

    monkeypatch.setattr(engine_line, "rare_line", counting)
    run, epsilon = hs.Gaussian(noise_multiplier=0.5).poisson(rate=1e-3) * 300, np.linspace(1.0, 2.0, 120)
    found = hs.account(run).delta(epsilon)
    assert found.method == "rare large losses"
    assert len(placed) <= 18  # sixteen an octave
    for place in (0, 50, 119):
        alone = hs.account(run).delta(float(epsilon[place]))
        assert (alone.lower, alone.upper) == (found.lower[place], found.upper[place])


def test_what_lines_of_the_contour_leave_is_asked_of_rare_losses_before_lines_for_one_question() -> None:
    """There the contour's own line for a question takes ten times as long, whether it is narrow or not."""
    run = hs.Gaussian(noise_multiplier=1.0).poisson(rate=1e-2) * 30
    epsilon, delta = np.array([1.0, 1.4, 2.2]), np.array([1e-9, 1e-7])
    for bound in (hs.account(run).delta(epsilon), hs.account(run).epsilon(delta)):
        assert bound.method == "rare large losses"
    for one, value in enumerate(epsilon.tolist()):
        least, most = truth(value, 1.0, 1e-2, 30)
        found = hs.account(run).delta(epsilon)
        assert found.lower[one] <= most
        assert least <= found.upper[one] <= (1.0 + 1e-6) * found.lower[one]


def test_the_certified_accountant_asks_it_where_the_contour_would_need_many_nodes() -> None:
    run = hs.Gaussian(noise_multiplier=0.5).poisson(rate=1e-4) * 100
    bound = hs.account(run, tolerance=1e-6).epsilon(1e-6)
    assert "rare" in bound.method
    assert bound.width <= 1e-6
    coarse = hs.account(run, accountant=hs.accountants.Lattice(spacing=1e-4)).epsilon(1e-6)
    assert coarse.upper >= bound.lower


def test_runs_it_does_not_serve_are_left_to_others() -> None:
    assert RareCurve.of(((SubsampledPair(GaussianPair(1.0), 0.1), 100),), 1e-6) is None
    assert RareCurve.of(((GaussianPair(1.0), 100),), 1e-6) is None
    assert RareCurve.of(((SubsampledPair(GaussianPair(1.0), 1e-4), 1),), 1e-6) is None


def test_the_plan_says_where_losses_are_not_rare() -> None:
    with pytest.raises(ContourRefusal, match="rare"):
        rare_line(one_law(1.0, 1e-3, 1000.0), 1e-4, math.log(1e-10))


def test_plans_are_values() -> None:
    assert isinstance(planned().found, RarePlan)
    assert planned().found.low < planned().found.high


def test_a_sweep_answers_as_each_plan_does_alone() -> None:
    def plan(noise: float, steps: int) -> hs.Composition:
        return hs.Gaussian(noise_multiplier=noise).poisson(rate=2e-4) * steps

    found = hs.sweep(plan, noise=[0.6, 1.0], steps=[100, 300], delta=1e-6, tolerance=1e-6)
    assert any("rare" in row.method for row in found.rows)
    alone = [
        hs.account(plan(noise, steps), tolerance=1e-6).epsilon(1e-6) for noise in (0.6, 1.0) for steps in (100, 300)
    ]
    assert [(row.lower, row.upper) for row in found.rows] == [(float(one.lower), float(one.upper)) for one in alone]
