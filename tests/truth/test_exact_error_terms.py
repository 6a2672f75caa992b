"""The exact curve's own error terms where each is large: short periods, sums cut short, losses of few bits.

A plan makes them smaller than the digits asked for, so that nobody would miss one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import pytest
from flint import arb, ctx

from hockeystick.exact import Enclosure, Log, exact_delta, exact_epsilon
from hockeystick.exact.aliasing import Aliasing
from hockeystick.exact.atomic import AtomicTransform
from hockeystick.exact.atoms import Atoms
from hockeystick.exact.composite import Composite
from hockeystick.exact.evaluate import _transform
from hockeystick.exact.laplace import LaplaceTransform
from hockeystick.exact.lattice import LatticeCurve, LatticeLine, _Plan
from hockeystick.exact.quantum import common_lattice
from hockeystick.exact.shapes import MixtureShape, shape_of
from hockeystick.laws import DiscretePair, GaussianPair, SubsampledPair

RESPONSE = DiscretePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


def ball(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def responses(count: int) -> Composite:
    shape = shape_of(RESPONSE)
    assert isinstance(shape, Atoms)
    return Composite(((AtomicTransform(shape), count),))


def sum_over_outcomes(count: int, order: Fraction) -> Fraction:
    """Losses are (2 k - count) ln 3."""
    a, b = order.numerator, order.denominator
    masses = ((math.comb(count, k), 3**k, 3 ** (count - k)) for k in range(count + 1))
    return Fraction(sum(ways * max(b * p - a * q, 0) for ways, p, q in masses), b * 4**count)


@pytest.mark.parametrize("theta", [Fraction(1, 4), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("places", [1, 3, 6])
def test_aliasing_of_a_short_period_holds_what_both_sides_add(places: int, theta: Fraction) -> None:
    """Periods of a few times 2 ln 3: copies from larger epsilons are most of what is added."""
    count, period = 40, 2 * places * arb(3).log()
    tilts = tuple(theta * factor for factor in (Fraction(11, 10), Fraction(3, 2), Fraction(3)))
    found = Aliasing(responses(count), theta, tilts, period).bound(arb(2).log())
    fall = (-ball(theta) * period).exp()
    above = below = arb(0)
    for j in range(1, 60):
        jump = Fraction(9) ** (places * j)
        above += ball(sum_over_outcomes(count, 2 * jump)) / fall**j
        below += ball(sum_over_outcomes(count, 2 / jump)) * fall**j
    assert above + below <= found
    assert not above <= below  # the bound on copies from smaller epsilons would not do


@pytest.mark.parametrize("nodes", [1, 2, 4, 7, 12])
@pytest.mark.parametrize("theta", [Fraction(1, 2), Fraction(2)])
def test_a_sum_over_the_lattice_cut_anywhere_encloses_the_sum_over_outcomes(theta: Fraction, nodes: int) -> None:
    count = 30
    composite = responses(count)
    parts = [part for part, _ in composite.parts if isinstance(part, AtomicTransform)]
    lattice = common_lattice(parts)
    assert lattice is not None
    plan = _Plan(theta, 64, nodes, (2 * theta,), 160)
    line = LatticeLine(composite, [(parts[0], count, lattice.indices[0])], lattice.quantum, plan)
    for order in (Fraction(1), Fraction(2), Fraction(20), Fraction(3**10), Fraction(5**12)):
        truth = sum_over_outcomes(count, order)
        assert line.delta(Log(order)).contains(ball(truth))
        assert exact_delta([(RESPONSE, count)], Log(order), digits=20).contains(truth)


@pytest.mark.parametrize("digits", [1, 2, 4, 15])
@pytest.mark.parametrize("below", [Fraction(1, 10**9), Fraction(1, 10**11), Fraction(1, 10**12)])
@pytest.mark.parametrize(("shift", "count"), [(Fraction(1, 4), 10), (Fraction(1, 1000), 1000)])
def test_an_outcome_just_above_epsilon_counts_however_few_digits_are_asked_for(
    shift: Fraction, count: int, below: Fraction, digits: int
) -> None:
    p = Fraction(1, 2) + shift
    steps = [(DiscretePair((p, 1 - p), (1 - p, p)), count)]
    order = (p / (1 - p)) ** count * (1 - below)  # the next outcome is far below
    truth = p**count - order * (1 - p) ** count
    assert exact_delta(steps, Log(order), digits=digits).contains(truth)
    with_epsilon = exact_epsilon(steps, truth, digits=digits)
    bits = ball(order).log()
    assert arb(ball(Fraction(with_epsilon.low))) <= bits.upper()
    assert arb(ball(Fraction(with_epsilon.high))) >= bits.lower()


def test_a_billion_steps_of_one_finite_loss_are_one_outcome() -> None:
    rare = Fraction(1, 10**9)
    steps = [(DiscretePair((1 - rare, rare, 0), (1 - 2 * rare, 0, 2 * rare)), 10**9)]
    kept = ((-rare).numerator, (-rare).denominator)
    finite = ((arb(kept[0]) / kept[1]).log1p() * 10**9).exp()
    truth = 1 - finite + finite - ((ball(-2 * rare)).log1p() * 10**9).exp()  # epsilon 0
    found = exact_delta(steps, 0.0)
    assert ball(Fraction(found.low)) <= truth.upper()
    assert ball(Fraction(found.high)) >= truth.lower()
    assert found.digits >= 15


def test_the_density_of_losses_below_the_rounding_of_their_ends_claims_no_decay_of_its_own() -> None:
    ordinary, rounded_off = (
        LaplaceTransform(Fraction(1), rate, Fraction(0)).decay(Fraction(1)).bound(ball(30 / rate))
        for rate in (Fraction(1, 10**9), Fraction(1, 10**19))
    )
    assert rounded_off >= ordinary


def test_a_bound_that_is_kept_is_that_of_any_precision() -> None:
    shape = shape_of(SubsampledPair(GaussianPair(1.0), 0.01))
    assert isinstance(shape, MixtureShape)
    bounds = []
    for bits in (24, 53, 300):
        Composite.decay.cache_clear()
        ctx.prec = bits
        decay = Composite(((_transform(shape), 100),)).decay(Fraction(20))
        ctx.prec = 64
        bounds.append(decay.bound(arb(3)).upper().str(30, radius=True))
    assert len(set(bounds)) == 1


@pytest.mark.parametrize("rise", [1001, 1600, 1990])
def test_points_at_epsilon_are_doubtful_by_no_more_than_their_mass(rise: int) -> None:
    composite, order = responses(2000), Fraction(3) ** (2 * rise - 2000)
    lattice = common_lattice([part for part, _ in composite.parts if isinstance(part, AtomicTransform)])
    assert lattice is not None
    found = Enclosure.of_ball(LatticeCurve(composite, lattice).delta(Log(order), 15))
    assert found.contains(sum_over_outcomes(2000, order))
    assert found.digits >= 15
