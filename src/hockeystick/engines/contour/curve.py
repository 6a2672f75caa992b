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
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.bound import Bound, from_sides
from hockeystick.engines.contour.answers import METHOD, deltas, epsilons, errors_at, solved
from hockeystick.engines.contour.line_curve import Curve
from hockeystick.engines.contour.lines import Quantity
from hockeystick.engines.contour.looking import station_near
from hockeystick.engines.contour.placing import (
    ContourRefusal,
    log_complement,
    log_tail,
    saddle_of_delta,
    saddle_of_epsilon,
)
from hockeystick.engines.contour.planned import MOST_WORK
from hockeystick.engines.contour.root_bracket import LogBracket, Targets
from hockeystick.engines.contour.search import EpsilonSearch, targets_of
from hockeystick.engines.contour.standing import DEEPEST, StandingLines
from hockeystick.engines.contour.stays_below import seems_far_below, stay_below, stay_below_beside
from hockeystick.engines.contour.through import SMALLEST
from hockeystick.engines.contour.widths import is_narrow
from hockeystick.engines.ends import largest_loss
from hockeystick.laws.loss_sum import PairSum
from hockeystick.numerics.rounding import U, down, exp_up, up
from hockeystick.transforms.saddle import Saddle

_TRIVIAL = "trivial"
_ONLY = np.zeros(1, dtype=np.intp)  # the only question is of the only curve
_TRIES = 8
_FEW_TRIES = 3
_FAR = 5.0  # standard deviations below the mean from which 1 - delta is looked at


