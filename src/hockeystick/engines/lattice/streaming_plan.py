"""One direction of a run that is being followed: upper and lower running compositions, planned anew as the run grows.

A plan fixes tilt, window, spacing and the frequencies kept, for numbers of steps from now to four times as many: the
tilt is the saddle point's at twice as many, the window holds the composed losses at both ends. When the run outgrows
it, or the bracket is wider than the tolerance, a new plan is made from the counts. That happens a few times in a
factor of a thousand.

Guarantee: lower and upper are certified, rounding included. Cost: a plan builds every distinct step anew; everything
else is `streaming.py`'s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from hockeystick.bound import Bound, agreed, from_sides
from hockeystick.engines.lattice.compose import TiltedWindow
from hockeystick.engines.lattice.layout import common_layout
from hockeystick.engines.lattice.mesh import fitted_lattices
from hockeystick.engines.lattice.plan import SaddleEstimate, saddle_at_least_zero, spacing_for, tail_exponents
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.engines.lattice.streaming import Frame, Magnitudes, RunningComposition
from hockeystick.engines.lattice.streaming_spectrum import NEGLIGIBLE, StepSpectrum, TiltedStep, few_frequencies
from hockeystick.laws.base import Pair, Parts
from hockeystick.numerics.columns import Array, Complex
from hockeystick.numerics.fft import smooth_length
from hockeystick.transforms.cumulants import Cumulants

_METHOD = "certified lattice"
_HORIZON = 4  # a plan serves up to so many times the steps it was made for
_MIDDLE = 2
_REFINEMENTS = 5
_SPARE = 10.0  # nats by which the tilt may be off its saddle point
_LEAST_THETA = 1e-6
_STEEPEST = 8.0  # tilt times tolerance
_FINEST, _COARSEST = 1e-100, 1e100  # tolerances beyond are planned for as these


@final
@dataclass(frozen=True)
class Plan(TiltedWindow):
    """A window with a lattice, for a range of steps; every field is a number that can be stored.

    Attributes
    ----------
    spacing : float
        Lattice spacing (nats).
    length, kept : int
        Points of the window, frequencies kept.
    below, above : float
        ``ln`` of the mass of one step that may lie below and above its lattice.
    horizon : int
        The largest number of steps served.
    width : float
        The bracket (nats) that the spacing was chosen for.
    exact : int
        1 where all losses are multiples of the spacing.
    expected_sum : float
        About what the hockey-stick sum will be, in its own units.
    low_only : int
        1 where only the frequencies kept are computed, the rest bounded (`streaming_spectrum.py`).
    """

    spacing: float
    length: int
    kept: int
    below: float
    above: float
    horizon: int
    width: float
    exact: int
    expected_sum: float
    low_only: int = 0

    def lattices(self, pair: Pair) -> tuple[LatticePLD, LatticePLD]:
        """Upper and lower lattice PLD of a pair."""
        offset = 0.0 if self.exact or not pair.anchors else math.remainder(pair.anchors[0], self.spacing)
        within = pair.loss_range(self.below, self.above)
        return fitted_lattices(pair, pair.nodes(self.above), self.theta, within, spacing=self.spacing, offset=offset)

    def tilted(self, pair: Pair) -> tuple[TiltedStep, TiltedStep]:
        """Upper and lower lattice of a pair, tilted."""
        upper, lower = self.lattices(pair)
        return TiltedStep(upper, self), TiltedStep(lower, self)

    def spectrum(self, step: TiltedStep) -> StepSpectrum:
        """The spectrum of a step on the frequencies kept."""
        if self.low_only:
            return step.low(self.kept, self.length)
        return step.full(self.length).truncated(self.kept, self.length)


Counts = Mapping[Pair, int]
Steps = Mapping[Pair, tuple[TiltedStep, TiltedStep]]


@final
@dataclass(frozen=True)
class Progress:
    """A plan, and the products of the upper and the lower side on it with their magnitudes."""

    plan: Plan
    products: tuple[Complex, Complex]
    magnitudes: tuple[Magnitudes | None, Magnitudes | None]


@final
@dataclass(frozen=True)
class _Running:
    """Both sides of a composition on a plan, and the number that each pair has on them."""

    plan: Plan
    sides: tuple[RunningComposition, RunningComposition]
    numbers: dict[Pair, int]

    @classmethod
    def of(cls, plan: Plan, steps: Steps) -> _Running:
        """Nothing composed so far."""
        frame = Frame(plan, plan.spacing, length=plan.length, kept=plan.kept)
        running = cls(plan, (RunningComposition("upper", frame), RunningComposition("lower", frame)), {})
        for pair, both in steps.items():
            running.register(pair, both)
        return running

    def register(self, pair: Pair, both: tuple[TiltedStep, TiltedStep]) -> None:
        """Give a pair its number."""
        for side, step in zip(self.sides, both, strict=True):
            self.numbers[pair] = side.register(self.plan.spectrum(step))

    def add(self, pair: Pair, count: int) -> None:
        """Compose so many more of a pair."""
        for side in self.sides:
            side.add(self.numbers[pair], count)


@final
class LiveDirection:
    """The steps of one direction, and the epsilon they cost.

    Parameters
    ----------
    delta : float
        In (0, 1).
    tolerance : float
        Width of the epsilon bracket asked for (nats).
    points : int
        Largest number of lattice points in a window.
    """

    def __init__(self, delta: float, tolerance: float, points: int) -> None:
        self.delta_target, self.points = delta, points
        self.tolerance = min(max(tolerance, _FINEST), _COARSEST)
        self.counts: dict[Pair, int] = {}
        self.guess = 0.0
        self._running: _Running | None = None  # replaced as a whole: who saves meanwhile finds products of all steps
        self.refined_at = 0  # steps up to which refining was tried in vain

    @property
    def plan(self) -> Plan | None:
        """The plan that is followed; None before the first."""
        return None if self._running is None else self._running.plan

    @property
    def steps(self) -> int:
        """Steps so far."""
        return sum(self.counts.values())

    def add(self, pair: Pair, count: int) -> None:
        """Add ``count`` more of a pair."""
        running, self._running = self._running, None  # whatever interrupts this: the next answer is made of the counts
        self.counts[pair] = self.counts.get(pair, 0) + count
        if running is None:
            return
        if pair not in running.numbers:
            plan = running.plan
            if plan.exact and common_layout(tuple(self.counts.items()), plan.spacing).spacing != plan.spacing:
                return
            running.register(pair, plan.tilted(pair))
        running.add(pair, count)
        self._running = running

    def epsilon(self) -> tuple[float, float]:
        """Certified lower and upper epsilon at delta (nats)."""
        if self.plan is None or self.steps > self.plan.horizon:
            self._replan(self.tolerance)
        best, width, found = self._read(), self.tolerance, math.inf
        for _ in range(_REFINEMENTS):
            before, found = found, float(best.width)
            if not found > self.tolerance or self.steps <= self.refined_at or 0.9 * before < found < math.inf:
                break
            if self.plan is not None and self.plan.horizon == _HORIZON * self.steps:  # a fresh plan was not fine enough
                width = min(width, self.plan.width)
                width *= max(min(0.8 * self.tolerance / found, 0.5), 0.02) if found < math.inf else 0.1
            self._replan(width)
            best = agreed(best, self._read())
        if float(best.width) > self.tolerance:
            self.refined_at = max(self.refined_at, math.ceil(1.5 * self.steps))
        return float(best.lower), float(best.upper)

    def _read(self) -> Bound:
        if self._running is None:
            raise RuntimeError("no plan was made")  # `epsilon` always makes one first
        upper, lower = self._running.sides
        high = upper.curve().epsilon(self.delta_target, self.guess)
        if math.isfinite(high):
            self.guess = high
        below = lower.curve()
        hopeless = self.delta_target < below.delta_at_infinity
        return from_sides(math.inf if hopeless else below.epsilon(self.delta_target, self.guess), high, _METHOD)

    def _replan(self, width: float) -> None:
        """A plan for the counts as they are, and both sides composed on it."""
        parts = tuple(self.counts.items())
        plan = _planned(parts, self.delta_target, width, tolerance=self.tolerance, points=self.points)
        steps = {pair: plan.tilted(pair) for pair in self.counts}
        running = _Running.of(_with_frequencies(plan, steps, self.counts), steps)
        for pair, count in parts:
            running.add(pair, count)
        self._running = running

    def progress(self) -> Progress | None:
        """What has been multiplied so far; None before the first plan."""
        running = self._running
        if running is None:
            return None
        upper, lower = running.sides
        return Progress(running.plan, (upper.product, lower.product), (upper.magnitudes, lower.magnitudes))

    def recompute(self) -> None:
        """Make the products anew from the counts."""
        for side in self._running.sides if self._running else ():
            side.product = side.recomputed()

    def restore(self, counts: Counts, progress: Progress | None, *, guess: float, refined_at: int) -> bool:
        """Take up a stored state; whether the stored products agree with the counts to rounding."""
        self.counts, self.guess, self.refined_at = dict(counts), guess, refined_at
        self._running = None
        if progress is None:
            return True
        plan = progress.plan
        self._running = _Running.of(plan, {pair: plan.tilted(pair) for pair in counts})
        agree = True
        for side, product, magnitudes in zip(self._running.sides, progress.products, progress.magnitudes, strict=True):
            if product.shape != (plan.kept,):
                return False
            side.restore(list(counts.values()), product, magnitudes)
            allowed = 4.0 * side.product_error() + 1e-300
            agree = agree and bool(np.all(np.abs(product - side.recomputed()) <= allowed))
        return agree


def _planned(parts: Parts, delta: float, width: float, *, tolerance: float, points: int) -> Plan:
    """A plan with all frequencies kept, for the steps as they are up to the horizon."""
    steps = sum(count for _, count in parts)
    middle = tuple((pair, _MIDDLE * count) for pair, count in parts)
    _, saddle = saddle_at_least_zero(middle, delta)
    # near the largest loss the saddle point runs off; where delta falls fast a lower tilt costs little in epsilon
    theta = min(max(saddle.theta, _LEAST_THETA), _STEEPEST / tolerance)
    relative = 1e-4 * min(width * theta, 1.0)
    log_tail, high = -100.0 + 1.1 * math.log(delta) - math.log(steps), math.inf
    while math.isinf(high):  # until the nodes reach far enough
        cumulants = Cumulants(parts, log_tail)
        low, high, theta_below, theta_above = _range(cumulants, theta, math.log(relative) - _SPARE)
        log_tail *= 2.0
    second = cumulants(theta)[2]
    layout = common_layout(parts, 0.7 * spacing_for(_HORIZON * steps, theta, width))
    if (high - low) / layout.spacing > points:
        layout = common_layout(parts, (high - low) / points * 1.3)
    horizon = _HORIZON * steps
    below, above = tail_exponents(horizon, SaddleEstimate(theta, saddle.epsilon, math.log(delta)), relative)
    length = smooth_length(math.ceil((high - low) / layout.spacing) + 1)
    return Plan(
        theta=theta,
        low=low,
        high=high,
        theta_below=theta_below,
        theta_above=theta_above,
        spacing=layout.spacing,
        length=length,
        kept=length // 2 + 1,
        below=below,
        above=above,
        horizon=horizon,
        width=width,
        exact=int(layout.exact),
        expected_sum=1.0 / (theta * (1.0 + theta) * math.sqrt(2.0 * math.pi * (second + theta**-2))),
    )


def _range(cumulants: Cumulants, theta: float, log_alias: float) -> tuple[float, float, float, float]:
    """Ends of a window that holds the tilted composition now and at the horizon, and its Chernoff bounds' tilts."""
    k, mean, second = cumulants(theta)
    deviation = math.sqrt(-2.0 * log_alias / max(second, 1e-300))
    doubling, growing = np.arange(-4.0, 4.5, 0.5), np.arange(-6.0, 1.0)
    shifts = np.concatenate((deviation * 2.0**doubling, (1.0 + theta) * 2.0**growing))

    def edge(shift: float) -> float:
        grown = cumulants.log_moment(theta + shift) - k
        return (max(grown, _HORIZON * grown) - log_alias) / shift  # the farther one: finite losses may all be below 0

    above = min((edge(float(s)), float(s)) for s in shifts)
    below = max((edge(-float(s)), -float(s)) for s in shifts)
    return min(below[0], mean), max(above[0], _HORIZON * mean), theta + below[1], theta + above[1]


def _with_frequencies(plan: Plan, steps: Steps, counts: Counts) -> Plan:
    """The plan with the frequencies worth keeping: those beyond add a negligible part to the sum, now and later."""
    both = [[(steps[pair][number], count) for pair, count in counts.items()] for number in (0, 1)]
    kept = few_frequencies(both, plan, plan.spacing, length=plan.length, expected=plan.expected_sum)
    if kept is not None:
        return replace(plan, kept=kept, low_only=1)
    return replace(plan, kept=_worth_keeping(plan, steps, counts))


def _worth_keeping(plan: Plan, steps: Steps, counts: Counts) -> int:
    """The same, by full transforms: looked at rather than bounded."""
    frame = Frame(plan, plan.spacing, length=plan.length, kept=plan.kept)
    kept = 2
    for number in (0, 1):
        side = RunningComposition("upper", frame)
        for pair, count in counts.items():
            side.add(side.register(steps[pair][number].full(plan.length)), count)
        magnitude: Array = frame.kernel.size * np.abs(side.product)
        beyond = np.cumsum(magnitude[::-1])[::-1]
        kept = max(kept, int(np.count_nonzero(beyond > NEGLIGIBLE * plan.expected_sum)))
    return plan.kept if kept >= plan.kept // 2 else kept
