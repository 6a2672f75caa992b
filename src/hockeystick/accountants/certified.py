"""The certified accountant, the default: a proved bracket of the width asked for, by the best engine for the question.

The ends of the range, where nothing needs composing, are in `engines/ends.py`; which engine answers in between, and
why, in `engines/choose.py`.

Guarantee: lower and upper are certified, rounding included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.base import Accountant, DirectedCurve, Parts
from hockeystick.bound import Bound
from hockeystick.engines.choose import EngineName, choose_engine
from hockeystick.engines.ends import BoundedCurve, Engine
from hockeystick.engines.together import Quantity, answers_together
from hockeystick.errors import check_choice, check_count, check_positive

if TYPE_CHECKING:
    from hockeystick.engines.contour.answers import Answers

__all__ = ["Certified"]


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
    engine: EngineName = field(default="automatic", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", check_positive("tolerance", self.tolerance))
        object.__setattr__(self, "points", check_count("points", self.points, minimum=64))
        check_choice("engine", self.engine, ("automatic", "contour", "lattice"))

    def directed(self, parts: Parts) -> DirectedCurve:
        def make_engine(largest_loss: float) -> Engine:
            return choose_engine(
                parts,
                tolerance=self.tolerance,
                points=self.points,
                largest_loss=largest_loss,
                engine=self.engine,
            )

        return _CertifiedCurve(BoundedCurve(parts, make_engine, self.tolerance))

    def together(
        self,
        curves: Sequence[DirectedCurve],
        owners: NDArray[np.intp],
        *,
        values: NDArray[np.float64],
        quantity: Quantity,
    ) -> Answers | None:
        own = [curve.curve for curve in curves if isinstance(curve, _CertifiedCurve)]
        if len(own) < len(curves):
            return None
        return answers_together(own, owners, values, quantity)


@final
@dataclass(frozen=True, eq=False)
class _CertifiedCurve(DirectedCurve):
    """One direction."""

    curve: BoundedCurve

    def delta(self, epsilon: float) -> Bound:
        return self.curve.delta(epsilon)

    def epsilon(self, delta: float) -> Bound:
        return self.curve.epsilon(delta)
