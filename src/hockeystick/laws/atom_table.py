"""A law of finitely many atoms as one table of losses and masses, whatever makes it.

A table is closed under reversal and under Poisson sampling, so that vectors, noise on the integers, worst cases and
whatever is made of them are one thing to every engine.

Guarantee: every error stored bounds the true one. Cost: one row an atom.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.decimals import own_context
from hockeystick.errors import set_fields
from hockeystick.laws.sampled_loss import sampled_loss_error, sampled_losses
from hockeystick.numerics.columns import Array
from hockeystick.numerics.rationals import product_up
from hockeystick.numerics.rounding import ELEMENTARY, U

_DIGITS = 70  # of a loss held as a fraction: far beyond `transforms.lattice.PRECISE`
_FEW, _LARGEST = 64, 1e9  # atoms, and the size of losses (nats), of which sampled ones are known so well


@final
@dataclass(frozen=True, eq=False)
class AtomTable:
    """Outcomes of finite loss, arrays of shape (n,).

    Attributes
    ----------
    loss, loss_error : ndarray
        Losses (nats), in their true order as they are given, and bounds on their absolute errors. They do not decrease:
        one that rounding puts below another before it is taken as large as that.
    log_p, log_q : ndarray
        ``ln`` of their masses; finite.
    error : ndarray
        Bounds on the absolute errors of both.
    infinite_p, infinite_q : float
        P(L = inf) and Q(L = -inf), rounded up by at most 32 u relative: all that the atoms leave of either mass.
    dropped : float
        Bound on the mass, under either measure, that is left out on purpose.
    exact_losses : callable, optional
        The losses to within `transforms.lattice.PRECISE`; None where they are not known so well.
    """

    loss: Array
    loss_error: Array
    log_p: Array
    log_q: Array
    error: Array
    infinite_p: float = 0.0
    infinite_q: float = 0.0
    dropped: float = 0.0
    exact_losses: Callable[[], tuple[Fraction, ...]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        risen = np.maximum.accumulate(self.loss)
        if (risen > self.loss).any():  # twice: for the rounding of the sum
            set_fields(self, loss=risen, loss_error=self.loss_error + 2.0 * (risen - self.loss))

    @classmethod
    def without_atoms(cls, infinite_p: float, infinite_q: float) -> AtomTable:
        """The table of a law without finite losses."""
        none = np.empty(0)
        return cls(none, none, none, none, none, infinite_p=infinite_p, infinite_q=infinite_q)

    @property
    def size(self) -> int:
        """Number of atoms."""
        return int(self.loss.size)

    @cached_property
    def precise(self) -> tuple[Fraction, ...] | None:
        """The losses as fractions, computed when first asked for."""
        return None if self.exact_losses is None else self.exact_losses()

    def reversed(self) -> AtomTable:
        """The table of (Q, P)."""
        return AtomTable(
            -self.loss[::-1],
            self.loss_error[::-1],
            self.log_q[::-1],
            self.log_p[::-1],
            self.error[::-1],
            infinite_p=self.infinite_q,
            infinite_q=self.infinite_p,
            dropped=self.dropped,
            exact_losses=self.exact_losses and (lambda: tuple(-loss for loss in reversed(self.precise or ()))),
        )

    def subsampled(self, rate: Fraction) -> AtomTable:
        """The table of ((1 - rate) Q + rate P, Q): where P has no mass, the loss is ``ln(1 - rate)``."""
        if rate == 1:
            return self
        g = float(rate)
        base, base_error, log_q, error = self.loss, self.loss_error, self.log_q, self.error
        if self.infinite_q > 0.0:
            log_bottom = math.log(self.infinite_q)
            base, base_error = np.append(-math.inf, base), np.append(0.0, base_error)
            log_q, error = (
                np.append(log_bottom, log_q),
                np.append(32.0 * U + 2.0 * ELEMENTARY * (1.0 + abs(log_bottom)), error),
            )
        loss = sampled_losses(base, g)
        loss_error = sampled_loss_error(loss, base, g, base_error)
        if g != rate:  # one rounding off: so is r - 1, and the loss moves by |1 - 1/r| of that
            loss_error += 1.01 * U * np.abs(np.expm1(-loss))
        log_p = log_q + loss
        exact = self.exact_losses is not None and self.size <= _FEW and np.abs(self.loss).max(initial=0.0) <= _LARGEST
        return AtomTable(
            loss,
            loss_error,
            log_p,
            log_q,
            error + loss_error + U * np.abs(log_p),
            infinite_p=product_up(g, self.infinite_p),
            dropped=self.dropped,
            exact_losses=(lambda: self._sampled_exactly(rate)) if exact else None,
        )

    def _sampled_exactly(self, rate: Fraction) -> tuple[Fraction, ...]:
        with localcontext(own_context(_DIGITS)):
            bottom, top = _decimal(1 - rate), _decimal(rate)
            logs = [(bottom + top * _decimal(loss).exp()).ln() for loss in self.precise or ()]
            return tuple(map(Fraction, [*([bottom.ln()] if self.infinite_q > 0.0 else []), *logs]))


def precise_log(value: Fraction) -> Fraction:
    """``ln`` of a positive fraction, to within `transforms.lattice.PRECISE`."""
    with localcontext(own_context(_DIGITS)):
        return Fraction(_decimal(value).ln())


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
