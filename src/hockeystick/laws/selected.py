"""The best of a random number of runs, as a pair: what is known of it is its curve, by way of the base run's.

See docs/derivations/selection.md, section 5, and `engines/selection.py`, which computes the curve.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from hockeystick.laws.base import Pair, Parts, Selection
from hockeystick.laws.run_count import RunCount
from hockeystick.laws.without_windows import WithoutWindows

SHARES = (1.0, 0.97, 0.9, 0.5, 0.2, 0.05, 0.01, 0.001)
"""Of P, that rank below all others, in the orders that stand for what datasets show."""


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
    share : float, optional
        What datasets show where the outputs of largest loss, this share of P, rank below all others, and among
        themselves by loss; by default, what holds whatever the order of the outputs.
    """

    reason = "the best of many runs is known by its curve: account for it unsampled, with the certified accountant"

    parts: Parts
    count: RunCount
    share: float | None = None

    def orders(self) -> tuple[SelectedPair, ...]:
        """What datasets show in some orders of the outputs."""
        return tuple(replace(self, share=share) for share in SHARES)

    @property
    def selection(self) -> Selection:
        return Selection(self.parts, self.count, self.share)

    def reversed(self) -> Pair:
        if self.share is not None:
            self._refuse()  # the order is the same one, which is another where losses are reversed
        return SelectedPair(tuple((pair.reversed(), count) for pair, count in self.parts), self.count)
