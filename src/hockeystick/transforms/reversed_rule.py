"""The rules of (Q, P), given those of (P, Q): its loss is minus theirs, and ``M_rev(z) = M(-1 - z)``.

At the exponent a of the one stands 1 - a of the other: an exact difference, where a has few bits.

Guarantee: every error bounds the true one. Cost: none beyond the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from hockeystick.transforms.replicas import Replicas
from hockeystick.transforms.rule import Array, Cells, LossRule, Numbers, Quadrature, Sketch, Window, reversed_nodes
from hockeystick.transforms.saddle import LossSum


def reversed_rule(rule: LossRule, cells: Cells | None = None) -> LossRule:
    """The same nodes for the reverse: q and p trade places. ``cells`` are those of the law itself."""
    nodes = reversed_nodes(rule.loss, rule.loss_error, rule.log_weight, rule.weight_error)
    quadrature, turned = _Reversed(rule.quadrature), None if cells is None else cells.reversed()
    return LossRule(*nodes, rule.missing_q, rule.missing_p, rule.counts, quadrature, turned, rule.dropped)


@final
class ReversedSum(LossSum):
    """The loss of the reverse of one part and a normal one, by a rule that is at hand: it serves every window.

    Parameters
    ----------
    rule : LossRule
        That of the part, of one run.
    cells : Cells
        Those of the part.
    gaussian_variance : float
        Of the normal part, which is its own reverse.
    replicas : Replicas or None
        Those of losses that count into it: of their reverses they are the same.
    """

    def __init__(self, rule: LossRule, cells: Cells, gaussian_variance: Numbers, replicas: Replicas | None) -> None:
        self.gaussian_variance, self.replicas = gaussian_variance, replicas
        self._rule = reversed_rule(rule, cells)

    @property
    def total_count(self) -> float:
        return float(self._rule.counts[0])

    @property
    def typical_shift(self) -> float:
        raise NotImplementedError

    def rules(self, window: Window) -> Sequence[LossRule]:
        """The rule at hand, as wide as its errors say."""
        return [self._rule]

    def sketches(self, window: Window) -> Sequence[Sketch]:
        return [self._rule.sketch]


@final
@dataclass(frozen=True, eq=False)
class _Reversed(Quadrature):
    """The error of the reverse."""

    base: Quadrature

    def error(self, exponents: Array) -> Array:
        """As in `Quadrature`."""
        return self.base.error(1.0 - exponents)

    def error_up_to(self, frequency: float, exponent: float, error: Array) -> Array:
        """As in `Quadrature`."""
        return self.base.error_up_to(frequency, 1.0 - exponent, error)
