"""Chunks of work, done here, in processes of our own, or by whatever the caller has: results as they come.

The distributing is done by others: `concurrent.futures`, an executor such as a Dask client, or a function like `map`.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, final

from hockeystick.errors import check_count

Item = TypeVar("Item")
Result = TypeVar("Result")

Results: TypeAlias = Generator[tuple[int, Result], None, None]
"""The number of each chunk with its result."""

_Mapping = Callable[..., Iterable[Any]]


@final
@dataclass(frozen=True)
class Workers:
    """Who does the work.

    Attributes
    ----------
    count : int or None
        How many they are; None where that is not known.
    other : executor or callable, optional
        Who has them, or a function like ``map``; by default processes of our own.
    """

    count: int | None
    other: Executor | _Mapping | None = None

    def share(self, size: int, each: int, otherwise: int) -> int:
        """How much of a size is in a chunk where every worker has so many, or all have ``otherwise``; at least 1."""
        return max(-(-size // (otherwise if self.count is None else each * self.count)), 1)


def check_workers(workers: Any) -> Workers:
    """What is to do the work; a Dask client stands for its executor."""
    if hasattr(workers, "get_executor"):
        return Workers(sum(workers.nthreads().values()) or None, workers.get_executor(pure=False))
    if hasattr(workers, "submit") or (callable(workers) and not isinstance(workers, type)) or workers is map:
        return Workers(None, workers)
    if workers == -1 and not isinstance(workers, bool | float):
        return Workers(os.cpu_count() or 1)
    try:
        return Workers(check_count("workers", workers))
    except TypeError:
        raise TypeError(
            "workers must be a number of processes, an executor of concurrent.futures, a Dask client, or a function"
            f" like map, got {workers!r}"
        ) from None


def done(work: Callable[[Item], Result], chunks: Iterable[Item], workers: Workers) -> Results[Result]:
    """The number of each chunk with its result, in the order in which they are done.

    Work that is done here takes each chunk when the one before is done; others are given all at once. Closing the
    iterator cancels what has not begun.
    """
    other = workers.other
    if other is None and workers.count == 1:
        return _here(work, chunks)
    every = list(chunks)
    if other is None:
        return _own_processes(work, every, workers.count or 1) if len(every) > 1 else _here(work, every)
    if isinstance(other, Executor) or hasattr(other, "submit"):
        return _submitted(work, every, other)
    return _mapped(work, every, other)


def _here(work: Callable[[Item], Result], chunks: Iterable[Item]) -> Results[Result]:
    for number, chunk in enumerate(chunks):
        yield number, work(chunk)


def _own_processes(work: Callable[[Item], Result], chunks: Sequence[Item], count: int) -> Results[Result]:
    try:
        pickle.dumps(chunks[0])
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"with workers={count} the plans are sent to other processes, and these cannot be ({error}): define the"
            " family with def in a module, not as a lambda or inside a function"
        ) from error
    pool = ProcessPoolExecutor(min(count, len(chunks)), initializer=_prepare)
    try:
        with pool:
            yield from _submitted(work, chunks, pool)
    except BaseException:  # a second Ctrl-C, perhaps, while chunks that have begun are waited for: they are given up
        pool._pending_work_items.clear()  # noqa: SLF001 - else its thread reports that those cancelled cannot fail
        for process in list((pool._processes or {}).values()):  # noqa: SLF001 - in public from Python 3.14 on
            process.kill()  # a handler of SIGTERM that the caller has set would be theirs, too
        raise


def _prepare() -> None:
    """Ctrl-C reaches every process of a terminal: the one that was asked decides what it means.

    What a process of our own begins with stays, so that its garbage collector need not look at it again.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()


def _submitted(work: Callable[[Item], Result], chunks: Sequence[Item], executor: Any) -> Results[Result]:
    numbers: dict[Future[Result], int] = {executor.submit(work, chunk): i for i, chunk in enumerate(chunks)}
    try:
        for future in as_completed(numbers):
            yield numbers[future], future.result()
    finally:
        for future in numbers:
            future.cancel()


def _mapped(work: Callable[[Item], Result], chunks: Sequence[Item], like_map: _Mapping) -> Results[Result]:
    for number, result in enumerate(like_map(work, chunks)):
        if not isinstance(result, list):
            raise TypeError(
                "workers must return results as map does, in order; this returned"
                f" {type(result).__name__}: give the executor or the client itself"
            )
        yield number, result  # type: ignore[misc]  # whatever maps returns what the work returns
