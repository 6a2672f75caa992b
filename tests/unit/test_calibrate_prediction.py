"""The search on estimates finds the root of what they say, whatever they say far away."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from hockeystick.calibrate.axis import Axis
from hockeystick.calibrate.prediction import predicted

AXIS = Axis(1e-6, 1e9, False, 1, 1e-4)
ROOT = math.log(3.7)


def cut(excess: float) -> float:
    return min(max(excess, -800.0), 14.0)


@pytest.mark.parametrize("guess", [1e-6, 1e-3, 3.0, 3.7, 50.0, 1e9])
@pytest.mark.parametrize(
    "excess",
    [
        lambda place: cut(30.0 * (place - ROOT)),
        lambda place: cut(-math.expm1(-5.0 * (place - ROOT))),
        lambda place: cut(math.expm1(2.0 * (place - ROOT))),
        lambda place: math.copysign(800.0, place - ROOT) if abs(place - ROOT) > 0.5 else 20.0 * (place - ROOT),
    ],
)
def test_the_root_is_found_from_anywhere(excess: Callable[[float], float], guess: float) -> None:
    asked: list[float] = []

    def counted(place: float) -> float:
        asked.append(place)
        return excess(place)

    found = predicted(counted, AXIS, guess, 0.05)
    assert abs(found.place - ROOT) <= 1e-5
    assert len(asked) == len(set(asked)) <= 35


def test_an_excess_that_jumps_across_zero_ends_the_search_there() -> None:
    found = predicted(lambda place: 10.0 if place > ROOT else -10.0, AXIS, 1.0, 0.5)
    assert abs(found.place - ROOT) <= 0.02


@pytest.mark.parametrize(("constant", "end"), [(-5.0, 1e9), (5.0, 1e-6)])
def test_an_excess_of_one_sign_leads_to_an_end(constant: float, end: float) -> None:
    assert predicted(lambda _: constant, AXIS, 1.0, 0.5).place == pytest.approx(math.log(end), rel=1e-12, abs=0.0)


def test_integers_are_asked_once_each() -> None:
    axis = Axis(1, 1e9, True, 1, 1e-4)
    asked: list[float] = []

    def excess(place: float) -> float:
        asked.append(axis.value(place))
        return 2.0 * (math.log(axis.value(place)) - math.log(6.5))

    assert axis.value(predicted(excess, axis, 1000, 0.5).place) in {6, 7}
    assert len(asked) == len(set(asked))
