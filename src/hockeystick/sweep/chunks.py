"""The chunks that a sweep is done in: what shares work stays together, and the first ones come soon.

Whatever the chunks, the answers are the same to the bit: only how soon they come, and how much Ctrl-C loses, depends on
how long the chunks before took.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from hockeystick.sweep.plans import Plan, Search
from hockeystick.sweep.workers import Workers

_PLANS = 4096  # in a chunk, at most
_SEARCHES = 512  # in a chunk, of several lines
_EACH = 4  # chunks a worker gets at least, where there are enough plans
_MAPPED = 24  # chunks for workers of an unknown number
_SECONDS = 4.0  # of work in a chunk: what Ctrl-C may lose
_GROWTH = 4  # times as many plans as in the chunk before, at most


@final
@dataclass(frozen=True)
class Chunks:
    """The numbers of plans, chunk by chunk.

    Attributes
    ----------
    groups : sequence of sequence of int
        What shares work: the runs of one law share lines, the searches of a line lead to each other.
    most : int
        How many are in a chunk, at most.
    whole : bool
        Whether a group is in one chunk, however large: what is found then depends on the whole of it.
    """

    groups: Sequence[Sequence[int]]
    most: int
    whole: bool

    @classmethod
    def of_runs(cls, plans: Sequence[Plan], workers: Workers) -> Chunks:
        """Of runs, those of one law together where they fit."""
        laws: dict[Hashable, list[int]] = {}
        for number, plan in enumerate(plans):
            laws.setdefault(plan.law, []).append(number)
        return cls(list(laws.values()), min(workers.share(len(plans), _EACH, _MAPPED), _PLANS), whole=False)

    @classmethod
    def of_searches(cls, searches: Sequence[Search], workers: Workers) -> Chunks:
        """Of searches, whole lines."""
        lines: dict[int, list[int]] = {}
        for number, search in enumerate(searches):
            lines.setdefault(search.line, []).append(number)
        most = workers.share(len(lines), 1, _MAPPED) * len(lines[0])
        return cls([lines[line] for line in range(len(lines))], min(most, _SEARCHES), whole=True)

    def missing(self, known: Collection[int]) -> Iterator[list[int]]:
        """Those with a plan that is not known: a few at first, then as many as take some seconds.

        What is taken as one takes is the time until the next chunk is asked for. Who asks for all at once gets chunks
        that grow as if they took none.
        """
        size, chunk = 1, list[int]()
        began = time.monotonic()
        for group in self.groups:
            left = [number for number in group if number not in known]
            if left and self.whole:
                left = list(group)
            while left:
                part = left if self.whole else left[:size]
                if chunk and len(chunk) + len(part) > size:
                    yield chunk
                    now = time.monotonic()
                    pace = len(chunk) / max(now - began, 1e-9)
                    size = min(max(int(pace * _SECONDS), 1), _GROWTH * max(size, len(chunk)), self.most)
                    chunk, began = [], now
                    continue
                chunk += part
                left = left[len(part) :]
        if chunk:
            yield chunk
