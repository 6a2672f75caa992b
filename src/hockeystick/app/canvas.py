"""What all pictures of guarantees share: their style, and how a bracket and an estimate look.

A certified quantity is a band between its two sides with the safe side as its line; an estimate is a dashed line.
Colours are those of Okabe and Ito, told apart by colour-blind readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hockeystick.bound import Bound, Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["GREY", "LINE", "Array", "blank", "draw", "finished"]

Array = NDArray[np.float64]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINE = _COLOURS[0]
GREY = "#888888"
_SMALLEST = 1e-300
_STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "font.size": 10.0,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}


def blank(title: str, size: tuple[float, float] = (6.4, 4.2)) -> tuple[Figure, Axes]:
    """A figure with one empty plot."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained", dpi=150)
        axes = figure.subplots()
        axes.set_title(title)
    return figure, axes


def draw(
    axes: Axes, x: Array, answer: Bound | Estimate, index: int, name: str, *, safe: str = "upper", markers: bool = False
) -> None:
    """One band with its safe side as a line; an estimate as a dashed line."""
    lower, upper = (np.asarray(side, dtype=np.float64) for side in answer.sides)
    colour = _COLOURS[index % len(_COLOURS)]
    marker = _MARKERS[index % len(_MARKERS)] if markers else None
    style: dict[str, Any] = {"color": colour, "label": name or None, "marker": marker}
    if isinstance(answer, Estimate):
        axes.plot(x, upper, linestyle="--", markersize=4.0, **style)
        return
    shown = np.where(upper > 0.0, np.maximum(lower, _SMALLEST), lower)
    axes.fill_between(x, shown, upper, color=colour, alpha=0.3, linewidth=0.0)
    axes.plot(x, upper if safe == "upper" else lower, markersize=4.0, **style)


def finished(axes: Axes, *, legend: bool, figure: Figure) -> Figure:
    """The figure, with a legend or without."""
    if legend:
        axes.legend(frameon=False)
    return figure
