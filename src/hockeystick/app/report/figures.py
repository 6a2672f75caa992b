"""The two figures of a receipt: the privacy curve and the trade-off function."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hockeystick.app.report.charts import Axis, Series, chart
from hockeystick.app.report.markup import Markup, tag, text
from hockeystick.app.report.numbers import number, plain

__all__ = ["Drawn", "drawable", "privacy_chart", "standalone", "tradeoff_chart"]

Drawn = Sequence[tuple[float, float, float]]
"""Points of a privacy curve: delta, epsilon at least, epsilon at most."""

_STYLE = """
svg { background: #fff; font-family: system-ui, "Segoe UI", Roboto, Arial, sans-serif; }
.grid { stroke: #d8dee4; } .frame { stroke: #57606a; } .area { fill: #0b5cad22; }
.line { fill: none; stroke: #0b5cad; stroke-width: 2.2; stroke-linejoin: round; }
.guide { fill: none; stroke: #57606a; stroke-dasharray: 5 5; } .mark { fill: #0b5cad; }
text { fill: #57606a; font-size: 13px; } .axis { fill: #1b1f24; font-size: 14px; }
"""


def drawable(points: Sequence[Mapping[str, Any]]) -> Drawn | None:
    """The points of a curve that can be drawn; None where there are not two of them with some epsilon above 0."""
    found = [
        (number(p["delta"]), number(p.get("lower", p.get("value"))), number(p.get("upper", p.get("value"))))
        for p in points
    ]
    finite = [point for point in found if math.isfinite(point[2]) and point[0] > 0.0]
    return finite if len(finite) > 1 and max(point[2] for point in finite) > 0.0 else None


def privacy_chart(points: Drawn, marks: Sequence[tuple[float, float]] = (), *, title: str = "Privacy curve") -> Markup:
    """delta against epsilon, with the bracket as a band.

    Parameters
    ----------
    points : sequence of (delta, lower, upper)
        The curve, from `drawable`.
    marks : sequence of (epsilon, delta)
        Points to mark.
    title : str
        What the chart shows, for those who do not see it.
    """
    upper = [(high, delta) for delta, _, high in points]
    lower = [(low, delta) for delta, low, _ in points]
    powers = [math.log10(delta) for _, delta in (*upper, *marks)]
    widest = max(epsilon for epsilon, _ in (*upper, *marks))
    return chart(
        "curve",
        Axis("epsilon", 0.0, 1.04 * widest),
        Axis("delta", math.floor(min(powers)), math.ceil(max(powers)), scale="log"),
        [Series(lower, "area", other=upper), Series(upper), Series(marks, "mark")],
        title=title,
        description=f"delta against epsilon, from delta {plain(points[0][0])} to {plain(points[-1][0])}",
    )


def tradeoff_chart(tradeoff: Mapping[str, Any]) -> Markup:
    """The least false-negative rate of any attack against its false-positive rate, as receipts hold it."""
    rates = list(zip(tradeoff["false_positive"], tradeoff["false_negative"], strict=True))
    below = [(alpha, number(sides["lower"])) for alpha, sides in rates]
    above = [(alpha, number(sides["upper"])) for alpha, sides in rates]
    return chart(
        "tradeoff",
        Axis("false-positive rate of an attack", 0.0, 1.0),
        Axis("false-negative rate", 0.0, 1.0),
        [Series([(0.0, 1.0), (1.0, 0.0)], "guide"), Series(below, "area", other=above), Series(below)],
        title="Trade-off curve",
        description="The least false-negative rate of any attack that tells whether one record is in the data",
    )


def standalone(drawn: Markup) -> str:
    """A chart as an SVG file of its own, with its style inside."""
    styled = drawn.replace(">", ">" + tag("style", Markup(_STYLE)), 1)
    return str(text(Markup(styled.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)))) + "\n"
