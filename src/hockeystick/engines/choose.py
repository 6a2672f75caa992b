"""Which engine answers, and what it may spend: every such choice is here, with the measurement that fixed it.

In this order: closed forms; outcomes one by one, where these are few, or of few steps of atoms those that matter; lines
of rare large losses, where these are known to be shorter; the contour, whose cost does not grow with steps, and
one-sided lines where it leaves too much of atoms or Laplace noise; lines of rare large losses, more outcomes, else the
contour for fewer digits, and lattices. Decision 0009 says why the contour comes first. What answered is the ``method``
of the result, and a note says why the contour did not.

Nothing here is proved: each engine proves what it answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, Literal, final

from hockeystick.bound import Bound, agreed
from hockeystick.engines.closed_form import ClosedForm, closed_form
from hockeystick.engines.contour.curve import ContourCurve
from hockeystick.engines.contour.placing import ContourRefusal
from hockeystick.engines.contour.standing import SLOW
from hockeystick.engines.ends import Answerer, Engine, composed_infinity
from hockeystick.engines.narrower import Narrower
from hockeystick.engines.rare import MOST_DRAWN, RareCurve
from hockeystick.engines.reach import check_reach, is_on_knots, least_told
from hockeystick.errors import TooManyOutcomesError, UnknownPairError
from hockeystick.laws.base import Parts
from hockeystick.laws.loss_sum import PairSum

if TYPE_CHECKING:  # engines of discrete losses, and lattices, are loaded where they are needed
    from hockeystick.engines.enumeration.curve import EnumeratedCurve
    from hockeystick.engines.enumeration.heaviest import HeaviestOutcomes
    from hockeystick.engines.lattice.curve import LatticeCurve
    from hockeystick.engines.rare.losses import RareSum

EngineName = Literal["automatic", "contour", "lattice"]
Test = Callable[[Bound], bool]

FEW_OUTCOMES: Final = 1 << 13
"""Outcomes that are listed before anything else is tried: 1 ms an answer, where the contour takes 3."""

SOME_OUTCOMES: Final = 1 << 20
"""Outcomes of half the steps that are listed where the contour refuses: a second an answer, a millionth as wide."""

SHORT_LISTS: Final = 5 << 17
"""Outcomes of half of few steps of atoms without end, or very many, that matter to a question: 0.1 to 0.4 s an answer.
They are listed before the contour is tried, which is a thousand times wider where such losses share none."""

MOST_OUTCOMES: Final = 1 << 21
"""The same for a tolerance finer than everyday: 2 s an answer."""

ONE_SIDED: Final = 1e-9
"""Width of one-sided lines: 0.05 to 2 s an answer, where the contour leaves 1e-8 to 1e-5, and lattices 1e-3."""

MERGED: Final = 1e-5
"""The same where outcomes are merged, which costs 1e-4 to 1e-3: 0.02 to 0.1 s an answer, in place of 0.3 to 0.8."""

NEARLY: Final = 3.0
"""Times that width, up to which what the contour says of atoms is enough: 5 to 50 ms an answer."""

FREQUENCIES: Final = 1 << 23
"""Of the lines of one answer: a second or two."""

BETWEEN_ATOMS: Final = (1e-7, 1 << 18)
"""The same two with Laplace noise: 0.02 to 0.1 s an answer of few scales, and 1 s of 300; lattices leave 1e-5."""

CONTOUR_TOLERANCE: Final = 1e-9
"""Relative width of delta that the contour is asked for: 3.3 ms for 1e-9, 3.0 for 1e-3."""

COARSE: Final = 1e-2
"""Of the tolerance asked for: what the contour is asked for where it cannot reach 1e-9."""

ENOUGH: Final = 1e-1
"""Of the tolerance: what a line may leave where rounding keeps it from 1e-9. Another is as wide, after 5 to 20 ms."""

LATTICE_TOLERANCE: Final = 1e-5
"""Width that lattices are asked for at least, of epsilon in nats and of delta as a share: they leave a hundredth of
what 1e-3 does in a tenth to a half more time, 20 to 80 ms for most runs; 1e-6 takes up to four times as long."""

CONTOUR_WORK: Final = 10_000_000
"""Products of nodes that the contour may take for each few parts, 10 ms or so: beyond, lattices are as fast."""

RARE_WORK: Final = 6_000_000
"""The same for each law where large losses are rare: beyond, lines that take these apart are faster, 5 ms each."""

RARE_FIRST: Final = (9.0, 1.5, 1.2)
"""Steps that draw the record, on average, up to which lines of rare large losses are asked first for an epsilon, at a
rate of 1e-4: of one law (5 ms, or 0.6 for each of many runs; the contour 5 to 50), of several (10 ms for each), and of
many of one rate, of which the contour takes 2 to 8 ms each with more such steps: there it lays any line before."""

RARE_FEWER: Final = 0.35
"""Power of the rate with which this number falls: at rates of 5e-4, 1e-3 and 5e-3 to 5, 4 and 2 such steps."""

RARE_SHIFT: Final = (1.9e-3, 5.3)
"""The same where noise is large: a number of such steps, and the powers of 10 by which it grows for each unit of the
sensitivity over noise. At noise of 1.4, 1.8, 2.3 and 3 up to 13, 1.7, 0.4 and 0.1; with more the contour takes 9 ms."""

RARE_RATES: Final = (1e-5, 5e-3)
"""Rates for which this is so: the contour takes 3 to 9 ms at 1e-2, and at 1e-6 few such lines are narrow enough."""

RARE_STEPS: Final = (30, 1 << 16)
"""Steps for which this is so: of many more, small losses alone add up to epsilon, or a line is long."""

RARE_DELTAS: Final = (1e-10, 1.1e-4)
"""The smallest delta for which this is so, whatever the noise, and the largest over the number of steps that draw the
record: of random questions of this kind 3 in 100 are left to the contour, of others one in two."""

RARE_WIDTH: Final = 1e-6
"""Width of epsilon (nats) that lines of rare large losses are asked for, or less: 1e-3 takes half as long."""

RARE_FINEST: Final = 1e-7
"""Tolerance down to which rounding leaves such lines narrow enough; the contour's are, to 1e-12."""

