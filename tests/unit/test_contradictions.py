"""Certified answers that exclude each other raise, with both answers in the message; nothing is clipped."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants import Certified
from hockeystick.accountants.attained import AttainedCurve
from hockeystick.accountants.base import DirectedCurve
from hockeystick.accountants.certified import _CertifiedCurve
from hockeystick.bound import Bound, agreed, at_most, from_sides
from hockeystick.engines.ends import BoundedCurve
from hockeystick.engines.lattice.curve import _sharper
from hockeystick.engines.lattice.streaming_plan import LiveDirection
from hockeystick.laws import DiscretePair, GaussianPair, Pair, SubsampledPair, WorstCasePair

STEP = SubsampledPair(GaussianPair(1.0), 0.01)
RESPONSE = DiscretePair((0.75, 0.25), (0.25, 0.75))


class Liar:
    """An engine that answers what it is told to."""

    def __init__(self, answer: Bound) -> None:
        self.answer = answer

    def delta(self, epsilon: float) -> Bound:
        return self.answer

    def epsilon(self, delta: float) -> Bound:
        return self.answer


def lying(pair: Pair, count: int, lower: float, upper: float) -> DirectedCurve:
    return _CertifiedCurve(BoundedCurve(((pair, count),), lambda _: Liar(Bound(lower, upper, "a wrong proof")), 1e-3))


def refused(question: Callable[[], object], *named: str) -> hs.ContradictionError:
    with pytest.raises(hs.ContradictionError, match="exclude each other") as caught:
        question()
    for name in named:
        assert name in str(caught.value)
    return caught.value


def test_brackets_that_meet_are_intersected_and_others_refused() -> None:
    both = agreed(Bound(1.0, 2.0, "first"), Bound(2.0, 3.0, "second"))
    assert (both.lower, both.upper) == (2.0, 2.0)
    above = np.nextafter(2.0, 3.0)
    error = refused(
        lambda: agreed(Bound(1.0, 2.0, "first"), Bound(above, 3.0, "second")),
        "[1.0, 2.0] (first)", f"[{float(above)!r}, 3.0] (second)",
    )  # fmt: skip
    assert [answer.method for answer in error.answers if isinstance(answer, Bound)] == ["second", "first"]


def test_a_smaller_upper_side_keeps_method_and_errors() -> None:
    bound = Bound(1.0, 2.0, "first", ("a note",), {"rounding": 1.0})
    lowered = at_most(bound, 1.5, "second")
    assert (lowered.lower, lowered.upper, lowered.method, lowered.notes) == (1.0, 1.5, "first", ("a note",))
    refused(lambda: at_most(bound, 0.5, "second"), "(first)", "(second)")


def test_two_sides_of_one_engine_are_not_swapped() -> None:
    assert from_sides(-1.0, math.inf, "engine").lower == 0.0
    refused(lambda: from_sides(1.0, 0.5, "engine"), "engine, lower side", "engine, upper side")


def test_delta_above_what_the_largest_loss_allows_is_refused() -> None:
    refused(lambda: lying(RESPONSE, 2, 0.99, 0.99).delta(2.0), "a wrong proof", "no loss is larger than the largest")


def test_delta_above_the_probability_of_ever_being_drawn_is_refused() -> None:
    refused(lambda: lying(STEP, 2, 0.5, 0.5).delta(0.5), "a wrong proof", "ever drawn")


def test_delta_below_the_mass_at_infinity_is_refused() -> None:
    refused(lambda: lying(WorstCasePair(1.0, 0.1), 2, 0.1, 0.1).delta(0.5), "a wrong proof", "mass at infinite loss")


def test_epsilon_above_the_largest_loss_is_refused() -> None:
    largest = 2.0 * math.log(3.0)
    wrong = (largest * (1.0 + 1e-9), largest * (1.0 + 1e-9))
    refused(lambda: lying(RESPONSE, 2, *wrong).epsilon(1e-3), "a wrong proof", "the largest loss")


def test_epsilon_at_the_mass_at_infinity_is_no_contradiction() -> None:
    bound = Certified().directed(((WorstCasePair(1.0, 1e-5), 1),)).epsilon(1e-5)
    assert isinstance(bound, Bound)
    assert bound.lower <= 1.0 <= bound.upper < math.inf


def test_lattices_at_two_tilts_that_exclude_each_other_are_refused() -> None:
    refused(lambda: _sharper(Bound(1.0, 2.0, "certified lattice"), Bound(3.0, 4.0, "certified lattice")))


def test_datasets_above_their_dominating_pair_are_refused() -> None:
    below = AttainedCurve(
        Liar(Bound(0.0, 1e-9, "a wrong proof")),  # type: ignore[arg-type]
        Certified(),
        (((GaussianPair(1.0),), 1),),
        provenance=(),
    )
    refused(lambda: below.delta(1.0), "a wrong proof", "closed form")


def test_an_odometer_above_the_largest_loss_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    odometer = hs.Odometer(delta=1e-5)
    odometer.step(hs.RandomizedResponse(0.75), 2)
    monkeypatch.setattr(LiveDirection, "epsilon", lambda _: (9.0, 9.5))
    refused(odometer.epsilon, "the largest loss")


def test_a_curve_that_rises_is_refused_by_gaussian_dp(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(0.1) * 10)
    honest = BoundedCurve.delta

    def sometimes(self: BoundedCurve, epsilon: float) -> Bound:
        return honest(self, epsilon) if epsilon < 1.0 or math.isinf(epsilon) else Bound(0.9, 0.95, "a wrong proof")

    monkeypatch.setattr(BoundedCurve, "delta", sometimes)
    refused(lambda: curve.mu(floor=1e-6), "the curve at a smaller epsilon")


def test_a_curve_that_rises_is_refused_by_its_trade_off(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = hs.account(hs.Gaussian(1.0).poisson(0.1) * 10)
    honest = BoundedCurve.delta

    def sometimes(self: BoundedCurve, epsilon: float) -> Bound:
        return Bound(0.9, 0.95, "a wrong proof") if 0.0 < epsilon < math.inf else honest(self, epsilon)

    monkeypatch.setattr(BoundedCurve, "delta", sometimes)
    refused(lambda: curve.trade_off(0.1), "trade-off of Certified")
    refused(lambda: curve.trade_off([0.0, 0.1], direction="remove"), "trade-off of Certified")
