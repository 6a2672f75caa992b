"""The search: estimates bracket the root, certified bounds settle it on both sides.

The *excess* of a value is ``ln(quantity / most)``; it grows along the `Axis`. Estimates find its root; the first certified
evaluation corrects them by what they were off; two more, just to either side, are the proof. Where the accountant cannot
decide a value at any tolerance it has, the search moves outward and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from hockeystick.account import account
from hockeystick.accountants.base import Accountant
from hockeystick.accountants.contour import Contour
from hockeystick.bound import Bound, Estimate
from hockeystick.calibrate.axis import Axis
from hockeystick.calibrate.rough import Rough
from hockeystick.calibrate.targets import DirectedTarget, EpsilonAt, Target
from hockeystick.composition import Composition, Step
from hockeystick.curve import PrivacyCurve, worst
from hockeystick.errors import HockeystickError, PrecisionError
from hockeystick.numerics.roots import increasing_root

__all__ = ["Problem", "Probe", "Search"]

_FAR = 800.0  # the largest excess that counts
_COARSE = 0.05  # tolerance of estimates that need one
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
            error.add_note(f"the family was asked for {value!r}: give within=(low, high) to keep it where it is defined")
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
        self._worst: str | None = None  # the direction that decided last
        self.slope = 1.0  # of the excess along the axis

    # estimates ------------------------------------------------------------------------------------------------------

    def estimated(self, place: float) -> float:
        """The estimated excess at a place."""
        self.estimates += 1
        run, target = self.problem.run(self.axis.value(place)), self.problem.target
        if isinstance(target, EpsilonAt):  # the largest loss, which costs nothing to certify
            answer = target.measure(account(run, self.problem.adjacency), _COARSE)
        else:
            answer = target.measure(account(run, self.problem.adjacency, accountant=Rough()), _COARSE)
        value = answer.value if isinstance(answer, Estimate) else answer.upper
        return self.problem.excess(float(value))

    def foretold(self, guess: float) -> float:
        """The place where the estimated excess vanishes, or an end of the axis."""
        low, high = self.axis.place(self.axis.start), self.axis.place(self.axis.end)
        at = min(max(self.axis.place(guess), low), high)
        value, step = self.estimated(at), 0.5
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

        root = increasing_root(excess, min(inner, at), max(inner, at), 1e-4)
        near = sorted(seen, key=lambda place: abs(place - root))[:2]
        if len(near) == 2 and near[0] != near[1]:
            slope = (seen[near[0]] - seen[near[1]]) / (near[0] - near[1])
            self.slope = slope if slope > 1e-3 else self.slope
            root = near[0] - seen[near[0]] / self.slope
        return min(max(root, low), high)

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
        """The quantity of a run, certified, by the fastest method that serves."""
        problem = self.problem
        if problem.accountant is None:
            try:
                fast = account(run, problem.adjacency, accountant=Contour(max(0.1 * tolerance, _FINEST)))
                return self._measured(fast, tolerance), fast
            except PrecisionError:  # the contour does not serve this run: the lattice does
                pass
            curve = account(run, problem.adjacency, tolerance=tolerance)
            return self._measured(curve, tolerance), curve
        curve = account(run, problem.adjacency, accountant=problem.accountant)
        return self._measured(curve, tolerance), curve

    def _measured(self, curve: PrivacyCurve, tolerance: float) -> Bound:
        """The quantity; of the directions only the worst where that already proves the value unsafe."""
        target = self.problem.target
        if isinstance(target, DirectedTarget) and len(curve.directed) > 1:
            names = sorted(curve.directed, key=lambda name: name != self._worst)
            answers: dict[str, Bound | Estimate] = {}
            for name in names:
                answers[name] = target.measure_direction(curve.directed[name])
                answer = answers[name]
                if isinstance(answer, Bound) and float(answer.lower) > target.most:
                    break
            self._worst = max(answers, key=lambda name: _upper(answers[name]))
            answer = worst(answers)
        else:
            answer = target.measure(curve, tolerance)
        if not isinstance(answer, Bound):
            raise HockeystickError(
                f"{curve.accountant!r} returns estimates, and a calibration needs certified bounds: leave accountant out,"
                " or give one that certifies"
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
