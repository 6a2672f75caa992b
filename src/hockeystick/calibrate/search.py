"""The search: estimates bracket the root, certified bounds settle it on both sides.

The *excess* of a value is ``ln(quantity / most)``; it grows along the `Axis`. Estimates find its root; the
first certified evaluation corrects them by what they were off; two more, just to either side, are the proof.
Where the accountant cannot decide a value at any tolerance it has, the search moves outward and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast, final

from hockeystick.account import account
from hockeystick.accountants.base import Accountant
from hockeystick.accountants.certified import Certified
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.moments import Moments
from hockeystick.bound import Bound, Estimate
from hockeystick.calibrate.axis import Axis
from hockeystick.calibrate.rough import Rough
from hockeystick.calibrate.targets import DeltaAt, DirectedTarget, EpsilonAt, Target
from hockeystick.composition import Composition, Direction, Step, directions
from hockeystick.curve import PrivacyCurve, worst
from hockeystick.errors import PrecisionError
from hockeystick.numerics.roots import increasing_root

__all__ = ["Probe", "Problem", "Search"]

_FAR = 800.0  # the largest excess that counts
_CLEAR = 10.0  # how many times the other directions' quantity the worst one's must be, to be estimated alone
_QUICK = 0.3  # relative tolerance for a direction that does not decide
_COARSE = 0.05  # tolerance of estimates that need one
_SECANTS = 4
_SURE = 4  # estimates after which only the direction that decided is estimated
_APART = 1e-2  # between places from which a slope is taken
_FINEST = 1e-9  # relative tolerance below which nothing finer is asked for
_ASIDE = 0.45  # of the precision: how far from the foretold root the proof is sought


@final
@dataclass(frozen=True)
class Problem:
    """What is calibrated: a family, a target, a relation and perhaps an accountant."""

    family: Callable[[float], Step | Composition]
    target: Target
    adjacency: str
    accountant: Accountant | None

    def run(self, value: float) -> Composition:
        """The run at a value."""
        try:
            run = self.family(value)
        except (TypeError, ValueError) as error:
            error.add_note(
                f"the family was asked for {value!r}: give within=(low, high) to keep it where it is defined"
            )
            raise
        if not isinstance(run, Step | Composition):
            raise TypeError(
                "family must turn a number into a step or a composition, such as"
                f" lambda s: Gaussian(s).poisson(0.01) * 1000; got {run!r} from {value!r}"
            )
        return run * 1

    def excess(self, quantity: float) -> float:
        """``ln(quantity / most)``, cut where it is large."""
        if quantity <= 0.0:
            return -_FAR
        if math.isinf(quantity):
            return _FAR
        return min(max(math.log(quantity) - math.log(self.target.most), -_FAR), _FAR)


@final
@dataclass(frozen=True, eq=False)
class Probe:
    """One certified evaluation."""

    value: float
    place: float
    bound: Bound
    curve: PrivacyCurve
    safe: bool
    unsafe: bool
    excess: float  # of the middle of the bound


@final
class Search:
    """The state of one calibration."""

    def __init__(self, problem: Problem, axis: Axis) -> None:
        self.problem, self.axis = problem, axis
        self.probes: list[Probe] = []
        self.evaluations = self.estimates = 0
        self._worst: Direction | None = None  # the direction that decided last
        self._clear = False  # by far
        self.slope = 1.0  # of the excess along the axis

    # estimates ------------------------------------------------------------------------------------------------------

    def estimated(self, place: float) -> float:
        """The estimated excess at a place."""
        self.estimates += 1
        run, target = self.problem.run(self.axis.value(place)), self.problem.target
        if isinstance(target, EpsilonAt):  # the largest loss, which costs nothing to certify
            answer = target.measure(account(run, self.problem.adjacency), _COARSE)
        elif isinstance(target, DirectedTarget):
            answer = self._roughly(run, target)
        else:
            answer = target.measure(account(run, self.problem.adjacency, accountant=Rough()), _COARSE)
        value = answer.value if isinstance(answer, Estimate) else answer.upper
        return self.problem.excess(float(value))

    def _roughly(self, run: Composition, target: DirectedTarget) -> Bound | Estimate:
        """The estimate of all directions, and once it is known which decides, of that one alone."""
        names: list[Direction] = list(directions(self.problem.adjacency))
        if self._worst is not None and (self._clear or self.estimates > _SURE):
            names = [name for name in names if name == self._worst]
        answers = {name: target.measure_direction(Rough().directed(run.pairs(name))) for name in names}
        worst_name = max(answers, key=lambda name: _upper(answers[name]))
        self._worst = worst_name
        if len(names) > 1:
            others = [_upper(answer) for name, answer in answers.items() if name != worst_name]
            self._clear = 0.0 < _CLEAR * max(others) < _upper(answers[worst_name])
        return answers[worst_name]

    def foretold(self, guess: float, step: float) -> float:
        """The place where the estimated excess vanishes, sought outward from a guess, or an end of the axis."""
        low, high = self.axis.place(self.axis.start), self.axis.place(self.axis.end)
        at = min(max(self.axis.place(guess), low), high)
        value = self.estimated(at)
        outward = -1.0 if value > 0.0 else 1.0
        inner = at
        while (value > 0.0) == (outward < 0.0):
            inner, at = at, min(max(at + outward * step, low), high)
            if at == inner:
                return at
            value, step = self.estimated(at), 2.0 * step
        seen: dict[float, float] = {}

        def excess(place: float) -> float:
            seen[place] = self.estimated(place)
            return seen[place]

        root = increasing_root(excess, min(inner, at), max(inner, at), 0.05)
        self._slope_near(root, seen)
        near = min(seen, key=lambda place: abs(seen[place]))
        for _ in range(_SECANTS):
            root = min(max(near - seen[near] / self.slope, low), high)
            if abs(root - near) < 0.05 * self.axis.precision or root in seen:
                break
            excess(root)
            self._slope_near(root, seen)
            near = min(seen, key=lambda place: abs(seen[place]))
        return root

    def _slope_near(self, root: float, seen: dict[float, float]) -> None:
        """Take the slope from the estimates nearest to a place that are not too near to each other."""
        known = [place for place in seen if abs(seen[place]) < _FAR]
        if not known:
            return
        near = min(known, key=lambda place: abs(place - root))
        apart = [place for place in known if abs(place - near) > _APART]
        if apart:
            other = min(apart, key=lambda place: abs(place - near))
            slope = (seen[near] - seen[other]) / (near - other)
            self.slope = slope if slope > 1e-3 else self.slope

    # certified ------------------------------------------------------------------------------------------------------

    def probe(self, value: float, tolerance: float) -> Probe:
        """A certified evaluation, kept."""
        bound, curve = self._settled(self.problem.run(value), tolerance)
        self.evaluations += 1
        lower, upper, most = float(bound.lower), float(bound.upper), self.problem.target.most
        below, above = self.problem.excess(lower), self.problem.excess(upper)
        middle = 0.5 * (below + above) if abs(below) < _FAR else above
        found = Probe(value, self.axis.place(value), bound, curve, upper <= most, lower > most, middle)
        self.probes.append(found)
        return found

    def _settled(self, run: Composition, tolerance: float) -> tuple[Bound, PrivacyCurve]:
        """The quantity of a run, certified: by the contour at the width that is needed, where that serves."""
        problem, target = self.problem, self.problem.target
        curve = account(run, problem.adjacency, tolerance=tolerance, accountant=problem.accountant)
        if problem.accountant is not None:
            return self._certified(target.measure(curve, tolerance), curve), curve
        fast = account(run, problem.adjacency, accountant=Contour(max(0.1 * tolerance, _FINEST)))
        if isinstance(target, DirectedTarget):
            return self._by_direction(fast, curve, target), curve
        try:
            return self._certified(target.measure(fast, tolerance), fast), curve
        except PrecisionError:
            return self._certified(target.measure(curve, tolerance), curve), curve

    def _by_direction(self, fast: PrivacyCurve, curve: PrivacyCurve, target: DirectedTarget) -> Bound:
        """The largest over the directions, the one that decided last first: it may prove the value unsafe alone."""
        answers: dict[str, Bound] = {}
        for name in sorted(curve.directed, key=lambda name: name != self._worst):
            most = max((float(answer.lower) for answer in answers.values()), default=0.0)
            answer = self._far_below(curve, name, 0.5 * min(most, target.most))
            if answer is None:
                answer = self._sharply(fast, curve, name, target)
            answers[name] = answer
            if float(answer.lower) > target.most:
                break
        self._worst = cast("Direction", max(answers, key=lambda name: float(answers[name].upper)))
        return self._certified(worst(answers), curve)

    def _far_below(self, curve: PrivacyCurve, name: str, most: float) -> Bound | None:
        """A quick bound of a direction that cannot decide; None where it may."""
        target = self.problem.target
        if most <= 0.0 or not isinstance(target, DeltaAt):
            return None
        parts = curve.composition.pairs(cast("Direction", name))
        for quick in (Moments(), Certified(_QUICK, engine="lattice")):
            try:
                answer = quick.directed(parts).delta(target.epsilon)
            except PrecisionError:
                continue
            if isinstance(answer, Bound) and float(answer.upper) <= most:
                return answer
            if float(answer.lower if isinstance(answer, Bound) else 0.0) > 0.1 * most:
                break
        return None

    def _sharply(self, fast: PrivacyCurve, curve: PrivacyCurve, name: str, target: DirectedTarget) -> Bound:
        """The quantity of one direction by the contour, or where that refuses by the default accountant."""
        try:
            answer = target.measure_direction(fast.directed[name])
        except PrecisionError:
            answer = target.measure_direction(curve.directed[name])
        return self._certified(answer, curve)

    @staticmethod
    def _certified(answer: Bound | Estimate, curve: PrivacyCurve) -> Bound:
        if not isinstance(answer, Bound):
            raise TypeError(
                f"accountant {curve.accountant!r} returns estimates, and a calibration needs certified bounds:"
                " leave it out, or give one that certifies"
            )
        return answer

    def tolerance(self) -> float:
        """The relative width at which a value half the precision from the root is decided."""
        step = 0.25 if self.axis.whole else _ASIDE * self.axis.precision
        if self.axis.whole and self.probes:
            step = min(0.25, 0.3 / max(abs(self.probes[-1].value), 1.0))
        return min(max(0.5 * self.slope * step, _FINEST), 1e-2)

    @property
    def safe(self) -> Probe | None:
        """The least safe value proved safe."""
        return max((p for p in self.probes if p.safe), key=lambda p: p.place, default=None)

    @property
    def unsafe(self) -> Probe | None:
        """The safest value proved unsafe."""
        return min((p for p in self.probes if p.unsafe), key=lambda p: p.place, default=None)


def _upper(answer: Bound | Estimate) -> float:
    return float(answer.upper if isinstance(answer, Bound) else answer.value)
