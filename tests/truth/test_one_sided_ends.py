"""One-sided lines at the ends of what they are asked: noise, infinite losses, alike outcomes, the largest loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.ends import composed_infinity
from hockeystick.engines.enumeration.outcomes import table
from hockeystick.engines.one_sided import line as line_code
from hockeystick.engines.one_sided.curve import OneSidedCurve
from hockeystick.engines.one_sided.kernels import Kernels
from hockeystick.engines.one_sided.line import OneSidedLine
from hockeystick.engines.one_sided.steps import AtomStep
from hockeystick.engines.one_sided.terms import TILTS, Placed, Terms
from hockeystick.engines.one_sided.tilted import COLUMNS, TiltedStep, doubts_of
from hockeystick.laws.atom_table import AtomTable
from tests import mechanism_truths as truths
from tests.outcomes import ListedCurve, every_way, mp, mpf

Steps = Sequence[tuple[truths.Vectors, int]]


def curve_of(run: hs.Composition, direction: str, most: int = 1 << 20) -> OneSidedCurve:
    parts = run.pairs(direction)
    return OneSidedCurve(parts, composed_infinity(parts), width=1e-9, most=most)


def asked(question: Callable[[float], Bound], at: float) -> Bound | None:
    """What is answered, or claimed by a refusal."""
    try:
        return question(at)
    except ContourRefusal as refusal:
        return refusal.best if isinstance(refusal.best, Bound) else None


def assert_holds(curve: OneSidedCurve, every: ListedCurve, epsilon: float, beyond: float = 0.0) -> bool:
    """The delta of an epsilon, of which outcomes that are not listed are no more than told; whether it is narrow."""
    exact, found = every.delta(epsilon), asked(curve.delta, epsilon)
    if found is None:
        return False
    assert mpf(float(found.lower)) <= exact + beyond
    assert exact <= mpf(float(found.upper))
    return float(found.width) <= 1e-9 * float(found.lower)


def assert_crosses(curve: OneSidedCurve, every: ListedCurve, delta: float) -> bool:
    """The same of the epsilon of a delta."""
    return is_crossing(asked(curve.epsilon, delta), every, delta)


def is_crossing(found: Bound | None, every: ListedCurve, delta: float, beyond: float = 0.0) -> bool:
    if found is None:
        return False
    assert float(found.lower) == 0.0 or every.delta(float(found.lower)) + beyond >= mpf(delta)
    assert float(found.upper) == math.inf or every.delta(float(found.upper)) <= mpf(delta)
    return float(found.width) <= 1e-9


RATE = Fraction(0.01)
BINOMIAL = truths.shifted(truths.binomial(24, 0.5), 1)
GAUSSIAN = truths.shifted(truths.discrete_gaussian(1.2), 1)
LAPLACE = truths.shifted_discrete_laplace(2.0, 1)
NOISE: dict[str, tuple[hs.Composition, str, Steps, Sequence[float]]] = {
    "binomial": (hs.Binomial(24) * 3, "remove", [(BINOMIAL, 3)], (0.2, 1e-4, 3e-7)),
    "sampled binomial": (
        hs.Binomial(24).poisson(0.01) * 3,
        "remove",
        [(truths.mixed(BINOMIAL, RATE), 3)],
        (1e-6, 2e-9),
    ),
    "sampled binomial, added": (
        hs.Binomial(24).poisson(0.01) * 3,
        "add",
        [(truths.turned(truths.mixed(BINOMIAL, RATE)), 3)],
        (1e-3, 1e-12),
    ),
    "sampled gaussian": (
        hs.DiscreteGaussian(1.2).poisson(0.01) * 2,
        "remove",
        [(truths.mixed(GAUSSIAN, RATE), 2)],
        (1e-2, 1e-7, 1e-30, 1e-150),
    ),
    "sampled gaussian, added": (
        hs.DiscreteGaussian(1.2).poisson(0.01) * 2,
        "add",
        [(truths.turned(truths.mixed(GAUSSIAN, RATE)), 2)],
        (1e-2, 1e-4),
    ),
    "laplace beside gaussian": (
        hs.DiscreteLaplace(2.0) * 4 + hs.DiscreteGaussian(1.2).poisson(0.01) * 2,
        "remove",
        [(LAPLACE, 4), (truths.mixed(GAUSSIAN, RATE), 2)],
        (0.3, 1e-12, 1e-40),
    ),
}


@pytest.mark.parametrize("name", NOISE)
def test_noise_is_held_between_both_sides(name: str) -> None:
    run, direction, steps, deltas = NOISE[name]
    every, curve = every_way(steps), curve_of(run, direction)
    beyond = 1e-189 if "gaussian" in name else 0.0  # noise that the truth leaves out
    narrow = int(assert_holds(curve, every, 0.0, beyond))
    for delta in deltas:
        found = curve.epsilon(delta)
        assert is_crossing(found, every, delta, beyond) or delta < 1e-100
        narrow += assert_holds(curve, every, float(found.upper), beyond)
    assert narrow >= len(deltas) - 1


def some_run(random: np.random.Generator) -> tuple[hs.Composition, str, Steps] | None:
    """One to three kinds of steps of few atoms: rare ones, alike ones, some without mass, sampled or not."""

    def sides(n: int) -> tuple[tuple[Fraction, ...], ...]:
        spread = random.choice([0.5, 3.0, 12.0, 40.0])
        p, q = ([round(10.0 ** (50.0 - random.uniform(0.0, spread))) for _ in range(n)] for _ in range(2))
        kind = random.integers(6)
        if kind < 3:  # alike; by a part in 10 or 1000; but for one
            q = [round(x * random.uniform(*((1.0, 1.0), (0.9, 1.1), (0.999, 1.001))[kind])) for x in p]
        if kind == 0:
            q[0] *= 3
        if kind == 4 and n > 2:
            p[0] = q[1] = 0
        return tuple(tuple(Fraction(x, sum(side)) for x in side) for side in (p, q))

    run: hs.Composition | None = None
    direction, steps = str(random.choice(["remove", "add"])), []
    for _ in range(random.integers(1, 4)):
        n, count, rate = int(random.integers(1, 5)), int(random.integers(1, 7)), float(random.choice([1.0, 0.1, 1e-4]))
        p, q = sides(n)
        event = hs.DiscretePair(p, q)
        one = (event if rate == 1.0 else event.poisson(rate)) * count
        run = one if run is None else run + one
        pairs = truths.mixed(tuple(zip(p, q, strict=True)), Fraction(rate))
        steps.append((pairs if direction == "remove" else truths.turned(pairs), count))
    assert run is not None
    return (run, direction, steps) if math.prod(math.comb(n + len(v) - 1, n) for v, n in steps) <= 500 else None


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.torture) for seed in range(3, 60))])
def test_random_runs_are_held_at_any_epsilon_and_delta(seed: int) -> None:
    """Zero, the largest loss and beyond, that of an outcome, and what is next to these."""
    random = np.random.default_rng(seed)
    total, narrow = 0, 0
    for _ in range(3):
        some = some_run(random)
        if some is None:
            continue
        run, direction, steps = some
        if any(all(p == q for p, q in pairs) for pairs, _ in steps):
            continue
        every, curve = every_way(steps), curve_of(run, direction, 1 << 18)
        losses = every.losses
        top = max(*losses, 0.0)
        near = [top, max(float(random.choice(losses)), 0.0)]
        epsilons = [0.0, float(random.uniform()) * top, 2.0 * top, *near]
        epsilons += [math.nextafter(one, 0.0) for one in near] + [math.nextafter(one, math.inf) for one in near]
        for epsilon in epsilons:
            exact = float(every.delta(epsilon))
            questions = [(assert_holds, epsilon)]
            if 1e-305 < exact < 1.0:
                questions += [(assert_crosses, exact), (assert_crosses, 0.3 * exact)]
            total += len(questions)
            narrow += sum(ask(curve, every, at) for ask, at in questions)
    assert narrow >= 0.3 * total or seed >= 3  # a run far out may have no narrow answer


@pytest.mark.parametrize("exponent", [60, 98])
def test_deltas_next_to_nothing_are_held(exponent: int) -> None:
    """Three draws of a rare outcome, down to 1e-294."""
    rare = Fraction(1, 10**exponent)
    p, q = (rare, Fraction(1, 3), Fraction(2, 3) - rare), (rare / 10**9, Fraction(1, 2), Fraction(1, 2) - rare / 10**9)
    every, curve = every_way([(tuple(zip(p, q, strict=True)), 3)]), curve_of(hs.DiscretePair(p, q) * 3, "remove")
    epsilons = (0.1, 10.0, 21.0, 30.0, 42.0, 50.0, 62.0)
    assert sum(assert_holds(curve, every, epsilon) for epsilon in epsilons) >= 4  # plateaus need more frequencies
    assert 0.0 < float(every.delta(epsilons[-1])) < 10.0 ** (1 - 3 * exponent)


def test_infinite_losses_are_inside_both_sides() -> None:
    """Of more mass than all finite ones add, and of less; nothing is left beyond the largest loss but these."""
    for lost in (Fraction(1, 10), Fraction(1, 10**30)):
        p = (lost, Fraction(1, 2), Fraction(1, 2) - lost)
        q = (Fraction(0), Fraction(2, 5), Fraction(3, 5))
        every, curve = every_way([(tuple(zip(p, q, strict=True)), 5)]), curve_of(hs.DiscretePair(p, q) * 5, "remove")
        for epsilon in (0.0, 0.3, 1.0):
            assert assert_holds(curve, every, epsilon)
        for epsilon in (1.2, 50.0):
            with pytest.raises(ContourRefusal, match="no tilt"):
                curve.delta(epsilon)
        assert assert_crosses(curve, every, float(every.delta(0.7)))


def test_outcomes_that_are_all_alike_tell_nothing_beyond_an_epsilon_of_0() -> None:
    for p in ((Fraction(1),), (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))):
        curve = hs.account(hs.DiscretePair(p, p) * 5 + hs.DiscreteGaussian(2.0).poisson(0.1) * 4, "remove")
        alone = hs.account(hs.DiscreteGaussian(2.0).poisson(0.1) * 4, "remove")
        for delta in (1e-3, 1e-9):
            one, other = curve.epsilon(delta), alone.epsilon(delta)
            assert max(one.lower, other.lower) <= min(one.upper, other.upper)
            assert float(one.width) <= 1e-9


def test_lines_are_the_same_whatever_was_asked_before_and_from_however_many_threads() -> None:
    run = hs.DiscreteGaussian(1.2).poisson(0.01) * 3 + hs.Binomial(24) * 2
    epsilons, deltas = (0.0, 2.0001), (1e-2, 1e-5)
    asked, most = [("delta", at) for at in epsilons] + [("epsilon", at) for at in deltas], 1 << 18
    alone = [getattr(curve_of(run, "remove", most), question)(at).sides for question, at in asked]
    kept = curve_of(run, "remove", most)
    assert [getattr(kept, question)(at).sides for question, at in asked[::-1]] == alone[::-1]
    shared = curve_of(run, "remove", most)
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda one: getattr(shared, one[0])(one[1]).sides, asked * 2)
        assert list(found) == alone * 2


@pytest.mark.parametrize(("theta", "points", "w"), [(0.05, 31.5, 0.025), (900.0, 31.5, 3e-5)])
def test_kernels_without_rounding_are_on_their_side(theta: float, points: float, w: float) -> None:
    """Their sums over periods, from their values and slopes where they meet the payoff, at sixty digits."""
    with ctx.workdps(60):
        a, length = arb(theta) * arb(w), arb(points)
        b = a + arb(w)
        lacking = (((b / 2).sinh() / (b / 2)).log() - ((a / 2).sinh() / (a / 2)).log()) / arb(w)
        for alpha, sign in ((arb(0), 1), (arb(0.5) - lacking, -1)):
            slopes = sum((s * x * (-x * alpha).exp() / (1 - (-x).exp()) for x, s in ((a, 1), (b, -1))), arb(0))
            rest = slopes if sign > 0 else 0
            assert sign > 0 or abs(slopes) <= arb(10) ** -50
            transform = []
            for m in range(math.ceil(points)):
                t = 2 * arb.pi() * m / length
                both = [(-x * alpha).exp() / (1 - acb(-x, -t).exp()) for x in (a, b)]
                ends = (1 - t / (2 * arb.pi())) * (both[0] - both[1])
                ends -= acb(0, 1) / (2 * arb.pi()) * (b * both[1] - a * both[0])
                moved = acb(0, -t * alpha).exp() * ends
                transform.append((moved - acb(0, 1) * rest / (2 * arb.pi())) * (1 if m == 0 else 2))
            gaps = []
            for k in range(-200, 430):
                x = arb(k) / 20 + arb(1) / 7000
                turn = acb(0, 2 * arb.pi() * x / length).exp()
                found = reduce(lambda sums, one, turn=turn: sums * turn + one, reversed(transform)).real / length
                x -= length * (x / length).floor()
                true = (-a * x).exp() / (1 - (-a * length).exp()) - (-b * x).exp() / (1 - (-b * length).exp())
                gaps.append(sign * (true - found))
            assert all(gap >= 0 for gap in gaps)
            assert all(gap <= 1.1 * w for gap in gaps)


SMOOTH = (
    tuple(Fraction(x, 100) for x in (5, 20, 40, 25, 10)),
    tuple(Fraction(x, 100) for x in (10, 27, 38, 19, 6)),
)


def concentrated() -> tuple[OneSidedLine, float]:
    """Nearly all of one loss, so that sums are nearly as wrong as their terms; and the delta of epsilon 0."""
    pair = hs.DiscretePair((Fraction(999, 1000), Fraction(1, 1000)), (Fraction(1, 2001), Fraction(2000, 2001)))
    atoms = table(pair.pair("remove"))
    assert atoms is not None
    tilt = int(np.argmin(np.abs(TILTS - 2.0)))
    line = OneSidedLine.of(Terms([(AtomStep(atoms), 1)]), Placed(0, tilt, 20.0), 1 << 14)
    return line, float(Fraction(999, 1000) - Fraction(1, 2001))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_kernels_as_wrong_as_they_may_be_keep_the_bracket_true(sign: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them the way that moves the sum at an epsilon of 0 most."""
    error, true, (right, delta) = 1e-4, Kernels.at, concentrated()
    turn = -2j * math.pi / right.placed.period * right.centre

    def wrong(self: Kernels, far: Any, near: Any) -> Any:
        both, size = true(self, far, near)
        off = sign * error * (1.0 + 50.0 / (self.theta * self.points * self.spacing)) * size
        return tuple(one + off * np.exp(turn * np.add.outer(far, near)) for one in both), size

    monkeypatch.setattr(line_code, "KERNEL", error)
    monkeypatch.setattr(Kernels, "at", wrong)
    line = concentrated()[0]
    assert line.lower(0.0) <= delta <= line.upper(0.0)
    assert line.upper(0.0) > right.upper(0.0)


