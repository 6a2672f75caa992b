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

import numpy as np

from hockeystick.errors import check_fields, check_rate
from hockeystick.laws.atom_table import AtomTable
from hockeystick.laws.base import Array, CellMasses, Extreme, Measure, Nodes, Pair, derives
from hockeystick.laws.one_step import one_step_delta
from hockeystick.laws.reversed import ReversedPair
from hockeystick.laws.sampled_loss import sampled_losses
from hockeystick.laws.subsampled import SubsampledPair
from hockeystick.numerics.rationals import product_up
from hockeystick.numerics.rounding import ELEMENTARY, U
from hockeystick.transforms.summand import Summand


@derives("joined")
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
        check_fields(self, rate=check_rate)

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
        """Lower and upper bound on ``ln`` of the mass at loss 0; the lower one is ``-inf`` where none is proved."""
        if self.rate == 1.0:
            return -math.inf, -math.inf
        low, high = one_step_delta(self.base, 0.0)
        kept = math.log1p(-self.rate)
        return _scaled(low, kept, -1.0), _scaled(high, kept, 1.0)

    @property
    def infimum(self) -> Extreme:
        return -_at_least_zero(self.below.supremum)

    @property
    def supremum(self) -> Extreme:
        return _at_least_zero(self.above.supremum)

    @property
    def mass_at_infinity(self) -> float:
        return product_up(self.rate, self.base.mass_at_infinity)

    @property
    def reverse_mass_at_infinity(self) -> float:
        return product_up(self.rate, self.base.reverse_mass_at_infinity)

    @property
    def sampling_rate(self) -> float:
        return self.above.sampling_rate  # both curves are one at a = 1

    @property
    def is_discrete(self) -> bool:
        return self.base.is_discrete

    @cached_property
    def atoms(self) -> AtomTable | None:
        atoms = self.base.atoms
        return None if atoms is None else atoms.joined(Fraction(self.rate))

    def atoms_but(self, log_drop: float) -> AtomTable | None:
        atoms = self.base.atoms_but(log_drop - math.log(2.0))
        return None if atoms is None else atoms.joined(Fraction(self.rate))

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
        sides = []
        for (low, low_error), (high, high_error) in (
            ((below.log_p, below.error_p), (above.log_p, above.error_p)),
            ((below.log_q, below.error_q), (above.log_q, above.error_q)),
        ):
            logs, errors = np.concatenate((low[:-1], high[1:])), np.concatenate((low_error[:-1], high_error[1:]))
            errors[seam : seam + 2] += at_zero
            logs[seam], errors[seam] = _sum(_sides(logs[seam], errors[seam]), self._middle)
            if not self.is_discrete and -math.inf in (low[-2], high[1]):
                # an empty cell next to 0 may be in the errors of the one beyond 0, which is not ours (`laws/stated.py`)
                beyond = ((low[-1], low_error[-1]), (high[0], high_error[0]))
                lent = np.logaddexp(*(log + math.log(math.expm1(min(error, 600.0))) for log, error in beyond))
                errors[seam] += np.logaddexp(0.0, lent - logs[seam])
            if not (losses == 0.0).any():  # loss 0 is no cut: one cell
                both = (_sides(logs[at], errors[at]) for at in (seam, seam + 1))
                logs[seam + 1], errors[seam + 1] = _sum(*both)
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
        return np.copysign(sampled_losses(np.abs(loss), self.rate), loss)

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

    def summand(self) -> Summand:
        base = self.base.summand()
        return base if self.rate == 1.0 else base.joined(Fraction(self.rate))

    def sample(self, rng: np.random.Generator, size: int, measure: Measure = "P") -> Array:
        loss = self.base.sample(rng, size, measure)
        return np.where(rng.random(size) < self._kept(loss, measure), self._mapped(loss), 0.0)


def _at_least_zero(extreme: Extreme) -> Extreme:
    return Extreme(max(extreme.value, 0.0), extreme.error)


def _scaled(mass: float, log_factor: float, sign: float) -> float:
    """``ln mass + log_factor``, rounded up (``sign`` 1) or down (-1)."""
    if mass <= 0.0:
        return -math.inf
    log = math.log(mass)
    # each logarithm is off by ELEMENTARY of itself, their sum by one rounding
    return log + log_factor + sign * (ELEMENTARY + 2.0 * U) * (abs(log) + abs(log_factor))


def _sides(log: float, error: float) -> tuple[float, float]:
    """Lower and upper bound on ``ln`` of a mass, of which nothing is known where the error is infinite."""
    return log - error, log + error if error < math.inf else 0.0


def _sum(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """``ln`` of the sum of two masses in intervals, and a bound on its error: infinite where it may be nothing.

    Between the sums of the lower and of the upper ends; logaddexp loses a rounding of each argument's size and two
    primitives.
    """
    low, high = (float(np.logaddexp(*ends)) for ends in zip(first, second, strict=True))
    if high == -math.inf:
        return high, 0.0
    if math.isinf(high - low):
        return min(high, 0.0), math.inf
    middle = 0.5 * (low + high)
    return middle, 0.5 * (high - low) + 3.0 * ELEMENTARY + 4.0 * U * (1.0 + abs(low) + abs(high))
