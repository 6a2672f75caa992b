"""Other libraries, asked as the benchmarks ask them: in their own environment, one process an answer.

Without the environment (`make bench` makes it) an answer is an error that says so; scripts then draw ours alone.
"""

from __future__ import annotations

from benchmarks.cases import Case
from benchmarks.measure import Limits, Outcome, measure
from benchmarks.methods import METHODS

__all__ = ["ask", "installed"]


def installed(method: str) -> bool:
    """Whether the environment of a method of `benchmarks.methods` is there."""
    return METHODS[method].interpreter.exists()


def ask(case: Case, method: str, *, seconds: float = 60.0, memory: int = 4 << 30) -> Outcome:
    """The epsilon of a method for a case; errors, crashes and timeouts are outcomes too."""
    return measure(case, METHODS[method], Limits(seconds, memory))