def doubted(loss_error: float, error: float) -> AtomTable:
    found = table(hs.DiscretePair(*SMOOTH).pair("remove"))
    assert found is not None
    return replace(found, loss_error=np.full(found.size, loss_error), error=np.full(found.size, error))


def test_doubtful_masses_take_off_no_more_than_they_bring_back() -> None:
    """All as much smaller as they may be; with every loss between those that a period brings back."""
    error, tilt, period = 1e-3, int(np.argmin(np.abs(TILTS - 2.0))), 40.0
    found = Terms([(AtomStep(doubted(0.0, error)), 6)]).aliasing(Placed(0, tilt, period), 0.0)
    turn = float(TILTS[tilt]) * period
    brought = math.exp(-6.0 * error - turn) / -math.expm1(-turn)
    assert 0.9 * brought < found.lower <= brought


@pytest.mark.parametrize(("loss_error", "error"), [(0.0, 0.0), (1e-2, 0.0), (0.0, 1e-2)])
def test_bounds_on_terms_hold_what_outcomes_add_up_to(loss_error: float, error: float) -> None:
    """Of moments of 0 to 23 large losses, and of more together, all losses and masses as large as they may be."""
    steps, threshold = 30, 0.2
    terms = Terms([(AtomStep(doubted(loss_error, error)), steps)], threshold)
    logs = terms.log_moments
    assert logs.shape == (25, TILTS.size)
    atoms, (cut,) = doubted(loss_error, error), terms.cuts
    for tilt in range(17, TILTS.size - 160, 40):
        t = mpf(float(TILTS[tilt]))
        each = [
            mp.exp(mpf(float(p)) + mpf(error) + t * (mpf(float(x)) + mpf(loss_error)))
            for p, x in zip(atoms.log_p, atoms.loss, strict=True)
        ]
        small, large = mp.fsum(each[:cut]), mp.fsum(each[cut:])
        true = [mp.binomial(steps, k) * small ** (steps - k) * large**k for k in range(steps + 1)]
        assert all(
            mp.log(one) <= mpf(float(log)) <= mp.log(one) + 1e-5
            for one, log in zip(true, logs[:-1, tilt], strict=False)
        )
        assert mp.log(mp.fsum(true[24:])) <= mpf(float(logs[-1, tilt]))


