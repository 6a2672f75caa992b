"""Gaussian pairs as summands of a composed loss, and the batches that many of them become.

Pairs of one rate and like shifts, as noise that changes from step to step makes them, share the nodes of their rules:
what depends on the losses alone is found once for all of them.

Guarantee: nothing is computed.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast, final

import numpy as np

from hockeystick.laws.gaussian_rule import SubsampledGaussians
from hockeystick.transforms.rule import RuleSource
from hockeystick.transforms.summand import Order, SampledSummand, Summand

_BATCH = 64  # pairs in one rule
_FEWEST_SHARED = 8  # of one rate, that share their nodes
_WIDEST_SHARED = 1.25  # the largest shift over the smallest of these

_Row = tuple[float, float, float]  # shift, rate and count


@final
@dataclass(frozen=True)
class GaussianSummand(SampledSummand):
    """A Gaussian pair of this shift (sensitivity over noise, one rounding off), sampled or not."""

    shift: float

    @property
    def normal_variance(self) -> float:
        """m^2, unless the pair is sampled."""
        return self.shift * self.shift if self.rate == 1.0 else 0.0

    def joined(self, rate: Fraction) -> Summand:
        """Panels on both sides of loss 0."""
        if self.rate < 1.0:
            return super().joined(rate)
        from hockeystick.laws.joined_rule import JoinedGaussianSummand  # loaded where batches are of a fixed size

        return JoinedGaussianSummand(self.shift, float(rate))

    @classmethod
    def sources(cls, group: Sequence[tuple[Summand, float]]) -> list[RuleSource]:
        """Batches of like pairs."""
        found: list[RuleSource] = []
        sampled: dict[Order, list[_Row]] = {}
        for one, count in cast("Sequence[tuple[GaussianSummand, float]]", group):
            if one.rate < 1.0:
                sampled.setdefault(one.order, []).append((one.shift, one.rate, count))
        for order, rows in sorted(sampled.items()):
            rows.sort()  # like shifts need rules of like length
            shared, rest = _of_one_rate(rows)
            batches = shared + [rest[i : i + _BATCH] for i in range(0, len(rest), _BATCH)]
            for i, batch in enumerate(batches):
                shift, rate, counts = np.array(batch).T
                found.append(SubsampledGaussians(shift, rate, counts, order, i < len(shared)))
        return found


def _of_one_rate(rows: Sequence[_Row]) -> tuple[list[list[_Row]], list[_Row]]:
    """Batches of one rate and like shifts each, and the other rows; those given are sorted, and so are these."""
    by_rate: dict[float, list[_Row]] = {}
    for row in rows:
        by_rate.setdefault(row[1], []).append(row)
    shared: list[list[_Row]] = []
    rest: list[_Row] = []
    for same in by_rate.values():
        first = 0
        while first < len(same):
            reach = bisect_right(same, (_WIDEST_SHARED * same[first][0], math.inf))
            batch = same[first : min(reach, first + _BATCH)]
            first += len(batch)
            if len(batch) >= _FEWEST_SHARED:
                shared.append(batch)
            else:
                rest += batch
    return shared, sorted(rest)
