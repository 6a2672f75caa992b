"""The ledger under strain: many writers, killed writers, changed bytes, older versions; on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import hockeystick as hs
from hockeystick.accountants import Exact
from hockeystick.ledger import Budget, DataSet, Ledger, LedgerError, TamperedError
from hockeystick.ledger.records import GENESIS, Entry, kind_of
from hockeystick.ledger.store import agrees
from tests.ledgers import new_database, postgresql

sqlalchemy = pytest.importorskip("sqlalchemy")

STEP = hs.Gaussian(60.0)
STRICT = Budget(epsilon=1.0, delta=1e-6)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    return new_database(request.getfixturevalue("server"))


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A file of SQLite, whose changes are kept, closed afterwards: sqlite3's own ``with`` leaves it open."""
    with closing(sqlite3.connect(path)) as database, database:
        yield database


ATTEMPTS = """
import os, sys
import hockeystick as hs
from hockeystick.ledger import Ledger, OverBudgetError
book, admitted = Ledger(sys.argv[1], who=f"process {os.getpid()}"), 0
for _ in range(int(sys.argv[2])):
    try:
        book.spend("census", hs.Gaussian(60.0), why="a table")
    except OverBudgetError:
        continue
    admitted += 1
print(admitted)
"""


def attempted(url: str, processes: int, times: int) -> int:
    """How many of some releases were admitted, of several processes at once."""
    command = [sys.executable, "-c", ATTEMPTS, url, str(times)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    said = [process.communicate(timeout=300)[0] for process in started]
    assert [process.returncode for process in started] == [0] * processes
    return sum(map(int, said))


def check_writers(url: str, processes: int, times: int, budget: Budget) -> int:
    book = Ledger.create(url, who="tester")
    book.add_dataset(DataSet("census", budget))
    room = book.remaining("census", STEP)
    assert room < processes * times
    assert attempted(url, processes, times) == room == book.total("census").releases
    assert [entry.number for entry in book.history("census")] == list(range(room + 1))
    assert book.verify() == []
    (epsilon, delta) = budget.points[0]
    truth = hs.account(STEP * room, accountant=Exact(digits=12)).delta(epsilon)
    assert truth.upper <= delta  # type: ignore[union-attr]
    assert hs.account(STEP * (room + 1)).delta(epsilon).lower > delta  # type: ignore[union-attr]
    return room


def test_of_many_writers_as_many_are_admitted_as_the_budget_holds(url: str) -> None:
    check_writers(url, 2, 17, Budget(epsilon=0.35, delta=1e-6))


@pytest.mark.torture
def test_sixteen_writers_and_three_thousand_attempts(url: str) -> None:
    """The budget holds five hundred releases, and not one more."""
    epsilon = float(hs.account(STEP * 500).epsilon(1e-6).upper)  # type: ignore[union-attr]
    assert check_writers(url, 16, 200, Budget(epsilon=epsilon, delta=1e-6)) == 500


WRITER = """
import sys
import hockeystick as hs
from hockeystick.ledger import Ledger
book = Ledger(sys.argv[1], who="victim")
print("ready", flush=True)
while True:
    with book.spending("census", hs.Gaussian(1000.0), why="a run"):
        pass
"""


def check_kills(url: str, kills: int) -> None:
    rng = random.Random(13)  # noqa: S311 - no secret
    book = Ledger.create(url, who="tester")
    book.add_dataset(DataSet("census", Budget(epsilon=5.0, delta=1e-6)))
    for _ in range(kills):
        with subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.0, 0.25))
            process.send_signal(signal.SIGKILL)
    assert book.verify() == []
    history = book.history("census")
    reserved = {entry.number for entry in history if entry.action == "reserve"}
    committed = {entry.refers for entry in history if entry.action == "commit"}
    left = {entry.number for entry in book.open_reservations("census")}
    assert left == reserved - committed
    assert len(left) <= kills
    assert book.total("census").releases == len(reserved)
    for number in left:
        book.settle("census", number, action="release", why="its process was killed")
    assert book.total("census").releases == len(committed)
    assert book.verify() == []


def test_a_killed_writer_leaves_whole_entries(url: str) -> None:
    check_kills(url, 2)


@pytest.mark.torture
def test_two_hundred_killed_writers_leave_whole_entries(url: str) -> None:
    check_kills(url, 200)


def filled(url: str, releases: int = 6) -> Ledger:
    book = Ledger.create(url, who="tester")
    book.add_dataset(DataSet("census", STRICT))
    for index in range(releases):
        book.spend("census", hs.Gaussian(100.0 + index % 3), why=f"table {index}")
    book.reserve("census", STEP, why="a run").commit()
    return book


