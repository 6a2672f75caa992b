"""What is wrong with a specification: every problem at once, each with its line."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from hockeystick.errors import HockeystickError


@final
@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes
    ----------
    line : int
        Where, from 1.
    message : str
        What was given, what is allowed, what to try.
    """

    line: int
    message: str


class SpecificationError(HockeystickError):
    """A specification that cannot be read.

    Attributes
    ----------
    source : str
        The file's name.
    problems : tuple of Problem
        In the order of their lines; its text is one line each, ``file:line: message``.
    """

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__("\n".join(f"{source}:{problem.line}: {problem.message}" for problem in self.problems))


class OutOfRangeError(ValueError):
    """A written number is none of float64's, nor close to one."""


def read_float(text: str) -> float:
    """The float64 nearest to what is written; 1e-400 is not taken for 0, nor 1e400 for infinity.

    Raises
    ------
    OutOfRangeError
        Where it is out of range.
    ValueError
        Where it is no number.
    """
    number = float(text)
    if number == 0.0 and re.search(r"[1-9]", text.lower().partition("e")[0]):
        raise OutOfRangeError(f"{text} is below 5e-324, the smallest float64 above 0; write 0 if that is meant")
    if math.isinf(number) and "n" not in text.lower():
        raise OutOfRangeError(f"{text} is above 1.8e308, the largest float64; write inf if that is meant")
    return number


_ALSO = {"examples": "population", "population": "examples"}  # the other word of the field for it


def meant(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelled one stands for, or one that has another name here, if there is such a word."""
    allowed = list(known)
    if word not in allowed and _ALSO.get(word) in allowed:
        return _ALSO[word]
    close = difflib.get_close_matches(word, allowed, n=1, cutoff=0.6)
    return close[0] if close and word not in allowed else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """What was probably meant, or what is allowed, as the tail of a message."""
    allowed = list(known)
    close = meant(word, allowed)
    if close:
        return f"; did you mean {close!r}?"
    return f"; allowed: {', '.join(allowed)}" if allowed else ""
