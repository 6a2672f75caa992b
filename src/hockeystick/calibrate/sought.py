"""One calibration from its beginning to its proof, and several side by side.

Estimates put the answer at a place (`Sought.foresee`); the values just to either side of it are certified, those of
all calibrations in a few passes (`certify_either_side`); where these are not the proof yet, it is sought one evaluation
after the other (`Sought.found`).

Guarantee: that of each certified evaluation. Cost: some three estimates each where neighbours lead to the next one.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np

from hockeystick.accountants.base import Accountant, check_accountant
from hockeystick.accountants.certified import Certified
from hockeystick.bound import Bound
from hockeystick.calibrate.axis import Axis
from hockeystick.calibrate.beginning import by_steps, detected, led_to
from hockeystick.calibrate.problem import Problem
from hockeystick.calibrate.result import Calibration, UnreachableTargetError
from hockeystick.calibrate.search import Search
from hockeystick.calibrate.strategy import either_side, is_astray, is_settled, narrow, refined
from hockeystick.calibrate.targets import target_of
from hockeystick.composition import Composition, Step, directions
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import (
    HockeystickError,
    PrecisionError,
    UnknownPairError,
    check_choice,
    check_count,
    check_positive,
    public_door,
)
from hockeystick.progress import Progress
from hockeystick.together import passed_together

Family = Callable[[Any], Step | Composition]

_WITHIN = (1e-6, 1e9)
_FINEST, _COARSEST = 1e-12, 1.0  # relative precision
_FAR, _NEAR = 0.5, 0.05  # first step of the search from a value made up and from one given, in ln
_ROUNDS = ((0, 8), (4, 8), (2, 4), (1, 2))  # of a line: where each begins, and its steps
_REFUSALS = (PrecisionError, UnknownPairError)  # not contradictions, which are heard at once
_MORE = 3  # passes of a round after its first


@final
@dataclass(eq=False)
class Sought:
    """One calibration.

    Attributes
    ----------
    search : Search
        What is known so far.
    start, step : float
        The value from which estimates look for the answer, and how far at first, in ln.
    sign : int
        That of the axis (see `Axis`); 0 where estimates are to tell.
    """

    search: Search
    start: float
    step: float
    sign: int
    root: float = math.nan

    def foresee(self) -> float:
        """The value where estimates put the answer."""
        search = self.search.along(self.sign or detected(self.search, self.start))
        axis = search.axis
        never = all(map(search.cannot_miss, (self.start, axis.end)))  # which no estimate of next to no noise need tell
        self.root = axis.place(axis.end) if never else search.predicted_root(self.start, self.step)
        return float(axis.value(self.root))

    @property
    def is_near(self) -> bool:
        """Whether evaluations tell where the answer is, and do not prove it yet."""
        return bool(self.search.history) and not (is_astray(self.search) or is_settled(self.search))

    @property
    def value(self) -> float:
        """About the best value, not rounded to what is proved."""
        axis = self.search.axis
        return math.exp(axis.sign * refined(self.search, self.root))

    def found(self) -> Calibration:
        """The answer, proved."""
        if is_astray(self.search):
            self.foresee()
        return _calibration(self.search, self.root) if self.sign else self._checked()

    def _checked(self) -> Calibration:
        """A calibration whose direction was told from estimates: an answer at one end is checked at the other."""
        search, axis = self.search, self.search.axis
        try:
            found = _calibration(search, self.root)
        except UnreachableTargetError as error:
            if search.estimated(axis.place(axis.end)) > 0.0 or not search.evaluate(axis.end, search.tolerance()).safe:
                raise error.if_steady() from None
        else:
            if found.value != axis.end or not search.evaluate(axis.start, search.tolerance()).unsafe:
                return found
        other = Sought(Search(search.problem, axis), self.start, self.step, -axis.sign)
        other.foresee()
        return other.found()


def sought(
    family: Family,
    *,
    adjacency: str = "add-remove",
    values: str = "real",
    within: tuple[float, float] | None = None,
    safe: str = "detect",
    precision: float = 1e-5,
    guess: float | None = None,
    accountant: Accountant | Literal["automatic"] | None = None,
    **target: Any,
) -> Sought:
    """A calibration that has not begun; arguments as for `hockeystick.calibrate`."""
    aim = target_of(**target)
    if not callable(family):
        raise TypeError(f"family must be a function from a number to a run, got {family!r}")
    directions(adjacency)
    whole = check_choice("values", values, ("real", "integer")) == "integer"
    check_choice("safe", safe, ("detect", "larger", "smaller"))
    method = check_accountant(accountant, Certified())
    low, high = _limits(within, whole=whole)
    start = _start(guess, low, high, whole=whole, given=within is not None)
    problem = Problem(family, aim, adjacency, method)
    if within is None:
        low, high = (problem.defined_towards(start, end) for end in (low, high))
    run = problem.run(start)
    if why := aim.hopeless([run.pairs(name) for name in directions(adjacency)]):
        raise ValueError(f"no value can be proved to meet {aim.words}: {why}")
    width = min(max(check_positive("precision", precision), _FINEST), _COARSEST)
    search = Search(problem, Axis(low, high, whole, 1, width))
    step = _FAR if guess is None else _NEAR
    sign = {"larger": -1, "smaller": 1, "detect": 0}[safe] or (by_steps(search, start) if whole else 0)
    return Sought(search, start, step, sign)


@public_door
def calibrations(
    asked: Sequence[tuple[Family, Mapping[str, Any]]], places: Sequence[float], lines: Sequence[int] | None = None
) -> list[Calibration | HockeystickError | ValueError]:
    """Several calibrations along lines, each begun where its neighbours lead; a refusal stands in its place.

    Parameters
    ----------
    asked : sequence of (callable, mapping)
        The family of each, and the settings of `hockeystick.calibrate`; a guess among these goes first.
    places : sequence of float
        Where each is on its line, increasing or decreasing; NaN for one that is at no positive number.
    lines : sequence of int, optional
        The line of each: those of several are sought side by side, and none leads to another. One by default.

    Examples
    --------
    >>> import hockeystick as hs
    >>> runs = [lambda s, rate=rate: hs.Gaussian(s).poisson(rate) * 1000 for rate in (0.001, 0.002)]
    >>> settings = {"epsilon": 1.0, "delta": 1e-6, "safe": "larger"}
    >>> [f"{one.value:.3f}" for one in calibrations([(run, settings) for run in runs], [0.001, 0.002])]
    ['0.697', '0.785']
    """
    numbers: dict[int, list[int]] = {}
    for number, which in enumerate(lines or [0] * len(asked)):
        numbers.setdefault(which, []).append(number)
    found: dict[int, Calibration | HockeystickError | ValueError] = {}
    every = [_Line(asked, places, own, found) for own in numbers.values()]
    with Progress("calibrating") as progress:
        for start, step in _ROUNDS:
            begun = [one for line in every for one in line.begin(start, step)]
            certify_either_side(begun)
            for _ in range(_MORE):
                certify_either_side([one for one in begun if one.is_near])  # once more, where that leads
            for line in every:
                line.finish()
                progress.count(len(found), len(asked))
    return [found[number] for number in range(len(asked))]


@final
@dataclass(eq=False)
class _Line:
    """The numbers of the calibrations along a line, among others; `found` is where all answers go."""

    asked: Sequence[tuple[Family, Mapping[str, Any]]]
    places: Sequence[float]
    numbers: Sequence[int]
    found: dict[int, Calibration | HockeystickError | ValueError]
    _begun: dict[int, Sought] = field(default_factory=dict)
    _known: dict[int, tuple[float, float, Sought]] = field(default_factory=dict)  # places that are numbers, and values

    def begin(self, start: int, step: int) -> list[Sought]:
        """Some: the first lead from one to the next, by estimates; the others lie between what is known."""
        self._begun = {}
        for number in self.numbers[start::step]:
            try:
                one = self._begun[number] = self._sought(number, foreseen=start == 0)
            except (HockeystickError, ValueError) as error:
                self.found[number] = error
                continue
            if start == 0:
                self._keep(number, one)
        return list(self._begun.values())

    def finish(self) -> None:
        """Prove those that were begun."""
        for number, one in self._begun.items():
            try:
                self.found[number] = one.found()
            except (HockeystickError, ValueError) as error:
                self.found[number] = error
                self._known.pop(number, None)
            else:
                self._keep(number, one)

    def _keep(self, number: int, one: Sought) -> None:
        axis = one.search.axis
        at_an_end = axis.value(one.root) in (axis.low, axis.high)  # how far beyond is not known
        if not (math.isnan(self.places[number]) or at_an_end):
            self._known[number] = self.places[number], one.value, one

    def _sought(self, number: int, *, foreseen: bool) -> Sought:
        """One that begins where its neighbours lead; where they are far, by estimates."""
        (family, settings), place = self.asked[number], self.places[number]
        known = self._known.values()
        guess = led_to([(at, value) for at, value, _ in known], place)
        one = sought(family, **{"guess": guess, **settings})
        beside = None if guess is None else min(known, key=lambda other: abs(math.log(other[0] / place)))[2].search
        if beside is not None:
            one.search.like(beside)
        if guess is None or beside is None or foreseen or "guess" in settings:
            one.foresee()
        else:  # where another direction holds than beside, evaluations find the answer all the same, or are astray
            one.root = one.search.along(one.sign or beside.axis.sign).axis.place(guess)
        return one


def certify_either_side(several: Sequence[Sought]) -> None:
    """Certify the values to either side of where estimates put the answers, in one pass; what it leaves stays open."""
    asked: list[tuple[Search, float, float, PrivacyCurve]] = []
    for one in several:
        search, one.root = one.search, refined(one.search, one.root)
        tolerance = search.tolerance(search.axis.value(one.root))
        for value in either_side(search, one.root) if search.is_quick else ():
            with contextlib.suppress(*_REFUSALS):  # who asks alone hears why
                curve = search.problem.by_contour(search.problem.run(value), tolerance)
                if curve is not None:
                    asked.append((search, value, tolerance, curve))
    at = np.array([search.problem.target.delta_at for search, *_ in asked], dtype=np.float64)
    with contextlib.suppress(*_REFUSALS):
        answers = passed_together([curve for *_, curve in asked], np.arange(at.size), at, "delta")
        for (search, value, tolerance, curve), answer in zip(asked, answers, strict=True):
            if isinstance(answer, Bound):
                search.judged(value, answer, curve.composition, tolerance)


def _calibration(search: Search, root: float) -> Calibration:
    found = narrow(search, root)
    safe, next_one = found.safe, found.unsafe
    unsafe = None if next_one is None or next_one.unproved else next_one
    beyond = search.axis.end if next_one is None else next_one.value
    return Calibration(
        value=safe.value,
        unsafe=None if unsafe is None else unsafe.value,
        precision=abs(beyond - safe.value) / safe.value,
        target=search.problem.target.words,
        bound=safe.bound,
        bound_at_unsafe=None if unsafe is None else unsafe.bound,
        curve=search.problem.curve(safe.run, safe.tolerance),
        evaluations=search.evaluations,
        estimates=search.estimates,
        notes=found.notes,
    )


def _limits(within: tuple[float, float] | None, *, whole: bool) -> tuple[float, float]:
    if within is None:
        return (1, int(_WITHIN[1])) if whole else _WITHIN
    pair: object = within
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"within must be a pair (smallest, largest), got {within!r}")
    check = check_count if whole else check_positive
    low, high = (check("within", limit) for limit in within)
    if not low < high:
        raise ValueError(f"within must be a pair (smallest, largest), got {within!r}")
    return low, high


def _start(guess: float | None, low: float, high: float, *, whole: bool, given: bool) -> float:
    if guess is not None:
        start = check_positive("guess", guess)
    elif given:
        start = math.sqrt(low * high)
    else:
        start = 1000.0 if whole else 1.0
    start = min(max(start, low), high)
    return round(start) if whole else start
