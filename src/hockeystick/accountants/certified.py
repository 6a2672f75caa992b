"""The certified accountant, the default: a proved bracket of the width asked for, by the best engine for the question.

In this order: the ends of the range, where nothing needs composing; closed forms (one step; Gaussians alone); the
outcomes one by one, where these are few (`engines/enumeration/curve.py`); the contour (`engines/contour/curve.py`),
whose cost does not grow with the number of steps and whose brackets are a million times narrower than usually asked
for; where it hands over, lattices (`lattice/curve.py`). What answered is the ``method`` of the result, and a note says
why the contour did not.

Guarantee: lower and upper are certified, rounding included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, Protocol, final

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Bound, Estimate, agreed, at_most, from_sides
from hockeystick.engines.contour.curve import ContourCurve
from hockeystick.engines.contour.placing import ContourRefusal
from hockeystick.engines.ends import composed_infinity, largest_loss
from hockeystick.engines.enumeration.curve import EnumeratedCurve
from hockeystick.engines.lattice.curve import LatticeCurve
from hockeystick.engines.moments.curve import KernelCurve, MomentsCurve
from hockeystick.engines.normal_sum import as_one_gaussian
from hockeystick.errors import PrecisionError, UnknownPairError, check_choice, check_count, check_positive
from hockeystick.laws.base import Pair
from hockeystick.laws.loss_sum import PairSum
from hockeystick.laws.one_step import one_step_delta
from hockeystick.numerics.one_sided_root import one_sided_root
from hockeystick.numerics.rounding import U, up

__all__ = ["Certified"]

Engine = Literal["automatic", "contour", "lattice"]

_TRIVIAL = "trivial"
_NOTHING_HIDDEN = "a step hides nothing: its loss is infinite with probability one, or next to it"
_MOST_STEPS = 1 << 40
_MOST_LOSS = 1e7  # nats of one step
_LOG_TAIL = -60.0
_NEXT_TO_INFINITY = "delta is the mass at infinite loss, to within rounding: epsilon may be infinite"
_CONTOUR_TOLERANCE = 1e-9  # relative width of delta that the contour is asked for
_CONTOUR_WORK = 10_000_000  # for each few parts: beyond, lattices are faster
_SEVERAL = 4
_EVERYDAY = 1e-3  # a tolerance
_COARSE = 1e-2  # of the tolerance asked for: what the contour is asked for where it cannot reach that
_LEAST = 1e-300  # a smaller delta is not asked to be relatively accurate


@final
@dataclass(frozen=True)
class Certified(Accountant):
    """Certified brackets, by the best engine for each question.

    Parameters
    ----------
    tolerance : float
        Width of the epsilon bracket asked for (nats); where delta is asked for, its relative width.
    points : int
        Largest number of lattice points in a window; the working memory is about 60 bytes a point.
    engine : {"automatic", "contour", "lattice"}
        What answers everything but the ends of the range: "contour" and "lattice" one engine alone.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> curve = Certified().directed(((GaussianPair(20.0), 400),))
    >>> curve.epsilon(1e-5).contains(4.37717809568)
    True
    """

    concurrent: ClassVar[bool] = True

    tolerance: float = 1e-3
    points: int = 1 << 23
    engine: Engine = field(default="automatic", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", check_positive("tolerance", self.tolerance))
        object.__setattr__(self, "points", check_count("points", self.points, minimum=64))
        check_choice("engine", self.engine, ("automatic", "contour", "lattice"))

    def directed(self, parts: Parts) -> DirectedCurve:
        return _CertifiedCurve(self, parts)


@final
class _CertifiedCurve(DirectedCurve):
    """One direction: the ends of the range, then the engine."""

    def __init__(self, settings: Certified, parts: Parts) -> None:
        self._parts = parts
        self._tolerance = settings.tolerance
        self._least_largest, self._largest_loss = largest_loss(parts)
        self._at_infinity = composed_infinity(parts)
        self._ever = _ever_drawn(parts)
        self._settings = settings

    @cached_property
    def _engine(self) -> _Engine:
        settings, parts = self._settings, self._parts
        lattice = LatticeCurve(parts, settings.tolerance, settings.points, self._largest_loss)
        if settings.engine == "lattice":
            _check_reach(parts)
            return lattice
        if settings.engine == "contour":
            return ContourCurve(PairSum(parts), _CONTOUR_TOLERANCE)
        small = _closed_form(parts) or self._enumerated()
        if small is not None:
            return small
        _check_reach(parts)
        return _with_contour(parts, lattice)

    def _enumerated(self) -> EnumeratedCurve | None:
        """Every outcome, where they are few."""
        return EnumeratedCurve(self._parts, self._at_infinity) if EnumeratedCurve.serves(self._parts) else None

    def delta(self, epsilon: float) -> Bound:
        if epsilon > self._largest_loss:
            return Bound(*self._at_infinity, _TRIVIAL, notes=("epsilon is beyond the largest loss",))
        if math.isinf(epsilon):
            return Bound(*self._at_infinity, _TRIVIAL)
        if self._at_infinity[1] >= 1.0:
            return Bound(*self._at_infinity, _TRIVIAL, notes=(_NOTHING_HIDDEN,))
        bound = self._engine.delta(epsilon)
        if _relative_width(bound) > self._tolerance:
            bound = self._with_moments(bound, lambda curve: curve.delta(epsilon))
            bound = _explained(bound, _relative_width(bound), f"a relative width of {self._tolerance:g}")
        # E (1 - e^{eps - L})+ is at most what it is where every finite loss is the largest
        # (a difference, expm1 and a sum of two terms of one sign: below 7 u)
        most = up(self._at_infinity[1] - math.expm1(epsilon - self._largest_loss), 8.0 * U)
        note = "the upper side: no loss is larger than the largest"
        if self._ever < most:
            most, note = self._ever, "the upper side: the probability that the record is ever drawn"
        agreed(bound, Bound(self._at_infinity[0], 1.0, "the mass at infinite loss"))
        return _below(bound, most, note)

    def _with_moments(self, bound: Bound, ask: Callable[[MomentsCurve], Bound | Estimate]) -> Bound:
        """A wide bracket, and the moments accountant's upper side where that is smaller."""
        try:
            other = ask(KernelCurve(self._parts, "tight"))
        except PrecisionError:
            return bound
        if isinstance(other, Estimate):
            return bound
        agreed(bound, other)
        return _below(bound, float(other.upper), f"the upper side: {other.method}")

    def epsilon(self, delta: float) -> Bound:
        low, high = self._at_infinity
        largest = max(self._largest_loss, 0.0)
        if delta >= 1.0:
            return Bound(0.0, 0.0, _TRIVIAL)
        if delta < low:
            return Bound(math.inf, math.inf, _TRIVIAL, notes=("delta is below the mass at infinite loss",))
        if self._at_infinity[1] >= 1.0:
            return Bound(0.0, math.inf, _TRIVIAL, notes=(_NOTHING_HIDDEN,))
        if delta >= self._ever:
            note = "delta is at least the probability that the record is ever drawn"
            return Bound(0.0, 0.0, _TRIVIAL, notes=(note,))
        if delta == 0.0:
            lower = max(self._least_largest, 0.0)
            upper = largest if high == 0.0 else math.inf
            return Bound(lower, upper, _TRIVIAL, notes=("delta 0: the largest loss",))
        bound = self._engine.epsilon(delta)
        if delta < high:  # it may be below the mass at infinity, or not
            lower = min(float(bound.lower), largest)  # no contradiction: epsilon may be infinite
            return Bound(lower, math.inf, bound.method, (*bound.notes, _NEXT_TO_INFINITY), bound.errors)
        if float(bound.width) > self._tolerance:
            bound = self._with_moments(bound, lambda curve: curve.epsilon(delta))
            bound = _explained(bound, float(bound.width), f"a width of {self._tolerance:g}")
        # beyond the largest loss only the mass at infinity is left
        if delta == low:  # every epsilon out there has this delta, and the largest loss is the smallest of them
            bound = replace(bound, lower=min(float(bound.lower), largest))
        return at_most(bound, largest, "the largest loss")