@final
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
    hasty : tuple of str
        Reasons for which to refuse at once, where no line stands; see `ContourRefusal`.
    enough : float
        Relative width that is answer enough where a line cannot reach the tolerance; by default the tolerance.
    fresh : bool
        Whether a question that no line answers where it stands has lines of its own.
    """

    def __init__(
        self,
        losses: PairSum,
        tolerance: float,
        most_work: int = MOST_WORK,
        *,
        hasty: tuple[str, ...] = (),
        enough: float = 0.0,
        fresh: bool = True,
    ) -> None:
        self.losses, self.tolerance, self._fresh = losses, tolerance, fresh
        self.standing = StandingLines(losses, tolerance, most_work, hasty, max(enough, tolerance))

    @cached_property
    def _largest_loss(self) -> float:
        return largest_loss(self.losses.parts)[1]

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        if epsilon >= self._largest_loss:
            return Bound(*self.standing.infinite_mass, _TRIVIAL, notes=("epsilon is at or beyond the largest loss",))
        if not self.is_below_the_end(epsilon):
            room = self._largest_loss - epsilon  # rounded up: delta of the finite losses is at most 1 - e^-room
            low, high = self.standing.infinite_mass
            return Bound(
                low, min(up(high + room, 4.0 * U), 1.0), _TRIVIAL, notes=("epsilon is next to the largest loss",)
            )
        answers = deltas([self.standing], _ONLY, np.array([epsilon]))
        if answers.known[0]:
            return answers.bound(0)
        self._check_fresh(epsilon, "delta")
        return self._new_delta(epsilon)

    def _check_fresh(self, value: float, quantity: Quantity) -> None:
        """Refuse what is to have no lines of its own, and say why where no line can be placed."""
        if not self._fresh:
            raise ContourRefusal("width", "no line is narrow enough where it stands")
        self.standing.at(station_near(self.standing, value, quantity))

    def is_below_the_end(self, epsilon: float) -> bool:
        """Whether lines are asked for delta there: below the largest loss, and not next to it."""
        return self._largest_loss - epsilon > 1e-12 * (1.0 + epsilon)

    def _new_delta(self, epsilon: float) -> Bound:
        """A fresh line; where large losses of small mass stand in the way, ever more of them are left out."""
        log_drop, refusal = DEEPEST, None
        best: Bound | None = None
        for _ in range(_TRIES):
            try:
                work = self.standing.most_work if log_drop > DEEPEST else self.standing.little_work
                best = self._try_delta(self.losses.dropping(log_drop), epsilon, work)
                if self._narrow(best):
                    return best
            except ContourRefusal as error:
                refusal = error
            sharper = self.standing.log_drop(1.0 if best is None else float(best.upper))
            if log_drop not in {DEEPEST, max(log_drop, sharper + 1.0)}:
                break
            log_drop = sharper
        if best is None and refusal is not None:
            raise refusal
        raise ContourRefusal("width", f"a relative width of {self.tolerance:g} was not reached", best)

    def _try_delta(self, losses: PairSum, epsilon: float, work: int) -> Bound:
        saddle = saddle_of_epsilon(losses, epsilon)
        extreme = self._near_one(saddle, epsilon) or self._near_zero(losses, saddle, epsilon)
        if extreme is not None:
            return extreme
        log_delta: float | None = None
        for _ in range(2):
            placed = self.standing.place(losses, saddle, epsilon, log_delta, work)
            curve = placed.line.curve(np.array([epsilon]))
            best = self._delta_bound(curve)
            if self._narrow(best):
                break
            log_delta = curve.guess()
        return best

    def _narrow(self, bound: Bound) -> bool:
        return bool(is_narrow(np.array(bound.lower), np.array(bound.upper), self.tolerance))

    def _delta_bound(self, curve: Curve) -> Bound:
        finite = LogBracket(curve.log_lower(), curve.log_upper())
        return from_sides(*self.standing.sides_of(finite), METHOD, errors=errors_at(curve, 1.0))

    def _near_one(self, saddle: Saddle, epsilon: float) -> Bound | None:
        """A bracket by Chernoff's bound on 1 - delta, where that is narrow enough."""
        if saddle.mean - epsilon < _FAR * math.sqrt(saddle.variance):
            return None
        log_gap = log_complement(self.losses, saddle, epsilon)
        if log_gap > math.log(0.5 * self.tolerance):
            return None
        gap = up(exp_up(log_gap))
        return Bound(max(down(1.0 - gap), 0.0), 1.0, METHOD, errors={"Chernoff's bound": gap})

    def _near_zero(self, losses: PairSum, saddle: Saddle, epsilon: float) -> Bound | None:
        """Chernoff's bound, where delta is too small for float64."""
        if saddle.log_delta(epsilon) > SMALLEST:
            return None
        low, high = self.standing.infinite_mass
        (log_finite,) = log_tail(losses, np.array([[saddle.theta]]), np.array([epsilon])).tolist()
        upper = up(high + exp_up(min(log_finite, 0.0)))
        note = "delta of the finite losses is too small for float64"
        return Bound(low, min(upper, 1.0), METHOD, notes=(note,), errors={"Chernoff's bound": upper - high})

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether Chernoff's bound proves ``delta(epsilon) <= delta``."""
        return bool(stay_below([self.standing], np.array([epsilon]), np.array([delta]))[0])

    def is_below_beside(self, other: ContourCurve, epsilon: float, delta: float, quantity: Quantity) -> bool:
        """Whether that is proved by what answered the curve of the other direction, too."""
        if seems_far_below(other.standing, epsilon, delta) and self.is_below(epsilon, delta):
            return True
        point = np.array([epsilon]), np.array([delta])
        return bool(stay_below_beside([self.standing], [other.standing], *point, quantity)[0])

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        low, high = self.standing.infinite_mass
        if delta >= 1.0:
            return Bound(0.0, 0.0, _TRIVIAL)
        if delta < low:
            return Bound(math.inf, math.inf, _TRIVIAL, notes=("delta is below the mass at infinite loss",))
        if delta <= high:
            return self._end(delta)
        exceeded, undercut = targets_of(delta, low, high)
        if math.isinf(undercut):
            return self._end(delta)
        targets = Targets(np.array([exceeded]), np.array([undercut]))
        answers = epsilons([self.standing], _ONLY, targets)
        if answers.known[0]:
            return answers.bound(0)
        self._check_fresh(undercut, "epsilon")
        return self._fresh_epsilon(targets)

    def _fresh_epsilon(self, targets: Targets) -> Bound:
        """By new lines; where large losses of small mass stand in the way, they are left out."""
        standing, goal = self.standing, float(targets.undercut[0])
        station = station_near(standing, goal, "epsilon")
        if station is None or station.log_drop == DEEPEST:
            try:
                losses, work = self.losses.dropping(DEEPEST), standing.little_work
                return self._new_epsilon(losses, targets, tries=_FEW_TRIES, work=work)
            except ContourRefusal:
                pass
        losses = self.losses.dropping(standing.log_drop(math.exp(goal)))
        return self._new_epsilon(losses, targets, tries=_TRIES, work=standing.most_work)

    def _end(self, delta: float) -> Bound:
        """Where delta is the mass at infinite loss, to within rounding."""
        if delta == 0.0 and math.isinf(self._largest_loss):
            return Bound(math.inf, math.inf, _TRIVIAL, notes=("delta 0 is reached at no epsilon",))
        raise ContourRefusal("saddle", f"delta {delta:g} is the mass at infinite loss, to within rounding")

    def _new_epsilon(self, losses: PairSum, targets: Targets, *, tries: int, work: int) -> Bound:
        goal = float(targets.undercut[0])
        saddle = saddle_of_delta(losses, goal)
        if saddle.epsilon <= 0.0:
            saddle = saddle_of_epsilon(losses, 0.0)
        epsilon, log_delta = max(saddle.epsilon, 0.0), None
        search = EpsilonSearch(losses, goal)
        best: Bound | None = None
        for _ in range(tries):
            placed = self.standing.place(losses, saddle, epsilon, log_delta, work)
            found = solved([placed], _ONLY, targets, np.array([epsilon]), np.array([self.tolerance]))
            if found.is_bracket(0):
                best = found.bound(0)
                if found.known[0]:
                    return best
            following = search.after(placed, float(found.point[0]), log_delta)
            if following is None:
                break
            epsilon, log_delta = following
            saddle = saddle_of_epsilon(losses, epsilon)
        reason = f"the crossing near epsilon {epsilon:g} was not proved to a relative width of {self.tolerance:g}"
        raise ContourRefusal("width", reason, best)