LISTED_WORK: Final = 2_000_000
"""The same where outcomes can be listed: beyond, the list is as fast."""

SEVERAL_PARTS: Final = 4
EVERYDAY_TOLERANCE: Final = 1e-3
"""Lattices take longer for a finer one, and the contour may, too."""

FINEST_TOLERANCE: Final = 1e-15
"""What a finer tolerance is taken for: rounding leaves more, and parts of a far smaller one are below float64."""

FEW_STEPS: Final = 16
"""Steps up to which the transform of a density nearly always decays slowly or not: lattices are as fast as a retry."""

FEW_ATOMS: Final = 512
"""Atoms of all steps, up to which outcomes that matter are listed first: 5 to 300 ms, where lines of limited band take
15 to 900. So few have 40 steps of discrete Gaussian noise 0.5, and 20 of noise 1."""

SOME_STEPS: Final = 64
"""Steps up to which outcomes that matter are listed where no line tells a crossing: counting takes as their square."""


def choose_engine(
    parts: Parts, largest_loss: float, *, tolerance: float, points: int, engine: EngineName = "automatic"
) -> Engine:
    """What answers between the ends of the range; `PrecisionError` where float64 does not tell its losses apart.

    Parameters
    ----------
    parts : tuple of (Pair, int)
        Dominating pairs with their counts.
    largest_loss : float
        Upper bound on the largest finite loss (nats).
    tolerance : float
        Width of the epsilon bracket asked for (nats), and relative width of the delta bracket.
    points : int
        Largest number of lattice points in a window.
    engine : {"automatic", "contour", "lattice"}
        "contour" and "lattice": one engine alone.
    """
    tolerance = max(tolerance, FINEST_TOLERANCE)
    if engine == "lattice":
        check_reach(parts)
        return _lattice(parts, tolerance, points, largest_loss)
    if engine == "contour":
        return ContourCurve(PairSum(parts), CONTOUR_TOLERANCE)
    closed = closed_form(parts)
    if closed is not None:
        return closed
    if all(pair.is_discrete for pair, _ in parts) and not is_on_knots(parts, SOME_STEPS):
        listed, few_steps = _enumerated(), sum(count for _, count in parts) <= FEW_STEPS
        if listed.serves(parts, FEW_OUTCOMES):
            return ClosedForm(listed.sides_of(parts))
        if few_steps and listed.serves_in_halves(parts, FEW_OUTCOMES):
            return listed(parts, composed_infinity(parts))
    check_reach(parts)
    lattice = partial(_lattice, parts, min(tolerance, LATTICE_TOLERANCE), points, largest_loss)
    if is_on_knots(parts, SOME_STEPS):
        return lattice()
    try:
        return ContourFirst(PairSum(parts), tolerance, lattice)
    except UnknownPairError:
        return lattice()


