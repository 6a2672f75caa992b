"""The contour outside its own plans: short lines, short periods, loose tolerances.

A plan makes every error term far smaller than the tolerance, so that nobody would miss one. Here each term is large.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hockeystick.engines.contour.aliasing import Chernoff, chernoff
from hockeystick.engines.contour.curve import ContourCurve
from hockeystick.engines.contour.lattice_line import prepare_lattice_line
from hockeystick.engines.contour.line import ContourLine
from hockeystick.engines.contour.placing import (
    ContourRefusal,
    line_for_epsilon,
    log_complement,
    log_tail,
    saddle_of_epsilon,
)
from hockeystick.exact import exact_delta
from hockeystick.laws import DiscretePair, GaussianPair, SubsampledPair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.laws.worst_case import WorstCasePair
from hockeystick.transforms.log_moments import log_moments, tilt
from hockeystick.transforms.rule import LossRule, Window
from tests.closed_forms import gaussian_delta, mp, mpf
from tests.contour_lines import (
    COMMON,
    EPSILONS,
    LAWS,
    PAIRS,
    RARE,
    RESPONSE,
    Delta,
    Parts,
    TwoLosses,
    gaussian_line,
    holds,
    lattice_line,
    tilts_of,
)

TOLERANCES = (1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0)


# ----------------------------------------------------------------------------------------------------------- aliasing


def neighbours(delta: Delta, theta: float, epsilon: float, period: float) -> tuple[mpf, mpf]:
    """``sum_{j > 0}`` and ``sum_{j < 0}`` of ``e^{j theta Lambda} delta(eps + j Lambda)``."""
    apart = mpf(period)
    right, weight, rise = mpf(0), mpf(1), mp.exp(theta * apart)
    for j in range(1, 4000):
        weight *= rise
        term = weight * delta(epsilon + j * apart)
        right += term
        if term <= mpf(10) ** -30 * right:
            break
    left, weight = mpf(0), mpf(1)
    for j in range(1, 4000):
        weight /= rise
        left += weight * delta(epsilon - j * apart)
        if weight <= mpf(10) ** -25 * left:  # of terms of at most this weight
            break
    return right, left


@pytest.mark.parametrize("name", LAWS)
def test_aliasing_bounds_contain_what_neighbouring_periods_add(name: str) -> None:
    """Also where the tilt is far from the saddle point and K is known only roughly: as wrong as it may be."""
    law = LAWS[name]
    delta = functools.cache(law.delta)  # the same epsilons for every tilt
    with mp.workdps(40):
        for theta in (0.1, 0.7, 2.0, 5.0):
            tilts = np.array([-1.7, -1.0, -0.3, 0.0, 0.3 * theta, 0.8 * theta, 1.3 * theta, 2.0 * theta])
            exact, scale = np.array([float(law.log_moment(float(t))) for t in tilts]), law.log_moment(theta)
            known = []
            for doubt in (1e-13, 0.1):
                off = np.where(tilts != 0.0, doubt, 1e-13)
                known.append(
                    Chernoff(
                        theta, float(scale) + 0.99 * doubt, doubt, tilts, exact - 0.99 * doubt * (tilts != 0.0), off
                    )
                )
            for epsilon in (-1.0, 0.5, 3.0):
                unit = mp.exp(theta * mpf(epsilon) - scale)
                for period in (0.6, 2.0, 5.0, 12.0):
                    right, left = neighbours(delta, theta, epsilon, period)
                    for one in known:
                        found = one.aliasing(np.array([epsilon]), period)
                        assert right * unit <= float(found.right[0])
                        assert float(found.left_lower[0]) <= left * unit <= float(found.left_upper[0])


@pytest.mark.parametrize("name", LAWS)
def test_aliasing_bounds_of_long_periods_leave_little(name: str) -> None:
    law = LAWS[name]
    tilts = np.array([-1.0, -0.3, 0.0, 0.3, 0.6, 1.0, 1.7])
    values = np.array([float(law.log_moment(float(t))) for t in tilts])
    known = Chernoff(0.8, float(law.log_moment(0.8)), 1e-13, tilts, values, np.full(7, 1e-13))
    found = known.aliasing(np.array([0.5]), known.period(0.5, -20.0))
    assert max(float(found.right[0]), float(found.left_upper[0] - found.left_lower[0])) <= 1.01 * math.exp(-20.0)


# -------------------------------------------------------------------------------------------------------------- lines


@pytest.mark.parametrize("size", [3, 5, 9, 15, 31])
@pytest.mark.parametrize("theta", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("name", PAIRS)
def test_lattice_lines_of_any_period_contain_the_truth(name: str, theta: float, size: int) -> None:
    law, found = LAWS[name], lattice_line(*PAIRS[name], theta, size=size).curve(EPSILONS)
    for index, epsilon in enumerate(EPSILONS.tolist()):
        assert holds(found, index, law.delta(epsilon)), epsilon


@pytest.mark.parametrize("nodes", [2, 3, 5, 8, 12])
@pytest.mark.parametrize("name", ["response", "common"])
def test_lattice_lines_cut_short_contain_the_truth(name: str, nodes: int) -> None:
    law = LAWS[name]
    found = lattice_line(*PAIRS[name], 1.0, size=41, nodes=nodes).curve(EPSILONS)
    assert float(found.truncation[0]) > 1e-6
    for index, epsilon in enumerate(EPSILONS.tolist()):
        assert holds(found, index, law.delta(epsilon)), epsilon


@pytest.mark.parametrize("slack", [1e-6, 1e-3, 0.02])
def test_losses_off_their_lattice_are_contained(slack: float) -> None:
    """The same sums of losses, on a lattice that lies as far off as its slack says, or as the spacing allows."""
    line = lattice_line(RESPONSE, 12, 1.0, size=41)
    law = LAWS["response"]
    assert isinstance(law, TwoLosses)
    losses = PairSum([(RESPONSE, 12)])
    exponents = (2.0, *(1.0 + t for t in tilts_of(1.0)))
    rules = losses.rules(Window(exponents, 0.0, -40.0))
    assert rules is not None
    moments = [log_moments(rule, np.array(exponents)) for rule in rules]
    tilted = [tilt(rule, 2.0, moment) for rule, moment in zip(rules, moments, strict=True)]
    known = chernoff([rule.counts for rule in rules], moments, 0.0, (1.0, *tilts_of(1.0)))
    for sign in (-1, 1):
        moved = replace(line.lattice, origin=line.lattice.origin + sign * Fraction(slack), slack=1.001 * slack)
        found = prepare_lattice_line(rules, tilted, moved, chernoff=known, size=41, nodes=21, log_tail=-math.inf)
        # near the atoms, where a curve moved by the slack differs most in relation to the rounding
        at = np.array([float(loss) + shift * slack for loss in law.losses[6:] for shift in (-1.5, -0.5, 0.5)])
        curve = found.curve(at)
        for index, epsilon in enumerate(at.tolist()):
            truth = law.delta(epsilon)
            assert truth == 0 or holds(curve, index, truth), epsilon


@pytest.mark.parametrize("nodes", [2, 3, 4, 6, 9, 14, 22])
@pytest.mark.parametrize("step", [0.25, 0.5, 1.0, 1.5])
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_lines_of_any_step_and_length_contain_the_truth(mu: float, step: float, nodes: int) -> None:
    for theta in (0.5, 1.0, 2.5):
        found = gaussian_line(mu, theta, step=step, nodes=nodes).curve(EPSILONS)
        for index, epsilon in enumerate(EPSILONS.tolist()):
            assert holds(found, index, gaussian_delta(mpf(mu), epsilon)), (theta, epsilon)


@pytest.mark.parametrize("log_drop", [-9.0, -5.0, -3.0])
def test_mass_left_out_on_purpose_is_in_the_upper_side(log_drop: float) -> None:
    """Large losses dropped, up to the mass e^-3 in each step: what they do in one step alone, the upper side holds."""
    noise, rate, steps = 0.5, 1e-3, 20
    losses = PairSum([(SubsampledPair(GaussianPair(noise), rate), steps)]).dropping(log_drop)
    for epsilon in (3.0, 5.0, 7.0):
        found = line_for_epsilon(losses, epsilon, 0.01).curve(np.array([epsilon]))
        inner = mp.log1p(mp.expm1(mpf(epsilon)) / mpf(rate))  # where the curve of a sampled step looks at its base
        truth = mpf(rate) * gaussian_delta(1 / mpf(noise), inner)  # of one step: more steps have more
        assert truth <= mp.exp(mpf(float(found.log_upper()[0])))
        saddle = saddle_of_epsilon(losses, epsilon)
        assert truth <= mp.exp(mpf(float(log_tail(losses, np.array([[saddle.theta]]), np.array([epsilon]))[0])))


def test_mass_left_out_on_purpose_is_in_the_upper_side_however_far_out() -> None:
    """Also where the scale of the line is so small that the quotient is beyond float64."""
    losses = PairSum([(SubsampledPair(GaussianPair(0.5), 0.01), 1000)]).dropping(-20.0)
    line = line_for_epsilon(losses, 200.0, 1e-3)
    found = line.curve(np.array([200.0, 400.0, 800.0, 8000.0]))
    assert isinstance(line, ContourLine)
    assert line.dropped > 0.0
    assert (found.log_upper() >= math.log(line.dropped)).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_what_delta_lacks_of_one_is_at_most_chernoffs_bound(epsilon: float) -> None:
    """Every loss is larger than epsilon: at the tilt -1 the bound is what it bounds, ``e^epsilon Q(L > -inf)``."""
    finite = Fraction(3, 2048)
    losses = PairSum([(DiscretePair((0.75, 0.25, 0.0), (2.0**-10, 2.0**-11, float(1 - finite))), 3)])
    bound = mp.exp(mpf(log_complement(losses, saddle_of_epsilon(losses, epsilon), epsilon)))
    truth = mp.exp(mpf(epsilon)) * mpf(finite.numerator) ** 3 / mpf(finite.denominator) ** 3
    assert truth <= bound <= truth * (1 + mpf(10) ** -8)


def test_mass_left_out_on_purpose_is_what_delta_may_lack_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule without the outcome of the least loss, a tenth of the mass: nearly all that delta lacks is there."""
    losses = PairSum([(DiscretePair((0.9, 0.1), (2.0**-20, 1.0 - 2.0**-20)), 1)])
    epsilon, saddle = 1.0, saddle_of_epsilon(losses, 1.0)

    def cut(window: Window) -> list[LossRule]:
        (rule,) = PairSum.rules(losses, window) or ()
        names = ("loss", "loss_error", "log_weight", "weight_error")
        kept = {name: getattr(rule, name)[:, rule.loss[0] > 0.0] for name in names}
        return [replace(rule, **kept, dropped=np.array([0.1]))]

    monkeypatch.setattr(losses, "rules", cut)
    truth = mpf("0.1") + mp.e * mpf(2) ** -20
    bound = mp.exp(mpf(log_complement(losses, saddle, epsilon)))
    assert truth <= bound <= 2 * truth


