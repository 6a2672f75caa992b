"""What several commands share: options, the specification they name, and files in and out (``-``: standard streams)."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from hockeystick.app.cli.parsing import CommandError, Parser, count, delta, epsilon, listed, noun, option, positive
from hockeystick.app.spec.circumstances import Circumstances
from hockeystick.app.spec.entries import Choice, StepEntry
from hockeystick.app.spec.model import Specification
from hockeystick.app.spec.problems import SpecificationError
from hockeystick.app.spec.registry import AUTOMATIC
from hockeystick.composition import ADJACENCIES
from hockeystick.state import write_whole

ADJACENCY, UNIT = "add-remove", "example"
"""What is meant where nothing is said."""

# ------------------------------------------------------ options, None where not given: a specification may say the same


def add_adjacency(parser: Parser, otherwise: str = "") -> None:
    """Add ``--adjacency``."""
    words = f"which datasets are neighbours: {', '.join(ADJACENCIES)} (default: {ADJACENCY}{otherwise})"
    parser.add_argument("--adjacency", choices=tuple(ADJACENCIES), metavar="R", help=words)


def usual_adjacency(*schemes: str | None) -> str:
    """The relation that is meant where none is said: one that is proved for shuffled batches, where some are."""
    return "zero-out" if "shuffled" in schemes else ADJACENCY


def add_unit(parser: Parser) -> None:
    """Add ``--unit``."""
    option(parser, "--unit", noun, "NOUN", f"what one record is, for the wording (default: {UNIT})")


def add_group_size(to: argparse._ActionsContainer) -> None:
    """Add ``--group-size``."""
    option(to, "--group-size", count, "K", "records that change at once, such as a household of 5 (default: 1)")


def add_tolerance(parser: Parser) -> None:
    """Add ``--tolerance``."""
    words = "width of the bracket asked for: in epsilon, or relative to delta (default: %(default)s)"
    option(parser, "--tolerance", positive, "W", words, default=1e-3)


def add_specification(parser: Parser) -> None:
    """Add the specification's file."""
    words = "specification file, TOML or JSON; - reads stdin"
    parser.add_argument("specification", metavar="SPEC", help=words)


def add_changes(parser: Parser) -> None:
    """Add the options that stand in place of what the file says."""
    changes = parser.add_argument_group("in place of what the file says")
    option(changes, "--delta", listed(delta), "D[,D]", "report epsilon at these deltas")
    option(changes, "--epsilon", listed(epsilon), "E[,E]", "report delta at these epsilons")
    changes.add_argument("--adjacency", choices=tuple(ADJACENCIES), metavar="R", help=", ".join(ADJACENCIES))
    add_group_size(changes)
    changes.add_argument("--accountant", metavar="A", help="such as certified or certified:tolerance=1e-5")
    option(changes, "--tolerance", positive, "W", "width of the bracket asked for")


def add_of_run(parser: Parser) -> None:
    """Add what is said of a whole run, and what `run_of` reads."""
    words = (
        "the whole run is made a random number of times and the best one alone is released: poisson:mean=10, or"
        " negative-binomial:stopping=0.1,shape=1"
    )
    parser.add_argument("--tuning", type=_tuning, metavar="RUNS", help=words)
    words = "write the run as a specification, for account and report: TOML or JSON, as the name ends"
    parser.add_argument("--save", type=_specification, metavar="FILE", help=words)
    add_adjacency(parser, "; with --sampling shuffled, zero-out")
    add_unit(parser)
    add_group_size(parser)


def _specification(name: str) -> str:
    """The name of a file to write a specification to."""
    if Path(name).suffix not in {".toml", ".json"}:
        raise argparse.ArgumentTypeError(f"--save must end in .toml or .json, got {name!r}")
    return name


def _tuning(text: str) -> Choice:
    from hockeystick.app.spec.reader import tuning_of  # loaded where something is read

    try:
        return tuning_of(text, "--tuning")
    except (TypeError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


# ------------------------------------------------------------------------------------------------------- specifications


def run_of(options: argparse.Namespace, entry: StepEntry, **asked: Any) -> Specification:
    """The run of one kind of step that the options describe, under the relation asked for or its scheme's usual one."""
    return Specification(
        (entry,),
        options.adjacency or usual_adjacency(options.sampling),
        options.unit or UNIT,
        circumstances=Circumstances(examples=options.population),
        group_size=options.group_size or 1,
        tuning=options.tuning,
        **asked,
    )


def stated(options: argparse.Namespace) -> Specification:
    """The specification in the file, with the relation, the unit and the group's size that are said in place of it."""
    said = {name: getattr(options, name, None) for name in ("adjacency", "unit", "group_size")}
    return replace(in_file(options.specification), **{name: one for name, one in said.items() if one is not None})


def specification_of(options: argparse.Namespace) -> Specification:
    """The specification in the file, with the options' changes."""
    found = stated(options)
    if options.delta is not None or options.epsilon is not None:
        found = replace(found, deltas=options.delta or (), epsilons=options.epsilon or ())
    if options.accountant is not None:
        from hockeystick.app.spec.reader import accountant_of  # loaded where something is read

        found = replace(found, accountant=accountant_of(options.accountant, "--accountant"))
    if options.tolerance is not None:
        if found.accountant.name != AUTOMATIC and "tolerance" not in found.accountant.mapping:
            raise CommandError(f"hockeystick: error: --tolerance: the accountant {found.accountant.name!r} takes none")
        found = replace(found, accountant=found.accountant.but(tolerance=options.tolerance))
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
        text = read_text(name)
        return read(text, source="stdin", form="json" if text.lstrip().startswith("{") else "toml")  # no TOML does
    try:
        return load(Path(name))
    except OSError as error:
        raise failed("read", name, error) from None
    except SpecificationError as refusal:
        from hockeystick.app.report.verification import NoReceiptError, open_receipt  # loads what draws pages

        try:
            open_receipt(read_text(name))
        except (NoReceiptError, RecursionError):
            raise refusal from None
        raise CommandError(
            f"hockeystick: error: {name} is a receipt, not a specification: hockeystick verify reads it"
        ) from None


def save_as(options: argparse.Namespace, specification: Specification) -> None:
    """Write the specification where ``--save`` says."""
    if options.save:
        from hockeystick.app.spec.write import save  # loaded where something is written

        try:
            save(specification, options.save)
        except OSError as error:
            raise failed("write", options.save, error) from None


# ---------------------------------------------------------------------------------------------------------------- files


def read_text(name: str) -> str:
    """The text of a file."""
    if name == "-" and sys.stdin is None:
        raise CommandError("hockeystick: error: stdin is closed: there is nothing to read")
    try:
        return sys.stdin.read().removeprefix("\ufeff") if name == "-" else Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise failed("read", name, error) from None
    except UnicodeDecodeError:
        raise CommandError(f"hockeystick: error: {name} is not a text file in UTF-8") from None


def write_text(name: str, text: str) -> None:
    """Write a file, all of it or nothing."""
    if name == "-":
        sys.stdout.write(text)
        return
    try:
        write_whole(name, text)
    except OSError as error:
        raise failed("write", name, error) from None


def failed(to: str, name: str, error: OSError, program: str = "hockeystick") -> CommandError:
    """What is said where a file cannot be read, or written."""
    return CommandError(f"{program}: error: cannot {to} {name or 'a file without a name'}: {error.strerror}")
