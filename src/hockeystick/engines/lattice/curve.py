"""The certified curve of one direction, by tilted composition of lattices.

Pick the tilt by the saddle-point equation, the spacing by the tolerance, build the connect-the-dots and the tangent
lattice of every pair on one layout, compose both by tilted FFT, read the curve, and refine until the bracket is
narrow enough.

Guarantee: lower and upper are certified, rounding included. Cost: about sqrt(T) lattice points for T steps; memory is
bounded, and where the bound does not allow the tolerance the bracket is wider and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, final

import numpy as np

from hockeystick.bound import Bound, agreed, from_sides
from hockeystick.engines.lattice.compose import TiltedComposition
from hockeystick.engines.lattice.layout import Layout, common_layout
from hockeystick.engines.lattice.mesh import fitted_lattices
from hockeystick.engines.lattice.plan import (
    SaddleEstimate,
    saddle_at_epsilon,
    saddle_at_least_zero,
    scanned,
    spacing_for,
    tail_exponents,
    window_around,
)
from hockeystick.engines.lattice.pld import LatticePLD
from hockeystick.engines.lattice.rare_events import JumpComposition, JumpPlan, epsilon_with_jumps, plan_jumps
from hockeystick.engines.reach import least_told
from hockeystick.laws.base import Parts
from hockeystick.numerics.one_sided_root import crossings
from hockeystick.transforms.cumulants import Cumulants, Scan

_METHOD = "certified lattice"
_REFINEMENTS = 8
_AT_STATIONS = 3  # compositions tried there
_HOPEFUL = 10.0  # times the tolerance at a station: beyond, nothing near it is narrow enough either
_LEAST = 1e-300  # a smaller delta is not asked to be relatively accurate
_EXPLAINED = 1.5  # times the width, that errors may sum to
_APART = 12.0  # nats of delta from one station to the next
_LAST = 64  # station: float64 holds no smaller delta
_LONG = 1 << 21  # points from which a coarser lattice is asked first how much rounding there is
_SHORT = 1 << 19  # points of that one
_FINEST = 2.0**-46  # of the largest loss: such points are told apart by float64, with digits to spare


_Composed = TiltedComposition | JumpComposition


@final
@dataclass(frozen=True)
class _Bracket:
    """Upper and lower composition around one saddle point."""

    upper: _Composed
    lower: _Composed
    theta: float
    epsilon: float
    log_delta: float  # about, there
    limited: bool  # the spacing is coarser than asked for, to stay within memory


@final
class LatticeCurve:
    """The privacy curve of one direction on lattices; compositions for deltas of each size are kept.

    Parameters
    ----------
    parts : tuple of (Pair, int)
        Dominating pairs with their counts.
    tolerance : float
        Width of the epsilon bracket asked for (nats), and relative width of the delta bracket.
    points : int
        Largest number of lattice points in a window.
    largest_loss : float
        Upper bound on the composed loss where it is finite (nats); epsilon does not go beyond it.
    """

    def __init__(self, parts: Parts, tolerance: float, points: int, largest_loss: float = math.inf) -> None:
        self.parts = parts
        self.tolerance = tolerance
        self.points = points
        self.largest_loss = largest_loss
        self._stations: dict[tuple[str, int], _Bracket | None] = {}

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon), epsilon finite and below the largest loss (nats)."""
        bound = self._delta(epsilon)
        if float(bound.upper) >= self._least_told:
            return bound
        return self._with_tails.delta(epsilon)

    def _delta(self, epsilon: float) -> Bound:
        station = self._station("delta", self._scanned.log_delta_at(epsilon))
        if station is not None:
            kept = self._read_delta(station, epsilon)
            if self._relative_width(kept) <= self.tolerance:
                return kept
        return self._delta_around(saddle_at_epsilon(self.parts, epsilon), epsilon, self.tolerance, _REFINEMENTS)[0]

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Nothing is proved without composing."""
        return False

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``, in (0, 1)."""
        if delta < self._least_told:
            return self._with_tails.epsilon(delta)
        log_delta = math.log(max(delta, 1e-320))
        station = self._station("epsilon", log_delta)
        if station is not None:
            kept = self._read_epsilon(station, delta)
            if float(kept.width) <= self.tolerance:
                return kept
        return self._epsilon_around(delta)

    @cached_property
    def _least_told(self) -> float:
        return least_told(self.parts)

    @cached_property
    def _with_tails(self) -> LatticeCurve:
        """The same for smaller deltas."""
        parts = tuple((pair.with_tails, count) for pair, count in self.parts)
        return LatticeCurve(parts, self.tolerance, self.points, self.largest_loss)

    @cached_property
    def _scanned(self) -> Scan:
        return scanned(self.parts)

    def _station(self, asked: Literal["epsilon", "delta"], log_delta: float) -> _Bracket | None:
        """The composition for deltas of about this size; None where it would have to be refined often, as at cliffs.

        It is made for a size that depends on the composition alone, so that no answer depends on what was asked before.
        """
        number = min(max(round(-log_delta / _APART), 0), _LAST)
        if (asked, number) not in self._stations:
            cumulants, saddle = saddle_at_least_zero(self.parts, math.exp(-_APART * (number or 0.25)))
            tolerance = self.tolerance * (saddle.theta if asked == "epsilon" else 1.0)  # of delta, relative
            bound, bracket = self._delta_around((cumulants, saddle), saddle.epsilon, tolerance, _AT_STATIONS)
            serves = self._relative_width(bound) <= _HOPEFUL * tolerance
            self._stations[asked, number] = bracket if serves else None
        return self._stations[asked, number]

    def _delta_around(
        self, at: tuple[Cumulants, SaddleEstimate], epsilon: float, tolerance: float, refinements: int
    ) -> tuple[Bound, _Bracket]:
        """The bracket by lattices for this epsilon, refined as long as that helps, and the last of them."""
        cumulants, saddle = at
        best = Bound(0.0, 1.0, _METHOD)
        width = tolerance / saddle.theta
        first = self._first_width(cumulants, saddle, width)
        for _ in range(refinements):
            bracket = self._compose(cumulants, saddle, max(width, first))
            best = _sharper(self._read_delta(bracket, epsilon), best)
            found = self._relative_width(best)
            if found <= tolerance or bracket.limited or float(best.upper) <= _LEAST or _is_rounding(best):
                break
            goal = tolerance if float(best.lower) == 0.0 else max(tolerance, 2.0 * _rounding(best) / float(best.lower))
            width, first = _finer(width, first, tolerance, goal, found), 0.0
        return best, bracket

    def _epsilon_around(self, delta: float) -> Bound:
        """The bracket by lattices for this delta."""
        tolerance = self.tolerance
        cumulants, saddle = saddle_at_least_zero(self.parts, delta)
        better = epsilon_with_jumps(self.parts, math.log(max(delta, 1e-320)), saddle)
        if better is not None:
            cumulants, saddle = saddle_at_epsilon(self.parts, better)
        best = Bound(0.0, math.inf, _METHOD)
        width = tolerance
        first = self._first_width(cumulants, saddle, width)
        for _ in range(_REFINEMENTS):
            bracket = self._compose(cumulants, saddle, max(width, first))
            best = _sharper(self._read_epsilon(bracket, delta, guess=saddle.epsilon), best)
            found = float(best.width)
            if found <= tolerance:
                break
            before = saddle
            cumulants, saddle = self._again(cumulants, saddle, best)
            if saddle == before and (bracket.limited or _is_rounding(best)):
                break  # the lattices were built for the right place, and no finer ones would help
            if not bracket.limited:
                goal = max(tolerance, 2.0 * _rounding(best))
                width, first = _finer(width, first, tolerance, goal, found), 0.0
        return best

    def _again(self, cumulants: Cumulants, saddle: SaddleEstimate, best: Bound) -> tuple[Cumulants, SaddleEstimate]:
        """The saddle point for the epsilon found, where it is not the one predicted."""
        found = float(best.lower)
        if math.isinf(found) or found == 0.0:  # where the curve has a cliff, aim within the tolerance before it
            found = max(float(best.upper) - 0.5 * self.tolerance, 0.0)
        if math.isinf(found) or abs(found - saddle.epsilon) * saddle.theta < 0.5:
            return cumulants, saddle
        return saddle_at_epsilon(self.parts, found)

    @staticmethod
    def _relative_width(bound: Bound) -> float:
        lower, width = float(bound.lower), float(bound.width)
        return width / lower if lower > 0.0 else math.inf if width > 0.0 else 0.0

    def _first_width(self, cumulants: Cumulants, saddle: SaddleEstimate, width: float) -> float:
        """The width to ask for first: rounding grows with the number of points, and may forbid as many as it takes."""
        if plan_jumps(self.parts, saddle.epsilon, saddle) is not None:
            return width
        window = window_around(cumulants, saddle, math.log(_relative(saddle, width)))
        points = (window.high - window.low) / self._spacing(saddle, width)
        return width if points <= _LONG else width * (points / _SHORT) ** 2

    def _spacing(self, saddle: SaddleEstimate, width: float) -> float:
        return 0.7 * spacing_for(sum(count for _, count in self.parts), saddle.theta, width)

    def _compose(self, cumulants: Cumulants, saddle: SaddleEstimate, width: float) -> _Bracket:
        """Both lattices of every pair around a saddle point, composed."""
        plan = plan_jumps(self.parts, saddle.epsilon, saddle)
        if plan is not None:
            saddle = SaddleEstimate(plan.theta, saddle.epsilon, plan.log_delta)
        relative = _relative(saddle, width)
        window = window_around(cumulants, saddle, math.log(relative))
        longest = window.high - window.low if plan is None else plan.longest(math.log(relative))
        below, above = tail_exponents(sum(count for _, count in self.parts), saddle, relative)
        ranges = [pair.loss_range(below, above) for pair, _ in self.parts]
        spacing, finest = self._spacing(saddle, width), _FINEST * float(np.abs(ranges).max())
        layout = common_layout(self.parts, max(spacing, finest))
        limited = spacing < finest
        if longest / layout.spacing > self.points:
            limited = True
            layout = common_layout(self.parts, longest / self.points * 1.3)

        def composed(lattices: tuple[LatticePLD, ...]) -> _Composed:
            parts = [(lattice, count) for lattice, (_, count) in zip(lattices, self.parts, strict=True)]
            if plan is None:
                return TiltedComposition(parts, window)
            return JumpComposition(parts, plan, log_alias=math.log(relative), points=self.points)

        upper, lower = map(composed, zip(*self._lattices(saddle, above, ranges, plan, layout), strict=True))
        return _Bracket(
            upper,
            lower,
            theta=saddle.theta,
            epsilon=saddle.epsilon,
            log_delta=saddle.log_delta,
            limited=limited or layout.exact or upper.is_cut or lower.is_cut,
        )

    def _lattices(
        self,
        saddle: SaddleEstimate,
        above: float,
        ranges: list[tuple[float, float]],
        plan: JumpPlan | None,
        layout: Layout,
    ) -> Iterator[tuple[LatticePLD, LatticePLD]]:
        """The upper and the lower lattice of each pair on one layout, over a range of losses."""
        spacing = layout.spacing
        for part, ((pair, count), offset) in enumerate(zip(self.parts, layout.offsets, strict=True)):
            nodes = pair.nodes(above)
            nodes = nodes if plan is None else plan.nodes(nodes, part, count)
            yield fitted_lattices(pair, nodes, saddle.theta, ranges[part], spacing=spacing, offset=offset)

    def _read_delta(self, bracket: _Bracket, epsilon: float) -> Bound:
        upper, lower = bracket.upper.delta(epsilon), bracket.lower.delta(epsilon)
        errors = bracket.upper.budget(epsilon)
        errors["lattice"] = max(upper - lower - sum(errors.values()), 0.0)
        return from_sides(lower, upper, _METHOD, errors=errors)

    def _read_epsilon(self, bracket: _Bracket, delta: float, guess: float | None = None) -> Bound:
        if guess is None:
            guess = bracket.upper.nearest_epsilon(delta)
        step = max(0.02 * self.tolerance, 1e-3 * bracket.upper.spacing)
        sides = bracket.lower.delta, bracket.upper.delta
        lower, upper = crossings(*sides, delta, guess=guess, slope=bracket.theta, step=step)
        budget = bracket.upper.budget(upper) if math.isfinite(upper) else {}
        slope = delta * bracket.theta  # may be too small for float64
        errors = {name: size / slope if slope > 0.0 else math.inf for name, size in budget.items()}
        if bracket.upper.delta_at_infinity == 0.0:
            upper = min(upper, max(self.largest_loss, 0.0))
        errors["lattice"] = max(upper - lower - sum(errors.values()), 0.0)
        return from_sides(lower, upper, _METHOD, errors=errors)


