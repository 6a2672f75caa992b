"""The exact curve's own error terms where each is large: short periods, sums cut short.

A plan makes them smaller than the digits asked for, so that nobody would miss one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import pytest
from flint import arb, ctx

from hockeystick.exact import Log, exact_delta
from hockeystick.exact.aliasing import Aliasing
from hockeystick.exact.atomic import AtomicTransform
from hockeystick.exact.atoms import Atoms
from hockeystick.exact.composite import Composite
from hockeystick.exact.lattice import LatticeLine, _Plan
from hockeystick.exact.quantum import common_lattice
from hockeystick.exact.shapes import shape_of
from hockeystick.laws import DiscretePair

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
    masses = ((math.comb(count, k), Fraction(3) ** k, Fraction(3) ** (count - k)) for k in range(count + 1))
    return sum((ways * max(p - order * q, Fraction(0)) for ways, p, q in masses), Fraction(0)) / 4**count


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
