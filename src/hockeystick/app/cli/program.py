"""The program: its commands, and the one place where failures become a line on stderr and an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from hockeystick.app.cli import (
    account,
    audit,
    calibrate,
    compare,
    completion,
    curve,
    dpsgd,
    events,
    ledger,
    receipt,
    schema,
    selfcheck,
)
from hockeystick.app.cli.parsing import Parser, joined_negatives
from hockeystick.app.cli.status import STATUS_MEANING, CommandError, Status
from hockeystick.app.spec.problems import SpecificationError
from hockeystick.errors import HockeystickError

__all__ = ["main", "parser"]

_COMMANDS = (
    dpsgd,
    calibrate,
    account,
    compare,
    curve,
    receipt,
    events,
    audit,
    ledger,
    selfcheck,
    schema,
    completion,
)


def parser() -> Parser:
    """The parser of the whole command line."""
    statuses = "\n".join(f"  {int(status):<4} {meaning}" for status, meaning in STATUS_MEANING.items())
    whole = Parser(
        prog="hockeystick",
        description="Certified privacy accounting: a proved bracket for the epsilon or delta of a run.",
        epilog="example:\n  hockeystick dpsgd --noise-multiplier 1.0 --rate 0.01 --steps 2000 --delta 1e-5\n\n"
        f"exit status:\n{statuses}",
    )
    whole.add_argument("--version", action="store_true", help="print the version and exit")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for command in _COMMANDS:
        command.add(commands)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; by default those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given == ["--version"]:
            print(f"hockeystick {version()}")
            return Status.OK
        status = _run(given)
        sys.stdout.flush()
        return status
    except CommandError as error:
        print(error, file=sys.stderr)
        return error.status
    except (TypeError, ValueError) as error:
        print(f"hockeystick: error: {_one_line(error)}", file=sys.stderr)
        return Status.BAD_INPUT
    except SpecificationError as error:
        print(error, file=sys.stderr)
        return Status.BAD_INPUT
    except HockeystickError as error:
        print(f"hockeystick: no answer: {_one_line(error)}", file=sys.stderr)
        return Status.NO_ANSWER
    except KeyboardInterrupt:
        print("hockeystick: interrupted", file=sys.stderr)
        return Status.INTERRUPTED
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Status.OK


def _run(given: list[str]) -> int:
    whole = parser()
    if not given:
        whole.print_help()
        return Status.OK
    options = whole.parse_args(joined_negatives(given))
    if options.version:
        print(f"hockeystick {version()}")
        return Status.OK
    if options.command is None:
        whole.error("no command given")
    return int(options.run(options))


def version() -> str:
    """The installed version."""
    from importlib.metadata import version as installed  # slower than everything else that --version needs

    return installed("hockeystick")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
