"""An event of dp-accounting as its name and its fields, in whatever form it came; and the refusal of one.

An event is known by the name of its class, so that it may come from any release of dp-accounting, from a library that
builds on it (jax-privacy, TensorFlow Privacy), as its named tuple, or as a mapping with ``class_name``, read from JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from hockeystick.errors import UnknownPairError


class UnprovedEventError(UnknownPairError):
    """No dominating pair is proved for an event under the relation asked for.

    Attributes
    ----------
    event : object
        The event, or the part of it.
    reason : str
        What is missing, and what to use instead.
    """

    def __init__(self, event: object, reason: str) -> None:
        super().__init__(f"{event!r}: {reason}")
        self.event = event
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return UnprovedEventError, (self.event, self.reason)


@final
@dataclass(frozen=True)
class Event:
    """An event by name, and the relation it is read under: ``event[name]`` is a field."""

    given: Any
    name: str
    fields: Mapping[str, Any]
    adjacency: str

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def unproved(self, reason: str) -> UnprovedEventError:
        """The refusal of this event."""
        return UnprovedEventError(self.given, reason)


def taken_apart(given: Any) -> tuple[str, dict[str, Any]]:
    """The class name and the fields."""
    if isinstance(given, Mapping) and "class_name" in given:
        fields = dict(given)
    elif hasattr(given, "_fields") and hasattr(given, "class_name"):
        fields = {name: getattr(given, name) for name in given._fields}
    elif hasattr(type(given), "__attrs_attrs__"):
        return type(given).__name__, {one.name: getattr(given, one.name) for one in type(given).__attrs_attrs__}
    else:
        raise TypeError(f"event must be a DpEvent, its named tuple, or a mapping with class_name, got {given!r}")
    fields.pop("module_name", None)
    name = fields.pop("class_name")
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name), fields
