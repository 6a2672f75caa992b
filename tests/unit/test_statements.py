"""What is said of a guarantee: no sentence says more than is proved."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
from scipy.special import ndtr

import hockeystick as hs
from hockeystick.app.report.content import Content
from hockeystick.app.report.receipt import receipt
from hockeystick.app.report.words import headline, statement

RATE, DELTA = 0.01, 1e-5


@pytest.mark.parametrize("way", ["add", "remove"])
def test_of_one_direction_nothing_is_said_of_what_it_raises(way: str) -> None:
    one = hs.spec.of_run(hs.Gaussian(1.0).poisson(RATE), way, delta=DELTA)
    bound = one.curve.epsilon(DELTA)
    said = statement(one, "epsilon", DELTA, bound)
    assert " any one example lowers the probability of any set of outcomes of the one release" in said
    assert said.endswith(f"-differential privacy in the direction {way} alone.")
    assert headline(one, "epsilon", DELTA, bound).endswith(f" in the direction {way} alone, certified")


def test_adding_a_record_may_raise_a_probability_further_than_the_direction_add_says() -> None:
    run = hs.Gaussian(1.0).poisson(RATE)
    epsilon = float(hs.account(run, "add").epsilon(DELTA))
    without = float(ndtr(-1.5))
    beside = (1.0 - RATE) * without + RATE * float(ndtr(-0.5))
    assert beside > math.exp(epsilon) * without + DELTA, "why a statement says of it what it lowers, and no more"


def test_of_both_directions_both_ways_are_said() -> None:
    both = hs.spec.of_run(hs.Gaussian(1.0).poisson(RATE), delta=DELTA)
    bound = both.curve.epsilon(DELTA)
    assert statement(both, "epsilon", DELTA, bound).startswith("Adding or removing any one example changes the")
    assert headline(both, "epsilon", DELTA, bound).endswith("-differential privacy, certified")


@pytest.mark.parametrize("missed", [0.31, 0.3, 0.06, math.nextafter(0.05, 0.0), 0.25, 1e-300])
def test_the_share_an_attack_finds_is_rounded_up_from_its_exact_value(missed: float) -> None:
    made = receipt(hs.spec.of_run(hs.Gaussian(1.0), delta=DELTA))
    made["tradeoff"]["false_negative"][0]["lower"] = missed
    share = re.search(r"recognises at most (\S+)% ", Content(made).plainly())
    assert share is not None
    assert Fraction(share[1]) >= 100 * (1 - Fraction(missed)) > Fraction(share[1]) - 1
