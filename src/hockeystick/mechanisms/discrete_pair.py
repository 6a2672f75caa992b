"""A mechanism given by two probability vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import UnknownPairError, check_fields
from hockeystick.laws import vectors
from hockeystick.laws.base import Pair
from hockeystick.mechanisms.base import Mechanism
from hockeystick.numerics.rationals import Probability


@final
@dataclass(frozen=True)
class DiscretePair(Mechanism):
    """A mechanism whose outcomes have the probabilities p with the record and q without it.

    They are the pair under *remove* and *zero-out*; *add* and *zero-in* have the reverse. Under *substitute* they say
    nothing: state that pair with `UserDefined`.

    Parameters
    ----------
    p, q : sequence of float or Fraction
        Probabilities of one length, each vector summing to 1 within 1e-9: exact numbers, of which the pair is each
        divided by the exact sum. Where only p has mass the loss is infinite.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.account(hs.DiscretePair([0.5, 0.5], [0.25, 0.75]), "remove").delta(epsilon=0.0).contains(0.25)
    True
    """

    stated_by_caller = True

    p: tuple[Probability, ...]
    q: tuple[Probability, ...]

    def __post_init__(self) -> None:
        check_fields(self, p=vectors.probabilities, q=vectors.probabilities)
        vectors.DiscretePair(self.p, self.q)  # refuses what is no pair

    def pair(self, direction: Direction) -> Pair:
        if direction == "substitute":
            raise UnknownPairError(
                "two vectors, with and without the record, say nothing about 'substitute'; state that pair with"
                " UserDefined(remove=..., substitute=...), or use adjacency 'add-remove'"
            )
        return vectors.DiscretePair(self.p, self.q).under(direction)
