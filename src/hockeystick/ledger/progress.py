"""What a data set's releases added up to, entry after entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick.bound import Bound
from hockeystick.ledger.desk import merged
from hockeystick.ledger.errors import TamperedError
from hockeystick.ledger.records import DataSet, Entry, runs_of
from hockeystick.ledger.rules import composed_epsilon
from hockeystick.ledger.verification import Replay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from hockeystick.ledger.store import Store

_CHANGES = frozenset({"spend", "reserve", "release", "correct"})


def progress(
    store: Store, connection: Connection, known: DataSet, accounts: list[tuple[str, ...]], most: int
) -> list[tuple[Entry, Bound]]:
    """Epsilon after entries that changed it, as if all were fixed in advance, where a record has spent most.

    Parameters
    ----------
    store : Store
        Where the entries are.
    connection : Connection
        In a transaction.
    known : DataSet
        Whose entries.
    accounts : list of tuple of str
        What may count for one record, in each partition.
    most : int
        Entries looked at.
    """
    concerned = {account for one in accounts for account in one}
    changing = [entry.number for entry in _entries(store, connection, known.name) if _changes(entry, concerned)]
    last = len(changing) - 1
    chosen = {changing[round(index * last / max(most - 1, 1))] for index in range(most)} if changing else set()
    chosen = set(changing) if len(changing) <= most else chosen | {changing[-1]}
    replay, found = Replay(), []
    for entry in _entries(store, connection, known.name):
        wrong = replay.add(entry)
        if wrong is not None:
            raise TamperedError(f"entry {entry.number} of {known.name!r}: {wrong}")
        if entry.number in chosen:
            held = [merged(replay.totals.get(account, {}) for account in one) for one in accounts]
            found.append((entry, max((_epsilon(store, connection, known, one) for one in held), key=_upper)))
    return found


def _entries(store: Store, connection: Connection, name: str) -> Iterator[Entry]:
    for row in store.entries(connection, name):
        yield Entry.read(name, row.number, row.content, row.previous)


def _changes(entry: Entry, concerned: set[str]) -> bool:
    return entry.action in _CHANGES and entry.account in concerned


def _epsilon(store: Store, connection: Connection, known: DataSet, counts: dict[str, int]) -> Bound:
    held = {kind: count for kind, count in counts.items() if count}
    texts = store.kinds(connection, list(held))
    return composed_epsilon(runs_of(held, texts), known.adjacency, known.budget.delta_read)


def _upper(bound: Bound) -> float:
    return float(bound.upper)
