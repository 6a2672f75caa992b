"""Reading the command line; where that fails, one clear line, with the library's own words on ranges, and a status."""

from __future__ import annotations

import argparse
import difflib
import re
import textwrap
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from functools import partial
from itertools import takewhile
from typing import Any, NoReturn

from hockeystick.app.spec.circumstances import check_text
from hockeystick.app.spec.problems import OutOfRangeError, read_float
from hockeystick.errors import (
    MOST_COUNT,
    check_count,
    check_delta,
    check_epsilon,
    check_inside,
    check_positive,
    check_rate,
    one_line,
)

_BEYOND = 10**308  # what is no float64, nearly
WIDTH = 80
"""Columns of a terminal that everybody has."""


def wrapped(text: str, first: str = "", after: str = "") -> str:
    """A text within these columns, with what its first line begins with, and the others."""
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=after, break_on_hyphens=False)


class Status(IntEnum):
    """What the exit status of ``hockeystick`` means."""

    OK = 0
    REFUTED = 1
    BAD_INPUT = 2
    NO_ANSWER = 3
    NOT_CERTIFIED = 4
    INTERRUPTED = 130


STATUS_MEANING = {
    Status.OK: "the answer was printed; for verify: the receipt holds, or every number was proved again; for selfcheck:"
    " every bound was kept",
    Status.REFUTED: "verify: the receipt does not hold; audit: the claim is refuted; ledger: a release does not fit, a"
    " total is over budget or the ledger does not verify; selfcheck: an assumed bound was exceeded",
    Status.BAD_INPUT: "bad input: an option, a file or a value in it; one line on stderr for each problem",
    Status.NO_ANSWER: "no answer: no theorem covers this case, or the precision cannot be reached; for verify"
    " --independent: nothing is wrong, but some number is out of its reach",
    Status.NOT_CERTIFIED: "the answer was printed, or for verify: the figures agree; but by the specification's own"
    " words an assumption that they rest on is broken",
    Status.INTERRUPTED: "interrupted from the keyboard",
}
"""One line for each status, as help shows it."""


class CommandError(Exception):
    """A failure with a message for the person at the terminal and an exit status."""

    def __init__(self, message: str, status: Status = Status.BAD_INPUT) -> None:
        super().__init__(message)
        self.status = status


