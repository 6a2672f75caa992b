"""Files in and out, ``-`` for the standard streams, and the options that change a specification read from one."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from hockeystick.app.cli.options import add_group_size
from hockeystick.app.cli.parsing import Parser, delta, epsilon, listed, option, positive
from hockeystick.app.cli.status import CommandError
from hockeystick.app.spec.model import Choice, Specification
from hockeystick.app.spec.problems import SpecificationError
from hockeystick.app.spec.registry import AUTOMATIC
from hockeystick.composition import ADJACENCIES


def add_specification(parser: Parser) -> None:
    """Add the specification's file."""
    parser.add_argument(
        "specification", metavar="SPEC", help="specification file, TOML or JSON; - reads TOML from stdin"
    )


def add_changes(parser: Parser) -> None:
    """Add the options that stand in place of what the file says."""
    changes = parser.add_argument_group("in place of what the file says")
    option(changes, "--delta", listed(delta), "D[,D]", "report epsilon at these deltas")
    option(changes, "--epsilon", listed(epsilon), "E[,E]", "report delta at these epsilons")
    changes.add_argument("--adjacency", choices=tuple(ADJACENCIES), metavar="R", help=", ".join(ADJACENCIES))
    add_group_size(changes)
    changes.add_argument("--accountant", metavar="A", help="such as certified or certified:tolerance=1e-5")
    option(changes, "--tolerance", positive, "W", "width of the bracket asked for")


def stated(options: argparse.Namespace) -> Specification:
    """The specification in the file, with the relation, the unit and the group's size that are said in place of it."""
    said = {name: getattr(options, name, None) for name in ("adjacency", "unit", "group_size")}
    return replace(in_file(options.specification), **{name: one for name, one in said.items() if one is not None})


def specification_of(options: argparse.Namespace) -> Specification:
    """The specification in the file, with the options' changes."""
    found = stated(options)
    if getattr(options, "delta", None) is not None or getattr(options, "epsilon", None) is not None:
        found = replace(found, deltas=options.delta or (), epsilons=options.epsilon or ())
    if getattr(options, "accountant", None) is not None:
        from hockeystick.app.spec.reader import accountant_of  # loaded where something is read

        found = replace(found, accountant=accountant_of(options.accountant, "--accountant"))
    if getattr(options, "tolerance", None) is not None:
        if found.accountant.name != AUTOMATIC and "tolerance" not in found.accountant.mapping:
            raise CommandError(f"hockeystick: error: --tolerance: the accountant {found.accountant.name!r} takes none")
        parameters = found.accountant.mapping | {"tolerance": options.tolerance}
        found = replace(found, accountant=Choice.of(found.accountant.name, **parameters))
    return found


def asked_specification(options: argparse.Namespace) -> Specification:
    """The same, and an error where it asks for nothing."""
    found = specification_of(options)
    if not found.questions:
        raise CommandError(
            f"{options.specification}: error: no delta and no epsilon: write delta = 1e-5 under [guarantee],"
            " or give --delta"
        )
    return found


def in_file(name: str) -> Specification:
    """The specification that is in a file."""
    from hockeystick.app.spec.reader import load, read  # loaded where something is read

    if name == "-":
        return read(sys.stdin.read(), source="stdin")
    try:
        return load(Path(name))
    except OSError as error:
        raise _unreadable(name, error) from None
    except SpecificationError:
        if _is_receipt(read_text(name)):
            raise CommandError(
                f"hockeystick: error: {name} is a receipt, not a specification: hockeystick verify reads it"
            ) from None
        raise


def _is_receipt(text: str) -> bool:
    from hockeystick.app.report.verification import NoReceiptError, open_receipt  # loads what draws pages

    try:
        open_receipt(text)
    except NoReceiptError:
        return False
    return True


def read_text(name: str) -> str:
    """The text of a file."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise _unreadable(name, error) from None
    except UnicodeDecodeError:
        raise CommandError(f"hockeystick: error: {name} is not a text file in UTF-8") from None


def write_text(name: str, text: str) -> None:
    """Write a file."""
    if name == "-":
        sys.stdout.write(text)
        return
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"hockeystick: error: cannot write {name}: {error.strerror}") from None


def _unreadable(name: str, error: OSError) -> CommandError:
    return CommandError(f"hockeystick: error: cannot read {name}: {error.strerror}")
