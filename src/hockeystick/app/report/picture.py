"""The privacy curve as a PNG or PDF, drawn by matplotlib (an extra) from points that have been read already."""

from __future__ import annotations

from pathlib import Path

from hockeystick.app.report.figures import Drawn
from hockeystick.errors import needs_extra

__all__ = ["picture"]


def picture(points: Drawn, path: Path, *, title: str) -> None:
    """Draw delta against epsilon, with the bracket as a band.

    Parameters
    ----------
    points : sequence of (delta, lower, upper)
        The curve, from `hockeystick.app.report.figures.drawable`.
    path : Path
        Where to, its suffix names the format.
    title : str
        Above the picture.

    Raises
    ------
    ModuleNotFoundError
        Where matplotlib is not installed.
    """
    with needs_extra("matplotlib", "plots"):  # for this alone
        from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained", dpi=160)
    axes = figure.subplots()
    delta, lower, upper = zip(*points, strict=True)
    axes.fill_betweenx(delta, lower, upper, color="#0b5cad", alpha=0.25, linewidth=0)
    axes.plot(upper, delta, color="#0b5cad", linewidth=1.8)
    axes.set(xlabel="epsilon (nats)", ylabel="delta", yscale="log", title=title)
    axes.set_xlim(left=0.0)
    axes.grid(color="#5b6770", alpha=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
