"""Processes that answer questions: a slow question takes one of them, for a limited time, and holds up no other.

A question that is not answered in time is given up: its process is ended and another takes its place. So is one that
nobody waits for any longer. Answers depend on the question alone, so it does not matter which process gives them.
"""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import queue
import signal
import threading
import time
from multiprocessing.connection import Connection
from typing import Any, final

from hockeystick.app.explore.question import Question

_START = 60.0  # seconds in which a process must have started
_LOOK = 0.1  # seconds from one look to the next whether an answer is still wanted
_LONG = 2.0  # seconds that an answer is waited for though nobody wants it: another process takes as long to start
_FIRST = Question(
    noise_multiplier=1.0, sampling="poisson", rate=0.01, steps=1000, delta=1e-5, adjacency="add-remove", detail="live"
)


class TooSlowError(Exception):
    """A question took longer than it may."""


class BusyError(Exception):
    """Every process was busy for longer than a question waits."""


class UnwantedError(Exception):
    """Nobody waits for the answer any longer."""


def _serve(pipe: Connection, patience: int) -> None:
    """Answer one question after the other, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends its processes itself
    if hasattr(os, "nice"):
        os.nice(patience)
    from hockeystick.app.explore.answers import answered  # only the processes need it

    answered("answer", _FIRST)  # loads what the first answer needs
    pipe.send("ready")
    with contextlib.suppress(EOFError, OSError):
        while True:
            view, question = pipe.recv()
            pipe.send(answered(view, question))


@final
class _Worker:
    """One process and the pipe to it."""

    def __init__(self, patience: int) -> None:
        context = mp.get_context("spawn")  # a fork would copy threads' locks
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, patience), daemon=True)
        self.process.start()
        theirs.close()
        self.ready = False

    def ask(
        self, view: str, question: Question, seconds: float, unwanted: threading.Event
    ) -> tuple[int, dict[str, Any]]:
        if not self.ready:
            if not self.pipe.poll(_START):
                raise TooSlowError
            self.pipe.recv()
            self.ready = True
        self.pipe.send((view, question))
        start, spent = time.monotonic(), 0.0
        while not self.pipe.poll(max(min(_LOOK, seconds - spent), 0.0)):
            spent = time.monotonic() - start
            if spent > seconds:
                raise TooSlowError
            if unwanted.is_set() and spent > _LONG:
                raise UnwantedError
        status, document = self.pipe.recv()
        return status, document

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


@final
class Workers:
    """So many processes, each answering one question at a time.

    Parameters
    ----------
    count : int
        How many.
    seconds : float
        The time one answer may take, and how long a question waits for a free process.
    patience : int
        How far these processes stand back for others, as `os.nice` counts it.
    """

    def __init__(self, count: int, *, seconds: float, patience: int = 0) -> None:
        self.seconds = seconds
        self._patience = patience
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._all: set[_Worker] = set()
        self._lock = threading.Lock()
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        worker = _Worker(self._patience)
        with self._lock:
            self._all.add(worker)
        self._idle.put(worker)

    def ask(self, view: str, question: Question, unwanted: threading.Event | None = None) -> tuple[int, dict[str, Any]]:
        """The status and the document of an answer.

        Parameters
        ----------
        view : str
            What is asked for.
        question : Question
            Of which run.
        unwanted : threading.Event, optional
            Set once nobody waits for the answer.

        Raises
        ------
        UnwantedError
            Where nobody waits for it.
        TooSlowError
            Where it took longer than it may, or its process ended.
        BusyError
            Where no process was free.
        """
        unwanted = unwanted or threading.Event()
        worker = self._free(unwanted)
        try:
            answer = worker.ask(view, question, self.seconds, unwanted)
        except (TooSlowError, UnwantedError, EOFError, OSError) as error:
            with self._lock:
                self._all.discard(worker)
            worker.end()
            self._start()
            if isinstance(error, UnwantedError):
                raise
            raise TooSlowError from None
        self._idle.put(worker)
        return answer

    def _free(self, unwanted: threading.Event) -> _Worker:
        """A process that is free, once there is one."""
        start = time.monotonic()
        while not unwanted.is_set():
            with contextlib.suppress(queue.Empty):
                return self._idle.get(timeout=_LOOK)
            if time.monotonic() - start > self.seconds:
                raise BusyError
        raise UnwantedError

    def close(self) -> None:
        """End every process."""
        with self._lock:
            for worker in self._all:
                worker.end()
            self._all.clear()
