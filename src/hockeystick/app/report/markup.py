"""HTML and SVG from nested calls: text is escaped unless it is markup already."""

from __future__ import annotations

import html
from typing import final

_OF_SVG = frozenset({"line", "circle", "polyline", "polygon"})  # elements with nothing in them; of HTML, meta


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
    named = {key.rstrip("_").replace("_", "-"): html.escape(str(value)) for key, value in attributes.items()}
    given = "".join(f' {key}="{value}"' for key, value in named.items())
    if name in _OF_SVG:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>" if name == "meta" else f"<{name}{given}>{text(*parts)}</{name}>")
