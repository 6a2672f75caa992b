"""What others prove of a bracket: ball arithmetic (`Exact`), of a pair written out where need be, or the checker.

`Exact` encloses delta at a point; a claim on epsilon is one on delta there. Labelled mixtures are written out as sums
over the number of rare labels, rounds of allocation as lists of all their outcomes. A pair that has no twin is still
held from below by the datasets that attain what the lower side claims.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import hockeystick as hs
from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.app.spec import of_run
from hockeystick.composition import directions
from hockeystick.errors import PrecisionError
from hockeystick.exact import exact_delta, exact_infinite_mass
from hockeystick.independent import CONTRADICTED, PROVED, check
from hockeystick.laws import DiscretePair, LabelledPair, Pair, ReversedPair
from hockeystick.laws.allocated_atoms import AllocatedAtomsPair

__all__ = ["CHECKER", "DATASETS", "EXACT", "NOTHING", "REFUSED", "ViolationError", "compare"]

EXACT, DATASETS, CHECKER = "exact", "datasets", "checker"
REFUSED, NOTHING = "refused", "no twin"

_DIGITS = 12
_MOST_LISTED = 2000


class ViolationError(AssertionError):
    """A certified number that is proved to be wrong."""


class _Recorder(Accountant):
    """Keeps which compositions it was asked for, and answers nothing."""

    def __init__(self) -> None:
        self.asked: list[Parts] = []

    def directed(self, parts: Parts) -> DirectedCurve:
        self.asked.append(parts)
        return _Trivial()


class _Trivial(DirectedCurve):
    def delta(self, epsilon: float) -> hs.Bound:
        return hs.Bound(0.0, 0.0, "nothing")  # beside which no datasets show too little to be asked

    def epsilon(self, delta: float) -> hs.Bound:
        return hs.Bound(0.0, math.inf, "trivial")


def _twin(pair: Pair) -> Pair:
    """The same pair in terms that ball arithmetic knows, or the pair itself."""
    if isinstance(pair, ReversedPair):
        return _twin(pair.base).reversed()
    if isinstance(pair, AllocatedAtomsPair) and isinstance(pair.base, DiscretePair):
        outcomes, t = list(zip(pair.base.p, pair.base.q, strict=True)), pair.steps
        if len(outcomes) ** t > _MOST_LISTED:
            return pair
        p, q = [], []
        for row in product(outcomes, repeat=t):
            rest = [math.prod((Fraction(row[j][1]) for j in range(t) if j != i), start=Fraction(1)) for i in range(t)]
            p.append(sum((Fraction(row[i][0]) * rest[i] for i in range(t)), Fraction(0)) / t)
            q.append(math.prod((Fraction(b) for _, b in row), start=Fraction(1)))
        return DiscretePair(tuple(p), tuple(q))
    return pair


def _labelled(pair: Pair) -> tuple[Pair, Pair, Fraction] | None:
    """Both pairs of a labelled mixture and the probability of the rare one; None of any other pair."""
    if isinstance(pair, ReversedPair):
        found = _labelled(pair.base)
        return None if found is None else (found[0].reversed(), found[1].reversed(), found[2])
    if not isinstance(pair, LabelledPair):
        return None
    n, g = pair.tail.trials, Fraction(pair.tail.rate)
    tail = sum((math.comb(n, k) * g**k * (1 - g) ** (n - k) for k in range(pair.tail.least, n + 1)), Fraction(0))
    return pair.usual, pair.rare, tail


def _written_out(parts: Parts) -> Iterator[tuple[Fraction, Parts]]:
    """Compositions without labels, and their probabilities."""
    for i, (pair, count) in enumerate(parts):
        labels = _labelled(pair)
        if labels is None:
            continue
        usual, rare, t = labels
        for k in range(count + 1):
            weight = math.comb(count, k) * t**k * (1 - t) ** (count - k)
            own = tuple((one, times) for one, times in ((usual, count - k), (rare, k)) if times)
            for other, rest in _written_out((*parts[:i], *own, *parts[i + 1 :])):
                yield weight * other, rest
        return
    yield Fraction(1), tuple((_twin(pair), count) for pair, count in parts)


def _enclosed(parts: Parts, epsilon: float) -> tuple[Fraction, Fraction]:
    """Lower and upper bound of delta, from ball arithmetic."""
    low = high = Fraction(0)
    for weight, plain in _written_out(parts):
        if math.isinf(epsilon):
            found = exact_infinite_mass(plain, digits=_DIGITS)
        else:
            found = exact_delta(plain, epsilon, digits=_DIGITS)
        low, high = low + weight * Fraction(found.low), high + weight * Fraction(found.high)
    return low, high


def _sign(parts: Parts, question: str, at: float, value: float) -> int:
    """1 where the truth is proved to be above the value, -1 where below, 0 where neither."""
    if question == "epsilon" and value == math.inf:
        return -1 if _enclosed(parts, math.inf)[1] < Fraction(at) else 0
    low, high = _enclosed(parts, value if question == "epsilon" else at)
    target = Fraction(at if question == "epsilon" else value)
    return 1 if low > target else -1 if high < target else 0


def _signs(all_parts: list[Parts], question: str, at: float, value: float) -> tuple[list[int], set[str]]:
    """Those that are known, and why others are not."""
    signs, reasons = [], set()
    for parts in all_parts:
        try:
            signs.append(_sign(parts, question, at, value))
        except PrecisionError:
            reasons.add(REFUSED)
        except hs.UnknownPairError:
            reasons.add(NOTHING)
    return signs, reasons


def _checked(run: hs.Composition, adjacency: str, question: str, at: float, bound: Any) -> bool:
    """Whether the independent checker proves both sides."""
    try:
        specification = of_run(run, adjacency).document()
    except TypeError:
        return False
    other = "delta" if question == "epsilon" else "epsilon"
    sides = {"lower": float(bound.lower), "upper": float(bound.upper)}
    result = {"quantity": question, "at": {other: at}, **sides, "notes": list(bound.notes), "directions": {}}
    found = check({"specification": specification, "results": [result]})
    if any(finding.verdict == CONTRADICTED for finding in found):
        raise ViolationError(f"{run!r} {adjacency} {question} at {at!r}: {bound} {[str(finding) for finding in found]}")
    return all(finding.verdict == PROVED for finding in found)


def _split(run: hs.Composition, adjacency: str, question: str, at: float) -> list[Parts]:
    """The compositions that the lower side was looked for among."""
    recorder = _Recorder()
    getattr(hs.account(run, adjacency, accountant=recorder), question)(at)
    open_ended = [run.pairs(d) for d in directions(adjacency) if run.attained(d) is not None]
    return [parts for parts in recorder.asked if parts not in open_ended]


def compare(
    run: hs.Composition, adjacency: str, question: str, at: float, *, checker: bool = True
) -> tuple[float, str]:
    """The upper side of a bracket, and what held both its sides.

    Raises
    ------
    ViolationError
        Where a side is proved to be wrong.
    """
    uppers: list[Parts] = [run.pairs(direction) for direction in directions(adjacency)]
    attained = all(run.attained(direction) is None for direction in directions(adjacency))
    bound = getattr(hs.account(run, adjacency), question)(at)
    lowers = uppers if attained else _split(run, adjacency, question, at)
    lower, upper = float(bound.lower), float(bound.upper)
    said = f"{run!r} {adjacency} {question} at {at!r}: {bound}"
    if not 0.0 <= lower <= upper:
        raise ViolationError(said)
    above, unknown = _signs(uppers, question, at, upper)
    if 1 in above:
        raise ViolationError(f"{said}: the truth is above")
    if not attained and 1 in _signs(lowers, question, at, upper)[0]:
        raise ViolationError(f"{said}: datasets show more than the upper side")
    below, unknown_below = _signs(lowers, question, at, lower) if lower > 0.0 else ([0], set())
    if not unknown_below and all(sign < 0 for sign in below):
        raise ViolationError(f"{said}: the truth is below")
    if not unknown | unknown_below:
        return upper, EXACT
    if checker and _checked(run, adjacency, question, at, bound):
        return upper, CHECKER
    if not unknown_below and lower > 0.0:
        return upper, DATASETS
    return upper, REFUSED if REFUSED in unknown | unknown_below else NOTHING
