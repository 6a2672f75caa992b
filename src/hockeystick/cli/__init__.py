"""The command line: ``hockeystick``."""

from hockeystick.cli.program import main

__all__ = ["main"]
