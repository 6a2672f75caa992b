"""Replaying a ledger: every hash, every reference and every total, from the entries alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

from hockeystick.errors import HockeystickError
from hockeystick.ledger.desk import merged
from hockeystick.ledger.errors import TamperedError
from hockeystick.ledger.records import GENESIS, DataSet, Entry, digest, runs_of
from hockeystick.ledger.rules import fits

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hockeystick.ledger.store import Store

_SETTLES = {"commit": ("reserve",), "release": ("reserve",), "correct": ("spend", "commit", "release", "correct")}


@final
@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes
    ----------
    dataset : str
        Where.
    number : int or None
        The entry; None where it is about the data set as a whole.
    what : str
        In words.
    """

    dataset: str
    number: int | None
    what: str

    def __str__(self) -> str:
        where = f"entry {self.number} of " if self.number is not None else ""
        return f"{where}{self.dataset!r}: {self.what}"


@final
@dataclass
class Replay:
    """What the entries read so far add up to."""

    totals: dict[str, dict[str, int]] = field(default_factory=dict)
    entries: dict[int, tuple[str, str, Mapping[str, int]]] = field(default_factory=dict)  # action, account, runs
    settled: set[int] = field(default_factory=set)
    corrected: bool = False

    def add(self, entry: Entry) -> str | None:
        """Add an entry; what is wrong with what it refers to."""
        runs: Mapping[str, int] = entry.runs
        if entry.action in _SETTLES:
            target = self.entries.get(-1 if entry.refers is None else entry.refers)
            if target is None or target[0] not in _SETTLES[entry.action] or entry.refers in self.settled:
                return f"it cannot settle entry {entry.refers}"
            self.settled.add(int(entry.refers or 0))
            if entry.action == "commit":
                runs = target[2]
            else:
                self._count(target[1], target[2], -1)
                self._count(target[1], entry.runs, 1)
                self.corrected |= entry.action == "correct"
        elif entry.action in {"spend", "reserve"}:
            self._count(entry.account, entry.runs, 1)
        elif entry.action != "open" or entry.number != 0:
            return f"no ledger has an action {entry.action!r} there"
        self.entries[entry.number] = (entry.action, entry.account, runs)
        return None

    def _count(self, account: str, runs: Mapping[str, int], sign: int) -> None:
        held = self.totals.setdefault(account, {})
        for kind, count in runs.items():
            held[kind] = held.get(kind, 0) + sign * count


def replayed(store: Store, connection: Connection, dataset: str) -> dict[str, dict[str, int]]:
    """The totals of a data set by account, from its entries; `TamperedError` where they do not hang together."""
    replay = Replay()
    findings = list(_replay(store, connection, dataset, replay))
    if findings:
        raise TamperedError(f"the entries do not agree with their hashes: {findings[0]}")
    return replay.totals


def verify(store: Store, connection: Connection, dataset: str) -> list[Finding]:
    """What is wrong with a data set."""
    replay = Replay()
    findings = list(_replay(store, connection, dataset, replay))
    if findings:
        return findings
    kept = {account: store.totals(connection, dataset, account) for account in store.accounts(connection, dataset)}
    meant = {account: {kind: n for kind, n in held.items() if n} for account, held in replay.totals.items()}
    if {a: held for a, held in kept.items() if held} != {a: held for a, held in meant.items() if held}:
        findings.append(Finding(dataset, None, "the totals kept are not those of the entries"))
    head = store.head(connection, dataset)
    if head is not None and head[0] != max(replay.entries):
        findings.append(Finding(dataset, None, f"the last entry should be {head[0]}, it is {max(replay.entries)}"))
    return findings or list(_beyond(store, connection, dataset, replay))


def _replay(store: Store, connection: Connection, dataset: str, replay: Replay) -> Any:
    """Read all entries into a replay; findings on the way."""
    previous, expected = GENESIS, 0
    good: set[str] = set()
    for row in store.entries(connection, dataset):
        if row.number != expected:
            yield Finding(dataset, expected, f"it is missing: the next one is {row.number}")
        if row.previous != previous:
            yield Finding(dataset, row.number, "it does not continue the entry before")
        wrong = _wrong(store, connection, dataset, row, good)
        if wrong is None:
            entry = Entry.read(dataset, row.number, row.content, row.previous)
            wrong = replay.add(entry)
        if wrong is not None:
            yield Finding(dataset, row.number, wrong)
        previous, expected = row.hash, row.number + 1
    if expected == 0:
        yield Finding(dataset, 0, "it is missing: there is no entry")


def _wrong(store: Store, connection: Connection, dataset: str, row: Any, good: set[str]) -> str | None:
    """What is wrong with one entry by itself."""
    if digest(dataset, str(row.number), row.content, row.previous) != row.hash:
        return "its content was changed: the hash is another"
    try:
        entry = Entry.read(dataset, row.number, row.content, row.previous)
    except (ValueError, TypeError, KeyError) as error:
        return f"it cannot be read: {error}"
    if entry.refers != row.refers:
        return "it was made to refer to another entry"
    fresh = sorted(set(entry.runs) - good)
    texts = store.kinds(connection, fresh)
    for kind in fresh:
        if kind not in texts or digest(texts[kind]) != kind:
            return f"the step it counts was changed or is missing: {kind[:12]}"
    good |= set(fresh)
    return None


def _beyond(store: Store, connection: Connection, dataset: str, replay: Replay) -> Any:
    """Accounts that hold more than the budget, where no correction explains it."""
    first = store.entry(connection, dataset, 0)
    if first is None:
        return
    known = DataSet.read(first.details)
    for account, held in replay.totals.items():
        period = account.partition("/")[0] + "/"
        whole = replay.totals.get(period, {}) if account != period else {}
        counts = {kind: count for kind, count in merged((whole, held)).items() if count}
        texts = store.kinds(connection, list(counts))
        try:
            within = fits(runs_of(counts, texts), known.budget, known.rule, known.adjacency)
        except HockeystickError as error:
            yield Finding(dataset, None, f"the total of {account!r} cannot be recomputed: {error}")
            continue
        if not within and not replay.corrected:
            yield Finding(dataset, None, f"{account!r} holds more than the budget, and no correction says why")
