"""Replaying a ledger: every hash, every reference and every total, from the entries alone, and epsilon on the way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from hockeystick.bound import Bound
from hockeystick.errors import HockeystickError
from hockeystick.ledger.desk import merged
from hockeystick.ledger.errors import TamperedError
from hockeystick.ledger.records import GENESIS, SETTLES, DataSet, Entry, digest
from hockeystick.ledger.rules import composed_epsilon, fits
from hockeystick.ledger.store import Rows, Totals, agrees, entry_of

_CHANGES = frozenset({"spend", "reserve", "release", "correct"})


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

    totals: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    entries: dict[int, tuple[str, str, Mapping[str, int]]] = field(default_factory=dict)  # action, account, runs
    settled: set[int] = field(default_factory=set)
    corrected: bool = False
    hash: str = GENESIS  # of the last entry

    def add(self, entry: Entry) -> str | None:
        """Add an entry; what is wrong with what it refers to."""
        runs: Mapping[str, int] = entry.runs
        if entry.action in SETTLES:
            target = self.entries.get(-1 if entry.refers is None else entry.refers)
            if target is None or target[0] not in SETTLES[entry.action] or entry.refers in self.settled:
                return f"it cannot settle entry {entry.refers}"
            self.settled.add(int(entry.refers or 0))
            if entry.action == "commit":
                runs = target[2]
            else:
                self.totals[target[1]].subtract(target[2])
                self.totals[target[1]].update(entry.runs)
                self.corrected |= entry.action == "correct"
        elif entry.action in {"spend", "reserve"}:
            self.totals[entry.account].update(entry.runs)
        elif entry.action != "open" or entry.number != 0:
            return f"no ledger has an action {entry.action!r} there"
        self.entries[entry.number] = (entry.action, entry.account, runs)
        return None


def replayed(rows: Rows, dataset: str) -> Totals:
    """The totals of a data set by account, from its entries; `TamperedError` where they do not hang together."""
    replay = Replay()
    for finding in _replay(rows, dataset, replay):
        raise TamperedError(f"the entries do not agree with their hashes: {finding}")
    return replay.totals


def verify(rows: Rows, dataset: str) -> list[Finding]:
    """What is wrong with a data set."""
    replay = Replay()
    findings = list(_replay(rows, dataset, replay))
    if findings:
        return findings
    kept = {account: rows.totals(dataset, account) for account in rows.accounts(dataset)}
    meant = {account: {kind: n for kind, n in held.items() if n} for account, held in replay.totals.items()}
    if {a: held for a, held in kept.items() if held} != {a: held for a, held in meant.items() if held}:
        findings.append(Finding(dataset, None, "the totals kept are not those of the entries"))
    head, last = rows.head(dataset), max(replay.entries)
    if head is None:
        findings.append(Finding(dataset, None, "which entry is the last is not kept"))
    elif head[0] != last:
        findings.append(Finding(dataset, None, f"the last entry should be {head[0]}, it is {last}"))
    elif head[1] != replay.hash:
        findings.append(Finding(dataset, last, "it is kept as the last one by another hash"))
    return findings or list(_beyond(rows, dataset, replay))


def _replay(rows: Rows, dataset: str, replay: Replay) -> Iterator[Finding]:
    """Read all entries into a replay; findings on the way."""
    expected = 0
    good: set[str] = set()
    for row in rows.stored(dataset):
        if row.number != expected:
            yield Finding(dataset, expected, f"it is missing: the next one is {row.number}")
        if row.previous != replay.hash:
            yield Finding(dataset, row.number, "it does not continue the entry before")
        entry = _read(rows, row, good)
        wrong = replay.add(entry) if isinstance(entry, Entry) else entry
        if wrong is not None:
            yield Finding(dataset, row.number, wrong)
        replay.hash, expected = row.hash, row.number + 1
    if expected == 0:
        yield Finding(dataset, 0, "it is missing: there is no entry")


def _read(rows: Rows, row: Any, good: set[str]) -> Entry | str:
    """An entry, or what is wrong with it by itself."""
    if not agrees(row):
        return "its content was changed: the hash is another"
    try:
        entry = entry_of(row)
    except TamperedError as error:
        return f"it cannot be read: {error.__cause__}"
    if entry.refers != row.refers:
        return "it was made to refer to another entry"
    fresh = sorted(set(entry.runs) - good)
    texts = rows.kinds(fresh)
    for kind in fresh:
        if kind not in texts or digest(texts[kind]) != kind:
            return f"the step it counts was changed or is missing: {kind[:12]}"
    good |= set(fresh)
    return entry


def _beyond(rows: Rows, dataset: str, replay: Replay) -> Iterator[Finding]:
    """Accounts that hold more than the budget, where no correction explains it."""
    first = rows.entry(dataset, 0)
    if first is None:
        return
    known = DataSet.read(first.details)
    for account, held in replay.totals.items():
        whole = f"{account.partition('/')[0]}/"
        both = [held] if account == whole else [replay.totals.get(whole, Counter()), held]
        try:
            within = fits(rows.steps(merged(both)), known.budget, known.rule, known.adjacency)
        except HockeystickError as error:
            yield Finding(dataset, None, f"the total of {account!r} cannot be recomputed: {error}")
            continue
        if not within and not replay.corrected:
            yield Finding(dataset, None, f"{account!r} holds more than the budget, and no correction says why")


def progress(rows: Rows, known: DataSet, accounts: list[tuple[str, ...]], most: int) -> list[tuple[Entry, Bound]]:
    """Epsilon after entries that changed it, as if all were fixed in advance, where a record has spent most.

    Parameters
    ----------
    rows : Rows
        Where the entries are.
    known : DataSet
        Whose entries.
    accounts : list of tuple of str
        What may count for one record, in each partition.
    most : int
        Entries looked at.
    """
    concerned = {account for one in accounts for account in one}
    entries = (one for one in rows.entries(known.name) if one.account in concerned)
    changing = [entry.number for entry in entries if entry.action in _CHANGES]
    last = len(changing) - 1
    chosen = {changing[round(index * last / max(most - 1, 1))] for index in range(most)} if changing else set()
    chosen = set(changing) if len(changing) <= most else chosen | {changing[-1]}
    replay, found = Replay(), []
    for entry in rows.entries(known.name):
        wrong = replay.add(entry)
        if wrong is not None:
            raise TamperedError(f"entry {entry.number} of {known.name!r}: {wrong}")
        if entry.number in chosen:
            held = [merged(replay.totals.get(account, {}) for account in one) for one in accounts]
            runs = [rows.steps(dict(sorted(counts.items()))) for counts in held]
            bounds = [composed_epsilon(one, known.adjacency, known.budget.delta_read) for one in runs]
            found.append((entry, max(bounds, key=lambda bound: float(bound.upper))))
    return found
