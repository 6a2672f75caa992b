"""A bracket from two sources: a dominating pair above, datasets that are known below.

Where a step's dominating pair is not attained by any known datasets, the curve of the pair is an upper bound only. The
lower bound is the largest curve of known datasets: every step shows one of a few attained pairs, and since the order
of steps does not matter a choice is a *split* of the steps among them (003, section 7: the k + 1 ways of giving i of k
steps one direction and k - i the other). Of a family of more than two, all steps show the same.

The search for the best split uses saddle-point estimates (nothing certified rests on them: every split is a valid
lower bound); the best few are then accounted by the accountant in charge, but for those that are clearly behind the
first. Few steps are accounted for every split. Where a split seems to show next to nothing beside the upper side it is
not accounted: the lower side is then 0, which is true.

Guarantee: both sides certified where the accountant's answers are. Cost: some forty estimates and up to five brackets
an answer.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, final

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Bound, Estimate, agreed
from hockeystick.composition import Composition, Direction
from hockeystick.engines.ends import composed_infinity
from hockeystick.errors import PrecisionError
from hockeystick.laws.base import Pair

if TYPE_CHECKING:
    from hockeystick.transforms.cumulants import Scan

Groups = tuple[tuple[tuple[Pair, ...], int], ...]
"""The attained pairs that a step may show, with the number of such steps."""

Split = tuple[int, ...]
"""For every group of one or two pairs, how many of its steps show its first; the others show its last. For a family of
more, which of them all its steps show."""

_ALL = 5  # so many splits are all accounted
_BEST = 3  # otherwise: the best splits by estimate, and the two pure ones
_BEHIND = 2.0  # times the error of the first estimate, that others may be behind it and are still accounted
_NOTHING = 1e-12  # of the upper side: a lower one that seems to be less is not sought, which may take a minute
_COARSE = 16  # intervals of the first pass over a group's splits


class Sources(NamedTuple):
    """Where the curve of one direction comes from: the pairs above it, those that are attained, and notes on both."""

    parts: Parts
    groups: Groups | None
    provenance: tuple[str, ...]

    @classmethod
    def of(cls, composition: Composition, direction: Direction) -> Sources:
        """Those of a composition."""
        return cls(composition.pairs(direction), composition.attained(direction), composition.provenance(direction))

    def curve(self, accountant: Accountant) -> DirectedCurve:
        """The curve; its lower side from attained pairs where the dominating ones are not."""
        parts, groups, provenance = self
        curve = accountant.directed(parts)
        if groups is None or _knows_both_sides(parts, groups):
            return curve
        if all(pairs for pairs, _ in groups) and accountant.attains(parts):  # else a step may show less than its pair
            return curve
        return AttainedCurve(curve, accountant, groups, provenance=provenance)


def _knows_both_sides(parts: Parts, groups: Groups) -> bool:
    """Whether it is the best of many runs alone, and its own curve's lower side that of orders datasets attain."""
    ((pairs, count), *others) = groups
    run = parts[0][0].selection
    if others or run is None or count != 1:
        return False
    return any(pair.selection is not None and pair.selection.parts == run.parts for pair in pairs)


