"""Texts that lie beside the code as files of their own kinds: style sheets, templates, examples."""

from __future__ import annotations

from importlib.resources import files


def asset(path: str) -> str:
    """The text of a file, by its path in this room."""
    return files("hockeystick.app").joinpath(*path.split("/")).read_text(encoding="utf-8")
