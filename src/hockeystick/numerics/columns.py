"""Records of arrays that share axes: what is picked from one array, or put beside it, is so in all of them.

Guarantee: nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Self

import numpy as np


class Columns:
    """A frozen dataclass whose fields are arrays with axes in common, other such records, or None."""

    @classmethod
    def of_all(cls, several: Sequence[Self], together: Callable[[list[Any]], Any]) -> Self:
        """The record whose every array is made of those of several."""
        record: Any = cls
        columns = ([getattr(one, name) for one in several] for name in _names(record))
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
        return type(self)(*[_picked(getattr(self, name), index) for name in _names(record)])


@cache
def _names(record: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))


def _of_column(column: list[Any], together: Callable[[list[Any]], Any]) -> Any:
    first = column[0]
    if isinstance(first, Columns):
        return type(first).of_all(column, together)
    return None if first is None else together(column)


def _picked(column: Any, index: Any) -> Any:
    if isinstance(column, Columns):
        return column.at(index)
    return None if column is None else column[index]
