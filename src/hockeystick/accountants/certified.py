"""The certified accountant, the default: a proved bracket of the width asked for, by the best engine for the question.

The ends of the range, where nothing needs composing, are in `engines/ends.py`; which engine answers in between, and
why, in `engines/choose.py`.

Guarantee: lower and upper are certified, rounding included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast, final, get_args

from hockeystick.accountants.base import Accountant, Array, DirectedCurve, EngineCurve, Parts, Together
from hockeystick.bound import Bound, Estimate
from hockeystick.engines.choose import EngineName, choose_engine
from hockeystick.engines.ends import BoundedCurve
from hockeystick.engines.together import Quantity, answers_together, below_together, is_below_beside
from hockeystick.errors import check_choice, check_count, check_fields, check_positive, set_fields
from hockeystick.laws.base import Pair, any_guarantee
from hockeystick.numerics.columns import Flags, Places

if TYPE_CHECKING:
    from hockeystick.engines.contour.answers import Answers
    from hockeystick.engines.selected import Answering
    from hockeystick.engines.selection import SelectedCurve


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
        What answers everything but the ends of the range; "contour" and "lattice" one engine alone.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> curve = Certified().directed(((GaussianPair(20.0), 400),))
    >>> curve.epsilon(1e-5).contains(4.3771780956812246)
    True
    """

    concurrent: ClassVar[bool] = True

    tolerance: float = 1e-3
    points: int = 1 << 23
    engine: EngineName = field(default="automatic", kw_only=True)

    def __post_init__(self) -> None:
        check_fields(self, tolerance=check_positive)
        set_fields(self, points=check_count("points", self.points, minimum=64))
        check_choice("engine", self.engine, get_args(EngineName))

    def directed(self, parts: Parts) -> DirectedCurve:
        if any(pair.selection is not None for pair, _ in parts):
            return self._selected(parts)
        windows = not any(pair.is_known_by_moments_alone for pair, _ in parts)
        composed = tuple(own for pair, count in parts for own in pair.composed(count))
        curve = self._by_windows(composed) if windows else None
        if not any_guarantee(parts) or self.attains(parts):
            return cast("DirectedCurve", curve)
        if curve is not None and parts[0][1] == len(parts) == 1 and self.engine == "automatic":
            return _UpperSide(curve)  # to a rounding the largest of all that one step may be: moments say no more
        from hockeystick.engines.moments.guarantee import GuaranteeCurve  # engines that few answers need load late

        return _UpperSide(GuaranteeCurve(parts), curve)

    def _selected(self, parts: Parts) -> DirectedCurve:
        """The best of many runs, alone or among other steps."""
        from hockeystick.engines.selected import above, selected_curve

        pair, count = parts[0]
        if pair.selection is not None and len(parts) == count == 1:
            return _CertifiedCurve(selected_curve(self, pair.selection))
        return _UpperSide(self.directed(tuple((above(self, pair), count) for pair, count in parts)))

    def attains(self, parts: Parts) -> bool:
        ((pair, count), *others) = parts
        # an engine that is insisted on composes a law above the curve, of which the lower side tells nothing
        return self.engine == "automatic" and not others and pair.attains_together(count)

    def shown_by(self, pair: Pair) -> Pair:
        if pair.selection is None:
            return pair
        from hockeystick.engines.selected import below

        return below(self, pair)

    def _by_windows(self, parts: Parts) -> DirectedCurve:
        engine = partial(choose_engine, parts, tolerance=self.tolerance, points=self.points, engine=self.engine)
        return _CertifiedCurve(BoundedCurve(parts, engine, self.tolerance))

    def together(self, curves: Sequence[DirectedCurve]) -> Together | None:
        own = [curve.engine for curve in curves if isinstance(curve, _CertifiedCurve)]
        found = [engine for engine in own if isinstance(engine, BoundedCurve)]
        return _CertifiedCurves(found) if len(found) == len(curves) else None


@final
@dataclass(frozen=True, eq=False)
class _CertifiedCurves(Together):
    """Curves that a pass serves."""

    engines: Sequence[BoundedCurve]

    def answers(self, owners: Places, values: Array, quantity: Quantity) -> Answers:
        return answers_together(self.engines, owners, values, quantity)

    def are_below(self, own: Places, beside: Places, epsilon: Array, delta: Array, quantity: Quantity) -> Flags:
        curves, others = ([self.engines[row] for row in rows] for rows in (own, beside))
        return below_together(curves, others, epsilon, delta, quantity)


@final
@dataclass(frozen=True, eq=False)
class _CertifiedCurve(EngineCurve):
    """One direction."""

    engine: BoundedCurve | SelectedCurve

    def is_below(self, epsilon: float, delta: float) -> bool:
        return isinstance(self.engine, BoundedCurve) and self.engine.is_below(epsilon, delta)

    def is_below_beside(self, other: DirectedCurve, *, epsilon: float, delta: float, quantity: Quantity) -> bool:
        own, beside = self.engine, other.engine if isinstance(other, _CertifiedCurve) else None
        if not (isinstance(own, BoundedCurve) and isinstance(beside, BoundedCurve)):
            return self.is_below(epsilon, delta)
        return is_below_beside(own, beside, epsilon, delta, quantity)


@final
@dataclass(frozen=True, eq=False)
class _UpperSide(EngineCurve):
    """Curves above all that the steps stand for, or every score: the smaller of their upper sides.

    Their lower sides are no bounds for these, so they are left to `attained`.
    """

    other: DirectedCurve | None = None

    def read(self, ask: Callable[[Answering], Bound | Estimate]) -> Bound:
        found = [cast("Bound", ask(curve)) for curve in (self.engine, self.other) if curve is not None]
        return replace(min(found, key=lambda bound: float(bound.upper)), lower=0.0)
