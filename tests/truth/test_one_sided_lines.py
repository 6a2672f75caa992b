"""Lines of limited band, below and above: the truth lies between both sides, however few frequencies there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.enumeration.heaviest import HeaviestOutcomes
from hockeystick.engines.enumeration.outcomes import known_table, table
from hockeystick.engines.one_sided import line as line_code
from hockeystick.engines.one_sided import steps as steps_code
from hockeystick.engines.one_sided.curve import OneSidedCurve, _Lines
from hockeystick.engines.one_sided.kernels import KERNEL, Kernels
from hockeystick.engines.one_sided.line import OneSidedLine
from hockeystick.engines.one_sided.steps import AtomStep
from hockeystick.engines.one_sided.terms import TILTS, Atoms, Placed, Terms
from hockeystick.engines.one_sided.tilted import COLUMNS, TiltedStep, Transforms, doubts_of, weight_of
from hockeystick.errors import TooManyOutcomesError
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Array, Pair
from hockeystick.numerics.rounding import U
from tests.outcomes import ListedCurve, every_way

Parts = list[tuple[hs.DiscretePair, int]]
KERNELS = [(0.3, 30.5, 0.02), (2.0, 5000.5, 0.01), (40.0, 700.5, 7e-4), (1000.0, 94.5, 3e-5), (0.01, 200_000.5, 1e-3)]


def pair_of(p: Sequence[int], q: Sequence[int]) -> hs.DiscretePair:
    return hs.DiscretePair(*(tuple(Fraction(x, sum(side)) for x in side) for side in (p, q)))


RUNS: dict[str, Parts] = {
    "smooth": [(pair_of((5, 20, 40, 25, 10), (10, 27, 38, 19, 6)), 6)],
    "rare": [(pair_of((10**9, 3 * 10**8, 7), (10**9, 4 * 10**8, 1)), 5)],
    "several": [(pair_of((7, 3, 1), (6, 4, 2)), 3), (pair_of((1000, 999, 3), (1100, 900, 1)), 3)],
    "tiny": [(pair_of((10**60, 10**59, 10**18), (10**60, 2 * 10**59, 1)), 4), (pair_of((3, 2), (2, 3)), 3)],
    "steep": [(pair_of((10**80, 10**20, 1), (10**80, 10**10, 10**30)), 4)],
    "many": [(pair_of((1000, 300, 6), (1000, 250, 2)), 120)],
}


def curve_of_all(parts: Parts) -> ListedCurve:
    """The truth."""
    return every_way([(tuple(zip(pair.p, pair.q, strict=True)), count) for pair, count in parts])


def pairs_of(parts: Parts) -> tuple[tuple[Pair, int], ...]:
    return tuple((pair.pair("remove"), count) for pair, count in parts)


def terms_of(parts: Parts, threshold: float = math.inf) -> Terms:
    found = [(table(pair), count) for pair, count in pairs_of(parts)]
    return Terms([(AtomStep(atoms), count) for atoms, count in found if atoms is not None], threshold)


def curve_of(parts: Parts, width: float = 1e-9, most: int = 1 << 20) -> OneSidedCurve:
    return OneSidedCurve(pairs_of(parts), (0.0, 0.0), width=width, most=most)


@pytest.mark.parametrize("name", RUNS)
def test_both_sides_hold_the_truth_between_them(name: str) -> None:
    parts = RUNS[name]
    every, curve = curve_of_all(parts), curve_of(parts, most=1 << 18)
    smallest, narrow, asked = 1.0, 0, 0
    for share in (0.0, 0.31, 0.97) if name in {"tiny", "steep", "many"} else (0.0, 0.1, 0.31, 0.57, 0.97):
        epsilon = share * every.losses[0]
        exact = every.delta(epsilon)
        smallest = min(smallest, float(exact))
        try:
            found = curve.delta(epsilon)
            assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
            narrow += float(found.width) <= 1e-9 * float(found.lower)
        except ContourRefusal:
            assert name == "steep"
        delta = 0.3 * float(exact)  # down the cliff behind a plateau
        answer = curve.epsilon(delta)
        assert every.delta(float(answer.lower)) >= mpf(delta) or float(answer.lower) == 0.0
        assert every.delta(float(answer.upper)) <= mpf(delta)
        narrow += float(answer.width) <= 1e-9
        asked += 2
    assert narrow >= asked - 2 * (name == "steep")
    assert (
        smallest
        < {"smooth": 1e-3, "rare": 1e-25, "several": 1e-4, "tiny": 1e-100, "steep": 1e-239, "many": 1e-100}[name]
    )


@pytest.mark.parametrize("seed", range(4))
def test_lines_of_any_tilt_period_and_length_contain_the_truth(seed: int) -> None:
    """Far outside any plan, where each of the terms matters that a bound is made of."""
    random = np.random.default_rng(seed)
    parts = RUNS[["smooth", "rare", "several", "several"][seed]]
    every = curve_of_all(parts)
    apart = 0
    for _ in range(12):
        terms = terms_of(parts, float(random.choice([math.inf, 0.3, 1.0])))
        epsilon = float(random.uniform(0.0, 0.7)) * every.losses[0]
        exact = every.delta(epsilon)
        numbers = range(len(terms.log_moments) - 1) if terms.threshold < math.inf else [0]
        lines = []
        for number in numbers:
            tilt = int(np.argmin(np.abs(TILTS - float(np.exp(random.uniform(-1.5, 2.0))))))
            period = float(np.exp(random.uniform(-1.0, 2.5)))
            nodes = int(max(64, 40.0 * (1.0 + TILTS[tilt]) * period) * random.uniform(1.0, 4.0))
            if terms.log_moments[number][0] > -1e200 and random.random() < 0.9:
                lines.append(OneSidedLine.of(terms, Placed(number, tilt, period), nodes))
        found = _Lines(terms, tuple(lines), (0.0, 0.0))
        assert mpf(found.lower(epsilon)) <= exact <= mpf(found.upper(epsilon))
        apart += found.upper(epsilon) < 1.0
    assert apart > 0


@pytest.mark.parametrize("count", [1, 30, 10**6, 10**12])
def test_masses_of_terms_err_by_no_more_than_they_say(count: int) -> None:
    pair, other = pair_of((10 * count, 3 * count, 7), (10 * count, 4 * count, 1)), pair_of((30, 4, 3), (31, 3, 1))
    terms = terms_of([(pair, count), (other, 2)], 1.0)
    masses, error = terms.masses
    with mpmath.workdps(60):
        sides = [
            [mp.fsum(mpf(x.numerator) / x.denominator for x in part) for part in (one.p[:2], one.p[2:])]
            for one in (pair, other)
        ]
        own = [
            [mp.binomial(n, r) * s ** (n - r) * b**r if r <= n else mpf(0) for r in range(6)]
            for n, (s, b) in zip((count, 2), sides, strict=True)
        ]
        for number in range(min(count, 3) + 1):
            exact = mp.fsum(own[0][r] * own[1][number - r] for r in range(number + 1))
            assert abs(mpf(float(masses[number])) - exact) <= error * exact
    assert error <= 1e-13 * (100.0 + count)


def test_what_a_period_brings_back_is_between_its_bounds() -> None:
    """Beside sums that are taken outcome by outcome, at tilts from the least to the greatest that matter."""
    parts = RUNS["smooth"]
    every, terms = curve_of_all(parts), terms_of(parts)
    close = 0
    with mpmath.workdps(30):
        for tilt in range(60, 230, 21):
            for period in (0.6, 1.7, 5.0):
                epsilon, theta = 0.4, float(TILTS[tilt])
                found = terms.aliasing(Placed(0, tilt, period), epsilon)
                exact = (
                    mp.fsum(
                        mp.exp(mpf(theta) * j * mpf(period)) * every.delta(float(mpf(epsilon) + j * mpf(period)))
                        for j in range(-int(60.0 / (theta * period)) - 40, 60)
                        if j != 0
                    )
                    if theta * period > 0.4
                    else None
                )
                if exact is not None:
                    assert mpf(found.lower) * (1 - mpf(10) ** -13) <= exact
                    assert exact <= mpf(found.upper) * (1 + mpf(10) ** -13)
                    close += found.upper <= 1.5 * found.lower
    assert close > 4


def exact_kernels(theta: float, points: float, w: float, m: float) -> list[mpf]:
    """Transforms of both sides and the series they are, term by term in closed form."""
    t, a = 2 * mp.pi * mpf(m) / mpf(points), mpf(theta) * mpf(w)
    b, q = a + mpf(w), mp.exp(-1j * t)
    alpha = (mp.log(b / (1 - mp.exp(-b))) - mp.log(a / (1 - mp.exp(-a)))) / mpf(w)
    found = []
    for start in (mpf(0), alpha):
        first, second = (mp.exp(-x * start) / (1 - mp.exp(-x) * q) for x in (a, b))
        slopes = -sum(-x * mp.exp(-x * start) / (1 - mp.exp(-x)) * s for x, s in ((a, 1), (b, -1)))
        rest = slopes if start == 0 else mpf(0)
        phase = mp.exp(-1j * t * start)
        found.append(
            phase * ((1 - t / (2 * mp.pi)) * (first - second) - 1j / (2 * mp.pi) * (b * second - a * first))
            - 1j * rest / (2 * mp.pi)
        )
    return found


@pytest.mark.parametrize(("theta", "points", "w"), KERNELS)
def test_transforms_err_by_less_than_their_constant(theta: float, points: float, w: float) -> None:
    kernels = Kernels(theta, points, w)
    near = np.arange(float(COLUMNS)) - COLUMNS // 2
    rows = int((points + 0.5) / COLUMNS)
    far = COLUMNS * np.unique(np.linspace(0, max(rows - 1, 0), 4).astype(int)).astype(float)
    both, size = kernels.at(far, near)
    with mpmath.workdps(40):
        for row, at in enumerate(far):
            for column in (0, 1, 20, 31, 32, 50, 61, 62):
                m = at + near[column]
                if 0.0 <= m < points:
                    for side, exact in enumerate(exact_kernels(theta, points, w, m)):
                        off = abs(mpmath.mpc(complex(both[side][row, column])) - exact)
                        # that W is points times w costs a rounding of w
                        assert off <= KERNEL * (1.0 + 50.0 / (theta * points * w)) * float(size[row, column])


@pytest.mark.parametrize(("theta", "points", "w"), [(2.0, 94.5, 0.01), (0.3, 31.5, 0.02), (900.0, 157.5, 3e-5)])
def test_kernels_are_on_their_side_everywhere(theta: float, points: float, w: float) -> None:
    """Added up over periods, on a grid of a hundredth of the spacing."""
    kernels = Kernels(theta, points, w)
    far = COLUMNS * np.arange((points + 0.5 - COLUMNS // 2 - 1.0) // COLUMNS + 1.0)
    near = np.arange(float(COLUMNS)) - COLUMNS // 2
    (below, above), size = kernels.at(far, near)
    m = np.add.outer(far, near)
    inside = (m >= 0.0) & (m < points)
    weight = np.where(m == 0.0, 1.0, 2.0)[inside] / points
    x = np.linspace(0.0, points, int(100 * points) + 1)[:-1]
    phases = np.exp(2j * math.pi / points * np.multiply.outer(x, m[inside]))
    low, high = (np.real(phases @ (side[inside] * weight)) for side in (below, above))
    a, b = theta * w, theta * w + w
    true = np.exp(-a * x) / -math.expm1(-a * points) - np.exp(-b * x) / -math.expm1(-b * points)
    doubt = 4.0 * KERNEL * (1.0 + 50.0 / (theta * points * w)) * float((size[inside] * weight).sum())
    assert (low <= true + doubt).all()
    assert (true <= high + doubt).all()
    assert doubt <= 1e-2 * float((high - low).max())
    assert float((high - low).max()) <= 1.1 * w


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("field", ["loss", "log_p"])
@pytest.mark.parametrize("some", [False, True])
def test_atoms_as_wrong_as_their_errors_keep_the_bracket_true(
    some: bool, field: str, sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, or one that is off by far more than the others."""
    error = 1e-7
    true = steps_code.table

    def wrong(pair: Pair, log_drop: float = -math.inf) -> AtomTable | None:
        found = true(pair, log_drop)
        assert found is not None
        off = np.full(found.size, error)
        if some:
            off[1:] *= 1e-3
        losses, masses = (off * (field == one) for one in ("loss", "log_p"))
        return replace(
            found,
            loss=found.loss + sign * 0.999 * losses,
            loss_error=found.loss_error + losses,
            log_p=found.log_p + sign * 0.999 * masses,
            error=found.error + masses,
        )

    parts = [(pair_of((512, 256, 200, 56), (128, 384, 490, 22)), 6)]
    every = curve_of_all(parts)
    monkeypatch.setattr(steps_code, "table", wrong)
    for epsilon in (0.0, 0.7, 2.0, 5.0):
        found, exact = curve_of(parts).delta(epsilon), every.delta(epsilon)
        assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))
        assert float(found.width) <= 1e-4 * float(found.lower)


