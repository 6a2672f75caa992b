"""The rows of a sweep on disk, written as they come, and read again to go on.

CSV is one file. Parquet is a folder of parts, one a chunk, each put there whole, which pandas, Polars, DuckDB and
others read as one table: a single file would be unreadable until its end is written. A row is numbered, names its
point of the grid, and carries a fingerprint of what was accounted: rows of another sweep are refused.
"""

from __future__ import annotations

import csv
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, final

from hockeystick.sweep.grid import Grid
from hockeystick.sweep.plans import NAMELESS, Plan, Row, Search

_NOTES = " | "  # between the notes of a row
_TEXTS = ("method", "notes", "refused", "run")

Record = dict[str, Any]


class RowFile(ABC):
    """Where rows are kept.

    Parameters
    ----------
    path : Path
        Of the file or folder.
    grid : Grid
        Whose plans the rows are, with the settings among what is fixed.
    quantity : str
        What the brackets hold.
    """

    folder: ClassVar[bool]
    """Whether it is a folder."""

    def __init__(self, path: Path, grid: Grid, quantity: str) -> None:
        self.path, self.quantity = path, quantity
        columns = {name: _plain(values) for name, values in grid.columns().items()}
        self._points = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        self._sides = tuple(f"{quantity}_{side}" for side in ("lower", "upper", "safe"))
        self.header = ("plan", *columns, *self._sides, *_TEXTS)

    def record(self, number: int, row: Row) -> Record:
        """A row as it is kept."""
        values = (row.lower, row.upper, row.safe, row.method, _NOTES.join(row.notes), row.refused, row.run)
        return {"plan": number, **self._points[number], **dict(zip((*self._sides, *_TEXTS), values, strict=True))}

    def row(self, record: Mapping[str, Any]) -> tuple[int, Row]:
        """The number and the row of what was kept.

        Raises
        ------
        ValueError
            Where it is a row of another grid.
        """
        number, row = self._kept(record)
        if not 0 <= number < len(self._points):
            raise ValueError(f"{self.path} holds another sweep: it has a plan {number}, this grid {len(self._points)}")
        for name, value in self._points[number].items():
            kept = record[name]
            if kept != value and str(kept) != str(value):
                raise ValueError(
                    f"{self.path} holds another sweep: plan {number} has {name} {kept!r} there and {value!r} here"
                )
        return number, row

    def _kept(self, record: Mapping[str, Any]) -> tuple[int, Row]:
        """What a record holds, if it is whole."""
        try:
            number, lower, upper = int(record["plan"]), *(float(record[name]) for name in self._sides[:2])
            safe = record[self._sides[2]]
            value = None if safe in {"", None} else float(safe)
            if not lower <= upper:
                raise ValueError(f"{lower} is not at most {upper}")
        except (TypeError, ValueError) as error:
            raise _damaged(self.path, f"{error}, in the row {list(record.values())}") from error
        method, notes, refused, run = (str(record[name] or "") for name in _TEXTS)
        several = tuple(notes.split(_NOTES)) if notes else ()
        return number, Row(lower, upper, value, method, several, refused, run)

    @abstractmethod
    def write(self, rows: Iterable[tuple[int, Row]]) -> None:
        """Keep rows with their numbers."""

    @abstractmethod
    def read(self) -> dict[int, Row]:
        """All that is kept, by number.

        Raises
        ------
        ValueError
            Where it is of another sweep.
        """


@final
class _CsvFile(RowFile):
    """One file, a line a row."""

    folder = False

    def write(self, rows: Iterable[tuple[int, Row]]) -> None:
        fresh = not self.path.exists()
        with self.path.open("a", encoding="utf-8", newline="") as file:
            if fresh:
                file.write(_line(self.header))
            for number, row in rows:
                file.write(_line(self.record(number, row).values()))

    def read(self) -> dict[int, Row]:
        text = self.path.read_bytes()
        if _line(self.header).encode().startswith(text):  # nothing, or its first line cut short
            self.path.unlink()
            return {}
        whole = text[: text.rfind(b"\n") + 1]  # a line cut short was not yet kept
        while whole.count(b'"') % 2:  # nor one cut short in a value that holds the end of a line
            whole = whole[: whole.rfind(b"\n", 0, -1) + 1]
        try:
            reader = csv.DictReader(io.StringIO(whole.decode("utf-8-sig"), newline=""))
            names, records = reader.fieldnames or (), list(reader)
        except (csv.Error, UnicodeDecodeError) as error:
            raise _damaged(self.path, str(error)) from error
        if tuple(names) != self.header:
            raise ValueError(f"{self.path} holds another sweep: its columns are {', '.join(names)}")
        if len(whole) < len(text):  # known to be ours
            os.truncate(self.path, len(whole))  # rows that are whole are never out of the file
        return dict(map(self.row, records))