def test_doubts_of_a_single_step_are_not_damped() -> None:
    """Those of a factor that comes twice or more go with the size of the others."""
    once, twice = (TiltedStep.of(doubted(0.0, 0.0), count, 5, 2.0, 0) for count in (1, 2))
    assert (doubts_of([once], 0)[1] == once.doubts[0]).all()
    assert (doubts_of([twice, twice], 0)[1] == 0.0).all()
    assert (doubts_of([once, once, twice], 0)[1] == once.doubts[0]).all()
    assert (doubts_of([once, once, twice], 0)[0] >= 4.0 * np.array(once.doubts[0])).all()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 7.0])
def test_sums_as_wrong_as_they_may_be_keep_the_bracket_true(
    epsilon: float, sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each term off by what roundings may do to it, and to its angle, which is large far from the centre of losses."""
    unit, true = 1e-8, OneSidedLine.value

    def wrong(self: OneSidedLine, side: int, epsilon: float) -> float:
        m = np.abs(np.add.outer(self.rows, np.arange(float(COLUMNS)) - COLUMNS // 2))
        angle = 2.0 * math.pi / self.placed.period * abs(epsilon - self.centre) * m
        off = unit * (11.0 * angle + 3.0 * (COLUMNS + 24))
        return true(self, side, epsilon) + sign * float((np.abs(self.sums[side]) * off).sum())

    monkeypatch.setattr(line_code, "U", unit)
    monkeypatch.setattr(OneSidedLine, "value", wrong)
    line = concentrated()[0]
    assert line.lower(epsilon) <= 0.999 - math.exp(epsilon) / 2001.0 <= line.upper(epsilon)