def _relative_width(bound: Bound) -> float:
    """Width over the lower side; 0 where delta is too small to be asked for accurately."""
    lower, upper = float(bound.lower), float(bound.upper)
    return 0.0 if upper <= _LEAST else (upper - lower) / lower if lower > 0.0 else math.inf


def _explained(bound: Bound, found: float, asked: str) -> Bound:
    """A bracket that is wider than asked for, with the reason."""
    reason = "what is left is rounding; allow a larger tolerance"
    if "lattice" in bound.method:
        reason = (
            "a finer lattice does not fit the memory allowed or the rounding errors dominate; allow more points or a"
            " larger tolerance"
        )
    note = f"{asked} was asked for and {found:.3g} reached: {reason}"
    return replace(bound, notes=(*bound.notes, note))


def _below(bound: Bound, most: float, note: str) -> Bound:
    """A bracket of what another proof puts at ``most`` or less; the note says where that is the upper side."""
    known = at_most(bound, most, note)
    return replace(known, notes=(*known.notes, note)) if float(bound.upper) > most else bound


def _ever_drawn(parts: Parts) -> float:
    """Upper bound on the probability that any step draws the record: without it both datasets give the same."""
    log_never = 0.0
    for pair, count in parts:
        if pair.sampling_rate >= 1.0:
            return 1.0
        log_never += count * math.log1p(-pair.sampling_rate)
    return min(up(-math.expm1(log_never), 1e-14), 1.0)


