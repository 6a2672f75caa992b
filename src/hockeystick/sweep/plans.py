"""The plans of a sweep and their rows: how a grid becomes plans, what is sent to workers, and what they send back.

A `Plan` is a run with one question about its curve; a `Search` is one value to calibrate. Both know how to become a
`Row`. What refuses becomes a row with the reason and the trivial bracket, which is true of anything. Every run is made
before anything is accounted, so that mistakes show at once.
"""

from __future__ import annotations

import gc
import hashlib
import inspect
import math
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from hockeystick.accountants.base import Accountant
from hockeystick.bound import Bound, Estimate
from hockeystick.composition import Composition, Step
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import HockeystickError, one_line
from hockeystick.sweep.grid import Grid
from hockeystick.together import each_together

if TYPE_CHECKING:
    from hockeystick.calibrate import Calibration
    from hockeystick.engines.together import Quantity


NAMELESS: Final = "stated by functions"
"""The fingerprint of runs that nothing tells from each other."""

_LINE = 128  # searches of a line, at most
_QUESTIONS = ("epsilon", "delta", "mu", "advantage", "adjacency")  # what a point of the grid holds beside the arguments


@final
@dataclass(frozen=True)
class Row:
    """The answer to one plan.

    Attributes
    ----------
    lower, upper : float
        The certified bracket; trivial where there is no answer.
    safe : float or None
        The value proved to meet the target, where one was sought and found.
    method : str
        What computed it.
    notes : tuple of str
        What a reader must know.
    refused : str
        Why there is no answer; empty where there is one.
    run : str
        A fingerprint of what was accounted, by which a resumed sweep knows its own rows.
    """

    lower: float
    upper: float
    safe: float | None = None
    method: str = ""
    notes: tuple[str, ...] = ()
    refused: str = ""
    run: str = ""


@final
@dataclass(frozen=True, eq=False)
class Plan:
    """One run and one question about its curve.

    Attributes
    ----------
    run : Composition or Exception
        What is accounted, or why there is no such run.
    quantity : {"epsilon", "delta"}
        What is asked for.
    at : float
        The delta or epsilon at which it is.
    adjacency : str
        The neighbouring relation.
    accountant : Accountant
        The method.
    """

    run: Composition | Exception
    quantity: Quantity
    at: float
    adjacency: str
    accountant: Accountant

    @property
    def law(self) -> Hashable:
        """What runs have in common that differ in their counts alone."""
        return () if isinstance(self.run, Exception) else tuple(step for step, _ in self.run.steps)

    def trivial(self, refused: str) -> Row:
        """The bracket that is true of anything."""
        return Row(0.0, math.inf if self.quantity == "epsilon" else 1.0, refused=refused)

    def fingerprint(self, row: Row) -> str:
        """Of what was accounted."""
        return "" if isinstance(self.run, Exception) else _fingerprint(self.run)


@final
@dataclass(frozen=True, eq=False)
class Search:
    """One value to calibrate.

    Attributes
    ----------
    family : callable
        From all named arguments to a run.
    arguments : mapping of str to object
        All but the one that is sought.
    find : str
        Its name.
    settings : mapping of str to object
        Of `hockeystick.calibrate`: the target and how it is sought.
    place : float
        Where on its line of the grid it is; NaN where that is no positive number.
    line : int
        The line: a search begins where its neighbours on it lead.
    """

    family: Callable[..., Any]
    arguments: Mapping[str, Any]
    find: str
    settings: Mapping[str, Any]
    place: float = math.nan
    line: int = 0

    def run(self, value: float) -> Any:
        """The run at a value."""
        return self.family(**self.arguments, **{self.find: value})

    def trivial(self, refused: str) -> Row:
        """The bracket that is true of anything."""
        return Row(0.0, math.inf, refused=refused)

    def fingerprint(self, row: Row) -> str:
        """Of the run at the value found."""
        if row.safe is None:
            return ""
        value = int(row.safe) if self.settings.get("values") == "integer" else row.safe
        return _fingerprint(self.run(value) * 1)


