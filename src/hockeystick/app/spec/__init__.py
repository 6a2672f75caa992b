"""Specification files: a run, its relation, its unit of privacy and its accountant, in TOML or JSON."""

from typing import TYPE_CHECKING

from hockeystick.lazy import attach

if TYPE_CHECKING:
    from hockeystick.app.spec.circumstances import Circumstances as Circumstances
    from hockeystick.app.spec.entries import Choice as Choice
    from hockeystick.app.spec.entries import StepEntry as StepEntry
    from hockeystick.app.spec.model import Specification as Specification
    from hockeystick.app.spec.problems import Problem as Problem
    from hockeystick.app.spec.problems import SpecificationError as SpecificationError
    from hockeystick.app.spec.reader import from_document as from_document
    from hockeystick.app.spec.reader import load as load
    from hockeystick.app.spec.reader import read as read
    from hockeystick.app.spec.schema import schema as schema
    from hockeystick.app.spec.write import from_event as from_event
    from hockeystick.app.spec.write import of_run as of_run
    from hockeystick.app.spec.write import save as save
    from hockeystick.app.spec.write import to_toml as to_toml

attach(
    __name__,
    {
        "hockeystick.app.spec.circumstances": "Circumstances",
        "hockeystick.app.spec.entries": "Choice StepEntry",
        "hockeystick.app.spec.model": "Specification",
        "hockeystick.app.spec.problems": "Problem SpecificationError",
        "hockeystick.app.spec.reader": "from_document load read",
        "hockeystick.app.spec.schema": "schema",
        "hockeystick.app.spec.write": "from_event of_run save to_toml",
    },
)