@pytest.mark.parametrize("seed", range(4))
def test_transforms_as_wrong_as_they_may_be_keep_the_bracket_true(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by a phase of its own, those of one factor of several by no more than goes with the others."""
    error = 1e-4
    true, random = Transforms.at, np.random.default_rng(seed)

    def wrong(self: Transforms, groups: Array) -> Array:
        phi = true(self, groups)
        return np.asarray(phi + error * np.sqrt(np.abs(phi)) * np.sign(random.uniform(-1.0, 1.0, phi.shape)))

    monkeypatch.setattr(Transforms, "at", wrong)
    monkeypatch.setattr(line_code, "doubts_of", lambda *_: np.array([[1.0001 * error, 0.0], [0.0, 0.0]]))
    parts = RUNS["smooth"]
    every, curve = curve_of_all(parts), curve_of(parts)
    for epsilon in (0.0, 0.3, 1.0, 1.7):
        found, exact = curve.delta(epsilon), every.delta(epsilon)
        assert mpf(float(found.lower)) <= exact <= mpf(float(found.upper))


@pytest.mark.parametrize("number", [0, 2])
def test_transforms_of_steps_err_by_less_than_they_say(number: int) -> None:
    parts = RUNS["rare"]
    terms = terms_of(parts, 1.0 if number else math.inf)
    theta, frequency = 1.5, 0.37
    cuts = zip(terms.steps, terms.cuts, strict=True)
    steps = [step.tilted(count, cut, theta, number) for (step, count), cut in cuts]
    transforms = Transforms(steps, number, frequency)
    doubts, whole = doubts_of(steps, number), weight_of(steps, number)
    ((pair, count),), cut = pairs_of(parts), terms.cuts[0]
    atoms = known_table(pair, -math.inf)
    centre = count * steps[0].centre
    kinds = zip((count - number, number), steps[0].kinds, strict=False)
    far = sum(times * float(weight @ np.abs(own)) for times, (weight, own) in kinds)
    for group in (0, 3, 700, 77_777, 123_456):
        phi = transforms.at(np.array([float(group)]))
        with mpmath.workdps(40):
            for row in (0, transforms.group - 1):
                for column in (0, 31, 62):
                    s = ((group * transforms.group + row) * COLUMNS + column - COLUMNS // 2) * mpf(frequency)
                    z = mpmath.mpc(theta, s)
                    small, large = (
                        mp.fsum(mp.exp(mpf(p) + z * mpf(x)) for p, x in zip(atoms.log_p[k], atoms.loss[k], strict=True))
                        for k in (slice(cut), slice(cut, None))
                    )
                    exact = mp.binomial(count, number) * small ** (count - number) * large**number
                    exact *= mp.exp(-mpf(steps[0].log_scale) - 1j * s * mpf(centre))
                    off = abs(mpmath.mpc(complex(phi[row, column])) - exact) / whole
                    bound = float(doubts.sum(axis=0) @ (1.0, abs(float(s)))) + steps[0].error
                    # losses from the centre on are rounded
                    assert off <= bound + U * far * abs(float(s))
                    assert bound <= 1e-5


@pytest.mark.parametrize("field", ["loss", "log_p"])
def test_an_atom_that_is_off_by_more_than_most_moves_a_transform_by_no_more_than_is_said(field: str) -> None:
    pair, theta, error = pair_of((10, 999, 991), (20, 990, 990)), 3.0, 1e-3
    atoms = known_table(pair.pair("remove"), -math.inf)
    off = np.where(atoms.log_p == atoms.log_p.min(), error, 0.0)
    losses, masses = (off * (field == one) for one in ("loss", "log_p"))
    wrong = replace(atoms, loss_error=atoms.loss_error + losses, error=atoms.error + masses)
    ((fixed, turning),) = TiltedStep.of(wrong, 1, atoms.size, theta, 0).doubts
    weights = np.exp(atoms.log_p + theta * atoms.loss)
    usual = 2.1 * float(weights @ off) / float(weights.sum())
    moved = np.exp(np.maximum(masses - usual * (field == "log_p"), 0.0))
    far = np.maximum(losses - usual * (field == "loss"), 0.0)
    for s in (0.0, 10.0, 1000.0):
        z = theta + 1j * s
        change = weights @ (np.exp(1j * s * atoms.loss) * (moved * np.exp(z * far) - 1.0)) / weights.sum()
        assert 1e-7 < abs(change) <= fixed + s * turning <= 20.0 * abs(change)


def test_rows_left_out_are_inside_the_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all of them: what they may add is added."""
    parts = (hs.Binomial(300) * 12).pairs("remove")
    true = OneSidedCurve(parts, (0.0, 0.0), width=1e-9, most=1 << 20).delta(1.0)
    monkeypatch.setattr(line_code, "_SKIPPED", 1.0)
    monkeypatch.setattr(line_code, "_LIGHT", 0.0)
    found = OneSidedCurve(parts, (0.0, 0.0), width=1e-9, most=1 << 20).delta(1.0)
    assert float(found.lower) <= float(true.lower) <= float(true.upper) <= float(found.upper)
    assert float(found.width) > 10.0 * float(true.width)


LONG = (
    (hs.DiscreteGaussian(2.0).poisson(0.1) * 14, "remove", (1e-1, 1e-150)),
    (hs.DiscreteGaussian(2.0).poisson(0.01) * 14, "add", (1e-6, 1e-40)),
    (hs.Binomial(800) * 8, "remove", (1e-100,)),
    (hs.DiscreteLaplace(5.0).poisson(0.05) * 12 + hs.DiscreteGaussian(3.0) * 6, "remove", (1e-8, 1e-60)),
    (hs.DiscreteGaussian(6.0).poisson(0.003) * 12, "remove", (1e-12, 1e-90)),
)


@pytest.mark.parametrize(("run", "direction", "deltas"), LONG)
def test_both_questions_are_answered_to_nine_digits(
    run: hs.Composition, direction: str, deltas: tuple[float, ...]
) -> None:
    curve = hs.account(run, direction)
    for delta in deltas:
        found = curve.epsilon(delta)
        assert isinstance(found, Bound)
        assert found.method != "certified lattice"
        assert float(found.width) <= 1e-9
        back = curve.delta(float(found.upper))
        assert float(back.lower) <= delta
        assert float(back.width) <= 1e-9 * float(back.lower)
        assert found.lower == 0.0 or float(curve.delta(float(found.lower)).upper) >= delta


def test_lines_agree_with_lists() -> None:
    parts = (hs.DiscreteGaussian(3.0).poisson(0.01) * 4).pairs("remove")
    lists, lines = (
        HeaviestOutcomes(parts, (0.0, 0.0), 1 << 20),
        OneSidedCurve(parts, (0.0, 0.0), width=1e-9, most=1 << 20),
    )
    for delta in (1e-5, 1e-25, 1e-40):
        one, other = lists.epsilon(delta), lines.epsilon(delta)
        assert max(one.lower, other.lower) <= min(one.upper, other.upper)
        assert float(other.width) <= 1e-9


def test_sides_come_together_with_the_square_of_the_spacing() -> None:
    terms = Atoms((hs.DiscreteGaussian(2.0).poisson(0.1) * 14).pairs("remove")).terms(-60.0)
    placed = Placed(0, int(np.argmin(np.abs(TILTS - 4.0))), 16.0)
    gaps = []
    for nodes in (1 << 13, 1 << 14, 1 << 15):
        line = OneSidedLine.of(terms, placed, nodes)
        gaps.append((line.value(1, 1.0) - line.value(0, 1.0)) / line.value(0, 1.0) / line.spacing**2)
    assert max(gaps) <= 3.0 * min(gaps)


def test_a_question_gets_the_same_answer_whatever_was_asked_before() -> None:
    run, deltas = hs.DiscreteGaussian(2.0).poisson(0.1) * 14, (1e-3, 1e-12, 1e-7, 1e-3)
    kept = hs.account(run, "remove")
    fresh = {delta: hs.account(run, "remove").epsilon(delta).sides for delta in set(deltas)}
    alone = [fresh[delta] for delta in deltas]
    assert [kept.epsilon(delta).sides for delta in deltas] == alone
    assert [one.sides for one in hs.account(run, "remove").epsilon(list(deltas[::-1]))] == alone[::-1]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda delta: kept.epsilon(delta).sides, deltas)) == alone
    epsilon = float(kept.epsilon(1e-7).upper)
    assert kept.delta(epsilon).sides == hs.account(run, "remove").delta(epsilon).sides


