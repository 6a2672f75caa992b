"""Filters never overrun their budget, whatever the adversary; adding up loss distributions does."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.bound import Bound
from hockeystick.filters import BudgetError, GaussianDPFilter, RenyiFilter
from hockeystick.readouts.pure_dp import mu_of_pure
from tests.closed_forms import gaussian_delta, gaussian_delta_of_any_size

AnyFilter = RenyiFilter | GaussianDPFilter

# ---------------------------------------------------------------------------------------------------- fixed parameters


@pytest.mark.parametrize("adjacency", ["add-remove", "add", "remove"])
@pytest.mark.parametrize(
    "step",
    [hs.Gaussian(8.0), hs.Gaussian(1.0).poisson(0.02), hs.Laplace(20.0), hs.RandomizedResponse(probability=0.52)],
)
def test_what_a_renyi_filter_passes_is_within_budget(adjacency: str, step: hs.Step) -> None:
    budget = RenyiFilter(2.0, 1e-5, adjacency=adjacency)
    count = 0
    while budget.allows(step, 10):
        budget.step(step, 10)
        count += 10
    assert budget.steps == count > 0
    spent = hs.account(step * count, adjacency).delta(2.0)
    assert isinstance(spent, Bound)
    assert spent.upper <= 1e-5
    wasted = hs.account(step * (20 * count), adjacency).delta(2.0)
    assert isinstance(wasted, Bound)
    assert wasted.lower > 1e-5  # and the filter is not absurdly strict


def test_one_planned_order_leaves_more_room_than_many() -> None:
    step = hs.Gaussian(1.0).poisson(0.01)
    many, one = RenyiFilter(2.0, 1e-5), RenyiFilter.planned_for(step, 2.0, 1e-5)
    assert len(one.orders) == 1

    def room(budget: RenyiFilter) -> int:
        count = 0
        while budget.allows(step, 20):
            budget.step(step, 20)
            count += 20
        return count

    assert room(one) > room(many)


def test_gaussian_filter_fills_its_budget_exactly() -> None:
    for noise, fit in ((2.0, 4), (3.0, 9), (7.0, 49)):
        budget = GaussianDPFilter(1.0)
        for _ in range(fit):
            budget.step(hs.Gaussian(noise))
        assert not any(budget.allows(hs.Gaussian(hair)) for hair in (1e6, 1e60))
        assert budget.remaining == pytest.approx(0.0, abs=1e-7)  # a root: of the rounding of mu^2, some 1e-16


def test_a_step_costs_the_same_after_many(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, share_of = set(), GaussianDPFilter._share_of
    monkeypatch.setattr(GaussianDPFilter, "_share_of", lambda own, cost: sizes.add(len(cost)) or share_of(own, cost))
    budget = GaussianDPFilter(1.0)
    for step in range(20, 70):
        budget.step(hs.Gaussian(float(step)))
    assert sizes == {1}


def test_gaussian_filter_refuses_a_hair_too_much() -> None:
    budget = GaussianDPFilter(1.0)
    assert budget.allows(hs.Gaussian(1.0))
    assert not budget.allows(hs.Gaussian(math.nextafter(1.0, 0.0)))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.1, 1e-3), (5.0, 1e-9)])
def test_gaussian_budget_is_the_largest_for_epsilon_and_delta(epsilon: float, delta: float) -> None:
    from mpmath import mpf

    mu = GaussianDPFilter.for_budget(epsilon, delta).mu
    assert gaussian_delta(mpf(mu), epsilon) <= delta
    assert gaussian_delta(mpf(mu) * (1 + mpf(10) ** -9), epsilon) > delta


BUDGETS = [
    (epsilon, delta)
    for epsilon in (5e-324, 1e-300, 1e-40, 1e-12, 1e-10, 1e-4, 1.0, 1e4, 1e8, 1e100, 1e300, 1.7e308)
    for delta in (1e-320, 1e-300, 1e-100, 1e-30, 1e-12, 1e-5, 0.3, 0.5, 0.9, 1.0 - 2.0**-52)
]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_gaussian_budget_is_proved_at_any_size(epsilon: float, delta: float) -> None:
    mu = GaussianDPFilter.for_budget(epsilon, delta).mu
    assert gaussian_delta_of_any_size(mu, epsilon) <= delta
    if mu > 1e-315:  # below, floats are too far apart
        assert gaussian_delta_of_any_size(mu * (1.0 + 1e-6), epsilon) > delta


@pytest.mark.parametrize("mu", [1e-135, 1e-10, 1e10, 1e135])
def test_gaussian_filter_counts_exactly_at_any_size(mu: float) -> None:
    """Squares of tiny and huge mu have no float64, or a coarse one."""
    budget = GaussianDPFilter(mu)
    half = hs.GaussianDP(mu / 2.0)
    budget.step(half, 3)
    assert budget.allows(half)
    assert not budget.allows(hs.GaussianDP(math.nextafter(mu / 2.0, math.inf)))
    assert not budget.allows(half, 2**53)
    assert budget.remaining == pytest.approx(mu / 2.0, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("epsilon", [1e-12, 0.3, 1.0, 40.0, 1e8, 1e200])
@pytest.mark.parametrize("delta", [5e-324, 3.3e-320, 1e-300, 1e-30, 1e-5, 0.7])
def test_renyi_budget_is_rounded_down(epsilon: float, delta: float) -> None:
    """What one order may spend, against the conversion in 60 digits; `_room` is where it is made."""
    from mpmath import log, mp, mpf

    orders = (1.0 + 2.0**-40, 1.001, 1.5, 2.0, 7.3, 64.0, 1e5)
    budget = RenyiFilter(epsilon, delta, orders=orders)
    for order, room in zip(budget.orders, budget._budget.tolist(), strict=True):
        with mp.workdps(260):
            t = mpf(order) - 1
            truth = t * mpf(epsilon) + log(mpf(delta) / len(orders)) - t * log(t) + (1 + t) * log(1 + t)
            assert room <= truth
            size = t * (mpf(epsilon) + 4) + abs(log(mpf(delta))) + 20
            assert truth - room <= mpf(10) ** -13 * size


@pytest.mark.parametrize("make", [lambda: RenyiFilter(1e299, 1e-5), lambda: RenyiFilter(1.7e308, 0.5, orders=(1.5,))])
def test_a_renyi_budget_beyond_float64_is_refused(make: Callable[[], AnyFilter]) -> None:
    with pytest.raises(ValueError, match="lower orders"):
        make()


def test_statements_hold_the_budget_as_given() -> None:
    assert repr(RenyiFilter(2.0, 1e-6)).startswith("<RenyiFilter: (2, 1e-6)-DP under add-remove, ")
    assert RenyiFilter(0.123456789, 1e-6).statement.startswith("(0.123456789, 1e-6)-DP")
    assert GaussianDPFilter(0.123456789).statement.startswith("0.123456789-GDP")


def test_bounded_losses_have_a_mu() -> None:
    """An epsilon-DP step is mu-GDP: its trade-off curve lies above that of the mu charged."""
    budget = GaussianDPFilter(1.0)
    epsilon = 0.5
    budget.step(hs.Laplace(1.0 / epsilon))
    mu = math.sqrt(1.0 - budget.remaining**2)
    steps = np.linspace(0.0, 0.5, 26).tolist()
    for point in steps:
        pure = max(1.0 - math.exp(point - epsilon), 0.0) * math.exp(epsilon) / (1.0 + math.exp(epsilon))
        assert float(gaussian_delta(mu, point)) >= pure * (1.0 - 1e-12)
    with pytest.raises(hs.UnknownPairError, match="RenyiFilter"):
        budget.allows(hs.Gaussian(1.0).poisson(0.01))


def test_mass_at_infinity_needs_a_budget_of_its_own() -> None:
    leak = hs.ApproximateDP(0.01, 1e-8)
    with pytest.raises(BudgetError, match="infinite_delta of this filter, 0"):
        RenyiFilter(1.0, 1e-5).step(leak)
    budget = RenyiFilter.planned_for(leak, 1.0, 1e-5, infinite_delta=1.0001e-6)
    budget.step(leak, 60)
    budget.step(leak, 40)
    assert not budget.allows(leak)


def test_what_is_passed_step_by_step_is_within_budget() -> None:
    budget = RenyiFilter(2.0, 1e-5, adjacency="remove")
    while budget.steps < 500 and budget.allows(hs.Gaussian(5.0)):
        budget.step(hs.Gaussian(5.0))
    assert budget.steps > 3
    assert float(gaussian_delta(math.sqrt(budget.steps) / 5.0, 2.0)) <= 1e-5


def test_steps_with_mass_at_infinity_have_no_mu() -> None:
    for step in (hs.ApproximateDP(0.1, 1e-9), hs.DiscretePair((0.5, 0.5, 0.0), (0.45, 0.5, 0.05))):
        with pytest.raises(hs.UnknownPairError, match="no mu is known"):
            GaussianDPFilter(3.0).allows(step)


def test_a_step_whose_moments_are_not_known_is_refused() -> None:
    """No upper bound on the moments means no bound on what the step spends."""
    for step in (hs.DiscreteGaussian(5000.0).poisson(0.01), hs.ApproximateDP(0.01, 1.0)):
        assert not RenyiFilter(5.0, 1e-5, infinite_delta=5e-6).allows(step)


@pytest.mark.parametrize(
    ("step", "count"),
    [(hs.Gaussian(1.0), 10**90), (hs.Gaussian(1e-140), 1), (hs.ZeroConcentratedDP(1e279), 10**90)],
)
def test_a_step_whose_moments_leave_float64_does_not_fit(step: hs.Step, count: int) -> None:
    assert not RenyiFilter(1.0, 1e-5, orders=(2.0, 1e149)).allows(step, count)


def test_a_refused_step_changes_nothing() -> None:
    budget = GaussianDPFilter(1.0)
    budget.step(hs.Gaussian(1.5))
    left = budget.remaining
    with pytest.raises(BudgetError, match="does not fit"):
        budget.step(hs.Gaussian(1.0))
    assert budget.remaining == left
    assert budget.steps == 1
    assert budget.allows(hs.Gaussian(1.5))


@pytest.mark.parametrize(
    "make",
    [
        lambda: RenyiFilter(0.0, 1e-5),
        lambda: RenyiFilter(1.0, 0.0),
        lambda: RenyiFilter(1.0, 1.0),
        lambda: GaussianDPFilter.for_budget(1.0, 0.0),
        lambda: GaussianDPFilter.for_budget(1.0, 1.0),
        lambda: GaussianDPFilter.for_budget(0.0, 1e-5),
        lambda: GaussianDPFilter.for_budget(math.inf, 1e-5),
        lambda: RenyiFilter(1.0, 1e-5, infinite_delta=1e-4),
        lambda: RenyiFilter(1.0, 1e-5, orders=(1.0,)),
        lambda: RenyiFilter(1.0, 1e-5, orders=()),
        lambda: RenyiFilter(1.0, 1e-5, orders=(2.0, 1e151)),
        lambda: GaussianDPFilter(-1.0),
        lambda: GaussianDPFilter(math.nan),
    ],
)
def test_bad_budgets_are_refused(make: Callable[[], AnyFilter]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the kind is the claim
        make()


def test_bad_steps_are_refused() -> None:
    with pytest.raises(TypeError):
        GaussianDPFilter(1.0).allows("Gaussian")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------- adaptive runs

STEPS = {noise: hs.Gaussian(noise) for noise in (2.0, 3.0, 5.0, 9.0, 20.0)}
NOISES = tuple(STEPS)


def adaptive_run(budget: AnyFilter, rng: np.random.Generator, epsilon: float) -> tuple[float, float]:
    """Total loss under P and sum of mu^2 of an adversary who knows the loss so far: bold ahead, patient behind."""
    loss, spent = 0.0, 0.0
    for _ in range(60):
        ahead = loss > 0.4 * epsilon * rng.random()
        wish = NOISES if ahead else NOISES[::-1]
        noise = next((n for n in wish if budget.allows(STEPS[n])), None)
        if noise is None:
            break
        budget.step(STEPS[noise])
        mu = 1.0 / noise
        loss += mu * rng.standard_normal() + 0.5 * mu * mu
        spent += mu * mu
    return loss, spent


def assert_never_overrun(runs: int) -> None:
    """False alarms of the empirical part: below 2 e^{-2 runs margin^2} = 3e-8 (Hoeffding)."""
    epsilon, delta = 0.8, 0.02
    rng = np.random.default_rng(20)
    margin = math.sqrt(18.0 / (2.0 * runs))
    mu = GaussianDPFilter.for_budget(epsilon, delta).mu
    makers: list[Callable[[], AnyFilter]] = [
        lambda: RenyiFilter(epsilon, delta, adjacency="remove"),
        lambda: GaussianDPFilter(mu, adjacency="remove"),
    ]
    for make in makers:
        outcomes = [adaptive_run(make(), rng, epsilon) for _ in range(runs)]
        assert max(spent for _, spent in outcomes) <= mu * mu * (1.0 + 1e-12)  # the best any valid filter can do
        losses = np.array([loss for loss, _ in outcomes])
        assert float(np.maximum(-np.expm1(epsilon - losses), 0.0).mean()) <= delta + margin


def test_adaptive_runs_never_overrun_the_budget() -> None:
    assert_never_overrun(400)


@pytest.mark.torture
def test_10_000_adaptive_runs_never_overrun_the_budget() -> None:
    assert_never_overrun(10_000)


def test_adding_up_loss_distributions_overruns() -> None:
    """An adaptive run whose every path composes to within the budget, while the run as a whole is a third above it.

    First randomised response with odds 2. Where it came out high (loss ln 2), randomised response with odds 3, else a
    release that fails outright with probability 1/6: the failure is used where the loss so far would be wasted.
    """
    epsilon, delta = math.log(4.0), Fraction(1, 6)
    first = hs.RandomizedResponse(probability=Fraction(2, 3))
    bold = hs.RandomizedResponse(probability=Fraction(3, 4))
    failing = hs.DiscretePair(
        (Fraction(1, 6), Fraction(5, 6), Fraction(0)), (Fraction(0), Fraction(5, 6), Fraction(1, 6))
    )
    for second in (bold, failing):  # a filter on composed distributions lets either pass
        path = hs.account(first + second, "remove").delta(epsilon)
        assert isinstance(path, Bound)
        assert path.lower <= float(delta) * (1.0 + 1e-12)

    def joint(high: Fraction, bold_high: Fraction, failed: Fraction, lost: Fraction) -> tuple[Fraction, ...]:
        low = 1 - high
        return high * bold_high, high * (1 - bold_high), low * failed, low * (1 - failed - lost), low * lost

    p = joint(Fraction(2, 3), Fraction(3, 4), Fraction(1, 6), Fraction(0))
    q = joint(Fraction(1, 3), Fraction(1, 4), Fraction(0), Fraction(1, 6))
    whole = hs.account(hs.DiscretePair(p, q), "remove").delta(epsilon)
    assert isinstance(whole, Bound)
    assert whole.contains(2.0 / 9.0)
    assert whole.lower > 1.33 * float(delta)

    budget = RenyiFilter(epsilon, float(delta), adjacency="remove", infinite_delta=0.1)
    budget.step(first)
    assert not budget.allows(failing)


@pytest.mark.parametrize(
    "epsilons", [np.geomspace(1e-9, 1.0, 400), np.geomspace(1.0, 700.0, 60)], ids=["small", "large"]
)
def test_the_mu_of_pure_steps_is_rounded_up_and_sharp(epsilons: np.ndarray) -> None:
    """``erf(mu / sqrt(8)) >= tanh(epsilon / 2)``, as tails where both are near one; 1e-13 less is too little."""
    from mpmath import erf, erfc, exp, mp, mpf, sqrt, tanh

    def is_enough(mu: mpf, epsilon: float) -> bool:
        if epsilon <= 1.0:
            return bool(erf(mu / sqrt(8)) >= tanh(mpf(epsilon) / 2))
        return bool(erfc(mu / sqrt(8)) / 2 <= 1 / (1 + exp(mpf(epsilon))))

    with mp.workdps(340):
        for epsilon in epsilons.tolist():
            mu = mpf(mu_of_pure(epsilon))
            assert is_enough(mu, epsilon), epsilon
            assert not is_enough(mu * (1 - mpf(10) ** -13), epsilon), epsilon


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-200, 1e8, 1e160, 1e301])
def test_the_mu_of_pure_steps_holds_at_the_ends_of_float64(epsilon: float) -> None:
    """At least ``sqrt(2 pi) tanh(epsilon / 2)``, as erf is concave; at most ``sqrt(8 epsilon)``."""
    mu = mu_of_pure(epsilon)
    assert mu >= 1.2533141373155 * min(epsilon, 1.0)
    assert mu <= max(2.82842712474621 * math.sqrt(epsilon), 1e-270)
    if epsilon > 1.0:  # and erfc(x) > e^{-x^2} / (2 x + 1)
        assert mu >= 2.82842712474619 * math.sqrt(epsilon) * (1.0 - math.log(4.0 * math.sqrt(epsilon)) / epsilon)


def test_a_pure_step_that_a_budget_does_not_cover_is_refused() -> None:
    """delta(0) of this step is 8.8403610887e-10, and the budget allows 8.8403603221e-10."""
    assert not GaussianDPFilter(2.2159497141285446e-09).allows(hs.ApproximateDP(1.7680722177343215e-09))
    assert GaussianDPFilter(2.2159500e-09).allows(hs.ApproximateDP(1.7680722177343215e-09))
