"""Questions asked together: of one curve at many points, or of many curves.

Every number is that of the question asked alone, to the bit. A pass of the accountant answers what it can
(`hockeystick.engines.together`), and the rest is asked one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.bound import Bound, Estimate
from hockeystick.errors import HockeystickError, public_door

if TYPE_CHECKING:
    from hockeystick.accountants.base import Accountant, DirectedCurve
    from hockeystick.composition import Composition
    from hockeystick.engines.contour.answers import Answers
    from hockeystick.engines.together import Quantity

_PROVED = 2  # questions of a curve, for which proofs are worth their while

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


class Curve(Protocol):
    """A privacy curve, as `hockeystick.PrivacyCurve` is one: what is asked, and what answers are read off."""

    composition: Composition
    accountant: Accountant
    directed: Mapping[str, DirectedCurve]

    def one(self, value: float, quantity: Quantity) -> Bound | Estimate:
        """The answer to one question."""


@public_door
def asked_together(curves: Sequence[Curve], owners: Rows, values: Array, quantity: Quantity) -> Bound | Estimate:
    """``quantity`` of ``curves[owners[i]]`` at ``values[i]``, in one pass where the accountant has one.

    Parameters
    ----------
    curves : sequence of PrivacyCurve
        Different ones, of one accountant.
    owners : ndarray of int
        Which of them each question is asked of.
    values : ndarray
        Epsilons or deltas, checked already, of the shape of ``owners`` and of the answer.
    quantity : {"delta", "epsilon"}
        What is wanted there.

    Examples
    --------
    >>> import hockeystick as hs
    >>> import numpy as np
    >>> step = hs.Gaussian(noise_multiplier=1.0).poisson(rate=0.01)
    >>> curves = [hs.account(step * count) for count in (500, 1000, 2000)]
    >>> found = asked_together(curves, np.arange(3), np.full(3, 1e-6), "epsilon")
    >>> [bool(upper == curve.epsilon(1e-6).upper) for upper, curve in zip(found.upper, curves)]
    [True, True, True]
    """
    flat, which = values.ravel(), owners.ravel()
    known, together = _in_one_pass(curves, which, flat, quantity)
    alone = np.flatnonzero(~known)
    pieces = [(np.flatnonzero(known), together)] if together is not None else []
    pieces += [(np.array([row]), curves[which[row]].one(float(flat[row]), quantity)) for row in alone]
    return _gathered(pieces, values.shape)


@public_door
def each_together(
    curves: Sequence[Curve], owners: Rows, values: Array, quantity: Quantity
) -> list[Bound | Estimate | HockeystickError]:
    """The same with every answer by itself, as it is given alone, notes and all; a refusal stands in its place.

    Examples
    --------
    >>> import hockeystick as hs
    >>> import numpy as np
    >>> curves = [hs.account(hs.Gaussian(noise).poisson(0.01) * 1000) for noise in (0.8, 1.0)]
    >>> [f"{one:.3f}" for one in each_together(curves, np.arange(2), np.full(2, 1e-5), "epsilon")]
    ['[3.141, 3.142]', '[1.828, 1.829]']
    """
    found: list[Bound | Estimate | HockeystickError] = []
    passed = passed_together(curves, owners, values, quantity)
    for answer, owner, value in zip(passed, owners.tolist(), values.tolist(), strict=True):
        try:
            found.append(curves[owner].one(value, quantity) if answer is None else answer)
        except HockeystickError as error:
            found.append(error)
    return found


def passed_together(
    curves: Sequence[Curve], owners: Rows, values: Array, quantity: Quantity
) -> list[Bound | Estimate | None]:
    """What one pass answers; None where a question is to be asked alone."""
    passed = _passed(curves, owners, values, quantity)
    if passed is None:
        return [None] * values.size
    own: list[list[int]] = [[] for _ in values]
    for place in np.flatnonzero(passed.known[passed.rows]).tolist():
        own[passed.rows[place]].append(place)
    found: list[Bound | Estimate | None] = []
    for places, curve in zip(own, (curves[owner] for owner in owners.tolist()), strict=True):
        if not places:
            found.append(None)
            continue
        bounds = [passed.answers.bound(place) for place in places]
        bounds += [smaller(bounds[0])] * (len(curve.directed) - len(bounds))
        found.append(worst(dict(zip(curve.directed, bounds, strict=True)), curve.composition.notes))
    return found


def _in_one_pass(
    curves: Sequence[Curve], owners: Rows, values: Array, quantity: Quantity
) -> tuple[NDArray[np.bool_], Bound | None]:
    """Which questions a pass answers, and these answers: the larger of each side over the directions."""
    passed = _passed(curves, owners, values, quantity)
    if passed is None or not passed.known.any():
        return np.zeros(values.size, dtype=np.bool_), None
    return passed.known, _worst_of(curves, owners, passed.answers, passed.rows, passed.known)


@final
@dataclass(frozen=True, eq=False)
class _Passed:
    """What one pass found.

    Attributes
    ----------
    answers : Answers
        For every question and direction of its curve: all first directions, then the second ones that are not proved to
        stay below the first.
    rows : ndarray of int
        The question of each.
    known : ndarray of bool
        Whether a question is answered in every direction.
    """

    answers: Answers
    rows: Rows
    known: NDArray[np.bool_]


def _passed(curves: Sequence[Curve], owners: Rows, values: Array, quantity: Quantity) -> _Passed | None:
    """One pass over all questions; None where there is none."""
    if values.size < 2:
        return None
    accountant, flat = curves[0].accountant, [one for curve in curves for one in curve.directed.values()]
    count = np.array([len(curve.directed) for curve in curves])
    first = (np.cumsum(count) - count)[owners]
    together = accountant.together(flat)
    answers = None if together is None else together.answers(first, values, quantity)
    if together is None or answers is None:
        return None
    known, rows = answers.known.copy(), np.arange(values.size)
    differ = np.array([len(set(map(id, curve.directed.values()))) > 1 for curve in curves])
    second = np.flatnonzero(known & differ[owners])
    # a curve that is asked more has lines of the contour for many questions, and proofs would cost more than answers
    few = ~answers.by_contour | (np.bincount(owners)[owners] <= _PROVED)
    few &= (answers.lower > 0.0) & (answers.lower < answers.upper)
    proved = second[few[second]]
    at, lower = values[proved], answers.lower[proved]
    epsilon, delta = (at, lower) if quantity == "delta" else (lower, at)
    below = together.are_below(first[proved] + 1, first[proved], epsilon, delta, quantity)
    second = np.setdiff1d(second, proved[below])
    if second.size:
        more = together.answers(first[second] + 1, values[second], quantity)
        if more is None:
            return None
        answers, rows = type(answers).joined([answers, more], axis=-1), np.concatenate((rows, second))
        known[second] &= more.known
    return _Passed(answers, rows, known)


def _worst_of(curves: Sequence[Curve], owners: Rows, answers: Answers, rows: Rows, known: NDArray[np.bool_]) -> Bound:
    """The maximum over directions of each known question, with the direction that decides among the notes."""
    lower, upper = np.full(known.size, -np.inf), np.full(known.size, -np.inf)
    np.maximum.at(lower, rows, np.maximum(answers.lower, 0.0))
    np.maximum.at(upper, rows, np.maximum(answers.upper, 0.0))
    own = np.flatnonzero(known[rows])
    deciding = own[np.maximum(answers.upper[own], 0.0) == upper[rows[own]]]
    best = answers.together(deciding)
    place = np.zeros(rows.size, dtype=np.intp)
    place[known.size :] = 1
    notes = list(best.notes)
    _, once = np.unique(rows[deciding], return_index=True)  # the first direction where several are as large
    first = deciding[once]
    for owner, which in dict.fromkeys(zip(owners[rows[first]].tolist(), place[first].tolist(), strict=True)):
        names = list(curves[owner].directed)
        notes += [f"direction: {names[which]}"] * (len(names) > 1)
        notes += curves[owner].composition.notes
    return replace(best, lower=lower[known], upper=upper[known], notes=tuple(dict.fromkeys(notes)))


def smaller(decides: Bound) -> Bound:
    """What is known of a direction that is proved to stay below another's answer."""
    return Bound(0.0, decides.lower, decides.method)


