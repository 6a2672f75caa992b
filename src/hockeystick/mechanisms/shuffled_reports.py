"""The shuffle model: people report through a local randomiser, and only the shuffled reports are seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import final

from hockeystick.composition import Direction, Step
from hockeystick.errors import UnknownPairError, check_count, check_sequence, set_fields
from hockeystick.laws.base import Pair
from hockeystick.laws.blanket import BlanketCurve, Column, CountedReports
from hockeystick.laws.curve import ChordPair
from hockeystick.laws.vectors import probabilities
from hockeystick.numerics.rationals import Probability, exact_probabilities

_MOST_PEOPLE = 100_000


@final
@dataclass(frozen=True)
class ShuffledReports(Step):
    """The reports of all people, shuffled: each draws one from the row of the value it holds.

    The upper bound is that of the privacy blanket (Balle, Bell, Gascon and Nissim 2019), for one person's value
    replaced by any other (*substitute*). The lower bound counts one kind of report where all others hold one value.

    Parameters
    ----------
    rows : tuple of tuple of float or Fraction
        One row of chances for every value that a person may hold, over the same reports; each the exact numbers
        divided by their exact sum.
    people : int
        How many report, from 1 to 100,000.

    Examples
    --------
    >>> ShuffledReports(((0.75, 0.25), (0.25, 0.75)), people=1000).pair("substitute").known.people
    1000
    """

    adds_noise = False
    origin = "shuffled reports: above, the privacy blanket; below, the count of one report, all others alike"

    of_stated_population = True

    rows: tuple[tuple[Probability, ...], ...]
    people: int

    def __post_init__(self) -> None:
        rows: Sequence[Sequence[Probability]] = check_sequence("rows", self.rows)
        exact = tuple(
            tuple(Fraction(chance) for chance in exact_probabilities("rows", probabilities("rows", row)))
            for row in rows
        )
        if len(exact) < 2 or len({len(row) for row in exact}) != 1:
            raise ValueError(f"rows must be at least two, of one length, got {self.rows!r}")
        people = check_count("people", self.people)
        if people > _MOST_PEOPLE:
            raise ValueError(f"people must be at most {_MOST_PEOPLE:,}, got {people:,}; state fewer")
        set_fields(self, rows=exact, people=people)

    def pair(self, direction: Direction) -> Pair:
        if direction != "substitute":
            raise UnknownPairError(
                f"the number of reports is public: no pair is stated for shuffled reports under {direction!r}; use"
                " adjacency 'substitute'"
            )
        return ChordPair(BlanketCurve(tuple(sorted(set(self._choices()))), self.people))

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        if direction != "substitute":
            return None
        chances = [
            (Fraction(first[k]), Fraction(other[k]))
            for first, other in permutations(self.rows, 2)
            for k in range(len(first))
            if 0 < other[k] < first[k] < 1
        ]
        if not chances:
            return ()
        first, other = max(chances, key=lambda pair: (pair[0] / pair[1], pair))
        counted = CountedReports(self.people, first, other)
        return counted, counted.reversed()

    def _choices(self) -> Iterator[tuple[Column, ...]]:
        """For each ordered pair of values its columns, those of one likelihood ratio and blanket together."""
        least = [min(row[k] for row in self.rows) for k in range(len(self.rows[0]))]
        for first, other in permutations(self.rows, 2):
            merged: dict[tuple[Fraction | None, Fraction | None], Column] = {}
            for a, b, m in zip(first, other, least, strict=True):
                key = (Fraction(a) / Fraction(m), Fraction(b) / Fraction(m)) if m else (Fraction(a), Fraction(b))
                share = (key[0], key[1]) if m else (None, key[0] / (key[0] + key[1]) if a + b else None)
                known = merged.get(share, (Fraction(0), Fraction(0), Fraction(0)))
                merged[share] = (known[0] + Fraction(a), known[1] + Fraction(b), known[2] + Fraction(m))
            yield tuple(sorted(merged.values()))
