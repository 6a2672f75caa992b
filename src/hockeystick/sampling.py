"""Sampling: how the records of one step are chosen, and what that does to its dominating pair.

The table of DESIGN section 2, for a base mechanism whose pair under *remove* is (P, Q), with rate g:

- none: (P, Q) under remove, the reverse under add;
- Poisson (every record takes part independently with probability g): ((1 - g) Q + g P, Q) under remove, the reverse under
  add (003, Theorem 10, after Zhu, Dong and Wang 2022, Theorem 11); zero-out has the same pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.composition import Direction, Step
from hockeystick.errors import UnknownPairError, check_rate
from hockeystick.pairs.base import Pair

__all__ = ["Poisson"]

_AS_REMOVE: dict[str, Direction] = {"zero-out": "remove", "zero-in": "add"}


@final
@dataclass(frozen=True)
class Poisson(Step):
    """A step on a Poisson sample: every record takes part independently with the same probability.

    Parameters
    ----------
    mechanism : Step
        What is applied to the sample.
    rate : float
        Probability of taking part, in (0, 1].
    """

    mechanism: Step
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check_rate("rate", self.rate))

    def pair(self, direction: Direction) -> Pair:
        direction = _AS_REMOVE.get(direction, direction)
        if direction == "remove":
            return self.mechanism.pair("remove").subsampled(self.rate)
        if direction == "add":
            return self.mechanism.pair("remove").subsampled(self.rate).reversed()
        raise UnknownPairError(
            f"no dominating pair is known for {self.mechanism!r} with Poisson sampling under {direction!r};"
            " use adjacency 'add-remove' or 'zero-out'"
        )
