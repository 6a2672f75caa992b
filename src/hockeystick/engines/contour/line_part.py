"""What a contour line is laid from, and which of its nodes were kept.

Guarantee: nothing is computed but what atoms of little weight may move a line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from hockeystick.engines.contour.line_sum import LineSum
from hockeystick.numerics.columns import Columns, Places
from hockeystick.transforms.log_moments import TiltedRule
from hockeystick.transforms.rule import Array, Numbers


@final
@dataclass(frozen=True, eq=False)
class LinePart(Columns):
    """A batch of tilted rules, their counts, bounds on the quadrature errors of phi at all frequencies; (B,).

    ``dropped`` bounds the mass that each step leaves out on purpose. Runs that differ in their counts alone share
    rules: then ``rows``, increasing, are those of the runs, and counts are theirs.
    """

    tilted: TiltedRule
    counts: Array
    quadrature: Array
    dropped: Array
    rows: Places | None = None

    def of_runs(self, rows: Places, counts: Array) -> LinePart:
        """Those of runs that share the rules."""
        return replace(self, counts=counts, rows=rows)

    def composed(self, numbers: Array) -> Array:
        """Numbers of the rules times the counts."""
        return (numbers if self.rows is None else numbers[self.rows]) * self.counts

    def but(self, share: float, reach: float) -> LinePart:
        """The same without its lightest atoms, which move phi by at most ``share`` at frequencies up to ``reach``.

        The sum of ``w (e^{isy} - 1 - isy)`` loses them, each of whose terms is at most ``w (2 + s |y|)``.
        """
        weight, offset = self.tilted.weight, self.tilted.offset
        size = weight * (2.0 + reach * np.abs(offset))
        kept = (size > share / weight.shape[1]).any(axis=0)
        lost = size[:, ~kept].sum(axis=1) * (1.0 + 1e-9)
        rest = replace(self.tilted, weight=weight[:, kept], offset=offset[:, kept])
        return replace(self, tilted=rest, quadrature=self.quadrature + lost)


@final
@dataclass(frozen=True, eq=False)
class Sieved:
    """The nodes kept, ``sum T ln phi`` there, and a bound on what the others add to S."""

    frequencies: Array
    total: LineSum
    left_out: Numbers
