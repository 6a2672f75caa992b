"""Specification files: a run, its relation, its unit of privacy and its accountant, in TOML or JSON."""

from hockeystick.spec.model import Choice, Circumstances, Specification, StepEntry

__all__ = ["Choice", "Circumstances", "Specification", "StepEntry"]
