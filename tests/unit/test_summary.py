"""mu-GDP summaries are proved above the curve; regret brackets the distance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
import pytest
from mpmath import erfc, log, mp, mpf, sqrt
from scipy.special import log_ndtr

import hockeystick as hs
from hockeystick.accountants.attained import AttainedCurve
from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Bound
from hockeystick.composition import Composition
from hockeystick.laws import DiscretePair, GaussianPair, LaplacePair
from hockeystick.laws.base import Pair
from hockeystick.laws.one_step import one_step_delta
from hockeystick.numerics.rounding import LOG_NDTR
from hockeystick.readouts import gaussian_dp
from hockeystick.readouts.directions import Asked
from hockeystick.readouts.gaussian_dp import CompositionTail, Point, _mu_above, mu_below
from hockeystick.readouts.summary import _Search, smallest_mu
from hockeystick.sampling import Shuffled
from tests.closed_forms import gaussian_delta, gaussian_delta_of_any_size

EPSILONS = (0.0, 0.01, 0.1, 0.3, 0.7, 1.0, 1.7)


def violations(run: Composition, mu: float, floor: float) -> list[float]:
    """Epsilons at which the run is proved to exceed the curve of mu."""
    curve = hs.account(run, tolerance=1e-2)
    found = []
    for epsilon in EPSILONS:
        bound = curve.delta(epsilon)
        assert isinstance(bound, Bound)
        if float(bound.lower) > max(one_step_delta(GaussianPair(1.0, mu), epsilon)[1], floor):
            found.append(epsilon)
    return found


def random_run(rng: np.random.Generator) -> Composition:
    def step() -> hs.Step:
        kind = rng.integers(4)
        noise = float(np.exp(rng.uniform(-0.3, 2.0)))
        if kind == 0:
            return hs.Gaussian(noise)
        if kind == 1:
            return hs.Laplace(2.0 * noise)
        if kind == 2:
            return hs.RandomizedResponse(float(rng.uniform(0.51, 0.9)))
        return hs.Gaussian(noise).poisson(float(np.exp(rng.uniform(-5.0, 0.0))))

    return hs.compose([(step(), int(rng.integers(1, 5))) for _ in range(int(rng.integers(1, 3)))])


def proved_above(seed: int) -> None:
    run = random_run(np.random.default_rng(seed))
    floor = 1e-8
    bound = hs.account(run).mu(floor=floor, tolerance=0.02)
    assert isinstance(bound, Bound)
    assert math.isfinite(float(bound.upper))
    assert not violations(run, float(bound.upper), floor)
    if float(bound.lower) > 0.0:
        assert float(bound.upper) / float(bound.lower) < 1.1
    strict = hs.account(run).mu(tolerance=0.02)
    assert isinstance(strict, Bound)
    assert float(strict.upper) >= float(bound.lower)
    assert math.isinf(float(strict.upper)) or not violations(run, float(strict.upper), 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_summary_is_above_random_compositions(seed: int) -> None:
    proved_above(seed)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(5, 105))
def test_summary_is_above_many_random_compositions(seed: int) -> None:
    proved_above(seed)


@pytest.mark.parametrize("unit", [1.0, 1e100, 1e-100])
def test_gaussians_add_in_squares(unit: float) -> None:
    bound = hs.account(hs.Gaussian(2.0 * unit) * 3 + hs.Gaussian(0.5 * unit)).mu()
    assert bound.contains(math.sqrt(4.75) / unit)  # type: ignore[union-attr]
    assert float(bound.width) < 1e-12 / unit  # type: ignore[union-attr]
    assert bound.notes == ("closed form: all steps are Gaussian",)


@pytest.mark.parametrize("kinds", [1, 4, 10, 100])
@pytest.mark.parametrize("sampled", [False, True])
def test_both_sides_of_many_kinds_of_gaussian_steps_hold_the_root_of_the_sum(kinds: int, sampled: bool) -> None:
    """The lower side was above it from four kinds of steps on, by a few roundings a kind."""
    noises = [1.0 + 0.7 * number for number in range(kinds)]
    steps = [hs.Gaussian(noise).poisson(0.5) if sampled else hs.Gaussian(noise) for noise in noises]
    bound = hs.account(Composition(tuple((step, 1) for step in steps))).mu()
    with mp.workdps(40):
        truth = sqrt(sum(1 / mpf(noise) ** 2 for noise in noises))
        assert bound.lower <= truth <= bound.upper  # type: ignore[union-attr]
    assert float(bound.width) < 1e-12  # type: ignore[union-attr]


@pytest.mark.parametrize("epsilon", [1e-100, 1e-160, 1e-170, 1e-290, 1e-320])
def test_losses_whose_square_float64_does_not_hold_have_a_mu(epsilon: float) -> None:
    bound = hs.account(hs.ApproximateDP(epsilon)).mu()
    with mp.workdps(340):
        truth = sqrt(mp.mpf(8)) * mp.erfinv(mp.tanh(mpf(epsilon) / 2))
        assert truth <= bound.upper <= 2.1 * truth  # type: ignore[union-attr]


def test_randomised_response_needs_the_mu_of_its_corner() -> None:
    # f has the corner (1/4, 1/4), where G_mu passes for mu = 2 Phi^-1(3/4)
    bound = hs.account(hs.RandomizedResponse(0.75)).mu(tolerance=1e-4)
    assert bound.contains(1.3489795003921634)  # type: ignore[union-attr]
    assert float(bound.width) < 1e-3  # type: ignore[union-attr]


def test_sampling_gains_nothing_without_a_floor_and_says_why() -> None:
    bound = hs.account(hs.Gaussian(1.0).poisson(0.01) * 400).mu()
    assert isinstance(bound, Bound)
    assert bound.contains(20.0)
    assert "floor" in " ".join(bound.notes)


@pytest.mark.parametrize(("noise", "rate"), [(2.0, 0.01), (1.0, 0.3)])
def test_a_far_tail_that_only_its_limit_shows_is_in_the_mu(noise: float, rate: float) -> None:
    """However rare the record: some attack at a large enough epsilon sees the unsampled Gaussian."""
    for other in (hs.Laplace(1000.0), hs.RandomizedResponse(0.5001)):
        bound = hs.account(hs.Gaussian(noise).poisson(rate) + other).mu()
        assert isinstance(bound, Bound)
        assert float(bound.upper) >= 1.0 / noise


def test_mass_at_infinity_has_no_mu_but_above_a_floor() -> None:
    curve = hs.account(hs.ApproximateDP(0.5, 1e-6))
    assert float(curve.mu()) == math.inf  # type: ignore[arg-type]
    assert float(curve.mu(floor=1e-5)) < 2.0  # type: ignore[arg-type]


def test_a_higher_floor_never_needs_a_larger_mu() -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(0.02) * 500)
    found = [curve.mu(floor=floor, tolerance=5e-3) for floor in (1e-12, 1e-8, 1e-4)]
    assert all(isinstance(bound, Bound) for bound in found)
    lower, upper = [float(b.lower) for b in found], [float(b.upper) for b in found]  # type: ignore[union-attr]
    assert lower[1] <= upper[0]
    assert lower[2] <= upper[1]


@pytest.mark.parametrize(
    "run", [hs.ApproximateDP(700.0) * 2, hs.Laplace(1e-3) * 1, hs.Gaussian(0.02).poisson(0.9) * 1], ids=str
)
def test_what_holds_without_a_floor_holds_above_one(run: hs.Composition) -> None:
    """Losses of more than 600 nats are not followed to where delta falls to the floor."""
    curve = hs.account(run)
    above = curve.mu(floor=1e-9)
    assert float(above.sides[0]) <= float(curve.mu().sides[1]) < math.inf
    assert float(above.sides[1]) <= float(curve.mu().sides[1])


def test_a_curve_that_steps_below_the_floor_between_two_floats_has_a_mu() -> None:
    rate = Fraction(7194321684377951, 18014398509481984)  # its bracket ends at its largest loss
    step = hs.ShuffledReports(((rate, 1 - rate), (1 - rate, rate)), people=3)
    above, alone = (hs.account(step, "substitute").mu(floor=floor) for floor in (1e-10, 0.0))
    assert (above.lower, above.upper) == (alone.lower, alone.upper)


def test_regret_of_an_exact_summary_vanishes_and_brackets_otherwise() -> None:
    gaussian = hs.account(hs.Gaussian(1.0))
    assert float(gaussian.regret(1.0)) < 1e-4  # type: ignore[arg-type]
    bound = gaussian.regret(1.5)
    mus = (GaussianPair(1.0, 1.5), GaussianPair(1.0, 1.0))
    sampled = max(
        (one_step_delta(mus[0], e)[0] - one_step_delta(mus[1], e)[1]) / (1.0 + math.exp(e))
        for e in np.linspace(0, 3, 301)
    )
    assert isinstance(bound, Bound)
    assert sampled <= float(bound.upper) <= 1.02 * sampled + 1e-5
    assert float(bound.lower) <= 0.0819101864  # at epsilon 0, where it is largest


def mu_at(epsilon: float, delta: float) -> Bound:
    """The smallest mu whose Gaussian-DP curve has at least ``delta`` at ``epsilon``."""
    return Bound(mu_below(epsilon, delta), _mu_above(epsilon, delta), "closed form of the Gaussian")


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.3), (1.0, 1e-5), (3.0, 1e-30), (0.5, 0.9), (20.0, 1e-12)])
def test_mu_at_a_point_brackets_the_curve(epsilon: float, delta: float) -> None:
    bound = mu_at(epsilon, delta)
    assert one_step_delta(GaussianPair(1.0, float(bound.lower)), epsilon)[0] <= delta
    assert one_step_delta(GaussianPair(1.0, float(bound.upper)), epsilon)[1] >= delta
    assert float(bound.width) <= 1e-8 * float(bound.upper)


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-20, 1e-5, 0.1, 5.0, 1e3, 1e8, 1e300])
@pytest.mark.parametrize("delta", [1e-310, 1e-100, 1e-12, 1e-5, 1e-4, 1e-3, 0.49, 0.51, 1.0 - 1e-14])
def test_mu_at_a_point_holds_the_closed_form_at_any_size(epsilon: float, delta: float) -> None:
    bound = mu_at(epsilon, delta)
    assert gaussian_delta_of_any_size(float(bound.lower), epsilon) <= delta
    assert gaussian_delta_of_any_size(float(bound.upper), epsilon) >= delta
    coarse = 0.0 if float(bound.upper) > 1e-300 else 5e-324 / float(bound.lower)  # floats are far apart there
    assert float(bound.upper) <= float(bound.lower) * (1.0 + 1e-8 + 8.0 * coarse)


def test_tails_are_known_for_bounded_and_gaussian_pairs() -> None:
    laplace = LaplacePair(2.0).gaussian_tail
    assert laplace is not None
    assert laplace.mu == 0.0
    assert laplace.epsilon >= 0.5
    sampled = GaussianPair(2.0).subsampled(0.1).reversed().gaussian_tail
    assert sampled is not None
    assert sampled.mu >= 0.5
    assert not sampled.gaussian


def test_log_of_the_normal_distribution_is_as_accurate_as_stated() -> None:
    points = np.concatenate([-np.logspace(-3, 3, 300), np.linspace(-3.0, 8.0, 300)])
    with mp.workdps(50):
        for x in points:
            truth = log(erfc(-mpf(float(x)) / sqrt(2)) / 2)
            assert abs((mpf(float(log_ndtr(x))) - truth) / truth) <= LOG_NDTR


@pytest.mark.parametrize("arguments", [{"floor": -0.1}, {"floor": math.nan}, {"tolerance": 0.0}])
def test_bad_settings_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        hs.account(hs.Gaussian(1.0)).mu(**arguments)


def test_regret_is_looked_for_at_every_epsilon() -> None:
    """Randomised response meets its G_mu at epsilon 0 and lies above it elsewhere."""
    mu = 1.3489795003921634
    bound = hs.account(hs.RandomizedResponse(0.75)).regret(mu)
    sampled = max(
        (one_step_delta(GaussianPair(1.0, mu), e)[0] - max(0.75 - 0.25 * math.exp(e), 0.0)) / (1.0 + math.exp(e))
        for e in np.linspace(0.0, 6.0, 601)
    )
    assert sampled > 0.01
    assert isinstance(bound, Bound)
    assert sampled <= float(bound.upper) <= 1.02 * sampled + 1e-5


@pytest.mark.parametrize("relation", ["add-remove", "remove", "add"])
@pytest.mark.parametrize(
    ("larger", "smaller", "mu"),
    [
        (GaussianPair(1.0), GaussianPair(2.0), 1.0),
        (GaussianPair(1.0), DiscretePair((0.5, 0.5), (0.5, 0.5)), 1.0),
        (LaplacePair(0.5), LaplacePair(2.0), 1.8009),  # at epsilon 0
    ],
)
def test_the_direction_that_needs_the_larger_mu_decides(relation: str, larger: Pair, smaller: Pair, mu: float) -> None:
    """Where a caller states the two directions apart, the tail of one says nothing of the other's."""
    for remove, add in ((larger, smaller), (smaller, larger)):
        bound = hs.account(hs.UserDefined(remove=remove, add=add), relation).mu()
        assert isinstance(bound, Bound)
        assert bound.lower <= mu * (1.0 + 1e-3)
        assert mu * (1.0 - 1e-3) <= bound.upper <= mu * (1.0 + 2e-3)
        assert bound.width <= 2e-3


