"""A rule for the transform of a labelled mixture: that of the usual pair, then that of the rare one.

With t the probability of the rare label, ``M(z) = (1 - t) M_usual(z) + t M_rare(z)``: the nodes of both, their weights
times the probabilities of the labels. Where either rule errs by at most e times its own moment, both err by at most e
times M together. Rectangles under the density of either part, so weighted, lie under that of the mixture.

Guarantee: every error stored bounds the true one (`docs/derivations/cut-batches.md`). Cost: that of both rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import UnknownPairError
from hockeystick.numerics.binomial_tail import BinomialTail
from hockeystick.numerics.rounding import U, up
from hockeystick.transforms.rule import Array, Cells, LossRule, Quadrature, RuleSource, Window
from hockeystick.transforms.summand import Summand


@final
@dataclass(frozen=True)
class LabelledSummand(Summand):
    """``usual`` with the probability below a binomial tail, ``rare`` with that of the tail, the label released.

    Raises
    ------
    UnknownPairError
        Where either loss is normal, or all but normal: it has no rule.
    """

    usual: Summand
    rare: Summand
    tail: BinomialTail

    def __post_init__(self) -> None:
        if any(part.normal_variance or part.lattice_normal for part in (self.usual, self.rare)):
            raise UnknownPairError("no certified transform is known for a labelled mixture with an unsampled step")

    @property
    def is_atomic(self) -> bool:
        """Whether both parts are."""
        return all(source.is_atomic for source in self._sources)

    @property
    def leaves_out(self) -> bool:
        """Where a part does."""
        return any(source.leaves_out for source in self._sources)

    @cached_property
    def _sources(self) -> list[RuleSource]:
        return [part.sources([(part, 1.0)])[0] for part in (self.usual, self.rare)]

    def reversed(self) -> LabelledSummand:
        """The labels have one law under both measures."""
        return LabelledSummand(self.usual.reversed(), self.rare.reversed(), self.tail)

    @property
    def scale(self) -> float:
        """The larger one."""
        return max(source.scale for source in self._sources)

    def rule(self, window: Window, count: float) -> LossRule | None:
        """Both rules, one after the other; None where one would be too long, or where some mass is missing."""
        log_shares = self.tail.log_below, self.tail.log_above
        found = [(source.rule(window), log_share) for source, log_share in zip(self._sources, log_shares, strict=True)]
        parts = [_weighted(rule, log_share, self.tail.log_error) for rule, log_share in found if rule is not None]
        if len(parts) < len(found) or any(rule.missing_p.any() or rule.missing_q.any() for rule in parts):
            return None
        names = ("loss", "loss_error", "log_weight", "weight_error")
        nodes = {name: np.concatenate([getattr(rule, name) for rule in parts], axis=1) for name in names}
        cells = [rule.cells for rule in parts if rule.cells is not None]
        return replace(
            parts[0],
            **nodes,
            counts=np.array([count]),
            quadrature=_Either([rule.quadrature for rule in parts]),
            cells=_side_by_side(cells) if cells else None,
            dropped=np.array([up(math.fsum(float(rule.dropped[0]) for rule in parts))]),
        )


@final
@dataclass(frozen=True, eq=False)
class _Either(Quadrature):
    """The larger of the errors of several rules, each relative to its own moment."""

    rules: Sequence[Quadrature]

    def error(self, exponents: Array) -> Array:
        """As in `Quadrature`."""
        return np.asarray(np.maximum.reduce([rule.error(exponents) for rule in self.rules]))

    def error_up_to(self, frequency: float, exponent: float, error: Array) -> Array:
        """As in `Quadrature`."""
        at = np.array([exponent])
        found = [rule.error_up_to(frequency, exponent, rule.error(at)[0]) for rule in self.rules]
        return np.asarray(np.maximum.reduce(found))


def _weighted(rule: LossRule, log_share: float, log_error: float) -> LossRule:
    """The rule with its weights times ``e^log_share``."""
    log_weight = rule.log_weight + log_share
    weight_error = rule.weight_error + log_error + U * np.abs(log_weight)
    cells = rule.cells
    if cells is not None:
        cells = replace(cells, log_density=cells.log_density + log_share)
    return replace(rule, log_weight=log_weight, weight_error=weight_error, cells=cells)


def _side_by_side(parts: Sequence[Cells]) -> Cells:
    """The cells of several densities, with an empty one between two of them."""
    nothing = np.full((1, 1), np.inf)
    slopes = [slope for part in parts for slope in (part.log_slope, nothing)][:-1]
    bends = {
        name: np.maximum.reduce([getattr(part, name) for part in parts])
        for name in ("curvature", "curvature_p", "curvature_q", "square")
    }
    return Cells(
        np.concatenate([part.loss for part in parts], axis=1),
        np.concatenate([part.log_density for part in parts], axis=1),
        np.concatenate(slopes, axis=1),
        **bends,
    )
