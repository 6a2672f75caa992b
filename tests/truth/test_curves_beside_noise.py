"""Steps known by their curves (random allocation, exponential mechanisms) beside others: the contour of their atoms."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx

import hockeystick as hs
from hockeystick.accountants import Certified, Contour
from hockeystick.laws import BoundedRangePair, GaussianPair, LaplacePair, Pair
from hockeystick.laws.allocated import AllocatedCurve
from hockeystick.laws.bounded_range_run import BoundedRangeRun
from hockeystick.laws.curve import ChordPair, SupportPair, _above, _below, _Side, _spacing

Atom = tuple[arb, arb, arb]
ROUND = AllocatedCurve(GaussianPair(1.0), 20)
RUN = BoundedRangeRun(0.3, 12)
PAIRS = (ChordPair(ROUND), SupportPair(ROUND), ChordPair(RUN))


def slopes_of(side: _Side, spacing: float) -> list[arb]:
    """How fast the piecewise linear curve falls in a, from knot to knot, and 0 beyond the last."""
    a = [(arb(int(k)) * spacing).exp() for k in side.index]
    values = [arb(float(value)) for value in side.value]
    return [(values[i] - values[i + 1]) / (a[i + 1] - a[i]) for i in range(len(a) - 1)] + [arb(0)]


def atoms_of(pair: ChordPair | SupportPair) -> tuple[list[Atom], arb]:
    """Losses and masses under P and Q of the law whose curve has these two sides, and the mass at infinity."""
    spacing = _spacing(pair.known)
    up, down = (_above if isinstance(pair, ChordPair) else _below)(pair.known)
    found, first = [], []
    for side, sign in ((up, 1), (down, -1)):
        slopes = slopes_of(side, spacing)
        first.append(slopes[0])
        for i in range(1, len(slopes)):
            loss, mass = arb(int(side.index[i])) * spacing * sign, slopes[i - 1] - slopes[i]
            other = mass * abs(loss).exp()
            found.append((loss, other, mass) if sign > 0 else (loss, mass, other))
    middle = 1 - arb(float(up.value[0])) - first[0] - first[1]
    return [*found, (arb(0), middle, middle)], arb(float(up.value[-1]))


def beside_gaussian(pair: ChordPair | SupportPair, mu: float, epsilon: float) -> arb:
    """delta of the law composed with a Gaussian step."""

    def cdf(x: arb) -> arb:
        return (-x / arb(2).sqrt()).erfc() / 2

    found, infinite = atoms_of(pair)
    m, total = arb(mu), infinite
    for loss, p, q in found:
        place = epsilon - loss
        total += p * cdf(m / 2 - place / m) - arb(epsilon).exp() * q * cdf(-m / 2 - place / m)
    return total


@pytest.mark.parametrize("pair", PAIRS)
def test_the_contour_contains_the_sum_over_the_atoms(pair: ChordPair | SupportPair) -> None:
    ctx.prec = 300
    curve = Contour().directed(((pair, 1), (GaussianPair(2.0), 1)))
    for epsilon in (0.5, 2.0, 6.0):
        truth, found = beside_gaussian(pair, 0.5, epsilon), curve.delta(epsilon)
        low, high = found.sides
        assert arb(float(low)) <= truth <= arb(float(high))
        assert float(high) - float(low) <= 1e-8 * float(high)


@pytest.mark.parametrize("delta", [1e-6, 1e-12])
def test_rounds_beside_sampled_steps_are_answered_by_the_contour(delta: float) -> None:
    """Inside of what lattices say, and as narrow as what is known of a round allows."""
    run = hs.Gaussian(1.0).random_allocation(steps=100) * 5 + hs.Gaussian(1.0).poisson(0.01) * 500
    found, wide = (
        hs.account(run, "remove", accountant=Certified(engine=engine)).epsilon(delta)  # type: ignore[arg-type]
        for engine in ("automatic", "lattice")
    )
    assert found.method == "contour"
    assert wide.lower <= found.lower
    assert found.upper <= wide.upper
    assert float(found.width) <= 1e-5


@pytest.mark.parametrize(
    ("parts", "by_contour"),
    [
        (((ChordPair(RUN), 400),), False),  # knots on one lattice
        (((ChordPair(RUN), 2), (BoundedRangePair(0.5), 1)), False),  # a few steps that smooth nothing
        (((ChordPair(RUN), 2), (BoundedRangePair(0.5), 1), (GaussianPair(3.0), 1)), True),
        (((ChordPair(RUN), 2), (LaplacePair(20.0), 100)), True),
    ],
)
def test_what_lattices_are_quicker_at_is_left_to_them(parts: tuple[tuple[Pair, int], ...], by_contour: bool) -> None:
    found = Certified().directed(parts).epsilon(1e-6)
    assert (found.method == "contour") == by_contour


def test_deltas_beyond_tables_of_curves_are_told_all_the_same() -> None:
    """Tables end at 1e-45: beyond, lattices of longer ones answer."""
    run = hs.Gaussian(3.0).random_allocation(steps=3) + hs.Gaussian(20.0)
    curve = Certified().directed(run.pairs("remove"))
    low, high = curve.delta(4.0).sides
    assert 1e-52 < low <= high <= 1e-51
    least, most = curve.epsilon(float(high)).sides
    assert least <= 4.0 <= most <= least + 1e-3
    together = Certified().together([curve])
    assert together is not None
    assert not together.answers(np.zeros(2, dtype=np.intp), np.array([3.5, 4.0]), "delta").known.any()


def test_what_the_contour_says_of_laws_whose_tables_end_is_not_held_against_longer_ones() -> None:
    """It refuses here with a bracket that is above what longer tables tell."""
    run = hs.Gaussian(3.0).random_allocation(steps=2) + hs.Gaussian(1.0).poisson(0.03)
    low, high = Certified(1e-7).directed(run.pairs("remove")).delta(20.0).sides
    assert 0.0 < low <= high <= 1e-100
    assert high <= (1.0 + 1e-5) * low
