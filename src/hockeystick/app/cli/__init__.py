"""The command line: ``hockeystick``."""

from hockeystick.app.cli.program import main

__all__ = ["main"]
