"""Lines of equal guarantee over a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick.app.canvas import GREY, LINE, Array, canvas, finished
from hockeystick.decimals import plain
from hockeystick.errors import public_door
from hockeystick.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@public_door
def contours(
    sweep: Sweep,
    *,
    x: str | None = None,
    y: str | None = None,
    at: Mapping[str, Any] | None = None,
    levels: ArrayLike | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Lines of equal guarantee over two axes of a sweep: of the safe side, or of the values that were found.

    Dots are the plans; between them lines are interpolated, and prove nothing.

    Parameters
    ----------
    sweep : Sweep
        From `hockeystick.sweep`.
    x, y : str, optional
        Which axes; by default the first two that `at` leaves.
    at : mapping, optional
        Of every other axis, which of its values.
    levels : array_like, optional
        Where lines are drawn; by default eight, evenly or, over a wide range, by equal factors.
    title : str, optional
        Of the picture.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.

    Examples
    --------
    >>> import hockeystick as hs
    >>> def plan(noise, steps):
    ...     return hs.Gaussian(noise) * steps
    >>> found = hs.sweep(plan, noise=[10.0, 20.0, 40.0], steps=[1, 10, 100], delta=1e-5)
    >>> contours(found).axes[0].get_xlabel()
    'noise'
    """
    if not isinstance(sweep, Sweep):
        raise TypeError(f"sweep must be what hockeystick.sweep returns, got {sweep!r}")
    across, up, values = _plane(sweep, x, y, dict(at or {}))
    (along_x, columns), (along_y, rows) = _along(sweep, across), _along(sweep, up)
    axes_values, values = (along_x, along_y), values[np.ix_(rows, columns)]
    same = ", ".join(f"{name} {_told(value)}" for name, value in {**sweep.grid.fixed, **(at or {})}.items())
    figure, axes = canvas(title or f"{sweep.quantity} at {same}; interpolated between the dots", ax)
    shown = values[np.isfinite(values)]
    if shown.size == 0:
        raise ValueError("no plan of this plane has a finite answer: there is nothing to draw")
    at_levels = _levels(shown) if levels is None else np.sort(np.asarray(levels, dtype=np.float64).ravel())
    lines = axes.contour(*axes_values, values, levels=at_levels, colors=[LINE])
    axes.clabel(lines, fmt=lambda level: f"{level:.3g}", fontsize=8.0)
    axes.plot(*(mesh.ravel() for mesh in np.meshgrid(*axes_values)), ".", color=GREY, markersize=1.5)
    axes.set(xlabel=across, ylabel=up)
    for set_scale, along in zip((axes.set_xscale, axes.set_yscale), axes_values, strict=True):
        if along.min() > 0.0 and along.max() > 20.0 * along.min():
            set_scale("log")
    return finished(axes, legend=False, figure=figure)


def _told(value: object) -> str:
    """A value of an axis, as tables write it."""
    return plain(value) if isinstance(value, int | float) else str(value)


def _plane(sweep: Sweep, x: str | None, y: str | None, at: dict[str, Any]) -> tuple[str, str, Array]:
    """The two axes of a picture, and the numbers by rows of the second; NaN where there is no answer."""
    axes = sweep.grid.axes
    free = [name for name in axes if name not in at and name not in {x, y}]
    across = x if x is not None else (free.pop(0) if free else "")
    up = y if y is not None else (free.pop(0) if free else "")
    unknown = {across, up, *at} - set(axes)
    if free or unknown or across == up or not at.keys().isdisjoint({across, up}):
        raise ValueError(
            f"a picture needs two different axes of {', '.join(axes)}, and a value of every other one in at=, got"
            f" x={x!r}, y={y!r}, at={at!r}"
        )
    values = np.asarray(sweep.bound.upper if sweep.quantity in {"epsilon", "delta"} else sweep.safe, dtype=np.float64)
    values = np.where(sweep.refused == "", values, np.nan)
    for name, wanted in at.items():
        if wanted not in axes[name]:
            raise ValueError(f"{name} has no value {wanted!r} in this sweep: it has {axes[name]!r}")
    place = tuple(axes[name].index(at[name]) if name in at else slice(None) for name in axes)
    plane = values[place]
    kept = [name for name in axes if name not in at]
    return across, up, plane.T if kept.index(across) < kept.index(up) else plane


def _along(sweep: Sweep, name: str) -> tuple[Array, NDArray[np.intp]]:
    """The different numbers of an axis, from the smallest to the largest, and where in it they are."""
    given = sweep.grid.axes[name]
    numbers = [float(value) for value in given if isinstance(value, Real)]
    along, places = np.unique(numbers, return_index=True)
    if len(numbers) < len(given) or along.size < 2:
        raise ValueError(f"lines need two different numbers or more along either axis, got {name}={list(given)!r}")
    return along, places


def _levels(shown: Array) -> Array:
    low, high = float(shown.min()), float(shown.max())
    if low > 0.0 and high > 20.0 * low:
        return np.geomspace(low, high, 10)[1:-1]
    return np.linspace(low, high, 10)[1:-1]
