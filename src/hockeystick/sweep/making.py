"""From a grid to its plans: every run is made here, before anything is accounted, so that mistakes show at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hockeystick.accountants.base import Accountant
from hockeystick.composition import Composition, Step
from hockeystick.errors import HockeystickError
from hockeystick.sweep.grid import Grid
from hockeystick.sweep.plans import Plan, Search

if TYPE_CHECKING:
    from hockeystick.engines.together import Quantity

_LINE = 128  # searches of a line, at most
_QUESTIONS = ("epsilon", "delta", "mu", "advantage", "adjacency")  # what a point of the grid holds beside the arguments


def plans_of(family: Callable[..., Any], grid: Grid, quantity: Quantity, accountant: Accountant) -> list[Plan]:
    """The plan of every point of the grid; one whose run is refused carries the refusal."""
    given = "delta" if quantity == "epsilon" else "epsilon"
    plans: list[Plan] = []
    known: dict[Step, Step] = {}
    for point in grid.points():
        run = _run(family, _apart(point)[1], known)
        plans.append(Plan(run, quantity, float(point[given]), point["adjacency"], accountant))
    first = plans[0].run
    if isinstance(first, ValueError) and all(isinstance(plan.run, ValueError) for plan in plans):
        raise first
    return plans


def _apart(point: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is asked at a point, and the arguments of the family."""
    questions = {name: value for name, value in point.items() if name in _QUESTIONS}
    return questions, {name: value for name, value in point.items() if name not in _QUESTIONS}


def _run(family: Callable[..., Any], arguments: Mapping[str, Any], known: dict[Step, Step]) -> Composition | Exception:
    """The run at one point, or why there is none; of steps that are equal one is kept for all runs."""
    try:
        run = family(**arguments)
    except (HockeystickError, ValueError) as error:
        return error
    except TypeError as error:
        error.add_note(f"the family was asked for {_words(arguments)}")
        raise
    if not isinstance(run, Step | Composition):
        raise TypeError(
            "family must turn named arguments into a step or a composition, such as"
            f" lambda noise, steps: Gaussian(noise).poisson(0.01) * steps; got {run!r} from {_words(arguments)}"
        )
    steps = run.steps if isinstance(run, Composition) else ((run, 1),)
    return Composition(tuple((known.setdefault(step, step), count) for step, count in steps))


def _words(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def searches_of(family: Callable[..., Any], grid: Grid, find: str, settings: Mapping[str, Any]) -> list[Search]:
    """The search of every point of the grid.

    Lines depend on the grid alone: what a search finds may depend on where it began.
    """
    searches, along = [], grid.longest
    lines = {number: line for line, own in enumerate(grid.lines(_LINE)) for number in own}
    for number, point in enumerate(grid.points()):
        questions, arguments = _apart(point)
        _check_target(questions | dict(settings))
        place = math.nan if along is None else float(point[along])
        searches.append(Search(family, arguments, find, {**settings, **questions}, place, lines[number]))
    return searches


def _check_target(given: Mapping[str, Any]) -> None:
    """Refuse what is no target before anything is sought."""
    from hockeystick.calibrate.targets import TARGETS, target_of  # what accounting plans does not need loads late

    target_of(**{name: given[name] for name in TARGETS if name in given})
