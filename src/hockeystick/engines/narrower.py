"""Two engines, of which the second is asked where the first does not answer as narrowly as is wanted and it might.

Nothing here is proved: each engine proves what it answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from hockeystick.bound import Bound
from hockeystick.engines.contour.refusal import ContourRefusal
from hockeystick.engines.ends import Engine
from hockeystick.engines.enumeration.outcomes import TooManyOutcomesError

_ROUNDED = 8.0  # times its rounding, up to which a bracket has little else in it: no engine does much better


@final
class Narrower:
    """Two engines, the second of which is asked where the first does not answer, or less narrowly than to a width.

    What is narrow but for its rounding is narrow enough.
    """

    def __init__(self, first: Engine, second: Engine, width: float) -> None:
        self._first, self._second, self._width = first, second, width

    def delta(self, epsilon: float) -> Bound:
        """Certified delta(epsilon)."""
        return self._ask(lambda engine: engine.delta(epsilon), lambda bound: self._width * float(bound.lower))

    def epsilon(self, delta: float) -> Bound:
        """Certified epsilon at ``delta``."""
        return self._ask(lambda engine: engine.epsilon(delta), lambda _: self._width)

    def is_below(self, epsilon: float, delta: float) -> bool:
        """Whether the first proves ``delta(epsilon) <= delta``."""
        return self._first.is_below(epsilon, delta)

    def _ask(self, ask: Callable[[Engine], Bound], width: Callable[[Bound], float]) -> Bound:
        refusal = None
        try:
            found = ask(self._first)
            if float(found.width) <= max(width(found), _ROUNDED * found.errors.get("rounding", 0.0)):
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
