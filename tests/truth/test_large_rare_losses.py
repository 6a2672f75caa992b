"""Noise so little that a step has a large loss wherever it draws the record, and next to none elsewhere.

The truth is known twice: of two steps by integration, and of more by how many draw the record, as if these alone had a
loss, to within the chance of a base loss that would be in doubt.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from mpmath import mp, mpf

import hockeystick as hs
from hockeystick.engines.rare.curve import RareCurve
from hockeystick.engines.rare.line import RareLine, pieces_of, rare_line, transforms
from hockeystick.engines.rare.losses import RareLosses, RareSum
from hockeystick.engines.rare.pieces import Pieces, TiltedPieces
from hockeystick.engines.rare.turning import NEAR, least_turn, most_turn
from hockeystick.laws import GaussianPair, SubsampledPair
from tests.quadrature import DIGITS, integral, normal_density, panels, two_sampled_steps
from tests.rare_pieces import exact_piece, only, sides_around

NOISE, RATE, STEPS = 0.05, 1e-3, 100
LAW = RareLosses(1.0 / NOISE, RATE, float(STEPS))
LOSSES = RareSum((LAW,))
EPSILON = 637.0


@functools.cache
def truth(epsilon: float, noise: float = NOISE, rate: float = RATE, steps: int = STEPS) -> tuple[float, float]:
    """delta, between two proved sides, next to each other where noise is below 0.06."""
    with mp.workdps(40):
        m, g, eps = 1 / mpf(noise), mpf(rate), mpf(epsilon)
        high, low = m * m / 2 - mpf("7.75") * m, -m * m / 2 + mpf("8.25") * m  # of base losses, with the record or not
        most = max(mp.log1p((1 - g) / g * mp.exp(-high)), mp.log1p(g / (1 - g) * mp.exp(low)))
        doubt = steps * (g * mp.ncdf(mpf("-7.75")) + mp.ncdf(mpf("-8.25")))

        def at(x: Any) -> Any:
            total = mpf(0)
            for k in range(1, min(steps, 60) + 1):
                mean, s = k * (m * m / 2 + mp.log(g)) + (steps - k) * mp.log1p(-g), m * mp.sqrt(k)
                y = (mean - x) / s
                own = mp.ncdf(y) - mp.exp(x - mean + s * s / 2) * mp.ncdf(y - s)
                total += mp.binomial(steps, k) * g**k * (1 - g) ** (steps - k) * own
            return total

        rest = mp.binomial(steps, 61) * g**61 if steps > 60 else 0
        return float(at(eps) * (1 - mpf("1e-15"))), float((at(eps - steps * most) + doubt + rest) * (1 + mpf("1e-15")))


@functools.cache
def planned(log_error: float = math.log(1e-9 * 1e-5)) -> RareLine:
    return rare_line(LOSSES, EPSILON, log_error)


def assert_contains(line: RareLine, epsilon: float = EPSILON) -> tuple[float, float]:
    return sides_around(truth(epsilon), line, epsilon)


def test_a_planned_line_contains_the_truth_narrowly() -> None:
    lower, upper = assert_contains(planned())
    assert upper - lower <= 1e-8 * lower


@pytest.mark.parametrize("epsilon", [150.0, 400.0, 500.0, 700.0, 850.0])
def test_a_line_contains_the_truth_far_from_its_epsilon(epsilon: float) -> None:
    assert_contains(planned(), epsilon)


@pytest.mark.parametrize("high", [200.0, 230.0, 260.0])
def test_too_low_an_upper_cut_adds_the_mass_above_it(high: float) -> None:
    found = replace(planned().found, high=(high,))
    assert_contains(replace(planned(), found=found, pieces=pieces_of(LOSSES, found)))


@pytest.mark.parametrize("share", [0.03, 0.1, 0.3])
def test_a_line_cut_short_adds_what_lies_beyond(share: float) -> None:
    assert_contains(replace(planned(), frequencies=math.ceil(share * planned().frequencies)))


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [
        (0.05, 1e-3, 100, 1e-5),
        (0.05, 1e-2, 50, 1e-4),
        (0.04, 1e-4, 1000, 1e-7),
        (0.03, 0.02, 30, 1e-8),
        (0.02, 1e-3, 1000, 1e-9),
    ],
)
def test_epsilons_contain_the_truth_narrowly(noise: float, rate: float, steps: int, delta: float) -> None:
    bound = hs.account(hs.Gaussian(noise).poisson(rate) * steps).epsilon(delta)
    assert bound.method == "rare large losses"
    assert truth(float(bound.upper), noise, rate, steps)[0] <= delta <= truth(float(bound.lower), noise, rate, steps)[1]
    assert bound.width <= 1e-6 + 1e-9 * bound.upper


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "epsilon"),
    [(0.05, 1e-3, 100, 640.0), (0.05, 1e-2, 12, 100.0), (0.04, 1e-4, 1000, 500.0), (0.02, 0.1, 40, 12_000.0)],
)
def test_deltas_contain_the_truth_narrowly(noise: float, rate: float, steps: int, epsilon: float) -> None:
    bound = hs.account(hs.Gaussian(noise).poisson(rate) * steps).delta(epsilon)
    least, most = truth(epsilon, noise, rate, steps)
    assert bound.lower <= most
    assert least <= bound.upper <= (1.0 + 1e-5) * bound.lower
    together = hs.account(hs.Gaussian(noise).poisson(rate) * steps).delta(np.array([epsilon, 1.1 * epsilon]))
    assert (together.lower[0], together.upper[0]) == (bound.lower, bound.upper)


@pytest.mark.parametrize(
    ("noise", "rate", "epsilon"), [(0.24, 0.05, 8.0), (0.2, 0.1, 20.0), (0.12, 1e-3, 30.0), (0.08, 0.02, 130.0)]
)
def test_two_steps_contain_the_truth_narrowly(noise: float, rate: float, epsilon: float) -> None:
    curve = RareCurve.of(((SubsampledPair(GaussianPair(noise), rate), 2),), 1e-6)
    assert curve is not None
    bound = curve.delta(epsilon)
    assert bound.lower <= two_sampled_steps(epsilon, noise, rate) <= bound.upper <= (1.0 + 1e-6) * bound.lower


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [
        (0.28574671280081865, 0.093537642360082, 16, 1.1176453727520734e-14),
        (0.3110718167224003, 0.008327002276003267, 45, 1.4167753142784753e-20),
        (0.2512128137774826, 0.00024530619050642914, 1176, 1.94881383e-02),
    ],
)
def test_where_next_to_nothing_lies_between_the_cuts_another_engine_answers(
    noise: float, rate: float, steps: int, delta: float
) -> None:
    curve = hs.account(hs.Gaussian(noise).poisson(rate) * steps, "remove")
    bound = curve.epsilon(delta)
    assert curve.delta(float(bound.upper)).lower <= delta <= curve.delta(float(bound.lower)).upper
    assert bound.width <= 1e-5


def clear(pieces: Pieces, place: int) -> bool:
    return float(pieces.half_width[place]) > NEAR


def on_line(pieces: Pieces) -> TiltedPieces:
    return TiltedPieces(pieces, 1.0 + planned().found.tilt)


@pytest.mark.parametrize(("frequency", "times"), [(0.1, 2.0), (1.0, 1.0), (1.0, 4.0)])
def test_rules_of_pieces_moved_far_up_err_by_no_more_than_they_say(frequency: float, times: float) -> None:
    (pieces,), seen = planned().pieces, 0
    for place in range(0, pieces.sizes.size, 6):
        piece = only(pieces, place)
        step = piece.step * times
        first, last = (np.floor(one * piece.step / step) for one in (piece.first, piece.last))
        heights = (0.5, 1.5, 3.0, 8.0, 20.0)
        rules = [replace(piece, step=step, first=first, last=last, half_width=np.array([b])) for b in heights]
        rule = min(rules, key=lambda rule: float(on_line(rule).log_error(2.0 * frequency)[0]))
        ((value, error),) = transforms(on_line(rule), [slice(None)], frequency, 3)
        seen += clear(rule, 0)
        for number in (0, 2):
            exact = exact_piece(rule, on_line(rule).exponent, number * frequency, 24)
            assert abs(complex(value[number]) - exact) <= error
        assert abs(exact_piece(rule, on_line(rule).exponent, 0.0)) <= on_line(rule).moment[0]
    assert seen >= 2 or times > 1.0


def test_the_transform_between_wide_cuts_fades_as_it_is_said_to() -> None:
    line = planned()
    piece = only(line.pieces[0], line.steps[0].parts[1].start)
    assert line.found.half_widths[0] > NEAR
    for half_width in (0.8, 2.0, 5.0, line.found.half_widths[0]):
        for frequency in (0.3, 1.0, 2.0):
            bound = math.exp(on_line(piece).log_faded(frequency, half_width)[0])
            for beyond in (1.0, 1.7):
                assert abs(exact_piece(piece, on_line(piece).exponent, beyond * frequency, 40)) <= bound


def test_no_piece_is_moved_over_the_zero_of_the_ratio() -> None:
    (pieces,), seen = planned().pieces, 0
    zero = math.log((1.0 - RATE) / RATE)
    for place in np.flatnonzero((pieces.ends[0] < zero) & (zero < pieces.ends[1])).tolist():
        piece, seen = replace(only(pieces, place), half_width=np.array([4.0])), seen + 1
        assert on_line(piece).log_error(0.0)[0] == on_line(piece).log_error(1.0)[0] == math.inf
        assert on_line(piece).log_faded(1.0, 4.0)[0] == math.inf
    assert seen >= 1


HEIGHTS = np.linspace(0.0, 12.0, 2401)


@pytest.mark.parametrize("q", [0.01, 0.099, 0.3, 0.9, 0.905, 0.99, 1.0])
def test_the_argument_turns_by_no_more_and_no_less_than_is_said(q: float) -> None:
    """Followed from the real line; where the other term turns it the most the bounds are nearly met."""
    exact = np.unwrap(np.angle(1.0 - q + q * np.exp(1j * HEIGHTS)))
    least, most = least_turn(np.array(q), HEIGHTS), most_turn(np.array(q), np.array(q), HEIGHTS)
    assert (least <= exact + 1e-12).all()
    assert (np.abs(exact) <= most + 1e-12).all()
    known, bare = HEIGHTS > NEAR, HEIGHTS * (q > 0.5)
    if q == 0.3:
        assert np.isinf(least[known]).all()
        assert np.isinf(most[known]).all()
        return
    off = 1.012 * math.asin(min(q, 1.0 - q) / max(q, 1.0 - q))
    assert (most <= bare + off + 1e-12)[known].all()
    assert q < 0.5 or (least >= bare - off - 1e-12)[known].all()


@pytest.mark.parametrize("place", [4, 14, 25])
@pytest.mark.parametrize(("out", "most"), [(-2.0, math.inf), (0.0, 3.0), (3.0, 100.0)])
def test_the_mass_beyond_the_ends_is_bounded(place: int, out: float, most: float) -> None:
    """Narrowly where these are next to the cuts."""
    piece, w = only(planned().pieces[0], place), LAW.width
    step = piece.step / 16.0
    first, last = np.floor((piece.below - out * w) / step + 0.5), np.ceil((piece.above + out * w) / step - 0.5)
    piece = replace(piece, step=step, first=first, last=last)
    (low,), (high,), (below,), (above,) = (one.tolist() for one in (*piece.ends, piece.below, piece.above))
    with ctx.workdps(DIGITS):
        m, g = arb(LAW.shift), arb(RATE)

        def f(u: arb) -> arb:
            between = (((u - above) / w).erfc() - ((u - below) / w).erfc()) / 2
            return ((1 - g) * normal_density(u / m + m / 2) + g * normal_density(u / m - m / 2)) / m * between

        exact = float(integral(f, panels(low - 10 * w, low, 20)) + integral(f, panels(high, high + 10 * w, 20)))
    assert exact <= piece.lost[0] <= most * exact
