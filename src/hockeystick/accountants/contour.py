"""The contour accountant: the composition curve to nine or more digits, certified, at any number of steps.

Guarantee: lower and upper are certified, rounding included (`engines/contour/curve.py`, docs/derivations/contour.md).
Where the tolerance is out of reach `ContourRefusal` says why. Cost: a few milliseconds for DP-SGD, the same for a
thousand steps and a billion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from hockeystick.accountants.base import Accountant, Array, DirectedCurve, EngineCurve, Parts, Together
from hockeystick.engines.contour.curve import ContourCurve
from hockeystick.engines.together import Quantity, deltas_together, lines_below
from hockeystick.errors import check_fields, check_positive
from hockeystick.laws.loss_sum import PairSum
from hockeystick.numerics.columns import Flags, Places

if TYPE_CHECKING:
    from hockeystick.engines.contour.answers import Answers

_FINEST = 1e-300  # as far out of reach as any finer width, of which parts are below float64


@final
@dataclass(frozen=True)
class Contour(Accountant):
    """Certified brackets by contour integration.

    Parameters
    ----------
    tolerance : float
        Relative width of a bracket of delta; a bracket of epsilon is as wide as this makes it.

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair, SubsampledPair
    >>> curve = Contour().directed(((SubsampledPair(GaussianPair(1.0), 0.01), 2000),))
    >>> print(f"{curve.delta(2.0):.9e}")
    [2.549593193e-04, 2.549593194e-04]
    """

    concurrent: ClassVar[bool] = True

    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        check_fields(self, tolerance=check_positive)

    def directed(self, parts: Parts) -> DirectedCurve:
        return _Curve(ContourCurve(PairSum(parts), min(max(self.tolerance, _FINEST), 1.0)))

    def together(self, curves: Sequence[DirectedCurve]) -> Together | None:
        own = [curve.engine for curve in curves if isinstance(curve, _Curve)]
        return _Curves(own) if len(own) == len(curves) else None


@final
@dataclass(frozen=True, eq=False)
class _Curves(Together):
    """Directions whose deltas a pass answers."""

    engines: Sequence[ContourCurve]

    def answers(self, owners: Places, values: Array, quantity: Quantity) -> Answers | None:
        return deltas_together(self.engines, owners, values) if quantity == "delta" else None

    def are_below(self, own: Places, beside: Places, epsilon: Array, delta: Array, quantity: Quantity) -> Flags:
        lines, others = ([self.engines[row].standing for row in rows] for rows in (own, beside))
        return lines_below(lines, others, epsilon, delta, quantity)


@final
@dataclass(frozen=True, eq=False)
class _Curve(EngineCurve):
    """One direction."""

    engine: ContourCurve

    def is_below(self, epsilon: float, delta: float) -> bool:
        return self.engine.is_below(epsilon, delta)

    def is_below_beside(self, other: DirectedCurve, *, epsilon: float, delta: float, quantity: Quantity) -> bool:
        if not isinstance(other, _Curve):
            return self.is_below(epsilon, delta)
        return self.engine.is_below_beside(other.engine, epsilon, delta, quantity)
