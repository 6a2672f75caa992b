"""Laplace noise on a Poisson sample under substitution: a joined pair (`laws.joined`) given that nothing is merged.

With the record the noise is moved by D, with another in its place by -D, without either not at all. The density C of
(discrete) Laplace noise of scale b is then ``e^m`` times the smaller one of A and B, m = D / b. So where A > B

    (1-g) C + g A = w ((1-h) B + h A),    (1-g) C + g B = w B,    w = (1-g) e^m + g,    h = g / w,

and the reverse where A < B: what a batch of fixed size of the rate h shows of (A, B) under substitution, but for the
outcomes that are merged there, which are the share ``1 - 1/w`` of all.

A larger h is a larger g, and shows more: the pair with h rounded up dominates, the one with h rounded down is attained.

Guarantee: as that of the joined pair. Proof: docs/derivations/fixed-size.md, section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from hockeystick.errors import UnknownPairError
from hockeystick.laws.atom_rules import AtomSummand
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Array, CellMasses, Measure, Nodes, Pair
from hockeystick.laws.joined import JoinedPair
from hockeystick.laws.joined_rule import JoinedLaplaceSummand
from hockeystick.numerics.rounding import ELEMENTARY, U, down, up
from hockeystick.transforms.summand import Summand

_LEAST_RATE = 1e-250


def laplace_on_poisson(substitute: Pair, shift: float, rate: float) -> tuple[Pair, Pair] | None:
    """The dominating pair, and the one that is attained; None where the rate that it takes is next to nothing.

    Parameters
    ----------
    substitute : Pair
        That of the noise moved by D against the same moved by -D.
    shift : float
        m = D / b, one rounding off.
    rate : float
        g, in (0, 1).
    """
    fall = math.exp(-shift)
    smaller = rate * fall / ((1.0 - rate) + rate * fall)
    if smaller < _LEAST_RATE:
        return None
    off = 16.0 * ELEMENTARY + 4.0 * U * shift
    return UnmergedPair(substitute, min(up(smaller, off), 1.0)), UnmergedPair(substitute, down(smaller, off))


@final
@dataclass(frozen=True)
class UnmergedPair(JoinedPair):
    """The joined pair of (discrete) Laplace noise, given that the outcome is not merged.

    Examples
    --------
    >>> from hockeystick.laws import LaplacePair
    >>> UnmergedPair(LaplacePair(1.0, 2.0), 0.04).sampling_rate < 0.11
    True
    """

    _middle = (-math.inf, -math.inf)

    @cached_property
    def _log_kept(self) -> tuple[float, float]:
        """``ln`` of the mass that is not merged, and a bound on its error."""
        return log_kept(self.rate, 0.5 * self.base.supremum.value)

    @property
    def sampling_rate(self) -> float:
        log, error = self._log_kept
        return min(up(self.rate * math.exp(error - log), 8.0 * ELEMENTARY), 1.0)

    def reversed(self) -> Pair:
        return self  # mirror the line

    @cached_property
    def atoms(self) -> AtomTable | None:
        base, joined = self.base.atoms, super().atoms
        if base is None or joined is None:
            return None
        merged = [int(np.count_nonzero(base.loss < 0.0))] if joined.size > base.size else []
        (log, off), exactly = self._log_kept, joined.exact_losses
        log_p, log_q = np.delete(joined.log_p, merged) - log, np.delete(joined.log_q, merged) - log
        return replace(
            joined,
            loss=np.delete(joined.loss, merged),
            loss_error=np.delete(joined.loss_error, merged),
            log_p=log_p,
            log_q=log_q,
            error=np.delete(joined.error, merged) + off + U * np.maximum(np.abs(log_p), np.abs(log_q)),
            exact_losses=exactly and (lambda: tuple(np.delete(np.array(exactly(), dtype=object), merged))),
        )

    def atoms_but(self, log_drop: float) -> AtomTable | None:
        return self.atoms

    def cells(self, losses: Array) -> CellMasses:
        cells, (log, off) = super().cells(losses), self._log_kept
        log_p, log_q = cells.log_p - log, cells.log_q - log
        error_p, error_q = (
            error + off + U * np.where(np.isfinite(logs), np.abs(logs), 0.0)
            for error, logs in ((cells.error_p, log_p), (cells.error_q, log_q))
        )
        return CellMasses(log_p, log_q, error_p, error_q, cells.slack)

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        base = self.base.nodes(log_tail, refine=2 * refine)  # an even number of panels: loss 0 is an end of two
        log, _ = self._log_kept
        kept_p, kept_q = (np.log(self._kept(base.loss, measure)) - log for measure in ("P", "Q"))
        return Nodes(self._mapped(base.loss), base.log_p + kept_p, base.log_q + kept_q)

    def summand(self) -> Summand:
        if not self.is_discrete:
            return UnmergedLaplaceSummand(self.base.supremum.value, self.rate)
        self.base.summand()  # refuses where atoms are too many
        if self.atoms is None:
            raise UnknownPairError(f"no certified transform is known for {self!r}: use a lattice")
        return AtomSummand(self.atoms)

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        if (atoms := self.atoms) is not None:
            masses = np.exp(atoms.log_p if measure == "P" else atoms.log_q)
            return atoms.loss[rng.choice(atoms.size, size=size, p=masses / masses.sum())]
        moved = 0.5 * self.base.supremum.value
        y = rng.laplace(size=size) + np.where(rng.random(size) < self.sampling_rate, moved, 0.0)
        loss = self._mapped(np.abs(y + moved) - np.abs(y - moved))
        return loss if measure == "P" else -loss


@final
@dataclass(frozen=True)
class UnmergedLaplaceSummand(JoinedLaplaceSummand):
    """That of Laplace noise."""

    @property
    def log_start(self) -> tuple[float, float]:
        return self._scaled(*super().log_start)

    def middle(self) -> tuple[Array, ...]:
        return (np.zeros(0),) * 4

    def atom(self) -> tuple[Array, ...]:
        loss, error, log_q, off = super().atom()
        log_q, off = self._scaled(log_q, off)
        return loss, error, log_q, off

    def _scaled(self, log: Any, error: Any) -> tuple[Any, Any]:
        log_mass, off = log_kept(self.rate, 0.5 * self.shift)
        return log - log_mass, error + off + U * abs(log - log_mass)


def log_kept(rate: float, shift: float) -> tuple[float, float]:
    """``ln (h + (1-h) e^-m)`` and a bound on its error, m one rounding off."""
    log = math.log(rate + (1.0 - rate) * math.exp(-shift))
    return log, 4.0 * ELEMENTARY + ELEMENTARY * abs(log) + 4.0 * U * (1.0 + shift)