def test_the_regret_of_bounded_losses_is_above_0_if_beyond_float64() -> None:
    """Beyond the largest loss delta is 0, and that of mu is not."""
    bound = hs.account(hs.ApproximateDP(20.0)).regret(1e-8)
    assert isinstance(bound, Bound)
    assert 0.0 == bound.lower < bound.upper < 1e-300  # type: ignore[operator]


@final
@dataclass(frozen=True)
class Rough(Accountant, DirectedCurve):
    """The curve of a single Gaussian step, known to within a share of itself."""

    noise: float

    def directed(self, parts: Parts) -> DirectedCurve:
        return self

    def delta(self, epsilon: float) -> Bound:
        low, high = one_step_delta(GaussianPair(1.0), epsilon) if math.isfinite(epsilon) else (0.0, 0.0)
        return Bound((1.0 - self.noise) * low, min((1.0 + self.noise) * high, 1.0), "rough")

    def epsilon(self, delta: float) -> Bound:
        raise NotImplementedError


@pytest.mark.parametrize("noise", [0.01, 0.5])
def test_values_known_only_roughly_leave_mu_between_its_sides(noise: float) -> None:
    curve = hs.account(hs.Gaussian(1.0), accountant=Rough(noise))
    low, high, _ = _Search(Asked(curve), 1e-6, 1e-3).run(None)
    assert low <= 1.0 <= high


