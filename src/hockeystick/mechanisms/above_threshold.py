"""Above-threshold, the sparse vector technique: which of a stream of queries are above a threshold.

The guarantee is that of Lyu, Su and Li 2017, proved in docs/derivations/selection.md, section 3: where the noisy
threshold moves by the sensitivity, every "below" is at least as likely as before, and each "above" costs 2 / b, b the
scale of the query's noise, or 1 / b where all queries move one way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, final

from hockeystick.composition import Direction
from hockeystick.errors import check_choice, check_count, check_fields, check_positive
from hockeystick.laws.base import Pair
from hockeystick.laws.worst_case import LARGEST_EPSILON, WorstCasePair
from hockeystick.mechanisms.base import Mechanism
from hockeystick.numerics.rounding import U, up


@final
@dataclass(frozen=True)
class AboveThreshold(Mechanism):
    """Which queries of a stream are above a threshold, until a number of them were: the sparse vector technique.

    Laplace noise of ``threshold_scale`` is added to the threshold once, fresh Laplace noise of ``query_scale`` to every
    query; what is said of each is above or below, nothing more. The guarantee is pure DP, whatever the number of
    queries: ``epsilon = 1 / threshold_scale + 2 positives / query_scale``, and half the second term for
    monotone queries.

    Parameters
    ----------
    threshold_scale, query_scale : float
        Scales of the noise, in units of the add/remove sensitivity of one query; above 0.
    positives : int
        After so many answers "above" it stops; at least 1.
    queries : {"any", "monotone"}
        Monotone: one record more moves all queries the same way, or not at all (counts do).

    Examples
    --------
    >>> f"{AboveThreshold(4.0, 8.0).epsilon('remove'):.6f}"
    '0.500000'
    """

    adds_noise = False
    origin = "above-threshold: pure DP by Lyu, Su and Li 2017; no lower bound is computed"

    threshold_scale: float
    query_scale: float
    positives: int = field(default=1, kw_only=True)
    queries: Literal["any", "monotone"] = field(default="any", kw_only=True)

    def __post_init__(self) -> None:
        check_fields(self, threshold_scale=check_positive, query_scale=check_positive, positives=check_count)
        check_choice("queries", self.queries, ("any", "monotone"))
        if not self.epsilon("substitute") <= LARGEST_EPSILON:
            raise ValueError(
                f"threshold_scale and query_scale must leave an epsilon of at most {LARGEST_EPSILON:g}, got"
                f" {self.threshold_scale!r} and {self.query_scale!r} with positives {self.positives}; use more noise"
            )

    def epsilon(self, direction: Direction) -> float:
        """The pure-DP guarantee of one run (nats), rounded up."""
        # another record for this one: queries move by twice as much, and not all the same way
        far, each = (2.0, 2.0) if direction == "substitute" else (1.0, 1.0 if self.queries == "monotone" else 2.0)
        return up(far / self.threshold_scale + far * each * float(self.positives) / self.query_scale, 8.0 * U)

    def pair(self, direction: Direction) -> Pair:
        return WorstCasePair(self.epsilon(direction))

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        return ()
