"""What a ledger holds: data sets, kinds of releases, and entries, as plain data with a hash.

A *kind* is one step with its sampling, written exactly (floats in hexadecimal) and named by the hash of its text. An
entry counts kinds. Its hash covers the data set, its number, its text and the hash of the entry before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Protocol, final, runtime_checkable

from hockeystick.composition import ADJACENCIES, Composition, Grouped, Step
from hockeystick.errors import check_choice
from hockeystick.ledger.errors import LedgerError, TamperedError
from hockeystick.ledger.rules import Budget, check_rule
from hockeystick.odometer.steps import decode_step, encode_step

GENESIS = "0" * 64
"""What stands for the hash before the first entry."""

PERIODS = {"year": "%Y", "month": "%Y-%m", "": ""}
"""How long a budget lasts, and how its name is made from a time."""

SETTLES = {"commit": ("reserve",), "release": ("reserve",), "correct": ("spend", "commit", "release", "correct")}
"""What an entry may refer to, by its action."""

_LONGEST = 200
_OF_DATA_SET = ("name", "unit", "adjacency", "rule", "period")
_BESIDE = ("dataset", "number", "previous")  # what stands beside the content of an entry


@runtime_checkable
class _Specified(Protocol):
    """A specification, as `hockeystick.spec` reads one."""

    @property
    def composition(self) -> Composition:
        """The run."""

    @property
    def adjacency(self) -> str:
        """The neighbouring relation."""

    @property
    def unit(self) -> str:
        """What one record is."""

    @property
    def group_size(self) -> int:
        """How many records change at once."""

    def broken_at(self, deltas: Iterable[float]) -> Sequence[str]:
        """What it says itself is not as accounted, where epsilon is asked for at these deltas, too."""


Release = Step | Composition | _Specified
"""What is released."""


def canonical(document: Mapping[str, Any]) -> str:
    """The one text of plain data."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(*parts: str) -> str:
    """The hash of texts, with where each ends."""
    texts = map(str, parts)  # what a damaged database holds in place of one
    return hashlib.sha256("".join(f"{len(text)}:{text}" for text in texts).encode()).hexdigest()


def composition_of(release: object, known: DataSet) -> Composition:
    """The composition of what is released, if it is meant for this data set's relation and unit."""
    if isinstance(release, Step | Composition):
        run = release * 1
        _check_of_one_record(max((step.size for step, _ in run.steps if isinstance(step, Grouped)), default=1))
        for step, _ in run.steps:
            kind_of(step)  # what no entry holds, such as the best of many runs, is not said to fit
        return run
    if isinstance(release, _Specified):
        _check_of_one_record(release.group_size)
        if release.adjacency != known.adjacency:
            raise LedgerError(
                f"the data set counts neighbours by {known.adjacency}, the specification by {release.adjacency}"
            )
        if release.unit != known.unit:
            raise LedgerError(
                f"the data set's budget is for each {known.unit}, the specification's guarantee for each"
                f" {release.unit}: account the release for one {known.unit}, and write unit = {json.dumps(known.unit)}"
                " under [guarantee]"
            )
        return composition_of(release.composition, known)
    raise TypeError(f"a release is a step, a composition or a specification, got {type(release).__name__}")


def _check_of_one_record(size: int) -> None:
    if size > 1:
        raise LedgerError(
            f"a budget is for one record at a time, and this release is stated for groups of {size}: leave out"
            " group_size; what the ledger admits is recorded for one record"
        )


def broken_by(release: object, known: DataSet) -> tuple[str, ...]:
    """What a specification says itself is not as accounted, where epsilon is read at the budget's delta, too."""
    read = [known.budget.delta_read] if known.budget.points else []  # mu holds at every delta
    return tuple(release.broken_at(read)) if isinstance(release, _Specified) else ()


def broken_details(release: object, known: DataSet) -> dict[str, list[str]]:
    """The same, as an entry holds it; nothing where all is as accounted."""
    texts = list(broken_by(release, known))
    return {"broken": texts} if texts else {}


def kind_of(step: Step) -> tuple[str, str]:
    """The name and the text of a step."""
    text = canonical(encode_step(step))
    return digest(text), text


