"""The ledger itself: data sets, releases that are admitted to them, and what they add up to."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

from hockeystick.bound import Bound
from hockeystick.composition import Step
from hockeystick.errors import check_count, public_door
from hockeystick.ledger.desk import Desk, worst
from hockeystick.ledger.errors import LedgerError
from hockeystick.ledger.records import DataSet, Entry, Release, broken_by, check_text, composition_of
from hockeystick.ledger.rules import Total, added, fits, room
from hockeystick.ledger.store import VERSION, Store, entry_of
from hockeystick.ledger.verification import Finding, progress, replayed, verify


@final
@dataclass
class Reservation:
    """A release that is admitted and not yet settled: it counts until it is released.

    Attributes
    ----------
    ledger : Ledger
        Where it is.
    dataset : str
        The data set's name.
    number : int
        Of its entry.
    """

    ledger: Ledger
    dataset: str
    number: int
    settled: bool = False

    def commit(self, *, why: str = "done") -> Entry:
        """Say that the release took place."""
        return self._settle("commit", why)

    def release(self, *, why: str) -> Entry:
        """Give the budget back: for a run that is known not to have touched the data."""
        return self._settle("release", why)

    def _settle(self, action: str, why: str) -> Entry:
        entry = self.ledger.settle(self.dataset, self.number, action=action, why=why)
        self.settled = True
        return entry


@final
class Ledger:
    """What has been spent on data sets, in a database.

    Parameters
    ----------
    url : str
        As SQLAlchemy takes it, such as ``sqlite:///ledger.db`` or ``postgresql+psycopg://host/name``.
    who : str, optional
        Who makes entries; by default the user that runs the program.

    Examples
    --------
    >>> import hockeystick as hs
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(f"sqlite:///{folder.name}/ledger.db")
    >>> ledger.add_dataset(DataSet("census-2026", hs.ledger.Budget(epsilon=1.0, delta=1e-6), unit="household"))
    >>> with ledger.spending("census-2026", hs.Gaussian(20.0) * 10, why="Table 3"):
    ...     pass  # the run
    >>> ledger.remaining("census-2026", hs.Gaussian(20.0) * 10)
    1
    >>> folder.cleanup()
    """

    def __init__(self, url: str, *, who: str | None = None) -> None:
        self._store = Store(url)
        self.who = check_text("who", getpass.getuser() if who is None else who)
        found = self._store.version()
        if found is None:
            raise LedgerError(f"there is no ledger at {url!r}: make one by Ledger.create, or hockeystick ledger init")
        if found != VERSION:
            what = "hockeystick ledger migrate" if found < VERSION else "a newer hockeystick"
            raise LedgerError(f"the ledger is of version {found}, this program keeps version {VERSION}: use {what}")

    @staticmethod
    @public_door
    def create(url: str, *, who: str | None = None) -> Ledger:
        """A new, empty ledger."""
        Store(url).create()
        return Ledger(url, who=who)

    @staticmethod
    @public_door
    def migrate(url: str) -> int:
        """Bring a ledger of an older version to this one, entries unchanged; the version found."""
        return Store(url).upgrade(replayed)

    # data sets

    @public_door
    def add_dataset(self, dataset: DataSet, *, why: str = "opened") -> None:
        """Open a data set, with its budget, relation and rule."""
        with self._desk(writes=True) as desk:
            desk.open(dataset, why)

    @public_door
    def datasets(self) -> list[DataSet]:
        """The data sets, by name."""
        with self._desk() as desk:
            return [desk.dataset(name) for name in desk.rows.names()]

    # questions

    @public_door
    def would_fit(self, dataset: str, release: Release, *, partition: str = "") -> bool:
        """Whether a release would be admitted now; nothing is recorded."""
        known, held = self._held(dataset, partition)
        run = composition_of(release, known)
        return all(fits(added(runs, run), known.budget, known.rule, known.adjacency) for runs in held)

    @public_door
    def remaining(self, dataset: str, release: Release, *, partition: str = "") -> int:
        """How many more such releases fit."""
        known, held = self._held(dataset, partition)
        run = composition_of(release, known)
        return min(room(runs, run, known.budget, known.rule, known.adjacency) for runs in held)

    @public_door
    def total(
        self, dataset: str, *, delta: float | None = None, period: str | None = None, partition: str = ""
    ) -> Total:
        """What has been spent: the certified epsilon at a delta, and what is proved.

        Parameters
        ----------
        dataset : str
            Its name.
        delta : float, optional
            By default the budget's.
        period : str, optional
            Such as ``"2026"``, where budgets are by period; by default the present one.
        partition : str
            Of the data, where releases looked at disjoint parts; by default the part that has spent most. What looked
            at the whole data counts for every part.
        """
        with self._desk() as desk:
            known = desk.dataset(dataset)
            accounts = desk.accounts(known, partition, period)
            held, broken = desk.held(known, accounts), desk.broken(known, accounts)
        found, named = worst(known, held, delta)[1], accounts[0][0].rstrip("/")
        statement = f"{found.statement}, in {named} alone" if named else found.statement
        statement += f", for records of {partition!r}" if partition else ""
        return replace(found, broken=broken, period=named, statement=statement)

    @public_door
    def broken(self, dataset: str, *, partition: str = "", release: Release | None = None) -> tuple[str, ...]:
        """What a release, and those that count now, say of themselves is not as accounted: no answer is certified."""
        with self._desk() as desk:
            known = desk.dataset(dataset)
            return broken_by(release, known) + desk.broken(known, desk.accounts(known, partition))

    @public_door
    def history(self, dataset: str) -> list[Entry]:
        """All entries of a data set."""
        with self._desk() as desk:
            desk.dataset(dataset)
            return list(desk.rows.entries(dataset))

    @public_door
    def open_reservations(self, dataset: str) -> list[Entry]:
        """Reservations that are neither committed nor released."""
        entries = self.history(dataset)
        settled = {entry.refers for entry in entries}
        return [entry for entry in entries if entry.action == "reserve" and entry.number not in settled]

    @public_door
    def runs(self, dataset: str, *, period: str | None = None, partition: str = "") -> dict[Step, int]:
        """What counts now, as steps and how often, for a record of a partition: by default of that which spent most."""
        return worst(*self._held(dataset, partition, period), None)[0]

    @public_door
    def progress(
        self, dataset: str, *, period: str | None = None, partition: str = "", most: int = 100
    ) -> list[tuple[Entry, Bound]]:
        """Epsilon after each entry that changed it, oldest first, as if all releases had been fixed in advance.

        Parameters
        ----------
        dataset, period, partition : str
            As for `total`; epsilon is read at the budget's delta.
        most : int
            Entries looked at, at least 1: where there are more, so many of them, evenly chosen, with the last.
        """
        check_count("most", most)
        with self._desk() as desk:
            known = desk.dataset(dataset)
            return progress(desk.rows, known, desk.accounts(known, partition, period), most)

    @public_door
    def verify(self, dataset: str | None = None) -> list[Finding]:
        """Replay the chain of every data set, or of one, and recompute its totals: what is wrong, entry by entry."""
        with self._store.transaction() as rows:
            names = rows.names()
            if dataset is not None and dataset not in names:
                raise LedgerError(f"there is no data set {dataset!r}")
            return [finding for name in (names if dataset is None else [dataset]) for finding in verify(rows, name)]

    @public_door
    def export(self, dataset: str | None = None) -> Iterator[dict[str, Any]]:
        """Everything as plain data, one record at a time: kinds first used, then the entry."""
        with self._desk() as desk:
            told: set[str] = set()
            for name in desk.rows.names() if dataset is None else [dataset]:
                desk.dataset(name)
                for row in desk.rows.stored(name):
                    fresh = sorted(set(entry_of(row).runs) - told)
                    told |= set(fresh)
                    for kind, text in desk.rows.kinds(fresh).items():
                        yield {"kind": kind, "text": text}
                    yield {"dataset": name, "number": row.number, "content": row.content, "hash": row.hash}

    # entries

    @public_door
    def spend(
        self, dataset: str, release: Release, *, why: str, chosen: str = "in-advance", partition: str = ""
    ) -> Entry:
        """Admit a release that takes place now.

        Parameters
        ----------
        dataset : str
            Its name.
        release : Step, Composition or specification
            What is released, with its counts.
        why : str
            For what.
        chosen : {"in-advance", "adaptively"}
            Whether it was fixed before any result was seen.
        partition : str
            The part of the data that it looks at.

        Raises
        ------
        OverBudgetError
            Where it does not fit: it must not be run.
        """
        with self._desk(writes=True) as desk:
            return desk.admit("spend", dataset, release, why, chosen, partition)

    @public_door
    def reserve(
        self, dataset: str, release: Release, *, why: str, chosen: str = "in-advance", partition: str = ""
    ) -> Reservation:
        """Admit a release that is about to take place; it counts from now on. See `spend`."""
        with self._desk(writes=True) as desk:
            entry = desk.admit("reserve", dataset, release, why, chosen, partition)
        return Reservation(self, dataset, entry.number)

    @contextmanager
    def spending(
        self, dataset: str, release: Release, *, why: str, chosen: str = "in-advance", partition: str = ""
    ) -> Iterator[Reservation]:
        """Reserve, run, commit. What fails may have touched the data: it counts, unless it was released before."""
        reservation = self.reserve(dataset, release, why=why, chosen=chosen, partition=partition)
        try:
            yield reservation
        except BaseException as error:
            if not reservation.settled:
                reservation.commit(why=f"ended by {type(error).__name__}")
            raise
        if not reservation.settled:
            reservation.commit()

    @public_door
    def settle(self, dataset: str, number: int, *, action: str, why: str) -> Entry:
        """Commit or release a reservation by its entry's number: also one that another process left."""
        with self._desk(writes=True) as desk:
            return desk.settle(dataset, number, action, why)

    @public_door
    def correct(self, dataset: str, number: int, *, why: str, release: Release | None = None) -> Entry:
        """Correct an entry by a later one: what it recorded no longer counts, what took place instead does.

        What took place is recorded even where the budget does not allow it; the total then says so.
        """
        with self._desk(writes=True) as desk:
            return desk.correct(dataset, number, why, release)

    @contextmanager
    def _desk(self, *, writes: bool = False) -> Iterator[Desk]:
        with self._store.transaction(writes=writes) as rows:
            yield Desk(rows, self.who)

    def _held(self, dataset: str, partition: str, period: str | None = None) -> tuple[DataSet, list[dict[Step, int]]]:
        with self._desk() as desk:
            known = desk.dataset(dataset)
            return known, desk.held(known, desk.accounts(known, partition, period))
