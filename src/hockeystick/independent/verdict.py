"""The verdict on every number of a receipt."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Lock
from typing import Any, final

from hockeystick.independent.balls import UnreachedError, precision, real
from hockeystick.independent.run import Run
from hockeystick.independent.steps import SampledStep, step_of
from hockeystick.independent.tradeoff import TradeOff

PROVED, NOT_REACHED, CONTRADICTED = "proved", "not proved independently", "contradicted"

_DIRECTIONS = {
    "add-remove": ("remove", "add"),
    "add": ("add",),
    "remove": ("remove",),
    "substitute": ("substitute",),
    "zero-out": ("zero-out", "zero-in"),
}
_GIVEN = {"epsilon": "delta", "delta": "epsilon"}
_READ = {"version", "title", "steps", "tuning", "guarantee", "accountant", "circumstances"}
_OF_GUARANTEE = {"adjacency", "unit", "group_size", "delta", "epsilon"}
_GOALS = (34, 66)  # bits to which delta is enclosed: the second where the first decides nothing
_FEW = 2  # splits whose trade-off is computed, the likeliest first: each takes minutes
_NONE_REACH_IT = "no known datasets that the checker tried reach it"
_ALONE = Lock()  # flint's precision is that of the whole process


@final
@dataclass(frozen=True)
class Finding:
    """What came of one number: where it stands, the verdict, and the reason."""

    where: str
    verdict: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.verdict}" + (f": {self.reason}" if self.reason else "")


class Directed:
    """Curves of one direction: the dominating one above, those of known datasets below (the same where attained)."""

    def __init__(self, entries: Sequence[Mapping[str, Any]], direction: str, hints: Sequence[Sequence[int]]) -> None:
        found = [step_of(entry, direction) for entry in entries]
        steps = [step for step, _ in found]
        self.upper = Run(steps)
        if all(attained for _, attained in found):
            self.lowers = [self.upper]
            return
        if any(not attained and step.kind != "joined" for step, attained in found):
            self.lowers = []  # shuffled batches: no curve of datasets is computed here
            return
        joined = [step.count for step in steps if step.kind == "joined"]
        shares = (Fraction(1), Fraction(0), Fraction(1, 2), *(Fraction(k, 16) for k in range(1, 16)))
        splits = [hint for hint in hints if len(hint) == len(joined)]
        splits += [[math.floor(share * count) for count in joined] for share in shares]
        self.lowers = [Run(list(_split(steps, one))) for one in dict.fromkeys(map(tuple, splits))]


def _split(steps: Sequence[SampledStep], firsts: Sequence[int]) -> Iterator[SampledStep]:
    """So many of each joined step under remove and the others under add: datasets attain every split."""
    rest = iter(firsts)
    for step in steps:
        if step.kind != "joined":
            yield step
            continue
        first = min(step.count, next(rest))
        for kind, n in (("remove", first), ("add", step.count - first)):
            if n:
                yield replace(step, kind=kind, count=n)


def _hints(document: Mapping[str, Any]) -> list[list[int]]:
    """The splits that the receipt says are best: where to look first, nothing more."""
    notes = [note for result in document["results"] for note in result.get("notes", ())]
    found = [[int(n) for n in re.findall(r"(\d+) of \d+ steps one way", note)] for note in notes]
    return [hint for hint in found if hint]


def _compared(run: Run, epsilon: float, delta: float) -> int:
    """The sign of the curve at epsilon less delta: 1 (proved above), -1 (below), 0 (equal); else UnreachedError."""
    at, level = Fraction(epsilon), Fraction(delta)
    hint = math.log(delta) if delta > 0 else -800.0
    for goal in _GOALS:
        finite, infinite = run.delta(at, goal, hint)
        if isinstance(infinite, Fraction) and finite == 0:
            return (infinite > level) - (infinite < level)
        rest = real(level - infinite) if isinstance(infinite, Fraction) else real(level) - infinite
        if finite > rest or rest < 0:
            return 1
        if finite < rest:
            return -1
    raise UnreachedError(f"delta at epsilon {epsilon!r} was enclosed to {(finite + real(infinite)).str(8)} only")


def _infinite(run: Run, level: float) -> int:
    """The sign of the mass at infinity less a number; 0 only where they are equal; else UnreachedError."""
    for goal in _GOALS:
        with precision(2 * goal + run.count.bit_length()):
            infinite, at = run.infinite(), Fraction(level)
            rest = infinite - at if isinstance(infinite, Fraction) else infinite - real(at)
            if rest > 0 or rest < 0 or rest == 0:
                return int(rest > 0) - int(rest < 0)
    raise UnreachedError("the mass at infinity is too near to the value claimed")


def _at(run: Run, quantity: str, level: float, value: float) -> int:
    """The sign of the true quantity less the value claimed; 0 where they are equal."""
    if math.isnan(level) or math.isnan(value):
        raise UnreachedError("NaN is no number that could be proved")
    if value < 0.0:  # of every epsilon and delta
        return 1
    if quantity == "delta" and value == math.inf:
        return -1
    if quantity == "delta":
        return _infinite(run, value) if level == math.inf else _compared(run, level, value)
    if value == math.inf:
        over = _infinite(run, level)
        return 0 if over > 0 or (over == 0 and run.limit() is None) else -1
    sign = _compared(run, value, level)
    if sign == 0:  # delta is met here; is it exceeded before?
        limit = run.limit()
        return 0 if isinstance(limit, Fraction) and Fraction(value) <= limit else -1
    return 0 if sign < 0 and value == 0 else sign


def _upper(runs: Sequence[Run], quantity: str, level: float, value: float) -> tuple[str, str]:
    """The verdict on the upper side of the worst of several curves: none may lie above it."""
    if value == (math.inf if quantity == "epsilon" else 1.0):
        return PROVED, "trivial"
    reason = ""
    for run in runs:
        try:
            if _at(run, quantity, level, value) > 0:
                return CONTRADICTED, f"the true value is above {value!r}"
        except UnreachedError as unreached:
            reason = str(unreached)
    return (NOT_REACHED, reason) if reason else (PROVED, "")


def _lower(curves: Sequence[Directed], quantity: str, level: float, value: float) -> tuple[str, str]:
    """The verdict on the lower side: one curve that datasets attain must not lie below it."""
    if value == 0.0:
        return PROVED, "trivial"
    reason, below = "", 0
    for curve in curves:
        for run in curve.lowers:
            try:
                if _at(run, quantity, level, value) >= 0:
                    return PROVED, ""
                below += run is curve.upper
            except UnreachedError as unreached:
                reason = str(unreached)
    try:
        beyond = [curve for curve in curves if curve.lowers != [curve.upper]]
        below += sum(_at(curve.upper, quantity, level, value) < 0 for curve in beyond)
    except UnreachedError as unreached:
        reason = reason or str(unreached)
    if below == len(curves):
        return CONTRADICTED, f"the true value is below {value!r}"
    return NOT_REACHED, reason or _NONE_REACH_IT


def check(document: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Prove every number of a receipt again.

    Parameters
    ----------
    document : mapping
        A receipt, as JSON holds it.

    Returns
    -------
    tuple of Finding
        One for each side of each number, in the order of the receipt.
    """
    with _ALONE:
        return tuple(_findings(document))


