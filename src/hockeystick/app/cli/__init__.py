"""The command line: ``hockeystick``."""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; by default those of the process.
    """
    try:
        from hockeystick.app.cli.program import main as run  # numpy and all: an interrupt may come while they load

        return run(arguments)
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("hockeystick: interrupted", file=sys.stderr)
        return 130