@final
class AttainedCurve(DirectedCurve):
    """Upper side from dominating pairs, lower side from the best split among attained ones.

    Parameters
    ----------
    upper : DirectedCurve
        The curve of the dominating pairs.
    accountant : Accountant
        What accounts the splits.
    groups : Groups
        What is attained.
    provenance : tuple of str
        Notes on where the sides come from.
    """

    def __init__(
        self, upper: DirectedCurve, accountant: Accountant, groups: Groups, *, provenance: tuple[str, ...]
    ) -> None:
        self._upper = upper
        self._accountant = accountant
        # a step of which no datasets are known may as well release nothing: the others are still there
        self._groups = tuple((tuple(map(accountant.shown_by, pairs)), count) for pairs, count in groups if pairs)
        self._provenance = provenance
        self._curves: dict[Parts, DirectedCurve] = {}
        self._steps: dict[Pair, Scan] = {}

    def delta(self, epsilon: float) -> Bound | Estimate:
        return self.delta_above(epsilon, 0.0)

    def delta_above(self, epsilon: float, least: float) -> Bound | Estimate:
        upper, estimate = self._upper.delta(epsilon), self._estimate(epsilon)
        nothing = _log(max(_NOTHING * float(upper.sides[1]), least))
        return self._joined(upper, lambda curve: curve.delta(epsilon), estimate, _log, nothing)

    def shown_at(self, epsilon: float) -> Parts:
        """What those known datasets show of all steps that by estimate show most at an epsilon; of none, nothing."""
        if not self._groups:
            return ()
        estimate = self._estimate(epsilon)
        return max((self._parts(split) for split, _ in self._candidates(estimate)), key=estimate)

    def _estimate(self, epsilon: float) -> Callable[[Parts], float]:
        return lambda parts: self._scanned(parts).log_delta_at(epsilon)

    def _scanned(self, parts: Parts) -> Scan:
        """What is known of a composition by its steps, each looked at once."""
        from hockeystick.engines.lattice.plan import scanned

        for pair, _ in parts:
            if pair not in self._steps:
                self._steps[pair] = scanned([(pair, 1)])
        return functools.reduce(operator.add, (self._steps[pair].composed(count, 0.0) for pair, count in parts))

    def epsilon(self, delta: float) -> Bound | Estimate:
        from hockeystick.engines.lattice.plan import saddle_at_delta

        def estimate(parts: Parts) -> float:
            return saddle_at_delta(parts, max(delta, 1e-320))[1].epsilon

        return self._joined(self._upper.epsilon(delta), lambda curve: curve.epsilon(delta), estimate, float)

    def _joined(
        self,
        upper: Bound | Estimate,
        ask: Callable[[DirectedCurve], Bound | Estimate],
        estimate: Callable[[Parts], float],
        measure: Callable[[float], float],
        least: float = -math.inf,
    ) -> Bound | Estimate:
        """The bracket; ``measure`` takes a lower side to what is estimated, and less than ``least`` is not sought."""
        if isinstance(upper, Estimate):
            note = "an estimate of the dominating pair's curve, and so of the upper bound only"
            return Estimate(upper.value, upper.error, upper.method, (*upper.notes, note, *self._provenance))
        trivial = "nothing is proved of the known datasets" if self._groups else "no datasets are known"
        below, note = Bound(0.0, math.inf, "trivial"), ""
        first, error = -math.inf, math.inf
        for split, score in self._candidates(estimate) if self._groups else ():
            if first - score > _BEHIND * error:
                continue
            if least > -math.inf and self._shows_less(split, least, estimate):
                trivial = "the known datasets seem to show next to nothing"
                continue
            try:
                found = ask(self._curve(split))
            except PrecisionError as refusal:  # the upper side stands without it
                trivial = str(refusal)
                continue
            if first == -math.inf and isinstance(found, Bound):
                first, error = score, abs(measure(float(found.lower)) - score)
            if isinstance(found, Bound) and float(found.lower) > float(below.lower):
                below, note = replace(found, upper=math.inf, decimals=None), self._described(split)
        note = note or f"lower: trivial, {trivial}"
        # the pair's own lower side holds for the pair alone
        both = agreed(replace(upper, lower=0.0, decimals=None), below)
        return replace(upper, lower=both.lower, decimals=None, notes=(*upper.notes, note, *self._provenance))

    def _shows_less(self, split: Split, least: float, estimate: Callable[[Parts], float]) -> bool:
        """Whether a split seems to; of one step an answer is quicker than an estimate."""
        parts = self._parts(split)
        several = sum(count for _, count in parts) > 1
        return several and max(estimate(parts), _log(composed_infinity(parts)[1])) < least

    def _curve(self, split: Split) -> DirectedCurve:
        parts = self._parts(split)
        if parts not in self._curves:
            self._curves[parts] = self._accountant.directed(parts)
        return self._curves[parts]

    def _parts(self, split: Split) -> Parts:
        counts: dict[Pair, int] = {}
        for (pairs, count), first in zip(self._groups, split, strict=True):
            shown = ((pairs[first], count),) if _is_family(pairs) else ((pairs[0], first), (pairs[-1], count - first))
            for pair, own in shown:
                if own:
                    counts[pair] = counts.get(pair, 0) + own
        return tuple(counts.items())

    def _described(self, split: Split) -> str:
        ways = []
        if not self._free():
            return "lower: that of known datasets"
        for (pairs, count), first in zip(self._groups, split, strict=True):
            if _is_family(pairs):
                low, high = pairs[first].loss_bounds
                ways.append(f"{count} steps of loss {low:.6g} to {high:.6g}")
            elif len(pairs) > 1:
                ways.append(f"{first} of {count} steps one way, {count - first} the other")
        return "lower: the best of the known datasets" + (f", with {'; '.join(ways)}" if ways else "")

    def _free(self) -> list[int]:
        """Groups with a choice."""
        return [index for index, (pairs, _) in enumerate(self._groups) if len(pairs) > 1]

    def _candidates(self, estimate: Callable[[Parts], float]) -> list[tuple[Split, float]]:
        """The splits to account, with estimates where these chose them; few splits have none."""
        ranges = [
            range(len(pairs)) if _is_family(pairs) else range(0 if len(pairs) > 1 else count, count + 1)
            for pairs, count in self._groups
        ]
        if math.prod(len(own) for own in ranges) <= _ALL:
            return [(split, math.inf) for split in product(*ranges)]
        scores: dict[Split, float] = {}

        def score(split: Split) -> float:
            if split not in scores:
                scores[split] = estimate(self._parts(split))
            return scores[split]

        pure = [tuple(own[-1] for own in ranges), tuple(own[0] for own in ranges)]
        best = max(pure, key=score)
        for _ in range(min(len(self._free()), 2)):  # a second round where groups interact
            for index in self._free():
                best = _improved(best, index, ranges[index][-1], score)
        ranked = sorted(scores, key=score, reverse=True)[:_BEST]
        return [(split, scores[split]) for split in dict.fromkeys([*ranked, *pure])]


def _log(delta: float) -> float:
    return math.log(delta) if delta > 0.0 else -math.inf


def _is_family(pairs: tuple[Pair, ...]) -> bool:
    return len(pairs) > 2


def _improved(best: Split, index: int, count: int, score: Callable[[Split], float]) -> Split:
    """The best split over one group's choices: all over the range, then ever closer around the best so far."""
    step = max(count // _COARSE, 1)
    points = range(0, count + 1, step)
    while True:
        splits = [(*best[:index], first, *best[index + 1 :]) for first in points if 0 <= first <= count]
        best = max([best, *splits], key=score)
        if step == 1:
            return best
        reach, step = step, max(step // 4, 1)
        points = range(best[index] - reach, best[index] + reach + 1, step)
