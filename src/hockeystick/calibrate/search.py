"""What the search asks: estimates of the excess of a value, and certified evaluations, which are kept.

The *excess* of a value is ``ln(quantity / most)``; it grows along the `Axis`. Estimates find its root
(`prediction`), and certified evaluations just to either side are the proof (`strategy`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast, final

from hockeystick.account import account
from hockeystick.accountants.base import Accountant
from hockeystick.accountants.certified import Certified
from hockeystick.accountants.moments import Moments
from hockeystick.bound import Bound, Estimate
from hockeystick.calibrate.axis import Axis
from hockeystick.calibrate.estimate import FastEstimate
from hockeystick.calibrate.prediction import predicted
from hockeystick.calibrate.problem import FARTHEST, FINEST, Problem
from hockeystick.calibrate.targets import Target
from hockeystick.composition import Composition, Direction, directions
from hockeystick.curve import PrivacyCurve, stays_below
from hockeystick.engines.closed_form import closed_form
from hockeystick.engines.ends import ever_drawn
from hockeystick.engines.rare.losses import METHOD
from hockeystick.errors import PrecisionError, UnknownPairError
from hockeystick.together import smaller, worst

_CLEAR = 10.0  # how many times the other directions' quantity the worst one's must be, to be estimated alone
_AROUND, _AT = 10.0, 1.0  # the excess within which that counts, and within which the worst is estimated alone anyway
_QUICK = 0.3  # relative tolerance for a direction that does not decide
_COARSE = 0.05  # tolerance of estimates that need one
_FEW = 1000  # steps below which hard estimates predict that the contour is slower than lattices
_GENTLE = 0.1  # a smaller slope comes from estimates that are noise
_CLEARLY = 0.01  # of the excess by which the safest value seems to be unsafe: the tolerance that proves it
ASIDE = 0.45
"""Of the precision: how far from the predicted root the proof is sought."""

_NO_CONTOUR = (PrecisionError, UnknownPairError)  # how the contour says that another accountant must answer


@final
@dataclass(frozen=True, eq=False)
class Evaluation:
    """One certified evaluation.

    Attributes
    ----------
    safe, unsafe : bool
        Whether the value is proved to meet the target, and to miss it.
    unproved : bool
        Whether an accountant that has upper bounds alone did not prove the value safe, nor unsafe.
    excess : float
        Of the middle of the bound; of its upper side where that decides alone.
    """

    value: float
    place: float
    bound: Bound
    run: Composition
    tolerance: float
    safe: bool
    unsafe: bool
    unproved: bool
    excess: float

    @property
    def noise(self) -> float:
        """How far the excess may be off, by the width of the bound; 0 for what has an upper side alone."""
        lower, upper = float(self.bound.lower), float(self.bound.upper)
        return (upper - lower) / upper if lower > 0.0 else 0.0


@final
class Search:
    """The state of one calibration."""

    def __init__(self, problem: Problem, axis: Axis) -> None:
        self.problem, self.axis = problem, axis
        self.history: list[Evaluation] = []
        self.evaluations = self.estimates = 0
        self._worst: Direction | None = None  # the direction that decided last
        self._clear = False  # by far
        self._hard = False  # the last estimate may be far off: few steps, rare large losses
        self._refused: set[str] = set()  # directions that the contour refused
        self.slope = 1.0  # of the excess along the axis
        self.left = 0.0  # the estimated excess at the predicted place: above 0 where even the safest value is unsafe

    def along(self, sign: int) -> Search:
        """The same search, on the axis along which privacy gets worse."""
        self.axis = replace(self.axis, sign=sign)
        self.history = [replace(one, place=self.axis.place(one.value)) for one in self.history]
        return self

    def like(self, other: Search) -> Search:
        """The same search with what one of a similar run has learned, in place of estimates."""
        self._worst, self._clear, self._hard = other._worst, other._clear, other._hard
        self._refused, self.slope = set(other._refused), other.slope
        return self

    # estimates ------------------------------------------------------------------------------------------------------

    def estimated(self, place: float) -> float:
        """The estimated excess at a place."""
        self.estimates += 1
        run, target = self.problem.run(self.axis.value(place)), self.problem.target
        # what is known by its moments has no estimate: the upper side is its own
        method = Certified(_COARSE) if self.problem.one_sided(run) else FastEstimate()
        if target.of_direction is not None and not target.cheap:
            answer = self._largest_estimate(run, target, method)
        else:
            own = None if target.cheap else method
            answer = target.measure(account(run, self.problem.adjacency, accountant=own), _COARSE)
        self._hard = isinstance(answer, Estimate) and math.isinf(float(answer.error))
        return self.problem.excess(min(float(answer.sides[1]), self._most(run)))

    def _most(self, run: Composition) -> float:
        """What the quantity is at most however little noise there is: the record may never be drawn."""
        drawn = max(ever_drawn(run.pairs(name)) for name in directions(self.problem.adjacency))
        return self.problem.target.largest(drawn)

    def cannot_miss(self, value: float) -> bool:
        """Whether the record is drawn so seldom that a value meets the target however little noise there is."""
        return self._most(self.problem.run(value)) <= self.problem.target.most

    def _largest_estimate(self, run: Composition, target: Target, method: Accountant) -> Bound | Estimate:
        """The estimate of all directions, and once it is known which decides near the root, of that one alone."""
        names: list[Direction] = list(directions(self.problem.adjacency))
        if self._worst is not None and self._clear:
            names = [name for name in names if name == self._worst]
        answers = {name: target.measure_direction(method.directed(run.pairs(name))) for name in names}
        worst_name = max(answers, key=lambda name: float(answers[name].sides[1]))
        most = float(answers[worst_name].sides[1])
        others = [float(answer.sides[1]) for name, answer in answers.items() if name != worst_name]
        far = abs(self.problem.excess(most))
        # far from the root another direction may decide, and what is tiny or near 1 does not tell them apart
        alone = self._clear if len(names) == 1 else _CLEAR * max(others, default=0.0) < most
        self._clear = far <= _AT or (far <= _AROUND and alone)
        self._worst = worst_name
        return answers[worst_name]

    def predicted_root(self, guess: float, step: float) -> float:
        """The place where the estimated excess vanishes, sought outward from a guess, or an end of the axis."""
        found = predicted(self.estimated, self.axis, guess, step)
        self.slope, self.left = found.slope, found.left
        return found.place

    # certified ------------------------------------------------------------------------------------------------------

    def evaluate(self, value: float, tolerance: float) -> Evaluation:
        """A certified evaluation, kept."""
        run = self.problem.run(value)
        return self.judged(value, self._measured(run, tolerance), run, tolerance)

    def judged(self, value: float, bound: Bound, run: Composition, tolerance: float) -> Evaluation:
        """What the bound of the quantity at a value proves, kept."""
        self.evaluations += 1
        lower, upper, most = float(bound.lower), float(bound.upper), self.problem.target.most
        below, above = self.problem.excess(lower), self.problem.excess(upper)
        one_sided = self.problem.one_sided(run)
        middle = 0.5 * (below + above) if abs(below) < FARTHEST and not one_sided else above
        unproved = upper > most >= lower and (one_sided or (lower <= 0.0 and not self.problem.adapts))
        place, safe, unsafe = self.axis.place(value), upper <= most, lower > most
        found = Evaluation(value, place, bound, run, tolerance, safe, unsafe, unproved, middle)
        self.history.append(found)
        return found

    def _measured(self, run: Composition, tolerance: float) -> Bound:
        """The quantity of a run, certified: by the contour at the width that is needed, where that serves."""
        problem, target, most = self.problem, self.problem.target, self._most(run)
        if most <= target.most:
            return Bound(0.0, most, "the probability that the record is ever drawn")
        curve = problem.curve(run, tolerance)
        if not problem.adapts or problem.one_sided(run):
            return self._certified(target.measure(curve, tolerance), curve)
        fast = problem.by_contour(run, tolerance) or curve
        if target.of_direction is not None:
            return self._by_direction(fast, curve, target)
        try:
            return self._certified(target.measure(fast, tolerance), fast)
        except _NO_CONTOUR:
            return self._certified(target.measure(curve, tolerance), curve)

    def _by_direction(self, fast: PrivacyCurve, curve: PrivacyCurve, target: Target) -> Bound:
        """The largest over the directions, the one that decided last first: others may be proved to stay below it."""
        answers: dict[str, Bound] = {}
        for name in sorted(curve.directed, key=lambda name: name != self._worst):
            most = max((float(answer.lower) for answer in answers.values()), default=0.0)
            below = self._below(fast, name, answers, target)
            if below is None and most > 0.0:
                below = self._dominated(fast, name, target)
            small = 0.5 * min(most, target.most)
            answers[name] = self._of_direction(fast, curve, name, small) if below is None else below
        self._worst = cast("Direction", max(answers, key=lambda name: float(answers[name].upper)))
        return self._certified(worst(answers, curve.composition.notes), curve)

    @staticmethod
    def _below(fast: PrivacyCurve, name: str, answers: Mapping[str, Bound], target: Target) -> Bound | None:
        """What is known of a direction that is proved to stay below another's answer; None where it is not."""
        if not answers or target.delta_at is None:
            return None
        other, decides = max(answers.items(), key=lambda one: float(one[1].lower))
        own, at = fast.directed[name], target.delta_at
        # where rare losses were taken apart no line stands whose rule serves the other direction, too
        at_once = decides.method == METHOD and own.is_below(at, float(decides.lower))
        below = at_once or stays_below(own, fast.directed[other], decides, at, "delta")
        return smaller(decides) if below else None

    def _dominated(self, fast: PrivacyCurve, name: str, target: Target) -> Bound | None:
        """The upper side alone, where the lower one would cost as much again; None where it does not prove safety."""
        direction = cast("Direction", name)
        if name in self._refused or fast.composition.attained(direction) is None:
            return None
        try:
            answer = target.measure_direction(fast.accountant.directed(fast.composition.pairs(direction)))
        except _NO_CONTOUR:
            return None
        if not isinstance(answer, Bound) or float(answer.upper) > target.most:
            return None
        return replace(answer, lower=0.0, decimals=None)

    def _of_direction(self, fast: PrivacyCurve, curve: PrivacyCurve, name: str, small: float) -> Bound:
        """The quantity of one direction: by the contour; where that refuses, a quick bound if it is small, or sharply.

        The contour refuses where delta is far too small to matter, and where it is hard.
        """
        target = self.problem.target
        rare = self._by_rare_losses(curve, name)
        if rare is not None:
            return rare
        if name not in self._refused and not (self._hard and curve.composition.total_steps < _FEW):
            try:
                return self._certified(target.measure_direction(fast.directed[name]), curve)
            except _NO_CONTOUR:
                self._refused.add(name)
        quick = self._far_below(curve, name, small)
        return self._certified(target.measure_direction(curve.directed[name]) if quick is None else quick, curve)

    def _by_rare_losses(self, curve: PrivacyCurve, name: str) -> Bound | None:
        """What takes rare large losses apart answers, first: the contour may take many times longer to refuse."""
        method, epsilon = curve.accountant, self.problem.target.delta_at
        if epsilon is None or not isinstance(method, Certified):
            return None
        rare = self.problem.by_rare_losses(curve.composition.pairs(cast("Direction", name)), method.tolerance)
        with contextlib.suppress(PrecisionError):
            return None if rare is None else rare.delta(epsilon)
        return None

    def _far_below(self, curve: PrivacyCurve, name: str, most: float) -> Bound | None:
        """A quick bound of a direction that cannot decide; None where it may."""
        target = self.problem.target
        if most <= 0.0 or target.delta_at is None:
            return None
        parts = curve.composition.pairs(cast("Direction", name))
        if closed_form(parts) is not None:  # which is quicker
            return None
        for quick in (Moments(), Certified(_QUICK, engine="lattice")):
            try:
                answer = quick.directed(parts).delta(target.delta_at)
            except PrecisionError:
                continue
            if isinstance(answer, Bound) and float(answer.upper) <= most:
                return answer
        return None

    @staticmethod
    def _certified(answer: Bound | Estimate, curve: PrivacyCurve) -> Bound:
        if not isinstance(answer, Bound):
            raise TypeError(
                f"accountant {curve.accountant!r} returns estimates, and a calibration needs certified bounds:"
                " leave it out, or give one that certifies"
            )
        return answer

    @property
    def is_quick(self) -> bool:
        """Whether a pass of many runs may answer: the contour, by far the quickest, is expected to."""
        return self.problem.adapts and self.problem.target.delta_at is not None and not self._hard

    def tolerance(self, near: float | None = None) -> float:
        """The relative width at which a value half the precision from the root is decided; whole ones near another."""
        step = 0.25 if self.axis.whole else ASIDE * self.axis.precision
        value = self.history[-1].value if near is None and self.history else near
        if self.axis.whole and value is not None:
            step = min(0.25, 0.3 / max(abs(value), 1.0))
        # where no value seems to be safe, the safest one is proved unsafe by much less
        clear = 0.0 if self.history else _CLEARLY * self.left
        return min(max(0.5 * max(self.slope, _GENTLE) * step, FINEST, clear), 1e-2)

    @property
    def safe(self) -> Evaluation | None:
        """The least safe value proved safe."""
        return max((p for p in self.history if p.safe), key=lambda p: p.place, default=None)

    @property
    def unsafe(self) -> Evaluation | None:
        """The safest value proved unsafe, or not proved safe by an accountant that proves no value unsafe."""
        return min((p for p in self.history if p.unsafe or p.unproved), key=lambda p: p.place, default=None)