class Parser(argparse.ArgumentParser):
    """A parser that raises `CommandError` with one line, shows an example under its help, and goes with the options."""

    def __init__(self, *, description: str = "", **kwargs: Any) -> None:
        form = partial(argparse.RawDescriptionHelpFormatter, width=WIDTH)
        super().__init__(description=wrapped(description), formatter_class=form, allow_abbrev=False, **kwargs)
        self.set_defaults(parser=self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The options read; a misspelt one is named before any other is found missing."""
        if self._subparsers is None:
            for given in takewhile(lambda one: one != "--", args or ()):
                self._known(given)
        found, rest = super().parse_known_args(args, namespace)
        left_out = [one for one in self._get_positional_actions() if one.nargs == "?"]
        if (
            len(left_out) == len(rest) == 1
            and getattr(found, left_out[0].dest) is None
            and not rest[0][:-1].startswith("-")
        ):
            setattr(found, left_out[0].dest, rest.pop())  # before 3.13, argparse leaves it out at the first option
        return found, rest

    def _known(self, given: str) -> None:
        """Refuse an option there is none of, with the one that was probably meant."""
        name = given.partition("=")[0]
        options = [known for known in self._option_string_actions if known.startswith("--")]
        if not given.startswith("--") or name in options:
            return
        longer = [known for known in options if known.startswith(name)]
        words = {known.removeprefix("--"): known for known in options}  # the dashes are alike in all of them
        alike = difflib.get_close_matches(name.removeprefix("--"), words, n=1, cutoff=0.7)
        close = longer or [words[word] for word in alike]
        self.error(f"unknown option {name}" + (f"; did you mean {' or '.join(close)}?" if close else ""))

    def error(self, message: str) -> NoReturn:
        """Raise the one line that says what is wrong."""
        said = re.match(r"argument ([^:]+): (-.*)", message, re.DOTALL)
        choice = re.match(r"argument ([^:]+): invalid choice: ('.*?') \(choose from (.*)\)", message, re.DOTALL)
        if choice:
            name = "the command" if choice[1] == "COMMAND" else choice[1]
            message = f"{name} must be one of {choice[3]}, got {choice[2]}"
        message = one_line(said[2] if said else message)
        raise CommandError(f"{self.prog}: error: {message} (see {self.prog} --help)")


def joined_negatives(arguments: Sequence[str]) -> list[str]:
    """The arguments with a negative number tied to its option, so that it is read as a value and then refused by name.

    Examples
    --------
    >>> joined_negatives(["--delta", "-1e-5", "--json"])
    ['--delta=-1e-5', '--json']
    """
    joined: list[str] = []
    for argument in arguments:
        if re.fullmatch(r"-(\d|\.\d|inf|nan).*", argument, re.IGNORECASE) and joined and joined[-1].startswith("--"):
            joined[-1] += "=" + argument
        else:
            joined.append(argument)
    return joined


def _real(text: str, name: str) -> float:
    try:
        return read_float(text)
    except OutOfRangeError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error}") from None
    except ValueError:
        raise argparse.ArgumentTypeError(f"{name} must be a number, got {text!r}") from None


def _checked(name: str, check: Callable[[str, float], Any], own: str = "") -> Callable[[str], float]:
    """A reader of what passes a check, which is told the name, or says its own instead."""

    def read(text: str) -> float:
        try:
            return float(check(name, _real(text, name))) + 0.0  # -0 is 0
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error).replace(own or name, name, 1)) from None

    return read


def positive(name: str) -> Callable[[str], float]:
    """A reader of finite numbers above 0."""
    return _checked(name, check_positive)


def rate(name: str) -> Callable[[str], float]:
    """A reader of sampling rates, in (0, 1]; ``1/235`` and ``0.4%`` are rates too."""
    plain = _checked(name, check_rate)

    def read(text: str) -> float:
        percent = re.fullmatch(r"(\d+\.?\d*|\.\d+)%", text)
        if not percent and not re.fullmatch(r"\d+/\d*[1-9]\d*", text):
            return plain(text)
        share = Fraction(percent[1]) / 100 if percent else Fraction(text)
        return plain(repr(float(share)) if share < _BEYOND else "inf")

    return read


def inside(name: str) -> Callable[[str], float]:
    """A reader of probabilities that are neither 0 nor 1."""
    return _checked(name, check_inside)


def delta(name: str) -> Callable[[str], float]:
    """A reader of deltas, in [0, 1]."""
    return _checked(name, lambda _, value: check_delta(value), "delta")


def epsilon(name: str) -> Callable[[str], float]:
    """A reader of epsilons, at least 0."""
    return _checked(name, lambda _, value: check_epsilon(value), "epsilon")


def count(name: str, minimum: int = 1) -> Callable[[str], int]:
    """A reader of whole numbers of at least 1, or another minimum; ``1e6`` and ``1_000_000`` are whole numbers too."""

    def read(text: str) -> int:
        written = re.fullmatch(r"[+-]?\d+(_\d+)*(\.\d*)?([eE]\+?\d{1,9})?", text)
        number = Decimal(text.replace("_", "")) if written else Decimal("NaN")
        if written and number > MOST_COUNT:
            raise argparse.ArgumentTypeError(f"{name} must be at most 10^100, got {text!r}")
        try:  # digits count as written, where a float would have rounded them
            return check_count(name, int(number) if number == number.to_integral_value() else text, minimum=minimum)
        except (TypeError, ValueError):
            raise argparse.ArgumentTypeError(f"{name} must be an integer of at least {minimum}, got {text!r}") from None

    return read


def noun(name: str) -> Callable[[str], str]:
    """A reader of words that UTF-8 can write."""

    def read(given: str) -> str:
        try:
            return check_text(name, given)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


Reader = Callable[[str], Callable[[str], Any]]
"""From the name of an option, for what is said of a wrong value, to what makes a value of its text."""


def listed(reader: Reader) -> Reader:
    """A reader of comma-separated values."""

    def named(name: str) -> Callable[[str], tuple[Any, ...]]:
        read = reader(name)
        return lambda text: tuple(read(part.strip()) for part in text.split(","))

    return named


def option(
    to: argparse._ActionsContainer, name: str, reader: Reader, metavar: str, words: str = "", *also: str, **others: Any
) -> None:
    """Add an option whose value is read, with what help says of it, its other names and what else argparse takes."""
    to.add_argument(name, *also, type=reader(name), metavar=metavar, help=words, **others)


def add_json(to: Parser) -> None:
    """Add ``--json``."""
    to.add_argument("--json", action="store_true", help="print JSON instead of text")