def rows_of(chunk: Sequence[Plan | Search]) -> list[Row]:
    """The rows of some plans, in order: what a worker is sent to do."""
    plans = [one for one in chunk if isinstance(one, Plan)]
    with _garbage_kept():
        found = _accounted(plans) if plans else _calibrated([one for one in chunk if isinstance(one, Search)])
    return [replace(row, run=one.fingerprint(row)) for one, row in zip(chunk, found, strict=True)]


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Leave cycles to after a chunk: what it makes lives as long as it does, and is looked through for nothing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _accounted(plans: Sequence[Plan]) -> list[Row]:
    """All questions in one pass, those about one curve asked of one curve."""
    rows: dict[int, Row] = {}
    places: dict[tuple[object, ...], int] = {}
    curves: list[PrivacyCurve] = []
    asked: list[tuple[int, int]] = []  # the plan and its curve
    for number, plan in enumerate(plans):
        if isinstance(plan.run, Exception):
            rows[number] = plan.trivial(_reason(plan.run))
            continue
        key = plan.run, plan.adjacency
        place = places.setdefault(key, len(curves))
        if place == len(curves):
            try:
                curves.append(PrivacyCurve(plan.run, plan.adjacency, plan.accountant))
            except HockeystickError as error:
                rows[number] = plan.trivial(_reason(error))
                del places[key]
                continue
        asked.append((number, place))
    if asked:
        numbers, owners = np.array(asked, dtype=np.intp).T
        values = np.array([plans[number].at for number in numbers.tolist()])
        answers = each_together(curves, owners, values, plans[0].quantity)
        rows |= {number: _row(plans[number], one) for number, one in zip(numbers.tolist(), answers, strict=True)}
    return [rows[number] for number in range(len(plans))]


def _row(plan: Plan, answer: Bound | Estimate | HockeystickError) -> Row:
    if isinstance(answer, HockeystickError):
        return plan.trivial(_reason(answer))
    if not isinstance(answer, Bound):
        raise TypeError(
            f"accountant {plan.accountant!r} returns estimates, and a sweep holds certified brackets: leave it out, or"
            " give one that certifies"
        )
    return Row(float(answer.lower), float(answer.upper), method=answer.method, notes=answer.notes)


def _calibrated(searches: Sequence[Search]) -> list[Row]:
    """Lines of searches, side by side."""
    from hockeystick.calibrate import Calibration  # what accounting plans does not need loads late
    from hockeystick.calibrate.sought import calibrations

    asked = [(search.run, search.settings) for search in searches]
    found = calibrations(asked, [search.place for search in searches], [search.line for search in searches])
    return [
        _between(one) if isinstance(one, Calibration) else search.trivial(_reason(one))
        for search, one in zip(searches, found, strict=True)
    ]


def _between(found: Calibration) -> Row:
    """Where the best value lies: between the one proved safe and the one proved unsafe."""
    safe = float(found.value)
    low, high = sorted((safe, safe if found.unsafe is None else float(found.unsafe)))
    if found.unsafe is None and found.precision > 0.0:
        low, high = 0.0, math.inf  # nothing is proved unsafe, and not all meets the target
    return Row(low, high, safe=safe, method=found.bound.method, notes=found.notes)


def _reason(error: Exception) -> str:
    return one_line(error) or type(error).__name__


def _fingerprint(run: Composition) -> str:
    """A few digits that differ between runs, the same in every process; `NAMELESS` where no words tell a run."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):  # every number of an array, every digit of it
        steps = "; ".join(sorted(f"{step!r} x {count}" for step, count in run.steps))
    return NAMELESS if " at 0x" in steps else hashlib.sha256(steps.encode()).hexdigest()[:12]


# --------------------------------------------------------------------------------------------- from a grid to its plans


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


def check_settings(settings: Any) -> dict[str, Any]:
    """Refuse settings that are none of a calibration's."""
    from hockeystick.calibrate import calibrate  # what accounting plans does not need loads late

    if not isinstance(settings, Mapping):
        raise TypeError(f"settings must be a mapping of arguments of hockeystick.calibrate, got {settings!r}")
    known = [name for name in inspect.signature(calibrate).parameters if name != "family"]
    for name in settings:
        if name not in known:
            raise TypeError(f"settings must be arguments of hockeystick.calibrate ({', '.join(known)}), got {name!r}")
    return dict(settings)


def _check_target(given: Mapping[str, Any]) -> None:
    """Refuse what is no target before anything is sought."""
    from hockeystick.calibrate.targets import TARGETS, target_of  # what accounting plans does not need loads late

    target_of(**{name: given[name] for name in TARGETS if name in given})
