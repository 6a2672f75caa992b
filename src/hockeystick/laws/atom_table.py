"""A law of finitely many atoms as one table of losses and masses, whatever makes it.

A table is closed under reversal, Poisson samples and batches of a fixed size, so that vectors, noise on the integers,
worst cases and whatever is made of them are one thing to every engine.

Guarantee: every error stored bounds the true one. Cost: one row an atom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
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
_SMALL = 1e-250  # mass at loss 0, of which no term that matters is below the normal range
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
        base, base_error, log_q, error = self.loss, self.loss_error, self.log_q, self.error
        if self.infinite_q > 0.0:
            log_bottom = math.log(self.infinite_q)
            base, base_error = np.append(-math.inf, base), np.append(0.0, base_error)
            log_q, error = (
                np.append(log_bottom, log_q),
                np.append(32.0 * U + 2.0 * ELEMENTARY * (1.0 + abs(log_bottom)), error),
            )
        loss, loss_error = _sampled(base, base_error, rate)
        log_p = log_q + loss
        return AtomTable(
            loss,
            loss_error,
            log_p,
            log_q,
            error + loss_error + U * np.abs(log_p),
            infinite_p=product_up(rate, self.infinite_p),
            dropped=self.dropped,
            exact_losses=(lambda: self._sampled_exactly(rate)) if self._is_exact_sampled else None,
        )

    @property
    def _is_exact_sampled(self) -> bool:
        few = self.size <= _FEW and np.abs(self.loss).max(initial=0.0) <= _LARGEST
        return bool(few and self.exact_losses is not None)

    def _sampled_exactly(self, rate: Fraction) -> tuple[Fraction, ...]:
        logs = _exactly_sampled(self.precise or (), rate)
        return (precise_log(1 - rate), *logs) if self.infinite_q > 0.0 else tuple(logs)

    def joined(self, rate: Fraction) -> AtomTable | None:
        """The table of the joined pair (`laws.joined`); None where too little is known of its mass at loss 0.

        An atom that may lie on the other side of loss 0 counts on the wrong one, where its masses are off by at most
        what its loss is.
        """
        if rate == 1:
            return self
        is_low, size = self.loss < 0.0, np.abs(self.loss)
        mapped, loss_error = _sampled(size, self.loss_error, rate)
        loss = np.where(is_low, -mapped, mapped)
        log_q = np.where(is_low, self.log_p + mapped, self.log_q)
        log_p = np.where(is_low, self.log_p, self.log_q + mapped)
        error = self.error + self.loss_error + loss_error + U * np.maximum(np.abs(log_p), np.abs(log_q))
        log_rest, rest_error = self._rest(rate)
        if math.isinf(rest_error):
            return None
        at = [int(np.count_nonzero(is_low))] if log_rest > -math.inf else []

        def exactly() -> tuple[Fraction, ...]:
            found = _exactly_sampled([abs(one) for one in self.precise or ()], rate)
            signed = [-one if low else one for one, low in zip(found, is_low, strict=True)]
            return (*signed[: at[0]], Fraction(0), *signed[at[0] :]) if at else tuple(signed)

        return AtomTable(
            np.insert(loss, at, 0.0),
            np.insert(loss_error, at, 0.0),
            np.insert(log_p, at, log_rest),
            np.insert(log_q, at, log_rest),
            np.insert(error, at, rest_error),
            infinite_p=product_up(rate, self.infinite_p),
            infinite_q=product_up(rate, self.infinite_q),
            dropped=2.0 * self.dropped,
            exact_losses=exactly if self._is_exact_sampled else None,
        )

    def beside(self, other: AtomTable, log_shares: tuple[float, float], log_error: float) -> AtomTable:
        """The finite losses of a mixture of both whose label is released, ``ln`` of the shares to ``log_error``."""
        both = self, other
        loss = np.concatenate([table.loss for table in both])
        order = np.argsort(loss, kind="stable")
        log_p, log_q = (
            np.concatenate([getattr(table, name) + share for table, share in zip(both, log_shares, strict=True)])
            for name in ("log_p", "log_q")
        )
        error = (
            np.concatenate([table.error for table in both]) + log_error + U * np.maximum(np.abs(log_p), np.abs(log_q))
        )

        def exactly() -> tuple[Fraction, ...]:
            losses = (*(self.precise or ()), *(other.precise or ()))
            return tuple(losses[index] for index in order.tolist())

        return AtomTable(
            loss[order],
            np.concatenate([table.loss_error for table in both])[order],
            log_p[order],
            log_q[order],
            error[order],
            dropped=max(table.dropped for table in both) * (1.0 + 1e-9),
            exact_losses=None if any(table.exact_losses is None for table in both) else exactly,
        )

    def _rest(self, rate: Fraction) -> tuple[float, float]:
        """``ln`` of ``(1 - g) (P(L > 0) - Q(L > 0))`` and a bound on its error; infinite where that says too little."""
        p, shown = np.exp(self.log_p), -np.expm1(-np.maximum(self.loss, 0.0))
        total = float((p * shown).sum()) + self.infinite_p
        if total == 0.0:
            return -math.inf, 0.0 if not self.loss_error.any() else math.inf
        off = p * (shown * (self.error + 3.0 * ELEMENTARY) + (1.0 - shown) * self.loss_error)
        relative = float(off.sum()) / total + (32.0 + self.size) * U
        if relative > 1e-3 or total < _SMALL:
            return 0.0, math.inf
        log_total, log_kept = math.log(total), math.log(float(1 - rate))
        rounding = ELEMENTARY * (abs(log_total) + abs(log_kept)) + U * (4.0 + abs(log_total + log_kept))
        return log_total + log_kept, 1.01 * relative + rounding


def _sampled(base: Array, base_error: Array, rate: Fraction) -> tuple[Array, Array]:
    """Losses of a sample, and bounds on their errors."""
    g = float(rate)
    loss = sampled_losses(base, g)
    error = sampled_loss_error(loss, base, g, base_error)
    if g != rate:  # one rounding off: so is r - 1, and the loss moves by |1 - 1/r| of that
        error += 1.01 * U * np.abs(np.expm1(-loss))
    return loss, error


def _exactly_sampled(losses: Iterable[Fraction], rate: Fraction) -> list[Fraction]:
    """``ln(1 - rate + rate e^L)`` of each, to within `transforms.lattice.PRECISE`."""
    with localcontext(own_context(_DIGITS)):
        bottom, top = _decimal(1 - rate), _decimal(rate)
        return [Fraction((bottom + top * _decimal(loss).exp()).ln()) for loss in losses]


def precise_log(value: Fraction) -> Fraction:
    """``ln`` of a positive fraction, to within `transforms.lattice.PRECISE`."""
    with localcontext(own_context(_DIGITS)):
        return Fraction(_decimal(value).ln())


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