def worst(answers: Mapping[str, Bound | Estimate], notes: tuple[str, ...] = ()) -> Bound | Estimate:
    """The maximum over directions: of each side of bounds, or of estimates.

    The direction that decides is named in the notes where there are several; ``notes`` are added to them.
    """
    bounds = {direction: answer for direction, answer in answers.items() if isinstance(answer, Bound)}
    if len(bounds) < len(answers):
        direction = max(answers, key=lambda d: float(answers[d].sides[1]))
        chosen = answers[direction].estimate
        return replace(chosen, notes=(*chosen.notes, *_decided(direction, answers), *notes))
    direction = max(bounds, key=lambda d: float(bounds[d].upper))
    best = bounds[direction]
    lower = max(float(bound.lower) for bound in bounds.values())
    known = [bound.decimals for bound in bounds.values() if bound.decimals is not None]
    decimals = (max(low for low, _ in known), max(high for _, high in known)) if len(known) == len(bounds) else None
    notes = (*best.notes, *_decided(direction, answers), *notes)
    return Bound(lower, best.upper, best.method, notes, best.errors, decimals)


def _decided(direction: str, answers: Mapping[str, Bound | Estimate]) -> tuple[str, ...]:
    return (f"direction: {direction}",) if len(answers) > 1 else ()


def _gathered(pieces: Sequence[tuple[Rows, Bound | Estimate]], shape: tuple[int, ...]) -> Bound | Estimate:
    """Answers to the questions named, gathered into one result."""
    pieces = sorted(pieces, key=lambda piece: int(piece[0][0]))
    results = [result for _, result in pieces]
    methods = "; ".join(dict.fromkeys(result.method for result in results)) or "no value asked for"
    notes = tuple(dict.fromkeys(note for result in results for note in result.notes))
    first, second = np.empty(int(np.prod(shape))), np.empty(int(np.prod(shape)))
    bounds = [result for result in results if isinstance(result, Bound)]
    if len(bounds) == len(results):
        for (rows, _), bound in zip(pieces, bounds, strict=True):
            first[rows], second[rows] = bound.lower, bound.upper
        names = dict.fromkeys(name for bound in bounds for name in bound.errors)
        errors = {name: max(bound.errors.get(name, 0.0) for bound in bounds) for name in names}
        return Bound(first.reshape(shape), second.reshape(shape), methods, notes, errors)
    for rows, result in pieces:
        estimate = result.estimate
        first[rows], second[rows] = estimate.value, estimate.error
    return Estimate(first.reshape(shape), second.reshape(shape), methods, notes)
