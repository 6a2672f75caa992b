"""What a sweep returns: brackets in the shape of the grid, and the ways to take them elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.bound import Bound
from hockeystick.sweep.grid import Grid
from hockeystick.sweep.plans import Row

if TYPE_CHECKING:
    import pandas as pd
    import xarray


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep:
    """Certified answers on a grid of plans.

    Attributes
    ----------
    grid : Grid
        The axes, in the order of the dimensions, and what is the same for every plan.
    quantity : str
        What the brackets hold: "epsilon", "delta", or the argument that was sought.
    rows : tuple of Row
        The plans' answers, the last axis varying fastest.

    Examples
    --------
    >>> import hockeystick as hs
    >>> def plan(noise, steps):
    ...     return hs.Gaussian(noise).poisson(0.01) * steps
    >>> found = hs.sweep(plan, noise=[0.8, 1.0], steps=[500, 1000, 2000], delta=1e-5)
    >>> found.shape, bool(found.bound.lower[1, 2] <= 2.583841181692741 <= found.bound.upper[1, 2])
    ((2, 3), True)
    """

    grid: Grid
    quantity: str
    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}: {len(values)}" for name, values in self.grid.axes.items())
        refused = sum(bool(row.refused) for row in self.rows)
        return f"Sweep({self.quantity} on {axes or 'one plan'}; {len(self.rows) - refused} answered, {refused} not)"

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the grid."""
        return self.grid.shape

    @property
    def bound(self) -> Bound:
        """The brackets, in the shape of the grid; trivial where there is no answer (`refused` says why).

        Where a value was sought, the best one lies between the two sides, if privacy gets steadily better or worse with
        it, as `hockeystick.calibrate` asks of a family.
        """
        methods = "; ".join(dict.fromkeys(row.method for row in self.rows if row.method)) or "none"
        notes = tuple(dict.fromkeys(note for row in self.rows for note in row.notes))
        return Bound(self._shaped("lower"), self._shaped("upper"), methods, notes)

    @property
    def safe(self) -> NDArray[np.float64]:
        """The values proved to meet the target, in the shape of the grid; NaN where there is none.

        Raises
        ------
        TypeError
            Where no value was sought.
        """
        if self.quantity in {"epsilon", "delta"}:
            raise TypeError("this sweep has accounted plans and sought no value: its answers are in .bound")
        return self._shaped("safe")

    @property
    def refused(self) -> NDArray[np.object_]:
        """Why a plan has no answer, in the shape of the grid; an empty string where it has one."""
        return np.array([row.refused for row in self.rows], dtype=object).reshape(self.shape)

    @property
    def complete(self) -> bool:
        """Whether every plan has an answer."""
        return not any(row.refused for row in self.rows)

    def to_table(self) -> dict[str, list[Any]]:
        """Columns by name, one row a plan, as a data frame takes them.

        Examples
        --------
        >>> import hockeystick as hs
        >>> found = hs.sweep(hs.Gaussian, noise_multiplier=[1.0, 2.0], delta=1e-5)
        >>> list(found.to_table())
        ['noise_multiplier', 'adjacency', 'delta', 'epsilon_lower', 'epsilon_upper', 'method', 'notes', 'refused']
        """
        table = self.grid.columns() | {name: values.ravel().tolist() for name, values in self._answers().items()}
        table["method"] = [row.method for row in self.rows]
        table["notes"] = ["; ".join(row.notes) for row in self.rows]
        table["refused"] = [row.refused for row in self.rows]
        return table

    def to_pandas(self) -> pd.DataFrame:
        """The same as a data frame. Needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.to_table())

    def to_xarray(self) -> xarray.Dataset:
        """The two sides and the reasons as labelled arrays. Needs xarray."""
        import xarray

        names = tuple(self.grid.axes)
        answers = {name: (names, values) for name, values in self._answers().items()}
        fixed = {name: value for name, value in self.grid.fixed.items() if isinstance(value, int | float | str)}
        coordinates = {name: list(values) for name, values in self.grid.axes.items()}
        return xarray.Dataset({**answers, "refused": (names, self.refused.astype(str))}, coordinates, fixed)

    def _answers(self) -> dict[str, NDArray[np.float64]]:
        own = ("lower", "upper") if self.quantity in {"epsilon", "delta"} else ("safe", "lower", "upper")
        return {f"{self.quantity}_{side}": self._shaped(side) for side in own}

    def _shaped(self, name: str) -> NDArray[np.float64]:
        numbers = [math.nan if (value := getattr(row, name)) is None else value for row in self.rows]
        return np.array(numbers, dtype=np.float64).reshape(self.shape)
