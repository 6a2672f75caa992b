"""The grid of a sweep: named axes, what is the same for every plan, and the plans' places in it."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

_OWN = (
    *("delta", "epsilon", "adjacency", "tolerance", "accountant", "find", "mu", "advantage", "settings", "workers"),
    *("file", "resume"),
)
_COLUMNS = ("plan", "method", "notes", "refused", "run")  # of tables and files, besides arguments and sides


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """Every combination of the values of some axes; the last axis varies fastest.

    Attributes
    ----------
    axes : mapping of str to tuple
        The values along each dimension, in the order of the dimensions.
    fixed : mapping of str to object
        What is the same everywhere.

    Examples
    --------
    >>> grid = Grid.of({"noise": [1.0, 2.0], "rate": 0.1})
    >>> grid.shape, list(grid.points())
    ((2,), [{'noise': 1.0, 'rate': 0.1}, {'noise': 2.0, 'rate': 0.1}])
    """

    axes: Mapping[str, tuple[Any, ...]]
    fixed: Mapping[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Grid:
        """The grid of named values: one that holds several is an axis."""
        axes: dict[str, tuple[Any, ...]] = {}
        fixed: dict[str, Any] = {}
        for name, value in given.items():
            values = _values(name, value)
            if values is None:
                fixed[name] = value.item() if isinstance(value, np.generic | np.ndarray) else value
            else:
                axes[name] = values
        return cls(axes, fixed)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of every axis."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def size(self) -> int:
        """The number of plans."""
        return math.prod(self.shape)

    @property
    def longest(self) -> str | None:
        """The longest axis of positive numbers; of several the first."""
        numeric = [name for name, values in self.axes.items() if all(_is_positive(value) for value in values)]
        return max(numeric, key=lambda name: len(self.axes[name]), default=None)

    def lines(self, most: int) -> list[list[int]]:
        """The numbers of the plans along the longest axis, for all other values: so many of a line at a time."""
        numbers = np.arange(self.size).reshape(self.shape or (1,))
        if self.longest is not None:
            numbers = np.moveaxis(numbers, list(self.axes).index(self.longest), -1)
        every = numbers.reshape(-1, numbers.shape[-1])
        return [line for start in range(0, every.shape[1], most) for line in every[:, start : start + most].tolist()]

    def values(self, name: str) -> tuple[Any, ...]:
        """The values that a name takes."""
        return self.axes[name] if name in self.axes else (self.fixed[name],)

    def points(self) -> Iterator[dict[str, Any]]:
        """The named values of every plan, in order."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True)) | dict(self.fixed)

    def columns(self) -> dict[str, list[Any]]:
        """The named values of all plans, name by name."""
        points = list(self.points())
        return {name: [point[name] for point in points] for name in (*self.axes, *self.fixed)}


def _values(name: str, value: Any) -> tuple[Any, ...] | None:
    """The values of an axis as plain numbers and objects; None for a single one."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return None
    shape = value.shape if isinstance(value, np.ndarray) else None
    if shape == ():
        return None
    if shape is not None and len(shape) > 1:
        raise ValueError(f"{name} must be one value or a list of values, got an array of shape {shape}")
    values = tuple(one.item() if isinstance(one, np.generic) else one for one in value)
    if not values:
        raise ValueError(f"{name} holds no value: the grid would be empty")
    return values


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 < value < math.inf


def _check_columns(names: Iterable[str], find: str | None) -> None:
    """Refuse names that a table of the sweep has columns of."""
    sides = {f"{quantity}_{side}" for quantity in ("epsilon", "delta", find) for side in ("safe", "lower", "upper")}
    for name in names:
        if name in _COLUMNS or name in sides:
            raise TypeError(f"rename the argument {name} of family: a table of the sweep has a column of that name")


def check_arguments(family: Callable[..., Any], given: Iterable[str], find: str | None) -> None:
    """Refuse names that the family does not take, or a table has, and name those that it lacks."""
    _check_columns(given, find)
    try:
        parameters = inspect.signature(family).parameters.values()
    except (TypeError, ValueError):  # some functions written in C tell nothing of their arguments
        return
    named = [one for one in parameters if one.kind in {one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY}]
    takes = {one.name for one in named}
    names = set(given)
    if find is not None:
        if not isinstance(find, str):
            raise TypeError(f"find must be the name of an argument of family, got {find!r}")
        if find in names:
            raise TypeError(f"{find} is to be found, so it cannot be given as well")
        names.add(find)
    unknown = [] if any(one.kind is one.VAR_KEYWORD for one in parameters) else sorted(names - takes)
    if unknown:
        raise TypeError(f"family has no argument {', '.join(unknown)}: it takes {', '.join(one.name for one in named)}")
    missing = [one.name for one in named if one.default is one.empty and one.name not in names]
    own = [name for name in missing if name in _OWN]
    if own:
        raise TypeError(f"rename the argument {own[0]} of family: the sweep itself has one of that name")
    if missing:
        raise TypeError(f"give {', '.join(missing)}, which family needs: one value, or a list of them for an axis")
