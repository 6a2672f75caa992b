"""Calibration: the smallest noise, or the largest rate, batch size or number of steps, that is proved to meet a target.

Guarantee: the value returned is safe by a certified upper bound, and a neighbouring value is unsafe by a
certified lower one: the best value lies between the two. Cost: some ten estimates and usually two or three
certified evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from hockeystick.accountants.base import Accountant, Parts, check_accountant
from hockeystick.accountants.certified import Certified
from hockeystick.calibrate.axis import Axis
from hockeystick.calibrate.result import Calibration, UnreachableTargetError
from hockeystick.calibrate.search import Problem, Search
from hockeystick.calibrate.strategy import narrow
from hockeystick.calibrate.targets import target_of
from hockeystick.composition import Composition, Step, directions
from hockeystick.errors import check_choice, check_count, check_positive, public_door
from hockeystick.progress import Progress

__all__ = ["Calibration", "UnreachableTargetError", "calibrate"]

_WITHIN = (1e-6, 1e9)
_FINEST = 1e-12
_FAR, _NEAR = 0.5, 0.05  # first step of the search from a value made up and from one given, in ln
_NEIGHBOURS = (4.0, 1.0, 0.25)  # of the guess, where estimates are compared: much less noise is slow
_ANCHORS = (1.0, 30.0, 1e-2, 1e3, 1e-4, 1e5, 1e-6, 1e8)  # and then: what is far off is slow, most of all tiny noise
_TELLING = 0.1  # difference of the excess that tells a direction


@public_door
def calibrate(
    family: Callable[[Any], Step | Composition],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    mu: float | None = None,
    floor: float = 0.0,
    true_positive_rate: float | None = None,
    false_positive_rate: float | None = None,
    advantage: float | None = None,
    bayes_risk: float | None = None,
    prior: float | None = None,
    adjacency: str = "add-remove",
    values: str = "real",
    within: tuple[float, float] | None = None,
    safe: str = "detect",
    precision: float = 1e-5,
    guess: float | None = None,
    accountant: Accountant | Literal["automatic"] | None = None,
) -> Calibration:
    """The best value of a one-parameter family that is proved to meet a target.

    Parameters
    ----------
    family : callable
        From one positive number (an int where ``values="integer"``) to a step or a composition; privacy must
        get steadily better or steadily worse as the number grows.
    epsilon, delta : float
        Target: (epsilon, delta)-differential privacy.
    mu, floor : float
        Target: Gaussian differential privacy, for delta above the floor (see
        `hockeystick.readouts.summary.smallest_mu`).
    true_positive_rate, false_positive_rate : float
        Target: no attack with this false-positive rate has a larger true-positive rate.
    advantage : float
        Target: no attack has a larger difference of the two rates.
    bayes_risk, prior : float
        Target: nobody who takes a record to be in the data with this prior errs less often (see
        `hockeystick.PrivacyCurve.bayes_risk`). Attribute inference or reconstruction from a baseline b is the target
        ``true_positive_rate`` at ``false_positive_rate=b``.
    adjacency : str
        Which datasets count as neighbours, as for `hockeystick.account`.
    values : {"real", "integer"}
        Which numbers the family takes.
    within : (float, float), optional
        Smallest and largest number allowed; say ``(1e-6, 1.0)`` for a sampling rate.
    safe : {"detect", "larger", "smaller"}
        Which numbers are safer; by default found out: more steps are never more private, and else by estimates.
    precision : float
        Relative distance between the value returned and one proved unsafe. Integers are exact.
    guess : float, optional
        Where to look first, as a value found for a similar run.
    accountant : Accountant, optional
        One that certifies; by default ``Certified()``, whose tolerance is then chosen for each evaluation.

    Returns
    -------
    Calibration
        ``value`` is proved safe, ``unsafe`` proved unsafe.

    Raises
    ------
    UnreachableTargetError
        Where even the safest value is proved to miss the target.

    Examples
    --------
    >>> import hockeystick as hs
    >>> found = calibrate(lambda s: hs.Gaussian(s).poisson(0.001) * 10_000, epsilon=1.0, delta=1e-6)
    >>> f"{found.value:.4f}", bool(found.bound.upper <= 1e-6), found.precision <= 1e-5
    ('0.7876', True, True)
    >>> steps = calibrate(lambda n: hs.Gaussian(1.0).poisson(0.001) * n, epsilon=1.0, delta=1e-6, values="integer")
    >>> steps.unsafe - steps.value
    1
    """
    if not callable(family):
        raise TypeError(f"family must be a function from a number to a run, got {family!r}")
    target = target_of(
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        floor=floor,
        true_positive_rate=true_positive_rate,
        false_positive_rate=false_positive_rate,
        advantage=advantage,
        bayes_risk=bayes_risk,
        prior=prior,
    )
    directions(adjacency)
    whole = check_choice("values", values, ("real", "integer")) == "integer"
    check_choice("safe", safe, ("detect", "larger", "smaller"))
    method = check_accountant(accountant, Certified())
    low, high = _limits(within, whole=whole)
    start = _start(guess, low, high, whole=whole, given=within is not None)
    problem = Problem(family, target, adjacency, method)
    if within is None:
        low, high = (problem.defined_towards(start, end) for end in (low, high))
    width = max(check_positive("precision", precision), _FINEST)
    search = Search(problem, Axis(low, high, whole, 1, width))
    step = _FAR if guess is None else _NEAR
    sign = {"larger": -1, "smaller": 1, "detect": 0}[safe] or (_by_steps(search, start) if whole else 0)
    with Progress("calibrating"):
        if sign:
            return _calibration(search.along(sign), start, step)
        return _checked(search.along(_detected(search, start)), start, step)


def _checked(search: Search, start: float, step: float) -> Calibration:
    """A calibration whose direction was told from estimates: an answer at one end is checked at the other."""
    axis = search.axis
    try:
        found = _calibration(search, start, step)
    except UnreachableTargetError:
        if not search.evaluate(axis.end, search.tolerance()).safe:
            raise
    else:
        if found.value != axis.end or not search.evaluate(axis.start, search.tolerance()).unsafe:
            return found
    return _calibration(Search(search.problem, axis).along(-axis.sign), start, step)


def _calibration(search: Search, start: float, step: float) -> Calibration:
    found = narrow(search, start, step)
    safe, next_one = found.safe, found.unsafe
    unsafe = None if next_one is None or next_one.unproved else next_one
    return Calibration(
        value=safe.value,
        unsafe=None if unsafe is None else unsafe.value,
        precision=0.0 if next_one is None else abs(next_one.value - safe.value) / safe.value,
        target=search.problem.target.words,
        bound=safe.bound,
        bound_at_unsafe=None if unsafe is None else unsafe.bound,
        curve=safe.curve,
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
    if whole:
        limits = [float(check_count("within", limit)) for limit in within]
    else:
        limits = [check_positive("within", limit) for limit in within]
    if not limits[0] < limits[1]:
        raise ValueError(f"within must be a pair (smallest, largest), got {within!r}")
    return limits[0], limits[1]


def _start(guess: float | None, low: float, high: float, *, whole: bool, given: bool) -> float:
    if guess is None:
        start = math.sqrt(low * high) if given else (1000.0 if whole else 1.0)
    else:
        start = check_positive("guess", guess)
    start = min(max(start, low), high)
    return round(start) if whole else start


def _detected(search: Search, start: float) -> int:
    """1 where larger values are less safe, -1 where smaller ones are, from estimates."""
    axis = search.axis
    seen: list[tuple[float, float]] = []
    for wanted in (*(start * factor for factor in _NEIGHBOURS), *_ANCHORS):
        value = axis.value(axis.place(min(max(wanted, axis.low), axis.high)))
        if any(value == other for other, _ in seen):
            continue
        excess = search.estimated(axis.place(value))
        for other, known in seen:
            if abs(excess - known) > _TELLING:
                return 1 if (excess > known) == (value > other) else -1
        seen.append((value, excess))
    raise ValueError(
        "could not tell whether larger or smaller values are safer: all that were tried are alike;"
        " give safe='larger' or safe='smaller', and a guess near the answer"
    )


def _by_steps(search: Search, start: float) -> int:
    """1 where the family only repeats its steps more often as the value grows, -1 where less often, 0 otherwise.

    More steps are never more private, however much or little the estimates differ.
    """
    problem = search.problem
    first = min(start, search.axis.high - 1)
    low, high = problem.run(int(first)), problem.run(int(first) + 1)
    names = directions(problem.adjacency)
    grows = all(_contains(high.pairs(name), low.pairs(name)) for name in names)
    shrinks = all(_contains(low.pairs(name), high.pairs(name)) for name in names)
    return int(grows) - int(shrinks)


def _contains(more: Parts, fewer: Parts) -> bool:
    counts = dict(more)
    return all(counts.get(pair, 0) >= count for pair, count in fewer)
