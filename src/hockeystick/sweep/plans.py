"""The plans of a sweep and their rows: what is sent to workers, and what they send back.

A `Plan` is a run with one question about its curve; a `Search` is one value to calibrate. Both know how to become a
`Row`. What refuses becomes a row with the reason and the trivial bracket, which is true of anything.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from hockeystick.account import account
from hockeystick.accountants.base import Accountant
from hockeystick.bound import Bound, Estimate
from hockeystick.calibrate import Calibration, calibrate
from hockeystick.calibrate.neighbours import ahead
from hockeystick.composition import Composition
from hockeystick.errors import HockeystickError

__all__ = ["Plan", "Row", "Search", "rows_of"]


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
    quantity: str
    at: float
    adjacency: str
    accountant: Accountant

    @property
    def curve(self) -> tuple[object, ...]:
        """What the curve depends on."""
        return self.run, self.adjacency, self.accountant

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
    """

    family: Callable[..., Any]
    arguments: Mapping[str, Any]
    find: str
    settings: Mapping[str, Any]
    place: float = math.nan

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
    if plans:
        found = _accounted(plans)
    else:
        found = _calibrated([one for one in chunk if isinstance(one, Search)])
    return [replace(row, run=one.fingerprint(row)) for one, row in zip(chunk, found, strict=True)]


def _accounted(plans: Sequence[Plan]) -> list[Row]:
    """One curve for all questions about it that follow each other."""
    rows: list[Row] = []
    for _, same in itertools.groupby(plans, key=lambda plan: plan.curve):
        asked = list(same)
        first = asked[0]
        if isinstance(first.run, Exception):
            rows += [plan.trivial(_reason(first.run)) for plan in asked]
            continue
        try:
            curve = account(first.run, first.adjacency, accountant=first.accountant)
        except HockeystickError as error:
            rows += [plan.trivial(_reason(error)) for plan in asked]
            continue
        ask = curve.epsilon if first.quantity == "epsilon" else curve.delta
        rows += [_answered(plan, partial(ask, plan.at)) for plan in asked]
    return rows


def _answered(plan: Plan, ask: Callable[[], Bound | Estimate]) -> Row:
    try:
        answer = ask()
    except HockeystickError as error:
        return plan.trivial(_reason(error))
    if not isinstance(answer, Bound):
        raise TypeError(
            f"accountant {plan.accountant!r} returns estimates, and a sweep holds certified brackets: leave it out, or"
            " give one that certifies"
        )
    return Row(float(answer.lower), float(answer.upper), method=answer.method, notes=answer.notes)


def _calibrated(searches: Sequence[Search]) -> list[Row]:
    """Each search begins where its neighbours' answers lead."""
    rows: list[Row] = []
    known: list[tuple[float, float]] = []
    for search in searches:
        guess = ahead(known, search.place)
        try:
            found = calibrate(search.run, **{"guess": guess, **search.settings})
        except (HockeystickError, ValueError) as error:
            rows.append(search.trivial(_reason(error)))
            continue
        if not math.isnan(search.place):
            known.append((search.place, float(found.value)))
        rows.append(_between(found))
    return rows


def _between(found: Calibration) -> Row:
    """Where the best value lies: between the one proved safe and the one proved unsafe."""
    safe = float(found.value)
    if found.unsafe is None and found.precision > 0.0:
        ends = (0.0, math.inf)  # upper bounds alone prove nothing unsafe
    else:
        other = safe if found.unsafe is None else float(found.unsafe)
        ends = (min(safe, other), max(safe, other))
    return Row(*ends, safe=safe, method=found.bound.method, notes=found.notes)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _fingerprint(run: Composition) -> str:
    """A few digits that differ between runs, the same in every process."""
    steps = sorted(f"{step!r} x {count}" for step, count in run.steps)
    return hashlib.sha256(re.sub(r" at 0x[0-9a-f]+", "", "; ".join(steps)).encode()).hexdigest()[:12]
