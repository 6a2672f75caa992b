"""Specification files: a run, its relation, its unit of privacy and its accountant, in TOML or JSON."""

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick.app.spec.model import Choice, Circumstances, Specification, StepEntry
    from hockeystick.app.spec.problems import Problem, SpecificationError
    from hockeystick.app.spec.reader import from_document, load, read
    from hockeystick.app.spec.schema import schema
    from hockeystick.app.spec.write import from_event, of_run, save, to_toml

__all__ = [
    "Choice",
    "Circumstances",
    "Problem",
    "Specification",
    "SpecificationError",
    "StepEntry",
    "from_document",
    "from_event",
    "load",
    "of_run",
    "read",
    "save",
    "schema",
    "to_toml",
]

attach(
    __name__,
    {
        "hockeystick.app.spec.model": ("Choice", "Circumstances", "Specification", "StepEntry"),
        "hockeystick.app.spec.problems": ("Problem", "SpecificationError"),
        "hockeystick.app.spec.reader": ("from_document", "load", "read"),
        "hockeystick.app.spec.schema": ("schema",),
        "hockeystick.app.spec.write": ("from_event", "of_run", "save", "to_toml"),
    },
)