@pytest.mark.parametrize("table", ["entries", "kinds"])
@pytest.mark.parametrize("change", ["update ledger_{} set hash = 'x'", "delete from ledger_{}"])
def test_the_database_refuses_changes(url: str, table: str, change: str) -> None:
    book = filled(url)
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
    with pytest.raises(sqlalchemy.exc.DBAPIError, match="a ledger is never changed"), engine.begin() as connection:
        connection.exec_driver_sql(change.format(table))
    assert book.verify() == []


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger to copy: filling one takes longer than to look for what was changed in it."""
    path = tmp_path_factory.mktemp("filled") / "ledger.db"
    filled(f"sqlite:///{path}")
    return path


@pytest.fixture
def book(filled_once: Path, tmp_path: Path) -> Ledger:
    """A filled ledger of its own, in ``ledger.db`` of the test's folder."""
    shutil.copy(filled_once, tmp_path / "ledger.db")
    return Ledger(f"sqlite:///{tmp_path}/ledger.db", who="tester")


def columns(path: Path) -> list[tuple[str, str, int, str]]:
    """Every stored value of entries: its table, column, row, and the entry that holds it."""
    with opened(path) as database:
        found = [
            ("ledger_entries", column, rowid, str(number))
            for column in ("dataset", "number", "refers", "content", "previous", "hash")
            for rowid, number, value in database.execute(f"select rowid, number, {column} from ledger_entries")  # noqa: S608
            if value is not None
        ]
        found += [
            ("ledger_kinds", column, rowid, "")
            for column in ("hash", "text")
            for (rowid,) in database.execute("select rowid from ledger_kinds")
        ]
    return found


@pytest.mark.parametrize("seed", range(25))
def test_one_changed_byte_is_found_and_named(seed: int, book: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert book.verify() == []
    rng = random.Random(seed)  # noqa: S311 - no secret
    table, column, rowid, number = rng.choice(columns(path))
    with opened(path) as database:
        for (name,) in database.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            database.execute(f"drop trigger {name}")
        (value,) = database.execute(f"select {column} from {table} where rowid = ?", (rowid,)).fetchone()  # noqa: S608
        if isinstance(value, int):
            changed: int | str = value + 50
        else:
            place = rng.randrange(len(value))
            changed = value[:place] + chr((ord(value[place]) - 31) % 95 + 32) + value[place + 1 :]
        database.execute(f"update {table} set {column} = ? where rowid = ?", (changed, rowid))  # noqa: S608
    database.close()
    findings = book.verify()
    assert findings, (table, column, value, changed)
    if number:
        assert int(number) in {finding.number for finding in findings}, (column, value, changed, findings)
    else:
        assert all(finding.number is not None and "the step it counts" in finding.what for finding in findings)


def test_totals_that_do_not_follow_from_the_entries_are_found(book: Ledger, tmp_path: Path) -> None:
    with opened(tmp_path / "ledger.db") as database:
        database.execute("update ledger_totals set times = times + 1")
    database.close()
    assert [finding.what for finding in book.verify()] == ["the totals kept are not those of the entries"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("delete from ledger_heads", "which entry is the last is not kept"),
        ("update ledger_heads set hash = replace(hash, substr(hash, 1, 4), 'abcd')", "it is kept as the last one by"),
    ],
)
def test_a_last_entry_that_is_not_the_one_kept_is_found(change: str, what: str, book: Ledger, tmp_path: Path) -> None:
    with opened(tmp_path / "ledger.db") as database:
        database.execute(change)
    database.close()
    assert all(what in finding.what for finding in book.verify())
    assert book.verify()


@pytest.mark.parametrize(
    ("change", "ask", "what"),
    [
        ("ledger_entries set content = 'x' where number = 1", "history", "entry 1 of 'census' cannot be read"),
        ("ledger_entries set content = '[1]' where number = 1", "history", "entry 1 of 'census' cannot be read"),
        ("ledger_entries set content = x'ff00' where number = 1", "history", "entry 1 of 'census' cannot be read"),
        ("ledger_entries set content = replace(content, '1e-06', '1e-02')", "total", "entry 0 of 'census' was changed"),
        ("ledger_kinds set text = replace(text, '0x1', '0x2')", "total", "a step that the ledger counts was changed"),
        ("ledger_kinds set hash = hash || 'x'", "total", "a step that the ledger counts was changed or is missing"),
    ],
)
def test_what_was_changed_is_refused_by_name_when_it_is_used(
    change: str, ask: str, what: str, book: Ledger, tmp_path: Path
) -> None:
    with opened(tmp_path / "ledger.db") as database:
        for (trigger,) in database.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            database.execute(f"drop trigger {trigger}")
        database.execute(f"update {change}")
    database.close()
    with pytest.raises(TamperedError, match=what):
        getattr(book, ask)("census")
    assert book.verify()