def _findings(document: Mapping[str, Any]) -> Iterator[Finding]:
    specification = document["specification"]
    adjacency = specification.get("guarantee", {}).get("adjacency", "add-remove")
    hints = _hints(document)
    curves = {direction: _curve(specification, direction, hints) for direction in _DIRECTIONS[adjacency]}
    for result in document["results"]:
        given = _GIVEN[result["quantity"]]
        level = result["at"][given]
        where = f"{result['quantity']} at {given} {level}"
        yield from _both(result, where, curves, list(curves), result["quantity"], float(level))
        for direction, sides in result["directions"].items():
            yield from _both(sides, f"{where}, {direction}", curves, [direction], result["quantity"], float(level))
    for point in document.get("curve") or ():
        where = f"curve, epsilon at delta {point['delta']}"
        yield from _both(point, where, curves, list(curves), "epsilon", float(point["delta"]))
    drawn = document.get("drawn") or {"epsilon": ()}
    for place, level in enumerate(map(float, drawn["epsilon"])):
        for direction, (lowers, uppers) in drawn["directions"].items():
            sides = {"lower": lowers[place], "upper": uppers[place]} if drawn["certified"] else {}
            where = f"drawn, delta at epsilon {level}, {direction}"
            yield from _both(sides, where, curves, [direction], "delta", level)
    if document.get("tradeoff"):
        yield from _trade_off(document["tradeoff"], curves)


