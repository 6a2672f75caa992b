"""What a data set's releases added up to, entry after entry."""

from __future__ import annotations

from hockeystick.bound import Bound
from hockeystick.ledger.desk import merged
from hockeystick.ledger.errors import TamperedError
from hockeystick.ledger.records import DataSet, Entry
from hockeystick.ledger.rules import composed_epsilon
from hockeystick.ledger.store import Rows
from hockeystick.ledger.verification import Replay

_CHANGES = frozenset({"spend", "reserve", "release", "correct"})


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
