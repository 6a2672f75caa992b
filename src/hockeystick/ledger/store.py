"""The database under a ledger: its tables, which refuse changes, its version, and transactions.

`entries` and `kinds` only ever grow: triggers refuse to update or delete a row. `totals` holds what the entries add up
to, so that a question does not read them all; it is made anew from them by `rebuild`. `heads` has one row a data set,
which a writer locks: of two writers one waits, on SQLite for the file, on PostgreSQL for the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, final

from hockeystick.composition import Step
from hockeystick.errors import needs_extra, shown
from hockeystick.ledger.errors import LedgerError, TamperedError
from hockeystick.ledger.records import GENESIS, Entry, digest, runs_of

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

VERSION = 2
_MOST = 2**62  # of any count: the database adds as integers of 64 bits

Totals = Mapping[str, Mapping[str, int]]
"""How often each kind counts, by account."""

_PATIENCE = 300.0  # seconds that a writer waits for others: a busy machine is no reason to fail


def _extra() -> Any:
    with needs_extra("sqlalchemy", "ledger"):
        import sqlalchemy
    return sqlalchemy


@cache
def tables() -> dict[str, Any]:
    """The tables, by name."""
    sa = _extra()
    from sqlalchemy import TypeDecorator

    class Kept(TypeDecorator[Any]):
        """A type that refuses what is of another: SQLite keeps whatever was written."""

        meant: str

        def process_result_value(self, value: Any, dialect: object) -> Any:
            if not isinstance(value, self.impl_instance.python_type):
                raise TamperedError(f"the ledger holds {shown(value)}, which is no {self.meant}")
            return value

    class Text(Kept):
        impl, meant, cache_ok = sa.String, "text", True

    class Whole(Kept):
        impl, meant, cache_ok = sa.BigInteger, "whole number", True

    key, held = partial(sa.Column, primary_key=True), partial(sa.Column, nullable=False)
    name, digest, whole = Text(200), sa.String(64), Whole()
    columns = {
        "version": [key("version", sa.Integer)],
        "kinds": [key("hash", digest), held("text", sa.Text)],
        "heads": [key("dataset", name), held("number", whole), held("hash", digest)],
        "entries": [
            key("dataset", name),
            key("number", whole, autoincrement=False),
            sa.Column("refers", sa.BigInteger()),
            held("content", sa.Text),
            held("previous", digest),
            held("hash", digest),
            sa.UniqueConstraint("dataset", "refers"),  # an entry is settled or corrected once
        ],
        "totals": [key("dataset", name), key("account", Text(300)), key("kind", digest), held("times", whole)],
    }
    metadata = sa.MetaData()
    return {table: sa.Table(f"ledger_{table}", metadata, *parts) for table, parts in columns.items()}


_REFUSAL = "a ledger is never changed: correct it by a later entry"
_SQLITE = f"""CREATE TRIGGER keep_{{table}}_{{event}} BEFORE {{event}} ON ledger_{{table}}
    BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"""
_FUNCTION = f"""CREATE OR REPLACE FUNCTION keep_ledger() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION '{_REFUSAL}'; END$$"""
_POSTGRESQL = """CREATE TRIGGER keep_{table}_{event} BEFORE {event} ON ledger_{table}
    FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger()"""
_KEPT = {"sqlite": (_SQLITE,), "postgresql": (_FUNCTION, _POSTGRESQL)}


def entry_of(row: Any) -> Entry:
    """The entry that a row stores; `TamperedError` where it is none."""
    try:
        return Entry.read(row.dataset, row.number, row.content, row.previous)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise TamperedError(f"entry {row.number} of {row.dataset!r} cannot be read: {error}") from error


def agrees(row: Any) -> bool:
    """Whether what a row stores has the hash beside it."""
    return bool(digest(row.dataset, str(row.number), row.content, row.previous) == row.hash)


def _said(error: Exception) -> object:
    """What a database said when it refused: of a damaged file that may be no text."""
    return getattr(error, "orig", error)


@final
class Store:
    """One database that holds a ledger.

    Parameters
    ----------
    url : str
        As SQLAlchemy takes it, such as ``sqlite:///ledger.db`` or ``postgresql+psycopg://host/name``.
    """

    def __init__(self, url: str) -> None:
        sa = _extra()
        try:
            dialect = sa.make_url(url).get_backend_name()
            if dialect not in _KEPT:
                raise LedgerError(f"a ledger lives in SQLite or PostgreSQL, not in {dialect}")
            self.engine: Engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ModuleNotFoundError) as error:
            raise LedgerError(f"cannot open a ledger at {url!r}: {error}; try sqlite:///ledger.db") from None
        if self.engine.dialect.name == "sqlite":
            self._serve_sqlite(sa)

    def _serve_sqlite(self, sa: Any) -> None:
        """Real transactions, written through to the disk; a writer locks the file from its first statement on."""

        def connected(connection: Any, _: Any) -> None:
            connection.isolation_level = None  # the driver begins nothing by itself
            for line in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={int(1000 * _PATIENCE)}"):
                connection.execute(f"PRAGMA {line}")

        def begun(connection: Any) -> None:
            writes = connection.get_execution_options().get("ledger_writes", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        sa.event.listen(self.engine, "connect", connected)
        sa.event.listen(self.engine, "begin", begun)

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[Rows]:
        """One transaction: all of it, or nothing."""
        sa = _extra()
        try:
            options: dict[str, Any] = {"ledger_writes": writes}
            if self.engine.dialect.name == "postgresql" and not writes:
                options["isolation_level"] = "REPEATABLE READ"  # one picture of entries and totals
            with self.engine.connect().execution_options(**options) as connection, connection.begin():
                yield Rows(connection)
        except (sa.exc.DBAPIError, UnicodeDecodeError) as error:
            raise LedgerError(f"the database at {self.engine.url!r} refused: {_said(error)}") from error

    def create(self) -> None:
        """Make the tables of a new ledger."""
        if self.version() is not None:
            raise LedgerError(f"there is a ledger at {self.engine.url!r} already")
        table = tables()
        with self.transaction(writes=True) as rows:
            for each in table.values():
                each.create(rows.connection)
            self._guard(rows.connection)
            rows.connection.execute(table["version"].insert().values(version=VERSION))

    def _guard(self, connection: Connection) -> None:
        """Let the database refuse changes of entries and kinds."""
        for table in ("entries", "kinds"):
            for event in ("update", "delete", *(["truncate"] if self.engine.dialect.name == "postgresql" else [])):
                for line in _KEPT[self.engine.dialect.name]:
                    connection.exec_driver_sql(line.format(table=table, event=event))

    def version(self) -> int | None:
        """Of the tables; None where there is no ledger."""
        sa = _extra()
        table = tables()["version"]
        try:
            if not sa.inspect(self.engine).has_table(table.name):
                return None
            with self.transaction() as rows:
                found = rows.connection.execute(sa.select(sa.func.max(table.c.version))).scalar_one()
        except (sa.exc.DBAPIError, UnicodeDecodeError) as error:
            raise LedgerError(f"cannot read a ledger at {self.engine.url!r}: {_said(error)}") from None
        if found is None:
            raise TamperedError(f"the ledger at {self.engine.url!r} no longer says which version its tables are of")
        return int(found)

    def upgrade(self, replay: Callable[[Rows, str], Totals]) -> int:
        """Bring the tables of an older version to this one; the version found."""
        found = self.version()
        if found is None:
            raise LedgerError(f"there is no ledger at {self.engine.url!r}: make one by Ledger.create")
        if found > VERSION:
            raise LedgerError(
                f"the ledger is of version {found}, this program knows versions up to {VERSION}: update it"
            )
        table = tables()
        if found == 1:  # had entries and kinds alone
            with self.transaction(writes=True) as rows:
                for name in ("heads", "totals"):
                    table[name].create(rows.connection)
                for dataset in rows.names("entries"):
                    rows.rebuild(dataset, replay(rows, dataset))
                rows.connection.execute(table["version"].insert().values(version=VERSION))
        return found


@final
class Rows:
    """The rows of a ledger, in one transaction."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def head(self, dataset: str, *, lock: bool = False) -> tuple[int, str] | None:
        """The number and hash of the last entry, which a writer locks; None for an unknown data set."""
        head = tables()["heads"]
        found = head.select().where(head.c.dataset == dataset)
        row = self.connection.execute(found.with_for_update() if lock else found).one_or_none()
        return None if row is None else (row.number, row.hash)

    def append(self, entry: Entry) -> None:
        """Add an entry whose data set is locked, and move the head."""
        table, head = tables()["entries"], tables()["heads"]
        self.connection.execute(table.insert().values({one.name: getattr(entry, one.name) for one in table.columns}))
        moved = head.update().where(head.c.dataset == entry.dataset) if entry.number else head.insert()
        self.connection.execute(moved.values(dataset=entry.dataset, number=entry.number, hash=entry.hash))

    def remember(self, kinds: dict[str, str]) -> None:
        """Store the texts of kinds that are new."""
        known = self.kinds(kinds)
        fresh = [{"hash": name, "text": text} for name, text in kinds.items() if name not in known]
        if fresh:
            from sqlalchemy.dialects import postgresql, sqlite

            dialect = {"sqlite": sqlite, "postgresql": postgresql}[self.connection.dialect.name]
            self.connection.execute(dialect.insert(tables()["kinds"]).on_conflict_do_nothing(), fresh)

    def count(self, dataset: str, account: str, changes: Mapping[str, int], sign: int = 1) -> None:
        """Add to the totals of an account, or take away from them."""
        table, kept = tables()["totals"], self.totals(dataset, account)
        for kind, times in changes.items():
            change = sign * times
            if kept.get(kind, 0) + change > _MOST:
                raise LedgerError(
                    f"of one step a ledger counts up to 2^62: {kept.get(kind, 0):g} and {change:g} are more"
                )
            where = (table.c.dataset == dataset) & (table.c.account == account) & (table.c.kind == kind)
            found = self.connection.execute(table.update().where(where).values(times=table.c.times + change))
            if found.rowcount == 0:
                row = {"dataset": dataset, "account": account, "kind": kind, "times": change}
                self.connection.execute(table.insert().values(row))

    def totals(self, dataset: str, account: str) -> dict[str, int]:
        """How often each kind counts."""
        table = tables()["totals"]
        where = (table.c.dataset == dataset) & (table.c.account == account) & (table.c.times > 0)
        rows = self.connection.execute(table.select().where(where).order_by(table.c.kind))
        return {row.kind: row.times for row in rows}

    def accounts(self, dataset: str) -> list[str]:
        """The accounts of a data set that anything was recorded in."""
        sa, table = _extra(), tables()["totals"]
        found = sa.select(table.c.account).where(table.c.dataset == dataset).distinct().order_by(table.c.account)
        return list(self.connection.execute(found).scalars())

    def kinds(self, hashes: Iterable[str]) -> dict[str, str]:
        """The texts of kinds."""
        table, left = tables()["kinds"], list(hashes)
        found: dict[str, str] = {}
        for start in range(0, len(left), 500):
            some = table.select().where(table.c.hash.in_(left[start : start + 500]))
            found |= {row.hash: row.text for row in self.connection.execute(some)}
        return found

    def steps(self, counts: Mapping[str, int]) -> dict[Step, int]:
        """Steps and how often, from how often kinds count."""
        held = {kind: count for kind, count in counts.items() if count}
        return runs_of(held, self.kinds(held))

    def stored(self, dataset: str) -> Iterator[Any]:
        """The entries of a data set as they are stored, in order."""
        table = tables()["entries"]
        found = table.select().where(table.c.dataset == dataset).order_by(table.c.number)
        yield from self.connection.execute(found, execution_options={"yield_per": 1000})

    def holding(self, dataset: str, text: str) -> list[int]:
        """The numbers of entries whose content may hold a text."""
        table = tables()["entries"]
        where = (table.c.dataset == dataset) & table.c.content.contains(text, autoescape=True)
        return list(self.connection.execute(_extra().select(table.c.number).where(where).order_by("number")).scalars())

    def entries(self, dataset: str) -> Iterator[Entry]:
        """The entries of a data set, in order."""
        return map(entry_of, self.stored(dataset))

    def entry(self, dataset: str, number: int) -> Entry | None:
        """One entry, which agrees with its hash; None where there is none."""
        table = tables()["entries"]
        at = min(number, _MOST)  # of which there is none
        found = table.select().where((table.c.dataset == dataset) & (table.c.number == at))
        row = self.connection.execute(found).one_or_none()
        if row is None:
            return None
        if not agrees(row):
            raise TamperedError(f"entry {number} of {dataset!r} was changed: hockeystick ledger verify tells what else")
        return entry_of(row)

    def settled_by(self, dataset: str, number: int) -> int | None:
        """The entry that refers to this one; None where there is none."""
        table = tables()["entries"]
        found = _extra().select(table.c.number).where((table.c.dataset == dataset) & (table.c.refers == number))
        return self.connection.execute(found).scalar_one_or_none()

    def names(self, *among: str) -> list[str]:
        """The data sets that any row of these tables speaks of; by default every data set."""
        found: set[str] = set()
        for table in (tables()[name] for name in among or ("heads", "entries")):
            found |= set(self.connection.execute(_extra().select(table.c.dataset).distinct()).scalars())
        return sorted(found)

    def rebuild(self, dataset: str, totals: Totals) -> None:
        """Write the head and the totals of a data set anew, as its entries make them."""
        head, table = tables()["heads"], tables()["totals"]
        number, last = 0, GENESIS
        for row in self.stored(dataset):
            number, last = row.number, row.hash
        self.connection.execute(head.delete().where(head.c.dataset == dataset))
        self.connection.execute(head.insert().values(dataset=dataset, number=number, hash=last))
        self.connection.execute(table.delete().where(table.c.dataset == dataset))
        for account, counts in totals.items():
            self.count(dataset, account, counts)
