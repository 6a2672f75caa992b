"""The two figures of a receipt: the privacy curve and the trade-off function, outlined by what is proved."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hockeystick.app.assets import asset
from hockeystick.app.report.charts import Axis, Points, Series, chart
from hockeystick.app.report.markup import Markup, tag, text
from hockeystick.app.report.numbers import plain
from hockeystick.readouts.outline import Array, Lines, Samples


def privacy_chart(
    samples: Samples, least: float, marks: Sequence[tuple[float, float]] = (), *, title: str = "Privacy curve"
) -> Markup | None:
    """delta against epsilon, with the bracket as a band and the safe side as its line.

    None where delta is 0, or known at epsilon 0 alone.

    Parameters
    ----------
    samples : Samples
        Of the curve.
    least : float
        The smallest delta shown.
    marks : sequence of (epsilon, delta)
        Points to mark, where they are on the chart.
    title : str
        What the chart shows, for those who do not see it.
    """
    if samples.certified:
        lines = samples.privacy(least)
        series = _band(lines, safe=_points(*lines.above))
    else:
        series = [Series([point for point in _points(*samples.estimate) if point[1] >= least], "estimate")]
    drawn = [point for one in series for point in one.points if point[1] > 0.0]
    widest = samples.epsilon[-2]
    if not drawn or widest == 0.0 or max(delta for _, delta in drawn) <= least:
        return None
    seen = [(epsilon, delta) for epsilon, delta in marks if epsilon <= widest and delta >= least]
    return chart(
        "curve",
        Axis("epsilon", 0.0, widest),
        Axis("delta", math.floor(math.log10(least)), math.ceil(math.log10(max(y for _, y in drawn))), scale="log"),
        [*series, Series(seen, "mark")],
        title=title,
        description=f"delta against epsilon, from epsilon 0 to {plain(float(f'{widest:.3g}'))}",
    )


def tradeoff_chart(samples: Samples, direction: str) -> Markup:
    """The least false-negative rate of any attack against its false-positive rate."""
    lines = samples.trade_off(direction)
    band = _band(lines, safe=_points(*lines.below))
    guessing = Series([(0.0, 1.0), (1.0, 0.0)], "guide")
    return chart(
        "tradeoff",
        Axis("false-positive rate of an attack", 0.0, 1.0),
        Axis("false-negative rate", 0.0, 1.0),
        [guessing, *(band if samples.certified else [Series(band[1].points, "estimate")])],
        title="Trade-off curve",
        description="The least false-negative rate of any attack that tells neighbouring datasets apart",
    )


def _points(x: Array, y: Array) -> Points:
    return list(zip(x.tolist(), y.tolist(), strict=True))


def _band(lines: Lines, *, safe: Points) -> list[Series]:
    return [Series(_points(*lines.below), "area", other=_points(*lines.above)), Series(safe)]


def standalone(drawn: Markup, said: str = "") -> str:
    """A chart as an SVG file of its own, with its style inside, and above it what it must not be seen without."""
    above = tag("text", said, x="62", y="11", class_="said") if said else Markup("")
    styled = drawn.replace(">", ">" + tag("style", Markup("\n" + asset("report/figure.css"))) + above, 1)
    return str(text(Markup(styled.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)))) + "\n"