# ------------------------------------------------------------------------------------------------- any tolerance at all

INFINITE = DiscretePair((0.5, 0.499, 0.001), (0.25, 0.75, 0.0))
QUESTIONS: list[tuple[Parts, Sequence[float]]] = [
    ([(RESPONSE, 708)], (100.0, 170.0, 173.3, 240.0)),
    ([(RARE, 249)], (0.2, 1.0, 3.5, 9.0)),
    ([(RARE.reversed(), 249)], (0.2, 0.6, 1.4)),
    ([(COMMON, 30)], (3.0, 14.0)),
    ([(WorstCasePair(0.1, 1e-6), 300)], (1.0, 3.0)),
    ([(SubsampledPair(GaussianPair(1.0), 0.01), 2000)], (0.0, 1.0, 2.0, 6.0)),
    ([(SubsampledPair(GaussianPair(1.0), 0.01).reversed(), 2000)], (0.5, 2.0)),
    ([(SubsampledPair(GaussianPair(0.5), 0.1), 30)], (1.0, 12.0)),
    ([(GaussianPair(1.0), 1)], (0.0, 1.0, 5.0)),
    ([(GaussianPair(0.1), 1)], (0.0,)),
    ([(DiscretePair((0.5, 0.25, 0.25, 0.0), (0.25, 0.25, 0.25, 0.25)), 60)], (1.0, 9.0)),
    ([(INFINITE, 5)], (0.0, 1.0, 2.5)),
    ([(INFINITE.reversed(), 5)], (0.0, 1.0)),
]