def _has_few_atoms(parts: Parts) -> bool:
    from hockeystick.engines.enumeration.heaviest import atoms_that_count

    return sum(count * atoms_that_count(pair) for pair, count in parts) <= FEW_ATOMS


def _few_drawn(losses: RareSum) -> float:  # by `RARE_FIRST`
    return RARE_FIRST[(len(losses.laws) > 1) + losses.changes] * min(math.pow(1e-4 / losses.rate, RARE_FEWER), 1.0)


def _lattice(parts: Parts, tolerance: float, points: int, largest_loss: float) -> LatticeCurve:
    from hockeystick.engines.lattice.curve import LatticeCurve

    return LatticeCurve(parts, tolerance, points, largest_loss)


def _enumerated() -> type[EnumeratedCurve]:
    from hockeystick.engines.enumeration.curve import EnumeratedCurve

    return EnumeratedCurve


@final
class ContourFirst:
    """The contour, first for many digits and then for fewer, and lattices where it hands over.

    Lines of rare large losses, and lists of what matters of few steps, come before a contour of much work, or any.
    """

    def __init__(self, losses: PairSum, tolerance: float, make_lattice: Callable[[], LatticeCurve]) -> None:
        finer = min(max(math.sqrt(EVERYDAY_TOLERANCE / tolerance), 1.0), 25.0)  # lattices then take longer, too
        self._work = int(CONTOUR_WORK * finer) * (1 + len(losses.parts) // SEVERAL_PARTS)
        discrete = sum(pair.is_discrete for pair, _ in losses.parts)
        banded = discrete + sum(pair.laplace_loss is not None for pair, _ in losses.parts)
        self._is_discrete, self._is_banded = (found == len(losses.parts) for found in (discrete, banded))
        self._few = losses.total_count <= FEW_STEPS and tolerance >= EVERYDAY_TOLERANCE and discrete == 0
        self._hasty = SLOW if self._few or (self._is_banded and not self._is_discrete) else ()
        self._may_list = self._is_discrete and losses.total_count <= SOME_STEPS
        self.lists_first = self._may_list and (losses.total_count <= FEW_STEPS or _has_few_atoms(losses.parts))
        self._on_lattice = all(pair.loss_quantum is not None for pair, _ in losses.parts)
        self._parts, self._losses, self._make_lattice = losses.parts, losses, make_lattice
        self._is_listed = self._is_discrete and _enumerated().serves_in_halves(losses.parts, SOME_OUTCOMES)
        self._most_outcomes = MOST_OUTCOMES if tolerance < EVERYDAY_TOLERANCE else SHORT_LISTS
        self._lists: dict[int, HeaviestOutcomes] = {}
        self.least_told = least_told(losses.parts)
        self.rare = RareCurve.of(losses.parts, min(tolerance, RARE_WIDTH))
        rare = None if self.rare is None else self.rare.losses
        fresh = rare is None or (rare.changes and rare.drawn > _few_drawn(rare))  # else they come before slow ones
        most = LISTED_WORK if self._is_listed else self._work
        self._is_patient, work = fresh, most if fresh else min(most, RARE_WORK * len(losses.parts))
        self._tolerance, self._enough = tolerance, ENOUGH * tolerance
        self.contour = ContourCurve(
            losses, CONTOUR_TOLERANCE, work, hasty=self._hasty, enough=self._enough, fresh=fresh
        )

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        return self._first(
            lambda engine: engine.delta(epsilon),
            lambda bound: float(bound.width) <= self._tolerance * float(bound.lower),
            self._engines(rare_first=self.asks_rare(None)),
            told=lambda bound: float(bound.upper) >= self.least_told,
        )

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        if delta < self.least_told:
            return self._rest.epsilon(delta)
        return self._first(
            lambda engine: engine.epsilon(delta),
            lambda bound: float(bound.width) <= self._tolerance,
            self._engines(rare_first=self.asks_rare(delta)),
        )

    def asks_rare(self, delta: float | None) -> bool:
        """The same, of this composition: as measured, or where noise is so little that the contour seldom answers."""
        if self.rare is None or self._tolerance < RARE_FINEST:
            return False
        losses, drawn, (number, power) = self.rare.losses, self.rare.losses.drawn, RARE_SHIFT
        if delta is None or losses.are_large:
            return losses.are_large and drawn <= MOST_DRAWN and (delta is None or delta >= RARE_DELTAS[0])
        serves = RARE_STEPS[0] <= losses.steps <= RARE_STEPS[1] and RARE_RATES[0] <= losses.rate <= RARE_RATES[1]
        most = min(_few_drawn(losses), number * 10.0 ** (power * losses.shift))
        return serves and RARE_DELTAS[0] <= delta <= RARE_DELTAS[1] * drawn and drawn <= most

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether Chernoff's bound proves ``delta(epsilon) <= delta``."""
        return self.contour.is_below(epsilon, delta)

    def _engines(self, *, rare_first: bool = False) -> Iterator[Answerer]:
        if self.lists_first:
            yield self._heaviest(FEW_OUTCOMES if self._on_lattice else self._most_outcomes)
        if self.rare is not None and rare_first:
            yield self.rare
        yield self.lines
        if self._may_list and (self._on_lattice or not self.lists_first):
            yield self._heaviest(self._most_outcomes)
        if self.rare is not None and not rare_first:
            yield self.rare
        if not self._is_patient:
            yield self._patient
        if not self._few and not self._is_listed:
            yield self._coarse

    @cached_property
    def lines(self) -> Answerer:
        """The contour, and beside it lines of limited band where they serve; alone for a few steps on no lattice."""
        if not self._is_banded or (self._is_listed and not self.lists_first):
            return self.contour
        finest = MERGED if any(pair.is_merged for pair, _ in self._parts) else ONE_SIDED
        from hockeystick.engines.one_sided.curve import OneSidedCurve

        is_coarse = not self._is_discrete and self._tolerance >= BETWEEN_ATOMS[0]
        finest, most = BETWEEN_ATOMS if is_coarse else (min(finest, self._tolerance), FREQUENCIES)
        most = min(FREQUENCIES // (1 + len(self._parts) // SEVERAL_PARTS), most)
        banded = OneSidedCurve(self._parts, composed_infinity(self._parts), width=finest, most=most)
        return Narrower(self.contour, banded, NEARLY * finest) if self._on_lattice or not self.lists_first else banded

    def _heaviest(self, most: int) -> HeaviestOutcomes:
        if most not in self._lists:
            from hockeystick.engines.enumeration.heaviest import HeaviestOutcomes

            self._lists[most] = HeaviestOutcomes(self._parts, composed_infinity(self._parts), most)
        return self._lists[most]

    @cached_property
    def _patient(self) -> ContourCurve:
        return ContourCurve(self._losses, CONTOUR_TOLERANCE, self._work, hasty=self._hasty, enough=self._enough)

    @cached_property
    def _coarse(self) -> ContourCurve:
        wanted = max(COARSE * self._tolerance, CONTOUR_TOLERANCE)
        return ContourCurve(PairSum(self._parts, wanted), wanted, self._work)

    @cached_property
    def _rest(self) -> Answerer:
        """What answers where the contour does not."""
        return _enumerated()(self._parts, composed_infinity(self._parts)) if self._is_listed else self._make_lattice()

    def _first(
        self, ask: Callable[[Answerer], Bound], enough: Test, engines: Iterable[Answerer], told: Test = lambda _: True
    ) -> Bound:
        """The first answer that is narrow enough, or what all prove together; the rest's where it is not ``told``.

        There tables of curves end, and the rest has longer ones, of another law.
        """
        found: list[Bound] = []
        note = ""
        for engine in engines:
            try:
                if told(bound := ask(engine)):
                    return bound
                break
            except TooManyOutcomesError:
                continue
            except ContourRefusal as refusal:
                if isinstance(refusal.best, Bound):
                    found.append(refusal.best)
                    if enough(refusal.best) and told(refusal.best):
                        return refusal.best
                if engine is not self.rare and (self._is_patient or engine is not self.contour):
                    note = note or f"the contour handed over: {refusal}"
                if refusal.reason not in {*SLOW, "width", "atoms"}:
                    break
        bound = ask(self._rest)
        bound = replace(bound, notes=(*bound.notes, note))
        return bound if enough(bound) or not told(bound) else agreed(bound, *found)