@pytest.mark.parametrize("above", [1.0 + 1e-9, 1.5, 3.0])
def test_a_cell_counts_as_soon_as_delta_is_above_the_floor(above: float) -> None:
    floor = 1e-6
    start, end = Point.at(1.0, 0.0, above * floor), Point.at(2.0, 0.0, 0.5 * floor)
    search = _Search(Asked(hs.account(hs.Gaussian(1.0), accountant=Rough(0.5))), floor, 1e-3)
    needed = -search._cell(start, end)[0]
    assert gaussian_delta_of_any_size(needed, 1.0) >= above * floor


@pytest.mark.parametrize("bounded", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(("mu", "larger"), [(1.0, 1.001), (1.0, 1.5), (0.25, 2.0)])
def test_a_tail_is_below_a_larger_mu_from_where_it_settles(mu: float, larger: float, bounded: float) -> None:
    """A Gaussian curve moved by as much as bounded losses may add."""
    settled = CompositionTail(mu, mu, bounded, attained=False, gaussian=False, everywhere=math.inf).settled_from(larger)
    with mp.workdps(40):
        for beyond in (0.0, 1e-3, 0.1, 1.0, 10.0):
            epsilon = mpf(settled) + mpf(beyond)
            assert gaussian_delta(mpf(mu), epsilon - mpf(bounded)) <= gaussian_delta(mpf(larger), epsilon)


@pytest.mark.parametrize("factor", [0.9, 1.0 - 1e-9, 1.0 + 1e-9, 1.1])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.5, 0.9)])
def test_mu_at_a_point_is_proved_wherever_the_search_for_it_ends(
    epsilon: float, delta: float, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    guess = gaussian_dp._mu_guess
    monkeypatch.setattr(gaussian_dp, "_mu_guess", lambda epsilon, delta: factor * guess(epsilon, delta))
    bound = mu_at(epsilon, delta)
    assert gaussian_delta_of_any_size(float(bound.lower), epsilon) <= delta
    assert gaussian_delta_of_any_size(float(bound.upper), epsilon) >= delta


def test_mu_has_no_lower_side_where_no_datasets_are_known() -> None:
    """The pair is Gaussian, but nobody knows that shuffled batches come near it."""
    step = Shuffled(hs.UserDefined(GaussianPair(0.5), substitute=GaussianPair(1.0)), batch_size=1, population=4)
    bound = hs.account(step, "substitute").mu()
    assert isinstance(bound, Bound)
    assert bound.lower == 0.0
    assert bound.upper >= 1.0
    assert not any("all steps are Gaussian" in note for note in bound.notes)


def test_lower_sides_are_asked_for_only_where_they_may_tell_more(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []
    known = AttainedCurve._curve
    monkeypatch.setattr(AttainedCurve, "_curve", lambda self, split: asked.append(split) or known(self, split))
    curve = hs.account(hs.Gaussian(2.0).shuffled(batch_size=1, population=4) * 2, "zero-out")
    bound, found = curve.mu(floor=1e-3), len(asked)
    assert 0.54 < bound.lower < math.sqrt(0.5) <= bound.upper < math.sqrt(0.5) + 1e-9  # type: ignore[operator]
    assert found < 40  # all of 80 cells asked, it was 155
    allowed = smallest_mu(curve, floor=1e-3, allowed=5.0)
    assert 0.0 < allowed.lower <= bound.lower  # type: ignore[operator, union-attr]
    assert (allowed.upper, len(asked) - found <= 6) == (bound.upper, True)  # type: ignore[union-attr]


@pytest.mark.parametrize(("mu", "loses"), [(5e-324, 0.0), (1e-200, 0.0), (1e300, 0.5)])
def test_regret_is_known_for_summaries_of_any_size(mu: float, loses: float) -> None:
    """Of two equal datasets: a tiny mu says all, and a huge one says nothing, which loses half."""
    bound = hs.account(hs.DiscretePair((0.5, 0.5), (0.5, 0.5))).regret(mu)
    assert isinstance(bound, hs.Bound)
    assert bound.lower <= loses <= bound.upper
    assert bound.width <= 1e-4