@pytest.mark.parametrize(("parts", "epsilons"), QUESTIONS)
def test_every_tolerance_contains_the_exact_delta(parts: Parts, epsilons: Sequence[float]) -> None:
    exact = {epsilon: exact_delta(parts, epsilon, digits=16) for epsilon in epsilons}
    for tolerance in TOLERANCES:
        curve = ContourCurve(PairSum(parts), tolerance)
        for epsilon, truth in exact.items():
            try:
                bound = curve.delta(epsilon)
            except ContourRefusal:
                if tolerance < 1e-9:
                    continue  # a clear refusal is no wrong answer
                raise
            assert Fraction(float(bound.lower)) <= truth.high, (tolerance, epsilon)
            assert truth.low <= Fraction(float(bound.upper)), (tolerance, epsilon)
            assert float(bound.width) <= tolerance * float(bound.lower) or float(bound.upper) < 1e-300


@pytest.mark.parametrize("noise", [0.07, 0.09])
def test_a_delta_next_to_one_is_bracketed_without_a_line(noise: float) -> None:
    parts: Parts = [(GaussianPair(noise), 1)]
    losses = PairSum(parts)
    bound = ContourCurve(losses, 1e-3)._near_one(saddle_of_epsilon(losses, 0.0), 0.0)
    assert bound is not None
    assert Fraction(float(bound.lower)) <= exact_delta(parts, 0.0, digits=16).low
    assert 1.0 - 1e-5 <= bound.lower < bound.upper == 1.0


