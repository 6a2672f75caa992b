"""A mechanism given by its dominating pairs: anything that is not built in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

from hockeystick.composition import Direction
from hockeystick.errors import UnknownPairError
from hockeystick.laws.base import Pair
from hockeystick.mechanisms.base import Mechanism


@final
@dataclass(frozen=True)
class UserDefined(Mechanism):
    """A mechanism whose dominating pairs the caller states.

    Parameters
    ----------
    remove : Pair
        (P, Q) for (M(D + x), M(D)).
    add : Pair, optional
        For (M(D), M(D + x)); by default the reverse of ``remove``.
    substitute : Pair, optional
        For (M(D + x), M(D + x')); needed under *substitute* and for batches of fixed size. Two records may be exchanged
        either way: unless the pair is known to be symmetric, such batches have no lower side. Pairs of vectors are
        compared with their reverse; a `ContinuousPair` counts as not symmetric.

    Notes
    -----
    Zero-out has the pairs of remove and add: state those for a null record instead where they differ, but not for
    samples, which take a null record to be as good as none. Samples under add are made of the pair for ``add``. Cut
    batches take both, of ``remove`` and of ``substitute``.

    Examples
    --------
    >>> from hockeystick.laws import LaplacePair
    >>> UserDefined(remove=LaplacePair(2.0)).poisson(0.5).pair("remove")
    SubsampledPair(base=LaplacePair(scale=2.0, sensitivity=1.0), rate=0.5)
    """

    stated_by_caller = True
    holds_under_all = True

    remove: Pair
    add: Pair | None = None
    substitute: Pair | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("remove", "add", "substitute"):
            pair = getattr(self, name)
            if not isinstance(pair, Pair) and (pair is not None or name == "remove"):
                raise TypeError(f"{name} must be a pair of hockeystick.laws, such as LaplacePair(2.0), got {pair!r}")

    def pair(self, direction: Direction) -> Pair:
        if direction in {"remove", "zero-out"}:
            return self.remove
        if direction in {"add", "zero-in"}:
            return self.remove.reversed() if self.add is None else self.add
        if self.substitute is None:
            raise UnknownPairError(
                "no pair was stated for substitution; give substitute=, or use adjacency 'add-remove' and no fixed-size"
                " batches"
            )
        return self.substitute

    def to_sample(self, direction: Direction) -> UserDefined:
        return replace(self, remove=self.pair(direction).under(direction), add=None)
