"""Two engines, of which the second is asked where the first does not answer as narrowly as is wanted and it might.

Nothing here is proved: each engine proves what it answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np

from hockeystick.bound import Bound
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.ends import Answerer
from hockeystick.errors import TooManyOutcomesError
from hockeystick.numerics.columns import Array, Flags

_ROUNDED = 8.0  # times its rounding, up to which a bracket has little else in it: no engine does much better


@final
class Narrower:
    """Two engines, the second of which is asked where the first does not answer, or less narrowly than to a width.

    What is narrow but for its rounding is narrow enough.
    """

    def __init__(self, first: Answerer, second: Answerer, width: float) -> None:
        self._first, self._second, self._width = first, second, width

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        return self._ask(lambda engine: engine.delta(epsilon), relative=True)

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        return self._ask(lambda engine: engine.epsilon(delta), relative=False)

    def is_enough(self, lower: Array, upper: Array, rounding: Array, *, relative: bool) -> Flags:
        """Which brackets of the first are answers, with so much rounding inside; relative to their size, or not."""
        wanted = self._width * lower if relative else np.full_like(lower, self._width)
        return np.asarray(upper - lower <= np.maximum(wanted, _ROUNDED * rounding))

    def _ask(self, ask: Callable[[Answerer], Bound], *, relative: bool) -> Bound:
        refusal = None
        try:
            found = ask(self._first)
            lower, upper, rounding = np.array([[*found.sides, found.errors.get("rounding", 0.0)]]).T
            if upper == lower or self.is_enough(lower, upper, rounding, relative=relative):
                return found
        except ContourRefusal as refused:
            refusal = refused
        try:
            other = ask(self._second)
        except (ContourRefusal, TooManyOutcomesError) as refused:
            if refusal is not None:
                raise (refusal if refused.best is None else refused) from None
            return found
        return other if refusal is not None else min(found, other, key=lambda bound: float(bound.width))
