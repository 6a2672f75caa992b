"""Many questions answered in one pass: of one curve at many points, of many curves at a few points each.

What a pass does not answer (the ends of the range, an engine that is neither the contour nor a closed form, a bracket
wider than asked for) is left to `hockeystick.engines.ends.BoundedCurve`, one by one; what it answers is the same to the
bit.

Guarantee: both sides certified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from hockeystick.engines.choose import ContourFirst
from hockeystick.engines.closed_form import ClosedForm, joint_form
from hockeystick.engines.contour.answers import Answers, deltas, epsilons, unknown
from hockeystick.engines.contour.curve import ContourCurve
from hockeystick.engines.contour.lines import Quantity as Quantity
from hockeystick.engines.contour.root_bracket import Targets
from hockeystick.engines.contour.search import targets_of
from hockeystick.engines.contour.standing import StandingLines
from hockeystick.engines.contour.stays_below import (
    log_reverse_beside,
    log_reverses,
    seems_far_below,
    stay_below,
    stay_below_beside,
)
from hockeystick.engines.ends import BoundedCurve, Ends, Engine
from hockeystick.engines.many_forms import forms_together
from hockeystick.engines.narrower import Narrower
from hockeystick.engines.rare import RareCurve
from hockeystick.engines.rare import deltas as rare_deltas
from hockeystick.engines.rare import epsilons as rare_epsilons
from hockeystick.engines.rare.losses import METHOD as RARE_METHOD
from hockeystick.numerics.columns import Array, Flags, Places

T = TypeVar("T")


def answers_together(curves: Sequence[BoundedCurve], owners: Places, values: Array, quantity: Quantity) -> Answers:
    """delta or epsilon of ``curves[owners[i]]`` at ``values[i]``, where a pass answers.

    Parameters
    ----------
    curves : sequence of BoundedCurve
        Different curves.
    owners : ndarray of int, shape (E,)
        Which curve each question is asked of.
    values : ndarray, shape (E,)
        Epsilons or deltas.
    quantity : {"delta", "epsilon"}
        What is wanted there.
    """
    is_delta, ends = quantity == "delta", Ends.of(curves, owners)
    plain = ends.asks_delta(values) if is_delta else ends.asks_epsilon(values)
    rare = np.zeros(values.size, dtype=np.bool_)
    if is_delta:
        first = [place for place in set(owners[plain].tolist()) if asks_rare(curves[place].engine, None)]
        rare = plain & np.isin(owners, first)
    else:
        for row in np.flatnonzero(plain).tolist():
            rare[row] = asks_rare(curves[owners[row]].engine, float(values[row]))
    answers = unknown(values.size)
    rows, place, lines = _served(curves, owners, plain & ~rare, standing_lines)
    asked = values[rows]
    if rows.size:
        found = deltas(lines, place, asked) if is_delta else epsilons(lines, place, _targets(lines, place, asked))
        _leave_wide_ones(found, curves, owners[rows], relative=is_delta)
        answers = answers.put(rows, found)
        rare[rows] = ~found.known
    rows, place, few = _served(curves, owners, rare, rare_lines)
    asked = values[rows]
    if rows.size:
        sides = rare_deltas(few, place, asked) if is_delta else rare_epsilons(few, place, _targets(few, place, asked))
        _answered(answers, rows, sides, RARE_METHOD)
    rows, place, forms = _served(curves, owners, plain, joint_form)
    for form, asks in forms_together([forms[one] for one in place.tolist()]):
        its = rows[asks]
        _answered(answers, its, (form.deltas if is_delta else form.epsilons)(values[its]), form.method)
        answers.errors[0, its] = answers.upper[its] - answers.lower[its]
    rows = np.flatnonzero(answers.known & (answers.lower <= answers.upper))
    own, lower, upper = ends.at(rows), np.maximum(answers.lower[rows], 0.0), np.maximum(answers.upper[rows], 0.0)
    answers.known[:] = False
    answers.known[rows] = own.keeps_delta(values[rows], lower, upper) if is_delta else own.keeps_epsilon(lower, upper)
    return answers


def _answered(answers: Answers, rows: Places, sides: tuple[Array, Array], method: str) -> None:
    """Put both sides of some answers in their place; they are known where the upper one is finite."""
    answers.lower[rows], answers.upper[rows] = sides
    answers.known[rows], answers.errors[:, rows], answers.method[rows] = np.isfinite(sides[1]), np.nan, method


def _leave_wide_ones(found: Answers, curves: Sequence[BoundedCurve], owners: Places, *, relative: bool) -> None:
    """Leave to other lines what they are asked for, too, where a question is asked alone."""
    for owner in set(owners.tolist()):
        narrower, rows = narrower_lines(curves[owner].engine), np.flatnonzero(found.known & (owners == owner))
        if narrower is not None and rows.size:
            lower, rounding = np.maximum(found.lower[rows], 0.0), np.where(found.at_zero, 0.0, found.errors[0])[rows]
            found.known[rows] = narrower.is_enough(lower, found.upper[rows], rounding, relative=relative)


def below_together(
    curves: Sequence[BoundedCurve], others: Sequence[BoundedCurve], epsilon: Array, delta: Array, quantity: Quantity
) -> Flags:
    """Whether ``delta(epsilon[i]) <= delta[i]`` of each curve is proved for less than answers cost.

    At once, or by a line such as the one by which another curve answers when asked for the quantity.
    """
    found = np.zeros(epsilon.size, dtype=np.bool_)
    asked: dict[int, StandingLines] = {}
    formed: dict[int, ClosedForm] = {}
    for row, (curve, *point) in enumerate(zip(curves, epsilon.tolist(), delta.tolist(), strict=True)):
        known = curve.ends_below(*point)
        own = standing_lines(curve.engine) if known is None else None
        form = joint_form(curve.engine) if known is None else None
        if own is not None:
            asked[row] = own
        elif form is not None:
            formed[row] = form
        else:
            found[row] = curve.engine.is_below(*point) if known is None else known
    for form, asks in forms_together(list(formed.values())):
        its = np.array(list(formed))[asks]
        found[its] = form.deltas(epsilon[its])[1] <= delta[its]
    beside = {row: _asked_lines(others[row].engine, float(delta[row]), quantity) for row in asked}
    turned = [row for row, lines in beside.items() if lines is not None and curves[row].is_reverse_of(others[row])]
    reverses = [lines for lines in (beside[row] for row in turned) if lines is not None]
    for row, log in zip(turned, log_reverses(reverses, epsilon[turned], delta[turned], quantity).tolist(), strict=True):
        found[row] = curves[row].is_below_if(log, float(delta[row]))
    rows = np.array([row for row in asked if not found[row]], dtype=np.intp)
    lines, places = [asked[row] for row in rows.tolist()], [beside[row] for row in rows.tolist()]
    found[rows] = lines_below(lines, places, epsilon[rows], delta[rows], quantity)
    return found


def lines_below(
    lines: Sequence[StandingLines],
    others: Sequence[StandingLines | None],
    epsilon: Array,
    delta: Array,
    quantity: Quantity,
) -> Flags:
    """The same of curves that lines answer, and of others that lines may answer."""
    found = stay_below(lines, epsilon, delta)
    rows = np.array([row for row in np.flatnonzero(~found).tolist() if others[row] is not None], dtype=np.intp)
    if rows.size:
        beside = [other for other in (others[row] for row in rows) if other is not None]
        own = [lines[row] for row in rows]
        found[rows] = stay_below_beside(own, beside, epsilon[rows], delta[rows], quantity)
    return found


def deltas_together(curves: Sequence[ContourCurve], owners: Places, epsilon: Array) -> Answers:
    """delta of ``curves[owners[i]]`` at ``epsilon[i]``, where standing lines answer."""
    answers = unknown(epsilon.size)
    asked = zip(owners.tolist(), epsilon.tolist(), strict=True)
    rows = np.flatnonzero([curves[owner].is_below_the_end(value) for owner, value in asked])
    if rows.size:
        answers = answers.put(rows, deltas([curve.standing for curve in curves], owners[rows], epsilon[rows]))
    return answers


def is_below_beside(curve: BoundedCurve, other: BoundedCurve, epsilon: float, delta: float, quantity: Quantity) -> bool:
    """Whether a line such as the one by which another curve answers proves ``delta(epsilon) <= delta``."""
    beside = _asked_lines(other.engine, delta, quantity)
    if beside is not None and curve.is_reverse_of(other):
        (log_finite,) = log_reverses([beside], np.array([epsilon]), np.array([delta]), quantity).tolist()
        if curve.is_below_if(log_finite, delta):
            return True
        if curve.is_below_if(log_reverse_beside(beside, epsilon, delta, quantity), delta):
            return True
    own = standing_lines(curve.engine)
    if own is None or beside is None:
        return curve.is_below(epsilon, delta)
    if seems_far_below(beside, epsilon, delta) and curve.is_below(epsilon, delta):
        return True
    return bool(stay_below_beside([own], [beside], np.array([epsilon]), np.array([delta]), quantity)[0])


def _asked_lines(engine: Engine, delta: float, quantity: Quantity) -> StandingLines | None:
    """The lines by which an engine answers first; None where they are none of the contour."""
    return None if asks_rare(engine, delta if quantity == "epsilon" else None) else standing_lines(engine)


def _served(
    curves: Sequence[BoundedCurve], owners: Places, asked: Flags, of: Callable[[Engine], T | None]
) -> tuple[Places, Places, list[T]]:
    """The questions asked whose curve has lines; which of these each has; and these."""
    needed = set(owners[asked].tolist())
    lines = [of(curve.engine) if place in needed else None for place, curve in enumerate(curves)]
    served = np.array([one is not None for one in lines], dtype=np.bool_)
    rows = np.flatnonzero(asked & served[owners])
    return rows, (np.cumsum(served) - 1)[owners[rows]], [one for one in lines if one is not None]


def _targets(lines: Sequence[StandingLines | RareCurve], owners: Places, delta: Array) -> Targets:
    asked = zip(owners.tolist(), delta.tolist(), strict=True)
    exceeded, undercut = np.array([targets_of(value, *lines[owner].infinite_mass) for owner, value in asked]).T
    return Targets(exceeded, undercut)


def standing_lines(engine: Engine) -> StandingLines | None:
    """The lines that answer first, for questions asked together; None where something else does."""
    if isinstance(engine, ContourFirst):
        return None if engine.lists_first or engine.least_told > 0.0 else engine.contour.standing
    return engine.standing if isinstance(engine, ContourCurve) else None


def narrower_lines(engine: Engine) -> Narrower | None:
    """What says whether those lines answer narrowly enough, or others are asked, too; None where these always do."""
    lines = engine.lines if isinstance(engine, ContourFirst) else None
    return lines if isinstance(lines, Narrower) else None


def rare_lines(engine: Engine) -> RareCurve | None:
    """The lines of rare large losses, which answer first where `asks_rare`; None where these are not rare."""
    return engine.rare if isinstance(engine, ContourFirst) else None


def asks_rare(engine: Engine, delta: float | None) -> bool:
    """Whether lines of rare large losses are asked first: for the epsilon of a delta, or, without one, for deltas."""
    return isinstance(engine, ContourFirst) and engine.asks_rare(delta)
