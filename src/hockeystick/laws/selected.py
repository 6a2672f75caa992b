"""The best of a random number of runs, as a pair: what is known of it is its curve, by way of the base run's.

See docs/derivations/selection.md, section 5, and `engines/selection.py`, which computes the curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.laws.base import Pair
from hockeystick.laws.run_count import RunCount
from hockeystick.laws.without_windows import WithoutWindows

__all__ = ["SelectedPair"]


@final
@dataclass(frozen=True)
class SelectedPair(WithoutWindows):
    """The winner's pair.

    Parameters
    ----------
    parts : tuple of (Pair, int)
        The dominating pairs of one run, with their counts.
    count : RunCount
        The number of runs.
    """

    parts: tuple[tuple[Pair, int], ...]
    count: RunCount

    @property
    def selection(self) -> tuple[tuple[tuple[Pair, int], ...], RunCount]:
        return self.parts, self.count

    @property
    def reason(self) -> str:
        return (
            "the best of many runs is known by its curve: account for it alone, unsampled, once, with the certified"
            " accountant"
        )

    def reversed(self) -> Pair:
        return SelectedPair(tuple((pair.reversed(), count) for pair, count in self.parts), self.count)
