"""What pictures are drawn on: the caller's axes, or a figure that a notebook shows. Needs matplotlib, an extra."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from hockeystick.errors import needs_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["canvas", "ticks_at"]

_FEW = 6  # points that each have a tick of their own
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


def ticks_at(axes: Axes, places: Sequence[float]) -> None:
    """A labelled tick at every place where they are few; the powers of ten between them would say nothing."""
    if len(places) <= _FEW:
        axes.set_xticks(list(places), [f"{place:,}" if isinstance(place, int) else f"{place:g}" for place in places])
        axes.xaxis.minorticks_off()


def _as_png(figure: Figure) -> bytes:
    stream = BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()


def canvas(title: str, ax: Axes | None, size: tuple[float, float] = (6.4, 4.2)) -> tuple[Figure, Axes]:
    """The caller's axes and their figure, or new ones that a notebook shows."""
    if ax is not None:
        ax.set_title(title)
        return cast("Figure", ax.figure), ax
    with needs_extra("matplotlib", "plots"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained", dpi=150)
        axes = figure.subplots()
        axes.set_title(title)
    vars(figure)["_repr_png_"] = partial(_as_png, figure)  # what notebooks ask for; pyplot need not be imported
    return figure, axes
