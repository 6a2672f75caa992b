"""Steps, compositions, directions: what is composed, how often, and which way it is looked at.

A *step* is one release of a mechanism under one sampling scheme; for each direction it has a dominating pair. A
*composition* is steps with counts. A neighbouring relation (*adjacency*) is a set of directions: each is composed
apart, all steps of one direction together, and the maximum over directions is taken at the end (003, section 5).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, final

from hockeystick import notebook
from hockeystick.errors import UnknownPairError, check_choice, check_count, check_sequence
from hockeystick.laws.base import Pair

Direction = Literal["add", "remove", "substitute", "zero-in", "zero-out"]
"""One ordered way of neighbouring.

``remove``: (M(D + x), M(D)), ``add``: the reverse, ``substitute``: (M(D + x), M(D + x')),
``zero-out``: (M(D + x), M(D + null)), ``zero-in``: the reverse.
"""

Adjacency = Literal["add", "remove", "add-remove", "substitute", "zero-out"]
"""A neighbouring relation."""

_CALLERS_WORD = "rests on the caller's word: that the pair stated dominates the mechanism is not checked"
_LARGEST_GROUP = 10**6

ADJACENCIES: dict[str, tuple[Direction, ...]] = {
    "add-remove": ("remove", "add"),
    "add": ("add",),
    "remove": ("remove",),
    "substitute": ("substitute",),
    "zero-out": ("zero-out", "zero-in"),
}
"""The directions of every relation."""


def directions(adjacency: str) -> tuple[Direction, ...]:
    """The directions of a neighbouring relation."""
    return ADJACENCIES[check_choice("adjacency", adjacency, ADJACENCIES)]


class Step(ABC):
    """One release of a mechanism under one sampling scheme: frozen, hashable."""

    origin: ClassVar[str] = ""
    """Where the two sides of a bracket come from, where that is the same in every direction (`provenance`)."""

    @abstractmethod
    def pair(self, direction: Direction) -> Pair:
        """The dominating pair for one direction.

        Raises
        ------
        UnknownPairError
            Where none is known; the message says what to use instead.
        """

    def pairs(self, direction: Direction) -> tuple[tuple[Pair, int], ...]:
        """Pairs whose composition dominates the step, with their counts: `pair`, once, for nearly every step."""
        return ((self.pair(direction), 1),)

    def to_sample(self, direction: Direction) -> Step:
        """What a sample in one direction is made of: a step whose pair under *remove* `Pair.under` turns back."""
        return self

    def same_pairs(self, direction: Direction) -> tuple[tuple[Pair, int], ...]:
        """`pairs`, the same objects whenever it is asked: runs of one step share what these know of themselves."""
        if direction not in self._same_pairs:
            self._same_pairs[direction] = self.pairs(direction)
        return self._same_pairs[direction]

    @cached_property
    def _same_pairs(self) -> dict[Direction, tuple[tuple[Pair, int], ...]]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_same_pairs"}

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        """Pairs that neighbouring datasets attain, where `pair` is an upper bound only.

        One record may show any of them in any step. None where `pair` itself is attained, so that both sides of a
        bracket come from it; empty where no pair is known, so that the lower side is trivial.
        """
        return None

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        """Where the two sides of a bracket come from, where `attained` is not None: notes for the reader."""
        return (self.origin,) if self.origin else ()

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        """The dominating pair of one direction for a group: up to that many records, all of them changed at once.

        Raises
        ------
        UnknownPairError
            Where none is proved; the message says what to use instead.
        """
        raise UnknownPairError(
            f"no dominating pair is proved for a group of {size} under {self!r}; account for one record, and take"
            f" curve.group_epsilon(delta, size={size}), which bounds a group's epsilon from above for any run"
        )

    def attained_by_group(self, direction: Direction, size: int) -> tuple[Pair, ...] | None:
        """What `attained` is, for a group."""
        return None

    def for_group(self, size: int) -> Step | Composition:
        """The step as it counts for a group of up to ``size`` records, such as a household.

        Examples
        --------
        >>> import hockeystick as hs
        >>> hs.Gaussian(2.0).for_group(5).pair("remove")
        GaussianPair(sigma=2.0, sensitivity=5.0)
        """
        members = check_count("size", size)
        if members > _LARGEST_GROUP:
            raise ValueError(f"size, of a group, must be at most {_LARGEST_GROUP:,}, got {members:,}")
        return self if members == 1 else Grouped(self, members)

    @property
    def of_stated_population(self) -> bool:
        """Whether the pair is that of a stated number of records, so that other numbers have others."""
        return False

    @property
    def stated_by_caller(self) -> bool:
        """Whether the caller states the pair, so that nothing here can know that it dominates the mechanism."""
        return False

    @property
    def adds_noise(self) -> bool:
        """Whether a step adds noise to a sum, so that its size counts in units of the sensitivity."""
        return not self.stated_by_caller

    @property
    def contribution(self) -> tuple[str, str]:
        """Where noise is added to a sum: what one record adds to it, and by how much replacing that changes it."""
        return "a value of size at most C", "2 C"

    @property
    def releases(self) -> int:
        """How many outputs one step has."""
        return 1

    @property
    def words(self) -> str:
        """What one step releases, in words that name every parameter; empty where its name and parameters say it."""
        return ""

    def __mul__(self, count: int) -> Composition:
        return Composition(((self, check_count("count", count)),))

    __rmul__ = __mul__

    def __add__(self, other: Step | Composition) -> Composition:
        return Composition(((self, 1),)) + other


@final
@dataclass(frozen=True)
class Grouped(Step):
    """A step as it counts for a group of records, which neighbouring datasets differ by: made by `Step.for_group`.

    Which pair dominates is the step's own knowledge: docs/derivations/groups.md.
    """

    step: Step
    size: int

    def pair(self, direction: Direction) -> Pair:
        return self.step.pair_of_group(direction, self.size)

    def attained(self, direction: Direction) -> tuple[Pair, ...] | None:
        return self.step.attained_by_group(direction, self.size)

    def pair_of_group(self, direction: Direction, size: int) -> Pair:
        return self.step.pair_of_group(direction, size * self.size)

    def attained_by_group(self, direction: Direction, size: int) -> tuple[Pair, ...] | None:
        return self.step.attained_by_group(direction, size * self.size)

    @property
    def of_stated_population(self) -> bool:
        return self.step.of_stated_population

    @property
    def stated_by_caller(self) -> bool:
        return self.step.stated_by_caller

    @property
    def adds_noise(self) -> bool:
        return self.step.adds_noise

    @property
    def contribution(self) -> tuple[str, str]:
        return self.step.contribution

    @property
    def releases(self) -> int:
        return self.step.releases


@final
@dataclass(frozen=True)
class Composition:
    """Steps with their counts; the order does not matter.

    Attributes
    ----------
    steps : tuple of (Step, int)
        Each distinct step once: equal steps are merged and their counts added.

    Examples
    --------
    >>> import hockeystick as hs
    >>> run = hs.Gaussian(1.0) * 3 + hs.Laplace(2.0)
    >>> run.total_steps
    4
    >>> run == hs.Laplace(2.0) + hs.Gaussian(1.0) * 3
    True
    """

    steps: tuple[tuple[Step, int], ...]

    def __post_init__(self) -> None:
        counts: dict[Step, int] = {}
        for step, count in map(_counted, check_sequence("steps", self.steps)):
            if not isinstance(step, Step):
                raise TypeError(f"a composition holds steps, got {step!r} of type {type(step).__name__}")
            counts[step] = check_count("count", counts.get(step, 0) + check_count("count", count))
        if not counts:
            raise ValueError("a composition needs at least one step")
        object.__setattr__(self, "steps", tuple(counts.items()))

    @property
    def total_steps(self) -> int:
        """Sum of the counts."""
        return sum(count for _, count in self.steps)

    @cached_property
    def _ordered(self) -> tuple[tuple[Step, int], ...]:
        """The steps in an order of their own: compositions that are equal get the same answers to the last bit."""
        return tuple(sorted(self.steps, key=repr)) if len(self.steps) > 1 else self.steps

    def pairs(self, direction: Direction) -> tuple[tuple[Pair, int], ...]:
        """Distinct dominating pairs of one direction with their counts."""
        several = [(step.same_pairs(direction), count) for step, count in self._ordered]
        if len(several) == 1 and len(several[0][0]) == 1:
            ((((pair, times),), count),) = several
            return ((pair, times * count),)
        counts: dict[Pair, int] = {}
        for own, count in several:
            for pair, times in own:
                counts[pair] = counts.get(pair, 0) + times * count
        return tuple(counts.items())

    def attained(self, direction: Direction) -> tuple[tuple[tuple[Pair, ...], int], ...] | None:
        """The attained pairs of every step with their counts; None where the pairs of all steps are attained."""
        if all(step.attained(direction) is None for step, _ in self.steps):
            return None
        counts: dict[tuple[Pair, ...], int] = {}
        for step, count in self._ordered:
            own = step.attained(direction)
            shown = [((pair,), times) for pair, times in step.pairs(direction)] if own is None else [(own, 1)]
            for pairs, times in shown:
                counts[pairs] = counts.get(pairs, 0) + times * count
        return tuple(counts.items())

    def provenance(self, direction: Direction) -> tuple[str, ...]:
        """The notes of all steps on where the two sides come from, each once."""
        return tuple(dict.fromkeys(note for step, _ in self.steps for note in step.provenance(direction)))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = [(notebook.times(count), repr(step)) for step, count in self.steps]
        return notebook.table("Composition", notebook.most(rows))

    def to_pandas(self) -> Any:
        """A data frame with the columns ``step`` and ``count``, one row a distinct step; needs pandas."""
        return notebook.frame({"step": [step for step, _ in self.steps], "count": [count for _, count in self.steps]})

    @property
    def notes(self) -> tuple[str, ...]:
        """What holds of every answer about the composition, whatever the accountant."""
        return (_CALLERS_WORD,) if any(step.stated_by_caller for step, _ in self.steps) else ()

    def for_group(self, size: int) -> Composition:
        """The composition as it counts for a group of up to ``size`` records, such as a household (`Step.for_group`).

        Examples
        --------
        >>> import hockeystick as hs
        >>> household = (hs.Laplace(10.0) * 3).for_group(5)
        >>> household.pairs("remove")
        ((LaplacePair(scale=10.0, sensitivity=5.0), 3),)
        """
        return compose([(step.for_group(size) * count, 1) for step, count in self.steps])

    def __mul__(self, count: int) -> Composition:
        times = check_count("count", count)
        return Composition(tuple((step, own * times) for step, own in self.steps))

    __rmul__ = __mul__

    def __add__(self, other: Step | Composition) -> Composition:
        if isinstance(other, Step):
            return Composition((*self.steps, (other, 1)))
        if isinstance(other, Composition):
            return Composition((*self.steps, *other.steps))
        return NotImplemented

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composition) and dict(self.steps) == dict(other.steps)

    def __hash__(self) -> int:
        return hash(frozenset(self.steps))


def _counted(item: Any) -> tuple[Any, Any]:
    """A step and its count."""
    if not (isinstance(item, tuple) and len(item) == 2):
        raise TypeError(f"steps must hold steps, or pairs of a step and a count, got {item!r}")
    return item


def compose(steps: Iterable[tuple[Step | Composition, int] | Step | Composition]) -> Composition:
    """The composition of steps, or of ``(step, count)`` pairs.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.compose([(hs.Gaussian(1.0), 2), hs.Laplace(2.0)]).total_steps
    3
    """
    if isinstance(steps, Step | Composition):
        raise TypeError("compose takes a list of steps; for one step write step * count")
    parts: list[tuple[Step, int]] = []
    for item in check_sequence("steps", steps):
        step, count = _counted(item) if isinstance(item, tuple) else (item, 1)
        parts.extend((step * count).steps if isinstance(step, Composition) else [(step, count)])
    return Composition(tuple(parts))
