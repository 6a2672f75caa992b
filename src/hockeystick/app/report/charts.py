"""Line charts as inline SVG: sharp on a phone and on paper, without a plotting library or a network.

Colours and strokes come from the page's style sheet through classes, so that dark screens and paper each get their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from hockeystick.app.report.markup import Markup, tag, text

_WIDTH, _HEIGHT = 480.0, 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 14.0, 14.0, 48.0

Points = Sequence[tuple[float, float]]


@final
@dataclass(frozen=True)
class Axis:
    """One axis: what it shows, and between which values.

    Attributes
    ----------
    label : str
        The quantity, with its unit.
    low, high : float
        The ends; on a logarithmic axis the powers of ten at the ends.
    scale : {"linear", "log"}
        How values are placed.
    """

    label: str
    low: float
    high: float
    scale: str = "linear"

    def place(self, value: float) -> float:
        """Where a value lies, from 0 at the low end to 1 at the high one."""
        given = math.log10(value) if self.scale == "log" else value
        return (given - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels of about five ticks."""
        step = _round_step((self.high - self.low) / 5.0)
        if self.scale == "log":
            step = max(1.0, round(step))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [number * step for number in range(first, last + 1)]
        return [((value - self.low) / (self.high - self.low), self._label(value)) for value in values]

    def _label(self, value: float) -> str:
        if self.scale == "log":
            return f"1e{value:.0f}" if value else "1"
        return f"{value:.6g}"


@final
@dataclass(frozen=True)
class Series:
    """A line, or the band between two.

    Attributes
    ----------
    points : sequence of (x, y)
        The line; for a band its one side.
    kind : str
        The class that the style sheet knows: ``line``, ``estimate``, ``area``, ``guide`` or ``mark``.
    other : sequence of (x, y)
        A band's other side.
    """

    points: Points
    kind: str = "line"
    other: Points = ()


def chart(name: str, x: Axis, y: Axis, series: Sequence[Series], *, title: str, description: str) -> Markup:
    """A chart.

    Parameters
    ----------
    name : str
        Unique on the page: the start of its ids.
    x, y : Axis
        The axes.
    series : sequence of Series
        What is drawn, the first lowest.
    title, description : str
        What the chart shows, in words, for those who do not see it.
    """
    parts = [tag("title", title, id=f"{name}-title"), tag("desc", description, id=f"{name}-desc")]
    parts += [_vertical(x), _horizontal(y), *(_drawn(x, y, one) for one in series)]
    box, labelled = f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}", f"{name}-title {name}-desc"
    return tag("svg", text(*parts), viewBox=box, class_="chart", role="img", aria_labelledby=labelled)


def _across(place: float) -> float:
    return _LEFT + place * (_WIDTH - _LEFT - _RIGHT)


def _down(place: float) -> float:
    return _HEIGHT - _BOTTOM - place * (_HEIGHT - _TOP - _BOTTOM)


def _drawn(x: Axis, y: Axis, series: Series) -> Markup:
    around = [*series.points, *reversed(series.other)]
    places = [(_across(x.place(a)), _down(y.place(b))) for a, b in around]
    if series.kind == "mark":
        return text(*(tag("circle", cx=f"{a:.2f}", cy=f"{b:.2f}", r="4", class_="mark") for a, b in places))
    joined = " ".join(f"{a:.2f},{b:.2f}" for a, b in places)
    return tag("polygon" if series.other else "polyline", points=joined, class_=series.kind)


def _vertical(x: Axis) -> Markup:
    """The grid lines of the x axis, their labels and its name."""
    parts: list[str] = []
    for place, label in x.ticks():
        at = f"{_across(place):.2f}"
        parts.append(tag("line", x1=at, x2=at, y1=_down(0.0), y2=_down(1.0), class_="grid"))
        parts.append(tag("text", label, x=at, y=_down(0.0) + 18.0, class_="tick", text_anchor="middle"))
    parts.append(tag("text", x.label, x=_across(0.5), y=_HEIGHT - 8.0, class_="axis", text_anchor="middle"))
    parts.append(tag("line", x1=_across(0.0), x2=_across(1.0), y1=_down(0.0), y2=_down(0.0), class_="frame"))
    parts.append(tag("line", x1=_across(0.0), x2=_across(0.0), y1=_down(0.0), y2=_down(1.0), class_="frame"))
    return text(*parts)


def _horizontal(y: Axis) -> Markup:
    """The grid lines of the y axis, their labels and its name."""
    parts: list[str] = []
    for place, label in y.ticks():
        at = _down(place)
        parts.append(tag("line", x1=_across(0.0), x2=_across(1.0), y1=f"{at:.2f}", y2=f"{at:.2f}", class_="grid"))
        parts.append(tag("text", label, x=_LEFT - 7.0, y=f"{at + 4.0:.2f}", class_="tick", text_anchor="end"))
    turned = f"translate(13 {_down(0.5)}) rotate(-90)"
    parts.append(tag("text", y.label, x=0, y=0, class_="axis", text_anchor="middle", transform=turned))
    return text(*parts)


def _round_step(step: float) -> float:
    """The nearest of 1, 2, 2.5, 5 times a power of ten that is not below ``step``."""
    power = 10.0 ** math.floor(math.log10(step))
    return power * next(factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if power * factor >= step * (1.0 - 1e-9))
