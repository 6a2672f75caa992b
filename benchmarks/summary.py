"""What the runs of one method on one case amount to: an answer, a median time, a peak memory, and a verdict."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from benchmarks.cases import Case, Truth
from benchmarks.measure import Outcome
from benchmarks.methods import Method


@dataclass(frozen=True)
class Row:
    """One line of a case's table."""

    key: str
    method: Method
    outcomes: tuple[Outcome, ...]

    @property
    def answer(self) -> Outcome:
        """The last outcome; runs of a deterministic method differ in cost only."""
        return self.outcomes[-1]

    @property
    def answered(self) -> bool:
        """Whether there is a number."""
        return self.answer.error is None

    @property
    def seconds(self) -> float | None:
        """Median wall-clock seconds."""
        times = [outcome.seconds for outcome in self.outcomes if outcome.seconds is not None]
        return statistics.median(times) if times else None

    @property
    def processor_seconds(self) -> float | None:
        """Median seconds of processor time, which a busy machine hardly changes."""
        times = [outcome.processor_seconds for outcome in self.outcomes if outcome.processor_seconds is not None]
        return statistics.median(times) if times else None

    @property
    def peak_mib(self) -> float | None:
        """Largest peak memory of its processes, in MiB."""
        peaks = [outcome.peak_mib for outcome in self.outcomes if outcome.peak_mib is not None]
        return max(peaks, default=None)

    @property
    def width(self) -> float | None:
        """Width of the bracket, where there is one."""
        lower, upper = self.answer.lower, self.answer.upper
        return None if lower is None or upper is None else upper - lower

    def excess(self, truth: Truth) -> float | None:
        """How far the number one would report lies above the truth."""
        reported = self.answer.upper if self.answer.upper is not None else self.answer.estimate
        return None if reported is None else reported - truth.value

    def under_reports(self, truth: Truth) -> bool:
        """Whether the number one would report is below the truth, by more than the truth is uncertain."""
        excess = self.excess(truth)
        return excess is not None and excess < -truth.radius

    def verdict(self, truth: Truth) -> str:
        """One phrase: true, false, or why there is no answer."""
        if self.answer.error is not None:
            return self.answer.error
        excess = self.excess(truth)
        assert excess is not None
        if math.isnan(excess):
            return "not a number"
        if excess == math.inf:
            return "no finite answer"
        if self.under_reports(truth):
            return f"UNDER-REPORTS by {-excess:.2g}"
        lower = self.answer.lower
        if lower is not None and lower > truth.value + truth.radius:
            return f"lower end above the truth by {lower - truth.value:.2g}"
        if lower is not None:
            return "contains the truth"
        return "upper bound holds" if self.answer.upper is not None else "estimate, no bound"


@dataclass(frozen=True)
class Comparison:
    """All methods on one case; the first row is ours."""

    case: Case
    rows: tuple[Row, ...]

    def ratio(self, row: Row) -> float | None:
        """How many times longer than ours a method took on the clock; below one it is faster."""
        ours = self.rows[0].seconds
        return row.seconds / ours if ours and row.seconds is not None else None

    def processor_ratio(self, row: Row) -> float | None:
        """How many times more processor time than ours a method used; None where a clock saw none of ours."""
        ours = self.rows[0].processor_seconds
        return row.processor_seconds / ours if ours and row.processor_seconds is not None else None

    def faster_peers(self) -> tuple[Row, ...]:
        """The peers that answered sooner than we did."""
        return tuple(row for row in self.peers() if (ratio := self.ratio(row)) is not None and ratio < 1.0)

    def peers(self) -> tuple[Row, ...]:
        """The rows of other libraries."""
        return tuple(row for row in self.rows if not row.key.startswith(self.rows[0].key))