@lru_cache(maxsize=100_000)
def _read_kind(text: str) -> Step:
    """The step whose text this is."""
    try:
        return decode_step(json.loads(text))
    except ValueError as error:  # of a later version, perhaps
        raise LedgerError(f"a step in the ledger cannot be read: {error}") from None


def runs_of(counts: Mapping[str, int], texts: Mapping[str, str]) -> dict[Step, int]:
    """Steps and how often, from kinds and their texts; `TamperedError` where a text is missing or another.

    Several kinds may be one step: a probability of 1/2 is written otherwise than 0.5. Their counts add up.
    """
    runs: dict[Step, int] = {}
    for kind, count in counts.items():
        if kind not in texts or digest(texts[kind]) != kind:
            raise TamperedError(f"a step that the ledger counts was changed or is missing: {kind[:12]}")
        step = _read_kind(texts[kind])
        runs[step] = runs.get(step, 0) + count
    return runs


@final
@dataclass(frozen=True)
class DataSet:
    """A data set and what may be spent on it, as its first entry says.

    Attributes
    ----------
    name : str
        Of at most 200 characters.
    budget : Budget
        What may be spent: in each period and on each partition, where there are several.
    unit : str
        The unit of privacy: what one record is.
    adjacency : str
        The neighbouring relation.
    rule : str
        How releases are chosen and admitted, one of ``"in-advance"``, ``"gaussian-dp"``, ``"renyi"``.
    period : str
        ``"year"``, ``"month"``, or "" for one budget for all time. The promise is then about each period alone, and a
        release counts in the period in which it was admitted: one that is reserved in December and run in January
        counts in December.
    """

    name: str
    budget: Budget
    unit: str = "example"
    adjacency: str = "add-remove"
    rule: str = "in-advance"
    period: str = ""

    def __post_init__(self) -> None:
        for key in ("name", "unit"):
            check_text(key, getattr(self, key), most=_LONGEST)
        if not isinstance(self.budget, Budget):
            raise TypeError(f"budget must be a Budget, got {self.budget!r}")
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        check_choice("period", self.period, PERIODS)
        check_rule(self.rule, self.budget)

    def document(self) -> dict[str, Any]:
        """Plain data that `DataSet.read` reads."""
        return {name: getattr(self, name) for name in _OF_DATA_SET} | {"budget": self.budget.document()}

    @staticmethod
    def read(document: Mapping[str, Any]) -> DataSet:
        """The data set written by `document`."""
        return DataSet(budget=Budget.read(document["budget"]), **{name: document[name] for name in _OF_DATA_SET})


@final
@dataclass(frozen=True)
class Entry:
    """One entry of a ledger.

    Attributes
    ----------
    dataset : str
        The data set's name.
    number : int
        Counted from 0, the entry that opened the data set.
    action : str
        ``"open"``, ``"spend"``, ``"reserve"``, ``"commit"``, ``"release"`` or ``"correct"``.
    who, when, why : str
        As stated; the time in UTC.
    account : str
        The period and partition whose budget is used.
    runs : mapping of str to int
        Kinds of steps by their hash, and how often.
    refers : int or None
        The entry that this one settles or corrects.
    details : mapping
        Anything else that the action needs.
    previous, hash : str
        Of the chain.
    """

    dataset: str
    number: int
    action: str
    who: str
    when: str
    why: str
    previous: str
    account: str = ""
    runs: Mapping[str, int] = field(default_factory=dict)
    refers: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """The text that is hashed and stored."""
        held = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _BESIDE}
        return canonical(held | {"runs": dict(self.runs), "details": dict(self.details)})

    @property
    def hash(self) -> str:
        """Of the data set, the number, the content and the entry before."""
        return digest(self.dataset, str(self.number), self.content, self.previous)

    @staticmethod
    def read(dataset: str, number: int, content: str, previous: str) -> Entry:
        """The entry whose content this is; ``ValueError``, ``TypeError`` or ``KeyError`` where it is none."""
        return Entry(dataset, number, previous=previous, **json.loads(content))


def check_text(name: str, value: object, *, most: int = 4000) -> str:
    """A text of at least one printable character, or a clear error."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {value!r}")
    if not value.strip() or len(value) > most or any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise ValueError(f"{name} must be 1 to {most} printable characters, got {value[:40]!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text that UTF-8 can hold, got {value[:40]!r}") from None
    return value