def _check_reach(parts: Parts) -> None:
    """Refuse what no engine can serve: more steps, or larger losses, than float64 tells apart."""
    steps = sum(count for _, count in parts)
    if steps > _MOST_STEPS:
        raise PrecisionError(f"{steps} steps are more than the 2^40 that brackets are proved for")
    for pair, _ in parts:
        low, high = pair.loss_range(_LOG_TAIL, _LOG_TAIL)
        if max(-low, high) > _MOST_LOSS:
            raise PrecisionError(
                f"one step of {pair!r} has losses of up to {max(-low, high):.3g} nats, more than the {_MOST_LOSS:g}"
                " that brackets are computed for: epsilon is enormous; use more noise"
            )


class _Engine(Protocol):
    """What answers between the ends of the range."""

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""


@final
class _ContourThenLattice:
    """The contour, first for many digits and then for fewer, and lattices where it hands over."""

    def __init__(self, losses: PairSum, lattice: LatticeCurve) -> None:
        coarse = max(_COARSE * lattice.tolerance, _CONTOUR_TOLERANCE)
        finer = min(max(math.sqrt(_EVERYDAY / lattice.tolerance), 1.0), 25.0)  # lattices then take longer, too
        work = int(_CONTOUR_WORK * finer) * (1 + len(losses.parts) // _SEVERAL)
        self._contours = [ContourCurve(losses, tolerance, work) for tolerance in (_CONTOUR_TOLERANCE, coarse)]
        self._lattice = lattice
        self._tolerance = lattice.tolerance

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        return self._first(
            lambda engine: engine.delta(epsilon),
            lambda bound: float(bound.width) <= self._tolerance * float(bound.lower),
        )

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        return self._first(lambda engine: engine.epsilon(delta), lambda bound: float(bound.width) <= self._tolerance)

    def _first(self, ask: Callable[[_Engine], Bound], enough: Callable[[Bound], bool]) -> Bound:
        """The first answer that is narrow enough, or what all answers together prove."""
        found: list[Bound] = []
        note = ""
        for contour in self._contours:
            try:
                return ask(contour)
            except ContourRefusal as refusal:
                if isinstance(refusal.best, Bound):
                    found.append(refusal.best)
                    if enough(refusal.best):
                        return refusal.best
                note = note or f"the contour handed over: {refusal}"
                if refusal.reason not in {"tail", "width"}:
                    break
        bound = ask(self._lattice)
        bound = replace(bound, notes=(*bound.notes, note))
        return bound if enough(bound) else agreed(bound, *found)


def _with_contour(parts: Parts, lattice: LatticeCurve) -> _Engine:
    """The contour before lattices, where all pairs have a certified transform."""
    try:
        return _ContourThenLattice(PairSum(parts), lattice)
    except UnknownPairError:
        return lattice


@final
class _ClosedForm:
    """A curve whose delta has a closed form: of one step, or of Gaussians."""

    def __init__(self, below: Pair, above: Pair, method: str) -> None:
        self._below, self._above, self._method = below, above, method

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        lower, upper = self._side(epsilon, 0), self._side(epsilon, 1)
        return from_sides(lower, upper, self._method, errors={"rounding": upper - lower})

    def _side(self, epsilon: float, side: int) -> float:
        return one_step_delta(self._above if side else self._below, epsilon)[side]

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        log_delta = math.log(max(delta, 1e-320))
        guess = max(self._above.loss_range(log_delta, log_delta)[1], 0.0)
        step = 1e-12 * max(1.0, guess)
        near, far = self._side(guess, 1), self._side(guess * (1.0 + 1e-3) + 1e-3, 1)
        slope = math.log(near / far) / (1e-3 * guess + 1e-3) if near > far > 0.0 else 1.0

        def beyond(side: int) -> float:
            curve: Callable[[float], float] = lambda eps: self._side(eps, side)  # noqa: E731 - one expression
            return one_sided_root(curve, delta, guess=guess, slope=slope, step=step, above=side == 1)

        lower, upper = beyond(0), beyond(1)
        return from_sides(lower, upper, self._method, errors={"rounding": upper - lower})


def _closed_form(parts: Parts) -> _ClosedForm | None:
    """The closed form that serves this composition, if one does."""
    if len(parts) == 1 and parts[0][1] == 1:
        return _ClosedForm(parts[0][0], parts[0][0], "closed form of one step")
    gaussians = as_one_gaussian(parts)
    return _ClosedForm(*gaussians, "closed form of Gaussians") if gaussians else None
