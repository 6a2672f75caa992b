"""The certified curve of one direction, by a trapezoidal sum on the line through the saddle point.

One sum (004, equation 28; `hockeystick.engines.contour.placing`) gives delta at an epsilon; the same values of K serve
every epsilon near it, so that epsilon at a delta is a root search of a few more multiplications. Every error is inside
the bracket.

Guarantee: lower and upper are certified, rounding included (docs/derivations/contour.md). Where the tolerance is out
of reach `ContourRefusal` says why: few steps, atoms that share no lattice, a pair whose transform is not certified.
Cost: a few milliseconds for DP-SGD, the same for a thousand steps and a billion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.contour.line import Curve
from hockeystick.engines.contour.placing import (
    MOST_WORK,
    ContourRefusal,
    line_for_epsilon,
    log_complement,
    log_tail,
    saddle_of_delta,
    saddle_of_epsilon,
)
from hockeystick.engines.contour.root_bracket import LogBracket, RootBracket, root_bracket
from hockeystick.engines.contour.search import REACH, EpsilonSearch, PlacedLine, Targets
from hockeystick.engines.contour.stations import Station, Stations
from hockeystick.engines.ends import composed_infinity, largest_loss
from hockeystick.laws.loss_sum import PairSum
from hockeystick.numerics.rounding import TINY, U, down, exp_down, exp_up, up
from hockeystick.transforms.rule import Array
from hockeystick.transforms.saddle import Saddle

__all__ = ["ContourCurve"]

_METHOD = "contour"
_TRIVIAL = "trivial"
_TRIES = 8
_FEW_TRIES = 3
_LITTLE_WORK = 4_000_000  # for each part, as long as leaving mass out has not been tried
_SHARE = 0.01  # of the tolerance, that a line is planned for: digits are cheap here
_FINEST = 1e-12
_LEAST = 1e-300  # a smaller delta is not asked to be relatively accurate
_SMALLEST = -740.0  # ln of what float64 still tells from 0
_DEEPEST = -690.0  # ln of the mass that may always be left out
_LOOSE = 8.0  # times the width of delta, over the tilt: what a bracket of epsilon may have
_FAR = 5.0  # standard deviations below the mean from which 1 - delta is looked at


@final
@dataclass
class ContourCurve:
    """The curve of one direction. Lines stand where the composition says, and are kept: no answer depends on another.

    Parameters
    ----------
    losses : PairSum
        The composition.
    tolerance : float
        Relative width of a bracket of delta.
    most_work : int
        Products of nodes in s and in the loss that a line may take.
    """

    losses: PairSum
    tolerance: float
    most_work: int = MOST_WORK
    _lines: dict[Station, PlacedLine | ContourRefusal] = field(default_factory=dict, repr=False)

    @cached_property
    def _infinite_mass(self) -> tuple[float, float]:
        return composed_infinity(self.losses.parts)

    @cached_property
    def _largest_loss(self) -> float:
        return largest_loss(self.losses.parts)[1]

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        if epsilon >= self._largest_loss:
            return Bound(*self._infinite_mass, _TRIVIAL, notes=("epsilon is at or beyond the largest loss",))
        room = self._largest_loss - epsilon  # rounded up: delta of the finite losses is at most 1 - e^-room
        if room <= 1e-12 * (1.0 + epsilon):
            low, high = self._infinite_mass
            return Bound(
                low, min(up(high + room, 4.0 * U), 1.0), _TRIVIAL, notes=("epsilon is next to the largest loss",)
            )
        placed = self._standing(self._stations.of_epsilon(epsilon))
        if placed is not None and placed.serves(epsilon):
            bound = self._delta_bound(placed.line.curve(np.array([epsilon])))
            if self._narrow(bound):
                return bound
        return self._new_delta(epsilon)

    @cached_property
    def _stations(self) -> Stations:
        return Stations(self.losses.dropping(_DEEPEST))

    def _standing(self, station: Station | None) -> PlacedLine | None:
        """The line at a station, placed when first asked for; None where there is no station.

        Raises
        ------
        ContourRefusal
            Where the transform decays too slowly for any line there, or atoms are too many.
        """
        if station is None:
            return None
        if station not in self._lines:
            self._lines[station] = self._stood(station)
        found = self._lines[station]
        if isinstance(found, ContourRefusal):
            if found.reason == "atoms" or (found.reason == "tail" and self.losses.on_lattice):
                raise ContourRefusal(found.reason, str(found))
            return None
        return found

    def _stood(self, station: Station) -> PlacedLine | ContourRefusal:
        """A line through the tilt of a station; where large losses of small mass stand in the way, without these."""
        saddle = self._stations.saddle(station)
        if saddle is None or saddle.log_delta(saddle.epsilon) < _SMALLEST:
            return ContourRefusal("saddle", "no line stands at this tilt")
        log_drop = self._log_drop(math.exp(min(saddle.log_delta(saddle.epsilon), 0.0)))
        refusal = ContourRefusal("width", "no line at this tilt is narrow enough")
        for drop, work in ((_DEEPEST, self._little_work), (log_drop, self.most_work)):
            losses = self.losses.dropping(drop)
            try:
                own = saddle if drop == _DEEPEST else saddle_of_epsilon(losses, saddle.epsilon)
                placed = self._place(losses, own, saddle.epsilon, None, work)
                if self._narrow(self._delta_bound(placed.line.curve(np.array([saddle.epsilon])))):
                    return placed
            except ContourRefusal as error:
                refusal = error
        return refusal

    def _new_delta(self, epsilon: float) -> Bound:
        """A fresh line; where large losses of small mass stand in the way, ever more of them are left out."""
        log_drop, refusal = _DEEPEST, None
        best: Bound | None = None
        for _ in range(_TRIES):
            try:
                work = self.most_work if log_drop > _DEEPEST else self._little_work
                best = self._try_delta(self.losses.dropping(log_drop), epsilon, work)
                if self._narrow(best):
                    return best
            except ContourRefusal as error:
                refusal = error
            sharper = self._log_drop(1.0 if best is None else float(best.upper))
            if log_drop not in {_DEEPEST, max(log_drop, sharper + 1.0)}:
                break
            log_drop = sharper
        raise refusal or ContourRefusal("width", f"a relative width of {self.tolerance:g} was not reached", best)

    @property
    def _little_work(self) -> int:
        return min(_LITTLE_WORK * len(self.losses.parts), self.most_work)

    def _try_delta(self, losses: PairSum, epsilon: float, work: int) -> Bound:
        saddle = saddle_of_epsilon(losses, epsilon)
        extreme = self._near_one(saddle, epsilon) or self._near_zero(losses, saddle, epsilon)
        if extreme is not None:
            return extreme
        log_delta: float | None = None
        for _ in range(2):
            placed = self._place(losses, saddle, epsilon, log_delta, work)
            curve = placed.line.curve(np.array([epsilon]))
            best = self._delta_bound(curve)
            if self._narrow(best):
                break
            log_delta = curve.guess()
        return best

    def _log_drop(self, delta: float) -> float:
        """``ln`` of the mass that each step may leave out where delta matters to the tolerance."""
        return (
            math.log(max(delta, 1e-300)) + math.log(self.tolerance / 64.0) - math.log(max(self.losses.total_count, 1.0))
        )

    def _place(self, losses: PairSum, saddle: Saddle, epsilon: float, log_delta: float | None, work: int) -> PlacedLine:
        finest = max(_SHARE * self.tolerance, _FINEST)
        line = line_for_epsilon(losses, epsilon, finest, saddle=saddle, log_delta=log_delta, work=work)
        return PlacedLine(line, epsilon, math.sqrt(saddle.curvature))

    def _narrow(self, bound: Bound) -> bool:
        lower, upper = float(bound.lower), float(bound.upper)
        return upper - lower <= self.tolerance * lower or upper <= _LEAST

    def _delta_bound(self, curve: Curve) -> Bound:
        low, high = self._infinite_mass
        lower = exp_down(min(float(curve.log_lower()[0]), 0.0)) + low
        upper = exp_up(min(float(curve.log_upper()[0]), 0.0)) + high
        return from_sides(max(down(lower), 0.0), min(up(upper), 1.0), _METHOD, errors=_errors(curve, 1.0))

    def _near_one(self, saddle: Saddle, epsilon: float) -> Bound | None:
        """A bracket by Chernoff's bound on 1 - delta, where that is narrow enough."""
        if saddle.mean - epsilon < _FAR * math.sqrt(saddle.variance):
            return None
        log_gap = log_complement(self.losses, saddle, epsilon)
        if log_gap > math.log(0.5 * self.tolerance):
            return None
        gap = up(exp_up(log_gap))
        return Bound(max(down(1.0 - gap), 0.0), 1.0, _METHOD, errors={"Chernoff's bound": gap})

    def _near_zero(self, losses: PairSum, saddle: Saddle, epsilon: float) -> Bound | None:
        """Chernoff's bound, where delta is too small for float64."""
        if saddle.log_delta(epsilon) > _SMALLEST:
            return None
        low, high = self._infinite_mass
        upper = up(high + exp_up(min(log_tail(losses, saddle, epsilon), 0.0)))
        note = "delta of the finite losses is too small for float64"
        return Bound(low, min(upper, 1.0), _METHOD, notes=(note,), errors={"Chernoff's bound": upper - high})

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        low, high = self._infinite_mass
        if delta >= 1.0:
            return Bound(0.0, 0.0, _TRIVIAL)
        if delta < low:
            return Bound(math.inf, math.inf, _TRIVIAL, notes=("delta is below the mass at infinite loss",))
        if delta <= high:
            return self._end(delta)
        targets = Targets.of(delta, low, high)
        if math.isinf(targets.undercut):
            return self._end(delta)
        placed = self._standing(self._stations.of_log_delta(targets.undercut))
        if placed is not None and placed.reaches(targets.undercut):
            found, curve = self._solve(placed, targets)
            bound = self._epsilon_bound(placed, found, curve, targets)
            if bound is not None and self._is_enough(bound, placed):
                return bound
        return self._fresh_epsilon(targets)

    def _fresh_epsilon(self, targets: Targets) -> Bound:
        """By new lines; where large losses of small mass stand in the way, they are left out."""
        try:
            work = self._little_work
            return self._new_epsilon(self.losses.dropping(_DEEPEST), targets, tries=_FEW_TRIES, work=work)
        except ContourRefusal:
            losses = self.losses.dropping(self._log_drop(math.exp(targets.undercut)))
            return self._new_epsilon(losses, targets, tries=_TRIES, work=self.most_work)

    def _end(self, delta: float) -> Bound:
        """Where delta is the mass at infinite loss, to within rounding."""
        if delta == 0.0 and math.isinf(self._largest_loss):
            return Bound(math.inf, math.inf, _TRIVIAL, notes=("delta 0 is reached at no epsilon",))
        raise ContourRefusal("saddle", f"delta {delta:g} is the mass at infinite loss, to within rounding")

    def _new_epsilon(self, losses: PairSum, targets: Targets, *, tries: int, work: int) -> Bound:
        saddle = saddle_of_delta(losses, targets.undercut)
        if saddle.epsilon <= 0.0:
            saddle = saddle_of_epsilon(losses, 0.0)
        epsilon, log_delta = max(saddle.epsilon, 0.0), None
        search = EpsilonSearch(losses, targets.undercut)
        best: Bound | None = None
        for _ in range(tries):
            placed = self._place(losses, saddle, epsilon, log_delta, work)
            found, curve = self._solve(placed, targets)
            bound = self._epsilon_bound(placed, found, curve, targets)
            best = best if bound is None else bound
            if bound is not None and self._is_enough(bound, placed):
                return bound
            following = search.after(placed, found.point, log_delta)
            if following is None:
                break
            epsilon, log_delta = following
            saddle = saddle_of_epsilon(losses, epsilon)
        reason = f"the crossing near epsilon {epsilon:g} was not proved to a relative width of {self.tolerance:g}"
        raise ContourRefusal("width", reason, best)

    def _epsilon_bound(self, placed: PlacedLine, found: RootBracket, curve: Curve, targets: Targets) -> Bound | None:
        """The bracket of a crossing; None where a side was not proved."""
        if found.upper == 0.0:
            return Bound(0.0, 0.0, _METHOD, notes=("delta is proved to be smaller at epsilon 0",))
        if not math.isfinite(found.upper - found.lower):
            return None
        slope = placed.line.chernoff.theta * math.exp(targets.undercut)
        return from_sides(found.lower, found.upper, _METHOD, errors=_errors(curve, slope))

    def _is_enough(self, bound: Bound, placed: PlacedLine) -> bool:
        """Whether a bracket of epsilon is narrow itself, or as narrow as that of delta was asked to be."""
        width, upper = float(bound.width), float(bound.upper)
        return width * min(placed.line.chernoff.theta / _LOOSE, 1.0 / max(upper, 1e-300)) <= self.tolerance

    def _solve(self, placed: PlacedLine, targets: Targets) -> tuple[RootBracket, Curve]:
        """Where the line's curve takes the value, in epsilon of at least 0, and the curve there."""
        line = placed.line
        asked: list[tuple[float, Curve]] = []

        def brackets(points: Array) -> LogBracket:
            curve = line.curve(points)
            asked[:] = [(float(points[0]), curve)]
            return LogBracket(curve.log_lower(), curve.log_upper())

        found = root_bracket(
            brackets,
            (targets.exceeded, targets.undercut),
            start=placed.epsilon,
            slope=line.chernoff.theta,
            reach=REACH * placed.deviation,
        )
        if found.lower < 0.0 and placed.serves(0.0):
            at_zero = brackets(np.zeros(1))
            if float(at_zero.upper[0]) <= targets.undercut:
                found = RootBracket(0.0, 0.0, 0.0)
        at, curve = asked[0]  # the last, which is at the point where that was proved
        return found, curve if at == found.point >= 0.0 else line.curve(np.array([max(found.point, 0.0)]))


def _errors(curve: Curve, unit: float) -> dict[str, float]:
    """The parts of the width at the first epsilon of a curve, in multiples of ``unit``."""
    scale = math.exp(min(float(curve.log_scale[0]), 0.0)) / max(unit, TINY)  # the slope of a tiny delta may underflow
    return {
        "rounding": scale * float(curve.rounding[0] + 2.0 * curve.log_scale_error[0] * abs(curve.upper[0])),
        "truncation": scale * float(curve.truncation[0]),
        "aliasing": scale * float(curve.aliasing[0]),
    }
