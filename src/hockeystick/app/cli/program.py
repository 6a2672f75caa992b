"""The program: its commands, and the one place where failures become a line on stderr and an exit status."""

from __future__ import annotations

import inspect
import os
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from hockeystick.app.cli.parsing import STATUS_MEANING, WIDTH, CommandError, Parser, Status, add_json, joined_negatives
from hockeystick.app.spec.problems import SpecificationError
from hockeystick.errors import HockeystickError, one_line

_NAMES = (
    "dpsgd calibrate account compare curve sweep report verify import explore audit ledger selfcheck schema completion"
)
COMMANDS = tuple(_NAMES.split())
"""The commands, each a module of its own name but for ``import``, which no module can have."""

_WITHOUT_JSON = frozenset({"explore", "ledger", "schema", "completion"})  # or with words of their own on it
_ALL_NEEDED = frozenset({"completion"})  # commands that speak of the others


def parser(command: str | None = None) -> Parser:
    """The parser of the whole command line; of one command alone where that is all that is needed, without the others.

    What a command imports takes longer than its answer.
    """
    statuses = "\n".join(
        textwrap.fill(meaning, WIDTH, initial_indent=f"  {int(status):<4} ", subsequent_indent=" " * 7)
        for status, meaning in STATUS_MEANING.items()
    )
    whole = Parser(
        prog="hockeystick",
        description="Certified privacy accounting: a proved bracket for the epsilon or delta of a run.",
        epilog="example:\n  hockeystick dpsgd --noise-multiplier 1 --rate 0.01 --steps 2000 --delta 1e-5\n\n"
        f"exit status:\n{statuses}",
    )
    whole.add_argument("--version", action="store_true", help="print the version and exit")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    alone = command in COMMANDS and command not in _ALL_NEEDED
    for name in (command,) if command is not None and alone else COMMANDS:
        module = _module(name)
        summary, description, examples = _said(module)
        own = commands.add_parser(name, help=summary, description=description, epilog=f"examples:\n{examples}")
        module.add(own)
        if name not in _WITHOUT_JSON:
            add_json(own)
    whole.set_defaults(commands=commands)
    return whole


def _module(command: str) -> Any:
    return import_module(f"hockeystick.app.cli.{'events' if command == 'import' else command}")


def _said(module: Any) -> tuple[str, str, str]:
    """What a command's docstring says for its help: in a line, in full, and examples; nothing under ``python -OO``."""
    parts = inspect.cleandoc(module.__doc__ or "").split("\n\n", 2)
    summary, description, examples = (*parts, "", "")[:3]
    return summary[:1].lower() + summary[1:].rstrip("."), description, examples


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    status: int = Status.OK
    try:
        if sys.stdout is None:
            raise CommandError("hockeystick: error: stdout is closed: the answer has nowhere to go")
        status = _run(given)
        sys.stdout.flush()
        return status
    except CommandError as error:
        return _failed(str(error), error.status)
    except (TypeError, ValueError, ModuleNotFoundError) as error:
        return _failed(f"hockeystick: error: {_wrong(error)}")
    except SpecificationError as error:
        return _failed(str(error))
    except HockeystickError as error:
        return _failed(f"hockeystick: no answer: {one_line(error)}", Status.NO_ANSWER)
    except RecursionError:  # what reads files goes as deep as they do
        return _failed("hockeystick: error: the input is nested too deeply")
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _abandon_stdout()
        return status
    except OSError as error:
        return _failed(f"hockeystick: error: {_unopened(error)}")


def _failed(message: str, status: Status = Status.BAD_INPUT) -> Status:
    if sys.stderr is not None:
        with suppress(OSError):  # the status says it, where there is no room for words
            print(message, file=sys.stderr)
    return status


def _wrong(error: Exception) -> str:
    """What is wrong with the input, or with the terminal."""
    if isinstance(error, UnicodeEncodeError):
        letters = f"{error.encoding} has no {error.object[error.start : error.end]!a}"
        return f"cannot write the answer: {letters}; set PYTHONIOENCODING=utf-8"
    return one_line(error)


def _unopened(error: OSError) -> str:
    """Which file cannot be used, and why; without a name it is stdout."""
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if error.errno is None:  # one of ours, in words
        return one_line(error)
    _abandon_stdout()
    return f"cannot write the answer: {error.strerror}"


def _abandon_stdout() -> None:
    """Let what is still in the buffer go nowhere, so that nothing fails again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(given: list[str]) -> int:
    whole = parser(given[0] if given else None)
    if not given:
        whole.print_help()
        return Status.OK
    options, beyond = whole.parse_known_args(joined_negatives(given))
    if beyond:
        options.parser.error(f"unrecognized arguments: {' '.join(beyond)}")  # of the command that was asked
    if options.version:
        import hockeystick

        print(f"hockeystick {hockeystick.__version__}")
        return Status.OK
    if options.command is None:
        whole.error("no command given")
    return int(_module(options.command).run(options))
