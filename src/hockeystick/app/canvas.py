"""What pictures share: the caller's axes or a figure that a notebook shows, and how bands and estimates look.

A band is proved to hold what it shows, with the safe side as its line; an estimate is a dashed line. Colours are of
Okabe and Ito, told apart by colour-blind readers. Needs matplotlib, an extra.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib.resources import as_file, files
from io import BytesIO
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from hockeystick.bound import Bound, Estimate
from hockeystick.curve import PrivacyCurve
from hockeystick.errors import needs_extra
from hockeystick.readouts.outline import Lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hockeystick.calibrate import Calibration

Array = NDArray[np.float64]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINE, RED = _COLOURS[:2]
GREY = "#888888"
_TOLD_APART = 40  # points by markers

_FEW = 6  # points that each have a tick of their own


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
        if not hasattr(ax, "set_title"):
            raise TypeError(f"ax must be the axes of a matplotlib figure, got {ax!r}")
        ax.set_title(title)
        return cast("Figure", ax.figure), ax
    with needs_extra("matplotlib", "plots"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

    with as_file(files("hockeystick.app") / "canvas.mplstyle") as path:
        style = mpl.rc_params_from_file(path, use_default_template=False)
    with mpl.rc_context(style):
        figure = Figure(figsize=size, layout="constrained", dpi=150)
        axes = figure.subplots()
        axes.set_title(title)
    vars(figure)["_repr_png_"] = partial(_as_png, figure)  # what notebooks ask for; pyplot need not be imported
    return figure, axes


def draw(axes: Axes, lines: Lines, safe: tuple[Array, Array], index: int, name: str, shade: float = 0.3) -> None:
    """The band between two lines, with the safe one drawn."""
    colour = _COLOURS[index % len(_COLOURS)]
    around = [np.concatenate((below, above[::-1])) for below, above in zip(lines.below, lines.above, strict=True)]
    axes.fill(*around, color=colour, alpha=shade, linewidth=0.0)
    axes.plot(*safe, color=colour, label=name or None, linewidth=1.6)


def dashed(axes: Axes, x: Array, y: Array, index: int, name: str, marker: str | None = None) -> None:
    """An estimate."""
    colour = _COLOURS[index % len(_COLOURS)]
    axes.plot(x, y, linestyle="--", color=colour, label=name or None, marker=marker, markersize=4.0)


def rising(axes: Axes, x: Array, answer: Bound | Estimate, index: int, name: str) -> None:
    """What never falls, known at a few points: between two of them at most the later and at least the earlier."""
    lower, upper = risen(answer)
    marker = _MARKERS[index % len(_MARKERS)] if x.size <= _TOLD_APART else None
    if isinstance(answer, Estimate):
        dashed(axes, x, upper, index, name, marker)
        return
    twice = np.repeat(x, 2)
    lines = Lines((twice[1:], np.repeat(lower, 2)[:-1]), (twice[:-1], np.repeat(upper, 2)[1:]))
    draw(axes, lines, lines.above, index, name, shade=0.12)
    axes.plot(x, upper, linestyle="", marker=marker, markersize=4.0, color=_COLOURS[index % len(_COLOURS)])


def risen(answer: Bound | Estimate) -> tuple[Array, Array]:
    """The sides of what never falls, each held to the lower ones before it and to the upper ones behind it.

    Epsilon never falls with steps: fewer of them are a function of more. Nor does the noise that a target needs with
    the rate of Poisson samples or of batches of fixed size: their pairs at a lower rate are those at a higher one,
    replaced by draws without the record a part of the time.
    """
    lower, upper = (np.asarray(side, dtype=np.float64) for side in answer.sides)
    if isinstance(answer, Estimate):
        return lower, upper
    return np.maximum.accumulate(lower), np.minimum.accumulate(upper[::-1])[::-1]


def reach(named: Mapping[str, PrivacyCurve], least: float) -> float:
    """Where the last curve falls to the least delta, or nearly to what it never falls below."""
    return last([float(curve.epsilon(lowest(curve, least)).sides[1]) for curve in named.values()])


def lowest(curve: PrivacyCurve, least: float) -> float:
    """The least delta that is drawn, or nearly what the curve never falls below."""
    return float(np.clip(1.1 * float(curve.delta(np.inf).sides[1]), least, 0.99))


def last(ends: Iterable[float]) -> float:
    """The largest epsilon of a picture, from those of its curves."""
    return max((end for end in ends if 0.0 < end < np.inf), default=10.0)


def between(found: Sequence[Calibration]) -> Bound:
    """Where the least safe values lie, where larger ones are safer: above what is proved unsafe, if anything is."""
    return Bound(np.array([_least(one) for one in found]), np.array([float(one) for one in found]), "calibration")


def _least(found: Calibration) -> float:
    if found.unsafe is not None:
        return float(found.unsafe)
    return 0.0 if found.precision > 0.0 else float(found)  # no smaller value is allowed


def finished(axes: Axes, *, legend: bool, figure: Figure) -> Figure:
    """The figure, with a legend or without."""
    if legend:
        axes.legend(frameon=False)
    return figure
