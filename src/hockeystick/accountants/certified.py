"""The certified accountant on lattices: a proved bracket of the width asked for.

For each direction: pick the tilt by the saddle-point equation, the spacing by the tolerance, build the connect-the-dots
and the tangent lattice of every pair on one set of cells, compose both by tilted FFT, read the curve, and refine until
the bracket is narrow enough.

Guarantee: lower and upper are certified, rounding included (`lattice/`). Cost: about sqrt(T) lattice points for T steps;
memory is bounded, and where the bound does not allow the tolerance the bracket is wider and says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Bound
from hockeystick.errors import check_count, check_positive
from hockeystick.lattice.compose import TiltedComposition, Window
from hockeystick.lattice.dots import connect_the_dots
from hockeystick.lattice.grid import GridCells
from hockeystick.lattice.layout import Layout, common_layout
from hockeystick.lattice.mesh import fitted_grid
from hockeystick.lattice.pld import LatticePLD
from hockeystick.lattice.plan import (
    Cumulants,
    Saddle,
    saddle_at_delta,
    saddle_at_epsilon,
    spacing_for,
    tail_exponents,
    window_around,
)
from hockeystick.lattice.solve import crossing
from hockeystick.lattice.tangents import tangents
from hockeystick.numerics.rounding import down, up
from hockeystick.pairs.one_step import one_step_delta

__all__ = ["Certified"]

_METHOD = "certified lattice"
_ONE_STEP = "closed form of one step"
_TRIVIAL = "trivial"
_REFINEMENTS = 8
_KEPT = 3  # compositions kept for later questions


@final
@dataclass(frozen=True)
class Certified(Accountant):
    """Certified brackets by tilted lattice composition.

    Parameters
    ----------
    tolerance : float
        Width of the epsilon bracket asked for (nats); where delta is asked for, its relative width.
    points : int
        Largest number of lattice points in a window; the working memory is about 60 bytes a point.

    Examples
    --------
    >>> from hockeystick.pairs import GaussianPair
    >>> curve = Certified().directed(((GaussianPair(20.0), 400),))
    >>> curve.epsilon(1e-5).contains(4.3775)
    True
    """

    tolerance: float = 1e-3
    points: int = 1 << 23

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", check_positive("tolerance", self.tolerance))
        object.__setattr__(self, "points", check_count("points", self.points, minimum=64))

    def directed(self, parts: Parts) -> DirectedCurve:
        if len(parts) == 1 and parts[0][1] == 1:
            return _OneStepCurve(self, parts)
        return _LatticeCurve(self, parts)


@dataclass
class _Common(DirectedCurve):
    """What both curves share: the ends of the range, where no composition is needed."""

    settings: Certified
    parts: Parts

    def _largest_loss(self) -> float:
        """The largest finite loss of the composition, rounded up."""
        total = math.fsum(count * pair.loss_bounds[1] for pair, count in self.parts)
        return up(total, 1e-13) + 1e-13

    def _mass_at_infinity(self) -> tuple[float, float]:
        """Lower and upper bound of the composed mass at infinity."""
        log_finite = math.fsum(
            count * (math.log1p(-pair.mass_at_infinity) if pair.mass_at_infinity < 1.0 else -math.inf)
            for pair, count in self.parts
        )
        mass = -math.expm1(log_finite)
        return (max(down(mass, 1e-13), 0.0), min(up(mass, 1e-13), 1.0)) if mass > 0.0 else (0.0, 0.0)

    def _trivial_delta(self, epsilon: float) -> Bound | None:
        low, high = self._mass_at_infinity()
        if epsilon > self._largest_loss():
            return Bound(low, high, _TRIVIAL, notes=("epsilon is at or beyond the largest loss",))
        return None

    def _trivial_epsilon(self, delta: float) -> Bound | None:
        low, high = self._mass_at_infinity()
        if delta >= 1.0:
            return Bound(0.0, 0.0, _TRIVIAL)
        if delta < low:
            return Bound(math.inf, math.inf, _TRIVIAL, notes=("delta is below the mass at infinite loss",))
        largest = self._largest_loss()
        if delta == 0.0 and high == 0.0:
            lower = largest if math.isinf(largest) else max(down(largest, 4e-13) - 4e-13, 0.0)
            return Bound(lower, max(largest, 0.0), _TRIVIAL, notes=("delta 0: the largest loss",))
        return None

    def delta(self, epsilon: float) -> Bound:
        trivial = self._trivial_delta(epsilon)
        return self._delta(epsilon) if trivial is None else trivial

    def epsilon(self, delta: float) -> Bound:
        trivial = self._trivial_epsilon(delta)
        if trivial is not None:
            return trivial
        bound = self._epsilon(delta)
        if self._mass_at_infinity()[1] <= delta and bound.upper > self._largest_loss():  # beyond it delta is smaller
            largest = max(self._largest_loss(), 0.0)
            return Bound(min(float(bound.lower), largest), largest, bound.method, bound.notes, bound.errors)
        return bound

    def _delta(self, epsilon: float) -> Bound:
        raise NotImplementedError

    def _epsilon(self, delta: float) -> Bound:
        raise NotImplementedError


@final
@dataclass
class _OneStepCurve(_Common):
    """One pair, once: its own tails, no lattice."""

    def _delta(self, epsilon: float) -> Bound:
        lower, upper = one_step_delta(self.parts[0][0], epsilon)
        return Bound(lower, upper, _ONE_STEP, errors={"rounding": upper - lower})

    def _epsilon(self, delta: float) -> Bound:
        pair = self.parts[0][0]
        _, saddle = saddle_at_delta(self.parts, max(delta, 1e-320))
        step = min(self.settings.tolerance * 1e-6, 1e-9)
        sides = [
            crossing(
                lambda eps, side=side: one_step_delta(pair, eps)[side],  # type: ignore[misc]
                delta,
                guess=saddle.epsilon,
                slope=saddle.theta,
                step=step,
                above=bool(side),
            )
            for side in (0, 1)
        ]
        return Bound(sides[0], max(sides), _ONE_STEP, errors={"rounding": sides[1] - sides[0]})


@final
@dataclass(frozen=True)
class _Bracket:
    """Upper and lower composition around one saddle point."""

    upper: TiltedComposition
    lower: TiltedComposition
    theta: float
    limited: bool  # the spacing is coarser than asked for, to stay within memory


@final
@dataclass
class _LatticeCurve(_Common):
    """Composed lattices, kept for later questions near the same saddle point."""

    _brackets: list[_Bracket] = field(default_factory=list)

    def _delta(self, epsilon: float) -> Bound:
        tolerance = self.settings.tolerance
        for bracket in self._brackets:
            bound = self._read_delta(bracket, epsilon)
            if self._relative_width(bound) <= tolerance:
                return bound
        cumulants, saddle = saddle_at_epsilon(self.parts, epsilon)
        best: Bound | None = None
        width = tolerance / saddle.theta
        for _ in range(_REFINEMENTS):
            bracket = self._compose(cumulants, saddle, width)
            best = _sharper(self._read_delta(bracket, epsilon), best)
            self._keep(bracket)
            found = self._relative_width(best)
            if found <= tolerance or bracket.limited:
                break
            width *= max(min(0.8 * tolerance / found, 0.5), 0.02) if found < math.inf else 0.1
        assert best is not None
        return _explained(best, self._relative_width(best), tolerance, "a relative width")

    def _epsilon(self, delta: float) -> Bound:
        tolerance = self.settings.tolerance
        for bracket in self._brackets:
            bound = self._read_epsilon(bracket, delta)
            if float(bound.upper) - float(bound.lower) <= tolerance:
                return bound
        cumulants, saddle = saddle_at_delta(self.parts, max(delta, 1e-320))
        if saddle.epsilon < 0.0:
            cumulants, saddle = saddle_at_epsilon(self.parts, 0.0)
        best: Bound | None = None
        width = tolerance
        for _ in range(_REFINEMENTS):
            bracket = self._compose(cumulants, saddle, width)
            best = _sharper(self._read_epsilon(bracket, delta, guess=saddle.epsilon), best)
            self._keep(bracket)
            found = float(best.width)
            if found <= tolerance or bracket.limited:
                break
            width *= max(min(0.8 * tolerance / found, 0.5), 0.02) if found < math.inf else 0.1
            cumulants, saddle = self._again(cumulants, saddle, best)
        assert best is not None
        return _explained(best, float(best.width), tolerance, "a width")

    def _again(self, cumulants: Cumulants, saddle: Saddle, best: Bound) -> tuple[Cumulants, Saddle]:
        """The saddle point for the epsilon found, where it is not the one foretold."""
        found = float(best.upper) if math.isinf(float(best.lower)) or best.lower == 0.0 else float(best.lower)
        if math.isinf(found) or abs(found - saddle.epsilon) * saddle.theta < 0.5:
            return cumulants, saddle
        return saddle_at_epsilon(self.parts, found)

    def _keep(self, bracket: _Bracket) -> None:
        """Remember the newest few compositions."""
        self._brackets.insert(0, bracket)
        del self._brackets[_KEPT:]

    @staticmethod
    def _relative_width(bound: Bound) -> float:
        return float(bound.width) / float(bound.lower) if float(bound.lower) > 0.0 else math.inf * float(bound.width > 0.0)

    def _compose(self, cumulants: Cumulants, saddle: Saddle, width: float) -> _Bracket:
        """Both lattices of every pair around a saddle point, composed."""
        steps = sum(count for _, count in self.parts)
        relative = 1e-4 * min(width * saddle.theta, 1.0)
        window = window_around(cumulants, saddle, math.log(relative))
        layout = common_layout(self.parts, 0.7 * spacing_for(steps, saddle.theta, width))
        limited = False
        if (window.high - window.low) / layout.spacing > self.settings.points:
            limited = True
            layout = common_layout(self.parts, (window.high - window.low) / self.settings.points * 1.3)
        return _Bracket(
            *self._lattices(saddle, relative, window, layout), theta=window.theta, limited=limited or layout.exact
        )

    def _lattices(
        self, saddle: Saddle, relative: float, window: Window, layout: Layout
    ) -> tuple[TiltedComposition, TiltedComposition]:
        """Upper and lower compositions on one layout."""
        steps = sum(count for _, count in self.parts)
        below, above = tail_exponents(steps, saddle, relative)
        uppers: list[tuple[LatticePLD, int]] = []
        lowers: list[tuple[LatticePLD, int]] = []
        for (pair, count), offset in zip(self.parts, layout.offsets, strict=True):
            low, high = pair.loss_range(below, above)
            grid = fitted_grid(
                pair.nodes(above),
                saddle.theta,
                low,
                high,
                spacing=layout.spacing,
                offset=offset,
                equal=pair.is_discrete,
            )
            upper, lower = connect_the_dots(GridCells.of(pair, grid)), tangents(pair, grid, tilt=saddle.theta)
            uppers.append((upper, count))
            lowers.append((lower, count))
        return TiltedComposition(uppers, window), TiltedComposition(lowers, window)

    def _read_delta(self, bracket: _Bracket, epsilon: float) -> Bound:
        upper, lower = bracket.upper.delta(epsilon), bracket.lower.delta(epsilon)
        errors = bracket.upper.budget(epsilon)
        errors["lattice"] = max(upper - lower - sum(errors.values()), 0.0)
        return Bound(min(lower, upper), upper, _METHOD, errors=errors)

    def _read_epsilon(self, bracket: _Bracket, delta: float, guess: float | None = None) -> Bound:
        if guess is None:
            guess = bracket.upper.nearest_epsilon(delta)
        step = 0.02 * self.settings.tolerance
        upper, lower = (
            crossing(side.delta, delta, guess=guess, slope=bracket.theta, step=step, above=above)
            for side, above in ((bracket.upper, True), (bracket.lower, False))
        )
        budget = bracket.upper.budget(upper) if math.isfinite(upper) else {}
        errors = {name: size / (delta * bracket.theta) if delta > 0.0 else math.inf for name, size in budget.items()}
        errors["lattice"] = max(upper - lower - sum(errors.values()), 0.0)
        return Bound(min(lower, upper), upper, _METHOD, errors=errors)


def _sharper(new: Bound, old: Bound | None) -> Bound:
    """The intersection of two certified brackets, with the newer one's errors."""
    if old is None:
        return new
    lower, upper = max(float(new.lower), float(old.lower)), min(float(new.upper), float(old.upper))
    return Bound(lower, upper, new.method, new.notes, new.errors)


def _explained(bound: Bound, found: float, tolerance: float, kind: str) -> Bound:
    """The bound with a note where it is wider than asked for."""
    if found <= tolerance:
        return bound
    note = (
        f"{kind} of {tolerance:g} was asked for and {found:.3g} reached: a finer lattice does not fit the memory allowed"
        " or the rounding errors dominate; allow more points or a larger tolerance"
    )
    return Bound(bound.lower, bound.upper, bound.method, (*bound.notes, note), bound.errors)
