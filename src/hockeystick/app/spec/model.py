"""A specification: a run, the guarantee asked for, and the circumstances a reader must know.

It is the one value behind every command: read from a file, or put together from options, then accounted, compared,
reported and verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from hockeystick import mechanisms as mechanism_room
from hockeystick.account import account
from hockeystick.accountants.base import Accountant
from hockeystick.app.report.numbers import plural
from hockeystick.app.spec.cautions import Stated, cautions
from hockeystick.app.spec.entries import Choice, StepEntry
from hockeystick.app.spec.registry import AUTOMATIC, accountants, counts
from hockeystick.composition import Composition, compose
from hockeystick.curve import PrivacyCurve

if TYPE_CHECKING:
    from hockeystick.laws.run_count import RunCount


@final
@dataclass(frozen=True)
class Specification(Stated):
    """A run and the guarantee asked for.

    Attributes
    ----------
    steps : tuple of StepEntry
        What is released.
    adjacency : str
        The neighbouring relation.
    unit : str
        The unit of privacy: what one record is.
    group_size : int
        How many records neighbouring datasets differ by, at most: the size of a household, say.
    deltas, epsilons : tuple of float
        Where to read the curve: epsilon at these deltas, delta at these epsilons.
    accountant : Choice
        The method; `AUTOMATIC` leaves the choice to `hockeystick.account` and takes a ``tolerance``.
    title : str
        What the run is called.
    circumstances : Circumstances
        What accounting cannot see.
    tuning : Choice or None
        How often all the steps are run before the best run is released (`counts`); None where they are run once.
    """

    @property
    def questions(self) -> list[tuple[str, float]]:
        """Where to read the curve: what is asked for, "epsilon" or "delta", and at which value of the other."""
        return [("epsilon", delta) for delta in self.deltas] + [("delta", epsilon) for epsilon in self.epsilons]

    @property
    def composition(self) -> Composition:
        """What is released: the run, or the best of many, as it counts for a group of the size stated."""
        run, runs = compose([(entry.step, entry.count) for entry in self.steps]), self.runs
        whole = run if runs is None else mechanism_room.select_best(run, count=runs) * 1
        return whole.for_group(self.group_size)

    @property
    def runs(self) -> RunCount | None:
        """The law of how often the steps are run; None where they are run once."""
        if self.tuning is None:
            return None
        law: RunCount = counts()[self.tuning.name].build(**self.tuning.arguments)
        return law

    @property
    def protected(self) -> str:
        """Whom the guarantee is for, in a sentence: "one example", or "a group of up to 5 examples"."""
        return f"one {self.unit}" if self.group_size == 1 else f"a group of up to {self.group_size} {plural(self.unit)}"

    @property
    def alike(self) -> tuple[list[StepEntry], ...]:
        """The steps, those that are alike together."""
        alike: dict[tuple[Choice, Choice | None], list[StepEntry]] = {}
        for entry in self.steps:
            alike.setdefault((entry.mechanism, entry.sampling), []).append(entry)
        return tuple(alike.values())

    @property
    def kinds(self) -> tuple[StepEntry, ...]:
        """The steps with all that are alike as one: their counts added, their names and notes listed."""
        return tuple(map(together, self.alike))

    @property
    def broken(self) -> tuple[str, ...]:
        """What the specification itself says is not as accounted: nothing is certified then."""
        return tuple(caution.text for caution in cautions(self) if caution.broken)

    def broken_at(self, deltas: Iterable[float]) -> tuple[str, ...]:
        """The same, where epsilon is asked for at more deltas, such as that of a budget."""
        return replace(self, deltas=tuple(dict.fromkeys((*self.deltas, *deltas)))).broken

    @property
    def method(self) -> Accountant | None:
        """The accountant; None leaves the choice to `hockeystick.account`."""
        if self.accountant.name == AUTOMATIC:
            return None
        built: Accountant = accountants()[self.accountant.name].build(**self.accountant.arguments)
        return built

    @property
    def curve(self) -> PrivacyCurve:
        """The privacy curve, by the accountant named."""
        if self.accountant.name == AUTOMATIC:
            return account(self.composition, self.adjacency, **self.accountant.arguments)
        return account(self.composition, self.adjacency, accountant=self.method)

    def document(self) -> dict[str, Any]:
        """The specification as a file holds it; reading it gives an equal specification."""
        guarantee = {
            "adjacency": self.adjacency,
            "unit": self.unit,
            "group_size": self.group_size if self.group_size > 1 else None,
            "delta": _one_or_many(self.deltas),
            "epsilon": _one_or_many(self.epsilons),
        }
        tables = {
            "version": 1,
            "title": self.title or None,
            "steps": [_step_document(entry) for entry in self.steps],
            "tuning": _choice_document("runs", self.tuning),
            "guarantee": _stated(guarantee),
            "accountant": _choice_document("method", self.accountant),
            "circumstances": _stated(vars(self.circumstances)) or None,
        }
        return _stated(tables)


def together(entries: Sequence[StepEntry]) -> StepEntry:
    """Steps that are alike as one; a note that is not of all of them stands beside the name of its step."""
    names, notes = ([getattr(entry, key) for entry in entries] for key in ("name", "note"))
    if len(set(notes)) > 1:
        notes = [f"{name}: {note}" if name and note else note for name, note in zip(names, notes, strict=True)]
    name, note = ("; ".join(dict.fromkeys(filter(None, texts))) for texts in (names, notes))
    return replace(entries[0], count=sum(entry.count for entry in entries), name=name, note=note)


def _one_or_many(values: tuple[float, ...]) -> float | list[float] | None:
    if len(values) == 1:
        return values[0]
    return list(values) or None


def _stated(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value is not None}


def _choice_document(key: str, choice: Choice | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in choice.parameters}
    return {key: choice.name, **values}


def _step_document(entry: StepEntry) -> dict[str, Any]:
    table = {
        **(_choice_document("mechanism", entry.mechanism) or {}),
        "sampling": _choice_document("scheme", entry.sampling),
        "count": entry.count,
        "name": entry.name or None,
        "note": entry.note or None,
    }
    return _stated(table)