def test_a_ledger_of_version_1_is_migrated_with_its_entries(book: Ledger, tmp_path: Path) -> None:
    """Version 1 had entries and kinds, and added them up each time."""
    path = tmp_path / "ledger.db"
    before, total = list(book.export()), book.total("census")
    with opened(path) as database:
        for table in ("heads", "totals"):
            database.execute(f"drop table ledger_{table}")
        database.execute("update ledger_version set version = 1")
    database.close()
    with pytest.raises(LedgerError, match="of version 1, this program keeps version 2: use hockeystick ledger migrate"):
        Ledger(f"sqlite:///{path}")
    assert Ledger.migrate(f"sqlite:///{path}") == 1
    migrated = Ledger(f"sqlite:///{path}")
    assert list(migrated.export()) == before
    assert migrated.total("census") == total or repr(migrated.total("census")) == repr(total)
    assert migrated.verify() == []
    migrated.spend("census", STEP, why="one more")
    assert migrated.verify() == []
    assert Ledger.migrate(f"sqlite:///{path}") == 2


@pytest.mark.usefixtures("book")
def test_a_ledger_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "ledger.db") as database:
        database.execute("update ledger_version set version = 3")
    database.close()
    with pytest.raises(LedgerError, match="a newer hockeystick"):
        Ledger(f"sqlite:///{tmp_path}/ledger.db")
    with pytest.raises(LedgerError, match="update it"):
        Ledger.migrate(f"sqlite:///{tmp_path}/ledger.db")


@pytest.mark.usefixtures("book")
def test_a_ledger_that_no_longer_says_its_version_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "ledger.db") as database:
        database.execute("delete from ledger_version")
    database.close()
    with pytest.raises(TamperedError, match="no longer says which version"):
        Ledger(f"sqlite:///{tmp_path}/ledger.db")


def test_a_damaged_file_is_refused_in_words(book: Ledger, tmp_path: Path) -> None:
    for change, what in (  # each is read before those above
        ("heads set number = 1.5", r"holds 1\.5, which is no whole number"),
        ("totals set times = 'x'", "holds 'x', which is no whole number"),
        ("totals set account = x'ff00'", r"holds b'\\xff\\x00', which is no text"),
        ("heads set dataset = x'ff00'", r"holds b'\\xff\\x00', which is no text"),
    ):
        with opened(tmp_path / "ledger.db") as database:
            database.execute(f"update ledger_{change}")
        database.close()
        with pytest.raises(TamperedError, match=what):
            book.verify()
    assert not agrees(SimpleNamespace(dataset="census", number=0, content=None, previous=GENESIS, hash=GENESIS))
    held = (tmp_path / "ledger.db").read_bytes()  # SQLite names what it cannot read by bytes that are no text
    held = held.replace(b"tableledger_version", b"table\xffedger_version").replace(b"CREATE TABLE", b"CREATE THING")
    (tmp_path / "damaged.db").write_bytes(held)
    with pytest.raises(LedgerError, match="cannot read a ledger at"):
        Ledger(f"sqlite:///{tmp_path}/damaged.db")


@pytest.mark.torture
def test_a_million_entries_are_added_up_from_their_totals(tmp_path: Path) -> None:
    """Written as the ledger writes them, in bulk; the total reads a hundred rows."""
    book = Ledger.create(f"sqlite:///{tmp_path}/ledger.db", who="tester")
    book.add_dataset(DataSet("census", Budget(epsilon=100.0, delta=1e-6)))
    kinds = [kind_of(hs.Gaussian(5000.0 + index)) for index in range(100)]
    previous = book.history("census")[0].hash
    assert previous != GENESIS
    with opened(tmp_path / "ledger.db") as database:
        database.executemany("insert into ledger_kinds values (?, ?)", kinds)

        def rows() -> Iterator[tuple[object, ...]]:
            last = previous
            for number in range(1, 1_000_001):
                runs = {kinds[number % 100][0]: 1}
                when, details = "2026-01-01T00:00:00.000000+00:00", {"chosen": "in-advance", "partition": ""}
                entry = Entry("census", number, "spend", "t", when, "x", last, account="/", runs=runs, details=details)
                last = entry.hash
                yield "census", number, None, entry.content, entry.previous, last
            database.execute("update ledger_heads set number = 1000000, hash = ?", (last,))

        database.executemany("insert into ledger_entries values (?, ?, ?, ?, ?, ?)", rows())
        counts = [("census", "/", kind, 10_000) for kind, _ in kinds]
        database.executemany("insert into ledger_totals values (?, ?, ?, ?)", counts)
    database.close()
    found = book.total("census")
    assert found.releases == 1_000_000
    assert found.epsilon.upper / found.epsilon.lower < 1.0 + 1e-9
    assert book.would_fit("census", hs.Gaussian(5000.0))
    assert book.verify() == []


def test_exports_are_json_lines_that_hash_alike(book: Ledger) -> None:
    records = [json.loads(json.dumps(record)) for record in book.export("census")]
    entries = [record for record in records if "number" in record]
    previous = GENESIS
    for record in entries:
        entry = Entry.read("census", record["number"], record["content"], previous)
        assert entry.hash == record["hash"]
        previous = record["hash"]
    assert {record["kind"] for record in records if "kind" in record} == {
        kind for record in entries for kind in json.loads(record["content"])["runs"]
    }