def _relative(saddle: SaddleEstimate, width: float) -> float:
    """The part of delta that what lies outside a window may be."""
    return 1e-4 * min(width * saddle.theta, 1.0)


def _finer(width: float, first: float, tolerance: float, goal: float, found: float) -> float:
    """The next width to ask for; where rounding leaves no more than a goal above the tolerance, one for that goal."""
    if first > width and goal == tolerance:
        return width
    refinement = max(min(0.8 * goal / found, 0.5), 0.02) if math.isfinite(found) else 0.1
    return max(width, first) * refinement


def _is_rounding(bound: Bound) -> bool:
    """Whether most of the width is rounding, that of either side, which finer lattices do not lessen."""
    lower, width = float(bound.lower), float(bound.width)
    return lower > 0.0 and 2.0 * _rounding(bound) >= 0.5 * width > 0.0


def _rounding(bound: Bound) -> float:
    return bound.errors.get("rounding", 0.0)


def _sharper(new: Bound, old: Bound) -> Bound:
    """The intersection of two certified brackets, with the newer one's errors where they explain its width."""
    both = agreed(new, old)
    width = float(both.upper) - float(both.lower)
    explained = not math.isfinite(width) or math.fsum(new.errors.values()) <= _EXPLAINED * width
    return replace(both, method=new.method, errors=new.errors if explained else {"lattices at two tilts": width})