def _curve(specification: Mapping[str, Any], direction: str, hints: Sequence[Sequence[int]]) -> Directed | str:
    """The curve of one direction, or why there is none."""
    guarantee = specification.get("guarantee", {})
    if more := (specification.keys() - _READ) | (guarantee.keys() - _OF_GUARANTEE):
        return f"the specification says {', '.join(sorted(more))}, which the checker does not know"
    group = guarantee.get("group_size", 1)
    if group != 1:
        return f"a group of {group} records is not proved here"
    if "tuning" in specification:
        return "the best of many runs is not proved here"
    try:
        return Directed(specification["steps"], direction, hints)
    except UnreachedError as reason:
        return str(reason)


def _both(
    sides: Mapping[str, Any],
    where: str,
    curves: Mapping[str, Directed | str],
    directions: Sequence[str],
    quantity: str,
    level: float,
) -> Iterator[Finding]:
    if "upper" not in sides:
        yield Finding(where, NOT_REACHED, "an estimate, which claims no side")
        return
    missing = [reason for d in directions if isinstance(reason := curves.get(d, f"no direction {d}"), str)]
    if missing:
        yield from (Finding(f"{where}, {name}", NOT_REACHED, missing[0]) for name in ("lower", "upper"))
        return
    chosen = [found for d in directions if isinstance(found := curves.get(d), Directed)]
    yield Finding(f"{where}, lower", *_lower(chosen, quantity, level, float(sides["lower"])))
    yield Finding(f"{where}, upper", *_upper([one.upper for one in chosen], quantity, level, float(sides["upper"])))


def _trade_off(claims: Mapping[str, Any], curves: Mapping[str, Directed | str]) -> Iterator[Finding]:
    """The trade-off function of the direction attacked, at every false-positive rate."""
    curve = curves.get(claims["direction"], f"no direction {claims['direction']}")
    lowers = [] if isinstance(curve, str) else curve.lowers[:_FEW]
    functions = {} if isinstance(curve, str) else {run: TradeOff(run) for run in (curve.upper, *lowers)}
    for alpha, sides in zip(claims["false_positive"], claims["false_negative"], strict=True):
        where = f"trade-off at {alpha}"
        if isinstance(curve, str) or not claims["certified"]:
            yield Finding(where, NOT_REACHED, curve if isinstance(curve, str) else "an estimate")
            continue
        least, shown = functions[curve.upper], [functions[run] for run in lowers]
        for name, proofs in (("lower", [least]), ("upper", shown)):
            claimed = Fraction(float(sides[name]))
            verdict = _missed(least, proofs, Fraction(alpha), claimed, upper=name == "upper")
            yield Finding(f"{where}, {name}", *verdict)


def _missed(
    least: TradeOff, proofs: Sequence[TradeOff], alpha: Fraction, claimed: Fraction, *, upper: bool
) -> tuple[str, str]:
    """The verdict on one side: what dominates proves the lower one, one that datasets attain the upper one."""
    reason = ""
    try:
        if not least.holds(alpha, claimed, upper=upper):
            return CONTRADICTED, f"the true value is {'above' if upper else 'below'} {float(claimed)!r}"
    except UnreachedError as unreached:
        reason = str(unreached)
    for function in proofs:
        try:
            if function.holds(alpha, claimed, upper=upper):
                return PROVED, ""
        except UnreachedError as unreached:
            reason = reason or str(unreached)
    return NOT_REACHED, reason or _NONE_REACH_IT
