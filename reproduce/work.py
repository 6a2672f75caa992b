"""The work of a computation, counted instead of timed: the same on a busy machine as on a quiet one.

Calls are those of functions, Python's and C's alike: the cost of arrays that stay small. Memory is the most held at
once, arrays included: the cost of long ones, such as grids.
"""

from __future__ import annotations

import itertools
import sys
import threading
import tracemalloc
from collections.abc import Callable

__all__ = ["calls", "peak_memory"]


def calls(run: Callable[[], object]) -> int:
    """How many function calls a computation makes, in this thread and in those that it starts."""
    counter = itertools.count()

    def count(_frame: object, event: str, _argument: object) -> None:
        if event in {"call", "c_call"}:
            next(counter)

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return next(counter)


def peak_memory(run: Callable[[], object]) -> int:
    """The bytes held at once at most, beyond those held before."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