@pytest.mark.parametrize("theta", [0.25, 1.0, 3.0])
def test_a_loss_without_a_node_is_in_the_upper_side(theta: float) -> None:
    """One that lies where it adds most to delta, of the tilted probability stated."""
    law, share = LAWS["response"], 1e-3
    found = replace(lattice_line(RESPONSE, 12, theta, size=41), dropped=share).curve(EPSILONS)
    for index, epsilon in enumerate(EPSILONS.tolist()):
        loss = mpf(epsilon) + mp.log1p(1 / mpf(theta))
        mass = mpf(share) * mp.exp(law.log_moment(theta) - mpf(theta) * loss)
        truth = law.delta(epsilon) + mass * (1 - mp.exp(mpf(epsilon) - loss))
        assert holds(found, index, law.delta(epsilon))
        assert holds(found, index, truth)


@pytest.mark.parametrize("tolerance", [0.3, 1e-2, 1e-4])
def test_epsilon_is_zero_only_where_delta_is_proved_small_enough_there(tolerance: float) -> None:
    """A delta just below that of epsilon 0, which the line is too coarse to tell from it."""
    parts = [(SubsampledPair(GaussianPair(1.0), 0.01), 2000)]
    at_zero = float(exact_delta(parts, 0.0, digits=16).low)
    for share in (1e-3, 1e-5, 1e-7, 1e-9, 1e-11):
        delta = at_zero * (1.0 - share)
        bound = ContourCurve(PairSum(parts), tolerance).epsilon(delta)
        assert exact_delta(parts, float(bound.upper), digits=16).low <= Fraction(delta), share
        assert exact_delta(parts, float(bound.lower), digits=16).high >= Fraction(delta), share