def test_what_lines_cannot_tell_is_refused() -> None:
    terms = terms_of(RUNS["smooth"])
    with pytest.raises(ContourRefusal, match="too few"):
        OneSidedLine.of(terms, Placed(0, int(np.argmin(np.abs(TILTS - 100.0))), 50.0), 64)
    with pytest.raises(ContourRefusal, match="turn too fast"):
        OneSidedLine.of(terms_of([(pair_of((1, 10**300), (10**300, 1)), 2)]), Placed(0, 150, 1e-16), 64)
    with pytest.raises(ContourRefusal, match="allowed"):
        curve_of(RUNS["smooth"], most=1 << 10).delta(0.3)
    with pytest.raises(TooManyOutcomesError, match="not all atoms"):
        OneSidedCurve((hs.DiscreteGaussian(900.0) * 4).pairs("remove"), (0.0, 0.0), width=1e-9, most=1 << 20).delta(0.1)


def test_atoms_left_out_are_added() -> None:
    """Of a mass far above delta."""
    pair, every = RUNS["rare"][0][0], curve_of_all(RUNS["rare"])
    atoms = table(pair.pair("remove"), math.log(1e-3))
    assert atoms is not None
    assert atoms.size == 2
    terms = Terms([(AtomStep(atoms), 5)])
    placed = Placed(0, int(np.argmin(np.abs(TILTS - 2.0))), 20.0)
    found = _Lines(terms, (OneSidedLine.of(terms, placed, 1 << 12),), (0.0, 0.0))
    for epsilon in (1.0, 3.0):
        assert mpf(found.lower(epsilon)) <= every.delta(epsilon) <= mpf(found.upper(epsilon))
    assert found.upper(3.0) <= 1e-7
