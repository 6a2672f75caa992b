"""Exact curves of discrete and Laplace compositions: against rational sums, quadrature, and each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import pytest
from flint import arb
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.errors import PrecisionError
from hockeystick.exact import Enclosure, Log, exact_delta, exact_epsilon, exact_infinite_mass
from hockeystick.exact.atomic import AtomicTransform
from hockeystick.exact.atoms import Atoms
from hockeystick.exact.composite import Composite
from hockeystick.exact.contour import ContourCurve
from hockeystick.exact.enumeration import EnumerationCurve
from hockeystick.exact.laplace import LaplaceTransform
from hockeystick.exact.laplace_sum import LaplaceCurve
from hockeystick.exact.lattice import LatticeCurve, _dirichlet
from hockeystick.exact.quantum import common_lattice
from hockeystick.exact.shapes import shape_of
from hockeystick.laws import (
    BinomialPair,
    DiscreteLaplacePair,
    DiscretePair,
    GaussianPair,
    LaplacePair,
    Pair,
    ReversedPair,
    SubsampledPair,
    WorstCasePair,
)
from hockeystick.laws.either_way import EitherWayBinomialPair

Terms = list[tuple[Pair, int]]

RESPONSE = DiscretePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
THREE = DiscretePair((Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)))
SKEW = DiscretePair((0.5, 0.3, 0.2, 0.0), (0.2, 0.3, 0.4, 0.1))  # a loss of -inf; no lattice
LEAKY = DiscretePair((0.125, 0.5, 0.375), (0.0, 0.375, 0.625))  # a loss of +inf


def rational_divergence(steps: Sequence[tuple[Sequence[Fraction], Sequence[Fraction]]], order: Fraction) -> Fraction:
    """The hockey-stick divergence, one outcome after the other, in fractions."""
    total = Fraction(0)
    for outcome in product(*(list(zip(p, q, strict=True)) for p, q in steps)):
        p, q = (
            math.prod((o[0] for o in outcome), start=Fraction(1)),
            math.prod((o[1] for o in outcome), start=Fraction(1)),
        )
        total += max(p - order * q, Fraction(0))
    return total


def vectors(pair: DiscretePair) -> tuple[list[Fraction], list[Fraction]]:
    return [Fraction(p) for p in pair.p], [Fraction(q) for q in pair.q]


@pytest.mark.parametrize("order", [Fraction(1), Fraction(4, 3), Fraction(2), Fraction(7, 2), Fraction(1, 2)])
@pytest.mark.parametrize(
    "terms",
    [
        [(RESPONSE, 6)],
        [(SKEW, 5)],
        [(LEAKY, 5)],
        [(RESPONSE, 2), (THREE, 2), (LEAKY, 1), (SKEW, 1)],
    ],
)
def test_sums_over_all_outcomes_are_exact(terms: list[tuple[DiscretePair, int]], order: Fraction) -> None:
    truth = rational_divergence([vectors(pair) for pair, count in terms for _ in range(count)], order)
    found = exact_delta(terms, Log(order), digits=25)
    assert found.contains(truth)
    assert found.digits >= 25 or truth == 0


def test_known_values_of_subsampled_randomized_response() -> None:
    pair = SubsampledPair(RESPONSE, 0.5)
    remove, add = [(pair, 2)], [(ReversedPair(pair), 2)]
    # the two directions cross between the orders 4/3 and 2
    assert exact_delta(remove, Log(Fraction(4, 3))).contains(Fraction(1, 6))
    assert exact_delta(add, Log(Fraction(4, 3))).contains(Fraction(11, 48))
    assert exact_delta(remove, Log(Fraction(2))).contains(Fraction(1, 8))
    assert exact_delta(add, Log(Fraction(2))).contains(Fraction(1, 16))


def parts_of(terms: Terms) -> Composite:
    parts: list[tuple[AtomicTransform | LaplaceTransform, int]] = []
    for pair, count in terms:
        shape = shape_of(pair)
        if isinstance(shape, Atoms):
            parts.append((AtomicTransform(shape), count))
        else:
            assert isinstance(pair, LaplacePair)
            parts.append(
                (LaplaceTransform(Fraction(pair.sensitivity) / Fraction(pair.scale), Fraction(1), Fraction(0)), count)
            )
    return Composite(tuple(parts))


@pytest.mark.parametrize("log_delta", [-1.0, -12.0, -60.0])
@pytest.mark.parametrize(
    "terms",
    [
        [(RESPONSE, 40)],
        [(SubsampledPair(RESPONSE, 0.1), 300)],
        [(ReversedPair(SubsampledPair(RESPONSE, 0.1)), 300)],
        [(THREE, 30)],
        [(DiscreteLaplacePair(3.0, 1), 30), (DiscreteLaplacePair(1.5, 2), 10)],
        [(ReversedPair(DiscreteLaplacePair(4.0, 3)), 20)],
        [(SubsampledPair(DiscreteLaplacePair(3.0, 1), 0.1), 50)],
        [(WorstCasePair(0.1, 1e-40), 100)],
    ],
)
def test_lattice_and_enumeration_agree(terms: Terms, log_delta: float) -> None:
    composite = parts_of(terms)
    lattice = common_lattice([part for part, _ in composite.parts if isinstance(part, AtomicTransform)])
    assert lattice is not None
    epsilon = Fraction(composite.saddle_of_delta(log_delta)[1])
    one, other = EnumerationCurve(composite).delta(epsilon, 15), LatticeCurve(composite, lattice).delta(epsilon, 15)
    assert one.overlaps(other)
    assert Enclosure.of_ball(other).digits >= 15


def test_points_exactly_at_epsilon_do_not_count_on_the_lattice() -> None:
    # losses are multiples of ln 3: epsilon = ln 9 is on a point, whichever way it is rounded
    composite = parts_of([(RESPONSE, 60)])
    lattice = common_lattice([part for part, _ in composite.parts if isinstance(part, AtomicTransform)])
    assert lattice is not None
    truth = sum(
        Fraction(math.comb(60, k) * max(0, 3**k - 9 * 3 ** (60 - k)), 4**60) for k in range(61)
    )  # p = 3^k, q = 3^(60-k)
    assert Enclosure.of_ball(LatticeCurve(composite, lattice).delta(Log(Fraction(9)), 20)).contains(truth)
    assert exact_delta([(RESPONSE, 60)], Log(Fraction(9)), digits=20).contains(truth)


def test_losses_without_a_lattice_are_told_apart() -> None:
    assert common_lattice([AtomicTransform(shape) for shape in (shape_of(SKEW),) if isinstance(shape, Atoms)]) is None
    assert common_lattice(list(dict(parts_of([(RESPONSE, 1), (THREE, 1)]).parts))) is None  # type: ignore[arg-type]


def test_a_billion_steps_cost_no_more_than_a_thousand() -> None:
    pair = SubsampledPair(RESPONSE, 0.001)
    found = exact_epsilon([(pair, 10**9)], 1e-100)
    assert found.digits >= 15
    assert exact_delta([(pair, 10**9)], found.low, digits=18).high >= Fraction(1e-100)


def test_binomial_noise_of_two_steps_is_the_sum_over_its_outcomes() -> None:
    pair = BinomialPair(12, 0.25, 2)
    masses = [math.comb(12, x) * Fraction(1, 4) ** x * Fraction(3, 4) ** (12 - x) for x in range(13)]
    p, q = [Fraction(0)] * 2 + masses, [*masses, Fraction(0), Fraction(0)]
    assert exact_delta([(pair, 2)], Log(Fraction(3)), digits=20).contains(
        rational_divergence([(p, q)] * 2, Fraction(3))
    )


def moved_either_way(masses: list[Fraction], shift: int, rate: Fraction) -> tuple[list[Fraction], list[Fraction]]:
    """Even noise on a Poisson sample under substitution, by its definition."""
    pad = [Fraction(0)] * (2 * shift)
    noise, last = [*pad, *masses, *pad], len(masses) + 3 * shift
    p, q = ([(1 - rate) * noise[x] + rate * noise[x - d] for x in range(shift, last)] for d in (shift, -shift))
    return p, q


@pytest.mark.parametrize(("trials", "shift"), [(12, 2), (7, 1), (2, 5)])
def test_binomial_noise_moved_either_way_is_the_sum_over_its_outcomes(trials: int, shift: int) -> None:
    pair = EitherWayBinomialPair(BinomialPair(trials, 0.5, shift), 0.25)
    masses = [math.comb(trials, x) * Fraction(1, 2**trials) for x in range(trials + 1)]
    p, q = moved_either_way(masses, shift, Fraction(1, 4))
    assert sum(p) == sum(q) == 1
    order = Fraction(9, 8)
    truth = rational_divergence([(p, q)] * 2, order)
    assert exact_delta([(pair, 2)], Log(order), digits=20).contains(truth)


@pytest.mark.parametrize(("scale", "shift", "rate"), [(1.5, 1, 0.1), (3.0, 3, 0.25), (0.5, 2, 0.01)])
def test_discrete_laplace_noise_moved_either_way_is_between_its_two_pairs(
    scale: float, shift: int, rate: float
) -> None:
    step = hs.DiscreteLaplace(scale, shift).poisson(rate)
    (attained,) = step.attained("substitute") or ()
    with mp.workdps(40):
        r, g, order = mp.exp(-1 / mpf(scale)), mpf(rate), mp.exp(mpf(0.05))
        noise = {x: (1 - r) / (1 + r) * r ** abs(x) for x in range(-600, 601)}
        within = range(-500, 501)
        p, q = ([(1 - g) * noise[x] + g * noise[x - d] for x in within] for d in (shift, -shift))
        truth = sum(max(a - order * b, mpf(0)) for a, b in zip(p, q, strict=True))
    low, high = (exact_delta([(pair, 1)], 0.05, digits=20) for pair in (attained, step.pair("substitute")))
    assert low.low <= Fraction(str(truth)) <= high.high
    assert high.high <= low.low * Fraction(1 + 1e-12)


def test_laplace_noise_moved_either_way_is_refused_in_words() -> None:
    with pytest.raises(hs.UnknownPairError, match="of Laplace noise on a Poisson sample under substitution"):
        exact_delta([(hs.Laplace(2.0).poisson(0.25).pair("substitute"), 1)], 0.1)


def test_discrete_epsilon_inverts_delta_and_ends_at_the_largest_loss() -> None:
    found = exact_epsilon([(SKEW, 4)], 1e-3)
    assert exact_delta([(SKEW, 4)], found.low, digits=20).high >= Fraction(1e-3)
    assert exact_delta([(SKEW, 4)], found.high, digits=20).low <= Fraction(1e-3)
    assert exact_epsilon([(WorstCasePair(0.25, 0.0), 4)], 0.0).contains(Fraction(1))
    assert exact_epsilon([(WorstCasePair(0.25, 1e-9), 4)], 1e-10) == Enclosure(math.inf, math.inf)
    assert exact_delta([(RESPONSE, 3)], 3.5) == Enclosure(Fraction(0), Fraction(0))


@pytest.mark.parametrize(
    "pair", [DiscretePair((1.0,), (1.0,)), DiscretePair((0.5, 0.5), (0.5, 0.5)), WorstCasePair(0.0)]
)
def test_equal_distributions_lose_nothing(pair: Pair) -> None:
    nothing = Enclosure(Fraction(0), Fraction(0))
    assert exact_delta([(pair, 10**9)], 0.0) == exact_epsilon([(pair, 10**9)], 0.0) == nothing
    with_response = exact_delta([(pair, 10**9), (RESPONSE, 2)], 1.0)
    assert with_response == exact_delta([(RESPONSE, 2)], 1.0)


def test_disjoint_supports_lose_everything() -> None:
    pair = DiscretePair((1.0, 0.0), (0.0, 1.0))
    assert exact_delta([(pair, 3)], 5.0).contains(1)
    assert exact_epsilon([(pair, 3)], 0.5) == Enclosure(math.inf, math.inf)
    for beside in (LaplacePair(1.0), GaussianPair(1.0)):
        assert exact_delta([(pair, 3), (beside, 2)], 5.0).contains(1)
        assert exact_infinite_mass([(pair, 3), (beside, 2)]).contains(1)
        assert exact_epsilon([(pair, 3), (beside, 2)], 0.5) == Enclosure(math.inf, math.inf)


def test_a_step_of_thousands_of_outcomes_is_summed() -> None:
    masses = [Fraction(math.comb(1200, x), 2**1200) for x in range(1201)]
    noise, shifted = [*masses, Fraction(0)], [Fraction(0), *masses]
    truth = rational_divergence([(shifted, noise), vectors(RESPONSE)], Fraction(2))
    assert exact_delta([(BinomialPair(1200), 1), (RESPONSE, 1)], Log(Fraction(2)), digits=20).contains(truth)


def test_all_but_next_to_nothing_is_lost() -> None:
    pair = BinomialPair(2, 1.8e-178, 2).reversed()
    assert exact_infinite_mass([(pair, 2)]).contains(1 - (Fraction(1.8e-178) ** 2) ** 2)
    assert exact_epsilon([(pair, 2)], 0.5) == Enclosure(math.inf, math.inf)


@pytest.mark.parametrize(("pair", "infinite"), [(LEAKY, 1 - Fraction(7, 8) ** 3), (DiscretePair((1, 0), (0, 1)), 1)])
def test_no_epsilon_has_a_delta_just_below_the_mass_at_infinity(pair: DiscretePair, infinite: Fraction) -> None:
    assert exact_epsilon([(pair, 3)], infinite - Fraction(1, 2**100)) == Enclosure(math.inf, math.inf)


def test_infinite_mass_is_the_end_of_the_curve() -> None:
    terms: Terms = [(LEAKY, 3), (WorstCasePair(0.5, 0.25), 1)]
    truth = 1 - Fraction(7, 8) ** 3 * Fraction(3, 4)
    assert exact_infinite_mass(terms).contains(truth)
    assert exact_epsilon(terms, truth).low > 0  # the largest finite loss, ln(4/3) for each leaky step and 1/2
    assert float(exact_epsilon(terms, truth).low) == pytest.approx(3 * math.log(4 / 3) + 0.5, rel=1e-14, abs=0.0)
    assert exact_epsilon(terms, truth - Fraction(1, 10**12)) == Enclosure(math.inf, math.inf)


# -------------------------------------------------------------------------------------------------------------- Laplace


def laplace_delta(m: mpf, epsilon: mpf) -> mpf:
    """One Laplace step with sensitivity m: 1 - e^{(eps - m)/2} inside the support."""
    if epsilon >= m:
        return mpf(0)
    return 1 - mp.exp(epsilon) if epsilon <= -m else 1 - mp.exp((epsilon - m) / 2)


def laplace_two_steps(m: mpf, other: mpf, epsilon: mpf) -> mpf:
    """Over the first loss: two atoms and a density e^{(l - m)/2} / 4."""
    total = laplace_delta(other, epsilon - m) / 2 + mp.exp(-m) / 2 * laplace_delta(other, epsilon + m)
    kinks = [x for x in (epsilon - other, epsilon + other) if -m < x < m]

    def density(l: mpf) -> mpf:
        return mp.exp((l - m) / 2) / 4 * laplace_delta(other, epsilon - l)

    return total + mp.quad(density, sorted([-m, *kinks, m]))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9, 1.25])
def test_laplace_of_one_and_two_steps(epsilon: float) -> None:
    with mp.workdps(40):
        one = exact_delta([(LaplacePair(1.0), 1)], epsilon, digits=20)
        middle = mpf(one.low.numerator) / one.low.denominator if isinstance(one.low, Fraction) else mp.inf
        assert abs(middle - laplace_delta(mpf(1), mpf(epsilon))) <= mpf(10) ** -20
        truth = laplace_two_steps(mpf(1), mpf(1) / 2, mpf(epsilon))
        two = exact_delta([(LaplacePair(1.0), 1), (LaplacePair(2.0), 1)], epsilon, digits=20)
        assert isinstance(two.low, Fraction)
        assert abs(mpf(two.low.numerator) / two.low.denominator / truth - 1) < mpf(10) ** -18


def test_laplace_sum_and_line_agree() -> None:
    composite = parts_of([(LaplacePair(1.0), 150)])
    epsilon = Fraction(40)
    one, other = LaplaceCurve(composite).delta(epsilon, 15), ContourCurve(composite).delta(epsilon, 15)
    assert one.overlaps(other)


def test_laplace_with_discrete_pairs_agrees_with_the_sum_over_their_outcomes() -> None:
    epsilon = Fraction(3, 2)
    found = exact_delta([(LaplacePair(2.0), 3), (RESPONSE, 1)], epsilon, digits=20)
    with mp.workdps(40):
        shift = Fraction(int(mp.log(3) * 2**120), 2**120)  # ln 3 to 36 digits
    alone = [exact_delta([(LaplacePair(2.0), 3)], epsilon + sign * shift, digits=20) for sign in (-1, 1)]
    low, high = (
        (Fraction(3, 4) * alone[0].low + Fraction(1, 4) * alone[1].low),
        (Fraction(3, 4) * alone[0].high + Fraction(1, 4) * alone[1].high),
    )
    assert low * (1 - Fraction(1, 10**18)) <= found.high
    assert found.low <= high * (1 + Fraction(1, 10**18))


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_subsampled_laplace_transform_encloses_quadrature(direction: str) -> None:
    m, g = Fraction(3, 2), Fraction(1, 5)
    a, b = (g, Fraction(0)) if direction == "remove" else (Fraction(0), g)
    with mp.workdps(30):
        theta, mm = mpf(3), mpf(3) / 2

        def weight(l: mpf) -> mpf:
            over, under = (1 - mpf(c.numerator) / c.denominator * (1 - mp.exp(l)) for c in (a, b))
            return over ** (1 + theta) * under**-theta

        atoms = weight(-mm) / 2 + weight(mm) * mp.exp(-mm) / 2
        truth = mp.log(atoms + mp.quad(lambda y: weight(2 * y - mm) * mp.exp(-y) / 2, [0, mm]))
        found = Enclosure.of_ball(LaplaceTransform(m, a, b).log_moment(Fraction(3)))
        low, high = (
            mpf(end.numerator) / end.denominator for end in (found.low, found.high) if isinstance(end, Fraction)
        )
        assert low - mpf(10) ** -25 <= truth <= high + mpf(10) ** -25
        assert high - low < mpf(10) ** -12


def test_subsampled_laplace_directions_are_symmetric() -> None:
    pair = SubsampledPair(LaplacePair(1.0), 0.01)
    forward, backward = (exact_delta([(p, 2000)], e, digits=15) for p, e in ((pair, 0.25), (ReversedPair(pair), -0.25)))
    order = mp.exp(mpf("0.25"))
    assert isinstance(forward.low, Fraction)
    assert isinstance(backward.low, Fraction)
    one, other = (mpf(x.low.numerator) / x.low.denominator for x in (forward, backward))  # type: ignore[union-attr]
    assert abs(one - (1 - order * (1 - other))) < mpf(10) ** -14


def test_mixed_composition_with_atoms_agrees_with_the_sum_over_them() -> None:
    # one response step shifts the Gaussian's epsilon by ln 3 either way
    found = exact_delta([(GaussianPair(1.5), 4), (RESPONSE, 1)], Log(Fraction(5)), digits=20)
    up, down = (
        exact_delta([(GaussianPair(1.5), 4)], Log(order), digits=25) for order in (Fraction(5, 3), Fraction(15))
    )
    low = Fraction(3, 4) * up.low + Fraction(1, 4) * down.low
    high = Fraction(3, 4) * up.high + Fraction(1, 4) * down.high
    assert low <= found.high
    assert found.low <= high
    assert found.digits >= 20


def test_losses_of_next_to_nothing_are_told_or_refused() -> None:
    least = Fraction(1, 2**1100)
    above, below = Fraction(1, 2) + least, Fraction(1, 2) - least
    pair = DiscretePair((above, below), (below, above))
    assert exact_delta([(pair, 2)], 0.0, digits=8).contains(2 * least)  # as of one step
    with pytest.raises(PrecisionError, match="decays too slowly"):
        exact_delta([(pair, 10**6)], 0.0)
    with pytest.raises(PrecisionError, match="lattice of losses is too fine"):
        exact_delta([(SubsampledPair(DiscretePair((5e-324, 1.0), (1e-308, 1.0)), 1e-300), 10**6)], 0.0)
    rate, shift = Fraction(1e-16), Fraction(1, 40_000)
    found = exact_delta([(SubsampledPair(LaplacePair(40_000.0), rate), 1)], 0.0, digits=6)
    assert rate * (shift / 2 - shift**2 / 8) <= found.high
    assert found.low <= rate * shift / 2  # rate * (1 - e^(-shift / 2))


def test_what_no_method_can_do_is_refused() -> None:
    two_lattices = [(SubsampledPair(LaplacePair(scale), 0.1), 5) for scale in (1.0, 2.0)]
    with pytest.raises(PrecisionError, match="use the accountant Certified"):
        exact_delta(two_lattices, 0.5)
    with pytest.raises(PrecisionError, match="decays too slowly"):
        exact_delta([(SKEW, 10**6)], 320_000.0)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 12, 40])
def test_the_kernel_of_a_run_is_bounded_from_any_angle_on(length: int) -> None:
    """``|sin(n x / 2)| / (n sin(x / 2))``, ripples and all."""
    angles = [k * math.pi / 300 for k in range(1, 301)]
    sizes = [abs(math.sin(0.5 * length * x) / (length * math.sin(0.5 * x))) for x in angles]
    for place in range(0, 300, 7):
        assert float(_dirichlet(arb(angles[place]), length)) >= max(sizes[place:]) - 1e-12  # rounding of the sines
