"""The pair of fixed-size sampling under substitution: two curves joined at a = 1.

For a base pair (P, Q) under substitution and rate g (003, Theorem 15, after Zhu, Dong and Wang 2022, Proposition 30;
derived in docs/derivations/fixed-size.md):

    h(a) = H_a((1-g) Q + g P || Q)  for a >= 1,        h(a) = H_a(P || (1-g) P + g Q)  for a < 1.

Both curves cut the base's outcomes at L = 0: above it the loss is ``ln(1-g + g e^L)`` with masses (1-g) Q + g P and Q,
below it ``-ln(1-g + g e^{-L})`` with masses P and (1-g) P + g Q. What is left has loss 0 and, under either measure, the
mass ``(1-g) (P(L > 0) - Q(L > 0))``.

Guarantee: the curve is convex, so it is the curve of a pair; it dominates every pair of neighbouring datasets. No pair
of datasets is known to attain it under composition: it is an upper bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from hockeystick.errors import check_rate
from hockeystick.laws.base import Array, CellMasses, Measure, Nodes, Pair
from hockeystick.laws.one_step import one_step_delta
from hockeystick.laws.reversed import ReversedPair
from hockeystick.laws.subsampled import SubsampledPair
from hockeystick.laws.vectors import DiscretePair, Probability
from hockeystick.numerics.rounding import ELEMENTARY, U, up

__all__ = ["JoinedPair", "joined", "mixed_exactly"]


def mixed_exactly(pair: DiscretePair, rate: Fraction) -> DiscretePair:
    """((1 - rate) Q + rate P, Q) for probability vectors, in rational arithmetic.

    Examples
    --------
    >>> mixed_exactly(DiscretePair((0.75, 0.25), (0.25, 0.75)), Fraction(1, 3)).p
    (Fraction(5, 12), Fraction(7, 12))
    """
    mixed = tuple((1 - rate) * Fraction(b) + rate * Fraction(a) for a, b in zip(pair.p, pair.q, strict=True))
    return DiscretePair(mixed, pair.q)


def joined(base: Pair, rate: float | Fraction) -> Pair:
    """The joined pair of a base pair under substitution.

    Probability vectors stay probability vectors, exactly. For any other pair the rate is taken as a float64.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> joined(DiscretePair((0.75, 0.25), (0.25, 0.75)), half).p
    (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    """
    if isinstance(base, DiscretePair):
        return _joined_vectors(base, Fraction(rate))
    return base if rate == 1 else JoinedPair(base, float(rate))


def _joined_vectors(base: DiscretePair, g: Fraction) -> DiscretePair:
    p: list[Probability] = []
    q: list[Probability] = []
    gap = Fraction(0)  # P(L > 0) - Q(L > 0)
    for a, b in ((Fraction(a), Fraction(b)) for a, b in zip(base.p, base.q, strict=True)):
        gap += max(a - b, Fraction(0))
        p.append((1 - g) * b + g * a if a > b else a)
        q.append(b if a > b else (1 - g) * a + g * b)
    p.append((1 - g) * gap)
    q.append((1 - g) * gap)
    return DiscretePair(tuple(p), tuple(q))


@final
@dataclass(frozen=True)
class JoinedPair(Pair):
    """Positive losses of ((1-g) Q + g P, Q), negative ones of (P, (1-g) P + g Q), and the rest at loss 0.

    Parameters
    ----------
    base : Pair
        (P, Q) under substitution; (Q, P) dominates as well, since the relation is symmetric.
    rate : float
        g = batch size / population, in (0, 1].

    Examples
    --------
    >>> from hockeystick.laws import GaussianPair
    >>> JoinedPair(GaussianPair(4.0, 2.0), 0.05).loss_bounds
    (-inf, inf)
    """

    base: Pair
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check_rate("rate", self.rate))

    @cached_property
    def above(self) -> Pair:
        """The pair whose positive losses are ours."""
        return SubsampledPair(self.base, self.rate)

    @cached_property
    def below(self) -> Pair:
        """The pair whose positive losses, negated and with P and Q exchanged, are our negative ones."""
        # Not base.reversed(), which may be the base mirrored: an atom at L = 0 must be on one side of the cut in both.
        return SubsampledPair(ReversedPair(self.base), self.rate)

    @cached_property
    def _middle(self) -> tuple[float, float]:
        """``ln`` of the mass at loss 0, and a bound on its absolute error."""
        if self.rate == 1.0:
            return -math.inf, 0.0
        low, high = one_step_delta(self.base, 0.0)
        if high <= 0.0:
            return -math.inf, 0.0
        low = max(low, high * 1e-12)  # one_step_delta's bracket is far narrower wherever this mass matters
        log_mass = 0.5 * (math.log(low) + math.log(high)) + math.log1p(-self.rate)
        error = 0.5 * (math.log(high) - math.log(low)) + 3.0 * ELEMENTARY + 4.0 * U * (1.0 + abs(log_mass))
        return log_mass, error

    @property
    def loss_bounds(self) -> tuple[float, float]:
        return -max(self.below.loss_bounds[1], 0.0), max(self.above.loss_bounds[1], 0.0)

    @property
    def mass_at_infinity(self) -> float:
        mass = self.base.mass_at_infinity
        return 0.0 if mass == 0.0 else up(self.rate * mass, 4.0 * U)

    @property
    def reverse_mass_at_infinity(self) -> float:
        mass = self.base.reverse_mass_at_infinity
        return 0.0 if mass == 0.0 else up(self.rate * mass, 4.0 * U)

    @property
    def is_discrete(self) -> bool:
        return self.base.is_discrete

    @property
    def anchors(self) -> tuple[float, ...]:
        top = self.loss_bounds[1]
        return (0.0, -top) if 0.0 < top < math.inf else (0.0,)

    def cells(self, losses: Array) -> CellMasses:
        above = self.above.cells(np.concatenate(([0.0], losses[losses > 0.0])))
        below = self.below.cells(np.concatenate(([0.0], -losses[losses < 0.0][::-1]))).reversed()
        # Both cut the base at L = 0, in one place: an outcome within s of it may be on the side where it errs by e^+-s.
        at_zero = float(max(above.slack[0], below.slack[-1]))
        seam = below.log_p.size - 2  # the last cell below 0, which holds loss 0
        log_middle, error = self._middle
        sides = []
        for (low, low_error), (high, high_error) in (
            ((below.log_p[:-1], below.error_p[:-1]), (above.log_p[1:], above.error_p[1:])),
            ((below.log_q[:-1], below.error_q[:-1]), (above.log_q[1:], above.error_q[1:])),
        ):
            logs, errors = np.concatenate((low, high)), np.concatenate((low_error, high_error))
            errors[seam : seam + 2] += at_zero
            logs[seam], errors[seam] = _sum(logs[seam], errors[seam], log_middle, error)
            if not (losses == 0.0).any():  # loss 0 is no cut: one cell
                logs[seam + 1], errors[seam + 1] = _sum(logs[seam], errors[seam], logs[seam + 1], errors[seam + 1])
                logs, errors = np.delete(logs, seam), np.delete(errors, seam)
            sides.append((logs, errors))
        (log_p, error_p), (log_q, error_q) = sides
        middle = [at_zero] if (losses == 0.0).any() else []
        return CellMasses(log_p, log_q, error_p, error_q, np.concatenate((below.slack[:-1], middle, above.slack[1:])))

    def loss_range(self, log_below: float, log_above: float, measure: Measure = "P") -> tuple[float, float]:
        other: Measure = "Q" if measure == "P" else "P"
        low = -self.below.loss_range(log_below, log_below, other)[1]
        high = self.above.loss_range(log_above, log_above, measure)[1]
        return min(low, 0.0), max(high, 0.0)

    def _mapped(self, loss: Array) -> Array:
        """Our loss for a base loss that is kept: ``sign(L) ln(1 - g + g e^|L|)``."""
        g, size = self.rate, np.abs(loss)
        with np.errstate(over="ignore"):
            small = np.log1p(g * np.expm1(np.minimum(size, 30.0)))
            large = size + math.log(g) + np.log1p((1.0 - g) / g * np.exp(-np.maximum(size, 30.0)))
        return np.copysign(np.where(size <= 30.0, small, large), loss)

    def _kept(self, loss: Array, measure: Measure) -> Array:
        """Probability that an outcome of the base keeps its side; the others have loss 0.

        Our masses are the base's, thinned: ((1-g) Q + g P) / P = g + (1-g) e^{-L} where L > 0, and likewise below.
        """
        side = loss if measure == "P" else -loss
        return np.asarray(self.rate + (1.0 - self.rate) * np.exp(-np.maximum(side, 0.0)))

    def nodes(self, log_tail: float, *, refine: int = 1) -> Nodes:
        base = self.base.nodes(log_tail, refine=refine)
        kept_p, kept_q = self._kept(base.loss, "P"), self._kept(base.loss, "Q")
        p, q = np.exp(base.log_p), np.exp(base.log_q)
        with np.errstate(divide="ignore"):
            rest = 1.0 - self.rate  # of what is infinite
            zero_p = np.log(((1.0 - kept_p) * p).sum() + rest * self.base.mass_at_infinity)
            zero_q = np.log(((1.0 - kept_q) * q).sum() + rest * self.base.reverse_mass_at_infinity)
        order = np.argsort(np.append(self._mapped(base.loss), 0.0), kind="stable")  # increasing losses
        return Nodes(
            np.append(self._mapped(base.loss), 0.0)[order],
            np.append(base.log_p + np.log(kept_p), zero_p)[order],
            np.append(base.log_q + np.log(kept_q), zero_q)[order],
        )

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        loss = self.base.sample(rng, size, measure)
        return np.where(rng.random(size) < self._kept(loss, measure), self._mapped(loss), 0.0)


def _sum(log_a: float, error_a: float, log_b: float, error_b: float) -> tuple[float, float]:
    """``ln(e^a + e^b)`` and a bound on its error."""
    total = float(np.logaddexp(log_a, log_b))
    if total == -math.inf:
        return total, 0.0
    return total, max(float(error_a), float(error_b)) + 3.0 * ELEMENTARY + 4.0 * U * (1.0 + abs(total))
