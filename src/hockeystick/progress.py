"""Progress of long work: nothing for half a second, then one line on stderr that is wiped at the end.

It shows on a terminal and in a notebook; elsewhere nothing is written at all. Work that is part of other work shows no
line of its own, and neither do helper processes.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO, TypeVar, final

Item = TypeVar("Item")

_FRAMES = "|/-\\"
_WIDTH = 24
_COLUMNS = 80  # of what does not say how many it has
_WIPE = "\r\x1b[K"
_BLANK = f"\r{'':78}\r"  # notebooks know no codes that wipe
_EVERY, _SELDOM = 0.125, 1.0  # seconds; notebooks keep all that is written
_TAKEN = threading.Lock()  # by the line that shows


@final
class Progress:
    """A line that says what is being done, for how long, and how much of it is done.

    Parameters
    ----------
    label : str
        What is being done.
    stream : file, optional
        Where to write; stderr by default.
    delay : float
        Seconds of silence at the start.
    """

    def __init__(self, label: str, *, stream: TextIO | None = None, delay: float = 0.5) -> None:
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._delay = delay
        self._done = 0
        self._total = 0
        self._wipe, self._every = _WIPE, _EVERY
        self._start = 0.0
        self._shown: tuple[threading.Thread, threading.Event] | None = None
        self._writing = threading.Lock()

    def __enter__(self) -> Progress:
        self._start = time.monotonic()
        if self._seen() and _TAKEN.acquire(blocking=False):
            stop = threading.Event()
            thread = threading.Thread(target=self._spin, args=(stop,), daemon=True)
            thread.start()
            self._shown = thread, stop
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            thread, stop = self._shown
            stop.set()
            thread.join()
            _TAKEN.release()

    def _seen(self) -> bool:
        """Whether somebody may be watching what this process writes."""
        if type(self._stream).__module__.partition(".")[0] == "ipykernel":
            self._wipe, self._every = _BLANK, _SELDOM
        elif not is_terminal(self._stream) or os.environ.get("TERM") == "dumb":
            return False
        from multiprocessing import parent_process

        return parent_process() is None and sys.platform != "emscripten"  # which starts no threads

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items, counted as they are done."""
        listed = list(items)
        self._total = len(listed)
        for self._done, item in enumerate(listed):
            yield item
        self._done = self._total

    def count(self, done: int, total: int) -> None:
        """Say how many of how many are done."""
        self._done, self._total = done, total

    def doing(self, label: str) -> None:
        """Say what is being done now."""
        self._label = label

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Meanwhile the line is wiped, for others that stay."""
        with self._writing:
            if self._shown is not None:
                self._stream.write(self._wipe)
                self._stream.flush()
            yield

    def line(self) -> str:
        """The line as it stands."""
        seconds = time.monotonic() - self._start
        frame = _FRAMES[int(seconds * 8) % len(_FRAMES)]
        if self._total > 1:
            full = _WIDTH * self._done // self._total
            bar = f" [{'#' * full}{'.' * (_WIDTH - full)}] {self._done}/{self._total}"
        else:
            bar = ""
        return f"{frame} {self._label}{bar} {seconds:.0f} s"

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS
        except (AttributeError, OSError, ValueError):  # a notebook's
            return _COLUMNS

    def _spin(self, stop: threading.Event) -> None:
        if stop.wait(self._delay):
            return
        while True:
            with self._writing:
                self._stream.write(self._wipe + self.line()[: self._columns() - 1])  # one that wraps is not all wiped
                self._stream.flush()
            if stop.wait(self._every):
                break
        self._stream.write(self._wipe)
        self._stream.flush()


def is_terminal(stream: TextIO) -> bool:
    """Whether what is written to a stream is seen as it comes."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # a program without a window has no stderr; others replaced or closed it
        return False
