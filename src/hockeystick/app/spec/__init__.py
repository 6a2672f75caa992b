"""Specification files: a run, its relation, its unit of privacy and its accountant, in TOML or JSON."""

from hockeystick.lazy import attach

attach(__name__)
