"""HTML and SVG from nested calls: text is escaped unless it is markup already."""

from __future__ import annotations

import html
from typing import final

_EMPTY = frozenset({"meta", "link", "br", "hr", "line", "rect", "circle", "path", "polyline", "polygon"})


@final
class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def text(*parts: str) -> Markup:
    """The parts one after the other, escaped where they are plain text."""
    return Markup("".join(part if isinstance(part, Markup) else html.escape(part, quote=False) for part in parts))


def tag(name: str, /, *parts: str, **attributes: str | float) -> Markup:
    """An element.

    A trailing underscore in an attribute's name is dropped (``class_``), an inner one is a hyphen.

    Examples
    --------
    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for key, value in attributes.items()
    )
    if name in _EMPTY:
        return Markup(f"<{name}{given}/>" if name not in {"meta", "link", "br", "hr"} else f"<{name}{given}>")
    return Markup(f"<{name}{given}>{text(*parts)}</{name}>")
