"""Arrays: by what they hold, records of arrays that share axes, and numbers that meet those of a row or of a column.

What is picked from one array of a record, or put beside it, is so in all of them.

Guarantee: nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]
Places = NDArray[np.intp]
"""Of rows of an array, or of its entries."""


class Columns:
    """A frozen dataclass whose fields are arrays with axes in common, other such records, or None."""

    @classmethod
    def of_all(cls, several: Sequence[Self], together: Callable[[Any], Any]) -> Self:
        """The record whose every array is made of those of several."""
        record: Any = cls
        columns = zip(*map(_columns(record), several), strict=True)
        return cls(*[_of_column(column, together) for column in columns])

    @classmethod
    def stacked(cls, several: Sequence[Self]) -> Self:
        """Several as one, with a leading axis."""
        return cls.of_all(several, np.array)

    @classmethod
    def joined(cls, several: Sequence[Self], axis: int = 0) -> Self:
        """Several, one after the other along an axis."""
        return several[0] if len(several) == 1 else cls.of_all(several, lambda arrays: np.concatenate(arrays, axis))

    def at(self, index: Any) -> Self:
        """What every array has at an index: some of the rows, say, each as often as it is named."""
        record: Any = type(self)
        columns = _columns(record)(self)
        return type(self)(
            *[one.at(index) if isinstance(one, Columns) else None if one is None else one[index] for one in columns]
        )

    def put(self, rows: Places, part: Self) -> Self:
        """The same, written over by another record in the place of some of the rows, in increasing order."""
        record: Any = type(self)
        if rows.size == _columns(record)(self)[0].shape[-1]:
            return part

        def placed(both: Sequence[Any]) -> Any:
            both[0][..., rows] = both[1]
            return both[0]

        return self.of_all([self, part], placed)


def column(numbers: Any) -> Array:
    """A number for each row, shape (..., R, 1), for arithmetic with rows; of one row without axes, in half the time."""
    array = np.asarray(numbers)
    return array[..., None] if array.size > 1 else array.reshape(())


def across(numbers: Any) -> Array:
    """A number for each column, shape (R,), for arithmetic with columns; of one column without axes, likewise."""
    array = np.asarray(numbers)
    return array if array.size > 1 else array.reshape(())


@cache
def _columns(record: Any) -> Callable[[Any], Sequence[Any]]:
    return attrgetter(*(field.name for field in fields(record)))


def _of_column(column: Sequence[Any], together: Callable[[Any], Any]) -> Any:
    first = column[0]
    if isinstance(first, Columns):
        return type(first).of_all(column, together)
    return None if first is None else together(column)
