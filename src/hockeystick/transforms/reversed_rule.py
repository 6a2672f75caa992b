"""The rules of (Q, P), given those of (P, Q): its loss is minus theirs, and ``M_rev(z) = M(-1 - z)``.

At the exponent a of the one stands 1 - a of the other: an exact difference, where a has few bits.

Guarantee: every error bounds the true one. Cost: none beyond the arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from hockeystick.numerics.rounding import U
from hockeystick.transforms.rule import Array, LossRule, Quadrature

__all__ = ["reversed_rule"]


def reversed_rule(rule: LossRule) -> LossRule:
    """The same nodes for the reverse, without cells: q and p trade places."""
    log_p = rule.log_weight_p
    return LossRule(
        loss=-rule.loss,
        loss_error=rule.loss_error,
        log_weight=log_p,
        weight_error=rule.weight_error + rule.loss_error + U * np.abs(log_p),
        missing_p=rule.missing_q,
        missing_q=rule.missing_p,
        counts=rule.counts,
        quadrature=_Reversed(rule.quadrature),
        cells=None,
        dropped=rule.dropped,
    )


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