@final
class _ParquetFolder(RowFile):
    """A folder of parts, each written beside it and then put there whole."""

    folder = True

    def write(self, rows: Iterable[tuple[int, Row]]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.path.mkdir(exist_ok=True)
        records = [self.record(number, row) for number, row in rows]
        table = pa.table({name: [record[name] for record in records] for name in self.header}, self._schema())
        part = self.path / f"part-{records[0]['plan']:09}.parquet"
        partial = part.with_suffix(f".{os.getpid()}.partial")
        parquet.write_table(table, partial)
        partial.replace(part)

    def _schema(self) -> Any:
        """One type a column, whatever the rows of a part hold."""
        import pyarrow as pa

        types = {"plan": pa.int64(), **dict.fromkeys(self._sides, pa.float64()), **dict.fromkeys(_TEXTS, pa.string())}
        kinds = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
        types |= {name: kinds[type(value)] for name, value in self._points[0].items()}
        return pa.schema([(name, types[name]) for name in self.header])

    def read(self) -> dict[int, Row]:
        from pyarrow import ArrowException, parquet

        found: dict[int, Row] = {}
        for part in sorted(self.path.glob("part-*.parquet")):
            try:
                table = parquet.read_table(part)
            except (ArrowException, OSError) as error:
                raise _damaged(part, str(error)) from error
            if tuple(table.column_names) != self.header:
                raise ValueError(f"{self.path} holds another sweep: its columns are {', '.join(table.column_names)}")
            found.update(map(self.row, table.to_pylist()))
        return found


def _line(values: Iterable[Any]) -> str:
    """A line of a file, in which values that hold either character of a line's end are quoted."""
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\r\n").writerow(values)  # of what ends a line all is quoted, and nothing else
    return line.getvalue().removesuffix("\r\n") + "\n"


def _damaged(path: Path, why: str) -> ValueError:
    """The refusal of what is not as it was written."""
    return ValueError(f"{path} is damaged: {why}. Take out what is damaged: plans without a row are computed again")


def _plain(values: Sequence[Any]) -> list[Any]:
    """The values of a column in one type that a file holds."""
    kinds = {type(value) for value in values}
    if kinds == {bool} or (kinds == {int} and all(abs(value) < 2**63 for value in values)):
        return list(values)
    if kinds <= {int, float}:
        with suppress(OverflowError):  # of a whole number beyond float64 the digits are kept
            return list(map(float, values))
    for text in map(str, values):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"a file in UTF-8 cannot hold the text {text!r}; write to none, or rename it") from None
    return list(map(str, values))


def row_file(path: str | os.PathLike[str], grid: Grid, quantity: str) -> RowFile:
    """The file or folder at a path, by its ending."""
    given = Path(path)
    kinds: dict[str, type[RowFile]] = {".csv": _CsvFile, ".parquet": _ParquetFolder}
    if given.suffix not in kinds:
        raise ValueError(f"rows are kept in a file that ends in .csv or .parquet, got {str(path)!r}")
    return kinds[given.suffix](given, grid, quantity)


def restored(file: RowFile, plans: Sequence[Plan | Search]) -> dict[int, Row]:
    """The rows that are kept already, and are of these plans.

    Raises
    ------
    ValueError
        Where a row is of another run, or of one that nothing tells from others.
    """
    if not file.path.exists():
        return {}
    found = file.read()
    for number, row in found.items():
        run = plans[number].fingerprint(row)
        if run == NAMELESS:
            raise ValueError(
                f"{file.path} cannot be gone on with: its plan {number} has a step that is stated by a Python function,"
                " which nothing tells from another function; write to another file"
            )
        if row.run != run:
            raise ValueError(
                f"{file.path} holds another sweep: its plan {number} is of another run than family makes now; write"
                " to another file"
            )
    return found
