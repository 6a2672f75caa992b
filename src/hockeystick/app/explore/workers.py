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

_START = 60.0  # seconds in which a process must have started, beside those that an answer may take
_LOOK = 0.1  # seconds from one look to the next whether an answer is still wanted
_LONG = 2.0  # seconds that an answer is waited for though nobody wants it: another process takes as long to start
_FIRST = Question(
    noise_multiplier=1.0, sampling="poisson", rate=0.01, steps=1000, delta=1e-5, adjacency="add-remove", detail="live"
)


def _none(why: str) -> tuple[int, dict[str, Any]]:
    """An answer that says why there is none."""
    return 503, {"error": why}


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
    ) -> tuple[int, dict[str, Any]] | None:
        """The status and the document; None where they take too long, or nobody waits for them any longer."""
        if not self.ready:
            if not self.pipe.poll(_START + seconds):
                return None
            self.pipe.recv()
            self.ready = True
        self.pipe.send((view, question))
        start, spent = time.monotonic(), 0.0
        while not self.pipe.poll(max(min(_LOOK, seconds - spent), 0.0)):
            spent = time.monotonic() - start
            if spent > seconds or (unwanted.is_set() and spent > _LONG):
                return None
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
        """The status and the document of an answer; 503 where nobody waits for it, or where there is none in time.

        Parameters
        ----------
        view : str
            What is asked for.
        question : Question
            Of which run.
        unwanted : threading.Event, optional
            Set once nobody waits for the answer.
        """
        unwanted = unwanted or threading.Event()
        worker = self._free(unwanted)
        if worker is not None:
            answer = None
            with contextlib.suppress(EOFError, OSError):  # its process ended
                answer = worker.ask(view, question, self.seconds, unwanted)
            if answer is not None:
                self._idle.put(worker)
                return answer
            with self._lock:
                self._all.discard(worker)
            worker.end()
            self._start()
        if unwanted.is_set():
            return _none("nobody waits for the answer")
        if worker is None:
            return _none("too many questions at once: wait a moment, then move a control")
        return _none(f"no answer within {self.seconds:g} s; the command has no such limit")

    def _free(self, unwanted: threading.Event) -> _Worker | None:
        """A process that is free, once there is one; None where that takes too long, or nobody waits for it."""
        start = time.monotonic()
        while not unwanted.is_set():
            with contextlib.suppress(queue.Empty):
                return self._idle.get(timeout=_LOOK)
            if time.monotonic() - start > self.seconds:
                return None
        return None

    def close(self) -> None:
        """End every process."""
        with self._lock:
            for worker in self._all:
                worker.end()
            self._all.clear()
