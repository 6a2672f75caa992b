"""What a notebook shows of a value, and data frames: small tables in HTML that take on the page's colours.

Numbers are shown as everywhere: lower sides rounded down, upper sides up (`hockeystick.decimals`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hockeystick.decimals import nearest, rounded_down, rounded_up
from hockeystick.errors import needs_extra

_LONGEST = 200  # characters of a parameter list
_SHOWN = 8  # rows and values before the rest is counted only
_WRITTEN_OUT = 10**15  # counts below are written digit by digit
_LINE = "border:0;border-top:1px solid rgba(127,127,127,.4)"  # grey that is seen on white and on black
_NAME = "font-weight:normal;opacity:.75"
_CELL = f"{_LINE};padding:.2em 1em .2em 0;text-align:left;vertical-align:top;background:none;color:inherit"


def table(title: str, rows: Iterable[tuple[str, str]], *, remark: str = "") -> str:
    """A title over rows of a name and a text, in HTML; colours are the page's own."""
    from html import escape  # loaded where something is shown

    cells = "".join(
        f'<tr style="background:none"><th scope="row" style="{_CELL};{_NAME}">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(text)}</td></tr>'
        for name, text in rows
        if text
    )
    below = f'<div style="opacity:.75;font-size:.9em">{escape(remark)}</div>' if remark else ""
    return (
        f'<div style="max-width:48em"><div style="font-weight:bold;padding-bottom:.2em">{escape(title)}</div>'
        f'<table style="border-collapse:collapse;border:0;margin:0">{cells}</table>{below}</div>'
    )


def times(count: int) -> str:
    """How often a step is made."""
    return f"{count:,} x" if count < _WRITTEN_OUT else f"{count:.3g} x"


def bracket(lower: Any, upper: Any) -> str:
    """A bracket, or the first of several, rounded outward."""
    lows, highs = np.ravel(np.asarray(lower)), np.ravel(np.asarray(upper))
    shown = [
        f"[{rounded_down(float(low), 6)}, {rounded_up(float(high), 6)}]"
        for low, high in zip(lows[:_SHOWN], highs[:_SHOWN], strict=True)
    ]
    return _with_rest(shown, lows.size)


def values(numbers: Any) -> str:
    """A number that is no bound, or the first of several, rounded to nearest; NaN is none that is known."""
    flat = np.ravel(np.asarray(numbers))
    shown = ["unknown" if np.isnan(number) else nearest(float(number), 6) for number in flat[:_SHOWN]]
    return _with_rest(shown, flat.size)


def most(rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first rows, their texts cut where they are long, and how many more there are."""
    rest = len(rows) - _SHOWN
    shown = [(name, text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ...") for name, text in rows[:_SHOWN]]
    return [*shown, *([("...", f"and {rest} more")] if rest > 0 else [])]


def _with_rest(shown: list[str], size: int) -> str:
    return ", ".join(shown) + (f", and {size - len(shown)} more" if size > len(shown) else "")


def frame(columns: Mapping[str, Any]) -> Any:
    """The columns as a data frame of pandas.

    Raises
    ------
    ModuleNotFoundError
        Where pandas is not installed; it is the extra ``pandas``.
    """
    with needs_extra("pandas", "pandas"):
        import pandas as pd
    return pd.DataFrame(dict(columns))
